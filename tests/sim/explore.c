/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a world from a seed, runs it, and checks what must be true at its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/explore.h"

#define OUTAGE         (300 * RWY_MS)
#define SQUEEZE_OUTAGE (4 * RWY_SEC)

/* --- how long it may take --------------------------------------------------------------------- */

/* Packets of an operation, or of its answer. */
static uint32_t packets(const struct rc_wr *w, uint32_t mtu)
{
	return w->len ? (w->len + mtu - 1) / mtu : 1;
}

/*
 * A generous estimate of when a queue pair's operations are complete: the handshake and learning,
 * one round trip for each window of packets (two if packets are lost, since most windows lose one)
 * and for each set of READs, and all bytes of the round at half the WAN's rate.
 */
static rwy_dur expected(const struct run *r, const struct side *s)
{
	const struct link_cfg *l = r->cfg.wan;
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
	for (unsigned i = 0; i < r->qps; i++) {
		for (unsigned j = 0; j < 2; j++)
			sim_recall_memory(&r->qp[i][j]);
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];
			const struct rc_host_bad *b = &s->h.bad;

			/* When a host's QPN is forgotten with its tenant, and its peer has sent all
			 * that it will (a gap's one NAK, or an error), nobody can tell the host.
			 * Its own retries end it. */
			if (s->done < s->wrs && !side_dead(s) && !(side_removed(r, s) && s->h.cfg.retry == 7))
				sim_fail(r, "hangs: not complete and no error", s, i);
			/* Rounds with F_REUSE end before a silent host has been asked for long enough. */
			if (!(r->faults & F_REUSE) && r->qp[i][!j].gone && !s->gone && !side_dead(s) &&
			    !side_removed(r, s) && roce_psn_after(s->h.una, r->qp[i][!j].gone_psn))
				sim_fail(r, "not told that what was acknowledged is lost", s, i);
			if (s->gone || r->qp[i][!j].gone)
				/* without a hang; more cannot be expected of the other side */
				continue;
			if (side_dead(s) && !(r->faults & ~(F_MILD | F_SQUEEZE)) && !side_removed(r, s))
				sim_fail(r, "an error without a fault", s, i);
			if (!(r->faults & ~F_MILD) && !side_removed(r, s) &&
			    (b->ghost || b->ack || b->opcode || b->length))
				sim_fail(r, "a host saw what no right peer sends", s,
				    b->ghost * 1000 + b->ack * 100 + b->opcode * 10 + b->length);
			sim_check_direction(r, s, &r->qp[i][!j]);
		}
	}
}

/* --- a world from a seed ---------------------------------------------------------------------------- */

static void draw_links(struct run *r)
{
	struct sim_cfg *c = &r->cfg;
	struct sim_rng *g = &r->rng;

	for (unsigned i = 0; i < 2; i++) {
		struct link_cfg *l = &c->wan[i];

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
	if (r->faults & (F_IDLE | F_RESET))
		c->ack_mode = ENG_ACK_NEAR;
	if (sim_chance(g, .2))
		c->custody_conn = 64u << 10;
	if (sim_chance(g, .2))
		c->rx_window = 64;
	if (r->faults & F_LAN_LOSS) {
		c->lan.loss = .005;
		c->lan.corrupt = .002;
		if (sim_chance(g, .3)) {
			c->read_cache_conn = 4096;
			c->read_cache_total = 3 * 4096;
		}
	}
}

/* Memory is kept from run to run. */
static uint8_t *memory_of(unsigned qp, unsigned site)
{
	static uint8_t *kept[QPS_MAX][2];

	if (!kept[qp][site] && !(kept[qp][site] = malloc(MEM)))
		abort();
	return kept[qp][site];
}

static struct rc_wr *wrs_of(unsigned qp, unsigned site)
{
	static struct rc_wr *kept[QPS_MAX][2];

	if (!kept[qp][site] && !(kept[qp][site] = malloc(MASS_MAX * sizeof(**kept[qp]))))
		abort();
	return kept[qp][site];
}

static void draw_qps(struct run *r)
{
	struct sim_rng *g = &r->rng;

	r->zero_psn = sim_chance(g, .4) || (r->faults & F_RESET);
	r->qps =
	    1 + sim_below(
	            g, sim_chance(g, r->faults & F_SLOW ? .7 : .2) && !(r->faults & F_SQUEEZE) ? QPS_MAX : 4);
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			s->run = r;
			s->site = j;
			s->host = sim_below(g, SIM_HOSTS);
			s->qpn = 0x11 + 8 * i + sim_below(g, 8);
			s->mem = memory_of(i, j);
			s->wr = wrs_of(i, j);
		}
	/* Queue pairs of different tenants have the same hosts and QPNs. */
	for (unsigned i = 0; i < r->qps && r->cfg.tenants; i++)
		for (unsigned j = 0; j < 2; j++) {
			const struct side *first = &r->qp[i - i % (SIM_TENANTS + 1)][j];

			r->qp[i][j].tenant = i % (SIM_TENANTS + 1);
			r->qp[i][j].qpn = first->qpn;
			r->qp[i][j].host = first->host;
		}
}

