/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a world from a seed, runs it, and checks what must be true at its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/explore.h"

/* NICs begin when the tunnel knows its round trip: before that a lost datagram is missed after 200
 * ms. */
#define NIC_START (1500 * RWY_MS)
#define CM_OUTAGE (8 * RWY_SEC)
/* Within this time a host is told of a loss: the retries of the gateway that asks the other host. */
#define TOLD (30 * RWY_SEC)
/*
 * Beside a hostile host the others take at most FAIR times as long as alone, and FAIR_MORE more, and
 * FAIR_QUEUES times the WAN's queue, which one host may fill: once before their first packet, once
 * before the answer.
 */
#define FAIR           2.5
#define FAIR_MORE      (50 * RWY_MS)
#define FAIR_QUEUES    2
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

/* Time until the last completion. */
static rwy_dur took(const struct run *r)
{
	rwy_dur most = 0;

	for (unsigned i = 0; i < r->qps - r->bad_qps; i++)
		for (unsigned j = 0; j < 2; j++)
			if (r->qp[i][j].done && r->qp[i][j].done_at - r->round_at > most)
				most = r->qp[i][j].done_at - r->round_at;
	return most;
}

/* Nothing has happened that may cost a connection. `spare`: what may not, besides. */
static bool mild(const struct run *r, uint64_t spare)
{
	/* Pairs that were whole survive what ends a gateway. */
	if (r->faults & F_STANDBY)
		spare |= r->pair_bare ? 0 : F_CRASH_NEAR | F_CRASH_FAR | F_PAUSE;
	return !(r->faults & ~(F_MILD | F_STANDBY | spare)) && !r->pair_bare;
}

static void check_side(struct run *r, struct side *s, struct side *p)
{
	const struct rc_host_bad *b = &s->h.bad;

	/* When a host's QPN is forgotten with its tenant, and its peer has sent all that it will (a
	 * gap's one NAK, or an error), nobody can tell the host. Its own retries end it. */
	if (s->done < s->wrs && !side_dead(s) && !(side_removed(r, s) && s->h.cfg.retry == 7))
		sim_fail(r, "hangs: not complete and no error", s, s->idx);
	/* Rounds with F_REUSE end before a silent host has been asked for long enough. */
	if (!(r->faults & F_REUSE) && p->gone && !s->gone && !side_dead(s) && !side_removed(r, s) &&
	    roce_psn_after(s->h.una, p->gone_psn))
		sim_fail(r, "not told that what was acknowledged is lost", s, s->idx);
	if (s->gone || (p->gone && !(r->faults & F_TOLD)))
		return; /* without a hang; more cannot be expected of the other side */
	sim_check_uncarried(r, s);
	if (side_dead(s) && mild(r, F_SQUEEZE) && !side_removed(r, s) && !sim_refused(r, s))
		sim_fail(r, "an error without a fault", s, s->idx);
	if (mild(r, 0) && !r->pair_hit && !side_removed(r, s) &&
	    (b->ghost || b->ack || b->opcode || b->length))
		sim_fail(r, "a host saw what no right peer sends", s,
		    b->ghost * 1000 + b->ack * 100 + b->opcode * 10 + b->length);
	sim_check_direction(r, s, p);
}

/* A chain ends with the queue pair whose completion would have posted the next operation. */
static void end_chains(struct run *r)
{
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			if (!r->qp[i][j].gone)
				r->qp[i][j].wrs = r->qp[i][j].posted;
}

static void check(struct run *r)
{
	times(r);
	if (r->faults & F_CAUSAL)
		end_chains(r);
	for (unsigned i = 0; i < r->qps; i++) {
		for (unsigned j = 0; j < 2; j++)
			sim_recall_memory(&r->qp[i][j]);
		for (unsigned j = 0; j < 2 && !sim_is_bad(r, &r->qp[i][j]); j++)
			check_side(r, &r->qp[i][j], &r->qp[i][!j]);
	}
}

/* --- rounds ------------------------------------------------------------------------------------------- */

void sim_post_qp(struct run *r, struct side *s)
{
	for (unsigned j = 0; j < 2; j++) {
		for (unsigned k = 0; k < s[j].wrs; k++)
			rc_host_post(&s[j].h, &s[j].wr[k]);
		sim_pump(r, &s[j]);
	}
}

