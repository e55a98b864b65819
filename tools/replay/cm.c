/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the connection of each CM message: by the queue pairs of REQ and REP, then by their IDs. */
#include "tools/replay/cm.h"

#include <stdlib.h>
#include <string.h>

#include "roce/cm.h"

/* A connection's set-up, as far as its messages have been read. */
struct build {
	bool req, rep, rtu, refused;
	uint8_t active;   /* the side that sent the REQ */
	uint32_t comm[2]; /* by side */
	roce_psn psn[2];  /* that a side begins with, from its peer's REQ or REP */
	uint32_t room;
};

/* The side of c whose host sent this packet; -1: none. */
static int side_of(const struct rp_conn *c, const struct roce_pkt *pkt)
{
	for (int i = 0; i < 2; i++)
		if (rwy_ip_eq(&c->side[i].ip, &pkt->src) && rwy_ip_eq(&c->side[!i].ip, &pkt->dst))
			return i;
	return -1;
}

/* Whether the message is one of the connection's, sent by `side`. */
static bool belongs(
    const struct rp_conn *c, const struct build *b, const struct roce_cm_msg *m, unsigned side)
{
	switch (m->attr) {
	case ROCE_CM_REQ:
		return c->side[side].qpn == m->qpn && (!b->req || b->comm[side] == m->local_comm_id);
	case ROCE_CM_REP:
		return b->req && side != b->active && c->side[side].qpn == m->qpn &&
		       b->comm[b->active] == m->remote_comm_id;
	default:
		return b->req && b->comm[!side] == m->remote_comm_id &&
		       (!b->comm[side] || b->comm[side] == m->local_comm_id);
	}
}

static bool is_there(const struct rp_setup *u, unsigned side, uint16_t attr)
{
	for (uint32_t i = 0; i < u->steps; i++)
		if (u->step[i].side == side && u->step[i].attr == attr)
			return true;
	return false;
}

static void note(
    struct build *b, const struct roce_cm_msg *m, unsigned side, uint32_t step, struct rp_setup *u)
{
	switch (m->attr) {
	case ROCE_CM_REQ:
		b->req = true;
		b->active = (uint8_t)side;
		b->comm[side] = m->local_comm_id;
		b->psn[!side] = m->starting_psn;
		break;
	case ROCE_CM_REP:
		b->rep = true;
		b->comm[side] = m->local_comm_id;
		b->psn[!side] = m->starting_psn;
		break;
	case ROCE_CM_RTU:
		b->rtu = true;
		u->ready = step;
		break;
	case ROCE_CM_REJ:
		b->refused = true;
		break;
	default:
		break;
	}
}

static int add(struct rp_setup *u, struct build *b, const struct rp_cm_step *step)
{
	struct rp_cm_step *v = u->step;

	if (u->steps == b->room) {
		b->room = b->room ? 2 * b->room : 8;
		v = realloc(v, b->room * sizeof(*v));
		if (!v)
			return RWY_ENOMEM;
		u->step = v;
	}
	v[u->steps++] = *step;
	return 0;
}

static int take(const struct rp_schedule *s, const struct rp_cm *cm, struct build *b, struct rp_setup *out)
{
	struct roce_cm_msg m;
	struct roce_pkt pkt;

	rp_packet_get(s, &cm->pkt, &pkt);
	if (roce_cm_parse(&pkt, &m) != 0)
		return 0;
	for (uint32_t i = 0; i < s->conns; i++) {
		const int side = side_of(&s->conn[i], &pkt);
		struct rp_cm_step step = {cm, (uint8_t)side, m.attr, m.local_comm_id};

		if (side < 0 || s->conn[i].vni != cm->vni || !belongs(&s->conn[i], &b[i], &m, (unsigned)side))
			continue;
		if (is_there(&out[i], (unsigned)side, m.attr)) /* sent again */
			return 0;
		note(&b[i], &m, (unsigned)side, out[i].steps, &out[i]);
		return add(&out[i], &b[i], &step);
	}
	return 0;
}

/*
 * Set up as a whole, and the messages that are played begin where it says: else the gateways would
 * wait for what comes before them.
 */
static bool is_whole(const struct rp_conn *c, const struct build *b)
{
	if (!b->req || !b->rep || !b->rtu || b->refused)
		return false;
	for (unsigned i = 0; i < 2; i++)
		if (c->side[i].msgs && c->side[i].first != b->psn[i])
			return false;
	return true;
}

int rp_setups_make(const struct rp_schedule *s, struct rp_setup *out)
{
	struct build *b = calloc(s->conns + 1u, sizeof(*b));
	int rc = b ? 0 : RWY_ENOMEM;

	for (uint32_t i = 0; i < s->cms && !rc; i++)
		rc = take(s, &s->cm[i], b, out);
	for (uint32_t i = 0; i < s->conns && !rc; i++)
		if (!is_whole(&s->conn[i], &b[i])) {
			free(out[i].step);
			out[i] = (struct rp_setup){0};
		}
	free(b);
	return rc;
}

void rp_setups_free(const struct rp_schedule *s, struct rp_setup *v)
{
	for (uint32_t i = 0; v && i < s->conns; i++)
		free(v[i].step);
	free(v);
}
