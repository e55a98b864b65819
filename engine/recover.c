/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart of the near gateway: is a request lost that the remote host has an ACK for?
 * RESUME names the PSN before which that host has ACKs (journal.h). If this gateway or the local
 * host has all of them, the connection goes on. If not, both hosts get an error, also when neither
 * has a request outstanding: the local host is sent a request that no responder accepts, the fatal
 * request, which ends its QP; the next request of the remote host gets an error NAK.
 */
#include "engine/requester.h"
#include "engine/emit.h"
#include "engine/pair.h"
#include "engine/steer.h"
#include "roce/build.h"

#define QUESTIONS_MAX  8
#define SILENT_TWICE   2 /* a question and its repeat: that both are lost is rare */
#define HALF           ((ROCE_PSN_MASK + 1) / 2)
#define IMPOSSIBLE_LEN 0x80000000u /* with no payload (IBA 9.7.4.1.6: at most 2^31) */

/* An RDMA WRITE ONLY of this gateway in the remote host's name. NULL: no memory. */
static struct rwy_buf *make_write(struct eng_requester *rq, roce_psn psn, uint32_t len)
{
	struct roce_addr a = {
	    .src = rq->side.key.src,
	    .dst = rq->side.key.dst,
	    .dqpn = rq->side.key.qpn,
	    .sport = 0xc000,
	    .pkey = 0xffff,
	    .ttl = 64,
	};
	struct rwy_buf *b = rwy_buf_alloc(&rq->side.e->bufs, WAN_HDR_MAX, ROCE_BUILD_MAX);

	if (!b) {
		rq->side.e->c.drop_no_buffer++;
		return NULL;
	}
	b->len = roce_build_write_only(b->data, &a, psn, len);
	b->kind = RWY_BUF_PACKET;
	b->opcode = ROCE_RC_WRITE_ONLY;
	b->psn = psn;
	b->psn_cnt = 1;
	b->seq = ENG_NO_SEQ;
	return b;
}

/* Takes b. False: its PSN does not follow the queue. */
static bool queue_write(struct eng_requester *rq, struct rwy_buf *b)
{
	if (eng_requester_push(rq, b) == ROCE_REQR_PUSHED)
		return true;
	rwy_buf_free(&rq->side.e->bufs, b);
	return false;
}

/* Puts the question into the queue. Without memory it stays owed. */
static void ask_now(struct eng_requester *rq, rwy_time now)
{
	struct rwy_buf *b = make_write(rq, rq->reqr.una, 0);

	if (!b || !queue_write(rq, b))
		eng_wheel_arm(rq, now + RWY_MS);
	eng_dirty(&rq->side);
}

void eng_requester_ask_owed(struct eng_requester *rq, rwy_time now)
{
	if (rq->owes_pair && rq->remote_qpn) {
		/* A note of another worker may have paired it. If not, that one is asked again. */
		rq->owes_pair = !rq->responder && !eng_requester_named(rq, rq->remote_qpn, now);
		rq->peer_named = rq->responder;
	}
	if (!rq->owes_pair)
		ask_now(rq, now);
	else if (eng_requester_has_place(rq))
		eng_wheel_arm(rq, now + RWY_MS);
	else
		eng_requester_fail(
		    rq, rq->reqr.una, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_NO_MEMORY, now);
}

/* The host is to be asked which PSN it expects. */
static void begin_question(struct eng_requester *rq, roce_psn psn, bool resumed)
{
	eng_requester_begin(rq, psn, rq->open_pmtu, true);
	rq->reqr.resumed = resumed;
	rq->questions++;
	eng_requester_enter(rq, ENG_Q_LOCATING);
}

/* Asks the host which PSN it expects, by a WRITE of 0 bytes, which has no effect. */
static void ask_expected_psn(struct eng_requester *rq, roce_psn psn, bool resumed, rwy_time now)
{
	begin_question(rq, psn, resumed);
	ask_now(rq, now);
}

/* Two before the promised PSN. */
static roce_psn question_of(roce_psn promised)
{
	return roce_psn_add(promised, ROCE_PSN_MASK - 1);
}

