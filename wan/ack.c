/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's side of acknowledgement: packet numbers received, when an ACK must go, what it
 * reports. One ACK covers a batch: it is sent after 64 datagrams or an eighth of a round trip (at
 * most max_ack_delay), at once when a gap appears, and again soon after the gap, so that the peer
 * can tell a loss from two swapped datagrams.
 *
 * A path that reorders has more gaps than one ACK frame can name, and late arrivals lie below them.
 * Then further frames follow, each beginning where the one before ended, down to the lowest number
 * that came late during the last few ACKs.
 */
#include "wan/tunnel.h"

#define ACK_EVERY     64u
#define ACK_AFTER_GAP 4u     /* the peer's packet threshold is 3 */
#define FIRST_DELAY   RWY_MS /* delay before there is an RTT */
#define LATE_PART     4u     /* when one of this many came late, a new gap is nothing special */
#define FRAMES_MOST   4u     /* frames of an ACK when few come late: then gaps are losses */
/* ACK-only datagrams before one asks for an ACK itself, so that old ranges can be dropped */
#define ELICIT_EVERY 32u

static rwy_dur ack_delay(const struct wan_path *p)
{
	rwy_dur max = p->t->cfg.max_ack_delay;

	return rwy_time_min(wan_path_has_rtt(p) ? p->srtt / 8 : FIRST_DELAY, max);
}

static bool is_gap(const struct wan_path *p, uint64_t pn)
{
	return wan_path_received(p) && pn != p->seen.r[p->seen.end - 1].hi + 1;
}

void wan_ack_on_received(struct wan_path *p, uint64_t pn, bool eliciting, rwy_time now)
{
	bool gap = !wan_path_is_stream(p) && is_gap(p, pn);
	bool newest = !wan_path_received(p) || pn > p->seen.r[p->seen.end - 1].hi;

	if (!wan_ranges_add(&p->seen, pn))
		return;
	if (newest)
		p->largest_at = now;
	if (pn < p->ack_floor)
		p->ack_floor = pn;
	if (pn < p->ack_low)
		p->ack_low = pn;
	if (!eliciting)
		return;
	if (!newest) {
		p->unacked_late++;
		if (pn < p->ack_late[p->ack_round])
			p->ack_late[p->ack_round] = pn;
	}
	if (p->unacked++ == 0) {
		p->ack_at = now + ack_delay(p);
		if (!p->ack_after)
			p->ack_after = ACK_EVERY;
	}
	/* Under heavy reordering every datagram makes a gap: then at most sixteen ACKs a round trip
	 * are sent for gaps. */
	if (gap && ((p->unacked >= ACK_AFTER_GAP && !p->ack_reorders) ||
	               rwy_since(p->last_ack, now) >= p->srtt / 16)) {
		p->ack_at = now;
		p->ack_after = newest ? ACK_AFTER_GAP : ACK_EVERY;
	} else if (p->unacked >= p->ack_after) {
		p->ack_at = now;
		p->ack_after = ACK_EVERY;
	}
}

bool wan_ack_due(const struct wan_path *p, rwy_time now)
{
	return now >= p->ack_at;
}

/* Fills in as many ranges as a frame holds, from the newest range below `below` downwards. */
static void fill(struct wan_path *p, struct wan_f_ack *a, uint64_t below, rwy_time now)
{
	const struct wan_ranges *s = &p->seen;
	rwy_dur delay = rwy_since(p->largest_at, now) / RWY_US;
	uint32_t i = below == UINT64_MAX ? s->end : wan_ranges_find(s, below);

	a->path = p->id;
	a->n = 0;
	a->delay_us = delay < UINT32_MAX ? (uint32_t)delay : UINT32_MAX;
	a->at_us = (uint32_t)(p->largest_at / RWY_US);
	a->has_ecn = p->ect0 || p->ect1 || p->ce;
	a->ect0 = p->ect0;
	a->ect1 = p->ect1;
	a->ce = p->ce;
	for (; i > s->first && a->n < WAN_ACK_RANGES_MAX; i--) {
		if (a->n && s->r[i - 1].hi < p->ack_floor)
			break;
		a->r[a->n++] = s->r[i - 1];
	}
}

static uint64_t lowest_late(const struct wan_path *p)
{
	uint64_t low = p->ack_late[0];

	for (unsigned i = 1; i < WAN_ACK_LATE; i++)
		if (p->ack_late[i] < low)
			low = p->ack_late[i];
	return low;
}

