/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of a run: splitmix64, and the number of trials before one of probability p
 * succeeds. */
#ifndef SIM_WAN_RNG_H
#define SIM_WAN_RNG_H

#include <math.h>
#include <stdint.h>

static inline uint64_t rng_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* In (0, 1]. */
static inline double rng_unit(uint64_t *state)
{
	return (double)((rng_next(state) >> 11) + 1) * 0x1p-53;
}

/* Failures before the first success: one draw for a whole run of packets. UINT64_MAX: it never
 * succeeds. */
static inline uint64_t rng_geometric(uint64_t *state, double p)
{
	if (p <= 0)
		return UINT64_MAX;
	if (p >= 1)
		return 0;
	double n = floor(log(rng_unit(state)) / log1p(-p));

	return n < 1e18 ? (uint64_t)n : (uint64_t)1e18;
}

#endif
