/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts data into a datagram: what was lost, its second copy, what takes a detour, what a probe
 * repeats. data_new.c has what is sent for the first time.
 */
#include "wan/data.h"
#include "wan/order.h"

#define COPY_LOSS_PPM 1000u
#define COPY_GAP_MAX  (2 * RWY_MS)

/* The carrier's own repeats are not paid for. */
static void spend_fec(struct wan_path *p, uint32_t len)
{
	if (!wan_path_is_stream(p))
		wan_fec_spend(&p->fec, len);
}

/* --- one datagram ----------------------------------------------------------------------------- */
void wan_data_attach(struct wan_tunnel *t, struct wan_out *o, const struct wan_f_data *d, struct rwy_buf *b,
    uint32_t off, uint32_t len, rwy_time now)
{
	uint32_t need = (uint32_t)wan_f_data_size(d) + len;
	uint32_t most = t->mtu_min - (o->fec ? WAN_FEC_ROOM : 0);
	uint32_t limit = most > need ? most - need : 0;
	uint32_t frame = need - len;

	if (limit + frame > WAN_PIGGY_MAX)
		limit = frame < WAN_PIGGY_MAX ? WAN_PIGGY_MAX - frame : 0;
	if (limit > WAN_PKT_HDR) {
		o->limit = limit;
		if (o->p->unacked >= 16)
			wan_ack_put(o->p, o, now);
		if (t->dirty_head && (o->p == t->first || t->st.on))
			wan_ctl_put(t, o);
	}
	o->at = wan_f_data_put(o->at, d);
	o->tx->buf = b;
	o->tx->off = off;
	o->tx->len = len;
	o->eliciting = true;
}

void wan_data_put(struct wan_txflow *f, struct wan_out *o, uint64_t seq, uint32_t frag, rwy_time now)
{
	struct rwy_buf *b = f->ring[seq & f->mask];
	uint32_t off = 0, len = b->len;
	struct wan_f_data d = {
	    .flow = f->id, .seq = (uint32_t)seq, .kind = b->kind, .pcp = wan_pcp_for(f->t, b)};

	o->s.flags |= WAN_S_DATA;
	if (WAN_W2_FRAGS(b->w2) <= 1) {
		o->s.flags |= WAN_S_WHOLE;
	} else {
		d.frag = true;
		d.total = (uint16_t)b->len;
		d.fsize = (uint16_t)WAN_W2_FSIZE(b->w2);
		d.index = (uint8_t)frag;
		off = frag * d.fsize;
		len = b->len - off < d.fsize ? b->len - off : d.fsize;
	}
	if (f->t->peer.order && wan_after_pending(f->t, &b->after)) {
		d.wait = true;
		d.after = b->after;
	}
	if (!f->open_acked) {
		d.open = true;
		d.base = f->base;
		d.info = f->info;
		d.info_len = f->info_len;
	}
	wan_sched_tell(f->class, o->tx);
	o->s.flow = f->id;
	o->s.seq = (uint32_t)seq;
	o->s.frag = (uint8_t)frag;
	wan_data_attach(f->t, o, &d, b, off, len, now);
}

void wan_data_put_run(
    struct wan_txflow *f, struct wan_out *o, uint64_t seq, const struct wan_run *r, rwy_time now)
{
	struct wan_tunnel *t = f->t;
	const struct wan_f_data d = {.run = r->n,
	    .first = r->first,
	    .kind = r->b->kind,
	    .pcp = wan_pcp_for(t, r->b),
	    .flow = f->id,
	    .seq = (uint32_t)seq};

	wan_sched_tell(f->class, o->tx);
	o->s.flags |= WAN_S_DATA | WAN_S_WHOLE;
	o->s.flow = f->id;
	o->s.seq = (uint32_t)seq;
	o->s.more = (uint8_t)(r->n - 1);
	wan_data_attach(t, o, &d, r->b, 0, r->b->len, now);
	o->tx->own = true;
	t->c.tx_runs++;
}

/* Data to send again: n buffers from `seq` on, or a fragment of one; `len`: of the buffers. */
struct load {
	uint64_t seq;
	uint32_t n, len;
};

/* Returns the flow of what was sent before, and what of it the peer still needs: from the first
 * buffer that it needs to the last. NULL: nothing. */
static struct wan_txflow *wanted(struct wan_tunnel *t, const struct wan_tx_item *i, struct load *x)
{
	struct wan_txflow *f = wan_tx_find(t, i->flow);

	if (!f || f->aborted)
		return NULL;
	uint64_t seq = wan_expand(f->base, i->seq), end = seq + i->more + 1;
	uint64_t sent = f->next_send + (i->frag < f->next_frag);

	if ((int64_t)(seq - f->base) < 0)
		seq = f->base;
	if ((int64_t)(end - sent) > 0)
		end = sent;
	while ((int64_t)(end - seq) > 0 && wan_tx_has_acked(f, seq, i->frag))
		seq++;
	while ((int64_t)(end - seq) > 0 && wan_tx_has_acked(f, end - 1, i->frag))
		end--;
	if ((int64_t)(end - seq) <= 0)
		return NULL;
	*x = (struct load){.seq = seq, .n = (uint32_t)(end - seq)};
	while (seq < end)
		x->len += f->ring[seq++ & f->mask]->len;
	return f;
}

/* Puts what was sent before into a datagram. False: there is no buffer for a run. */
static bool put_whole(
    struct wan_txflow *f, struct wan_out *o, const struct load *x, uint32_t frag, rwy_time now)
{
	struct wan_run r;

