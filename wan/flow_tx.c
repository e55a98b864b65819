/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows that we send: custody, what the peer has, the end of a flow. A flow's buffers are in a ring
 * indexed by sequence number; a buffer stays there until the peer's engine delivered it.
 * data_new.c and data.c decide what is sent next.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wan/order.h"

#define FETCH_AHEAD 6 /* buffers prefetched while delivered ones are freed */

static bool muted(const struct wan_txflow *f)
{
	return f->aborted || f->order;
}

static void activate(struct wan_txflow *f)
{
	if (!wan_tx_sendable(f))
		return;
	if (!f->active)
		wan_sched_add(&f->t->sched, f);
	if (!f->bulk)
		wan_sched_ahead_add(&f->t->sched, f);
}

void wan_tx_bulk(struct wan_txflow *f)
{
	wan_stir(f->t);
	f->bulk = true;
	wan_sched_ahead_remove(&f->t->sched, f);
}

/* --- open and free ---------------------------------------------------------------------------- */
static bool slots_grow(struct wan_tunnel *t)
{
	uint32_t cap = t->tx_cap ? t->tx_cap * 2 : 64;
	struct wan_txslot *v;

	if (cap > WAN_SLOTS_MAX)
		return false;
	v = realloc(t->tx, cap * sizeof(*v));
	if (!v)
		return false;
	for (uint32_t i = cap; i-- > t->tx_cap;) {
		v[i] = (struct wan_txslot){.next_free = t->tx_free};
		t->tx_free = i + 1;
	}
	t->tx = v;
	t->tx_cap = cap;
	return true;
}

int wan_tx_open(
    struct wan_tunnel *t, struct wan_txflow **out, const uint8_t *info, size_t len, void *user, rwy_time now)
{
	struct wan_txflow *f;

	wan_stir(t);
	if (len > WAN_OPEN_MAX)
		return RWY_EINVAL;
	if (!t->tx_free && !slots_grow(t))
		return RWY_ENOMEM;
	f = wan_tx_flow_new(t);
	if (!f)
		return RWY_ENOMEM;
	if (!wan_tx_ring_room(f) || (len && !wan_tx_info_room(f))) {
		wan_tx_flow_free(f);
		return RWY_ENOMEM;
	}
	struct wan_txslot *s = &t->tx[t->tx_free - 1];

	f->id = (t->tx_free - 1) | (uint32_t)s->use << WAN_SLOT_BITS;
	t->tx_free = s->next_free;
	s->f = f;
	f->class = &t->sched.first;
	f->sent_after.flow = RWY_NO_FLOW;
	f->user = user;
	f->info_len = (uint8_t)len;
	if (len)
		memcpy(f->info, info, len);
	t->tx_flows++;
	*out = f;
	return 0;
}

/*
 * Removes the flow from the table: its id becomes invalid. The memory is freed when no list holds
 * it. known: the peer may have heard of this id, and gets another one of the slot's next flow. Else
 * the ids would run away from what the peer knows, and seem to be old ones (wan_use_later).
 */
static void forget(struct wan_txflow *f, bool known)
{
	struct wan_tunnel *t = f->t;
	struct wan_txslot *s = &t->tx[WAN_SLOT(f->id)];

	f->dead = true;
	wan_sched_ahead_remove(&t->sched, f);
	s->f = NULL;
	s->use = (s->use + known) & WAN_USE_MASK;
	s->next_free = t->tx_free;
	t->tx_free = WAN_SLOT(f->id) + 1;
	t->tx_flows--;
	f->retired_next = t->tx_retired;
	t->tx_retired = f;
}

static void die(struct wan_txflow *f)
{
	forget(f, true);
}

static bool was_sent(const struct wan_txflow *f, uint64_t seq)
{
	return seq < f->next_send || (seq == f->next_send && f->next_frag);
}

