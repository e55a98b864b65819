/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "bbr": BBR after draft-ietf-ccwg-bbr (version 3). Two measurements make the model: the largest
 * delivery rate of two probing cycles and the least RTT. Losses bound it, but only when they exceed
 * 2 % of a round trip; below that they count as the path's own.
 *
 *   startup   2.77 x the rate, until three rounds gain less than a quarter or one loses too much
 *   drain     0.35 x, until the queue of startup is gone
 *   down      0.9 x, until there is headroom for others
 *   cruise    1 x, for 2 to 3 s or 63 rounds; loss lowers bw_lo and inflight_lo in this cycle only
 *   refill    1 x for a round, so that probing begins with a full pipe and no queue
 *   up        1.25 x; inflight_hi rises ever faster, until loss, a queue of a quarter, or a plateau
 *   rtt       half a window for 200 ms, when the least RTT was not seen for five seconds
 *
 * Differences from the draft:
 * - Losses count per round, not per datagram.
 * - Random loss below the threshold does not touch bw_lo: with a bound at every loss, a path that
 *   loses 1 % would sink a little each round.
 * - "up" ends at a queue of a quarter, as in version 2: waiting for the plateau alone filled every
 *   queue.
 * - The window has 5 ms of slack for acknowledgements of sleeping processes, in place of the
 *   extra_acked filter.
 * - ECN marks count when half of a round has them.
 *
 * A sender that comes late gets its share slowly. docs/congestion-control.md compares this with
 * "auto".
 *
 * Units: bytes per second, bytes, ns; gains in 1/256.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cc/bbr.h"
#include "rwy/err.h"

#define BETA_NUM       7 /* a bound falls to 0.7 at most in one step */
#define BETA_DEN       10
#define FULL_ROUNDS    3
#define ROUNDS_MAX     63
#define UP_SHIFT_MAX   20
#define PROBE_WAIT     (2 * RWY_SEC)
#define RTT_EXPIRY     (5 * RWY_SEC)
#define PROBE_RTT_TIME (200 * RWY_MS)

static const char *const phase_name[] = {"startup", "drain", "down", "cruise", "refill", "up", "rtt"};

/* --- phases ----------------------------------------------------------------------------------- */
static void enter(struct bbr *b, enum phase p, rwy_time now)
{
	b->phase = p;
	b->phase_at = now;
}

static void lower_bounds_reset(struct bbr *b)
{
	b->bw_lo = b->inflight_lo = NONE;
}

/* The time of the next probe is spread over a second, so that several gateways do not probe
 * together. */
static void enter_down(struct bbr *b, rwy_time now)
{
	b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
	b->wait = PROBE_WAIT + (RWY_SEC / 1024) * (b->seed >> 54);
	b->cycle_at = now;
	b->cycle_round = b->rounds;
	b->advance = true;
	enter(b, DOWN, now);
}

static void enter_refill(struct bbr *b, rwy_time now)
{
	lower_bounds_reset(b);
	b->next_round = NONE; /* the caller's ACK sets it: the round that begins now */
	b->up_shift = 0;
	b->probe_samples = false;
	enter(b, REFILL, now);
}

static void enter_up(struct bbr *b, rwy_time now)
{
	b->probe_samples = true;
	b->full_bw = bw_hi(b);
	b->full_count = 0;
	enter(b, UP, now);
}

static bool time_to_probe(const struct bbr *b, rwy_time now)
{
	uint64_t rounds = least(bdp(b, GAIN_ONE) / b->cfg.mtu, ROUNDS_MAX);

	return rwy_since(b->cycle_at, now) > b->wait || b->rounds - b->cycle_round > most(rounds, 4);
}

/* Three rounds brought less than a quarter more: the rate is the path's. */
static bool plateau(struct bbr *b, const struct cc_ack *ack)
{
	if (!b->round_start || ack->app_limited || b->recovering)
		return false;
	if (bw_hi(b) >= cc_add(b->full_bw, b->full_bw / 4)) {
		b->full_bw = bw_hi(b);
		b->full_count = 0;
		return false;
	}
	return ++b->full_count >= FULL_ROUNDS;
}

static void startup_step(struct bbr *b, const struct cc_ack *ack, rwy_time now)
{
	if (plateau(b, ack)) {
		enter(b, DRAIN, now);
	} else if (too_high(b) && bw_hi(b)) {
		b->inflight_hi = most(bdp(b, GAIN_ONE), b->inflight_latest);
		enter(b, DRAIN, now);
	}
}

