/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds that are known for something. */
#ifndef RWY_TESTS_SIM_KNOWN_H
#define RWY_TESTS_SIM_KNOWN_H

#include <stdint.h>

/* Masks of faults: explore.h, enum faults. Those that once failed; they run first. */
extern const struct sim_regression {
	uint64_t seed, faults;
} sim_regressions[];
extern const unsigned sim_regressions_n;
/* Those that fail. */
extern const struct sim_unmended {
	uint64_t seed, faults;
	const char *why;
} sim_unmended[];
extern const unsigned sim_unmended_n;

#endif
