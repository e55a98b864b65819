/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rwysim: two gateway engines, hosts and links in virtual time. Each seed draws a world (links, losses, ack
 * mode, queue pairs, faults) and a workload; at the end the hosts' memories must be what the operations say,
 * or the queue pair must have an error. A failing seed prints the command that repeats it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"
#include "tests/unit/rc_host.h"
#include "tests/unit/rc_pkt.h"

#define QPS_MAX 24
#define WRS_MAX 64
#define AREA    (128u << 10)
#define MEM     (4 * AREA + 64)
#define SLOT    (16u << 10) /* a receive buffer */
#define SRC     0u
#define SINK    AREA
#define RECV    (2 * AREA)
#define READ_TO (3 * AREA)
#define COUNTER (4 * AREA)

#define OUTAGE         (300 * RWY_MS)
#define SQUEEZE_OUTAGE (4 * RWY_SEC)

enum faults {
	F_OUTAGE = 1,
	F_CRASH_NEAR = 2,
	F_CRASH_FAR = 4,
	F_LAN_LOSS = 8,
	F_REUSE = 16,
	F_SQUEEZE = 32,
	F_CRASH_BOTH = 64
};
#define F_CRASH (F_CRASH_NEAR | F_CRASH_FAR | F_CRASH_BOTH)

struct side {
	struct rc_host h;
	struct run *run;
	unsigned site, host;
	uint32_t qpn;
	uint8_t *mem, *before;
	struct rc_wr wr[WRS_MAX];
	unsigned wrs, done, recvs;
	rwy_time done_at; /* of the last completion */
	bool error;
	enum rc_status status;
};

struct run {
	struct world *w;
	struct sim_cfg cfg;
	struct sim_rng rng;
	struct side qp[QPS_MAX][2];
	unsigned qps;
	unsigned faults;
	unsigned round;
	rwy_time round_at, fault_at, fault_end;
	double slowest; /* times what could be expected */
	unsigned fault_site;
	bool fault_done, outage, verbose;
	bool zero_psn;
	bool deaf; /* no queue pair is alive */
	const char *why;
	char detail[256];
};

static void fail(struct run *r, const char *why, const struct side *s, unsigned n)
{
	if (r->why)
		return;
	r->why = why;
	snprintf(r->detail, sizeof(r->detail), "qp %u at %c (%u), %u of %u done, status %d", s ? s->qpn : 0,
	    s ? 'A' + s->site : '?', n, s ? s->done : 0, s ? s->wrs : 0, s ? (int)s->status : 0);
}

static void completed(void *ctx, const struct rc_comp *c)
{
	struct side *s = ctx;

	if (c->recv)
		return;
	if (c->status != RC_OK) {
		if (!s->error)
			s->status = c->status;
		s->error = true;
		return;
	}
	if (c->id != s->done)
		fail(s->run, "completions out of order", s, (unsigned)c->id);
	s->done++;
	s->done_at = sim_now(s->run->w);
}

/* Its queue pair is in error, and its application knows. */
static bool dead(const struct side *s)
{
	return s->error || s->h.rq_error;
}

static void pump(struct run *r, struct side *s)
{
	uint8_t out[RC_PKT_MAX];
	uint32_t len;

	while ((len = rc_host_output(&s->h, out, sim_now(r->w))))
		sim_host_tx(r->w, s->site, out, len);
}

static void host_rx(void *ctx, unsigned site, const uint8_t *ip, uint32_t len, rwy_time now)
{
	struct run *r = ctx;
	uint8_t copy[RC_PKT_MAX];
	struct roce_pkt pkt;

	if (len > sizeof(copy) || r->deaf)
		return;
	memcpy(copy, ip, len);
	if (!rc_pkt_read(copy, len, &pkt))
		return;
	for (unsigned i = 0; i < r->qps; i++) {
		struct side *s = &r->qp[i][site];
		struct rwy_ip me = sim_host_ip(site, s->host),
		              peer = sim_host_ip(!site, r->qp[i][!site].host);

		if (s->qpn == pkt.dqpn && rwy_ip_eq(&me, &pkt.dst) && rwy_ip_eq(&peer, &pkt.src)) {
			rc_host_input(&s->h, copy, len, now);
			pump(r, s);
			return;
		}
	}
}

