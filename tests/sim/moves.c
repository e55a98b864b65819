/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel that moves to a reliable carrier and back while connections run (F_MOVES), each end
 * alone, and a carrier that breaks with its packets. No host may notice.
 */
#include "tests/sim/explore.h"

#define EACH_MAX   250 /* ms between moves */
#define BREAKS     .2
#define ONLY_UNTIL (20 * RWY_SEC) /* from then on the carrier stays, and only breaks now and then */

void sim_moves_tick(struct run *r, rwy_time now)
{
	unsigned site;

	if (now < r->move_at)
		return;
	site = sim_below(&r->rng, 2);
	r->move_at = now + RWY_MS * (1 + sim_below(&r->rng, EACH_MAX));
	if (now > r->round_at + ONLY_UNTIL)
		r->move_at = RWY_NEVER;
	else if (sim_chance(&r->rng, BREAKS))
		sim_stream_break(r->w);
	else
		sim_stream(r->w, site, !sim_stream_on(r->w, site));
}
