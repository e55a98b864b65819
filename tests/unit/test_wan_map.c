/* SPDX-License-Identifier: Apache-2.0 */
/* The map of sent datagrams: it begins small, grows with what is in flight, and forgets nothing
 * that is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define LEN   1400
#define RTT   (25 * RWY_MS)
#define RATE  ((uint64_t)1250000000) /* 10 Gb/s: 22,000 datagrams in flight */
#define MOST  (1u << 16)
#define COUNT 80000

static void begin(struct wan_pair *p, uint32_t pkts_max, const struct wan_link_cfg *there)
{
	struct wan_link_cfg back = {.delay = RTT / 2};
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = RATE;
	c.cc_cfg.initial_rtt = RTT;
	c.tx_pkts_max = pkts_max;
	c.rx_window = MOST;
	c.fec = WAN_FEC_OFF;
	wan_pair_init(p, &c, there, &back, 3);
	wan_pair_streams(p, 1, COUNT, LEN, LEN, MOST);
}

static uint64_t entries(const struct wan_pair *p)
{
	return p->end[0].t->path[0].mask + 1;
}

/* The rate is reached in the first round trip, so the map never kept a datagram waiting. */
static void test_grows(void **state)
{
	const struct wan_link_cfg there = {.delay = RTT / 2};
	rwy_dur wire = (rwy_dur)COUNT * LEN * RWY_SEC / RATE;
	struct wan_pair p;
	rwy_time start;

	begin(&p, MOST, &there);
	assert_true(entries(&p) < MOST / 8);
	start = p.now;
	assert_true(wan_pair_run(&p, p.now + 10 * RWY_SEC));
	assert_in_range(p.stream[0].done_at - start, wire, wire + wire / 10 + 2 * RTT);
	assert_in_range(entries(&p), MOST / 2, MOST);
	assert_int_equal(wan_pair_stats(&p, 0).c.tx_retransmit, 0);
	assert_true(wan_pair_finish(&p));
}

/* While it grows, datagrams are lost and come late: each is sent again once, none needlessly but
 * the late ones. */
static void test_remembers(void **state)
{
	const struct wan_link_cfg there = {.delay = RTT / 2, .loss_ppm = 10000};
	struct wan_pair p;
	struct wan_stats s;

	begin(&p, MOST, &there);
	assert_true(wan_pair_run(&p, p.now + 10 * RWY_SEC));
	assert_true(entries(&p) > MOST / 8);
	s = wan_pair_stats(&p, 0);
	assert_in_range(s.c.lost, COUNT / 200, COUNT / 50);
	assert_int_equal(s.c.spurious_retransmit, 0);
	assert_true(wan_pair_finish(&p));
}

/* A bound below what fits the path: fewer are in flight, and all arrive. */
static void test_bound(void **state)
{
	const struct wan_link_cfg there = {.delay = RTT / 2};
	struct wan_pair p;

	begin(&p, 8192, &there);
	p.stream[0].total = COUNT / 2;
	assert_true(wan_pair_run(&p, p.now + 10 * RWY_SEC));
	assert_int_equal(entries(&p), 8192);
	assert_int_equal(wan_pair_stats(&p, 0).c.lost, 0);
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_grows),
	    cmocka_unit_test(test_remembers),
	    cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
