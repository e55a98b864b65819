/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that no change of ours touches, timed in the same process as the gateways: a CRC over 1 KiB in the
 * first-level cache, and a chase of pointers through 128 KiB. A packet's cycles over its cycles tell one
 * landing from another on a machine whose clock and neighbours change.
 */
#ifndef TESTS_BENCH_FP_REFERENCE_H
#define TESTS_BENCH_FP_REFERENCE_H

#include <stdint.h>

void fp_reference_init(void);
/* Cycles of one round, warm. */
uint64_t fp_reference_round(void);

#endif
