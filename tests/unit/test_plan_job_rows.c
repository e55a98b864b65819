/* SPDX-License-Identifier: Apache-2.0
 * Jobs: the gateways that each pair of addresses or queue pairs goes by, and which pairs keep
 * theirs when a job is planned again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/job_world.h"

static void test_rows(void **state)
{
	struct plan_job_pair pairs[16];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 16};
	struct job_world w = job_world();
	struct plan_job_result *r, *back;
	unsigned i, side, count[2] = {0};
	struct rwy_ip a;

	job_pairs(pairs, 16, 1, 3, (struct plan_triple){G, 0, 0});
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	assert_string_equal(r->groups[0].first, "hangzhou");
	for (i = 0; i < 16; i++) {
		assert_true(r->rows[i].group == 0 && r->rows[i].swapped);
		count[r->rows[i].first]++;
	}
	/* Mesh 9:3:3:1: exactly, and so 3:1 at each side. */
	assert_int_equal(count[0], 12);
	for (side = 0; side < 2; side++) {
		assert_int_equal(r->groups[0].gw_bps[side][0], 12 * G);
		assert_int_equal(r->groups[0].gw_bps[side][1], 4 * G);
	}
	/* In the other direction: the same gateways. */
	for (i = 0; i < 16; i++) {
		a = pairs[i].a;
		pairs[i].a = pairs[i].b;
		pairs[i].b = a;
	}
	back = job_plan(&w, &job);
	for (i = 0; i < 16; i++) {
		assert_int_equal(back->rows[i].first, r->rows[i].first);
		assert_int_equal(back->rows[i].second, r->rows[i].second);
		assert_false(back->rows[i].swapped);
	}
	plan_job_free(r);
	plan_job_free(back);
}

static void test_grains(void **state)
{
	struct plan_job_pair pairs[16];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_NIC, .pairs = pairs, .n = 16};
	struct job_world w = job_world();
	struct plan_job_result *r;
	unsigned i;

	/* Eight NICs of the first site (by name: hangzhou), each in two pairs, which stay
	 * together. */
	job_pairs(pairs, 16, 1, 3, (struct plan_triple){G, 0, 0});
	for (i = 8; i < 16; i++)
		pairs[i].b = pairs[i - 8].b;
	r = job_plan(&w, &job);
	for (i = 8; i < 16; i++)
		assert_true(
		    r->rows[i].first == r->rows[i - 8].first && r->rows[i].second == r->rows[i - 8].second);
	plan_job_free(r);
	job.grain = PLAN_GRAIN_QP;
	r = job_plan(&w, &job);
	assert_int_equal(r->rows[0].first, PLAN_JOB_ANY_GATEWAY);
	assert_int_equal(r->groups[0].gw_bps[0][0], 12 * G);
	assert_int_equal(r->groups[0].gw_bps[1][1], 4 * G);
	plan_job_free(r);
}

/* Named queue pairs have a pair of gateways each, by weight; unnamed ones share the rest. */
static void test_named_qps(void **state)
{
	struct plan_job_pair pairs[17];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_QP, .pairs = pairs, .n = 17};
	struct plan_pair now[17] = {{0, 0, 0}};
	struct job_world w = job_world();
	struct plan_job_result *r, *again;
	unsigned i, on[2][2] = {{0}}, moved = 0;

	job_pairs(pairs, 17, 1, 3, (struct plan_triple){G, 0, 0});
	for (i = 0; i < 16; i++) {
		pairs[i].b = pairs[0].b;
		pairs[i].a = pairs[0].a;
		pairs[i].a_qpn = 100 + i;
		pairs[i].b_qpn = 200 + i;
	}
	pairs[16].want.bandwidth_bps = 16 * G;
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	for (i = 0; i < 16; i++)
		on[r->rows[i].first][r->rows[i].second]++;
	assert_int_equal(on[0][0], 9);
	assert_int_equal(on[0][1], 3);
	assert_int_equal(on[1][0], 3);
	assert_int_equal(on[1][1], 1);
	assert_int_equal(r->rows[16].first, PLAN_JOB_ANY_GATEWAY);
	assert_int_equal(r->groups[0].gw_bps[0][0], 24 * G);
	assert_int_equal(r->groups[0].gw_bps[1][1], 8 * G);
	assert_int_equal(r->groups[0].pair_bps[0], 18 * G);
	/* A gateway is lost: other pairs stay. */
	for (i = 0; i < 16; i++)
		now[i] = (struct plan_pair){
		    r->groups[0].gw[0][r->rows[i].first].id, r->groups[0].gw[1][r->rows[i].second].id, 0};
	w.gw_bps[2][1] = 0; /* first of the first site by name */
	job.now = now;
	job.stay = true;
	again = job_plan(&w, &job);
	assert_int_equal(again->fail, PLAN_JOB_FITS);
	for (i = 0; i < 16; i++) {
		moved += r->rows[i].first == 1;
		assert_int_equal(again->rows[i].first, 0);
		if (r->rows[i].first == 0)
			assert_int_equal(again->rows[i].second, r->rows[i].second);
	}
	assert_int_equal(moved, 4);
	plan_job_free(again);
	plan_job_free(r);
}

/* Planned again: pairs stay where possible, those of a lost gateway move, and all are placed though
 * nothing is free. */
static void test_again(void **state)
{
	struct plan_job_pair pairs[8];
	struct plan_pair now[8];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 8};
	struct job_world w = job_world();
	struct plan_job_result *r;
	struct plan_claim full;
	unsigned i;

	job_pairs(pairs, 8, 1, 3, (struct plan_triple){G, 0, 0});
	r = job_plan(&w, &job);
	for (i = 0; i < 8; i++) /* all on the smaller gateways, except one without a place */
		now[i] = (struct plan_pair){r->groups[0].gw[0][1].id, r->groups[0].gw[1][1].id, 0};
	plan_job_free(r);
	now[5] = (struct plan_pair){0, 0, 0};
	job.now = now;
	job.stay = true;
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	for (i = 0; i < 8; i++)
		assert_int_equal(r->rows[i].first == 1 && r->rows[i].second == 1, i != 5);
	plan_job_free(r);
	w.gw_bps[0][1] = 0; /* lost, and the other one is full */
	assert_int_equal(plan_book_new(&w.book), 0);
	plan_book_gateway(full.name, sizeof(full.name), "gw-qingyang-0");
	full.bps = 300 * G;
	assert_int_equal(plan_book_claim(w.book, &full, 1), 0);
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_GATEWAY);
	assert_int_equal(r->n_claims, 0);
	for (i = 0; i < 8; i++)
		assert_true(r->rows[i].first < 2 && r->rows[i].second == 0); /* hangzhou is first */
	plan_job_free(r);
	job.now = NULL; /* as a new job it does not fit */
	job.stay = false;
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_NO_CARRIER);
	assert_int_equal(r->rows[0].first, PLAN_JOB_ANY_GATEWAY);
	plan_job_free(r);
	plan_book_free(w.book);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_grains),
	    cmocka_unit_test(test_named_qps),
	    cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