static void tick(void *ctx, rwy_time now)
{
	struct run *r = ctx;

	for (unsigned i = 0; i < r->qps && !r->deaf; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			if (rc_host_next(&s->h) <= now) {
				rc_host_tick(&s->h, now);
				pump(r, s);
			}
		}
	if (r->faults && !r->fault_done && now >= r->fault_at) {
		r->fault_done = true;
		r->outage = r->faults & (F_OUTAGE | F_SQUEEZE);
		if (r->outage)
			sim_wan_down(r->w, true);
		if (r->faults & (F_CRASH_NEAR | F_CRASH_FAR))
			sim_crash(r->w, r->fault_site, RWY_MS * (1 + sim_below(&r->rng, 300)));
		for (unsigned i = 0; i < 2 && (r->faults & F_CRASH_BOTH); i++)
			sim_crash(r->w, i, RWY_MS * (1 + sim_below(&r->rng, 300)));
	}
	if (r->outage && now >= r->fault_end) {
		r->outage = false;
		sim_wan_down(r->w, false);
	}
}

static rwy_time next(void *ctx)
{
	struct run *r = ctx;
	rwy_time at = RWY_NEVER;

	for (unsigned i = 0; i < r->qps && !r->deaf; i++)
		for (unsigned j = 0; j < 2; j++)
			at = rwy_time_min(at, rc_host_next(&r->qp[i][j].h));
	if (r->faults && !r->fault_done)
		at = rwy_time_min(at, r->fault_at);
	else if (r->outage)
		at = rwy_time_min(at, r->fault_end);
	return at;
}

static const struct sim_ops ops = {host_rx, tick, next};

static bool finished(void *ctx)
{
	struct run *r = ctx;

	if (r->why)
		return true;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			if (r->qp[i][j].done < r->qp[i][j].wrs && !dead(&r->qp[i][j]))
				return false;
	return true;
}

/* Everything a gateway answered for has reached the hosts. */
static bool drained(void *ctx)
{
	struct run *r = ctx;

	for (unsigned i = 0; i < 2; i++)
		if (!sim_engine(r->w, i) || eng_custody_bytes(sim_engine(r->w, i)))
			return false;
	return true;
}

/* --- the workload and what memory must be ------------------------------------------------------------ */

static uint32_t draw_len(struct run *r, uint32_t max)
{
	static const uint32_t edge[] = {0, 1, 3, 255, 256, 257, 1023, 1024, 1025, 4096, 4097, 16384};
	uint32_t n = sim_chance(&r->rng, .5) ? edge[sim_below(&r->rng, 12)] : sim_below(&r->rng, max);

	return n < max ? n : max;
}

static void draw_wrs(struct run *r, struct side *s, struct side *peer)
{
	s->wrs = 1 + sim_below(&r->rng, WRS_MAX);
	for (unsigned i = 0; i < s->wrs; i++) {
		struct rc_wr *w = &s->wr[i];
		uint32_t len;

		memset(w, 0, sizeof(*w));
		w->id = i;
		w->op = (enum rc_wr_op)sim_below(&r->rng, 8);
		while ((r->faults & F_SQUEEZE) && (w->op == RC_READ || w->op == RC_CAS || w->op == RC_FAA))
			w->op = (enum rc_wr_op)sim_below(&r->rng, 8);
		w->rkey = peer->h.cfg.rkey;
		w->imm = (uint32_t)sim_next(&r->rng);
		switch (w->op) {
		case RC_WRITE:
		case RC_WRITE_IMM:
			len = draw_len(r, AREA / 2);
			w->remote = SINK + sim_below(&r->rng, AREA - len);
			w->local = SRC + sim_below(&r->rng, AREA - len);
			w->len = len;
			break;
		case RC_SEND:
		case RC_SEND_IMM:
		case RC_SEND_INV:
			len = draw_len(r, SLOT);
			w->local = SRC + sim_below(&r->rng, AREA - len);
			w->len = len;
			break;
		case RC_READ:
			len = draw_len(r, AREA / 4);
			w->remote = SRC + sim_below(&r->rng, AREA - len);
			w->local = READ_TO + sim_below(&r->rng, AREA - len);
			w->len = len;
			break;
		case RC_CAS:
		case RC_FAA:
			w->len = 8;
			w->remote = COUNTER;
			w->local = READ_TO + 8 * sim_below(&r->rng, AREA / 8);
			w->swap_add = sim_next(&r->rng);
			w->compare = 0;
			break;
		}
	}
}

