/* SPDX-License-Identifier: Apache-2.0 */
/* The connection tracker of roce/cm.h: REQ, REP and the other messages change the table. */
#include "roce/cm_int.h"

#define TIMEOUT_MAX 31 /* five bits */

/* --- REQ and REP ------------------------------------------------------------------------------ */

static bool gid_is_set(const struct rwy_ip *gid)
{
	static const struct rwy_ip zero;

	return !rwy_ip_eq(gid, &zero);
}

bool roce_cm_is_foreign(const struct roce_cm_msg *msg, const struct rwy_ip *src, const struct rwy_ip *dst)
{
	return msg->attr == ROCE_CM_REQ &&
	       ((gid_is_set(&msg->local_gid) && !rwy_ip_eq(&msg->local_gid, src)) ||
	           (gid_is_set(&msg->remote_gid) && !rwy_ip_eq(&msg->remote_gid, dst)));
}

/* A REQ describes a, and tells what b uses when it sends. */
static void take_req(struct roce_cm_entry *e, const struct roce_cm_msg *m)
{
	struct roce_cm_conn *c = &e->conn;

	e->has_req = true;
	e->tid = m->tid;
	e->req_psn = m->starting_psn;
	e->req_qpn = m->qpn;
	c->a.ip = e->src_a;
	c->b.ip = e->src_b;
	c->a.qpn = m->qpn;
	c->a.responder_resources = m->responder_resources;
	c->a.initiator_depth = m->initiator_depth;
	c->b.psn = m->starting_psn;    /* IBA 12.7.31 */
	c->b.rnr_retry = m->rnr_retry; /* IBA 12.7.38 */
	c->service_id = m->service_id;
	c->flow_label = m->flow_label;
	c->pkey = m->pkey;
	c->path_mtu = m->path_mtu;
	c->transport = m->transport;
	c->retry_count = m->retry_count;
	c->ack_timeout = c->b.ack_timeout = m->local_ack_timeout;
	c->srq_a = m->srq;
}

/* A REP describes b, and tells what a uses when it sends. */
static void take_rep(struct roce_cm_entry *e, const struct roce_cm_msg *m)
{
	struct roce_cm_conn *c = &e->conn;

	e->has_rep = true;
	e->tid = m->tid;
	c->comm_b = m->local_comm_id;
	c->b.qpn = m->qpn;
	e->rep_eecn = m->eecn;
	c->b.responder_resources = m->responder_resources;
	c->b.initiator_depth = m->initiator_depth;
	c->a.psn = m->starting_psn;
	c->a.rnr_retry = m->rnr_retry;
	e->rep_ack_delay = m->ack_delay;
	c->srq_b = m->srq;
}

static void supersede(struct roce_cm_tab *t, uint32_t old, struct roce_cm_event *ev, rwy_time now)
{
	ev->superseded[ev->superseded_count++] = t->e[old].conn;
	t->stats.superseded++;
	roce_cm_set_state(t, old, ROCE_CM_S_CLOSED, now);
}

/* Returns the established entry with a and b at these addresses and with these communication IDs,
 * or ROCE_CM_NIL. NULL: any ID of b. */
static uint32_t established_find(const struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b,
    uint32_t comm_a, const uint32_t *comm_b)
{
	uint32_t i = roce_cm_key_find(t, a, b, comm_a, ROCE_CM_NIL);

	while (i != ROCE_CM_NIL &&
	       (t->e[i].state != ROCE_CM_S_ESTABLISHED || (comm_b && t->e[i].conn.comm_b != *comm_b)))
		i = roce_cm_key_find(t, a, b, comm_a, i);
	return i;
}

/*
 * A host makes its timeout of the path's life time, which is at most the REQ's timeout, and of its
 * peer's ACK delay (IBA 12.7.34).
 */
static uint8_t active_timeout(uint8_t req_timeout, uint8_t rep_ack_delay)
{
	uint8_t longest = req_timeout > rep_ack_delay ? req_timeout : rep_ack_delay;

	if (!req_timeout)
		return 0;
	return longest < TIMEOUT_MAX ? longest + 1 : TIMEOUT_MAX;
}

/*
 * REQ and REP are present: removes former connections of the queue pairs or the communication IDs,
 * and reports. A host has one connection under one ID (IBA 12.7.1), in whichever direction it was
 * made, so a DREQ names at most one connection.
 */
