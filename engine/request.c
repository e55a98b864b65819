/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a local host: taken into custody, or dropped for a counted reason. */
#include "engine/responder.h"
#include "engine/causal.h"
#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/settle.h"
#include "engine/uncarried.h"
#include "roce/icrc.h"

/* A new connection on this QPN may begin at the same PSN: its first requests are others. */
static void note_early(struct eng_responder *rs, const struct roce_pkt *pkt)
{
	uint32_t at = (pkt->psn - rs->resp.start) & ROCE_PSN_MASK;

	rs->early_crc[at] = roce_content_crc(pkt);
	rs->early_known |= 1u << at;
}

/* The READ was accepted, or came again. */
static void note_read(struct eng_responder *rs, const struct roce_pkt *pkt, bool again, rwy_time now)
{
	struct eng_rare *r = again ? eng_rare_of(rs) : eng_rare_take(rs);

	if (!r)
		return;
	if (!again)
		r->read[r->reads_asked++ % ENG_READS] =
		    (struct eng_read){pkt->psn, roce_reth_rkey(pkt), roce_reth_len(pkt), roce_reth_va(pkt)};
	if (pkt->psn != rs->resp.start || (again && !rs->resp.rd_n))
		return;
	r->copy_gap = again ? rwy_time_max(r->copy_gap, rwy_since(r->copy_at, now)) : 0;
	r->copy_at = now;
}

void eng_responder_accept(struct eng_responder *rs, const struct roce_pkt *pkt, struct rwy_buf *b,
    const struct roce_resp_act *act, rwy_time now)
{
	struct eng *e = rs->side.e;

	if (!rs->requests && !eng_responder_open(rs, now)) {
		/* roce_resp has accepted it already: without a flow the connection must end. */
		eng_drop(e, b, &e->c.drop_no_buffer);
		eng_responder_fail(
		    rs, pkt->psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_CAUSE_NO_FLOW, now);
		return;
	}
	b->len = pkt->len;
	b->kind = RWY_BUF_PACKET;
	b->opcode = pkt->opcode;
	b->psn = pkt->psn;
	b->psn_cnt = act->psn_cnt;
	b->msn = act->msn;
	if (pkt->psn == rs->nak_psn) {
		rs->naks = 0;
		rs->refused_at = 0;
	}
	/* The first of a connection, or the host has changed its class. */
	if (pkt->psn == rs->resp.start || b->pcp != rs->nh.pcp || !rs->sport)
		eng_responder_learn_header(rs, pkt, b);
	if (pkt->info->op == ROCE_OP_READ_REQ)
		note_read(rs, pkt, false, now);
	if (((pkt->psn - rs->resp.start) & ROCE_PSN_MASK) < ENG_EARLY)
		note_early(rs, pkt);
	rs->packets++;
	rs->bytes += b->len;
	eng_mem_charge_custody(rs, eng_buf_cost(e, b));
	rs->side.tenant->st.accepted++;
	rs->side.tenant->st.accepted_bytes += b->len;
	e->c.accepted++;
	if (eng_np_congested(rs, pkt, b))
		eng_cnp_send(rs, now);
	if (rs->causal) {
		struct rwy_after after = eng_causal_after(rs, pkt);

		wan_tx_send_after(rs->requests, b, &after, now);
		eng_causal_busy(rs);
	} else {
		wan_tx_send(rs->requests, b, now);
	}
	if (eng_sb_copies(e))
		eng_copy_request(rs, b, now);
	eng_ack_in_custody(rs, now);
}

/* The connection begins again at pkt's PSN, unpaired and unacknowledged. */
static void restart_connection(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	/*
	 * rs->requester stays. If the connection is the old one, that is right; if it is new, the
	 * requester side finds out by itself.
	 */
	if (rs->local_qpn)
		rs->local_qpn_before = rs->local_qpn;
	rs->local_qpn = 0;
	if (eng_responder_owes(rs)) {
		/* No error NAK: both hosts have reset this queue pair. */
		eng_log_side(rs->side.e, 1, &rs->side, "a new connection on its QPN: custody is dropped");
		rs->side.e->c.drop_reused += wan_tx_queued(rs->requests);
	}
	eng_record_side(&rs->side,
	    &(struct eng_record){.kind = ENG_REC_RESTART,
	        .to = rs->side.e->rec.reuse,
	        .psn = pkt->psn & ROCE_PSN_MASK,
	        .value = rs->requests ? wan_tx_queued(rs->requests) : 0},
	    now);
	if (!eng_unpaired(&rs->side))
		eng_count_half_open(rs, 1);
	rs->side.learned = ENG_BY_NOBODY;
	rs->cold.close_at = RWY_NEVER;
	rs->cold.error = "";
	eng_responder_start(rs, pkt->psn, 0, now);
}