static bool takes_recv(const struct rc_wr *w)
{
	return w->op == RC_SEND || w->op == RC_SEND_IMM || w->op == RC_SEND_INV || w->op == RC_WRITE_IMM;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* Executes one operation of `s` on the shadows of both memories. */
static void apply(const struct side *s, const struct rc_wr *w, uint8_t *mine, uint8_t *theirs, unsigned *recv)
{
	unsigned slot = *recv % (AREA / SLOT);
	uint64_t old;

	if (takes_recv(w))
		(*recv)++;
	switch (w->op) {
	case RC_WRITE:
	case RC_WRITE_IMM:
		memcpy(theirs + w->remote, s->before + w->local, w->len);
		break;
	case RC_SEND:
	case RC_SEND_IMM:
	case RC_SEND_INV:
		memcpy(theirs + RECV + slot * SLOT, s->before + w->local, w->len);
		break;
	case RC_READ:
		memcpy(mine + w->local, theirs + w->remote, w->len);
		break;
	case RC_CAS:
	case RC_FAA:
		old = get64(theirs + COUNTER);
		memcpy(mine + w->local, &old, 8);
		if (w->op == RC_FAA || old == w->compare) {
			uint64_t v = w->op == RC_FAA ? old + w->swap_add : w->swap_add;

			memcpy(theirs + COUNTER, &v, 8);
		}
		break;
	}
}

/*
 * The direction s -> p. `mine` starts as s's memory before, `theirs` as p's. What s's operations touch in p
 * is [SINK, READ_TO) and the counter; in s [READ_TO, COUNTER). All done: all must be equal. With an error:
 * the state after some prefix of the operations, at least the READs and ATOMICs that completed; the operation
 * after the prefix may be there in part.
 */
static void check_direction(struct run *r, struct side *s, struct side *p)
{
	uint8_t *mine = malloc(MEM), *theirs = malloc(MEM), *nm = malloc(MEM), *nt = malloc(MEM);
	unsigned recv = 0, k = 0, nrecv;
	bool ok = false;

	memcpy(mine, s->before, MEM);
	memcpy(theirs, p->before, MEM);
	/* In ack mode `near` a completion says that the near gateway has it; when that gateway dies, one of
	 * the two hosts must have an error: the other one when this one is idle. */
	if (!s->error && !(r->fault_done && (r->faults & F_CRASH) && dead(p)))
		for (; k < s->wrs; k++)
			apply(s, &s->wr[k], mine, theirs, &recv);
	for (;; k++) {
		memcpy(nm, mine, MEM);
		memcpy(nt, theirs, MEM);
		nrecv = recv;
		if (k < s->wrs)
			apply(s, &s->wr[k], nm, nt, &nrecv);
		ok = true;
		for (uint32_t i = SINK; i < READ_TO && ok; i++)
			ok = p->mem[i] == theirs[i] || p->mem[i] == nt[i];
		for (uint32_t i = COUNTER; i < COUNTER + 8 && ok; i++)
			ok = p->mem[i] == theirs[i] || p->mem[i] == nt[i];
		if (ok || k >= s->wrs)
			break;
		apply(s, &s->wr[k], mine, theirs, &recv);
	}
	if (!ok)
		fail(r, "memory at the responder is not what the operations make it", s, k);
	/* What the requester read. */
	memcpy(mine, s->before, MEM);
	memcpy(theirs, p->before, MEM);
	recv = 0;
	for (k = 0; k < s->done; k++)
		apply(s, &s->wr[k], mine, theirs, &recv);
	if (s->done == s->wrs && memcmp(mine + READ_TO, s->mem + READ_TO, AREA) != 0)
		fail(r, "what was read is not what was there", s, s->done);
	free(mine);
	free(theirs);
	free(nm);
	free(nt);
}

/* --- how long it took ------------------------------------------------------------------------------ */

/* Packets of an operation, or of the answer to it. */
static uint32_t packets(const struct rc_wr *w, uint32_t mtu)
{
	return w->len ? (w->len + mtu - 1) / mtu : 1;
}

/*
 * A generous guess of when a queue pair's operations can be complete: the handshake and learning, a round
 * trip for each window of packets (two if packets are lost: one is in most windows) and for each set of
 * READs, all bytes of the round at half the WAN's rate.
 */
static rwy_dur expected(const struct run *r, const struct side *s)
{
	const struct sim_link_cfg *l = r->cfg.wan;
	rwy_dur rtt = l[0].delay + l[1].delay;
	uint64_t rate = l[0].rate_Bps < l[1].rate_Bps ? l[0].rate_Bps : l[1].rate_Bps;
	uint64_t bytes = 0, n = 0, answers = 0, window = s->h.cfg.window;

	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			for (unsigned k = 0; k < r->qp[i][j].wrs; k++)
				bytes += r->qp[i][j].wr[k].len +
				         80ull * packets(&r->qp[i][j].wr[k], r->qp[i][j].h.cfg.mtu);
	for (unsigned k = 0; k < s->wrs; k++) {
		n += packets(&s->wr[k], s->h.cfg.mtu);
		answers += s->wr[k].op == RC_READ || s->wr[k].op == RC_CAS || s->wr[k].op == RC_FAA;
	}
	if (r->cfg.rx_window && r->cfg.rx_window < window)
		window = r->cfg.rx_window;
	if (r->cfg.custody_conn / s->h.cfg.mtu < window)
		window = r->cfg.custody_conn / s->h.cfg.mtu;
	if (l[0].loss + l[1].loss > .01)
		n *= 2;
	return 200 * RWY_MS + rtt * (8 + n / window + answers / s->h.cfg.rd_max) + 2 * bytes * RWY_SEC / rate;
}

static void times(struct run *r)
{
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			const struct side *s = &r->qp[i][j];
			rwy_dur took = s->done_at - r->round_at, guess = expected(r, s);

			if (!s->done)
				continue;
			if (r->verbose)
				fprintf(stderr,
				    "round %u qp %u at %c: %u of %u done at %.6f, after %.1f ms, expected "
				    "%.1f\n",
				    r->round, s->qpn, 'A' + s->site, s->done, s->wrs,
				    (double)s->done_at / 1e9, (double)took / 1e6, (double)guess / 1e6);
			if ((double)took / (double)guess > r->slowest)
				r->slowest = (double)took / (double)guess;
		}
}

