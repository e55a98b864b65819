/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendezvous hashing with bounded loads: the same preferences, but no pair takes more than its
 * share. The idea is that of consistent hashing with bounded loads (Mirrokni, Thorup,
 * Zadimoghaddam, SODA 2018), with a bound of exactly one share.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/spread_int.h"

/* A pair counts as full from `tenths` of a percent of its share on. */
static int next_below(const struct plan_pair *pairs, unsigned n, const uint32_t *count, uint64_t key,
    uint64_t weights, uint64_t keys, unsigned tenths)
{
	uint64_t cost, best_cost = 0;
	int best = -1;

	for (unsigned i = 0; i < n; i++) {
		/* Full: count >= keys * weight / weights. As a product it needs no division, and
		 * rounds up. */
		if (pairs[i].weight == 0 || (unsigned __int128)count[i] * weights * 1000 >=
		                                (unsigned __int128)keys * pairs[i].weight * tenths)
			continue;
		cost = plan_spread_cost(&pairs[i], key);
		if (best < 0 || plan_spread_less(&pairs[i], cost, &pairs[best], best_cost)) {
			best = (int)i;
			best_cost = cost;
		}
	}
	return best;
}

int plan_spread_next(const struct plan_pair *pairs, unsigned n, const uint32_t *count, uint64_t key)
{
	uint64_t weights = 0, keys = 1;
	int best;

	for (unsigned i = 0; i < n; i++) {
		if (pairs[i].weight) {
			weights += pairs[i].weight;
			keys += count[i];
		}
	}
	/* Weights are rounded: 3.0002 to 1 means 3 to 1, not one key more. Without the tolerance
	 * one pair would always be below its share. */
	best = next_below(pairs, n, count, key, weights, keys, 999);
	return best < 0 ? next_below(pairs, n, count, key, weights, keys, 1000) : best;
}

struct share {
	uint64_t floor, rest; /* of keys * weight / weights */
	uint32_t have, quota;
	/* it has more than `floor` now, so it gets one more first: then no key need move */
	bool over;
	unsigned pair;
};

struct have {
	uint64_t cost, key;
	unsigned pair, index;
};

