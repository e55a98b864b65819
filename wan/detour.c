/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retransmission detour: what the native path has lost several times goes by the reliable carrier,
 * while new data and first repeats stay native. stream.h has the contract; send.c and data.c write
 * the datagrams, stream_rate.c hears the answers.
 *
 * The carrier has to prove that it is worth it: it is asked by a PING, and data goes by it only
 * while its answers come within a few probe timeouts of the native path. What is not acknowledged
 * in that time goes natively again, and the carrier is asked anew.
 */
#include "wan/tunnel.h"

#define ASK_EVERY RWY_SEC
#define CALM      RWY_SEC /* a detour this long after the one before begins anew */
#define LATER     RWY_MS  /* when memory was short */

static void ask(struct wan_tunnel *t, rwy_time at)
{
	t->detour.proven = false;
	t->detour.ask_at = at;
}

int wan_stream_detour(struct wan_tunnel *t, unsigned after, rwy_time now)
{
	struct wan_path *p = wan_stream_path(t);
	struct wan_detour *d = &t->detour;

	wan_stir(t);
	if (after > WAN_DETOUR_AFTER_MAX)
		return RWY_EINVAL;
	if (after && !p->sent && wan_path_map_new(p) < 0)
		return RWY_ENOMEM;
	d->used = true;
	if (!after != !d->after) {
		wan_detour_restart(t, now);
		if (!t->st.on)
			t->st.room = 0;
	}
	d->after = (uint8_t)after;
	return 0;
}

unsigned wan_stream_detours(const struct wan_tunnel *t)
{
	return t->detour.after;
}

void wan_detour_restart(struct wan_tunnel *t, rwy_time now)
{
	t->detour.since = now;
	ask(t, now);
}

void wan_detour_on_sent(struct wan_tunnel *t, rwy_time now)
{
	struct wan_detour *d = &t->detour;

	t->c.tx_retransmit++;
	t->c.retransmit_detour++;
	t->c.detours += !d->last || rwy_since(d->last, now) > CALM;
	d->last = now;
}

bool wan_detour_leave(struct wan_tunnel *t, rwy_time now)
{
	struct wan_tx_item i;

	while (wan_itemq_pop(&t->detour.q, &i)) {
		struct wan_txflow *f = wan_tx_find(t, i.flow);

		if (f && !wan_again_push(&t->again, f->class->id, &i)) {
			wan_itemq_back(&t->detour.q, i);
			t->detour.not_before = now + LATER;
			return false;
		}
		t->c.detour_no_room += f != NULL;
	}
	return true;
}

/* When the oldest datagram that took the detour is late; RWY_NEVER: none is under way. Datagrams
 * from when all went by the carrier are older, and have the time of stream.c. */
static rwy_time late_at(const struct wan_tunnel *t)
{
	const struct wan_path *p = wan_stream_path(t);
	const struct wan_sent *e;

	if (t->st.on || !p->inflight_n)
		return RWY_NEVER;
	e = &p->sent[p->tail & p->mask];
	if (e->sent < t->detour.since)
		return RWY_NEVER;
	return rwy_time_max(e->sent + wan_detour_patience(t), t->detour.not_before);
}

static void take_late(struct wan_tunnel *t, rwy_time now)
{
	uint32_t before = t->again.n;
	struct wan_lost l = {0};

	if (!wan_loss_take_back(wan_stream_path(t), now - wan_detour_patience(t) + 1, &l, now))
		t->detour.not_before = now + LATER;
	t->c.lost -= l.n;
	t->c.detour_late += l.n;
	/* If the data arrived, only an acknowledgement was lost. */
	if (t->again.n != before && t->detour.proven)
		ask(t, now);
}

void wan_detour_tick(struct wan_tunnel *t, rwy_time now)
{
	struct wan_detour *d = &t->detour;

	if (now >= late_at(t))
		take_late(t, now);
	if (t->st.on || !d->after || d->proven || now < d->ask_at)
		return;
	wan_stream_path(t)->ping = true;
	d->ask_at = now + ASK_EVERY;
}

rwy_time wan_detour_next(const struct wan_tunnel *t)
{
	const struct wan_detour *d = &t->detour;
	rwy_time next = late_at(t);

	return d->after && !d->proven && !t->st.on ? rwy_time_min(next, d->ask_at) : next;
}
