/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of a local host to requests, and its silence. */
#include "engine/hosts.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/pair.h"
#include "roce/icrc.h"

static enum eng_end end_reason(enum roce_reqr_end end)
{
	switch (end) {
	case ROCE_REQR_REFUSED:
		return ENG_END_REFUSED;
	case ROCE_REQR_SILENT:
		return ENG_END_SILENT;
	case ROCE_REQR_NOT_READY:
		return ENG_END_NOT_READY;
	}
	rwy_unreachable();
}

/* The first request that counts as lost. The question ahead of it is none. */
static roce_psn lost_from(const struct eng_requester *rq, roce_psn psn)
{
	return rq->asked_ahead ? roce_psn_add(rq->promised, ROCE_PSN_MASK - 1) : psn;
}

/* The host has executed b, which is not this gateway's own question. */
static void note_done(struct eng_requester *rq, const struct rwy_buf *b)
{
	const bool read = roce_op(b->opcode)->op == ROCE_OP_READ_REQ;

	rq->done_end = roce_psn_add(b->psn, b->psn_cnt);
	if (!read || !rq->done_known)
		rq->plain_end = read ? b->psn : rq->done_end;
	rq->done_known = true;
}

/*
 * Frees the requests that the host acknowledged, and ends the connection if the response says so.
 */
static void complete_requests(struct eng_requester *rq, struct roce_reqr_act *act, rwy_time now)
{
	struct eng *e = rq->side.e;
	uint64_t before = rq->bytes;
	struct rwy_buf *b;

	while ((b = rwy_bufq_pop(&act->done))) {
		const struct roce_opinfo *info = roce_op(b->opcode);

		/* Without a number it may come again, by the flow that a standby opens. */
		if ((info->op == ROCE_OP_READ_REQ || roce_op_is_atomic(info)) &&
		    (b->seq != ENG_NO_SEQ || !rq->requests || rq->continued))
			eng_requester_wait_responses(rq, b->seq, b->psn);
		if (b->seq != ENG_NO_SEQ)
			rq->acked_seq = b->seq + 1;
		if (!eng_requester_locating(rq) && rq->side.state != ENG_Q_ENDING)
			note_done(rq, b);
		rq->packets++;
		rq->bytes += b->len;
		eng_mem_release_received(rq, eng_buf_cost(e, b), 1);
		rwy_buf_free(&e->bufs, b);
	}
	if (e->rps && rq->bytes != before)
		eng_rp_taken(rq, rq->bytes - before);
	/* The NAK to the fatal request is sent once and may be lost: silence means the same. */
	if (rq->side.state == ENG_Q_ENDING && (act->failed || !rq->reqr.q.n)) {
		if (rq->responder)
			eng_journal_lost(rq->responder, false);
		eng_requester_fail(rq, lost_from(rq, rq->reqr.una),
		    roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS), (enum eng_end)rq->end, now);
	} else if (act->failed) {
		eng_requester_fail(
		    rq, lost_from(rq, act->fail_psn), act->fail_syndrome, end_reason(act->end), now);
	}
	eng_requester_report(rq, now);
	eng_dirty(&rq->side);
}

/*
 * The PSN that the host expects, where it is not `una`: a NAK names it, and the ACK of a duplicate
 * the one before (IBA 9.7.5.1.2).
 */
static roce_psn expected_psn(const struct eng_requester *rq, const struct roce_pkt *pkt)
{
	const roce_psn una = rq->reqr.una, named = roce_psn_add(pkt->psn, 1);
	uint8_t syn;

	if (pkt->info->op != ROCE_OP_ACK)
		return una;
	syn = roce_aeth_syndrome(pkt);
	if (syn == roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ))
		return pkt->psn;
	if (roce_aeth_type(syn) != ROCE_AETH_ACK || !roce_psn_before(pkt->psn, una))
		return una;
	/* Soft-RoCE's ACK leaves READs out: this gateway had their responses. */
	if (rq->done_known && named == rq->plain_end && roce_psn_after(rq->done_end, named) &&
	    !roce_psn_after(rq->done_end, una))
		return rq->done_end;
	return named;
}