static void custody_free(struct wan_txflow *f)
{
	struct wan_tunnel *t = f->t;

	if (f->order)
		t->order_bufs -= wan_tx_queued(f);
	for (; f->base < f->end; f->base++) {
		struct rwy_buf *b = f->ring[f->base & f->mask];

		if (was_sent(f, f->base)) {
			t->tx_out -= wan_tx_credit(t, b);
			t->tx_sent -= b->len;
			f->out -= b->len;
		}
		t->tx_bytes -= b->len;
		f->bytes -= b->len;
		rwy_buf_free(&t->cfg.bufs, b);
	}
	f->next_send = f->acked = f->acked_end = f->base;
	f->next_frag = 0;
	t->room_made = true;
}

void wan_tx_reap(struct wan_tunnel *t)
{
	struct wan_txflow **at = &t->tx_retired;

	while (*at) {
		struct wan_txflow *f = *at;

		if (f->active || f->ctl_dirty) {
			/* still on the list: the list's next pass removes it */
			at = &f->retired_next;
			continue;
		}
		*at = f->retired_next;
		wan_tx_flow_free(f);
	}
}

/* --- calls of the engine ---------------------------------------------------------------------- */
/* Called before a buffer is added: a flow that was idle begins a new run. */
static void note_run(struct wan_txflow *f)
{
	if (f->next_send == f->end && (f->base == f->end || f->ends)) {
		f->run = 0;
		f->peak = 0;
	}
	if (f->end + 1 - f->next_send > f->peak)
		f->peak = (uint32_t)(f->end + 1 - f->next_send);
}

bool wan_tx_reserve(struct wan_txflow *f)
{
	return !f->broken && wan_tx_ring_room(f);
}

void wan_tx_send(struct wan_txflow *f, struct rwy_buf *b, rwy_time now)
{
	wan_tx_send_after(f, b, &(struct rwy_after){RWY_NO_FLOW, 0}, now);
}

void wan_tx_send_after(struct wan_txflow *f, struct rwy_buf *b, const struct rwy_after *after, rwy_time now)
{
	struct wan_tunnel *t = f->t;

	wan_stir(f->t);
	assert(b->len > 0 && b->len <= UINT16_MAX);
	if (f->aborted || !wan_tx_reserve(f)) {
		f->broken = t->broken = true;
		rwy_buf_free(&t->cfg.bufs, b);
		return;
	}
	note_run(f);
	t->ordered |= after->flow != RWY_NO_FLOW;
	b->after = *after;
	b->seq = f->end;
	b->stamp = now;
	b->w0 = b->w1 = 0;
	b->w2 = 0;
	f->ring[f->end & f->mask] = b;
	f->end++;
	f->ends = wan_fec_message_ends(b);
	f->bytes += b->len;
	t->tx_bytes += b->len;
	activate(f);
}

/* The peer may have it open. Only once: without custody it would seem not to. */
static void end_at_peer(struct wan_txflow *f)
{
	bool peer_knows = f->open_acked || f->next_send > f->base || f->next_frag || f->named;

	wan_stir(f->t);
	custody_free(f);
	f->aborted = true;
	if (peer_knows)
		wan_ctl_tx_dirty(f);
	else
		forget(f, false);
}

void wan_tx_abort(struct wan_txflow *f, rwy_time now)
{
	if (!f->aborted)
		end_at_peer(f);
}

/* --- reports of the peer ---------------------------------------------------------------------- */
static bool all_fragments(const struct rwy_buf *b)
{
	uint32_t n = WAN_W2_FRAGS(b->w2);

	return n && b->w0 == (n == 32 ? UINT32_MAX : (1u << n) - 1);
}

static void mark_acked(struct wan_txflow *f, uint64_t seq, uint64_t end, uint8_t frag)
{
	for (; seq < end; seq++)
		f->ring[seq & f->mask]->w0 |= 1u << frag;
}

