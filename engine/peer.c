/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between gateways about their processes: see peer.h. */
#include "engine/peer.h"

#include "engine/emit.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/standby.h"
#include "engine/steer.h"
#include "engine/table.h"
#include "engine/tenants.h"

/*
 * Hosts with requests outstanding send them again in this time, and claim their connections; or in
 * four of their timeouts, as NICs may wait for four times the nominal one (IBA 9.7.6.1.3).
 */
#define GRACE         (5 * RWY_SEC)
#define TIMEOUTS      4
#define AGAIN_MAX     (60 * RWY_SEC) /* after a restart: LOST without an answer is not said again */
#define ANSWER        (RWY_SEC / 2)  /* LOST without an answer is said again */
#define STEP_INTERVAL RWY_MS
#define STEP_SIDES    512 /* looked at in one step */
#define QUEUE_MAX     256 /* messages that wait for the tunnel */
#define RESETS_MAX    3   /* a gateway that resets so many flows is too old to know them */

static bool queue_full(const struct eng_tunnel *t)
{
	return t->peer.tx && wan_tx_queued(t->peer.tx) >= QUEUE_MAX;
}

/* --- sending ---------------------------------------------------------------------------------- */

size_t eng_peer_open_info(uint8_t *out)
{
	const struct eng_open o = {
	    .type = ENG_OPEN_PEER, .rnr_retry = ENG_RETRY_UNKNOWN, .retry = ENG_RETRY_UNKNOWN};

	return eng_open_encode(out, &o);
}

/* False: no memory. */
static bool send_message(struct eng_tunnel *t, const struct eng_peer_msg *m, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];
	struct rwy_buf *b;

	if (!t->peer.tx &&
	    wan_tx_open(t->wan, &t->peer.tx, info, eng_peer_open_info(info), &t->peer, now) != 0) {
		t->peer.tx = NULL;
		return false;
	}
	if (!wan_tx_reserve(t->peer.tx))
		return false;
	b = rwy_buf_alloc(&t->e->bufs, WAN_HDR_MAX, ENG_PEER_LEN);
	if (!b)
		return false;
	b->kind = RWY_BUF_CTRL;
	b->len = (uint32_t)eng_peer_encode(b->data, m);
	wan_tx_send(t->peer.tx, b, now);
	return true;
}

static bool is_too_old(const struct eng_tunnel *t)
{
	return t->peer.resets >= RESETS_MAX;
}

/* No message to it is on its way, or waits. */
static bool is_told(const struct eng_tunnel *t)
{
	return is_too_old(t) || (!t->peer.owed && !(t->peer.tx && wan_tx_queued(t->peer.tx)));
}

static void set_unheard(struct eng_tunnel *t, bool unheard)
{
	t->e->settle.unheard += unheard;
	t->e->settle.unheard -= t->peer.unheard;
	t->peer.unheard = unheard;
}

static void send_owed(struct eng_tunnel *t, rwy_time now)
{
	const struct eng_peer_msg m = {.type = t->peer.owed};

	if (t->peer.owed && !is_too_old(t) && send_message(t, &m, now))
		t->peer.owed = 0;
}

void eng_peer_tell(struct eng *e, bool settled, rwy_time now)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		struct eng_tunnel *t = &e->tunnel[i];

		if (!t->wan || t->removing || eng_sb_is_pair(e, i) || is_too_old(t))
			continue;
		t->peer.owed = t->peer.word = settled ? ENG_PEER_SETTLED : ENG_PEER_SERVING;
		set_unheard(t, !settled);
	}
	eng_peer_step(e, now);
}

bool eng_peer_told(const struct eng *e)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tunnel[i].wan && e->tunnel[i].up && !is_told(&e->tunnel[i]))
			return false;
	return true;
}

void eng_peer_log_untold(struct eng *e)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tunnel[i].wan && !is_told(&e->tunnel[i]))
			eng_log(e, 1,
			    "tunnel=%s event=\"its gateway did not hear of the drain: without the journal "
			    "idle connections end\"",
			    e->cfg.tunnel[i].name);
}

