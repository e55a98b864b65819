/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reverse one-way delay: tells which direction has the queue. An ACK says when, by the receiver's
 * clock, the newest datagram arrived. That minus the time of sending, by our clock, is the forward
 * delay plus the clocks' difference; the rest of the round trip is the reverse delay minus that
 * difference. The difference is unknown, but the rise of the reverse delay above its value at the
 * smallest round trip is not (RFC 6817 does this for the forward delay). A queue in the reverse
 * direction is not caused by our data, so congestion control must not react to it.
 *
 * Clocks drift: the reference is renewed whenever the round trip is about its smallest, and each
 * second without renewal takes 244 us off the result. A clock that jumps makes the result wrong
 * until the next renewal: too small, or at most the rise of the round trip.
 */
#include "wan/tunnel.h"

#define DRIFT_SHIFT 12 /* 244 ppm */

rwy_dur wan_reverse_delay(struct wan_path *p, rwy_time sent, uint32_t arrived_us, rwy_time now)
{
	uint32_t forward = arrived_us - (uint32_t)(sent / RWY_US);
	uint32_t reverse = (uint32_t)(p->latest / RWY_US) - forward;
	int32_t more = (int32_t)(reverse - p->reverse_base);

	if (!p->reverse_at || more <= 0 || p->latest <= p->min_rtt + p->min_rtt / 32 + 100 * RWY_US) {
		p->reverse_base = reverse;
		p->reverse_at = now;
		return 0;
	}
	rwy_dur took = (rwy_dur)more * RWY_US, drift = rwy_since(p->reverse_at, now) >> DRIFT_SHIFT;

	return took > drift ? rwy_time_min(took - drift, p->latest - p->min_rtt) : 0;
}
