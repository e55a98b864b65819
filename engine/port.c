/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks of wan/: flows open and close, messages arrive, custody ends, tunnels go up and down.
 */
#include "engine/admission.h"
#include "engine/copy.h"
#include "engine/pair.h"
#include "engine/port.h"
#include "engine/emit.h"
#include "engine/mgmt.h"
#include "engine/peer.h"
#include "engine/place.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/steer.h"
#include "engine/tenants.h"
#include "roce/icrc.h"
#include "rwy/crc32.h"
#include "rwy/endian.h"

#define IPPROTO_ICMP4 1
#define IPPROTO_ICMP6 58

/* The user of a flow is a side, but for two flows: the management flow, and that of peer.h. */
static bool is_mgmt(const struct eng_tunnel *t, const void *user)
{
	return user == t;
}

static bool is_peer(const struct eng_tunnel *t, const void *user)
{
	return user == &t->peer;
}

static bool is_side(const struct eng_tunnel *t, const void *user)
{
	return !is_mgmt(t, user) && !is_peer(t, user);
}

/* A near gateway that knows both QPNs has admitted the connection before this one restarted. */
static bool admits_flow(struct eng *e, const struct eng_open *o, rwy_time now)
{
	if (eng_find(e, &o->key, true) || eng_admits(e, &o->key, o->peer_qpn))
		return true;
	eng_admission_refuse(e, &o->key, now);
	return false;
}

/*
 * The peer speaks for the hosts behind it, and for the connections that its tunnel has: a gateway
 * that was lost may be back before the control center has given its prefixes back.
 */
static bool peer_may_open(const struct eng_tunnel *t, const struct eng_key *k)
{
	const struct eng_side *side = eng_find(t->e, k, true);

	return (side && side->tunnel == t->idx) ||
	       eng_steer_allows(t->e, k->tenant, &k->dst, &k->src, t->idx);
}

/* A flow of requests for a local host; the result is that of rx_open. */
static void *open_requests(
    struct eng_tunnel *t, struct wan_rxflow *rx, const struct eng_open *o, rwy_time now)
{
	struct eng *e = t->e;
	struct eng_requester *rq;
	bool no_memory;
	int elsewhere;

	if (!admits_flow(e, o, now))
		return NULL;
	elsewhere = eng_place_elsewhere(e, &o->key, true);
	/* A process that steered had it, and this one does not: when it tries again. */
	if (elsewhere >= 0 && o->workers != eng_place_workers(e)) {
		(void)eng_place_send(e, (unsigned)elsewhere,
		    &(struct eng_note){.type = ENG_NOTE_LEFT, .tenant = o->key.tenant, .key = o->key});
		return NULL;
	}
	if (!peer_may_open(t, &o->key)) {
		e->c.drop_tunnel_msg++;
		return NULL;
	}
	rq = eng_requester_get_opened(e, &o->key, t->idx, elsewhere < 0, &no_memory, now);
	/* Memory comes again. A flow for which the tables have no place is refused. */
	if (no_memory)
		return (void *)&wan_rx_later;
	/* A connection of another tunnel goes on there as long as that tunnel exists. */
	if (!rq || (rq->side.tunnel != t->idx && (rq->requests || rq->responses))) {
		e->c.drop_tunnel_msg++;
		return NULL;
	}
	if (rq->side.tunnel != t->idx)
		eng_side_move(&rq->side, t->idx);
	if (elsewhere >= 0)
		eng_requester_redirect(rq, rx,
		    &(struct eng_moved){
		        .incarnation = o->incarnation, .psn = ENG_NO_PSN, .worker = (unsigned)elsewhere},
		    now);
	else
		eng_requester_open(rq, rx, o, now);
	return rq;
}

