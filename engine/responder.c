/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder side of a connection: creation, its flow to the far gateway, start and end.
 * Requests are request.c; responses, control messages and ACKs are answer.c.
 */
#include "engine/responder.h"
#include "engine/causal.h"
#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/mgmt.h"
#include "engine/pair.h"
#include "engine/place.h"
#include "engine/reservation.h"
#include "engine/session.h"
#include "engine/steer.h"

void eng_responder_address(const struct eng_responder *rs, struct roce_addr *a)
{
	a->src = rs->side.key.dst;
	a->dst = rs->side.key.src;
	a->dqpn = rs->local_qpn;
	a->sport = rs->sport;
	a->pkey = rs->pkey;
	a->tos = rs->tos;
	a->ttl = 64;
	a->migreq = rs->migreq;
}

/* After so long without an answer of the far host nobody has the QPN. */
#define HALF_OPEN_PATIENCE (2 * RWY_SEC)

/*
 * A place for one unpaired flow more of the host. One that has its share gives up its oldest, if
 * that has waited for long: nothing was acknowledged, so it begins anew when its host asks again.
 */
static bool make_place(struct eng *e, struct eng_host *h, rwy_time now)
{
	struct eng_responder *oldest = h->half_head;

	if (eng_half_open_admits(e, h->tenant, h))
		return true;
	if (!oldest || now - oldest->rare->half_since < HALF_OPEN_PATIENCE ||
	    oldest->side.state == ENG_R_RESUMING)
		return false;
	e->c.half_open_replaced++;
	eng_responder_free(oldest, now);
	return true;
}

void eng_responder_learn_header(struct eng_responder *rs, const struct roce_pkt *pkt, const struct rwy_buf *b)
{
	rs->sport = pkt->sport;
	rs->pkey = pkt->pkey;
	rs->migreq = pkt->migreq;
	rs->nh.pcp = b->pcp;
	/* The DSCP of the host's own packets; not ECN-capable, as hosts send ACKs. */
	rs->tos = roce_pkt_tos(pkt) & 0xfc;
}

/* The first request of a connection that does not begin. */
static void refuse_side(struct eng *e, const struct eng_key *k, uint64_t *counter, rwy_time now)
{
	(*counter)++;
	eng_record_key(e, k, false,
	    &(struct eng_record){.kind = ENG_REC_REFUSED, .value = eng_counter_number(e, counter)}, now);
}

/* Zeroed, with a rare part, for a connection begins; NULL: no memory. */
static struct eng_responder *make_side(struct eng *e)
{
	struct eng_responder *rs = rwy_slab_get(&e->responder_slab);

	if (!rs)
		return NULL;
	rs->rare = &eng_rare_none;
	if (eng_rare_take(rs))
		return rs;
	rwy_slab_put(&e->responder_slab, rs);
	return NULL;
}

struct eng_responder *eng_responder_get(struct eng *e, const struct eng_key *k, bool stranger, rwy_time now)
{
	struct eng_responder *rs = (struct eng_responder *)eng_find(e, k, false);
	struct eng_host *host;
	bool placed;
	int tunnel;

	if (rs)
		return rs;
	tunnel = eng_causal_tunnel(e, k, eng_steer(e, k->tenant, &k->src, &k->dst, k->qpn));
	if (tunnel < 0) {
		refuse_side(e, k, &e->c.drop_no_route, now);
		return NULL;
	}
	if (eng_is_full(e, eng_tenant(e, k->tenant))) {
		refuse_side(e, k, &e->c.drop_flow_table_full, now);
		return NULL;
	}
	host = eng_host_get(e, k->tenant, &k->src);
	if (host && stranger && !make_place(e, host, now)) {
		refuse_side(e, k, &e->c.drop_half_open, now);
		eng_host_put(e, host);
		return NULL;
	}
	placed = host && eng_place_enter(e, k, false);
	rs = placed ? make_side(e) : NULL;
	if (!rs) {
		eng_place_leave(e, k, false);
		refuse_side(e, k, host && !placed ? &e->c.drop_flow_table_full : &e->c.drop_no_buffer, now);
		eng_host_put(e, host);
		return NULL;
	}
	rs->side.key = *k;
	rs->side.tenant = eng_tenant(e, k->tenant);
	rs->side.host = host;
	rs->side.e = e;
	rs->side.tunnel = (uint8_t)tunnel;
	rs->cold.close_at = RWY_NEVER;
	rs->side.last = rs->asked_at = now;
	rs->cold.error = "";
	rs->rnr_retry = rs->retry = ENG_RETRY_UNKNOWN;
	rs->ttl = 64;
	rs->pkey = 0xffff;
	eng_insert(e, &rs->side);
	eng_count_half_open(rs, 1);
	e->c.conns_opened++;
	eng_record_side(&rs->side, &(struct eng_record){.kind = ENG_REC_BEGIN}, now);
	return rs;
}

void eng_responder_drop_parked(struct eng_responder *rs)
{
	struct eng_rare *r = eng_rare_of(rs);
	struct rwy_buf *b;

	while (r && (b = rwy_bufq_pop(&r->parked))) {
		eng_mem_release(&rs->side, ENG_MEM_PARKED, eng_buf_cost(rs->side.e, b), 1);
		rwy_buf_free(&rs->side.e->bufs, b);
	}
	eng_ahead_drop(rs);
}

