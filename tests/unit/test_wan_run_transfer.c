/* SPDX-License-Identifier: Apache-2.0 */
/* Whole transfers of small packets over bad links, with runs beside fragments. test_wan_run.c has
 * single datagrams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

static void finish(struct wan_pair *p)
{
	assert_true(wan_pair_run(p, p->now + 100 * RWY_SEC));
	assert_true(wan_pair_stats(p, 0).c.tx_runs > 50);
	assert_true(wan_pair_finish(p));
}

static void transfer(uint32_t len_min, uint32_t len_max, uint32_t fail_ppm)
{
	struct wan_link_cfg l = wan_pair_bad_link();
	struct wan_pair p;

	wan_pair_begin(&p, 1, &l);
	p.pool.fail_ppm = fail_ppm;
	wan_pair_streams(&p, 3, 3000, len_min, len_max, 200);
	finish(&p);
}

static void test_small(void **state)
{
	transfer(20, 130, 0);
}

static void test_mixed(void **state)
{
	transfer(20, 600, 0);
}

static void test_with_fragments(void **state)
{
	transfer(20, 2200, 0);
}

static void test_few_buffers(void **state)
{
	transfer(20, 130, 100000);
}

static void test_restarts(void **state)
{
	struct wan_link_cfg l = wan_pair_bad_link();
	struct wan_pair p;

	wan_pair_begin(&p, 1, &l);
	wan_pair_streams(&p, 3, 5000, 20, 300, 200);
	for (int i = 0; i < 4; i++) {
		wan_pair_run(&p, p.now + 60 * RWY_MS);
		wan_pair_restart(&p, i & 1);
	}
	finish(&p);
}

/* A path falls silent: the runs on it go by the other one. */
static void test_moves(void **state)
{
	struct wan_link_cfg l = {.delay = 5 * RWY_MS, .rate_Bps = 12500000};
	struct wan_pair p;

	wan_pair_begin(&p, 2, &l);
	wan_pair_path(&p, &l, &l);
	wan_pair_streams(&p, 3, 60000, 20, 130, 4000);
	wan_pair_run(&p, p.now + 80 * RWY_MS);
	p.dead_path = 1;
	wan_pair_run(&p, p.now + 60 * RWY_MS);
	assert_true(wan_pair_stats(&p, 0).c.retransmit_moved > 0);
	p.dead_path = 2;
	wan_pair_run(&p, p.now + 60 * RWY_MS);
	p.dead_path = 0;
	finish(&p);
}

/* A lost run is rebuilt from repairs. */
static void test_rebuilt(void **state)
{
	struct wan_link_cfg l = {.delay = 10 * RWY_MS, .rate_Bps = 12500000};
	struct wan_pair p;

	wan_pair_begin(&p, 1, &l);
	wan_pair_settle(&p, 100 * RWY_MS);
	p.end[0].t->path[0].fec.est = (struct wan_fec_est){.n = 1000, .lost = 20, .runs = 20};
	p.link[0].cfg.loss_ppm = 20000;
	wan_pair_streams(&p, 1, 20000, 60, 130, 2000);
	assert_true(wan_pair_run(&p, p.now + 100 * RWY_SEC));
	/* small packets alone are not so many datagrams that repairs pay: what was rebuilt are runs */
	assert_true(wan_pair_stats(&p, 1).c.rebuilt > 0);
	finish(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_small),
	    cmocka_unit_test(test_mixed),
	    cmocka_unit_test(test_with_fragments),
	    cmocka_unit_test(test_few_buffers),
	    cmocka_unit_test(test_restarts),
	    cmocka_unit_test(test_moves),
	    cmocka_unit_test(test_rebuilt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
