/* SPDX-License-Identifier: Apache-2.0
 * Ranks: the white paper's training task (table 3) and its three sites (figure 31), a job
 * of 10,000 ranks, failures, and splits that are refused. test_plan_ranks_best.c compares with the
 * best of all orders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "controller/plan/ranks.h"
#include "tests/lib/plan_ranks.h"

#define MAX_BPS UINT64_C(1000000000000000)

/* --- the white paper -------------------------------------------------------------------------- */

/* Table 3: tensor parallelism 4, six stages, no data parallelism, servers of 8 GPUs. */
static const struct plan_model table3 = {.sequence_length = 16384,
    .hidden_size = 4096,
    .micro_batch_size = 2,
    .global_batch_size = 30,
    .element_bytes = 2,
    .step_us = 60700000}; /* table 4 */

static void test_table_3(void **state)
{
	/* The scheduler's answer (figure 34): two servers at Qingyang, one at Hangzhou. */
	static const uint32_t cost[] = {0, 10020, 10020, 0};
	struct plan_cluster cluster[] = {{16, NONE}, {8, NONE}};
	struct plan_container pod[] = {
	    {.cluster = 0, .ranks = 8}, {.cluster = 0, .ranks = 8}, {.cluster = 1, .ranks = 8}};
	struct plan_split s = {6, 1, 4, false, cluster, 2, pod, 3, cost};
	struct plan_rank_address at[24];
	struct plan_job_pair *pairs;
	struct plan_model_demand d;
	struct plan_ranks *r = assign(&s);

	assert_int_equal(r->fail, PLAN_RANKS_FIT);
	assert_int_equal(r->missing_all, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(r->share[i].first, 8 * i);
		assert_int_equal(r->share[i].count, 8);
	}
	/* 2^14 x 2^12 x 2 x 2 bytes in a twentieth of a step: 15 micro-batches, six stages */
	assert_int_equal(plan_model_demand(&d, &table3, 6, 1, 4, MAX_BPS), 0);
	assert_int_equal(d.bytes, UINT64_C(1) << 28);
	assert_int_equal(d.micro_batches, 15);
	assert_int_equal(d.transfer_us, 3035000);
	assert_int_equal(d.bandwidth_bps, (UINT64_C(8) << 28) * 1000000 / 3035000 + 1);
	/* Four pairs cross, between the servers' last four and first four NICs. */
	for (uint32_t i = 0; i < 24; i++)
		at[i] = (struct plan_rank_address){
		    rwy_ip_from4((uint8_t[]){10, i < 16 ? 1 : 3, 0, (uint8_t)i}), i >= 16};
	assert_int_equal(
	    plan_ranks_pairs(&pairs, &s, at, &(struct plan_triple){d.bandwidth_bps, 12000, 500}, MAX_BPS), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_memory_equal(&pairs[i].a, &at[12 + i].addr, sizeof(pairs[i].a));
		assert_memory_equal(&pairs[i].b, &at[16 + i].addr, sizeof(pairs[i].b));
		assert_int_equal(pairs[i].want.bandwidth_bps, d.bandwidth_bps);
		assert_int_equal(pairs[i].want.delay_us, 12000);
	}
	free(pairs);
	plan_ranks_free(r);
}

/* Two fibres of 2000 km meet at P, next to Qingyang: 10 ms, 10 ms, and 20 ms between the others. So
 * Qingyang is the middle of the pipeline, in whatever order the sites are posted. */
static void test_figure_31(void **state)
{
	static const uint32_t ms10 = 10020, ms20 = 20020;
	const uint32_t cost[3][9] = {
	    {0, ms10, ms10, ms10, 0, ms20, ms10, ms20, 0}, /* Qingyang is the first of the list */
	    {0, ms10, ms20, ms10, 0, ms10, ms20, ms10, 0},
	    {0, ms20, ms10, ms20, 0, ms10, ms10, ms10, 0},
	};

	for (unsigned q = 0; q < 3; q++) {
		struct plan_cluster cluster[] = {{8, NONE}, {8, NONE}, {8, NONE}};
		struct plan_container pod[3];
		struct plan_split s = {6, 1, 4, false, cluster, 3, pod, 3, cost[q]};
		struct plan_ranks *r;

		for (uint32_t i = 0; i < 3; i++)
			pod[i] = (struct plan_container){.cluster = i, .ranks = 8};
		r = assign(&s);
		assert_int_equal(r->fail, PLAN_RANKS_FIT);
		assert_int_equal(r->cluster_first[q], 8);
		assert_int_equal(r->cost_us, 20040);
		/* the other two: as posted */
		assert_true(r->cluster_first[q == 0 ? 1 : 0] == 0);
		plan_ranks_free(r);
	}
}