/* When a datagram came late and lies below the reported ranges, the next frame is due at once. */
static void plan_next_frame(struct wan_path *p, const struct wan_f_ack *a, unsigned n)
{
	uint64_t below = a->r[n - 1].lo;

	if (below > lowest_late(p) && (p->ack_reorders || p->ack_frames < FRAMES_MOST)) {
		p->ack_below = below;
		return;
	}
	p->ack_below = 0;
	p->ack_round = (p->ack_round + 1) % WAN_ACK_LATE;
	p->ack_late[p->ack_round] = UINT64_MAX;
}

/* Begins a mark: the floor may rise to the lowest number received since this ACK was sent, once the
 * peer has this ACK or a later one. */
static void floor_mark(struct wan_path *p)
{
	if (p->ack_mark)
		return;
	p->ack_mark = p->next_pn + 1;
	p->ack_low = UINT64_MAX;
}

bool wan_ack_put(struct wan_path *p, struct wan_out *o, rwy_time now)
{
	struct wan_f_ack a;
	uint32_t room = o->limit - (uint32_t)(o->at - o->tx->hdr);
	bool first = !p->ack_below;
	uint8_t *frame;

	if (p->ack_at == RWY_NEVER || room < WAN_ACK_MIN + 24)
		return false;
	/* REBUILT goes before the ACK that names the same numbers; else the peer takes them for
	 * late arrivals. */
	if (p->fec.reports || (first && p->fec.told_n)) {
		o->at = wan_fec_put_rebuilt(&p->fec, o->at, o->tx->hdr + o->limit, first);
		if (p->fec.reports)
			return false;
		room = o->limit - (uint32_t)(o->at - o->tx->hdr);
		if (room < WAN_ACK_MIN + 24)
			return false;
	}
	fill(p, &a, first ? UINT64_MAX : p->ack_below, now);
	if (!a.n) { /* the late number is below everything remembered by now */
		p->ack_below = 0;
		return false;
	}
	/* In front of a payload only a short ACK is sent; a longer one waits for its own datagram,
	 * so that no range is cut off for long. */
	if (o->s.flags & WAN_S_DATA && (a.n > 4 || !first))
		return false;
	if (first) {
		if (p->unacked_late * LATE_PART > p->unacked)
			p->ack_reorders = WAN_ACK_LATE;
		else if (p->ack_reorders)
			p->ack_reorders--;
		p->ack_frames = 0;
	}
	p->ack_frames++;
	frame = o->at;
	o->at = wan_f_ack_put(frame, room, &a);
	o->has_ack = true;
	plan_next_frame(p, &a, frame[WAN_ACK_COUNT]);
	/* on another path's datagram the acknowledgement could not be attributed */
	if (!p->ack_below && o->p == p) {
		o->s.flags |= WAN_S_ACK;
		floor_mark(p);
	}
	p->ack_at = p->ack_below ? now : RWY_NEVER;
	p->unacked = p->unacked_late = 0;
	p->last_ack = now;
	p->t->c.acks_sent++;
	if (!o->eliciting && ++p->acks_unelicited >= ELICIT_EVERY &&
	    o->limit > (uint32_t)(o->at - o->tx->hdr)) {
		*o->at++ = WAN_F_PING;
		/* With several paths it would be something under way, and the paths be asked: their
		 * answers are ACKs, so that gateways of many paths would never be quiet. */
		o->eliciting = p->t->paths == 1 || wan_path_is_stream(o->p);
		if (!o->eliciting)
			p->acks_unelicited = 0;
	}
	if (o->eliciting)
		p->acks_unelicited = 0;
	return true;
}

/* Datagram pn was acknowledged: the peer has the ACK in it and all earlier ones. */
void wan_ack_on_acked(struct wan_path *p, uint64_t pn)
{
	if (!wan_path_received(p) || !p->ack_mark || pn + 1 < p->ack_mark)
		return;
	p->ack_mark = 0;
	uint64_t next = p->seen.r[p->seen.end - 1].hi + 1;

	if (p->ack_low < next)
		next = p->ack_low;
	if (next > p->ack_floor)
		p->ack_floor = next;
}

void wan_ack_restart(struct wan_path *p)
{
	p->unacked = p->unacked_late = 0;
	p->ack_floor = p->ack_mark = p->ack_below = 0;
	p->ack_reorders = 0;
	for (unsigned i = 0; i < WAN_ACK_LATE; i++)
		p->ack_late[i] = UINT64_MAX;
}