static void drop_kept_and_parked(struct eng_responder *rs)
{
	eng_responder_forget_answers(rs);
	eng_responder_drop_parked(rs);
}

void eng_responder_abort(struct eng_responder *rs, rwy_time now)
{
	if (!rs->requests)
		return;
	eng_mem_release_custody(rs, rs->custody, rs->custody_bufs);
	wan_tx_abort(rs->requests, now);
	rs->requests = NULL;
	rs->ack_blocked = false;
	eng_causal_idle(rs, now);
}

void eng_responder_free(struct eng_responder *rs, rwy_time now)
{
	struct eng *e = rs->side.e;

	eng_record_forget(&rs->side, now);
	eng_session_close(rs);
	eng_journal_forget(rs);
	eng_copy_end(rs, now);
	eng_responder_abort(rs, now);
	eng_causal_leave(rs, now);
	if (rs->responses)
		wan_rx_reset(rs->responses, now);
	drop_kept_and_parked(rs);
	eng_dreq_drop(rs);
	if (rs->side.state != ENG_R_NEW)
		roce_resp_fini(&rs->resp);
	if (rs->requester)
		eng_pair_undo(rs->requester);
	if (eng_unpaired(&rs->side))
		eng_count_half_open(rs, -1);
	eng_rare_free(rs);
	eng_mem_wait_end(&rs->side);
	eng_remove(e, &rs->side);
	eng_host_put(e, rs->side.host);
	/* The dirty list may still name it: flush_dirty frees it then. */
	rs->cold.close_at = 0;
	rs->side.e = NULL;
	if (!rs->side.dirty)
		rwy_slab_put(&e->responder_slab, rs);
}

/* The host sends its requests again, from the first on, without waiting for its timer. */
static void ask_again(struct eng_responder *rs, uint32_t local_qpn)
{
	struct eng *e = rs->side.e;
	uint8_t bytes[ROCE_BUILD_MAX];
	struct roce_addr a;

	eng_responder_address(rs, &a);
	a.dqpn = local_qpn;
	e->c.naks_sent++;
	eng_lan_made(e, rs->side.key.tenant, bytes,
	    roce_build_ack(bytes, &a, rs->resp.start, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ), 0),
	    &a.dst, &rs->nh);
}

void eng_responder_move(
    struct eng *e, const struct eng_key *k, uint32_t local_qpn, uint32_t first, unsigned worker, rwy_time now)
{
	struct eng_note n = {.type = ENG_NOTE_MOVED, .tenant = k->tenant, .qpn = local_qpn, .key = *k};
	struct eng_responder *rs = (struct eng_responder *)eng_find(e, k, false);

	if (rs && rs->side.state == ENG_R_WAITING && rs->resp.start == first) {
		n.begun = true;
		n.first = first;
	}
	eng_place_announce(e, k, false, worker);
	if (!eng_place_send(e, worker, &n))
		eng_place_recall(e, k, false, worker);
	if (!rs)
		return;
	if (n.begun && local_qpn)
		ask_again(rs, local_qpn);
	eng_responder_free(rs, now);
}

bool eng_responder_open(struct eng_responder *rs, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];
	size_t len = eng_responder_open_info(rs, ENG_OPEN_REQ, info);

	if (!eng_wan(&rs->side)) { /* it failed with its tunnel, and begins again */
		const struct eng_key *k = &rs->side.key;
		int to = eng_causal_tunnel(
		    rs->side.e, k, eng_steer(rs->side.e, k->tenant, &k->src, &k->dst, k->qpn));

		if (to < 0)
			return false;
		eng_side_move(&rs->side, (unsigned)to);
	}
	if (wan_tx_open(eng_wan(&rs->side), &rs->requests, info, len, rs, now) != 0)
		return false;
	eng_reservation_enter(&rs->side, rs->requests);
	/* The far host may answer a READ, or fail, before it takes what follows. */
	wan_tx_bulk(rs->requests);
	if (eng_rare_of(rs))
		eng_rare_of(rs)->early_seq = 0;
	return true;
}

void eng_responder_start(struct eng_responder *rs, roce_psn first, uint32_t pmtu, rwy_time now)
{
	eng_copy_end(rs, now);
	if (rs->side.state != ENG_R_NEW) {
		eng_responder_abort(rs, now);
		drop_kept_and_parked(rs);
		roce_resp_fini(&rs->resp);
	}
	if (rs->responses) /* those of the incarnation before may still be under way */
		wan_rx_reset(rs->responses, now);
	rs->responses = NULL;
	eng_journal_forget(rs);
	roce_resp_init(&rs->resp, first, pmtu);
	rs->resp.seen = &rs->side.e->seen.resp;
	eng_responder_enter(rs, ENG_R_WAITING);
	rs->ack_blocked = false;
	rs->acked_at = rs->suppress_until = 0;
	if (eng_rare_of(rs)) {
		eng_rare_of(rs)->reads_asked = 0;
		eng_rare_of(rs)->copy_gap = 0;
	}
	rs->early_known = 0;
	rs->taken_over = 0;
	rs->silent = rs->rewound = false;
	rs->refused_at = 0;
	rs->settle_psn = first;
	eng_read_wait_start(rs);
	rs->incarnation = (uint32_t)eng_random(rs->side.e) | 1;
	eng_log(rs->side.e, 4, "responder remote_qpn=%u starts at psn=%u", rs->side.key.qpn, first);
}

