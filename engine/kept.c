/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses that went to their host and that it may request again. A host has at most
 * ENG_REPEAT_MAX READs and ATOMICs outstanding, so older ones are freed. READ responses hold packet
 * buffers; their bytes are bounded for each connection and for all. An ATOMIC's response is a
 * number.
 */
#include <stdlib.h>

#include "engine/memory.h"
#include "engine/responder.h"

/* A host's limit of outstanding READs and ATOMICs has eight bits (IBA 12.6.5, initiator depth). */
#define ENG_REPEAT_MAX 256
#define FEW            16 /* ATOMIC records that every connection may keep */
#define STEPS          8  /* connections looked at for one above its share */

static struct eng_kept *kept_at(const struct eng_keptq *q, uint32_t i)
{
	return &q->at[(q->head + i) & (q->cap - 1)];
}

static bool grow_ring(struct eng_keptq *q)
{
	uint32_t cap = q->cap ? 2 * q->cap : FEW;
	struct eng_kept *v = malloc(cap * sizeof(*v));

	if (!v)
		return false;
	for (uint32_t i = 0; i < q->n; i++)
		v[i] = *kept_at(q, i);
	free(q->at);
	q->at = v;
	q->cap = cap;
	q->head = 0;
	return true;
}

static void pop_oldest(struct eng_keptq *q)
{
	q->head = (q->head + 1) & (q->cap - 1);
	q->n--;
}

static void free_ring(struct eng_keptq *q)
{
	free(q->at);
	*q = (struct eng_keptq){0};
}

