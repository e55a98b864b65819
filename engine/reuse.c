/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that does not fit the connection's PSNs: is it a duplicate, or the first of a new connection on a
 * QPN that its host uses again?
 */
#include "engine/responder.h"

#define CROSSED                                                                                              \
	(2 * RWY_MS) /* an ACK on the LAN and the host that takes it in; shorter than any host's timer */

/*
 * A READ again, or the rest of one, the same to the byte, and the answers are here: no new connection begins
 * so. Only this connection's first READ may be a new connection's, too. Soft-RoCE's timer runs from its first
 * packet on, whatever comes meanwhile: a slow host asks for what is in its own queue.
 */
static bool repeats_read(const struct eng_responder *rs, const struct roce_pkt *pkt)
{
	if (!eng_responder_has_answer(rs, pkt->psn))
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

/*
 * A request that does not fit this connection's PSNs may be the first of a new one on the same QPN: its host
 * created the QP again. We cannot know from here, so we do not guess: with nothing in custody the connection
 * is started anew at this PSN, unacknowledged, and the far host, which knows, is asked (see far.c: its answer
 * to the first packet is the truth, also when this was a duplicate).
 */
bool eng_reuse_may_be_new(
    const struct eng_responder *rs, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now)
{
	/* Nothing of this life was acknowledged, and the host goes back to before its beginning: so that is
	 * where it stands. The far host, which expects that packet, may have said so, once, and not been
	 * heard. */
	if (v == ROCE_RESP_STALE && !rs->resp.started && roce_psn_before(pkt->psn, rs->resp.start))
		return true;
	/* Who was told that the connection failed waits for no answer any more. */
	if ((rs->resp.rd_n && !rs->resp.fail_sent) || (rs->requests && wan_tx_queued(rs->requests)))
		return false;
	/* Of a new connection the first packets may be lost, and then it seems to begin in the middle: to say
	 * of that one that it had arrived would be the end of the connection's beginning. */
	if (!roce_op_starts(pkt->info))
		return v == ROCE_RESP_DUP && rs->resp.started &&
		       now - rs->asked_at > rs->side.e->tunnel[rs->side.tunnel].least_rtt;
	if (v == ROCE_RESP_STALE)
		return true;
	if (v == ROCE_RESP_DUP_READ && repeats_read(rs, pkt))
		return false;
	/* It has not been told yet, and is where the connection that failed was: it is that one's host. */
	if (v == ROCE_RESP_FAILED && !rs->resp.fail_sent && !roce_psn_before(pkt->psn, rs->resp.acked) &&
	    !roce_psn_after(pkt->psn, rs->resp.epsn))
		return false;
	/* The far host has been asked and named the PSN it expects: it will not say so twice. Not so when
	 * only we have said what is missing, while the last of the connection before was in custody. */
	if (v == ROCE_RESP_GAP && rs->naks && rs->nak_psn == rs->resp.epsn && rs->resp.start == rs->resp.epsn)
		return false;
	if (v == ROCE_RESP_GAP && roce_psn_diff(pkt->psn, rs->resp.epsn) >= 1 << 14)
		return true;
	/* Two hosts cannot agree on a new connection in less than a round trip: what comes sooner is this
	 * one's. What comes later may be a retransmission after a time-out, which is rare enough to be asked
	 * about. */
	return now - rs->asked_at > rs->side.e->tunnel[rs->side.tunnel].least_rtt &&
	       (v == ROCE_RESP_GAP || v == ROCE_RESP_DUP || v == ROCE_RESP_DUP_READ ||
	           v == ROCE_RESP_DUP_ATOMIC || v == ROCE_RESP_FAILED);
}

/*
 * The host sends again what it has been told about this moment: it had waited long, and its timer was faster
 * than our ACK. It will have that by now; and if it is a new connection's host after all, it will send once
 * more. So we neither say again that it had arrived nor ask the far host, which may take an outage to answer,
 * but look away until it is quiet: from what it sends next one can tell which it is.
 */
bool eng_reuse_ack_in_flight(struct eng_responder *rs, enum roce_resp_verdict v, rwy_time now)
{
	if (v != ROCE_RESP_DUP || !rs->acked_at || now - rs->acked_at >= CROSSED)
		return false;
	rs->resp.dup_ack = false;
	rs->suppress_until = now + CROSSED;
	return true;
}

bool eng_reuse_suppressed(struct eng_responder *rs, rwy_time now)
{
	if (now >= rs->suppress_until) {
		rs->suppress_until = 0;
		return false;
	}
	rs->suppress_until = now + CROSSED;
	return true;
}
