/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way back to a local host: responses of the far host, control messages of the far gateway,
 * reports of delivery, and the ACKs that they allow.
 */
#include "engine/responder.h"
#include "engine/causal.h"
#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/mgmt.h"
#include "engine/memory.h"
#include "engine/settle.h"
#include "engine/pair.h"
#include "engine/place.h"
#include "engine/requester.h"
#include "engine/session.h"
#include "roce/icrc.h"

/* A response changed after its ICRC was checked: the host gets an error, never wrong bytes. */
static void fail_damaged(struct eng_responder *rs, roce_psn psn, rwy_time now)
{
	eng_responder_fail(rs, psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_CAUSE_DAMAGED, now);
}

/* Sends a response to the host and keeps it for replays. */
static void serve_response(
    struct eng_responder *rs, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng_rare *r = eng_rare_take(rs);
	struct eng *e = rs->side.e;

	if (r)
		r->served_at = now;
	if (pkt->opcode == ROCE_RC_ATOMIC_ACK) {
		eng_responder_keep_atomic(rs, pkt->psn, roce_atomic_original(pkt));
		eng_lan_send(e, rs->side.key.tenant, b, true, &rs->side.key.src, &rs->nh);
		return;
	}
	if (rs->resp.serve_opcode == pkt->opcode)
		eng_lan_send(e, rs->side.key.tenant, b, false, &rs->side.key.src, &rs->nh);
	else if (!eng_responder_resend(rs, b, rs->resp.serve_opcode))
		fail_damaged(rs, pkt->psn, now);
	eng_responder_keep_read(rs, pkt->psn, b);
}

void eng_responder_take_response(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	const roce_psn acked = rs->resp.acked;
	struct eng *e = rs->side.e;
	struct roce_pkt pkt;

	if (roce_parse(b->data, b->len, &pkt) != ROCE_PARSE_OK || !roce_op_is_response(pkt.info) ||
	    pkt.info->transport != ROCE_RC || !rwy_ip_eq(&pkt.src, &rs->side.key.dst) ||
	    !rwy_ip_eq(&pkt.dst, &rs->side.key.src)) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		return;
	}
	/*
	 * It is kept as a number, which a repeated request gets in a packet with an ICRC of its
	 * own.
	 */
	if (pkt.opcode == ROCE_RC_ATOMIC_ACK && !roce_icrc_ok(&pkt)) {
		eng_drop(e, b, &e->c.drop_wan_icrc);
		fail_damaged(rs, pkt.psn, now);
		return;
	}
	if (!rs->resp.pmtu &&
	    (pkt.opcode == ROCE_RC_READ_RESP_FIRST || pkt.opcode == ROCE_RC_READ_RESP_MIDDLE))
		roce_resp_set_pmtu(&rs->resp, pkt.payload_len);
	switch (roce_resp_response(&rs->resp, pkt.psn, pkt.opcode)) {
	case ROCE_RESP_SERVE:
		/* After a restart a response may come ahead of SYNC. */
		if (!rs->local_qpn)
			rs->local_qpn = pkt.dqpn;
		eng_copy_answered(rs, pkt.psn);
		/* The last response of a READ, or to an ATOMIC, acknowledges it and all before. */
		if (rs->resp.acked != acked && e->journal_free)
			eng_journal_note(rs);
		serve_response(rs, &pkt, b, now);
		eng_ack_served(rs);
		break;
	case ROCE_RESP_SERVED:
	case ROCE_RESP_UNEXPECTED:
		eng_drop(e, b, &e->c.drop_old_response);
		break;
	}
	rs->side.last = rs->asked_at = now;
	if (rs->rare->parked.n && !roce_resp_parks(&rs->resp))
		eng_responder_unpark(rs, now);
	if (rs->silent && e->sb.asked && !rs->resp.rd_n)
		eng_responder_ask_silent(rs);
}

void eng_responder_ask_silent(struct eng_responder *rs)
{
	if (rs->side.state != ENG_R_RUNNING)
		return;
	if (rs->resp.acked == rs->resp.epsn) /* else the ACK goes first */
		roce_resp_ask_again(&rs->resp);
	eng_dirty(&rs->side);
}

void eng_responder_early_response(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	eng_drop(rs->side.e, b, &rs->side.e->c.drop_tunnel_msg);
}

static void rewind_to(struct eng_responder *rs, roce_psn psn, rwy_time now)
{
	eng_responder_abort(rs, now);
	eng_responder_drop_parked(rs);
	roce_resp_rewind(&rs->resp, psn);
	rs->rewound = true;
	roce_resp_go(&rs->resp, 0);
	rs->taken_epsn = rs->resp.epsn;
}

