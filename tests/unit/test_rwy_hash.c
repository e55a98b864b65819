/* SPDX-License-Identifier: Apache-2.0 */
/* include/rwy/: the hash spreads neighbouring keys, the pacing clock keeps its rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rwy/hash.h"
#include "rwy/pace.h"

#define SLOTS 4096u
#define KEYS  (4 * SLOTS)

static uint8_t used[SLOTS];

/* Four keys per slot: with a good hash no slot has four times as many. */
static void check_spread(uint64_t (*hash)(uint32_t))
{
	memset(used, 0, sizeof(used));
	for (uint32_t i = 0; i < KEYS; i++)
		assert_true(++used[hash(i) % SLOTS] < 20);
}

static uint64_t of_ip4(uint32_t i)
{
	struct rwy_ip ip = {{[10] = 0xff, 0xff, 10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}};

	return rwy_hash_ip(5 * RWY_HASH_MUL, &ip);
}

static uint64_t of_ip6_net(uint32_t i)
{
	struct rwy_ip ip = {{0x20, 1, [6] = (uint8_t)(i >> 8), (uint8_t)i, [15] = 1}};

	return rwy_hash_ip(0, &ip);
}

static uint64_t of_tenant(uint32_t i)
{
	struct rwy_ip ip = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};

	return rwy_hash_ip(i * RWY_HASH_MUL, &ip);
}

static uint64_t of_bytes(uint32_t i)
{
	return rwy_hash_bytes(0, &i, sizeof(i));
}

static void test_hash(void **state)
{
	check_spread(of_ip4);
	check_spread(of_ip6_net);
	check_spread(of_tenant);
	check_spread(of_bytes);
	assert_true(rwy_hash_bytes(0, "ab", 2) != rwy_hash_bytes(0, "ba", 2));
}

/* A second of packets takes a second, whatever the rate. */
static void test_pace(void **state)
{
	static const uint64_t rate[] = {1000, 125000000, 12500000000, 50000000000};

	for (unsigned i = 0; i < 4; i++) {
		struct rwy_pace c = {.at = RWY_SEC};
		uint64_t left = rate[i];

		for (rwy_pace_set(&c, rate[i]); left;) {
			uint32_t n = left < 4096 ? (uint32_t)left : 4096;

			rwy_pace_sent(&c, n);
			left -= n;
		}
		assert_in_range(c.at, 2 * RWY_SEC - 2000, 2 * RWY_SEC);
		assert_in_range(rwy_pace_time(&c, rate[i] / 1000), RWY_MS - 2, RWY_MS);
	}
}

static void test_pace_limit(void **state)
{
	struct rwy_pace c = {.at = 1000};

	rwy_pace_set(&c, 0);
	assert_true(c.ns_fp == 0 && c.at == 1000);
	rwy_pace_limit(&c, 500, 1500);
	assert_true(c.at == 1000);
	rwy_pace_limit(&c, 500, 1501);
	assert_true(c.at == 1001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hash), cmocka_unit_test(test_pace), cmocka_unit_test(test_pace_limit)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
