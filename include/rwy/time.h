/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time for the sans-I/O core. Nothing here reads a clock: `now` is an argument, always the last
 * one. The caller chooses the epoch (a monotonic clock, or the simulator's zero); only differences
 * have a meaning.
 */
#ifndef RWY_TIME_H
#define RWY_TIME_H

#include <stdint.h>

typedef uint64_t rwy_time; /* a point in time in ns */
typedef uint64_t rwy_dur;  /* a length of time in ns */

#define RWY_US    ((rwy_dur)1000)
#define RWY_MS    ((rwy_dur)1000000)
#define RWY_SEC   ((rwy_dur)1000000000)
#define RWY_NEVER UINT64_MAX /* no call is needed */

static inline rwy_time rwy_time_min(rwy_time a, rwy_time b)
{
	return a < b ? a : b;
}

static inline rwy_time rwy_time_max(rwy_time a, rwy_time b)
{
	return a > b ? a : b;
}

/* Returns now - then; 0 when `then` is later (clocks of two cores may differ by a few ns). */
static inline rwy_dur rwy_since(rwy_time then, rwy_time now)
{
	return now > then ? now - then : 0;
}

#endif
