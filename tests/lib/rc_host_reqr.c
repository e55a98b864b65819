/* SPDX-License-Identifier: Apache-2.0 */
/* The model host: requester. */
#include <string.h>

#include "rwy/endian.h"
#include "tests/lib/rc_host_int.h"

/* --- sending ------------------------------------------------------------------------------- */

#define FLUSH        0x1c
#define ATOMIC_WRITE 0x1d

static uint8_t opcode_of(const struct rc_wr *wr, bool first, bool last)
{
	static const uint8_t send[4] = {
	    ROCE_RC_SEND_MIDDLE, ROCE_RC_SEND_FIRST, ROCE_RC_SEND_LAST, ROCE_RC_SEND_ONLY};
	static const uint8_t write[4] = {
	    ROCE_RC_WRITE_MIDDLE, ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_LAST, ROCE_RC_WRITE_ONLY};
	unsigned at = first | last << 1;

	switch (wr->op) {
	case RC_WRITE:
		return write[at];
	case RC_WRITE_IMM:
		return last ? (first ? ROCE_RC_WRITE_ONLY_IMM : ROCE_RC_WRITE_LAST_IMM) : write[at];
	case RC_SEND:
		return send[at];
	case RC_SEND_IMM:
		return last ? (first ? ROCE_RC_SEND_ONLY_IMM : ROCE_RC_SEND_LAST_IMM) : send[at];
	case RC_SEND_INV:
		return last ? (first ? ROCE_RC_SEND_ONLY_INV : ROCE_RC_SEND_LAST_INV) : send[at];
	case RC_READ:
		return ROCE_RC_READ_REQ;
	case RC_CAS:
		return ROCE_RC_CMP_SWAP;
	case RC_FAA:
		return ROCE_RC_FETCH_ADD;
	case RC_UNCARRIED:
		return wr->imm & 1 ? ATOMIC_WRITE : FLUSH;
	}
	__builtin_trap();
}

static bool may_send(struct rc_host *h, rwy_time now)
{
	struct rc_wqe *w = &h->sq[h->send_i];

	if (h->sq_error || h->send_i == h->sq_n || (h->rnr_until && now < h->rnr_until))
		return false;
	if (roce_psn_diff(h->nxt, h->una) >= (int32_t)h->cfg.window)
		return false;
	if (h->send_i >= h->limit && rc_op_takes_recv(w->wr.op))
		return false;
	return !rc_op_is_rd(w->wr.op) || w->counted || h->rd_out < h->cfg.rd_max;
}

/* The timer that begins now. */
static rwy_dur response_time(const struct rc_host *h)
{
	rwy_dur t = h->cfg.timeout;

	for (unsigned i = 0; i < h->retries && t < h->cfg.timeout_max; i++)
		t *= 2;
	return h->cfg.timeout_max && t > h->cfg.timeout_max ? h->cfg.timeout_max : t;
}

/* The message after this one, or that one's first packet, cannot go before an answer comes. */
static bool stops_after(const struct rc_host *h, roce_psn psn, uint32_t n, bool last)
{
	uint32_t next = h->send_i + 1;

	if (roce_psn_diff(psn, h->una) + n >= h->cfg.window)
		return true;
	return last && (next == h->sq_n || (next >= h->limit && rc_op_takes_recv(h->sq[next].wr.op)));
}

/* AckReq for a packet; n: its PSNs. */
static bool asks_for_ack(const struct rc_host *h, const struct rc_wqe *w, roce_psn psn, uint32_t n, bool last)
{
	if (h->noack + 1 >= h->cfg.ack_every)
		return true;
	if (!h->cfg.lazy_ackreq)
		return last;
	return rc_op_is_rd(w->wr.op) || stops_after(h, psn, n, last);
}

