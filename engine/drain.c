/* SPDX-License-Identifier: Apache-2.0 */
/* End to end (cc/drain.h): requests that wait here for a host bound those under way to here. */
#include "engine/requester.h"

void eng_drain(struct eng_requester *rq, rwy_time now)
{
	const struct roce_reqr *r = &rq->reqr;
	uint64_t waits = 0;

	if (!rq->requests || !rq->side.e->cfg.e2e)
		return;
	if (r->q.n > r->inflight)
		waits = r->q.bytes / r->q.n * (r->q.n - r->inflight);
	if (cc_drain_update(
	        &rq->drain, waits, rq->bytes, rq->side.e->tunnel[rq->side.tunnel].min_rtt + RWY_MS / 8, now))
		wan_rx_window(rq->requests, cc_drain_window(&rq->drain), rq->drain.rate_Bps);
}
