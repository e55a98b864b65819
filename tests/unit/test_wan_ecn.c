/* SPDX-License-Identifier: Apache-2.0 */
/* ECN of WAN datagrams: used if the path carries it, given up if not, never the cause of loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

static struct wan_stats run(struct wan_link_cfg l, bool ecn, const struct cc_ops *cc)
{
	struct wan_stats s;
	struct wan_pair p;
	struct wan_cfg c;

	l.delay = 5 * RWY_MS;
	l.rate_Bps = 12500000;
	l.overhead = 42;
	l.queue_bytes = 200000;
	wan_cfg_default(&c);
	c.ecn = ecn;
	c.cc = cc;
	wan_pair_init(&p, &c, &l, &l, 5);
	wan_pair_streams(&p, 2, 5000, 1000, 1000, 2000);
	assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
	wan_get_stats(p.end[0].t, &s);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
	assert_int_equal(p.pool.live, 0);
	return s;
}

static void test_fit(void **state)
{
	struct wan_stats s = run((struct wan_link_cfg){.ecn_bytes = 50000}, true, &cc_cubic);

	assert_string_equal(s.ecn, "on");
	assert_true(s.ce > 0);
	assert_int_equal(s.c.lost, 0); /* it slowed down for marks, before the queue was full */
	s = run((struct wan_link_cfg){.ecn_bytes = 50000}, false, &cc_cubic);
	assert_string_equal(s.ecn, "off");
	assert_int_equal(s.ce, 0);
	assert_true(s.c.lost > 0);
}

/* Repairs rebuild datagrams that never arrived, and acknowledge them: no reason to give ECN up. */
static void test_lossy(void **state)
{
	struct wan_stats s = run((struct wan_link_cfg){.loss_ppm = 30000}, true, &cc_auto);

	assert_string_equal(s.ecn, "on");
}

static void test_cleared(void **state)
{
	struct wan_stats s = run((struct wan_link_cfg){.ecn_clear = true}, true, &cc_auto);

	assert_string_equal(s.ecn, "off");
	assert_int_equal(s.c.lost, 0);
}

/* Marked datagrams never arrive: after two probe timeouts they are sent unmarked. */
static void test_dropped(void **state)
{
	struct wan_stats s = run((struct wan_link_cfg){.ecn_drop = true}, true, &cc_auto);

	assert_string_equal(s.ecn, "off");
	assert_true(s.c.pto >= 2);
}

static void test_all_marked(void **state)
{
	struct wan_stats s = run((struct wan_link_cfg){.ecn_bytes = 1}, true, &cc_fixed);

	assert_string_not_equal(s.ecn, "trying");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fit),
	    cmocka_unit_test(test_lossy),
	    cmocka_unit_test(test_cleared),
	    cmocka_unit_test(test_dropped),
	    cmocka_unit_test(test_all_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
