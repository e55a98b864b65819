/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and a time as a rate, and back: what is promised is enough, and hardly more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/plan/ranks.h"
#include "controller/plan/shape.h"

#define MAX UINT64_C(1000000000000000)

static void test_rates(void **state)
{
	uint64_t bps;

	/* 235 GB in 2 s, of which 1/32 is spare: 940 Gbit/s and 3.2 % */
	assert_int_equal(plan_shape_bps(&bps, UINT64_C(235000000000), 2000000, MAX), 0);
	assert_int_equal(bps, UINT64_C(970322580646));
	assert_int_equal(plan_shape_bps(&bps, 1, 1, MAX), 0);
	assert_int_equal(bps, 8000000);
	assert_int_equal(plan_shape_bps(&bps, 0, 1, MAX), RWY_EINVAL);
	assert_int_equal(plan_shape_bps(&bps, 1, 0, MAX), RWY_EINVAL);
	assert_int_equal(plan_shape_bps(&bps, 1000, 1000, 8255933), PLAN_ERANGE);
	assert_int_equal(bps, 8255933);
	assert_int_equal(plan_shape_bps(&bps, 1000, 1000, 8255934), 0);
	assert_int_equal(plan_shape_bps(&bps, UINT64_MAX, 1, MAX), PLAN_ERANGE);
}

static uint64_t next(uint64_t *s)
{
	*s = *s * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *s >> 33;
}

/* The time that a rate needs is the shortest one for which the rate is enough. */
static void test_times(void **state)
{
	uint64_t seed = 7, bps;

	for (unsigned i = 0; i < 100000; i++) {
		const uint64_t bytes = 1 + next(&seed) % (UINT64_C(1) << (1 + i % 40));
		const uint64_t rate = 1000 + next(&seed) * (1 + i % 7);
		const uint64_t us = plan_shape_us(bytes, rate);

		assert_true(us);
		assert_int_equal(plan_shape_bps(&bps, bytes, us, MAX), 0);
		if (bps > rate)
			fail_msg("%lu bytes at %lu: %lu us need %lu", bytes, rate, us, bps);
		if (us > 1 && plan_shape_bps(&bps, bytes, us - 1, MAX) == 0 && bps <= rate)
			fail_msg("%lu bytes at %lu: %lu us are not the shortest time", bytes, rate, us);
	}
	assert_int_equal(plan_shape_us(1000, 0), 0);
	assert_int_equal(plan_shape_us(UINT64_C(1000000000000000), 1), 0); /* more than a year */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates), cmocka_unit_test(test_times)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
