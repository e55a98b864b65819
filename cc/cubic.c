/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "cubic": RFC 9438, with congestion events as in RFC 9002 section 7: a loss or mark of data sent
 * before the present recovery began is no new event. It is a reference for ordinary traffic on the
 * same path. It takes every loss for congestion, so a long path with random loss stays nearly
 * empty; a gateway should not use it.
 *
 * Units: windows in bytes, times in ns; the cubic function counts in 1/1024 s. Different from the
 * RFC: the window is paced (1.25 windows a round trip, 2 in slow start). Not implemented:
 * HyStart++, undoing an event whose loss was reordering.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cc/cc.h"
#include "cc/cubic.h"
#include "cc/limits.h"

/* as in the other algorithms: a gateway's path carries more than one TCP connection */
#define INITIAL_PKTS 100
#define BETA_NUM     7 /* 0.7, section 4.6 */
#define BETA_DEN     10
#define GAIN_START   512u /* pacing gain, 1/256 */
#define GAIN_AVOID   320u
#define TIME_BITS    10 /* the cubic function's second has 2^10 units */
#define TIME_MAX     ((int64_t)1 << 20)

struct cubic {
	struct cc_cfg cfg;
	uint64_t window, threshold; /* cwnd, ssthresh */
	uint64_t w_max, w_est, prior;
	uint64_t k; /* 1/1024 s from the epoch to w_max */
	rwy_time epoch, last_ack;
	rwy_time recovery; /* beginning of the recovery; data sent before belongs to it */
	rwy_dur srtt;
	bool has_rtt, in_epoch, recovered; /* recovered: there was a recovery */
	uint64_t rate;
};
static_assert(sizeof(struct cubic) <= CC_CUBIC_SIZE && CC_CUBIC_SIZE <= CC_STATE_SIZE, "private state fits");

static void answer(struct cubic *s)
{
	unsigned gain = s->window < s->threshold ? GAIN_START : GAIN_AVOID;

	s->window = cc_limit_window(&s->cfg, s->window);
	s->rate = cc_limit_rate(&s->cfg, cc_pace(s->window, s->srtt, gain));
}

static void cubic_init(void *state, const struct cc_cfg *cfg, rwy_time now)
{
	struct cubic *s = state;

	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	s->window = INITIAL_PKTS * (uint64_t)cfg->mtu;
	s->threshold = UINT64_MAX;
	s->srtt = cfg->initial_rtt;
	s->last_ack = now;
	answer(s);
}

static void cubic_on_limits(void *state, const struct cc_cfg *cfg)
{
	struct cubic *s = state;

	s->cfg.rate_Bps = cfg->rate_Bps;
	answer(s);
}

void cc_cubic_window_set(void *state, uint64_t window, bool slow_start)
{
	struct cubic *s = state;

	s->window = s->prior = window;
	s->threshold = slow_start ? UINT64_MAX : window;
	s->w_max = slow_start ? 0 : window;
	s->in_epoch = false;
	answer(s);
}

void cc_cubic_yield(void *state, unsigned keep)
{
	struct cubic *s = state;

	s->window = cc_limit_window(&s->cfg, s->window / 1024 * keep);
	s->threshold = s->window;
	s->w_max = s->w_max < (s->prior + s->window) / 2 ? s->w_max : (s->prior + s->window) / 2;
	answer(s);
}

static void cubic_on_sent(void *state, uint32_t bytes, uint64_t inflight, rwy_time now)
{
}

static uint64_t cube_root(uint64_t x)
{
	uint64_t r = 0;

	for (int bit = 20; bit >= 0; bit--) {
		uint64_t t = r | (uint64_t)1 << bit;

		if (t * t * t <= x)
			r = t;
	}
	return r;
}

/* W_cubic at t (1/1024 s) after the epoch: w_max + C (t - K)^3 segments, C = 0.4; figure 1 of the
 * RFC. */
static uint64_t w_cubic(const struct cubic *s, uint64_t t)
{
	int64_t d = (int64_t)(t < (uint64_t)TIME_MAX ? t : (uint64_t)TIME_MAX) - (int64_t)s->k;
	__int128 w = (__int128)d * d * d * s->cfg.mtu * 2 / 5;

	w = (__int128)s->w_max + w / ((int64_t)1 << (3 * TIME_BITS));
	if (w < 0)
		return 0;
	return w > (__int128)CC_WINDOW_MAX ? CC_WINDOW_MAX : (uint64_t)w;
}

/* Section 4.2: congestion avoidance begins; K is the time until w_max is reached again. */
static void epoch_begin(struct cubic *s, rwy_time now)
{
	uint64_t short_of = s->w_max > s->window ? s->w_max - s->window : 0;
	uint64_t segs = cc_mul_div(short_of, (uint64_t)5 << (3 * TIME_BITS), 2 * (uint64_t)s->cfg.mtu);

	if (!short_of)
		s->w_max = s->window;
	s->k = cube_root(segs);
	s->epoch = now;
	s->w_est = s->window;
	s->in_epoch = true;
}

