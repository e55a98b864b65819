/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving half of acknowledgement: which packet numbers came, when an ACK must go, what it says. One
 * ACK a batch: after 64 datagrams or an eighth of a round trip (max_ack_delay at most), at once when a gap
 * appears and again shortly after it, so that the peer can tell a loss from a swap of two datagrams.
 */
#include "wan/wan_int.h"

#define ACK_EVERY     64u
#define ACK_AFTER_GAP 4u     /* the peer's packet threshold is 3 */
#define FIRST_DELAY   RWY_MS /* before there is an RTT */
#define ELICIT_EVERY                                                                                         \
	32u /* ACK-only datagrams until one asks to be acknowledged itself, so that old ranges can go */

static rwy_dur ack_delay(const struct wan_path *p)
{
	rwy_dur max = p->t->cfg.max_ack_delay;

	return rwy_time_min(p->has_rtt ? p->srtt / 8 : FIRST_DELAY, max);
}

static bool is_gap(const struct wan_path *p, uint64_t pn)
{
	return p->has_seen && pn != p->seen.r[p->seen.end - 1].hi + 1;
}

void wan_ack_on_received(struct wan_path *p, uint64_t pn, bool eliciting, rwy_time now)
{
	bool gap = !p->stream && is_gap(p, pn);
	bool newest = !p->has_seen || pn > p->seen.r[p->seen.end - 1].hi;

	if (!wan_ranges_add(&p->seen, pn))
		return;
	p->has_seen = true;
	if (newest)
		p->largest_at = now;
	if (pn < p->ack_floor)
		p->ack_floor = pn;
	if (!eliciting)
		return;
	if (p->unacked++ == 0) {
		p->ack_at = now + ack_delay(p);
		if (!p->ack_after)
			p->ack_after = ACK_EVERY;
	}
	/* Under heavy reordering every datagram makes a gap: not more often than each sixteenth of a round
	 * trip then. */
	if (gap && (p->unacked >= ACK_AFTER_GAP || rwy_since(p->last_ack, now) >= p->srtt / 16)) {
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

static void fill(struct wan_path *p, struct wan_f_ack *a, rwy_time now)
{
	const struct wan_ranges *s = &p->seen;
	rwy_dur delay = rwy_since(p->largest_at, now) / RWY_US;

	a->path = p->id;
	a->n = 0;
	a->delay_us = delay < UINT32_MAX ? (uint32_t)delay : UINT32_MAX;
	a->at_us = (uint32_t)(p->largest_at / RWY_US);
	a->has_ecn = p->ect0 || p->ect1 || p->ce;
	a->ect0 = p->ect0;
	a->ect1 = p->ect1;
	a->ce = p->ce;
	for (uint32_t i = s->end; i > s->first && a->n < WAN_ACK_RANGES_MAX; i--) {
		if (a->n && s->r[i - 1].hi < p->ack_floor)
			break;
		a->r[a->n++] = s->r[i - 1];
	}
}

bool wan_ack_put(struct wan_path *p, struct wan_out *o, rwy_time now)
{
	struct wan_f_ack a;
	uint32_t room = o->limit - (uint32_t)(o->at - o->tx->hdr);

	if (p->ack_at == RWY_NEVER || room < WAN_ACK_MIN + 24)
		return false;
	/* Before the ACK that names them, or the peer takes them for late ones. */
	if (p->fec_told_n) {
		wan_fec_put_rebuilt(p, o);
		if (p->fec_told_n)
			return false;
		room = o->limit - (uint32_t)(o->at - o->tx->hdr);
		if (room < WAN_ACK_MIN + 24)
			return false;
	}
	fill(p, &a, now);
	/* In front of a payload only what fits; a longer one waits for its own datagram, so that no range is
	 * cut off for long. */
	if (o->s.flags & WAN_S_DATA && a.n > 4)
		return false;
	o->at = wan_f_ack_put(o->at, room, &a);
	o->has_ack = true;
	if (o->p == p) /* else nobody would know whose it was */
		o->s.flags |= WAN_S_ACK;
	o->s.ack_largest = (uint32_t)a.r[0].hi; /* NOLINT(clang-analyzer-core.uninitialized.Assign): ack_at is
	                                           set, so there is a range */
	p->ack_at = RWY_NEVER;
	p->unacked = 0;
	p->last_ack = now;
	p->t->c.acks_sent++;
	if (!o->eliciting && ++p->acks_unelicited >= ELICIT_EVERY &&
	    o->limit > (uint32_t)(o->at - o->tx->hdr)) {
		*o->at++ = WAN_F_PING;
		o->eliciting = true;
	}
	if (o->eliciting)
		p->acks_unelicited = 0;
	return true;
}

/* The peer has our ACK up to `largest`: what it reported need not be told again. Late arrivals below take the
 * floor down again. */
void wan_ack_on_acked(struct wan_path *p, uint32_t ack_largest)
{
	if (!p->has_seen)
		return;
	uint64_t newest = p->seen.r[p->seen.end - 1].hi;
	uint64_t largest = wan_expand(newest, ack_largest);

	if (largest <= newest && largest > p->ack_floor)
		p->ack_floor = largest;
}
