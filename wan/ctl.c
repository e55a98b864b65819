/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames about flows: DELIVERED, ABORT, RESET, RATE and CREDIT. A flow with something to
 * report waits on a list. A log notes what each datagram reported, so that its loss puts the flows
 * back on their lists. Then the newest state is reported, not the lost bytes.
 */
#include "wan/tunnel.h"

static uint32_t room(const struct wan_out *o)
{
	return o->limit - (uint32_t)(o->at - o->tx->hdr);
}

static void note(struct wan_tunnel *t, struct wan_out *o, enum wan_log_kind kind, uint32_t id, uint32_t count)
{
	if (!o->s.log_n)
		o->s.log = t->log_at;
	t->log[t->log_at++ & t->log_mask] = (struct wan_log){.id = id, .count = count, .kind = (uint8_t)kind};
	o->s.log_n++;
	o->eliciting = true;
}

rwy_time wan_ctl_next(const struct wan_tunnel *t)
{
	const rwy_time at = t->dirty_head ? t->dirty_at : RWY_NEVER;

	if (t->ctl_head || t->resets_n || t->credit_dirty || t->rate_head)
		return 0;
	return t->resets_left ? rwy_time_min(at, t->resets_at) : at;
}

/* --- out -------------------------------------------------------------------------------------- */
static void put_delivered(struct wan_tunnel *t, struct wan_out *o)
{
	uint8_t *count = o->at + 1;
	unsigned n = 0;

	if (!t->dirty_head || room(o) < WAN_DELIVERED_HEAD + WAN_DELIVERED_ENTRY)
		return;
	o->at[0] = WAN_F_DELIVERED;
	o->at += WAN_DELIVERED_HEAD;
	while (t->dirty_head && room(o) >= WAN_DELIVERED_ENTRY && o->s.log_n < UINT8_MAX) {
		struct wan_rxflow *f = t->dirty_head;

		t->dirty_head = f->dirty_next;
		if (!t->dirty_head)
			t->dirty_tail = NULL;
		t->dirty_n--;
		f->dirty = false;
		if (f->dead)
			continue;
		f->reported = f->delivered;
		rwy_put32(o->at, f->id);
		rwy_put32(o->at + 4, (uint32_t)f->delivered);
		o->at += WAN_DELIVERED_ENTRY;
		note(t, o, WAN_LOG_DELIVERED, f->id, (uint32_t)f->delivered);
		n++;
	}
	*count = (uint8_t)n;
	if (!n)
		o->at -= WAN_DELIVERED_HEAD;
}

static void put_tx_ctl(struct wan_tunnel *t, struct wan_out *o)
{
	while (t->ctl_head && room(o) >= WAN_ABORT_LEN && o->s.log_n < UINT8_MAX) {
		struct wan_txflow *f = t->ctl_head;

		t->ctl_head = f->ctl_next;
		if (!t->ctl_head)
			t->ctl_tail = NULL;
		f->ctl_dirty = false;
		if (f->dead)
			continue;
		rwy_put32(o->at + 1, f->id);
		o->at[0] = WAN_F_ABORT;
		o->at += WAN_ABORT_LEN;
		note(t, o, WAN_LOG_ABORT, f->id, 0);
	}
}

static void put_resets(struct wan_tunnel *t, struct wan_out *o)
{
	if (!t->resets_n && t->resets_left && t->polled >= t->resets_at)
		wan_ctl_resets_find(t);
	while (t->resets_n && room(o) >= WAN_RESET_LEN && o->s.log_n < UINT8_MAX) {
		uint32_t id = t->resets[--t->resets_n];

		t->rx[WAN_SLOT(id)].reset_due = false;
		o->at[0] = WAN_F_RESET;
		rwy_put32(o->at + 1, id);
		o->at += WAN_RESET_LEN;
		note(t, o, WAN_LOG_RESET, id, 0);
	}
}

static void put_credit(struct wan_tunnel *t, struct wan_out *o)
{
	if (!t->credit_dirty || room(o) < WAN_CREDIT_LEN)
		return;
	t->credit_dirty = false;
	o->at[0] = WAN_F_CREDIT;
	rwy_put32(o->at + 1, t->cfg.rx_window);
	rwy_put64(o->at + 5, t->cfg.rx_bytes);
	o->at += WAN_CREDIT_LEN;
	note(t, o, WAN_LOG_CREDIT, 0, t->credit_no);
}

static void put_rate(struct wan_tunnel *t, struct wan_out *o)
{
	uint8_t *count = o->at + 1;
	unsigned n = 0;

	if (!t->rate_head || room(o) < WAN_RATE_HEAD + WAN_RATE_ENTRY)
		return;
	o->at[0] = WAN_F_RATE;
	o->at += WAN_RATE_HEAD;
	while (t->rate_head && room(o) >= WAN_RATE_ENTRY && o->s.log_n < UINT8_MAX) {
		struct wan_rxflow *f = t->rate_head;

		t->rate_head = f->rate_next;
		f->rate_dirty = false;
		if (f->dead)
			continue;
		f->rate_known = false;
		rwy_put32(o->at, f->id);
		rwy_put64(o->at + 4, f->window);
		rwy_put64(o->at + 12, f->drain_Bps);
		o->at += WAN_RATE_ENTRY;
		note(t, o, WAN_LOG_RATE, f->id, f->rate_no);
		n++;
	}
	*count = (uint8_t)n;
	if (!n)
		o->at -= WAN_RATE_HEAD;
}

