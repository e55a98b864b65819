/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted rendezvous hashing: each pair draws -log(u)/weight from a hash of (key, pair), the least wins.
 * That is the race of exponential clocks: each wins with probability weight / sum, and a pair that leaves
 * takes with it only what it had won (Schindelhauer and Schomaker, SPAA 2005). The logarithm is a fixed-point
 * one, because what floating point makes of it may differ in the last bit between machines.
 */
#include <string.h>

#include "controller/plan/spread_int.h"
#include "controller/plan/weight.h"

#define LOG_BITS 40

/* splitmix64's finalizer: every bit of the input moves half of the output's. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t add(uint64_t h, uint64_t v)
{
	return mix((h ^ v) + UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t add_ip(uint64_t h, const struct rwy_ip *a)
{
	uint64_t v[2];

	memcpy(v, a->b, 16);
	return add(add(h, v[0]), v[1]);
}

uint64_t plan_id(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a, then mixed */

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return mix(h);
}

bool plan_first_site(const char *a, const char *b)
{
	return strcmp(a, b) <= 0;
}

uint64_t plan_key(
    enum plan_grain g, uint32_t vni, const struct plan_end *first, const struct plan_end *second)
{
	uint64_t h = add((uint64_t)g, vni);

	h = add_ip(h, &first->addr);
	switch (g) {
	case PLAN_GRAIN_NIC:
		break;
	case PLAN_GRAIN_ADDRESS:
		h = add_ip(h, &second->addr);
		break;
	case PLAN_GRAIN_QP:
		h = add_ip(h, &second->addr);
		h = add(h, (uint64_t)first->qpn << 32 | second->qpn);
		break;
	case PLAN_GRAIN_COUNT:
		break;
	}
	return h;
}

uint32_t plan_pair_weight(uint32_t first, uint32_t second)
{
	if (first > PLAN_WEIGHT_MAX)
		first = PLAN_WEIGHT_MAX;
	if (second > PLAN_WEIGHT_MAX)
		second = PLAN_WEIGHT_MAX;
	return first * second;
}

/* -log2((h + 1) / 2^64), LOG_BITS behind the point; 0..64 * 2^LOG_BITS. */
static uint64_t neg_log2(uint64_t h)
{
	unsigned __int128 sq;
	uint64_t x, log;
	unsigned e, i;

	if (h == UINT64_MAX)
		return 0;
	x = h + 1;
	e = 63u - (unsigned)__builtin_clzll(x);
	x <<= 63 - e; /* 1 <= x < 2, with 63 bits behind the point */
	log = e;
	/* A bit each: squaring doubles the logarithm; what passes 2 is a 1, and is halved. */
	for (i = 0; i < LOG_BITS; i++) {
		sq = (unsigned __int128)x * x;
		log = log << 1 | (uint64_t)(sq >> 127);
		x = (uint64_t)(sq >> (63 + (unsigned)(sq >> 127)));
	}
	return ((uint64_t)64 << LOG_BITS) - log;
}

/* a before b, whatever the order of the list, where both drew the same. */
static bool before(const struct plan_pair *a, const struct plan_pair *b)
{
	return a->first != b->first ? a->first < b->first : a->second < b->second;
}

uint64_t plan_spread_cost(const struct plan_pair *p, uint64_t key)
{
	return neg_log2(add(add(key, p->first), p->second));
}

bool plan_spread_less(const struct plan_pair *a, uint64_t cost_a, const struct plan_pair *b, uint64_t cost_b)
{
	/* cost_a / weight_a < cost_b / weight_b */
	unsigned __int128 x = (unsigned __int128)cost_a * b->weight,
	                  y = (unsigned __int128)cost_b * a->weight;

	return x < y || (x == y && before(a, b));
}

int plan_spread(const struct plan_pair *pairs, unsigned n, uint64_t key)
{
	uint64_t cost, best_cost = 0;
	int best = -1;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (pairs[i].weight == 0)
			continue;
		cost = plan_spread_cost(&pairs[i], key);
		if (best < 0 || plan_spread_less(&pairs[i], cost, &pairs[best], best_cost)) {
			best = (int)i;
			best_cost = cost;
		}
	}
	return best;
}