/*
 * A host that was silent answers all that it was asked meanwhile, in order, and the first requests
 * may be of an earlier incarnation or process. So an ACK of an earlier PSN counts if the host was
 * asked again after such an ACK. Responses to other requests, and RNR NAKs to earlier ones, never
 * count; where a host has everything, it answers this incarnation's first request, too.
 */
static bool is_from_before(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now)
{
	const roce_psn una = rq->reqr.una;
	enum roce_aeth_type type;

	if (pkt->info->op != ROCE_OP_ACK)
		return !roce_reqr_may_begin(&rq->reqr, pkt);
	type = roce_aeth_type(roce_aeth_syndrome(pkt));
	if (type == ROCE_AETH_RNR)
		return roce_psn_before(pkt->psn, una);
	if (type != ROCE_AETH_ACK || expected_psn(rq, pkt) == una ||
	    (rq->doubted && rq->last_tx > rq->doubted + ENG_AT_ONCE))
		return false;
	rq->doubted = now;
	rq->reqr.retry_count = 0; /* it is asked again soon */
	return true;
}

/* The first response: SYNC or REWIND tells the near gateway which PSN the host expects. */
static void report_start(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now)
{
	bool aeth = pkt->info->flags & ROCE_F_AETH;
	uint8_t syn = aeth ? roce_aeth_syndrome(pkt) : 0;
	const struct rwy_buf *first = rq->reqr.q.head;
	roce_msn msn = aeth ? roce_aeth_msn(pkt) : 0;
	roce_psn expects = expected_psn(rq, pkt);
	bool acked = aeth && roce_aeth_type(syn) == ROCE_AETH_ACK && !roce_psn_before(pkt->psn, rq->reqr.una);

	roce_reqr_go(&rq->reqr);
	if (expects != rq->reqr.una) {
		/* Earlier packets were lost on the near gateway's LAN: its host must go back. */
		eng_requester_send_sync(rq, ENG_CTRL_REWIND, expects, msn, now);
		eng_requester_begin(rq, expects, rq->reqr.pmtu, false);
		rq->flow = ENG_FLOW_DISCARD;
		return;
	}
	if (first && acked && roce_op_ends(roce_op(first->opcode)))
		msn = (msn - 1) & ROCE_PSN_MASK;
	eng_requester_report_start(
	    rq, 0, msn, first ? eng_requester_unsynced(rq, first->seq) : ENG_NO_SEQ, now);
}

/*
 * A READ response for which there is no memory. The READ is asked for again when there is:
 * meanwhile all that the host sends of it is dropped.
 */
static bool no_memory(
    struct eng_requester *rq, const struct roce_pkt *pkt, const struct rwy_buf *b, rwy_time now)
{
	if (pkt->info->op != ROCE_OP_READ_RESP)
		return false;
	if (!rq->reqr.held_back &&
	    (pkt->psn != rq->reqr.una || eng_mem_admits_response(rq, eng_buf_cost(rq->side.e, b))))
		return false;
	if (!rq->reqr.held_back)
		eng_record_side(&rq->side,
		    &(struct eng_record){.kind = ENG_REC_READ_HELD, .psn = pkt->psn & ROCE_PSN_MASK}, now);
	roce_reqr_hold(&rq->reqr, pkt, now);
	eng_mem_wait(&rq->side);
	return true;
}

/* The host sends it again when it is asked again. */
static bool no_flow(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now)
{
	return pkt->info->op != ROCE_OP_ACK && eng_wan(&rq->side) &&
	       !(eng_requester_need_responses(rq, now) && wan_tx_reserve(rq->responses));
}

