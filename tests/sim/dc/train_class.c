/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guarantee for the training on the WAN. An operator would configure a tenant; here the flows of
 * the training's hosts get the class by hand, after the gateways have learned them.
 */
#include "engine/eng.h"
#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/train.h"

#define CLASS 1

static void classify(struct train *t, struct eng *e)
{
	struct dc *dc = t->dc;
	struct wan_class_cfg cfg = {
	    .guarantee_Bps = (uint64_t)(dc->s.wan / 8 * t->cfg.guarantee), .weight = 1};
	unsigned n = 0, want = (unsigned)t->cfg.tp;

	if (wan_class_set(e->tunnel[0].wan, CLASS, &cfg) != 0)
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
	if (t->cfg.split < t->cfg.stages && n != want)
		dc_violation(dc, "flows of the training in its class", n, want);
}

void train_class(struct train *t)
{
	for (unsigned i = 0; i < 2; i++)
		classify(t, dc_gw_engine(t->dc->gw[i]));
}
