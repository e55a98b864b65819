/* SPDX-License-Identifier: Apache-2.0 */
/* "bbr": pacing rate and window of each phase; see bbr.c. */
#include "cc/bbr.h"
#include "rwy/err.h"

#define GAIN_STARTUP   709u /* 4 ln 2 */
#define GAIN_DRAIN     90u
#define GAIN_DOWN      230u
#define WINDOW_GAIN_UP 576u
#define WINDOW_GAIN    512u
#define SLACK          (5 * RWY_MS)
#define INITIAL_PKTS   100
#define MIN_PKTS       4

static unsigned pacing_gain(const struct bbr *b)
{
	switch (b->phase) {
	case STARTUP:
		return GAIN_STARTUP;
	case DRAIN:
		return GAIN_DRAIN;
	case DOWN:
		return GAIN_DOWN;
	case UP:
		return GAIN_UP;
	case CRUISE:
	case REFILL:
	case PROBE_RTT:
		return GAIN_ONE;
	}
	rwy_unreachable();
}

/* The bound that losses of earlier rounds set in this phase. */
static uint64_t window_bound(const struct bbr *b)
{
	switch (b->phase) {
	case STARTUP:
		return NONE;
	case DRAIN:
	case DOWN:
		return least(b->inflight_hi, b->inflight_lo);
	case REFILL:
	case UP:
		return b->inflight_hi;
	case CRUISE:
	case PROBE_RTT:
		return least(with_headroom(b), b->inflight_lo);
	}
	rwy_unreachable();
}

void cc_bbr_answer(struct bbr *b)
{
	uint64_t first = pkts(b, INITIAL_PKTS);
	uint64_t first_rate = cc_pace(first, model_rtt(b), GAIN_ONE);

	if (!bw_hi(b)) {
		b->rate = cc_limit_rate(&b->cfg, cc_mul_div(first_rate, GAIN_STARTUP, GAIN_ONE));
		b->window = first;
		return;
	}
	uint64_t rate = cc_mul_div(bw(b), pacing_gain(b), GAIN_ONE);
	uint64_t slack = cc_add(cc_bytes_in(bw(b), SLACK), pkts(b, 16));
	uint64_t w = cc_add(bdp(b, b->phase == UP ? WINDOW_GAIN_UP : WINDOW_GAIN), slack);

	w = least(w, window_bound(b));
	if (b->phase == PROBE_RTT)
		w = least(w, bdp(b, GAIN_ONE / 2));
	w = most(w, pkts(b, MIN_PKTS));
	if (b->phase == STARTUP) { /* a lost first flight says nothing about the path */
		rate = most(rate, first_rate);
		w = most(w, first);
	}
	b->rate = cc_limit_rate(&b->cfg, rate);
	b->window = cc_limit_window(&b->cfg, w);
}
