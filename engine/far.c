/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The far half: requests that came over the WAN for a local host. Gives them to the host in PSN order until
 * it has acknowledged them, carries its answers back, reports what is delivered. When to send and what an
 * answer means is roce/reqr's decision.
 *
 * The first packet of each life of a flow goes out alone, AckReq set: the host's answer tells that the QP is
 * there, which QPN its peer has, and which PSN it really expects. Only then does the near gateway acknowledge
 * anything (docs/rc-semantics.md).
 */
#include <stdlib.h>

#include "engine/eng.h"
#include "roce/icrc.h"
#include "rwy/endian.h"

#define FAR_BURST 64

struct eng_far *eng_far_get(struct eng *e, const struct eng_key *k, rwy_time now)
{
	return eng_far_get_at(e, k, eng_way(e, k->tenant, &k->dst, &k->src, 0), now);
}

struct eng_far *eng_far_get_at(struct eng *e, const struct eng_key *k, int tunnel, rwy_time now)
{
	struct eng_far *f = (struct eng_far *)eng_find(e, k, true);

	if (f)
		return f;
	if (tunnel < 0) {
		e->c.drop_no_route++;
		return NULL;
	}
	const struct eng_ten *t = eng_tenant(e, k->tenant);

	if (e->halves >= e->cfg.conns_max || (t->cfg.flows_max && t->halves >= t->cfg.flows_max) ||
	    !(f = eng_slab_get(&e->far_slab))) {
		e->c.drop_flow_table_full++;
		return NULL;
	}
	f->h.key = *k;
	f->h.ten = eng_tenant(e, k->tenant);
	f->h.e = e;
	f->h.is_far = true;
	f->h.tunnel = (uint8_t)tunnel;
	f->h.close_at = RWY_NEVER;
	f->h.last = now;
	f->h.error = "";
	f->rnr_retry = f->retry = 255;
	f->host = eng_host_get(e, k->tenant, &k->dst);
	eng_insert(e, &f->h);
	e->c.conns_opened++;
	return f;
}

static void forget_requests(struct eng_far *f)
{
	if (f->active)
		roce_reqr_fini(&f->reqr, &f->h.e->bufs);
	eng_rp_leave(f);
	f->active = false;
	f->wait_head = f->wait_n = 0;
}

void eng_far_free(struct eng_far *f, rwy_time now)
{
	struct eng *e = f->h.e;

	eng_learn_leave(f, now);
	eng_wheel_disarm(f);
	if (f->req)
		wan_rx_reset(f->req, now);
	if (f->rsp)
		wan_tx_abort(f->rsp, now);
	forget_requests(f);
	eng_host_put(e, f->host);
	free(f->wait);
	if (f->near)
		eng_unpair(f);
	eng_remove(e, &f->h);
	f->h.close_at = 0;
	f->h.e = NULL;
	if (!f->h.dirty)
		eng_slab_put(&e->far_slab, f);
}

size_t eng_far_open_info(const struct eng_far *f, uint8_t *out)
{
	struct eng_open o = {.type = ENG_OPEN_RSP,
	    .rnr_retry = 255,
	    .retry = 255,
	    .life = f->life,
	    .peer_qpn = f->rqpn,
	    .vni = f->h.ten->cfg.vni,
	    .key = f->h.key};

	return eng_open_encode(out, &o);
}

static bool need_rsp(struct eng_far *f, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];
	size_t len;

	if (f->rsp)
		return true;
	len = eng_far_open_info(f, info);
	f->rsp_sent = f->rsp_done = 0;
	if (wan_tx_open(eng_wan(&f->h), &f->rsp, info, len, f, now) != 0)
		return false;
	wan_tx_class(f->rsp, f->h.key.tenant);
	return true;
}

void eng_far_tell(struct eng_far *f, const struct eng_ctrl *c, rwy_time now)
{
	struct rwy_buf *b;

	if (!need_rsp(f, now))
		return;
	b = eng_ctrl_buf(f->h.e, c);
	if (!b)
		return;
	f->rsp_sent++;
	wan_tx_send(f->rsp, b, now);
}

