/* SPDX-License-Identifier: Apache-2.0 */
/* roce/psn.h: 24-bit arithmetic and its wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "roce/parse.h"
#include "roce/psn.h"

static void test_add(void **state)
{
	assert_int_equal(roce_psn_add(0xffffff, 1), 0);
	assert_int_equal(roce_psn_add(0, 0xffffff), 0xffffff);
	assert_int_equal(roce_psn_add(5, (uint32_t)-6), 0xffffff);
}

static void test_diff_every_edge(void **state)
{
	static const uint32_t at[] = {0, 1, 2, 0x7ffffe, 0x7fffff, 0x800000, 0x800001, 0xfffffe, 0xffffff};

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		for (int32_t d = -5; d <= 5; d++)
			assert_int_equal(roce_psn_diff(roce_psn_add(at[i], (uint32_t)d), at[i]), d);
		/* IBA C9-67: 2^23 - 1 ahead is still after, 2^23 is before. */
		assert_true(roce_psn_after(roce_psn_add(at[i], 0x7fffff), at[i]));
		assert_true(roce_psn_before(roce_psn_add(at[i], 0x800000), at[i]));
		assert_false(roce_psn_before(at[i], at[i]));
		assert_false(roce_psn_after(at[i], at[i]));
	}
}

static void test_diff_is_antisymmetric(void **state)
{
	for (uint32_t i = 1; i < 0x800000; i += 977) {
		assert_true(roce_psn_after(roce_psn_add(0xfffff0, i), 0xfffff0));
		assert_true(roce_psn_before(0xfffff0, roce_psn_add(0xfffff0, i)));
	}
}

static void test_read_packets(void **state)
{
	assert_int_equal(roce_read_packets(0, 1024), 1);
	assert_int_equal(roce_read_packets(1, 1024), 1);
	assert_int_equal(roce_read_packets(1024, 1024), 1);
	assert_int_equal(roce_read_packets(1025, 1024), 2);
	assert_int_equal(roce_read_packets(0x80000000, 256), 0x800000);
	assert_int_equal(roce_read_packets(0xffffffff, 4096), 0x100000);
}

static void test_rnr_time(void **state)
{
	/* IBA table 45, in ms * 100. */
	static const uint32_t ms100[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
	    384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	for (uint8_t i = 0; i < 32; i++)
		assert_int_equal(roce_rnr_time(i), ms100[i] * UINT64_C(10000));
	assert_int_equal(roce_rnr_time(0), UINT64_C(655360000));
	assert_int_equal(roce_rnr_time(32 + 1), 10000); /* five bits count */
	for (uint8_t i = 1; i < 31; i++)
		assert_true(roce_rnr_time(i) < roce_rnr_time(i + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_add),
	    cmocka_unit_test(test_diff_every_edge),
	    cmocka_unit_test(test_diff_is_antisymmetric),
	    cmocka_unit_test(test_read_packets),
	    cmocka_unit_test(test_rnr_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