/* The host's QPN is known, and with it the requester side that its responses belong to. */
static void pair_named(struct eng_responder *rs, uint32_t qpn, bool answered)
{
	const struct eng_key k = {rs->side.key.dst, rs->side.key.src, qpn, rs->side.key.tenant};
	struct eng_requester *rq = (struct eng_requester *)eng_find(rs->side.e, &k, true);

	if (rq && (answered || eng_requester_used_again(rq) == ENG_AGAIN_NO)) {
		eng_requester_connected_anew(rq);
		eng_pair_join(rs, rq, ENG_BY_PEER);
	} else if (rs->requester && rs->requester->side.key.qpn != qpn) {
		eng_pair_undo(rs->requester);
	}
}

/*
 * The far host has answered the first packet: ACKs may begin, with its MSN. answered: false: it has
 * not, and its gateway names the QPN by what it remembers.
 */
static void apply_sync(struct eng_responder *rs, const struct eng_ctrl *c, bool answered)
{
	struct eng *e = rs->side.e;

	if (roce_resp_started(&rs->resp))
		return;
	if (c->qpn)
		rs->local_qpn = c->qpn;
	if (c->qpn && e->cfg.directory)
		eng_place_end_before(rs);
	if (eng_unpaired(&rs->side)) {
		eng_count_half_open(rs, -1);
		rs->side.learned = ENG_BY_PEER;
		e->c.conns_paired++;
	}
	if (rs->side.state != ENG_R_FAILED)
		eng_responder_enter(rs, ENG_R_RUNNING);
	roce_resp_go(&rs->resp, c->msn);
	eng_copy_begin(rs, e->now);
	eng_ack_started(rs);
	pair_named(rs, c->qpn, answered);
	eng_session_open(rs);
	eng_dirty(&rs->side);
}

void eng_responder_sync(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now)
{
	rs->naks = 0;
	apply_sync(rs, c, true);
}

void eng_responder_rewind(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now)
{
	if (eng_taken_over(rs)) /* the gateway before had this message, and its host went back */
		return;
	apply_sync(rs, c, true);
	eng_copy_end(rs, now);
	rewind_to(rs, c->psn, now);
	eng_copy_begin(rs, now);
}

/*
 * The far host has answered nothing of this incarnation, so its gateway names the QPN by what it
 * remembers. False: another connection may have that QPN: one that is paired with it, or one that
 * waits for its first response and began at the same PSN, so that its host would accept the error
 * NAK.
 */
static bool may_be_asker(const struct eng_responder *rs, uint32_t qpn)
{
	const struct eng_key k = {rs->side.key.dst, rs->side.key.src, qpn, rs->side.key.tenant};
	const struct eng_requester *rq = (const struct eng_requester *)eng_find(rs->side.e, &k, true);

	if (rq && rq->responder && rq->responder != rs)
		return false;
	for (const struct eng_responder *o = rs->side.host->half_head; o; o = o->rare->half_next)
		if (o != rs && rwy_ip_eq(&o->side.key.dst, &rs->side.key.dst) &&
		    o->side.state == ENG_R_WAITING && o->resp.start == rs->resp.start)
			return false;
	return true;
}

void eng_responder_given_up(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now)
{
	/*
	 * A far host in error answers nothing, so the requester's QPN stays unknown. Most likely it
	 * is that of the incarnation before: its error NAK was lost on the LAN, and it sends again.
	 */
	if (c->qpn && !rs->local_qpn && !may_be_asker(rs, c->qpn))
		c->qpn = 0;
	if (!c->qpn && !rs->local_qpn)
		c->qpn = rs->local_qpn_before;
	/* Nothing of this incarnation has arrived, whatever PSN the far gateway was at. */
	if (rs->side.state == ENG_R_WAITING && !roce_resp_started(&rs->resp))
		c->psn = rs->resp.start;
	apply_sync(rs, c, false);
	eng_responder_fail(rs, c->psn, c->syndrome, c->end, now);
}

void eng_responder_not_resumed(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now)
{
	/* Requests were lost: both hosts may be idle. For a host that no longer exists, the error
	 * is REM_OP. */
	if (c->syndrome != roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP))
		(void)eng_requester_end_lost(rs, ENG_END_LOST, now);
	eng_responder_given_up(rs, c, now);
	/* Whatever PSN it names: nobody knows that nothing is lost. */
	eng_responder_note_loss(rs, true);
}

void eng_responder_moved_late(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now)
{
	eng_responder_fail(
	    rs, rs->resp.acked, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_CAUSE_REFUSED, now);
}

/*
 * The far host's own requests are here at rq, and it may have ACKs for them. Not if its
 * gateway has ended their flow, nor if rq is what an earlier connection left: then it was
 * paired before rs began, or the far gateway names another queue pair.
 */
static bool stays_with(
    const struct eng_responder *rs, const struct eng_requester *rq, const struct eng_ctrl *c)
{
	if (!eng_requester_answered(rq) || rq->flow == ENG_FLOW_LEFT)
		return false;
	if (rq->reqr.q.n)
		return true;
	return rq->requests && rs->local_qpn && (!c->qpn || c->qpn == rq->side.key.qpn);
}

