/* SPDX-License-Identifier: Apache-2.0 */
/* What must be true at the end of a round, and of a world. */
#include <stdio.h>

#include "tests/sim/explore.h"

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
rwy_dur sim_took(const struct run *r)
{
	rwy_dur most = 0;

	for (unsigned i = 0; i < r->qps - r->bad_qps; i++)
		for (unsigned j = 0; j < 2; j++)
			if (r->qp[i][j].done && r->qp[i][j].done_at - r->round_at > most)
				most = r->qp[i][j].done_at - r->round_at;
	return most;
}

/* --- the end of a round ----------------------------------------------------------------------- */

/* Nothing has happened that may cost a connection. `spare`: what may not, besides. */
static bool mild(const struct run *r, uint64_t spare)
{
	/* Connections that began after a machine had died. */
	if (r->faults & F_MACHINE && r->fault_round && r->round > r->fault_round)
		spare |= F_CRASH_NEAR | F_CRASH_FAR | F_IDLE;
	/* Pairs that were whole survive what ends a gateway. */
	if (r->faults & F_STANDBY)
		spare |= r->pair_bare ? 0 : F_CRASH_NEAR | F_CRASH_FAR | F_PAUSE;
	return !(r->faults & ~(F_MILD | F_STANDBY | spare)) && !r->pair_bare;
}

/* F_CHANGES: a tenant of a pair whose mode was another one for a while. */
static bool not_copied(const struct run *r, const struct side *s)
{
	return r->faults & F_STANDBY && r->faults & F_CHANGES && r->pair_hit && r->near >> s->tenant & 1;
}

static void check_side(struct run *r, struct side *s, struct side *p)
{
	const struct rc_host_bad *b = &s->h.bad;
	/* During the long outage a pair cannot ask its witness, and acknowledges nothing meanwhile. */
	const bool calm = mild(r, r->pair_hit ? 0 : F_SQUEEZE);

	/* When a host's QPN is forgotten with its tenant, and its peer has sent all that it will (a
	 * gap's one NAK, or an error), nobody can tell the host. Its own retries end it. */
	if (s->done < s->wrs && !side_dead(s) && !(side_removed(r, s) && s->h.cfg.retry == 7))
		sim_fail(r, "hangs: not complete and no error", s, s->idx);
	/* Rounds with F_REUSE end before a silent host has been asked for long enough. */
	if (!(r->faults & F_REUSE) && p->gone && !side_silent(s) && !side_dead(s) && !side_removed(r, s) &&
	    roce_psn_after(s->h.una, p->gone_psn))
		sim_fail(r, "not told that what was acknowledged is lost", s, s->idx);
	if (s->gone || (p->gone && !(r->faults & F_TOLD)))
		return; /* without a hang; more cannot be expected of the other side */
	sim_check_uncarried(r, s, calm);
	if (side_dead(s) && calm && !side_removed(r, s) && !sim_refused(r, s) && !not_copied(r, s))
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

void sim_check(struct run *r)
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

/* --- the end of a world ----------------------------------------------------------------------- */

/*
 * Hosts that lose nothing are not asked again. But the answer of a slow host may wait behind its own
 * messages, which a gateway cannot know: of the requests to all hosts of a site, one in a hundred
 * may come again.
 */
static unsigned asked_again_at_most(const struct run *r, unsigned site)
{
	unsigned requests = 0;

	for (unsigned i = 0; i < r->qps; i++)
		requests += r->qp[i][!site].wrs;
	return r->faults & F_SLOW ? requests / 100 : 0;
}

void sim_check_end(struct run *r)
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
			if (sim_custody(r->w, i))
				sim_fail(r, "custody is not empty at the end", &r->qp[0][i],
				    (unsigned)sim_custody(r->w, i));
	for (unsigned i = 0; i < 2 && !(r->faults & ~(F_TENANTS | F_MOVES | F_SLOW | F_NIC | F_SMALL)); i++)
		if (eng_counters(sim_engine(r->w, i))->local_ack_timeout_err > asked_again_at_most(r, i) &&
		    !r->why)
			sim_fail(r, "a host that lost nothing was asked again", &r->qp[0][i],
			    (unsigned)eng_counters(sim_engine(r->w, i))->local_ack_timeout_err);
}
