/* SPDX-License-Identifier: Apache-2.0 */
#include "wan/sched.h"

#include "wan/tunnel.h"

#define TURN 16384u /* most bytes of one class in a row: batches stay in the cache */
/* a class that was idle only between two polls does not count as idle */
#define LAG_FRESH   (200 * RWY_US)
#define LIMIT_BURST (200 * RWY_US)

/* --- heaps ------------------------------------------------------------------------------------ */
static bool sooner(const struct wan_class *a, const struct wan_class *b, enum wan_heap_kind k)
{
	return (int64_t)(a->key[k] - b->key[k]) < 0; /* virtual time wraps */
}

static void put_at(struct wan_heap *h, uint32_t i, struct wan_class *c, enum wan_heap_kind k)
{
	h->v[i] = c;
	c->place[k] = i + 1;
}

static void sift(struct wan_heap *h, uint32_t i, enum wan_heap_kind k)
{
	struct wan_class *c = h->v[i];
	uint32_t child;

	for (; i && sooner(c, h->v[(i - 1) / 2], k); i = (i - 1) / 2)
		put_at(h, i, h->v[(i - 1) / 2], k);
	for (; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n && sooner(h->v[child + 1], h->v[child], k))
			child++;
		if (!sooner(h->v[child], c, k))
			break;
		put_at(h, i, h->v[child], k);
	}
	put_at(h, i, c, k);
}

static struct wan_heap *heap_of(struct wan_sched *s, const struct wan_class *c, enum wan_heap_kind k)
{
	return &s->heap[k + (k == WAN_HEAP_GUARANTEE ? c->cfg.priority : 0u)];
}

static void note_waiting(struct wan_sched *s, const struct wan_class *c)
{
	uint32_t bit = 1u << c->cfg.priority;

	s->waiting = heap_of(s, c, WAN_HEAP_GUARANTEE)->n ? s->waiting | bit : s->waiting & ~bit;
}

static void heap_add(struct wan_sched *s, struct wan_class *c, enum wan_heap_kind k)
{
	struct wan_heap *h = heap_of(s, c, k);

	if (c->place[k])
		return;
	put_at(h, h->n++, c, k);
	sift(h, h->n - 1, k);
	note_waiting(s, c);
}

static void heap_remove(struct wan_sched *s, struct wan_class *c, enum wan_heap_kind k)
{
	struct wan_heap *h = heap_of(s, c, k);
	uint32_t i = c->place[k] - 1;

	if (!c->place[k])
		return;
	c->place[k] = 0;
	if (i != --h->n) {
		put_at(h, i, h->v[h->n], k);
		sift(h, i, k);
	}
	note_waiting(s, c);
}

static void heap_moved(struct wan_sched *s, struct wan_class *c, enum wan_heap_kind k)
{
	if (c->place[k])
		sift(heap_of(s, c, k), c->place[k] - 1, k);
}

/* The guarantee's clock was set. */
static void guarantee_moved(struct wan_sched *s, struct wan_class *c)
{
	c->key[WAN_HEAP_GUARANTEE] = c->guarantee.at;
	heap_moved(s, c, WAN_HEAP_GUARANTEE);
}

/* --- classes ---------------------------------------------------------------------------------- */
/* Most that a class's key is ahead of vtime: after a turn, whose last datagram may exceed it. */
static uint64_t ahead_max(const struct wan_class *c)
{
	return 2ull * TURN * c->weight_inv;
}

static void enter(struct wan_sched *s, struct wan_class *c)
{
	if (!c->head || c->place[WAN_HEAP_SHARE] || c->place[WAN_HEAP_PARKED])
		return;
	/* Farther ahead: it was idle for so long that vtime is half of all numbers away. */
	if (c->key[WAN_HEAP_SHARE] - s->vtime > ahead_max(c))
		c->key[WAN_HEAP_SHARE] = s->vtime;
	heap_add(s, c, WAN_HEAP_SHARE);
	c->fresh = true;
	if (!c->guarantee.ns_fp)
		return;
	c->key[WAN_HEAP_GUARANTEE] = c->guarantee.at;
	heap_add(s, c, WAN_HEAP_GUARANTEE);
}

static void leave(struct wan_sched *s, struct wan_class *c)
{
	heap_remove(s, c, WAN_HEAP_SHARE);
	heap_remove(s, c, WAN_HEAP_GUARANTEE);
	c->turn = 0;
	if (s->serving == c)
		s->serving = NULL;
}

