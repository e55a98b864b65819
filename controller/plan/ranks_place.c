/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the containers in one cluster. Group g talks to its neighbour in its stage (data
 * parallelism: a ring of `data` groups) and to the group of the same number in the next stage of
 * the cluster. The search begins with containers sorted by their places, which is good already, and
 * exchanges and moves containers while that brings the talkers nearer. It begins anew from each
 * large place in turn, and from one chain of nearest containers for each container where they are
 * few. The work is bounded by a number of visits to groups, not by time, so that every replica
 * finds the same.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/ranks_int.h"

#define VISITS 3000000 /* of groups, for one cluster: some 20 ms */
#define FEW    16      /* containers for which chains are tried */

unsigned plan_ranks_hops(const struct plan_container *a, const struct plan_container *b)
{
	const unsigned most = a->levels > b->levels ? a->levels : b->levels;
	unsigned same = 0;

	while (same < a->levels && same < b->levels && a->level[same] == b->level[same])
		same++;
	return 1 + most - same;
}

struct search {
	const struct plan_split *s;
	uint32_t *order, *of, *best;
	unsigned n;
	uint32_t groups;
	uint64_t hops, best_hops;
	int64_t visits; /* left */
};

/* The hops between the containers of two groups. */
static unsigned between(const struct plan_split *s, uint32_t a, uint32_t b)
{
	return a == b ? 0 : plan_ranks_hops(&s->container[a], &s->container[b]);
}

uint64_t ranks_hops(
    const struct plan_split *s, const uint32_t *order, unsigned n, uint32_t groups, uint32_t *of)
{
	const uint32_t d = s->data;
	uint64_t sum = 0;
	uint32_t g = 0;

	for (unsigned i = 0; i < n && g < groups; i++)
		for (uint32_t k = 0; k < s->container[order[i]].ranks / s->tensor && g < groups; k++)
			of[g++] = order[i];
	for (uint32_t i = 0; i < g; i++) {
		const uint32_t in_stage = i % d;

		if (in_stage + 1 < d && i + 1 < g)
			sum += between(s, of[i], of[i + 1]);
		else if (in_stage + 1 == d && d > 2) /* the ring of the stage closes */
			sum += between(s, of[i], of[i + 1 - d]);
		if (i + d < g)
			sum += between(s, of[i], of[i + d]);
	}
	return sum;
}

/* Counts the order anew. True: it is better than before. */
static bool is_better(struct search *x)
{
	const uint64_t hops = ranks_hops(x->s, x->order, x->n, x->groups, x->of);

	x->visits -= 2 * (int64_t)x->groups + 1;
	if (hops >= x->hops)
		return false;
	x->hops = hops;
	return true;
}

static void exchange(uint32_t *order, unsigned i, unsigned k)
{
	const uint32_t was = order[i];

	order[i] = order[k];
	order[k] = was;
}

/* Moves the container at `from` to `to`; the ones between close up. */
static void move_one(uint32_t *order, unsigned from, unsigned to)
{
	const uint32_t it = order[from];

	if (from < to)
		memmove(&order[from], &order[from + 1], (to - from) * sizeof(*order));
	else
		memmove(&order[to + 1], &order[to], (from - to) * sizeof(*order));
	order[to] = it;
}

static bool try_exchange(struct search *x, unsigned i, unsigned k)
{
	exchange(x->order, i, k);
	if (is_better(x))
		return true;
	exchange(x->order, i, k);
	return false;
}

static bool try_move(struct search *x, unsigned i, unsigned k)
{
	move_one(x->order, i, k);
	if (is_better(x))
		return true;
	move_one(x->order, k, i);
	return false;
}

/* Changes the order while that is better, and keeps the best. */
static void descend(struct search *x)
{
	bool better = true;

	x->hops = ranks_hops(x->s, x->order, x->n, x->groups, x->of);
	while (better && x->visits > 0) {
		better = false;
		for (unsigned i = 0; i < x->n && x->visits > 0; i++)
			for (unsigned k = 0; k < x->n && x->visits > 0; k++) {
				if (i < k)
					better |= try_exchange(x, i, k);
				if (i != k)
					better |= try_move(x, i, k);
			}
	}
	if (x->hops < x->best_hops) {
		x->best_hops = x->hops;
		memcpy(x->best, x->order, x->n * sizeof(*x->order));
	}
}

/* From one container on always the nearest that is left; among equals the largest, then the first.
 */
static void chain_from(struct search *x, const uint32_t *sorted, unsigned start)
{
	const struct plan_container *c = x->s->container;

	memcpy(x->order, sorted, x->n * sizeof(*sorted));
	move_one(x->order, start, 0);
	for (unsigned i = 1; i < x->n; i++) {
		unsigned next = i;

		for (unsigned k = i + 1; k < x->n; k++) {
			const unsigned hk = between(x->s, x->order[i - 1], x->order[k]),
			               hn = between(x->s, x->order[i - 1], x->order[next]);

			if (hk < hn || (hk == hn && c[x->order[k]].ranks > c[x->order[next]].ranks))
				next = k;
		}
		move_one(x->order, next, i);
	}
}

/* The same containers, beginning at `start`. */
static void rotate_to(struct search *x, const uint32_t *sorted, unsigned start)
{
	memcpy(x->order, sorted + start, (x->n - start) * sizeof(*sorted));
	memcpy(x->order + x->n - start, sorted, start * sizeof(*sorted));
}

static bool other_place(const struct plan_container *a, const struct plan_container *b)
{
	return a->levels && b->levels && a->level[0] != b->level[0];
}

static void search_all(struct search *x, const uint32_t *sorted)
{
	const struct plan_container *c = x->s->container;

	for (unsigned start = 0; start < x->n && x->visits > 0; start++) {
		if (start == 0 || other_place(&c[sorted[start - 1]], &c[sorted[start]])) {
			rotate_to(x, sorted, start);
			descend(x);
		}
		if (x->n <= FEW) {
			chain_from(x, sorted, start);
			descend(x);
		}
	}
}

uint64_t ranks_place(const struct plan_split *s, uint32_t *chosen, unsigned n, uint32_t groups)
{
	uint32_t *room = calloc(3 * (size_t)n + groups + 1, sizeof(*room));
	struct search x = {.s = s, .n = n, .groups = groups, .best_hops = UINT64_MAX, .visits = VISITS};

	if (!room || !n) {
		free(room);
		return 0; /* the order as it is is a good one */
	}
	x.order = room;
	x.best = room + n;
	x.of = room + 3 * (size_t)n;
	memcpy(room + 2 * (size_t)n, chosen, n * sizeof(*chosen));
	search_all(&x, room + 2 * (size_t)n);
	memcpy(chosen, x.best, n * sizeof(*chosen));
	free(room);
	return x.best_hops;
}
