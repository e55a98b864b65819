/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has the path become another one? What "auto" takes for a queue may be a longer path (a route changed), and
 * the smallest RTT it knows is then of a path that is gone: its window would be too small for good.
 */
#include "cc/cc_auto_int.h"

#define MOVED_ROUNDS 3
#define STILL_MAX    2 /* drains that the delay did not even notice: it is no queue */

/* Another path, of this smallest RTT: what was known of the old one is worth nothing. */
static void path_moved(struct cc_auto *m, rwy_dur rtt, rwy_time now)
{
	m->min_rtt = rtt;
	m->min_rtt_at = now;
	m->peak = 0;
	m->far_rounds = 0;
	m->far_rtt = RWY_NEVER;
	m->late_acks = 0;
	m->full_bw = 0;
	m->full_count = 0;
	m->blocked = m->still = 0;
	m->check_round = 0;
	m->stand_rounds = 0;
	cc_auto_enter(m, STARTUP, now);
}

/*
 * The last drain took a quarter or more of what we had under way off the path. Were the delay a queue, ours
 * or others', it would have become shorter by these bytes and longer again as others took the place. A delay
 * that is the same, to a sixteenth, in each of these rounds is the path's. Half a round trip more than known,
 * at least: with less, two windows are still enough.
 */
static bool delay_is_still(const struct cc_auto *m)
{
	rwy_dur most = (m->drain_rtt - rwy_time_min(m->drain_rtt, model_rtt(m))) / 16 + RWY_MS / 4;

	return m->drain_rtt > model_rtt(m) + model_rtt(m) / 2 && m->drain_left <= m->drain_from / 4 * 3 &&
	       m->drain_min + most >= m->drain_rtt && m->drain_top <= m->drain_rtt + most;
}

bool cc_auto_drained(struct cc_auto *m, rwy_time now)
{
	if (m->blocked <= 1)
		m->still = 0;
	m->still += delay_is_still(m);
	/* Of the first ones only: later our own part is too small to tell. */
	if (m->blocked != STILL_MAX || m->still != STILL_MAX)
		return false;
	path_moved(m, m->drain_min, now);
	return true;
}

rwy_dur cc_auto_drain_most(const struct cc_auto *m)
{
	rwy_dur most = 4 * model_rtt(m);

	return m->blocked < STILL_MAX ? rwy_time_max(most, m->drain_rtt * 5 / 4) : most;
}

/*
 * The window lets us queue no more than one BDP and SLACK. Rounds whose smallest RTT lies far beyond that,
 * several in a row, are of another, longer path: its window must not wait for the old minimum to expire.
 */
void cc_auto_round_path(struct cc_auto *m, rwy_time now)
{
	if (m->round_rtt == RWY_NEVER || m->phase == COMPETE)
		return;
	if (m->round_rtt < 4 * model_rtt(m) + 4 * SLACK) {
		m->far_rounds = 0;
		m->far_rtt = RWY_NEVER;
		return;
	}
	m->far_rtt = rwy_time_min(m->far_rtt, m->round_rtt);
	if (++m->far_rounds < MOVED_ROUNDS)
		return;
	path_moved(m, m->far_rtt, now);
}
