/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds of an algorithm's answers: a faulty algorithm is slow or greedy, but never stops the path
 * or overflows it. Algorithms respect them through these functions; guard.h enforces them. Rates
 * are bytes per second, windows bytes.
 */
#ifndef CC_LIMITS_H
#define CC_LIMITS_H

#include "cc/cc.h"

/* 10 kb/s: a slower path is as good as stopped */
#define CC_RATE_MIN   ((uint64_t)1250)
#define CC_RATE_MAX   ((uint64_t)125 * 1000000000) /* 1 Tb/s */
#define CC_WINDOW_MAX ((uint64_t)1 << 40)

/* The rate within what cfg allows: at least min_rate_Bps and CC_RATE_MIN, at most rate_Bps (0: no
 * bound) and CC_RATE_MAX. The upper bound wins. */
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

/* The window within two datagrams of cfg->mtu and CC_WINDOW_MAX. */
static inline uint64_t cc_limit_window(const struct cc_cfg *cfg, uint64_t window)
{
	uint64_t lo = 2 * (uint64_t)cfg->mtu;

	if (window < lo)
		window = lo;
	return window > CC_WINDOW_MAX ? CC_WINDOW_MAX : window;
}

/* Bytes that flow in `t` at `rate`; computed with 128 bits, so that 1 Tb/s times an hour does not
 * wrap. */
static inline uint64_t cc_bytes_in(uint64_t rate_Bps, rwy_dur t)
{
	return (uint64_t)((unsigned __int128)rate_Bps * t / RWY_SEC);
}

/* a * b / c without overflow inside; a result above 64 bits, or c = 0, gives UINT64_MAX. */
static inline uint64_t cc_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 v = c ? (unsigned __int128)a * b / c : UINT64_MAX;

	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

/* a + b, at most UINT64_MAX. */
static inline uint64_t cc_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* The rate that sends `window` in `rtt` (less than 1 us counts as that), times gain / 256. */
static inline uint64_t cc_pace(uint64_t window, rwy_dur rtt, unsigned gain)
{
	return cc_mul_div(cc_mul_div(window, RWY_SEC, rwy_time_max(rtt, RWY_US)), gain, 256);
}

/* Whether the window limited the sender when this ACK came. Only then may it grow: an unused window
 * says nothing about the path. A sender that is paced below its window does not use it either. In a
 * window of two or three datagrams the remainder that fits no datagram can exceed a quarter; such a
 * window counts as used. */
static inline bool cc_window_used(const struct cc_ack *ack, uint64_t window, uint32_t mtu)
{
	uint64_t before = cc_add(cc_add(ack->inflight, ack->acked_bytes), ack->lost_bytes);

	return !ack->app_limited && (before >= window - window / 4 || cc_add(before, mtu) > window);
}

#endif
