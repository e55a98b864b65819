/* SPDX-License-Identifier: Apache-2.0 */
/* Each algorithm under a real tunnel over virtual links: real loss detection, ACK batches, ECN counts. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/long_case.h"
#include "tests/lib/wan_pair.h"

#define GBIT     ((uint64_t)125000000)
#define OVERHEAD 42

struct row {
	const char *cc;
	uint64_t max_Bps;
	rwy_dur rtt, wake;
	uint32_t loss_ppm;
	uint64_t ecn_bytes;
	double at_least;
};

/* The share of the link's capacity for inner bytes that is used, after three seconds. */
static void goodput(const struct row *r)
{
	struct wan_link_cfg l = {.delay = r->rtt / 2,
	    .rate_Bps = GBIT,
	    .overhead = OVERHEAD,
	    .queue_bytes = 2500000,
	    .ecn_bytes = r->ecn_bytes,
	    .loss_ppm = r->loss_ppm};
	struct wan_cfg c;
	struct wan_pair p;
	struct wan_stats s;

	wan_cfg_default(&c);
	c.cc = cc_find(r->cc);
	assert_non_null(c.cc);
	c.cc_cfg.rate_Bps = r->max_Bps;
	c.cc_cfg.min_rate_Bps = 125000;
	c.rx_window = 1u << 17;
	wan_pair_init(&p, &c, &l, &l, 3);
	p.wake = r->wake;
	wan_pair_streams(&p, 1, 1u << 24, 1024, 1024, 1u << 17);
	wan_pair_run(&p, p.now + 3 * RWY_SEC);
	uint64_t bytes = p.stream[0].bytes;
	rwy_time from = p.now;

	wan_pair_run(&p, p.now + 3 * RWY_SEC);
	wan_get_stats(p.end[0].t, &s);
	double link = GBIT * 1024.0 / (1024 + 30 + OVERHEAD) * (1 - r->loss_ppm / 1e6);
	double share = (double)(p.stream[0].bytes - bytes) * 1e9 / (double)(p.now - from) / link;

	print_message("rtt %.0f ms loss %u ppm wake %.1f ms ecn %llu: %.3f of the link; %s\n",
	    (double)r->rtt / 1e6, r->loss_ppm, (double)r->wake / 1e6, (unsigned long long)r->ecn_bytes, share,
	    s.cc);
	assert_true(share >= r->at_least);
	assert_int_equal(s.c.cc_nonsense, 0);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

static void test_goodput(void **state)
{
	static const struct row rows[] = {
	    {"bbr", 10 * GBIT, 20 * RWY_MS, 0, 0, 0, 0.9},
	    {"bbr", 10 * GBIT, 20 * RWY_MS, 0, 10000, 0, 0.85},
	    {"bbr", 10 * GBIT, 100 * RWY_MS, 0, 1000, 0, 0.85},
	    {"bbr", 10 * GBIT, 20 * RWY_MS, RWY_MS, 0, 0, 0.85},
	    {"swift", 10 * GBIT, 20 * RWY_MS, 0, 0, 0, 0.9},
	    {"swift", 10 * GBIT, 20 * RWY_MS, 0, 10000, 0, 0.8},
	    {"swift", 10 * GBIT, 20 * RWY_MS, 200 * RWY_US, 0, 0, 0.9},
	    {"cubic", 10 * GBIT, 20 * RWY_MS, 0, 0, 0, 0.9},
	    {"dcqcn", GBIT, 20 * RWY_MS, 0, 0, 0, 0.9},
	    {"dcqcn", 4 * GBIT, 20 * RWY_MS, 0, 0, 250000, 0.8},
	};

	long_case();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		goodput(&rows[i]);
}

/* An outage of a second: all but cubic are at rate half a second after it. */
static void test_outage(void **state)
{
	static const char *const names[] = {"bbr", "swift"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct wan_link_cfg l = {.delay = 10 * RWY_MS,
		    .rate_Bps = GBIT,
		    .overhead = OVERHEAD,
		    .queue_bytes = 2500000,
		    .outage_from = 3 * RWY_SEC,
		    .outage_to = 4 * RWY_SEC};
		struct wan_cfg c;
		struct wan_pair p;

		wan_cfg_default(&c);
		c.cc = cc_find(names[i]);
		c.cc_cfg.rate_Bps = 10 * GBIT;
		wan_pair_init(&p, &c, &l, &l, 3);
		wan_pair_streams(&p, 1, 1u << 24, 1024, 1024, 1u << 15);
		wan_pair_run(&p, 5 * RWY_SEC);
		uint64_t before = p.stream[0].bytes;

		wan_pair_run(&p, 6 * RWY_SEC);
		double share = (double)(p.stream[0].bytes - before) / ((double)GBIT * 1024 / 1096);

		print_message("%s, the second second after an outage: %.3f of the link\n", names[i], share);
		assert_true(share >= 0.6);
		assert_int_equal(p.errors, 0);
		wan_pair_fini(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_goodput),
	    cmocka_unit_test(test_outage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