void eng_responder_unpark(struct eng_responder *rs, rwy_time now)
{
	struct eng_rare *r = eng_rare_of(rs);
	struct rwy_bufq q;
	struct rwy_buf *b;

	if (!r)
		return;
	q = r->parked;
	r->parked = (struct rwy_bufq){0};
	while ((b = rwy_bufq_pop(&q))) {
		struct roce_pkt pkt;

		eng_mem_release(&rs->side, ENG_MEM_PARKED, eng_buf_cost(rs->side.e, b), 1);
		if (roce_parse(b->data, b->len, &pkt) == ROCE_PARSE_OK)
			eng_responder_take_request(rs, &pkt, b, now);
		else
			rwy_buf_free(&rs->side.e->bufs, b);
	}
}

/* A request behind a READ of unknown response count waits for the path MTU. */
static void park_request(struct eng_responder *rs, const struct roce_pkt *pkt, struct rwy_buf *b,
    const struct roce_resp_act *act, rwy_time now)
{
	struct eng *e = rs->side.e;
	struct eng_rare *r;
	uint64_t *refused;

	if (rs->rare->parked.n >= ENG_PARKED_MAX) {
		eng_drop(e, b, &e->c.drop_too_many_outstanding);
		return;
	}
	b->len = pkt->len;
	refused = eng_mem_refuses_request(rs, eng_buf_cost(e, b));
	if (refused) {
		eng_drop(e, b, refused);
		return;
	}
	r = eng_rare_take(rs);
	if (!r) {
		eng_drop(e, b, &e->c.drop_no_buffer);
		return;
	}
	eng_mem_charge(&rs->side, ENG_MEM_PARKED, eng_buf_cost(e, b));
	rwy_bufq_push(&r->parked, b);
	e->c.parked++;
	if (act->pmtu && roce_resp_set_pmtu(&rs->resp, act->pmtu))
		eng_responder_unpark(rs, now);
}

static void note_gap(struct eng_responder *rs, roce_psn psn)
{
	if (!rs->gap_seen || roce_psn_before(psn, rs->gap_low))
		rs->gap_low = psn;
	rs->gap_seen = true;
}

/* Counts a request that is not taken into custody; returns its counter. */
static uint64_t *refuse_request(
    struct eng_responder *rs, const struct roce_pkt *pkt, const struct roce_resp_act *act, rwy_time now)
{
	struct eng_counters *c = &rs->side.e->c;

	switch (act->verdict) {
	case ROCE_RESP_DUP:
		eng_ack_single(rs, pkt, now);
		/* It resends although all of it is here: only a CNP slows it down. */
		if (rs->ack_blocked)
			eng_cnp_send(rs, now);
		return &c->duplicate_request;
	case ROCE_RESP_DUP_READ:
		note_read(rs, pkt, true, now);
		eng_read_wait_repeated(rs);
		eng_responder_replay(rs, pkt->psn, act->psn_cnt, now);
		return &c->duplicate_read;
	case ROCE_RESP_DUP_ATOMIC:
		eng_read_wait_repeated(rs);
		eng_responder_replay_atomic(rs, pkt->psn, now);
		return &c->duplicate_read;
	case ROCE_RESP_GAP:
		note_gap(rs, pkt->psn);
		if (roce_resp_lacks_room(&rs->resp))
			eng_cnp_send(rs, now);
		return &c->out_of_sequence;
	case ROCE_RESP_BAD_SEQ:
	case ROCE_RESP_BAD_LEN:
		return &c->drop_bad_sequence;
	case ROCE_RESP_BAD_OP:
		return &c->drop_uncarried;
	case ROCE_RESP_TOO_MANY:
		return &c->drop_too_many_outstanding;
	case ROCE_RESP_STALE:
		eng_reuse_stale(rs, pkt);
		return &c->drop_stale_psn;
	case ROCE_RESP_FAILED:
		return &c->drop_after_error;
	case ROCE_RESP_ACCEPT:
	case ROCE_RESP_PARK:
	case ROCE_RESP_VERDICT_COUNT:
		break;
	}
	rwy_unreachable();
}