int wan_class_set(struct wan_tunnel *t, unsigned id, const struct wan_class_cfg *cfg)
{
	struct wan_sched *s = &t->sched;
	struct wan_class *c, *parent;

	wan_stir(t);
	if (id >= WAN_CLASSES_MAX || !wan_class_ok(cfg))
		return RWY_EINVAL;
	parent = cfg->parent && cfg->parent < WAN_CLASSES_MAX ? wan_class_find(s, cfg->parent) : NULL;
	if (cfg->parent >= WAN_CLASSES_MAX || (cfg->parent && cfg->parent == id) ||
	    (parent && parent->parent))
		return RWY_EINVAL;
	c = wan_class_need(s, id);
	if (!c)
		return RWY_ENOMEM;
	leave(s, c);
	heap_remove(s, c, WAN_HEAP_PARKED);
	wan_class_configure(c, cfg);
	c->parent = parent;
	enter(s, c);
	return 0;
}

void wan_tx_class(struct wan_txflow *f, unsigned id)
{
	struct wan_class *c = wan_class_find(&f->t->sched, id);

	wan_stir(f->t);
	/* The flow leaves its old class's list when its turn comes (wan_sched_pick). */
	f->class = c ? c : &f->t->sched.first;
}

/* --- flows of a class ------------------------------------------------------------------------- */
static void push(struct wan_class *c, struct wan_txflow *f)
{
	f->active = true;
	f->next = NULL;
	if (c->tail)
		c->tail->next = f;
	else
		c->head = f;
	c->tail = f;
}

static struct wan_txflow *pop(struct wan_class *c)
{
	struct wan_txflow *f = c->head;

	c->head = f->next;
	if (!c->head)
		c->tail = NULL;
	f->active = false;
	return f;
}

void wan_sched_add(struct wan_sched *s, struct wan_txflow *f)
{
	s->stuck_at = WAN_NOT_STUCK;
	push(f->class, f);
	enter(s, f->class);
}

/* *moved: another class got a flow of this one, and may be due now. */
static struct wan_txflow *flow_of(struct wan_sched *s, struct wan_class *c, bool *moved)
{
	struct wan_txflow *f;

	while ((f = c->head)) {
		if (!wan_tx_sendable(f)) {
			pop(c);
		} else if (f->class != c) { /* it changed its class */
			pop(c);
			wan_sched_add(s, f);
			*moved = true;
		} else if (f->deficit <= 0) { /* turn over: to the tail, new quantum */
			f->deficit += f->t->ordered ? WAN_DRR_ORDERED : WAN_DRR_QUANTUM;
			push(c, pop(c));
		} else {
			return f;
		}
	}
	return NULL;
}

/* --- choice ----------------------------------------------------------------------------------- */
/* When the limit lets the class go on. */
static rwy_time limit_at(struct wan_class *c, rwy_time now)
{
	if (!c->limit.ns_fp)
		return now;
	/*
	 * A class with one rate as guarantee and limit catches up with what it could not send, as
	 * far as its guarantee does: else it would not reach the rate where a worker sleeps.
	 */
	rwy_pace_limit(&c->limit, c->cfg.limit_Bps == c->cfg.guarantee_Bps ? c->lag : LIMIT_BURST, now);
	return c->limit.at;
}

rwy_time wan_sched_limits_at(struct wan_class *c, rwy_time now)
{
	rwy_time at = limit_at(c, now);

	return c->parent ? rwy_time_max(at, limit_at(c->parent, now)) : at;
}

static bool over_limit(struct wan_sched *s, struct wan_class *c, rwy_time now)
{
	const rwy_time at = wan_sched_limits_at(c, now);

	if (at <= now)
		return false;
	leave(s, c);
	c->key[WAN_HEAP_PARKED] = at;
	heap_add(s, c, WAN_HEAP_PARKED);
	return true;
}

static void unpark(struct wan_sched *s, rwy_time now)
{
	struct wan_heap *h = &s->heap[WAN_HEAP_PARKED];

	while (h->n && h->v[0]->key[WAN_HEAP_PARKED] <= now) {
		struct wan_class *c = h->v[0];

		heap_remove(s, c, WAN_HEAP_PARKED);
		enter(s, c);
		c->fresh = false; /* it was not idle */
	}
}

