/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants that change, are removed and come back while their connections run (F_CHANGES). The plain
 * LAN, and tenants that only get another share, limit, memory or ack mode, must not notice. A
 * tenant that is removed at a site loses what that site held of it: operations may be missing from
 * some point on, until one of its hosts sends again and gets an error. The memory that it has
 * reached is right. A gateway of a pair may learn of a change later than the other one.
 */
#include "tests/sim/explore.h"

#define EACH_MAX (300 * RWY_MS)
#define STEPS    12

static void draw_share(struct run *r, struct sim_tenant *k)
{
	struct sim_rng *g = &r->rng;
	static const uint64_t rates[] = {0, 8000000, 30000000, 200000000};

	k->share = (struct wan_class_cfg){.weight = 1 + (uint32_t)sim_below(g, 20),
	    .guarantee_Bps = rates[sim_below(g, 4)],
	    .priority = (uint8_t)sim_below(g, WAN_PRIORITIES),
	    .limit_Bps = sim_chance(g, .5) ? 8000000u << sim_below(g, 6) : 0};
	if (k->share.limit_Bps && k->share.limit_Bps < k->share.guarantee_Bps)
		k->share.limit_Bps = k->share.guarantee_Bps;
	k->custody = sim_chance(g, .3) ? (8u << 10) << sim_below(g, 6) : r->cfg.custody_total;
}

/* An index that no tenant of the site has. */
static uint32_t draw_index(struct run *r, unsigned site)
{
	uint32_t idx;
	bool taken;

	do {
		idx = 1 + (uint32_t)sim_below(&r->rng, SIM_TENANT_IDX - 1);
		taken = false;
		for (unsigned t = 1; t <= SIM_TENANTS; t++) {
			const struct sim_tenant *k = sim_tenant(r->w, site, t);

			taken |= (k->there || !sim_tenant_gone(r->w, site, t)) && k->idx == idx;
		}
	} while (taken);
	return idx;
}

/* The gateway of a pair that did not know of the last change learns of it. */
static void apply_late(struct run *r)
{
	if (r->late_tenant)
		sim_tenant_apply_at(r->w, r->late_gateway, r->late_tenant);
	r->late_tenant = 0;
}

static void apply(struct run *r, unsigned site, unsigned t)
{
	if (!(r->faults & F_STANDBY) || r->late_tenant || sim_chance(&r->rng, .5)) {
		sim_tenant_apply(r->w, site, t);
		return;
	}
	r->late_gateway = site + 2 * sim_below(&r->rng, 2);
	r->late_tenant = t;
	sim_tenant_apply_at(r->w, r->late_gateway ^ 2, t);
}

/* The mode of a tenant that changes: one that its gateways may have. */
static enum eng_ack_mode draw_mode(struct run *r)
{
	const enum eng_ack_mode m = (enum eng_ack_mode)sim_below(&r->rng, r->faults & F_STANDBY ? 5 : 4);

	/* conf_check_tenant_connections() refuses it where workers share address pairs. */
	return m == ENG_ACK_CAUSAL && r->cfg.workers > 1 && !r->cfg.pairs && !r->cfg.by_pair ? ENG_ACK_NEAR
	                                                                                     : m;
}

static void come(struct run *r, unsigned site, unsigned t)
{
	struct sim_tenant *k = sim_tenant(r->w, site, t);

	if (k->there || !sim_tenant_gone(r->w, site, t))
		return;
	k->idx = draw_index(r, site);
	k->there = true;
	apply(r, site, t);
}

static void step(struct run *r)
{
	struct sim_rng *g = &r->rng;
	unsigned t = 1 + sim_below(g, SIM_TENANTS), site = sim_below(g, 2);
	struct sim_tenant *k = sim_tenant(r->w, site, t);

	if (!k->there) {
		come(r, site, t);
	} else if (t == r->mortal && sim_chance(g, .4)) {
		r->removed |= 1u << t;
		for (unsigned i = 0; i < 2; i++)
			if ((i == site || sim_chance(g, .3)) && sim_tenant(r->w, i, t)->there) {
				sim_tenant(r->w, i, t)->there = false;
				apply(r, i, t);
			}
	} else {
		draw_share(r, k);
		/*
		 * With F_SQUEEZE the outage is longer than these hosts wait for an answer. With F_MACHINE
		 * nobody knows that a mode was `near` a moment ago.
		 */
		if (sim_chance(g, .3) && !(r->faults & (F_SQUEEZE | F_MACHINE)))
			k->ack_mode = draw_mode(r);
		r->near |= sim_early(k->ack_mode) << t;
		apply(r, site, t);
	}
}

void sim_changes_begin(struct run *r)
{
	r->steps = STEPS;
	r->change_at = sim_now(r->w) + RWY_MS * sim_below(&r->rng, 400);
	r->mortal = sim_chance(&r->rng, .7) ? 1 + sim_below(&r->rng, SIM_TENANTS) : 0;
}

/* The last steps bring back every tenant that is missing, since hosts give up after some
 * retries. */
void sim_changes_tick(struct run *r, rwy_time now)
{
	if (now < r->change_at)
		return;
	r->change_at = now + 1 + sim_below(&r->rng, EACH_MAX);
	apply_late(r);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned t = 1; t <= SIM_TENANTS; t++)
			sim_tenant_gone(r->w, i, t);
	if (r->steps) {
		r->steps--;
		step(r);
		return;
	}
	bool all = true;

	for (unsigned i = 0; i < 2; i++)
		for (unsigned t = 1; t <= SIM_TENANTS; t++) {
			come(r, i, t);
			all &= sim_tenant(r->w, i, t)->there && !r->late_tenant;
		}
	if (all)
		r->change_at = RWY_NEVER;
}

bool sim_changes_over(struct run *r)
{
	bool over = r->change_at == RWY_NEVER;

	for (unsigned i = 0; i < 2 && over; i++)
		for (unsigned t = 1; t <= SIM_TENANTS; t++)
			over &= sim_tenant_gone(r->w, i, t);
	return over;
}

void sim_changes_end(struct run *r)
{
	for (unsigned i = 0; i < 2 && !r->why; i++)
		for (unsigned t = 1; t <= SIM_TENANTS; t++)
			if (!sim_tenant_gone(r->w, i, t))
				sim_fail(r, "a removed tenant's connections are not forgotten", NULL, t);
}
