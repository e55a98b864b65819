/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that does not fit its connection's PSNs is a duplicate, or the first of a new
 * connection on a QPN that its host uses again. states.h has the table of cases; each function here
 * is one.
 */
#include "engine/copy.h"
#include "engine/responder.h"
#include "roce/icrc.h"

/* An ACK takes less time to arrive and to be processed; shorter than any host's timer. */
#define ACK_IN_FLIGHT (2 * RWY_MS)
/* Responses may wait for so long in the receive queue of a slow host. */
#define ANSWER_IN_FLIGHT RWY_SEC
#define WIDE             (1 << 14) /* PSNs */
/* A host whose request was refused has sent it again by then, or has given up. */
#define HOST_REPEATS (10 * RWY_SEC)
/* The witness and the hosts have answered by then. */
#define TAKEOVER_GAP (100 * RWY_MS)

enum answer { NOT_NEW, MAY_BE_NEW };

struct question {
	const struct eng_responder *rs;
	const struct roce_pkt *pkt;
	enum roce_resp_verdict verdict;
	rwy_time now;
	/* More than the round trip since the last packet: two hosts may have connected anew. */
	bool late;
};

/*
 * A relay between, which has not seen the connection begin, asks which PSN is expected (recover.c):
 * 2^16 PSNs before the one that it knows of, or half the PSN space ahead of that. A new connection
 * of a host begins there only by chance, and hardly by an RDMA WRITE of 0 bytes to no memory.
 */
static bool relay_asks(const struct question *q)
{
	const struct roce_pkt *pkt = q->pkt;
	int32_t ahead = roce_psn_diff(pkt->psn, q->rs->resp.epsn), most = ROCE_OUTSTANDING_MAX;

	if (pkt->opcode != ROCE_RC_WRITE_ONLY || pkt->payload_len || roce_reth_len(pkt) ||
	    roce_reth_va(pkt) || roce_reth_rkey(pkt))
		return false;
	if (q->verdict == ROCE_RESP_GAP)
		return ahead > (1 << 22);
	return q->verdict == ROCE_RESP_STALE && ahead < -most / 2 && ahead > -2 * most;
}

/* The far host expects an earlier packet; its NAK, sent once, may have been lost. */
static bool before_start(const struct question *q)
{
	const struct roce_resp *r = &q->rs->resp;

	return q->verdict == ROCE_RESP_STALE && !roce_resp_started(r) &&
	       roce_psn_before(q->pkt->psn, r->start);
}

