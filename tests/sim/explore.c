/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a world from a seed, runs it, and checks what must be true at its end. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/explore.h"
#include "tests/sim/heap.h"
#include "tests/sim/words.h"

/* NICs begin when the tunnel knows its round trip: before that a lost datagram is missed after 200
 * ms. */
#define NIC_START (1500 * RWY_MS)
#define CM_OUTAGE (8 * RWY_SEC)
/*
 * Beside a hostile host the others take at most FAIR times as long as alone, and FAIR_MORE more, and
 * FAIR_QUEUES times the WAN's queue, which one host may fill: once before their first packet, once
 * before the answer. Tenants have their shares of each worker's tunnel. These share the WAN like
 * strangers, of which one fills its queue while it looks for its rate: so it may be as much for each.
 */
#define FAIR           2.5
#define FAIR_MORE      (50 * RWY_MS)
#define FAIR_QUEUES    2
#define OUTAGE         (300 * RWY_MS)
#define SQUEEZE_OUTAGE (4 * RWY_SEC)

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
	r->cfg.no_journal = faults & F_MACHINE;
	r->cfg.pairs = faults & F_STANDBY;
	if (faults & F_WORKERS)
		r->cfg.workers = 2 + (unsigned)(seed * 7907 % 3);
	r->cfg.by_pair = faults & F_BY_PAIR;
	if (faults & F_FOLLOWERS)
		r->cfg.workers = SIM_PAIR_WORKERS; /* each has address pairs */
	/*
	 * One of eight worlds has slow gateways. NICs would not wait for them, and where QPNs are used
	 * again, packets of before would still be in their rings.
	 */
	if (faults & F_BURSTS && seed % 8 == 5 && !(faults & (F_NIC | F_REUSE)))
		r->cfg.turn = 2 * RWY_MS;
	else if (faults & F_BURSTS)
		r->cfg.turn = RWY_US * (2u << seed * 6971 % 6);
	r->mark_rng.s = r->cfg.seed ^ 0x6d61726b;
	sim_draw_links(r);
	r->cfg.keys = faults & F_KEYS;
	r->cfg.aead = how->aead;
	r->cfg.rekey = RWY_MS * (20 + (seed * 7919) % 500);
	r->cfg.renew = RWY_MS * (200 + (seed * 104729) % 3000);
	/* NICs may give up while a standby exchanges keys that it was not given. */
	r->cfg.standby_keys = seed % 2 || faults & F_NIC;
	r->again_at = RWY_NEVER;
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
	/* Workers that share address pairs keep no order between connections. */
	if (faults & F_WORKERS && !(faults & F_BY_PAIR) && r->cfg.ack_mode == ENG_ACK_CAUSAL)
		r->cfg.ack_mode = ENG_ACK_NEAR;
	/* Until the far gateway tells, later requests are executed although earlier ones are lost. */
	if (faults & F_MACHINE && r->cfg.ack_mode == ENG_ACK_CAUSAL)
		r->cfg.ack_mode = ENG_ACK_NEAR;
	if (faults & F_STANDBY)
		r->cfg.ack_mode = ENG_ACK_SITE;
	r->fault_end = r->fault_at + (faults & F_SQUEEZE ? SQUEEZE_OUTAGE
	                                 : faults & F_CM ? CM_OUTAGE
	                                                 : OUTAGE);
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
	    r->detour_at = r->begin_at = r->pair_at = r->cable_at = r->dies_at = r->mute_at = r->both_at =
	        r->mend_at = r->rate_at = RWY_NEVER;
	if (faults & F_PATHS)
		sim_paths_draw(r);
	r->w = sim_new(&r->cfg, &sim_host_ops, r);
	if (how->verbose)
		sim_print_world(r);
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
	sim_run_rounds(r, how->alone);
}

/*
 * The most that the other hosts may take beside the hostile one, which took `alone` without it. By
 * address pair two workers send: the others' and its own.
 */
static rwy_dur fair(const struct run *r, rwy_dur alone)
{
	const bool by_qp = r->faults & F_WORKERS && !(r->faults & F_BY_PAIR);
	const unsigned tunnels = r->cfg.workers < 2 ? 1 : by_qp ? r->cfg.workers : 2;

	return tunnels * (FAIR * alone + FAIR_MORE) +
	       FAIR_QUEUES * rwy_time_max(r->cfg.wan[0].queue, r->cfg.wan[1].queue);
}

static void report(const struct run *r, uint64_t seed, const struct how *how)
{
	unsigned long long n = seed;
	char faults[SIM_WORDS_MAX];

	sim_words_of(r->faults, faults);
	if (how->verbose)
		sim_print_counters(r);
	if (how->slow > 0 && r->slowest > how->slow)
		printf(
		    "slow seed=%llu faults=%s: %.1f times what could be expected\n", n, faults, r->slowest);
	if (r->why && !how->quiet)
		printf("FAIL seed=%llu faults=%s t=%.3fs: %s%s%s: %s\n"
		       "  repeat: rwysim --seed %llu --faults %s --verbose\n",
		    n, faults, (double)sim_now(r->w) / 1e9, sim_hostile_way(r),
		    r->faults & F_HOSTILE ? " host: " : "", r->why, r->detail, n, faults);
	if (how->hash)
		printf("seed %llu faults %s hash %016llx end %.9f %s\n", n, faults,
		    (unsigned long long)sim_hash(r->w), (double)sim_now(r->w) / 1e9, r->why ? r->why : "ok");
}

