/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "fixed": sends at the configured rate, whatever happens. For reserved bandwidth and for tests.
 * The window of four bandwidth-delay products only guards against a peer that disappeared.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cc/cc.h"
#include "cc/limits.h"

#define FIXED_DEFAULT_RATE ((uint64_t)125000000) /* 1 Gb/s, when the configuration has no rate */
#define FIXED_WINDOW_FLOOR ((uint64_t)1 << 20)
/* acknowledgements wait in batches and in sleeping processes */
#define FIXED_SLACK (10 * RWY_MS)

struct fixed {
	struct cc_cfg cfg;
	uint64_t rate;
	uint64_t window;
	rwy_dur rtt;
};
static_assert(sizeof(struct fixed) <= CC_STATE_SIZE, "private state fits");

static void set_rtt(struct fixed *s, rwy_dur rtt)
{
	s->rtt = rtt;
	s->window = 4 * cc_bytes_in(s->rate, rtt + FIXED_SLACK);
	if (s->window < FIXED_WINDOW_FLOOR)
		s->window = FIXED_WINDOW_FLOOR;
	s->window = cc_limit_window(&s->cfg, s->window);
}

static void fixed_init(void *state, const struct cc_cfg *cfg, rwy_time now)
{
	struct fixed *s = state;

	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	s->rate = cc_limit_rate(cfg, cfg->rate_Bps ? cfg->rate_Bps : FIXED_DEFAULT_RATE);
	set_rtt(s, cfg->initial_rtt);
}

static void fixed_on_limits(void *state, const struct cc_cfg *cfg)
{
	struct fixed *s = state;

	s->cfg = *cfg;
	s->rate = cc_limit_rate(cfg, cfg->rate_Bps ? cfg->rate_Bps : FIXED_DEFAULT_RATE);
	set_rtt(s, s->rtt);
}

static void fixed_on_sent(void *state, uint32_t bytes, uint64_t inflight, rwy_time now)
{
}

static void fixed_on_ack(void *state, const struct cc_ack *ack, rwy_time now)
{
	struct fixed *s = state;

	/* A change of an eighth is worth a multiplication; less is noise. */
	if (ack->min_rtt && (ack->min_rtt < s->rtt - s->rtt / 8 || ack->min_rtt > s->rtt + s->rtt / 8))
		set_rtt(s, ack->min_rtt);
}

static void fixed_on_lost(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now)
{
}

static void fixed_on_persistent(void *state, rwy_time now)
{
}

static uint64_t fixed_rate(const void *state)
{
	return ((const struct fixed *)state)->rate;
}

static uint64_t fixed_window(const void *state)
{
	return ((const struct fixed *)state)->window;
}

static int fixed_print(const void *state, char *out, size_t size)
{
	const struct fixed *s = state;

	return snprintf(
	    out, size, "fixed rate=%" PRIu64 "kB/s window=%" PRIu64 "kB", s->rate / 1000, s->window / 1000);
}

const struct cc_ops cc_fixed = {
    .name = "fixed",
    .init = fixed_init,
    .on_limits = fixed_on_limits,
    .on_sent = fixed_on_sent,
    .on_ack = fixed_on_ack,
    .on_lost = fixed_on_lost,
    .on_persistent = fixed_on_persistent,
    .rate = fixed_rate,
    .window = fixed_window,
    .print = fixed_print,
};