void eng_far_begin(struct eng_far *f, roce_psn first, uint32_t pmtu, bool probe)
{
	struct roce_reqr_cfg cfg;
	const struct eng_cfg *ec = &f->h.e->cfg;

	forget_requests(f);
	f->resuming = f->asked_back = f->doom_next = f->doomed = false;
	roce_reqr_cfg_default(&cfg);
	cfg.window_max = ec->host_window;
	cfg.rnr_retry = f->rnr_retry != 255 ? f->rnr_retry : ec->rnr_retry;
	cfg.retry = ec->retry;
	roce_reqr_init(&f->reqr, &cfg, first, pmtu);
	roce_reqr_share(&f->reqr, f->host ? &f->host->reqr : NULL);
	f->reqr.probe = probe;
	f->active = true;
	f->synced = !probe;
	f->h.error = "";
	eng_log(
	    f->h.e, 4, "far local_qpn=%u starts at psn=%u%s", f->h.key.qpn, first, probe ? " asking" : "");
	if (f->h.state == ENG_FAILED)
		f->h.state = f->near ? ENG_PAIRED : ENG_LEARNING;
}

void eng_far_start_cm(struct eng_far *f, uint32_t rqpn, roce_psn psn, uint32_t pmtu, rwy_time now)
{
	if (f->active && f->h.learned == ENG_BY_CM && f->rqpn == rqpn && f->h.close_at == RWY_NEVER)
		return; /* a retransmitted REP */
	eng_learn_leave(f, now);
	if (f->req) {
		wan_rx_reset(f->req, now);
		f->req = NULL;
	}
	f->rqpn = rqpn;
	f->h.learned = ENG_BY_CM;
	f->h.state = ENG_PAIRED;
	f->h.close_at = RWY_NEVER;
	f->h.last = now;
	f->done_seq = f->told_seq = 0;
	eng_far_begin(f, psn, pmtu, false);
}

/* Requests that came by an earlier flow have numbers of that flow. They mean nothing in the new one, until
 * the same request comes again (renumber). */
static void forget_numbers(struct eng_far *f)
{
	for (struct rwy_buf *b = f->active ? f->reqr.q.head : NULL; b; b = b->next)
		b->seq = ENG_NO_SEQ;
	f->done_seq = f->told_seq = 0;
	f->wait_head = f->wait_n = 0;
}

void eng_far_open(struct eng_far *f, struct wan_rxflow *rx, const struct eng_open *o, rwy_time now)
{
	/*
	 * The near gateway that is still the same begins the flow anew: it failed the connection, and what of
	 * that one's requests is still here would go to another queue pair with this QPN. After a restart of
	 * that gateway they are this connection's own.
	 */
	if (f->life != o->life && (f->req || f->left) && !f->resuming && !f->doomed && !f->doom_next)
		forget_requests(f);
	f->left = false;
	if (f->req)
		wan_rx_reset(f->req, now);
	/* Answers of an earlier life are of no use. Nor is their flow: a near gateway that restarted may have
	 * refused it before it knew this connection, and what we add would go down with it. */
	if (f->rsp && f->life != o->life) {
		wan_tx_abort(f->rsp, now);
		f->rsp = NULL;
	}
	f->req = rx;
	f->drain = (struct cc_drain){0};
	f->fresh = true;
	f->discard = false;
	f->life = o->life;
	forget_numbers(f);
	f->h.last = now;
	f->h.close_at = RWY_NEVER;
	if (o->rnr_retry != 255)
		f->rnr_retry = o->rnr_retry;
	if (o->retry != 255)
		f->retry = o->retry;
	/* The near gateway may know the requester's QPN (from CM, or from before we restarted): then the two
	 * halves belong together. */
	if (o->peer_qpn && f->rqpn != o->peer_qpn) {
		struct eng_key k = {f->h.key.dst, f->h.key.src, o->peer_qpn, f->h.key.tenant};
		struct eng_near *n = eng_near_get(f->h.e, &k, false, now);

		if (n)
			eng_pair_halves(n, f, ENG_BY_PEER);
	}
	f->open_pmtu = o->pmtu;
	f->told_peer = o->peer_qpn && f->near && f->rqpn == o->peer_qpn;
}

