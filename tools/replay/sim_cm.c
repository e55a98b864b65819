/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM in the simulation: hosts set their connections up and take them down with the messages of the
 * capture. A step follows the one before it, when that has reached its host; the first DREQ, when
 * both hosts have all. The hosts' messages begin with the RTU.
 */
#include <stdlib.h>
#include <string.h>

#include "roce/cm.h"
#include "tools/replay/sim_int.h"

static struct rp_port *ports_of(const struct rp_sim *sim, uint32_t conn)
{
	for (uint32_t i = 0; i < sim->ports; i++)
		if (sim->port[i].host == sim->conn[conn].host)
			return &sim->port[i];
	return NULL;
}

static rwy_dur scaled(const struct rp_sim *sim, rwy_dur d)
{
	return sim->cfg.speed > 0 ? (rwy_dur)((double)d / sim->cfg.speed) : 0;
}

rwy_time rp_sim_base(const struct rp_sim *sim)
{
	rwy_time first = sim->s->first;

	for (uint32_t i = 0; i < sim->s->conns; i++)
		if (sim->cm[i].setup.steps)
			first = rwy_time_min(first, sim->cm[i].setup.step[0].cm->at);
	return first;
}

int rp_sim_cm_new(struct rp_sim *sim)
{
	struct rp_setup *v = calloc(sim->s->conns + 1u, sizeof(*v));
	int rc;

	sim->cm = calloc(sim->s->conns + 1u, sizeof(*sim->cm));
	rc = v && sim->cm ? rp_setups_make(sim->s, v) : RWY_ENOMEM;
	for (uint32_t i = 0; !rc && i < sim->s->conns; i++) {
		if (!sim->conn[i].host) { /* it is left out */
			free(v[i].step);
			continue;
		}
		sim->cm[i].setup = v[i];
		sim->cms += v[i].steps != 0;
	}
	if (rc && v)
		rp_setups_free(sim->s, v);
	else
		free(v);
	return rc;
}

void rp_sim_cm_free(struct rp_sim *sim)
{
	for (uint32_t i = 0; sim->cm && i < sim->s->conns; i++)
		free(sim->cm[i].setup.step);
	free(sim->cm);
}

static bool host_is_done(const struct rp_host *h)
{
	return h->failed || (rp_host_sent_all(h) && rp_host_got_all(h));
}

/* When the next step of c is due: RWY_NEVER: it waits for something. */
static rwy_time due_of(const struct rp_sim *sim, const struct rp_sim_cm *c, const struct rp_sim_conn *k)
{
	const struct rp_setup *u = &c->setup;
	const struct rp_cm_step *step = &u->step[c->next], *before = step - 1;
	rwy_dur gap;

	if (c->next == u->steps || (c->next && c->moved == RWY_NEVER))
		return RWY_NEVER;
	if (!c->next)
		return sim->start + scaled(sim, step->cm->at - rp_sim_base(sim));
	gap = before->side == step->side
	          ? rwy_since(before->cm->at, step->cm->at)
	          : rp_reaction(&k->conn->side[step->side], before->cm->at, step->cm->at);
	if (c->next <= u->ready || step->attr != ROCE_CM_DREQ)
		return c->moved + scaled(sim, gap);
	if (!host_is_done(&k->host[0]) || !host_is_done(&k->host[1]))
		return RWY_NEVER;
	/* Since the last message was sent, which the other end may have taken long for. */
	gap = rwy_since(k->conn->last, step->cm->at);
	return rwy_time_max(k->host[0].stats.last, k->host[1].stats.last) + scaled(sim, gap);
}

rwy_time rp_sim_cm_next(const struct rp_sim *sim)
{
	rwy_time t = RWY_NEVER;

	for (uint32_t i = 0; i < sim->s->conns; i++)
		if (sim->cm[i].setup.steps)
			t = rwy_time_min(t, due_of(sim, &sim->cm[i], &sim->conn[i]));
	return t;
}

/* The host's messages may begin: their times are as far from the RTU as in the capture. */
static void host_begins(struct rp_sim *sim, uint32_t conn, unsigned side)
{
	const struct rp_setup *u = &sim->cm[conn].setup;
	struct rp_port *p = ports_of(sim, conn) + side;
	rwy_time rtu = u->step[u->ready].cm->at, first = sim->s->first;
	const rwy_dur way = p->side->away / 2;

	if (p->host->start != RWY_NEVER)
		return;
	/* when it was at this host, by the clock of the capture */
	rtu = u->step[u->ready].side == side ? rwy_since(way, rtu) : rtu + way;
	p->host->start =
	    rtu < first ? sim->now + scaled(sim, first - rtu) : sim->now - scaled(sim, rtu - first);
	p->next = sim->now;
}

static void send(struct rp_sim *sim, uint32_t conn)
{
	struct rp_sim_cm *c = &sim->cm[conn];
	const struct rp_cm_step *step = &c->setup.step[c->next];
	struct rp_site *from = ports_of(sim, conn)[step->side].at;
	struct rwy_buf *b = rp_buf_new(step->cm->pkt.len);
	bool same_side = c->next + 1 < c->setup.steps && step[1].side == step->side;

	memcpy(b->data, sim->s->bytes + step->cm->pkt.off, step->cm->pkt.len);
	c->moved = same_side ? sim->now : RWY_NEVER;
	if (c->next == c->setup.ready)
		host_begins(sim, conn, step->side);
	c->next++;
	rp_sim_send(sim, &from->up_link, RP_TO_GATEWAY + from->idx, WANEM_ETH_HLEN, b);
}

void rp_sim_cm_poll(struct rp_sim *sim)
{
	for (uint32_t i = 0; i < sim->s->conns; i++)
		while (sim->cm[i].setup.steps && due_of(sim, &sim->cm[i], &sim->conn[i]) <= sim->now)
			send(sim, i);
}

void rp_sim_cm_recv(struct rp_sim *sim, const struct roce_pkt *pkt)
{
	struct roce_cm_msg m;

	if (roce_cm_parse(pkt, &m) != 0)
		return;
	for (uint32_t i = 0; i < sim->s->conns; i++)
		for (uint32_t k = 0; k < sim->cm[i].next; k++) {
			struct rp_sim_cm *c = &sim->cm[i];
			const struct rp_cm_step *step = &c->setup.step[k];
			const struct rp_side *from = &sim->conn[i].conn->side[step->side];

			if (step->attr != m.attr || step->comm != m.local_comm_id ||
			    !rwy_ip_eq(&from->ip, &pkt->src))
				continue;
			if (k + 1 == c->next && c->moved == RWY_NEVER)
				c->moved = sim->now;
			if (k == c->setup.ready)
				host_begins(sim, i, !step->side);
			c->arrived += k == c->arrived;
			sim->cm_differ +=
			    pkt->len != step->cm->pkt.len ||
			    memcmp(pkt->bth, sim->s->bytes + step->cm->pkt.off + (pkt->bth - pkt->ip),
			        (size_t)(pkt->ip + pkt->len - pkt->bth)) != 0;
			return;
		}
}

bool rp_sim_cm_over(const struct rp_sim *sim)
{
	for (uint32_t i = 0; i < sim->s->conns; i++)
		if (sim->cm[i].arrived < sim->cm[i].setup.steps)
			return false;
	return true;
}
