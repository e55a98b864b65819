/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, flows and tunnels for operators. */
#include <stdio.h>

#include "engine/eng.h"
#include "engine/settle.h"
#include "engine/table.h"
#include "engine/steer.h"
#include "engine/requester.h"
#include "engine/responder.h"

const struct eng_counters *eng_counters(const struct eng *e)
{
	return &e->c;
}

uint32_t eng_flow_count(const struct eng *e)
{
	return e->sides - e->paired; /* the two sides of a pair are one connection */
}

uint64_t eng_custody_bytes(const struct eng *e)
{
	return e->mem.kind[ENG_MEM_CUSTODY] + e->mem.kind[ENG_MEM_UNPAIRED];
}

uint64_t eng_custody_max(const struct eng *e)
{
	return e->cfg.custody_total;
}

void eng_tunnel_stats(const struct eng *e, unsigned tunnel, struct wan_stats *out)
{
	if (e->tunnel[tunnel].wan)
		wan_get_stats(e->tunnel[tunnel].wan, out);
	else
		*out = (struct wan_stats){.ecn = "off"};
}

bool eng_path_stats(const struct eng *e, unsigned tunnel, unsigned path, struct wan_path_stats *out)
{
	const struct wan_tunnel *t = e->tunnel[tunnel].wan;

	if (!t || path >= wan_paths(t))
		return false;
	wan_get_path_stats(t, path, out);
	return true;
}

const struct wan_counters *eng_tunnel_counters(const struct eng *e, unsigned tunnel)
{
	return e->tunnel[tunnel].wan ? wan_counters(e->tunnel[tunnel].wan) : NULL;
}

uint32_t eng_sender_qpn(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn)
{
	const struct eng_key k = {*src, *dst, dqpn, tenant};
	const struct eng_responder *rs = (const struct eng_responder *)eng_find(e, &k, false);
	const struct eng_requester *rq = rs ? NULL : (const struct eng_requester *)eng_find(e, &k, true);

	return rs ? rs->local_qpn : rq ? rq->remote_qpn : 0;
}

static const char *state_name(const struct eng_side *side, bool idle)
{
	if (eng_side_cold_of(side)->close_at != RWY_NEVER)
		return "closing";
	if (eng_failed(side))
		return "failed";
	if (eng_unpaired(side))
		return "learning";
	return idle ? "idle" : "paired";
}

static const char *learned_name(const struct eng_side *side)
{
	switch ((enum eng_learned)side->learned) {
	case ENG_BY_NOBODY:
		return "";
	case ENG_BY_CM:
		return "cm";
	case ENG_BY_PROBE:
		return "passive";
	case ENG_BY_PEER:
		return "peer";
	}
	rwy_unreachable();
}

#define NEAR_SOURCE (2 * RWY_MS) /* a CNP slows a host down for about this time */

/* The bound of the local host's rate, as eng_flow_info.limit has it. */
static const char *send_limit(const struct eng_responder *rs)
{
	uint64_t drain;

	if (!eng_serving(rs))
		return "drain";
	if (rs->ack_blocked)
		return eng_read_would_wait(rs) ? "read" : "memory";
	if (!rs->requests || !wan_tx_queued(rs->requests))
		return "";
	if (!wan_tx_unsent(rs->requests)) /* all requests are in flight: the host sends no more */
		return rs->side.e->now < rs->cnp_at + NEAR_SOURCE ? "near-source" : "window";
	if (!wan_tx_blocked(rs->requests))
		return wan_tx_limited(rs->requests) ? "share" : "path";
	return wan_tx_window(rs->requests, &drain) ? "host" : "far";
}

static void add_responder(struct eng_flow_info *o, const struct eng_responder *rs)
{
	o->tx_packets = rs->packets;
	o->tx_bytes = rs->bytes;
	o->custody_bytes = rs->custody;
	o->held[rs->custody_kind] = rs->custody;
	o->held[ENG_MEM_PARKED] = (uint64_t)(rs->rare->parked.n + rs->dreq_waits) * rs->side.e->cfg.buf_cost;
	o->held[ENG_MEM_ANSWERS] = rs->rare->kept;
	o->held_most = rs->side.most;
	o->limit = send_limit(rs);
	o->ack_mode = eng_ack_mode_name(eng_ack_mode(rs));
	o->patience = eng_patience(rs) == RWY_NEVER ? 0 : eng_patience(rs);
	o->impatient = rs->ack_too_late;
	o->withheld = rs->withheld + (rs->ack_blocked && rs->rare->withheld_at
	                                     ? rwy_since(rs->rare->withheld_at, rs->side.e->now)
	                                     : 0);
	o->withheld_times = rs->withheld_times;
	o->naks_sent = rs->naks_sent;
	if (rs->requests)
		o->remote_window = wan_tx_window(rs->requests, &o->remote_drain_Bps);
	if (rs->side.state == ENG_R_NEW)
		return;
	o->responder_psn = rs->resp.epsn;
	o->responder_acked = rs->resp.acked;
	o->pmtu = rs->resp.pmtu;
}