void wan_tx_on_acked(struct wan_tunnel *t, const struct wan_sent *s, rwy_time now)
{
	struct wan_txflow *f = wan_tx_find(t, s->flow);

	if (!f || f->aborted)
		return;
	f->open_acked = true;
	uint64_t seq, end;

	if (!wan_tx_in_custody(f, s, &seq, &end))
		return;
	const uint64_t before = f->acked;

	if (end <= before)
		return;
	if (end > f->acked_end)
		f->acked_end = end;
	if (seq > before || !(s->flags & WAN_S_WHOLE))
		mark_acked(f, seq, end, s->frag);
	else
		f->acked = end; /* in order: no buffer is read */
	assert(f->acked <= f->next_send);
	if (seq > before)
		return;
	while (f->acked < f->acked_end && all_fragments(f->ring[f->acked & f->mask]))
		f->acked++;
	if (f->acked > before && !muted(f) && t->cfg.ops->tx_acked)
		t->cfg.ops->tx_acked(t->cfg.ctx, f->user, f->ring[(f->acked - 1) & f->mask], now);
}

static void deliver_first(struct wan_txflow *f, rwy_time now)
{
	struct wan_tunnel *t = f->t;
	struct rwy_buf *b = f->ring[f->base & f->mask];

	f->base++;
	f->bytes -= b->len;
	t->tx_bytes -= b->len;
	t->tx_out -= wan_tx_credit(t, b);
	t->tx_sent -= b->len;
	f->out -= b->len;
	if (f->order)
		t->order_bufs--;
	if (!muted(f) && t->cfg.ops->tx_delivered)
		t->cfg.ops->tx_delivered(t->cfg.ctx, f->user, b, now);
	rwy_buf_free(&t->cfg.bufs, b);
}

void wan_tx_on_rate(struct wan_tunnel *t, uint32_t id, uint64_t window, uint64_t drain_Bps)
{
	struct wan_txflow *f = wan_tx_find(t, id);

	if (!f || f->aborted)
		return;
	f->window = window;
	f->drain_Bps = drain_Bps;
	activate(f);
}

/* The first `count` buffers of the flow are delivered; they were all sent. */
static void deliver_to(struct wan_txflow *f, uint64_t count, rwy_time now)
{
	struct wan_tunnel *t = f->t;

	if (f->acked < count) {
		f->acked = count;
		if (!muted(f) && t->cfg.ops->tx_acked)
			t->cfg.ops->tx_acked(t->cfg.ctx, f->user, f->ring[(count - 1) & f->mask], now);
	}
	while (f->base < count && !f->dead && !f->aborted) {
		if (f->base + FETCH_AHEAD < count)
			rwy_buf_fetch(f->ring[(f->base + FETCH_AHEAD) & f->mask]);
		deliver_first(f, now);
	}
	t->room_made = true;
	activate(f);
}

bool wan_tx_on_delivered(struct wan_tunnel *t, uint32_t id, uint32_t low, rwy_time now)
{
	struct wan_txflow *f = wan_tx_find(t, id);

	if (!f || f->aborted)
		return true;
	uint64_t count = wan_expand(f->base, low);

	if ((int64_t)(count - f->base) <= 0)
		return true; /* known already */
	if (count > f->next_send)
		return false;
	f->open_acked = true;
	deliver_to(f, count, now);
	return true;
}

void wan_tx_on_abort_acked(struct wan_txflow *f)
{
	if (f->aborted)
		die(f);
}

void wan_tx_on_reset(struct wan_tunnel *t, uint32_t id, rwy_time now)
{
	struct wan_txflow *f = wan_tx_find(t, id);

	if (!f)
		return;
	bool tell = !muted(f);

	f->aborted = true; /* later calls of the engine have no effect */
	if (tell && t->cfg.ops->tx_reset)
		t->cfg.ops->tx_reset(t->cfg.ctx, f->user, now);
	custody_free(f);
	if (!f->dead)
		die(f);
}

void wan_tx_broken(struct wan_tunnel *t, rwy_time now)
{
	const struct wan_ops *ops = t->cfg.ops;
	void (*told)(void *ctx, void *user, rwy_time now) = ops->tx_broken ? ops->tx_broken : ops->tx_reset;

	t->broken = false;
	for (uint32_t i = 0; i < t->tx_cap; i++) {
		struct wan_txflow *f = t->tx[i].f;

		if (!f || !f->broken)
			continue;
		f->broken = false;
		if (f->aborted) /* by the engine, after its memory was short */
			continue;
		const bool tell = !muted(f);

		f->aborted = true;
		if (tell && told)
			told(t->cfg.ctx, f->user, now);
		end_at_peer(f);
	}
}

