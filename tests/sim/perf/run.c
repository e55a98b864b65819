/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of rwyperf and what is between them. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/perf/perf.h"

#define LIMIT (900 * RWY_SEC) /* of virtual time: what is not done then has failed */
#define BEGIN (2 * RWY_SEC)   /* the tunnel is up and knows its path */
#define RKEY  7
#define A_QPN 0x1000u /* host A's first queue pair */
#define B_QPN 0x2000u
#define RECVS 512u /* SEND: posted receives of a queue pair */

/* --- hosts ---------------------------------------------------------------------------------------- */
static void pump(struct perf *p, unsigned qp, unsigned site)
{
	static uint8_t out[RC_PKT_MAX];
	uint32_t len;

	while ((len = rc_host_output(&p->h[qp][site], out, p->w->now)))
		sim_host_tx(p->w, site, 0, out, len);
}

struct of_qp {
	struct perf *p;
	unsigned qp, site;
};

static void completed(void *ctx, const struct rc_comp *c)
{
	const struct of_qp *q = ctx;

	if (c->recv) {
		rc_host_post_recv(&q->p->h[q->qp][q->site], 0, (uint32_t)q->p->s.size);
		return;
	}
	q->p->failed += c->status != RC_OK;
	q->p->left--;
}

static void host_rx(void *ctx, unsigned site, unsigned tenant, uint8_t *ip, uint32_t len, rwy_time now)
{
	struct perf *p = ctx;
	uint32_t first = site ? B_QPN : A_QPN;
	struct roce_pkt pkt;

	if (!rc_pkt_read(ip, len, &pkt) || pkt.dqpn < first || pkt.dqpn >= first + (unsigned)p->s.qps)
		return;
	rc_host_packet(&p->h[pkt.dqpn - first][site], &pkt, now);
	pump(p, pkt.dqpn - first, site);
}

/*
 * Host A's processor stands still now and then, until the time that is returned. Then its timers
 * are served before the packets that came meanwhile.
 */
static rwy_time away_until(struct perf *p)
{
	while (p->w->now >= p->pause_at) {
		p->away = p->pause_at + 1 + sim_next(&p->rng) % (rwy_dur)p->s.pause;
		p->pause_at = p->away + sim_next(&p->rng) % (rwy_dur)(2e9 / p->s.pauses);
	}
	return p->away;
}

static rwy_time next(void *ctx)
{
	struct perf *p = ctx;
	rwy_time a = RWY_NEVER, b = RWY_NEVER;

	for (unsigned i = 0; i < (unsigned)p->s.qps; i++) {
		a = rwy_time_min(a, rc_host_next(&p->h[i][0]));
		b = rwy_time_min(b, rc_host_next(&p->h[i][1]));
	}
	return rwy_time_min(rwy_time_max(a, away_until(p)), b);
}

static void tick(void *ctx, rwy_time now)
{
	struct perf *p = ctx;

	for (unsigned i = 0; i < (unsigned)p->s.qps; i++)
		for (unsigned j = now < away_until(p); j < 2; j++)
			if (rc_host_next(&p->h[i][j]) <= now) {
				rc_host_tick(&p->h[i][j], now);
				pump(p, i, j);
			}
}

static rwy_time ready(void *ctx, unsigned site, const uint8_t *ip, uint32_t len)
{
	struct perf *p = ctx;
	rwy_time at = site ? 0 : away_until(p);

	return at >= p->w->now ? at + RWY_US : 0;
}

static const struct sim_ops ops = {host_rx, tick, next, ready};

