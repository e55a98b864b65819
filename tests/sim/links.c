/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/links.h"

#include <stdlib.h>
#include <string.h>

#define HEAP SIM_LINKS /* the heap's place in first[] */

/* --- packets that are due, in order ----------------------------------------------------------- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void note_first(struct sim_links *l, unsigned i, const struct sim_event *e)
{
	l->first[i].at = e ? e->at : RWY_NEVER;
	l->first[i].order = e ? e->order : UINT64_MAX;
}

static void heap_push(struct sim_links *l, const struct sim_event *ev)
{
	uint32_t i;

	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 256;
		l->heap = realloc(l->heap, l->cap * sizeof(*l->heap));
		if (!l->heap)
			abort();
	}
	for (i = l->n++; i && before(ev, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
		l->heap[i] = l->heap[(i - 1) / 2];
	l->heap[i] = *ev;
	note_first(l, HEAP, &l->heap[0]);
}

static struct sim_event heap_pop(struct sim_links *l)
{
	struct sim_event top = l->heap[0], last = l->heap[--l->n];
	uint32_t i = 0, c;

	while ((c = 2 * i + 1) < l->n) {
		if (c + 1 < l->n && before(&l->heap[c + 1], &l->heap[c]))
			c++;
		if (!before(&l->heap[c], &last))
			break;
		l->heap[i] = l->heap[c];
		i = c;
	}
	l->heap[i] = last;
	note_first(l, HEAP, l->n ? &l->heap[0] : NULL);
	return top;
}

static void fifo_grow(struct sim_fifo *q)
{
	uint32_t cap = q->cap ? q->cap * 2 : 64;
	struct sim_event *v = malloc(cap * sizeof(*v));

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
	heap_push(l, &(struct sim_event){.at = at, .order = l->order++, .b = b, .where = where});
}

/* Puts it at the end of the link's queue. A packet that is late or overtakes others goes elsewhere,
 * so that it does not delay the rest. */
static void put(struct sim_links *l, uint32_t id, struct sim_buf *b, rwy_time at, bool late)
{
	struct sim_fifo *q = &l->fifo[id];
	struct sim_event *e;

	if (late || (q->n && at < q->v[(q->head + q->n - 1) & (q->cap - 1)].at)) {
		sim_links_at(l, at, id, b);
		return;
	}
	if (q->n == q->cap)
		fifo_grow(q);
	e = &q->v[(q->head + q->n) & (q->cap - 1)];
	e->at = at;
	e->order = l->order++;
	e->b = b;
	e->where = id;
	if (!q->n++)
		note_first(l, id, e);
}

bool sim_links_pop(struct sim_links *l, struct sim_event *ev, rwy_time now)
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
		*ev = heap_pop(l);
		return true;
	}
	struct sim_fifo *q = &l->fifo[best];

	*ev = q->v[q->head];
	q->head = (q->head + 1) & (q->cap - 1);
	note_first(l, best, --q->n ? &q->v[q->head] : NULL);
	if (q->n) /* likely needed soon */
		sim_buf_fetch(q->v[q->head].b);
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
	struct sim_event ev;

	while (sim_links_next(l) != RWY_NEVER && sim_links_pop(l, &ev, RWY_NEVER))
		if (ev.b)
			sim_buf_free(ev.b);
	for (unsigned i = 0; i < SIM_LINKS; i++)
		free(l->fifo[i].v);
	free(l->heap);
}

/* --- links -------------------------------------------------------------------------------------- */

static bool lost(struct sim_links *l, struct sim_link *k, rwy_time now)
{
	double p = k->cfg.loss, b = k->cfg.burst;

	if (b <= 1)
		return sim_chance(l->rng, p);
	/* Gilbert: a bad state lasts b packets on average, and is entered so that the share p is
	 * lost. */
	/* A burst also ends by time: else a silent link would stay bad for many keep-alives. */
	if (k->bad) {
		k->bad = !sim_chance(l->rng, 1 / b) && now - k->bad_since < (rwy_dur)b * RWY_MS;
	} else {
		k->bad = sim_chance(l->rng, p / (b * (1 - p)));
		k->bad_since = now;
	}
	return k->bad;
}

/* Perhaps flips one bit of the packet. The same call again restores it. */
struct flip {
	uint32_t at;
	uint8_t bit; /* 0: none */
};

static struct flip corrupt(struct sim_links *l, struct sim_link *k, struct sim_buf *b)
{
	struct flip f = {0};

	if (b->b.len > 40 && sim_chance(l->rng, k->cfg.corrupt)) {
		f.bit = (uint8_t)(1u << sim_below(l->rng, 8));
		f.at = sim_below(l->rng, b->b.len);
		b->b.data[f.at] ^= f.bit;
		k->corrupted++;
	}
	return f;
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
	struct sim_link *k = &l->link[id];
	uint32_t len = b->b.len;
	rwy_time at = now;
	bool late = false;
	struct flip f;

	k->in++;
	if (l->hash) {
		hash(l->hash, (uint64_t[]){now, id, len}, 3 * sizeof(uint64_t));
		hash(l->hash, b->b.data, len);
	}
	if (k->down || lost(l, k, now)) {
		k->lost++;
		sim_buf_free(b);
		return;
	}
	if (k->cfg.rate_Bps) {
		if (k->cfg.queue && k->free_at > at + k->cfg.queue) {
			k->lost++;
			sim_buf_free(b);
			return;
		}
		at = rwy_time_max(at, k->free_at) + (uint64_t)(len + 46) * RWY_SEC / k->cfg.rate_Bps;
		k->free_at = at;
	}
	at += k->cfg.delay;
	if (k->cfg.jitter)
		at += sim_next(l->rng) % k->cfg.jitter;
	if (sim_chance(l->rng, k->cfg.reorder)) {
		at += k->cfg.delay / 10 + sim_next(l->rng) % (k->cfg.delay / 5 + 1);
		k->reordered++;
		late = true;
	} else if (k->cfg.keep_order) {
		at = rwy_time_max(at, k->last_out);
		k->last_out = at;
	}
	f = corrupt(l, k, b);
	put(l, id, b, at, late);
	if (sim_chance(l->rng, k->cfg.dup)) {
		struct sim_buf *twin = sim_buf_new(SIM_ROOM, len);

		memcpy(twin->b.data, b->b.data, len);
		if (f.bit)
			twin->b.data[f.at] ^= f.bit;
		k->duplicated++;
		at += sim_next(l->rng) % (k->cfg.delay + 1);
		corrupt(l, k, twin);
		put(l, id, twin, at, true);
	}
}
