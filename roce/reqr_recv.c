/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC requester: responses of the host (IBA 9.7.6): ACK, NAK, RNR NAK, READ responses, ATOMIC ACK.
 */
#include "roce/reqr_int.h"

/*
 * The host has everything before `upto` (IBA 9.7.5.1.2, coalesced acknowledge). Stops at a READ or
 * ATOMIC, which only its response completes. Returns true when there is one before `upto`: its
 * response was lost.
 */
static bool release(struct roce_reqr *r, roce_psn upto, struct roce_reqr_act *act, rwy_time now)
{
	struct rwy_buf *b;
	bool any = false;

	while ((b = r->q.head) && !roce_reqr_needs_response(b) && !roce_psn_after(roce_reqr_end(b), upto)) {
		roce_reqr_pop(r, act);
		any = true;
	}
	if (any)
		roce_reqr_progress(r, act, now);
	return b && roce_reqr_needs_response(b) && roce_psn_before(r->una, upto);
}

/* Goes back for a gap. False: it did so for this gap before. */
static bool again(struct roce_reqr *r)
{
	if (r->nak_seen)
		return false;
	r->nak_seen = true;
	roce_reqr_go_back(r);
	r->copies = 0; /* what it sends again now has answers of its own */
	return true;
}

/* Implied NAK (IBA 9.7.5.1.2, 9.7.6.1): a response passed a READ or ATOMIC without one. */
static void implied_nak(struct roce_reqr *r)
{
	if (again(r))
		r->implied_naks++;
}

static void seq_nak(struct roce_reqr *r, struct roce_reqr_act *act)
{
	if (r->rnr_until) {
		/* After an RNR NAK the host drops the packets that follow. */
		act->drop = "nak_while_rnr";
		return;
	}
	if (!again(r)) {
		act->drop = "repeated_nak";
		return;
	}
	r->seq_naks++;
	roce_reqr_cut(r);
}

/*
 * The host's peer is acknowledged early and without credits. With the host's own credits it would
 * have waited, and no RNR NAK would count against a small or no RNR retry count. What the host had
 * told of credits before a restart of this gateway is not known.
 */
static bool not_ready_ends(const struct roce_reqr *r)
{
	if (r->credits == ROCE_CREDITS_GIVEN || (r->credits == ROCE_CREDITS_UNKNOWN && r->resumed))
		return false;
	return r->cfg.rnr_retry < 7 && r->rnr_count >= r->cfg.rnr_retry;
}

/* IBA 9.7.5.2.8: waits for the time that the NAK names, then sends again. */
static void rnr_nak(struct roce_reqr *r, uint8_t timer, roce_psn psn, struct roce_reqr_act *act, rwy_time now)
{
	if (r->rnr_until) {
		act->drop = "repeated_nak";
		return;
	}
	r->rnr_naks++;
	if (not_ready_ends(r)) {
		roce_reqr_give_up(
		    r, act, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), psn, ROCE_REQR_NOT_READY);
		return;
	}
	if (r->rnr_count < UINT8_MAX)
		r->rnr_count++;
	roce_reqr_go_back(r);
	r->retry_count = 0; /* the host is alive */
	r->nak_seen = false;
	r->rnr_until = now + roce_rnr_time(timer);
}

static void nak(struct roce_reqr *r, uint8_t syndrome, roce_psn psn, struct roce_reqr_act *act)
{
	switch ((enum roce_nak)roce_aeth_value(syndrome)) {
	case ROCE_NAK_PSN_SEQ:
		seq_nak(r, act);
		return;
	case ROCE_NAK_INV_REQ:
	case ROCE_NAK_REM_ACCESS:
	case ROCE_NAK_REM_OP:
		roce_reqr_give_up(r, act, syndrome, psn, ROCE_REQR_REFUSED);
		return;
	case ROCE_NAK_INV_RD: /* not for RC */
		break;
	}
	act->drop = "bad_syndrome"; /* reserved code (IBA table 46) */
}

