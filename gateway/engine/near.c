/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The near half: a local host's requests. Takes them into custody, answers in the far host's name as the ack
 * mode allows, serves what the far host answered. What to accept and what to say is roce/resp's decision;
 * carrying it out is here.
 */
#include "gateway/engine/eng.h"

#define NAKS_MAX     5             /* a host that does not go back after so many NAKs of one PSN cannot */
#define CNP_INTERVAL (50 * RWY_US) /* DCQCN NP: at most one CNP a flow in this time */
/* A time-out resends a whole window: one acknowledge for all of it. NICs' shortest time-out is 2 ms. */
#define DRIP_INTERVAL (2 * RWY_MS)

struct eng_near *eng_near_get(struct eng *e, const struct eng_key *k, bool stranger, rwy_time now)
{
	struct eng_near *n = (struct eng_near *)eng_find(e, k, false);
	int tunnel;

	if (n)
		return n;
	tunnel = eng_route(&e->cfg, &k->dst);
	if (tunnel < 0) {
		e->c.drop_no_route++;
		return NULL;
	}
	if (e->halves >= e->cfg.conns_max) {
		e->c.drop_flow_table_full++;
		return NULL;
	}
	if (stranger && e->half_open >= e->cfg.half_open_max) {
		e->c.drop_half_open++;
		return NULL;
	}
	n = eng_slab_get(&e->near_slab);
	if (!n) {
		e->c.drop_flow_table_full++;
		return NULL;
	}
	n->h.key = *k;
	n->h.e = e;
	n->h.tunnel = (uint8_t)tunnel;
	n->h.close_at = RWY_NEVER;
	n->h.last = now;
	n->h.error = "";
	n->rnr_retry = n->retry = 255;
	n->ttl = 64;
	n->pkey = 0xffff;
	eng_insert(e, &n->h);
	e->half_open++;
	e->c.conns_opened++;
	return n;
}

static void drop_cache(struct eng_near *n)
{
	rwy_bufq_drain(&n->h.e->bufs, &n->cache);
	rwy_bufq_drain(&n->h.e->bufs, &n->parked);
}

/* Gives up what is on its way to the far gateway. */
static void abort_req(struct eng_near *n, rwy_time now)
{
	if (!n->req)
		return;
	n->h.e->custody -= n->custody;
	n->custody = 0;
	wan_tx_abort(n->req, now);
	n->req = NULL;
	n->held = false;
}

void eng_near_free(struct eng_near *n, rwy_time now)
{
	struct eng *e = n->h.e;

	eng_journal_forget(n);
	abort_req(n, now);
	if (n->rsp)
		wan_rx_reset(n->rsp, now);
	drop_cache(n);
	if (n->active)
		roce_resp_fini(&n->resp);
	if (n->far)
		eng_unpair(n->far);
	if (n->h.state == ENG_LEARNING)
		e->half_open--;
	eng_remove(e, &n->h);
	/* The dirty list may still name it: leave a tombstone until the list is run. */
	n->h.close_at = 0;
	n->h.e = NULL;
	if (!n->h.dirty)
		eng_slab_put(&e->near_slab, n);
}

size_t eng_near_open_info(const struct eng_near *n, uint8_t *out)
{
	struct eng_open o = {
	    .type = ENG_OPEN_REQ,
	    .rnr_retry = n->rnr_retry,
	    .retry = n->retry,
	    .pmtu = n->active ? (uint16_t)n->resp.pmtu : 0,
	    .life = n->life,
	    /* Only what is known of this life: an older pairing may be somebody else's by now. */
	    .peer_qpn = n->active && (n->resp.started || n->resume) ? n->lqpn : 0,
	    .key = n->h.key,
	};

	return eng_open_encode(out, &o);
}

static bool open_req(struct eng_near *n, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];
	size_t len = eng_near_open_info(n, info);

	return wan_tx_open(eng_wan(&n->h), &n->req, info, len, n, now) == 0;
}

/* The connection begins (again) at this PSN. Until the far host has confirmed it nothing is acknowledged. */
static void start(struct eng_near *n, roce_psn first, uint32_t pmtu, rwy_time now)
{
	if (n->active) {
		abort_req(n, now);
		drop_cache(n);
		roce_resp_fini(&n->resp);
	}
	eng_journal_forget(n);
	roce_resp_init(&n->resp, first, pmtu);
	n->active = true;
	n->resume = false;
	n->held = false;
	n->life = (uint32_t)eng_random(n->h.e) | 1;
	eng_log(n->h.e, 4, "near remote_qpn=%u starts at psn=%u", n->h.key.qpn, first);
}