/*
 * Custody is so small and an outage so long that hosts wait for seconds, with the retry budget of a
 * NIC (67 ms, 7 times). Withheld ACKs must never cost a connection. READs and ATOMICs are left out,
 * since nobody can answer them during an outage.
 */
static void draw_squeeze(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct link_cfg *l = &r->cfg.wan[i];

		l->delay = RWY_MS * (1 + sim_below(&r->rng, 30));
		l->rate_Bps = 12500000;
		l->loss = 0;
	}
	r->cfg.ack_mode = ENG_ACK_NEAR;
	r->cfg.custody_conn = (16u << 10) << sim_below(&r->rng, 3);
	if (sim_chance(&r->rng, .5))
		r->cfg.custody_total = 64u << 10;
	/* Not before the far host has confirmed every connection, since nothing is acknowledged
	 * before that. Nor before a move of the tunnel: a carrier may be broken, without being
	 * noticed, for longer than these hosts try. */
	r->fault_at = 1700 * RWY_MS + RWY_MS * sim_below(&r->rng, 200);
}

/*
 * Hard bounds of a few windows for all queue pairs together. A tenant has a quarter of it reserved.
 */
static void draw_bounds(struct run *r)
{
	struct sim_cfg *c = &r->cfg;

	c->memory_conn = (96u << 10) << sim_below(&r->rng, 3);
	c->memory_total = c->memory_conn << (1 + sim_below(&r->rng, 3));
	c->custody_conn = c->memory_conn - c->memory_conn / 4;
	c->custody_total = c->memory_total - c->memory_total / 4;
	c->unpaired_total = c->memory_total / 2;
	c->reserve = sim_chance(&r->rng, .5) ? c->memory_total / 4 : 0;
}

/* 2 to 20 MB/s, like Soft-RoCE. */
static void draw_slow(struct run *r)
{
	for (unsigned j = 0; j < 2; j++)
		for (unsigned k = 0; k < SIM_HOSTS; k++)
			r->slow[j][k] = 50 + sim_below(&r->rng, 450);
}

