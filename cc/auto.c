/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "auto": finds the path's rate by itself. A model of the path (largest delivery rate of the last
 * rounds, smallest RTT) decides rate and window. A single lost datagram does not: on a long path
 * most losses are not a sign of congestion.
 *
 *   startup   2.77 x the model until three rounds bring less than a quarter more
 *   drain     the inverse, until the queue is gone
 *   probe     1.25 for a part of an RTT, 0.75 until the queue of that is gone, six RTTs of 1, again
 *             (auto_probe.c; while sharing see shared_step)
 *   rtt       half a window for a moment, when the smallest RTT was not confirmed for five seconds
 *   compete   as one more CUBIC flow (auto_tcp.h)
 *
 * A queue that stands for three rounds means that other senders are here, or that the model is too
 * large: the rate delivered in the last round becomes the model, and a drain takes our packets out.
 * All senders of this kind see the same queue and drain together, so it empties. When it survives
 * six drains in a row, or when a round with a queue loses more than the path's own share, other
 * senders fill it until it drops: then this one competes. Rounds in which the sender had nothing to
 * send never shrink the model, nor does an outage. All arithmetic is integer: gains are in 1/256,
 * shares in 1/65536.
 *
 * Pacing itself is in wan/, per-flow queues in the near-source loop.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cc/auto.h"
#include "rwy/err.h"

/* 4 ln 2; 2 / ln 2 = 2.885 doubles each round as well, with a larger queue */
#define GAIN_STARTUP  709u
#define GAIN_DRAIN    92u /* 1 / 2.77 */
#define GAIN_WINDOW   512u
#define FULL_ROUNDS   3
#define INITIAL_PKTS  100
#define RTT_EXPIRY    (5 * RWY_SEC)
#define PROBE_RTT_MIN (100 * RWY_MS)
#define PEAK_ROUNDS   16384

static const char *const phase_name[] = {"startup", "drain", "probe", "rtt", "compete"};

static unsigned pacing_gain(const struct cc_auto *m)
{
	switch (m->phase) {
	case STARTUP:
		return GAIN_STARTUP;
	case DRAIN:
		return GAIN_DRAIN;
	case PROBE:
		return cc_auto_cycle_gain(m);
	case PROBE_RTT:
	case COMPETE:
		return GAIN_ONE;
	}
	rwy_unreachable();
}

static uint64_t phase_window(const struct cc_auto *m)
{
	uint64_t slack = cc_bytes_in(m->bw_max, SLACK) + 16 * (uint64_t)m->cfg.mtu;

	switch (m->phase) {
	case STARTUP:
	case DRAIN:
	case PROBE:
		return model_bdp(m, GAIN_WINDOW) + slack;
	case PROBE_RTT:
		return model_bdp(m, GAIN_ONE / 2) + 4 * (uint64_t)m->cfg.mtu;
	case COMPETE:
		return cc_mul_div(cc_tcp_window(&m->tcp), m->makeup, GAIN_ONE);
	}
	rwy_unreachable();
}

/*
 * Computes both answers after a change of the model. During startup the rate is at least the first
 * window per round trip: if little of a first flight arrives, that says little about the path.
 */
static void answer(struct cc_auto *m)
{
	uint64_t first = (uint64_t)INITIAL_PKTS * m->cfg.mtu;
	uint64_t first_rate = first * RWY_SEC / rwy_time_max(model_rtt(m), RWY_US);

	if (!m->bw_max) {
		m->rate = cc_limit_rate(&m->cfg, first_rate * GAIN_STARTUP / GAIN_ONE);
		m->window = first;
		return;
	}
	uint64_t rate = m->bw_max * pacing_gain(m) / GAIN_ONE * m->makeup / GAIN_ONE;

	if (m->phase == COMPETE)
		rate = cc_mul_div(cc_tcp_rate(&m->tcp), m->makeup, GAIN_ONE);
	m->window = phase_window(m);
	if (m->phase == STARTUP) {
		rate = rate > first_rate ? rate : first_rate;
		m->window = m->window > first ? m->window : first;
	}
	m->window = cc_limit_window(&m->cfg, m->window);
	m->rate = cc_limit_rate(&m->cfg, rate);
}

static void auto_init(void *state, const struct cc_cfg *cfg, rwy_time now)
{
	struct cc_auto *m = state;

	memset(m, 0, sizeof(*m));
	m->cfg = *cfg;
	m->min_rtt = m->round_rtt = m->round_reverse = m->probe_min = m->far_rtt = m->old_rtt = RWY_NEVER;
	m->min_rtt_at = m->phase_at = now;
	m->makeup = GAIN_ONE;
	m->seed = (uint32_t)(now ^ now >> 32);
	answer(m);
}