static void check(struct run *r)
{
	times(r);
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];
			const struct rc_host_bad *b = &s->h.bad;

			if (s->done < s->wrs && !dead(s))
				fail(r, "hangs: not complete and no error", s, i);
			if (dead(s) && !(r->faults & ~(F_REUSE | F_SQUEEZE)))
				fail(r, "an error without a fault", s, i);
			if (!(r->faults & ~F_REUSE) && (b->ghost || b->ack || b->opcode || b->length))
				fail(r, "a host saw what no right peer sends", s,
				    b->ghost * 1000 + b->ack * 100 + b->opcode * 10 + b->length);
			check_direction(r, s, &r->qp[i][!j]);
		}
}

/* --- a world from a seed ---------------------------------------------------------------------------- */

static void draw_links(struct run *r)
{
	struct sim_cfg *c = &r->cfg;
	struct sim_rng *g = &r->rng;

	for (unsigned i = 0; i < 2; i++) {
		struct sim_link_cfg *l = &c->wan[i];

		l->delay = RWY_MS * (1 + sim_below(g, 60));
		l->rate_Bps = 12500000ull << sim_below(g, 5);
		l->queue = RWY_MS * (10 + sim_below(g, 90));
		l->loss = sim_chance(g, .7) ? sim_below(g, 50) / 1000.0 : 0;
		l->burst = sim_chance(g, .3) ? 2 + sim_below(g, 10) : 1;
		l->reorder = sim_chance(g, .5) ? sim_below(g, 30) / 1000.0 : 0;
		l->dup = sim_chance(g, .5) ? sim_below(g, 10) / 1000.0 : 0;
		l->corrupt = sim_chance(g, .5) ? sim_below(g, 10) / 1000.0 : 0;
	}
	c->wan_mtu = sim_chance(g, .5) ? 1472 : 600 + sim_below(g, 8000);
	c->ack_mode = (enum eng_ack_mode)sim_below(g, 3);
	if (sim_chance(g, .2))
		c->custody_conn = 64u << 10;
	if (sim_chance(g, .2))
		c->rx_window = 64;
	if (r->faults & F_LAN_LOSS) {
		c->lan.loss = .005;
		c->lan.corrupt = .002;
		if (sim_chance(g, .3))
			c->read_cache_conn = 4096;
	}
}