/*
 * Requests count as lost from the PSN of the question on, when the host does not say what it has:
 * two before the promised one, if there is one.
 */
static roce_psn question_psn(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_LOCATING_LOST && !rq->asked_ahead ? rq->reqr.una
	                                                                 : question_of(rq->promised);
}

void eng_requester_ask_duplicate(struct eng_requester *rq, rwy_time now)
{
	bool lost = rq->side.state == ENG_Q_LOCATING_LOST;

	ask_expected_psn(
	    rq, roce_psn_add(rq->reqr.una, ROCE_PSN_MASK + 1 - ROCE_OUTSTANDING_MAX), rq->reqr.resumed, now);
	rq->questions = 2;
	if (lost)
		eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
}

/*
 * A host that expects an earlier PSN says so once, and that NAK may have been lost, or a gateway
 * that is gone got it. It always answers a duplicate (IBA C9-105).
 */
void eng_requester_ask_beside(struct eng_requester *rq)
{
	struct rwy_buf *b =
	    make_write(rq, roce_psn_add(rq->reqr.una, ROCE_PSN_MASK + 1 - ROCE_OUTSTANDING_MAX), 0);

	if (!b)
		return;
	eng_lan_send(rq->side.e, rq->side.key.tenant, b, true, &rq->side.key.dst, &rq->nh);
	roce_reqr_asked_beside(&rq->reqr);
}

/*
 * Without memory for the fatal request it is tried at each tick: the PSN would be forgotten with
 * the side. The host may have to take others before it: timeouts of before do not count, or the
 * host could be given up before the fatal request is sent.
 */
void eng_requester_end_qp(struct eng_requester *rq, rwy_time now)
{
	struct rwy_buf *b = make_write(rq, rq->reqr.tail, IMPOSSIBLE_LEN);

	if (rq->side.state != ENG_Q_END_OWED) {
		eng_requester_enter(rq, ENG_Q_END_OWED);
		rq->reqr.retry_count = 0;
	}
	if (b && queue_write(rq, b))
		eng_requester_enter(rq, ENG_Q_ENDING);
	else
		eng_wheel_arm(rq, now + RWY_MS);
	eng_dirty(&rq->side);
}

/* Requests are lost, of the remote host from the end of the queue on or of the local one. */
static void end_lost_connection(struct eng_requester *rq, enum eng_end why, rwy_time now)
{
	rq->end = (uint8_t)why;
	eng_record_side(&rq->side,
	    &(struct eng_record){.kind = ENG_REC_LOST, .psn = rq->reqr.tail & ROCE_PSN_MASK, .value = why},
	    now);
	eng_log_side(rq->side.e, 1, &rq->side, eng_end_text(why, 0, true));
	rq->side.e->c.conns_lost++;
	eng_requester_end_qp(rq, now);
}

/*
 * Nothing is lost: SYNC allows the near gateway to go on. RESUME counts as delivered when all
 * before it is: with the last of the requests that are still here.
 */
static void confirm_resume(struct eng_requester *rq, rwy_time now)
{
	if (rq->reqr.q.n)
		rq->reqr.q.tail->seq = rq->resume_seq;
	else
		rq->acked_seq = rq->resume_seq + 1;
	eng_requester_report_start(rq, rq->promised, rq->reqr.host_msn, rq->resume_seq, now);
	eng_requester_report(rq, now);
}

static bool is_resume(const struct rwy_buf *b, struct eng_ctrl *c)
{
	return b->kind == RWY_BUF_CTRL && eng_ctrl_decode(c, b->data, b->len) && c->type == ENG_CTRL_RESUME;
}

bool eng_requester_is_resume(const struct rwy_buf *b)
{
	struct eng_ctrl c;

	return is_resume(b, &c);
}