	if (x->n == 1) {
		wan_data_put(f, o, x->seq, frag, now);
		return true;
	}
	if (!wan_run_again(f, &r, x->seq, x->n))
		return false;
	wan_data_put_run(f, o, x->seq, &r, now);
	return true;
}

/* The same. False: only the first packet went in. */
static bool put_again(
    struct wan_txflow *f, struct wan_out *o, const struct load *x, uint32_t frag, rwy_time now)
{
	if (put_whole(f, o, x, frag, now))
		return true;
	wan_data_put(f, o, x->seq, frag, now);
	return false;
}

/* Leaves the first packet of an item, which went alone. Returns the item of the rest. */
static struct wan_tx_item split(struct wan_tx_item *i, const struct load *x)
{
	struct wan_tx_item rest = *i;

	rest.seq = (uint32_t)(x->seq + 1);
	rest.more = (uint8_t)(x->n - 2);
	i->seq = (uint32_t)x->seq;
	i->more = 0;
	return rest;
}

/* --- retransmission --------------------------------------------------------------------------- */
/*
 * On a lossy path a second loss of the same buffer costs another round trip, so it is sent twice, a
 * little apart. There is no copy when a queue stands: then we cause the loss, and copies would add
 * to it. There is no copy while the flow has new data: this is not the tail, and the copy would
 * displace new data. A host that streams always has a little waiting, so the amount does not
 * matter.
 */
static void plan_copy(
    struct wan_tunnel *t, const struct wan_txflow *f, struct wan_out *o, struct wan_tx_item i, rwy_time now)
{
	const struct wan_path *p = o->p;

	if (wan_path_is_stream(p) || wan_loss_ppm(p) <= COPY_LOSS_PPM ||
	    p->srtt > p->min_rtt + p->min_rtt / 4 + 2 * RWY_MS)
		return;
	if (f->next_send < f->end)
		return;
	i.due = now + rwy_time_min(p->srtt / 16, COPY_GAP_MAX);
	if (wan_itemq_push(&t->copies, &i))
		o->s.flags |= WAN_S_COPIED;
}

bool wan_data_again(struct wan_tunnel *t, struct wan_out *o, rwy_time now)
{
	struct wan_tx_item i;

	while (wan_again_pop(&t->again, &i)) {
		struct load x;
		struct wan_txflow *f = wanted(t, &i, &x);

		if (!f)
			continue;
		o->fec = wan_data_wants_fec(
		    o->p, f, f->end - f->next_send, f->ring[x.seq & f->mask]->len, x.len, now);
		if (!put_again(f, o, &x, i.frag, now))
			wan_again_back(&t->again, split(&i, &x));
		o->s.losses = i.losses;
		plan_copy(t, f, o, i, now);
		spend_fec(o->p, o->tx->len);
		t->c.tx_retransmit++;
		t->c.retransmit_moved += i.moved;
		t->c.retransmit_lost += !i.moved;
		return true;
	}
	return false;
}

bool wan_data_copy(struct wan_tunnel *t, struct wan_out *o, rwy_time now)
{
	while (t->copies.n && t->copies.v[t->copies.head].due <= now) {
		struct wan_tx_item i;
		struct load x;

		wan_itemq_pop(&t->copies, &i);
		struct wan_txflow *f = wanted(t, &i, &x);

		if (!f)
			continue;
		if (!put_again(f, o, &x, i.frag, now))
			wan_itemq_back(&t->copies, split(&i, &x));
		o->s.flags |= WAN_S_COPIED;
		o->s.losses = i.losses;
		spend_fec(o->p, o->tx->len);
		t->c.tx_retransmit++;
		t->c.retransmit_copy++;
		return true;
	}
	return false;
}

bool wan_data_detour(struct wan_tunnel *t, struct wan_out *o, rwy_time now)
{
	struct wan_tx_item i;

	while (wan_itemq_pop(&t->detour.q, &i)) {
		struct load x;
		struct wan_txflow *f = wanted(t, &i, &x);

		if (!f)
			continue;
		if (!put_again(f, o, &x, i.frag, now))
			wan_itemq_back(&t->detour.q, split(&i, &x));
		o->s.losses = i.losses;
		wan_detour_on_sent(t, now);
		return true;
	}
	return false;
}

/* Data in a probe saves a round trip if the data was lost, and is a useless copy if only the answer
 * is late. Where answers may be later than a round trip, because processes sleep, the second case
 * is the usual one: there the probe is a PING, and its answer triggers the retransmission. */
bool wan_data_probe(struct wan_tunnel *t, struct wan_path *p, struct wan_out *o, rwy_time now)
{
	if (p->min_rtt && p->min_rtt <= rwy_time_max(wan_rtt_late(p), WAN_GRANULARITY))
		return false;
	if (p->probe_pn < p->tail)
		p->probe_pn = p->tail;
	for (; p->probe_pn < p->next_pn; p->probe_pn++) {
		struct wan_sent *e = &p->sent[p->probe_pn & p->mask];
		struct load x;

		/* Half a bundle would not do, as below. */
		if (e->state != WAN_SENT_INFLIGHT || !(e->flags & WAN_S_DATA) || e->bundled)
			continue;
		const struct wan_tx_item i = {
		    .flow = e->flow, .seq = e->seq, .frag = e->frag, .more = e->more};
		struct wan_txflow *f = wanted(t, &i, &x);

		/* Half a run would not do: the entry says of all of it that it is sent twice. */
		if (!f || !put_whole(f, o, &x, e->frag, now))
			continue;
		o->s.flags |= WAN_S_COPIED;
		o->s.losses = e->losses;
		e->flags |= WAN_S_COPIED;
		t->c.tx_retransmit++;
		t->c.retransmit_probe++;
		p->probe_pn++;
		return true;
	}
	return false;
}
