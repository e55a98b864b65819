/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that CM sets up and ends (IBA chapter 12): it names both QPNs, PSNs and the MTU. */
#include "engine/admission.h"
#include "engine/emit.h"
#include "engine/mgmt.h"
#include "engine/note.h"
#include "engine/pair.h"
#include "engine/place.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/steer.h"
#include "engine/tenants.h"

#define CLOSE_WAIT (5 * RWY_SEC)

/* The two hosts of a connection: one is local, the other behind a tunnel. */
struct cm_sides {
	const struct roce_cm_side *local, *remote;
};

static bool cm_local_remote(
    const struct eng *e, uint32_t tenant, const struct roce_cm_conn *c, struct cm_sides *s)
{
	bool a_remote = eng_route_in(e, tenant, &c->a.ip) >= 0,
	     b_remote = eng_route_in(e, tenant, &c->b.ip) >= 0;

	if (a_remote == b_remote)
		return false;
	*s = a_remote ? (struct cm_sides){&c->b, &c->a} : (struct cm_sides){&c->a, &c->b};
	return true;
}

/* The key of the local host's requests. */
static struct eng_key requests_key(const struct cm_sides *s, uint32_t tenant)
{
	return (struct eng_key){s->local->ip, s->remote->ip, s->remote->qpn, tenant};
}

/* The same of the remote host's requests. */
static struct eng_key other_key(const struct cm_sides *s, uint32_t tenant)
{
	return (struct eng_key){s->remote->ip, s->local->ip, s->local->qpn, tenant};
}

/*
 * Another QP of the local host had this one: it may be idle, and hears of no new connection. It is
 * told that its requests are lost.
 */
static void end_before(struct eng_responder *rs, const struct cm_sides *s, rwy_time now)
{
	if (eng_responder_owes(rs) && rs->local_qpn != s->local->qpn)
		(void)eng_requester_end_lost(rs, ENG_END_UNDELIVERED, now);
}

/*
 * False: no memory for the two sides. A full table has no place for them: it is true, and their
 * requests will be refused.
 */
static bool open_here(
    struct eng *e, uint32_t tenant, const struct roce_cm_conn *c, const struct cm_sides *s, rwy_time now)
{
	struct eng_key kn = requests_key(s, tenant), kf = other_key(s, tenant);
	struct eng_responder *rs = eng_responder_get(e, &kn, false, now);
	struct eng_requester *rq = rs ? eng_requester_get(e, &kf, now) : NULL;

	if (!rq)
		return eng_is_full(e, eng_tenant(e, tenant));
	end_before(rs, s, now);
	rs->rnr_retry = s->local->rnr_retry;
	rq->rnr_retry = s->remote->rnr_retry;
	rs->reads_expected = s->local->initiator_depth;
	rs->retry = rq->retry = c->retry_count;
	rs->ack_timeout = s->local->ack_timeout + 1;
	rq->ack_timeout = s->remote->ack_timeout + 1;
	eng_responder_start_cm(rs, s->local->qpn, s->local->psn, c->path_mtu, now);
	eng_requester_start_cm(rq, s->remote->qpn, s->remote->psn, c->path_mtu, now);
	eng_pair_join(rs, rq, ENG_BY_CM);
	eng_patience_check(rs);
	e->c.cm_connections++;
	return true;
}

/* The connection will be at another worker: what an earlier one with its QPNs has here ends. */
static void make_way(
    struct eng *e, const struct eng_key *kn, const struct eng_key *kf, const struct cm_sides *s, rwy_time now)
{
	struct eng_side *side = eng_find(e, kn, false);

	if (side) {
		end_before((struct eng_responder *)side, s, now);
		eng_responder_free((struct eng_responder *)side, now);
	}
	side = eng_find(e, kf, true);
	if (side)
		eng_requester_free((struct eng_requester *)side, now);
}