const struct eng_kept *eng_responder_kept(
    const struct eng_responder *rs, const struct eng_keptq *q, roce_psn psn)
{
	uint64_t serial = roce_resp_serial(&rs->resp, psn);
	uint32_t lo = 0, hi = q->n;

	while (lo < hi) {
		uint32_t mid = lo + ((hi - lo) >> 1);

		if (kept_at(q, mid)->serial < serial)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < q->n && kept_at(q, lo)->serial == serial ? kept_at(q, lo) : NULL;
}

const struct eng_kept *eng_responder_kept_next(const struct eng_keptq *q, const struct eng_kept *k)
{
	uint32_t i = ((uint32_t)(k - q->at) - q->head) & (q->cap - 1);

	return i + 1 < q->n ? kept_at(q, i + 1) : NULL;
}

/* --- ATOMICs --- */

/* The records of all connections take at most an eighth of the READ responses' memory. */
static bool grow_atomics(struct eng_responder *rs)
{
	struct eng_keptq *q = &eng_rare_of(rs)->atomics;
	struct eng *e = rs->side.e;
	uint64_t more = q->cap * sizeof(struct eng_kept);

	if (q->cap == ENG_REPEAT_MAX || e->kept_atomics + more > e->cfg.read_cache_total >> 3 ||
	    !grow_ring(q))
		return false;
	e->kept_atomics += more;
	return true;
}

void eng_responder_keep_atomic(struct eng_responder *rs, roce_psn psn, uint64_t original)
{
	struct eng_rare *r = eng_rare_take(rs);
	struct eng_keptq *q;

	if (!r)
		return; /* as below */
	q = &r->atomics;
	r->answered++;
	if (q->n == q->cap && !grow_atomics(rs)) {
		if (!q->n)
			return; /* no memory: if the host repeats the ATOMIC it gets an error */
		pop_oldest(q);
	}
	*kept_at(q, q->n++) =
	    (struct eng_kept){.serial = roce_resp_serial(&rs->resp, psn), .original = original};
}

/* --- READ responses --- */

/* One keeper more (1) or less (-1): the shares change. */
static void count_keeper(const struct eng_responder *rs, int by)
{
	struct eng *e = rs->side.e;
	struct eng_tenant *t = rs->side.tenant;

	e->keepers += (uint32_t)by;
	t->keepers += (uint32_t)by;
	e->kept_share = e->keepers ? e->cfg.read_cache_total / e->keepers : 0;
	t->kept_share = t->keepers ? t->cfg.custody / t->keepers : 0;
}

/* Its rare part, which has kept READ responses, or will. */
static struct eng_rare *keeper(struct eng_responder *rs)
{
	return eng_rare_of(rs);
}

static void enter_keepers(struct eng_responder *rs)
{
	struct eng *e = rs->side.e;
	struct eng_responder *hand = e->kept_hand;
	struct eng_rare *r = keeper(rs);

	if (r->kept_next)
		return;
	r->kept_next = hand ? hand : rs;
	r->kept_prev = hand ? hand->rare->kept_prev : rs;
	keeper(r->kept_next)->kept_prev = keeper(r->kept_prev)->kept_next = rs;
	e->kept_hand = rs;
	count_keeper(rs, 1);
}

static void leave_keepers(struct eng_responder *rs)
{
	struct eng *e = rs->side.e;
	struct eng_rare *r = keeper(rs);

	if (!r->kept_next)
		return;
	if (e->kept_hand == rs)
		e->kept_hand = r->kept_next == rs ? NULL : r->kept_next;
	keeper(r->kept_next)->kept_prev = r->kept_prev;
	keeper(r->kept_prev)->kept_next = r->kept_next;
	r->kept_next = r->kept_prev = NULL;
	count_keeper(rs, -1);
}

static void account_buffer(struct eng_responder *rs, const struct rwy_buf *b, bool more)
{
	uint64_t cost = eng_buf_cost(rs->side.e, b);

	keeper(rs)->kept += more ? cost : -cost;
	if (more)
		eng_mem_charge(&rs->side, ENG_MEM_ANSWERS, cost);
	else
		eng_mem_release(&rs->side, ENG_MEM_ANSWERS, cost, 1);
}

static void drop_oldest_read(struct eng_responder *rs)
{
	struct eng_keptq *q = &keeper(rs)->reads;
	struct rwy_buf *b = kept_at(q, 0)->buf;

	account_buffer(rs, b, false);
	pop_oldest(q);
	rwy_buf_free(&rs->side.e->bufs, b);
}

/*
 * Frees responses of connections above their share. A few steps for each packet find them in time.
 */
static void take_from_others(const struct eng_responder *rs, uint64_t cost)
{
	struct eng *e = rs->side.e;

	for (unsigned i = 0; i < STEPS && eng_kept_bytes(e) + cost > e->cfg.read_cache_total; i++) {
		struct eng_responder *v = e->kept_hand;

		e->kept_hand = v->rare->kept_next;
		while (v->rare->kept > e->kept_share && eng_kept_bytes(e) + cost > e->cfg.read_cache_total)
			drop_oldest_read(v);
		if (v != rs && !v->rare->reads.n)
			leave_keepers(v);
	}
}

/* Makes room for a buffer of `cost` bytes. False: there is none. rs is in the ring of keepers. */
static bool make_room(struct eng_responder *rs, uint64_t cost)
{
	const struct eng_cfg *cfg = &rs->side.e->cfg;
	struct eng_rare *r = keeper(rs);
	struct eng_keptq *q = &r->reads;
	struct eng *e = rs->side.e;

	while (q->n &&
	       (r->answered - kept_at(q, 0)->buf->msn >= ENG_REPEAT_MAX ||
	           r->kept + cost > cfg->read_cache_conn || r->kept + cost > rs->side.tenant->kept_share))
		drop_oldest_read(rs);
	if (eng_kept_bytes(e) + cost > cfg->read_cache_total && r->kept + cost <= e->kept_share)
		take_from_others(rs, cost);
	while (q->n && eng_kept_bytes(e) + cost > cfg->read_cache_total)
		drop_oldest_read(rs);
	return eng_kept_bytes(e) + cost <= cfg->read_cache_total && (q->n < q->cap || grow_ring(q));
}

void eng_responder_keep_read(struct eng_responder *rs, roce_psn psn, struct rwy_buf *b)
{
	struct eng *e = rs->side.e;
	struct eng_rare *r = eng_rare_take(rs);
	struct eng_keptq *q;

	if (!r) {
		e->c.read_cache_full++;
		rwy_buf_free(&e->bufs, b);
		return;
	}
	q = &r->reads;
	b->msn = r->answered;
	if (roce_op_ends(roce_op(rs->resp.serve_opcode)))
		r->answered++;
	enter_keepers(rs);
	if (!make_room(rs, eng_buf_cost(e, b))) {
		e->c.read_cache_full++;
		rwy_buf_free(&e->bufs, b);
		if (!q->n)
			leave_keepers(rs);
		return;
	}
	*kept_at(q, q->n++) = (struct eng_kept){.serial = roce_resp_serial(&rs->resp, psn), .buf = b};
	account_buffer(rs, b, true);
}

void eng_responder_forget_reads(struct eng_responder *rs)
{
	struct eng_rare *r = keeper(rs);

	if (!r)
		return;
	while (r->reads.n)
		drop_oldest_read(rs);
	leave_keepers(rs);
	free_ring(&r->reads);
}

void eng_responder_forget_answers(struct eng_responder *rs)
{
	uint32_t cap = rs->rare->atomics.cap;
	struct eng_rare *r = keeper(rs);

	if (!r)
		return;
	eng_responder_forget_reads(rs);
	if (cap > FEW)
		rs->side.e->kept_atomics -= (cap - FEW) * sizeof(struct eng_kept);
	free_ring(&r->atomics);
	r->answered = 0;
}

uint32_t eng_kept_buffers(const struct eng *e)
{
	return e->mem_bufs[ENG_MEM_ANSWERS];
}

uint64_t eng_kept_bytes(const struct eng *e)
{
	return e->mem.kind[ENG_MEM_ANSWERS];
}