static bool send_resume(struct eng_near *n, rwy_time now)
{
	struct eng *e = n->h.e;
	struct eng_ctrl c = {.type = ENG_CTRL_RESUME, .life = n->life, .qpn = n->lqpn, .psn = n->resp.start};
	struct rwy_buf *b = eng_ctrl_buf(e, &c);

	if (!b)
		return false;
	b->psn = n->resp.start;
	b->psn_cnt = 0;
	b->msn = 0;
	n->custody += eng_cost(e, b);
	e->custody += eng_cost(e, b);
	wan_tx_send(n->req, b, now);
	return true;
}

struct eng_near *eng_near_resume(struct eng *e, const struct eng_key *k, struct eng_jent *j, rwy_time now)
{
	struct eng_near *n = eng_near_get(e, k, false, now);

	if (!n)
		return NULL;
	start(n, j->acked & ROCE_PSN_MASK, j->pmtu, now);
	n->jent = j;
	n->lqpn = j->lqpn;
	n->rnr_retry = j->rnr_retry;
	n->retry = j->retry;
	n->resume = true;
	if (!open_req(n, now) || !send_resume(n, now)) {
		n->jent = NULL; /* the caller gives it back */
		eng_near_free(n, now);
		return NULL;
	}
	return n;
}

void eng_near_start_cm(struct eng_near *n, uint32_t lqpn, roce_psn psn, uint32_t pmtu, rwy_time now)
{
	/* A retransmitted REP must not disturb a connection that runs. */
	if (n->active && n->h.learned == ENG_BY_CM && n->lqpn == lqpn && n->resp.start == psn &&
	    n->h.close_at == RWY_NEVER)
		return;
	if (n->far && n->far->h.key.qpn != lqpn)
		eng_unpair(n->far);
	start(n, psn, pmtu, now);
	if (n->h.state == ENG_LEARNING)
		n->h.e->half_open--;
	n->h.state = ENG_PAIRED;
	n->h.learned = ENG_BY_CM;
	n->h.close_at = RWY_NEVER;
	n->h.last = now;
	n->h.error = "";
	n->lqpn = lqpn;
	roce_resp_go(&n->resp, 0);
}

static void answer_address(const struct eng_near *n, struct roce_addr *a)
{
	a->src = n->h.key.dst;
	a->dst = n->h.key.src;
	a->dqpn = n->lqpn;
	a->sport = n->sport;
	a->pkey = n->pkey;
	a->tos = n->tos;
	a->ttl = 64;
	a->migreq = n->migreq;
}

static void send_cnp(struct eng_near *n, rwy_time now)
{
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_addr a;

	if (now < n->cnp_at || !n->lqpn)
		return;
	n->cnp_at = now + CNP_INTERVAL;
	answer_address(n, &a);
	eng_lan_made(n->h.e, out, roce_build_cnp(out, &a), &a.dst, &n->nh);
	n->h.e->c.np_cnp_sent++;
}

/*
 * Whether memory is so short that the host must wait: back-pressure by silence, never by RNR NAK or loss. A
 * connection with nothing in custody never waits: nothing of its own would wake it, and its host's retries
 * run.
 */
static bool memory_short(const struct eng_near *n)
{
	const struct eng *e = n->h.e;

	return n->custody >= e->cfg.custody_conn || (n->custody && e->custody >= e->cfg.custody_total);
}

/*
 * The host waits so long that its timer has run out: it sends again from its oldest unacknowledged packet. It
 * gets an acknowledge for that one, because progress gives it all its retries back (IBA 9.7.6.1.3); an outage
 * of the WAN then costs no connection, and no more memory than one packet a time-out.
 */
static void drip(struct eng_near *n, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_resp *r = &n->resp;

	if (!n->held || !r->started || pkt->psn != r->allow_psn || now < n->drip_at)
		return;
	n->drip_at = now + DRIP_INTERVAL;
	n->h.e->c.holdback_drip++;
	roce_resp_allow(
	    r, roce_psn_add(pkt->psn, 1), roce_psn_add(r->allow_msn, roce_op_ends(pkt->info) ? 1 : 0));
}

