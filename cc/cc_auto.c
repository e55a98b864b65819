/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "auto": finds the path's rate by itself. A model of the path (largest delivery rate of the last rounds,
 * smallest RTT) decides rate and window; a lost datagram by itself does not, since on a long path most losses
 * are not the network asking for less.
 *
 *   startup   2.77 x the model until three rounds bring no quarter more
 *   drain     the inverse, until the queue that startup made is gone
 *   probe     eight phases of one RTT: 1.25, 0.75, then 1 x 6
 *   rtt       half a window for a moment, when nothing confirmed the smallest RTT for five seconds
 *
 * It slows down when loss (or ECN marks) comes together with a clearly risen delay. Rounds in which the
 * sender had nothing to send never shrink the model, nor does an outage. All arithmetic is integer: gains are
 * in 1/256, shares in 1/65536.
 *
 * Not here: fairness towards loss-based TCP, pacing itself (wan/), per-flow queues (the near-source loop).
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cc/cc.h"
#include "cc/cc_limits.h"
#include "rwy/err.h"

#define GAIN_ONE 256u
#define GAIN_STARTUP                                                                                         \
	709u /* 2 / ln 2 is 2.885 for a doubling each round; 4 ln 2 = 2.77 does it with a smaller queue */
#define GAIN_DRAIN    92u /* 1 / 2.77 */
#define GAIN_WINDOW   512u
#define BW_ROUNDS     10
#define LOSS_ROUNDS   10
#define CYCLE_LEN     8
#define FULL_ROUNDS   3
#define LATE_ACKS     8 /* so many ACKs in a row with a queue's delay end startup before the queue overflows */
#define INITIAL_PKTS  100
#define FAST_MAX      (32 * RWY_MS)
#define RTT_EXPIRY    (5 * RWY_SEC)
#define PROBE_RTT_MIN (100 * RWY_MS)
#define MOVED_ROUNDS  3
#define SLACK         (5 * RWY_MS) /* how late a sleeping or descheduled process may acknowledge */
#define SHARE_ONE     65536u
#define SHARE_MAX     (SHARE_ONE / 5) /* random loss we make up for: 20 % */
#define SHARE_CONGEST (SHARE_ONE / 50)

enum phase { STARTUP, DRAIN, PROBE, PROBE_RTT };
static const char *const phase_name[] = {"startup", "drain", "probe", "rtt"};
static const uint16_t cycle_gain[CYCLE_LEN] = {320, 192, 256, 256, 256, 256, 256, 256};

struct model {
	struct cc_cfg cfg;
	enum phase phase;
	uint8_t cycle, full_count, bw_at, loss_at, skip_rounds, late_acks;
	bool growing;        /* the last fast phase found more */
	bool round_useful;   /* a sample of this round was not application-limited */
	bool recovering;     /* an outage ended the last round: its rounds tell nothing */
	uint64_t next_round; /* `delivered` that ends the present round */
	uint64_t rounds;
	uint64_t bw[BW_ROUNDS];             /* the best sample of each of the last useful rounds */
	uint64_t bw_max, full_bw, cycle_bw; /* cycle_bw: bw_max when the fast phase began */
	uint32_t loss[LOSS_ROUNDS];         /* share lost in each of the last rounds */
	uint64_t round_acked, round_lost, round_marked;
	uint64_t round_best; /* best sample of this round, bytes per second */
	rwy_dur round_rtt;   /* smallest RTT of this round, RWY_NEVER: none */
	rwy_dur min_rtt, probe_min;
	rwy_dur far_rtt;     /* smallest RTT of the last rounds that were far beyond min_rtt */
	uint32_t far_rounds; /* how many these are */
	rwy_time min_rtt_at, phase_at, probe_rtt_until;
	uint32_t makeup; /* 1 / (1 - random loss), in 1/256 */
	uint64_t rate, window;
};
static_assert(sizeof(struct model) <= CC_STATE_SIZE, "private state fits");