bool eng_requester_resume(struct eng_requester *rq, const struct rwy_buf *b, rwy_time now)
{
	struct eng_ctrl c;
	roce_psn promised;

	if (!is_resume(b, &c) || (c.qpn != rq->remote_qpn && !rq->owes_pair))
		return false;
	eng_record_side(&rq->side,
	    &(struct eng_record){.kind = ENG_REC_RECEIVED, .to = c.type, .psn = c.psn & ROCE_PSN_MASK}, now);
	promised = rq->promised = c.psn;
	rq->resume_seq = b->seq;
	rq->flow = ENG_FLOW_OPEN;
	if (rq->owes_pair) { /* nobody could say whose answers a host's are */
		if (rq->responder)
			eng_pair_undo(rq);
		begin_question(rq, question_of(promised), true);
		rq->remote_qpn = c.qpn;
		eng_requester_ask_owed(rq, now);
		return true;
	}
	/*
	 * A host that may have more than this gateway sent is asked before anything counts as lost.
	 */
	if (rq->side.state == ENG_Q_RUNNING &&
	    !(rq->reqr.resumed && roce_psn_after(promised, rq->reqr.tail))) {
		if (!roce_psn_after(promised, rq->reqr.tail))
			confirm_resume(rq, now);
		else
			end_lost_connection(rq, ENG_END_LOST, now);
		return true;
	}
	/*
	 * Both gateways restarted: only the host knows what it has. The question is two PSNs before
	 * the promised one. For a host that has everything it is a duplicate, and the ACK names the
	 * latest PSN that the host has executed (IBA 9.7.5.1.2). For a host that lacks the last
	 * packet it is a duplicate or the expected packet, and the response names an earlier PSN.
	 */
	/* an earlier end, which the new process did not hear of */
	if (rq->side.state == ENG_Q_FAILED)
		eng_requester_enter(rq, ENG_Q_IDLE);
	ask_expected_psn(rq, question_of(promised), true, now);
	return true;
}

/*
 * The host has begun a new connection with the same remote QP, and its own QPN there is not known
 * yet: the QP that answers may be the new one. It is asked nothing new: where a question has the
 * PSN that a host expects, the host executes it, and takes its first request for a duplicate.
 */
static bool may_be_another(const struct eng_requester *rq)
{
	return rq->end == ENG_END_UNDELIVERED && rq->responder && !rq->responder->local_qpn &&
	       rq->responder->side.state == ENG_R_WAITING;
}

/*
 * The host expects a PSN farther ahead of `known` than the remote host can be: its QPN has another
 * QP now, which must not end.
 */
static bool is_another(roce_psn expects, roce_psn known)
{
	return roce_psn_diff(expects, known) > (int32_t)ROCE_OUTSTANDING_MAX;
}

/* The request that ends the QP is all that the host is asked for, and the response is before it. */
static bool before_fatal(const struct eng_requester *rq, const struct roce_pkt *pkt)
{
	return rq->reqr.q.n == 1 &&
	       (roce_reqr_names_nothing(&rq->reqr, pkt) || roce_psn_before(pkt->psn, rq->reqr.una));
}

/*
 * The ACK of a duplicate names the last PSN that the host has executed, but Soft-RoCE leaves READs
 * out. Then each ACK, and not only a late one, is before the fatal request; one that is ahead of
 * what the host expects makes it name that.
 */
bool eng_requester_end_again(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now)
{
	uint8_t syn = pkt->info->op == ROCE_OP_ACK ? roce_aeth_syndrome(pkt) : 0;
	bool ack = pkt->info->op == ROCE_OP_ACK && roce_aeth_type(syn) == ROCE_AETH_ACK;
	bool ahead = rq->asked_ahead, before = before_fatal(rq, pkt);
	roce_psn psn, expects = rq->reqr.una; /* or later, if it is asked ahead now */

	if (ack && !before && !roce_psn_before(pkt->psn, roce_psn_add(rq->reqr.tail, ROCE_PSN_MASK))) {
		psn = expects = roce_psn_add(pkt->psn, 1);
	} else if (ack && before && !ahead && rq->reqr.retry_count) {
		psn = roce_psn_add(rq->reqr.una, ROCE_PSN_MASK >> 1);
		ahead = true;
	} else if (syn == roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ) && before && ahead) {
		psn = expects = pkt->psn;
	} else {
		return false;
	}
	if (may_be_another(rq))
		return true; /* it is sent again */
	if (!ahead && is_another(psn, rq->reqr.tail)) {
		eng_requester_fail(rq, rq->reqr.una, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
		    (enum eng_end)rq->end, now);
		return true;
	}
	eng_requester_begin(rq, psn, rq->open_pmtu, false);
	rq->asked_ahead = ahead;
	rq->promised = roce_psn_add(expects, 2);
	eng_requester_end_qp(rq, now);
	return true;
}

