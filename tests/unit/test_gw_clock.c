/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's clock against the kernel's: its speed, and UTC of an instant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "gateway/app.h"
#include "gateway/setup.h"

#define PPM_MAX 100 /* 9 s a day; DPDK's rounded frequency may be wrong by 2000 */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * RWY_SEC + (uint64_t)ts.tv_nsec;
}

/* Between two looks of the kernel's clock around each of ours, however long they take. */
static void test_speed(void **state)
{
	uint64_t before[2], after[2];
	rwy_time at[2];

	gw_clock_init();
	for (unsigned i = 0; i < 2; i++) {
		before[i] = clock_ns(CLOCK_MONOTONIC_RAW);
		at[i] = gw_now();
		after[i] = clock_ns(CLOCK_MONOTONIC_RAW);
		if (!i)
			nanosleep(&(struct timespec){.tv_nsec = 200 * RWY_MS}, NULL);
	}
	const uint64_t took = at[1] - at[0], least = before[1] - after[0], most = after[1] - before[0];

	assert_in_range(took, least - least / 1000000 * PPM_MAX, most + most / 1000000 * PPM_MAX);
}

static void test_utc(void **state)
{
	const rwy_time now = gw_now();
	const uint64_t wall = clock_ns(CLOCK_REALTIME), utc = gw_utc(now);

	assert_in_range(utc, wall - 10 * RWY_SEC, wall + 10 * RWY_SEC);
	assert_in_range(gw_utc(now - 60 * RWY_SEC), utc - 70 * RWY_SEC, utc - 50 * RWY_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_speed),
	    cmocka_unit_test(test_utc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