/* The request in custody with this PSN; NULL: none. */
static const struct rwy_buf *custody_at(const struct eng_responder *rs, roce_psn psn)
{
	uint32_t n = rs->requests ? wan_tx_queued(rs->requests) : 0, lo = 0, hi = n;
	roce_psn first = n ? wan_tx_peek(rs->requests, 0)->psn : 0;
	uint32_t at = (psn - first) & ROCE_PSN_MASK;

	while (lo < hi) {
		uint32_t mid = lo + ((hi - lo) >> 1);

		if (((wan_tx_peek(rs->requests, mid)->psn - first) & ROCE_PSN_MASK) < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && wan_tx_peek(rs->requests, lo)->psn == psn ? wan_tx_peek(rs->requests, lo) : NULL;
}

/* How a READ packet relates to an earlier READ. */
enum same_read { ELSEWHERE, SAME_READ, OTHER_READ };

/* A repeated READ, or the rest of one, has the same rkey, and its address and length at its PSN. */
static enum same_read compare_read(
    const struct eng_responder *rs, const struct eng_read *r, const struct roce_pkt *pkt)
{
	uint32_t at = (pkt->psn - r->psn) & ROCE_PSN_MASK;
	uint64_t off = (uint64_t)at * rs->resp.pmtu;

	if (at && off >= r->len)
		return ELSEWHERE;
	if (roce_reth_va(pkt) == r->va + off && roce_reth_len(pkt) == r->len - off &&
	    roce_reth_rkey(pkt) == r->rkey)
		return SAME_READ;
	return !at || rs->resp.pmtu ? OTHER_READ : ELSEWHERE;
}

/* Another READ was answered at this PSN. */
static bool other_read(const struct eng_responder *rs, const struct roce_pkt *pkt)
{
	for (uint32_t i = 0; i < ENG_READS && i < rs->rare->reads_asked; i++)
		if (compare_read(rs, &rs->rare->read[i], pkt) == OTHER_READ)
			return true;
	return false;
}

/*
 * Both hosts created their QPs again, or reset them, before custody was empty, and begin at a PSN
 * of before (NCCL and UCX always at 0). A host repeats a request with the same content. Only where
 * nothing is lost if it was the same connection after all: it repeats everything from a PSN on for
 * which it had no ACK, or nothing had an ACK yet.
 */
static bool other_request(const struct question *q)
{
	const struct eng_responder *rs = q->rs;
	const struct roce_pkt *pkt = q->pkt;
	uint32_t early = (pkt->psn - rs->resp.start) & ROCE_PSN_MASK;
	const struct rwy_buf *b;
	struct roce_pkt before;

	if (!roce_op_starts(pkt->info) ||
	    (q->verdict != ROCE_RESP_DUP && q->verdict != ROCE_RESP_DUP_READ &&
	        q->verdict != ROCE_RESP_DUP_ATOMIC) ||
	    (rs->resp.acked != rs->resp.start && !roce_psn_before(pkt->psn, rs->resp.acked)))
		return false;
	if (early < ENG_EARLY && rs->early_known >> early & 1)
		return rs->early_crc[early] != roce_content_crc(pkt);
	if (q->verdict == ROCE_RESP_DUP_READ && other_read(rs, pkt))
		return true;
	b = custody_at(rs, pkt->psn);
	return b && roce_parse(b->data, b->len, &before) == ROCE_PARSE_OK &&
	       roce_content_crc(&before) != roce_content_crc(pkt);
}

/* Without the QPN no error goes out, and nothing had an ACK: the host may repeat for ever. */
static bool end_unsaid(const struct question *q)
{
	return q->verdict == ROCE_RESP_FAILED && !q->rs->local_qpn && q->late && eng_wan(&q->rs->side);
}

/* A host that got the error NAK expects no more responses. */
static bool in_custody(const struct question *q)
{
	const struct eng_responder *rs = q->rs;

	return (rs->resp.rd_n && !roce_resp_error_sent(&rs->resp)) ||
	       (rs->requests && wan_tx_queued(rs->requests));
}

static bool ack_waits(const struct question *q)
{
	const struct roce_resp *r = &q->rs->resp;

	return q->verdict == ROCE_RESP_DUP && eng_copy_gates(q->rs) && roce_resp_started(r) &&
	       !roce_psn_before(q->pkt->psn, r->acked);
}

/*
 * A new connection whose first packets were lost seems to begin in mid-message. An ACK for such a
 * packet would hide the loss. So would one for what follows, so a PSN of before the start counts.
 */
static bool middle_late(const struct question *q)
{
	return !roce_op_starts(q->pkt->info) &&
	       (q->verdict == ROCE_RESP_DUP || q->verdict == ROCE_RESP_STALE) &&
	       roce_resp_started(&q->rs->resp) && q->late;
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
 * Whether the host repeats an answered READ: address, length and rkey are those of the READ at this
 * PSN. At the first PSN they prove nothing, because a new connection may begin with the same READ.
 * Repeats are normal: Soft-RoCE's timer runs on while responses arrive, so a slow host repeats
 * READs whose responses wait in its own receive queue.
 */
static bool repeated_read(const struct question *q)
{
	const struct eng_responder *rs = q->rs;
	const struct roce_pkt *pkt = q->pkt;

	if (q->verdict != ROCE_RESP_DUP_READ || !eng_responder_has_answer(rs, pkt->psn))
		return false;
	for (uint32_t i = 0; i < ENG_READS && i < rs->rare->reads_asked; i++)
		if (compare_read(rs, &rs->rare->read[i], pkt) == SAME_READ)
			return pkt->psn != rs->rare->read[i].psn || pkt->psn != rs->resp.start;
	return false;
}

static bool error_not_sent(const struct question *q)
{
	const struct roce_resp *r = &q->rs->resp;

	return q->verdict == ROCE_RESP_FAILED && !roce_resp_error_sent(r) &&
	       !roce_psn_before(q->pkt->psn, r->acked) && !roce_psn_after(q->pkt->psn, r->epsn);
}

/*
 * The gap begins at the first PSN of the incarnation: the far host named it, by REWIND. A NAK for a
 * later PSN is this gateway's own and proves nothing.
 */
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

/*
 * The missing request came before, and there was no memory for it (request.c): its host sends it
 * again after the NAK that asks for it, or after a timeout, and may send others meanwhile.
 */
static bool gap_refused(const struct question *q)
{
	const struct eng_responder *rs = q->rs;

	return q->verdict == ROCE_RESP_GAP && rs->refused_at && rs->nak_psn == rs->resp.epsn &&
	       rwy_since(rs->refused_at, q->now) < HOST_REPEATS;
}

/*
 * What the host sent before is lost with the gateway that died or handed over. A host that has
 * begun anew meanwhile sends its first request again.
 */
static bool gap_of_takeover(const struct question *q)
{
	const struct eng_responder *rs = q->rs;

	return q->verdict == ROCE_RESP_GAP && eng_taken_over(rs) && rs->resp.epsn == rs->taken_epsn &&
	       rwy_since(rs->taken_at, q->now) < TAKEOVER_GAP;
}

/* It may also be a retransmission after a timeout. That is rare, so the far host can be asked. */
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
	rwy_dur rtt = rs->side.e->tunnel[rs->side.tunnel].least_rtt;
	const struct question q = {
	    .rs = rs, .pkt = pkt, .verdict = v, .now = now, .late = rtt && now - rs->asked_at > rtt};

	for (unsigned i = 0; i < ENG_REUSE_CASE_COUNT; i++)
		if (cases[i].applies(&q)) {
			rs->side.e->seen.reuse[i]++;
			rs->side.e->rec.reuse = (uint8_t)i;
			return cases[i].answer == MAY_BE_NEW;
		}
	return false;
}

bool eng_reuse_ack_in_flight(
    struct eng_responder *rs, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now)
{
	if (v != ROCE_RESP_DUP || !rs->acked_at || now - rs->acked_at >= ACK_IN_FLIGHT)
		return false;
	if (other_request(&(struct question){.rs = rs, .pkt = pkt, .verdict = v}))
		return false; /* nobody repeats: what follows it is new, too */
	roce_resp_forget_repeats(&rs->resp);
	rs->suppress_until = now + ACK_IN_FLIGHT;
	return true;
}

/*
 * A host whose timer runs while it processes responses repeats its first READ once more after the
 * last of them. When it did so before the answer, its timer is known, and so is the time in which
 * such a copy may come. It is not answered: a new connection begins with a copy, too, and its host
 * sends another one.
 */
bool eng_reuse_answer_in_flight(
    const struct eng_responder *rs, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now)
{
	const struct eng_rare *r = rs->rare;
	rwy_dur wait = rwy_time_min(r->copy_gap + r->copy_gap / 4, ANSWER_IN_FLIGHT);

	return v == ROCE_RESP_DUP_READ && r->reads_asked && r->reads_asked <= ENG_READS &&
	       pkt->psn == rs->resp.start && compare_read(rs, &r->read[0], pkt) == SAME_READ &&
	       rwy_since(r->served_at, now) < wait;
}

void eng_reuse_stale(struct eng_responder *rs, const struct roce_pkt *pkt)
{
	const struct roce_resp *r = &rs->resp;

	if (r->start == r->epsn || !roce_psn_before(pkt->psn, r->start) ||
	    relay_asks(&(struct question){.rs = rs, .pkt = pkt, .verdict = ROCE_RESP_STALE}))
		return;
	rs->suppress_until = RWY_NEVER;
	rs->dropped_psn = pkt->psn;
}

bool eng_reuse_suppressed(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	if (rs->suppress_until == RWY_NEVER) {
		if (!roce_psn_after(pkt->psn, rs->dropped_psn))
			rs->suppress_until = 0;
		rs->dropped_psn = pkt->psn;
		return rs->suppress_until;
	}
	if (now >= rs->suppress_until) {
		rs->suppress_until = 0;
		return false;
	}
	rs->suppress_until = now + ACK_IN_FLIGHT;
	return true;
}
