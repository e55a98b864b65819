/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows that we receive: order per flow, credit, reports of delivery, the end of a flow. A flow's
 * ring is indexed by sequence number. It holds first the sizes of buffers that the engine has and
 * has not delivered, then buffers that wait for an earlier one.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/order.h"

#define PART ((uintptr_t)1) /* the buffer in this place is incomplete */

const struct wan_rx_later wan_rx_later;

/* --- the table -------------------------------------------------------------------------------- */
static bool slots_grow(struct wan_tunnel *t, uint32_t slot)
{
	uint32_t cap = t->rx_cap ? t->rx_cap : 64;
	struct wan_rxslot *v;

	if (slot < t->rx_cap)
		return true;
	while (cap <= slot)
		cap *= 2;
	v = realloc(t->rx, cap * sizeof(*v));
	if (!v)
		return false;
	memset(v + t->rx_cap, 0, (cap - t->rx_cap) * sizeof(*v));
	t->rx = v;
	t->rx_cap = cap;
	return true;
}

static void end_slot(struct wan_tunnel *t, uint32_t id, bool refused)
{
	struct wan_rxslot *s = &t->rx[WAN_SLOT(id)];

	s->f = NULL;
	s->use = (uint16_t)WAN_USE(id);
	s->state = WAN_SLOT_ENDED;
	s->refused = refused;
	s->reset_told = false;
	if (refused)
		wan_ctl_reset(t, id);
	if (t->strangers)
		wan_order_news(t);
}

static void die(struct wan_rxflow *f, bool refused)
{
	struct wan_tunnel *t = f->t;

	for (uint64_t i = 0; i <= f->mask; i++) {
		uintptr_t v = f->ring[(f->next + i) & f->mask];

		if (f->next + i - f->delivered > f->mask || !v)
			continue; /* a size, not a buffer */
		t->rx_waiting--;
		rwy_buf_free(&t->cfg.bufs, (struct rwy_buf *)(v & ~PART));
	}
	t->rx_held -= f->bytes;
	f->bytes = 0;
	f->dead = true;
	t->rx_flows--;
	end_slot(t, f->id, refused);
	wan_order_ended(f);
	f->retired_next = t->rx_retired;
	t->rx_retired = f;
}

void wan_rx_reap(struct wan_tunnel *t)
{
	struct wan_rxflow **at = &t->rx_retired;

	while (*at) {
		struct wan_rxflow *f = *at;

		if (f->dirty || f->rate_dirty) {
			at = &f->retired_next;
			continue;
		}
		*at = f->retired_next;
		wan_rx_flow_free(f);
	}
}

/* NULL: it is refused, or *again: there is no memory. */
static struct wan_rxflow *flow_open(
    struct wan_tunnel *t, const struct wan_f_data *d, bool *again, rwy_time now)
{
	struct wan_rxslot *s = &t->rx[WAN_SLOT(d->flow)];
	struct wan_rxflow *f = wan_rx_flow_new(t);
	const struct wan_rxslot before = *s;

	*again = !f;
	if (!f)
		return NULL;
	f->id = d->flow;
	f->next = f->delivered = f->reported = f->confirmed = d->base;
	s->f = f;
	s->use = (uint16_t)WAN_USE(d->flow);
	s->state = WAN_SLOT_LIVE;
	s->refused = false;
	t->rx_flows++;
	f->order = !d->info_len;
	if (!f->order)
		f->user = t->cfg.ops->rx_open(t->cfg.ctx, f, d->info, d->info_len, now);
	if (f->user == &wan_rx_later && !f->dead) {
		*again = true;
		die(f, false);
		*s = before;
	} else if (!f->order && !f->user && !f->dead) {
		die(f, true);
	}
	if (t->strangers)
		wan_order_news(t);
	return f->dead ? NULL : f;
}

/* Returns the flow of a DATA frame; opens it when the frame has open information. NULL: drop the
 * frame (counted); *again: do not acknowledge it, so that the peer sends it again. */
static struct wan_rxflow *flow_of(struct wan_tunnel *t, const struct wan_f_data *d, bool *again, rwy_time now)
{
	struct wan_rxflow *f = wan_rx_find(t, d->flow);
	uint32_t use = WAN_USE(d->flow);

	*again = false;
	if (f)
		return f;
	if (!slots_grow(t, WAN_SLOT(d->flow))) {
		*again = true;
		return NULL;
	}
	struct wan_rxslot *s = &t->rx[WAN_SLOT(d->flow)];