static void post_all(struct run *r)
{
	if (r->faults & F_NIC) {
		sim_nic_begin(r);
		return;
	}
	if (r->faults & F_LATE) {
		sim_late_begin(r);
		return;
	}
	for (unsigned i = 0; i < r->qps; i++)
		sim_post_qp(r, r->qp[i]);
}

void sim_reset_qp(struct run *r, unsigned i)
{
	for (unsigned j = 0; j < 2; j++)
		rc_host_fini(&r->qp[i][j].h);
	sim_connect_qp(r, r->qp[i]);
	sim_post_qp(r, r->qp[i]);
}

static void connect_all(struct run *r)
{
	r->round++;
	r->round_at = sim_now(r->w);
	for (unsigned i = 0; i < r->qps; i++)
		sim_connect_qp(r, r->qp[i]);
}

static void begin_round(struct run *r, bool alone)
{
	connect_all(r);
	if (r->faults & F_CAUSAL)
		sim_chain_begin(r);
	else if (r->faults & F_CM)
		sim_cm_begin(r);
	else
		post_all(r);
	if ((r->faults & F_HOSTILE) && !alone)
		sim_hostile_begin(r);
}

/*
 * Resets all queue pairs in place: both sides at the same moment, without what is complete. They
 * have PSN 0 again and are ready to receive. They begin half a round trip later, when a message has
 * come from the other side.
 */
static void reset_qps(struct run *r)
{
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			rc_host_fini(&r->qp[i][j].h);
	connect_all(r);
	sim_run(
	    r->w, sim_now(r->w) + r->cfg.wan[0].delay + RWY_US * (50 + sim_below(&r->rng, 3000)), NULL, r);
	post_all(r);
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
	/* For 200 ms a late answer may be the old connection's, and NICs do not wait for long. */
	if ((r->faults & F_NIC) && !(r->faults & F_BEHIND))
		rtt += 250 * RWY_MS;
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
	begin_round(r, false);
}

/* Runs until everything is complete or has an error. */
static void run_round(struct run *r, rwy_time until)
{
	sim_run(r->w, until, sim_finished, r);
}

static void run_again(struct run *r)
{
	for (unsigned n = 1 + sim_below(&r->rng, 3); n-- && !r->why;) {
		if (r->faults & F_RESET_ALL)
			reset_qps(r);
		else
			reuse_qpns(r);
		run_round(r, sim_now(r->w) + 300 * RWY_SEC);
		/* the next reset forgets what is still under way */
		if ((r->faults & F_RESET_ALL) && n)
			continue;
		/* hosts have their ACKs early: with a small window at the far gateway the rest takes long */
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, sim_drained, r);
		check(r);
	}
}

/*
 * Until custody is empty. In mode `causal` requests wait for a host that does not answer, until its queue pair
 * is given up.
 */
static rwy_dur drain_time(const struct run *r)
{
	return r->cfg.ack_mode == ENG_ACK_CAUSAL ? 40 * RWY_SEC : 5 * RWY_SEC;
}

static void run_rounds(struct run *r, bool alone)
{
	begin_round(r, alone);
	run_round(r, 300 * RWY_SEC);
	if (r->faults & F_HOSTILE)
		sim_hostile_end(r);
	if ((r->faults & F_REUSE) && !r->why) {
		sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, sim_drained, r);
		check(r);
	}
	if ((r->faults & (F_REUSE | F_RESET_ALL)) && !r->why)
		run_again(r);
	/* A host that is gone is asked for some seconds before its peer is told. */
	if (r->faults & (F_HOST | F_IDLE))
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, sim_drained, r);
	/* After resets hosts have ACKs early; with a small window at the far gateway the rest takes long. */
	if (r->faults & F_RESET)
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, sim_drained, r);
	/* Where both sites lost their gateways, each asks the other one, who asks, too: for 5 s neither answers. */
	if ((r->faults & F_STANDBY) && !sim_drained(r))
		sim_run(r->w, sim_now(r->w) + 20 * RWY_SEC, sim_drained, r);
	/* Lets custody drain. */
	sim_run(r->w, sim_now(r->w) + (r->faults & F_TOLD ? TOLD : drain_time(r)), NULL, r);
	/* data for hosts that do not answer any more is given up later */
	if (r->removed && !r->why)
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, NULL, r);
	if (!r->why && !(r->faults & (F_REUSE | F_RESET_ALL)))
		check(r);
}

/* --- a run ------------------------------------------------------------------------------------------ */