/* Names a PSN outside [una, high): `old` if before, `ghost` if after (IBA 9.7.6.1: never sent). */
static const char *outside(
    struct roce_reqr *r, const struct roce_pkt *pkt, const char *old, const char *ghost, rwy_time now)
{
	if (!roce_psn_before(pkt->psn, r->una))
		return ghost;
	/* A repeated READ is answered with its last packet, not with its first. */
	if (r->copies && (pkt->info->op != ROCE_OP_READ_RESP || roce_op_ends(pkt->info))) {
		r->copies--;
		roce_reqr_host_late(r->host, r->repeated_at, now);
	}
	return old;
}

/* IBA 9.7.7.2: positive AETHs of ACKs, READ responses and ATOMIC ACKs have credits, or say that
 * the host gives none. */
static void hear_credits(struct roce_reqr *r, uint8_t syndrome)
{
	if (roce_aeth_type(syndrome) == ROCE_AETH_ACK && r->credits != ROCE_CREDITS_GIVEN)
		r->credits = roce_aeth_value(syndrome) != ROCE_AETH_CREDIT_INVALID ? ROCE_CREDITS_GIVEN
		                                                                   : ROCE_CREDITS_NONE;
}

bool roce_reqr_names_nothing(const struct roce_reqr *r, const struct roce_pkt *pkt)
{
	return pkt->info->op == ROCE_OP_ACK && pkt->psn == ROCE_PSN_MASK &&
	       roce_aeth_type(roce_aeth_syndrome(pkt)) == ROCE_AETH_ACK &&
	       /* neither the PSN before the first request, nor that of a request here */
	       ((0 - r->una) & ROCE_PSN_MASK) > ((r->tail - r->una) & ROCE_PSN_MASK);
}

static void recv_ack(struct roce_reqr *r, const struct roce_pkt *pkt, struct roce_reqr_act *act, rwy_time now)
{
	uint8_t syn = roce_aeth_syndrome(pkt);
	enum roce_aeth_type type = roce_aeth_type(syn);
	bool ack = type == ROCE_AETH_ACK, fatal;
	roce_psn psn = pkt->psn;

	if (type == ROCE_AETH_RSVD) {
		act->drop = "bad_syndrome";
		return;
	}
	if (!roce_reqr_in_flight(r, psn)) {
		bool ahead = r->resumed && !roce_psn_before(psn, r->high) &&
		             !roce_reqr_names_nothing(r, pkt) &&
		             (ack || syn == roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ));

		if (!ahead || r->una == r->high) {
			act->drop = outside(r, pkt, "old_ack", "ghost_ack", now);
			return;
		}
		/* The host has more than this requester sent, so it has all of it. */
		psn = r->high;
		if (release(r, psn, act, now))
			implied_nak(r);
		r->host_msn = roce_aeth_msn(pkt);
		return;
	}
	r->host_msn = roce_aeth_msn(pkt);
	hear_credits(r, syn);
	if (ack && roce_psn_add(psn, 1) == r->high)
		r->resumed = false; /* the host has nothing that was not sent here */
	fatal = type == ROCE_AETH_NAK && roce_aeth_value(syn) != ROCE_NAK_PSN_SEQ;
	if (release(r, ack ? roce_psn_add(psn, 1) : psn, act, now)) {
		if (!fatal) {
			implied_nak(r);
			return;
		}
		/* A host in error sends no more responses: the READ before it fails as well. */
		psn = r->una;
	}
	if (type == ROCE_AETH_RNR)
		rnr_nak(r, roce_aeth_value(syn), psn, act, now);
	else if (!ack)
		nak(r, syn, psn, act);
}

/* Whether the response fits the READ: length, position, status (IBA 9.7.6.1). Sets path MTU and
 * count. */
