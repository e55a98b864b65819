/* SPDX-License-Identifier: Apache-2.0 */
/* The model host: start and end, packets in and out, responder. rc_host_reqr.c has the
 * requester. */
#include "tests/lib/rc_host.h"

#include <stdlib.h>
#include <string.h>

#include "rwy/endian.h"
#include "tests/lib/rc_host_int.h"

void rc_host_cfg_default(struct rc_host_cfg *cfg)
{
	*cfg = (struct rc_host_cfg){.ip = {10, 0, 0, 1},
	    .peer_ip = {10, 0, 0, 2},
	    .peer_qpn = 0x12,
	    .mtu = 1024,
	    .rkey = 0x1234,
	    .window = 128,
	    .rd_max = 16,
	    .resources = 32,
	    .ack_every = 64,
	    .timeout = 67 * RWY_MS,
	    .retry = 7,
	    .rnr_retry = 7,
	    .rnr_timer = 1};
}

void rc_host_cfg_nic(struct rc_host_cfg *cfg)
{
	rc_host_cfg_default(cfg);
	cfg->window = 1u << 22;
	cfg->ack_every = 256;
	cfg->timeout = 2 * RWY_MS;
	cfg->timeout_max = 16 * RWY_MS;
	cfg->seven = cfg->whole = cfg->lazy_ackreq = cfg->credits = true;
	cfg->coalesce = 8;
	cfg->ack_delay = 20 * RWY_US;
	cfg->rnr_retry = 0;
}

rwy_dur rc_host_patience(const struct rc_host_cfg *cfg)
{
	rwy_dur sum = 0, t = cfg->timeout;

	if (cfg->retry == 7 && !cfg->seven)
		return RWY_NEVER;
	for (unsigned i = 0; i <= cfg->retry; i++) {
		sum += t;
		t = cfg->timeout_max && 2 * t > cfg->timeout_max ? cfg->timeout_max
		    : cfg->timeout_max                           ? 2 * t
		                                                 : t;
	}
	return sum;
}

void rc_host_init(struct rc_host *h, const struct rc_host_cfg *cfg, uint8_t *mem, uint32_t mem_len)
{
	memset(h, 0, sizeof(*h));
	h->cfg = *cfg;
	h->mem = mem;
	h->mem_len = mem_len;
	h->una = h->nxt = h->high = h->post_psn = cfg->sq_psn;
	h->epsn = cfg->rq_psn;
	h->deadline = h->held_until = RWY_NEVER;
	h->limit = cfg->credits ? 1 : UINT32_MAX;
}

void rc_host_fini(struct rc_host *h)
{
	free(h->sq);
	free(h->rq);
	free(h->out);
}

static void *grow(void *p, uint32_t *cap, uint32_t n, size_t size)
{
	if (n < *cap)
		return p;
	*cap = *cap ? *cap * 2 : 64;
	p = realloc(p, *cap * size);
	if (!p)
		abort();
	return p;
}

void rc_host_post(struct rc_host *h, const struct rc_wr *wr)
{
	bool one = wr->op == RC_CAS || wr->op == RC_FAA;
	struct rc_wqe *w;

	h->sq = grow(h->sq, &h->sq_cap, h->sq_n, sizeof(*h->sq));
	w = &h->sq[h->sq_n++];
	*w = (struct rc_wqe){.wr = *wr, .first = h->post_psn};
	w->npkts = one ? 1 : roce_read_packets(wr->len, h->cfg.mtu);
	w->restart = w->first;
	h->post_psn = roce_psn_add(h->post_psn, w->npkts);
	if (h->sq_error) {
		h->comp_i = h->send_i = h->sq_n;
		h->cfg.done(h->cfg.ctx, &(struct rc_comp){.id = wr->id, .status = RC_FLUSHED});
	}
}

void rc_host_input(struct rc_host *h, uint8_t *bytes, uint32_t len, rwy_time now)
{
	struct roce_pkt pkt;

	if (rc_pkt_read(bytes, len, &pkt))
		rc_host_packet(h, &pkt, now);
}

void rc_host_packet(struct rc_host *h, const struct roce_pkt *pkt, rwy_time now)
{
	if (pkt->info->transport != ROCE_RC)
		return;
	h->now = now;
	if (roce_op_is_request(pkt->info))
		rc_resp_input(h, pkt);
	else
		rc_reqr_input(h, pkt, now);
}

uint32_t rc_host_output(struct rc_host *h, uint8_t *out, rwy_time now)
{
	uint32_t len = rc_resp_output(h, out);

	return len ? len : rc_reqr_output(h, out, now);
}

