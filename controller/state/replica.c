/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This replica as the others see it. One that cannot renew its lease in the store is gone for them,
 * and its gateways have one term to come to another one. So it must send them away; and it cannot
 * store that one of them is lost.
 */
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/pair.h"

static bool has_others(const struct ctlr *c)
{
	return c->replicas.n > !!ctlr_map_find(&c->replicas, c->conf->name);
}

/* The others' records may have gone, too, while the store was out of reach for all. */
bool ctlr_replica_cut_off(const struct ctlr *c)
{
	return (c->had_others || has_others(c)) &&
	       rwy_since(c->renewed, ctlr_now()) > CTLR_REPLICA_TTL * RWY_MS;
}

/* All replicas may have been cut off. Then gateways found none, and ask again after some time. */
static void give_grace(struct ctlr *c)
{
	struct ctlr_gateway *g;
	struct ctlr_pair *p;

	c->grace_until = ctlr_now() + c->conf->grace;
	CTLR_MAP_EACH(&c->gateways, g)
	{
		g->expires = rwy_time_max(g->expires, c->grace_until);
	}
	CTLR_MAP_EACH(&c->pairs, p)
	{
		for (unsigned k = 0; k < PLAN_MEMBERS; k++)
			p->member[k].expires = rwy_time_max(p->member[k].expires, c->grace_until);
	}
}

void ctlr_replica_renewed(struct ctlr *c, rwy_time at)
{
	if (ctlr_replica_cut_off(c)) {
		ctlr_event(c, EVENT_INFO, "replica", c->conf->name, "is in touch with the store again");
		give_grace(c);
	}
	c->renewed = at;
	c->had_others = has_others(c);
}
