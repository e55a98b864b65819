/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC responder: the verdict on a request packet (IBA 9.7.4.1). Checks are in the standard's order:
 * PSN, opcode sequence, length. resp_ack.c decides what is sent for it.
 */
#include <stdlib.h>

#include "roce/resp_int.h"

#define DMA_MAX   (1u << 31)     /* IBA 9.7.4.1.6: a message has at most 2^31 bytes */
#define NAK_AGAIN (100 * RWY_MS) /* time after which a gap gets another NAK */
#define PMTU_MAX  4096u

static bool rd_grow(struct roce_resp *r)
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

/* A duplicate (IBA 9.7.5.1.5; C9-105 SEND and WRITE, C9-106 READ, C9-110 ATOMIC). */
static void recv_dup(struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act)
{
	roce_psn point;
	roce_msn msn;

	if (pkt->info->op == ROCE_OP_READ_REQ) {
		uint32_t len = roce_reth_len(pkt);
		uint32_t room = (r->epsn - pkt->psn) & ROCE_PSN_MASK;

		act->verdict = ROCE_RESP_DUP_READ;
		if (r->pmtu || len <= r->pmtu_min)
			act->psn_cnt = roce_read_packets(len, r->pmtu ? r->pmtu : r->pmtu_min);
		note_restart(r, pkt->psn);
		if (act->psn_cnt > room) /* C9-106: at most the original request */
			act->psn_cnt = room;
		return;
	}
	if (roce_op_is_atomic(pkt->info)) {
		act->verdict = ROCE_RESP_DUP_ATOMIC;
		return;
	}
	act->verdict = ROCE_RESP_DUP;
	point = roce_resp_point(r, &msn);
	if (roce_psn_before(pkt->psn, point)) {
		if (!r->dup_ack || roce_psn_after(pkt->psn, r->dup_psn))
			r->dup_psn = pkt->psn;
		r->dup_ack = true;
	} else if (pkt->ack_req) { /* no ACK is allowed yet: it goes later */
		if (!r->want_ack || roce_psn_after(pkt->psn, r->want_psn))
			r->want_psn = pkt->psn;
		r->want_ack = true;
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

/* Accepts a READ or ATOMIC in order: its responses are expected from now on. */
static enum roce_resp_verdict accept_rd(
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
	r->pmtu_wait = !cnt;
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
	if (pkt->ack_req) {
		r->want_ack = true;
		r->want_psn = pkt->psn;
	}
	return ROCE_RESP_ACCEPT;
}

static enum roce_resp_verdict recv_expected(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act)
{
	enum roce_resp_verdict v = ROCE_RESP_BAD_SEQ;

	if (sequence_ok(r, pkt))
		v = pkt->info->op == ROCE_OP_SEND || pkt->info->op == ROCE_OP_WRITE ? accept_data(r, pkt, act)
		                                                                    : accept_rd(r, pkt, act);
	if (v == ROCE_RESP_ACCEPT) {
		act->msn = r->msn;
		r->gap = ROCE_RESP_NO_GAP; /* a gap is closed */
	} else if (v != ROCE_RESP_TOO_MANY) {
		roce_resp_host_error(r, pkt->psn);
	}
	return v;
}

/* A gap (IBA 9.7.4.1.2, 9.7.5.1.3): one NAK, and another after NAK_AGAIN. */
static void recv_ahead(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	act->verdict = ROCE_RESP_GAP;
	if (r->gap != ROCE_RESP_NAK_SENT || rwy_since(r->nak_time, now) >= NAK_AGAIN)
		r->gap = ROCE_RESP_NAK_OWED;
}

void roce_resp_recv(struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	int32_t ahead = roce_psn_diff(pkt->psn, r->epsn);

	*act = (struct roce_resp_act){.verdict = ROCE_RESP_STALE};
	if (pkt->info->transport != ROCE_RC ||
	    !roce_op_is_request(pkt->info)) /* IBA 9.6.1: not valid for this QP's type */
		return;
	if (ahead < 0 && ((pkt->psn - r->start) & ROCE_PSN_MASK) >= ((r->epsn - r->start) & ROCE_PSN_MASK))
		return; /* IBA 9.7.2: outside the valid duplicate region */
	/*
	 * The repeated READ that got the error may have come late: a host that has its responses
	 * ignores a NAK of that PSN. So the error moves to the PSN that the host resends first.
	 */
	if (r->error == ROCE_RESP_GONE && !r->fail_owed && roce_psn_after(pkt->psn, r->fail_psn))
		r->fail_psn = roce_psn_after(pkt->psn, r->acked) ? r->acked : pkt->psn;
	if (r->error != ROCE_RESP_NO_ERROR && !roce_psn_before(pkt->psn, r->fail_psn)) {
		act->verdict = ROCE_RESP_FAILED;
		r->fail_owed = true;
	} else if (ahead < 0) {
		/* Also after an error: without a lost response the host ignores the NAK. */
		recv_dup(r, pkt, act);
		r->fail_owed = r->fail_owed || (r->fail_sent && r->dup_ack);
	} else if (r->pmtu_wait) {
		act->verdict = ROCE_RESP_PARK;
		if ((pkt->info->pos == ROCE_POS_FIRST || pkt->info->pos == ROCE_POS_MIDDLE) &&
		    roce_resp_pmtu_ok(pkt->payload_len))
			act->pmtu = pkt->payload_len;
	} else if (ahead > 0) {
		recv_ahead(r, pkt, act, now);
	} else {
		act->verdict = recv_expected(r, pkt, act);
	}
}