static void add_timers(struct eng_flow_info *o, const struct eng_requester *rq)
{
	const struct roce_reqr_cfg cfg = eng_requester_active(rq) ? rq->reqr.cfg : eng_requester_cfg(rq);

	o->requester_retry = cfg.retry;
	o->requester_rnr_retry = cfg.rnr_retry;
	o->requester_timeout_min = cfg.rto_min;
	o->requester_timeout_max = cfg.rto_max;
	o->requester_patience = cfg.patience;
}

static void add_requester(struct eng_flow_info *o, const struct eng_requester *rq)
{
	add_timers(o, rq);
	o->rx_packets = rq->packets;
	o->rx_bytes = rq->bytes;
	o->held[ENG_MEM_RESPONSES] = rq->answering;
	o->held[ENG_MEM_RECEIVED] = rq->received;
	if (rq->side.most > o->held_most)
		o->held_most = rq->side.most;
	if (!eng_requester_active(rq))
		return;
	o->requester_una = rq->reqr.una;
	o->requester_nxt = rq->reqr.nxt;
	o->requester_queue = rq->reqr.q.n;
	o->requester_rate_Bps = eng_rp_rate(rq);
	o->requester_rtt = rq->reqr.srtt;
	o->host_resent = rq->reqr.resent;
	o->rnr_naks = rq->reqr.rnr_naks;
	o->seq_naks = rq->reqr.seq_naks;
	o->host_timeouts = rq->reqr.timeouts;
	if (!o->pmtu)
		o->pmtu = rq->reqr.pmtu;
}

static void fill_flow(struct eng_flow_info *o, const struct eng_side *side)
{
	const struct eng_responder *rs = side->is_requester ? NULL : (const struct eng_responder *)side;
	const struct eng_requester *rq =
	    side->is_requester ? (const struct eng_requester *)side : rs->requester;

	memset(o, 0, sizeof(*o));
	o->limit = o->ack_mode = "";
	o->tenant = side->key.tenant;
	o->vni = side->tenant->cfg.vni;
	o->local = side->is_requester ? side->key.dst : side->key.src;
	o->remote = side->is_requester ? side->key.src : side->key.dst;
	o->local_qpn = side->is_requester ? side->key.qpn : rs->local_qpn;
	o->remote_qpn = side->is_requester ? rq->remote_qpn : side->key.qpn;
	if (side->tunnel != ENG_NO_TUNNEL)
		snprintf(o->tunnel, sizeof(o->tunnel), "%s", side->e->cfg.tunnel[side->tunnel].name);
	o->learned = learned_name(side);
	o->error = eng_side_cold_of(side)->error;
	/* Packets of the other site count, also while the local host does not answer. */
	o->last = rq && rq->side.last > side->last ? rq->side.last : side->last;
	o->state = state_name(side, rwy_since(o->last, side->e->now) > ENG_IDLE);
	if (rs)
		add_responder(o, rs);
	if (rq)
		add_requester(o, rq);
	if (rq && eng_failed(&rq->side) && !eng_failed(side)) {
		o->state = "failed";
		o->error = rq->cold.error;
	}
}

#define FLOWS_SLOTS 4096 /* table slots looked at in one call, so that no call is long */

unsigned eng_flows(const struct eng *e, uint32_t *cursor, struct eng_flow_info *out, unsigned max)
{
	uint32_t end = *cursor + FLOWS_SLOTS;
	unsigned n = 0;

	/* The cursor is a table slot. One that does not fit waits for the next call as a whole. */
	for (; *cursor < end && *cursor <= e->table_mask; (*cursor)++) {
		const struct eng_side *side = e->table[*cursor];
		unsigned here = 0;

		for (const struct eng_side *c = side; c; c = c->chain)
			here++;
		if (n + here > max && n)
			return n;
		for (; side && n < max; side = side->chain)
			/* A paired requester side is part of its responder side's entry. */
			if (!side->is_requester || !((const struct eng_requester *)side)->responder)
				fill_flow(&out[n++], side);
	}
	if (*cursor > e->table_mask)
		*cursor = 0;
	return n;
}
