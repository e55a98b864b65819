/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New data, by deficit round robin over the flows with data and credit: a buffer or a fragment,
 * a run of small packets of the flow, or a bundle of small packets of several flows. Also cuts a
 * buffer into fragments when it is first sent; they never change.
 */
#include "wan/data.h"
#include "wan/order.h"

/* --- the next flow ---------------------------------------------------------------------------- */
static bool has_credit(const struct wan_txflow *f)
{
	return f->next_frag || wan_tx_has_credit(f);
}

static uint64_t credit_left(const struct wan_tunnel *t)
{
	return t->peer.rx_bytes - t->tx_out;
}

/* A flow that may go on although bulk flows have no credit left; NULL: none. */
static struct wan_txflow *ahead_of_bulk(struct wan_tunnel *t, rwy_time now)
{
	struct wan_txflow *f = wan_sched_ahead(&t->sched, now);

	return f && has_credit(f) ? f : NULL;
}

/* Such a flow waits for nothing, as far as the last turn knows. */
static bool goes_ahead(const struct wan_sched *s)
{
	const struct wan_txflow *f = s->ahead_at ? NULL : wan_sched_ahead_first(s);

	return f && has_credit(f);
}

static struct wan_txflow *next_flow(struct wan_tunnel *t, rwy_time now)
{
	struct wan_txflow *f = wan_sched_pick(&t->sched, now);

	t->sched.ahead_at = 0;
	t->sched.stuck_at = WAN_NOT_STUCK;
	if (!f || has_credit(f))
		return f;
	f = ahead_of_bulk(t, now);
	if (f)
		wan_sched_ahead_pick(&t->sched, f);
	else
		t->sched.stuck_at = credit_left(t);
	return f;
}

/* --- a datagram ------------------------------------------------------------------------------- */
static void cut(struct wan_txflow *f, struct rwy_buf *b)
{
	uint32_t open = f->open_acked ? 0 : WAN_OPEN_LEN + f->info_len;
	uint32_t after = wan_after_pending(f->t, &b->after) ? WAN_AFTER_LEN : 0;
	uint32_t room = f->t->mtu_min - WAN_PKT_HDR - WAN_DATA_LEN - open - after;
	uint32_t n = 1, fsize = room - WAN_FRAG_LEN;

	if (b->len <= room) {
		b->w2 = WAN_W2(0, 1);
		return;
	}
	while (n * fsize < b->len)
		n++;
	assert(n <= WAN_FRAGS_MAX); /* wan_tx_send bounds the size of a buffer */
	/* Fragments of equal size often leave room for their repair, which is longer. */
	b->w2 = WAN_W2((b->len + n - 1) / n, n);
}

/* The flow's next buffer, which has been cut, goes out for the first time: it takes credit. */
static inline void take(struct wan_txflow *f, struct rwy_buf *b)
{
	struct wan_tunnel *t = f->t;

	if (b->after.flow != RWY_NO_FLOW)
		f->sent_after = b->after;
	t->tx_out += wan_tx_credit(t, b);
	t->tx_sent += b->len;
	f->out += b->len;
}

/* Puts the flow's next buffer, which has taken credit, or its next fragment into a datagram. */
static void new_one(struct wan_txflow *f, struct wan_out *o, const struct rwy_buf *b, rwy_time now)
{
	uint32_t left = (uint32_t)(f->end - f->next_send);

	o->fec = wan_data_wants_fec(o->p, f, left, b->len, b->len, now);
	wan_data_put(f, o, f->next_send, f->next_frag, now);
	wan_data_earn_fec(o->p, f, left, o->tx->len, o->tx->len);
	if (++f->next_frag < WAN_W2_FRAGS(b->w2))
		return;
	f->next_frag = 0;
	f->next_send++;
	f->t->c.tx_data++;
}

/* The buffer that may follow in a run, and may be sent; NULL: none. */
static struct rwy_buf *next_small(const struct wan_txflow *f)
{
	struct rwy_buf *b;

	if (!wan_tx_sendable(f) || !wan_tx_has_credit(f))
		return NULL;
	b = f->ring[f->next_send & f->mask];
	return wan_run_may(f, b) ? b : NULL;
}

/* Puts the flow's next buffer, which has taken credit, and those that wait behind it and are small
 * as well into a datagram. Nothing waits for company. False: it goes alone. */
