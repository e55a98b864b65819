/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gateways that are drained and stopped while connections run, and start again (F_DRAIN). A drained
 * one may stop at any time: whatever a host was acknowledged is at its peer, and no connection ends.
 * Now and then a drain is cancelled. With F_DRAIN_CUT some are stopped before they are drained, as
 * SIGTERM's bound does it: that is a crash, whose journal is complete.
 */
#include "tests/sim/explore.h"

#define LOOKS  RWY_MS /* between two looks at a gateway that drains */
#define DRAINS 3
/*
 * With several workers a connection without CM has to be placed again behind each restart, at which
 * its host may time out twice, of seven times.
 */
#define DRAINS_WORKERS 2
#define PAUSE_MAX      800 /* ms from one drain to the next */
#define DOWN_MAX       300 /* ms that a stopped gateway is away */
#define BOUND_MAX      200 /* ms */

void sim_drains_begin(struct run *r)
{
	r->drains = r->faults & F_WORKERS ? DRAINS_WORKERS : DRAINS;
	r->drain_at = r->fault_at;
}

static void drain_begin(struct run *r, rwy_time now)
{
	unsigned first = sim_below(&r->rng, 2);
	bool both = sim_chance(&r->rng, .2);

	if (!sim_engine(r->w, first)) /* it is away: another time */
		return;
	r->drains--;
	r->drain_end = RWY_NEVER;
	r->drain_cancel = sim_chance(&r->rng, .2);
	if (r->drain_cancel || ((r->faults & F_DRAIN_CUT) && sim_chance(&r->rng, .5)))
		r->drain_end = now + RWY_MS * sim_below(&r->rng, BOUND_MAX);
	for (unsigned i = 0; i < 2; i++)
		if ((i == first || both) && sim_engine(r->w, i)) {
			r->draining[i] = true;
			sim_settle(r->w, i, true);
		}
}

/* What the hosts of a site were acknowledged is at their peers. */
static void check_promises(struct run *r, unsigned site)
{
	for (unsigned i = 0; i < r->qps; i++) {
		const struct side *s = &r->qp[i][site], *p = &r->qp[i][!site];

		if (!s->gone && !p->gone && !side_dead(s) && !side_dead(p) && !side_removed(r, s) &&
		    roce_psn_after(s->h.una, p->h.epsn))
			sim_fail(r, "a drained gateway owes its host something", s, i);
	}
}

static void look_at(struct run *r, unsigned site, rwy_time now)
{
	bool settled;

	if (!sim_engine(r->w, site)) { /* another fault ended it */
		r->draining[site] = false;
		return;
	}
	settled = sim_settled(r->w, site);
	if (!settled && now < r->drain_end)
		return;
	r->draining[site] = false;
	if (r->drain_cancel || sim_finished(r)) {
		sim_settle(r->w, site, false);
		return;
	}
	/* After a crash something may be lost; who was promised it is told, or was told. */
	if (settled && !(r->faults & (F_CRASH | F_DRAIN_CUT)))
		check_promises(r, site);
	sim_crash(r->w, site, RWY_MS * (1 + sim_below(&r->rng, DOWN_MAX)));
}

void sim_drains_tick(struct run *r, rwy_time now)
{
	if (now < r->drain_at)
		return;
	r->drain_at = now + LOOKS;
	if (!r->draining[0] && !r->draining[1] && sim_finished(r)) {
		r->drain_at = RWY_NEVER;
		return;
	}
	if (!r->draining[0] && !r->draining[1]) {
		drain_begin(r, now);
		return;
	}
	for (unsigned i = 0; i < 2; i++)
		if (r->draining[i])
			look_at(r, i, now);
	if (!r->draining[0] && !r->draining[1])
		r->drain_at = r->drains ? now + RWY_MS * (1 + sim_below(&r->rng, PAUSE_MAX)) : RWY_NEVER;
}
