/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester side of a connection: creation, flows with the near gateway, start and end.
 * Requests come over the WAN (deliver.c) and go to the local host in PSN order (send.c); its
 * responses go back (response.c).
 */
#include <stdlib.h>

#include "engine/requester.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/pair.h"
#include "engine/place.h"
#include "engine/reservation.h"
#include "engine/responder.h"
#include "engine/steer.h"

#define CM_REPEATS (1u << 20) /* PSNs of requests that may pass while CM repeats a message */

struct eng_requester *eng_requester_get(struct eng *e, const struct eng_key *k, rwy_time now)
{
	return eng_requester_get_at(e, k, eng_steer(e, k->tenant, &k->dst, &k->src, 0), now);
}

static void refuse_side(struct eng *e, const struct eng_key *k, uint64_t *counter, rwy_time now)
{
	(*counter)++;
	eng_record_key(e, k, true,
	    &(struct eng_record){.kind = ENG_REC_REFUSED, .value = eng_counter_number(e, counter)}, now);
}

static struct eng_requester *get_side(
    struct eng *e, const struct eng_key *k, int tunnel, bool stays, bool *no_memory, rwy_time now)
{
	struct eng_requester *rq = (struct eng_requester *)eng_find(e, k, true);
	struct eng_tenant *t = eng_tenant(e, k->tenant);
	struct eng_host *host = NULL;

	if (rq) {
		if (stays) /* it may have left the directory, to be moved */
			(void)eng_place_enter(e, k, true);
		return rq;
	}
	if (tunnel < 0 || !t) { /* a tenant that is being removed gets no new side */
		refuse_side(e, k, &e->c.drop_no_route, now);
		return NULL;
	}
	*no_memory = !eng_is_full(e, t) && (!stays || eng_place_enter(e, k, true));
	if (!*no_memory || !(host = eng_host_get(e, k->tenant, &k->dst)) ||
	    !(rq = rwy_slab_get(&e->requester_slab))) {
		eng_place_leave(e, k, true);
		refuse_side(e, k, *no_memory ? &e->c.drop_no_buffer : &e->c.drop_flow_table_full, now);
		eng_host_put(e, host);
		return NULL;
	}
	*no_memory = false;
	rq->side.key = *k;
	rq->side.tenant = t;
	rq->side.e = e;
	rq->side.is_requester = true;
	rq->side.tunnel = (uint8_t)tunnel;
	rq->cold.close_at = RWY_NEVER;
	rq->side.last = now;
	rq->cold.error = "";
	rq->rnr_retry = rq->retry = ENG_RETRY_UNKNOWN;
	rq->side.host = host;
	eng_insert(e, &rq->side);
	e->c.conns_opened++;
	eng_record_side(&rq->side, &(struct eng_record){.kind = ENG_REC_BEGIN}, now);
	return rq;
}

struct eng_requester *eng_requester_get_at(struct eng *e, const struct eng_key *k, int tunnel, rwy_time now)
{
	bool no_memory;

	return get_side(e, k, tunnel, true, &no_memory, now);
}

struct eng_requester *eng_requester_get_opened(
    struct eng *e, const struct eng_key *k, unsigned tunnel, bool stays, bool *no_memory, rwy_time now)
{
	*no_memory = false;
	return get_side(e, k, (int)tunnel, stays, no_memory, now);
}

static void abort_responses(struct eng_requester *rq, rwy_time now)
{
	if (!rq->responses)
		return;
	eng_mem_release_responses(rq, rq->answering, rq->answering_bufs);
	wan_tx_abort(rq->responses, now);
	rq->responses = NULL;
}

static void forget_requests(struct eng_requester *rq)
{
	if (eng_requester_active(rq)) {
		eng_mem_release_received(rq, rq->received, rq->reqr.q.n);
		roce_reqr_fini(&rq->reqr, &rq->side.e->bufs);
		eng_requester_enter(rq, ENG_Q_IDLE);
	}
	eng_rp_leave(rq);
	rq->wait_head = rq->wait_n = 0;
}