/* A worker that has a side with one of the connection's keys; -1: none, but perhaps `target`. */
static int in_the_way(
    const struct eng *e, const struct eng_key *kn, const struct eng_key *kf, unsigned target)
{
	int w = eng_place_elsewhere(e, kn, false);

	if (w < 0 || w == (int)target)
		w = eng_place_elsewhere(e, kf, true);
	return w == (int)target ? -1 : w;
}

enum opened {
	OPENED,    /* it is here, or its requests will be refused */
	NO_MEMORY, /* there is none for the sides, or no room for the note */
	ASKED,     /* a note has gone to another worker, with the message */
};

/*
 * The connection begins at worker n->target. A note goes there by way of all workers that have
 * something of an earlier connection with its QPNs. n->b becomes NULL when the note has it.
 */
static enum opened open_at(struct eng *e, struct eng_note *n, const struct cm_sides *s, rwy_time now)
{
	const struct eng_key kn = requests_key(s, n->tenant), kf = other_key(s, n->tenant);
	bool sent;
	int by;

	if (n->target != e->cfg.worker)
		make_way(e, &kn, &kf, s, now);
	by = in_the_way(e, &kn, &kf, n->target);
	if (by < 0 && n->target == e->cfg.worker)
		return open_here(e, n->tenant, &n->conn, s, now) ? OPENED : NO_MEMORY;
	/* Before the note goes: that worker may take it at once, and have no memory. */
	if (by < 0) {
		eng_place_announce(e, &kn, false, n->target);
		eng_place_announce(e, &kf, true, n->target);
	}
	sent = eng_place_send(e, by < 0 ? n->target : (unsigned)by, n);
	n->b = NULL;
	if (by < 0 && !sent) {
		eng_place_recall(e, &kn, false, n->target);
		eng_place_recall(e, &kf, true, n->target);
	}
	e->c.conns_placed += by < 0 && sent;
	return sent ? ASKED : NO_MEMORY;
}

/* n: CM_OPEN, whose target is to be chosen. */
static enum opened cm_open(struct eng *e, struct eng_note *n, rwy_time now)
{
	struct cm_sides s;
	enum opened o;
	int tunnel;

	if (n->conn.transport != ROCE_RC || !cm_local_remote(e, n->tenant, &n->conn, &s))
		return OPENED;
	const struct eng_key kn = requests_key(&s, n->tenant), kf = other_key(&s, n->tenant);

	if (!eng_admits(e, &kn, true) || !eng_admits(e, &kf, true))
		return OPENED; /* its requests will be refused, and counted */
	tunnel = eng_steer(e, n->tenant, &kn.src, &kn.dst, kn.qpn);
	if (tunnel >= 0)
		n->target = (uint8_t)eng_place_choose(e, e->tunnel[tunnel].peer_workers, &kn, s.local->qpn);
	o = open_at(e, n, &s, now);
	return o == NO_MEMORY && n->b && tunnel < 0 ? OPENED : o;
}

/* Where there was no memory for a side nobody has it. */
static void leave_places(struct eng *e, const struct eng_key *kn, const struct eng_key *kf)
{
	if (!eng_find(e, kn, false))
		eng_place_leave(e, kn, false);
	if (!eng_find(e, kf, true))
		eng_place_leave(e, kf, true);
}

void eng_cm_open_note(struct eng *e, const struct eng_note *n, rwy_time now)
{
	struct eng_note m = *n;
	enum opened o = NO_MEMORY;
	struct cm_sides s;

	if (eng_tenant(e, n->tenant) && cm_local_remote(e, n->tenant, &n->conn, &s)) {
		const struct eng_key kn = requests_key(&s, n->tenant), kf = other_key(&s, n->tenant);

		o = open_at(e, &m, &s, now);
		if (n->target == e->cfg.worker)
			leave_places(e, &kn, &kf);
	}
	m.type = ENG_NOTE_CM_OPENED;
	if (o == NO_MEMORY)
		eng_note_free(&e->bufs, &m);
	else if (o == OPENED && n->from != e->cfg.worker)
		(void)eng_place_send(e, n->from, &m);
	else if (o == OPENED)
		eng_cm_goes(e, &m, now);
}