static void draw_world(struct run *r, uint64_t seed, const struct how *how)
{
	uint64_t faults = r->faults;

	/* Mixed, so that neighbouring seeds draw different worlds. */
	r->rng.s = seed;
	r->rng.s = sim_next(&r->rng) ^ (uint64_t)faults << 32;
	sim_cfg_default(&r->cfg);
	r->cfg.seed = sim_next(&r->rng);
	r->cfg.verbose = how->verbose;
	r->cfg.hash = how->hash;
	r->cfg.tenants = faults & F_TENANTS;
	r->cfg.pairs = faults & F_STANDBY;
	sim_draw_links(r);
	r->cfg.keys = faults & F_KEYS;
	r->cfg.aead = how->aead;
	r->cfg.rekey = RWY_MS * (20 + (seed * 7919) % 500);
	r->cfg.renew = RWY_MS * (200 + (seed * 104729) % 3000);
	r->fault_at = RWY_SEC + RWY_MS * sim_below(&r->rng, 400);
	r->fault_site = faults & F_CRASH_FAR ? 1 : 0;
	if (faults & F_SMALL)
		sim_draw_small(r);
	if (faults & F_SQUEEZE)
		sim_draw_squeeze(r);
	if (faults & F_BOUNDS)
		sim_draw_bounds(r);
	if (faults & F_NIC) {
		sim_nic_links(r);
		if (!(faults & F_SQUEEZE))
			r->fault_at = RWY_SEC + NIC_START + RWY_MS * sim_below(&r->rng, 60);
	}
	if (faults & F_POOL)
		sim_pool_cfg(r);
	if (faults & F_HOSTILE) {
		r->cfg.reserve = sim_reserve(&r->cfg);
		r->cfg.same_weights = true;
		/* A small window takes its time from the queue of the WAN, not from its share. */
		r->cfg.custody_conn = r->cfg.custody_total;
	}
	if (faults & (F_CAUSAL | F_TOLD | F_RESET_ALL | F_CM))
		r->cfg.ack_mode = faults & F_CAUSAL ? ENG_ACK_CAUSAL : ENG_ACK_NEAR;
	if (faults & F_STANDBY)
		r->cfg.ack_mode = ENG_ACK_SITE;
	r->fault_end = r->fault_at + (faults & F_SQUEEZE ? SQUEEZE_OUTAGE
	                                 : faults & F_CM ? CM_OUTAGE
	                                                 : OUTAGE);
}

static void print_world(const struct run *r)
{
	for (unsigned i = 0; i < 2; i++)
		fprintf(stderr,
		    "wan from %c: delay %.1f ms rate %.1f MB/s queue %.0f ms loss %.3f burst %.0f reorder "
		    "%.3f dup %.3f corrupt %.3f mtu %u ack mode %d custody %llu rx_window %u buffers %u\n",
		    'A' + i, (double)r->cfg.wan[i].delay / 1e6, (double)r->cfg.wan[i].rate_Bps / 1e6,
		    (double)r->cfg.wan[i].queue / 1e6, r->cfg.wan[i].loss, r->cfg.wan[i].burst,
		    r->cfg.wan[i].reorder, r->cfg.wan[i].dup, r->cfg.wan[i].corrupt, r->cfg.wan_mtu,
		    r->cfg.ack_mode, (unsigned long long)r->cfg.custody_conn, r->cfg.rx_window,
		    r->cfg.buffers);
}

static void print_paths(const struct run *r, unsigned site)
{
	struct wan_path_stats p;

	for (unsigned k = 0; r->cfg.paths && eng_path_stats(sim_engine(r->w, site), 0, k, &p); k++)
		fprintf(stderr,
		    "site %c path %u: %s for %.3f s, %u silences, srtt %.1f ms, loss %u ppm, in flight %llu "
		    "of "
		    "%llu, sent %llu, received %llu, lost %llu, moved %llu\n",
		    'A' + site, k, p.state, (double)(sim_now(r->w) - p.since) / 1e9, p.silences,
		    (double)p.srtt / 1e6, p.loss_ppm, (unsigned long long)p.inflight,
		    (unsigned long long)p.cwnd, (unsigned long long)p.tx_datagrams,
		    (unsigned long long)p.rx_datagrams, (unsigned long long)p.lost,
		    (unsigned long long)p.moved);
}