/* inflight_hi rises by 1, 2, 4 ... datagrams a window, doubling each round: slowly while it may
 * hurt, fast when the path has become much larger. */
static void raise_inflight_hi(struct bbr *b, const struct cc_ack *ack)
{
	if (b->inflight_hi == NONE)
		return;
	if (b->round_start && b->up_shift < UP_SHIFT_MAX)
		b->up_shift++;
	if (!cc_window_used(ack, least(b->window, b->inflight_hi), b->cfg.mtu))
		return;
	b->inflight_hi = least(
	    cc_add(b->inflight_hi, cc_mul_div(ack->acked_bytes, pkts(b, 1) << b->up_shift, b->inflight_hi)),
	    CC_WINDOW_MAX);
}

static void up_step(struct bbr *b, const struct cc_ack *ack, rwy_time now)
{
	bool queue = rwy_since(b->phase_at, now) > model_rtt(b) && ack->inflight > bdp(b, GAIN_UP);

	raise_inflight_hi(b, ack);
	if (plateau(b, ack) || queue)
		enter_down(b, now);
}

/* Datagrams sent while probing were lost: that much in flight was too much. */
static void probe_losses(struct bbr *b, const struct cc_ack *ack, rwy_time now)
{
	if (!b->probe_samples || !too_high(b))
		return;
	uint64_t sent_at = cc_add(cc_add(ack->inflight, ack->lost_bytes), ack->acked_bytes);
	uint64_t floor = cc_mul_div(least(bdp(b, GAIN_ONE), b->window), BETA_NUM, BETA_DEN);

	b->probe_samples = false;
	if (!ack->app_limited)
		b->inflight_hi = least(b->inflight_hi, most(sent_at, floor));
	if (b->phase == UP)
		enter_down(b, now);
}

static void down_step(struct bbr *b, const struct cc_ack *ack, rwy_time now)
{
	if (b->round_start && b->advance && b->rounds > b->cycle_round + 1) {
		b->advance = false;
		b->probe_samples = false; /* a round trip later nothing of the probe is in flight */
		/* a cycle without a sample (nothing to send) does not age the model */
		if (b->bw[0]) {
			b->bw[1] = b->bw[0];
			b->bw[0] = 0;
		}
	}
	if (b->advance)
		return;
	if (time_to_probe(b, now))
		enter_refill(b, now);
	else if (ack->inflight <= least(bdp(b, GAIN_ONE), with_headroom(b)))
		enter(b, CRUISE, now);
}

static void probe_rtt_begin(struct bbr *b, rwy_time now)
{
	b->probe_min = RWY_NEVER;
	b->probe_rtt_until = now + rwy_time_max(PROBE_RTT_TIME, model_rtt(b) + model_rtt(b) / 2);
	enter(b, PROBE_RTT, now);
}

static void probe_rtt_end(struct bbr *b, rwy_time now)
{
	b->min_rtt = b->probe_min;
	b->min_rtt_at = now;
	lower_bounds_reset(b);
	enter(b, CRUISE, now);
}

static void phase_step(struct bbr *b, const struct cc_ack *ack, rwy_time now)
{
	switch (b->phase) {
	case STARTUP:
		startup_step(b, ack, now);
		break;
	case DRAIN:
		if (ack->inflight <= bdp(b, GAIN_ONE) || rwy_since(b->phase_at, now) > 4 * model_rtt(b))
			enter_down(b, now);
		break;
	case DOWN:
		down_step(b, ack, now);
		break;
	case CRUISE:
		if (time_to_probe(b, now))
			enter_refill(b, now);
		else if (rwy_since(b->min_rtt_at, now) > RTT_EXPIRY && !ack->app_limited)
			probe_rtt_begin(b, now);
		break;
	case REFILL:
		if (b->round_start)
			enter_up(b, now);
		break;
	case UP:
		up_step(b, ack, now);
		break;
	case PROBE_RTT:
		if (now >= b->probe_rtt_until && b->probe_min != RWY_NEVER)
			probe_rtt_end(b, now);
		break;
	}
}

/* --- events ----------------------------------------------------------------------------------- */
static void bbr_init(void *state, const struct cc_cfg *cfg, rwy_time now)
{
	struct bbr *b = state;

	memset(b, 0, sizeof(*b));
	b->cfg = *cfg;
	b->min_rtt = b->probe_min = RWY_NEVER;
	b->bw_lo = b->inflight_hi = b->inflight_lo = NONE;
	b->min_rtt_at = b->phase_at = b->cycle_at = now;
	b->seed = now;
	cc_bbr_answer(b);
}

