/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements of a path (wan/measure.h): single losses and bursts, the best recent rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "wan/measure.h"

static void test_burst(void **state)
{
	struct wan_measure l;
	uint64_t pn = 5;

	wan_measure_init(&l, RWY_SEC);
	assert_int_equal(wan_measure_burst16(&l), 0);
	for (unsigned i = 0; i < 7; i++, pn += 50)
		wan_measure_on_lost(&l, pn);
	assert_int_equal(wan_measure_burst16(&l), 0); /* too few for a result */
	for (unsigned i = 0; i < 5000; i++, pn += 50)
		wan_measure_on_lost(&l, pn);
	assert_int_equal(wan_measure_burst16(&l), 16);
	/* Then in runs of 8: old values decay. */
	for (unsigned i = 0; i < 10000; i++, pn += 50)
		for (unsigned k = 0; k < 8; k++)
			wan_measure_on_lost(&l, pn + k);
	assert_in_range(wan_measure_burst16(&l), 16 * 8 - 1, 16 * 8 + 1);
	/* Single ones again. */
	for (unsigned i = 0; i < 20000; i++, pn += 50)
		wan_measure_on_lost(&l, pn);
	assert_in_range(wan_measure_burst16(&l), 16, 17);
}

static void test_first_datagram(void **state)
{
	struct wan_measure l;

	wan_measure_init(&l, RWY_SEC);
	for (unsigned i = 0; i < 16; i++) /* number 1 follows no loss of number 0 that never was */
		wan_measure_on_lost(&l, 1 + 2 * i);
	assert_int_equal(wan_measure_burst16(&l), 16);
}

static void test_rate(void **state)
{
	rwy_time now = RWY_SEC;
	struct wan_measure l;

	wan_measure_init(&l, now);
	assert_int_equal(wan_measure_rate(&l), 0);
	wan_measure_on_ack(&l, 0, true, now);
	assert_int_equal(l.at, now);
	/* A sender with little to send shows nothing of the path. */
	wan_measure_on_ack(&l, 70, true, now);
	assert_int_equal(wan_measure_rate(&l), 0);
	wan_measure_on_ack(&l, 1000, false, now += RWY_MS);
	wan_measure_on_ack(&l, 500, false, now += RWY_MS);
	assert_int_equal(wan_measure_rate(&l), 1000);
	/* An idle sender says little about the path: the value stays for a window or two, not for
	 * ever. */
	wan_measure_on_ack(&l, 10, true, now += WAN_MEASURE_WINDOW);
	assert_int_equal(wan_measure_rate(&l), 1000);
	wan_measure_on_ack(&l, 2000, true, now += RWY_MS); /* more than before */
	assert_int_equal(wan_measure_rate(&l), 2000);
	wan_measure_on_ack(&l, 10, true, now += WAN_MEASURE_WINDOW);
	assert_int_equal(wan_measure_rate(&l), 2000);
	wan_measure_on_ack(&l, 10, true, now += WAN_MEASURE_WINDOW);
	assert_int_equal(wan_measure_rate(&l), 0);
	/* Long silence: nothing is known. */
	wan_measure_on_ack(&l, 0, true, now + 5 * WAN_MEASURE_WINDOW);
	assert_int_equal(wan_measure_rate(&l), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_burst),
	    cmocka_unit_test(test_first_datagram),
	    cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
