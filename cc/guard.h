/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boundary between wan/ and the algorithms: it clamps every answer to the configured bounds, so
 * that a faulty algorithm makes a path slow or greedy and never stops it, floods it or wakes its
 * worker endlessly. Rates are bytes per second, windows bytes, times ns. It does not judge answers
 * within the bounds.
 */
#ifndef CC_GUARD_H
#define CC_GUARD_H

#include "cc/cc.h"

#define CC_TICK_MIN (20 * RWY_US) /* least distance between ticks */

struct cc_answer {
	uint64_t rate_Bps; /* min_rate .. configured maximum; never 0 */
	uint64_t window;   /* at least two datagrams */
};

/* Reads both answers. Returns how many were out of bounds, 0 .. 2. */
unsigned cc_guard_ask(
    const struct cc_ops *ops, const void *state, const struct cc_cfg *cfg, struct cc_answer *out);

/* Returns when on_tick is due; RWY_NEVER: there is none. `ticked`: time of its last call. */
rwy_time cc_guard_next(const struct cc_ops *ops, const void *state, rwy_time ticked);

/* Prints the algorithm's line, always terminated, without control characters. */
void cc_guard_print(const struct cc_ops *ops, const void *state, char *out, size_t size);

#endif