/*
 * The host does not go back to the PSN that the NAKs name: it has the ACK of a gateway that is
 * gone. The error goes to its oldest outstanding request, from which it always resends.
 */
static void fail_lost_requests(struct eng_responder *rs, rwy_time now)
{
	eng_responder_fail(
	    rs, rs->gap_low, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_CAUSE_LOST, now);
	roce_resp_lost(&rs->resp, rs->gap_low);
	rs->naks = 0;
	rs->side.last = rs->asked_at = now;
	/* The error goes out at the end of this turn. */
	eng_dirty(&rs->side);
}

#define TELL_AGAIN (60 * RWY_SEC)

/* A request that is dropped for the reason of this counter; duplicates and gaps are not told. */
static void record_refusal(
    struct eng_responder *rs, const struct roce_pkt *pkt, const uint64_t *counter, rwy_time now)
{
	const struct eng_counters *c = &rs->side.e->c;

	if (counter == &c->duplicate_request || counter == &c->duplicate_read ||
	    counter == &c->out_of_sequence || counter == &c->drop_ack_in_flight ||
	    counter == &c->drop_after_stale)
		return;
	eng_record_side(&rs->side,
	    &(struct eng_record){.kind = ENG_REC_REFUSED,
	        .psn = pkt->psn & ROCE_PSN_MASK,
	        .value = eng_counter_number(rs->side.e, counter)},
	    now);
}

/* Drops b, the request in pkt, for the reason of a counter. */
static void drop_request(
    struct eng_responder *rs, const struct roce_pkt *pkt, struct rwy_buf *b, uint64_t *counter, rwy_time now)
{
	record_refusal(rs, pkt, counter, now);
	eng_drop(rs->side.e, b, counter);
}

/* Tells people that the host wants more than it may hold, once a minute for each host. */
static void tell_refused(struct eng_responder *rs, rwy_time now)
{
	struct eng_host *h = rs->side.host;

	if (h->told_at && now - h->told_at < TELL_AGAIN)
		return;
	h->told_at = now;
	eng_log_side(
	    rs->side.e, 1, &rs->side, "no memory for more of its requests: dropped, asked for later");
}

static uint64_t cost_of(const struct eng_responder *rs, const struct roce_pkt *pkt)
{
	return pkt->len > rs->side.e->cfg.buf_cost ? pkt->len : rs->side.e->cfg.buf_cost;
}

/* Out of line, for its registers would be saved for each request. */
__attribute__((noinline)) static void note_no_memory(
    struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	roce_resp_no_room(&rs->resp);
	rs->nak_psn = pkt->psn;
	rs->naks = 0;
	rs->refused_at = now;
	tell_refused(rs, now);
	rs->side.last = rs->asked_at = now;
	eng_mem_wait(&rs->side);
	eng_cnp_send(rs, now);
}

/* The request will need the rare part of its side, and there is no memory for it. */
static bool lacks_rare(struct eng_responder *rs, const struct roce_pkt *pkt)
{
	return rs->rare == &eng_rare_none &&
	       (pkt->info->op == ROCE_OP_READ_REQ || roce_op_is_atomic(pkt->info)) && !eng_rare_take(rs);
}

/*
 * Counter of a request for which there is no memory; NULL: there is. It is dropped before it is
 * accepted. A NAK names it when there is room, and a CNP asks the host to slow down. Without memory
 * for a flow, or for what its side seldom needs, the host sends it again by itself; without a
 * tunnel eng_responder_accept ends it.
 */
static inline uint64_t *no_memory(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	uint64_t *counter = eng_mem_refuses_request(rs, cost_of(rs, pkt));

	if (counter)
		note_no_memory(rs, pkt, now);
	else if ((!(rs->requests ? wan_tx_reserve(rs->requests) : eng_responder_open(rs, now)) ||
	             lacks_rare(rs, pkt)) &&
	         eng_wan(&rs->side))
		counter = &rs->side.e->c.drop_no_buffer;
	return counter;
}

