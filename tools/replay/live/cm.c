/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/live/cm.h"

#include <stdlib.h>
#include <string.h>

#include "roce/build.h"
#include "roce/cm.h"
#include "roce/icrc.h"
#include "roce/wire.h"
#include "tools/replay/live/live.h"

#define AGAIN      (500 * RWY_MS) /* an answer is waited for so long */
#define RDMA_IP_CM 0x01           /* the fifth byte of such a service ID (IBA A11.2) */

enum { IP_VERSION_AT = 1, IP_SRC_AT = 4, IP_DST_AT = 20 }; /* of the IP-CM header (IBA A11.4) */

/* --- messages ------------------------------------------------------------------------------- */

/* IDs of two runs differ: gateways and hosts may remember the run before. */
static void id_change(uint8_t id[4], const struct rp_end *owner)
{
	rwy_put32(id, rwy_get32(id) ^ (owner->psn * 2654435761u | 1u));
}

static bool is_ip_cm(const struct roce_cm_req *m)
{
	return rwy_get32(m->service_id) == 0 && m->service_id[4] == RDMA_IP_CM;
}

static void req_change(
    struct roce_cm_req *m, const struct rp_end *other, const struct rwy_ip *ip, const struct rwy_ip *peer)
{
	uint8_t *head = m->private_data;

	rwy_put24(m->psn, other->psn);
	memcpy(m->primary.local_gid, ip->b, 16);
	memcpy(m->primary.remote_gid, peer->b, 16);
	if (!is_ip_cm(m))
		return;
	head[IP_VERSION_AT] = (uint8_t)((head[IP_VERSION_AT] & 0x0f) | (rwy_ip_is4(ip) ? 4 : 6) << 4);
	memcpy(head + IP_SRC_AT, ip->b, 16);
	memcpy(head + IP_DST_AT, peer->b, 16);
	if (rwy_ip_is4(ip)) { /* the last four bytes, behind zeros */
		memset(head + IP_SRC_AT, 0, 12);
		memset(head + IP_DST_AT, 0, 12);
	}
}

/* Puts the names of this run into a captured MAD, of this host or of the peer. */
static void mad_change(const struct rp_live *l, uint32_t i, bool mine, uint16_t attr, uint8_t *mad)
{
	const struct rp_end *own = mine ? &l->mine[i] : &l->pair->theirs[i];
	const struct rp_end *other = mine ? &l->pair->theirs[i] : &l->mine[i];
	const struct rwy_ip *ip = mine ? &l->lan->ip : &l->cfg.to, *peer = mine ? &l->cfg.to : &l->lan->ip;
	uint8_t *body = mad + sizeof(struct roce_mad);
	struct roce_cm_req *req = (struct roce_cm_req *)body;
	struct roce_cm_rep *rep = (struct roce_cm_rep *)body;

	id_change(body, own);
	if (attr == ROCE_CM_REQ) {
		rwy_put24(req->qpn, own->qpn);
		req_change(req, other, ip, peer);
		return;
	}
	id_change(body + 4, other);
	if (attr == ROCE_CM_REP) {
		rwy_put24(rep->qpn, own->qpn);
		rwy_put24(rep->psn, other->psn);
	} else if (attr == ROCE_CM_DREQ) {
		rwy_put24(((struct roce_cm_dreq *)body)->remote_qpn, other->qpn);
	}
}

static void send_step(struct rp_live *l, uint32_t i, const struct rp_cm_step *step)
{
	struct roce_addr to = {.src = l->lan->ip,
	    .dst = l->cfg.to,
	    .dqpn = ROCE_GSI_QPN,
	    .sport = (uint16_t)(RP_LIVE_SPORT | ROCE_GSI_QPN),
	    .pkey = RP_LIVE_PKEY,
	    .ttl = RP_LIVE_TTL};
	uint8_t out[ROCE_MAD_LEN + 2 * ROCE_BUILD_MAX];
	struct roce_pkt like, pkt;
	uint32_t len;

	rp_packet_get(l->cfg.schedule, &step->cm->pkt, &like);
	len = roce_build_like(out, &to, &like, like.psn);
	if (roce_parse(out, len, &pkt) != ROCE_PARSE_OK)
		return; /* the captured one parsed */
	mad_change(l, i, true, step->attr, out + (pkt.payload - pkt.ip));
	roce_icrc_store(&pkt);
	rp_lan_send(l->lan, out, len);
}

/* --- steps ---------------------------------------------------------------------------------- */

int rp_live_cm_new(struct rp_live *l)
{
	const struct rp_schedule *s = l->cfg.schedule;
	struct rp_setup *v = calloc(s->conns + 1u, sizeof(*v));
	int rc;

	l->cm = calloc(l->conns + 1u, sizeof(*l->cm));
	rc = v && l->cm ? rp_setups_make(s, v) : RWY_ENOMEM;
	for (uint32_t i = 0; !rc && i < l->conns; i++) {
		l->cm[i] = (struct rp_live_cm){v[l->mine[i].conn], .ask = RWY_NEVER};
		v[l->mine[i].conn].step = NULL;
		l->cms += l->cm[i].setup.steps != 0;
	}
	rp_setups_free(s, v);
	return rc;
}

void rp_live_cm_free(struct rp_live *l)
{
	for (uint32_t i = 0; l->cm && i < l->conns; i++)
		free(l->cm[i].setup.step);
	free(l->cm);
	l->cm = NULL;
}