void eng_requester_connected_anew(struct eng_requester *rq)
{
	if (eng_requester_tells(rq) && rq->end == ENG_END_UNDELIVERED)
		forget_requests(rq);
}

void eng_requester_free(struct eng_requester *rq, rwy_time now)
{
	struct eng *e = rq->side.e;

	eng_record_forget(&rq->side, now);
	eng_pair_leave(rq, now);
	eng_wheel_disarm(rq);
	if (rq->requests)
		wan_rx_reset(rq->requests, now);
	abort_responses(rq, now);
	forget_requests(rq);
	if (rq->wait != &rq->wait_one)
		free(rq->wait);
	if (rq->responder)
		eng_pair_undo(rq);
	eng_mem_wait_end(&rq->side);
	eng_remove(e, &rq->side);
	eng_host_put(e, rq->side.host);
	rq->cold.close_at = 0;
	rq->side.e = NULL;
	if (!rq->side.dirty)
		rwy_slab_put(&e->requester_slab, rq);
}

void eng_requester_rest(struct eng_requester *rq, rwy_time now)
{
	eng_pair_leave(rq, now);
	forget_requests(rq);
}

void eng_requester_quiet(struct eng_requester *rq, rwy_time now)
{
	if (rq->wait_n || rq->owes_control)
		return;
	if (rq->wait != &rq->wait_one)
		free(rq->wait);
	rq->wait = NULL;
	rq->wait_head = rq->wait_cap = 0;
	/* Requests that are in custody, or will be, need the flow. */
	if (rq->side.state == ENG_Q_RUNNING && !rq->answering_bufs && !rq->reqr.q.n)
		abort_responses(rq, now);
}

void eng_requester_leave_tunnel(struct eng_requester *rq, rwy_time now)
{
	if (!eng_requester_tells(rq)) {
		eng_requester_free(rq, now);
		return;
	}
	if (rq->requests)
		wan_rx_reset(rq->requests, now);
	abort_responses(rq, now);
	rq->requests = NULL;
	rq->flow = ENG_FLOW_NONE;
	eng_side_move(&rq->side, ENG_NO_TUNNEL);
}

size_t eng_requester_open_info(const struct eng_requester *rq, uint8_t *out)
{
	struct eng_open o = {.type = ENG_OPEN_RSP,
	    .rnr_retry = ENG_RETRY_UNKNOWN,
	    .retry = ENG_RETRY_UNKNOWN,
	    .incarnation = rq->incarnation,
	    .peer_qpn = rq->remote_qpn,
	    .vni = rq->side.tenant->cfg.vni,
	    .key = rq->side.key};

	return eng_open_encode(out, &o);
}

bool eng_requester_need_responses(struct eng_requester *rq, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];
	size_t len;

	if (rq->responses)
		return true;
	if (!eng_wan(&rq->side)) /* its tunnel was removed */
		return false;
	len = eng_requester_open_info(rq, info);
	rq->responses_sent = rq->responses_taken = 0;
	if (wan_tx_open(eng_wan(&rq->side), &rq->responses, info, len, rq, now) != 0)
		return false;
	eng_reservation_enter(&rq->side, rq->responses);
	return true;
}

void eng_requester_send_response(struct eng_requester *rq, struct rwy_buf *b, rwy_time now)
{
	rq->responses_sent++;
	eng_mem_charge_response(rq, eng_buf_cost(rq->side.e, b));
	wan_tx_send(rq->responses, b, now);
}

/*
 * Sends a control message in the flow of responses. Without memory it is owed, in place of an
 * earlier one, and tried again at each tick (`tried`). The latest message says what one that is
 * still owed says: FAIL and REWIND include SYNC.
 */
static void send_control(struct eng_requester *rq, const struct eng_ctrl *c, bool tried, rwy_time now)
{
	struct eng_record r = {.kind = ENG_REC_SENT, .to = c->type, .psn = c->psn & ROCE_PSN_MASK};
	struct rwy_buf *b = NULL;

	rq->owes_control = false;
	rq->owed = *c;
	if (eng_requester_need_responses(rq, now) && wan_tx_reserve(rq->responses))
		b = eng_ctrl_buf(rq->side.e, c);
	if (b) {
		eng_record_side(&rq->side, &r, now);
		eng_requester_send_response(rq, b, now);
	} else if (eng_wan(&rq->side)) {
		r.kind = ENG_REC_OWED;
		if (!tried)
			eng_record_side(&rq->side, &r, now);
		rq->owes_control = true;
		eng_wheel_arm(rq, now + RWY_MS);
	}
}

