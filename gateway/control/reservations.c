/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations and their numbers: see reservations.h. */
#include "gateway/control/reservations.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define SLICE (50 * RWY_US) /* of a worker's time */

/* A number rests for one set after its reservation has gone: some flows may still have it. */
enum number { NUMBER_FREE, NUMBER_USED, NUMBER_RESTS };

struct gw_reservations {
	pthread_mutex_t lock; /* of v and n, which change under gw_change_lock only */
	struct gw_reservation *v;
	unsigned n;
	uint8_t number[ENG_RESERVATIONS_MAX + 1]; /* enum number */
};

int gw_reservations_new(struct gw_app *app)
{
	struct gw_reservations *g = calloc(1, sizeof(*g));

	if (!g)
		return RWY_ENOMEM;
	pthread_mutex_init(&g->lock, NULL);
	app->reservations = g;
	return 0;
}

void gw_reservations_free(struct gw_app *app)
{
	struct gw_reservations *g = app->reservations;

	app->reservations = NULL;
	if (!g)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g->v);
	free(g);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static int by_pair(const void *a, const void *b)
{
	const struct gw_reservation *x = a, *y = b;
	int d = memcmp(&x->src, &y->src, sizeof(x->src));

	d = d ? d : memcmp(&x->dst, &y->dst, sizeof(x->dst));
	if (d)
		return d;
	if (x->vni != y->vni)
		return x->vni < y->vni ? -1 : 1;
	if (x->dst_qpn != y->dst_qpn)
		return x->dst_qpn < y->dst_qpn ? -1 : 1;
	return (x->src_qpn > y->src_qpn) - (x->src_qpn < y->src_qpn);
}

/* Entries of one pair are in the order of their priority and DSCP, so that the last one decides. */
static int by_pair_and_rank(const void *a, const void *b)
{
	const struct gw_reservation *x = a, *y = b;
	const int d = by_pair(a, b);

	if (d)
		return d;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return (x->dscp > y->dscp) - (x->dscp < y->dscp);
}

/* Makes one entry of those of one pair. Returns how many remain. */
static unsigned merge(struct gw_reservation *v, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		struct gw_reservation *to = kept ? &v[kept - 1] : NULL;

		if (!to || by_pair(to, &v[i]) != 0) {
			v[kept++] = v[i];
			continue;
		}
		to->rate_bps += v[i].rate_bps;
		to->priority = v[i].priority;
		if (v[i].has_dscp) {
			to->has_dscp = true;
			to->dscp = v[i].dscp;
		}
	}
	return kept;
}

const struct gw_reservation *gw_reservation_find(
    const struct gw_reservation *v, unsigned n, const struct gw_reservation *key)
{
	return n ? bsearch(key, v, n, sizeof(*v), by_pair) : NULL;
}

/* Ends the rest of numbers, and lets those rest that the new set does not have. */
static void numbers_rest(struct gw_reservations *g, const struct gw_reservation *v, unsigned n)
{
	for (unsigned i = 1; i <= ENG_RESERVATIONS_MAX; i++)
		if (g->number[i] == NUMBER_RESTS)
			g->number[i] = NUMBER_FREE;
	for (unsigned i = 0; i < g->n; i++)
		if (g->v[i].number && !gw_reservation_find(v, n, &g->v[i]))
			g->number[g->v[i].number] = NUMBER_RESTS;
}

/* Returns how many got none. */
static unsigned numbers_give(struct gw_reservations *g, struct gw_reservation *v, unsigned n)
{
	unsigned next = 1, without = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct gw_reservation *old = gw_reservation_find(g->v, g->n, &v[i]);

		v[i].number = old ? old->number : 0;
		if (v[i].number)
			continue;
		while (next <= ENG_RESERVATIONS_MAX && g->number[next] != NUMBER_FREE)
			next++;
		if (next > ENG_RESERVATIONS_MAX) {
			without++;
			continue;
		}
		g->number[next] = NUMBER_USED;
		v[i].number = (uint16_t)next;
	}
	return without;
}

int gw_reservations_set(struct gw_app *app, struct gw_reservation *v, unsigned n)
{
	struct gw_reservations *g = app->reservations;
	struct gw_reservation *copy;
	unsigned without;

	qsort(v, n, sizeof(*v), by_pair_and_rank);
	n = merge(v, n);
	copy = malloc((n + 1) * sizeof(*copy));
	if (!copy)
		return RWY_ENOMEM;
	numbers_rest(g, v, n);
	without = numbers_give(g, v, n);
	if (without)
		gw_log(GW_LOG_WARNING, "control", "reservations=%u without_a_rate=%u: a gateway enforces %u",
		    n, without, ENG_RESERVATIONS_MAX);
	memcpy(copy, v, n * sizeof(*v));
	pthread_mutex_lock(&g->lock);
	free(g->v);
	g->v = copy;
	g->n = n;
	pthread_mutex_unlock(&g->lock);
	return (int)n;
}

/* --- what they have sent ---------------------------------------------------------------------- */

struct slice {
	struct gw_reservation_info *o;
	unsigned n, at;
};

static void slice_of(struct eng *e, void *arg)
{
	const rwy_time end = gw_now() + SLICE;
	struct slice *a = arg;

	do {
		struct gw_reservation_info *o = &a->o[a->at++];
		struct wan_class_stats s;

		eng_reservation_stats(e, o->r.number, &s);
		o->sent += s.sent;
		o->sent_guaranteed += s.sent_guaranteed;
		o->waiting |= s.waiting;
		o->limited |= s.limited;
	} while (a->at < a->n && gw_now() < end);
}

unsigned gw_reservations_get(struct gw_app *app, struct gw_reservation_info **out)
{
	struct gw_reservations *g = app->reservations;
	unsigned n;

	*out = NULL;
	if (!g)
		return 0;
	pthread_mutex_lock(&g->lock);
	n = g->n;
	*out = calloc(n + 1, sizeof(**out));
	for (unsigned i = 0; *out && i < n; i++)
		(*out)[i].r = g->v[i];
	pthread_mutex_unlock(&g->lock);
	if (!*out)
		return 0;
	/* A worker that does not answer is left out. */
	for (unsigned w = 0; w < app->workers; w++) {
		struct slice a = {.o = *out, .n = n};

		while (app->worker[w] && a.at < n && gw_call(app, w, slice_of, &a) == 0)
			;
	}
	return n;
}