static void tell_sync(struct eng_far *f, enum eng_ctrl_type type, roce_psn psn, roce_msn msn, rwy_time now)
{
	struct eng_ctrl c = {.type = (uint8_t)type, .life = f->life, .qpn = f->rqpn, .psn = psn, .msn = msn};

	eng_far_tell(f, &c, now);
}

/* Tells the near gateway how far its packets are delivered: never past a READ or ATOMIC whose answer is not
 * yet in its hands. */
void eng_far_report(struct eng_far *f, rwy_time now)
{
	uint64_t upto = f->done_seq;

	while (f->wait_n && f->wait[f->wait_head].idx <= f->rsp_done) {
		f->wait_head = (f->wait_head + 1) & (f->wait_cap - 1);
		f->wait_n--;
	}
	if (f->wait_n && f->wait[f->wait_head].seq < upto)
		upto = f->wait[f->wait_head].seq;
	if (upto > f->told_seq && f->req) {
		f->told_seq = upto;
		wan_rx_delivered(f->req, upto - 1, now);
	}
}

void eng_far_rsp_delivered(struct eng_far *f, rwy_time now)
{
	f->rsp_done++;
	eng_far_report(f, now);
}

static bool wait_for_rsp(struct eng_far *f, uint64_t seq)
{
	if (f->wait_n == f->wait_cap) {
		uint32_t cap = f->wait_cap ? f->wait_cap * 2 : 16;
		struct eng_rspwait *w = calloc(cap, sizeof(*w));

		if (!w)
			return false;
		for (uint32_t i = 0; i < f->wait_n; i++)
			w[i] = f->wait[(f->wait_head + i) & (f->wait_cap - 1)];
		free(f->wait);
		f->wait = w;
		f->wait_head = 0;
		f->wait_cap = cap;
	}
	f->wait[(f->wait_head + f->wait_n++) & (f->wait_cap - 1)] = (struct eng_rspwait){seq, f->rsp_sent};
	return true;
}

void eng_far_fail(struct eng_far *f, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now)
{
	struct eng *e = f->h.e;

	if (f->h.state == ENG_FAILED)
		return;
	f->h.state = ENG_FAILED;
	f->h.error = eng_end_text(end, syndrome, true);
	e->c.conns_failed++;
	eng_log_half(e, 1, &f->h, f->h.error);
	eng_far_tell(f,
	    &(struct eng_ctrl){.type = ENG_CTRL_FAIL,
	        .life = f->life,
	        .qpn = f->rqpn,
	        .psn = psn,
	        .syndrome = syndrome,
	        .end = (uint8_t)end},
	    now);
	eng_learn_leave(f, now);
	forget_requests(f);
	f->synced = f->resuming = f->doom_next = f->doomed = false;
}

static enum eng_end end_of(enum roce_reqr_end end)
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

/* The requests the host has acknowledged, and what else its answer meant. */
static void carry_out(struct eng_far *f, struct roce_reqr_act *act, rwy_time now)
{
	struct eng *e = f->h.e;
	uint64_t before = f->bytes;
	struct rwy_buf *b;

	while ((b = rwy_bufq_pop(&act->done))) {
		const struct roce_opinfo *info = roce_op(b->opcode);

		if (b->seq != ENG_NO_SEQ) {
			if (info->op == ROCE_OP_READ_REQ || roce_op_is_atomic(info))
				wait_for_rsp(f, b->seq);
			f->done_seq = b->seq + 1;
		}
		f->packets++;
		f->bytes += b->len;
		rwy_buf_free(&e->bufs, b);
	}
	if (e->rps && f->bytes != before)
		eng_rp_taken(f, f->bytes - before);
	/* A doomed host's own NAK may be lost on the LAN, and it sends it once: what it means is known. */
	if (f->doomed && (act->failed || !f->reqr.q.n))
		eng_far_fail(
		    f, f->reqr.una, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS), ENG_END_LOST, now);
	else if (act->failed)
		eng_far_fail(f, act->fail_psn, act->fail_syndrome, end_of(act->end), now);
	eng_far_report(f, now);
	eng_dirty(&f->h);
}

/* How many PSNs a request takes; 0 for a READ whose path MTU is not known. */
static uint32_t psn_count(const struct eng_far *f, const struct roce_pkt *pkt)
{
	if (pkt->info->op != ROCE_OP_READ_REQ)
		return 1;
	if (roce_reth_len(pkt) <= 256)
		return 1;
	return f->reqr.pmtu ? roce_read_packets(roce_reth_len(pkt), f->reqr.pmtu) : 0;
}

