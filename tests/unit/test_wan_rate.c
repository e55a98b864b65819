/* SPDX-License-Identifier: Apache-2.0 */
/* RATE: the receiver limits one flow's data in flight; others continue, losses are repaired, a
 * restart clears it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

static void start(struct wan_pair *p, uint32_t loss_ppm)
{
	struct wan_link_cfg l = {.delay = 5 * RWY_MS, .loss_ppm = loss_ppm};
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.tx_pkts_max = 4096;
	wan_pair_init(p, &c, &l, &l, 5);
}

/* Opens the flows, with one buffer each at the receiver, which then reports no delivery. */
static void open_flows(struct wan_pair *p, uint32_t n)
{
	wan_pair_streams(p, n, 1000, 500, 500, 1);
	wan_pair_settle(p, 200 * RWY_MS);
	p->end[1].stall = true;
	for (uint32_t i = 0; i < n; i++)
		assert_non_null(p->stream[i].rx);
}

static void test_bound(void **state)
{
	struct wan_pair p;
	uint64_t before, drain;

	start(&p, 0);
	open_flows(&p, 2);
	wan_pair_settle(&p, 100 * RWY_MS);
	wan_rx_window(p.stream[0].rx, 5000, 777);
	wan_pair_settle(&p, 100 * RWY_MS);
	assert_int_equal(wan_tx_window(p.stream[0].tx, &drain), 5000);
	assert_int_equal(drain, 777);
	before = p.stream[0].got;
	p.stream[0].queue_max = p.stream[1].queue_max = 100;
	wan_pair_settle(&p, 500 * RWY_MS);
	/* One is under way already; ten are 5000 bytes. The other flow is not held up. */
	assert_in_range(p.stream[0].got - before, 8, 10);
	assert_true(wan_tx_blocked(p.stream[0].tx));
	assert_true(p.stream[1].got >= 99);
	/* Less than one buffer still allows one in flight. */
	wan_rx_window(p.stream[0].rx, 1, 0);
	p.end[1].stall = false;
	assert_true(wan_pair_run(&p, p.now + 100 * RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

/* The frame that lifts the limit is lost, and sent again. */
static void test_lost(void **state)
{
	struct wan_pair p;

	start(&p, 400000);
	open_flows(&p, 1);
	for (unsigned i = 0; i < 20; i++) {
		wan_rx_window(p.stream[0].rx, 1000 + i, 0);
		wan_pair_settle(&p, 20 * RWY_MS);
	}
	wan_rx_window(p.stream[0].rx, 0, 0);
	p.stream[0].queue_max = 300;
	wan_pair_settle(&p, 20 * RWY_SEC);
	assert_int_equal(wan_tx_window(p.stream[0].tx, &(uint64_t){0}), 0);
	assert_true(p.stream[0].got >= 300);
	p.end[1].stall = false;
	assert_true(wan_pair_run(&p, p.now + 1000 * RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

/* The receiver restarts without a limit: the sender has none, either. */
static void test_restart(void **state)
{
	struct wan_pair p;
	uint64_t drain;

	start(&p, 0);
	open_flows(&p, 1);
	wan_rx_window(p.stream[0].rx, 1000, 1);
	wan_pair_settle(&p, 100 * RWY_MS);
	p.stream[0].queue_max = 50;
	wan_pair_settle(&p, 100 * RWY_MS);
	assert_true(wan_tx_blocked(p.stream[0].tx));
	wan_pair_restart(&p, 1);
	p.end[1].stall = false;
	assert_true(wan_pair_run(&p, p.now + 100 * RWY_SEC));
	if (p.stream[0].tx)
		assert_int_equal(wan_tx_window(p.stream[0].tx, &drain), 0);
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bound),
	    cmocka_unit_test(test_lost),
	    cmocka_unit_test(test_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
