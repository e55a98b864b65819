/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledging a local host's requests: when its tenant's ack mode allows, and later while custody
 * memory is short. A host that must wait gets no ACK; a single ACK for each timeout keeps its
 * connection alive. Before the gateway stops (settle.h) every request waits for the far host.
 */
#include "engine/responder.h"
#include "engine/causal.h"
#include "engine/copy.h"
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

static bool custody_suffices(const struct eng_responder *rs)
{
	enum eng_ack_mode mode = eng_ack_mode(rs);

	return mode == ENG_ACK_NEAR || mode == ENG_ACK_CAUSAL || mode == ENG_ACK_SITE;
}

/* Requests are acknowledged as soon as they are in custody. */
static bool acks_at_once(const struct eng_responder *rs)
{
	return custody_suffices(rs) && eng_acks_by_mode(rs);
}

/* Only requests that complete a message wait for the far host. */
static bool acks_uncompleted(const struct eng_responder *rs)
{
	return eng_ack_mode(rs) == ENG_ACK_END && eng_acks_by_mode(rs) && !rs->ack_blocked;
}

/* The host waits longer than it is used to. */
static bool singles_allowed(const struct eng_responder *rs)
{
	if (rs->rewound)
		return false;
	if (eng_serving(rs))
		return rs->ack_blocked;
	return custody_suffices(rs) && eng_settle_singles(rs->side.e);
}

/* Mode `end`: this request is acknowledged only when the far host did. */
static bool completes(const struct eng_responder *rs, const struct roce_opinfo *op)
{
	return eng_ack_mode(rs) == ENG_ACK_END && roce_op_ends(op);
}

/*
 * Allows what is in custody up to the first request that completes a message, and not that one.
 * `early_seq` is the flow sequence of the first request that is not allowed; it only grows, so each
 * request is looked at once (without memory for it, again).
 */
static void allow_uncompleted(struct eng_responder *rs)
{
	struct roce_resp *r = &rs->resp;
	struct eng_rare *rare = rs->requests ? eng_rare_take(rs) : NULL;
	const struct rwy_buf *b;
	uint64_t seq;

	if (!rs->requests)
		return;
	seq = wan_tx_base(rs->requests);
	if (rare && rare->early_seq > seq)
		seq = rare->early_seq;
	for (; (b = wan_tx_at(rs->requests, seq)); seq++) {
		roce_psn end = roce_psn_add(b->psn, b->psn_cnt);

		if (b->kind != RWY_BUF_PACKET || !roce_psn_after(end, r->allow_psn))
			continue;
		if (b->psn != r->allow_psn || roce_op_ends(roce_op(b->opcode)))
			break;
		roce_resp_allow(r, end, b->msn);
	}
	if (rare)
		rare->early_seq = seq;
}

/* Allows what the mode allows for requests in custody here; nothing before a stop. */
static void allow_early(struct eng_responder *rs)
{
	if (!eng_acks_by_mode(rs))
		return;
	switch (eng_ack_mode(rs)) {
	case ENG_ACK_CAUSAL:
		if (eng_causal_shares(rs)) /* eng_causal_defers allows */
			return;
		/* fallthrough */
	case ENG_ACK_NEAR:
		roce_resp_allow(&rs->resp, rs->resp.epsn, rs->resp.msn);
		return;
	case ENG_ACK_END:
		allow_uncompleted(rs);
		return;
	case ENG_ACK_SITE:
		if (eng_sb_gates(rs->side.e))
			eng_copy_allow(rs);
		else
			roce_resp_allow(&rs->resp, rs->resp.epsn, rs->resp.msn);
		return;
	case ENG_ACK_FAR:
		return;
	}
	rwy_unreachable();
}

/*
 * The MSN behind the first request of a window that the host repeats. False: nobody can tell, or it
 * is no such request. A gateway that took over knows ACKs of the dead one only as far as it was
 * told, so the host's window may begin later than what is allowed here: until its own first ACK.
 */
static bool msn_behind(const struct eng_responder *rs, const struct roce_pkt *pkt, roce_msn *msn)
{
	const struct roce_resp *r = &rs->resp;
	const struct rwy_buf *b;

	if (pkt->psn == r->allow_psn) {
		*msn = roce_psn_add(r->allow_msn, roce_op_ends(pkt->info) ? 1 : 0);
		return true;
	}
	if (!rs->taken_over || rs->single_ack_at || !rs->requests || roce_psn_before(pkt->psn, r->allow_psn))
		return false;
	for (uint64_t s = wan_tx_base(rs->requests); (b = wan_tx_at(rs->requests, s)); s++)
		if (b->kind == RWY_BUF_PACKET && b->psn == pkt->psn) {
			*msn = b->msn;
			return true;
		}
	return false;
}

void eng_ack_single(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_resp *r = &rs->resp;
	roce_msn msn;

	if (!singles_allowed(rs) || !roce_resp_started(r) || now < rs->single_ack_at ||
	    completes(rs, pkt->info) || (eng_copy_gates(rs) && !eng_copy_covers(rs, pkt->psn)) ||
	    !msn_behind(rs, pkt, &msn))
		return;
	rs->single_ack_at = now + SINGLE_INTERVAL;
	rs->side.e->c.ack_single++;
	eng_record_side(
	    &rs->side, &(struct eng_record){.kind = ENG_REC_SINGLE, .psn = pkt->psn & ROCE_PSN_MASK}, now);
	roce_resp_allow(r, roce_psn_add(pkt->psn, 1), msn);
}

