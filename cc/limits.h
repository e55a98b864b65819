/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds on what an algorithm answers, so that a wrong one is slow or greedy but never stops the path or
 * overflows it. Algorithms keep to them by these functions; guard.h sees that they do. Rates are bytes per
 * second, windows bytes. No algorithm lives in this file.
 */
#ifndef CC_LIMITS_H
#define CC_LIMITS_H

#include "cc/cc.h"

#define CC_RATE_MIN   ((uint64_t)1250)             /* 10 kb/s: slower is as good as stopped */
#define CC_RATE_MAX   ((uint64_t)125 * 1000000000) /* 1 Tb/s */
#define CC_WINDOW_MAX ((uint64_t)1 << 40)

static inline uint64_t cc_limit_rate(const struct cc_cfg *cfg, uint64_t rate_Bps)
{
	uint64_t lo = cfg->min_rate_Bps > CC_RATE_MIN ? cfg->min_rate_Bps : CC_RATE_MIN;
	uint64_t hi = cfg->rate_Bps && cfg->rate_Bps < CC_RATE_MAX ? cfg->rate_Bps : CC_RATE_MAX;

	if (hi < CC_RATE_MIN)
		hi = CC_RATE_MIN;
	if (rate_Bps < lo)
		rate_Bps = lo;
	return rate_Bps > hi ? hi : rate_Bps;
}

static inline uint64_t cc_limit_window(const struct cc_cfg *cfg, uint64_t window)
{
	uint64_t lo = 2 * (uint64_t)cfg->mtu;

	if (window < lo)
		window = lo;
	return window > CC_WINDOW_MAX ? CC_WINDOW_MAX : window;
}

/* Bytes that flow in `t` at `rate`: 128 bits inside, so that 1 Tb/s times an hour does not wrap. */
static inline uint64_t cc_bytes_in(uint64_t rate_Bps, rwy_dur t)
{
	return (uint64_t)((unsigned __int128)rate_Bps * t / RWY_SEC);
}

/* a * b / c without wrapping inside; a result beyond 64 bits, or c = 0, is UINT64_MAX. */
static inline uint64_t cc_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 v = c ? (unsigned __int128)a * b / c : UINT64_MAX;

	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

/* a + b, UINT64_MAX at most. */
static inline uint64_t cc_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* The rate that sends `window` in `rtt`, times gain / 256. */
static inline uint64_t cc_pace(uint64_t window, rwy_dur rtt, unsigned gain)
{
	return cc_mul_div(cc_mul_div(window, RWY_SEC, rwy_time_max(rtt, RWY_US)), gain, 256);
}

/* Whether the window was what bounded the sender when this ACK came: only then may it grow, since an unused
 * window says nothing about the path. A sender that is paced below its window does not use it either. Of a
 * window of two or three datagrams the part that no whole one fits is more than a quarter: it is used all the
 * same. */
static inline bool cc_window_used(const struct cc_ack *ack, uint64_t window, uint32_t mtu)
{
	uint64_t before = cc_add(cc_add(ack->inflight, ack->acked_bytes), ack->lost_bytes);

	return !ack->app_limited && (before >= window - window / 4 || cc_add(before, mtu) > window);
}

#endif