static bool response_ok(struct roce_reqr *r, struct rwy_buf *b, const struct roce_pkt *pkt)
{
	bool last = roce_op_ends(pkt->info);
	uint32_t len = roce_reqr_read_len(b);

	if ((pkt->info->flags & ROCE_F_AETH) && roce_aeth_type(roce_aeth_syndrome(pkt)) != ROCE_AETH_ACK)
		return false;
	if (!last && !r->pmtu)
		roce_reqr_learn_pmtu(r, pkt->payload_len);
	if (!last && r->pmtu && !b->psn_cnt) /* the caller has set the path MTU */
		roce_reqr_set_count(r, b, roce_read_packets(len, r->pmtu));
	if (!b->psn_cnt && pkt->opcode == ROCE_RC_READ_RESP_ONLY && pkt->payload_len == len)
		roce_reqr_set_count(r, b, 1);
	if (!b->psn_cnt || last != (roce_psn_add(pkt->psn, 1) == roce_reqr_end(b)))
		return false;
	if (!last)
		return pkt->payload_len == r->pmtu;
	return pkt->payload_len == (b->psn_cnt == 1 ? len : len - (b->psn_cnt - 1) * r->pmtu);
}

/* Called after release(). Whether the response is for the oldest request; otherwise it passed one,
 * or matches none. */
static bool head_is(struct roce_reqr *r, roce_psn psn, bool read, struct roce_reqr_act *act)
{
	struct rwy_buf *b = r->q.head;

	if (b && roce_reqr_needs_response(b) && roce_reqr_is_read(b) == read && psn == r->una)
		return true;
	if (b && roce_reqr_needs_response(b) && roce_psn_before(r->una, psn)) {
		act->drop = "response_gap";
		implied_nak(r);
	} else {
		act->drop = "unexpected_response";
	}
	return false;
}

static void recv_response(
    struct roce_reqr *r, const struct roce_pkt *pkt, struct roce_reqr_act *act, rwy_time now)
{
	bool read = pkt->info->op == ROCE_OP_READ_RESP;

	if (read)
		roce_reqr_host_read(r->host, pkt->payload_len, now);
	if (!roce_reqr_in_flight(r, pkt->psn)) {
		act->drop = outside(r, pkt, "old_response", "ghost_response", now);
		return;
	}
	release(r, pkt->psn, act, now);
	if (!head_is(r, pkt->psn, read, act))
		return;
	if (read ? !response_ok(r, r->q.head, pkt)
	         : roce_aeth_type(roce_aeth_syndrome(pkt)) != ROCE_AETH_ACK) {
		act->drop = "bad_response";
		return;
	}
	act->forward = true;
	if (read)
		roce_reqr_settle(r, pkt->payload_len);
	if (pkt->info->flags & ROCE_F_AETH) {
		r->host_msn = roce_aeth_msn(pkt);
		hear_credits(r, roce_aeth_syndrome(pkt));
	}
	if (roce_psn_add(pkt->psn, 1) == roce_reqr_end(r->q.head))
		roce_reqr_pop(r, act);
	else
		r->una = roce_psn_add(pkt->psn, 1);
	roce_reqr_progress(r, act, now);
}

bool roce_reqr_may_begin(const struct roce_reqr *r, const struct roce_pkt *pkt)
{
	const struct rwy_buf *b = r->q.head;

	if (pkt->info->op == ROCE_OP_READ_RESP)
		return b && roce_reqr_is_read(b) && roce_op_starts(pkt->info) && pkt->psn == r->una;
	if (pkt->info->op == ROCE_OP_ATOMIC_ACK)
		return b && roce_op_is_atomic(roce_op(b->opcode)) && pkt->psn == r->una;
	return true;
}

void roce_reqr_recv(struct roce_reqr *r, const struct roce_pkt *pkt, struct roce_reqr_act *act, rwy_time now)
{
	*act = (struct roce_reqr_act){0};
	roce_reqr_host_heard(r->host, now);
	if (r->failed) {
		act->drop = "after_error";
	} else if (pkt->info->transport != ROCE_RC || !roce_op_is_response(pkt->info)) {
		act->drop = "unexpected_response";
	} else if (pkt->info->op == ROCE_OP_ACK) {
		recv_ack(r, pkt, act, now);
	} else {
		recv_response(r, pkt, act, now);
		if (act->drop && pkt->info->op == ROCE_OP_READ_RESP)
			roce_reqr_still_answers(r, now);
	}
}
