/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which gateway is the witness of a pair. While one is asked who serves, no other one may answer:
 * it does not know what the first one has told the other gateway of the pair. Its tunnel stays for
 * WITNESS_STAYS after somebody has taken it away. Meanwhile the other tunnels have the claim HOLD:
 * a standby that the witness let take over takes them as well, and this gateway hears of that
 * before it asks the next witness.
 */
#include "engine/standby.h"

/*
 * The standby leaves it first: a witness that answers again after the active gateway has asked the
 * next one must not let the standby take over.
 */
#define WITNESS_STAYS        (5 * RWY_SEC)
#define WITNESS_STAYS_TAKING (3 * RWY_SEC)

bool eng_sb_asks_who(const struct eng *e)
{
	return e->sb.state == ENG_SB_LOSING || e->sb.state == ENG_SB_YIELDING || e->sb.state == ENG_SB_TAKING;
}

unsigned eng_sb_witness(const struct eng *e)
{
	const struct eng_tunnel_cfg *cfg = e->cfg.tunnel;
	unsigned w = ENG_SB_NO_WITNESS;

	if (e->sb.pinned)
		return e->sb.pinned - 1u;
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		if (!e->tunnel[i].wan || e->tunnel[i].leaves || eng_sb_is_pair(e, i))
			continue;
		if (!cfg[i].late)
			return i;
		if (w == ENG_SB_NO_WITNESS || cfg[i].wan.tunnel_id < cfg[w].wan.tunnel_id)
			w = i;
	}
	return w;
}

void eng_sb_pin_witness(struct eng *e)
{
	unsigned w = eng_sb_witness(e);

	e->sb.pinned = (uint8_t)(eng_sb_asks_who(e) && w != ENG_SB_NO_WITNESS ? w + 1 : 0);
}

static rwy_dur stays(const struct eng *e)
{
	return e->sb.state == ENG_SB_TAKING ? WITNESS_STAYS_TAKING : WITNESS_STAYS;
}

bool eng_sb_witness_stays(const struct eng *e, unsigned tunnel, rwy_time now)
{
	return e->sb.pinned == tunnel + 1 && rwy_since(e->tunnel[tunnel].remove_at, now) < stays(e);
}

rwy_time eng_sb_witness_until(const struct eng *e)
{
	const struct eng_tunnel *t = e->sb.pinned ? &e->tunnel[e->sb.pinned - 1] : NULL;

	return t && t->removing && !t->leaves ? t->remove_at + stays(e) : RWY_NEVER;
}