void eng_ack_started(struct eng_responder *rs)
{
	allow_early(rs);
}

/*
 * While memory is short ACKs wait and go with each departure: of one connection one such wait a
 * second is recorded, and each of the long ones.
 */
#define TELL_EVERY RWY_SEC
#define LONG_WAIT  (100 * RWY_MS)

static void withhold(struct eng_responder *rs, enum eng_record_wait reason, rwy_time now)
{
	struct eng_rare *r;

	if (rs->ack_blocked)
		return;
	r = eng_rare_take(rs);
	rs->ack_blocked = true;
	rs->withheld_times++;
	if (!r)
		return;
	r->withheld_at = now;
	if (r->withheld_told && now - r->withheld_told < TELL_EVERY)
		return;
	r->withheld_told = now;
	eng_record_side(&rs->side,
	    &(struct eng_record){
	        .kind = ENG_REC_WITHHELD, .to = reason, .value = (uint32_t)(rs->custody >> 10)},
	    now);
}

static void release(struct eng_responder *rs, rwy_time now)
{
	const struct eng_rare *r = rs->rare;
	const rwy_dur waited = r->withheld_at ? rwy_since(r->withheld_at, now) : 0;

	rs->ack_blocked = false;
	rs->withheld += waited;
	if (r->withheld_told != r->withheld_at && waited < LONG_WAIT)
		return;
	eng_record_side(&rs->side,
	    &(struct eng_record){.kind = ENG_REC_RELEASED,
	        .value = waited / RWY_US < UINT32_MAX ? (uint32_t)(waited / RWY_US) : UINT32_MAX},
	    now);
}

void eng_ack_in_custody(struct eng_responder *rs, rwy_time now)
{
	if (eng_ack_mode(rs) == ENG_ACK_FAR)
		return;
	if (eng_read_would_wait(rs) && !memory_short(rs)) {
		/* It is not memory, so it need not slow down: no CNP. */
		rs->side.e->c.ack_for_read += !rs->ack_blocked;
		withhold(rs, ENG_WAIT_READ, now);
	} else if (memory_short(rs)) {
		rs->side.e->c.ack_blocked += !rs->ack_blocked;
		withhold(rs, ENG_WAIT_MEMORY, now);
		eng_cnp_send(rs, now);
	} else if (!rs->ack_blocked) {
		allow_early(rs);
	}
}

void eng_ack_at_far_gateway(struct eng_responder *rs, const struct rwy_buf *b)
{
	if (eng_ack_mode(rs) != ENG_ACK_FAR || !eng_acks_by_mode(rs))
		return;
	roce_resp_allow(&rs->resp, roce_psn_add(b->psn, b->psn_cnt), b->msn);
	eng_dirty(&rs->side);
}

/* The far host has executed a request after REWIND: the mode decides again. */
static void end_rewound(struct eng_responder *rs)
{
	if (!rs->rewound)
		return;
	rs->rewound = false;
	if (!rs->ack_blocked)
		allow_early(rs);
	eng_dirty(&rs->side);
}

/*
 * In mode `site` the ACK waits until the standby has b, too: else it could know less of the
 * connection than the host does. A connection whose tenant had another mode when its last requests
 * came has no copies yet. They begin now, behind b; where they cannot, the standby does not know
 * the connection, and an ACK of what the far host has loses nothing.
 */
static bool waits_for_copy(struct eng_responder *rs, const struct rwy_buf *b)
{
	if (!eng_copy_gates(rs))
		return false;
	eng_copy_begin(rs, rs->side.e->now);
	return rs->copy && !eng_copy_covers(rs, roce_psn_add(b->psn, b->psn_cnt - 1));
}

void eng_ack_at_far_host(struct eng_responder *rs, const struct rwy_buf *b)
{
	/*
	 * Mode `end`, requests accepted before the tenant's mode changed, and all while the engine
	 * settles. Where custody is enough for an ACK, a host that waits for memory keeps waiting.
	 */
	if (rs->resp.allow_psn != rs->resp.epsn && !(rs->ack_blocked && acks_at_once(rs)) &&
	    !waits_for_copy(rs, b)) {
		roce_resp_allow(&rs->resp, roce_psn_add(b->psn, b->psn_cnt), b->msn);
		if (acks_uncompleted(rs))
			allow_uncompleted(rs);
		eng_dirty(&rs->side);
	}
	/* eng_ack_unblock is for the flush: here b still counts in the flow. */
	if (rs->ack_blocked)
		eng_dirty(&rs->side);
	if (b->kind == RWY_BUF_PACKET) /* RESUME is no request */
		end_rewound(rs);
}

void eng_ack_copied(struct eng_responder *rs)
{
	if (!rs->ack_blocked)
		allow_early(rs);
	eng_dirty(&rs->side);
}

void eng_ack_served(struct eng_responder *rs)
{
	end_rewound(rs);
	if (acks_uncompleted(rs))
		allow_uncompleted(rs);
}

void eng_ack_unblock(struct eng_responder *rs, rwy_time now)
{
	/*
	 * As soon as there is room: hosts are paced by departures, not stopped until much has left.
	 */
	if (!rs->ack_blocked || memory_short(rs) || eng_read_would_wait(rs))
		return;
	release(rs, now);
	allow_early(rs); /* in mode `far` reports allow ACKs */
	eng_dirty(&rs->side);
}
