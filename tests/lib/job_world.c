/* SPDX-License-Identifier: Apache-2.0 */
/* Three sites' answers to the planner, from a struct job_world. */
#include "tests/lib/job_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const sites[3] = {"qingyang", "cluster2", "hangzhou"};

static const char *site_of(void *ctx, const struct rwy_ip *a)
{
	return a->b[12] == 10 && a->b[13] >= 1 && a->b[13] <= 3 ? sites[a->b[13] - 1] : NULL;
}

static unsigned gateways(void *ctx, const char *site, struct plan_gateway *out, unsigned max)
{
	struct job_world *w = ctx;
	char take[5 * PLAN_NAME_MAX];
	unsigned s, i, n = 0;

	for (s = 0; strcmp(sites[s], site) != 0; s++)
		;
	for (i = 0; i < 2; i++) {
		if (w->gw_bps[s][i] == 0)
			continue;
		assert_true(n < max);
		snprintf(w->name[s][i], PLAN_NAME_MAX, "gw-%s-%u", site, i);
		out[n] =
		    (struct plan_gateway){.id = plan_id(w->name[s][i]), .name = w->name[s][i], .weight = 0};
		out[n].caps.bandwidth_bps[PLAN_NATIVE] = w->gw_bps[s][i];
		out[n].caps.bandwidth_bps[PLAN_TCP] = w->tcp_bps;
		out[n].weight = (uint32_t)(w->gw_bps[s][i] / G);
		plan_book_gateway(take, sizeof(take), w->name[s][i]);
		out[n].claimed_bps = w->book ? plan_book_claimed(w->book, take) : 0;
		n++;
	}
	return n;
}

static void path(void *ctx, const char *first, const char *second, struct plan_path *out)
{
	struct job_world *w = ctx;
	struct plan_obs o = {.source = 1,
	    .carrier = PLAN_ANY,
	    .has = PLAN_HAS_RTT | PLAN_HAS_JITTER | PLAN_HAS_LOSS,
	    .at = T,
	    .rtt_us = w->rtt_us,
	    .jitter_us = w->jitter_us,
	    .loss_ppm = w->loss_ppm};

	assert_true(plan_first_site(first, second));
	if (w->promised_bps) {
		o.pushed = true;
		o.cls = PLAN_DETERMINISTIC;
		o.has |= PLAN_HAS_BANDWIDTH;
		o.bandwidth_bps = w->promised_bps;
	}
	plan_path_merge(out, &o, w->rtt_us != 0, T);
}

static uint64_t path_claimed(void *ctx, const char *first, const char *second)
{
	const struct job_world *w = ctx;
	char name[5 * PLAN_NAME_MAX];

	plan_book_path(name, sizeof(name), first, second);
	return w->book ? plan_book_claimed(w->book, name) : 0;
}

static int routes(void *ctx, const char *first, const char *second, struct plan_route *out, unsigned max)
{
	struct job_world *w = ctx;
	char take[5 * PLAN_NAME_MAX];
	uint64_t taken;
	unsigned i;

	if (!w->network)
		return RWY_ENOENT;
	for (i = 0; i < w->n_routes; i++) {
		out[i] = w->route[i];
		plan_book_route(take, sizeof(take), first, second, out[i].edge, out[i].name);
		taken = w->book ? plan_book_claimed(w->book, take) : 0;
		out[i].free_bps = out[i].free_bps > taken ? out[i].free_bps - taken : 0;
	}
	return (int)w->n_routes;
}

static bool pair_takes(void *ctx, const char *first, const char *second, enum plan_carrier carrier)
{
	const struct job_world *w = ctx;

	return w->held == PLAN_ANY || w->held == carrier || first[strlen(first) - 1] != '0' ||
	       second[strlen(second) - 1] != '0';
}

const struct plan_world_ops job_world_ops = {.site_of = site_of,
    .gateways = gateways,
    .path = path,
    .path_claimed = path_claimed,
    .routes = routes,
    .pair_takes = pair_takes};

struct job_world job_world(void)
{
	struct job_world w = {.gw_bps = {{300 * G, 100 * G}, {100 * G, 0}, {300 * G, 100 * G}},
	    .rtt_us = 20000,
	    .jitter_us = 40,
	    .held = PLAN_ANY};

	return w;
}

struct plan_job_result *job_plan(struct job_world *w, const struct plan_job *job)
{
	struct plan_job_result *r = NULL;
	struct plan_policy p;

	plan_policy_default(&p);
	assert_int_equal(plan_job_new(&r, job, &p, &job_world_ops, w, T), 0);
	assert_non_null(r);
	return r;
}

void job_pairs(struct plan_job_pair *p, unsigned n, unsigned a, unsigned b, struct plan_triple want)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const uint8_t x[4] = {10, (uint8_t)a, 0, (uint8_t)i}, y[4] = {10, (uint8_t)b, 1, (uint8_t)i};

		p[i] = (struct plan_job_pair){rwy_ip_from4(x), rwy_ip_from4(y), want, 0, 0};
	}
}
