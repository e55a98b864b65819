/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that our changes do not touch, timed in the same process as the gateways: a CRC over 1 KiB
 * in the first-level cache, and a chain of pointers through 128 KiB. Cycles per packet divided by
 * its cycles compare runs on a machine whose clock and neighbours change.
 */
#ifndef TESTS_BENCH_FP_REFERENCE_H
#define TESTS_BENCH_FP_REFERENCE_H

#include <stdint.h>

void fp_reference_init(void);
/* The cycles of one round, with warm caches. */
uint64_t fp_reference_round(void);

/*
 * A chain of multiplications, without memory: it takes the same cycles each time, unless somebody
 * else has the processor. _steps(): how many take that many cycles, measured now.
 */
uint64_t fp_reference_steps(double cycles);
void fp_reference_spend(uint64_t steps);

#endif
