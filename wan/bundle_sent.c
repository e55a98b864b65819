/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle's packets are acknowledged or lost each as if it had been alone. */
#include "wan/tunnel.h"

/* Packet i of those behind the first, as if it had been alone. */
static struct wan_sent alone(const struct wan_path *p, const struct wan_sent *e, unsigned i)
{
	const struct wan_bundled *x = &p->bundled[e - p->sent];
	struct wan_sent s = *e;

	s.flow = x->v[i].flow;
	s.seq = x->v[i].seq;
	s.bundled = 0;
	return s;
}

void wan_bundle_on_acked(struct wan_path *p, const struct wan_sent *e, rwy_time now)
{
	for (unsigned i = 0; i < e->bundled; i++) {
		const struct wan_sent s = alone(p, e, i);

		wan_tx_on_acked(p->t, &s, now);
	}
}

bool wan_bundle_on_lost(struct wan_path *p, struct wan_sent *e, bool moved)
{
	for (e->queued += !e->queued; e->queued <= e->bundled; e->queued++) {
		const struct wan_sent s = alone(p, e, e->queued - 1u);

		if (!wan_tx_on_lost(p->t, &s, moved))
			return false;
	}
	return true;
}
