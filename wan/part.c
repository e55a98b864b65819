/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a tunnel's rates that this half has, and the part that it would use (lease.h). */
#include "wan/lease.h"
#include "wan/tunnel.h"

#define NEAR_PARTS 8u  /* a path within this part of its limit sends as much as it may */
#define GROWS      2u  /* what is used so many times is wanted, so that a rate can grow */
#define SAME_PARTS 64u /* a larger part by less than this of it is not worth a new rate */

void wan_retune_part(struct wan_tunnel *t, uint32_t part)
{
	const uint32_t before = t->cfg.part ? t->cfg.part : WAN_LEASE_WHOLE;

	if (part == before || (part > before && part - before < before / SAME_PARTS))
		return;
	wan_stir(t);
	t->cfg.part = part;
	for (unsigned i = 0; i < t->paths; i++)
		wan_path_limits(&t->path[i]);
}

/* Bytes a second that the path would send. */
static uint64_t path_wants(const struct wan_path *p, uint64_t sent, rwy_dur span, uint64_t whole)
{
	const uint64_t limit = wan_path_cc_cfg(p).rate_Bps;

	if (!p->pace.backlog)
		return GROWS * sent * RWY_SEC / span;
	return p->rate_Bps + limit / NEAR_PARTS >= limit ? whole : GROWS * p->rate_Bps;
}

uint32_t wan_part_wanted(struct wan_tunnel *t, rwy_dur span)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];
		const uint64_t whole = wan_path_whole_Bps(p), sent = p->sent_bytes - p->sent_noted;

		p->sent_noted = p->sent_bytes;
		if (!whole || !span || !wan_path_usable(p))
			continue;
		const uint64_t wants = path_wants(p, sent, span, whole);

		most = most > wants * WAN_LEASE_WHOLE / whole ? most : wants * WAN_LEASE_WHOLE / whole;
	}
	return most < WAN_LEASE_WHOLE ? (uint32_t)most : WAN_LEASE_WHOLE;
}
