/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a changed path. A delay that "auto" takes for a queue may be a longer path (a route
 * changed). Then the smallest RTT that it knows is of the old path, and its window would stay too
 * small.
 */
#include "cc/auto.h"

#define MOVED_ROUNDS 3
#define DRAINS_LONG  2

/* competition this soon after a path change means that the delay was a queue of others */
#define DOUBT (3 * RWY_SEC)
/* an RTT this soon below the new one refutes the change as well */
#define DOUBT_LOWER (30 * RWY_SEC)
#define AGAIN       (2 * RWY_SEC) /* time until the next change, doubled for each refuted one */
#define REFUTED_MAX 4
#define IDLE_ROUNDS 8
#define IDLE_TIME   (RWY_SEC / 4)

/*
 * A delay that does not react to us may still be the queue of many others. Assuming a changed path
 * is an experiment: startup shows what bandwidth there is. It must be rare beside such others.
 */
static bool may_move(struct cc_auto *m, rwy_time now)
{
	if (!m->moved_at)
		return true;
	if (rwy_since(m->moved_at, now) > DOUBT_LOWER + (AGAIN << REFUTED_MAX))
		m->refuted = 0;
	return !m->refuted || rwy_since(m->moved_at, now) > AGAIN << m->refuted;
}

/*
 * Assumes another path with this smallest RTT; the old path's queue and losses are forgotten. When
 * the RTT is only a little longer, the old rate was within two windows, and a fast phase that
 * continues while it finds more is gentle to others that may be there. Otherwise the window limited
 * the rate by an unknown factor, so startup begins.
 */
static void path_moved(struct cc_auto *m, rwy_dur rtt, rwy_time now)
{
	if (!m->moved_at || m->old_rtt == RWY_NEVER || rwy_since(m->moved_at, now) >= DOUBT)
		m->old_rtt = m->min_rtt, m->old_peak = m->peak;
	bool search = rtt > model_rtt(m) + model_rtt(m) / 2;

	m->moved_at = now;
	m->min_rtt = rtt;
	m->min_rtt_at = now;
	m->peak = 0;
	m->far_rounds = 0;
	m->far_rtt = RWY_NEVER;
	m->late_acks = 0;
	m->blocked = 0;
	m->check_round = 0;
	m->stand_rounds = 0;
	m->suspect = m->learned = 0;
	m->tried = 0;
	m->shared = 0;
	m->accused = false;
	m->growing = true;
	m->cycle = 0;
	m->cycle_bw = m->bw_max;
	m->probed = m->rounds + 3;
	m->full_bw = 0;
	m->full_count = 0;
	cc_auto_enter(m, search ? STARTUP : PROBE, now);
}

static void refute(struct cc_auto *m)
{
	m->refuted += m->refuted < REFUTED_MAX;
	m->min_rtt = rwy_time_min(m->min_rtt, m->old_rtt);
	m->old_rtt = RWY_NEVER;
	m->peak = m->old_peak > m->peak ? m->old_peak : m->peak;
}

/* Competition begins: a path change assumed just before was a queue of others. */
void cc_auto_path_shared(struct cc_auto *m, rwy_time now)
{
	if (m->moved_at && m->old_rtt != RWY_NEVER && rwy_since(m->moved_at, now) < DOUBT)
		refute(m);
}

/* An RTT is much below the smallest of a recently assumed path: that delay was a queue of others,
 * which now drains. */
void cc_auto_path_lower(struct cc_auto *m, rwy_dur rtt, rwy_time now)
{
	if (m->moved_at && m->old_rtt != RWY_NEVER && rwy_since(m->moved_at, now) < DOUBT_LOWER &&
	    rtt + rtt / 16 + 3 * m->noise < m->min_rtt)
		refute(m);
}

/*
 * The last drain removed half of our bytes in flight. A queue of ours alone would have become
 * shorter by the time that these bytes take at our rate; a shared queue by our part of that, and it
 * would have grown again as others took the place. A delay that falls by less than a quarter of
 * that time, and then stays, belongs to the path.
 */