uint32_t rc_reqr_output(struct rc_host *h, uint8_t *out, rwy_time now)
{
	struct rc_wqe *w;
	uint32_t at, n;
	bool rd, last;

	if (!may_send(h, now))
		return 0;
	struct rc_mk m = {0};

	h->rnr_until = 0;
	w = &h->sq[h->send_i];
	rd = rc_op_is_rd(w->wr.op);
	at = h->send_k * h->cfg.mtu;
	n = rd ? w->npkts - h->send_k : 1;
	last = rd || h->send_k + 1 == w->npkts;
	m.opcode = opcode_of(&w->wr, h->send_k == 0, last);
	m.psn = roce_psn_add(w->first, h->send_k);
	m.va = w->wr.remote + (w->wr.op == RC_READ ? at : 0);
	m.rkey = w->wr.rkey;
	m.len = w->wr.len - (w->wr.op == RC_READ ? at : 0);
	m.swap_add = w->wr.swap_add;
	m.compare = w->wr.compare;
	m.imm = w->wr.imm;
	if (!rd) {
		m.payload_len = w->wr.len - at < h->cfg.mtu ? w->wr.len - at : h->cfg.mtu;
		m.payload = h->mem + w->wr.local + at;
	}
	m.ack_req = asks_for_ack(h, w, m.psn, n, last);
	h->noack = m.ack_req ? 0 : h->noack + 1;
	if (rd && !w->counted) {
		w->counted = true;
		h->rd_out++;
	}
	if (rd)
		w->restart = m.psn;
	h->resent += roce_psn_before(m.psn, h->high);
	h->nxt = roce_psn_add(m.psn, n);
	if (roce_psn_after(h->nxt, h->high))
		h->high = h->nxt;
	h->send_k += n;
	if (h->send_k == w->npkts) {
		h->send_k = 0;
		h->send_i++;
	}
	if (h->deadline == RWY_NEVER)
		h->deadline = now + response_time(h);
	return rc_host_make(h, out, m);
}

/* --- receiving ----------------------------------------------------------------------------- */

void rc_reqr_end(struct rc_host *h, enum rc_status status)
{
	h->sq_error = true;
	h->rq_error |= h->cfg.whole;
	h->deadline = RWY_NEVER;
	h->rnr_until = 0;
	while (h->comp_i < h->sq_n) {
		h->cfg.done(h->cfg.ctx, &(struct rc_comp){.id = h->sq[h->comp_i].wr.id, .status = status});
		h->comp_i++;
		status = RC_FLUSHED;
	}
	h->send_i = h->sq_n;
}

static void go_back(struct rc_host *h)
{
	h->send_i = h->comp_i;
	h->send_k = (h->una - h->sq[h->comp_i].first) & ROCE_PSN_MASK;
	h->nxt = h->una;
	h->noack = 0;
	h->deadline = RWY_NEVER;
}

static void retry(struct rc_host *h, bool timeout)
{
	if (h->retrying && !timeout)
		return;
	bool counts = h->cfg.retry != 7 || h->cfg.seven;

	if (counts && h->retries++ >= h->cfg.retry) {
		rc_reqr_end(h, RC_RETRY_EXC);
		return;
	}
	h->retrying = true;
	go_back(h);
}

static void progress(struct rc_host *h, roce_psn una, rwy_time now)
{
	h->una = una;
	if (roce_psn_before(h->nxt, una)) { /* an answer that came late, after a go-back */
		h->nxt = una;
		h->send_i = h->comp_i;
		h->send_k = h->comp_i < h->sq_n ? (una - h->sq[h->comp_i].first) & ROCE_PSN_MASK : 0;
	}
	h->retrying = false;
	h->retries = h->rnrs = 0;
	h->deadline = una == h->high ? RWY_NEVER : now + h->cfg.timeout;
}

static void complete(struct rc_host *h, rwy_time now)
{
	struct rc_wqe *w = &h->sq[h->comp_i++];
	uint64_t id = w->wr.id;

	if (w->counted)
		h->rd_out--;
	progress(h, roce_psn_add(w->first, w->npkts), now);
	h->cfg.done(h->cfg.ctx, &(struct rc_comp){.id = id, .status = RC_OK});
}

/* An AETH's credits count also when it acknowledges nothing new (IBA 9.7.7.2.3). */
static void take_credits(struct rc_host *h, const struct roce_pkt *pkt)
{
	uint8_t syn = pkt->info->flags & ROCE_F_AETH ? roce_aeth_syndrome(pkt) : 0xff;

	if (!h->cfg.credits || roce_aeth_type(syn) != ROCE_AETH_ACK)
		return;
	h->limit = roce_aeth_value(syn) == ROCE_AETH_CREDIT_INVALID
	               ? UINT32_MAX
	               : roce_aeth_msn(pkt) + rc_credits(roce_aeth_value(syn));
}