static void *rx_open(void *ctx, struct wan_rxflow *rx, const uint8_t *info, size_t len, rwy_time now)
{
	struct eng_tunnel *t = ctx;
	struct eng *e = t->e;
	struct eng_open o;
	struct eng_responder *rs;
	int tenant;

	if (t->removing)
		return NULL;
	/* it opens flows to a gateway that it gave the tunnel to */
	if (e->sb.state == ENG_SB_TAKING)
		eng_sb_granted(e, t->idx, now);
	if (!eng_open_decode(&o, info, len)) {
		e->c.drop_tunnel_msg++;
		return NULL;
	}
	tenant = eng_tenant_by_vni(e, o.vni);
	if (tenant < 0) {
		e->c.drop_unknown_tenant++;
		return NULL;
	}
	o.key.tenant = (uint32_t)tenant;
	switch ((enum eng_open_type)o.type) {
	case ENG_OPEN_MGMT:
		if (t->mgmt_rx)
			wan_rx_reset(t->mgmt_rx, now);
		t->mgmt_rx = rx;
		t->peer_workers = o.workers;
		return t;
	case ENG_OPEN_PEER:
		eng_peer_opened(t, rx, now);
		return &t->peer;
	case ENG_OPEN_REQ:
		return open_requests(t, rx, &o, now);
	case ENG_OPEN_RSP:
		rs = (struct eng_responder *)eng_find(e, &o.key, false);
		if (!rs || rs->side.tunnel != t->idx) {
			e->c.drop_tunnel_msg++;
			return NULL;
		}
		/* Responses to an earlier incarnation are not this one's, whatever their PSNs. */
		if (o.incarnation != rs->incarnation) {
			e->c.drop_old_response++;
			return NULL;
		}
		if (rs->responses)
			wan_rx_reset(rs->responses, now);
		eng_ahead_drop(rs);
		eng_copy_other_responses(rs);
		rs->responses = rx;
		return rs;
	case ENG_OPEN_COPY: /* only in a pair's own tunnel */
		e->c.drop_tunnel_msg++;
		return NULL;
	}
	rwy_unreachable();
}

/* The peer speaks only for hosts behind it, but ICMP errors come from routers between. */
static bool is_icmp(const struct rwy_buf *b)
{
	return b->data[0] >> 4 == 6 ? b->data[6] == IPPROTO_ICMP6 : b->data[9] == IPPROTO_ICMP4;
}

/* Not from its source's tunnel. A relay sees its CM messages: they may have gone in a circle. */
static void drop_foreign(struct eng *e, struct rwy_buf *b, const struct roce_pkt *pkt, bool cm)
{
	const struct eng_lan_tx tx = {
	    .buf = b, .len = b->len, .own = true, .foreign = true, .dst = &pkt->dst};

	if (!e->cfg.onward || !cm) {
		eng_drop(e, b, &e->c.drop_foreign_source);
		return;
	}
	e->c.drop_foreign_source++;
	e->ops->lan_tx(e->ctx, &tx);
}

/* Sends a CM MAD or a datagram of the other site to the LAN. */
static void carry_to_lan(struct eng_tunnel *t, struct rwy_buf *b, bool cm, rwy_time now)
{
	struct eng *e = t->e;
	struct roce_pkt pkt;
	enum roce_parse_reason r = ROCE_PARSE_BAD_IP;
	int tenant = eng_untag(e, b);

	if (tenant == ENG_NO_TENANT) {
		eng_drop(e, b, &e->c.drop_unknown_tenant);
		return;
	}
	if (tenant >= 0)
		r = roce_parse(b->data, b->len, &pkt);
	/* The destination must be a local host, not one behind a tunnel, but for a relay. */
	if (r == ROCE_PARSE_BAD_IP || r == ROCE_PARSE_TRUNCATED ||
	    (!e->cfg.onward && eng_route_in(e, (uint32_t)tenant, &pkt.dst) >= 0)) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		return;
	}
	if (!is_icmp(b) && !eng_steer_allows(e, (uint32_t)tenant, &pkt.dst, &pkt.src, t->idx)) {
		drop_foreign(e, b, &pkt, cm && r == ROCE_PARSE_OK);
		return;
	}
	if (cm && r == ROCE_PARSE_OK && e->cfg.directory &&
	    eng_cm_asks_elsewhere(e, (uint32_t)tenant, &pkt, (uint8_t)t->idx, b))
		return;
	if (cm && r == ROCE_PARSE_OK &&
	    eng_peer_holds_dreq(t, (uint32_t)tenant, &pkt, wan_peer_epoch(t->wan), now)) {
		eng_drop(e, b, &e->c.drop_cm_lost);
		return;
	}
	if (cm && r == ROCE_PARSE_OK && !eng_cm_learn(e, (uint32_t)tenant, &pkt, (uint8_t)t->idx, b, now))
		return;
	eng_lan_send(e, (uint32_t)tenant, b, true, &pkt.dst, NULL);
}

/* A flow that receives is mostly one of requests: its user is a requester side. */
static void rx_ahead(void *ctx, const void *user)
{
	eng_prefetch_side(user, ENG_REQUESTER_LINES);
}

/* A flow that sends is mostly one of requests, too: its user is a responder side. */
static void tx_ahead(void *ctx, const void *user)
{
	eng_prefetch_side(user, ENG_RESPONDER_LINES);
}

