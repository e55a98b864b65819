/* SPDX-License-Identifier: Apache-2.0 */
/* Competition with loss-based TCP; see auto_tcp.h. */
#include <string.h>

#include "cc/auto_tcp.h"
#include "cc/limits.h"

#define SEGMENT    1500u /* the others' segment: CUBIC and Reno grow by segments */
#define TEST_EVERY (2 * RWY_SEC)
#define TEST_RTTS  20 /* round trips between tests, at least */
/* 2.25 round trips: a sender that keeps a longer queue fills buffers until they drop; BBR does
 * not */
#define DEEP_NUM    9
#define DEEP_DEN    4
#define TESTS_ALONE 2
/* tests without a queue that end it: CUBIC's queue is gone for some seconds after each loss */
#define QUIET_TESTS 5
#define TESTS_MOST  32
#define AGAIN       (20 * RWY_SEC)
/* our share of the path, in 1/1024, up to which we behave as any CUBIC flow */
#define MODEST 600u
#define GREEDY 900u
/* part kept of what a loss left, from GREEDY on: the loss then leaves 0.35 */
#define KEEP_LEAST 512u
#define FAILED_MAX 3 /* tests that find others become up to eight times rarer */

static void plan_test(struct cc_tcp *c, rwy_dur rtt, rwy_time now)
{
	rwy_dur least = rwy_time_max(TEST_EVERY, TEST_RTTS * rtt), gap = least << c->failed;

	c->seed = c->seed * 1664525u + 1013904223u;
	/* the test comes up to a quarter later */
	c->test_at = now + gap + gap / 256 * (c->seed >> 26);
	c->join_at = now + least / 2;
	c->testing = false;
	c->sum = 0;
	c->samples = 0;
}

void cc_tcp_limits(struct cc_tcp *c, const struct cc_cfg *cfg)
{
	cc_cubic.on_limits(c->cubic, cfg);
}

void cc_tcp_begin(struct cc_tcp *c, const struct cc_cfg *cfg, uint64_t window, rwy_dur rtt, rwy_time now)
{
	struct cc_cfg sub = *cfg;
	bool again = c->need && rwy_since(c->left, now) < AGAIN;
	uint8_t need = !again ? TESTS_ALONE : c->need < TESTS_MOST ? 2 * c->need : TESTS_MOST;

	memset(c, 0, sizeof(*c));
	c->need = need;
	sub.mtu = SEGMENT;
	sub.initial_rtt = rtt;
	cc_cubic.init(c->cubic, &sub, now);
	cc_cubic_window_set(c->cubic, window, false);
	c->seed = (uint32_t)now;
	c->before = RWY_NEVER;
	c->hold_Bps = cc_pace(window, rtt, 256);
	c->settled_at = now + 2 * rtt;
	plan_test(c, rtt, now);
}

static rwy_dur mean(const struct cc_tcp *c)
{
	return c->samples ? c->sum / c->samples : 0;
}

static enum cc_tcp_found test_end(
    struct cc_tcp *c, const struct cc_ack *ack, bool empty, bool unmoved, rwy_time now)
{
	c->alone = empty ? c->alone + 1 : 0;
	c->quiet = 0;
	c->left = now;
	c->failed = empty ? 0 : c->failed < FAILED_MAX ? c->failed + 1 : FAILED_MAX;
	plan_test(c, ack->rtt, now);
	c->before = RWY_NEVER;
	return c->alone >= c->need ? CC_TCP_ALONE : unmoved ? CC_TCP_UNMOVED : CC_TCP_STAYS;
}

static enum cc_tcp_found test_step(
    struct cc_tcp *c, const struct cc_ack *ack, rwy_dur reverse, rwy_dur base, rwy_dur noise, rwy_time now)
{
	if (!c->drained && ack->inflight <= c->test_window) {
		c->drained = true;
		c->round_from = now + ack->rtt;
	}
	if (c->drained && now >= c->round_from && ack->rtt)
		c->test_min = rwy_time_min(c->test_min, ack->rtt - reverse);
	if (now < c->test_at) /* the test lasts as long as senders that joined it later need */
		return CC_TCP_STAYS;
	bool empty = c->test_min <= base + c->queue / 16 + 100 * RWY_US;
	bool known = c->test_min != RWY_NEVER && c->samples;

	c->deep = c->test_min != RWY_NEVER && c->test_min > base * DEEP_NUM / DEEP_DEN;
	return test_end(c, ack, empty,
	    known && !empty && c->half && c->test_min + c->test_min / 16 + 2 * noise >= mean(c), now);
}