/*
 * End-to-end credits are between the host and this gateway. The remote host would heed those of a
 * READ response, and never hear of new ones, for unsolicited ACKs end here (IBA 9.7.7.2).
 */
static void strip_credits(const struct roce_pkt *pkt)
{
	uint8_t none = roce_aeth_make(ROCE_AETH_ACK, ROCE_AETH_CREDIT_INVALID), before;

	if (!(pkt->info->flags & ROCE_F_AETH))
		return;
	before = pkt->ext[0];
	if (roce_aeth_type(before) != ROCE_AETH_ACK || before == none)
		return;
	pkt->ext[0] = none;
	roce_icrc_adjust(pkt, pkt->ext, &before, 1);
}

struct naks {
	uint32_t seq, rnr, implied;
};

static struct naks naks_of(const struct eng_requester *rq)
{
	return (struct naks){rq->reqr.seq_naks, rq->reqr.rnr_naks, rq->reqr.implied_naks};
}

/* roce_reqr_recv has counted pkt since `before`. */
static void note_nak(
    struct eng_requester *rq, const struct roce_pkt *pkt, const struct naks *before, rwy_time now)
{
	const struct naks after = naks_of(rq);
	struct eng_record r = {.kind = ENG_REC_IMPLIED_NAK, .psn = rq->reqr.una & ROCE_PSN_MASK};
	struct eng_counters *c = &rq->side.e->c;

	c->packet_seq_err += after.seq - before->seq;
	c->rnr_nak_received += after.rnr - before->rnr;
	c->implied_nak_seq_err += after.implied - before->implied;
	if (after.rnr != before->rnr) {
		r.kind = ENG_REC_RNR_NAK;
		r.value = (uint32_t)(roce_rnr_time(roce_aeth_value(roce_aeth_syndrome(pkt))) / RWY_US);
	} else if (after.seq != before->seq) {
		r.kind = ENG_REC_NAK_RECEIVED;
		r.to = roce_aeth_syndrome(pkt);
	}
	eng_record_side(&rq->side, &r, now);
}

void eng_requester_take_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rq->side.e;
	struct roce_reqr_act act = {0};
	if (no_memory(rq, pkt, b, now)) {
		eng_drop(e, b, &e->c.drop_memory_read);
		return;
	}
	if (no_flow(rq, pkt, now)) {
		eng_drop(e, b, &e->c.drop_no_buffer);
		return;
	}
	uint32_t resent = rq->reqr.resent;
	const struct naks naks = naks_of(rq);

	eng_np_response(rq, pkt, b, now);
	roce_reqr_recv(&rq->reqr, pkt, &act, now);
	if (e->cfg.hosts) /* several workers */
		eng_host_answered(e, rq->side.host, now);
	if (rq->reqr.seq_naks + rq->reqr.rnr_naks + rq->reqr.implied_naks !=
	    naks.seq + naks.rnr + naks.implied)
		note_nak(rq, pkt, &naks, now);
	e->c.host_resent += rq->reqr.resent - resent;
	if (act.forward && eng_requester_need_responses(rq, now)) {
		strip_credits(pkt);
		b->len = pkt->len;
		b->kind = RWY_BUF_PACKET;
		b->opcode = pkt->opcode;
		b->psn = pkt->psn;
		b->psn_cnt = 1;
		eng_requester_send_response(rq, b, now);
	} else if (act.drop) {
		eng_drop(e, b, pkt->info->op == ROCE_OP_ACK ? &e->c.drop_ghost_ack : &e->c.drop_old_response);
	} else {
		rwy_buf_free(&e->bufs, b);
	}
	complete_requests(rq, &act, now);
}

void eng_requester_first_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	if (roce_reqr_names_nothing(&rq->reqr, pkt)) { /* the answer to the first request will */
		eng_drop(rq->side.e, b, &rq->side.e->c.drop_ghost_ack);
		return;
	}
	if (is_from_before(rq, pkt, now)) {
		eng_drop(rq->side.e, b, &rq->side.e->c.drop_old_response);
		return;
	}
	eng_requester_enter(rq, ENG_Q_RUNNING);
	report_start(rq, pkt, now);
	if (rq->flow == ENG_FLOW_DISCARD)
		rwy_buf_free(&rq->side.e->bufs, b);
	else
		eng_requester_take_response(rq, pkt, b, now);
}

