/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/links.h"

#include <stdlib.h>
#include <string.h>

#define HEAP SIM_LINKS /* the heap's place in first[] */

/* --- packets that are due, in order ----------------------------------------------------------- */

static void note_first(struct sim_links *l, unsigned i, const struct due *e)
{
	l->first[i].at = e ? e->at : RWY_NEVER;
	l->first[i].order = e ? e->order : UINT64_MAX;
}

static void note_heap(struct sim_links *l)
{
	note_first(l, HEAP, l->heap.n ? &l->heap.v[0] : NULL);
}

static void fifo_grow(struct sim_fifo *q)
{
	uint32_t cap = q->cap ? q->cap * 2 : 64;
	struct due *v = malloc(cap * sizeof(*v));

	if (!v)
		abort();
	for (uint32_t i = 0; i < q->n; i++)
		v[i] = q->v[(q->head + i) & (q->cap - 1)];
	free(q->v);
	q->v = v;
	q->cap = cap;
	q->head = 0;
}

void sim_links_at(struct sim_links *l, rwy_time at, uint32_t where, struct sim_buf *b)
{
	due_push(&l->heap, &(struct due){.at = at, .order = l->order++, .what = b, .where = where});
	note_heap(l);
}

/* Puts it at the end of the link's queue. A packet that is late or overtakes others goes elsewhere,
 * so that it does not delay the rest. */
static void put(struct sim_links *l, uint32_t id, struct sim_buf *b, rwy_time at, bool late)
{
	struct sim_fifo *q = &l->fifo[id];
	struct due *e;

	if (late || (q->n && at < q->v[(q->head + q->n - 1) & (q->cap - 1)].at)) {
		sim_links_at(l, at, id, b);
		return;
	}
	if (q->n == q->cap)
		fifo_grow(q);
	e = &q->v[(q->head + q->n) & (q->cap - 1)];
	e->at = at;
	e->order = l->order++;
	e->what = b;
	e->where = id;
	if (!q->n++)
		note_first(l, id, e);
}

bool sim_links_pop(struct sim_links *l, struct due *d, rwy_time now)
{
	rwy_time at = sim_links_next(l);
	uint64_t order = UINT64_MAX;
	unsigned best = 0;

	if (at > now)
		return false;
	for (unsigned i = 0; i <= SIM_LINKS; i++)
		if (l->first[i].at == at && l->first[i].order <= order) {
			order = l->first[i].order;
			best = i;
		}
	if (best == HEAP) {
		*d = due_pop(&l->heap);
		note_heap(l);
		return true;
	}
	struct sim_fifo *q = &l->fifo[best];

	*d = q->v[q->head];
	q->head = (q->head + 1) & (q->cap - 1);
	note_first(l, best, --q->n ? &q->v[q->head] : NULL);
	if (q->n) /* soon */
		sim_buf_fetch(q->v[q->head].what);
	return true;
}

void sim_links_init(struct sim_links *l, struct sim_rng *rng)
{
	memset(l, 0, sizeof(*l));
	l->rng = rng;
	for (unsigned i = 0; i <= SIM_LINKS; i++)
		note_first(l, i, NULL);
}

void sim_links_fini(struct sim_links *l)
{
	struct due d;

	while (sim_links_next(l) != RWY_NEVER && sim_links_pop(l, &d, RWY_NEVER))
		if (d.what)
			sim_buf_free(d.what);
	for (unsigned i = 0; i < SIM_LINKS; i++)
		free(l->fifo[i].v);
	free(l->heap.v);
}

/* --- links -------------------------------------------------------------------------------------- */

#define OVERHEAD    46 /* preamble, Ethernet, FCS and gap, more or less */
#define CORRUPT_MIN 40 /* shorter packets arrive as they were sent */

void sim_link_set(struct sim_links *l, uint32_t id, const struct link_cfg *cfg)
{
	l->link[id].cfg = *cfg;
	l->link[id].cfg.overhead = OVERHEAD;
	l->link[id].cfg.corrupt_min = CORRUPT_MIN;
}

static void hash(uint64_t *h, const void *p, size_t n)
{
	uint64_t w;

	for (size_t i = 0; i < n; i += sizeof(w)) {
		w = 0;
		memcpy(&w, (const uint8_t *)p + i, n - i < sizeof(w) ? n - i : sizeof(w));
		*h = (*h ^ w) * 0x9e3779b97f4a7c15u;
		*h ^= *h >> 32;
	}
}

void sim_link_send(struct sim_links *l, uint32_t id, struct sim_buf *b, rwy_time now)
{
	struct link_fate f = {0};
	struct sim_buf *twin = NULL;
	uint32_t len = b->b.len;

	if (l->hash) {
		hash(l->hash, (uint64_t[]){now, id, len}, 3 * sizeof(uint64_t));
		hash(l->hash, b->b.data, len);
	}
	link_send(&l->link[id], len, &l->rng->s, &f, now);
	if (!f.copies) {
		sim_buf_free(b);
		return;
	}
	if (f.copies > 1) {
		twin = sim_buf_new(SIM_ROOM, len);
		memcpy(twin->b.data, b->b.data, len);
		twin->b.w0 = b->b.w0;
		twin->b.w2 = b->b.w2;
	}
	link_flip(&f.flip[0], b->b.data);
	put(l, id, b, f.at[0], f.late[0]);
	if (twin) {
		link_flip(&f.flip[1], twin->b.data);
		put(l, id, twin, f.at[1], f.late[1]);
	}
}