/* Section 4.3: the window that Reno would have, so that CUBIC is not slower where Reno is fair:
 * alpha is 3 (1 - b) / (1 + b) segments a round trip, 9/17, until the window before the event is
 * reached, then 1. */
static void reno_grow(struct cubic *s, uint64_t acked)
{
	uint64_t step = cc_mul_div(acked, s->cfg.mtu, s->window);

	s->w_est += s->w_est < s->prior ? step * 9 / 17 : step;
}

static void avoid(struct cubic *s, const struct cc_ack *ack, rwy_time now)
{
	if (!s->in_epoch)
		epoch_begin(s, now);
	uint64_t t = cc_mul_div(rwy_since(s->epoch, now), 1u << TIME_BITS, RWY_SEC);
	uint64_t rtt = cc_mul_div(s->srtt, 1u << TIME_BITS, RWY_SEC);

	reno_grow(s, ack->acked_bytes);
	if (w_cubic(s, t) < s->w_est) {
		s->window = s->w_est > s->window ? s->w_est : s->window;
		return;
	}
	uint64_t target = w_cubic(s, t + rtt), most = s->window + s->window / 2;

	if (target > most)
		target = most;
	if (target > s->window)
		s->window += cc_mul_div(target - s->window, ack->acked_bytes, s->window);
}

/* Data sent at `sent` was lost or marked. */
static void congestion(struct cubic *s, rwy_time sent, rwy_time now)
{
	if (s->recovered && sent <= s->recovery)
		return;
	s->recovered = true;
	s->recovery = now;
	s->prior = s->window;
	/* Section 4.7, fast convergence: a second lower maximum means that a new sender wants a
	 * share. */
	if (s->window < s->w_max)
		s->w_max = s->window * (BETA_DEN + BETA_NUM) / (2 * BETA_DEN);
	else
		s->w_max = s->window;
	s->window = cc_limit_window(&s->cfg, s->window * BETA_NUM / BETA_DEN);
	s->threshold = s->window;
	s->in_epoch = false;
}

static void grow(struct cubic *s, const struct cc_ack *ack, rwy_time sent, rwy_time now)
{
	if (s->recovered && sent <= s->recovery)
		return; /* RFC 9002 7.3.2: no growth in recovery */
	if (!cc_window_used(ack, s->window, s->cfg.mtu)) {
		s->epoch += rwy_since(s->last_ack, now); /* section 5.8: idle time does not count */
		return;
	}
	if (s->window >= s->threshold) {
		avoid(s, ack, now);
		return;
	}
	uint64_t add = ack->acked_bytes < s->window ? ack->acked_bytes : s->window;

	s->window += add;
	if (s->window > s->threshold)
		s->window = s->threshold;
}

static void cubic_on_ack(void *state, const struct cc_ack *ack, rwy_time now)
{
	struct cubic *s = state;

	if (ack->rtt) {
		s->srtt = s->has_rtt ? s->srtt - s->srtt / 8 + ack->rtt / 8 : ack->rtt;
		s->has_rtt = true;
	}
	/* The newest acknowledged datagram was sent about a round trip ago. */
	rwy_dur rtt = ack->rtt ? ack->rtt : s->srtt;
	rwy_time sent = rwy_since(rtt, now);

	if (ack->lost_bytes)
		congestion(s, ack->lost_sent, now);
	if (ack->ce_count)
		congestion(s, sent, now);
	grow(s, ack, sent, now);
	s->last_ack = now;
	answer(s);
}

static void cubic_on_lost(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now)
{
	congestion(state, sent, now);
	answer(state);
}

/* RFC 9002 7.6: the minimum window, then slow start. */
static void cubic_on_persistent(void *state, rwy_time now)
{
	struct cubic *s = state;

	s->recovered = false;
	congestion(s, now, now);
	s->recovered = false;
	s->window = 0;
	answer(s);
}

static uint64_t cubic_rate(const void *state)
{
	return ((const struct cubic *)state)->rate;
}

static uint64_t cubic_window(const void *state)
{
	return ((const struct cubic *)state)->window;
}

static int cubic_print(const void *state, char *out, size_t size)
{
	const struct cubic *s = state;

	return snprintf(out, size, "cubic %s window=%" PRIu64 "kB w_max=%" PRIu64 "kB rtt=%" PRIu64 "us",
	    s->window < s->threshold ? "start" : "avoid", s->window / 1000, s->w_max / 1000,
	    s->srtt / RWY_US);
}

const struct cc_ops cc_cubic = {
    .name = "cubic",
    .init = cubic_init,
    .on_limits = cubic_on_limits,
    .on_sent = cubic_on_sent,
    .on_ack = cubic_on_ack,
    .on_lost = cubic_on_lost,
    .on_persistent = cubic_on_persistent,
    .rate = cubic_rate,
    .window = cubic_window,
    .print = cubic_print,
};
