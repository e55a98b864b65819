/* SPDX-License-Identifier: Apache-2.0 */
/* REQs begin links (cm_req.c); the other messages of the splice are here. */
#include "proxy/cm_int.h"

#include "proxy/cm_reply.h"
#include "proxy/rewrite.h"
#include "roce/icrc.h"
#include "roce/wire.h"

static bool event_of(uint16_t attr, enum proxy_event *ev)
{
	switch (attr) {
	case ROCE_CM_REQ:
		*ev = PROXY_EV_REQ;
		return true;
	case ROCE_CM_MRA:
		*ev = PROXY_EV_MRA;
		return true;
	case ROCE_CM_REJ:
		*ev = PROXY_EV_REJ;
		return true;
	case ROCE_CM_REP:
		*ev = PROXY_EV_REP;
		return true;
	case ROCE_CM_RTU:
		*ev = PROXY_EV_RTU;
		return true;
	case ROCE_CM_DREQ:
		*ev = PROXY_EV_DREQ;
		return true;
	case ROCE_CM_DREP:
		*ev = PROXY_EV_DREP;
		return true;
	default: /* LAP, APR: there is no second path; SIDR: see docs/proxy.md */
		return false;
	}
}

bool proxy_cm_is_carried(uint16_t attr)
{
	enum proxy_event ev;

	return event_of(attr, &ev);
}

static void tell(struct proxy_edge *e, enum proxy_news n, const struct proxy_link *l, unsigned why)
{
	if (e->news)
		e->news(e->ctx, n, l, why);
}

/* Whether the sender of a message other than the REQ may be the active host of the link. */
static bool ids_fit(const struct proxy_link *l, const struct roce_cm_msg *m, bool by_active)
{
	uint32_t a = by_active ? m->local_comm_id : m->remote_comm_id;
	uint32_t b = by_active ? m->remote_comm_id : m->local_comm_id;

	/* A host without listener, and the sender of a REJ for a timeout, name no b. */
	return a == l->comm_a && (!l->comm_b || !b || b == l->comm_b);
}

static struct proxy_link *find_as(const struct proxy_edge *e, const struct proxy_cm_msg *c, bool by_active)
{
	bool local_active = c->in == by_active;
	struct proxy_cm_key k = {
	    c->pkt->src, c->pkt->dst, by_active ? c->m.local_comm_id : c->m.remote_comm_id, local_active};
	struct proxy_link *l = c->in ? proxy_map_cm_in(e->map, &k) : proxy_map_cm_out(e->map, &k);

	return l && ids_fit(l, &c->m, by_active) ? l : NULL;
}

/*
 * The link of a message other than a REQ. A REP, DREP... say who their sender is; MRA, REJ and DREQ
 * may come from both, and the IDs tell.
 */
static struct proxy_link *find_link(const struct proxy_edge *e, const struct proxy_cm_msg *c)
{
	struct proxy_link *l = c->m.attr == ROCE_CM_REP ? NULL : find_as(e, c, true);

	return l || c->m.attr == ROCE_CM_RTU ? l : find_as(e, c, false);
}

/* --- what is rewritten ------------------------------------------------------------------------ */

/* A QPN of a message, 24 bits. */
static void put_qpn(const struct roce_pkt *pkt, uint8_t *at, uint32_t qpn)
{
	uint8_t b[3];

	rwy_put24(b, qpn);
	proxy_rewrite_bytes(pkt, at, b, 3);
}

static bool take_rep(struct proxy_edge *e, struct proxy_cm_msg *c, struct proxy_link *l)
{
	struct roce_cm_rep *rep = (struct roce_cm_rep *)c->body;
	uint32_t known = c->in ? l->lqpn : l->rqpn;

	if (c->m.tid != l->tid || !c->m.qpn || !c->m.local_comm_id || (known && known != c->m.qpn)) {
		proxy_cm_drop(c->act, &e->c.drop_relay_cm_mismatch);
		return false;
	}
	if (c->in) {
		proxy_map_local_qpn(e->map, l, c->m.qpn);
	} else {
		if (proxy_map_alias(e->map, l) != 0) {
			proxy_cm_drop(c->act, &e->c.refused_qpn);
			return false;
		}
		l->rqpn = c->m.qpn;
		put_qpn(c->pkt, rep->qpn, l->alias);
	}
	l->comm_b = c->m.local_comm_id;
	return true;
}

