/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation): the rate at which bytes
 * arrived at the peer between a datagram's sending and its acknowledgement. The longer of the
 * sending interval and the acknowledging interval counts, so that neither a burst of datagrams nor
 * a burst of ACKs looks like a fast path.
 */
#include "wan/tunnel.h"

void wan_rate_on_sent(struct wan_path *p, struct wan_sent *s, rwy_time now)
{
	if (!p->inflight) {
		p->first_sent = now;
		p->delivered_at = now;
	}
	s->first_sent = p->first_sent;
	s->delivered_at = p->delivered_at;
	s->delivered = p->delivered;
	/* A path that rests, or is spared, carries questions and reports. */
	if (p->app_limited || p->rests || p->spared)
		s->flags |= WAN_S_APP;
}

void wan_rate_on_acked(struct wan_path *p, struct wan_rate_sample *rs, const struct wan_sent *s, rwy_time now)
{
	p->delivered += s->bytes;
	p->delivered_at = now;
	rs->bytes += s->bytes;
	if (rs->any && s->delivered < rs->delivered)
		return;
	if (rs->any && s->delivered == rs->delivered && s->sent < rs->sent)
		return;
	rs->any = true;
	rs->delivered = s->delivered;
	rs->sent = s->sent;
	rs->first_sent = s->first_sent;
	rs->delivered_at = s->delivered_at;
	rs->app_limited = s->flags & WAN_S_APP;
	p->first_sent = s->sent;
}

uint64_t wan_rate_of(const struct wan_path *p, const struct wan_rate_sample *rs)
{
	if (!rs->any)
		return 0;
	rwy_dur send = rs->sent - rs->first_sent;
	rwy_dur ack = p->delivered_at - rs->delivered_at;
	rwy_dur t = send > ack ? send : ack;

	if (!t || (p->min_rtt && t < p->min_rtt))
		return 0; /* an interval shorter than a round trip is noise */
	return (uint64_t)((unsigned __int128)(p->delivered - rs->delivered) * RWY_SEC / t);
}
