/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "swift": holds a delay (Kumar et al., "Swift: Delay is Simple and Effective for Congestion
 * Control in the Datacenter", SIGCOMM 2020). Below the target the window grows by a fixed step a
 * round trip; above it the window shrinks in proportion to the excess, at most once a round trip.
 *
 *   target = least RTT + base + hops + a share for flows: alpha / sqrt(window) - beta
 *
 * The last part is Swift's scaling by flows: many flows have small windows each, and a queue that
 * grows with the square root of their number; a small window also gets more, which makes the flows
 * equal.
 *
 * Differences from the paper, because the path is long:
 * - The target counts queueing on top of the least RTT; in a data center the RTT itself is the
 *   budget. The least RTT is measured again every ten seconds with half a window, or our own queue
 *   would count as path; the smallest of three measurements counts, since others' queues stand
 *   meanwhile.
 * - It starts by doubling. One datagram a round trip would need minutes to fill the path.
 * - The step is a datagram per ms of round trip, or a share of the configured maximum if that is
 *   more.
 * - Delay is the smallest of a few ACKs in a row: a process that sleeps is not a queue.
 * - Random loss is not congestion: losses count once they exceed 2 % of a round trip.
 *
 * Units: windows in bytes, times in ns. Not implemented: separate end-host delay (the RTT already
 * excludes the ACK delay), windows below two datagrams.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cc/cc.h"
#include "cc/limits.h"

#define INITIAL_PKTS  100
#define BASE          RWY_MS /* queueing delay: below this a WAN's own jitter would decide */
#define HOP           (50 * RWY_US)
#define HOPS          8 /* the TTL is invisible here; a WAN path has about this many queues */
#define FS_RANGE      (2 * RWY_MS)
#define FS_MIN_PKTS   16u /* windows at which the flow part is FS_RANGE and 0 */
#define FS_MAX_PKTS   16384u
#define ROOT_BITS     8 /* fraction bits of square roots; 1 / root has 16 */
#define INV_MIN       (65536u / 4)
#define INV_MAX       (65536u / 128)
#define DECREASE_NUM  4 /* the paper's beta, 0.8 */
#define DECREASE_DEN  5
#define DECREASE_MOST 2 /* a decrease leaves at least half: the paper's max_mdf */
#define DELAYS        4
#define STEP_SHARE    512 /* part of the BDP at the configured maximum */
#define RTT_EXPIRY    (10 * RWY_SEC)
#define MEASURES      3
#define FAR_PKTS      8
#define LOSS_DEN      50
#define LOSS_PKTS     6    /* plus this many datagrams: a single one of few exceeds 2 % */
#define GAIN_START    512u /* pacing gain, 1/256 */
#define GAIN_STEADY   288u

static_assert(
    FS_MIN_PKTS == 4 * 4 && FS_MAX_PKTS == 128 * 128, "INV_MIN and INV_MAX are their roots' inverse");

enum phase { START, STEADY, MEASURE };
static const char *const phase_name[] = {"start", "steady", "rtt"};

struct swift {
	struct cc_cfg cfg;
	enum phase phase;
	uint64_t window, rate;
	uint64_t before; /* window before MEASURE */
	rwy_dur delay[DELAYS];
	uint8_t delay_at, delays;
	bool due; /* a measurement is due */
	rwy_dur min_rtt, srtt, target;
	/* least RTT since the present MEASURE began, and of earlier ones */
	rwy_dur measured[MEASURES];
	uint8_t measured_at;
	rwy_time min_rtt_at, cut_at, measure_until;
	uint64_t next_round, acked, lost; /* counts of the present round, and its end */
};
static_assert(sizeof(struct swift) <= CC_STATE_SIZE, "private state fits");

static uint64_t root(uint64_t x)
{
	uint64_t r = 0;

	for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1)
		if ((r | bit) * (r | bit) <= x)
			r |= bit;
	return r;
}

/* FS_RANGE at FS_MIN_PKTS, 0 at FS_MAX_PKTS, linear in 1 / sqrt(window). */
static rwy_dur flow_part(const struct swift *s)
{
	uint64_t pkts = s->window / s->cfg.mtu;

	if (pkts <= FS_MIN_PKTS)
		return FS_RANGE;
	if (pkts >= FS_MAX_PKTS)
		return 0;
	uint64_t inv = ((uint64_t)1 << (16 + ROOT_BITS)) / root(pkts << (2 * ROOT_BITS));

	return inv > INV_MAX ? FS_RANGE * (inv - INV_MAX) / (INV_MIN - INV_MAX) : 0;
}