static void print_buffers(const struct run *r, unsigned site)
{
	static const char *const kind[ENG_MEM_N] = {
#define X(k, name, text) name,
	    ENG_MEM_KINDS(X)
#undef X
	};
	struct eng_memory m;

	eng_memory(sim_engine(r->w, site), &m);
	fprintf(stderr, "site %c buffers:", 'A' + site);
	for (unsigned k = 0; k < ENG_MEM_N; k++)
		fprintf(stderr, " %s %u", kind[k], m.kind[k].bufs);
	fprintf(stderr, " cm %u reassembly %u fec %u dgrams %u order %u\n", m.cm, m.reassembly, m.fec,
	    m.dgrams, m.order);
}

static void print_counters(const struct run *r)
{
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
	for (unsigned i = 0; i < 2; i++) {
		print_paths(r, i);
		print_buffers(r, i);
	}
	if (r->faults & (F_MOVES | F_DETOUR))
		fprintf(stderr, "by the reliable carrier: %llu datagrams\n",
		    (unsigned long long)sim_streamed(r->w));
	if (r->cfg.buffers)
		fprintf(stderr, "no buffer for %llu packets\n", (unsigned long long)sim_no_buffer(r->w));
}

/* A gateway asks no host in its first 200 ms. */
static void warm_up(struct run *r)
{
	rwy_dur d = r->faults & F_NIC ? NIC_START : r->faults & F_SQUEEZE ? 300 * RWY_MS : 0;

	if (!d)
		return;
	r->silent = true;
	sim_run(r->w, sim_now(r->w) + d, NULL, r);
	r->silent = false;
}

static void run_world(struct run *r, const struct how *how)
{
	uint64_t faults = r->faults;

	r->change_at = r->move_at = r->drain_at = r->recv_at = r->cm_at = r->bad_at = r->path_at =
	    r->detour_at = r->begin_at = r->pair_at = r->cable_at = r->dies_at = r->mute_at = r->rate_at =
	        RWY_NEVER;
	if (faults & F_PATHS)
		sim_paths_draw(r);
	r->w = sim_new(&r->cfg, &sim_host_ops, r);
	if (how->verbose)
		print_world(r);
	sim_draw_qps(r);
	if (faults & F_SLOW)
		sim_draw_slow(r);
	if (faults & F_LATE)
		sim_draw_late(r);
	if (faults & F_STANDBY)
		sim_pairs_draw(r);
	if (faults & F_DRAIN)
		sim_drains_begin(r);
	if (faults & F_HOSTILE)
		sim_hostile_draw(r);
	if (faults & F_RATES)
		sim_rates_begin(r);
	warm_up(r);
	r->near = sim_early(r->cfg.ack_mode) ? ~0u : 0;
	if (faults & F_MOVES)
		r->move_at =
		    (faults & F_SQUEEZE ? r->fault_at : sim_now(r->w)) + RWY_MS * sim_below(&r->rng, 200);
	if (faults & F_DETOUR)
		sim_detours_begin(r, sim_now(r->w));
	if (faults & F_CHANGES)
		sim_changes_begin(r);
	run_rounds(r, how->alone);
}

static void check_end(struct run *r)
{
	sim_changes_end(r);
	if (!r->why && sim_accounts(r->w))
		sim_fail(r, sim_accounts(r->w), &r->qp[0][0], 0);
	if (!r->why && (r->faults & F_DETOUR) && sim_drained(r))
		sim_detours_end(r);
	if (!r->why && sim_drained(r)) /* otherwise data is still on its way to a dead host */
		sim_check_buffers(r, true);
	if (!r->why && !(r->faults & ~(F_TENANTS | F_CHANGES | F_MOVES | F_NIC | F_RNR | F_SMALL | F_DETOUR)))
		for (unsigned i = 0; i < 2; i++)
			if (eng_custody_bytes(sim_engine(r->w, i)))
				sim_fail(r, "custody is not empty at the end", &r->qp[0][i],
				    (unsigned)eng_custody_bytes(sim_engine(r->w, i)));
	for (unsigned i = 0; i < 2 && !(r->faults & ~(F_TENANTS | F_MOVES | F_SLOW | F_NIC | F_SMALL)); i++)
		if (eng_counters(sim_engine(r->w, i))->local_ack_timeout_err && !r->why)
			sim_fail(r, "a host that lost nothing was asked again", &r->qp[0][i],
			    (unsigned)eng_counters(sim_engine(r->w, i))->local_ack_timeout_err);
}

