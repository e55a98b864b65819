/* SPDX-License-Identifier: Apache-2.0 */
/* Which allocations fail for F_HEAP; big.c has those of memory, gateway.c those of buffers. */
#include "tests/sim/heap.h"

#include "tests/lib/rng.h"

static struct {
	uint32_t one_in;
	bool on;
	uint64_t rng;
} heap;

void sim_heap_short(uint32_t one_in, uint64_t seed)
{
	heap.one_in = one_in;
	heap.rng = seed;
}

bool sim_heap_may_fail(bool on)
{
	const bool before = heap.on;

	heap.on = on;
	return before;
}

bool sim_heap_fails(void)
{
	uint64_t x;

	if (!heap.on || !heap.one_in)
		return false;
	heap.rng += RNG_STEP;
	x = RNG_MIX(heap.rng);
	return (x >> 33) % heap.one_in == 0;
}
