/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that CM sets up and ends (IBA chapter 12): it names both QPNs, PSNs and the MTU. */
#include "engine/admission.h"
#include "engine/pair.h"
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

static void cm_open(struct eng *e, uint32_t tenant, const struct roce_cm_conn *c, rwy_time now)
{
	struct cm_sides s;
	struct eng_responder *rs;
	struct eng_requester *rq;

	if (c->transport != ROCE_RC || !cm_local_remote(e, tenant, c, &s))
		return;
	struct eng_key kn = {s.local->ip, s.remote->ip, s.remote->qpn, tenant},
	               kf = {s.remote->ip, s.local->ip, s.local->qpn, tenant};

	if (!eng_admits(e, &kn, true) || !eng_admits(e, &kf, true))
		return; /* its requests will be refused, and counted */
	rs = eng_responder_get(e, &kn, false, now);
	rq = rs ? eng_requester_get(e, &kf, now) : NULL;
	if (!rq)
		return;
	/*
	 * Another QP of the local host had this one: it may be idle, and hears of no new
	 * connection.
	 */
	if (eng_responder_owes(rs) && rs->local_qpn != s.local->qpn)
		(void)eng_requester_end_lost(rs, ENG_END_UNDELIVERED, now);
	rs->rnr_retry = s.local->rnr_retry;
	rq->rnr_retry = s.remote->rnr_retry;
	rs->reads_expected = s.local->initiator_depth;
	rs->retry = rq->retry = c->retry_count;
	rs->ack_timeout = s.local->ack_timeout + 1;
	rq->ack_timeout = s.remote->ack_timeout + 1;
	eng_responder_start_cm(rs, s.local->qpn, s.local->psn, c->path_mtu, now);
	eng_requester_start_cm(rq, s.remote->qpn, s.remote->psn, c->path_mtu, now);
	eng_pair_join(rs, rq, ENG_BY_CM);
	eng_patience_check(rs);
	e->c.cm_connections++;
}

/*
 * Both sides are forgotten after a while (TimeWait, IBA 12.9.8.4), but not before custody has gone
 * out (expire.c).
 */
static void cm_close(struct eng *e, uint32_t tenant, const struct roce_cm_conn *c, rwy_time now)
{
	struct cm_sides s;
	struct eng_side *side;

	if (!cm_local_remote(e, tenant, c, &s))
		return;
	struct eng_key kn = {s.local->ip, s.remote->ip, s.remote->qpn, tenant},
	               kf = {s.remote->ip, s.local->ip, s.local->qpn, tenant};

	if ((side = eng_find(e, &kn, false))) {
		eng_record_side(side, &(struct eng_record){.kind = ENG_REC_DISCONNECT}, now);
		side->close_at = now + CLOSE_WAIT;
	}
	if ((side = eng_find(e, &kf, true))) {
		side->close_at = now + CLOSE_WAIT;
		/* The remote host has disconnected: it waits no longer than our own count. */
		((struct eng_requester *)side)->reqr.cfg.patience = 0;
	}
}

struct eng_responder *eng_cm_dreq_waits(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt)
{
	struct roce_cm_msg msg;
	struct eng_responder *rs;

	if (roce_cm_parse(pkt, &msg) != 0 || msg.attr != ROCE_CM_DREQ)
		return NULL;
	/* It names the receiver's QPN (IBA 12.6.10), as the host's requests do. */
	struct eng_key k = {pkt->src, pkt->dst, msg.qpn, tenant};

	rs = (struct eng_responder *)eng_find(e, &k, false);
	return rs && eng_responder_holds_dreq(rs) ? rs : NULL;
}

bool eng_cm_learn(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_cm_tab *tab;
	struct roce_cm_msg msg;
	struct roce_cm_event ev;

	switch (roce_cm_parse(pkt, &msg)) {
	case 0:
		break;
	case RWY_ENOENT:
		return true; /* another management class */
	default:
		e->c.drop_bad_cm++;
		return false;
	}
	e->c.cm_messages++;
	e->c.cm_foreign += roce_cm_is_foreign(&msg, &pkt->src, &pkt->dst);
	tab = eng_tenant_cm(e, tenant);
	if (!tab)
		return true; /* no memory: the message is carried but not read */
	roce_cm_track(tab, &msg, &pkt->src, &pkt->dst, &ev, now);
	switch (ev.kind) {
	case ROCE_CM_NONE:
		break;
	case ROCE_CM_ESTABLISHED:
		for (unsigned i = 0; i < ev.superseded_count; i++)
			cm_close(e, tenant, &ev.superseded[i], now);
		cm_open(e, tenant, &ev.conn, now);
		break;
	case ROCE_CM_CLOSED:
		cm_close(e, tenant, &ev.conn, now);
		break;
	}
	return true;
}
