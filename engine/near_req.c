/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of a local host: into custody, or why not; what a host that must wait is told; when a packet that
 * does not fit may be the first of a new connection.
 */
#include "engine/eng.h"

#define CNP_INTERVAL (50 * RWY_US) /* DCQCN NP: at most one CNP a flow in this time */
/* A time-out resends a whole window: one acknowledge for all of it. NICs' shortest time-out is 2 ms. */
#define DRIP_INTERVAL (2 * RWY_MS)
#define CROSSED                                                                                              \
	(2 * RWY_MS) /* an ACK on the LAN and the host that takes it in; shorter than any host's timer */

void eng_near_address(const struct eng_near *n, struct roce_addr *a)
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
	eng_near_address(n, &a);
	eng_lan_made(n->h.e, n->h.key.tenant, out, roce_build_cnp(out, &a), &a.dst, &n->nh);
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
	const struct eng_ten *t = n->h.ten;

	return n->custody >= e->cfg.custody_conn ||
	       (n->custody &&
	           (t->custody >= t->cfg.custody ||
	               (t->custody >= t->cfg.reserve && e->common + e->reserved >= e->cfg.custody_total)));
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
		send_cnp(n, now);
	wan_tx_send(n->req, b, now);
	if (n->h.ten->cfg.ack_mode != ENG_ACK_NEAR)
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
	if (n->h.ten->cfg.ack_mode ==
	    ENG_ACK_NEAR) /* else it was changed: what is delivered may be acknowledged */
		roce_resp_allow(&n->resp, n->resp.epsn, n->resp.msn);
	eng_dirty(&n->h);
}

/*
 * A READ again, or the rest of one, the same to the byte, and the answers are here: no new connection begins
 * so. Only this connection's first READ may be a new connection's, too. Soft-RoCE's timer runs from its first
 * packet on, whatever comes meanwhile: a slow host asks for what is in its own queue.
 */
static bool repeats_read(const struct eng_near *n, const struct roce_pkt *pkt)
{
	if (!eng_near_has_answer(n, pkt->psn))
		return false;
	for (uint32_t i = 0; i < ENG_READS && i < n->reads_asked; i++) {
		const struct eng_read *r = &n->read[i];
		uint64_t off = (uint64_t)((pkt->psn - r->psn) & ROCE_PSN_MASK) * n->resp.pmtu;

		if ((off || r->psn != n->resp.start) && off < r->len && roce_reth_va(pkt) == r->va + off &&
		    roce_reth_len(pkt) == r->len - off && roce_reth_rkey(pkt) == r->rkey)
			return true;
	}
	return false;
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
	/* Nothing of this life was acknowledged, and the host goes back to before its beginning: so that is
	 * where it stands. The far host, which expects that packet, may have said so, once, and not been
	 * heard. */
	if (v == ROCE_RESP_STALE && !n->resp.started && roce_psn_before(pkt->psn, n->resp.start))
		return true;
	/* Who was told that the connection failed waits for no answer any more. */
	if ((n->resp.rd_n && !n->resp.fail_sent) || (n->req && wan_tx_queued(n->req)))
		return false;
	/* Of a new connection the first packets may be lost, and then it seems to begin in the middle: to say
	 * of that one that it had arrived would be the end of the connection's beginning. */
	if (!roce_op_starts(pkt->info))
		return v == ROCE_RESP_DUP && n->resp.started &&
		       now - n->asked_at > n->h.e->tun[n->h.tunnel].least_rtt;
	if (v == ROCE_RESP_STALE)
		return true;
	if (v == ROCE_RESP_DUP_READ && repeats_read(n, pkt))
		return false;
	/* It has not been told yet, and is where the connection that failed was: it is that one's host. */
	if (v == ROCE_RESP_FAILED && !n->resp.fail_sent && !roce_psn_before(pkt->psn, n->resp.acked) &&
	    !roce_psn_after(pkt->psn, n->resp.epsn))
		return false;
	/* The far host has been asked and named the PSN it expects: it will not say so twice. Not so when
	 * only we have said what is missing, while the last of the connection before was in custody. */
	if (v == ROCE_RESP_GAP && n->naks && n->nak_psn == n->resp.epsn && n->resp.start == n->resp.epsn)
		return false;
	if (v == ROCE_RESP_GAP && roce_psn_diff(pkt->psn, n->resp.epsn) >= 1 << 14)
		return true;
	/* Two hosts cannot agree on a new connection in less than a round trip: what comes sooner is this
	 * one's. What comes later may be a retransmission after a time-out, which is rare enough to be asked
	 * about. */
	return now - n->asked_at > n->h.e->tun[n->h.tunnel].least_rtt &&
	       (v == ROCE_RESP_GAP || v == ROCE_RESP_DUP || v == ROCE_RESP_DUP_READ ||
	           v == ROCE_RESP_DUP_ATOMIC || v == ROCE_RESP_FAILED);
}

/*
 * The host sends again what it has been told about this moment: it had waited long, and its timer was faster
 * than our ACK. It will have that by now; and if it is a new connection's host after all, it will send once
 * more. So we neither say again that it had arrived nor ask the far host, which may take an outage to answer,
 * but look away until it is quiet: from what it sends next one can tell which it is.
 */
static bool crossed(struct eng_near *n, enum roce_resp_verdict v, rwy_time now)
{
	if (v != ROCE_RESP_DUP || !n->acked_at || now - n->acked_at >= CROSSED)
		return false;
	n->resp.dup_ack = false;
	n->deaf_until = now + CROSSED;
	return true;
}

static bool deaf(struct eng_near *n, rwy_time now)
{
	if (now >= n->deaf_until) {
		n->deaf_until = 0;
		return false;
	}
	n->deaf_until = now + CROSSED;
	return true;
}

static void restart(struct eng_near *n, const struct roce_pkt *pkt, rwy_time now)
{
	/* n->far stays: if this was no new connection it is right, and if it was, the far half finds out by
	 * itself. */
	if (n->lqpn)
		n->lqpn_before = n->lqpn;
	n->lqpn = 0;
	if (n->h.state != ENG_LEARNING)
		eng_half_open(n, 1);
	n->h.state = ENG_LEARNING;
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
		n->h.last = n->asked_at = now;
		eng_drop(
		    e, b, &e->c.drop_resuming); /* the host sends again; nothing of it was acknowledged */
		return;
	}
	if (!n->active) {
		learn_header(n, pkt);
		eng_near_start(n, pkt->psn, 0, now);
	}
	if (!n->resp.started && n->req && wan_tx_queued(n->req) >= ENG_UNPAIRED_MAX) {
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
	if (n->deaf_until && deaf(n, now)) {
		eng_drop(e, b, &e->c.drop_crossed);
		return;
	}
retry:
	roce_resp_recv(&n->resp, pkt, &act, now);
	if (act.verdict != ROCE_RESP_ACCEPT && !again && may_be_new(n, pkt, act.verdict, now)) {
		if (crossed(n, act.verdict, now)) {
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
		drip(n, pkt, now);
		if (n->held) /* its timer ran out, and what it sends again is of no use: nothing else slows it
		                down */
			send_cnp(n, now);
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
