/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boundary between wan/ and the algorithms: whatever an algorithm answers, what is taken from it lies
 * within the configured bounds, so that a wrong one makes a path slow or greedy and never stops it, floods it
 * or wakes its worker without end. Rates are bytes per second, windows bytes, times ns.
 * Not here: a judgement whether an answer within the bounds is a good one.
 */
#ifndef CC_GUARD_H
#define CC_GUARD_H

#include "cc/cc.h"

#define CC_TICK_MIN (20 * RWY_US) /* ticks are at least so far apart */

struct cc_answer {
	uint64_t rate_Bps; /* min_rate .. configured maximum, never 0 */
	uint64_t window;   /* at least two datagrams */
};

/* Takes both answers. Returns how many of them were out of bounds, 0 .. 2. */
unsigned cc_guard_ask(
    const struct cc_ops *ops, const void *state, const struct cc_cfg *cfg, struct cc_answer *out);

/* When on_tick is due, RWY_NEVER if there is none; `ticked`: when it was called last. */
rwy_time cc_guard_next(const struct cc_ops *ops, const void *state, rwy_time ticked);

/* The algorithm's line, always terminated, without control characters. */
void cc_guard_print(const struct cc_ops *ops, const void *state, char *out, size_t size);

#endif