static rwy_dur model_rtt(const struct model *m)
{
	return m->min_rtt != RWY_NEVER ? m->min_rtt : m->cfg.initial_rtt;
}

static uint64_t bdp(const struct model *m, unsigned gain)
{
	return cc_bytes_in(m->bw_max, model_rtt(m)) * gain / GAIN_ONE;
}

static unsigned pacing_gain(const struct model *m)
{
	switch (m->phase) {
	case STARTUP:
		return GAIN_STARTUP;
	case DRAIN:
		return GAIN_DRAIN;
	case PROBE:
		return cycle_gain[m->cycle];
	case PROBE_RTT:
		return GAIN_ONE;
	}
	rwy_unreachable();
}

static uint64_t phase_window(const struct model *m)
{
	uint64_t slack = cc_bytes_in(m->bw_max, SLACK) + 16 * (uint64_t)m->cfg.mtu;

	switch (m->phase) {
	case STARTUP:
	case DRAIN:
	case PROBE:
		return bdp(m, GAIN_WINDOW) + slack;
	case PROBE_RTT:
		return bdp(m, GAIN_ONE / 2) + 4 * (uint64_t)m->cfg.mtu;
	}
	rwy_unreachable();
}

/*
 * The two answers, after anything they depend on changed. While the rate is looked for, it is not below the
 * first window a round trip: when of a first flight little arrives, that says little about the path.
 */
static void answer(struct model *m)
{
	uint64_t first = (uint64_t)INITIAL_PKTS * m->cfg.mtu;
	uint64_t first_rate = first * RWY_SEC / rwy_time_max(model_rtt(m), RWY_US);

	if (!m->bw_max) {
		m->rate = cc_limit_rate(&m->cfg, first_rate * GAIN_STARTUP / GAIN_ONE);
		m->window = first;
		return;
	}
	uint64_t rate = m->bw_max * pacing_gain(m) / GAIN_ONE * m->makeup / GAIN_ONE;

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
	struct model *m = state;

	memset(m, 0, sizeof(*m));
	m->cfg = *cfg;
	m->min_rtt = m->round_rtt = m->probe_min = m->far_rtt = RWY_NEVER;
	m->min_rtt_at = m->phase_at = now;
	m->makeup = GAIN_ONE;
	answer(m);
}

static void auto_on_sent(void *state, uint32_t bytes, uint64_t inflight, rwy_time now)
{
	(void)state, (void)bytes, (void)inflight, (void)now;
}

static void enter(struct model *m, enum phase p, rwy_time now)
{
	m->phase = p;
	m->phase_at = now;
}

static void bw_recompute(struct model *m)
{
	m->bw_max = 0;
	for (int i = 0; i < BW_ROUNDS; i++)
		if (m->bw[i] > m->bw_max)
			m->bw_max = m->bw[i];
}

static void bw_sample(struct model *m, const struct cc_ack *ack)
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

/* An RTT that says "there is a queue", and not only "a process slept". */
static bool is_late(const struct model *m, rwy_dur rtt)
{
	return m->min_rtt != RWY_NEVER &&
	       rtt > m->min_rtt + rwy_time_min(m->min_rtt / 4, 8 * RWY_MS) + 2 * RWY_MS;
}

static void rtt_sample(struct model *m, rwy_dur rtt, rwy_time now)
{
	if (!rtt)
		return;
	if (rtt < m->round_rtt)
		m->round_rtt = rtt;
	if (!is_late(m, rtt))
		m->late_acks = 0;
	else if (m->late_acks < LATE_ACKS)
		m->late_acks++;
	if (m->phase == PROBE_RTT && rtt < m->probe_min)
		m->probe_min = rtt;
	if (m->min_rtt == RWY_NEVER || rtt < m->min_rtt) {
		m->min_rtt = rtt;
		m->min_rtt_at = now;
	} else if (rtt <= m->min_rtt + m->min_rtt / 32 + 100 * RWY_US) {
		m->min_rtt_at = now; /* confirmed */
	}
}

