/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts of the explorer: their packets, their timers, and the faults when they are due. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/explore.h"
#include "tests/lib/rc_pkt.h"

void sim_fail(struct run *r, const char *why, const struct side *s, unsigned n)
{
	if (r->why)
		return;
	r->why = why;
	snprintf(r->detail, sizeof(r->detail), "qp %u at %c (%u), %u of %u done, status %d", s ? s->qpn : 0,
	    s ? 'A' + s->site : '?', n, s ? s->done : 0, s ? s->wrs : 0, s ? (int)s->status : 0);
}

void sim_completed(void *ctx, const struct rc_comp *c)
{
	struct side *s = ctx;

	if (c->recv)
		return;
	s->completed++;
	if (c->status != RC_OK) {
		if (!s->error)
			s->status = c->status;
		s->error = true;
		return;
	}
	if (c->id != s->done)
		sim_fail(s->run, "completions out of order", s, (unsigned)c->id);
	s->done++;
	s->done_at = sim_now(s->run->w);
}

static void note_due(struct run *r, const struct side *s)
{
	rwy_time *due = &r->due[0][0] + (s - &r->qp[0][0]),
	         at = side_silent(s) ? RWY_NEVER : rc_host_next(&s->h);

	if (r->busy[s->site][s->host] > sim_now(r->w) && !side_silent(s))
		/* then it may have more to send */
		at = rwy_time_min(at, r->busy[s->site][s->host]);
	if (*due == at)
		return;
	*due = at;
	r->due_known = false;
}

void sim_pump(struct run *r, struct side *s)
{
	uint8_t out[RC_PKT_MAX];
	uint32_t len;

	rwy_time *busy = &r->busy[s->site][s->host], now = sim_now(r->w);

	if (r->faults & F_CM)
		sim_cm_leave(r, s);
	while (!side_silent(s) && *busy <= now && (len = rc_host_output(&s->h, out, now))) {
		sim_print_packet(r, s, "sends", out, len);
		sim_marks_sent(r, s, out, now);
		sim_host_tx(r->w, s->site, s->tenant, out, len);
		if (r->slow[s->site][s->host])
			*busy = now + len * r->slow[s->site][s->host];
	}
	sim_causal_sent(r, s);
	note_due(r, s);
}

/* A packet for this host. */
static void take_packet(struct run *r, struct side *s, const struct roce_pkt *pkt, rwy_time now)
{
	roce_psn epsn = s->h.epsn;
	roce_msn msn = s->h.msn;

	sim_print_packet(r, s, "gets", pkt->ip, pkt->len);
	sim_marks_received(r, s, pkt, now);
	rc_host_packet(&s->h, pkt, now);
	if (s->h.epsn != epsn)
		sim_causal_executed(r, s, msn);
	sim_pump(r, s);
	if (r->faults & F_CAUSAL)
		sim_chain_tick(r);
	if (r->greeting)
		sim_nic_go_on(r);
}

static bool is_host(const struct rwy_ip *ip, unsigned site, unsigned host)
{
	struct rwy_ip want = sim_host_ip(site, host);

	return rwy_ip_eq(&want, ip);
}

/* One side of a queue pair is gone for ever, without a word. */
static void host_dies(struct run *r, struct side *s)
{
	struct rc_host_cfg cfg = s->h.cfg;

	s->gone_psn = s->h.epsn;
	rc_host_fini(&s->h);
	memset(&s->h, 0, sizeof(s->h));
	s->h.cfg = cfg;
	s->gone = true;
	s->wrs = s->done;
	note_due(r, s);
}

#define AGAIN (6 * RWY_SEC)

/*
 * F_MACHINE, in half of the seeds: the process after the one whose journal was lost dies, before or
 * after the far gateway told it of the connections.
 */
static void draw_again(struct run *r)
{
	const uint64_t at = r->cfg.seed >> 8;

	if (r->faults & F_MACHINE && !(r->cfg.seed & 4))
		r->again_at = sim_now(r->w) + RWY_MS * (300 + at % (AGAIN / RWY_MS));
}

/*
 * F_IDLE: s has ACKs for all that it asked for, and its peer, p, does not have all of that. Then p's
 * host dies, or the gateway of s with its machine.
 */