/* A new connection between the two sides of qp[i], and its workload. */
static void connect_qp(struct run *r, struct side *s)
{
	struct sim_rng *g = &r->rng;
	uint32_t mtu = 256u << sim_below(g, 5);
	roce_psn psn[2];

	for (unsigned j = 0; j < 2; j++) {
		psn[j] = r->zero_psn ? 0 : (roce_psn)(sim_next(g) & ROCE_PSN_MASK);
		s[j].done = s[j].recvs = 0;
		s[j].done_at = 0;
		s[j].error = false;
		sim_draw_memory(r, &s[j]);
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
		if (r->faults & F_RESET) /* the same memory region */
			c.rkey = 0x1000;
		/* With so little credit a READ waits long behind WRITEs that were acknowledged
		 * early. */
		c.timeout = r->faults & F_SQUEEZE ? 67 * RWY_MS
		            : r->faults & F_SLOW  ? 5 * RWY_SEC
		            : r->cfg.rx_window    ? 2 * RWY_SEC
		                                  : 500 * RWY_MS;
		/* 7 means no limit, as in Soft-RoCE: then only a gateway can end a connection. */
		c.retry = (r->faults & F_CRASH) && !(r->faults & F_HOST) ? 7 : 6;
		c.rnr_retry = 7;
		c.continues = r->cfg.seed & 1; /* as Soft-RoCE does, or as the standard says */
		if (r->faults & F_MASS) {
			c.rd_max = 1u << sim_below(g, 8);
			c.resources = RC_HOST_RES;
		}
		c.done = sim_completed;
		c.ctx = &s[j];
		rc_host_init(&s[j].h, &c, s[j].mem, MEM);
	}
	for (unsigned j = 0; j < 2; j++) {
		sim_draw_wrs(r, &s[j], &s[!j]);
		if (sim_chance(g, .3))
			s[j].wrs = 0;
	}
	for (unsigned j = 0; j < 2; j++)
		for (unsigned k = 0; k < s[!j].wrs; k++)
			if (sim_takes_recv(&s[!j].wr[k]))
				rc_host_post_recv(
				    &s[j].h, RECV + (s[j].recvs++ % (AREA / SLOT)) * SLOT, SLOT);
}

static void post_all(struct run *r, struct side *s)
{
	for (unsigned k = 0; k < s->wrs; k++)
		rc_host_post(&s->h, &s->wr[k]);
	sim_pump(r, s);
}

static void begin_round(struct run *r)
{
	r->round++;
	r->round_at = sim_now(r->w);
	for (unsigned i = 0; i < r->qps; i++)
		connect_qp(r, r->qp[i]);
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			post_all(r, &r->qp[i][j]);
}

void sim_reset_qp(struct run *r, unsigned i)
{
	for (unsigned j = 0; j < 2; j++)
		rc_host_fini(&r->qp[i][j].h);
	connect_qp(r, r->qp[i]);
	for (unsigned j = 0; j < 2; j++)
		post_all(r, &r->qp[i][j]);
}

/* Uses the same QPNs again, with the same peer or another one, as soon as two hosts can agree on
 * it: a round trip later. */