void eng_requester_located(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rq->side.e;

	if (!eng_requester_names_psn(pkt) || eng_requester_owes_request(rq)) {
		eng_drop(e, b, &e->c.drop_old_response);
		return;
	}
	eng_requester_resume_at(rq, pkt, now);
	rwy_buf_free(&e->bufs, b);
}

void eng_requester_end_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	if (eng_requester_end_again(rq, pkt, now))
		rwy_buf_free(&rq->side.e->bufs, b);
	else
		eng_requester_take_response(rq, pkt, b, now);
}

void eng_requester_ghost(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	eng_drop(rq->side.e, b, &rq->side.e->c.drop_ghost_ack);
}

static void tick_requester(struct eng_requester *rq, struct roce_reqr_act *act, rwy_time now)
{
	uint32_t timeouts = rq->reqr.timeouts;

	/* The question is this gateway's own: the remote host does not wait for the answer. */
	if (eng_requester_locating(rq) || rq->side.state == ENG_Q_ENDING)
		rq->reqr.cfg.patience = 0;
	eng_host_ask_others(rq->side.e, rq->side.host, now);
	roce_reqr_tick(&rq->reqr, act, now);
	if (rq->reqr.timeouts == timeouts)
		return;
	rq->side.e->c.local_ack_timeout_err += rq->reqr.timeouts - timeouts;
	eng_record_side(&rq->side,
	    &(struct eng_record){
	        .kind = ENG_REC_TIMEOUT, .psn = rq->reqr.una & ROCE_PSN_MASK, .value = rq->reqr.retry_count},
	    now);
}

void eng_requester_timeout(struct eng_requester *rq, rwy_time now)
{
	struct roce_reqr_act act;

	tick_requester(rq, &act, now);
	complete_requests(rq, &act, now);
}

void eng_requester_end_owed(struct eng_requester *rq, rwy_time now)
{
	if (roce_reqr_next(&rq->reqr) <= now)
		eng_requester_timeout(rq, now);
	if (rq->side.state == ENG_Q_END_OWED)
		eng_requester_end_qp(rq, now);
}

void eng_requester_not_answered(struct eng_requester *rq, rwy_time now)
{
	struct roce_reqr_act act;
	uint32_t timeouts = rq->reqr.timeouts;

	tick_requester(rq, &act, now);
	if (!act.failed && rq->reqr.timeouts != timeouts)
		eng_requester_ask_beside(rq);
	complete_requests(rq, &act, now);
}

void eng_requester_not_located(struct eng_requester *rq, rwy_time now)
{
	struct roce_reqr_act act;

	if (eng_requester_owes_request(rq)) {
		eng_requester_ask_owed(rq, now);
		return;
	}
	tick_requester(rq, &act, now);
	if (rq->questions == 1 && !act.failed && rq->reqr.timeouts)
		eng_requester_ask_duplicate(rq, now);
	else if (act.failed || !eng_requester_not_heard(rq, now))
		complete_requests(rq, &act, now);
}

void eng_requester_responses_broken(struct eng_requester *rq, rwy_time now)
{
	eng_requester_responses_refused(rq);
	/* FAIL or MOVED was the last message. */
	if (rq->side.state == ENG_Q_FAILED || rq->flow == ENG_FLOW_MOVED) {
		rq->owes_control = true;
		eng_wheel_arm(rq, now + RWY_MS);
	} else if (!eng_requester_tells(rq)) { /* else it fails when the host's QP has ended */
		eng_requester_fail(
		    rq, rq->reqr.una, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_NO_MEMORY, now);
	}
}