static bool teaches_pmtu(const struct roce_pkt *pkt)
{
	return (pkt->info->pos == ROCE_POS_FIRST || pkt->info->pos == ROCE_POS_MIDDLE) &&
	       pkt->payload_len >= 256 && pkt->payload_len <= 4096 &&
	       !(pkt->payload_len & (pkt->payload_len - 1));
}

/*
 * The near gateway may begin to acknowledge. The first request counts as delivered only when it knows: else
 * the flow would look idle to it while its host, unacknowledged, sends again, and be taken for a new life.
 */
void eng_far_tell_start(struct eng_far *f, roce_psn psn, roce_msn msn, uint64_t first_seq, rwy_time now)
{
	tell_sync(f, ENG_CTRL_SYNC, psn, msn, now);
	if (first_seq != ENG_NO_SEQ && f->rsp)
		wait_for_rsp(f, first_seq);
}

/* The first packet of a newly opened flow: go on where we were, or ask the host where it is. */
static void settle(struct eng_far *f, const struct roce_pkt *pkt, uint64_t seq, rwy_time now)
{
	f->fresh = false;
	if (f->active && f->synced && pkt->psn == f->reqr.tail) {
		/* The near gateway restarted, or was told to rewind: nothing is missing. */
		eng_far_tell_start(f, f->reqr.tail, f->reqr.host_msn, seq, now);
		return;
	}
	if (f->active && f->reqr.q.n && f->synced) {
		/* Requests of before are still with us: roce_reqr_push tells duplicate from hole. */
		eng_far_tell_start(f, f->reqr.tail, f->reqr.host_msn, seq, now);
		return;
	}
	/* Nothing of an earlier life may be inherited: not the path MTU, and not whose QPN it is that
	 * answers. */
	if (f->near && !f->told_peer)
		eng_unpair(f);
	eng_far_begin(f, pkt->psn, f->open_pmtu, true);
	f->reqr.resumed = true;
	if (!f->near)
		eng_learn_wait(f, now);
}

/* Its host has part of the answer and asks for the rest of the same READ. */
static bool is_rest(const struct rwy_buf *q, const struct rwy_buf *b)
{
	uint32_t at = (b->psn - q->psn) & ROCE_PSN_MASK;

	return roce_op(b->opcode)->op == ROCE_OP_READ_REQ && b->opcode == q->opcode && b->psn_cnt &&
	       at < q->psn_cnt && at + b->psn_cnt == q->psn_cnt;
}

/* A request we hold already (the near gateway restarted and its host sent again): the flow sequence it has
 * now is the one to report. */
static void renumber(struct eng_far *f, const struct rwy_buf *b, rwy_time now)
{
	for (struct rwy_buf *q = f->reqr.q.head; q; q = q->next)
		if (q->psn == b->psn || is_rest(q, b)) {
			q->seq = b->seq;
			/* The half of a READ's answer that went to the gateway before is needed again. */
			if (q == f->reqr.q.head)
				roce_reqr_reread(&f->reqr, b->psn);
			return;
		}
	/* Acknowledged by the host before: an answer that was lost with the gateway cannot be had again
	 * without executing it. */
	if (roce_op(b->opcode)->op == ROCE_OP_READ_REQ || roce_op_is_atomic(roce_op(b->opcode))) {
		eng_far_fail(
		    f, b->psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_ANSWER_LOST, now);
		return;
	}
	f->done_seq = b->seq + 1;
}