/* --- sessions --------------------------------------------------------------------------------- */
void wan_tx_wake_all(struct wan_tunnel *t)
{
	for (uint32_t i = 0; i < t->tx_cap; i++)
		if (t->tx[i].f)
			activate(t->tx[i].f);
}

static void rewind_flow(struct wan_txflow *f)
{
	for (uint64_t s = f->base; s < f->end; s++) {
		struct rwy_buf *b = f->ring[s & f->mask];

		b->w0 = b->w1 = 0;
		b->w2 = 0;
	}
	f->next_send = f->acked = f->acked_end = f->base;
	f->next_frag = 0;
	f->out = f->window = f->drain_Bps = 0;
	f->sent_after.flow = RWY_NO_FLOW;
	f->open_acked = false;
}

/* What the engine knows to be executed is not sent again; DELIVERED was lost with the peer. */
static void deliver_executed(struct wan_txflow *f, rwy_time now)
{
	struct wan_tunnel *t = f->t;
	uint32_t n = !muted(f) && t->cfg.ops->tx_executed ? t->cfg.ops->tx_executed(t->cfg.ctx, f->user) : 0;

	if (n && f->base + n <= f->next_send)
		deliver_to(f, f->base + n, now);
}

/* After a restart of the peer. Without memory it is tried again at each tick. */
static void open_again(struct wan_txflow *f, rwy_time now)
{
	struct wan_tunnel *t = f->t;

	if (!muted(f) && t->cfg.ops->tx_reopen) {
		f->unnamed = !wan_tx_info_room(f);
		t->unnamed |= f->unnamed;
		if (f->unnamed)
			return;
		size_t n = t->cfg.ops->tx_reopen(t->cfg.ctx, f->user, f->info, now);

		f->info_len = (uint8_t)(n <= WAN_OPEN_MAX ? n : WAN_OPEN_MAX);
	}
	if (!f->dead)
		activate(f);
}

void wan_tx_name(struct wan_tunnel *t, rwy_time now)
{
	t->unnamed = false;
	for (uint32_t i = 0; i < t->tx_cap; i++) {
		struct wan_txflow *f = t->tx[i].f;

		if (f && f->unnamed && !f->aborted)
			open_again(f, now);
	}
}

/* The peer has a new epoch and knows none of our flows: everything undelivered is sent again, with
 * new open information. */
void wan_tx_restart(struct wan_tunnel *t, rwy_time now)
{
	wan_again_clear(&t->again);
	t->copies.n = t->detour.q.n = 0;
	for (uint32_t i = 0; i < t->tx_cap; i++)
		if (t->tx[i].f)
			deliver_executed(t->tx[i].f, now);
	t->tx_out = t->tx_sent = 0;
	for (uint32_t i = 0; i < t->tx_cap; i++)
		if (t->tx[i].f)
			rewind_flow(t->tx[i].f);
	for (uint32_t i = 0; i < t->tx_cap; i++)
		if (t->tx[i].f && t->tx[i].f->order)
			wan_after_restart(t->tx[i].f);
	for (uint32_t i = 0; i < t->tx_cap; i++) {
		struct wan_txflow *f = t->tx[i].f;

		if (!f)
			continue;
		if (f->aborted) {
			die(f);
			continue;
		}
		open_again(f, now);
	}
}

void wan_tx_free_all(struct wan_tunnel *t)
{
	for (uint32_t i = 0; i < t->tx_cap; i++) {
		struct wan_txflow *f = t->tx[i].f;

		if (!f)
			continue;
		custody_free(f);
		die(f);
	}
	for (struct wan_txflow *f = t->tx_retired; f; f = f->retired_next)
		f->active = f->ctl_dirty = false;
	wan_tx_reap(t);
	rwy_slab_fini(&t->tx_slab);
	rwy_slab_fini(&t->ring_slab);
	free(t->tx);
	wan_again_fini(&t->again);
	free(t->copies.v);
	free(t->detour.q.v);
}