static void report(const struct run *r, uint64_t seed, const struct how *how)
{
	unsigned long long n = seed;

	if (how->verbose)
		print_counters(r);
	if (how->slow > 0 && r->slowest > how->slow)
		printf("slow seed=%llu faults=%llu: %.1f times what could be expected\n", n,
		    (unsigned long long)r->faults, r->slowest);
	if (r->why && !how->quiet)
		printf("FAIL seed=%llu faults=%llu t=%.3fs: %s%s%s: %s\n  repeat: rwysim --seed %llu "
		       "--faults %llu "
		       "--verbose\n",
		    n, (unsigned long long)r->faults, (double)sim_now(r->w) / 1e9, sim_hostile_way(r),
		    r->faults & F_HOSTILE ? " host: " : "", r->why, r->detail, n,
		    (unsigned long long)r->faults);
	if (how->hash)
		printf("seed %llu faults %llu hash %016llx end %.9f %s\n", n, (unsigned long long)r->faults,
		    (unsigned long long)sim_hash(r->w), (double)sim_now(r->w) / 1e9, r->why ? r->why : "ok");
}

static void count(const struct run *r, const struct how *how)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct wan_counters *c = eng_tunnel_counters(sim_engine(r->w, i), 0);

		*how->runs += c ? c->tx_runs : 0;
		*how->detours += c ? c->retransmit_detour : 0;
	}
}

/* Adds what a kind needs, and removes what it excludes. */
static uint64_t complete_faults(uint64_t faults)
{
	if (faults & F_SQUEEZE) /* its hosts have NICs' timers, and no READs */
		faults &= ~(uint64_t)(F_SLOW | F_BOUNDS);
	if (faults & F_HOSTILE)
		faults |= F_NIC | F_POOL;
	if (faults & F_BEHIND)
		faults |= F_NIC;
	/* Hosts that give up while another one is late, and old packets in the ring of a host that
	 * uses its QPN again. */
	if (faults & (F_SQUEEZE | F_NIC | F_REUSE | F_RESETS))
		faults &= ~(uint64_t)F_LATE;
	/* A slow host's answer waits for seconds behind its own messages, and no turn is as long. */
	if (faults & F_LATE)
		faults &= ~(uint64_t)F_SLOW;
	/* Not drawn with pairs yet, or another ack mode. NICs may give up while a standby gets keys. */
	if (faults & F_STANDBY)
		faults &= ~(uint64_t)(F_MOVES | F_DRAIN | F_DRAIN_CUT | F_CAUSAL | F_HOSTILE | F_SQUEEZE |
		                      F_BEHIND | (faults & F_NIC ? F_KEYS : 0));
	/* A reservation makes hosts wait: not for those that give up soon, or beside one that is judged
	 * by its time. */
	if (faults & (F_NIC | F_SQUEEZE | F_HOSTILE))
		faults &= ~F_RATES;
	/* Where so much is lost, hosts that give up soon do. */
	if (faults & (F_NIC | F_SQUEEZE | F_HOSTILE | F_STANDBY))
		faults &= ~F_DETOUR;
	if (faults & F_POOL) /* its bounds follow from the buffers */
		faults &= ~(uint64_t)F_BOUNDS;
	return faults;
}

bool sim_run_seed(uint64_t seed, uint64_t faults, const struct how *how)
{
	struct run *r = calloc(1, sizeof(*r));
	rwy_dur alone = 0;
	uint64_t left;
	bool ok;

	r->faults = faults = complete_faults(faults);
	if ((faults & F_HOSTILE) && !how->alone)
		sim_run_seed(seed, faults, &(struct how){.quiet = true, .alone = true, .took = &alone});
	r->verbose = how->verbose;
	draw_world(r, seed, how);
	run_world(r, how);
	if (alone && took(r) > FAIR * alone + FAIR_MORE +
	                           FAIR_QUEUES * rwy_time_max(r->cfg.wan[0].queue, r->cfg.wan[1].queue))
		sim_fail(
		    r, "a host took more than its share", &r->qp[0][0], (unsigned)(took(r) * 100 / alone));
	if (how->took)
		*how->took = took(r);
	check_end(r);
	if (how->runs)
		count(r, how);
	report(r, seed, how);
	ok = !r->why;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			rc_host_fini(&r->qp[i][j].h);
	left = sim_end(r->w);
	if (left && ok) {
		printf("FAIL seed=%llu faults=%llu: %llu buffers leaked\n", (unsigned long long)seed,
		    (unsigned long long)faults, (unsigned long long)left);
		ok = false;
	}
	free(r);
	return ok;
}
