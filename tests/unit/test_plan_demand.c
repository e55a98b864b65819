/* SPDX-License-Identifier: Apache-2.0
 * What a training job demands of the network: from its model, and from ranks to pairs of addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "controller/plan/ranks.h"

#define G       UINT64_C(1000000000)
#define MAX_BPS UINT64_C(1000000000000000)
#define NONE    PLAN_RANK_NONE

/* The white paper's table 3, and the step of table 4. */
static const struct plan_model table3 = {.sequence_length = 16384,
    .hidden_size = 4096,
    .micro_batch_size = 2,
    .global_batch_size = 30,
    .element_bytes = 2,
    .step_us = 60700000};

static void test_demands_that_overflow(void **state)
{
	struct plan_model_demand d;
	struct plan_model m = table3;

	m.sequence_parallel = true;
	assert_int_equal(plan_model_demand(&d, &m, 6, 1, 4, MAX_BPS), 0);
	assert_int_equal(d.bytes, UINT64_C(1) << 26);
	m.transfer_us = 1000000;
	assert_int_equal(plan_model_demand(&d, &m, 6, 1, 4, MAX_BPS), 0);
	assert_int_equal(d.bandwidth_bps, UINT64_C(8) << 26);
	assert_int_equal(plan_model_demand(&d, &m, 6, 1, 4, (UINT64_C(8) << 26) - 1), PLAN_ERANGE);
	assert_int_equal(plan_model_demand(&d, &m, 6, 1, 3, MAX_BPS), RWY_EINVAL);
	assert_int_equal(
	    plan_model_demand(&d, &m, 6, 4, 4, MAX_BPS), RWY_EINVAL); /* 30 is no multiple of 8 */
	m.hidden_size = UINT64_C(1) << 50;
	assert_int_equal(plan_model_demand(&d, &m, 6, 1, 4, UINT64_MAX), PLAN_ERANGE);
	m = table3;
	m.step_us = 10; /* less than a microsecond a micro-batch */
	assert_int_equal(plan_model_demand(&d, &m, 6, 1, 4, MAX_BPS), PLAN_ERANGE);
	m.step_us = 0;
	assert_int_equal(plan_model_demand(&d, &m, 6, 1, 4, MAX_BPS), RWY_EINVAL);
}

/* Ranks that share a NIC: their demands add up. Both ways of a ring are one demand. */
static void test_demands_of_one_nic_add_up(void **state)
{
	struct plan_cluster cluster[] = {{8, 0}, {8, 8}};
	struct plan_split s = {4, 1, 4, true, cluster, 2, NULL, 0, NULL};
	struct plan_rank_address at[16];
	struct plan_job_pair *pairs;

	for (uint32_t i = 0; i < 16; i++)
		at[i] = (struct plan_rank_address){
		    rwy_ip_from4((uint8_t[]){10, 1 + i / 8, 0, (uint8_t)(i % 8 / 2)}), i / 8};
	/* stage 1 to 2: NICs 2, 3 and 0, 1; the ring, stage 3 to 0: 2, 3 and 0, 1 the other way */
	assert_int_equal(plan_ranks_pairs(&pairs, &s, at, &(struct plan_triple){G, 0, 0}, MAX_BPS), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pairs[i].want.bandwidth_bps, 2 * G);
	free(pairs);
	for (unsigned i = 0; i < 16; i++)
		at[i].addr.b[15] = 1;
	assert_int_equal(plan_ranks_pairs(&pairs, &s, at, &(struct plan_triple){G, 0, 0}, MAX_BPS), 1);
	assert_int_equal(pairs[0].want.bandwidth_bps, 8 * G);
	free(pairs);
	assert_int_equal(
	    plan_ranks_pairs(&pairs, &s, at, &(struct plan_triple){G, 0, 0}, 8 * G - 1), PLAN_ERANGE);
	assert_null(pairs);
	at[4].cluster = NONE; /* nobody has this rank */
	assert_int_equal(plan_ranks_pairs(&pairs, &s, at, &(struct plan_triple){G, 0, 0}, MAX_BPS), 1);
	assert_int_equal(pairs[0].want.bandwidth_bps, 7 * G);
	free(pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_demands_that_overflow),
	    cmocka_unit_test(test_demands_of_one_nic_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
