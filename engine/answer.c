/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes back for a local host: the far host's answers, what the far gateway says, what was delivered,
 * and ACKs.
 */
#include "engine/responder.h"
#include "engine/emit.h"
#include "engine/pair.h"
#include "engine/requester.h"
#include "engine/session.h"

/* To the host, and kept for it. */
static void serve(struct eng_near *n, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;

	n->served_at = now;
	if (pkt->opcode == ROCE_RC_ATOMIC_ACK) {
		eng_near_keep_atomic(n, pkt->psn, roce_atomic_original(pkt));
		eng_lan_send(e, n->h.key.tenant, b, true, &n->h.key.src, &n->nh);
		return;
	}
	if (n->resp.serve_opcode == pkt->opcode)
		eng_lan_send(e, n->h.key.tenant, b, false, &n->h.key.src, &n->nh);
	else
		eng_near_resend(n, b, n->resp.serve_opcode);
	eng_near_keep_read(n, pkt->psn, b);
}

/* A READ RESPONSE or ATOMIC ACK of the far host. */
void eng_near_take_response(struct eng_near *n, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;
	struct roce_pkt pkt;

	if (roce_parse(b->data, b->len, &pkt) != ROCE_PARSE_OK || !roce_op_is_response(pkt.info) ||
	    pkt.info->transport != ROCE_RC || !rwy_ip_eq(&pkt.src, &n->h.key.dst) ||
	    !rwy_ip_eq(&pkt.dst, &n->h.key.src)) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		return;
	}
	if (!n->resp.pmtu &&
	    (pkt.opcode == ROCE_RC_READ_RESP_FIRST || pkt.opcode == ROCE_RC_READ_RESP_MIDDLE))
		roce_resp_set_pmtu(&n->resp, pkt.payload_len);
	switch (roce_resp_response(&n->resp, pkt.psn, pkt.opcode, now)) {
	case ROCE_RESP_SERVE:
		if (!n->lqpn) /* taken up from before a restart, ahead of the far gateway's word to begin */
			n->lqpn = pkt.dqpn;
		serve(n, &pkt, b, now);
		break;
	case ROCE_RESP_SERVED:
	case ROCE_RESP_UNEXPECTED:
		eng_drop(e, b, &e->c.drop_old_response);
		break;
	}
	n->h.last = n->asked_at = now;
	if (n->parked.n && !n->resp.pmtu_wait)
		eng_near_unpark(n, now);
}

void eng_near_early_response(struct eng_near *n, struct rwy_buf *b, rwy_time now)
{
	eng_drop(n->h.e, b, &n->h.e->c.drop_tunnel_msg);
}

static void rewind_to(struct eng_near *n, roce_psn psn, rwy_time now)
{
	eng_near_abort(n, now);
	rwy_bufq_drain(&n->h.e->bufs, &n->parked);
	roce_resp_rewind(&n->resp, psn);
	roce_resp_go(&n->resp, 0);
}

/* The far host has answered the first packet: the connection is real, and this is where it stands. */
static void synced(struct eng_near *n, const struct eng_ctrl *c)
{
	struct eng *e = n->h.e;

	if (n->resp.started)
		return;
	if (c->qpn)
		n->lqpn = c->qpn;
	if (eng_unpaired(&n->h)) {
		eng_half_open(n, -1);
		n->h.learned = ENG_BY_PEER;
		e->c.conns_paired++;
	}
	if (n->h.state != ENG_R_FAILED)
		eng_near_enter(n, ENG_R_RUNNING);
	roce_resp_go(&n->resp, c->msn);
	eng_ack_started(n);
	/* L's own QPN is known now, so the answers it gives to R are, too. */
	struct eng_key k = {n->h.key.dst, n->h.key.src, c->qpn, n->h.key.tenant};
	struct eng_far *f = (struct eng_far *)eng_find(e, &k, true);

	if (f)
		eng_pair_halves(n, f, ENG_BY_PEER);
	else if (n->far && n->far->h.key.qpn != c->qpn)
		eng_unpair(n->far);
	eng_session_open(n);
	eng_dirty(&n->h);
}

void eng_near_sync(struct eng_near *n, struct eng_ctrl *c, rwy_time now)
{
	n->naks = 0;
	synced(n, c);
}

void eng_near_rewind(struct eng_near *n, struct eng_ctrl *c, rwy_time now)
{
	synced(n, c);
	rewind_to(n, c->psn, now);
}

void eng_near_given_up(struct eng_near *n, struct eng_ctrl *c, rwy_time now)
{
	/* A host in error answers nothing, so nobody knows whose requests these were. Most likely whose they
	 * were before: its error was lost on the LAN, and it sends again. */
	if (!c->qpn && !n->lqpn)
		c->qpn = n->lqpn_before;
	synced(n, c);
	eng_near_fail(n, c->psn, c->syndrome, eng_end_text((enum eng_end)c->end, c->syndrome, false), now);
}

void eng_near_not_resumed(struct eng_near *n, struct eng_ctrl *c, rwy_time now)
{
	/* Refused for what was lost, not because nobody is there: then both hosts may be idle. */
	if (c->syndrome != roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP))
		eng_far_lost_reverse(n, now);
	eng_near_given_up(n, c, now);
}

void eng_near_early_control(struct eng_near *n, struct eng_ctrl *c, rwy_time now)
{
}

void eng_near_delivered(struct eng_near *n, const struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;

	n->custody -= eng_cost(e, b);
	eng_release(n, eng_cost(e, b));
	n->h.ten->st.delivered++;
	e->c.delivered++;
	eng_ack_at_far_host(n, b);
}

static void count_nak(struct eng_near *n, roce_psn psn)
{
	if (n->naks && psn == n->nak_psn) {
		n->naks++;
		return;
	}
	n->naks = 1;
	n->nak_psn = psn;
	n->gap_seen = false;
}

void eng_near_flush(struct eng_near *n, rwy_time now)
{
	struct eng *e = n->h.e;
	struct roce_resp_out out;

	if (n->h.state == ENG_R_NEW)
		return;
	if (n->held)
		eng_ack_unhold(n);
	roce_psn acked = n->resp.acked;

	while (n->lqpn && roce_resp_flush(&n->resp, &out, now)) {
		uint8_t bytes[ROCE_BUILD_MAX];
		struct roce_addr a;

		if (e->jfree)
			eng_journal_note(n);
		eng_near_address(n, &a);
		eng_lan_made(e, n->h.key.tenant, bytes,
		    roce_build_ack(bytes, &a, out.psn, out.syndrome, out.msn), &a.dst, &n->nh);
		if (roce_aeth_type(out.syndrome) == ROCE_AETH_ACK) {
			e->c.acks_sent++;
			if (n->resp.acked != acked)
				n->acked_at = now;
		} else {
			e->c.naks_sent++;
			if (roce_aeth_value(out.syndrome) == ROCE_NAK_PSN_SEQ)
				count_nak(n, out.psn);
		}
		if (roce_aeth_type(out.syndrome) != ROCE_AETH_ACK)
			break;
	}
}
