/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a local host's request is acknowledged: by its tenant's ack mode, and for lack of memory later. A host
 * that must wait hears nothing; one acknowledgement a timeout keeps its connection alive.
 */
#include "engine/responder.h"
#include "engine/emit.h"

/* A timeout resends a whole window: one acknowledgement for all of it. NICs' shortest timeout is 2 ms. */
#define SINGLE_INTERVAL (2 * RWY_MS)

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

void eng_ack_single(struct eng_near *n, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_resp *r = &n->resp;

	if (!n->held || !r->started || pkt->psn != r->allow_psn || now < n->drip_at)
		return;
	n->drip_at = now + SINGLE_INTERVAL;
	n->h.e->c.holdback_drip++;
	roce_resp_allow(
	    r, roce_psn_add(pkt->psn, 1), roce_psn_add(r->allow_msn, roce_op_ends(pkt->info) ? 1 : 0));
}

static void allow_all(struct eng_near *n)
{
	roce_resp_allow(&n->resp, n->resp.epsn, n->resp.msn);
}

void eng_ack_started(struct eng_near *n)
{
	if (n->h.ten->cfg.ack_mode == ENG_ACK_NEAR)
		allow_all(n);
}

void eng_ack_in_custody(struct eng_near *n, rwy_time now)
{
	if (n->h.ten->cfg.ack_mode != ENG_ACK_NEAR)
		return;
	if (memory_short(n)) {
		if (!n->held)
			n->h.e->c.holdback++;
		n->held = true;
		eng_cnp_send(n, now);
	} else if (!n->held) {
		allow_all(n);
	}
}

void eng_ack_at_far_gateway(struct eng_near *n, const struct rwy_buf *b)
{
	if (n->h.ten->cfg.ack_mode != ENG_ACK_FAR)
		return;
	roce_resp_allow(&n->resp, roce_psn_add(b->psn, b->psn_cnt), b->msn);
	eng_dirty(&n->h);
}

void eng_ack_at_far_host(struct eng_near *n, const struct rwy_buf *b)
{
	/* Mode `end`; and what was accepted before the tenant's mode changed, whatever it is now. Not a host
	 * that waits for memory. */
	if (n->resp.allow_psn != n->resp.epsn && !(n->held && n->h.ten->cfg.ack_mode == ENG_ACK_NEAR)) {
		roce_resp_allow(&n->resp, roce_psn_add(b->psn, b->psn_cnt), b->msn);
		eng_dirty(&n->h);
	}
	if (n->held)
		eng_dirty(&n->h); /* eng_ack_unhold is tried in the flush: b is still counted in the flow */
}

void eng_ack_unhold(struct eng_near *n)
{
	/* As soon as there is room: hosts are paced by what leaves, not stopped until much has left. */
	if (!n->held || memory_short(n))
		return;
	n->held = false;
	eng_ack_started(n); /* another mode: what is delivered may be acknowledged */
	eng_dirty(&n->h);
}