/*
 * Random loss shows in every round, loss by our own overload not in the rounds after a slow phase: the
 * smallest share of the last rounds is the random part, and only that is made up for by sending more.
 */
static void makeup_update(struct model *m, uint32_t share)
{
	uint32_t least = SHARE_MAX;

	m->loss[m->loss_at] = share;
	m->loss_at = m->loss_at + 1 == LOSS_ROUNDS ? 0 : m->loss_at + 1;
	for (int i = 0; i < LOSS_ROUNDS; i++)
		if (m->loss[i] < least)
			least = m->loss[i];
	m->makeup = GAIN_ONE * SHARE_ONE / (SHARE_ONE - least);
}

/* Loss or marks together with a queue: the path has less than we think. Forget the old maxima, keep what this
 * round got through. */
static void reduce(struct model *m)
{
	uint64_t floor = m->bw_max * 7 / 10;
	uint64_t bw = m->round_best > floor ? m->round_best : floor;

	if (bw >= m->bw_max)
		return;
	memset(m->bw, 0, sizeof(m->bw));
	m->bw[m->bw_at] = bw;
	m->bw_max = bw;
}

static void round_losses(struct model *m)
{
	uint64_t seen = m->round_acked + m->round_lost;

	if (seen < 32 * (uint64_t)m->cfg.mtu)
		return; /* too few to tell */
	uint32_t share = (uint32_t)(m->round_lost * SHARE_ONE / seen);
	uint32_t marked = (uint32_t)(m->round_marked * m->cfg.mtu * SHARE_ONE / seen);
	uint32_t random = SHARE_ONE - SHARE_ONE * GAIN_ONE / m->makeup;

	if (m->recovering)
		return;
	if (m->round_rtt != RWY_NEVER && is_late(m, m->round_rtt) && share > random + SHARE_CONGEST)
		reduce(m);
	else if (marked > SHARE_ONE / 20)
		reduce(m);
	makeup_update(m, share);
}

static void startup_check(struct model *m, rwy_time now)
{
	if (!m->round_useful)
		return;
	if (m->bw_max >= m->full_bw + m->full_bw / 4) {
		m->full_bw = m->bw_max;
		m->full_count = 0;
		return;
	}
	if (++m->full_count >= FULL_ROUNDS)
		enter(m, DRAIN, now);
}

/*
 * The window lets us queue no more than one BDP and SLACK. Rounds whose smallest RTT lies far beyond that,
 * several in a row, are of another, longer path: its window must not wait for the old minimum to expire.
 */
static void round_path(struct model *m, rwy_time now)
{
	if (m->round_rtt == RWY_NEVER)
		return;
	if (m->round_rtt < 4 * model_rtt(m) + 4 * SLACK) {
		m->far_rounds = 0;
		m->far_rtt = RWY_NEVER;
		return;
	}
	m->far_rtt = rwy_time_min(m->far_rtt, m->round_rtt);
	if (++m->far_rounds < MOVED_ROUNDS)
		return;
	m->min_rtt = m->far_rtt;
	m->min_rtt_at = now;
	m->far_rounds = 0;
	m->far_rtt = RWY_NEVER;
	m->late_acks = 0;
	m->full_bw = 0;
	m->full_count = 0;
	enter(m, STARTUP, now);
}

static void round_end(struct model *m, const struct cc_ack *ack, rwy_time now)
{
	m->rounds++;
	m->next_round = ack->delivered;
	round_path(m, now);
	round_losses(m);
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
	m->round_rtt = RWY_NEVER;
}

/*
 * A fast phase is short, so that on a long path it does not fill a short queue. When the round trip after it
 * shows that the path has more (it has grown, or startup ended too early), the next one lasts until it meets
 * a queue.
 */
static rwy_dur phase_length(const struct model *m)
{
	rwy_dur rtt = rwy_time_max(model_rtt(m), RWY_MS);

	if (cycle_gain[m->cycle] <= GAIN_ONE)
		return rtt;
	return m->growing ? 2 * rtt : rwy_time_min(rtt, FAST_MAX);
}

