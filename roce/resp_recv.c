/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC responder: the verdict on a request packet (IBA 9.7.4.1), one function for each word of the
 * table. Checks have the standard's order: PSN (resp.c), opcode, length. resp_ack.c decides what is
 * sent for it.
 */
#include <stdlib.h>

#include "roce/resp_int.h"

#define DMA_MAX   (1u << 31)     /* IBA 9.7.4.1.6: a message has at most 2^31 bytes */
#define NAK_AGAIN (100 * RWY_MS) /* time after which a gap gets another NAK */
#define PMTU_MAX  4096u
#define ACK_EVERY 64 /* packets: a host that does not ask gets an ACK for as many (IBA 9.7.5.1.2) */

/* Out of line, as accept_rd: their registers would be saved for each SEND and WRITE. */
__attribute__((noinline)) static bool rd_grow(struct roce_resp *r)
{
	uint16_t cap = r->rd_cap ? (uint16_t)(r->rd_cap * 2) : 16;
	struct roce_resp_rd *rd;

	if (cap > ROCE_RESP_RD_MAX)
		return false;
	rd = malloc(cap * sizeof(*rd));
	if (!rd)
		return false;
	for (uint16_t i = 0; i < r->rd_n; i++)
		rd[i] = *roce_resp_rd_at(r, i);
	free(r->rd);
	r->rd = rd;
	r->rd_cap = cap;
	r->rd_head = 0;
	return true;
}

/* The host repeats the rest of an outstanding READ: the response at psn begins a new series. */
static void note_restart(struct roce_resp *r, roce_psn psn)
{
	for (uint16_t i = 0; i < r->rd_n; i++) {
		struct roce_resp_rd *d = roce_resp_rd_at(r, i);
		uint32_t at = (psn - d->psn) & ROCE_PSN_MASK;

		if (at < d->cnt) {
			d->restart = at;
			return;
		}
	}
}

/* A duplicate READ (IBA C9-106): as many responses as the original request has at most. */
static void repeat_read(struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act)
{
	uint32_t len = roce_reth_len(pkt);
	uint32_t room = (r->epsn - pkt->psn) & ROCE_PSN_MASK;

	if (r->pmtu || len <= r->pmtu_min)
		act->psn_cnt = roce_read_packets(len, r->pmtu ? r->pmtu : r->pmtu_min);
	note_restart(r, pkt->psn);
	if (act->psn_cnt > room)
		act->psn_cnt = room;
	act->verdict = ROCE_RESP_DUP_READ;
}

/* A duplicate (IBA 9.7.5.1.5; C9-105 SEND and WRITE, C9-106 READ, C9-110 ATOMIC). */
void roce_resp_do_repeat(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	roce_msn msn;

	if (pkt->info->op == ROCE_OP_UNCARRIED) /* none was ever accepted: it repeats nothing */
		return;
	if (pkt->info->op == ROCE_OP_READ_REQ) {
		repeat_read(r, pkt, act);
		return;
	}
	act->verdict = roce_op_is_atomic(pkt->info) ? ROCE_RESP_DUP_ATOMIC : ROCE_RESP_DUP;
	if (act->verdict == ROCE_RESP_DUP_ATOMIC)
		return;
	if (roce_psn_before(pkt->psn, roce_resp_point(r, &msn))) {
		if (!r->repeats || roce_psn_after(pkt->psn, r->dup_psn))
			r->dup_psn = pkt->psn;
		r->repeats++;
	} else if (pkt->ack_req && !roce_psn_before(pkt->psn, r->want_psn)) {
		/* no ACK is allowed yet: it goes when it is */
		r->want_psn = roce_psn_add(pkt->psn, 1);
	}
}

/* Whether the payload fits path MTU and position (IBA 9.7.4.1.6). A FIRST or MIDDLE shows the path
 * MTU. */
