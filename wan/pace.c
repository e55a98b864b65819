/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pacing of a path (rwy/pace.h). While data waits, the clock may lag behind by BURST_LATE, so that
 * a process that wakes every 100 us, or late, still sends at the full rate. While nothing waits,
 * little credit is saved (`burst`): on a path of just this rate a burst makes a queue that delays
 * everybody until the sender stops.
 *
 * Acknowledgements and PINGs do not wait for the clock, but advance it. At a very low rate they may
 * be more than the path is given. Data must have its turn all the same, so what they take of the
 * rate between two data datagrams is bounded (CONTROL_BYTES).
 */
#include "wan/tunnel.h"

#define BURST_BYTES   65536u
#define BURST_LEAST   (10 * RWY_US)
#define BURST_MOST    (4 * RWY_MS) /* on slow paths BURST_BYTES would be a long burst */
#define BURST_LATE    (4 * RWY_MS) /* with data waiting, a late process catches up so much */
#define CONTROL_BYTES 2048u

void wan_pace_set(struct wan_pace *c, uint64_t rate_Bps)
{
	rwy_dur time;

	rwy_pace_set(&c->clock, rate_Bps);
	time = rwy_pace_time(&c->clock, BURST_BYTES);
	c->burst = time > BURST_MOST ? BURST_MOST : time > BURST_LEAST ? time : BURST_LEAST;
	c->control = rwy_pace_time(&c->clock, CONTROL_BYTES);
}

bool wan_pace_catch_up(struct wan_pace *c, rwy_time now)
{
	rwy_dur lag = c->backlog ? BURST_LATE : c->burst;
	bool late = c->backlog && c->clock.at + lag < now;

	rwy_pace_limit(&c->clock, lag, now);
	return late;
}
