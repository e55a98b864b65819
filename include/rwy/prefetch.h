/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetching. A function that only prefetches must be inlined: GCC takes it for a function without
 * effects and drops each call that it does not inline. No warning tells; the packet path only gets
 * slower.
 */
#ifndef RWY_PREFETCH_H
#define RWY_PREFETCH_H

#include <stdint.h>

#define RWY_CACHE_LINE 64

/* Begins the definition of a function that only prefetches. */
#define RWY_PREFETCHER static inline __attribute__((always_inline))

/* Prefetches `lines` cache lines from p on, for reading. p may be any address: a prefetch is a hint
 * and never faults. */
RWY_PREFETCHER void rwy_prefetch(const void *p, unsigned lines)
{
	for (unsigned i = 0; i < lines; i++)
		__builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)i * RWY_CACHE_LINE));
}

#endif
