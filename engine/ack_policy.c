/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledging a local host's requests: when its tenant's ack mode allows, and later while custody
 * memory is short. A host that must wait gets no ACK; a single ACK for each timeout keeps its
 * connection alive. Before the gateway stops (settle.h) every request waits for the far host.
 */
#include "engine/responder.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/settle.h"

/* A timeout resends a whole window, which gets one ACK. The shortest timeout of NICs is 2 ms. */
#define SINGLE_INTERVAL (2 * RWY_MS)

/*
 * Memory is so short that the host must wait: back-pressure is silence, never an RNR NAK or a drop.
 * A connection with nothing in custody never waits, for no delivery of its own would wake it while
 * its host's retries run out. Nor does a host wait that holds less than its fair share.
 */
static bool memory_short(const struct eng_responder *rs)
{
	const struct eng *e = rs->side.e;
	const struct eng_tenant *t = rs->side.tenant;

	if (rs->custody >= e->cfg.custody_conn)
		return true;
	return rs->custody &&
	       (t->mem.held >= t->cfg.custody ||
	           (t->mem.held >= t->cfg.reserve && e->common + e->reserved >= e->cfg.custody_total)) &&
	       eng_mem_over_share(&rs->side);
}

/* Requests in custody are promised to the host. */
static bool acks_early(const struct eng_responder *rs)
{
	return rs->side.tenant->cfg.ack_mode == ENG_ACK_NEAR && eng_serving(rs->side.e);
}

/* The host waits longer than it is used to. */
static bool singles_allowed(const struct eng_responder *rs)
{
	if (eng_serving(rs->side.e))
		return rs->ack_blocked;
	return rs->side.tenant->cfg.ack_mode == ENG_ACK_NEAR && eng_settle_singles(rs->side.e);
}

void eng_ack_single(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_resp *r = &rs->resp;

	if (!singles_allowed(rs) || !roce_resp_started(r) || pkt->psn != r->allow_psn ||
	    now < rs->single_ack_at)
		return;
	rs->single_ack_at = now + SINGLE_INTERVAL;
	rs->side.e->c.ack_single++;
	roce_resp_allow(
	    r, roce_psn_add(pkt->psn, 1), roce_psn_add(r->allow_msn, roce_op_ends(pkt->info) ? 1 : 0));
}

static void allow_all(struct eng_responder *rs)
{
	roce_resp_allow(&rs->resp, rs->resp.epsn, rs->resp.msn);
}

void eng_ack_started(struct eng_responder *rs)
{
	if (acks_early(rs))
		allow_all(rs);
}

void eng_ack_in_custody(struct eng_responder *rs, rwy_time now)
{
	if (rs->side.tenant->cfg.ack_mode != ENG_ACK_NEAR)
		return;
	if (eng_read_would_wait(rs) && !memory_short(rs)) {
		/* It is not memory, so it need not slow down: no CNP. */
		rs->side.e->c.ack_for_read += !rs->ack_blocked;
		rs->ack_blocked = true;
	} else if (memory_short(rs)) {
		if (!rs->ack_blocked)
			rs->side.e->c.ack_blocked++;
		rs->ack_blocked = true;
		eng_cnp_send(rs, now);
	} else if (!rs->ack_blocked && acks_early(rs)) {
		allow_all(rs);
	}
}

void eng_ack_at_far_gateway(struct eng_responder *rs, const struct rwy_buf *b)
{
	if (rs->side.tenant->cfg.ack_mode != ENG_ACK_FAR || !eng_serving(rs->side.e))
		return;
	roce_resp_allow(&rs->resp, roce_psn_add(b->psn, b->psn_cnt), b->msn);
	eng_dirty(&rs->side);
}

void eng_ack_at_far_host(struct eng_responder *rs, const struct rwy_buf *b)
{
	/*
	 * Mode `end`, requests accepted before the tenant's mode changed, and all while the engine
	 * settles. In mode `near` a host that waits for memory keeps waiting.
	 */
	if (rs->resp.allow_psn != rs->resp.epsn && !(rs->ack_blocked && acks_early(rs))) {
		roce_resp_allow(&rs->resp, roce_psn_add(b->psn, b->psn_cnt), b->msn);
		eng_dirty(&rs->side);
	}
	/* eng_ack_unblock is for the flush: here b still counts in the flow. */
	if (rs->ack_blocked)
		eng_dirty(&rs->side);
}

void eng_ack_unblock(struct eng_responder *rs)
{
	/*
	 * As soon as there is room: hosts are paced by departures, not stopped until much has left.
	 */
	if (!rs->ack_blocked || memory_short(rs) || eng_read_would_wait(rs))
		return;
	rs->ack_blocked = false;
	eng_ack_started(rs); /* mode near; else deliveries allow ACKs */
	eng_dirty(&rs->side);
}