static void on_ack(struct rc_host *h, struct rc_wqe *w, const struct roce_pkt *pkt, rwy_time now)
{
	uint8_t syn = roce_aeth_syndrome(pkt), v = roce_aeth_value(syn);
	roce_psn last = roce_psn_add(w->first, w->npkts - 1);

	switch (roce_aeth_type(syn)) {
	case ROCE_AETH_ACK:
		if (rc_op_is_rd(w->wr.op)) {
			h->bad.ack++;
			return;
		}
		h->bad.msn += roce_psn_before(roce_aeth_msn(pkt), h->comp_i + (pkt->psn == last));
		if (pkt->psn == last)
			complete(h, now);
		else
			progress(h, roce_psn_add(pkt->psn, 1), now);
		return;
	case ROCE_AETH_RNR:
		if (h->cfg.rnr_retry != 7 && h->rnrs++ >= h->cfg.rnr_retry) {
			rc_reqr_end(h, RC_RNR_EXC);
			return;
		}
		h->una = pkt->psn;
		go_back(h);
		h->rnr_until = now + roce_rnr_time(v);
		return;
	case ROCE_AETH_NAK:
		if (v == ROCE_NAK_PSN_SEQ) {
			if (pkt->psn != h->una)
				progress(h, pkt->psn, now);
			retry(h, false);
		} else {
			rc_reqr_end(h, v == ROCE_NAK_INV_REQ      ? RC_REM_INV
			               : v == ROCE_NAK_REM_ACCESS ? RC_REM_ACCESS
			                                          : RC_REM_OP);
		}
		return;
	case ROCE_AETH_RSVD:
		return;
	}
}

static void on_read_response(struct rc_host *h, struct rc_wqe *w, const struct roce_pkt *pkt, rwy_time now)
{
	uint32_t i = (pkt->psn - w->first) & ROCE_PSN_MASK, at = i * h->cfg.mtu;
	uint32_t n = w->wr.len - at < h->cfg.mtu ? w->wr.len - at : h->cfg.mtu;

	if (w->wr.op != RC_READ) {
		h->bad.opcode++;
		return;
	}
	if (pkt->psn != h->una) /* a response was lost: the timer asks for the rest */
		return;
	if (roce_op_ends(pkt->info) != (i + 1 == w->npkts) ||
	    (roce_op_starts(pkt->info) ? i && pkt->psn != w->restart : i == 0))
		h->bad.opcode++;
	if (pkt->payload_len != n) {
		h->bad.length++;
		return;
	}
	memcpy(h->mem + w->wr.local + at, pkt->payload, n);
	if (i + 1 == w->npkts)
		complete(h, now);
	else
		progress(h, roce_psn_add(pkt->psn, 1), now);
}

static void on_atomic_ack(struct rc_host *h, struct rc_wqe *w, const struct roce_pkt *pkt, rwy_time now)
{
	uint64_t v = rwy_get64(pkt->ext + 4);

	if (w->wr.op != RC_CAS && w->wr.op != RC_FAA) {
		h->bad.opcode++;
		return;
	}
	memcpy(h->mem + w->wr.local, &v, 8);
	complete(h, now);
}

void rc_reqr_input(struct rc_host *h, const struct roce_pkt *pkt, rwy_time now)
{
	struct rc_wqe *w;

	if (h->sq_error)
		return;
	if (!roce_psn_before(pkt->psn, h->high)) {
		h->bad.ghost++;
		return;
	}
	take_credits(h, pkt);
	if (roce_psn_before(pkt->psn, h->una))
		return;
	for (;;) { /* it answers this PSN, so all before it were received */
		w = &h->sq[h->comp_i];
		if (((pkt->psn - w->first) & ROCE_PSN_MASK) < w->npkts)
			break;
		if (rc_op_is_rd(w->wr.op)) { /* implied NAK */
			retry(h, false);
			return;
		}
		complete(h, now);
	}
	if (pkt->info->op == ROCE_OP_ACK)
		on_ack(h, w, pkt, now);
	else if (pkt->info->op == ROCE_OP_READ_RESP)
		on_read_response(h, w, pkt, now);
	else if (pkt->info->op == ROCE_OP_ATOMIC_ACK)
		on_atomic_ack(h, w, pkt, now);
}

void rc_host_tick(struct rc_host *h, rwy_time now)
{
	h->now = now;
	if (now >= h->held_until)
		rc_resp_flush_held(h);
	if (h->rnr_until && now >= h->rnr_until)
		h->rnr_until = 0;
	if (h->deadline != RWY_NEVER && now >= h->deadline)
		retry(h, true);
}

rwy_time rc_host_next(const struct rc_host *h)
{
	rwy_time at = rwy_time_min(h->deadline, h->held_until);

	return h->rnr_until ? rwy_time_min(h->rnr_until, at) : at;
}