	if (s->f) {
		/* A flow that should have ended keeps a later one from its slot. Or the datagram
		 * is so old that its use seems to be later: that ends no flow that lives. */
		*again = wan_use_later(use, s->use);
		return NULL;
	}
	if (s->state == WAN_SLOT_ENDED && !wan_use_later(use, s->use)) {
		if (use == s->use && s->refused)
			wan_ctl_reset(t, d->flow);
		return NULL;
	}
	if (!d->open) {
		end_slot(t, d->flow, true);
		return NULL;
	}
	return flow_open(t, d, again, now);
}

/* --- data ------------------------------------------------------------------------------------- */
/* Credit that a buffer of this length takes of ours: at least cfg.rx_cost. */
static uint64_t credit_of(const struct wan_tunnel *t, uint32_t len)
{
	return len > t->cfg.rx_cost ? len : t->cfg.rx_cost;
}

/* Hands b over, whose place is `at`. */
static void take_next(struct wan_rxflow *f, uintptr_t *at, struct rwy_buf *b, rwy_time now)
{
	struct wan_tunnel *t = f->t;

	*at = credit_of(t, b->len);
	t->rx_waiting--;
	b->seq = f->next++;
	b->next = NULL;
	if (f->order) {
		rwy_buf_free(&t->cfg.bufs, b);
		wan_rx_delivered(f, f->next - 1, now);
		return;
	}
	t->c.rx_data++;
	t->cfg.ops->rx_data(t->cfg.ctx, f->user, b, now);
}

/*
 * Hands over the buffers that are in order, up to one that must wait for another flow. The engine
 * may end the flow meanwhile.
 */
static void hand_over(struct wan_rxflow *f, rwy_time now)
{
	while (!f->wait_at && !f->dead && f->next - f->delivered <= f->mask) {
		uintptr_t *at = &f->ring[f->next & f->mask];
		struct rwy_buf *b = (struct rwy_buf *)*at;

		if (!*at || (*at & PART))
			return;
		if (f->order ? !wan_order_follow(f, b)
		             : b->after.flow != RWY_NO_FLOW && wan_order_holds(f, &b->after))
			return;
		take_next(f, at, b, now);
	}
}

void wan_rx_go_on(struct wan_tunnel *t, rwy_time now)
{
	struct wan_rxflow *f;

	while ((f = wan_order_woken(t)))
		hand_over(f, now);
}

/* False: beyond what was advertised. */
static bool hold_bytes(struct wan_rxflow *f, uint32_t len)
{
	struct wan_tunnel *t = f->t;
	uint64_t credit = credit_of(t, len);

	if (t->rx_held + credit > t->bytes_limit) {
		t->c.drop_no_credit++;
		return false;
	}
	t->rx_held += credit;
	f->bytes += credit;
	t->rx_waiting++;
	return true;
}

static enum wan_accept add_fragment(
    struct wan_rxflow *f, uint64_t seq, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now)
{
	struct wan_tunnel *t = f->t;
	uintptr_t *at = &f->ring[seq & f->mask];
	struct rwy_buf *part = (struct rwy_buf *)(*at & ~PART);

	if (!part) {
		part = wan_reasm_new(t, d);
		if (!part) {
			t->c.drop_no_buffer++;
			return WAN_ACCEPT_RETRY;
		}
		part->after.flow = RWY_NO_FLOW;
		if (!hold_bytes(f, d->total)) {
			rwy_buf_free(&t->cfg.bufs, part);
			return WAN_ACCEPT_RETRY;
		}
		*at = (uintptr_t)part | PART;
	}
	if (!(*at & PART) || !wan_reasm_add(part, d, b->data, b->len)) {
		t->c.rx_duplicate++;
		return WAN_ACCEPT;
	}
	if (d->wait)
		part->after = d->after;
	if (wan_reasm_done(part)) {
		*at = (uintptr_t)part;
		hand_over(f, now);
	}
	return WAN_ACCEPT;
}

static enum wan_accept add_whole(
    struct wan_rxflow *f, uint64_t seq, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now)
{
	struct wan_tunnel *t = f->t;

