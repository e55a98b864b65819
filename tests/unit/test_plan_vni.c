/* SPDX-License-Identifier: Apache-2.0
 * The choice of a VNI: the lowest that is free, and none when all are used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/plan/vni.h"

static void test_the_lowest_free_one(void **state)
{
	uint32_t used[] = {12, 7, 10, 11, 10, 4, 14, 99};

	assert_int_equal(plan_vni_free(NULL, 0, 10, 20), 10);
	assert_int_equal(plan_vni_free(used, 8, 10, 20), 13);
	assert_int_equal(plan_vni_free(used, 8, 5, 20), 5);
	assert_int_equal(plan_vni_free(used, 8, 4, 20), 5);
}

static void test_none_is_left(void **state)
{
	uint32_t used[] = {10, 12, 11, 13, 5};

	assert_int_equal(plan_vni_free(used, 5, 10, 14), 14);
	assert_int_equal(plan_vni_free(used, 5, 10, 13), 0);
	used[0] = PLAN_VNI_LAST;
	assert_int_equal(plan_vni_free(used, 1, PLAN_VNI_LAST, PLAN_VNI_LAST), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_lowest_free_one),
	    cmocka_unit_test(test_none_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