static void test_ranges_of_the_scheduler(void **state)
{
	static const uint32_t cost[] = {0, 1, 1, 0};
	struct plan_cluster cluster[] = {{8, 8}, {8, 0}};
	struct plan_container pod[] = {
	    {.cluster = 0, .ranks = 8}, {.cluster = 1, .ranks = 4}, {.cluster = 1, .ranks = 4}};
	struct plan_split s = {2, 1, 8, false, cluster, 2, pod, 3, cost};
	struct plan_ranks *r;

	/* a tensor group stays in one server */
	r = assign(&s);
	assert_int_equal(r->fail, PLAN_RANKS_TENSOR);
	assert_int_equal(r->bad, 1);
	plan_ranks_free(r);
	s.pipeline = 4;
	s.tensor = 4;
	r = assign(&s);
	assert_int_equal(r->fail, PLAN_RANKS_FIT);
	assert_int_equal(r->share[0].first, 8);
	assert_int_equal(r->share[1].first, 0);
	assert_int_equal(r->share[2].first, 4);
	plan_ranks_free(r);
}

/* Many clusters are not tried exhaustively. A line of sites is found all the same. */
static void test_many_sites_in_a_line(void **state)
{
	static uint32_t cost[40 * 40];
	struct plan_cluster cluster[40];
	struct plan_container pod[40];
	struct plan_split s = {40, 1, 1, false, cluster, 40, pod, 40, cost};
	struct plan_ranks *r;

	for (uint32_t i = 0; i < 40; i++) {
		cluster[i] = (struct plan_cluster){1, NONE};
		pod[i] = (struct plan_container){.cluster = i, .ranks = 1};
		for (uint32_t k = 0; k < 40; k++) { /* site i stands at i * 17 % 40 */
			const int32_t far = (int32_t)(i * 17 % 40) - (int32_t)(k * 17 % 40);

			cost[i * 40 + k] = (uint32_t)(far < 0 ? -far : far) * 100;
		}
	}
	r = assign(&s);
	assert_int_equal(r->cost_us, 3900);
	plan_ranks_free(r);
}

/* --- many ranks, failures --------------------------------------------------------------------- */

#define SERVERS 1260

/* 10,000 ranks in three sites: tensor 8, data 25, 50 stages; racks of 32 servers, and three or four
 * spare ones at each site. */
static void draw_large(struct plan_container *pod)
{
	for (uint32_t i = 0; i < SERVERS; i++)
		pod[i] = (struct plan_container){.cluster = i < 504   ? 0
		                                            : i < 757 ? 1
		                                                      : 2,
		    .ranks = 8,
		    .levels = 3,
		    .level = {i % 7 / 2, i * 7919 % SERVERS / 32, 1000 + i}};
}

static double seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + 1e-9 * (double)(now.tv_nsec - t->tv_nsec);
}

static void test_10000_ranks_and_a_dead_server(void **state)
{
	static const uint32_t cost[] = {0, 10020, 10020, 10020, 0, 20020, 10020, 20020, 0};
	static struct plan_container pod[SERVERS];
	static uint32_t of[1250], again_of[1250];
	struct plan_cluster cluster[] = {{4000, NONE}, {2000, NONE}, {4000, NONE}};
	struct plan_split s = {50, 25, 8, false, cluster, 3, pod, SERVERS, cost};
	struct plan_ranks *r, *again;
	struct timespec t;
	uint32_t dead;

	draw_large(pod);
	clock_gettime(CLOCK_MONOTONIC, &t);
	r = assign(&s);
	print_message("10,000 ranks planned in %.3f s\n", seconds_since(&t));
	assert_int_equal(r->fail, PLAN_RANKS_FIT);
	assert_int_equal(r->missing_all, 0);
	check_table(&s, r, of);
	/* the server of rank 4000 or so dies */
	for (dead = 0; r->share[dead].first != 4000 || !r->share[dead].count; dead++)
		;
	for (unsigned i = 0; i < 3; i++)
		cluster[i].first = r->cluster_first[i];
	for (uint32_t i = 0; i < SERVERS; i++) {
		pod[i].first = r->share[i].first;
		pod[i].count = r->share[i].count;
	}
	pod[dead].failed = true;
	clock_gettime(CLOCK_MONOTONIC, &t);
	again = assign(&s);
	print_message("a dead server replaced in %.3f s\n", seconds_since(&t));
	assert_int_equal(again->missing_all, 0);
	check_table(&s, again, again_of);
	for (unsigned g = 0; g < 1250; g++) {
		assert_int_not_equal(again_of[g], dead);
		if (of[g] != dead)
			assert_int_equal(again_of[g], of[g]);
	}
	plan_ranks_free(again);
	plan_ranks_free(r);
}

/* The spare beside the dead container's neighbours is taken, not the one in another rack; when no
 * spare is left the ranks are missing, at that cluster, and all others stay. */