/* The requester side with that key, outside of all tunnels if none leads there any more. */
static struct eng_requester *requester_of(struct eng_responder *rs, const struct eng_key *k, rwy_time now)
{
	int to = eng_steer(rs->side.e, k->tenant, &k->dst, &k->src, 0);

	return eng_requester_get_at(rs->side.e, k, to < 0 ? ENG_NO_TUNNEL : to, now);
}

enum eng_used_again eng_requester_used_again(const struct eng_requester *rq)
{
	if (rq->responder)
		return ENG_AGAIN_YES;
	return rq->requests && rq->side.state == ENG_Q_PROBING ? ENG_AGAIN_UNKNOWN : ENG_AGAIN_NO;
}

bool eng_requester_end_lost(struct eng_responder *rs, enum eng_end why, rwy_time now)
{
	struct eng_key k = {rs->side.key.dst, rs->side.key.src, rs->local_qpn, rs->side.key.tenant};
	struct eng_requester *rq = rs->requester;
	const struct eng_requester *has = rq ? NULL : (struct eng_requester *)eng_find(rs->side.e, &k, true);
	const enum eng_used_again again = has ? eng_requester_used_again(has) : ENG_AGAIN_NO;

	if (again != ENG_AGAIN_NO)
		return again == ENG_AGAIN_YES;
	if (!rq && rs->local_qpn && (rq = requester_of(rs, &k, now))) {
		const rwy_time close_at = rs->cold.close_at;

		eng_pair_join(rs, rq, ENG_BY_PEER);
		rs->cold.close_at = close_at; /* it does not begin, it ends */
	}
	if (!rq || eng_requester_ends(rq) || (rq->side.state == ENG_Q_FAILED && rq->host_ended))
		return rq || !rs->local_qpn;
	if (rq->side.state == ENG_Q_RUNNING && !rq->reqr.resumed) {
		end_lost_connection(rq, why, now);
		return true;
	}
	/*
	 * The PSN that the host expects is not known. A request with any PSN makes the host name
	 * it. If it happens to be the expected one, a request without effect is executed on a QP
	 * that ends anyway.
	 */
	if (!eng_requester_locating(rq)) {
		ask_expected_psn(rq, rs->resp.epsn, false, now);
		if (rq->flow == ENG_FLOW_FIRST)
			rq->flow = ENG_FLOW_OPEN;
	}
	if (rq->side.state == ENG_Q_LOCATING)
		eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
	rq->end = (uint8_t)why;
	eng_dirty(&rq->side);
	return true;
}

/*
 * A host for which the question was a duplicate, and which has executed nothing. It names the PSN
 * that it expects when it gets one ahead of that: the farthest one is, wherever the connection
 * begins.
 */
static void ask_ahead(struct eng_requester *rq, rwy_time now)
{
	const bool lost = rq->side.state == ENG_Q_LOCATING_LOST;
	const uint8_t asked = rq->questions;

	/* In LOCATING_LOST nothing is promised. A failure counts requests as lost from the first
	 * question's PSN on, as it does without this one (response.c). */
	if (lost && !rq->asked_ahead)
		rq->promised = roce_psn_add(rq->reqr.una, 2);
	if (asked >= QUESTIONS_MAX) {
		eng_requester_fail(rq, question_psn(rq), roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
		    ENG_END_FORGOTTEN, now);
		return;
	}
	ask_expected_psn(rq, roce_psn_add(rq->reqr.una, ROCE_PSN_MASK >> 1), rq->reqr.resumed, now);
	rq->questions = asked + 1;
	rq->asked_ahead = true;
	if (lost)
		eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
}