static void answer(struct swift *s)
{
	uint64_t w = s->phase == MEASURE ? s->before : s->window;

	s->window = cc_limit_window(&s->cfg, s->window);
	s->target = s->min_rtt + BASE + HOPS * HOP + flow_part(s);
	s->rate = cc_limit_rate(&s->cfg, cc_pace(w, s->srtt, s->phase == START ? GAIN_START : GAIN_STEADY));
}

static void swift_init(void *state, const struct cc_cfg *cfg, rwy_time now)
{
	struct swift *s = state;

	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	s->phase = START;
	s->window = INITIAL_PKTS * (uint64_t)cfg->mtu;
	s->min_rtt = s->srtt = cfg->initial_rtt;
	for (unsigned i = 0; i < MEASURES; i++)
		s->measured[i] = RWY_NEVER;
	s->min_rtt_at = s->cut_at = now;
	answer(s);
}

static void swift_on_limits(void *state, const struct cc_cfg *cfg)
{
	struct swift *s = state;

	s->cfg = *cfg;
	answer(s);
}

static void swift_on_sent(void *state, uint32_t bytes, uint64_t inflight, rwy_time now)
{
}

static void rtt_sample(struct swift *s, rwy_dur rtt, rwy_time now)
{
	if (!rtt)
		return;
	if (!s->delays)
		s->min_rtt = s->srtt = rtt;
	s->srtt = s->srtt - s->srtt / 8 + rtt / 8;
	s->delay[s->delay_at] = rtt;
	s->delay_at = (s->delay_at + 1) % DELAYS;
	if (s->delays < DELAYS)
		s->delays++;
	/* Confirmed: no measurement is needed. As in BBR this synchronizes several senders: all see
	 * the queue that one's measurement drains. */
	if (rtt <= s->min_rtt + s->min_rtt / 256)
		s->min_rtt_at = now;
	s->min_rtt = rwy_time_min(s->min_rtt, rtt);
	s->measured[s->measured_at] = rwy_time_min(s->measured[s->measured_at], rtt);
}

static rwy_dur delay(const struct swift *s)
{
	rwy_dur d = s->delays ? s->delay[0] : s->min_rtt;

	for (unsigned i = 1; i < s->delays; i++)
		d = rwy_time_min(d, s->delay[i]);
	return d;
}

/* --- the window ------------------------------------------------------------------------------- */
static uint64_t step(const struct swift *s)
{
	uint64_t ms = s->min_rtt / RWY_MS;
	uint64_t most = cc_bytes_in(s->cfg.rate_Bps, s->min_rtt) / STEP_SHARE;
	uint64_t own = (ms ? ms : 1) * s->cfg.mtu;

	return own > most ? own : most;
}

static void grow(struct swift *s, const struct cc_ack *ack)
{
	if (!cc_window_used(ack, s->window, s->cfg.mtu))
		return;
	uint64_t acked = ack->acked_bytes < s->window ? ack->acked_bytes : s->window;

	s->window += s->phase == START ? acked : cc_mul_div(step(s), acked, s->window);
}

static bool may_cut(const struct swift *s, rwy_time now)
{
	return rwy_since(s->cut_at, now) >= s->srtt;
}

static void cut_to(struct swift *s, uint64_t window, rwy_time now)
{
	uint64_t least = s->window / DECREASE_MOST;

	s->window = window > least ? window : least;
	s->cut_at = now;
	if (s->phase == START) /* a sender that joins a path in use has not seen it empty */
		s->due = true;
	s->phase = STEADY;
}

static void cut_delay(struct swift *s, rwy_dur d, rwy_time now)
{
	uint64_t less = cc_mul_div(s->window, (d - s->target) * DECREASE_NUM, d * DECREASE_DEN);

	cut_to(s, less < s->window ? s->window - less : 0, now);
}

static bool too_lossy(const struct swift *s)
{
	uint64_t seen = s->acked + s->lost;

	return s->lost > seen / LOSS_DEN + LOSS_PKTS * (uint64_t)s->cfg.mtu;
}

