/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pacing clock: each packet advances it by the packet's time at the rate, with one
 * multiplication; the division is done when the rate changes. The user decides how far it may lag
 * behind, that is how large a burst may be.
 */
#ifndef RWY_PACE_H
#define RWY_PACE_H

#include <stdint.h>

#include "rwy/time.h"

/* At 400 Gb/s a byte takes 0.02 ns: with 16 fraction bits the rate was 0.05 % off, and a queue
 * grew. At the smallest rate 9000 bytes still fit 64 bits. */
#define RWY_PACE_BITS 26

struct rwy_pace {
	rwy_time at;    /* time when the next packet is due at exactly the rate */
	uint32_t frac;  /* fraction of a ns, RWY_PACE_BITS bits */
	uint64_t ns_fp; /* ns per byte, RWY_PACE_BITS fraction bits; 0: no rate */
};

/* rate_Bps 0: no rate. `at` is unchanged. */
static inline void rwy_pace_set(struct rwy_pace *c, uint64_t rate_Bps)
{
	c->ns_fp = rate_Bps ? (RWY_SEC << RWY_PACE_BITS) / rate_Bps : 0;
}

/* Returns the time that `bytes` take at the rate. */
static inline rwy_dur rwy_pace_time(const struct rwy_pace *c, uint64_t bytes)
{
	return bytes * c->ns_fp >> RWY_PACE_BITS;
}

static inline void rwy_pace_sent(struct rwy_pace *c, uint32_t bytes)
{
	uint64_t ns = bytes * c->ns_fp + c->frac;

	c->at += ns >> RWY_PACE_BITS;
	c->frac = ns & (((uint32_t)1 << RWY_PACE_BITS) - 1);
}

/* Limits the lag: credit older than `lag` is lost. */
static inline void rwy_pace_limit(struct rwy_pace *c, rwy_dur lag, rwy_time now)
{
	if (c->at + lag < now)
		c->at = now - lag;
}

#endif
