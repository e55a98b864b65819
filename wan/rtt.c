/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Round trips of a path (RFC 9002, 5). Unlike the RFC, the lateness of answers within the last
 * seconds is remembered: a process that was not scheduled for some milliseconds will be so again,
 * and a mean deviation forgets that within a few dozen samples.
 */
#include "wan/tunnel.h"

#define MIN_RTT_WINDOW (10 * RWY_SEC)
#define LATE_WINDOW    RWY_SEC /* the lateness is remembered for one to two windows */

static void note_min(struct wan_path *p, rwy_dur rtt, rwy_time now)
{
	if (p->min_rtt && rtt > p->min_rtt && rwy_since(p->min_rtt_at, now) <= MIN_RTT_WINDOW)
		return;
	p->min_rtt = rtt;
	p->min_rtt_at = now;
}

/* Remembers that an answer came this much later than usual. */
static void note_late(struct wan_path *p, rwy_dur late, rwy_time now)
{
	if (now - p->late_at >= LATE_WINDOW) {
		p->late[1] = now - p->late_at < 2 * LATE_WINDOW ? p->late[0] : 0;
		p->late[0] = 0;
		p->late_at = now;
	}
	if (late > p->late[0])
		p->late[0] = late;
}

void wan_rtt_sample(struct wan_path *p, rwy_dur rtt, rwy_dur ack_delay, rwy_time now)
{
	if (!rtt)
		rtt = 1;
	note_min(p, rtt, now);
	if (rtt >= p->min_rtt + ack_delay)
		rtt -= ack_delay;
	p->latest = rtt;
	if (!wan_path_has_rtt(p)) {
		p->srtt = rtt;
		p->rttvar = rtt / 2;
		return;
	}
	rwy_dur diff = p->srtt > rtt ? p->srtt - rtt : rtt - p->srtt;

	note_late(p, rwy_since(p->srtt, rtt), now);
	p->rttvar = (3 * p->rttvar + diff) / 4;
	p->srtt = (7 * p->srtt + rtt) / 8;
}

void wan_rtt_mean(struct wan_path *p, rwy_dur rtt, rwy_dur dev, bool anew, rwy_time now)
{
	if (!rtt)
		rtt = 1;
	if (anew || !wan_path_has_rtt(p)) {
		p->min_rtt = p->srtt = rtt;
		p->min_rtt_at = now;
		p->rttvar = dev;
	}
	p->rttvar = (3 * p->rttvar + dev) / 4;
	p->latest = p->srtt = (3 * p->srtt + rtt) / 4;
	note_min(p, p->srtt, now); /* the smallest of many means would be an accident */
}