static void establish(struct roce_cm_tab *t, uint32_t i, struct roce_cm_event *ev, rwy_time now)
{
	struct roce_cm_entry *e = &t->e[i];
	uint32_t old;

	if (e->conn.transport == ROCE_XRC) /* annex A14: the EECN field has the target QP */
		e->conn.b.qpn = e->rep_eecn;
	e->conn.a.ack_timeout = active_timeout(e->conn.b.ack_timeout, e->rep_ack_delay);
	for (uint32_t s = 0; s < 2; s++) {
		old = roce_cm_qp_find(t, &roce_cm_side_of(e, s)->ip, roce_cm_side_of(e, s)->qpn);
		if (old != ROCE_CM_NIL)
			supersede(t, old, ev, now);
	}
	old = established_find(t, &e->src_a, &e->src_b, e->conn.comm_a, NULL);
	if (old != ROCE_CM_NIL)
		supersede(t, old, ev, now);
	old = established_find(t, &e->src_b, &e->src_a, e->conn.comm_b, &e->conn.comm_a);
	if (old != ROCE_CM_NIL)
		supersede(t, old, ev, now);
	roce_cm_set_state(t, i, ROCE_CM_S_ESTABLISHED, now);
	t->stats.established++;
	ev->kind = ROCE_CM_ESTABLISHED;
	ev->conn = e->conn;
}

static void on_req(struct roce_cm_tab *t, const struct roce_cm_msg *m, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now)
{
	uint32_t half = ROCE_CM_NIL, i;

	for (i = roce_cm_key_find(t, src, dst, m->local_comm_id, ROCE_CM_NIL); i != ROCE_CM_NIL;
	     i = roce_cm_key_find(t, src, dst, m->local_comm_id, i)) {
		struct roce_cm_entry *e = &t->e[i];

		if (e->has_req && e->tid == m->tid && e->req_qpn == m->qpn && e->req_psn == m->starting_psn) {
			t->stats.duplicate++;
			if (e->state == ROCE_CM_S_HALF) /* the sender still waits */
				roce_cm_set_state(t, i, ROCE_CM_S_HALF, now);
			return;
		}
		if (e->state == ROCE_CM_S_HALF && (!e->has_rep || e->tid == m->tid))
			half = i;
	}
	/* A new attempt under the same ID replaces one that failed; an established entry stays
	 * until the REP. */
	if (half == ROCE_CM_NIL)
		half = roce_cm_half_new(t, src, dst, m->local_comm_id, now);
	take_req(&t->e[half], m);
	if (t->e[half].has_rep)
		establish(t, half, ev, now);
	else
		roce_cm_set_state(t, half, ROCE_CM_S_HALF, now);
}

/* The REP was seen before: it is a copy or a replay, whatever became of its connection. */
static bool rep_is_known(struct roce_cm_tab *t, const struct roce_cm_msg *m, const struct rwy_ip *src,
    const struct rwy_ip *dst, rwy_time now)
{
	uint32_t i;

	for (i = roce_cm_key_find(t, dst, src, m->remote_comm_id, ROCE_CM_NIL); i != ROCE_CM_NIL;
	     i = roce_cm_key_find(t, dst, src, m->remote_comm_id, i)) {
		struct roce_cm_entry *e = &t->e[i];

		if (e->has_rep && e->tid == m->tid && e->conn.comm_b == m->local_comm_id &&
		    e->conn.a.psn == m->starting_psn) {
			if (e->state == ROCE_CM_S_HALF) /* the sender still waits */
				roce_cm_set_state(t, i, ROCE_CM_S_HALF, now);
			return true;
		}
	}
	return false;
}

static void on_rep(struct roce_cm_tab *t, const struct roce_cm_msg *m, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now)
{
	uint32_t i;

	if (rep_is_known(t, m, src, dst, now)) {
		t->stats.duplicate++;
		return;
	}
	/* The REP repeats the REQ's transaction ID (IBA 12.6.8), which distinguishes attempts under
	 * one communication ID. */
	for (i = roce_cm_key_find(t, dst, src, m->remote_comm_id, ROCE_CM_NIL); i != ROCE_CM_NIL;
	     i = roce_cm_key_find(t, dst, src, m->remote_comm_id, i)) {
		struct roce_cm_entry *e = &t->e[i];

		if (e->tid != m->tid)
			continue;
		if (e->has_rep) {
			t->stats.mismatch++;
		} else if (e->state == ROCE_CM_S_CLOSED) { /* rejected before this REP arrived */
			t->stats.duplicate++;
		} else {
			take_rep(e, m);
			establish(t, i, ev, now);
		}
		return;
	}
	/* The REP overtook its REQ, or the REQ took another way: keep the REP and wait for the
	 * REQ. */
	t->stats.unknown++;
	i = roce_cm_half_new(t, dst, src, m->remote_comm_id, now);
	take_rep(&t->e[i], m);
}

/* --- the other messages ----------------------------------------------------------------------- */

static void close_entry(struct roce_cm_tab *t, uint32_t i, struct roce_cm_event *ev, rwy_time now)
{
	struct roce_cm_entry *e = &t->e[i];

	if (e->state == ROCE_CM_S_ESTABLISHED) {
		t->stats.closed++;
		ev->kind = ROCE_CM_CLOSED;
		ev->conn = e->conn;
	} else if (e->state == ROCE_CM_S_HALF) {
		t->stats.rejected++;
	}
	roce_cm_set_state(t, i, ROCE_CM_S_CLOSED, now);
}