void eng_responder_start_cm(
    struct eng_responder *rs, uint32_t lqpn, roce_psn psn, uint32_t pmtu, rwy_time now)
{
	/* A retransmitted REP must not disturb a connection that runs. */
	if (rs->side.state != ENG_R_NEW && rs->side.learned == ENG_BY_CM && rs->local_qpn == lqpn &&
	    rs->resp.start == psn && rs->cold.close_at == RWY_NEVER)
		return;
	if (rs->requester && rs->requester->side.key.qpn != lqpn)
		eng_pair_undo(rs->requester);
	if (eng_unpaired(&rs->side))
		eng_count_half_open(rs, -1);
	eng_responder_start(rs, psn, pmtu, now);
	rs->side.learned = ENG_BY_CM;
	rs->cold.close_at = RWY_NEVER;
	rs->side.last = rs->asked_at = now;
	rs->cold.error = "";
	rs->local_qpn = lqpn;
	eng_session_open(rs);
	eng_responder_enter(rs, ENG_R_RUNNING);
	roce_resp_go(&rs->resp, 0);
	eng_copy_begin(rs, now);
}

/* lost: requests are that the host has ACKs for. CM has told a host that is disconnected. */
void eng_responder_note_loss(struct eng_responder *rs, bool lost)
{
	rs->untold = lost && eng_responder_unaware(rs) && rs->cold.close_at == RWY_NEVER;
	if (rs->untold)
		eng_journal_lost(rs, true);
}

void eng_responder_fail(struct eng_responder *rs, roce_psn psn, uint8_t syndrome, unsigned why, rwy_time now)
{
	struct eng *e = rs->side.e;
	bool lost = eng_responder_owes(rs) || roce_psn_before(psn, eng_responder_acked(rs));

	if (rs->side.state == ENG_R_FAILED)
		return;
	if (eng_unpaired(&rs->side))
		eng_count_half_open(rs, -1);
	eng_session_close(rs);
	eng_responder_enter(rs, ENG_R_FAILED);
	rs->cold.error = eng_why_text(why, syndrome, false);
	e->c.conns_failed++;
	eng_record_side(&rs->side,
	    &(struct eng_record){
	        .kind = ENG_REC_FAIL, .psn = psn & ROCE_PSN_MASK, .to = syndrome, .value = why},
	    now);
	eng_log_failure(&rs->side);
	eng_copy_end(rs, now);
	eng_responder_abort(rs, now);
	eng_responder_drop_parked(rs);
	/* SYNC does not come any more, and the error must go out. */
	if (rs->local_qpn && !roce_resp_started(&rs->resp))
		roce_resp_go(&rs->resp, 0);
	roce_resp_fail(&rs->resp, psn, syndrome);
	if (roce_resp_error_unsaid(&rs->resp) && rs->local_qpn && e->journal_free)
		eng_journal_note(rs);
	eng_responder_note_loss(rs, lost);
	eng_dirty(&rs->side);
}

/* asked: by RESUME, whether requests are lost that the host has ACKs for; there is no answer. */
static void refused(struct eng_responder *rs, bool asked, rwy_time now)
{
	bool nothing_lost = !wan_tx_queued(rs->requests), owes = asked || eng_responder_owes(rs);

	eng_record_side(&rs->side, &(struct eng_record){.kind = ENG_REC_REFUSED_FLOW}, now);

	eng_mem_release_custody(rs, rs->custody, rs->custody_bufs);
	rs->requests = NULL;
	rs->ack_blocked = false;
	eng_causal_idle(rs, now);
	/* The far gateway forgot an idle or disconnected flow: the next request opens it again. */
	if (nothing_lost || (rs->cold.close_at != RWY_NEVER && !owes))
		return;
	/*
	 * Nothing was acknowledged, and without a QPN no error can go out. The host resends
	 * everything, and the connection begins anew. The far gateway may get the tenant only now.
	 */
	if (rs->side.state == ENG_R_WAITING && !rs->local_qpn) {
		if (rs->local_qpn_before) /* it is needed if nobody answers */
			eng_responder_start(rs, rs->resp.start, 0, now);
		else
			eng_responder_free(rs, now);
		return;
	}
	eng_responder_fail(
	    rs, rs->resp.acked, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_CAUSE_REFUSED, now);
	eng_responder_note_loss(rs, owes);
}

void eng_responder_refused(struct eng_responder *rs, rwy_time now)
{
	refused(rs, false, now);
}

void eng_responder_not_taken_up(struct eng_responder *rs, rwy_time now)
{
	eng_responder_enter(rs, ENG_R_WAITING);
	refused(rs, true, now);
}