void eng_requester_send_owed(struct eng_requester *rq, rwy_time now)
{
	struct eng_ctrl c;

	if (!rq->owes_control)
		return;
	c = rq->owed;
	send_control(rq, &c, true, now);
}

void eng_requester_begin(struct eng_requester *rq, roce_psn first, uint32_t pmtu, bool probe)
{
	const struct roce_reqr_cfg cfg = eng_requester_cfg(rq);

	forget_requests(rq);
	rq->questions = 0;
	rq->asked_ahead = false;
	rq->search = 0;
	rq->doubted = 0;
	roce_reqr_init(&rq->reqr, &cfg, first, pmtu);
	roce_reqr_share(&rq->reqr, &rq->side.host->reqr);
	rq->reqr.probe = probe;
	eng_requester_enter(rq, probe ? ENG_Q_PROBING : ENG_Q_RUNNING);
	rq->cold.error = "";
	eng_log(rq->side.e, 4, "requester local_qpn=%u starts at psn=%u%s", rq->side.key.qpn, first,
	    probe ? " asking" : "");
}

/*
 * This gateway restarted while CM repeats its messages: the near gateway has opened the flow of the
 * same queue pair, whose requests begin where CM says, or a little later.
 */
static bool opened_before(const struct eng_requester *rq, uint32_t rqpn, roce_psn psn)
{
	return eng_requester_opened_for(rq, rqpn) && eng_requester_active(rq) &&
	       rq->side.learned != ENG_BY_CM && ((rq->reqr.una - psn) & ROCE_PSN_MASK) <= CM_REPEATS;
}

/* The same, and no request has come yet: they begin where CM says. */
static bool awaits_first(const struct eng_requester *rq, uint32_t rqpn)
{
	return eng_requester_opened_for(rq, rqpn) && rq->flow == ENG_FLOW_FIRST && !eng_requester_active(rq);
}

void eng_requester_start_cm(
    struct eng_requester *rq, uint32_t rqpn, roce_psn psn, uint32_t pmtu, rwy_time now)
{
	if (eng_requester_active(rq) && rq->side.learned == ENG_BY_CM && rq->remote_qpn == rqpn &&
	    rq->cold.close_at == RWY_NEVER)
		return; /* a retransmitted REP */
	if (opened_before(rq, rqpn, psn)) {
		rq->side.learned = ENG_BY_CM;
		rq->peer_named = true;
		return;
	}
	eng_pair_leave(rq, now);
	if (!awaits_first(rq, rqpn)) {
		if (rq->requests)
			wan_rx_reset(rq->requests, now);
		rq->requests = NULL;
		rq->flow = ENG_FLOW_NONE;
	}
	rq->peer_named = rq->requests;
	rq->remote_qpn = rqpn;
	rq->owes_pair = false;
	eng_reservation_outdated(&rq->side);
	rq->side.learned = ENG_BY_CM;
	rq->cold.close_at = RWY_NEVER;
	rq->side.last = now;
	rq->acked_seq = rq->reported_seq = 0;
	eng_requester_begin(rq, psn, pmtu, false);
}

/*
 * The queue has what an earlier flow brought, and that flow's credit was given back: a near gateway
 * that ends and opens flows without end must not fill the memory.
 */
static bool holds_too_much(const struct eng_requester *rq)
{
	const struct eng *e = rq->side.e;
	uint64_t credit = 0;

	for (unsigned i = 0; rq->received && i < e->cfg.tunnels; i++)
		credit += e->tunnel[i].wan ? e->cfg.tunnel[i].wan.rx_bytes : 0;
	return rq->received && (rq->received > 2 * e->cfg.tunnel[rq->side.tunnel].wan.rx_bytes ||
	                           e->mem.kind[ENG_MEM_RECEIVED] > 2 * credit);
}