/* Counter of a request that is dropped before the responder sees it; NULL: it is not. */
static uint64_t *drop_early(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	struct eng_counters *c = &rs->side.e->c;

	if (eng_settle_refuses(rs, pkt))
		return &c->drop_draining;
	if (rs->side.state == ENG_R_WAITING && rs->requests &&
	    wan_tx_queued(rs->requests) >= ENG_UNPAIRED_MAX)
		return &c->drop_unpaired_full;
	if (rs->naks >= ENG_NAKS_MAX && rs->gap_seen && roce_psn_after(pkt->psn, rs->nak_psn)) {
		fail_lost_requests(rs, now);
		return &c->drop_after_error;
	}
	if (rs->suppress_until && eng_reuse_suppressed(rs, pkt, now))
		return rs->suppress_until == RWY_NEVER ? &c->drop_after_stale : &c->drop_ack_in_flight;
	if ((rs->causal || eng_mode_wanted(rs) == ENG_ACK_CAUSAL) && !eng_causal_ready(rs, pkt, now))
		return &c->drop_no_buffer;
	return roce_resp_expects(&rs->resp, pkt->psn) ? no_memory(rs, pkt, now) : NULL;
}

/* The QPN is used again: a new connection takes the request. Counter of its drop, or NULL. */
static uint64_t *begin_again(
    struct eng_responder *rs, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	struct eng *e = rs->side.e;
	uint64_t *full;

	if (eng_reuse_ack_in_flight(rs, pkt, act->verdict, now))
		return &e->c.drop_ack_in_flight;
	if (eng_reuse_answer_in_flight(rs, pkt, act->verdict, now))
		return &e->c.drop_read_on_its_way;
	if (e->settle.state >= ENG_CLOSING)
		return &e->c.drop_draining;
	if (!eng_rare_take(rs))
		return &e->c.drop_no_buffer;
	restart_connection(rs, pkt, now);
	full = no_memory(rs, pkt, now);
	if (!full)
		roce_resp_recv(&rs->resp, pkt, act, now);
	return full;
}

void eng_responder_take_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	uint64_t *early = drop_early(rs, pkt, now);
	struct roce_resp_act act;

	if (early) {
		drop_request(rs, pkt, b, early, now);
		return;
	}
	roce_resp_recv(&rs->resp, pkt, &act, now);
	if (act.verdict != ROCE_RESP_ACCEPT && eng_reuse_may_be_new(rs, pkt, act.verdict, now)) {
		early = begin_again(rs, pkt, &act, now);
		if (early) {
			drop_request(rs, pkt, b, early, now);
			return;
		}
	}
	rs->side.last = rs->asked_at = now;
	eng_dirty(&rs->side);
	if (act.verdict == ROCE_RESP_ACCEPT)
		eng_responder_accept(rs, pkt, b, &act, now);
	else if (act.verdict == ROCE_RESP_PARK)
		park_request(rs, pkt, b, &act, now);
	else
		drop_request(rs, pkt, b, refuse_request(rs, pkt, &act, now), now);
}

void eng_responder_first_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	if (eng_journal_waits(rs->side.e, &rs->side.key)) {
		eng_responder_early_request(rs, pkt, b, now);
		return;
	}
	eng_responder_learn_header(rs, pkt, b);
	eng_responder_start(rs, pkt->psn, 0, now);
	eng_responder_take_request(rs, pkt, b, now);
}

void eng_responder_early_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rs->side.e;

	rs->side.last = rs->asked_at = now;
	/* It has no ACK, so the host sends it again. */
	drop_request(rs, pkt, b, &e->c.drop_resuming, now);
}

void eng_responder_take_uncarried(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rs->side.e;
	struct roce_resp_act act;

	roce_resp_recv(&rs->resp, pkt, &act, now);
	rs->side.last = rs->asked_at = now;
	eng_dirty(&rs->side);
	if (act.verdict == ROCE_RESP_PARK) { /* not kept: the host sends it again */
		eng_drop(e, b, &e->c.drop_uncarried);
		return;
	}
	if (act.verdict == ROCE_RESP_BAD_OP) {
		rs->cold.error = "the host asked for an operation that gateways do not carry";
		eng_uncarried_tell(e, rs->side.key.tenant, pkt, "answered with NAK invalid request", now);
	}
	drop_request(rs, pkt, b, refuse_request(rs, pkt, &act, now), now);
}

void eng_responder_early_uncarried(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	eng_uncarried_drop(rs->side.e, rs->side.key.tenant, pkt, b, now);
}