static void host_begin(struct perf *p, unsigned qp, unsigned site)
{
	struct rwy_ip me = sim_host_ip(site, 0), peer = sim_host_ip(!site, 0);
	const struct rc_host_cfg *a = &p->h[qp][0].cfg;
	static struct of_qp of[PERF_QPS_MAX][2];
	uint32_t size = (uint32_t)p->s.size;
	struct rc_host_cfg c;

	rc_host_cfg_default(&c);
	memcpy(c.ip, me.b + 12, 4);
	memcpy(c.peer_ip, peer.b + 12, 4);
	c.peer_qpn = (site ? A_QPN : B_QPN) + qp;
	c.mtu = PERF_MTU;
	c.sq_psn = site ? a->rq_psn : (roce_psn)(sim_next(&p->w->rng) & ROCE_PSN_MASK);
	c.rq_psn = site ? a->sq_psn : (roce_psn)(sim_next(&p->w->rng) & ROCE_PSN_MASK);
	c.rkey = RKEY;
	c.window = (uint32_t)p->s.window;
	c.rd_max = (uint32_t)p->s.rd_max;
	c.resources = RC_HOST_RES;
	c.continues = true;
	c.timeout = (rwy_dur)p->s.timeout;
	c.done = completed;
	of[qp][site] = (struct of_qp){p, qp, site};
	c.ctx = &of[qp][site];
	p->mem[qp][site] = malloc(size);
	if (!p->mem[qp][site])
		abort();
	for (uint32_t i = 0; i < size; i++)
		p->mem[qp][site][i] = site ? (uint8_t)((qp + i * 2654435761u) >> 13) : (uint8_t)(i + qp);
	rc_host_init(&p->h[qp][site], &c, p->mem[qp][site], size);
	for (unsigned i = 0; i < RECVS && site && p->s.op == PERF_SEND; i++)
		rc_host_post_recv(&p->h[qp][site], 0, size);
}

/* Packets of payload that have arrived in order so far; READ: at host A. */
static uint64_t arrived(const struct perf *p)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < (unsigned)p->s.qps; i++) {
		const struct rc_host *a = &p->h[i][0], *b = &p->h[i][1];

		n += p->s.op == PERF_READ ? (a->una - a->cfg.sq_psn) & ROCE_PSN_MASK
		                          : (b->epsn - b->cfg.rq_psn) & ROCE_PSN_MASK;
	}
	return n;
}

unsigned perf_resent(const struct perf *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < (unsigned)p->s.qps; i++)
		n += p->h[i][0].resent;
	return n;
}

/* --- without gateways ------------------------------------------------------------------------------ */
static void native_packet(struct perf *p, const struct due *d)
{
	struct world *w = p->w;
	unsigned site = d->where % 2;
	struct sim_buf *m = d->what;

	if (d->where / 2 == SIM_LAN_UP) {
		sim_link_send(&w->links, sim_link_id(SIM_WAN, site), m, w->now);
	} else if (d->where / 2 == SIM_WAN) {
		sim_link_send(&w->links, sim_link_id(SIM_LAN_DOWN, !site), m, w->now);
	} else if (ready(p, site, m->b.data, m->b.len) > w->now) {
		sim_links_at(&w->links, ready(p, site, m->b.data, m->b.len), d->where, m);
	} else {
		host_rx(p, site, 0, m->b.data, m->b.len, w->now);
		sim_buf_free(m);
	}
}

static bool all_done(void *ctx)
{
	return !((struct perf *)ctx)->left;
}

/* Processes that share a processor: in turns a gateway does not run for a while. */
static void run_stalling(struct perf *p, rwy_time until)
{
	struct world *w = p->w;
	rwy_dur d;

	while (p->left && w->now < until) {
		sim_run(w, rwy_time_min(until, p->stall_at), all_done, p);
		if (w->now < p->stall_at)
			continue;
		d = 1 + sim_next(&p->rng) % (rwy_dur)p->s.stall;
		sim_pause(w, sim_below(&p->rng, 2), d);
		p->stall_at = w->now + d + sim_next(&p->rng) % (rwy_dur)(2e9 / p->s.stalls);
	}
}

static void go_on(struct perf *p, rwy_time until)
{
	struct world *w = p->w;
	struct due d;

	if (p->s.mode == PERF_ROCEWAY) {
		run_stalling(p, until);
		return;
	}
	while (p->left && w->now < until) {
		rwy_time at = rwy_time_min(sim_links_next(&w->links), next(p));

		w->now = rwy_time_max(w->now, rwy_time_min(at, until));
		while (sim_links_pop(&w->links, &d, w->now))
			native_packet(p, &d);
		tick(p, w->now);
	}
}