void eng_requester_open(
    struct eng_requester *rq, struct wan_rxflow *rx, const struct eng_open *o, rwy_time now)
{
	/*
	 * A near gateway that did not restart begins another incarnation: it failed the one before,
	 * whose requests here would go to another QP with this QPN. After a restart of that gateway
	 * they belong to this connection.
	 */
	if (rq->incarnation != o->incarnation && (rq->requests || rq->flow == ENG_FLOW_LEFT) &&
	    !eng_requester_locating(rq) && !eng_requester_ends(rq))
		forget_requests(rq);
	if (rq->incarnation != o->incarnation && !o->peer_qpn)
		eng_requester_connected_anew(rq); /* RESUME would name it */
	else if (rq->incarnation == o->incarnation && rq->side.state == ENG_Q_RUNNING && holds_too_much(rq))
		eng_requester_fail(
		    rq, rq->reqr.una, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_NO_MEMORY, now);
	if (rq->requests)
		wan_rx_reset(rq->requests, now);
	/*
	 * Responses of an earlier incarnation are of no use. Nor is their flow: a near gateway that
	 * restarted may have refused it before it knew this connection, and later messages with it.
	 */
	if (rq->incarnation != o->incarnation) {
		abort_responses(rq, now);
		rq->owes_control = false;
	}
	eng_record_side(&rq->side, &(struct eng_record){.kind = ENG_REC_OPENED}, now);
	rq->requests = rx;
	rq->drain = (struct cc_drain){0};
	rq->flow = ENG_FLOW_FIRST;
	rq->continued = rq->incarnation == o->incarnation;
	rq->incarnation = o->incarnation;
	eng_requester_forget_numbers(rq);
	rq->side.last = now;
	rq->cold.close_at = RWY_NEVER;
	if (o->rnr_retry != ENG_RETRY_UNKNOWN)
		rq->rnr_retry = o->rnr_retry;
	if (o->retry != ENG_RETRY_UNKNOWN)
		rq->retry = o->retry;
	if (o->ack_timeout)
		rq->ack_timeout = o->ack_timeout;
	rq->owes_pair = o->peer_qpn && (rq->owes_pair || rq->remote_qpn != o->peer_qpn) &&
	                !eng_requester_named(rq, o->peer_qpn, now);
	rq->open_pmtu = o->pmtu;
	rq->near_workers = o->workers;
	rq->near_qpn = o->peer_qpn;
	rq->peer_named = o->peer_qpn && rq->responder && rq->remote_qpn == o->peer_qpn;
}

void eng_requester_redirect(
    struct eng_requester *rq, struct wan_rxflow *rx, const struct eng_moved *to, rwy_time now)
{
	eng_pair_leave(rq, now);
	forget_requests(rq);
	if (rq->requests && rq->requests != rx)
		wan_rx_reset(rq->requests, now);
	if (rq->incarnation != to->incarnation)
		abort_responses(rq, now);
	rq->requests = rx;
	rq->incarnation = to->incarnation;
	rq->flow = ENG_FLOW_MOVED;
	eng_place_leave(rq->side.e, &rq->side.key, true);
	rq->side.e->c.conns_redirected++;
	send_control(rq,
	    &(struct eng_ctrl){.type = ENG_CTRL_MOVED,
	        .incarnation = to->incarnation,
	        .qpn = to->qpn,
	        .psn = to->psn,
	        .worker = (uint8_t)to->worker},
	    false, now);
}

void eng_requester_move(struct eng_requester *rq, const struct roce_pkt *pkt, unsigned worker, rwy_time now)
{
	/* A late response, to a flow of before, acknowledges nothing of this one. */
	const struct eng_moved to = {.incarnation = rq->incarnation,
	    .qpn = pkt->dqpn,
	    .psn = roce_reqr_in_flight(&rq->reqr, pkt->psn) ? rq->reqr.una : ENG_NO_PSN,
	    .worker = worker};

	rq->flow = ENG_FLOW_MOVED; /* no other answer comes */
	rq->side.e->c.conns_placed++;
	eng_requester_redirect(rq, rq->requests, &to, now);
}

