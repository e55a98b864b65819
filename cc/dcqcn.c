/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "dcqcn": the reaction point of DCQCN (Zhu et al., SIGCOMM 2015). A notification (a CNP, or ECN
 * marks in an ACK) cuts the rate by alpha / 2, where alpha estimates how often notifications come.
 * Without one, a timer and a byte counter each produce increase events: the first five halve the
 * distance to the rate before the cut, then that target rises in small steps, and in large ones
 * when both have passed five.
 *
 * Differences from the paper:
 * - No period is shorter than a round trip. A cut shows its effect no sooner; with the paper's 50
 *   us on a path of 20 ms the loop would act 400 times on one observation. In a data center nothing
 *   changes.
 * - A loss is a notification too: a WAN has no PFC, so a queue that cannot mark drops.
 *
 * Units: bytes per second, ns, bytes; alpha in 1/2^30. The notification point sends CNPs elsewhere
 * (engine/cnp.c). This algorithm is for paths that mark; where losses are random use auto or bbr.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cc/dcqcn.h"
#include "cc/limits.h"

#define ALPHA_BITS 30
#define ALPHA_ONE  (1u << ALPHA_BITS)
/* the paper's 40 Gb/s, when the configuration has no rate */
#define LINE_DEFAULT ((uint64_t)5000000000)
#define COUNT_MAX    1000 /* cap of the counts: only "more than F" matters */
/* most increase events of one late tick: missed ones are not made up for */
#define EVENTS_MAX  16
#define SLACK       (5 * RWY_MS) /* lateness of an acknowledgement that does not stop us */
#define WINDOW_PKTS 64

struct dcqcn {
	struct cc_cfg cfg;
	struct cc_dcqcn_params p;
	uint64_t target, rate; /* R_T, R_C */
	uint64_t taken;        /* set by cc_dcqcn_taken */
	uint64_t window;
	uint64_t bytes; /* bytes sent since the last byte event */
	uint64_t byte_step;
	uint32_t alpha;
	uint32_t timer_events, byte_events; /* events since the last cut */
	rwy_dur rtt;                        /* the path's least RTT */
	rwy_time timer_at, alpha_at, cut_at;
	bool cut_ever;
};
static_assert(sizeof(struct dcqcn) <= CC_STATE_SIZE, "private state fits");

struct cc_dcqcn_params cc_dcqcn_params_default(uint64_t line_Bps)
{
	return (struct cc_dcqcn_params){
	    .line_Bps = line_Bps,
	    .ai_Bps = line_Bps / 1000 + 1,
	    .hai_Bps = line_Bps / 100 + 1,
	    .byte_counter = 10000000,
	    .timer = 55 * RWY_US,
	    .alpha_timer = 55 * RWY_US,
	    .cut_interval = 50 * RWY_US,
	    .fast_steps = 5,
	    .g_shift = 8,
	};
}

/* A period of the paper, adapted to this path. */
static rwy_dur period(const struct dcqcn *s, rwy_dur t)
{
	return rwy_time_max(rwy_time_max(t, s->rtt), 1);
}

/* The window only guards against a peer that disappeared: DCQCN controls the rate. */
static void set_window(struct dcqcn *s)
{
	uint64_t w = 2 * cc_bytes_in(s->rate, s->rtt + SLACK) + WINDOW_PKTS * (uint64_t)s->cfg.mtu;

	s->window = cc_limit_window(&s->cfg, w);
}

static void set_rtt(struct dcqcn *s, rwy_dur rtt)
{
	uint64_t bdp = cc_bytes_in(s->p.line_Bps, rtt);

	s->rtt = rtt;
	s->byte_step = bdp > s->p.byte_counter ? bdp : s->p.byte_counter;
}

static void dcqcn_init(void *state, const struct cc_cfg *cfg, rwy_time now)
{
	struct dcqcn *s = state;

	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	s->p = cc_dcqcn_params_default(cc_limit_rate(cfg, cfg->rate_Bps ? cfg->rate_Bps : LINE_DEFAULT));
	/* a flow starts at line rate: the paper has no slow start */
	s->rate = s->target = s->p.line_Bps;
	s->alpha = ALPHA_ONE;
	s->alpha_at = s->timer_at = now;
	set_rtt(s, cfg->initial_rtt);
	set_window(s);
}

static void dcqcn_on_limits(void *state, const struct cc_cfg *cfg)
{
	struct dcqcn *s = state;
	const bool line = s->rate >= s->p.line_Bps;

	s->cfg = *cfg;
	s->p = cc_dcqcn_params_default(cc_limit_rate(cfg, cfg->rate_Bps ? cfg->rate_Bps : LINE_DEFAULT));
	/* At line rate it stays there: a half that was idle must not climb from a small lease. */
	s->rate = line ? s->p.line_Bps : cc_limit_rate(cfg, s->rate);
	s->target = line ? s->p.line_Bps : cc_limit_rate(cfg, s->target);
	set_rtt(s, s->rtt);
	set_window(s);
}

/* Multiplies alpha by (1 - g)^n for the n periods without a notification. Done when alpha is
 * needed, so that no timer runs for it. */
static void alpha_decay(struct dcqcn *s, rwy_time now)
{
	rwy_dur k = period(s, s->p.alpha_timer);
	uint64_t n = rwy_since(s->alpha_at, now) / k;
	uint64_t keep = ((uint64_t)1 << 32) - ((uint64_t)1 << (32 - s->p.g_shift));

	s->alpha_at += n * k;
	if (n >> 16)
		s->alpha = 0;
	for (; n && s->alpha; n >>= 1) {
		if (n & 1)
			s->alpha = (uint32_t)(s->alpha * keep >> 32);
		keep = keep * keep >> 32;
	}
}