static bool new_run(struct wan_txflow *f, struct wan_out *o, const struct rwy_buf *first, rwy_time now)
{
	uint64_t seq = f->next_send;
	uint32_t left = (uint32_t)(f->end - seq);
	struct rwy_buf *b;
	struct wan_run r;

	if (left < 2 || !wan_run_may(f, first))
		return false;
	f->next_send++;
	b = next_small(f);
	if (!b || !wan_run_begin(&r, f, first, b)) {
		f->next_send--;
		return false;
	}
	for (; b && wan_run_fits(&r, b); b = next_small(f)) {
		b->w2 = WAN_W2(0, 1);
		take(f, b);
		wan_run_add(&r, b);
		f->next_send++;
	}
	o->fec = wan_data_wants_fec(o->p, f, left, first->len, r.b->len, now);
	wan_data_put_run(f, o, seq, &r, now);
	wan_data_earn_fec(o->p, f, left, first->len, r.b->len);
	f->t->c.tx_data += r.n;
	return true;
}

/* Charges what the flow has sent. */
static void sent(struct wan_txflow *f, uint32_t bytes)
{
	struct wan_sched *s = &f->t->sched;

	wan_sched_sent(s, f, bytes);
	if (f->next_send == f->end)
		wan_sched_ahead_remove(s, f);
}

/* The flow's next buffer is sent in a bundle. own: bytes of the datagram that it pays for, too. */
static void sent_bundled(
    struct wan_txflow *f, struct wan_out *o, const struct rwy_buf *b, uint32_t own, rwy_time now)
{
	const uint32_t left = (uint32_t)(f->end - f->next_send);

	o->fec = o->fec || wan_data_wants_fec(o->p, f, left, b->len, b->len, now);
	wan_data_earn_fec(o->p, f, left, b->len, b->len);
	f->next_send++;
	f->t->c.tx_data++;
	sent(f, own + WAN_BUNDLE_ENTRY + b->len);
}

/* The buffer of a flow that may be in a bundle now; NULL: none. */
static struct rwy_buf *next_alone(const struct wan_txflow *f)
{
	struct rwy_buf *b;

	if (!wan_tx_sendable(f) || f->next_frag)
		return NULL;
	b = f->ring[f->next_send & f->mask];
	return wan_bundle_may(f, b) ? b : NULL;
}

/*
 * Puts the flow's next buffer, which has taken credit, and those that follow by the flows' turns
 * and are small as well into a datagram. Nothing waits for company. False: the flow's own buffers
 * fill a datagram, or nobody else's follow.
 */
static bool new_bundle(struct wan_txflow *f, struct wan_out *o, struct rwy_buf *b, rwy_time now)
{
	const struct rwy_buf *second;
	struct wan_tunnel *t = f->t;
	struct wan_bundle u;

	if (f->end - f->next_send >= WAN_BUNDLE_MAX || !wan_bundle_may(f, b) || !f->next ||
	    f->next->class != f->class)
		return false;
	second = next_alone(f->next);
	if (!second || !wan_bundle_begin(&u, o->p, f, b, second))
		return false;
	sent_bundled(f, o, b, WAN_PKT_HDR + WAN_BUNDLE_HEAD + t->cfg.wire_overhead, now);
	while (u.first.run < WAN_BUNDLE_MAX && (f = next_flow(t, now)) && (b = next_alone(f)) &&
	       wan_bundle_fits(&u, f, b)) {
		b->w2 = WAN_W2(0, 1);
		take(f, b);
		wan_bundle_add(&u, o->p, f, b);
		sent_bundled(f, o, b, 0, now);
	}
	wan_bundle_put(&u, o, t, now);
	return true;
}

bool wan_data_new(struct wan_tunnel *t, struct wan_out *o, rwy_time now)
{
	struct wan_txflow *f = next_flow(t, now);

	if (!f)
		return false;
	struct rwy_buf *b = f->ring[f->next_send & f->mask];

	if (!f->next_frag) {
		cut(f, b);
		take(f, b);
	}
	if (b->len <= WAN_RUN_PACKET && new_bundle(f, o, b, now))
		return true;
	if (b->len > WAN_RUN_PACKET || !new_run(f, o, b, now))
		new_one(f, o, b, now);
	sent(f, (uint32_t)(o->at - o->tx->hdr) + o->tx->len + t->cfg.wire_overhead);
	return true;
}

bool wan_data_waiting(const struct wan_tunnel *t)
{
	const struct wan_sched *s = &t->sched;
	const struct wan_txflow *f;

	if (t->again.n || t->dgrams.n)
		return true;
	if (!wan_sched_any(s))
		return false;
	/* The next class in the order of shares need not be the one that would be served: its flows
	 * wait behind those that have no credit. */
	if (s->stuck_at == credit_left(t))
		return false;
	/* Credit is shared by the tunnel: when it is too small for one flow's next buffer, it is so
	 * for most others. */
	f = s->heap[WAN_HEAP_SHARE].v[0]->head;
	return f && (!wan_tx_sendable(f) || has_credit(f) || goes_ahead(s));
}
