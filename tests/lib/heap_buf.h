/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet buffers for tests, each malloced with exactly the room it claims, so that sanitizers find
 * overruns, and counted, so that a leak is found. struct rwy_bufs.ctx is the count, a uint64_t.
 */
#ifndef TESTS_LIB_HEAP_BUF_H
#define TESTS_LIB_HEAP_BUF_H

#include <stdlib.h>
#include <string.h>

#include "rwy/buf.h"

/* Never NULL. */
static inline struct rwy_buf *heap_buf_alloc(void *count, uint32_t headroom, uint32_t len)
{
	struct rwy_buf *b = malloc(sizeof(*b) + headroom + len);

	if (!b)
		abort();
	memset(b, 0, sizeof(*b));
	b->data = (uint8_t *)(b + 1) + headroom;
	b->len = len;
	b->headroom = (uint16_t)headroom;
	++*(uint64_t *)count;
	return b;
}

static inline void heap_buf_free(void *count, struct rwy_buf *b)
{
	--*(uint64_t *)count;
	free(b);
}

static const struct rwy_buf_ops heap_buf_ops = {heap_buf_alloc, heap_buf_free};

#endif