void eng_responder_moved(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now)
{
	struct eng *e = rs->side.e;
	const struct eng_key k = rs->side.key;
	struct eng_requester *rq = rs->requester;

	if (!e->cfg.directory || c->worker >= e->cfg.workers || c->worker == e->cfg.worker) {
		eng_responder_moved_late(rs, c, now);
		return;
	}
	/* This host begins again when it repeats. */
	if (rq && stays_with(rs, rq, c)) {
		eng_responder_start(rs, rs->resp.start, 0, now);
		return;
	}
	eng_responder_move(e, &k, c->qpn, c->psn, c->worker, now);
	/* They begin there again; what is left of them here goes with its flow (port.c). */
	if (rq && rq->requests)
		eng_place_leave(e, &rq->side.key, true);
	else if (rq && !eng_requester_tells(rq))
		eng_requester_free(rq, now);
}

void eng_responder_early_control(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now)
{
}

void eng_responder_delivered(struct eng_responder *rs, const struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rs->side.e;

	eng_mem_release_custody(rs, eng_buf_cost(e, b), 1);
	eng_read_wait_delivered(rs, eng_buf_cost(e, b), now);
	rs->side.tenant->st.delivered++;
	e->c.delivered++;
	eng_copy_delivered(rs, b);
	eng_ack_at_far_host(rs, b);
	if (rs->dreq_waits)
		eng_dirty(&rs->side);
	if (rs->causal && !wan_tx_queued(rs->requests))
		eng_causal_idle(rs, now);
}

/*
 * NAKs that the host does not follow show that it cannot: it has an ACK of a gateway that is gone.
 */
static void count_nak(struct eng_responder *rs, roce_psn psn)
{
	if (psn == rs->nak_psn && rs->refused_at)
		return; /* it did send that packet */
	if (rs->naks && psn == rs->nak_psn) {
		rs->naks++;
		return;
	}
	rs->naks = 1;
	rs->refused_at = 0;
	rs->nak_psn = psn;
	rs->gap_seen = false;
}

/*
 * Without memory, or after the host has spoken and got the NAK, the flag decides: the sweep tries
 * again (expire.c), or nothing is left to do.
 */
static void tell_idle_host(struct eng_responder *rs, rwy_time now)
{
	if (rs->side.state == ENG_R_FAILED && eng_responder_unaware(rs))
		rs->untold = !eng_requester_end_lost(rs, ENG_END_UNDELIVERED, now);
	else
		rs->untold = false;
}

/* A request was dropped for lack of memory: when there is room a NAK asks the host for it. */
static void ask_refused(struct eng_responder *rs, rwy_time now)
{
	if (!eng_mem_has_room(&rs->side)) {
		eng_mem_wait(&rs->side);
		return;
	}
	eng_mem_wait_end(&rs->side);
	roce_resp_room(&rs->resp);
	eng_record_side(
	    &rs->side, &(struct eng_record){.kind = ENG_REC_ROOM, .psn = rs->resp.epsn & ROCE_PSN_MASK}, now);
}

void eng_responder_flush(struct eng_responder *rs, rwy_time now)
{
	struct eng *e = rs->side.e;
	struct roce_resp_out out;

	if (rs->side.state == ENG_R_NEW)
		return;
	if (rs->dreq_waits)
		eng_dreq_pass(rs, now);
	if (rs->untold)
		tell_idle_host(rs, now);
	if (rs->ack_blocked)
		eng_ack_unblock(rs, now);
	if (roce_resp_lacks_room(&rs->resp) && !rs->ack_blocked)
		ask_refused(rs, now);
	if (rs->causal && rs->side.state != ENG_R_FAILED && eng_acks_by_mode(rs) &&
	    eng_causal_defers(rs, now))
		return;
	roce_psn acked = rs->resp.acked;

	while (rs->local_qpn && roce_resp_flush(&rs->resp, &out, now)) {
		uint8_t bytes[ROCE_BUILD_MAX];
		struct roce_addr a;

		if (e->journal_free)
			eng_journal_note(rs);
		eng_responder_address(rs, &a);
		eng_lan_made(e, rs->side.key.tenant, bytes,
		    roce_build_ack(bytes, &a, out.psn, out.syndrome, out.msn), &a.dst, &rs->nh);
		if (roce_aeth_type(out.syndrome) == ROCE_AETH_ACK) {
			e->c.acks_sent++;
		} else {
			e->c.naks_sent++;
			rs->naks_sent++;
			eng_record_side(&rs->side,
			    &(struct eng_record){
			        .kind = ENG_REC_NAK_SENT, .psn = out.psn, .to = out.syndrome},
			    now);
			if (roce_aeth_value(out.syndrome) == ROCE_NAK_PSN_SEQ)
				count_nak(rs, out.psn);
		}
		if (rs->resp.acked != acked) /* a NAK acknowledges all before it */
			rs->acked_at = now;
		if (roce_aeth_type(out.syndrome) != ROCE_AETH_ACK)
			break;
	}
	if (rs->silent && e->sb.asked && rs->resp.acked != acked)
		eng_responder_ask_silent(rs);
	if (rs->causal && rs->resp.acked != acked)
		eng_causal_acked(rs, now);
}