static bool delay_is_still(const struct cc_auto *m)
{
	uint64_t gone = m->drain_from - m->drain_left;
	rwy_dur most = RWY_MS / 4 + 2 * m->noise;
	rwy_dur ours = cc_mul_div(gone, RWY_SEC, m->drain_rate ? m->drain_rate : 1);

	return m->deep_drain && m->drain_min != RWY_NEVER && m->drain_min > model_empty_rtt(m) &&
	       m->drain_left <= m->drain_from / 8 * 5 && m->drain_min + ours / 4 + most >= m->drain_rtt &&
	       m->drain_top <= m->drain_min + (m->drain_min - model_rtt(m)) / 16 + most;
}

bool cc_auto_drained(struct cc_auto *m, rwy_time now)
{
	if (!delay_is_still(m) || !may_move(m, now))
		return false;
	path_moved(m, m->drain_min, now);
	return true;
}

bool cc_auto_unmoved(struct cc_auto *m, rwy_dur rtt, rwy_time now)
{
	if (!may_move(m, now))
		return false;
	path_moved(m, rtt, now);
	return true;
}

rwy_dur cc_auto_drain_most(const struct cc_auto *m)
{
	rwy_dur most = 4 * model_rtt(m);

	return m->blocked < DRAINS_LONG ? rwy_time_max(most, m->drain_rtt * 5 / 4) : most;
}

/* Whether one RTT exceeds another by more than chance. */
static bool differs(const struct cc_auto *m, rwy_dur rtt, rwy_dur from)
{
	return rtt > from && rtt - from > from / 16 + RWY_MS / 4 + 2 * m->noise;
}

/*
 * A sender with little to send makes no queue, unless the path has even less bandwidth: then the
 * queue grows until it drops. A steady delay may also be the queue of others. Taking it for the
 * path's costs them nothing: when the sender has more to send later and meets a shorter RTT, it
 * corrects itself. Until then the window must not wait for the old minimum to expire.
 */
static void idle_round(struct cc_auto *m, rwy_time now)
{
	if (m->round_useful || m->round_rtt <= model_empty_rtt(m) || m->round_lost > m->round_acked / 8) {
		m->idle_rounds = 0;
		return;
	}
	if (!m->idle_rounds++) {
		m->idle_rtt = m->round_rtt;
		m->idle_at = now;
	}
	m->idle_rtt = rwy_time_min(m->idle_rtt, m->round_rtt);
	if (differs(m, m->round_rtt, m->idle_rtt))
		m->idle_rounds = 0;
	if (m->idle_rounds < IDLE_ROUNDS || rwy_since(m->idle_at, now) < IDLE_TIME)
		return;
	m->min_rtt = m->idle_rtt;
	m->min_rtt_at = now;
	m->idle_rounds = 0;
	m->late_acks = 0;
}

/*
 * The window lets us queue at most one BDP plus SLACK. Rounds whose smallest RTT is far above that,
 * and equal in several of them, belong to another, longer path: its window must not wait for the
 * old minimum to expire. A path whose rate fell to a fraction has such a queue as well while the
 * queue grows, or until the drain that follows a standing queue has shown what it is.
 */
void cc_auto_round_path(struct cc_auto *m, rwy_time now)
{
	if (m->round_rtt == RWY_NEVER || m->phase == COMPETE)
		return;
	idle_round(m, now);
	if (m->round_rtt < 4 * model_rtt(m) + 4 * SLACK || m->phase == DRAIN || m->check_round) {
		m->far_rounds = 0;
		m->far_rtt = RWY_NEVER;
		return;
	}
	if (differs(m, m->round_rtt, m->far_rtt)) {
		m->far_rounds = 0;
		m->far_rtt = m->round_rtt;
	}
	m->far_rtt = rwy_time_min(m->far_rtt, m->round_rtt);
	if (++m->far_rounds < MOVED_ROUNDS)
		return;
	path_moved(m, m->far_rtt, now);
}
