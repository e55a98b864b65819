/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a local host: into custody, or why not. */
#include "engine/responder.h"
#include "engine/emit.h"

static void accept(struct eng_near *n, const struct roce_pkt *pkt, struct rwy_buf *b,
    const struct roce_resp_act *act, rwy_time now)
{
	struct eng *e = n->h.e;

	if (!n->req && !eng_near_open(n, now)) {
		/* The responder has counted it in; without a flow the connection cannot go on. */
		eng_drop(e, b, &e->c.drop_no_buffer);
		eng_near_fail(
		    n, pkt->psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), "no memory for a flow", now);
		return;
	}
	b->len = pkt->len;
	b->kind = RWY_BUF_PACKET;
	b->opcode = pkt->opcode;
	b->psn = pkt->psn;
	b->psn_cnt = act->psn_cnt;
	b->msn = act->msn;
	if (pkt->psn == n->nak_psn)
		n->naks = 0;
	if (pkt->info->op == ROCE_OP_READ_REQ)
		n->read[n->reads_asked++ % ENG_READS] =
		    (struct eng_read){pkt->psn, roce_reth_rkey(pkt), roce_reth_len(pkt), roce_reth_va(pkt)};
	n->packets++;
	n->bytes += b->len;
	eng_hold(n, eng_cost(e, b));
	n->h.ten->st.accepted++;
	n->h.ten->st.accepted_bytes += b->len;
	e->c.accepted++;
	if (eng_np_congested(n, pkt, b))
		eng_cnp_send(n, now);
	wan_tx_send(n->req, b, now);
	eng_ack_in_custody(n, now);
}

static void restart(struct eng_near *n, const struct roce_pkt *pkt, rwy_time now)
{
	/* n->far stays: if this was no new connection it is right, and if it was, the far half finds out by
	 * itself. */
	if (n->lqpn)
		n->lqpn_before = n->lqpn;
	n->lqpn = 0;
	if (!eng_unpaired(&n->h))
		eng_half_open(n, 1);
	n->h.learned = ENG_BY_NOBODY;
	n->h.error = "";
	eng_near_start(n, pkt->psn, 0, now);
}

void eng_near_unpark(struct eng_near *n, rwy_time now)
{
	struct rwy_bufq q = n->parked;
	struct rwy_buf *b;

	n->parked = (struct rwy_bufq){0};
	while ((b = rwy_bufq_pop(&q))) {
		struct roce_pkt pkt;

		if (roce_parse(b->data, b->len, &pkt) == ROCE_PARSE_OK)
			eng_near_take_request(n, &pkt, b, now);
		else
			rwy_buf_free(&n->h.e->bufs, b);
	}
}

static void learn_header(struct eng_near *n, const struct roce_pkt *pkt)
{
	n->sport = pkt->sport;
	n->pkey = pkt->pkey;
	n->migreq = pkt->migreq;
	/* DSCP as the host's own packets have it, ECN-capable as hosts send ACKs: not marked. */
	n->tos = (pkt->is6 ? (uint8_t)(pkt->ip[0] << 4 | pkt->ip[1] >> 4) : pkt->ip[1]) & 0xfc;
}

void eng_near_take_request(struct eng_near *n, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;
	struct roce_resp_act act;
	bool again = false;

	if (n->h.state == ENG_R_WAITING && n->req && wan_tx_queued(n->req) >= ENG_UNPAIRED_MAX) {
		eng_drop(e, b, &e->c.drop_unpaired_full);
		return;
	}
	if (n->naks >= ENG_NAKS_MAX && n->gap_seen && roce_psn_after(pkt->psn, n->nak_psn)) {
		/* The host has nothing to send from there: it was told that it had arrived, by a gateway that
		 * is no more. Its oldest outstanding request, where it always begins again, gets the error.
		 */
		eng_near_fail(n, n->gap_low, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
		    "requests were lost in a gateway restart", now);
		roce_resp_lost(&n->resp, n->gap_low);
		n->naks = 0;
		n->h.last = n->asked_at = now;
		eng_drop(e, b, &e->c.drop_after_error);
		eng_dirty(&n->h); /* the error goes out before anything else is made of this host's packets */
		return;
	}
	if (n->deaf_until && eng_reuse_deaf(n, now)) {
		eng_drop(e, b, &e->c.drop_crossed);
		return;
	}
retry:
	roce_resp_recv(&n->resp, pkt, &act, now);
	if (act.verdict != ROCE_RESP_ACCEPT && !again && eng_reuse_may_be_new(n, pkt, act.verdict, now)) {
		if (eng_reuse_crossed(n, act.verdict, now)) {
			eng_drop(e, b, &e->c.drop_crossed);
			return;
		}
		restart(n, pkt, now);
		again = true;
		goto retry;
	}
	n->h.last = n->asked_at = now;
	eng_dirty(&n->h);
	switch (act.verdict) {
	case ROCE_RESP_ACCEPT:
		accept(n, pkt, b, &act, now);
		return;
	case ROCE_RESP_PARK:
		if (n->parked.n < ENG_PARKED_MAX) {
			b->len = pkt->len;
			rwy_bufq_push(&n->parked, b);
			e->c.parked++;
			if (act.pmtu && roce_resp_set_pmtu(&n->resp, act.pmtu))
				eng_near_unpark(n, now);
			return;
		}
		eng_drop(e, b, &e->c.drop_too_many_outstanding);
		return;
	case ROCE_RESP_DUP:
		eng_ack_single(n, pkt, now);
		if (n->held) /* its timer ran out, and what it sends again is of no use: nothing else slows it
		                down */
			eng_cnp_send(n, now);
		eng_drop(e, b, &e->c.duplicate_request);
		return;
	case ROCE_RESP_DUP_READ:
		eng_near_replay(n, pkt->psn, act.psn_cnt, now);
		eng_drop(e, b, &e->c.duplicate_read);
		return;
	case ROCE_RESP_DUP_ATOMIC:
		eng_near_replay_atomic(n, pkt->psn, now);
		eng_drop(e, b, &e->c.duplicate_read);
		return;
	case ROCE_RESP_GAP:
		if (!n->gap_seen || roce_psn_before(pkt->psn, n->gap_low))
			n->gap_low = pkt->psn;
		n->gap_seen = true;
		eng_drop(e, b, &e->c.out_of_sequence);
		return;
	case ROCE_RESP_BAD_SEQ:
	case ROCE_RESP_BAD_LEN:
		eng_drop(e, b, &e->c.drop_bad_sequence);
		return;
	case ROCE_RESP_TOO_MANY:
		eng_drop(e, b, &e->c.drop_too_many_outstanding);
		return;
	case ROCE_RESP_STALE:
		eng_drop(e, b, &e->c.drop_stale_psn);
		return;
	case ROCE_RESP_FAILED:
		eng_drop(e, b, &e->c.drop_after_error);
		return;
	case ROCE_RESP_VERDICT_COUNT:
		break;
	}
	rwy_unreachable();
}

void eng_near_first_request(struct eng_near *n, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	learn_header(n, pkt);
	eng_near_start(n, pkt->psn, 0, now);
	eng_near_take_request(n, pkt, b, now);
}

void eng_near_early_request(struct eng_near *n, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;

	n->h.last = n->asked_at = now;
	eng_drop(e, b, &e->c.drop_resuming); /* the host sends again; nothing of it was acknowledged */
}
