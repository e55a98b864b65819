/* SPDX-License-Identifier: Apache-2.0 */
/* A device's rules: entries, their handles, and a part's entries after its rules changed. */
#include <stdlib.h>
#include <string.h>

#include "offload/sync_int.h"

const char offload_why_next[] = "not installed yet";

/* --- entries ---------------------------------------------------------------------------------- */

static uint32_t handle_new(struct offload_sync *s, struct offload_entry *e)
{
	uint32_t h = s->handle_free;

	while (h < s->handles && s->by_handle[h])
		h++;
	if (h >= s->handles) {
		const uint32_t room = s->handles ? 2 * s->handles : 64;
		struct offload_entry **more = realloc(s->by_handle, room * sizeof(*more));

		if (!more)
			return 0;
		memset(more + s->handles, 0, (room - s->handles) * sizeof(*more));
		s->by_handle = more;
		h = s->handles ? s->handles : 1;
		s->handles = room;
	}
	s->by_handle[h] = e;
	s->handle_free = h + 1;
	return h;
}

static struct offload_entry *entry_new(struct offload_sync *s, const struct offload_rule *r)
{
	struct offload_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->rule = *r;
	e->why = r->act == OFFLOAD_NOTHING ? offload_left_text(r->left) : offload_why_next;
	e->handle = handle_new(s, e);
	if (!e->handle) {
		free(e);
		return NULL;
	}
	return e;
}

void offload_entry_free(struct offload_sync *s, struct offload_entry *e)
{
	if (!e)
		return;
	s->by_handle[e->handle] = NULL;
	if (e->handle < s->handle_free)
		s->handle_free = e->handle;
	free(e);
}

void offload_part_free(struct offload_sync *s, struct offload_part *p)
{
	for (unsigned i = 0; i < p->n; i++)
		offload_entry_free(s, p->e[i]);
	free(p->e);
	*p = (struct offload_part){0};
}

/* --- the next set ----------------------------------------------------------------------------- */

static int by_identity(const void *a, const void *b)
{
	const struct offload_entry *x = *(struct offload_entry *const *)a,
	                           *y = *(struct offload_entry *const *)b;

	return (x->rule.id > y->rule.id) - (x->rule.id < y->rule.id);
}

/* Returns an unused entry of the same rule in a sorted array and marks it as used. */
static struct offload_entry *take_same(
    struct offload_entry **sorted, unsigned n, const struct offload_rule *r)
{
	unsigned lo = 0, hi = n;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (sorted[mid]->rule.id < r->id)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < n && sorted[lo]->rule.id == r->id; lo++)
		if (sorted[lo]->seen && offload_rule_same(&sorted[lo]->rule, r)) {
			sorted[lo]->seen = false; /* here `seen` marks unused entries */
			return sorted[lo];
		}
	return NULL;
}

int offload_part_make(struct offload_sync *s, struct offload_part *p, const struct offload_list *l)
{
	struct offload_entry **e = calloc((size_t)l->n + p->n + 1, sizeof(*e));
	unsigned n = 0;

	if (!e)
		return RWY_ENOMEM;
	if (p->n)
		qsort(p->e, p->n, sizeof(*p->e), by_identity);
	for (unsigned i = 0; i < p->n; i++)
		p->e[i]->seen = true;
	for (; n < l->n; n++) {
		e[n] = take_same(p->e, p->n, &l->rule[n]);
		if (!e[n])
			e[n] = entry_new(s, &l->rule[n]);
		if (!e[n])
			break;
		e[n]->rule = l->rule[n]; /* the ACL rule may have a new number */
	}
	if (n < l->n) { /* new entries are those that the old part does not have */
		for (unsigned i = 0; i < p->n; i++)
			p->e[i]->seen = true;
		for (unsigned i = 0; i < n; i++)
			if (!e[i]->seen)
				offload_entry_free(s, e[i]);
		free(e);
		return RWY_ENOMEM;
	}
	for (unsigned i = 0; i < n; i++) {
		e[i]->stale = false;
		if (offload_installed(e[i]))
			e[i]->why = NULL; /* it could not be removed and is needed again */
	}
	for (unsigned i = 0; i < p->n; i++) {
		if (p->e[i]->seen && offload_installed(p->e[i])) {
			p->e[i]->stale = true;
			e[n++] = p->e[i];
		} else if (p->e[i]->seen) {
			offload_entry_free(s, p->e[i]);
		}
	}
	free(p->e);
	p->e = e;
	p->n = n;
	p->due = true;
	return 0;
}

int offload_parts_room(struct offload_sync *s, uint32_t top)
{
	struct offload_part *more;

	if (top < 1)
		top = 1;
	if (top <= s->parts)
		return 0;
	more = realloc(s->part, top * sizeof(*more));
	if (!more)
		return RWY_ENOMEM;
	memset(more + s->parts, 0, (top - s->parts) * sizeof(*more));
	s->part = more;
	s->parts = top;
	return 0;
}
