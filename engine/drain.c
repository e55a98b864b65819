/* SPDX-License-Identifier: Apache-2.0 */
/* End to end: what waits here for a host bounds what its sender's gateway may have under way (cc/drain.h).
 */
#include "engine/requester.h"

void eng_drain(struct eng_far *f, rwy_time now)
{
	const struct roce_reqr *r = &f->reqr;
	uint64_t waits = 0;

	if (!f->req || !f->h.e->cfg.e2e)
		return;
	if (r->q.n > r->inflight)
		waits = r->q.bytes / r->q.n * (r->q.n - r->inflight);
	if (cc_drain_update(&f->drain, waits, f->bytes, f->h.e->tun[f->h.tunnel].min_rtt + RWY_MS / 8, now))
		wan_rx_window(f->req, cc_drain_window(&f->drain), f->drain.rate_Bps);
}