static void close_here(struct eng *e, const struct eng_key *kn, const struct eng_key *kf, rwy_time now)
{
	struct eng_side *side;

	if ((side = eng_find(e, kn, false))) {
		eng_record_side(side, &(struct eng_record){.kind = ENG_REC_DISCONNECT}, now);
		eng_side_cold(side)->close_at = now + CLOSE_WAIT;
	}
	if ((side = eng_find(e, kf, true))) {
		eng_side_cold(side)->close_at = now + CLOSE_WAIT;
		/* The remote host has disconnected: it waits no longer than our own count. */
		((struct eng_requester *)side)->reqr.cfg.patience = 0;
	}
}

/*
 * Both sides are forgotten after a while (TimeWait, IBA 12.9.8.4), but not before custody has gone
 * out (expire.c).
 */
static void cm_close(struct eng *e, uint32_t tenant, const struct roce_cm_conn *c, rwy_time now)
{
	const struct eng_note n = {.type = ENG_NOTE_CM_CLOSE, .tenant = tenant, .conn = *c};
	struct cm_sides s;
	int kn_at, kf_at;

	if (!cm_local_remote(e, tenant, c, &s))
		return;
	const struct eng_key kn = requests_key(&s, tenant), kf = other_key(&s, tenant);

	close_here(e, &kn, &kf, now);
	kn_at = eng_place_elsewhere(e, &kn, false);
	kf_at = eng_place_elsewhere(e, &kf, true);
	if (kn_at >= 0)
		(void)eng_place_send(e, (unsigned)kn_at, &n);
	if (kf_at >= 0 && kf_at != kn_at)
		(void)eng_place_send(e, (unsigned)kf_at, &n);
}

void eng_cm_close_note(struct eng *e, const struct eng_note *n, rwy_time now)
{
	struct cm_sides s;

	if (!cm_local_remote(e, n->tenant, &n->conn, &s))
		return;
	const struct eng_key kn = requests_key(&s, n->tenant), kf = other_key(&s, n->tenant);

	close_here(e, &kn, &kf, now);
}

bool eng_cm_dreq_key(uint32_t tenant, const struct roce_pkt *pkt, struct eng_key *k)
{
	struct roce_cm_msg msg;

	if (roce_cm_parse(pkt, &msg) != 0 || msg.attr != ROCE_CM_DREQ)
		return false;
	/* It names the receiver's QPN (IBA 12.6.10), as the host's requests do. */
	*k = (struct eng_key){pkt->src, pkt->dst, msg.qpn, tenant};
	return true;
}

struct eng_responder *eng_cm_dreq_waits(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt)
{
	struct eng_responder *rs;
	struct eng_key k;

	if (!eng_cm_dreq_key(tenant, pkt, &k))
		return NULL;
	rs = (struct eng_responder *)eng_find(e, &k, false);
	/* A request of this turn would be acknowledged at its end, after the DREQ. */
	if (rs && rs->side.dirty)
		eng_responder_flush(rs, e->now);
	return rs && eng_responder_holds_dreq(rs) ? rs : NULL;
}

bool eng_cm_asks_elsewhere(
    struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, uint8_t tunnel, struct rwy_buf *b)
{
	struct eng_note n = {.type = ENG_NOTE_DREQ, .tunnel = tunnel, .tenant = tenant, .b = b};
	struct eng_key k;
	int to = -1;

	if (eng_cm_dreq_key(tenant, pkt, &k))
		to = eng_place_elsewhere(e, &k, tunnel != ENG_NOTE_LAN);
	if (to < 0)
		return false;
	if (tunnel != ENG_NOTE_LAN)
		n.epoch = wan_peer_epoch(e->tunnel[tunnel].wan);
	(void)eng_place_send(e, (unsigned)to, &n);
	return true;
}

/*
 * Opens the connection that CM has set up. False: the message is gone, or waits in a note. The
 * table knows of the connection when it is open, so that a repeat of a lost message opens it.
 */