/* --- the far gateway: connections that nobody has claimed ------------------------------------- */

void eng_peer_restarted(struct eng_tunnel *t, rwy_time now)
{
	if (!t->peer.settled) {
		t->peer.lost_at = now;
		t->peer.cursor = 0;
		t->peer.at = now + GRACE;
	}
	t->peer.settled = false;
	t->peer.resets = 0;
	eng_peer_up(t, now);
}

void eng_peer_up(struct eng_tunnel *t, rwy_time now)
{
	t->e->peer_at = rwy_time_min(t->e->peer_at, t->peer.owed ? now : t->peer.at);
}

/* The flow of a connection that CM opened, or that was rewound, may not have come (again). */
static bool is_unopened(const struct eng_requester *rq)
{
	return !rq->requests &&
	       ((rq->flow == ENG_FLOW_NONE && rq->side.learned == ENG_BY_CM) || rq->flow == ENG_FLOW_DISCARD);
}

/*
 * The near gateway's process ended, and may have promised something: it knew both QPNs. A FAIL may
 * not have arrived. The process that was told may have ended, too.
 */
static bool is_lost(const struct eng_requester *rq, const struct eng_tunnel *t)
{
	const bool before = rq->side.last < t->peer.lost_at;
	const bool flow =
	    rq->flow == ENG_FLOW_LOST || (before && (rq->flow == ENG_FLOW_TOLD || is_unopened(rq)));

	return flow && rq->side.tunnel == t->idx && rq->remote_qpn && rq->side.state != ENG_Q_IDLE &&
	       !is_too_old(t);
}

/* How long its host may wait before it sends again. */
static rwy_dur patience(const struct eng_requester *rq)
{
	const unsigned n = rq->ack_timeout ? rq->ack_timeout - 1u : 0;
	const rwy_dur d = n ? TIMEOUTS * ((rwy_dur)4096 << n) : 0; /* 4.096 us * 2^n */

	return rwy_time_max(GRACE, rwy_time_min(d, AGAIN_MAX));
}

static bool waits_for_answer(const struct eng_requester *rq, const struct eng_tunnel *t)
{
	return rq->flow == ENG_FLOW_TOLD && rq->side.tunnel == t->idx;
}

/* After that nobody is told any more. */
static bool is_over(const struct eng_tunnel *t, rwy_time now)
{
	_Static_assert(AGAIN_MAX + GRACE < ENG_TELLS_FOR, "the next process would not be told");
	return now - t->peer.lost_at >= AGAIN_MAX + GRACE;
}

/* It is to be told now. */
static bool is_due(const struct eng_requester *rq, const struct eng_tunnel *t, rwy_time now)
{
	if (waits_for_answer(rq, t) && now - rq->side.last >= ANSWER)
		return true;
	return is_lost(rq, t) && now - t->peer.lost_at >= patience(rq);
}

/* False: no memory. */
static bool tell_lost(struct eng_tunnel *t, struct eng_requester *rq, rwy_time now)
{
	const struct eng_peer_msg m = {.type = ENG_PEER_LOST,
	    .alive = rq->side.state == ENG_Q_RUNNING || rq->side.state == ENG_Q_PROBING,
	    .psn = rq->reqr.tail,
	    .open = {.type = ENG_OPEN_REQ,
	        .rnr_retry = rq->rnr_retry,
	        .retry = rq->retry,
	        .ack_timeout = rq->ack_timeout,
	        .pmtu = rq->open_pmtu,
	        .incarnation = rq->incarnation,
	        .peer_qpn = rq->remote_qpn,
	        .vni = rq->side.tenant->cfg.vni,
	        .key = rq->side.key}};

	if (!send_message(t, &m, now))
		return false;
	rq->flow = ENG_FLOW_TOLD;
	rq->side.last = now;
	return true;
}

/* False: the slot has one that is not told. */
static bool tell_slot(struct eng_tunnel *t, uint32_t slot, unsigned *looked, rwy_time now)
{
	for (struct eng_side *side = t->e->table[slot]; side; side = side->chain, ++*looked) {
		struct eng_requester *rq = (struct eng_requester *)side;

		if (!side->is_requester)
			continue;
		if (is_due(rq, t, now) && !tell_lost(t, rq, now))
			return false;
		t->peer.unanswered |= waits_for_answer(rq, t);
	}
	return true;
}

