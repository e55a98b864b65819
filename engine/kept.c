/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that were served and that their host may ask for again. A host has at most ENG_REPEAT_MAX READs and
 * ATOMICs outstanding, so no older ones; of READ responses only so many bytes, of a connection and of all.
 * They hold packet buffers and are counted as what those take. An ATOMIC's answer is a number.
 */
#include <stdlib.h>

#include "engine/responder.h"

/* A host's limit of outstanding READs and ATOMICs has eight bits (IBA 12.6.5, initiator depth). */
#define ENG_REPEAT_MAX 256
#define FEW            16 /* records for which a connection need not ask */
#define STEPS          8  /* of the search for who keeps more than its share */

static struct eng_kept *at(const struct eng_keptq *q, uint32_t i)
{
	return &q->at[(q->head + i) & (q->cap - 1)];
}

static bool grow(struct eng_keptq *q)
{
	uint32_t cap = q->cap ? 2 * q->cap : FEW;
	struct eng_kept *v = malloc(cap * sizeof(*v));

	if (!v)
		return false;
	for (uint32_t i = 0; i < q->n; i++)
		v[i] = *at(q, i);
	free(q->at);
	q->at = v;
	q->cap = cap;
	q->head = 0;
	return true;
}

static void pop(struct eng_keptq *q)
{
	q->head = (q->head + 1) & (q->cap - 1);
	q->n--;
}

static void release(struct eng_keptq *q)
{
	free(q->at);
	*q = (struct eng_keptq){0};
}