static void rx_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
	struct eng_tunnel *t = ctx;
	const uint64_t seq = b->seq;

	if (is_mgmt(t, user)) {
		carry_to_lan(t, b, true, now);
		wan_rx_delivered(t->mgmt_rx, seq, now);
	} else if (is_peer(t, user)) {
		eng_peer_message(t, b, now);
		wan_rx_delivered(t->peer.rx, seq, now);
	} else if (((struct eng_side *)user)->is_requester) {
		eng_requester_message(user, b, now);
	} else {
		eng_responder_message(user, b, now);
	}
}

/*
 * Tells how the flow of requests of rq ended. t->peer is of the process that ended. A near gateway
 * that was told to rewind ends it, too, and opens it again.
 */
static enum eng_flow flow_after(
    const struct eng_tunnel *t, const struct eng_requester *rq, enum wan_close_reason reason)
{
	switch (reason) {
	case WAN_CLOSE_BY_SENDER:
		return rq->flow == ENG_FLOW_DISCARD ? ENG_FLOW_DISCARD : ENG_FLOW_LEFT;
	case WAN_CLOSE_PEER_RESET:
		return t->peer.settled ? ENG_FLOW_NONE : ENG_FLOW_LOST;
	case WAN_CLOSE_TUNNEL:
		return ENG_FLOW_NONE;
	}
	rwy_unreachable();
}

/* The side is what a connection left that went to another worker. */
static bool has_gone(const struct eng_requester *rq, enum wan_close_reason reason)
{
	return rq->side.e->cfg.directory &&
	       (rq->side.state == ENG_Q_IDLE || (reason == WAN_CLOSE_BY_SENDER && !eng_requester_tells(rq)));
}

/*
 * The near gateway aborted its flow, or is gone. An unpaired side gives up its turn then, which
 * holds up others. It is freed if it knows nothing of its host, or is at another worker.
 */
static void requests_end(
    const struct eng_tunnel *t, struct eng_requester *rq, enum wan_close_reason reason, rwy_time now)
{
	const bool moved = rq->flow == ENG_FLOW_MOVED;

	rq->requests = NULL;
	rq->flow = flow_after(t, rq, reason);
	/* Reports of what a flow had are for that flow: a standby's comes after it. */
	if (reason == WAN_CLOSE_PEER_RESET)
		eng_requester_forget_numbers(rq);
	if (moved || (!rq->responder && has_gone(rq, reason)))
		eng_requester_free(rq, now);
	else if (!rq->responder && rq->turn != ENG_TURN_NONE && rq->remote_qpn_before)
		eng_requester_rest(rq, now);
	else if (!rq->responder && rq->turn != ENG_TURN_NONE)
		eng_requester_free(rq, now);
}

static void responses_end(struct eng_responder *rs)
{
	eng_ahead_drop(rs);
	eng_copy_other_responses(rs);
	rs->responses = NULL;
}

static void rx_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
	struct eng_tunnel *t = ctx;

	if (is_mgmt(t, user))
		t->mgmt_rx = NULL;
	else if (is_peer(t, user))
		t->peer.rx = NULL;
	else if (((struct eng_side *)user)->is_requester)
		requests_end(t, user, reason, now);
	else
		responses_end(user);
}

static void tx_acked(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	struct eng_tunnel *t = ctx;
	struct eng_responder *rs = user;

	if (is_side(t, user) && !rs->side.is_requester)
		eng_ack_at_far_gateway(rs, b);
}

static void tx_delivered(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	struct eng_tunnel *t = ctx;

	if (is_mgmt(t, user))
		eng_mgmt_delivered(t, b);
	else if (is_peer(t, user))
		eng_peer_delivered(t);
	else if (((struct eng_side *)user)->is_requester)
		eng_requester_response_delivered(user, b, now);
	else
		eng_responder_delivered(user, b, now);
}

static uint32_t tx_executed(void *ctx, void *user)
{
	struct eng_tunnel *t = ctx;

	return is_side(t, user) && !((struct eng_side *)user)->is_requester ? eng_custody_executed(user) : 0;
}

static size_t tx_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time now)
{
	struct eng_tunnel *t = ctx;

	if (is_mgmt(t, user))
		return eng_mgmt_open_info(eng_place_workers(t->e), info);
	if (is_peer(t, user))
		return eng_peer_open_info(info);
	return ((struct eng_side *)user)->is_requester ? eng_requester_open_info(user, info)
	                                               : eng_responder_open_info(user, ENG_OPEN_REQ, info);
}