static void test_the_near_spare_replaces(void **state)
{
	static const uint32_t cost[] = {0, 1, 1, 0};
	struct plan_cluster cluster[] = {{12, 0}, {4, 12}};
	struct plan_container pod[6];
	struct plan_split s = {4, 1, 4, false, cluster, 2, pod, 6, cost};
	struct plan_ranks *r;

	for (uint32_t i = 0; i < 6; i++)
		pod[i] = (struct plan_container){.cluster = i == 5,
		    .ranks = 4,
		    .levels = 2,
		    .level = {i == 3 ? 2 : 1, 100 + i},
		    .first = i == 5 ? 12 : 4 * i,
		    .count = i < 3 || i == 5 ? 4 : 0,
		    .failed = i == 1};
	r = assign(&s);
	assert_int_equal(r->missing_all, 0);
	assert_int_equal(r->share[4].first, 4);
	assert_int_equal(r->share[4].count, 4);
	assert_int_equal(r->share[1].count + r->share[3].count, 0);
	plan_ranks_free(r);
	pod[3].failed = pod[4].failed = true;
	r = assign(&s);
	assert_int_equal(r->missing_all, 4);
	assert_int_equal(r->missing[0], 4);
	assert_int_equal(r->share[0].first, 0);
	assert_int_equal(r->share[2].first, 8);
	assert_int_equal(r->share[5].first, 12);
	plan_ranks_free(r);
}

/* Ranks that do not fit any more are not kept: of two containers with the same ranks the first has
 * them. */
static void test_ranks_that_do_not_fit_are_given_anew(void **state)
{
	static const uint32_t cost[] = {0};
	struct plan_cluster cluster[] = {{8, 0}};
	struct plan_container pod[] = {{.ranks = 4, .first = 4, .count = 4},
	    {.ranks = 4, .first = 4, .count = 4}, {.ranks = 4, .first = 2, .count = 4},
	    {.ranks = 4, .first = UINT32_MAX - 3, .count = 4}};
	struct plan_split s = {2, 1, 4, false, cluster, 1, pod, 4, cost};
	struct plan_ranks *r = assign(&s);
	uint32_t of[2];

	check_table(&s, r, of);
	assert_int_equal(r->missing_all, 0);
	assert_int_equal(of[1], 0);
	assert_int_equal(of[0], 1);
	plan_ranks_free(r);
}

/* --- refused ---------------------------------------------------------------------------------- */

static void refused(const struct plan_split *s, enum plan_ranks_fail why, unsigned bad)
{
	struct plan_ranks *r = assign(s);

	assert_int_equal(r->fail, why);
	assert_int_equal(r->bad, bad);
	assert_true(strlen(plan_ranks_fail_text(r->fail)) > 10);
	plan_ranks_free(r);
}

static void test_refused(void **state)
{
	static const uint32_t cost[] = {
	    0, 1, PLAN_COST_NONE, 1, 0, PLAN_COST_NONE, PLAN_COST_NONE, PLAN_COST_NONE, 0};
	struct plan_cluster cluster[] = {{4, NONE}, {4, NONE}, {4, NONE}};
	struct plan_container pod[] = {{.cluster = 0, .ranks = 4}};
	const struct plan_split good = {3, 1, 4, false, cluster, 3, pod, 1, cost};
	struct plan_split s = good;
	struct plan_ranks *r;

	refused(&s, PLAN_RANKS_PATH, 0);
	cluster[1].ranks = 6;
	refused(&s, PLAN_RANKS_STAGE, 1);
	cluster[1].ranks = 8;
	refused(&s, PLAN_RANKS_WORLD, 0);
	cluster[1].ranks = 4;
	cluster[1].first = 4;
	refused(&s, PLAN_RANKS_SOME, 0);
	cluster[0].first = 0;
	cluster[2].first = 4;
	refused(&s, PLAN_RANKS_RANGE, 0);
	cluster[2].first = 8;
	r = assign(&s);
	assert_int_equal(r->missing_all, 8);
	plan_ranks_free(r);
	pod[0].ranks = 6;
	refused(&s, PLAN_RANKS_TENSOR, 0);
	pod[0].cluster = 3;
	assert_int_equal(plan_ranks_new(&r, &s), RWY_EINVAL);
	pod[0] = (struct plan_container){.ranks = 4};
	s.pipeline = UINT32_MAX;
	assert_int_equal(plan_ranks_new(&r, &s), RWY_EINVAL);
	s = good;
	s.data = s.tensor = 65536; /* their product is 0 in 32 bits */
	assert_int_equal(plan_ranks_new(&r, &s), RWY_EINVAL);
	s = good;
	s.clusters = 0;
	assert_int_equal(plan_ranks_new(&r, &s), RWY_EINVAL);
	assert_null(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table_3),
	    cmocka_unit_test(test_figure_31),
	    cmocka_unit_test(test_ranges_of_the_scheduler),
	    cmocka_unit_test(test_many_sites_in_a_line),
	    cmocka_unit_test(test_10000_ranks_and_a_dead_server),
	    cmocka_unit_test(test_the_near_spare_replaces),
	    cmocka_unit_test(test_ranks_that_do_not_fit_are_given_anew),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
