/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which faults a seed draws: those of its first world, and those of further worlds, which came
 * later and are drawn beside it, so that the first one stays as it was.
 */
#ifndef RWY_TESTS_SIM_KINDS_H
#define RWY_TESTS_SIM_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_FURTHER 16 /* kinds of further worlds */

/* The faults (explore.h, enum faults) of a seed's first world. */
uint64_t sim_kind_of(uint64_t seed);
/* The same of its further world of this number (0 to SIM_FURTHER - 1). False: it has none. */
bool sim_kind_of_further(unsigned world, uint64_t seed, uint64_t *faults);

#endif