void eng_far_data(struct eng_far *f, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = f->h.e;
	struct roce_pkt pkt;

	f->h.last = now;
	/* Also while a host is asked where it stands, to be told the worst: nothing else may end that. */
	if (f->discard || f->doomed ||
	    ((f->h.state == ENG_FAILED || f->doom_next || !f->active) && !f->fresh)) {
		rwy_buf_free(&e->bufs, b);
		return;
	}
	if (b->kind == RWY_BUF_CTRL && f->fresh && eng_far_resume(f, b, now)) {
		rwy_buf_free(&e->bufs, b);
		return;
	}
	if (b->kind != RWY_BUF_PACKET || roce_parse(b->data, b->len, &pkt) != ROCE_PARSE_OK ||
	    !roce_op_is_request(pkt.info) || pkt.info->transport != ROCE_RC || pkt.dqpn != f->h.key.qpn ||
	    !rwy_ip_eq(&pkt.src, &f->h.key.src) || !rwy_ip_eq(&pkt.dst, &f->h.key.dst)) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		eng_far_fail(f, 0, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_MALFORMED, now);
		return;
	}
	if (f->fresh)
		settle(f, &pkt, b->seq, now);
	else if (!f->reqr.pmtu && teaches_pmtu(&pkt))
		f->reqr.pmtu = pkt.payload_len;
	b->opcode = pkt.opcode;
	b->psn = pkt.psn;
	b->psn_cnt = psn_count(f, &pkt);
	switch (roce_reqr_push(&f->reqr, b)) {
	case ROCE_REQR_PUSHED:
		break;
	case ROCE_REQR_OLD:
		renumber(f, b, now);
		rwy_buf_free(&e->bufs, b);
		eng_far_report(f, now);
		break;
	case ROCE_REQR_HOLE:
		rwy_buf_free(&e->bufs, b);
		eng_far_fail(
		    f, f->reqr.tail, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_LOST, now);
		break;
	}
	eng_dirty(&f->h);
}

/* The host's first answer in this life: which QPN it talks to, and where it stands. */
static void host_answered(struct eng_far *f, const struct roce_pkt *pkt, rwy_time now)
{
	bool aeth = pkt->info->flags & ROCE_F_AETH;
	uint8_t syn = aeth ? roce_aeth_syndrome(pkt) : 0;
	const struct rwy_buf *first = f->reqr.q.head;
	roce_msn msn = aeth ? roce_aeth_msn(pkt) : 0;

	f->synced = true;
	if (f->resuming) {
		eng_far_resumed(f, pkt, now);
		return;
	}
	roce_reqr_go(&f->reqr);
	if (aeth && roce_aeth_type(syn) == ROCE_AETH_NAK && roce_aeth_value(syn) == ROCE_NAK_PSN_SEQ &&
	    pkt->psn != f->reqr.una) {
		/* Packets before our first were lost on the way to the near gateway: its host must send from
		 * there. */
		tell_sync(f, ENG_CTRL_REWIND, pkt->psn, msn, now);
		eng_far_begin(f, pkt->psn, f->reqr.pmtu, false);
		f->discard = true;
		return;
	}
	if (first && roce_aeth_type(syn) == ROCE_AETH_ACK && roce_op_ends(roce_op(first->opcode)))
		msn = (msn - 1) & ROCE_PSN_MASK;
	eng_far_tell_start(f, 0, msn, first ? first->seq : ENG_NO_SEQ, now);
}

void eng_far_response(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = f->h.e;
	struct roce_reqr_act act = {0};
	uint64_t resent = f->reqr.resent, seq = f->reqr.seq_naks, rnr = f->reqr.rnr_naks,
	         impl = f->reqr.implied_naks;

	f->h.last = now;
	if (!f->active) {
		eng_drop(e, b, &e->c.drop_ghost_ack);
		return;
	}
	if (f->resuming && !eng_far_answers(pkt)) {
		eng_drop(e, b, &e->c.drop_old_response);
		return;
	}
	if (f->doomed && eng_far_doom_again(f, pkt, now)) {
		rwy_buf_free(&e->bufs, b);
		return;
	}
	if (!f->synced) {
		bool question = f->resuming;

		host_answered(f, pkt, now);
		if (f->discard || question) {
			rwy_buf_free(&e->bufs, b);
			return;
		}
	}
	roce_reqr_recv(&f->reqr, pkt, &act, now);
	e->c.packet_seq_err += f->reqr.seq_naks - seq;
	e->c.rnr_nak_received += f->reqr.rnr_naks - rnr;
	e->c.implied_nak_seq_err += f->reqr.implied_naks - impl;
	e->c.host_resent += f->reqr.resent - resent;
	if (act.forward && need_rsp(f, now)) {
		b->len = pkt->len;
		b->kind = RWY_BUF_PACKET;
		b->psn = pkt->psn;
		b->psn_cnt = 1;
		f->rsp_sent++;
		wan_tx_send(f->rsp, b, now);
	} else if (act.drop) {
		eng_drop(e, b, pkt->info->op == ROCE_OP_ACK ? &e->c.drop_ghost_ack : &e->c.drop_old_response);
	} else {
		rwy_buf_free(&e->bufs, b);
	}
	carry_out(f, &act, now);
}

