/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in order of time; events of the same time come in the order they were put in. For
 * simulated worlds: it allocates.
 */
#ifndef RWY_DUE_H
#define RWY_DUE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "rwy/time.h"

/* The keys are beside the pointer: sorting does not fetch what it points to. */
struct due {
	rwy_time at;
	uint64_t order;
	void *what;     /* the caller's */
	uint32_t where; /* the caller's */
};

/* A heap; all zero is an empty one. */
struct due_heap {
	struct due *v;
	uint32_t n, cap;
};

static inline bool due_before(const struct due *a, const struct due *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

/* Ends the process when there is no memory. */
static inline void due_push(struct due_heap *h, const struct due *d)
{
	uint32_t i = h->n++;

	if (i == h->cap) {
		h->cap = h->cap ? h->cap * 2 : 256;
		h->v = realloc(h->v, h->cap * sizeof(*h->v));
		if (!h->v)
			abort();
	}
	for (; i && due_before(d, &h->v[(i - 1) / 2]); i = (i - 1) / 2)
		h->v[i] = h->v[(i - 1) / 2];
	h->v[i] = *d;
}

/* The heap is not empty. */
static inline struct due due_pop(struct due_heap *h)
{
	struct due top = h->v[0], last = h->v[--h->n];
	uint32_t i = 0, c;

	while ((c = 2 * i + 1) < h->n) {
		if (c + 1 < h->n && due_before(&h->v[c + 1], &h->v[c]))
			c++;
		if (!due_before(&h->v[c], &last))
			break;
		h->v[i] = h->v[c];
		i = c;
	}
	h->v[i] = last;
	return top;
}

static inline rwy_time due_next(const struct due_heap *h)
{
	return h->n ? h->v[0].at : RWY_NEVER;
}

#endif