/* A DREQ names the QPN of its receiver. */
static bool take_dreq(struct proxy_edge *e, struct proxy_cm_msg *c, const struct proxy_link *l)
{
	struct roce_cm_dreq *dreq = (struct roce_cm_dreq *)c->body;

	if (c->m.qpn != (c->in ? l->alias : l->lqpn) || !l->rqpn) {
		proxy_cm_drop(c->act, &e->c.drop_relay_cm_mismatch);
		return false;
	}
	if (c->in)
		put_qpn(c->pkt, dreq->remote_qpn, l->rqpn);
	return true;
}

static bool take_fields(struct proxy_edge *e, struct proxy_cm_msg *c, struct proxy_link *l)
{
	if (c->m.attr == ROCE_CM_REP)
		return take_rep(e, c, l);
	if (c->m.attr == ROCE_CM_DREQ)
		return take_dreq(e, c, l);
	return true;
}

static void change_state(
    struct proxy_edge *e, struct proxy_link *l, enum proxy_state next, unsigned why, rwy_time now)
{
	enum proxy_state was = (enum proxy_state)l->state;

	proxy_map_state(e->map, l, next, now);
	if (next == was)
		return;
	if (next == PROXY_REP_SEEN) {
		e->c.links_opened++;
		tell(e, PROXY_NEWS_OPEN, l, 0);
	} else if (next == PROXY_CLOSED && was == PROXY_REQ_SEEN) {
		e->c.links_rejected++;
		tell(e, PROXY_NEWS_REJECTED, l, why);
	} else if (next == PROXY_CLOSED) {
		e->c.links_closed++;
		tell(e, PROXY_NEWS_CLOSED, l, why);
	}
}

static void later_message(struct proxy_edge *e, struct proxy_cm_msg *c, enum proxy_event ev, rwy_time now)
{
	struct proxy_link *l = find_link(e, c);
	enum proxy_state next;

	if (!l) {
		proxy_cm_drop(c->act, &e->c.drop_relay_cm_unknown);
		return;
	}
	if (!proxy_state_next((enum proxy_state)l->state, ev, &next)) {
		proxy_cm_drop(c->act, &e->c.drop_relay_cm_state);
		return;
	}
	if (!take_fields(e, c, l))
		return;
	proxy_cm_pass(e, c, l);
	change_state(e, l, next, c->m.rej_reason, now);
	proxy_map_note(e->map, l);
}

static void message(struct proxy_edge *e, struct roce_pkt *pkt, bool in, struct proxy_act *act, rwy_time now)
{
	struct proxy_cm_msg c = {.pkt = pkt, .act = act, .in = in};
	enum proxy_event ev;
	int rc;

	if (!roce_icrc_ok(pkt)) {
		proxy_cm_drop(act, &e->c.drop_relay_cm_icrc);
		return;
	}
	rc = roce_cm_parse(pkt, &c.m);
	if (rc == RWY_ENOENT) {
		proxy_cm_drop(act, &e->c.drop_relay_not_cm);
		return;
	}
	if (rc == 0 && in && c.m.attr == ROCE_CM_SIDR_REQ) {
		/* UD would follow, which names no link: said at once, or its host tries on */
		proxy_cm_drop(act, &e->c.refused_sidr);
		proxy_reply_sidr(act, pkt);
		return;
	}
	if (rc != 0 || !event_of(c.m.attr, &ev)) {
		proxy_cm_drop(act, &e->c.drop_relay_cm_malformed);
		return;
	}
	c.body = pkt->payload + sizeof(struct roce_mad);
	if (ev == PROXY_EV_REQ)
		proxy_cm_req(e, &c, now);
	else
		later_message(e, &c, ev, now);
}

void proxy_cm_in(struct proxy_edge *e, struct roce_pkt *pkt, struct proxy_act *act, rwy_time now)
{
	message(e, pkt, true, act, now);
}

void proxy_cm_out(struct proxy_edge *e, struct roce_pkt *pkt, struct proxy_act *act, rwy_time now)
{
	message(e, pkt, false, act, now);
}
