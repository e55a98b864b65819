/* SPDX-License-Identifier: Apache-2.0 */
/* The model of "bbr", shared by bbr.c (phases) and bbr_answer.c (rate and window); see bbr.c. */
#ifndef CC_BBR_H
#define CC_BBR_H

#include <assert.h>

#include "cc/cc.h"
#include "cc/limits.h"

#define GAIN_ONE     256u
#define GAIN_UP      320u
#define HEADROOM_NUM 17 /* 0.85: the rest is left for others while cruising */
#define HEADROOM_DEN 20
#define LOSS_DEN     50         /* 2 % */
#define LOSS_PKTS    6          /* plus this many datagrams: a single one of few exceeds 2 % */
#define NONE         UINT64_MAX /* no bound */

enum phase { STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT };

struct bbr {
	struct cc_cfg cfg;
	enum phase phase;
	bool round_start;   /* this ACK began a round */
	bool probe_samples; /* datagrams acknowledged now were sent while probing */
	bool advance;       /* the bandwidth filter advances at the next round */
	bool recovering;    /* after an outage: losses of these rounds prove nothing */
	uint8_t skip_rounds, full_count, up_shift;
	uint64_t next_round, rounds;
	uint64_t bw[2]; /* best samples of this cycle and of the one before */
	uint64_t bw_lo, inflight_hi, inflight_lo;
	uint64_t bw_latest, inflight_latest; /* best of this round */
	uint64_t full_bw;
	uint64_t round_acked, round_lost, round_marked;
	rwy_dur min_rtt, probe_min;
	rwy_time min_rtt_at, phase_at, cycle_at, probe_rtt_until;
	rwy_dur wait;         /* time until the next probe */
	uint64_t cycle_round; /* `rounds` when the cycle began */
	uint64_t seed;
	uint64_t rate, window;
};
static_assert(sizeof(struct bbr) <= CC_STATE_SIZE, "private state fits");

static inline uint64_t bw_hi(const struct bbr *b)
{
	return b->bw[0] > b->bw[1] ? b->bw[0] : b->bw[1];
}

static inline uint64_t bw(const struct bbr *b)
{
	return bw_hi(b) < b->bw_lo ? bw_hi(b) : b->bw_lo;
}

static inline rwy_dur model_rtt(const struct bbr *b)
{
	return b->min_rtt != RWY_NEVER ? b->min_rtt : b->cfg.initial_rtt;
}

static inline uint64_t bdp(const struct bbr *b, unsigned gain)
{
	return cc_mul_div(cc_bytes_in(bw(b), model_rtt(b)), gain, GAIN_ONE);
}

static inline uint64_t pkts(const struct bbr *b, unsigned n)
{
	return n * (uint64_t)b->cfg.mtu;
}

static inline uint64_t least(uint64_t x, uint64_t y)
{
	return x < y ? x : y;
}

static inline uint64_t most(uint64_t x, uint64_t y)
{
	return x > y ? x : y;
}

static inline uint64_t with_headroom(const struct bbr *b)
{
	return b->inflight_hi == NONE ? NONE : b->inflight_hi / HEADROOM_DEN * HEADROOM_NUM;
}

/* Loss or marks above what the path may have of its own. */
static inline bool too_high(const struct bbr *b)
{
	uint64_t seen = cc_add(b->round_acked, b->round_lost);

	if (b->recovering)
		return false;
	if (b->round_lost > seen / LOSS_DEN + pkts(b, LOSS_PKTS))
		return true;
	return seen >= pkts(b, 32) && b->round_marked >= seen / b->cfg.mtu / 2;
}

/* Sets b->rate and b->window from the model and the phase. */
void cc_bbr_answer(struct bbr *b);

#endif