void eng_requester_send_sync(
    struct eng_requester *rq, enum eng_ctrl_type type, roce_psn psn, roce_msn msn, rwy_time now)
{
	struct eng_ctrl c = {.type = (uint8_t)type,
	    .incarnation = rq->incarnation,
	    .qpn = rq->remote_qpn,
	    .psn = psn,
	    .msn = msn};

	send_control(rq, &c, false, now);
}

enum roce_reqr_push eng_requester_push(struct eng_requester *rq, struct rwy_buf *b)
{
	enum roce_reqr_push r = roce_reqr_push(&rq->reqr, b);

	if (r == ROCE_REQR_PUSHED)
		eng_mem_charge_received(rq, eng_buf_cost(rq->side.e, b));
	return r;
}

/*
 * If the first request were reported before the SYNC, the flow would look idle to the near gateway
 * while its host, still without ACK, resends. It would take that for a new connection.
 */
void eng_requester_report_start(
    struct eng_requester *rq, roce_psn psn, roce_msn msn, uint64_t first_seq, rwy_time now)
{
	eng_requester_send_sync(rq, ENG_CTRL_SYNC, psn, msn, now);
	if (first_seq != ENG_NO_SEQ && (rq->responses || rq->owes_control))
		eng_requester_wait_responses(rq, first_seq, ENG_NO_PSN);
}

/*
 * The QP that the host answered last may have been used again, by a connection that nobody has
 * answered yet; or one of its other QPs has it. rq has given up its own turn.
 */
static bool may_be_in_use(const struct eng_requester *rq, uint32_t qpn)
{
	const struct eng_side *side = &rq->side;
	const struct eng_key k = {side->key.dst, side->key.src, qpn, side->key.tenant};
	const struct eng_responder *rs = (const struct eng_responder *)eng_find(side->e, &k, false);

	if (rs && (rs->requester || rs->side.state == ENG_R_WAITING ||
	              (rs->local_qpn && rs->local_qpn != side->key.qpn)))
		return true;
	return eng_pair_is_waiting(side->e, k.tenant, &k.dst, &k.src) ||
	       eng_place_elsewhere(side->e, &k, false) >= 0 || eng_place_turn_elsewhere(side->e, &k) >= 0;
}

/*
 * The QPN that the error goes to. A host in error answers nothing, so nobody learns who asks it.
 * Most likely it is the one that it answered last.
 */
static uint32_t qpn_of_error(const struct eng_requester *rq)
{
	if (rq->remote_qpn || !rq->remote_qpn_before || may_be_in_use(rq, rq->remote_qpn_before))
		return rq->remote_qpn;
	return rq->remote_qpn_before;
}

void eng_requester_send_fail(
    struct eng_requester *rq, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now)
{
	send_control(rq,
	    &(struct eng_ctrl){.type = ENG_CTRL_FAIL,
	        .incarnation = rq->incarnation,
	        .qpn = qpn_of_error(rq),
	        .psn = psn,
	        .syndrome = syndrome,
	        .end = (uint8_t)end},
	    false, now);
}

void eng_requester_fail(
    struct eng_requester *rq, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now)
{
	struct eng *e = rq->side.e;

	if (rq->side.state == ENG_Q_FAILED)
		return;
	eng_pair_leave(rq, now);
	rq->cold.error = eng_end_text(end, syndrome, true);
	e->c.conns_failed++;
	eng_record_side(&rq->side,
	    &(struct eng_record){
	        .kind = ENG_REC_FAIL, .psn = psn & ROCE_PSN_MASK, .to = syndrome, .value = end},
	    now);
	eng_log_failure(&rq->side);
	/* A QP that is only not ready, or that nobody could ask, goes on (recover.c). */
	rq->host_ended = end == ENG_END_REFUSED || rq->side.state == ENG_Q_ENDING;
	forget_requests(rq); /* their buffers are free before one is needed */
	eng_requester_send_fail(rq, psn, syndrome, end, now);
	eng_requester_enter(rq, ENG_Q_FAILED);
}
