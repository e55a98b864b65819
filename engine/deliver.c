/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that came over the WAN for a local host. The first packet of each incarnation goes out
 * alone with AckReq set. The host's response shows that the QP exists, which QPN its peer has, and
 * which PSN it expects. Only then does the near gateway acknowledge anything
 * (docs/rc-semantics.md).
 */
#include "engine/requester.h"
#include "engine/emit.h"
#include "engine/pair.h"

/* PSNs that a request takes (IBA 9.4.4); 0 for a READ while the path MTU is not known. */
static uint32_t psn_count(const struct eng_requester *rq, const struct roce_pkt *pkt)
{
	if (pkt->info->op != ROCE_OP_READ_REQ)
		return 1;
	if (roce_reth_len(pkt) <= 256)
		return 1;
	return rq->reqr.pmtu ? roce_read_packets(roce_reth_len(pkt), rq->reqr.pmtu) : 0;
}

/* The first request of an opened flow: continues the queue, or asks the host which PSN it
 * expects. */
static void continue_or_probe(
    struct eng_requester *rq, const struct roce_pkt *pkt, uint64_t seq, rwy_time now)
{
	if (eng_requester_answered(rq) && pkt->psn == rq->reqr.tail) {
		/* The near gateway restarted or rewound: nothing is missing. */
		eng_requester_report_start(
		    rq, rq->reqr.tail, rq->reqr.host_msn, eng_requester_unsynced(rq, seq), now);
		return;
	}
	if (eng_requester_answered(rq) &&
	    (rq->reqr.q.n || (rq->continued && roce_psn_before(pkt->psn, rq->reqr.tail)))) {
		/*
		 * Earlier requests are still queued, or a standby sends again what the gateway
		 * before it did not report: roce_reqr_push tells duplicates from holes.
		 */
		eng_requester_report_start(
		    rq, rq->reqr.tail, rq->reqr.host_msn, eng_requester_unsynced(rq, seq), now);
		return;
	}
	/* An incarnation inherits neither the path MTU nor the pairing. */
	if (rq->responder && !rq->peer_named)
		eng_pair_undo(rq);
	eng_requester_begin(rq, pkt->psn, rq->open_pmtu, true);
	rq->reqr.resumed = true;
	if (!rq->responder)
		eng_pair_queue(rq, now);
}

/* b asks for the rest of the READ in q: the remote host has its first responses. */
static bool is_rest_of_read(const struct rwy_buf *q, const struct rwy_buf *b)
{
	uint32_t at = (b->psn - q->psn) & ROCE_PSN_MASK;

	return roce_op(b->opcode)->op == ROCE_OP_READ_REQ && b->opcode == q->opcode && b->psn_cnt &&
	       at < q->psn_cnt && at + b->psn_cnt == q->psn_cnt;
}

/*
 * The request is queued already: the near gateway restarted, and its host sent it again. Reports
 * name the flow sequence that it has now.
 */
static void renumber_request(struct eng_requester *rq, const struct rwy_buf *b, rwy_time now)
{
	for (struct rwy_buf *q = rq->reqr.q.head; q; q = q->next)
		if (q->psn == b->psn || is_rest_of_read(q, b)) {
			q->seq = b->seq;
			/*
			 * Responses of this READ that the near gateway lost are needed again. A
			 * standby that continues the connection gets them from their flow.
			 */
			if (q == rq->reqr.q.head && !(rq->continued && rq->responses))
				roce_reqr_reread(&rq->reqr, b->psn);
			return;
		}
	/* The host has executed it: only a second execution would bring a lost response again. */
	if ((roce_op(b->opcode)->op == ROCE_OP_READ_REQ || roce_op_is_atomic(roce_op(b->opcode))) &&
	    !eng_requester_waits_for(rq, b->psn, b->seq)) {
		eng_requester_fail(
		    rq, b->psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_ANSWER_LOST, now);
		return;
	}
	rq->acked_seq = b->seq + 1;
}

static bool well_formed(const struct eng_requester *rq, const struct rwy_buf *b, struct roce_pkt *pkt)
{
	return b->kind == RWY_BUF_PACKET && roce_parse(b->data, b->len, pkt) == ROCE_PARSE_OK &&
	       roce_op_is_request(pkt->info) && pkt->info->transport == ROCE_RC &&
	       pkt->dqpn == rq->side.key.qpn && rwy_ip_eq(&pkt->src, &rq->side.key.src) &&
	       rwy_ip_eq(&pkt->dst, &rq->side.key.dst);
}

static void refuse_malformed(struct eng_requester *rq, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rq->side.e;

	eng_drop(e, b, &e->c.drop_tunnel_msg);
	eng_requester_fail(rq, 0, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_MALFORMED, now);
}

/* Takes b, whose packet is pkt, into the requester's queue. */
static void queue_request(
    struct eng_requester *rq, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rq->side.e;

	if (!rq->side.dirty && e->ops->lan_ahead)
		e->ops->lan_ahead(e->ctx, &rq->nh);
	b->opcode = pkt->opcode;
	b->psn = pkt->psn;
	b->psn_cnt = psn_count(rq, pkt);
	rq->reads |= pkt->info->op == ROCE_OP_READ_REQ;
	if (rq->continued)
		eng_requester_passed(rq, pkt->psn);
	switch (eng_requester_push(rq, b)) {
	case ROCE_REQR_PUSHED:
		break;
	case ROCE_REQR_OLD:
		renumber_request(rq, b, now);
		rwy_buf_free(&e->bufs, b);
		eng_requester_report(rq, now);
		break;
	case ROCE_REQR_HOLE:
		rwy_buf_free(&e->bufs, b);
		eng_requester_fail(
		    rq, rq->reqr.tail, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_LOST, now);
		break;
	}
	eng_dirty(&rq->side);
}

void eng_requester_first_message(struct eng_requester *rq, struct rwy_buf *b, rwy_time now)
{
	struct roce_pkt pkt;

	if (eng_requester_resume(rq, b, now)) {
		rwy_buf_free(&rq->side.e->bufs, b);
		return;
	}
	if (!well_formed(rq, b, &pkt)) {
		refuse_malformed(rq, b, now);
		return;
	}
	rq->flow = ENG_FLOW_OPEN;
	rq->owes_pair = false; /* the host's response shows who its peer is */
	continue_or_probe(rq, &pkt, b->seq, now);
	queue_request(rq, &pkt, b, now);
}

void eng_requester_take_message(struct eng_requester *rq, struct rwy_buf *b, rwy_time now)
{
	struct roce_pkt pkt;

	if (!well_formed(rq, b, &pkt)) {
		refuse_malformed(rq, b, now);
		return;
	}
	queue_request(rq, &pkt, b, now);
}

void eng_requester_discard(struct eng_requester *rq, struct rwy_buf *b, rwy_time now)
{
	rwy_buf_free(&rq->side.e->bufs, b);
}