bool eng_peer_holds_dreq(
    struct eng_tunnel *t, uint32_t tenant, const struct roce_pkt *pkt, uint64_t epoch, rwy_time now)
{
	struct roce_cm_msg msg;
	struct eng_requester *rq;

	if (roce_cm_parse(pkt, &msg) != 0 || msg.attr != ROCE_CM_DREQ)
		return false;
	const struct eng_key k = {pkt->src, pkt->dst, msg.qpn, tenant};

	rq = (struct eng_requester *)eng_find(t->e, &k, true);
	if (!rq || is_too_old(t))
		return false;
	if (rq->side.tunnel == t->idx && wan_peer_epoch(t->wan) != epoch)
		return true;
	if (is_lost(rq, t) && tell_lost(t, rq, now)) { /* or later: CM repeats the DREQ */
		t->peer.at = rwy_time_min(t->peer.at, now + ANSWER);
		eng_peer_up(t, now);
	}
	return is_lost(rq, t) || (waits_for_answer(rq, t) && !is_over(t, now));
}

/* After the last slot it begins anew, for those that have not answered or have more patience. */
static rwy_time after_step(const struct eng_tunnel *t, rwy_time now)
{
	const rwy_time first = t->peer.lost_at + GRACE;

	if (t->peer.cursor)
		return now + STEP_INTERVAL;
	if (is_over(t, now))
		return RWY_NEVER;
	return t->peer.unanswered ? now + ANSWER : now < first ? first : now + GRACE;
}

static void step(struct eng_tunnel *t, rwy_time now)
{
	const struct eng *e = t->e;
	unsigned looked = 0;

	if (!t->peer.cursor)
		t->peer.unanswered = false;
	while (looked < STEP_SIDES && (t->peer.cursor = eng_table_next(e, t->peer.cursor)) <= e->table_mask) {
		if (queue_full(t) || !tell_slot(t, t->peer.cursor, &looked, now)) {
			t->peer.at = now + STEP_INTERVAL;
			return;
		}
		t->peer.cursor++;
	}
	if (t->peer.cursor > e->table_mask)
		t->peer.cursor = 0;
	t->peer.at = after_step(t, now);
}

void eng_peer_step(struct eng *e, rwy_time now)
{
	e->peer_at = RWY_NEVER;
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		struct eng_tunnel *t = &e->tunnel[i];

		if (!t->wan || t->removing || !t->up || is_too_old(t)) /* eng_peer_up() */
			continue;
		send_owed(t, now);
		if (t->peer.at <= now)
			step(t, now);
		e->peer_at = rwy_time_min(e->peer_at, t->peer.owed ? now + STEP_INTERVAL : t->peer.at);
	}
}

/* --- the near gateway ------------------------------------------------------------------------- */

/*
 * This process knows more of the connection, for its host has sent requests; or the host's QPN is
 * another connection's by now.
 */
static bool has_another(const struct eng *e, const struct eng_key *k, uint32_t qpn)
{
	const struct eng_key other = {k->dst, k->src, qpn, k->tenant};
	const struct eng_requester *rq = (const struct eng_requester *)eng_find(e, &other, true);
	const struct eng_responder *rs = (const struct eng_responder *)eng_find(e, k, false);

	return (rs && (rs->side.state != ENG_R_NEW || rs->local_qpn != qpn)) ||
	       (rq && rq->responder && rq->responder != rs);
}

/* In modes `far` and `end` the far gateway has all that hosts have ACKs for. */
static bool promises_early(const struct eng *e, const struct eng_key *k)
{
	const enum eng_ack_mode m = eng_mode_of(e->tenant[k->tenant], k);

	return m != ENG_ACK_FAR && m != ENG_ACK_END;
}

/*
 * The journal has all that the process before promised, so a connection without an entry lost
 * nothing. One of a pair may have an old one: the other gateway may have served since.
 */
