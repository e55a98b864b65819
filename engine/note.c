/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of other workers' engines. */
#include "engine/note.h"

#include "engine/emit.h"
#include "engine/lan.h"
#include "engine/mgmt.h"
#include "engine/pair.h"
#include "engine/peer.h"
#include "engine/place.h"
#include "engine/requester.h"
#include "engine/responder.h"

static bool from_lan(const struct eng_note *n)
{
	return n->tunnel == ENG_NOTE_LAN;
}

/* The connection is here, or was. */
static void take_dreq(struct eng *e, const struct eng_note *n, rwy_time now)
{
	struct eng_note back = *n;
	struct eng_responder *rs = NULL;
	struct eng_key k;
	struct roce_pkt pkt;

	back.type = ENG_NOTE_DREQ_GOES;
	if (roce_parse(n->b->data, n->b->len, &pkt) != ROCE_PARSE_OK ||
	    !eng_cm_dreq_key(n->tenant, &pkt, &k)) {
		eng_drop(e, n->b, &e->c.drop_bad_cm);
		return;
	}
	if (from_lan(n))
		rs = eng_cm_dreq_waits(e, n->tenant, &pkt);
	if (rs)
		eng_dreq_hold(rs, n->b, now);
	else if (!from_lan(n) && e->tunnel[n->tunnel].wan &&
	         eng_peer_holds_dreq(&e->tunnel[n->tunnel], n->tenant, &pkt, n->epoch, now))
		eng_drop(e, n->b, &e->c.drop_cm_lost);
	else
		(void)eng_place_send(e, eng_place_home(e, &k), &back);
}

/* Another worker has told hosts' packets to come here. */
static void take_moved(struct eng *e, const struct eng_note *n, rwy_time now)
{
	const struct eng_key k = {n->key.dst, n->key.src, n->qpn, n->tenant};
	struct eng_responder *rs = eng_tenant(e, n->tenant) ? eng_responder_get(e, &n->key, true, now) : NULL;
	struct eng_requester *rq = rs && n->qpn ? (struct eng_requester *)eng_find(e, &k, true) : NULL;

	if (!rs) {
		eng_place_leave(e, &n->key, false);
		return;
	}
	if (n->begun && rs->side.state == ENG_R_NEW)
		eng_responder_start(rs, n->first, 0, now);
	if (rq && !rq->responder && rq->remote_qpn == n->key.qpn)
		eng_pair_join(rs, rq, ENG_BY_PEER);
}

static void take_leave(struct eng *e, const struct eng_note *n, rwy_time now)
{
	const struct eng_key k = {n->key.dst, n->key.src, n->qpn, n->tenant};
	struct eng_responder *rs = (struct eng_responder *)eng_find(e, &k, false);
	struct eng_note stays = *n;

	if (!rs) { /* it went meanwhile, or waits for memory */
		if (!eng_journal_waits(e, &k))
			eng_place_leave(e, &k, false);
		return;
	}
	/* If both gateways asked for a side, the two would change places for ever. */
	if (rs->side.state == ENG_R_WAITING && n->target == e->cfg.worker)
		return;
	if (rs->side.state == ENG_R_NEW || rs->side.state == ENG_R_WAITING) {
		eng_responder_move(e, &k, n->key.qpn, ENG_NO_PSN, n->from, now);
		return;
	}
	stays.type = ENG_NOTE_STAYS;
	stays.from = e->cfg.worker;
	(void)eng_place_send(e, n->from, &stays);
}

static void take_stays(struct eng *e, const struct eng_note *n, rwy_time now)
{
	struct eng_requester *rq = (struct eng_requester *)eng_find(e, &n->key, true);

	if (!rq || !rq->requests || eng_requester_answered(rq))
		return;
	if (!rq->near_qpn)
		eng_requester_redirect(rq, rq->requests,
		    &(struct eng_moved){
		        .incarnation = rq->incarnation, .qpn = n->qpn, .psn = ENG_NO_PSN, .worker = n->from},
		    now);
	/* The near host may have ACKs, so the connection cannot begin there, and nobody can be
	 * asked what is lost. */
	else if (rq->owes_pair && !rq->responder && eng_requester_locating(rq))
		eng_requester_fail(
		    rq, rq->reqr.una, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_LOST, now);
}

/*
 * The host's QP is connected to QP `qpn` now, and was connected to another one: what it had to be
 * told was of that connection. 0: not known.
 */
static bool was_with_another(const struct eng_requester *rq, uint32_t qpn)
{
	const uint32_t was = rq->remote_qpn ? rq->remote_qpn : rq->remote_qpn_before;

	return qpn && was && was != qpn;
}

static void take_left(struct eng *e, const struct eng_note *n, rwy_time now)
{
	struct eng_requester *rq = (struct eng_requester *)eng_find(e, &n->key, true);

	if (!rq || (rq->requests && eng_requester_active(rq)))
		return;
	if (was_with_another(rq, n->qpn))
		eng_requester_free(rq, now);
	else if (eng_requester_tells(rq))
		rq->cold.close_at = now; /* it goes when the host is told (expire.c) */
	/* The near gateway may come back for what is queued, unless another one opens its flow. */
	else if (!n->qpn || rq->flow == ENG_FLOW_LEFT || !rq->reqr.q.n)
		eng_requester_free(rq, now);
}

void eng_note_take(struct eng *e, const struct eng_note *n, rwy_time now)
{
	e->now = now;
	switch ((enum eng_note_type)n->type) {
	case ENG_NOTE_CM_OPEN:
		eng_cm_open_note(e, n, now);
		return;
	case ENG_NOTE_CM_OPENED:
		eng_cm_goes(e, n, now);
		return;
	case ENG_NOTE_CM_CLOSE:
		if (eng_tenant(e, n->tenant))
			eng_cm_close_note(e, n, now);
		return;
	case ENG_NOTE_DREQ:
		take_dreq(e, n, now);
		return;
	case ENG_NOTE_DREQ_GOES:
		eng_cm_goes(e, n, now);
		return;
	case ENG_NOTE_PACKET:
		eng_lan_passed(e, n->tenant, n->b, now);
		return;
	case ENG_NOTE_MOVED:
		take_moved(e, n, now);
		return;
	case ENG_NOTE_LEAVE:
		take_leave(e, n, now);
		return;
	case ENG_NOTE_STAYS:
		take_stays(e, n, now);
		return;
	case ENG_NOTE_LEFT:
		take_left(e, n, now);
		return;
	}
	rwy_unreachable();
}