static void test_begin(
    struct cc_tcp *c, const struct cc_ack *ack, rwy_dur reverse, rwy_dur base, rwy_time now)
{
	uint64_t need = cc_mul_div(cc_cubic.window(c->cubic), base + reverse, ack->rtt);

	c->testing = true;
	c->drained = false;
	c->test_min = RWY_NEVER;
	c->queue = ack->rtt - reverse - base;
	c->test_window = need - need / 128;
	uint64_t half = cc_cubic.window(c->cubic) / 2;

	/* True also if the reverse delay rose together with the forward delay. */
	c->half = base <= (ack->rtt - reverse) / 2;
	if (c->half && c->test_window > half)
		c->test_window = half;
	c->test_at = now + 2 * ack->rtt + base;
}

/* The queue became much shorter within a round without a loss: another sender of our kind tests
 * whether it is alone. If all test at once, all see the result. */
static bool somebody_tests(struct cc_tcp *c, rwy_dur rtt, rwy_dur base, rwy_time now)
{
	if (now < c->look_at)
		return false;
	rwy_dur queue = c->before > base ? c->before - base : 0;
	bool drop = c->before != RWY_NEVER && rtt + queue / 16 + RWY_MS / 4 < c->before;

	c->before = rtt;
	c->look_at = now + rtt / 2;
	return drop && now >= c->join_at;
}

/* Until the first loss nobody has asked for less: the window grows with the queue, so that our rate
 * stays. */
static void keep_rate(struct cc_tcp *c, const struct cc_ack *ack)
{
	uint64_t w = cc_bytes_in(c->hold_Bps, ack->rtt);

	if (w > cc_cubic.window(c->cubic))
		cc_cubic_window_set(c->cubic, w, false);
}

/*
 * Returns, in 1/1024, the part to keep of what a loss left. At a loss every sender hit gives back
 * three tenths. Three tenths of little are little, and a CUBIC flow on a long path takes tens of
 * seconds to grow into the free part; so a sender with most of the path gives back more. It does so
 * only beside senders that stay when we test whether we are alone: senders of our kind leave as
 * well.
 */
static unsigned share_kept(unsigned share)
{
	if (share <= MODEST)
		return 1024;
	if (share >= GREEDY)
		return KEEP_LEAST;
	return 1024 - (share - MODEST) * (1024 - KEEP_LEAST) / (GREEDY - MODEST);
}

enum cc_tcp_found cc_tcp_on_ack(struct cc_tcp *c, const struct cc_ack *ack, bool congestive, unsigned share,
    rwy_dur reverse, rwy_dur base, rwy_dur late, rwy_dur noise, rwy_time now)
{
	struct cc_ack a = *ack;
	rwy_dur rtt = ack->rtt - rwy_time_min(reverse, ack->rtt);

	congestive = congestive && now >= c->settled_at;
	if (congestive)
		c->hold_Bps = 0;
	a.lost_bytes = congestive ? 1 : 0;
	a.lost_sent = now - rwy_time_min(now, ack->rtt);
	uint64_t before = cc_cubic.window(c->cubic);
	if (c->testing) {
		a.app_limited = true; /* our window limits it, not its use by the sender */
		cc_cubic.on_ack(c->cubic, &a, now);
		return test_step(c, ack, reverse, base, noise, now);
	}
	if (!c->deep && rtt > base * DEEP_NUM / DEEP_DEN)
		a.app_limited = true; /* others shall fill it, not we */
	cc_cubic.on_ack(c->cubic, &a, now);
	if (congestive && c->failed && cc_cubic.window(c->cubic) < before)
		cc_cubic_yield(c->cubic, share_kept(share));
	if (!ack->rtt)
		return CC_TCP_STAYS;
	if (c->hold_Bps)
		keep_rate(c, ack);
	c->sum += rtt;
	c->samples++;
	if (now >= c->test_at && mean(c) <= late + 2 * noise) {
		plan_test(c, ack->rtt, now);
		return ++c->quiet >= QUIET_TESTS ? CC_TCP_ALONE : CC_TCP_STAYS;
	}
	if (rtt > late && (now >= c->test_at || somebody_tests(c, rtt, base, now)))
		test_begin(c, ack, reverse, base, now);
	return CC_TCP_STAYS;
}

uint64_t cc_tcp_window(const struct cc_tcp *c)
{
	return c->testing ? c->test_window : cc_cubic.window(c->cubic);
}

uint64_t cc_tcp_rate(const struct cc_tcp *c)
{
	return cc_cubic.rate(c->cubic);
}
