/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted rendezvous hashing over pairs of gateways: who carries what, the same wherever it is computed.
 * Each pair draws -log(u) / weight from a hash of (key, pair), the least wins. That is the race of
 * exponential clocks: each wins with probability weight / sum, and a pair that leaves takes with it only what
 * it had won (Schindelhauer and Schomaker, SPAA 2005). The logarithm is a fixed-point one, because what
 * floating point makes of it may differ in the last bit between machines.
 *
 * Used by the control center (controller/plan/spread.h) and by gateways (engine/steer.c). Pure
 * functions: any thread.
 */
#ifndef RWY_SPREAD_H
#define RWY_SPREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rwy/hash.h"
#include "rwy/ip.h"

#define RWY_SPREAD_LOG_BITS 40

static inline uint64_t rwy_spread_add(uint64_t h, uint64_t v)
{
	return rwy_mix64((h ^ v) + UINT64_C(0x9e3779b97f4a7c15));
}

static inline uint64_t rwy_spread_add_ip(uint64_t h, const struct rwy_ip *a)
{
	uint64_t v[2];

	memcpy(v, a->b, 16);
	return rwy_spread_add(rwy_spread_add(h, v[0]), v[1]);
}

/* The id of a gateway: of its name. Never 0. */
static inline uint64_t rwy_spread_id(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a, then mixed */

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	h = rwy_mix64(h);
	return h ? h : 1;
}

/* The key of what is between two addresses, the same whichever way round. */
static inline uint64_t rwy_spread_key(uint32_t vni, const struct rwy_ip *a, const struct rwy_ip *b)
{
	const bool swap = memcmp(a->b, b->b, 16) > 0;
	uint64_t h = rwy_spread_add(0, vni);

	h = rwy_spread_add_ip(h, swap ? b : a);
	return rwy_spread_add_ip(h, swap ? a : b);
}

/* What a pair of gateways draws for a key: the higher, the better. The order of the two counts. */
static inline uint64_t rwy_spread_draw(uint64_t key, uint64_t first, uint64_t second)
{
	return rwy_spread_add(rwy_spread_add(key, first), second);
}

/* -log2((draw + 1) / 2^64), RWY_SPREAD_LOG_BITS behind the point; 0..64 * 2^RWY_SPREAD_LOG_BITS. */
static inline uint64_t rwy_spread_cost(uint64_t draw)
{
	unsigned __int128 sq;
	uint64_t x, log;
	unsigned e, i;

	if (draw == UINT64_MAX)
		return 0;
	x = draw + 1;
	e = 63u - (unsigned)__builtin_clzll(x);
	x <<= 63 - e; /* 1 <= x < 2, with 63 bits behind the point */
	log = e;
	/* A bit each: squaring doubles the logarithm; what passes 2 is a 1, and is halved. */
	for (i = 0; i < RWY_SPREAD_LOG_BITS; i++) {
		sq = (unsigned __int128)x * x;
		log = log << 1 | (uint64_t)(sq >> 127);
		x = (uint64_t)(sq >> (63 + (unsigned)(sq >> 127)));
	}
	return ((uint64_t)64 << RWY_SPREAD_LOG_BITS) - log;
}

#endif