static bool has_journal(const struct eng *e)
{
	return e->cfg.journal_whole && !e->cfg.standby.on;
}

/*
 * This gateway was a standby that had all before it took over: a connection that it does not know
 * has no ACK in mode `site`. But one that ended may have had some, and its host was not told yet.
 */
static bool had_no_ack(const struct eng *e, const struct eng_key *k, const struct eng_peer_msg *m)
{
	const struct eng_tenant *t = e->tenant[k->tenant];

	return m->alive && e->sb.complete && (int32_t)(e->sb.complete - t->modes_set) >= 0 &&
	       eng_mode_of(t, k) == ENG_ACK_SITE;
}

static void hear_lost(struct eng_tunnel *t, struct eng_peer_msg *m, rwy_time now)
{
	struct eng *e = t->e;
	struct eng_key k = m->open.key;
	const int tenant = eng_tenant_by_vni(e, m->open.vni);

	if (tenant < 0) {
		e->c.drop_unknown_tenant++;
		return;
	}
	k.tenant = (uint32_t)tenant;
	/* The peer speaks only for hosts behind it. */
	if (!eng_steer_allows(e, k.tenant, &k.src, &k.dst, t->idx)) {
		e->c.drop_tunnel_msg++;
		return;
	}
	if (!eng_sb_serves(e) || eng_journal_waits(e, &k)) /* it tells again */
		return;
	if (!has_another(e, &k, m->open.peer_qpn) && promises_early(e, &k) && !has_journal(e) &&
	    !had_no_ack(e, &k, m)) {
		e->c.conns_forgotten += eng_responder_restore_lost(e, &k, m, now);
		return;
	}
	m->type = ENG_PEER_KNOWN;
	if (!queue_full(t))
		(void)send_message(t, m, now); /* else the far gateway tells again */
}

static void hear_known(const struct eng_tunnel *t, const struct eng_peer_msg *m)
{
	struct eng_key k = m->open.key;
	const int tenant = eng_tenant_by_vni(t->e, m->open.vni);
	struct eng_requester *rq;

	if (tenant < 0)
		return;
	k.tenant = (uint32_t)tenant;
	rq = (struct eng_requester *)eng_find(t->e, &k, true);
	if (rq && rq->side.tunnel == t->idx && rq->flow == ENG_FLOW_TOLD)
		rq->flow = ENG_FLOW_NONE;
}

void eng_peer_message(struct eng_tunnel *t, struct rwy_buf *b, rwy_time now)
{
	struct eng_peer_msg m;

	if (!eng_peer_decode(&m, b->data, b->len))
		t->e->c.drop_tunnel_msg++;
	else if (m.type == ENG_PEER_LOST)
		hear_lost(t, &m, now);
	else if (m.type == ENG_PEER_KNOWN)
		hear_known(t, &m);
	else
		t->peer.settled = m.type == ENG_PEER_SETTLED;
	rwy_buf_free(&t->e->bufs, b);
}

/* --- the two flows ---------------------------------------------------------------------------- */

void eng_peer_opened(struct eng_tunnel *t, struct wan_rxflow *rx, rwy_time now)
{
	if (t->peer.rx)
		wan_rx_reset(t->peer.rx, now);
	t->peer.rx = rx;
}

void eng_peer_delivered(struct eng_tunnel *t)
{
	if (t->peer.unheard && is_told(t))
		set_unheard(t, false);
}

void eng_peer_reset(struct eng_tunnel *t, bool refused, rwy_time now)
{
	t->peer.tx = NULL;
	t->peer.resets += refused;
	t->peer.owed = t->peer.word;
	if (is_too_old(t))
		set_unheard(t, false);
	eng_peer_up(t, now);
}

void eng_peer_end(struct eng_tunnel *t, rwy_time now)
{
	if (t->peer.tx)
		wan_tx_abort(t->peer.tx, now);
	if (t->peer.rx)
		wan_rx_reset(t->peer.rx, now);
	set_unheard(t, false);
	t->peer = (struct eng_peer){.at = RWY_NEVER};
}
