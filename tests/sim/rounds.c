/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: queue pairs are connected, work, and are connected again. */
#include <string.h>

#include "tests/sim/explore.h"

/* Within this time a host is told of a loss: the retries of the gateway that asks the other host. */
#define TOLD (30 * RWY_SEC)

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
	else if (r->faults & F_WORKERS && !(r->faults & F_NIC))
		sim_cm_begin_some(r);
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

	if (r->faults & F_WORKERS && !(r->faults & F_CM))
		sim_cm_end_some(r);
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			rc_host_fini(&r->qp[i][j].h);
	/* Hosts fall silent: rc_host_fini() leaves a host without work. */
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			memset(&r->qp[i][j].h, 0, sizeof(r->qp[i][j].h));
			sim_cm_give_up(&r->qp[i][j]);
		}
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

/* No queue pair has an error on one side only. */
static bool both_told(void *ctx)
{
	const struct run *r = ctx;

	for (unsigned i = 0; i < r->qps; i++)
		if (side_dead(&r->qp[i][0]) != side_dead(&r->qp[i][1]))
			return false;
	return true;
}

/* A machine died in this round, or a gateway earlier: until hosts are told of what was lost. */
static void wait_told(struct run *r)
{
	if (r->faults & F_MACHINE && r->fault_round == r->round)
		sim_run(r->w, sim_now(r->w) + TOLD, NULL, r);
	else if (r->faults & F_CRASH && r->fault_done)
		sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, both_told, r);
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
		wait_told(r);
		sim_check(r);
	}
}

/*
 * Until custody is empty. In mode `causal` requests wait for a host that does not answer, until its queue pair
 * is given up. Without memory a host is told later. Pairs of gateways have waited already.
 */
static rwy_dur drain_time(const struct run *r)
{
	if (r->faults & (F_TOLD | F_MACHINE) || (r->faults & F_HEAP && !(r->faults & F_STANDBY)))
		return TOLD;
	/* A follower's tunnel is there later than the leader's, and what is lost is told 5 s after that. */
	if (r->faults & F_FOLLOWERS && r->pair_bare)
		return 10 * RWY_SEC;
	return r->cfg.ack_mode == ENG_ACK_CAUSAL ? 40 * RWY_SEC : 5 * RWY_SEC;
}

/* QPNs are used again before the far gateway tells of the connections that had them. */
static bool reused_soon(const struct run *r)
{
	return r->faults & F_MACHINE && r->cfg.seed & 2;
}

/* F_CHANGES: nothing is left of what the hosts sent, and of removed tenants. */
static bool nothing_left(void *ctx)
{
	struct run *r = ctx;

	return sim_drained(r) && sim_changes_over(r);
}

void sim_run_rounds(struct run *r, bool alone)
{
	begin_round(r, alone);
	run_round(r, 300 * RWY_SEC);
	if (r->faults & F_HOSTILE)
		sim_hostile_end(r);
	if ((r->faults & F_REUSE) && !r->why) {
		sim_run(r->w, sim_now(r->w) + 5 * RWY_SEC, sim_drained, r);
		if (!reused_soon(r)) {
			wait_told(r);
			sim_check(r);
		}
	}
	if ((r->faults & (F_REUSE | F_RESET_ALL)) && !r->why)
		run_again(r);
	/* A host that is gone is asked for some seconds before its peer is told. */
	if (r->faults & (F_HOST | F_IDLE))
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, sim_drained, r);
	/* After resets hosts have ACKs early; with a small window at the far gateway the rest takes long. */
	if (r->faults & F_RESET)
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, sim_drained, r);
	/* Where memory is short, all that needs a buffer comes again and again. */
	if (r->faults & F_HEAP)
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, sim_drained, r);
	/* Where both sites lost their gateways, each asks the other one, who asks, too: for 5 s neither answers. */
	if ((r->faults & F_STANDBY) && !sim_drained(r))
		sim_run(r->w, sim_now(r->w) + 20 * RWY_SEC, sim_drained, r);
	/* Lets custody drain. */
	sim_run(r->w, sim_now(r->w) + drain_time(r), NULL, r);
	/* data for hosts that do not answer any more is given up later */
	if (r->removed && !r->why)
		sim_run(r->w, sim_now(r->w) + 60 * RWY_SEC, r->faults & F_FOLLOWERS ? nothing_left : NULL, r);
	if (!r->why && !(r->faults & (F_REUSE | F_RESET_ALL)))
		sim_check(r);
}
