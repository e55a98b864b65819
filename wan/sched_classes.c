/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's classes by their numbers, and the memory of its heaps: nothing here runs for a
 * packet. sched.c chooses between them. */
#include "wan/sched.h"

#include <stdlib.h>
#include <string.h>

#include "wan/tunnel.h"

#define WEIGHT_BITS 20
/*
 * A class that the worker, or the path, did not serve in time catches up with at most its lag: the
 * time that LAG_BYTES take at its guarantee, within LAG_MIN and LAG_MAX. A slow class so keeps its
 * rate where a worker waits long for a processor.
 */
#define LAG_MIN   (10 * RWY_MS)
#define LAG_MAX   (100 * RWY_MS)
#define LAG_BYTES 32768u

void wan_class_configure(struct wan_class *c, const struct wan_class_cfg *cfg)
{
	c->cfg = *cfg;
	c->weight_inv = (1u << WEIGHT_BITS) / cfg->weight;
	rwy_pace_set(&c->guarantee, cfg->guarantee_Bps);
	rwy_pace_set(&c->limit, cfg->limit_Bps);
	c->lag = 0;
	if (cfg->guarantee_Bps)
		c->lag =
		    rwy_time_min(rwy_time_max(LAG_BYTES * RWY_SEC / cfg->guarantee_Bps, LAG_MIN), LAG_MAX);
}

void wan_sched_init(struct wan_sched *s)
{
	*s = (struct wan_sched){.classes = 1, .heap_cap = 1, .stuck_at = WAN_NOT_STUCK};
	wan_class_configure(&s->first, &(struct wan_class_cfg){.weight = 1});
	for (unsigned k = 0; k < WAN_HEAPS; k++)
		s->heap[k].v = &s->one[k];
}

void wan_sched_fini(struct wan_sched *s)
{
	for (unsigned i = 0; i < WAN_CLASS_TABLES; i++) {
		for (uint32_t j = 0; j < s->table[i].cap; j++)
			if (s->table[i].v[j] != &s->first)
				free(s->table[i].v[j]);
		free(s->table[i].v);
	}
	for (unsigned k = 0; k < WAN_HEAPS && s->heap_cap > 1; k++)
		free(s->heap[k].v);
	wan_sched_init(s);
}

/* Makes room for n classes in all heaps at once: later additions never allocate. */
static bool heaps_grow(struct wan_sched *s, uint32_t n)
{
	struct wan_class **h[WAN_HEAPS];
	bool ok = true;

	for (unsigned k = 0; k < WAN_HEAPS; k++) {
		h[k] = calloc(n, sizeof(struct wan_class *));
		ok = ok && h[k];
	}
	for (unsigned k = 0; k < WAN_HEAPS; k++) {
		if (!ok) {
			free(h[k]);
			continue;
		}
		memcpy(h[k], s->heap[k].v, s->heap[k].n * sizeof(struct wan_class *));
		if (s->heap_cap > 1)
			free(s->heap[k].v);
		s->heap[k].v = h[k];
	}
	if (ok)
		s->heap_cap = n;
	return ok;
}

/* Makes room for the class's number. */
static bool table_grow(struct wan_sched *s, uint32_t id)
{
	struct wan_class_table *t = &s->table[id / WAN_CLASS_TABLE_MAX];
	const uint32_t at = id % WAN_CLASS_TABLE_MAX;
	uint32_t cap = t->cap ? t->cap : 16;
	struct wan_class **v;

	while (cap <= at)
		cap *= 2;
	if (cap == t->cap)
		return true;
	v = calloc(cap, sizeof(*v)); /* NOLINT(bugprone-sizeof-expression): pointers */
	if (!v)
		return false;
	if (t->v)
		memcpy(v, t->v, t->cap * sizeof(*v)); /* NOLINT(bugprone-sizeof-expression) */
	else if (id < WAN_CLASS_TABLE_MAX)
		v[0] = &s->first;
	free(t->v);
	*t = (struct wan_class_table){v, cap};
	return true;
}

struct wan_class *wan_class_find(const struct wan_sched *s, uint32_t id)
{
	const struct wan_class_table *t = &s->table[id / WAN_CLASS_TABLE_MAX];
	const uint32_t at = id % WAN_CLASS_TABLE_MAX;

	return at < t->cap ? t->v[at] : NULL;
}

struct wan_class *wan_class_need(struct wan_sched *s, uint32_t id)
{
	struct wan_class_table *t = &s->table[id / WAN_CLASS_TABLE_MAX];
	struct wan_class *c = wan_class_find(s, id);

	if (!id)
		return &s->first;
	if (c)
		return c;
	if (!table_grow(s, id) ||
	    (s->classes == s->heap_cap && !heaps_grow(s, s->heap_cap < 16 ? 16 : 2 * s->heap_cap)))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->id = id;
	s->classes++;
	t->v[id % WAN_CLASS_TABLE_MAX] = c;
	return c;
}

bool wan_class_ok(const struct wan_class_cfg *cfg)
{
	/* At a slower rate the time of one datagram would overflow the clock. */
	const uint64_t min = WAN_RATE_MIN, least = cfg->guarantee_Bps ? cfg->guarantee_Bps : min;

	return cfg->weight && cfg->weight <= WAN_WEIGHT_MAX && cfg->priority < WAN_PRIORITIES &&
	       least >= min && (!cfg->limit_Bps || cfg->limit_Bps >= least) && cfg->dscp <= WAN_DSCP_MAX;
}

void wan_class_stats(const struct wan_tunnel *t, unsigned id, struct wan_class_stats *out)
{
	const struct wan_class *c = id ? wan_class_find(&t->sched, id) : &t->sched.first;

	*out = (struct wan_class_stats){0};
	if (!c)
		return;
	out->cfg = c->cfg;
	out->sent = c->sent;
	out->sent_guaranteed = c->sent_guaranteed;
	out->waiting = c->head;
	out->limited = c->place[WAN_HEAP_PARKED];
}