static void reuse_qpns(struct run *r)
{
	rwy_dur rtt = r->cfg.wan[0].delay + r->cfg.wan[1].delay;

	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			rc_host_fini(&r->qp[i][j].h);
	/* Hosts fall silent: rc_host_fini() leaves a host without work. */
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			memset(&r->qp[i][j].h, 0, sizeof(r->qp[i][j].h));
	r->silent = true;
	/* An outage longer than hosts try is for existing connections; a new one may give up in
	 * it. */
	if ((r->faults & F_SQUEEZE) && sim_now(r->w) < r->fault_end)
		sim_run(r->w, r->fault_end, NULL, r);
	sim_run(r->w,
	    sim_now(r->w) + rtt + RWY_MS * (2 + sim_below(&r->rng, sim_chance(&r->rng, .5) ? 20 : 3000)),
	    NULL, r);
	r->silent = false;
	for (unsigned i = 0; i < r->qps; i++) /* a dead host has restarted */
		for (unsigned j = 0; j < 2; j++)
			r->qp[i][j].gone = false;
	/* Not if two queue pairs of one tenant would get the same number. */
	if (sim_chance(&r->rng, .5) && r->qps > 1 && !(r->cfg.tenants && r->qps % (SIM_TENANTS + 1))) {
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

bool sim_run_seed(uint64_t seed, unsigned faults, const struct how *how)
{
	bool verbose = how->verbose;
	struct run *r = calloc(1, sizeof(*r));
	uint64_t left;
	bool ok;

	if (faults & F_SQUEEZE) /* its hosts have NICs' timers, and no READs */
		faults &= ~(unsigned)(F_SLOW | F_BOUNDS);
	/* Mixed, so that neighbouring seeds draw different worlds. */
	r->rng.s = seed;
	r->rng.s = sim_next(&r->rng) ^ (uint64_t)faults << 32;
	r->faults = faults;
	r->verbose = verbose;
	sim_cfg_default(&r->cfg);
	r->cfg.seed = sim_next(&r->rng);
	r->cfg.verbose = verbose;
	r->cfg.hash = how->hash;
	r->cfg.tenants = faults & F_TENANTS;
	draw_links(r);
	r->fault_at = RWY_SEC + RWY_MS * sim_below(&r->rng, 400);
	r->fault_site = faults & F_CRASH_FAR ? 1 : 0;
	if (faults & F_SQUEEZE)
		draw_squeeze(r);
	if (faults & F_BOUNDS)
		draw_bounds(r);
	r->fault_end = r->fault_at + (faults & F_SQUEEZE ? SQUEEZE_OUTAGE : OUTAGE);
	r->w = sim_new(&r->cfg, &sim_host_ops, r);
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
	if (faults & F_SLOW)
		draw_slow(r);
	r->change_at = r->move_at = r->drain_at = RWY_NEVER;
	if (faults & F_DRAIN)
		sim_drains_begin(r);
	if (faults & F_SQUEEZE) { /* a gateway asks no host in its first 200 ms */
		r->silent = true;
		sim_run(r->w, sim_now(r->w) + 300 * RWY_MS, NULL, r);
		r->silent = false;
	}
	r->near = r->cfg.ack_mode == ENG_ACK_NEAR ? ~0u : 0;
	if (faults & F_MOVES)
		r->move_at =
		    (faults & F_SQUEEZE ? r->fault_at : sim_now(r->w)) + RWY_MS * sim_below(&r->rng, 200);
	if (faults & F_CHANGES)
		sim_changes_begin(r);
	begin_round(r);
	sim_run(r->w, 300 * RWY_SEC, sim_finished, r);
	if ((faults & F_REUSE) && !r->why) {
		sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, sim_drained, r);
		check(r);
		for (unsigned n = 1 + sim_below(&r->rng, 3); n-- && !r->why;) {
			reuse_qpns(r);
			sim_run(r->w, sim_now(r->w) + 300 * RWY_SEC, sim_finished, r);
			sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, sim_drained, r);
			check(r);
		}
	}
	/* A host that is gone is asked for some seconds before its peer is told. */
	if (faults & (F_HOST | F_IDLE))
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, sim_drained, r);
	/* Lets custody drain. */
	sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, NULL, r);
	/* data for hosts that do not answer any more is given up later */
	if (r->removed && !r->why)
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, NULL, r);
	if (!r->why && !(faults & F_REUSE))
		check(r);
	sim_changes_end(r);
	if (!r->why && sim_accounts(r->w))
		sim_fail(r, sim_accounts(r->w), &r->qp[0][0], 0);
	if (!r->why && sim_drained(r)) /* otherwise data is still on its way to a dead host */
		sim_check_buffers(r, true);
	if (!r->why && !(faults & ~(F_TENANTS | F_CHANGES | F_MOVES)))
		for (unsigned i = 0; i < 2; i++)
			if (eng_custody_bytes(sim_engine(r->w, i)))
				sim_fail(r, "custody is not empty at the end", &r->qp[0][i],
				    (unsigned)eng_custody_bytes(sim_engine(r->w, i)));
	for (unsigned i = 0; i < 2 && !(faults & ~(F_TENANTS | F_MOVES | F_SLOW)); i++)
		if (eng_counters(sim_engine(r->w, i))->local_ack_timeout_err && !r->why)
			sim_fail(r, "a host that lost nothing was asked again", &r->qp[0][i],
			    (unsigned)eng_counters(sim_engine(r->w, i))->local_ack_timeout_err);
	if (verbose && (faults & F_MOVES))
		fprintf(stderr, "by the reliable carrier: %llu datagrams\n",
		    (unsigned long long)sim_streamed(r->w));
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
	if (how->hash)
		printf("seed %llu faults %u hash %016llx end %.9f %s\n", (unsigned long long)seed, faults,
		    (unsigned long long)sim_hash(r->w), (double)sim_now(r->w) / 1e9, ok ? "ok" : r->why);
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			rc_host_fini(&r->qp[i][j].h);
	left = sim_end(r->w);
	if (left && ok) {
		printf("FAIL seed=%llu faults=%u: %llu buffers leaked\n", (unsigned long long)seed, faults,
		    (unsigned long long)left);
		ok = false;
	}
	free(r);
	return ok;
}