/* --- responder ----------------------------------------------------------------------------- */

static void owe(struct rc_host *h, struct rc_out o)
{
	rc_resp_flush_held(h);
	if (h->out_head == h->out_n)
		h->out_head = h->out_n = 0;
	h->out = grow(h->out, &h->out_cap, h->out_n, sizeof(*h->out));
	o.msn = h->msn;
	h->out[h->out_n++] = o;
}

void rc_resp_flush_held(struct rc_host *h)
{
	roce_msn msn = h->msn;

	if (!h->held_n)
		return;
	h->held_n = 0;
	h->held_until = RWY_NEVER;
	h->msn = h->held_msn;
	owe(h,
	    (struct rc_out){
	        .opcode = ROCE_RC_ACK, .psn = h->held_psn, .syndrome = ROCE_AETH_CREDIT_INVALID, .cnt = 1});
	h->msn = msn;
}

/* An ACK for a request: at once, or for several. */
static void acknowledge(struct rc_host *h, roce_psn psn)
{
	if (!h->held_n++)
		h->held_until = h->now + h->cfg.ack_delay;
	h->held_psn = psn;
	h->held_msn = h->msn;
	if (h->held_n >= h->cfg.coalesce)
		rc_resp_flush_held(h);
}

static void owe_ack(struct rc_host *h, roce_psn psn, uint8_t syndrome)
{
	owe(h, (struct rc_out){.opcode = ROCE_RC_ACK, .psn = psn, .syndrome = syndrome, .cnt = 1});
}

void rc_host_post_recv(struct rc_host *h, uint32_t off, uint32_t len)
{
	bool none = h->rq_i == h->rq_n;

	h->rq = grow(h->rq, &h->rq_cap, h->rq_n, sizeof(*h->rq));
	h->rq[h->rq_n].off = off;
	h->rq[h->rq_n++].len = len;
	if (h->cfg.credits && none && h->msn) /* who has no credits hears of the new ones (IBA 9.7.7.2.3) */
		owe_ack(h, roce_psn_add(h->epsn, ROCE_PSN_MASK), ROCE_AETH_CREDIT_INVALID);
}

static void owe_error(struct rc_host *h, roce_psn psn, enum roce_nak code)
{
	owe_ack(h, psn, roce_aeth_make(ROCE_AETH_NAK, code));
	h->rq_error = true;
	if (h->cfg.whole && !h->sq_error)
		rc_reqr_end(h, RC_FLUSHED);
}

static void owe_read(struct rc_host *h, roce_psn psn, uint64_t off, uint32_t len, bool continued)
{
	owe(h, (struct rc_out){.opcode = ROCE_RC_READ_RESP_FIRST,
	           .syndrome = ROCE_AETH_CREDIT_INVALID,
	           .psn = psn,
	           .off = off,
	           .len = len,
	           .continued = continued,
	           .cnt = roce_read_packets(len, h->cfg.mtu)});
}

/* A positive AETH says how many receives there are; the largest value that does not promise too much. */
static uint8_t with_credits(const struct rc_host *h, uint8_t syndrome)
{
	uint8_t v = 30;

	if (!h->cfg.credits || roce_aeth_type(syndrome) != ROCE_AETH_ACK)
		return syndrome;
	while (rc_credits(v) > h->rq_n - h->rq_i)
		v--;
	return roce_aeth_make(ROCE_AETH_ACK, v);
}

uint32_t rc_resp_output(struct rc_host *h, uint8_t *out)
{
	struct rc_out *o;

	if (h->out_head == h->out_n)
		return 0;
	o = &h->out[h->out_head];
	struct rc_mk m = {.opcode = o->opcode,
	    .psn = roce_psn_add(o->psn, o->i),
	    .syndrome = with_credits(h, o->syndrome),
	    .msn = o->msn,
	    .original = o->original};

	if (o->opcode == ROCE_RC_READ_RESP_FIRST) {
		uint32_t at = o->i * h->cfg.mtu;

		m.opcode = o->cnt == 1 && !o->continued ? ROCE_RC_READ_RESP_ONLY
		           : o->i == 0 && !o->continued ? ROCE_RC_READ_RESP_FIRST
		           : o->i + 1 == o->cnt         ? ROCE_RC_READ_RESP_LAST
		                                        : ROCE_RC_READ_RESP_MIDDLE;
		m.payload_len = o->len - at < h->cfg.mtu ? o->len - at : h->cfg.mtu;
		m.payload = h->mem + o->off + at;
	}
	if (++o->i == o->cnt)
		h->out_head++;
	return rc_host_make(h, out, m);
}