static void die_beside_idle(struct run *r, struct side *s, struct side *p)
{
	if (r->fault_done || !s->wrs || s->done < s->wrs || side_dead(s) ||
	    !roce_psn_after(s->h.una, p->h.epsn))
		return;
	r->fault_done = true;
	if (r->faults & F_MACHINE) {
		r->fault_site = s->site;
		r->fault_round = r->round;
		sim_crash(r->w, s->site, RWY_MS * (1 + sim_below(&r->rng, 300)));
		draw_again(r);
	} else {
		host_dies(r, p);
	}
}

#define RESETS 3

/* F_RESET: both sides of qp[i] have what they asked for, but not what the other one did. */
static void reset_when_complete(struct run *r, unsigned i)
{
	const struct side *a = &r->qp[i][0], *b = &r->qp[i][1];

	if (r->resets[i] >= RESETS || a->done < a->wrs || b->done < b->wrs || side_dead(a) || side_dead(b) ||
	    !(roce_psn_after(a->h.una, b->h.epsn) || roce_psn_after(b->h.una, a->h.epsn)))
		return;
	r->resets[i]++;
	sim_reset_qp(r, i);
}

static void host_rx(void *ctx, unsigned site, unsigned tenant, uint8_t *ip, uint32_t len, rwy_time now)
{
	struct run *r = ctx;
	struct roce_pkt pkt;

	if (len > RC_PKT_MAX || r->silent)
		return;
	if (!rc_pkt_read(ip, len, &pkt))
		return;
	if (pkt.dqpn == 1 && (r->faults & (F_CM | F_WORKERS))) {
		sim_cm_packet(r, site, &pkt);
		return;
	}
	for (unsigned i = 0; i < r->qps; i++) {
		struct side *s = &r->qp[i][site];

		if (s->qpn == pkt.dqpn && s->tenant == tenant && !side_silent(s) && !s->deaf &&
		    is_host(&pkt.dst, site, s->host) && is_host(&pkt.src, !site, r->qp[i][!site].host)) {
			take_packet(r, s, &pkt, now);
			if (r->faults & F_IDLE)
				die_beside_idle(r, s, &r->qp[i][!site]);
			if (r->faults & F_RESET)
				reset_when_complete(r, i);
			return;
		}
	}
}

/* The fault has its time. That of F_IDLE comes when a host is idle, and with F_MACHINE no other does. */
static bool comes_in_time(const struct run *r)
{
	return r->faults & ~(uint64_t)F_IDLE && !(r->faults & F_IDLE && r->faults & F_MACHINE);
}

/* The machine of an idle host's gateway may die in an outage, which has its time. */
static bool outage_beside(const struct run *r, rwy_time now)
{
	return r->faults & F_OUTAGE && !comes_in_time(r) && !r->outage && now >= r->fault_at &&
	       now < r->fault_end;
}