/*
 * A Soft-RoCE host that executed only READs names no PSN in its ACK of a duplicate. A host that
 * sent the NAK of its gap to a gateway that is gone does not answer a request ahead. A host may do
 * both, but it answers a duplicate and not a request ahead. So each question halves the PSNs that
 * it may expect.
 */
static void search_on(struct eng_requester *rq, rwy_time now)
{
	const roce_psn from = rq->search_from;
	const uint32_t width = rq->search;
	const uint8_t asked = rq->questions;

	if (width == 1) {
		eng_requester_begin(rq, roce_psn_add(from, 1), rq->open_pmtu, false);
		end_lost_connection(rq, (enum eng_end)rq->end, now);
		return;
	}
	ask_expected_psn(rq, roce_psn_add(from, width / 2), rq->reqr.resumed, now);
	rq->questions = asked;
	rq->asked_ahead = true;
	rq->search_from = from;
	rq->search = width;
	eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
}

/* The question was a duplicate: the host expects a later PSN. */
static void search_later(struct eng_requester *rq, rwy_time now)
{
	rq->search -= (rq->reqr.una - rq->search_from) & ROCE_PSN_MASK;
	rq->search_from = rq->reqr.una;
	search_on(rq, now);
}

bool eng_requester_not_heard(struct eng_requester *rq, rwy_time now)
{
	const roce_psn asked = rq->reqr.una;
	uint32_t width;

	if (rq->side.state != ENG_Q_LOCATING_LOST || rq->reqr.timeouts < SILENT_TWICE)
		return false;
	if (may_be_another(rq))
		return false;
	if (!rq->asked_ahead && rq->questions == 2) {
		/* Neither question was a duplicate, then this one is. */
		ask_expected_psn(rq, roce_psn_add(asked, HALF), rq->reqr.resumed, now);
		rq->questions = 3;
		eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
		return true;
	}
	if (!rq->asked_ahead) /* it answers nothing at all */
		return false;
	if (!rq->search)
		rq->search_from = roce_psn_add(asked, HALF + 1); /* ask_ahead: a duplicate */
	width = (asked - rq->search_from) & ROCE_PSN_MASK;
	if (width) /* else it was the last question */
		rq->search = width;
	search_on(rq, now);
	return true;
}

bool eng_requester_names_psn(const struct roce_pkt *pkt)
{
	return pkt->info->op == ROCE_OP_ACK && roce_aeth_type(roce_aeth_syndrome(pkt)) != ROCE_AETH_RNR;
}

void eng_requester_resume_at(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now)
{
	uint8_t syn = roce_aeth_syndrome(pkt);
	bool lost = rq->side.state == ENG_Q_LOCATING_LOST;
	bool ack = roce_aeth_type(syn) == ROCE_AETH_ACK;
	roce_psn expects = ack ? roce_psn_add(pkt->psn, 1) : pkt->psn;

	if (roce_reqr_names_nothing(&rq->reqr, pkt)) {
		if (lost && may_be_another(rq))
			return; /* it is asked again */
		if (rq->search)
			search_later(rq, now);
		else
			ask_ahead(rq, now);
		return;
	}
	/* In the middle of a message the question is refused, by the PSN that the host expects. */
	if (!ack && syn != roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ)) {
		eng_requester_fail(rq,
		    lost || roce_psn_before(expects, rq->promised) ? expects : rq->promised,
		    roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_FORGOTTEN, now);
		return;
	}
	if (lost && may_be_another(rq))
		return; /* it is asked again */
	if (!lost && is_another(expects, rq->promised)) {
		eng_requester_fail(
		    rq, rq->promised, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_LOST, now);
		return;
	}
	if (lost || roce_psn_before(expects, rq->promised)) {
		eng_requester_begin(rq, expects, rq->open_pmtu, false);
		end_lost_connection(rq, lost ? (enum eng_end)rq->end : ENG_END_LOST, now);
		return;
	}
	/*
	 * The host may have more: its peer resends requests without an ACK, and gets the ACKs then.
	 */
	eng_requester_begin(rq, rq->promised, rq->open_pmtu, false);
	rq->reqr.resumed = true;
	rq->reqr.host_msn = roce_aeth_msn(pkt);
	confirm_resume(rq, now);
}