static void resp_dup(struct rc_host *h, const struct roce_pkt *pkt)
{
	if (pkt->info->op == ROCE_OP_SEND || pkt->info->op == ROCE_OP_WRITE) {
		/* The last PSN executed. Soft-RoCE excepts READs, and when it has executed nothing else
		 * it names PSN -1. */
		owe_ack(h, roce_psn_add(h->cfg.continues ? h->ack_psn : h->epsn, ROCE_PSN_MASK),
		    ROCE_AETH_CREDIT_INVALID);
		return;
	}
	for (unsigned k = 0; k < h->cfg.resources; k++) {
		uint32_t at = (pkt->psn - h->res[k].psn) & ROCE_PSN_MASK;

		if (!h->res[k].used || at >= h->res[k].cnt)
			continue;
		if (h->res[k].atomic && roce_op_is_atomic(pkt->info))
			owe(h, (struct rc_out){.opcode = ROCE_RC_ATOMIC_ACK,
			           .psn = pkt->psn,
			           .syndrome = ROCE_AETH_CREDIT_INVALID,
			           .original = h->res[k].original,
			           .cnt = 1});
		else if (!h->res[k].atomic && pkt->info->op == ROCE_OP_READ_REQ &&
		         at * h->cfg.mtu + (uint64_t)roce_reth_len(pkt) <= h->res[k].len &&
		         roce_reth_va(pkt) == h->res[k].off + at * h->cfg.mtu)
			owe_read(h, pkt->psn, roce_reth_va(pkt), roce_reth_len(pkt), at && h->cfg.continues);
		return;
	}
}

static bool range_ok(const struct rc_host *h, uint64_t off, uint64_t len, uint32_t rkey)
{
	return !len || (rkey == h->cfg.rkey && off <= h->mem_len && len <= h->mem_len - off);
}

static void remember(
    struct rc_host *h, roce_psn psn, uint32_t cnt, uint64_t off, uint32_t len, bool atomic, uint64_t original)
{
	unsigned k = h->res_i++ % h->cfg.resources;

	h->res[k].used = true;
	h->res[k].psn = psn;
	h->res[k].cnt = cnt;
	h->res[k].off = off;
	h->res[k].len = len;
	h->res[k].atomic = atomic;
	h->res[k].original = original;
}

static void resp_read(struct rc_host *h, const struct roce_pkt *pkt)
{
	uint32_t len = roce_reth_len(pkt), cnt = roce_read_packets(len, h->cfg.mtu);

	if (!range_ok(h, roce_reth_va(pkt), len, roce_reth_rkey(pkt))) {
		owe_error(h, pkt->psn, ROCE_NAK_REM_ACCESS);
		return;
	}
	remember(h, pkt->psn, cnt, roce_reth_va(pkt), len, false, 0);
	h->epsn = roce_psn_add(h->epsn, cnt);
	h->msn = roce_psn_add(h->msn, 1);
	owe_read(h, pkt->psn, roce_reth_va(pkt), len, false);
}

static void resp_atomic(struct rc_host *h, const struct roce_pkt *pkt)
{
	uint64_t off = rwy_get64(pkt->ext), old, v;

	if (!range_ok(h, off, 8, rwy_get32(pkt->ext + 8))) {
		owe_error(h, pkt->psn, ROCE_NAK_REM_ACCESS);
		return;
	}
	memcpy(&old, h->mem + off, 8);
	v = rwy_get64(pkt->ext + 12);
	if (pkt->info->op == ROCE_OP_FETCH_ADD)
		v += old;
	else if (old != rwy_get64(pkt->ext + 20))
		v = old;
	memcpy(h->mem + off, &v, 8);
	h->atomics++;
	remember(h, pkt->psn, 1, off, 8, true, old);
	h->ack_psn = h->epsn = roce_psn_add(h->epsn, 1);
	h->msn = roce_psn_add(h->msn, 1);
	owe(h, (struct rc_out){.opcode = ROCE_RC_ATOMIC_ACK,
	           .psn = pkt->psn,
	           .syndrome = ROCE_AETH_CREDIT_INVALID,
	           .original = old,
	           .cnt = 1});
}

static bool length_ok(const struct rc_host *h, const struct roce_pkt *pkt)
{
	uint32_t n = pkt->payload_len;

	if (pkt->info->pos == ROCE_POS_FIRST || pkt->info->pos == ROCE_POS_MIDDLE)
		return n == h->cfg.mtu;
	return n <= h->cfg.mtu && (n || pkt->info->pos == ROCE_POS_ONLY);
}