static bool established(
    struct eng *e, struct roce_cm_tab *tab, enum roce_cm_attr attr, struct eng_note *n, rwy_time now)
{
	const enum opened o = cm_open(e, n, now);

	if (o == OPENED)
		return true;
	roce_cm_not_taken(tab, &n->conn, attr, now);
	if (o == NO_MEMORY)
		eng_note_free(&e->bufs, n);
	return false;
}

/* Another worker has opened the connection that the message set up. */
static void opened_elsewhere(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_cm_tab *tab = eng_tenant_cm(e, tenant);
	struct roce_cm_event ev = {0};
	struct roce_cm_msg msg;

	if (tab && roce_cm_parse(pkt, &msg) == 0)
		roce_cm_track(tab, &msg, &pkt->src, &pkt->dst, &ev, now);
	for (unsigned i = 0; i < ev.superseded_count; i++)
		cm_close(e, tenant, &ev.superseded[i], now);
}

/* Does what a message that was read asks for. False: as established(). */
static bool follow_event(struct eng *e, struct roce_cm_tab *tab, enum roce_cm_attr attr,
    struct roce_cm_event *ev, struct eng_note *n, rwy_time now)
{
	switch (ev->kind) {
	case ROCE_CM_NONE:
		return true;
	case ROCE_CM_ESTABLISHED:
		for (unsigned i = 0; i < ev->superseded_count; i++)
			cm_close(e, n->tenant, &ev->superseded[i], now);
		n->conn = ev->conn;
		return established(e, tab, attr, n, now);
	case ROCE_CM_CLOSED:
		cm_close(e, n->tenant, &ev->conn, now);
		return true;
	}
	rwy_unreachable();
}

bool eng_cm_learn(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, uint8_t tunnel,
    struct rwy_buf *b, rwy_time now)
{
	struct eng_note n = {.type = ENG_NOTE_CM_OPEN,
	    .target = e->cfg.worker,
	    .from = e->cfg.worker,
	    .tunnel = tunnel,
	    .tenant = tenant,
	    .b = b};
	struct roce_cm_tab *tab;
	struct roce_cm_msg msg;
	struct roce_cm_event ev;

	switch (roce_cm_parse(pkt, &msg)) {
	case 0:
		break;
	case RWY_ENOENT:
		return true; /* another management class */
	default:
		eng_drop(e, b, &e->c.drop_bad_cm);
		return false;
	}
	e->c.cm_foreign += roce_cm_is_foreign(&msg, &pkt->src, &pkt->dst);
	tab = eng_tenant_cm(e, tenant);
	if (!tab) {
		eng_drop(e, b, &e->c.drop_no_buffer);
		return false;
	}
	roce_cm_track(tab, &msg, &pkt->src, &pkt->dst, &ev, now);
	if (!follow_event(e, tab, (enum roce_cm_attr)msg.attr, &ev, &n, now))
		return false;
	e->c.cm_messages++;
	return true;
}

void eng_cm_goes(struct eng *e, const struct eng_note *n, rwy_time now)
{
	struct roce_pkt pkt;

	if (!eng_tenant(e, n->tenant)) {
		eng_drop(e, n->b, &e->c.drop_unknown_tenant);
		return;
	}
	if (roce_parse(n->b->data, n->b->len, &pkt) != ROCE_PARSE_OK) {
		eng_drop(e, n->b, &e->c.drop_bad_cm);
		return;
	}
	if (n->type == ENG_NOTE_CM_OPENED) {
		opened_elsewhere(e, n->tenant, &pkt, now);
		e->c.cm_messages++;
	} else if (n->tunnel != ENG_NOTE_LAN && !eng_cm_learn(e, n->tenant, &pkt, n->tunnel, n->b, now)) {
		return;
	}
	if (n->tunnel == ENG_NOTE_LAN)
		eng_dreq_send(e, &(struct eng_key){pkt.src, pkt.dst, 0, n->tenant}, n->b, now);
	else
		eng_lan_send(e, n->tenant, n->b, true, &pkt.dst, NULL);
}