/* Processes MRA, RTU, REJ, DREQ or DREP on the entry that it names. */
static void on_named(struct roce_cm_tab *t, uint32_t i, const struct roce_cm_msg *m, bool from_a,
    struct roce_cm_event *ev, rwy_time now)
{
	struct roce_cm_entry *e = &t->e[i];

	if (m->attr == ROCE_CM_DREQ && e->has_req && e->has_rep) {
		/* IBA 12.6.10: QPN of the receiver */
		uint32_t mine = from_a ? e->conn.b.qpn : e->conn.a.qpn;

		if (m->qpn != mine) {
			t->stats.mismatch++;
			return;
		}
	}
	if (e->state == ROCE_CM_S_CLOSED) {
		t->stats.duplicate++;
		return;
	}
	if (m->attr == ROCE_CM_MRA || m->attr == ROCE_CM_RTU)
		roce_cm_set_state(t, i, e->state, now);
	else
		close_entry(t, i, ev, now);
}

/* Ways in which a message names an entry under its key. */
enum naming {
	BY_BOTH_ESTABLISHED, /* both communication IDs; by state, in this order */
	BY_BOTH_HALF,
	BY_BOTH_CLOSED,
	/*
	 * There is no ID of b to compare: before the REP, or in the REJ of a side a that gave up
	 * waiting for a REP that was seen here (reason 4). MRA and REJ repeat the transaction ID
	 * (IBA 12.6): the newest attempt with that ID is meant.
	 */
	BY_TID,
	NAMINGS,
};

static bool is_named(const struct roce_cm_entry *e, const struct roce_cm_msg *m, bool from_a, enum naming how)
{
	uint32_t id = from_a ? m->remote_comm_id : m->local_comm_id;

	static const uint8_t states[] = {ROCE_CM_S_ESTABLISHED, ROCE_CM_S_HALF, ROCE_CM_S_CLOSED};

	if (how != BY_TID)
		return e->has_rep && e->conn.comm_b == id && e->state == states[how];
	if (e->tid != m->tid || (m->attr != ROCE_CM_REJ && m->attr != ROCE_CM_MRA))
		return false;
	return !e->has_rep || (from_a && !id);
}

static void on_other(struct roce_cm_tab *t, const struct roce_cm_msg *m, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now)
{
	bool seen = false;

	/* A message of a has a's ID in its own field; a message of b has it in the other one. */
	for (enum naming how = BY_BOTH_ESTABLISHED; how < NAMINGS; how++) {
		for (int from_a = 1; from_a >= 0; from_a--) {
			const struct rwy_ip *a = from_a ? src : dst, *b = from_a ? dst : src;
			uint32_t comm_a = from_a ? m->local_comm_id : m->remote_comm_id;
			uint32_t i = roce_cm_key_find(t, a, b, comm_a, ROCE_CM_NIL);

			for (; i != ROCE_CM_NIL; i = roce_cm_key_find(t, a, b, comm_a, i)) {
				seen = true;
				if (is_named(&t->e[i], m, from_a, how)) {
					on_named(t, i, m, from_a, ev, now);
					return;
				}
			}
		}
	}
	if (seen)
		t->stats.mismatch++;
	else
		t->stats.unknown++;
}

void roce_cm_track(struct roce_cm_tab *tab, const struct roce_cm_msg *msg, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now)
{
	ev->kind = ROCE_CM_NONE;
	ev->superseded_count = 0;
	roce_cm_expire(tab, now);
	if (roce_cm_is_foreign(msg, src, dst))
		tab->stats.foreign++;
	else if (msg->attr == ROCE_CM_REQ)
		on_req(tab, msg, src, dst, ev, now);
	else if (msg->attr == ROCE_CM_REP)
		on_rep(tab, msg, src, dst, ev, now);
	else if (msg->attr == ROCE_CM_MRA || msg->attr == ROCE_CM_REJ || msg->attr == ROCE_CM_RTU ||
	         msg->attr == ROCE_CM_DREQ || msg->attr == ROCE_CM_DREP)
		on_other(tab, msg, src, dst, ev, now);
}

void roce_cm_not_taken(
    struct roce_cm_tab *tab, const struct roce_cm_conn *conn, enum roce_cm_attr attr, rwy_time now)
{
	uint32_t i = roce_cm_qp_find(tab, &conn->a.ip, conn->a.qpn);

	if (i == ROCE_CM_NIL)
		return;
	if (attr == ROCE_CM_REP)
		tab->e[i].has_rep = false;
	else
		tab->e[i].has_req = false;
	tab->stats.established--;
	roce_cm_set_state(tab, i, ROCE_CM_S_HALF, now);
}
