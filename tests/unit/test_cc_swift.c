/* SPDX-License-Identifier: Apache-2.0 */
/* cc_swift: the target, the two moves, and the delay it holds. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/cc_bottleneck.h"

#define GBIT ((uint64_t)125000000)
#define MTU  1500
#define RTT  (20 * RWY_MS)

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
	cc_swift.init(o->state, &cfg, o->now);
}

/* An ACK of `bytes` with this RTT, while the window was full. */
static void ack(struct one *o, uint64_t bytes, rwy_dur rtt, uint64_t lost)
{
	uint64_t window = cc_swift.window(o->state);
	struct cc_ack a = {.acked_bytes = bytes,
	    .lost_bytes = lost,
	    .prior_delivered = o->delivered,
	    .delivered = o->delivered + bytes,
	    .inflight = window > bytes + lost ? window - bytes - lost : 0,
	    .rtt = rtt,
	    .min_rtt = RTT};

	o->delivered += bytes;
	cc_swift.on_ack(o->state, &a, o->now);
}

static uint64_t target_us(const struct one *o)
{
	char line[96];

	cc_guard_print(&cc_swift, o->state, line, sizeof(line));
	assert_non_null(strstr(line, "target="));
	return strtoull(strstr(line, "target=") + 7, NULL, 10);
}

/* Doubles until the delay exceeds the target. */
static void test_start(void **state)
{
	struct one o;

	start(&o);
	for (int i = 0; i < 5; i++) {
		uint64_t before = cc_swift.window(o.state);

		ack(&o, before, RTT, 0);
		assert_int_equal(cc_swift.window(o.state), 2 * before);
		o.now += RTT;
	}
}

/* A larger window gets less delay, within the range that scaling has; none falls below base and hops. */
static void test_target_scaling(void **state)
{
	struct one o;
	uint64_t last;

	start(&o);
	ack(&o, MTU, RTT, 0);
	last = target_us(&o);
	for (int i = 0; i < 12; i++) {
		ack(&o, cc_swift.window(o.state), RTT, 0);
		o.now += RTT;
		assert_true(target_us(&o) <= last);
		last = target_us(&o);
		assert_in_range(last, 20000 + 1400, 20000 + 3400);
	}
	assert_int_equal(last, 21400); /* far beyond fs_max: nothing for flows */
}

/* In proportion to the excess, at most by half, and not twice in a round trip. */
static void test_one_decrease_a_round(void **state)
{
	struct one o;
	unsigned cuts = 0;

	start(&o);
	for (int i = 0; i < 4; i++, o.now += RTT)
		ack(&o, cc_swift.window(o.state), RTT, 0);
	for (int i = 0; i < 5; i++, o.now += RTT) /* leaves the start by a cut and a measurement */
		ack(&o, MTU, i ? RTT : 2 * RTT, 0);
	for (int i = 0; i < 4; i++, o.now += RTT / 4)
		ack(&o, MTU, 2 * RTT, 0);
	for (int i = 0; i < 4; i++, o.now += RTT)
		ack(&o, MTU, RTT, 0);
	for (int i = 0; i < 200; i++, o.now += RTT / 20) {
		uint64_t before = cc_swift.window(o.state);

		ack(&o, MTU, 2 * RTT, 0);
		uint64_t after = cc_swift.window(o.state);

		assert_true(i < 4 || after <= before); /* four ACKs confirm a delay */
		assert_true(after >= before / 2);
		cuts += after < before;
	}
	assert_in_range(cuts, 3, 10); /* in ten times 20 ms; the smoothed RTT is between 20 and 40 ms */
}

/* One late ACK is a process that slept, not a queue. */
static void test_a_single_delay(void **state)
{
	struct one o;

	start(&o);
	for (int i = 0; i < 100; i++, o.now += RTT / 4) {
		uint64_t before = cc_swift.window(o.state);

		ack(&o, MTU, i % 4 ? RTT : 3 * RTT, 0);
		assert_true(cc_swift.window(o.state) >= before);
	}
}

/* 1 % lost is the path's, 5 % is not. */
static void test_losses(void **state)
{
	struct one o;

	start(&o);
	for (int i = 0; i < 4; i++, o.now += RTT)
		ack(&o, cc_swift.window(o.state), RTT, 0);
	for (int i = 0; i < 20; i++, o.now += RTT) {
		uint64_t before = cc_swift.window(o.state);

		ack(&o, before / 100 * 99, RTT, before / 100);
		assert_true(cc_swift.window(o.state) >= before);
	}
	uint64_t before = cc_swift.window(o.state);

	ack(&o, before / 100 * 95, RTT, before / 100 * 5);
	assert_true(cc_swift.window(o.state) < before);
}

/* At the bottleneck: the queue stays near the target for minutes, so its own queue never becomes
 * its base. */
static void test_holds_its_target(void **state)
{
	static const unsigned flows[] = {1, 2, 4, 8};

	for (size_t k = 0; k < sizeof(flows) / sizeof(flows[0]); k++) {
		struct cc_bn_cfg c;
		struct cc_bn b;

		cc_bn_default(&c);
		cc_bn_init(&b, &c);
		for (unsigned i = 0; i < flows[k]; i++) {
			cc_bn_add(&b, &cc_swift, 10 * GBIT);
			cc_bn_run(&b, RWY_SEC);
		}
		cc_bn_run(&b, 20 * RWY_SEC);
		cc_bn_measure(&b);
		cc_bn_run(&b, 100 * RWY_SEC);
		print_message("%u flows: %.3f of the path, Jain %.3f, queue %.2f ms, most %.2f ms\n",
		    flows[k], cc_bn_total(&b), cc_bn_jain(&b), (double)cc_bn_queue_mean(&b) / 1e6,
		    (double)cc_bn_queue_most(&b) / 1e6);
		assert_true(cc_bn_total(&b) >= 0.95);
		assert_true(cc_bn_jain(&b) >= 0.9);
		assert_in_range(cc_bn_queue_mean(&b), 500 * RWY_US, 5 * RWY_MS);
		assert_true(cc_bn_queue_most(&b) <= 12 * RWY_MS);
		assert_int_equal(b.drops, 0);
		cc_bn_fini(&b);
	}
}

/* The path becomes ten times as long, then short again: the base follows within three seconds. */
static void test_path_moves(void **state)
{
	struct cc_bn_cfg c;
	struct cc_bn b;

	cc_bn_default(&c);
	c.rtt = 5 * RWY_MS;
	c.queue_bytes = 6000000;
	cc_bn_init(&b, &c);
	cc_bn_add(&b, &cc_swift, 10 * GBIT);
	cc_bn_run(&b, 3 * RWY_SEC);
	for (int i = 0; i < 2; i++) {
		b.cfg.rtt = i ? 5 * RWY_MS : 50 * RWY_MS;
		cc_bn_run(&b, 3 * RWY_SEC);
		cc_bn_measure(&b);
		cc_bn_run(&b, 15 * RWY_SEC);
		print_message("after the move: %.3f of the path, queue %.2f ms\n", cc_bn_total(&b),
		    (double)cc_bn_queue_mean(&b) / 1e6);
		assert_true(cc_bn_total(&b) >= 0.9);
		assert_true(cc_bn_queue_mean(&b) <= 5 * RWY_MS);
	}
	cc_bn_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_start),
	    cmocka_unit_test(test_target_scaling),
	    cmocka_unit_test(test_one_decrease_a_round),
	    cmocka_unit_test(test_a_single_delay),
	    cmocka_unit_test(test_losses),
	    cmocka_unit_test(test_holds_its_target),
	    cmocka_unit_test(test_path_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
