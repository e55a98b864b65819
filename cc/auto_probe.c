/* SPDX-License-Identifier: Apache-2.0 */
/* How "auto" probes for more bandwidth: the cycle of fast, slow and steady phases, alone and while
 * sharing. */
#include "cc/auto.h"

#define GAIN_SHARED 320u /* gain of a fast phase while sharing */
#define CYCLE_LEN   8
#define FAST_MAX    (32 * RWY_MS)
#define FAST_LEAST  (2 * RWY_MS)
#define FAST_PKTS   64 /* datagrams of a fast phase, at least */
#define VAIN_MAX    3
#define GREW        32u /* a fast phase that found more raised the rate by 1 / GREW */

static const uint16_t cycle_gain[CYCLE_LEN] = {320, 192, 256, 256, 256, 256, 256, 256};

unsigned cc_auto_cycle_gain(const struct cc_auto *m)
{
	return m->cycle == 0 && m->rounds <= m->shared ? GAIN_SHARED : cycle_gain[m->cycle];
}

/*
 * A fast phase fills a queue with a quarter of its length, which delays everybody's packets, and on
 * a long path may be more than a short queue holds. So it lasts only until it can show whether the
 * path has more: a sixth of a round trip, up to FAST_MAX, raises the largest delivery rate by 4 %,
 * and FAST_PKTS datagrams tell that from chance. When the round trip after it shows more bandwidth
 * (the path grew, or startup ended too early), the next fast phase lasts until it meets a queue, at
 * most two round trips. A sender whose peak was much higher probes for a whole one.
 */
static rwy_dur phase_length(const struct cc_auto *m)
{
	rwy_dur rtt = rwy_time_max(model_rtt(m), RWY_MS), most = rwy_time_min(rtt, FAST_MAX);

	if (cycle_gain[m->cycle] <= GAIN_ONE)
		return rtt;
	if (m->rounds <= m->shared)
		return rtt;
	if (m->growing)
		return 2 * rtt;
	if (m->bw_max < m->peak - m->peak / 4)
		return most;
	rwy_dur enough = cc_mul_div(FAST_PKTS * (uint64_t)m->cfg.mtu, RWY_SEC, m->bw_max ? m->bw_max : 1);

	return rwy_time_min(most, rwy_time_max(rtt / 6, rwy_time_max(FAST_LEAST, enough)));
}

/*
 * While sharing: a fast phase every 4 to 7 round trips, at random, so that mostly one sender probes
 * at a time. It gains a small sender more than a large one (with a share x of the path the gain is
 * 1.5 / (1 + x / 2)), and drains take from all alike: so the shares become equal. No slow phase
 * follows one that gained: it would give the gain back.
 */
static void shared_step(struct cc_auto *m)
{
	if (m->cycle == 0) {
		m->cycle = 2;
		return;
	}
	if (m->cycle == 2 && m->bw_max < m->cycle_bw + m->cycle_bw / GREW) {
		m->cycle = 1; /* found nothing: leave the queue */
		if (++m->vain >= VAIN_MAX)
			m->shared = 0; /* the path has no more, and no other flow uses it */
		return;
	}
	if (m->cycle == 2)
		m->vain = 0;
	m->cycle = 3;
	if (m->rounds < m->probe_round)
		return;
	m->seed = m->seed * 1664525u + 1013904223u;
	m->probe_round = m->rounds + 4 + (m->seed >> 30);
	m->cycle = 0;
}

void cc_auto_cycle_step(struct cc_auto *m, const struct cc_ack *ack, rwy_time now)
{
	unsigned gain = cycle_gain[m->cycle];
	bool over = rwy_since(m->phase_at, now) > phase_length(m);

	if (gain < GAIN_ONE)
		over = over || ack->inflight <= model_bdp_sent(m, GAIN_ONE);
	if (gain > GAIN_ONE)
		over = over || m->late_acks == LATE_ACKS;
	if (!over)
		return;
	if (m->rounds <= m->shared) {
		shared_step(m);
	} else if (m->cycle == 2) {
		m->growing = m->bw_max > m->cycle_bw + m->cycle_bw / GREW;
		m->cycle = m->growing ? 0 : 3;
	} else {
		m->cycle = m->cycle + 1 == CYCLE_LEN ? 0 : m->cycle + 1;
	}
	if (m->cycle == 0) {
		m->cycle_bw = m->bw_max;
		m->probed = m->rounds + 3;
	}
	cc_auto_enter(m, PROBE, now);
}