static void auto_on_limits(void *state, const struct cc_cfg *cfg)
{
	struct cc_auto *m = state;

	m->cfg = *cfg;
	if (m->phase == COMPETE)
		cc_tcp_limits(&m->tcp, cfg);
	answer(m);
}

static void auto_on_sent(void *state, uint32_t bytes, uint64_t inflight, rwy_time now)
{
}

static void bw_recompute(struct cc_auto *m)
{
	m->bw_max = 0;
	for (int i = 0; i < BW_ROUNDS; i++)
		if (m->bw[i] > m->bw_max)
			m->bw_max = m->bw[i];
}

static void bw_sample(struct cc_auto *m, const struct cc_ack *ack)
{
	if (!ack->rate_Bps)
		return;
	if (ack->app_limited && ack->rate_Bps <= m->bw_max)
		return;
	if (!ack->app_limited)
		m->round_useful = true;
	if (ack->rate_Bps > m->round_best)
		m->round_best = ack->rate_Bps;
	if (ack->rate_Bps > m->bw[m->bw_at])
		m->bw[m->bw_at] = ack->rate_Bps;
	if (ack->rate_Bps > m->bw_max)
		m->bw_max = ack->rate_Bps;
}

/* Increase of the reverse delay over its value at our smallest RTT: other senders, or our own other
 * direction, fill a queue there. */
static rwy_dur more_reverse(const struct cc_auto *m, const struct cc_ack *ack)
{
	rwy_dur more = ack->reverse > m->reverse_at_min ? ack->reverse - m->reverse_at_min : 0;

	return m->min_rtt == RWY_NEVER ? 0
	                               : rwy_time_min(more, ack->rtt - rwy_time_min(ack->rtt, m->min_rtt));
}

static void rtt_sample(struct cc_auto *m, const struct cc_ack *ack, rwy_time now)
{
	rwy_dur rtt = ack->rtt;

	if (!rtt)
		return;
	m->spread = ack->spread;
	cc_auto_queue_sample(m, rtt, more_reverse(m, ack));
	if (m->phase == PROBE_RTT && rtt < m->probe_min) {
		m->probe_min = rtt;
		m->reverse_at_probe = ack->reverse;
	}
	if (m->min_rtt != RWY_NEVER && rtt < m->min_rtt)
		cc_auto_path_lower(m, rtt, now);
	if (m->min_rtt == RWY_NEVER || rtt < m->min_rtt) {
		m->min_rtt = rtt;
		m->reverse_at_min = ack->reverse;
		m->min_rtt_at = now;
	} else if (rtt <= m->min_rtt + m->min_rtt / 32 + 100 * RWY_US) {
		m->min_rtt_at = now; /* confirmed */
	}
}

/* Ends startup: the queue that startup built drains first. */
static void startup_end(struct cc_auto *m, rwy_time now)
{
	m->drain_rtt = 0;
	m->deep_drain = false;
	cc_auto_enter(m, DRAIN, now);
}

static void startup_check(struct cc_auto *m, rwy_time now)
{
	if (!m->round_useful)
		return;
	if (m->bw_max >= m->full_bw + m->full_bw / 4) {
		m->full_bw = m->bw_max;
		m->full_count = 0;
		return;
	}
	if (++m->full_count >= FULL_ROUNDS)
		startup_end(m, now);
}

static void round_end(struct cc_auto *m, const struct cc_ack *ack, rwy_time now)
{
	m->rounds++;
	m->next_round = ack->delivered;
	m->round_rate = cc_mul_div(m->round_acked, RWY_SEC, rwy_time_max(rwy_since(m->round_at, now), 1));
	m->peak -= m->peak / PEAK_ROUNDS;
	if (m->round_at && !m->recovering && m->round_rate > m->peak)
		m->peak = m->round_rate;
	if (m->round_rtt != RWY_NEVER)
		m->drain_top = rwy_time_max(m->drain_top, m->round_rtt);
	cc_auto_round_path(m, now);
	cc_auto_round_losses(m);
	cc_auto_round_queue(m, ack, now);
	if (m->phase == STARTUP && !m->recovering)
		startup_check(m, now);
	if (m->round_useful && !m->recovering) {
		m->bw_at = m->bw_at + 1 == BW_ROUNDS ? 0 : m->bw_at + 1;
		m->bw[m->bw_at] = 0;
		bw_recompute(m);
	}
	if (m->recovering && m->skip_rounds-- == 0)
		m->recovering = false;
	m->round_useful = false;
	m->round_acked = m->round_lost = m->round_marked = 0;
	m->round_best = 0;
	m->reverse = m->round_reverse != RWY_NEVER ? m->round_reverse : m->reverse;
	m->round_rtt = m->round_reverse = RWY_NEVER;
	m->round_most = m->round_sum = 0;
	m->round_samples = 0;
	m->round_at = now;
}

