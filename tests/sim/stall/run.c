/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of rwystall: queue pairs between two sites with pairs of gateways, an event at site A
 * (with `both`: at both sites), and the longest time between two completions of each queue pair.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/stall/stall.h"

#define BEGIN  (2 * RWY_SEC) /* the pairs are whole by then */
#define SETTLE RWY_SEC       /* hosts run alone for so long */
#define AFTER  (2 * RWY_SEC) /* the event's effects are looked for */
#define BOTH   (8 * RWY_SEC) /* the same, when both standbys wait for each other */
#define RKEY   7
#define A_QPN  0x1000u
#define B_QPN  0x2000u
#define RECVS  512u

#define MIXED 4

static const enum rc_wr_op op_of[STALL_OPS] = {RC_WRITE, RC_SEND, RC_READ, RC_FAA};

/* A queue pair; the host at `site` asks. */
struct qp {
	struct run *r;
	struct rc_host h[2];
	uint8_t *mem[2];
	unsigned idx, op, site;
	unsigned posted, done;
	rwy_time post_at; /* of the next operation */
	rwy_time last;    /* completion */
	rwy_dur stall;
};

struct run {
	const struct stall_scen *s;
	struct world *w;
	struct qp *qp;
	rwy_time event; /* RWY_NEVER: not yet */
	struct stall_round *out;
};

static void trace(const struct qp *q, unsigned site, const char *way, const uint8_t *ip, uint32_t len)
{
	if (!q->r->s->trace || q->r->event == RWY_NEVER)
		return;
	fprintf(stderr, "%10.3f ms host %c qp %u %s ", (double)(q->r->w->now - q->r->event) / 1e6, 'A' + site,
	    q->idx, way);
	rc_pkt_print(ip, len);
	fprintf(stderr, "  unacknowledged %u\n", q->h[site].una);
}

static void pump(struct qp *q, unsigned site)
{
	static uint8_t out[RC_PKT_MAX];
	uint32_t len;

	while ((len = rc_host_output(&q->h[site], out, q->r->w->now))) {
		trace(q, site, "sends", out, len);
		sim_host_tx(q->r->w, site, 0, out, len);
	}
}

/* Posts what is due; depth operations are outstanding at most, one begins each gap at most. */
static void post(struct qp *q)
{
	const struct stall_scen *s = q->r->s;
	rwy_time now = q->r->w->now;

	while (q->posted - q->done < (unsigned)s->depth && now >= q->post_at) {
		struct rc_wr wr = {.rkey = RKEY, .swap_add = 1};

		wr.op = op_of[q->op == MIXED ? q->posted / 4 % MIXED : q->op];
		wr.len = wr.op == RC_FAA ? 8 : (uint32_t)s->size;
		q->posted++;
		q->post_at = rwy_time_max(q->post_at + (rwy_dur)s->gap, now);
		rc_host_post(&q->h[q->site], &wr);
	}
	pump(q, q->site);
}

static void completed(void *ctx, const struct rc_comp *c)
{
	struct qp *q = ctx;
	rwy_time now = q->r->w->now;

	if (c->recv) {
		rc_host_post_recv(&q->h[!q->site], 0, (uint32_t)q->r->s->size);
		return;
	}
	q->done++;
	q->r->out->failed += c->status != RC_OK;
	if (q->r->event != RWY_NEVER)
		q->stall = rwy_time_max(q->stall, now - q->last);
	q->last = now;
}

static void host_rx(void *ctx, unsigned site, unsigned tenant, uint8_t *ip, uint32_t len, rwy_time now)
{
	struct run *r = ctx;
	uint32_t first = site ? B_QPN : A_QPN;
	struct roce_pkt pkt;
	struct qp *q;

	if (!rc_pkt_read(ip, len, &pkt) || pkt.dqpn < first || pkt.dqpn >= first + (unsigned)r->s->qps)
		return;
	q = &r->qp[pkt.dqpn - first];
	trace(q, site, "gets ", ip, len);
	rc_host_packet(&q->h[site], &pkt, now);
	if (site == q->site)
		post(q);
	else
		pump(q, site);
}

static rwy_time post_next(const struct qp *q)
{
	return q->posted - q->done < (unsigned)q->r->s->depth ? q->post_at : RWY_NEVER;
}

static rwy_time next(void *ctx)
{
	const struct run *r = ctx;
	rwy_time at = RWY_NEVER;

	for (unsigned i = 0; i < (unsigned)r->s->qps; i++) {
		at = rwy_time_min(at, post_next(&r->qp[i]));
		for (unsigned j = 0; j < 2; j++)
			at = rwy_time_min(at, rc_host_next(&r->qp[i].h[j]));
	}
	return at;
}

static void tick(void *ctx, rwy_time now)
{
	const struct run *r = ctx;

	for (unsigned i = 0; i < (unsigned)r->s->qps; i++) {
		struct qp *q = &r->qp[i];

		for (unsigned j = 0; j < 2; j++)
			if (rc_host_next(&q->h[j]) <= now) {
				rc_host_tick(&q->h[j], now);
				pump(q, j);
			}
		if (post_next(q) <= now)
			post(q);
	}
}

static rwy_time ready(void *ctx, unsigned site, const uint8_t *ip, uint32_t len)
{
	return 0;
}

static const struct sim_ops ops = {host_rx, tick, next, ready};