rwy_time rp_live_base(const struct rp_live *l)
{
	rwy_time first = l->cfg.schedule->first;

	for (uint32_t i = 0; i < l->conns; i++)
		if (l->cm[i].setup.steps)
			first = rwy_time_min(first, l->cm[i].setup.step[0].cm->at);
	return first;
}

static rwy_dur scaled(const struct rp_live *l, rwy_dur d)
{
	return l->cfg.speed > 0 ? (rwy_dur)((double)d / l->cfg.speed) : 0;
}

/* When the next step of connection i is due; RWY_NEVER: it is the peer's, or waits. */
static rwy_time due_of(const struct rp_live *l, uint32_t i, bool closing)
{
	const struct rp_live_cm *c = &l->cm[i];
	const struct rp_live_conn *k = &l->conn[i];
	const struct rp_cm_step *step = &c->setup.step[c->next], *before = step - 1;

	if (c->next == c->setup.steps || step->side != k->side)
		return RWY_NEVER;
	if (!c->next)
		return l->began + scaled(l, step->cm->at - rp_live_base(l));
	if (step->attr == ROCE_CM_DREQ)
		return closing ? c->moved : RWY_NEVER;
	return c->moved + scaled(l, before->side == step->side
	                                ? rwy_since(before->cm->at, step->cm->at)
	                                : rp_reaction(&k->conn->side[k->side], before->cm->at, step->cm->at));
}

/* The host's messages may begin: their times are as far from the RTU as in the capture. */
static void host_begins(struct rp_live *l, uint32_t i, rwy_time now)
{
	const struct rp_setup *u = &l->cm[i].setup;
	struct rp_host *h = &l->conn[i].host;
	const rwy_dur way = h->mine->away / 2;
	rwy_time rtu = u->step[u->ready].cm->at, first = l->cfg.schedule->first;

	if (h->start != RWY_NEVER)
		return;
	rtu = u->step[u->ready].side == l->conn[i].side ? rwy_since(way, rtu) : rtu + way;
	h->start = rtu < first ? now + scaled(l, first - rtu) : now - scaled(l, rtu - first);
	l->next[i] = now;
}

/* Steps up to k were sent, or came. */
static void moved_on(struct rp_live *l, uint32_t i, uint32_t k, rwy_time now)
{
	struct rp_live_cm *c = &l->cm[i];

	if (c->next <= c->setup.ready && k >= c->setup.ready)
		host_begins(l, i, now);
	c->next = k + 1;
	c->moved = now;
	c->ask = RWY_NEVER;
}

static bool wants_answer(uint16_t attr)
{
	return attr == ROCE_CM_REQ || attr == ROCE_CM_REP || attr == ROCE_CM_DREQ;
}

static rwy_time poll_one(struct rp_live *l, uint32_t i, bool closing, rwy_time now)
{
	struct rp_live_cm *c = &l->cm[i];
	rwy_time due;

	while ((due = due_of(l, i, closing)) <= now) {
		const struct rp_cm_step *step = &c->setup.step[c->next];

		send_step(l, i, step);
		moved_on(l, i, c->next, now);
		if (wants_answer(step->attr))
			c->ask = now + AGAIN;
	}
	if (c->ask <= now) {
		send_step(l, i, &c->setup.step[c->next - 1]);
		c->ask = now + AGAIN;
	}
	return rwy_time_min(due, c->ask);
}

rwy_time rp_live_cm_poll(struct rp_live *l, bool closing, rwy_time now)
{
	rwy_time next = RWY_NEVER;

	for (uint32_t i = 0; l->cms && i < l->conns; i++)
		if (l->cm[i].setup.steps)
			next = rwy_time_min(next, poll_one(l, i, closing, now));
	return next;
}

/* Whether the message is this step of the peer, in this run. */
static bool is_step(const struct rp_live *l, uint32_t i, const struct rp_cm_step *step,
    const struct roce_cm_msg *m, const uint8_t *mad, uint64_t *differ)
{
	uint8_t want[ROCE_MAD_LEN], id[4];
	struct roce_pkt pkt;

	rwy_put32(id, step->comm);
	id_change(id, &l->pair->theirs[i]);
	if (step->side == l->conn[i].side || step->attr != m->attr || rwy_get32(id) != m->local_comm_id)
		return false;
	rp_packet_get(l->cfg.schedule, &step->cm->pkt, &pkt);
	memcpy(want, pkt.payload, ROCE_MAD_LEN);
	mad_change(l, i, false, step->attr, want);
	*differ += memcmp(want, mad, ROCE_MAD_LEN) != 0;
	return true;
}

void rp_live_cm_recv(struct rp_live *l, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_cm_msg m;

	if (roce_cm_parse(pkt, &m) != 0)
		return;
	for (uint32_t i = 0; i < l->conns; i++)
		for (uint32_t k = 0; k < l->cm[i].setup.steps; k++) {
			struct rp_live_cm *c = &l->cm[i];
			const struct rp_cm_step *step = &c->setup.step[k];

			if (!is_step(l, i, step, &m, pkt->payload, &l->cm_differ))
				continue;
			if (k >= c->next)
				moved_on(l, i, k, now);
			else if (k + 1 < c->next && step[1].side == l->conn[i].side)
				send_step(l, i, step + 1); /* our answer was lost */
			return;
		}
}

bool rp_live_cm_over(const struct rp_live *l)
{
	for (uint32_t i = 0; i < l->conns; i++)
		if (l->cm[i].next < l->cm[i].setup.steps)
			return false;
	return true;
}