/* Returns the class of one priority that is below its guarantee, or NULL. */
static struct wan_class *due_of(struct wan_sched *s, struct wan_heap *h, rwy_time now)
{
	while (h->n) {
		struct wan_class *c = h->v[0];
		rwy_dur lag = c->fresh ? LAG_FRESH : c->lag;

		c->fresh = false;
		if (c->guarantee.at + lag < now) {
			c->guarantee.at = now - lag;
			guarantee_moved(s, c);
			continue;
		}
		return c->guarantee.at <= now ? c : NULL;
	}
	return NULL;
}

static struct wan_class *due(struct wan_sched *s, rwy_time now)
{
	for (uint32_t left = s->waiting; left;) {
		unsigned p = 31u - (unsigned)__builtin_clz(left);
		struct wan_class *c = due_of(s, &s->heap[WAN_HEAP_GUARANTEE + p], now);

		if (c)
			return c;
		left &= ~(1u << p);
	}
	return NULL;
}

static struct wan_class *next_class(struct wan_sched *s, rwy_time now)
{
	struct wan_class *c = due(s, now);

	s->by_guarantee = c;
	if (c)
		return c;
	if (s->serving && s->serving->turn)
		return s->serving;
	if (!s->heap[WAN_HEAP_SHARE].n)
		return NULL;
	c = s->heap[WAN_HEAP_SHARE].v[0];
	s->vtime = c->key[WAN_HEAP_SHARE];
	s->serving = c;
	c->turn = TURN;
	return c;
}

struct wan_txflow *wan_sched_pick(struct wan_sched *s, rwy_time now)
{
	struct wan_txflow *f;
	struct wan_class *c;

	s->now = now;
	if (s->heap[WAN_HEAP_PARKED].n)
		unpark(s, now);
	while ((c = next_class(s, now))) {
		bool moved = false;

		if (over_limit(s, c, now))
			continue;
		f = flow_of(s, c, &moved);
		if (f && moved)
			continue;
		if (f)
			return f;
		leave(s, c);
	}
	return NULL;
}

static void pay_guarantee(struct wan_sched *s, struct wan_class *c, uint32_t bytes)
{
	rwy_pace_sent(&c->guarantee, bytes);
	guarantee_moved(s, c);
}

/*
 * The parent's guarantee pays for its reservation, but not ahead by more than its lag: where
 * reservations have more than their tenant, it would else be without its guarantee for long after
 * them. What the tenant itself sends stays paid in full, so it never gets more than its guarantee.
 */
static void pay_for_child(struct wan_sched *s, struct wan_class *parent, uint32_t bytes)
{
	const rwy_time had = parent->guarantee.at, most = rwy_time_max(had, s->now + parent->lag);

	rwy_pace_sent(&parent->guarantee, bytes);
	parent->guarantee.at = rwy_time_min(parent->guarantee.at, most);
	guarantee_moved(s, parent);
}

void wan_sched_sent(struct wan_sched *s, struct wan_txflow *f, uint32_t bytes)
{
	struct wan_class *c = f->class;

	f->deficit -= (int32_t)bytes;
	/* What went ahead of bulk flows is no debt to them: they could not send. */
	if (f->deficit < -WAN_DRR_QUANTUM)
		f->deficit = -WAN_DRR_QUANTUM;
	c->sent += bytes;
	if (c->limit.ns_fp)
		rwy_pace_sent(&c->limit, bytes);
	if (c->parent) {
		if (c->parent->limit.ns_fp)
			rwy_pace_sent(&c->parent->limit, bytes);
		if (c->parent->guarantee.ns_fp && s->by_guarantee)
			pay_for_child(s, c->parent, bytes);
	}
	if (s->by_guarantee) {
		c->sent_guaranteed += bytes;
		pay_guarantee(s, c, bytes);
		return;
	}
	c->turn -= bytes < c->turn ? bytes : c->turn;
	c->key[WAN_HEAP_SHARE] += (uint64_t)bytes * c->weight_inv;
	if ((int64_t)(c->key[WAN_HEAP_SHARE] - s->vtime - ahead_max(c)) > 0)
		c->key[WAN_HEAP_SHARE] = s->vtime + ahead_max(c);
	if (!c->turn)
		heap_moved(s, c, WAN_HEAP_SHARE);
}