static bool length_ok(struct roce_resp *r, const struct roce_pkt *pkt)
{
	uint32_t n = pkt->payload_len;

	switch ((enum roce_pos)pkt->info->pos) {
	case ROCE_POS_FIRST:
	case ROCE_POS_MIDDLE:
		if (!r->pmtu && roce_resp_pmtu_ok(n))
			r->pmtu = n;
		return n == r->pmtu && r->pmtu;
	case ROCE_POS_LAST:
	case ROCE_POS_ONLY:
		if (!r->pmtu)
			roce_resp_pmtu_least(r, n);
		return n <= (r->pmtu ? r->pmtu : PMTU_MAX) && (n || pkt->info->pos == ROCE_POS_ONLY);
	case ROCE_POS_NONE:
		return true;
	}
	rwy_unreachable();
}

/* Whether a WRITE's payloads add up to its RETH's DMA length (IBA 9.7.4.1.6). */
static bool dma_ok(struct roce_resp *r, const struct roce_pkt *pkt)
{
	if (pkt->info->op != ROCE_OP_WRITE)
		return true;
	if (pkt->info->flags & ROCE_F_RETH) {
		r->left = roce_reth_len(pkt);
		if (r->left > DMA_MAX)
			return false;
	}
	if (r->left == UINT32_MAX) /* the beginning of this message was not seen */
		return true;
	if (roce_op_ends(pkt->info)) {
		bool fits = pkt->payload_len == r->left;

		r->left = UINT32_MAX;
		return fits;
	}
	if (pkt->payload_len >= r->left)
		return false;
	r->left -= pkt->payload_len;
	return true;
}

/* Whether the opcode may follow the one before (IBA 9.7.4.1.3). */
static bool sequence_ok(const struct roce_resp *r, const struct roce_pkt *pkt)
{
	const struct roce_opinfo *i = pkt->info;
	bool between = r->msg == ROCE_OP_NONE || r->msg == ROCE_RESP_JOINED;

	if (i->op != ROCE_OP_SEND && i->op != ROCE_OP_WRITE)
		return between;
	if (roce_op_starts(i))
		return between;
	return r->msg == i->op || r->msg == ROCE_RESP_JOINED;
}

/* READ or ATOMIC in order: its responses are expected from now on. */
__attribute__((noinline)) static enum roce_resp_verdict accept_rd(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act)
{
	bool atomic = pkt->info->op != ROCE_OP_READ_REQ;
	uint32_t len = atomic ? 0 : roce_reth_len(pkt);
	uint32_t out = roce_resp_outstanding(r);
	uint32_t cnt = 0;

	if (len > DMA_MAX)
		return ROCE_RESP_BAD_LEN;
	if (r->pmtu || len <= r->pmtu_min)
		cnt = roce_read_packets(len, r->pmtu ? r->pmtu : r->pmtu_min);
	if (cnt > ROCE_RESP_SPAN)
		return ROCE_RESP_BAD_LEN;
	if (out + (cnt ? cnt : 1) > ROCE_RESP_SPAN || (r->rd_n == r->rd_cap && !rd_grow(r)))
		return ROCE_RESP_TOO_MANY;
	*roce_resp_rd_at(r, r->rd_n++) = (struct roce_resp_rd){
	    .psn = pkt->psn, .cnt = cnt ? cnt : 1, .msn_before = r->msn, .dma_len = len, .atomic = atomic};
	r->msg = ROCE_OP_NONE;
	act->psn_cnt = cnt;
	roce_resp_advance(r, cnt ? cnt : 1);
	r->msn = roce_psn_add(r->msn, 1);
	return ROCE_RESP_ACCEPT;
}

/* Accepts a SEND or WRITE in order. */
static enum roce_resp_verdict accept_data(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act)
{
	bool ends = roce_op_ends(pkt->info);

	if (roce_resp_outstanding(r) >= ROCE_RESP_SPAN)
		return ROCE_RESP_TOO_MANY;
	if (!length_ok(r, pkt) || !dma_ok(r, pkt))
		return ROCE_RESP_BAD_LEN;
	r->msg = ends ? ROCE_OP_NONE : pkt->info->op;
	if (ends)
		r->msn = roce_psn_add(r->msn, 1); /* IBA 9.7.7.1: MSN counts completed messages */
	act->psn_cnt = 1;
	roce_resp_advance(r, 1);
	if (pkt->ack_req || roce_psn_diff(r->epsn, r->acked) >= ACK_EVERY)
		r->want_psn = r->epsn;
	return ROCE_RESP_ACCEPT;
}

