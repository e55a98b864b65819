/* SPDX-License-Identifier: Apache-2.0 */
/* Room that other jobs leave: see room.h. More room never makes a job fit less, so the number of
 * jobs to go is found by halving. */
#include "controller/job/room.h"

#include <stdlib.h>
#include <string.h>

static int by_end(const void *va, const void *vb)
{
	const struct ctlr_job *a = *(struct ctlr_job *const *)va, *b = *(struct ctlr_job *const *)vb;

	if (a->until_ms != b->until_ms)
		return a->until_ms < b->until_ms ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int by_priority(const void *va, const void *vb)
{
	const struct ctlr_job *a = *(struct ctlr_job *const *)va, *b = *(struct ctlr_job *const *)vb;
	const uint64_t x = ctlr_job_priority(a), y = ctlr_job_priority(b);

	if (x != y)
		return x < y ? -1 : 1;
	if (a->mod_rev != b->mod_rev)
		return a->mod_rev > b->mod_rev ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* How many of the n jobs, from the first on, are enough; 0: not even all. */
static unsigned enough(struct ctlr_job *const *v, unsigned n, ctlr_room_fits *fits, void *ctx)
{
	unsigned lo = 1, hi = n;

	if (!n || !fits(ctx, v, n))
		return 0;
	while (lo < hi) {
		const unsigned mid = lo + (hi - lo) / 2;

		if (fits(ctx, v, mid))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

uint64_t ctlr_room_later(struct ctlr *c, const struct ctlr_job *but, ctlr_room_fits *fits, void *ctx)
{
	struct ctlr_job **v = ctlr_jobs_by_name(c);
	unsigned n = 0, k;
	uint64_t at;

	for (struct ctlr_job **p = v; p && *p; p++)
		if (*p != but && (*p)->until_ms && (*p)->claims)
			v[n++] = *p;
	if (n)
		qsort(v, n, sizeof(*v), by_end);
	k = enough(v, n, fits, ctx);
	at = k ? v[k - 1]->until_ms : 0;
	free(v);
	return at;
}

/* A plan is made with the lock held. */
struct trials {
	ctlr_room_fits *fits;
	void *ctx;
	unsigned left;
};

static bool tried(void *ctx, struct ctlr_job *const *without, unsigned n)
{
	struct trials *t = ctx;

	return t->left && t->left-- && t->fits(t->ctx, without, n);
}

/*
 * Leaves those of the n jobs, which are enough, that have to go: a later one may have made an
 * earlier one needless. It finds the fewest first jobs that suffice together with those known to be
 * needed; the last of them is needed, too; and so on. Returns how many; 0: more than can go, or
 * found in no reasonable time.
 */
static unsigned drop_needless(struct ctlr_job **v, unsigned n, struct trials *t)
{
	struct ctlr_job *go[ROOM_PREEMPT_MAX], **ask = calloc(n + ROOM_PREEMPT_MAX, sizeof(*ask));
	unsigned k = 0;

	while (ask && n && k < ROOM_PREEMPT_MAX) {
		unsigned lo = 0, hi = n - 1;

		go[k++] = v[n - 1];
		while (lo < hi) {
			const unsigned mid = lo + (hi - lo) / 2;

			memcpy(ask, v, mid * sizeof(*ask));
			memcpy(ask + mid, go, k * sizeof(*ask));
			if (tried(t, ask, mid + k))
				hi = mid;
			else
				lo = mid + 1;
		}
		n = lo;
	}
	free(ask);
	for (unsigned i = 0; i < k; i++)
		v[i] = go[k - 1 - i];
	return n || !t->left ? 0 : k;
}

unsigned ctlr_room_preempt(struct ctlr *c, const struct ctlr_job *but, uint64_t priority,
    ctlr_room_fits *fits, void *ctx, struct ctlr_job **out)
{
	struct trials t = {.fits = fits, .ctx = ctx, .left = ROOM_TRIALS_MAX};
	struct ctlr_job **v = ctlr_jobs_by_name(c);
	unsigned n = 0, k;

	for (struct ctlr_job **p = v; p && *p; p++)
		if (*p != but && (*p)->claims && ctlr_job_priority(*p) < priority &&
		    !json_object_get((*p)->json, "network"))
			v[n++] = *p;
	if (n)
		qsort(v, n, sizeof(*v), by_priority);
	k = enough(v, n, tried, &t);
	k = k ? drop_needless(v, k, &t) : 0;
	if (k)
		memcpy(out, v, k * sizeof(*out));
	free(v);
	return k;
}
