/* SPDX-License-Identifier: Apache-2.0 */
/* The simulation: hosts, links, time. */
#include "tools/replay/sim.h"

#include <stdlib.h>
#include <string.h>

#include "roce/cm.h"
#include "roce/icrc.h"
#include "rwy/hash.h"
#include "tools/replay/host_int.h"
#include "tools/replay/sim_int.h"

#define UP_WAIT  (30 * RWY_SEC) /* for the tunnel's handshake */
#define BURST    64u
#define SAY      (1u << 16) /* steps between two reports of progress */
#define LAN_RATE UINT64_C(100000000000)
#define LAN_TIME (5 * RWY_US)

void rp_sim_cfg_default(struct rp_sim_cfg *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->seed = 1;
	for (unsigned i = 0; i < 2; i++)
		wanem_cfg_default(&cfg->wan[i]);
	wanem_cfg_default(&cfg->lan);
	cfg->lan.delay = LAN_TIME;
	cfg->lan.rate = LAN_RATE;
	cfg->lan.queue = UINT32_MAX;
	cfg->ack_mode = ENG_ACK_NEAR;
	cfg->cc = "auto";
	cfg->wan_Bps = 1250000000;
	cfg->wan_mtu = 1472;
	cfg->speed = 1;
	roce_reqr_cfg_default(&cfg->reqr);
	cfg->stall = 120 * RWY_SEC;
}

static void host_send(void *ctx, const uint8_t *ip, uint32_t len)
{
	struct rp_port *p = ctx;
	struct rwy_buf *b = rp_buf_new(len);

	memcpy(b->data, ip, len);
	rp_sim_send(p->at->sim, &p->at->up_link, RP_TO_GATEWAY + p->at->idx, WANEM_ETH_HLEN, b);
}

static void port_poll(struct rp_sim *sim, struct rp_port *p)
{
	while (rp_host_poll(p->host, BURST, sim->now))
		;
	/* The clock of a host has a tick, too. */
	p->next = rwy_time_max(rp_host_next(p->host), sim->now + RWY_US);
}

static struct rp_port *port_of(struct rp_sim *sim, unsigned site, const struct roce_pkt *pkt)
{
	for (uint32_t i = 0; i < sim->ports; i++) {
		struct rp_port *p = &sim->port[i];

		if (p->at->idx == site && p->side->qpn == pkt->dqpn && rwy_ip_eq(&p->side->ip, &pkt->dst))
			return p;
	}
	return NULL;
}

static void to_host(struct rp_sim *sim, unsigned site, struct rwy_buf *b)
{
	struct roce_pkt pkt;
	struct rp_port *p;

	if (roce_parse(b->data, b->len, &pkt) == ROCE_PARSE_OK && roce_icrc_ok(&pkt)) {
		p = port_of(sim, site, &pkt);
		if (roce_is_gsi(&pkt))
			rp_sim_cm_recv(sim, &pkt);
		else
			sim->unknown += !p;
		if (p) {
			rp_host_recv(p->host, &pkt, sim->now);
			port_poll(sim, p);
		}
	}
	free(b);
}

static void deliver(struct rp_sim *sim, const struct due *d)
{
	unsigned site = d->where % 2;

	switch ((enum rp_where)(d->where - site)) {
	case RP_TO_HOST:
		to_host(sim, site, d->what);
		return;
	case RP_TO_GATEWAY:
		rp_site_recv(&sim->site[site], true, d->what);
		return;
	case RP_TO_PEER:
		rp_site_recv(&sim->site[site], false, d->what);
		return;
	case RP_PLACES:
		break;
	}
	rwy_unreachable();
}

/* Outages begin and end. Returns when the next one does. */
static rwy_time faults(struct rp_sim *sim)
{
	rwy_time next = RWY_NEVER, until[2] = {0};

	for (unsigned i = 0; i < sim->cfg.faults; i++) {
		const struct rp_fault *f = &sim->cfg.fault[i];
		rwy_time from = sim->start + f->from, to = sim->start + f->to;

		if (sim->now < from)
			next = rwy_time_min(next, from);
		else if (sim->now < to)
			for (unsigned j = 0; j < 2; j++)
				until[j] = f->way[j] ? rwy_time_max(until[j], to) : until[j];
	}
	for (unsigned j = 0; j < 2; j++)
		if (until[j])
			wanem_link_outage(&sim->site[j].wan, until[j]);
	return next;
}