static void draw_qps(struct run *r)
{
	struct sim_rng *g = &r->rng;

	r->zero_psn = sim_chance(g, .4);
	r->qps = 1 + sim_below(g, sim_chance(g, .2) && !(r->faults & F_SQUEEZE) ? QPS_MAX : 4);
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			s->run = r;
			s->site = j;
			s->host = sim_below(g, SIM_HOSTS);
			s->qpn = 0x11 + 8 * i + sim_below(g, 8);
			s->mem = malloc(MEM);
			s->before = malloc(MEM);
		}
}

/*
 * Custody so small and an outage so long that hosts are held back for seconds, with the retry
 * budget of a NIC (67 ms, 7 times): being held must never cost a connection. Not with READs and ATOMICs,
 * which nobody can answer during an outage.
 */
static void draw_squeeze(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct sim_link_cfg *l = &r->cfg.wan[i];

		l->delay = RWY_MS * (1 + sim_below(&r->rng, 30));
		l->rate_Bps = 12500000;
		l->loss = 0;
	}
	r->cfg.ack_mode = ENG_ACK_NEAR;
	r->cfg.custody_conn = (16u << 10) << sim_below(&r->rng, 3);
	if (sim_chance(&r->rng, .5))
		r->cfg.custody_total = 64u << 10;
	r->fault_at = 1400 * RWY_MS + RWY_MS * sim_below(&r->rng, 200);
}

/* A fresh connection between the two sides of qp[i], and its workload. */
static void connect_qp(struct run *r, struct side *s)
{
	struct sim_rng *g = &r->rng;
	uint32_t mtu = 256u << sim_below(g, 5);
	roce_psn psn[2];

	for (unsigned j = 0; j < 2; j++) {
		psn[j] = r->zero_psn ? 0 : (roce_psn)(sim_next(g) & ROCE_PSN_MASK);
		s[j].done = s[j].recvs = 0;
		s[j].done_at = 0;
		for (uint32_t k = 0; k < MEM; k += 8) {
			uint64_t v = sim_next(g);

			memcpy(s[j].mem + k, &v, 8);
		}
		memcpy(s[j].before, s[j].mem, MEM);
	}
	for (unsigned j = 0; j < 2; j++) {
		struct rc_host_cfg c;
		struct rwy_ip me = sim_host_ip(j, s[j].host), peer = sim_host_ip(!j, s[!j].host);

		rc_host_cfg_default(&c);
		memcpy(c.ip, me.b + 12, 4);
		memcpy(c.peer_ip, peer.b + 12, 4);
		c.peer_qpn = s[!j].qpn;
		c.mtu = mtu;
		c.sq_psn = psn[j];
		c.rq_psn = psn[!j];
		c.rkey = 0x1000 + (uint32_t)sim_below(g, 1000);
		c.timeout = r->faults & F_SQUEEZE ? 67 * RWY_MS : 500 * RWY_MS;
		/* 7 is without limit, as Soft-RoCE has it: then nobody but a gateway can end a connection. */
		c.retry = r->faults & F_CRASH ? 7 : 6;
		c.rnr_retry = 7;
		c.done = completed;
		c.ctx = &s[j];
		rc_host_init(&s[j].h, &c, s[j].mem, MEM);
	}
	for (unsigned j = 0; j < 2; j++) {
		draw_wrs(r, &s[j], &s[!j]);
		if (sim_chance(g, .3))
			s[j].wrs = 0;
	}
	for (unsigned j = 0; j < 2; j++)
		for (unsigned k = 0; k < s[!j].wrs; k++)
			if (takes_recv(&s[!j].wr[k]))
				rc_host_post_recv(
				    &s[j].h, RECV + (s[j].recvs++ % (AREA / SLOT)) * SLOT, SLOT);
}

static void begin_round(struct run *r)
{
	r->round++;
	r->round_at = sim_now(r->w);
	for (unsigned i = 0; i < r->qps; i++)
		connect_qp(r, r->qp[i]);
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			for (unsigned k = 0; k < r->qp[i][j].wrs; k++)
				rc_host_post(&r->qp[i][j].h, &r->qp[i][j].wr[k]);
			pump(r, &r->qp[i][j]);
		}
}

/* The same QPNs again: with the same peer, or with another one. As soon as two hosts can agree on it: a round
 * trip later. */
