/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pacing by a virtual clock: each datagram moves the clock on by its time at the rate. While data waits the
 * clock may lag behind by BURST_LATE, so that a process that wakes every 100 us, or late, still sends at the
 * full rate. What is saved while nothing waited is little (`burst`): on a path that takes just this rate a
 * burst is a queue that stays as long as there is something to send, for everybody. One multiplication a
 * datagram; the division is done when the rate changes.
 */
#include "wan/tunnel.h"

#define BURST_BYTES 65536u
#define BURST_LEAST (10 * RWY_US)
#define BURST_MOST  (4 * RWY_MS) /* on slow paths BURST_BYTES would be a long burst */
#define BURST_LATE  (4 * RWY_MS) /* with data waiting: a descheduled process catches up this much */

void wan_pace_set(struct wan_pace *c, uint64_t rate_Bps)
{
	rwy_dur time;

	c->ns_fp = (RWY_SEC << WAN_PACE_BITS) / rate_Bps;
	time = (BURST_BYTES * c->ns_fp) >> WAN_PACE_BITS;
	c->burst = time > BURST_MOST ? BURST_MOST : time > BURST_LEAST ? time : BURST_LEAST;
}

bool wan_pace_catch_up(struct wan_pace *c, rwy_time now)
{
	rwy_dur lag = c->backlog ? BURST_LATE : c->burst;
	bool late = c->backlog && c->at + lag < now;

	if (c->at + lag < now)
		c->at = now - lag;
	return late;
}

void wan_pace_on_sent(struct wan_pace *c, uint32_t bytes)
{
	uint64_t ns = bytes * c->ns_fp + c->frac;

	c->at += ns >> WAN_PACE_BITS;
	c->frac = ns & (((uint32_t)1 << WAN_PACE_BITS) - 1);
}