/* One step in time; false: there is none before `end`. */
static bool step(struct rp_sim *sim, rwy_time end)
{
	rwy_time at = rwy_time_min(due_next(&sim->due), end);

	for (unsigned i = 0; i < 2; i++) /* a gateway looks at its clock every us at best */
		at = rwy_time_min(at, rwy_time_max(sim->site[i].next, sim->now + RWY_US));
	for (uint32_t i = 0; i < sim->ports && sim->start; i++)
		at = rwy_time_min(at, sim->port[i].next);
	if (sim->start)
		at = rwy_time_min(
		    at, rwy_time_max(rwy_time_min(faults(sim), rp_sim_cm_next(sim)), sim->now + 1));
	if (at >= end)
		return false;
	sim->now = rwy_time_max(sim->now, at);
	while (due_next(&sim->due) <= sim->now) {
		struct due d = due_pop(&sim->due);

		deliver(sim, &d);
	}
	for (unsigned i = 0; i < 2; i++)
		if (sim->site[i].next <= sim->now)
			rp_site_poll(&sim->site[i]);
	if (sim->start)
		rp_sim_cm_poll(sim);
	for (uint32_t i = 0; i < sim->ports && sim->start; i++)
		if (sim->port[i].next <= sim->now)
			port_poll(sim, &sim->port[i]);
	return true;
}

static uint64_t done_of(const struct rp_sim *sim, bool *all)
{
	uint64_t n = 0;

	*all = true;
	for (uint32_t i = 0; i < sim->ports; i++) {
		const struct rp_port *p = &sim->port[i];

		n += p->host->stats.completed + p->host->stats.received;
		*all &= rp_host_sent_all(p->host) && (p->host->failed || rp_host_got_all(p->host));
	}
	*all &= rp_sim_cm_over(sim);
	return n;
}

static void run_hosts(struct rp_sim *sim, struct rp_sim_result *r)
{
	uint64_t all = 0, done = 0, now, steps = 0;
	rwy_time moved = sim->now;
	bool over = false;

	for (uint32_t i = 0; i < sim->ports; i++)
		all += sim->port[i].side->msgs;
	sim->start = sim->now;
	while (!over) {
		if (!step(sim, moved + sim->cfg.stall)) {
			r->stalled = true;
			break;
		}
		if (steps++ % 64 && sim->due.n) /* a look at all hosts takes time */
			continue;
		now = done_of(sim, &over);
		if (now != done)
			moved = sim->now;
		done = now;
		if (sim->cfg.progress && steps % SAY == 1)
			sim->cfg.progress(sim->now - sim->start, done / 2, all);
	}
}

/* A host without CM begins at once, one with CM when its connection is set up. */
static void host_start(struct rp_sim *sim, struct rp_port *p)
{
	rwy_dur wait = sim->s->first - rp_sim_base(sim);

	p->next = RWY_NEVER;
	for (uint32_t i = 0; i < sim->s->conns; i++)
		if (sim->cm[i].setup.steps && sim->conn[i].conn == p->host->cfg.conn)
			return;
	p->host->start = sim->now + (sim->cfg.speed > 0 ? (rwy_dur)((double)wait / sim->cfg.speed) : 0);
	p->next = sim->now;
}

void rp_sim_run(struct rp_sim *sim, struct rp_sim_result *r)
{
	rwy_time end = sim->now + UP_WAIT, last = 0;

	*r = (struct rp_sim_result){.left_out = sim->left_out, .same_qps = sim->same_qps};
	while (!(sim->site[0].up && sim->site[1].up) && step(sim, end))
		;
	r->up = sim->site[0].up && sim->site[1].up;
	if (r->up) {
		while (step(sim, sim->quiet_until))
			;
		sim->now = rwy_time_max(sim->now, sim->quiet_until);
		for (uint32_t i = 0; i < sim->ports; i++)
			host_start(sim, &sim->port[i]);
		run_hosts(sim, r);
	}
	for (uint32_t i = 0; i < sim->ports; i++) {
		rp_host_end(sim->port[i].host);
		last = rwy_time_max(last, sim->port[i].host->stats.last);
	}
	r->took = rwy_since(sim->start, last);
	r->hash = sim->hash;
	r->packets = sim->packets;
	r->unknown = sim->unknown;
	r->cm = sim->cms;
	r->cm_differ = sim->cm_differ;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t *c = sim->site[i].wan.ctr;

		r->wan[i].sent = c[WANEM_CTR_in_packets];
		r->wan[i].lost = c[WANEM_CTR_drop_loss] + c[WANEM_CTR_drop_burst] + c[WANEM_CTR_drop_queue] +
		                 c[WANEM_CTR_drop_outage];
	}
}