	if (f->ring[seq & f->mask]) {
		t->c.rx_duplicate++;
		rwy_buf_free(&t->cfg.bufs, b);
		return WAN_ACCEPT;
	}
	if (!hold_bytes(f, b->len)) {
		rwy_buf_free(&t->cfg.bufs, b);
		return WAN_ACCEPT_RETRY;
	}
	b->kind = d->kind & 15;
	b->pcp = d->pcp & 15;
	b->after = d->wait ? d->after : (struct rwy_after){RWY_NO_FLOW, 0};
	f->ring[seq & f->mask] = (uintptr_t)b;
	if (seq == f->next)
		hand_over(f, now);
	return WAN_ACCEPT;
}

enum wan_accept wan_rx_data(struct wan_tunnel *t, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now)
{
	bool again;
	struct wan_rxflow *f = flow_of(t, d, &again, now);
	enum wan_accept r = again ? WAN_ACCEPT_RETRY : WAN_ACCEPT;

	if (!f) {
		t->c.drop_unknown_flow++;
		goto drop;
	}
	uint64_t seq = wan_expand(f->next, d->seq);

	if (seq < f->next) {
		t->c.rx_duplicate++;
		goto drop;
	}
	if (seq - f->delivered >= t->window_limit) {
		t->c.drop_no_credit++;
		r = WAN_ACCEPT_RETRY;
		goto drop;
	}
	if (!wan_rx_ring_reach(f, seq)) {
		t->c.drop_no_buffer++;
		r = WAN_ACCEPT_RETRY;
		goto drop;
	}
	if (!d->frag)
		return add_whole(f, seq, d, b, now);
	r = add_fragment(f, seq, d, b, now);
drop:
	rwy_buf_free(&t->cfg.bufs, b);
	return r;
}

/* --- delivery and end of a flow --------------------------------------------------------------- */
void wan_rx_delivered(struct wan_rxflow *f, uint64_t seq, rwy_time now)
{
	uint64_t count = seq + 1;

	wan_stir(f->t);
	if (f->dead || count <= f->delivered)
		return;
	assert(count <= f->next);
	for (uint64_t s = f->delivered; s < count; s++) {
		uintptr_t *at = &f->ring[s & f->mask];

		f->bytes -= *at;
		f->t->rx_held -= *at;
		*at = 0;
	}
	f->delivered = count;
	if (f->waiters)
		wan_order_delivered(f);
	wan_ctl_rx_dirty(f, now);
}

void wan_rx_window(struct wan_rxflow *f, uint64_t bytes, uint64_t drain_Bps)
{
	wan_stir(f->t);
	if (f->dead)
		return;
	f->window = bytes;
	f->drain_Bps = drain_Bps;
	f->rate_no += f->rate_no == UINT32_MAX ? 2 : 1;
	wan_ctl_rate_dirty(f);
}

void wan_rx_reset(struct wan_rxflow *f, rwy_time now)
{
	wan_stir(f->t);
	if (!f->dead)
		die(f, true);
}

bool wan_rx_on_abort(struct wan_tunnel *t, uint32_t id, rwy_time now)
{
	struct wan_rxflow *f = wan_rx_find(t, id);

	if (f) {
		bool tell = !f->order;
		void *user = f->user;

		die(f, false);
		if (tell)
			t->cfg.ops->rx_close(t->cfg.ctx, user, WAN_CLOSE_BY_SENDER, now);
		return true;
	}
	/* The flow is not open yet: the data that opens it may be in flight. */
	if (!slots_grow(t, WAN_SLOT(id)))
		return false;
	struct wan_rxslot *s = &t->rx[WAN_SLOT(id)];

	if (!s->f && (s->state == WAN_SLOT_NEW || wan_use_later(WAN_USE(id), s->use)))
		end_slot(t, id, false);
	return true;
}

void wan_rx_confirmed(struct wan_rxflow *f, uint32_t low)
{
	uint64_t count = wan_expand(f->delivered, low);

	if (count > f->confirmed && count <= f->delivered)
		f->confirmed = count;
}

void wan_rx_end_all(struct wan_tunnel *t, enum wan_close_reason why, rwy_time now)
{
	for (uint32_t i = 0; i < t->rx_cap; i++) {
		struct wan_rxflow *f = t->rx[i].f;

		if (f) {
			bool tell = !f->order;
			void *user = f->user;

			die(f, false);
			if (tell)
				t->cfg.ops->rx_close(t->cfg.ctx, user, why, now);
		}
		t->rx[i] = (struct wan_rxslot){0};
	}
	t->resets_n = 0;
	t->resets_left = false;
}