/* Ask only for what is missing of a READ: a new request that starts `skip` packets later (partial retry,
 * IBA 9.7.5). */
static void send_partial(struct eng_far *f, const struct roce_pkt *pkt, uint32_t skip)
{
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_addr a = {
	    .src = pkt->src,
	    .dst = pkt->dst,
	    .dqpn = pkt->dqpn,
	    .sport = pkt->sport,
	    .pkey = pkt->pkey,
	    .tos = pkt->is6 ? (uint8_t)(pkt->ip[0] << 4 | pkt->ip[1] >> 4) : pkt->ip[1],
	    .ttl = 64,
	    .migreq = pkt->migreq,
	};
	uint32_t off = skip * f->reqr.pmtu;

	eng_lan_made(f->h.e, f->h.key.tenant, out,
	    roce_build_read_req(out, &a, roce_psn_add(pkt->psn, skip), roce_reth_va(pkt) + off,
	        roce_reth_rkey(pkt), roce_reth_len(pkt) - off),
	    &f->h.key.dst, &f->nh);
}

uint32_t eng_far_send(struct eng_far *f, unsigned max, rwy_time now)
{
	struct eng *e = f->h.e;
	struct roce_reqr_tx tx[FAR_BURST];
	uint32_t bytes = 0;
	unsigned n = f->active ? roce_reqr_send(&f->reqr, tx, max < FAR_BURST ? max : FAR_BURST, now) : 0;

	if (n)
		f->last_tx = now;
	for (unsigned i = 0; i < n; i++) {
		struct rwy_buf *b = tx[i].b;
		uint8_t *bth = b->data + (rwy_buf_is6(b) ? 40 : (b->data[0] & 15) * 4) + 8;
		struct roce_pkt pkt;

		e->c.host_resent += tx[i].again;
		bytes += b->len;
		if (tx[i].skip || (tx[i].ack_req && !(bth[8] & 0x80))) {
			/* Parsed when it came; it has not changed since. */
			if (roce_parse(b->data, b->len, &pkt) != ROCE_PARSE_OK)
				continue;
			if (tx[i].skip) {
				send_partial(f, &pkt, tx[i].skip);
				continue;
			}
			roce_icrc_set_ackreq(&pkt, true);
		}
		eng_lan_send(e, f->h.key.tenant, b, false, &f->h.key.dst, &f->nh);
	}
	if (n)
		eng_wheel_arm(f, roce_reqr_next(&f->reqr));
	return bytes;
}

void eng_far_flush(struct eng_far *f, rwy_time now)
{
	if (!f->active)
		return;
	/* An unpaired flow's first packet waits for its turn: the answer must name its owner with certainty.
	 */
	if (!f->synced && !f->near && !f->in_turn)
		return;
	if (!f->h.e->rps || !eng_rp_send(f, now))
		while (eng_far_send(f, FAR_BURST, now))
			;
	eng_drain(f, now);
	eng_wheel_arm(f, roce_reqr_next(&f->reqr));
}

void eng_far_tick(struct eng_far *f, rwy_time now)
{
	struct roce_reqr_act act = {0};
	uint64_t timeouts = f->reqr.timeouts;

	if (!f->active)
		return;
	if (roce_reqr_next(&f->reqr) > now) {
		eng_wheel_arm(f, roce_reqr_next(&f->reqr));
		return;
	}
	roce_reqr_tick(&f->reqr, &act, now);
	f->h.e->c.local_ack_timeout_err += f->reqr.timeouts - timeouts;
	if (f->resuming && !f->asked_back && !act.failed && f->reqr.timeouts) {
		eng_far_ask_back(f, now);
		return;
	}
	carry_out(f, &act, now);
	if (f->active)
		eng_wheel_arm(f, roce_reqr_next(&f->reqr));
}