/* True if this packet needs a receive and there is none. */
static bool not_ready(const struct rc_host *h, const struct roce_pkt *pkt)
{
	bool takes =
	    pkt->info->op == ROCE_OP_SEND ? roce_op_starts(pkt->info) : pkt->info->flags & ROCE_F_IMMDT;

	return takes && h->rq_i == h->rq_n;
}

static void receive_done(struct rc_host *h, const struct roce_pkt *pkt, uint32_t len)
{
	bool imm = pkt->info->flags & (ROCE_F_IMMDT | ROCE_F_IETH);

	h->cfg.done(h->cfg.ctx, &(struct rc_comp){.id = h->rq_i,
	                            .recv = true,
	                            .len = len,
	                            .with_imm = imm,
	                            .imm = imm ? rwy_get32(pkt->payload - 4) : 0});
	h->rq_i++;
}

/* A SEND or WRITE at the expected PSN. False: it was refused. */
static bool resp_data(struct rc_host *h, const struct roce_pkt *pkt)
{
	bool send = pkt->info->op == ROCE_OP_SEND;

	if (roce_op_starts(pkt->info) != (h->msg == ROCE_OP_NONE) ||
	    (!roce_op_starts(pkt->info) && h->msg != pkt->info->op) || !length_ok(h, pkt)) {
		owe_error(h, pkt->psn, ROCE_NAK_INV_REQ);
		return false;
	}
	if (not_ready(h, pkt)) {
		h->rnr_sent++;
		owe_ack(h, pkt->psn, roce_aeth_make(ROCE_AETH_RNR, h->cfg.rnr_timer));
		return false;
	}
	if (pkt->info->flags & ROCE_F_RETH) {
		h->w_off = roce_reth_va(pkt);
		h->w_left = roce_reth_len(pkt);
		if (!range_ok(h, h->w_off, h->w_left, roce_reth_rkey(pkt))) {
			owe_error(h, pkt->psn, ROCE_NAK_REM_ACCESS);
			return false;
		}
	}
	if (send && roce_op_starts(pkt->info))
		h->s_got = 0;
	if (send ? h->s_got + pkt->payload_len > h->rq[h->rq_i].len
	         : pkt->payload_len > h->w_left ||
	               (roce_op_ends(pkt->info) && pkt->payload_len != h->w_left)) {
		owe_error(h, pkt->psn, ROCE_NAK_INV_REQ);
		return false;
	}
	if (send) {
		memcpy(h->mem + h->rq[h->rq_i].off + h->s_got, pkt->payload, pkt->payload_len);
		h->s_got += pkt->payload_len;
	} else {
		memcpy(h->mem + h->w_off, pkt->payload, pkt->payload_len);
		h->w_off += pkt->payload_len;
		h->w_left -= pkt->payload_len;
	}
	h->msg = roce_op_ends(pkt->info) ? ROCE_OP_NONE : pkt->info->op;
	h->ack_psn = h->epsn = roce_psn_add(h->epsn, 1);
	if (!roce_op_ends(pkt->info))
		return true;
	h->msn = roce_psn_add(h->msn, 1);
	h->sends += send;
	if (send || pkt->info->flags & ROCE_F_IMMDT)
		receive_done(h, pkt, send ? h->s_got : 0);
	return true;
}

void rc_resp_input(struct rc_host *h, const struct roce_pkt *pkt)
{
	int32_t ahead = roce_psn_diff(pkt->psn, h->epsn);

	if (h->rq_error)
		return;
	if (ahead < 0) {
		resp_dup(h, pkt);
		return;
	}
	if (ahead > 0) {
		if (!h->nak_sent) {
			h->nak_sent_n++;
			owe_ack(h, h->epsn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ));
		}
		h->nak_sent = true;
		return;
	}
	h->nak_sent = false;
	if (pkt->info->op == ROCE_OP_SEND || pkt->info->op == ROCE_OP_WRITE) {
		if (resp_data(h, pkt) && pkt->ack_req)
			acknowledge(h, pkt->psn);
	} else if (h->msg != ROCE_OP_NONE) {
		owe_error(h, pkt->psn, ROCE_NAK_INV_REQ);
	} else if (pkt->info->op == ROCE_OP_READ_REQ) {
		resp_read(h, pkt);
	} else {
		resp_atomic(h, pkt);
	}
}