static void accept(struct eng_near *n, const struct roce_pkt *pkt, struct rwy_buf *b,
    const struct roce_resp_act *act, rwy_time now)
{
	struct eng *e = n->h.e;

	if (!n->req && !open_req(n, now)) {
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
	n->packets++;
	n->bytes += b->len;
	n->custody += eng_cost(e, b);
	e->custody += eng_cost(e, b);
	e->c.accepted++;
	if (eng_np_congested(n, pkt, b))
		send_cnp(n, now);
	wan_tx_send(n->req, b, now);
	if (e->cfg.ack_mode != ENG_ACK_NEAR)
		return;
	if (memory_short(n)) {
		if (!n->held)
			e->c.holdback++;
		n->held = true;
		send_cnp(n, now);
	} else if (!n->held) {
		roce_resp_allow(&n->resp, n->resp.epsn, n->resp.msn);
	}
}

void eng_near_unhold(struct eng_near *n, rwy_time now)
{
	(void)now;
	/* As soon as there is room: hosts are paced by what leaves, not stopped until much has left. */
	if (!n->held || memory_short(n))
		return;
	n->held = false;
	roce_resp_allow(&n->resp, n->resp.epsn, n->resp.msn);
	eng_dirty(&n->h);
}

/*
 * A request that does not fit this connection's PSNs may be the first of a new one on the same QPN: its host
 * created the QP again. We cannot know from here, so we do not guess: with nothing in custody the connection
 * is started anew at this PSN, unacknowledged, and the far host, which knows, is asked (see far.c: its answer
 * to the first packet is the truth, also when this was a duplicate).
 */
static bool may_be_new(
    const struct eng_near *n, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now)
{
	if (!roce_op_starts(pkt->info) || n->resp.rd_n || (n->req && wan_tx_queued(n->req)))
		return false;
	if (v == ROCE_RESP_STALE)
		return true;
	/* It has not been told yet, and is where the connection that failed was: it is that one's host. */
	if (v == ROCE_RESP_FAILED && !n->resp.fail_sent && !roce_psn_before(pkt->psn, n->resp.acked) &&
	    !roce_psn_after(pkt->psn, n->resp.epsn))
		return false;
	/* The far host has been asked and named the PSN it expects: it will not say so twice. */
	if (v == ROCE_RESP_GAP && n->naks && n->nak_psn == n->resp.epsn)
		return false;
	if (v == ROCE_RESP_GAP && roce_psn_diff(pkt->psn, n->resp.epsn) >= 1 << 14)
		return true;
	/* Two hosts cannot agree on a new connection in less than a round trip: what comes sooner is this
	 * one's. What comes later may be a retransmission after a time-out, which is rare enough to be asked
	 * about. */
	return now - n->h.last > n->h.e->tun[n->h.tunnel].min_rtt &&
	       (v == ROCE_RESP_GAP || v == ROCE_RESP_DUP || v == ROCE_RESP_DUP_READ ||
	           v == ROCE_RESP_DUP_ATOMIC || v == ROCE_RESP_FAILED);
}

static void restart(struct eng_near *n, const struct roce_pkt *pkt, rwy_time now)
{
	/* n->far stays: if this was no new connection it is right, and if it was, the far half finds out by
	 * itself. */
	n->lqpn = 0;
	if (n->h.state != ENG_LEARNING)
		n->h.e->half_open++;
	n->h.state = ENG_LEARNING;
	n->h.learned = ENG_BY_NOBODY;
	n->h.error = "";
	start(n, pkt->psn, 0, now);
}

static void unpark(struct eng_near *n, rwy_time now)
{
	struct rwy_bufq q = n->parked;
	struct rwy_buf *b;

	n->parked = (struct rwy_bufq){0};
	while ((b = rwy_bufq_pop(&q))) {
		struct roce_pkt pkt;

		if (roce_parse(b->data, b->len, &pkt) == ROCE_PARSE_OK)
			eng_near_request(n, &pkt, b, now);
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

void eng_near_request(struct eng_near *n, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;
	struct roce_resp_act act;
	bool again = false;

	if (n->resume) {
		n->h.last = now;
		eng_drop(
		    e, b, &e->c.drop_resuming); /* the host sends again; nothing of it was acknowledged */
		return;
	}
	if (!n->active) {
		learn_header(n, pkt);
		start(n, pkt->psn, 0, now);
	}
	if (!n->resp.started && n->req && wan_tx_queued(n->req) >= ENG_UNPAIRED_MAX) {
		eng_drop(e, b, &e->c.drop_unpaired_full);
		return;
	}
	if (n->naks >= NAKS_MAX && n->gap_seen && roce_psn_after(pkt->psn, n->nak_psn)) {
		/* The host has nothing to send from there: it was told that it had arrived, by a gateway that
		 * is no more. Its oldest outstanding request, where it always begins again, gets the error.
		 */
		eng_near_fail(n, n->gap_low, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
		    "requests were lost in a gateway restart", now);
		roce_resp_lost(&n->resp, n->gap_low);
		n->naks = 0;
		n->h.last = now;
		eng_drop(e, b, &e->c.drop_after_error);
		eng_dirty(&n->h); /* the error goes out before anything else is made of this host's packets */
		return;
	}
retry:
	roce_resp_recv(&n->resp, pkt, &act, now);
	if (act.verdict != ROCE_RESP_ACCEPT && !again && may_be_new(n, pkt, act.verdict, now)) {
		restart(n, pkt, now);
		again = true;
		goto retry;
	}
	n->h.last = now;
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
				unpark(n, now);
			return;
		}
		eng_drop(e, b, &e->c.drop_too_many_outstanding);
		return;
	case ROCE_RESP_DUP:
		drip(n, pkt, now);
		eng_drop(e, b, &e->c.duplicate_request);
		return;
	case ROCE_RESP_DUP_READ:
	case ROCE_RESP_DUP_ATOMIC:
		eng_near_replay(n, pkt->psn, act.verdict == ROCE_RESP_DUP_ATOMIC ? 1 : act.psn_cnt, now);
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

/* A READ RESPONSE or ATOMIC ACK of the far host. */
static void answer_packet(struct eng_near *n, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;
	struct roce_pkt pkt;

	if (!n->active || roce_parse(b->data, b->len, &pkt) != ROCE_PARSE_OK ||
	    !roce_op_is_response(pkt.info) || pkt.info->transport != ROCE_RC ||
	    !rwy_ip_eq(&pkt.src, &n->h.key.dst) || !rwy_ip_eq(&pkt.dst, &n->h.key.src)) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		return;
	}
	if (!n->resp.pmtu &&
	    (pkt.opcode == ROCE_RC_READ_RESP_FIRST || pkt.opcode == ROCE_RC_READ_RESP_MIDDLE))
		roce_resp_set_pmtu(&n->resp, pkt.payload_len);
	switch (roce_resp_response(&n->resp, pkt.psn, pkt.opcode, now)) {
	case ROCE_RESP_SERVE:
		if (n->resp.serve_opcode == pkt.opcode)
			eng_lan_send(e, b, false, &n->h.key.src, &n->nh);
		else
			eng_near_resend(n, b, n->resp.serve_opcode);
		eng_near_keep(n, b);
		break;
	case ROCE_RESP_SERVED:
	case ROCE_RESP_UNEXPECTED:
		eng_drop(e, b, &e->c.drop_old_response);
		break;
	}
	n->h.last = now;
	if (n->parked.n && !n->resp.pmtu_wait)
		unpark(n, now);
}

static void rewind_to(struct eng_near *n, roce_psn psn, rwy_time now)
{
	abort_req(n, now);
	rwy_bufq_drain(&n->h.e->bufs, &n->parked);
	roce_resp_rewind(&n->resp, psn);
	roce_resp_go(&n->resp, 0);
}

/* The far host has answered the first packet: the connection is real, and this is where it stands. */
static void synced(struct eng_near *n, const struct eng_ctrl *c, rwy_time now)
{
	struct eng *e = n->h.e;

	if (n->resp.started)
		return;
	n->resume = false;
	if (c->qpn)
		n->lqpn = c->qpn;
	if (n->h.state == ENG_LEARNING) {
		e->half_open--;
		n->h.state = ENG_PAIRED;
		n->h.learned = ENG_BY_PEER;
		e->c.conns_paired++;
	}
	roce_resp_go(&n->resp, c->msn);
	if (e->cfg.ack_mode == ENG_ACK_NEAR)
		roce_resp_allow(&n->resp, n->resp.epsn, n->resp.msn);
	/* L's own QPN is known now, so the answers it gives to R are, too. */
	struct eng_key k = {n->h.key.dst, n->h.key.src, c->qpn};
	struct eng_far *f = (struct eng_far *)eng_find(e, &k, true);

	if (f)
		eng_pair_halves(n, f, ENG_BY_PEER);
	else if (n->far && n->far->h.key.qpn != c->qpn)
		eng_unpair(n->far);
	eng_dirty(&n->h);
	(void)now;
}

static void answer_ctrl(struct eng_near *n, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;
	struct eng_ctrl c;

	if (!eng_ctrl_decode(&c, b->data, b->len)) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		return;
	}
	rwy_buf_free(&e->bufs, b);
	if (!n->active || c.life != n->life)
		return; /* about an earlier life of this flow */
	switch ((enum eng_ctrl_type)c.type) {
	case ENG_CTRL_SYNC:
		n->naks = 0;
		synced(n, &c, now);
		return;
	case ENG_CTRL_REWIND:
		synced(n, &c, now);
		rewind_to(n, c.psn, now);
		return;
	case ENG_CTRL_FAIL:
		/* Refused for what was lost, not because nobody is there: then both hosts may be idle. */
		if (n->resume && c.syndrome != roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP))
			eng_far_lost_reverse(n, now);
		synced(n, &c, now);
		eng_near_fail(n, c.psn, c.syndrome, "refused by the far host", now);
		return;
	case ENG_CTRL_RESUME: /* it goes the other way */
		e->c.drop_tunnel_msg++;
		return;
	}
}