static void reuse_qpns(struct run *r)
{
	rwy_dur rtt = r->cfg.wan[0].delay + r->cfg.wan[1].delay;

	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			rc_host_fini(&r->qp[i][j].h);
	/* Hosts fall silent: rc_host_fini leaves a host without work. */
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			memset(&r->qp[i][j].h, 0, sizeof(r->qp[i][j].h));
	r->deaf = true;
	sim_run(r->w,
	    sim_now(r->w) + rtt + RWY_MS * (2 + sim_below(&r->rng, sim_chance(&r->rng, .5) ? 20 : 3000)),
	    NULL, r);
	r->deaf = false;
	if (sim_chance(&r->rng, .5) && r->qps > 1) {
		uint32_t qpn = r->qp[0][1].qpn;
		unsigned host = r->qp[0][1].host;

		for (unsigned i = 0; i + 1 < r->qps; i++) {
			r->qp[i][1].qpn = r->qp[i + 1][1].qpn;
			r->qp[i][1].host = r->qp[i + 1][1].host;
		}
		r->qp[r->qps - 1][1].qpn = qpn;
		r->qp[r->qps - 1][1].host = host;
	}
	begin_round(r);
}

struct how {
	bool verbose, quiet;
	double slow; /* > 0: report runs that take so many times what could be expected */
};

static bool run_seed(uint64_t seed, unsigned faults, const struct how *how)
{
	bool verbose = how->verbose;
	struct run *r = calloc(1, sizeof(*r));
	uint64_t left;
	bool ok;

	/* Mixed, so that neighbouring seeds draw different worlds. */
	r->rng.s = seed;
	r->rng.s = sim_next(&r->rng) ^ (uint64_t)faults << 32;
	r->faults = faults;
	r->verbose = verbose;
	sim_cfg_default(&r->cfg);
	r->cfg.seed = sim_next(&r->rng);
	r->cfg.verbose = verbose;
	draw_links(r);
	r->fault_at = RWY_SEC + RWY_MS * sim_below(&r->rng, 400);
	r->fault_site = faults & F_CRASH_FAR ? 1 : 0;
	if (faults & F_SQUEEZE)
		draw_squeeze(r);
	r->fault_end = r->fault_at + (faults & F_SQUEEZE ? SQUEEZE_OUTAGE : OUTAGE);
	r->w = sim_new(&r->cfg, &ops, r);
	if (verbose)
		for (unsigned i = 0; i < 2; i++)
			fprintf(stderr,
			    "wan from %c: delay %.1f ms rate %.1f MB/s queue %.0f ms loss %.3f burst %.0f "
			    "reorder %.3f dup %.3f corrupt %.3f mtu %u ack mode %d custody %llu rx_window "
			    "%u\n",
			    'A' + i, (double)r->cfg.wan[i].delay / 1e6, (double)r->cfg.wan[i].rate_Bps / 1e6,
			    (double)r->cfg.wan[i].queue / 1e6, r->cfg.wan[i].loss, r->cfg.wan[i].burst,
			    r->cfg.wan[i].reorder, r->cfg.wan[i].dup, r->cfg.wan[i].corrupt, r->cfg.wan_mtu,
			    r->cfg.ack_mode, (unsigned long long)r->cfg.custody_conn, r->cfg.rx_window);
	draw_qps(r);
	if (faults & F_SQUEEZE) { /* a gateway that has just started asks nobody for its first 200 ms */
		r->deaf = true;
		sim_run(r->w, sim_now(r->w) + 300 * RWY_MS, NULL, r);
		r->deaf = false;
	}
	begin_round(r);
	sim_run(r->w, 300 * RWY_SEC, finished, r);
	if ((faults & F_REUSE) && !r->why) {
		sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, drained, r);
		check(r);
		for (unsigned n = 1 + sim_below(&r->rng, 3); n-- && !r->why;) {
			reuse_qpns(r);
			sim_run(r->w, sim_now(r->w) + 300 * RWY_SEC, finished, r);
			sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, drained, r);
			check(r);
		}
	}
	/* Let custody come home. */
	sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, NULL, r);
	if (!r->why && !(faults & F_REUSE))
		check(r);
	if (!r->why && !faults)
		for (unsigned i = 0; i < 2; i++)
			if (eng_custody_bytes(sim_engine(r->w, i)))
				fail(r, "custody is not empty at the end", &r->qp[0][i],
				    (unsigned)eng_custody_bytes(sim_engine(r->w, i)));
	if (verbose)
		for (unsigned i = 0; i < 2; i++) {
			const struct eng_counters *c = eng_counters(sim_engine(r->w, i));

			fprintf(stderr, "site %c:", 'A' + i);
#define X(f, s)                                                                                              \
	if (c->f)                                                                                            \
		fprintf(stderr, " %s=%llu", #f, (unsigned long long)c->f);
			ENG_COUNTERS(X)
#undef X
			fprintf(stderr, "\n");
		}
	if (how->slow > 0 && r->slowest > how->slow)
		printf("slow seed=%llu faults=%u: %.1f times what could be expected\n",
		    (unsigned long long)seed, faults, r->slowest);
	if (r->why && !how->quiet)
		printf("FAIL seed=%llu faults=%u t=%.3fs: %s: %s\n  repeat: rwysim --seed %llu --faults %u "
		       "--verbose\n",
		    (unsigned long long)seed, faults, (double)sim_now(r->w) / 1e9, r->why, r->detail,
		    (unsigned long long)seed, faults);
	ok = !r->why;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			rc_host_fini(&r->qp[i][j].h);
			free(r->qp[i][j].mem);
			free(r->qp[i][j].before);
		}
	left = sim_end(r->w);
	if (left && ok) {
		printf("FAIL seed=%llu faults=%u: %llu buffers leaked\n", (unsigned long long)seed, faults,
		    (unsigned long long)left);
		ok = false;
	}
	free(r);
	return ok;
}