static void bbr_on_limits(void *state, const struct cc_cfg *cfg)
{
	struct bbr *b = state;

	b->cfg = *cfg;
	cc_bbr_answer(b);
}

static void bbr_on_sent(void *state, uint32_t bytes, uint64_t inflight, rwy_time now)
{
}

static void samples(struct bbr *b, const struct cc_ack *ack, rwy_time now)
{
	uint64_t over = ack->delivered > ack->prior_delivered ? ack->delivered - ack->prior_delivered : 0;

	if (ack->rate_Bps && (!ack->app_limited || ack->rate_Bps > bw_hi(b)))
		b->bw[0] = most(b->bw[0], ack->rate_Bps);
	b->bw_latest = most(b->bw_latest, ack->rate_Bps);
	b->inflight_latest = most(b->inflight_latest, over);
	if (!ack->rtt)
		return;
	if (b->phase == PROBE_RTT)
		b->probe_min = rwy_time_min(b->probe_min, ack->rtt);
	if (b->min_rtt == RWY_NEVER || ack->rtt <= b->min_rtt + b->min_rtt / 64 + 50 * RWY_US) {
		b->min_rtt = rwy_time_min(b->min_rtt, ack->rtt);
		b->min_rtt_at = now; /* confirmed */
	}
}

/* Loss while not probing: the path has less bandwidth for now. Keeps what this round delivered. */
static void lower_bounds(struct bbr *b)
{
	switch (b->phase) {
	case STARTUP:
	case REFILL:
	case UP:
		return;
	case DRAIN:
	case DOWN:
	case CRUISE:
	case PROBE_RTT:
		break;
	}
	if (!too_high(b))
		return;
	uint64_t from_bw = bw(b), from_window = least(b->inflight_lo, b->window);

	b->bw_lo = most(b->bw_latest, cc_mul_div(from_bw, BETA_NUM, BETA_DEN));
	b->inflight_lo = most(b->inflight_latest, cc_mul_div(from_window, BETA_NUM, BETA_DEN));
}

static void round_end(struct bbr *b)
{
	lower_bounds(b);
	b->rounds++;
	if (b->recovering && b->skip_rounds-- == 0)
		b->recovering = false;
	b->round_acked = b->round_lost = b->round_marked = 0;
	b->bw_latest = b->inflight_latest = 0;
}

static void bbr_on_ack(void *state, const struct cc_ack *ack, rwy_time now)
{
	struct bbr *b = state;

	b->round_acked = cc_add(b->round_acked, ack->acked_bytes);
	b->round_lost = cc_add(b->round_lost, ack->lost_bytes);
	b->round_marked += ack->ce_count;
	b->round_start = ack->prior_delivered >= b->next_round;
	samples(b, ack, now);
	probe_losses(b, ack, now);
	phase_step(b, ack, now);
	if (b->round_start || b->next_round == NONE)
		b->next_round = ack->delivered;
	if (b->round_start)
		round_end(b);
	cc_bbr_answer(b);
}

static void bbr_on_lost(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now)
{
	struct bbr *b = state;

	b->round_lost = cc_add(b->round_lost, bytes);
}

static void bbr_on_persistent(void *state, rwy_time now)
{
	struct bbr *b = state;

	b->recovering = true;
	b->skip_rounds = 2;
	lower_bounds_reset(b);
	cc_bbr_answer(b);
}

static uint64_t bbr_rate(const void *state)
{
	return ((const struct bbr *)state)->rate;
}

static uint64_t bbr_window(const void *state)
{
	return ((const struct bbr *)state)->window;
}

static int bbr_print(const void *state, char *out, size_t size)
{
	const struct bbr *b = state;

	return snprintf(out, size,
	    "bbr %s bw=%" PRIu64 "kB/s rtt=%" PRIu64 "us rate=%" PRIu64 "kB/s inflight_hi=%" PRIu64 "kB",
	    phase_name[b->phase], bw(b) / 1000, model_rtt(b) / RWY_US, b->rate / 1000,
	    b->inflight_hi == NONE ? 0 : b->inflight_hi / 1000);
}

const struct cc_ops cc_bbr = {
    .name = "bbr",
    .init = bbr_init,
    .on_limits = bbr_on_limits,
    .on_sent = bbr_on_sent,
    .on_ack = bbr_on_ack,
    .on_lost = bbr_on_lost,
    .on_persistent = bbr_on_persistent,
    .rate = bbr_rate,
    .window = bbr_window,
    .print = bbr_print,
};
