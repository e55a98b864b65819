/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guarantee for the training on the WAN. An operator would configure a tenant; here the flows of
 * the training's hosts get the class by hand, after the gateways have learned them.
 */
#include "engine/eng.h"
#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/train.h"

#define CLASS 1

static void classify(struct train *t, struct eng *e, unsigned want)
{
	struct dc *dc = t->dc;
	struct wan_class_cfg cfg = {
	    .guarantee_Bps = (uint64_t)(dc->s.wan / 8 * t->cfg.guarantee), .weight = 1};
	unsigned n = 0;

	for (unsigned k = 0; k + 1 < dc->sites; k++)
		if (wan_class_set(e->tunnel[k].wan, CLASS, &cfg) != 0)
			dc_violation(dc, "a class that cannot be", cfg.guarantee_Bps, 0);
	for (uint32_t i = 0; i <= e->table_mask; i++)
		for (struct eng_side *side = e->table[i]; side; side = side->chain) {
			struct eng_responder *near = (struct eng_responder *)side;

			/* The greedy flows' hosts are on the last leaf; bytes.c makes the hosts'
			 * addresses. */
			if (side->is_requester || !near->requests ||
			    side->key.src.b[15] - 2u >= dc->per_site - dc->per_leaf)
				continue;
			wan_tx_class(near->requests, CLASS);
			n++;
		}
	if (n != want)
		dc_violation(dc, "flows of the training in its class", n, want);
}

/* To how many other sites the stages of a site send. */
static unsigned ways(const struct train *t, unsigned site)
{
	if (t->cfg.split >= t->cfg.stages)
		return 0;
	return (site > 0) + (site + 1 < t->dc->sites);
}

void train_class(struct train *t)
{
	for (unsigned i = 0; i < t->dc->sites; i++)
		classify(t, dc_gw_engine(t->dc->gw[i]), (unsigned)t->cfg.tp * ways(t, i));
}