/* The captured packets show how the host fills its headers. */
static void as_the_host(const struct rp_schedule *s, const struct rp_side *d, struct roce_addr *to)
{
	struct roce_pkt pkt;

	if (!d->pkts)
		return;
	rp_packet_get(s, &d->pkt[0], &pkt);
	to->sport = pkt.sport;
	to->pkey = pkt.pkey;
	to->migreq = pkt.migreq;
}

static void hosts_new(struct rp_sim *sim, struct rp_sim_conn *k)
{
	struct rp_host_cfg c;

	if (k->same_qp || k->site[0] == k->site[1])
		return;
	k->host = calloc(2, sizeof(*k->host));
	if (!k->host)
		abort();
	for (unsigned j = 0; j < 2; j++) {
		struct rp_port *p = &sim->port[sim->ports++];

		*p = (struct rp_port){
		    &k->conn->side[j], &k->host[j], &sim->site[k->site[j]], .next = RWY_NEVER};
		rp_host_cfg_default(&c);
		c.schedule = sim->s;
		c.conn = k->conn;
		c.side = j;
		c.speed = sim->cfg.speed;
		c.reqr = sim->cfg.reqr;
		c.sq_psn = k->conn->side[j].first;
		c.rq_psn = k->conn->side[!j].first;
		c.patience = RWY_NEVER;
		c.send = host_send;
		c.ctx = p;
		as_the_host(sim->s, p->side, &c.to);
		if (rp_host_init(p->host, &c, RWY_NEVER) != 0)
			abort();
	}
}

int rp_sim_new(struct rp_sim **out, const struct rp_schedule *s, const struct rp_sim_cfg *cfg)
{
	struct rp_sim *sim = calloc(1, sizeof(*sim));
	int rc;

	if (!sim)
		return RWY_ENOMEM;
	sim->cfg = *cfg;
	sim->s = s;
	sim->now = RWY_SEC; /* not 0, which means "not set" in places */
	sim->conn = calloc(s->conns + 1u, sizeof(*sim->conn));
	sim->port = calloc(2 * s->conns + 1u, sizeof(*sim->port));
	rc = sim->conn && sim->port ? rp_sim_place(sim) : RWY_ENOMEM;
	if (rc) {
		rp_sim_free(sim);
		return rc;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct rp_site *t = &sim->site[i];

		t->sim = sim;
		t->idx = i;
		wanem_link_init(&t->wan, cfg->seed * 2 + i, &cfg->wan[i]);
		wanem_link_init(&t->up_link, 0, &cfg->lan);
		wanem_link_init(&t->down_link, 0, &cfg->lan);
		rp_site_start(t, sim->addr[!i], sim->addrs[!i]);
	}
	for (uint32_t i = 0; i < s->conns; i++)
		hosts_new(sim, &sim->conn[i]);
	if (rp_sim_cm_new(sim) != 0) {
		rp_sim_free(sim);
		return RWY_ENOMEM;
	}
	*out = sim;
	return 0;
}

const struct rp_sim_conn *rp_sim_conns(const struct rp_sim *sim)
{
	return sim->conn;
}

struct eng *rp_sim_engine(const struct rp_sim *sim, unsigned site)
{
	return sim->site[site].e;
}

uint64_t rp_sim_free(struct rp_sim *sim)
{
	uint64_t left = 0;

	if (!sim)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		rp_site_stop(&sim->site[i]);
		left += sim->site[i].bufs;
		free(sim->addr[i]);
	}
	for (uint32_t i = 0; i < sim->due.n; i++)
		free(sim->due.v[i].what);
	free(sim->due.v);
	for (uint32_t i = 0; i < sim->ports; i++)
		rp_host_fini(sim->port[i].host);
	rp_sim_cm_free(sim);
	for (uint32_t i = 0; sim->conn && i < sim->s->conns; i++)
		free(sim->conn[i].host);
	free(sim->conn);
	free(sim->port);
	free(sim);
	return left;
}
