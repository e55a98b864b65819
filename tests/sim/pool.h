/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of the simulated worlds, on links and in engines: the same memory, so that a packet that arrives at
 * a gateway is handed over and not copied. Freed ones are kept by size for the next. Under AddressSanitizer
 * each is malloc's, so that nobody uses one that is gone.
 */
#ifndef TESTS_SIM_POOL_H
#define TESTS_SIM_POOL_H

#include "rwy/buf.h"
#include "rwy/prefetch.h"

#define SIM_ROOM 320 /* headroom of a packet */

struct sim_buf {
	struct rwy_buf b; /* first */
	union {
		struct sim_buf *next; /* free */
		uint64_t size_class;  /* in use */
	};
	uint8_t bytes[];
};

/* A packet of `len` bytes of any content behind `headroom`; b is as an engine expects it. */
struct sim_buf *sim_buf_new(uint32_t headroom, uint32_t len);
void sim_buf_free(struct sim_buf *m);

/* Asks for its beginning: it was written long ago. */
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
