/* SPDX-License-Identifier: Apache-2.0 */
/* The lease that this half of a tunnel has now, and the one that it would use (lease.h). */
#include "wan/lease.h"
#include "wan/tunnel.h"

#define NEAR_PARTS 8u  /* a path within this part of its limit sends as much as it may */
#define GROWS      2u  /* times the rate in use: so much is wanted, so that the rate can grow */
#define SAME_PARTS 64u /* an increase below this part of the lease is ignored */

void wan_retune_lease(struct wan_tunnel *t, uint32_t lease)
{
	const uint32_t before = t->cfg.lease ? t->cfg.lease : WAN_LEASE_WHOLE;

	if (!lease || lease > WAN_LEASE_WHOLE || lease == before ||
	    (lease > before && lease - before < before / SAME_PARTS))
		return;
	wan_stir(t);
	t->cfg.lease = lease;
	for (unsigned i = 0; i < t->paths; i++)
		wan_path_limits(&t->path[i]);
}

/*
 * Bytes a second that the path would send. What is in flight counts as well: a window that shrank
 * with the lease may be closed.
 */
static uint64_t path_wants(const struct wan_path *p, uint64_t sent, rwy_dur span, uint64_t whole)
{
	const uint64_t limit = wan_path_cc_cfg(p).rate_Bps, used = sent * RWY_SEC / span;
	const uint64_t flows = wan_path_has_rtt(p) ? p->inflight * RWY_SEC / p->srtt : 0;

	if (used + limit / NEAR_PARTS >= limit)
		return whole;
	return GROWS * (used > flows ? used : flows);
}

uint32_t wan_lease_wanted(struct wan_tunnel *t, rwy_dur span)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];
		const uint64_t whole = wan_path_whole_Bps(p), sent = p->sent_bytes - p->sent_noted;

		p->sent_noted = p->sent_bytes;
		if (!whole || !span || !wan_path_usable(p))
			continue;
		uint64_t wants = path_wants(p, sent, span, whole);

		wants = wants < whole ? wants : whole;
		most = most > wants * WAN_LEASE_WHOLE / whole ? most : wants * WAN_LEASE_WHOLE / whole;
	}
	return (uint32_t)most;
}
