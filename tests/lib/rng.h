/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of tests and simulators: splitmix64. A state is a counter, mixed; the same seed
 * gives the same numbers everywhere.
 */
#ifndef TESTS_LIB_RNG_H
#define TESTS_LIB_RNG_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define RNG_STEP 0x9e3779b97f4a7c15u

/* The number of a state (or of a vector of them). */
#define RNG_MIX(s)                                                                                           \
	({                                                                                                   \
		__auto_type z_ = (s);                                                                        \
		z_ = (z_ ^ z_ >> 30) * 0xbf58476d1ce4e5b9u;                                                  \
		z_ = (z_ ^ z_ >> 27) * 0x94d049bb133111ebu;                                                  \
		z_ ^ z_ >> 31;                                                                               \
	})

static inline uint64_t rng_next(uint64_t *state)
{
	*state += RNG_STEP;
	return RNG_MIX(*state);
}

/* 0 .. n-1; 0 when n is 0. */
static inline uint32_t rng_below(uint64_t *state, uint32_t n)
{
	return n ? (uint32_t)(rng_next(state) % n) : 0;
}

/* Takes no number when p is 0. */
static inline bool rng_chance(uint64_t *state, double p)
{
	return p > 0 && (double)(rng_next(state) >> 11) < p * 0x1p53;
}

/* In (0, 1]. */
static inline double rng_unit(uint64_t *state)
{
	return (double)((rng_next(state) >> 11) + 1) * 0x1p-53;
}

/* Failures before the first success: one draw for a whole run of packets. UINT64_MAX: never. */
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
