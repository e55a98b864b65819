/* SPDX-License-Identifier: Apache-2.0 */
/* F_HEAP: allocations of the engines, of memory and of buffers, fail by chance; 1 of 4 to 256. */
#ifndef TESTS_SIM_HEAP_H
#define TESTS_SIM_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* From now on one of `one_in` allocations fails while an engine runs; 0: none does. */
void sim_heap_short(uint32_t one_in, uint64_t seed);
/* An engine runs, or calls back: allocations may fail, or may not. Returns what was before. */
bool sim_heap_may_fail(bool on);
/* An allocation is asked for now: it fails. */
bool sim_heap_fails(void);

#endif