static void tx_ended(struct eng_tunnel *t, void *user, bool refused, rwy_time now)
{
	if (is_mgmt(t, user))
		eng_mgmt_ended(t);
	else if (is_peer(t, user))
		eng_peer_reset(t, refused, now);
	else if (!((struct eng_side *)user)->is_requester)
		eng_responder_reset(user, now);
	else if (refused)
		eng_requester_responses_refused(user);
	else
		eng_requester_responses_broken(user, now);
}

static void tx_reset(void *ctx, void *user, rwy_time now)
{
	tx_ended(ctx, user, true, now);
}

static void tx_broken(void *ctx, void *user, rwy_time now)
{
	tx_ended(ctx, user, false, now);
}

static void rx_dgram(void *ctx, struct rwy_buf *b, rwy_time now)
{
	struct eng_tunnel *t = ctx;

	carry_to_lan(t, b, false, now);
}

static void wan_state_changed(void *ctx, bool up, bool restarted, rwy_time now)
{
	struct eng_tunnel *t = ctx;
	struct eng *e = t->e;

	t->up = up;
	eng_lanes_tell(t);
	if (up && eng_lanes_missed_restart(t))
		restarted = true;
	eng_record_engine(e,
	    &(struct eng_record){.kind = ENG_REC_TUNNEL,
	        .to = restarted ? ENG_TUNNEL_RESTARTED
	              : up      ? ENG_TUNNEL_UP
	                        : ENG_TUNNEL_DOWN},
	    e->cfg.tunnel[t->idx].name, now);
	if (restarted) {
		eng_log(e, 2, "tunnel=%s peer=restarted", e->cfg.tunnel[t->idx].name);
		eng_peer_restarted(t, now);
	}
	if (up) {
		eng_sb_tunnel_up(e, t->idx, now);
		eng_peer_up(t, now);
	}
	if (e->ops->tunnel_state)
		e->ops->tunnel_state(e->ctx, t->idx, up, now);
}

static void wan_path_congested(void *ctx, uint8_t path, const struct wan_congest_state *s, rwy_time now)
{
	struct eng_tunnel *t = ctx;
	struct eng *e = t->e;
	const char *name = e->cfg.tunnel[t->idx].name;

	eng_record_engine(e,
	    &(struct eng_record){.kind = ENG_REC_CONGESTED, .to = (uint8_t)s->by, .value = path}, name, now);
	if (s->by == WAN_CONGEST_NONE)
		eng_log(e, 2, "tunnel=%s path=%u event=\"congested no more\"", name, path);
	else
		eng_log(e, 1, "tunnel=%s path=%u event=congested by=%s loss=%.2f%% marks=%.2f%% delay=%.1fms",
		    name, path, wan_congest_name(s->by), s->loss_ppm / 1e4, s->marks_ppm / 1e4,
		    (double)s->delay / 1e6);
	if (e->ops->path_congested)
		e->ops->path_congested(e->ctx, t->idx, path, s);
}

static void claim_granted(void *ctx, rwy_time now)
{
	struct eng_tunnel *t = ctx;

	eng_sb_granted(t->e, t->idx, now);
}

static void claim_refused(void *ctx, rwy_time now)
{
	struct eng_tunnel *t = ctx;

	eng_sb_refused(t->e, t->idx, now);
}

/* Every packet in custody was checked when it came from the LAN: its ICRC is right. */
static uint32_t tx_crc(const struct rwy_buf *b, uint32_t crc)
{
	struct roce_pkt pkt;

	roce_parse_offsets(b->data, &pkt);
	if (pkt.len != b->len || pkt.len >= RWY_CRC32_LONG)
		return crc32_gzip_refl(crc, b->data, b->len);
	return roce_icrc_extend(crc, &pkt);
}

const struct wan_ops eng_wan_ops = {
    .rx_open = rx_open,
    .rx_data = rx_data,
    .rx_ahead = rx_ahead,
    .tx_ahead = tx_ahead,
    .rx_close = rx_close,
    .tx_acked = tx_acked,
    .tx_delivered = tx_delivered,
    .tx_executed = tx_executed,
    .tx_reopen = tx_reopen,
    .tx_reset = tx_reset,
    .tx_broken = tx_broken,
    .tx_crc = tx_crc,
    .rx_dgram = rx_dgram,
    .congested = wan_path_congested,
    .state = wan_state_changed,
    .claim = claim_granted,
    .replaced = claim_refused,
};
