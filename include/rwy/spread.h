/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted rendezvous hashing over pairs of gateways: chooses the pair that carries a key, with the
 * same result wherever it is computed. Each pair draws -log(u) / weight from a hash of (key, pair),
 * and the least wins. This is the race of exponential clocks: each pair wins with probability
 * weight / sum, and a pair that leaves takes along only what it had won (Schindelhauer and
 * Schomaker, SPAA 2005). The logarithm is fixed-point, because floating-point results may differ in
 * the last bit between machines.
 *
 * Users: the control center (controller/plan/spread.h) and gateways (engine/steer.c).
 * Thread: any; pure functions.
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

/* Returns the id of a gateway, a hash of its name. Never 0. */
static inline uint64_t rwy_spread_id(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a, then mixed */

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	h = rwy_mix64(h);
	return h ? h : 1;
}

/* Returns the key of traffic between two addresses, the same for both directions. */
static inline uint64_t rwy_spread_key(uint32_t vni, const struct rwy_ip *a, const struct rwy_ip *b)
{
	const bool swap = memcmp(a->b, b->b, 16) > 0;
	uint64_t h = rwy_spread_add(0, vni);

	h = rwy_spread_add_ip(h, swap ? b : a);
	return rwy_spread_add_ip(h, swap ? a : b);
}

/* Returns the draw of a pair of gateways for a key: the highest wins. The order of the pair
 * matters. */
static inline uint64_t rwy_spread_draw(uint64_t key, uint64_t first, uint64_t second)
{
	return rwy_spread_add(rwy_spread_add(key, first), second);
}

/* Returns -log2((draw + 1) / 2^64) with RWY_SPREAD_LOG_BITS fraction bits; 0..64 *
 * 2^RWY_SPREAD_LOG_BITS. */
static inline uint64_t rwy_spread_cost(uint64_t draw)
{
	unsigned __int128 sq;
	uint64_t x, log;
	unsigned e, i;

	if (draw == UINT64_MAX)
		return 0;
	x = draw + 1;
	e = 63u - (unsigned)__builtin_clzll(x);
	x <<= 63 - e; /* 1 <= x < 2, with 63 fraction bits */
	log = e;
	/* One bit per round: squaring doubles the logarithm; a result of 2 or more gives a 1 and is
	 * halved. */
	for (i = 0; i < RWY_SPREAD_LOG_BITS; i++) {
		sq = (unsigned __int128)x * x;
		log = log << 1 | (uint64_t)(sq >> 127);
		x = (uint64_t)(sq >> (63 + (unsigned)(sq >> 127)));
	}
	return ((uint64_t)64 << RWY_SPREAD_LOG_BITS) - log;
}

#endif
