/* SPDX-License-Identifier: Apache-2.0 */
/* cc_cubic: the shape of the curve, and the events that count as one. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/cc.h"
#include "cc/cubic.h"
#include "cc/guard.h"

#define MTU 1500
#define RTT (100 * RWY_MS)

struct one {
	alignas(16) uint8_t state[CC_STATE_SIZE];
	rwy_time now;
	uint64_t delivered;
};

static void start(struct one *o)
{
	struct cc_cfg cfg = {.min_rate_Bps = 125000, .mtu = MTU, .initial_rtt = RTT};

	memset(o, 0, sizeof(*o));
	o->now = RWY_SEC;
	cc_cubic.init(o->state, &cfg, o->now);
}

static uint64_t window(const struct one *o)
{
	return cc_cubic.window(o->state);
}

static void ack(struct one *o, uint64_t bytes, uint64_t lost, rwy_time lost_sent, bool full)
{
	struct cc_ack a = {.acked_bytes = bytes,
	    .lost_bytes = lost,
	    .lost_sent = lost_sent,
	    .delivered = o->delivered + bytes,
	    .inflight = full ? window(o) : 0,
	    .rtt = RTT,
	    .min_rtt = RTT};

	o->delivered += bytes;
	cc_cubic.on_ack(o->state, &a, o->now);
}

/* A round trip with everything acknowledged, in ten ACKs. */
static void round_trip(struct one *o)
{
	uint64_t w = window(o);

	for (int i = 0; i < 10; i++) {
		o->now += RTT / 10;
		ack(o, w / 10, 0, 0, true);
	}
}

static void lose(struct one *o)
{
	ack(o, MTU, MTU, o->now - RTT / 2, true);
}

/* Slow start doubles; a loss makes it 0.7 (RFC 9438 section 4.6). */
static void test_start_and_loss(void **state)
{
	struct one o;

	start(&o);
	for (int i = 0; i < 5; i++) {
		uint64_t before = window(&o);

		round_trip(&o);
		assert_in_range(window(&o), before * 19 / 10, before * 2);
	}
	uint64_t before = window(&o);

	lose(&o);
	assert_in_range(window(&o), before * 7 / 10 - 1, before * 7 / 10);
}

/* Losses of packets sent before the cut belong to it; later ones are a new event (RFC 9002 section
 * 7.3.2). */
static void test_one_event_a_round(void **state)
{
	struct one o;

	start(&o);
	for (int i = 0; i < 5; i++)
		round_trip(&o);
	rwy_time event = o.now;

	lose(&o);
	uint64_t cut = window(&o);

	for (int i = 0; i < 10; i++) {
		o.now += RTT / 20;
		ack(&o, MTU, MTU, event, true);
		assert_int_equal(window(&o), cut);
	}
	cc_cubic.on_lost(o.state, MTU, event, window(&o), o.now);
	assert_int_equal(window(&o), cut);
	o.now += RTT;
	cc_cubic.on_lost(o.state, MTU, event + 1, window(&o), o.now);
	assert_true(window(&o) < cut);
}

/* After the cut of W: back at W after K = cbrt(W (1 - 0.7) / 0.4) seconds, concave before, convex after. */
static void test_curve(void **state)
{
	struct one o;

	start(&o);
	for (int i = 0; i < 6; i++)
		round_trip(&o);
	uint64_t top = window(&o), k_ms = 0, half = 0;

	lose(&o);
	o.now += RTT;
	for (uint64_t x = (top / MTU) * 3 / 4 * 1000000000; k_ms * k_ms * k_ms < x; k_ms++)
		;
	uint64_t bottom = window(&o);
	rwy_time from = o.now;

	while (o.now - from < k_ms * RWY_MS) {
		round_trip(&o);
		if (!half && o.now - from >= k_ms * RWY_MS / 2)
			half = window(&o);
	}
	assert_in_range(
	    half - bottom, (top - bottom) * 8 / 10, (top - bottom) * 95 / 100); /* 7/8 of the way */
	assert_in_range(window(&o), top * 97 / 100, top * 103 / 100);
	while (o.now - from < 3 * k_ms * RWY_MS)
		round_trip(&o);
	assert_true(window(&o) > top + (top - bottom) * 2);
}

/* A second event below the first one's window lowers the plateau (section 4.7). */
static void test_fast_convergence(void **state)
{
	struct one a, b;

	start(&a);
	for (int i = 0; i < 6; i++)
		round_trip(&a);
	lose(&a);
	b = a;
	for (int i = 0; i < 3; i++) {
		round_trip(&a);
		round_trip(&b);
	}
	lose(&b);
	char line[96];

	cc_guard_print(&cc_cubic, a.state, line, sizeof(line));
	uint64_t first = strtoull(strstr(line, "w_max=") + 6, NULL, 10), before = window(&a) / 1000;

	cc_guard_print(&cc_cubic, b.state, line, sizeof(line));
	uint64_t second = strtoull(strstr(line, "w_max=") + 6, NULL, 10);

	assert_true(second < first);
	assert_in_range(second, before * 84 / 100, before * 86 / 100);
}

/* A sender with little to send gets no larger window. */
static void test_app_limited(void **state)
{
	struct one o;

	start(&o);
	uint64_t before = window(&o);

	for (int i = 0; i < 100; i++) {
		o.now += RTT;
		ack(&o, 10 * MTU, 0, 0, false);
	}
	assert_int_equal(window(&o), before);
}

/* Complete datagrams: a window of 2.8 allows only two in flight. It still grows. */
static void test_small_window(void **state)
{
	struct one o;

	for (uint64_t tenths = 20; tenths < 60; tenths++) {
		start(&o);
		cc_cubic_window_set(o.state, tenths * MTU / 10, false);
		for (int i = 0; i < 100; i++) {
			o.now += RTT;
			ack(&o, window(&o) / MTU * MTU, 0, 0, false);
		}
		assert_true(window(&o) > 20ul * MTU);
	}
}

/* An outage: the least window, then slow start (RFC 9002 section 7.6). */
static void test_persistent(void **state)
{
	struct one o;

	start(&o);
	for (int i = 0; i < 5; i++)
		round_trip(&o);
	cc_cubic.on_persistent(o.state, o.now);
	assert_int_equal(window(&o), 2 * MTU);
	o.now += 2 * RTT;
	for (int i = 0; i < 3; i++)
		round_trip(&o);
	assert_in_range(window(&o), 8 * MTU, 16 * MTU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_start_and_loss),
	    cmocka_unit_test(test_one_event_a_round),
	    cmocka_unit_test(test_curve),
	    cmocka_unit_test(test_fast_convergence),
	    cmocka_unit_test(test_app_limited),
	    cmocka_unit_test(test_small_window),
	    cmocka_unit_test(test_persistent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
