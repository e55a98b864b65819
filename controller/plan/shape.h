/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demands that are bytes and a time: a transfer that must be there by a deadline, or bursts that
 * come again and again. The network knows rates, so each becomes the rate that is enough.
 */
#ifndef PLAN_SHAPE_H
#define PLAN_SHAPE_H

#include <stdint.h>

#include "rwy/err.h"

/* One part in so many of the time is for the first packet's way, and for the last one's answer and
 * what is lost: the rate carries the bytes in the rest. */
#define PLAN_SHAPE_SPARE 32u

/* The payload rate, bit/s, at which `bytes` are there within `us` microseconds. RWY_EINVAL: one of
 * them is 0; PLAN_ERANGE: it is above max_bps, which is written then. */
RWY_MUST_CHECK int plan_shape_bps(uint64_t *bps, uint64_t bytes, uint64_t us, uint64_t max_bps);
/* The shortest time, us, in which a rate is enough for `bytes`; 0: no rate, or more than a year. */
uint64_t plan_shape_us(uint64_t bytes, uint64_t bps);

#endif
