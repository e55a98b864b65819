/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/eng.h"

void eng_lanes_tell(struct eng_tunnel *t)
{
	struct eng_lanes *l = t->e->cfg.lanes;
	const uint64_t peer = wan_peer_epoch(t->wan);

	if (!l || t->e->cfg.worker || atomic_load(&l->tunnel[t->idx].peer) == peer)
		return;
	atomic_store(&l->tunnel[t->idx].peer, peer);
	atomic_fetch_add(&l->changes, 1);
	t->e->ops->board_changed(t->e->ctx);
}

bool eng_lanes_missed_restart(struct eng_tunnel *t)
{
	struct eng_lanes *l = t->e->cfg.lanes;
	const uint64_t peer = wan_peer_epoch(t->wan);
	uint64_t first = 0;

	if (!l || t->met)
		return false;
	t->met = true;
	return !atomic_compare_exchange_strong(&l->tunnel[t->idx].first, &first, peer) && first != peer;
}

void eng_lanes_look(struct eng *e, rwy_time now)
{
	const uint32_t changes = atomic_load(&e->cfg.lanes->changes);

	if (changes == e->lanes_seen)
		return;
	e->lanes_seen = changes;
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tunnel[i].wan)
			wan_claim_led(e->tunnel[i].wan, atomic_load(&e->cfg.lanes->tunnel[i].peer), now);
}