static void cut(struct dcqcn *s, rwy_time now)
{
	uint64_t least = s->taken - s->taken / 8;

	if (s->cut_ever && rwy_since(s->cut_at, now) < period(s, s->p.cut_interval))
		return;
	alpha_decay(s, now);
	s->target = s->rate;
	s->rate = cc_limit_rate(&s->cfg, s->rate - cc_mul_div(s->rate, s->alpha, 2 * (uint64_t)ALPHA_ONE));
	if (s->taken && least < s->target) {
		s->rate = s->rate > least ? s->rate : cc_limit_rate(&s->cfg, least);
		if (s->taken < s->target)
			s->target = s->taken > s->rate ? s->taken : s->rate;
	}
	s->alpha += (ALPHA_ONE - s->alpha) >> s->p.g_shift;
	s->alpha_at = s->cut_at = now;
	s->cut_ever = true;
	s->timer_events = s->byte_events = 0;
	s->bytes = 0;
	s->timer_at = now + period(s, s->p.timer);
	set_window(s);
}

void cc_dcqcn_taken(void *state, uint64_t taken_Bps)
{
	((struct dcqcn *)state)->taken = taken_Bps;
}

static void increase(struct dcqcn *s)
{
	uint32_t t = s->timer_events, b = s->byte_events, f = s->p.fast_steps;
	uint32_t most = t > b ? t : b, least = t < b ? t : b;

	if (least > f)
		s->target += s->p.hai_Bps;
	else if (most > f)
		s->target += s->p.ai_Bps;
	if (s->target > s->p.line_Bps)
		s->target = s->p.line_Bps;
	s->rate += (s->target - s->rate) / 2;
	/* arrived: halving would never get there, and the timer may rest */
	if (s->p.line_Bps - s->rate <= s->p.line_Bps >> 10)
		s->rate = s->target = s->p.line_Bps;
	set_window(s);
}

static void count(uint32_t *events)
{
	if (*events < COUNT_MAX)
		++*events;
}

static void dcqcn_on_sent(void *state, uint32_t bytes, uint64_t inflight, rwy_time now)
{
	struct dcqcn *s = state;

	s->bytes += bytes;
	if (s->bytes < s->byte_step || s->rate >= s->p.line_Bps)
		return;
	s->bytes = 0;
	count(&s->byte_events);
	increase(s);
}

static rwy_time dcqcn_next(const void *state)
{
	const struct dcqcn *s = state;

	return s->rate < s->p.line_Bps ? s->timer_at : RWY_NEVER;
}

static void dcqcn_on_tick(void *state, rwy_time now)
{
	struct dcqcn *s = state;
	rwy_dur t = period(s, s->p.timer);

	for (int i = 0; i < EVENTS_MAX && now >= dcqcn_next(s); i++) {
		s->timer_at += t;
		count(&s->timer_events);
		increase(s);
	}
	if (s->timer_at <= now)
		s->timer_at = now + t;
}

static void dcqcn_on_ack(void *state, const struct cc_ack *ack, rwy_time now)
{
	struct dcqcn *s = state;

	if (ack->min_rtt && (ack->min_rtt < s->rtt - s->rtt / 8 || ack->min_rtt > s->rtt + s->rtt / 8)) {
		set_rtt(s, ack->min_rtt);
		set_window(s);
	}
	if (ack->ce_count || ack->lost_bytes)
		cut(s, now);
}

static void dcqcn_on_lost(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now)
{
	cut(state, now);
}

static void dcqcn_on_cnp(void *state, rwy_time now)
{
	cut(state, now);
}

/* An outage says nothing about the path's rate after it: one cut, as for a loss. */
static void dcqcn_on_persistent(void *state, rwy_time now)
{
	cut(state, now);
}

static uint64_t dcqcn_rate(const void *state)
{
	return ((const struct dcqcn *)state)->rate;
}

static uint64_t dcqcn_window(const void *state)
{
	return ((const struct dcqcn *)state)->window;
}

static int dcqcn_print(const void *state, char *out, size_t size)
{
	const struct dcqcn *s = state;
	uint32_t most = s->timer_events > s->byte_events ? s->timer_events : s->byte_events;
	uint32_t least = s->timer_events < s->byte_events ? s->timer_events : s->byte_events;
	const char *phase = least > s->p.fast_steps ? "hyper" : most > s->p.fast_steps ? "additive" : "fast";

	return snprintf(out, size, "dcqcn %s rate=%" PRIu64 "kB/s target=%" PRIu64 "kB/s alpha=%u/1024",
	    s->rate >= s->p.line_Bps ? "line" : phase, s->rate / 1000, s->target / 1000,
	    s->alpha >> (ALPHA_BITS - 10));
}

const struct cc_ops cc_dcqcn = {
    .name = "dcqcn",
    .init = dcqcn_init,
    .on_limits = dcqcn_on_limits,
    .on_sent = dcqcn_on_sent,
    .on_ack = dcqcn_on_ack,
    .on_lost = dcqcn_on_lost,
    .on_persistent = dcqcn_on_persistent,
    .on_cnp = dcqcn_on_cnp,
    .on_tick = dcqcn_on_tick,
    .next = dcqcn_next,
    .rate = dcqcn_rate,
    .window = dcqcn_window,
    .print = dcqcn_print,
};
