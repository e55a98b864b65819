/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path's round trip changes while a tunnel runs or idles (a change of route). Its model of the
 * shorter path must not make the longer one look like a queue: the rate recovers soon. And a queue
 * of other flows must not look like a longer path: test_cc_path.c, test_cc_wan.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cc/limits.h"
#include "tests/lib/cc_bottleneck.h"

#define GBIT ((uint64_t)125000000)

static const struct {
	rwy_dur from, to;
} steps[] = {
    {RWY_MS / 5, 3 * RWY_MS},
    {RWY_MS / 5, 5 * RWY_MS},
    {RWY_MS / 5, 10 * RWY_MS},
    {RWY_MS / 5, 20 * RWY_MS},
    {RWY_MS, 5 * RWY_MS},
    {RWY_MS, 20 * RWY_MS},
    {5 * RWY_MS, 20 * RWY_MS},
    {10 * RWY_MS, 40 * RWY_MS},
    {20 * RWY_MS, 30 * RWY_MS},
    {20 * RWY_MS, 60 * RWY_MS},
    {20 * RWY_MS, 100 * RWY_MS},
    {40 * RWY_MS, 200 * RWY_MS},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static const uint64_t rates[] = {GBIT / 10, GBIT, 4 * GBIT};

/* `idle`: little to send during the change. Share of the path for a second, from `after` the step
 * on. */
static double moved(size_t k, uint64_t rate, bool idle, uint32_t loss_ppm, rwy_dur after)
{
	struct cc_bn_cfg c;
	struct cc_bn b;
	double share;

	cc_bn_default(&c);
	c.rate_Bps = rate;
	c.rtt = steps[k].from;
	c.loss_ppm = loss_ppm;
	c.ack_gap = RWY_MS;
	c.queue_bytes = cc_bytes_in(rate, steps[k].to);
	cc_bn_init(&b, &c);
	cc_bn_add(&b, &cc_auto, 10 * GBIT);
	cc_bn_run(&b, 3 * RWY_SEC);
	if (idle) {
		b.flow[0].demand_Bps = rate / 1000;
		cc_bn_run(&b, RWY_SEC);
	}
	b.cfg.rtt = steps[k].to;
	if (idle) {
		cc_bn_run(&b, RWY_SEC / 2);
		b.flow[0].demand_Bps = 0;
	}
	cc_bn_run(&b, after);
	cc_bn_measure(&b);
	cc_bn_run(&b, RWY_SEC);
	share = cc_bn_total(&b);
	if (share < 0.9) {
		char line[96];

		cc_guard_print(b.flow[0].ops, b.flow[0].state, line, sizeof(line));
		print_message("%5.1f to %5.1f ms, %4.0f MB/s, loss %u ppm%s: %.3f; %s\n",
		    (double)steps[k].from / 1e6, (double)steps[k].to / 1e6, (double)rate / 1e6, loss_ppm,
		    idle ? ", idle" : "", share, line);
	}
	cc_bn_fini(&b);
	return share;
}

static void all_steps(bool idle, uint32_t loss_ppm)
{
	unsigned bad = 0;

	for (size_t k = 0; k < STEPS; k++) {
		rwy_dur after = rwy_time_max(RWY_SEC / 2, 20 * steps[k].to);

		for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
			bad += moved(k, rates[r], idle, loss_ppm, after) < 0.8;
	}
	assert_int_equal(bad, 0);
}

static void test_busy(void **state)
{
	all_steps(false, 0);
}

static void test_busy_loss(void **state)
{
	all_steps(false, 10000);
}

static void test_idle(void **state)
{
	all_steps(true, 0);
}

/*
 * A sender with little to send while other flows fill the reverse path sees its round trip grow
 * without a part in it: when it has much to send, the rate is there soon. From the beginning, or
 * after a busy time.
 */
static void test_way_back(void **state)
{
	static const rwy_dur rtts[] = {RWY_MS, 20 * RWY_MS, 100 * RWY_MS};
	unsigned bad = 0;

	for (size_t k = 0; k < sizeof(rtts) / sizeof(rtts[0]); k++)
		for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
			for (unsigned busy = 0; busy < 2; busy++) {
				struct cc_bn_cfg c;
				struct cc_bn b;
				double share;

				cc_bn_default(&c);
				c.rate_Bps = rates[r];
				c.rtt = rtts[k];
				c.ack_gap = RWY_MS;
				c.queue_bytes = cc_bytes_in(rates[r], rtts[k]);
				cc_bn_init(&b, &c);
				cc_bn_add(&b, &cc_auto, 10 * GBIT);
				b.flow[0].demand_Bps = busy ? 0 : rates[r] / 1000;
				cc_bn_run(&b, busy ? 3 * RWY_SEC : 5 * rtts[k]);
				b.flow[0].demand_Bps = rates[r] / 1000;
				for (unsigned i = 0; i < 40; i++) {
					b.cfg.rtt = rtts[k] + rtts[k] * (i % 10) / 10;
					cc_bn_run(&b, RWY_SEC / 20);
				}
				b.cfg.rtt = rtts[k];
				b.flow[0].demand_Bps = 0;
				cc_bn_run(&b, 20 * rtts[k] + 50 * RWY_MS);
				cc_bn_measure(&b);
				cc_bn_run(&b, RWY_SEC);
				share = cc_bn_total(&b);
				if (share < 0.8)
					print_message("%5.1f ms, %4.0f MB/s, %s: %.3f\n",
					    (double)rtts[k] / 1e6, (double)rates[r] / 1e6,
					    busy ? "busy before" : "from the beginning", share);
				bad += share < 0.8;
				cc_bn_fini(&b);
			}
	assert_int_equal(bad, 0);
}

/*
 * Other flows fill and drain a queue on the reverse path, up to twice the round trip, all the time:
 * a sender that knows the reverse delay keeps its rate, and makes no larger queue on the forward
 * path than without it.
 */
static void test_told_way_back(void **state)
{
	static const rwy_dur rtts[] = {RWY_MS, 20 * RWY_MS, 100 * RWY_MS};
	unsigned bad = 0;

	for (size_t k = 0; k < sizeof(rtts) / sizeof(rtts[0]); k++)
		for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
			struct cc_bn_cfg c;
			struct cc_bn b;
			double share;
			rwy_dur queue;

			cc_bn_default(&c);
			c.rate_Bps = rates[r];
			c.rtt = rtts[k];
			c.ack_gap = RWY_MS;
			c.queue_bytes = cc_bytes_in(rates[r], 2 * rtts[k]);
			cc_bn_init(&b, &c);
			cc_bn_add(&b, &cc_auto, 10 * GBIT);
			cc_bn_run(&b, RWY_SEC + 20 * rtts[k]);
			cc_bn_measure(&b);
			for (unsigned i = 0; i < 200; i++) {
				unsigned x = i % 40;

				b.cfg.way_back = rtts[k] * (x < 20 ? x : 40 - x) / 10;
				cc_bn_run(&b, RWY_SEC / 40);
			}
			share = cc_bn_total(&b);
			queue = cc_bn_queue_mean(&b);
			if (share < 0.9 || queue > rtts[k] / 4 + 3 * RWY_MS) {
				print_message("%5.1f ms, %4.0f MB/s: %.3f, queue %.2f ms\n",
				    (double)rtts[k] / 1e6, (double)rates[r] / 1e6, share,
				    (double)queue / 1e6);
				bad++;
			}
			cc_bn_fini(&b);
		}
	assert_int_equal(bad, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_busy),
	    cmocka_unit_test(test_busy_loss), cmocka_unit_test(test_idle), cmocka_unit_test(test_way_back),
	    cmocka_unit_test(test_told_way_back)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