const struct eng_kept *eng_near_kept(const struct eng_near *n, const struct eng_keptq *q, roce_psn psn)
{
	uint64_t serial = roce_resp_serial(&n->resp, psn);
	uint32_t lo = 0, hi = q->n;

	while (lo < hi) {
		uint32_t mid = lo + ((hi - lo) >> 1);

		if (at(q, mid)->serial < serial)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < q->n && at(q, lo)->serial == serial ? at(q, lo) : NULL;
}

const struct eng_kept *eng_near_kept_next(const struct eng_keptq *q, const struct eng_kept *k)
{
	uint32_t i = ((uint32_t)(k - q->at) - q->head) & (q->cap - 1);

	return i + 1 < q->n ? at(q, i + 1) : NULL;
}

/* --- ATOMICs ------------------------------------------------------------------------------------- */

/* Records of all take no more than an eighth of what READ responses may. */
static bool grow_atomics(struct eng_near *n)
{
	struct eng *e = n->h.e;
	uint64_t more = n->atomics.cap * sizeof(struct eng_kept);

	if (n->atomics.cap == ENG_REPEAT_MAX || e->kept_atomics + more > e->cfg.read_cache_total >> 3 ||
	    !grow(&n->atomics))
		return false;
	e->kept_atomics += more;
	return true;
}

void eng_near_keep_atomic(struct eng_near *n, roce_psn psn, uint64_t original)
{
	struct eng_keptq *q = &n->atomics;

	n->answered++;
	if (q->n == q->cap && !grow_atomics(n)) {
		if (!q->n)
			return; /* no memory at all: asked for again, it is an error */
		pop(q);
	}
	*at(q, q->n++) = (struct eng_kept){.serial = roce_resp_serial(&n->resp, psn), .original = original};
}

/* --- READ responses ------------------------------------------------------------------------------ */

/* One keeper more, or less. */
static void share(const struct eng_near *n, int by)
{
	struct eng *e = n->h.e;
	struct eng_ten *t = n->h.ten;

	e->keepers += (uint32_t)by;
	t->keepers += (uint32_t)by;
	e->kept_share = e->keepers ? e->cfg.read_cache_total / e->keepers : 0;
	t->kept_share = t->keepers ? t->cfg.custody / t->keepers : 0;
}

static void enter(struct eng_near *n)
{
	struct eng *e = n->h.e;
	struct eng_near *hand = e->kept_hand;

	if (n->kept_next)
		return;
	n->kept_next = hand ? hand : n;
	n->kept_prev = hand ? hand->kept_prev : n;
	n->kept_next->kept_prev = n->kept_prev->kept_next = n;
	e->kept_hand = n;
	share(n, 1);
}

static void leave(struct eng_near *n)
{
	struct eng *e = n->h.e;

	if (!n->kept_next)
		return;
	if (e->kept_hand == n)
		e->kept_hand = n->kept_next == n ? NULL : n->kept_next;
	n->kept_next->kept_prev = n->kept_prev;
	n->kept_prev->kept_next = n->kept_next;
	n->kept_next = n->kept_prev = NULL;
	share(n, -1);
}

static void account(struct eng_near *n, const struct rwy_buf *b, bool more)
{
	struct eng *e = n->h.e;
	uint64_t cost = eng_cost(e, b);

	n->kept += more ? cost : -cost;
	e->kept += more ? cost : -cost;
	e->kept_bufs += more ? 1u : -1u;
}

static void drop_oldest(struct eng_near *n)
{
	struct rwy_buf *b = at(&n->reads, 0)->buf;

	account(n, b, false);
	pop(&n->reads);
	rwy_buf_free(&n->h.e->bufs, b);
}

/* Takes it from a connection that has more than its share. A few steps a packet find one sooner or later. */
static void take_from_others(const struct eng_near *n, uint64_t cost)
{
	struct eng *e = n->h.e;

	for (unsigned i = 0; i < STEPS && e->kept + cost > e->cfg.read_cache_total; i++) {
		struct eng_near *v = e->kept_hand;

		e->kept_hand = v->kept_next;
		while (v->kept > e->kept_share && e->kept + cost > e->cfg.read_cache_total)
			drop_oldest(v);
		if (v != n && !v->reads.n)
			leave(v);
	}
}

/* Whether there is room for a buffer that takes `cost`; n is in the ring. */
static bool make_room(struct eng_near *n, uint64_t cost)
{
	const struct eng_cfg *cfg = &n->h.e->cfg;
	struct eng_keptq *q = &n->reads;
	struct eng *e = n->h.e;

	while (q->n && (n->answered - at(q, 0)->buf->msn >= ENG_REPEAT_MAX ||
	                   n->kept + cost > cfg->read_cache_conn || n->kept + cost > n->h.ten->kept_share))
		drop_oldest(n);
	if (e->kept + cost > cfg->read_cache_total && n->kept + cost <= e->kept_share)
		take_from_others(n, cost);
	while (q->n && e->kept + cost > cfg->read_cache_total)
		drop_oldest(n);
	return e->kept + cost <= cfg->read_cache_total && (q->n < q->cap || grow(q));
}

void eng_near_keep_read(struct eng_near *n, roce_psn psn, struct rwy_buf *b)
{
	struct eng *e = n->h.e;
	struct eng_keptq *q = &n->reads;

	b->msn = n->answered;
	if (roce_op_ends(roce_op(n->resp.serve_opcode)))
		n->answered++;
	enter(n);
	if (!make_room(n, eng_cost(e, b))) {
		e->c.read_cache_full++;
		rwy_buf_free(&e->bufs, b);
		if (!q->n)
			leave(n);
		return;
	}
	*at(q, q->n++) = (struct eng_kept){.serial = roce_resp_serial(&n->resp, psn), .buf = b};
	account(n, b, true);
}

void eng_near_forget_reads(struct eng_near *n)
{
	while (n->reads.n)
		drop_oldest(n);
	leave(n);
	release(&n->reads);
}

void eng_near_forget_answers(struct eng_near *n)
{
	uint32_t cap = n->atomics.cap;

	eng_near_forget_reads(n);
	if (cap > FEW)
		n->h.e->kept_atomics -= (cap - FEW) * sizeof(struct eng_kept);
	release(&n->atomics);
	n->answered = 0;
}

uint32_t eng_kept_buffers(const struct eng *e)
{
	return e->kept_bufs;
}

uint64_t eng_kept_bytes(const struct eng *e)
{
	return e->kept;
}
