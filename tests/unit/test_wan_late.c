/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are not scheduled for some milliseconds, on paths of microseconds and of
 * milliseconds: a late answer is no loss, and causes no retransmission. Lost data is still sent
 * again soon.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define BURST 20 /* buffers between two pauses of the host */

static void start(struct wan_pair *p, rwy_dur delay, uint32_t loss_ppm, uint64_t seed)
{
	struct wan_link_cfg l = {.delay = delay, .loss_ppm = loss_ppm};
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.tx_pkts_max = 4096;
	wan_pair_init(p, &c, &l, &l, seed);
	wan_pair_streams(p, 2, 0, 1000, 1000, 4 * BURST); /* one in each direction */
}

/* A host sends some buffers, and whichever end the number says is not scheduled for a while: from before they
 * go, or while they are on their way. */
static void burst(struct wan_pair *p, unsigned n, rwy_dur delay)
{
	rwy_time until = p->now + 60 * RWY_MS;
	struct wan_end *e = &p->end[n & 1];
	rwy_dur sleep = RWY_MS / 4 + wan_rng_below(&p->rng, 16) * RWY_MS;

	for (uint32_t i = 0; i < p->streams; i++)
		p->stream[i].total += BURST;
	if (n & 2)
		for (int i = 0; i < 3; i++)
			wan_pair_step(p, until);
	e->asleep_until = p->now + (n & 4 ? delay : 0) + sleep;
	while (wan_pair_step(p, until))
		;
	p->now = until;
}

static void no_repeats(rwy_dur delay, unsigned bursts, uint64_t most)
{
	struct wan_pair p;

	start(&p, delay, 0, 7);
	for (unsigned n = 0; n < bursts; n++)
		burst(&p, n, delay);
	assert_true(wan_pair_run(&p, p.now + RWY_SEC));
	for (int i = 0; i < 2; i++) {
		struct wan_counters c = wan_pair_stats(&p, i).c;

		assert_int_equal(c.tx_retransmit,
		    c.retransmit_lost + c.retransmit_probe + c.retransmit_copy + c.retransmit_moved);
		assert_int_equal(c.lost, 0);
		assert_in_range(c.tx_retransmit, 0, most);
		assert_in_range(c.rx_duplicate, 0, most);
	}
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

static void test_short_path(void **state)
{
	no_repeats(3500, 400, 0);
	no_repeats(100 * RWY_US, 400, 0);
}

/* The first few times it is unknown how late this peer can be. */
static void test_long_path(void **state)
{
	no_repeats(10 * RWY_MS, 400, 12);
}

/* No later datagram shows the loss: a probe must. */
static void test_tail(void **state)
{
	struct wan_pair p;
	rwy_time began;

	start(&p, 100 * RWY_US, 100000, 3);
	p.stream[0].total = p.stream[1].total = BURST;
	assert_true(wan_pair_run(&p, p.now + 10 * RWY_SEC));
	for (unsigned n = 0; n < 400; n++) {
		p.stream[0].total++;
		began = p.now;
		while (p.stream[0].got < p.stream[0].total)
			assert_true(wan_pair_step(&p, began + 100 * RWY_MS));
		assert_true(wan_pair_run(&p, p.now + RWY_SEC));
	}
	assert_true(wan_pair_stats(&p, 0).c.retransmit_lost > 20);
	assert_in_range(wan_pair_stats(&p, 0).c.retransmit_probe, 0, 2); /* before there was a round trip */
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_short_path),
	    cmocka_unit_test(test_long_path),
	    cmocka_unit_test(test_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
