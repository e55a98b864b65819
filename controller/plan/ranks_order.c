/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a job's clusters along its pipeline: the shortest path through all of them (with a
 * ring: the shortest cycle). Up to EXACT clusters it is found exactly, by the shortest path through
 * each set of clusters that ends at each of its members (Held and Karp); a job of more clusters
 * gets the best of the nearest-neighbour paths, shortened by turning parts of it round.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/ranks_int.h"

#define EXACT 12
#define FAR   UINT64_MAX

static uint64_t cost_of(const struct plan_split *s, uint32_t a, uint32_t b)
{
	const uint32_t c = s->cost[a * s->clusters + b];

	return c == PLAN_COST_NONE ? FAR : c;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a == FAR || b == FAR ? FAR : a + b;
}

static uint64_t length_of(const struct plan_split *s, const uint32_t *order)
{
	const unsigned n = s->clusters;
	uint64_t sum = 0;

	for (unsigned i = 1; i < n; i++)
		sum = add(sum, cost_of(s, order[i - 1], order[i]));
	if (s->ring && s->pipeline > 2 && n > 1)
		sum = add(sum, cost_of(s, order[n - 1], order[0]));
	return sum;
}

/* --- exactly ---------------------------------------------------------------------------------- */

/* The best path from `start` through all clusters. best[set * n + last]: the length of the shortest
 * path from start through the set that ends at last; from[]: the one before last. */
static void paths_from(const struct plan_split *s, uint32_t start, uint64_t *best, uint8_t *from)
{
	const unsigned n = s->clusters;
	const uint32_t sets = 1u << n;

	for (uint32_t i = 0; i < sets * n; i++)
		best[i] = FAR;
	best[(1u << start) * n + start] = 0;
	for (uint32_t set = 0; set < sets; set++)
		for (unsigned last = 0; last < n; last++) {
			const uint64_t so_far = best[set * n + last];

			for (unsigned next = 0; so_far != FAR && next < n; next++) {
				const uint32_t with = (set | 1u << next) * n + next;
				const uint64_t len = add(so_far, cost_of(s, last, next));

				if (!(set >> next & 1) && len < best[with]) {
					best[with] = len;
					from[with] = (uint8_t)last;
				}
			}
		}
}

/* The path that ends at `last`, from the tables. */
static void read_path(unsigned n, unsigned last, const uint8_t *from, uint32_t *order)
{
	uint32_t set = (1u << n) - 1;

	for (unsigned i = n; i-- > 0;) {
		const unsigned before = from[set * n + last];

		order[i] = last;
		set &= ~(1u << last);
		last = before;
	}
}

static int order_exactly(const struct plan_split *s, uint32_t *order, uint64_t *cost)
{
	const unsigned n = s->clusters;
	const size_t cells = ((size_t)1 << n) * n;
	uint64_t *best = malloc(cells * sizeof(*best));
	uint8_t *from = calloc(cells, 1);
	uint32_t path[EXACT];

	*cost = FAR;
	for (unsigned start = 0; best && from && start < n; start++) {
		paths_from(s, start, best, from);
		for (unsigned last = 0; last < n; last++) {
			if (best[cells - n + last] == FAR || best[cells - n + last] > *cost)
				continue;
			read_path(n, last, from, path);
			if (length_of(s, path) < *cost) {
				*cost = length_of(s, path);
				memcpy(order, path, n * sizeof(*path));
			}
		}
	}
	free(from);
	free(best);
	return best && from ? 0 : RWY_ENOMEM;
}

/* --- more clusters ---------------------------------------------------------------------------- */

static void nearest_neighbours(const struct plan_split *s, uint32_t start, uint32_t *order)
{
	bool used[PLAN_CLUSTERS_MAX] = {false};

	order[0] = start;
	used[start] = true;
	for (unsigned i = 1; i < s->clusters; i++) {
		unsigned next = s->clusters;

		for (unsigned k = 0; k < s->clusters; k++)
			if (!used[k] && (next == s->clusters ||
			                    cost_of(s, order[i - 1], k) < cost_of(s, order[i - 1], next)))
				next = k;
		order[i] = next;
		used[next] = true;
	}
}

static void turn_round(uint32_t *order, unsigned from, unsigned to)
{
	for (; from < to; from++, to--) {
		const uint32_t x = order[from];

		order[from] = order[to];
		order[to] = x;
	}
}

/* Turns parts round while that shortens the path. */
static uint64_t shorten(const struct plan_split *s, uint32_t *order)
{
	uint64_t len = length_of(s, order), other;
	bool better = true;

	while (better) {
		better = false;
		for (unsigned i = 0; i + 1 < s->clusters; i++)
			for (unsigned k = i + 1; k < s->clusters; k++) {
				turn_round(order, i, k);
				other = length_of(s, order);
				if (other < len) {
					len = other;
					better = true;
				} else {
					turn_round(order, i, k);
				}
			}
	}
	return len;
}

static void order_many(const struct plan_split *s, uint32_t *order, uint64_t *cost)
{
	uint32_t path[PLAN_CLUSTERS_MAX];

	*cost = FAR;
	for (unsigned start = 0; start < s->clusters; start++) {
		uint64_t len;

		nearest_neighbours(s, start, path);
		len = shorten(s, path);
		if (len < *cost) {
			*cost = len;
			memcpy(order, path, s->clusters * sizeof(*path));
		}
	}
}

int ranks_order(const struct plan_split *s, uint32_t *order, uint64_t *cost)
{
	int rc = 0;

	if (s->clusters <= EXACT)
		rc = order_exactly(s, order, cost);
	else
		order_many(s, order, cost);
	if (rc)
		return rc;
	if (*cost == FAR)
		return RWY_ENOENT;
	/* Both directions cost the same: the one that is nearer to the order as it was posted. */
	if (order[0] > order[s->clusters - 1])
		turn_round(order, 0, s->clusters - 1);
	return 0;
}