static void count(const struct run *r, const struct how *how)
{
	for (unsigned i = 0; i < 2 * sim_workers(r->w); i++) {
		const struct wan_counters *c = eng_tunnel_counters(sim_worker(r->w, i % 2, i / 2), 0);

		*how->runs += c ? c->tx_runs + c->tx_bundles : 0;
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
	/* A carrier may be broken, unnoticed, and a gateway away, for longer than NICs wait. */
	if (faults & F_NIC)
		faults &= ~(uint64_t)(F_SQUEEZE | F_MOVES | F_DRAIN | F_DRAIN_CUT);
	/* Hosts that give up while another one is late, and old packets in the ring of a host that
	 * uses its QPN again. */
	if (faults & (F_SQUEEZE | F_NIC | F_REUSE | F_RESETS))
		faults &= ~(uint64_t)F_LATE;
	/* A slow host's answer waits for seconds behind its own messages, and no turn is as long. */
	if (faults & F_LATE)
		faults &= ~(uint64_t)F_SLOW;
	/* Not drawn with pairs yet, or another ack mode. */
	if (faults & F_STANDBY)
		faults &= ~(uint64_t)(F_DRAIN | F_DRAIN_CUT | F_CAUSAL | F_BEHIND);
	else
		faults &= ~(F_BOTH_DIE | F_CROSS);
	/* Not drawn with pairs yet, nor where both sites lose theirs, or order matters. */
	if (faults & F_STANDBY)
		faults &= ~F_MACHINE;
	else if (faults & (F_CRASH_BOTH | F_CAUSAL | F_DRAIN_CUT))
		faults &= ~F_MACHINE;
	else if (faults & F_MACHINE && !(faults & (F_CRASH | F_DRAIN)))
		faults |= F_IDLE;
	/* A reservation makes hosts wait: not for those that give up soon, or beside one that is judged
	 * by its time. */
	if (faults & (F_NIC | F_SQUEEZE | F_HOSTILE))
		faults &= ~F_RATES;
	/* Where so much is lost, hosts that give up soon do. */
	if (faults & (F_NIC | F_SQUEEZE | F_HOSTILE | F_STANDBY))
		faults &= ~F_DETOUR;
	/* A host that is sent to more slowly answers READs later than NICs wait. */
	if (faults & (F_NIC | F_SQUEEZE))
		faults &= ~F_MARKS;
	if (faults & F_WORKERS) /* the reasons: docs/simulator.md, "Tenth worlds" */
		faults &= ~(F_STANDBY | F_BOTH_DIE | F_CROSS);
	else
		faults &= ~F_BY_PAIR;
	if (faults & F_WORKERS && faults & F_CAUSAL) /* conf_check_connections() refuses it by queue pair */
		faults |= F_BY_PAIR;
	if (faults & F_WORKERS && faults & F_NIC && faults & F_REUSE) /* gateways cannot tell them apart */
		faults |= F_CM;
	if (!(faults & F_STANDBY))
		faults &= ~F_FOLLOWERS;
	if (faults & F_HEAP) /* a reservation that finds no memory passes for a fault */
		faults &= ~(uint64_t)F_RATES;
	if (faults & F_POOL) /* its bounds follow from the buffers */
		faults &= ~(uint64_t)F_BOUNDS;
	return faults;
}

/*
 * One allocation of so many fails. Each message of a datagram with several needs one, and the path
 * looks as lossy as that: with one of four it would hardly carry anything.
 */
static uint32_t one_in(uint64_t seed, uint64_t faults)
{
	return faults & F_SMALL ? 16u << seed % 5 : 4u << seed % 7;
}

bool sim_run_seed(uint64_t seed, uint64_t faults, const struct how *how)
{
	struct run *r = calloc(1, sizeof(*r));
	char words[SIM_WORDS_MAX];
	rwy_dur alone = 0;
	uint64_t left;
	bool ok;

	r->faults = faults = complete_faults(faults);
	if ((faults & F_HOSTILE) && !how->alone)
		sim_run_seed(seed, faults, &(struct how){.quiet = true, .alone = true, .took = &alone});
	r->verbose = how->verbose;
	r->packets = how->packets;
	draw_world(r, seed, how);
	sim_heap_short(faults & F_HEAP ? one_in(seed, faults) : 0, seed);
	run_world(r, how);
	sim_heap_short(0, 0);
	/* A takeover takes its time from either run. */
	if (alone && !r->pair_hit && sim_took(r) > fair(r, alone))
		sim_fail(r, "a host took more than its share", &r->qp[0][0],
		    (unsigned)(sim_took(r) * 100 / alone));
	if (how->took)
		*how->took = sim_took(r);
	sim_check_end(r);
	if (how->runs)
		count(r, how);
	report(r, seed, how);
	ok = !r->why;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			rc_host_fini(&r->qp[i][j].h);
	left = sim_end(r->w);
	if (left && ok) {
		sim_words_of(faults, words);
		printf("FAIL seed=%llu faults=%s: %llu buffers leaked\n", (unsigned long long)seed, words,
		    (unsigned long long)left);
		ok = false;
	}
	free(r);
	return ok;
}
