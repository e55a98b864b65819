/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the two ways has the queue? An ACK says when, by the receiver's clock, the newest datagram
 * arrived; that minus when it was sent, by ours, is the time there and the difference of the clocks, and what
 * is left of the round trip the time back and the same difference with the other sign. Neither is known, but
 * how much more the way back takes than when the round trip was smallest is (as RFC 6817 does for the way
 * there). A queue on the way back is not made by what we send, so congestion control must not answer it.
 *
 * Clocks that run apart: the time back is taken anew each time the round trip is about its smallest, and each
 * second without that takes 244 us off the answer. A clock that jumps makes it wrong until then: too small,
 * or at most all of what the round trip is above its smallest.
 */
#include "wan/tunnel.h"

#define DRIFT_SHIFT 12 /* 244 ppm */

rwy_dur wan_way_back(struct wan_path *p, rwy_time sent, uint32_t arrived_us, rwy_time now)
{
	uint32_t there = arrived_us - (uint32_t)(sent / RWY_US);
	uint32_t back = (uint32_t)(p->latest / RWY_US) - there;
	int32_t more = (int32_t)(back - p->back_base);

	if (!p->back_known || more <= 0 || p->latest <= p->min_rtt + p->min_rtt / 32 + 100 * RWY_US) {
		p->back_known = true;
		p->back_base = back;
		p->back_at = now;
		return 0;
	}
	rwy_dur took = (rwy_dur)more * RWY_US, drift = rwy_since(p->back_at, now) >> DRIFT_SHIFT;

	return took > drift ? rwy_time_min(took - drift, p->latest - p->min_rtt) : 0;
}