void wan_ctl_put(struct wan_tunnel *t, struct wan_out *o)
{
	put_credit(t, o);
	put_rate(t, o);
	put_resets(t, o);
	put_tx_ctl(t, o);
	put_delivered(t, o);
}

/* --- acknowledged or lost --------------------------------------------------------------------- */
static bool lapped(const struct wan_tunnel *t, const struct wan_sent *s)
{
	return t->log_at - s->log > t->log_mask + 1;
}

/*
 * When an earlier RATE is acknowledged after the last one was sent, it may have come behind that
 * one, which is sent again: once, when it is acknowledged, too. A window that changes all the time
 * is else told again and again.
 */
static void on_rate_acked(struct wan_rxflow *f, bool last)
{
	bool again = last ? f->rate_doubt : f->rate_known;

	if (last)
		f->rate_known = true;
	f->rate_doubt = !last && !again;
	if (again)
		wan_ctl_rate_dirty(f);
}

void wan_ctl_on_acked(struct wan_tunnel *t, const struct wan_sent *s)
{
	if (lapped(t, s)) {
		t->rescan = true;
		return;
	}
	for (unsigned i = 0; i < s->log_n; i++) {
		const struct wan_log *l = &t->log[(s->log + i) & t->log_mask];
		struct wan_rxflow *r;
		struct wan_txflow *f;

		switch ((enum wan_log_kind)l->kind) {
		case WAN_LOG_DELIVERED:
			r = wan_rx_find(t, l->id);
			if (r)
				wan_rx_confirmed(r, l->count);
			break;
		case WAN_LOG_ABORT:
			f = wan_tx_find(t, l->id);
			if (f)
				wan_tx_on_abort_acked(f);
			break;
		case WAN_LOG_RATE:
			r = wan_rx_find(t, l->id);
			if (r)
				on_rate_acked(r, r->rate_no == l->count);
			break;
		case WAN_LOG_RESET:
			if (WAN_SLOT(l->id) < t->rx_cap && t->rx[WAN_SLOT(l->id)].use == WAN_USE(l->id))
				t->rx[WAN_SLOT(l->id)].reset_told = true;
			break;
		case WAN_LOG_CREDIT:
			/* an earlier one may have come behind the newest, which is sent again */
			t->credit_dirty |= l->count != t->credit_no;
			break;
		}
	}
}

static void entry_lost(struct wan_tunnel *t, const struct wan_log *l, rwy_time now)
{
	struct wan_rxflow *r;
	struct wan_txflow *f;
	struct wan_rxslot *slot;

	switch ((enum wan_log_kind)l->kind) {
	case WAN_LOG_DELIVERED:
		r = wan_rx_find(t, l->id);
		if (r && (uint32_t)r->reported == l->count && r->confirmed != r->reported)
			wan_ctl_rx_dirty(r, now);
		return;
	case WAN_LOG_ABORT:
		f = wan_tx_find(t, l->id);
		if (f && f->aborted)
			wan_ctl_tx_dirty(f);
		return;
	case WAN_LOG_RESET:
		slot = WAN_SLOT(l->id) < t->rx_cap ? &t->rx[WAN_SLOT(l->id)] : NULL;
		if (slot && slot->refused && slot->use == WAN_USE(l->id))
			wan_ctl_reset(t, l->id);
		return;
	case WAN_LOG_CREDIT:
		t->credit_dirty = true;
		return;
	case WAN_LOG_RATE:
		r = wan_rx_find(t, l->id);
		if (r && r->rate_no == l->count)
			wan_ctl_rate_dirty(r);
		return;
	}
	rwy_unreachable();
}

void wan_ctl_on_lost(struct wan_tunnel *t, const struct wan_sent *s, rwy_time now)
{
	if (lapped(t, s)) {
		t->rescan = true;
		return;
	}
	for (unsigned i = 0; i < s->log_n; i++)
		entry_lost(t, &t->log[(s->log + i) & t->log_mask], now);
}

/* The log was too short for the datagrams in flight: reports everything again that the peer may not
 * know. */
void wan_ctl_rescan(struct wan_tunnel *t, rwy_time now)
{
	t->rescan = false;
	t->credit_dirty = true;
	wan_ctl_resets_begin(t);
	for (uint32_t i = 0; i < t->rx_cap; i++) {
		struct wan_rxflow *f = t->rx[i].f;

		if (f && f->confirmed != f->delivered)
			wan_ctl_rx_dirty(f, now);
		if (f && f->rate_no)
			wan_ctl_rate_dirty(f);
	}
	for (uint32_t i = 0; i < t->tx_cap; i++) {
		struct wan_txflow *f = t->tx[i].f;

		if (f && f->aborted)
			wan_ctl_tx_dirty(f);
	}
}
