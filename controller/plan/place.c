/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places a demand on a network's paths: first on one path per edge, the best of each; if they do
 * not suffice, on all paths within the bounds. Either way all of them carry a part in proportion to
 * their bandwidth. So each path keeps the same share free, and a failing edge or path takes the
 * least away.
 */
#include <string.h>

#include "controller/plan/path.h"
#include "controller/plan/place.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool within(uint32_t v, uint32_t bound)
{
	return bound == 0 || v <= bound;
}

static uint64_t route_free(const struct plan_route *r)
{
	return least(r->free_bps, PLAN_RATE_MAX);
}

/* True if a is the better of two paths at one edge: wider, then shorter, then by name. The name
 * makes the order of the list irrelevant. */
static bool better(const struct plan_route *a, const struct plan_route *b)
{
	if (route_free(a) != route_free(b))
		return route_free(a) > route_free(b);
	if (a->delay_us != b->delay_us)
		return a->delay_us < b->delay_us;
	return strncmp(a->name, b->name, sizeof(a->name)) < 0;
}

static bool same_edge(const struct plan_route *a, const struct plan_route *b)
{
	return strncmp(a->edge, b->edge, sizeof(a->edge)) == 0;
}

/* Marks in `use` the paths within the bounds. Fills the delay, jitter and loss that would fit, and
 * returns why no path is left. */
static enum plan_place_fail filter(struct plan_placement *out, const struct plan_want *want,
    const struct plan_route *r, unsigned n, bool *use)
{
	bool some = false, near = false, steady = false, clean = false;
	unsigned i;

	for (i = 0; i < n; i++) {
		use[i] = false;
		if (route_free(&r[i]) == 0)
			continue;
		if (!some || r[i].delay_us < out->fits_delay_us)
			out->fits_delay_us = r[i].delay_us;
		some = true;
		if (!within(r[i].delay_us, want->delay_us))
			continue;
		if (!near || r[i].jitter_us < out->fits_jitter_us)
			out->fits_jitter_us = r[i].jitter_us;
		near = true;
		if (!within(r[i].jitter_us, want->jitter_us))
			continue;
		if (!steady || r[i].loss_ppm < out->fits_loss_ppm)
			out->fits_loss_ppm = r[i].loss_ppm;
		steady = true;
		use[i] = within(r[i].loss_ppm, want->loss_ppm);
		clean |= use[i];
	}
	if (!some)
		return n ? PLAN_NO_BANDWIDTH : PLAN_NO_ROUTE;
	if (!near)
		return PLAN_NO_DELAY;
	if (!steady)
		return PLAN_NO_JITTER;
	return clean ? PLAN_PLACED : PLAN_NO_LOSS;
}

/* Marks the best path of each edge among those in use. Returns the sum of their bandwidths. */
static uint64_t one_each(const struct plan_route *r, unsigned n, const bool *use, bool *best)
{
	uint64_t sum = 0;
	unsigned i, j;

	for (i = 0; i < n; i++) {
		best[i] = use[i];
		for (j = 0; j < n && best[i]; j++)
			if (j != i && use[j] && same_edge(&r[i], &r[j]) &&
			    (better(&r[j], &r[i]) || (!better(&r[i], &r[j]) && j < i)))
				best[i] = false;
		if (best[i])
			sum += route_free(&r[i]);
	}
	return sum;
}

/* Shares `demand` over the marked paths in proportion to their bandwidth; `sum` of it >= demand.
 * The shares add up exactly, and none exceeds its path. */
static void share_by_bandwidth(struct plan_placement *out, const struct plan_route *r, unsigned n,
    const bool *use, uint64_t sum, uint64_t demand)
{
	uint64_t left = demand, bps;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (!use[i])
			continue;
		bps = (uint64_t)((unsigned __int128)demand * route_free(&r[i]) / sum);
		out->leg[out->n].route = (uint16_t)i;
		out->leg[out->n].bps = bps;
		out->n++;
		left -= bps;
	}
	/* Rounding left at most one bit per path: each path that is not full has room for one
	 * more. */
	for (i = 0; left && i < out->n; i++) {
		if (out->leg[i].bps < route_free(&r[out->leg[i].route])) {
			out->leg[i].bps++;
			left--;
		}
	}
	for (i = 0; i < out->n;) {
		if (out->leg[i].bps == 0) {
			out->n--;
			memmove(&out->leg[i], &out->leg[i + 1], (out->n - i) * sizeof(out->leg[0]));
		} else {
			i++;
		}
	}
}

int plan_place(
    struct plan_placement *out, const struct plan_want *want, const struct plan_route *routes, unsigned n)
{
	bool use[PLAN_ROUTES_MAX], best[PLAN_ROUTES_MAX];
	uint64_t sum_best, sum = 0;
	unsigned i;

	out->fail = PLAN_NO_ROUTE;
	out->shape = PLAN_SAME_PATH;
	out->n = 0;
	out->fits_bps = 0;
	out->fits_delay_us = out->fits_jitter_us = out->fits_loss_ppm = 0;
	if (n > PLAN_ROUTES_MAX || want->bandwidth_bps == 0)
		return RWY_EINVAL;
	out->fail = filter(out, want, routes, n, use);
	if (out->fail != PLAN_PLACED)
		return 0;
	for (i = 0; i < n; i++)
		sum += use[i] ? route_free(&routes[i]) : 0;
	out->fits_bps = sum;
	sum_best = one_each(routes, n, use, best);
	if (sum_best >= want->bandwidth_bps) {
		share_by_bandwidth(out, routes, n, best, sum_best, want->bandwidth_bps);
	} else if (sum >= want->bandwidth_bps) {
		out->shape = PLAN_MULTI_PATH;
		share_by_bandwidth(out, routes, n, use, sum, want->bandwidth_bps);
	} else {
		out->fail = PLAN_NO_BANDWIDTH;
	}
	return 0;
}