static void cycle_step(struct model *m, const struct cc_ack *ack, rwy_time now)
{
	unsigned gain = cycle_gain[m->cycle];
	bool over = rwy_since(m->phase_at, now) > phase_length(m);

	if (gain < GAIN_ONE)
		over = over || ack->inflight <= bdp(m, GAIN_ONE);
	if (gain > GAIN_ONE)
		over = over || m->late_acks == LATE_ACKS;
	if (!over)
		return;
	if (m->cycle == 2) {
		m->growing = m->bw_max > m->cycle_bw + m->cycle_bw / 20;
		m->cycle = m->growing ? 0 : 3;
	} else {
		m->cycle = m->cycle + 1 == CYCLE_LEN ? 0 : m->cycle + 1;
	}
	if (m->cycle == 0)
		m->cycle_bw = m->bw_max;
	enter(m, PROBE, now);
}

static void phase_step(struct model *m, const struct cc_ack *ack, rwy_time now)
{
	switch (m->phase) {
	case STARTUP:
		if (m->late_acks == LATE_ACKS)
			enter(m, DRAIN, now);
		break;
	case DRAIN:
		if (ack->inflight <= bdp(m, GAIN_ONE) || rwy_since(m->phase_at, now) > 4 * model_rtt(m)) {
			m->cycle = 3; /* begin with steady phases: the queue has just gone */
			enter(m, PROBE, now);
		}
		break;
	case PROBE:
		cycle_step(m, ack, now);
		if (rwy_since(m->min_rtt_at, now) > RTT_EXPIRY) {
			m->probe_min = RWY_NEVER;
			m->probe_rtt_until =
			    now + rwy_time_max(PROBE_RTT_MIN, model_rtt(m) + model_rtt(m) / 2);
			enter(m, PROBE_RTT, now);
		}
		break;
	case PROBE_RTT:
		if (now >= m->probe_rtt_until && m->probe_min != RWY_NEVER) {
			m->min_rtt = m->probe_min;
			m->min_rtt_at = now;
			m->cycle = 3;
			enter(m, PROBE, now);
		}
		break;
	}
}

static void auto_on_ack(void *state, const struct cc_ack *ack, rwy_time now)
{
	struct model *m = state;

	m->round_acked += ack->acked_bytes;
	m->round_lost += ack->lost_bytes;
	m->round_marked += ack->ce_count;
	rtt_sample(m, ack->rtt, now);
	bw_sample(m, ack);
	if (ack->prior_delivered >= m->next_round)
		round_end(m, ack, now);
	phase_step(m, ack, now);
	answer(m);
}

static void auto_on_lost(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now)
{
	struct model *m = state;

	(void)sent, (void)inflight, (void)now;
	m->round_lost += bytes;
}

static void auto_on_persistent(void *state, rwy_time now)
{
	struct model *m = state;

	(void)now;
	m->recovering = true;
	m->skip_rounds = 2;
}

static uint64_t auto_rate(const void *state)
{
	return ((const struct model *)state)->rate;
}

static uint64_t auto_window(const void *state)
{
	return ((const struct model *)state)->window;
}

static int auto_print(const void *state, char *out, size_t size)
{
	const struct model *m = state;

	return snprintf(out, size,
	    "auto %s bw=%" PRIu64 "kB/s rtt=%" PRIu64 "us rate=%" PRIu64 "kB/s makeup=%u/256",
	    phase_name[m->phase], m->bw_max / 1000, model_rtt(m) / 1000, m->rate / 1000, m->makeup);
}

const struct cc_ops cc_auto = {
    .name = "auto",
    .init = auto_init,
    .on_sent = auto_on_sent,
    .on_ack = auto_on_ack,
    .on_lost = auto_on_lost,
    .on_persistent = auto_on_persistent,
    .rate = auto_rate,
    .window = auto_window,
    .print = auto_print,
};