static void host_begin(struct qp *q, unsigned site)
{
	struct rwy_ip me = sim_host_ip(site, 0), peer = sim_host_ip(!site, 0);
	const struct stall_scen *s = q->r->s;
	uint32_t size = (uint32_t)s->size;
	struct rc_host_cfg c;

	if (s->nic)
		rc_host_cfg_nic(&c);
	else
		rc_host_cfg_default(&c);
	memcpy(c.ip, me.b + 12, 4);
	memcpy(c.peer_ip, peer.b + 12, 4);
	c.peer_qpn = (site ? A_QPN : B_QPN) + q->idx;
	c.sq_psn = site ? 0x1000 : 0x800000;
	c.rq_psn = site ? 0x800000 : 0x1000;
	c.rkey = RKEY;
	c.resources = RC_HOST_RES;
	c.continues = !s->nic;
	if (!s->nic)
		c.timeout = (rwy_dur)s->timeout;
	c.done = completed;
	c.ctx = q;
	q->mem[site] = calloc(1, size < 8 ? 8 : size);
	if (!q->mem[site])
		abort();
	rc_host_init(&q->h[site], &c, q->mem[site], size < 8 ? 8 : size);
	for (unsigned i = 0; i < RECVS; i++)
		rc_host_post_recv(&q->h[site], 0, size);
}

static void world_begin(struct run *r, uint64_t seed)
{
	const struct stall_scen *s = r->s;
	struct sim_cfg c;

	sim_cfg_default(&c);
	c.seed = seed;
	c.pairs = true;
	c.ack_mode = ENG_ACK_SITE;
	c.beat = (rwy_dur)s->beat;
	c.workers = (unsigned)s->workers;
	c.keys = s->keys != 0;
	c.standby_keys = s->keys > 1;
	c.rekey = RWY_SEC;
	c.renew = 10 * RWY_SEC;
	c.verbose = s->trace != 0;
	for (unsigned i = 0; i < 2; i++)
		c.wan[i] = (struct link_cfg){.delay = (rwy_dur)(s->rtt / 2),
		    .rate_Bps = 1250000000,
		    .loss = s->loss,
		    .keep_order = true};
	r->w = sim_new(&c, &ops, r);
}

static void happens(struct run *r, unsigned site)
{
	struct world *w = r->w;

	switch ((enum stall_event)r->s->event) {
	case STALL_NOTHING:
		return;
	case STALL_KILL:
		sim_crash(w, site, RWY_SEC);
		return;
	case STALL_HAND_OVER:
		(void)sim_hand_over(w, site);
		return;
	case STALL_STILL:
		sim_pause(w, site, RWY_SEC);
		return;
	case STALL_CABLE:
		sim_cable_down(w, site, true);
		return;
	case STALL_STANDBY:
		sim_crash_standby(w, site, RWY_SEC);
		return;
	}
}

/* The state of the site's gateways: which serves, and does it have a silent other one? */
static void look(struct run *r)
{
	struct stall_round *o = r->out;
	rwy_dur since = r->w->now - r->event;

	for (unsigned i = 0; i < SIM_GATEWAYS; i += 2) {
		struct eng_standby_info k;

		if (!r->w->site[i].e || r->w->now < r->w->site[i].paused_until ||
		    !eng_standby_info(r->w->site[i].e, &k))
			continue;
		if (o->noticed == RWY_NEVER && (!strcmp(k.state, "taking") || !strcmp(k.state, "losing")))
			o->noticed = since;
		if (o->served == RWY_NEVER && o->noticed != RWY_NEVER && !strcmp(k.state, "alone"))
			o->served = since;
	}
	if (o->whole == RWY_NEVER && o->served != RWY_NEVER && sim_paired(r->w, 0))
		o->whole = since;
}

static void measure(struct run *r, uint64_t seed)
{
	struct sim_rng g = {seed ^ 0x7374616c6c};

	sim_run(r->w, r->w->now + SETTLE + sim_next(&g) % (20 * RWY_MS), NULL, NULL);
	for (unsigned i = 0; i < 2; i++)
		if (!sim_paired(r->w, i)) {
			fprintf(
			    stderr, "rwystall: seed %llu: a pair is not whole\n", (unsigned long long)seed);
			exit(1);
		}
	r->event = r->w->now;
	happens(r, 0);
	if (r->s->both)
		happens(r, 1);
	for (rwy_time end = r->event + (r->s->both ? BOTH : AFTER); r->w->now < end;) {
		sim_run(r->w, r->w->now + RWY_MS / 10, NULL, NULL);
		look(r);
	}
}

void stall_run(const struct stall_scen *s, uint64_t seed, struct stall_round *out)
{
	unsigned n = (unsigned)s->qps;
	struct run r = {.s = s, .event = RWY_NEVER, .out = out};

	out->noticed = out->served = out->whole = RWY_NEVER;
	r.qp = calloc(n, sizeof(*r.qp));
	if (!r.qp)
		abort();
	for (unsigned i = 0; i < n; i++)
		r.qp[i] = (struct qp){
		    .r = &r, .idx = i, .op = i / 2 % STALL_OPS, .site = i % 2, .post_at = RWY_NEVER};
	world_begin(&r, seed);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < 2; j++)
			host_begin(&r.qp[i], j);
	sim_run(r.w, BEGIN, NULL, NULL);
	for (unsigned i = 0; i < n; i++) {
		r.qp[i].post_at = r.qp[i].last = r.w->now + i * RWY_US;
		post(&r.qp[i]);
	}
	measure(&r, seed);
	for (unsigned i = 0; i < n; i++) {
		struct qp *q = &r.qp[i];

		/* One that stands still has done so since its last completion. */
		q->stall = rwy_time_max(q->stall, r.w->now - q->last);
		out->stall[q->op][q->site][out->n[q->op][q->site]++] = q->stall;
		for (unsigned j = 0; j < 2; j++) {
			rc_host_fini(&q->h[j]);
			free(q->mem[j]);
		}
	}
	sim_end(r.w);
	free(r.qp);
}