/* Seeds that once failed, and what was wrong. They run first. */
static const struct {
	uint64_t seed;
	unsigned faults;
} regressions[] = {
    {569, F_REUSE}, /* of the first flight only the end arrived: congestion control took it for the path's
                       rate */
    {540, F_REUSE}, /* the same */
    {1534, 0},      /* the same */
    {1506, F_CRASH_NEAR}, /* the error for a host that cannot go back was wiped out by a fresh start */
    {2164, F_CRASH_FAR},  /* the same */
    {2228, F_CRASH_FAR},  /* the same */
    {1123, F_CRASH_NEAR}, /* the word to begin went down with a flow that the restarted gateway had refused */
    {1526, F_CRASH_NEAR}, /* the same */
};

int main(int argc, char **argv)
{
	static const struct option opts[] = {{"seed", 1, 0, 's'}, {"seeds", 1, 0, 'n'}, {"from", 1, 0, 'f'},
	    {"faults", 1, 0, 'x'}, {"slow", 1, 0, 'w'}, {"verbose", 0, 0, 'v'}, {"help", 0, 0, 'h'}, {0}};
	static const unsigned kinds[] = {
	    0, F_REUSE, F_LAN_LOSS, F_OUTAGE, F_CRASH_FAR, F_CRASH_NEAR, F_SQUEEZE, F_CRASH_BOTH};
	uint64_t seed = 0, n = 100, from = 1, passed = 0, failed = 0;
	int faults = -1, c;
	bool one = false;
	struct how how = {0};

	while ((c = getopt_long(argc, argv, "vh", opts, NULL)) != -1)
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			one = true;
			break;
		case 'n':
			n = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			from = strtoull(optarg, NULL, 0);
			break;
		case 'x':
			faults = atoi(optarg);
			break;
		case 'v':
			how.verbose = true;
			break;
		case 'w':
			how.slow = atof(optarg);
			break;
		default:
			printf(
			    "rwysim [--seeds N] [--from SEED] | --seed SEED [--faults MASK] [--slow TIMES] "
			    "[--verbose]\n"
			    "faults: 1 outage, 2 near gateway crashes, 4 far gateway crashes, 8 loss on "
			    "the LAN, 16 QPNs used again, 32 little memory and a long outage, 64 both "
			    "gateways crash; default: drawn "
			    "from the seed\n");
			return c == 'h' ? 0 : 2;
		}
	if (one)
		return run_seed(seed, faults >= 0 ? (unsigned)faults : kinds[seed % 8], &how) ? 0 : 1;
	for (unsigned i = 0; i < sizeof(regressions) / sizeof(*regressions); i++)
		if (faults < 0 || regressions[i].faults == (unsigned)faults)
			run_seed(regressions[i].seed, regressions[i].faults, &how) ? passed++ : failed++;
	for (uint64_t i = from; i < from + n; i++) {
		how.quiet = failed > 20;
		if (run_seed(i, faults >= 0 ? (unsigned)faults : kinds[i % 8], &how))
			passed++;
		else
			failed++;
	}
	printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
	return failed ? 1 : 0;
}