static int three_way(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

struct preference {
	const struct plan_pair *pairs;
	uint64_t key; /* of all keys together */
};

/*
 * Order in which pairs get one more than `floor`: those that hold it, then as rendezvous prefers
 * for all keys together. By remainder, each list of few keys would go to the same pair.
 */
static int cmp_share(const void *va, const void *vb, void *ctx)
{
	const struct share *a = va, *b = vb;
	const struct preference *f = ctx;
	const struct plan_pair *p = &f->pairs[a->pair], *q = &f->pairs[b->pair];

	if (a->over != b->over)
		return a->over ? -1 : 1;
	if (!a->rest != !b->rest)
		return a->rest ? -1 : 1;
	if (!a->rest || p == q)
		return three_way(a->pair, b->pair);
	return plan_spread_less(p, plan_spread_cost(p, f->key), q, plan_spread_cost(q, f->key)) ? -1 : 1;
}

static int cmp_pair(const void *va, const void *vb)
{
	const struct share *a = va, *b = vb;

	return three_way(a->pair, b->pair);
}

/* Sorts the keys that a pair prefers to the front. */
static int cmp_have(const void *va, const void *vb)
{
	const struct have *a = va, *b = vb;

	if (a->pair != b->pair)
		return three_way(a->pair, b->pair);
	if (a->cost != b->cost)
		return three_way(a->cost, b->cost);
	return a->key != b->key ? three_way(a->key, b->key) : three_way(a->index, b->index);
}

static void quotas(struct share *s, const struct plan_pair *pairs, unsigned n, const uint64_t *keys,
    unsigned m, uint64_t weights)
{
	struct preference f = {pairs, 0};
	unsigned __int128 x;
	uint64_t left = m;
	unsigned i;

	for (i = 0; i < n; i++) {
		x = (unsigned __int128)m * pairs[i].weight;
		s[i].floor = (uint64_t)(x / weights);
		s[i].rest = (uint64_t)(x % weights);
		s[i].over = s[i].rest && s[i].have > s[i].floor;
		s[i].quota = (uint32_t)s[i].floor;
		left -= s[i].floor;
	}
	for (i = 0; i < m; i++) /* the order of the list does not matter */
		f.key += keys[i];
	qsort_r(s, n, sizeof(*s), cmp_share, &f);
	for (i = 0; left; i++) { /* left < the number of pairs with a remainder */
		if (s[i].rest) {
			s[i].quota++;
			left--;
		}
	}
	qsort(s, n, sizeof(*s), cmp_pair);
}

/* The pair with room that rendezvous prefers. */
static unsigned place_key(const struct share *s, const struct plan_pair *pairs, unsigned n, uint64_t key)
{
	uint64_t cost, best_cost = 0;
	unsigned i, best = n;

	for (i = 0; i < n; i++) {
		if (s[i].have >= s[i].quota)
			continue;
		cost = plan_spread_cost(&pairs[i], key);
		if (best == n || plan_spread_less(&pairs[i], cost, &pairs[best], best_cost)) {
			best = i;
			best_cost = cost;
		}
	}
	return best;
}

static bool stays(const struct plan_pair *pairs, unsigned n, int assign)
{
	return assign >= 0 && (unsigned)assign < n && pairs[assign].weight;
}

int plan_spread_list(const struct plan_pair *pairs, unsigned n, const uint64_t *keys, unsigned m, int *assign)
{
	unsigned i, k, homeless = 0;
	struct share *s = NULL;
	struct have *h = NULL;
	uint64_t weights = 0;
	int rc = RWY_ENOMEM;

	for (i = 0; i < n && n <= PLAN_PAIRS_MAX; i++)
		weights += pairs[i].weight;
	if (weights == 0 || m > INT32_MAX)
		return RWY_EINVAL;
	s = calloc(n, sizeof(*s));
	h = calloc(m ? m : 1, sizeof(*h));
	if (!s || !h)
		goto out;
	for (i = 0; i < n; i++)
		s[i].pair = i;
	for (i = 0; i < m; i++) {
		h[i] = (struct have){0, keys[i], n, i};
		if (!stays(pairs, n, assign[i]))
			continue;
		h[i].pair = (unsigned)assign[i];
		h[i].cost = plan_spread_cost(&pairs[h[i].pair], keys[i]);
		s[h[i].pair].have++;
	}
	quotas(s, pairs, n, keys, m, weights);
	qsort(h, m, sizeof(*h),
	    /* keys without a pair come last, by key: the order of the list does not matter */
	    cmp_have);
	for (i = 0; i < n; i++)
		s[i].have = 0;
	for (i = 0; i < m; i++) {
		k = h[i].pair;
		if (k < n && s[k].have < s[k].quota) {
			s[k].have++;
			assign[h[i].index] = (int)k;
		} else {
			h[homeless++] = h[i];
		}
	}
	for (i = 0; i < homeless; i++) {
		k = place_key(s, pairs, n, h[i].key);
		s[k].have++;
		assign[h[i].index] = (int)k;
	}
	rc = (int)homeless;
out:
	free(s);
	free(h);
	return rc;
}

int plan_spread_stay(const struct plan_pair *pairs, unsigned n, const uint64_t *keys, unsigned m, int *assign)
{
	uint32_t *count;
	bool any = false;
	int moved = 0;

	for (unsigned i = 0; i < n && n <= PLAN_PAIRS_MAX; i++)
		any |= pairs[i].weight != 0;
	if (!any || m > INT32_MAX)
		return RWY_EINVAL;
	count = calloc(n, sizeof(*count));
	if (!count)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < m; i++)
		if (stays(pairs, n, assign[i]))
			count[assign[i]]++;
	for (unsigned i = 0; i < m; i++) {
		if (stays(pairs, n, assign[i]))
			continue;
		assign[i] = plan_spread_next(pairs, n, count, keys[i]);
		count[assign[i]]++;
		moved++;
	}
	free(count);
	return moved;
}