void roce_resp_do_accept(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	enum roce_resp_verdict v = ROCE_RESP_BAD_SEQ;
	enum roce_resp_state to;

	if (pkt->info->op == ROCE_OP_UNCARRIED)
		v = ROCE_RESP_BAD_OP;
	else if (sequence_ok(r, pkt))
		v = pkt->info->op == ROCE_OP_SEND || pkt->info->op == ROCE_OP_WRITE ? accept_data(r, pkt, act)
		                                                                    : accept_rd(r, pkt, act);
	if (v == ROCE_RESP_ACCEPT) {
		act->msn = r->msn;
		to = act->psn_cnt ? ROCE_RS_IN_ORDER : ROCE_RS_UNCOUNTED;
		if (r->state != to) /* a gap is closed, or a READ has no count */
			roce_resp_enter(r, to);
	} else if (v != ROCE_RESP_TOO_MANY) {
		roce_resp_host_error(r, pkt->psn);
	}
	act->verdict = v;
}

void roce_resp_do_park(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	if ((pkt->info->pos == ROCE_POS_FIRST || pkt->info->pos == ROCE_POS_MIDDLE) &&
	    roce_resp_pmtu_ok(pkt->payload_len))
		act->pmtu = pkt->payload_len;
	act->verdict = ROCE_RESP_PARK;
}

/* --- gaps (IBA 9.7.4.1.2, 9.7.5.1.3) ---------------------------------------------------------- */

void roce_resp_do_gap(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	if (r->state != ROCE_RS_GAP)
		roce_resp_enter(r, ROCE_RS_GAP);
	act->verdict = ROCE_RESP_GAP;
}

void roce_resp_do_gap_again(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	if (rwy_since(r->nak_time, now) >= NAK_AGAIN)
		roce_resp_enter(r, ROCE_RS_GAP);
	act->verdict = ROCE_RESP_GAP;
}

/* No NAK before there is room: the host would only send again what is dropped again. */
void roce_resp_do_gap_no_room(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	act->verdict = ROCE_RESP_GAP;
}

/* --- after an error --------------------------------------------------------------------------- */

void roce_resp_do_refuse(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	if (r->state == ROCE_RS_FAILED)
		roce_resp_enter(r, ROCE_RS_ERROR_OWED);
	else if (r->state == ROCE_RS_ERROR_SENT)
		roce_resp_enter(r, ROCE_RS_ERROR_AGAIN);
	act->verdict = ROCE_RESP_FAILED;
}

/* roce_resp_lost may name a PSN after the expected one: requests before it are dropped. */
void roce_resp_do_refuse_from(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	if (roce_psn_before(pkt->psn, r->fail_psn))
		act->verdict = ROCE_RESP_GAP;
	else
		roce_resp_do_refuse(r, pkt, act, now);
}

/*
 * The repeated READ that got the error may have come late: a host that has its responses ignores a
 * NAK of that PSN. So the error moves to the PSN that the host resends first.
 */
static void move_error(struct roce_resp *r, roce_psn psn)
{
	if (roce_psn_after(psn, r->fail_psn))
		r->fail_psn = roce_psn_after(psn, r->acked) ? r->acked : psn;
}

void roce_resp_do_refuse_error(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	move_error(r, pkt->psn);
	roce_resp_do_refuse_from(r, pkt, act, now);
}

void roce_resp_do_repeat_failed(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	if (roce_psn_before(pkt->psn, r->fail_psn))
		roce_resp_do_repeat(r, pkt, act, now);
	else
		roce_resp_do_refuse(r, pkt, act, now);
}

/* Without a lost response the host ignores the NAK, so a duplicate is handled first. */
void roce_resp_do_repeat_error(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	move_error(r, pkt->psn);
	roce_resp_do_repeat_failed(r, pkt, act, now);
	if (r->repeats && r->state == ROCE_RS_ERROR_SENT)
		roce_resp_enter(r, ROCE_RS_ERROR_AGAIN);
}
