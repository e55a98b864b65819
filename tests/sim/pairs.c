/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each site has a pair of gateways (F_STANDBY). Gateways die, stand still, lose the cable between
 * them, and hand over. While both sites have a complete standby, nothing of that may cost a connection.
 */
#include "tests/sim/explore.h"

#define EACH_MAX 1500 /* ms from one of these to the next */

/* What happens to a pair. */
enum { DIES, DIES_SENDING, STANDBY_DIES, STANDS_STILL, CABLE, HANDS_OVER, HANDS_OVER_TO_DYING, WAYS };

void sim_pairs_draw(struct run *r)
{
	r->pair_rng.s = r->cfg.seed ^ 0x70616972;
	r->pair_steps = 1 + sim_below(&r->pair_rng, 3);
	r->pair_at = r->fault_at + RWY_MS * sim_below(&r->pair_rng, 100);
	r->cable_at = r->dies_at = RWY_NEVER;
	if (r->faults & (F_BOTH_DIE | F_CROSS)) {
		r->both_site = sim_below(&r->pair_rng, 2);
		r->both_at = r->fault_at + RWY_MS * sim_below(&r->pair_rng, 1000);
	}
}

/* The site has a gateway more that may not die before its pair is whole again. */
void sim_pairs_note(struct run *r, unsigned site)
{
	r->pair_bare |= !sim_paired(r->w, site) || !sim_paired(r->w, !site) || r->cable_at != RWY_NEVER;
	/* NICs that have no answer yet give up before a standby serves, and the far host is asked anew. */
	r->pair_bare |= r->greeting;
	/* Nor do NICs wait for a standby that exchanges keys first, as soon after its start. */
	r->pair_bare |= (r->faults & F_NIC) && (r->faults & F_KEYS) && !sim_standby_keyed(r->w, site);
	r->pair_hit = true;
}

/* The active gateway dies. Another one that stands still, and does not know of it, may go on. */
static void active_dies(struct run *r, unsigned site, rwy_dur away)
{
	r->pair_stale[site] |= sim_stale_twin(r->w, site);
	sim_crash(r->w, site, away);
}

static void step(struct run *r, rwy_time now)
{
	struct sim_rng *g = &r->pair_rng;
	unsigned site = sim_below(g, 2), way = sim_below(g, WAYS);
	rwy_dur d = RWY_MS * (1 + sim_below(g, sim_chance(g, .5) ? 60 : 1500));
	int heir;

	sim_pairs_note(r, site);
	switch (way) {
	case DIES:
		active_dies(r, site, d);
		return;
	case DIES_SENDING: /* what it sent last is lost on the cable, and not on the WAN */
		if (r->cable_at != RWY_NEVER)
			return;
		sim_cable_down(r->w, site, true);
		r->mute_site = site;
		r->mute_at = now + RWY_US * sim_below(g, 5000);
		r->cable_site = site;
		r->cable_at = r->mute_at + RWY_MS;
		return;
	case STANDBY_DIES:
		sim_crash_standby(r->w, site, d);
		return;
	case STANDS_STILL:
		sim_pause(r->w, site, d);
		return;
	case HANDS_OVER:
		(void)sim_hand_over(r->w, site);
		return;
	case HANDS_OVER_TO_DYING:
		heir = sim_hand_over(r->w, site);
		if (heir >= 0) {
			r->heir = heir;
			r->dies_at = now + d / 64;
		}
		return;
	case CABLE:
		if (r->cable_at != RWY_NEVER)
			return;
		r->cable_site = site;
		r->cable_at = now + d;
		sim_cable_down(r->w, site, true);
		return;
	}
}

/* The active gateways of both sites die: each standby is the witness of the other one. */
static void both_die(struct run *r, rwy_time now)
{
	struct sim_rng *g = &r->pair_rng;

	sim_pairs_note(r, r->both_site);
	/* With a gateway without a standby, and the far one, goes all that knew (docs/standby.md, "Limits"). */
	r->pair_stale[r->both_site] |= !sim_paired(r->w, r->both_site);
	active_dies(r, r->both_site, RWY_MS * (1 + sim_below(g, sim_chance(g, .5) ? 60 : 8000)));
	r->both_site = !r->both_site;
	r->both_at = r->both_n++ ? RWY_NEVER : now + RWY_US * sim_below(g, sim_chance(g, .5) ? 5000 : 50000);
}

/* Each gateway may ask for a word of one that is itself in question. */
static void cross(struct run *r, rwy_time now)
{
	struct sim_rng *g = &r->pair_rng;

	sim_pairs_note(r, r->both_site);
	if (sim_chance(g, .5))
		(void)sim_hand_over(r->w, r->both_site);
	else
		sim_cable_down(r->w, r->both_site, true);
	r->both_site = !r->both_site;
	if (!r->both_n++) {
		r->both_at = now + RWY_US * sim_below(g, sim_chance(g, .5) ? 5000 : 150000);
		return;
	}
	r->both_at = RWY_NEVER;
	r->mend_at = now + RWY_MS * (1 + sim_below(g, 3000));
}

static void mend(struct run *r)
{
	sim_cable_down(r->w, 0, false);
	sim_cable_down(r->w, 1, false);
	r->mend_at = RWY_NEVER;
}

void sim_pairs_tick(struct run *r, rwy_time now)
{
	if (!(r->faults & F_STANDBY))
		return;
	if (sim_two_served(r->w))
		sim_fail(r, "both gateways of a pair acknowledge alone", &r->qp[0][0], 0);
	if (now >= r->mute_at) {
		sim_crash(r->w, r->mute_site, RWY_MS * (1 + sim_below(&r->pair_rng, 1500)));
		r->mute_at = RWY_NEVER;
	}
	if (now >= r->cable_at) {
		sim_cable_down(r->w, r->cable_site, false);
		r->cable_at = RWY_NEVER;
	}
	if (now >= r->dies_at) { /* the one that was to take over, or does by now */
		sim_pairs_note(r, r->heir & 1);
		sim_crash_gateway(r->w, (unsigned)r->heir, RWY_SEC / 2);
		r->dies_at = RWY_NEVER;
	}
	if (now >= r->both_at && r->faults & F_CROSS)
		cross(r, now);
	else if (now >= r->both_at)
		both_die(r, now);
	if (now >= r->mend_at)
		mend(r);
	if (now < r->pair_at)
		return;
	r->pair_at = RWY_NEVER;
	if (!r->pair_steps || sim_finished(r))
		return;
	r->pair_steps--;
	step(r, now);
	r->pair_at = now + RWY_MS * (1 + sim_below(&r->pair_rng, EACH_MAX));
}
