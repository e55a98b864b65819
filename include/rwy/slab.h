/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slab: objects of one size, each at the begin of a cache line, in chunks that grow with what is
 * in use. Chunks of a slab that is large are whole huge pages, where the kernel has them: what many
 * queue pairs use is spread so wide that with small pages nearly each look-up would first wait for
 * a page table.
 *
 * Memory goes back to the system when the slab ends, not before, so a freed object stays readable.
 * Objects never move. Zeroed memory with `size` set, a multiple of a cache line (rwy_slab_size),
 * is an empty slab. Thread: one; there is no lock.
 */
#ifndef RWY_SLAB_H
#define RWY_SLAB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rwy/prefetch.h"

#define RWY_HUGE_PAGE ((size_t)2 << 20)
#define RWY_SLAB_MIN  16                  /* objects of the first chunk */
#define RWY_SLAB_HUGE (2 * RWY_HUGE_PAGE) /* bytes of a slab that is large */
#define RWY_SLAB_MAX  (8 * RWY_HUGE_PAGE) /* bytes of a chunk */
#define RWY_PAGE      ((uintptr_t)4096)   /* where they are larger, there are no huge pages */

struct rwy_slab {
	void *free;             /* list of objects that were given back, by their first words */
	uint8_t *fresh;         /* the newest chunk's next object, which nobody has had */
	uint32_t left;          /* number of these */
	uint32_t size;          /* of an object, bytes */
	struct rwy_slab_chunk { /* the newest first */
		struct rwy_slab_chunk *next;
		size_t mapped; /* bytes, whole huge pages; 0: it is malloced */
	} * chunks;
	size_t held; /* bytes of all chunks */
};

static inline uint32_t rwy_slab_size(size_t size)
{
	return (uint32_t)((size + RWY_CACHE_LINE - 1) & ~(size_t)(RWY_CACHE_LINE - 1));
}

/* Whole huge pages of [p, p + n) may become such. A hint: the kernel may ignore it. */
static inline void rwy_huge_pages(void *p, size_t n)
{
	const uintptr_t last = RWY_PAGE - 1, from = ((uintptr_t)p + last) & ~last, end = (uintptr_t)p + n;

	if (n >= RWY_HUGE_PAGE)
		(void)madvise((void *)from, (end - from) & ~last, MADV_HUGEPAGE);
}

/* `n` bytes, a multiple of a huge page, at the begin of one. NULL: no memory. */
static inline void *rwy_huge_alloc(size_t n)
{
	const size_t all = n + RWY_HUGE_PAGE;
	uint8_t *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p & (RWY_HUGE_PAGE - 1);
	if (before)
		(void)munmap(p, before);
	(void)munmap(p + before + n, RWY_HUGE_PAGE - before);
	(void)madvise(p + before, n, MADV_HUGEPAGE); /* a hint */
	return p + before;
}

/*
 * An eighth more than there is, of a large slab a sixteenth and at least a huge page, so that
 * little is unused. False: no memory.
 */
static inline bool rwy_slab_grow(struct rwy_slab *s)
{
	size_t mapped = 0, n = s->held / 8 / s->size;
	struct rwy_slab_chunk *c;

	if (n < RWY_SLAB_MIN)
		n = RWY_SLAB_MIN;
	if (s->held >= RWY_SLAB_HUGE) {
		mapped = s->held / 16 & ~(RWY_HUGE_PAGE - 1);
		mapped = mapped < RWY_HUGE_PAGE  ? RWY_HUGE_PAGE
		         : mapped > RWY_SLAB_MAX ? RWY_SLAB_MAX
		                                 : mapped;
		n = (mapped - RWY_CACHE_LINE) / s->size;
	}
	/* The first line is for the chunk's own words. */
	c = mapped ? rwy_huge_alloc(mapped) : aligned_alloc(RWY_CACHE_LINE, RWY_CACHE_LINE + n * s->size);
	if (!c)
		return false;
	c->next = s->chunks;
	c->mapped = mapped;
	s->chunks = c;
	s->held += n * s->size;
	s->fresh = (uint8_t *)c + RWY_CACHE_LINE;
	s->left = (uint32_t)n;
	return true;
}

/* A zeroed object of s->size bytes, at a cache line; NULL: no memory. */
static inline void *rwy_slab_get(struct rwy_slab *s)
{
	void *p = s->free;

	if (p) {
		memcpy(&s->free, p, sizeof(s->free));
	} else {
		if (!s->left && !rwy_slab_grow(s))
			return NULL;
		p = s->fresh;
		s->fresh += s->size;
		s->left--;
	}
	memset(p, 0, s->size);
	return p;
}

/* Gives back p, which is of this slab. Its first word is overwritten; the rest stays readable. */
static inline void rwy_slab_put(struct rwy_slab *s, void *p)
{
	memcpy(p, &s->free, sizeof(s->free));
	s->free = p;
}

/* Bytes of chunks that malloc does not know of: for measurements. */
static inline size_t rwy_slab_mapped(const struct rwy_slab *s)
{
	size_t n = 0;

	for (const struct rwy_slab_chunk *c = s->chunks; c; c = c->next)
		n += c->mapped;
	return n;
}

/* Objects that were given back and are free now: for measurements, since it walks over them. */
static inline size_t rwy_slab_spare(const struct rwy_slab *s)
{
	size_t n = 0;

	for (const void *p = s->free; p; memcpy(&p, p, sizeof(p)))
		n++;
	return n;
}

/* Frees all memory of the slab, with the objects in use. */
static inline void rwy_slab_fini(struct rwy_slab *s)
{
	while (s->chunks) {
		struct rwy_slab_chunk *next = s->chunks->next;

		if (s->chunks->mapped)
			(void)munmap(s->chunks, s->chunks->mapped);
		else
			free(s->chunks);
		s->chunks = next;
	}
	s->free = s->fresh = NULL;
	s->left = 0;
	s->held = 0;
}

#endif