/* --- a run ------------------------------------------------------------------------------------------ */
static struct link_cfg path_of(const struct perf_scen *s, double rtt, double loss)
{
	return (struct link_cfg){.delay = (rwy_dur)(rtt / 2),
	    .jitter = (rwy_dur)s->jitter,
	    .rate_Bps = (uint64_t)(s->wan / 8),
	    .loss = loss,
	    .keep_order = true};
}

static void world_begin(struct perf *p)
{
	const struct perf_scen *s = &p->s;
	struct link_cfg up;
	struct sim_cfg c;

	sim_cfg_default(&c);
	c.seed = (uint64_t)s->seed;
	c.cc = s->cc;
	c.wan[0] = c.wan[1] = path_of(s, s->rtt, s->loss);
	up = c.lan;
	up.rate_Bps = (uint64_t)(s->rate / 8);
	up.queue_bytes = (uint64_t)s->queue * (PERF_MTU + PERF_HEADERS);
	p->w = sim_new(&c, &ops, p);
	for (unsigned i = 0; i < 2; i++)
		sim_link_set(&p->w->links, sim_link_id(SIM_LAN_UP, i), &up);
}

static void post_all(struct perf *p)
{
	static const enum rc_wr_op op[] = {
	    [PERF_READ] = RC_READ, [PERF_WRITE] = RC_WRITE, [PERF_SEND] = RC_SEND};
	struct rc_wr wr = {.op = op[p->s.op], .len = (uint32_t)p->s.size, .rkey = RKEY};

	for (unsigned i = 0; i < (unsigned)p->s.qps; i++) {
		for (unsigned k = 0; k < (unsigned)p->s.messages; k++)
			rc_host_post(&p->h[i][0], &wr);
		pump(p, i, 0);
	}
}

/* What arrived is what the other host has. */
static bool bytes_right(const struct perf *p)
{
	for (unsigned i = 0; i < (unsigned)p->s.qps; i++)
		if (memcmp(p->mem[i][0], p->mem[i][1], (size_t)p->s.size))
			return false;
	return true;
}

static void measure(struct perf *p, rwy_time began)
{
	rwy_time end = began + (p->s.time ? (rwy_dur)p->s.time : LIMIT);

	if (p->s.change) {
		struct link_cfg c = path_of(&p->s, p->s.rtt2, p->s.loss2);

		go_on(p, began + (rwy_dur)p->s.change);
		sim_path_set(p->w, 0, (struct link_cfg[]){c, c});
	}
	if (p->s.skip)
		go_on(p, began + (rwy_dur)p->s.skip);
	p->began = p->w->now;
	p->packets = arrived(p);
	go_on(p, end);
	p->ended = p->w->now;
	p->packets = arrived(p) - p->packets;
}

bool perf_run(struct perf *p)
{
	p->rng.s = (uint64_t)p->s.seed;
	p->stall_at = p->s.stalls ? BEGIN : RWY_NEVER;
	p->pause_at = p->s.pauses ? BEGIN : RWY_NEVER;
	world_begin(p);
	for (unsigned i = 0; i < (unsigned)p->s.qps; i++)
		for (unsigned j = 0; j < 2; j++)
			host_begin(p, i, j);
	p->left = UINT64_MAX;
	go_on(p, BEGIN);
	p->left = (uint64_t)(p->s.qps * p->s.messages);
	post_all(p);
	measure(p, p->w->now);
	return !p->failed && (p->s.time || !p->left) && (p->left || bytes_right(p));
}

double perf_line_seconds(const struct perf *p)
{
	double bits = (double)p->packets * (PERF_MTU + PERF_HEADERS) * 8;

	return bits / p->s.rate + (p->s.skip ? 0 : p->s.rtt / 1e9);
}

void perf_free(struct perf *p)
{
	for (unsigned i = 0; i < (unsigned)p->s.qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			rc_host_fini(&p->h[i][j]);
			free(p->mem[i][j]);
		}
	sim_end(p->w);
}
