/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that does not fit the connection's PSNs: is it a duplicate, or the first of a new connection on a
 * QPN that its host uses again? The cases are a table in states.h.
 */
#include "engine/responder.h"

/* An ACK on the LAN and the host that takes it in; shorter than any host's timer. */
#define ACK_IN_FLIGHT (2 * RWY_MS)
#define WIDE          (1 << 14) /* PSNs */

enum answer { NOT_NEW, MAY_BE_NEW };

struct question {
	const struct eng_responder *rs;
	const struct roce_pkt *pkt;
	enum roce_resp_verdict verdict;
	bool late; /* two hosts cannot agree on a new connection in less than a round trip */
};

/* The far host, which expects an earlier packet, may have said so, once, and not been heard. */
static bool before_start(const struct question *q)
{
	const struct roce_resp *r = &q->rs->resp;

	return q->verdict == ROCE_RESP_STALE && !r->started && roce_psn_before(q->pkt->psn, r->start);
}

/* A host that got the error NAK expects no more responses. */
static bool in_custody(const struct question *q)
{
	const struct eng_responder *rs = q->rs;

	return (rs->resp.rd_n && !rs->resp.fail_sent) || (rs->requests && wan_tx_queued(rs->requests));
}

/*
 * The first packets of a new connection may be lost, and then it seems to begin in mid-message.
 * Acknowledging such a packet would hide the loss.
 */
static bool middle_late(const struct question *q)
{
	return !roce_op_starts(q->pkt->info) && q->verdict == ROCE_RESP_DUP && q->rs->resp.started && q->late;
}

static bool middle(const struct question *q)
{
	return !roce_op_starts(q->pkt->info);
}

static bool stale(const struct question *q)
{
	return q->verdict == ROCE_RESP_STALE;
}

/*
 * Only this connection's first READ may be a new connection's, too. Soft-RoCE's timer runs from its first
 * packet on, whatever comes meanwhile: a slow host asks for responses that wait in its own receive queue.
 */
static bool repeated_read(const struct question *q)
{
	const struct eng_responder *rs = q->rs;
	const struct roce_pkt *pkt = q->pkt;

	if (q->verdict != ROCE_RESP_DUP_READ || !eng_responder_has_answer(rs, pkt->psn))
		return false;
	for (uint32_t i = 0; i < ENG_READS && i < rs->reads_asked; i++) {
		const struct eng_read *r = &rs->read[i];
		uint64_t off = (uint64_t)((pkt->psn - r->psn) & ROCE_PSN_MASK) * rs->resp.pmtu;

		if ((off || r->psn != rs->resp.start) && off < r->len && roce_reth_va(pkt) == r->va + off &&
		    roce_reth_len(pkt) == r->len - off && roce_reth_rkey(pkt) == r->rkey)
			return true;
	}
	return false;
}

static bool error_not_sent(const struct question *q)
{
	const struct roce_resp *r = &q->rs->resp;

	return q->verdict == ROCE_RESP_FAILED && !r->fail_sent && !roce_psn_before(q->pkt->psn, r->acked) &&
	       !roce_psn_after(q->pkt->psn, r->epsn);
}

/* The far host names a PSN once. This gateway's own NAK, made while the last requests of the connection
 * before were in custody, is no answer of the far host. */
static bool gap_asked(const struct question *q)
{
	const struct eng_responder *rs = q->rs;

	return q->verdict == ROCE_RESP_GAP && rs->naks && rs->nak_psn == rs->resp.epsn &&
	       rs->resp.start == rs->resp.epsn;
}

static bool gap_wide(const struct question *q)
{
	return q->verdict == ROCE_RESP_GAP && roce_psn_diff(q->pkt->psn, q->rs->resp.epsn) >= WIDE;
}

/* It may be a retransmission after a timeout, which is rare enough to be asked about. */
static bool late(const struct question *q)
{
	return q->late && (q->verdict == ROCE_RESP_GAP || q->verdict == ROCE_RESP_DUP ||
	                      q->verdict == ROCE_RESP_DUP_READ || q->verdict == ROCE_RESP_DUP_ATOMIC ||
	                      q->verdict == ROCE_RESP_FAILED);
}

static const struct {
	bool (*applies)(const struct question *q);
	enum answer answer;
} cases[ENG_REUSE_CASE_COUNT] = {
#define X(c, a, s) {c, a},
    ENG_REUSE_CASES(X)
#undef X
};

bool eng_reuse_may_be_new(
    const struct eng_responder *rs, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now)
{
	const struct question q = {.rs = rs,
	    .pkt = pkt,
	    .verdict = v,
	    .late = now - rs->asked_at > rs->side.e->tunnel[rs->side.tunnel].least_rtt};

	for (unsigned i = 0; i < ENG_REUSE_CASE_COUNT; i++)
		if (cases[i].applies(&q)) {
			rs->side.e->seen.reuse[i]++;
			return cases[i].answer == MAY_BE_NEW;
		}
	return false;
}

bool eng_reuse_ack_in_flight(struct eng_responder *rs, enum roce_resp_verdict v, rwy_time now)
{
	if (v != ROCE_RESP_DUP || !rs->acked_at || now - rs->acked_at >= ACK_IN_FLIGHT)
		return false;
	rs->resp.dup_ack = false;
	rs->suppress_until = now + ACK_IN_FLIGHT;
	return true;
}

bool eng_reuse_suppressed(struct eng_responder *rs, rwy_time now)
{
	if (now >= rs->suppress_until) {
		rs->suppress_until = 0;
		return false;
	}
	rs->suppress_until = now + ACK_IN_FLIGHT;
	return true;
}