void eng_near_answer(struct eng_near *n, struct rwy_buf *b, rwy_time now)
{
	uint64_t seq = b->seq;

	if (b->kind == RWY_BUF_CTRL)
		answer_ctrl(n, b, now);
	else
		answer_packet(n, b, now);
	/* Answers are in our hands: the far gateway need not keep them. */
	if (n->rsp)
		wan_rx_delivered(n->rsp, seq, now);
	eng_dirty(&n->h);
}

void eng_near_delivered(struct eng_near *n, const struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;

	n->custody -= eng_cost(e, b);
	e->custody -= eng_cost(e, b);
	e->c.delivered++;
	if (e->cfg.ack_mode == ENG_ACK_END && n->active) {
		roce_resp_allow(&n->resp, roce_psn_add(b->psn, b->psn_cnt), b->msn);
		eng_dirty(&n->h);
	}
	if (n->held)
		eng_dirty(&n->h); /* unhold is tried when the list is run: b is still counted in the flow */
	(void)now;
}

void eng_near_fail(struct eng_near *n, roce_psn psn, uint8_t syndrome, const char *why, rwy_time now)
{
	struct eng *e = n->h.e;

	if (n->h.state == ENG_FAILED)
		return;
	if (n->h.state == ENG_LEARNING)
		e->half_open--;
	n->h.state = ENG_FAILED;
	n->h.error = why;
	e->c.conns_failed++;
	eng_log_half(e, 1, &n->h, why);
	abort_req(n, now);
	rwy_bufq_drain(&e->bufs, &n->parked);
	if (n->active)
		roce_resp_fail(&n->resp, psn, syndrome);
	eng_dirty(&n->h);
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

	if (!n->active)
		return;
	if (n->held)
		eng_near_unhold(n, now);
	while (n->lqpn && roce_resp_flush(&n->resp, &out, now)) {
		uint8_t bytes[ROCE_BUILD_MAX];
		struct roce_addr a;

		if (e->jfree)
			eng_journal_note(n);
		answer_address(n, &a);
		eng_lan_made(
		    e, bytes, roce_build_ack(bytes, &a, out.psn, out.syndrome, out.msn), &a.dst, &n->nh);
		if (roce_aeth_type(out.syndrome) == ROCE_AETH_ACK) {
			e->c.acks_sent++;
		} else {
			e->c.naks_sent++;
			if (roce_aeth_value(out.syndrome) == ROCE_NAK_PSN_SEQ)
				count_nak(n, out.psn);
		}
		if (roce_aeth_type(out.syndrome) != ROCE_AETH_ACK)
			break;
	}
}
