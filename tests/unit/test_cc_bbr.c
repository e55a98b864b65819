/* SPDX-License-Identifier: Apache-2.0 */
/* cc_bbr: its phases, and the effects of loss. */
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

static void phase(const struct cc_bn *b, char out[16])
{
	char line[96];

	cc_guard_print(&cc_bbr, b->flow[0].state, line, sizeof(line));
	assert_int_equal(sscanf(line, "bbr %15s", out), 1);
}

static void begin(struct cc_bn *b, const struct cc_bn_cfg *c)
{
	cc_bn_init(b, c);
	cc_bn_add(b, &cc_bbr, 10 * GBIT);
}

/* Every phase occurs, each probe is limited in time, and most time is cruising. */
static void test_phases(void **state)
{
	static const char *const names[] = {"startup", "drain", "down", "cruise", "refill", "up", "rtt"};
	unsigned seen[7] = {0}, all = 0;
	struct cc_bn_cfg c;
	struct cc_bn b;

	cc_bn_default(&c);
	begin(&b, &c);
	/* A second flow keeps a queue, so that the least RTT is not seen by chance. */
	cc_bn_add(&b, &cc_bbr, 10 * GBIT);
	for (; all < 30000; all++) {
		char now[16];

		cc_bn_run(&b, RWY_MS);
		phase(&b, now);
		for (unsigned i = 0; i < 7; i++)
			seen[i] += strcmp(now, names[i]) == 0;
	}
	for (unsigned i = 0; i < 7; i++) {
		print_message("%s %u ms  ", names[i], seen[i]);
		assert_true(seen[i] > 0);
	}
	print_message("\n");
	assert_true(seen[0] < 1000);
	assert_true(seen[3] > all / 2);
	assert_true(seen[5] + seen[4] < all / 4);
	assert_true(seen[6] < all / 10);
	cc_bn_fini(&b);
}

/* Startup reaches 1 Gb/s from 100 datagrams within half a second. */
static void test_startup_time(void **state)
{
	struct cc_bn_cfg c;
	struct cc_bn b;

	cc_bn_default(&c);
	begin(&b, &c);
	cc_bn_run(&b, 500 * RWY_MS);
	cc_bn_measure(&b);
	cc_bn_run(&b, 500 * RWY_MS);
	assert_true(cc_bn_total(&b) >= 0.95);
	cc_bn_fini(&b);
}

/* A queue of a tenth of the BDP: loss that it causes limits the data in flight, and the rate
 * stays. */
static void test_short_queue(void **state)
{
	struct cc_bn_cfg c;
	struct cc_bn b;

	cc_bn_default(&c);
	c.queue_bytes = 250000;
	begin(&b, &c);
	cc_bn_run(&b, 5 * RWY_SEC);
	cc_bn_measure(&b);
	uint64_t lost = b.flow[0].lost;

	cc_bn_run(&b, 20 * RWY_SEC);
	double share = (double)(b.flow[0].lost - lost) / (double)(b.flow[0].delivered - b.flow[0].from);

	print_message("short queue: %.3f of the path, %.4f lost\n", cc_bn_total(&b), share);
	assert_true(cc_bn_total(&b) >= 0.9);
	assert_true(share <= 0.02);
	cc_bn_fini(&b);
}

/* Random loss: no effect well below the threshold of 2 %, a random one near it, no stop far above
 * it. */
static void test_loss_threshold(void **state)
{
	static const struct {
		uint32_t ppm;
		double at_least;
	} all[] = {{1000, 0.95}, {5000, 0.95}, {10000, 0.95}, {15000, 0.2}, {100000, 0.001}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct cc_bn_cfg c;
		struct cc_bn b;

		cc_bn_default(&c);
		c.loss_ppm = all[i].ppm;
		begin(&b, &c);
		cc_bn_run(&b, 3 * RWY_SEC);
		cc_bn_measure(&b);
		cc_bn_run(&b, 10 * RWY_SEC);
		print_message("%u ppm: %.3f of the path\n", all[i].ppm, cc_bn_total(&b));
		assert_true(cc_bn_total(&b) >= all[i].at_least);
		cc_bn_fini(&b);
	}
}

/* All datagrams marked: it reduces its rate, and takes the path again when the marks end. */
static void test_marks(void **state)
{
	struct cc_bn_cfg c;
	struct cc_bn b;

	cc_bn_default(&c);
	c.mark_min = c.mark_max = 250000; /* above 2 ms of queue */
	begin(&b, &c);
	cc_bn_run(&b, 3 * RWY_SEC);
	cc_bn_measure(&b);
	cc_bn_run(&b, 10 * RWY_SEC);
	print_message("marks: %.3f of the path, queue %.2f ms, most %.2f ms\n", cc_bn_total(&b),
	    (double)cc_bn_queue_mean(&b) / 1e6, (double)cc_bn_queue_most(&b) / 1e6);
	assert_true(cc_bn_total(&b) >= 0.85);
	assert_true(cc_bn_queue_mean(&b) <= 2 * RWY_MS);
	cc_bn_fini(&b);
}

/* An outage changes nothing: the first round trip after it is at rate. */
static void test_outage(void **state)
{
	struct cc_bn_cfg c;
	struct cc_bn b;

	cc_bn_default(&c);
	begin(&b, &c);
	cc_bn_run(&b, 3 * RWY_SEC);
	uint64_t window = b.flow[0].answer.window;

	cc_bbr.on_persistent(b.flow[0].state, b.now);
	cc_bbr.on_lost(b.flow[0].state, window, b.now, 0, b.now);
	cc_bn_run(&b, 50 * RWY_MS);
	assert_true(b.flow[0].answer.window >= window / 2);
	cc_bn_measure(&b);
	cc_bn_run(&b, 500 * RWY_MS);
	assert_true(cc_bn_total(&b) >= 0.9);
	cc_bn_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_phases),
	    cmocka_unit_test(test_startup_time),
	    cmocka_unit_test(test_short_queue),
	    cmocka_unit_test(test_loss_threshold),
	    cmocka_unit_test(test_marks),
	    cmocka_unit_test(test_outage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