/* Returns our share of the path's rate, in 1/1024. The share is too high when others always used a
 * part of the path, which makes us more modest than needed. */
static unsigned share_of_path(const struct cc_auto *m)
{
	return m->peak ? (unsigned)cc_mul_div(m->round_rate, 1024, m->peak) : 0;
}

static void phase_step(struct cc_auto *m, const struct cc_ack *ack, rwy_time now)
{
	switch (m->phase) {
	case STARTUP:
		/* An application-limited sender makes no queue: it comes from others, or from the
		 * reverse direction. */
		if (m->late_acks == LATE_ACKS && !ack->app_limited)
			startup_end(m, now);
		break;
	case DRAIN:
		if (ack->inflight <= cc_auto_drain_target(m) ||
		    rwy_since(m->phase_at, now) > cc_auto_drain_most(m)) {
			m->drain_left = ack->inflight;
			m->drain_top = 0;
			m->cycle = 3; /* begin with steady phases: the queue has just drained */
			m->check_round = m->rounds + 3;
			m->probed = m->rounds + 4;
			cc_auto_enter(m, PROBE, now);
		}
		break;
	case PROBE:
		cc_auto_cycle_step(m, ack, now);
		if (rwy_since(m->min_rtt_at, now) > RTT_EXPIRY) {
			m->probe_min = RWY_NEVER;
			m->probe_rtt_until =
			    now + rwy_time_max(PROBE_RTT_MIN, model_rtt(m) + model_rtt(m) / 2);
			cc_auto_enter(m, PROBE_RTT, now);
		}
		break;
	case PROBE_RTT:
		if (now >= m->probe_rtt_until && m->probe_min != RWY_NEVER) {
			m->min_rtt = m->probe_min;
			m->reverse_at_min = m->reverse_at_probe;
			m->min_rtt_at = now;
			m->cycle = 3;
			cc_auto_enter(m, PROBE, now);
		}
		break;
	case COMPETE:
		switch (cc_tcp_on_ack(&m->tcp, ack, m->overfull, m->overfull ? share_of_path(m) : 0,
		    more_reverse(m, ack), model_rtt(m), model_empty_rtt(m), m->noise, now)) {
		case CC_TCP_STAYS:
			break;
		case CC_TCP_UNMOVED:
			if (cc_auto_unmoved(m, m->tcp.test_min, now))
				return;
			break;
		case CC_TCP_ALONE:
			m->shared = m->rounds + SHARED_ROUNDS;
			m->cycle = 3;
			m->stand_rounds = 0;
			memset(m->bw, 0, sizeof(m->bw));
			m->bw[m->bw_at] = m->bw_max = cc_pace(m->tcp.test_window, model_rtt(m), GAIN_ONE);
			cc_auto_enter(m, PROBE, now);
			break;
		}
		m->overfull = false;
		break;
	}
}

static void auto_on_ack(void *state, const struct cc_ack *ack, rwy_time now)
{
	struct cc_auto *m = state;

	m->round_acked += ack->acked_bytes;
	m->round_lost += ack->lost_bytes;
	m->round_marked += ack->ce_count;
	rtt_sample(m, ack, now);
	bw_sample(m, ack);
	if (ack->prior_delivered >= m->next_round)
		round_end(m, ack, now);
	phase_step(m, ack, now);
	answer(m);
}

static void auto_on_lost(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now)
{
	struct cc_auto *m = state;

	m->round_lost += bytes;
}

static void auto_on_persistent(void *state, rwy_time now)
{
	struct cc_auto *m = state;

	m->recovering = true;
	m->skip_rounds = 2;
}

static uint64_t auto_rate(const void *state)
{
	return ((const struct cc_auto *)state)->rate;
}

static uint64_t auto_window(const void *state)
{
	return ((const struct cc_auto *)state)->window;
}

static int auto_print(const void *state, char *out, size_t size)
{
	const struct cc_auto *m = state;

	return snprintf(out, size,
	    "auto %s bw=%" PRIu64 "kB/s rtt=%" PRIu64 "us rate=%" PRIu64 "kB/s makeup=%u/256",
	    phase_name[m->phase], m->bw_max / 1000, model_rtt(m) / 1000, m->rate / 1000, m->makeup);
}

const struct cc_ops cc_auto = {
    .name = "auto",
    .init = auto_init,
    .on_limits = auto_on_limits,
    .on_sent = auto_on_sent,
    .on_ack = auto_on_ack,
    .on_lost = auto_on_lost,
    .on_persistent = auto_on_persistent,
    .rate = auto_rate,
    .window = auto_window,
    .print = auto_print,
};