static void tick(void *ctx, rwy_time now)
{
	struct run *r = ctx;

	r->turn += r->faults & (F_SLOW | F_NIC) ? 1 : 0;
	for (unsigned k = 0; k < r->qps && !r->silent; k++)
		for (unsigned j = 0; j < 2; j++) {
			unsigned i = (k + r->turn) % r->qps;
			struct side *s = &r->qp[i][j];

			if (r->due[i][j] <= now && (r->faults & F_LATE) &&
			    sim_late_until(r, j, s->host) > now) {
				r->due[i][j] = sim_late_until(r, j, s->host);
				r->due_known = false;
			} else if (r->due[i][j] <= now) {
				rc_host_tick(&s->h, now);
				sim_pump(r, s);
			}
		}
	if (outage_beside(r, now)) {
		r->outage = true;
		sim_wan_down(r->w, true);
	}
	if (comes_in_time(r) && !r->fault_done && now >= r->fault_at) {
		r->fault_done = true;
		r->fault_round = r->round;
		r->outage = r->faults & (F_OUTAGE | F_SQUEEZE);
		if (r->outage)
			sim_wan_down(r->w, true);
		if (r->faults & F_STANDBY && r->faults & (F_CRASH | F_PAUSE))
			sim_pairs_note(r, r->fault_site);
		if (r->faults & (F_CRASH_NEAR | F_CRASH_FAR)) {
			sim_crash(r->w, r->fault_site, RWY_MS * (1 + sim_below(&r->rng, 300)));
			draw_again(r);
		}
		if (r->faults & F_PAUSE)
			sim_pause(r->w, sim_below(&r->rng, 2), RWY_MS * (1 + sim_below(&r->rng, 2000)));
		if (r->faults & F_HOST)
			host_dies(r, &r->qp[sim_below(&r->rng, r->qps)][sim_below(&r->rng, 2)]);
		for (unsigned i = 0; i < 2 && (r->faults & F_CRASH_BOTH); i++)
			sim_crash(r->w, i, RWY_MS * (1 + sim_below(&r->rng, 300)));
	}
	if (now >= r->again_at) {
		r->again_at = RWY_NEVER;
		sim_process_dies(r->w, r->fault_site, RWY_MS * (1 + (r->cfg.seed >> 24) % 300));
	}
	if (r->faults & F_CAUSAL)
		sim_chain_tick(r);
	if (r->greeting && !r->silent)
		sim_nic_go_on(r);
	if (!r->silent) {
		sim_changes_tick(r, now);
		sim_recvs_tick(r, now);
		sim_late_tick(r, now);
	}
	sim_cm_tick(r, now);
	sim_hostile_tick(r, now);
	sim_moves_tick(r, now);
	sim_detours_tick(r, now);
	sim_paths_tick(r, now);
	sim_drains_tick(r, now);
	sim_pairs_tick(r, now);
	sim_rates_tick(r, now);
	if (r->outage && now >= r->fault_end) {
		r->outage = false;
		sim_wan_down(r->w, false);
	}
}

static rwy_time first_due(struct run *r)
{
	rwy_time at = RWY_NEVER;

	for (unsigned i = 0; i < r->qps; i++)
		at = rwy_time_min(at, rwy_time_min(r->due[i][0], r->due[i][1]));
	r->due_first = at;
	r->due_known = true;
	return at;
}

static rwy_time next(void *ctx)
{
	struct run *r = ctx;
	rwy_time at = r->silent ? RWY_NEVER : r->due_known ? r->due_first : first_due(r);

	if (comes_in_time(r) ? !r->fault_done : r->faults & F_OUTAGE && sim_now(r->w) < r->fault_at)
		at = rwy_time_min(at, r->fault_at);
	else if (r->outage)
		at = rwy_time_min(at, r->fault_end);
	at = rwy_time_min(at, rwy_time_min(r->move_at, r->drain_at));
	at = rwy_time_min(at, r->detour_at);
	at = rwy_time_min(at, rwy_time_min(r->cm_at, r->bad_at));
	at = rwy_time_min(at, rwy_time_min(r->path_at, r->begin_at));
	at = rwy_time_min(at, rwy_time_min(r->pair_at, rwy_time_min(r->cable_at, r->both_at)));
	at = rwy_time_min(at, r->mend_at);
	at = rwy_time_min(at, rwy_time_min(r->dies_at, r->mute_at));
	at = rwy_time_min(at, rwy_time_min(r->rate_at, r->again_at));
	return r->silent ? at : rwy_time_min(at, rwy_time_min(r->change_at, r->recv_at));
}

const struct sim_ops sim_host_ops = {host_rx, tick, next, sim_host_ready};

bool sim_finished(void *ctx)
{
	struct run *r = ctx;

	if (r->faults & F_MASS)
		sim_check_buffers(r, false);
	if (r->faults & F_HOSTILE)
		sim_check_reserved(r);
	if (r->why)
		return true;
	if ((r->faults & F_CM) && !sim_cm_over(r))
		return false;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			if (r->qp[i][j].done < r->qp[i][j].wrs && !side_dead(&r->qp[i][j]) &&
			    !sim_is_bad(r, &r->qp[i][j]))
				return false;
	return true;
}

/* True if all that gateways acknowledged has reached the hosts. */
bool sim_drained(void *ctx)
{
	struct run *r = ctx;

	for (unsigned i = 0; i < 2; i++)
		if (!sim_engine(r->w, i) || !sim_served(r->w, i) || sim_custody(r->w, i))
			return false;
	return true;
}
