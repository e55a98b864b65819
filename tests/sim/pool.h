/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of the simulated worlds. Links and engines use the same memory, so a packet that arrives
 * at a gateway is passed on, not copied. Freed packets are kept by size for reuse. Under
 * AddressSanitizer each packet is malloced, so that a use after free is found.
 */
#ifndef TESTS_SIM_POOL_H
#define TESTS_SIM_POOL_H

#include "rwy/buf.h"
#include "rwy/prefetch.h"

#define SIM_ROOM 320 /* bytes of headroom */

struct sim_buf {
	struct rwy_buf b; /* first member */
	union {
		struct sim_buf *next; /* while it is free */
		uint64_t size_class;  /* while it is in use */
	};
	uint8_t bytes[];
};

/* A packet of `len` bytes of any content after `headroom`; b is as an engine expects it. */
struct sim_buf *sim_buf_new(uint32_t headroom, uint32_t len);
void sim_buf_free(struct sim_buf *m);

/* Prefetches its beginning, which was written long ago. */
RWY_PREFETCHER void sim_buf_fetch(const struct sim_buf *m)
{
	__builtin_prefetch(m);
	__builtin_prefetch(m->bytes + SIM_ROOM);
	__builtin_prefetch(m->bytes + SIM_ROOM + 64);
}

static inline struct sim_buf *sim_buf_of(struct rwy_buf *b)
{
	return (struct sim_buf *)(void *)b; /* b is its first member */
}

#endif
