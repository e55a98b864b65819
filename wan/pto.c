/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe timeout of a path (RFC 9002, 6.2). Unlike the RFC, the back-off is capped, so that the
 * end of an outage is noticed soon.
 */
#include "wan/tunnel.h"

#define PTO_CAP (200 * RWY_MS)

rwy_dur wan_pto_first(const struct wan_path *p)
{
	rwy_dur srtt = wan_rtt_base(p);
	rwy_dur var = wan_path_has_rtt(p) ? rwy_time_max(4 * p->rttvar, wan_rtt_late(p)) : srtt;
	rwy_dur delay = rwy_time_min(p->t->peer.ack_delay, srtt / 8);
	rwy_dur pto = srtt + rwy_time_max(var, WAN_GRANULARITY) + delay;

	return wan_path_reorders(p) ? rwy_time_max(pto, wan_reorder_limit(p) + delay) : pto;
}

rwy_dur wan_pto(const struct wan_path *p)
{
	rwy_dur srtt = wan_rtt_base(p), pto = wan_pto_first(p);
	unsigned shift = p->pto_count < 10 ? p->pto_count : 10;
	rwy_dur cap = p->t->tx_bytes ? PTO_CAP : rwy_time_max(PTO_CAP, p->t->cfg.keepalive);

	return p->pto_count ? rwy_time_min(pto << shift, rwy_time_max(pto, srtt + cap)) : pto;
}

rwy_time wan_pto_at(const struct wan_path *p)
{
	if (!p->inflight_n || !wan_hs_session(p->t))
		return RWY_NEVER;
	if (p->t->paths == 1)
		return rwy_time_max(p->last_eliciting + wan_pto(p), p->pto_not_before);
	/* When another path exists, a dead one gets no data, however long its window is open. */
	rwy_time heard = rwy_time_max(p->progress, p->sent[p->tail & p->mask].sent);

	return rwy_time_max(rwy_time_min(p->last_eliciting, heard) + wan_pto(p), p->pto_not_before);
}

/* A process that is late may have unread answers: the timer waits until it had time to read
 * them. */
bool wan_pto_excused(struct wan_path *p, rwy_time now)
{
	if (p->pto_not_before || now - wan_pto_at(p) <= WAN_GRANULARITY)
		return false;
	p->pto_not_before = now + WAN_GRANULARITY;
	return true;
}