/* --- the least RTT ---------------------------------------------------------------------------- */
static bool measure_due(const struct swift *s, rwy_time now)
{
	/* A delay that stays when almost nothing is in flight is no queue of ours: the path may
	 * have changed. */
	bool far = s->window <= FAR_PKTS * (uint64_t)s->cfg.mtu && delay(s) > 2 * s->min_rtt + 4 * BASE;

	return s->phase == STEADY && (s->due || far || rwy_since(s->min_rtt_at, now) > RTT_EXPIRY);
}

static void measure_begin(struct swift *s, rwy_time now)
{
	s->before = s->window;
	/* Half of what the path holds without a queue, which is window * min_rtt / srtt. */
	s->window = cc_mul_div(s->window, s->min_rtt, 2 * rwy_time_max(s->srtt, 1));
	s->phase = MEASURE;
	s->due = false;
	s->measured_at = (s->measured_at + 1) % MEASURES;
	s->measured[s->measured_at] = RWY_NEVER;
	s->measure_until = now + s->srtt + s->srtt / 2;
}

static void measure_end(struct swift *s, rwy_time now)
{
	rwy_dur here = s->measured[s->measured_at], min = here;
	/* another path: what is known of the old one is worthless */
	bool longer = here > 2 * s->min_rtt;

	for (unsigned i = 0; i < MEASURES; i++) {
		if (longer)
			s->measured[i] = here;
		min = rwy_time_min(min, s->measured[i]);
	}
	s->min_rtt = min;
	s->min_rtt_at = s->cut_at = now;
	s->window = s->before;
	s->delays = s->delay_at = 1; /* older samples mean nothing now */
	s->delay[0] = here;
	s->phase = longer ? START : STEADY;
}

static void swift_on_ack(void *state, const struct cc_ack *ack, rwy_time now)
{
	struct swift *s = state;

	s->acked = cc_add(s->acked, ack->acked_bytes);
	s->lost = cc_add(s->lost, ack->lost_bytes);
	rtt_sample(s, ack->rtt, now);
	if (s->phase == MEASURE) {
		if (now >= s->measure_until && s->measured[s->measured_at] != RWY_NEVER)
			measure_end(s, now);
	} else if (measure_due(s, now) && !ack->app_limited) {
		measure_begin(s, now);
	} else if (delay(s) <= s->target) {
		grow(s, ack);
	} else if (s->delays == DELAYS && may_cut(s, now)) {
		cut_delay(s, delay(s), now);
	}
	if (s->phase != MEASURE && too_lossy(s) && may_cut(s, now)) {
		cut_to(s, 0, now);
		s->acked = s->lost = 0;
	}
	if (ack->prior_delivered >= s->next_round) {
		s->next_round = ack->delivered;
		s->acked = s->lost = 0;
	}
	answer(s);
}

static void swift_on_lost(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now)
{
	struct swift *s = state;

	s->lost = cc_add(s->lost, bytes);
}

/* The paper goes to the least window after several timeouts. Here an outage is mostly a link that
 * broke and comes back unchanged; its losses must not count as congestion. */
static void swift_on_persistent(void *state, rwy_time now)
{
	struct swift *s = state;

	if (s->phase != MEASURE && may_cut(s, now))
		cut_to(s, 0, now);
	s->acked = s->lost = 0;
	answer(s);
}

static uint64_t swift_rate(const void *state)
{
	return ((const struct swift *)state)->rate;
}

static uint64_t swift_window(const void *state)
{
	return ((const struct swift *)state)->window;
}

static int swift_print(const void *state, char *out, size_t size)
{
	const struct swift *s = state;

	return snprintf(out, size,
	    "swift %s window=%" PRIu64 "kB delay=%" PRIu64 "us target=%" PRIu64 "us min=%" PRIu64 "us",
	    phase_name[s->phase], s->window / 1000, delay(s) / RWY_US, s->target / RWY_US,
	    s->min_rtt / RWY_US);
}

const struct cc_ops cc_swift = {
    .name = "swift",
    .init = swift_init,
    .on_limits = swift_on_limits,
    .on_sent = swift_on_sent,
    .on_ack = swift_on_ack,
    .on_lost = swift_on_lost,
    .on_persistent = swift_on_persistent,
    .rate = swift_rate,
    .window = swift_window,
    .print = swift_print,
};
