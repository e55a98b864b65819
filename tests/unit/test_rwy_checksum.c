/* SPDX-License-Identifier: Apache-2.0 */
/* Internet checksums: whole, and in parts that begin at any place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "rwy/checksum.h"
#include "tests/lib/rng.h"

#define MOST 2000

/* As RFC 1071 says it: 16-bit words of big-endian bytes, with end-around carry. */
static uint16_t plainly(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++) {
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static void fill(uint8_t *p, uint64_t *rng)
{
	for (unsigned i = 0; i < MOST; i++)
		p[i] = (uint8_t)rng_next(rng);
}

static void test_whole(void **state)
{
	uint64_t rng = 1;
	uint8_t b[MOST];

	fill(b, &rng);
	for (uint32_t n = 0; n < MOST; n++)
		assert_int_equal(rwy_csum(b, n), plainly(b, n));
	memset(b, 0xff, sizeof(b));
	assert_int_equal(rwy_csum(b, MOST), 0xffff);
	memset(b, 0, sizeof(b));
	assert_int_equal(rwy_csum(b, MOST), 0);
}

/* A datagram of several buffers: a header of odd length, then pieces of a payload. */
static void test_parts(void **state)
{
	uint64_t rng = 2;
	uint8_t b[MOST];

	for (unsigned i = 0; i < 2000; i++) {
		const uint32_t len = rng_below(&rng, MOST);
		uint64_t sum = 0;

		fill(b, &rng);
		for (uint32_t at = 0, n; at < len; at += n) {
			n = 1 + rng_below(&rng, len - at);
			sum = rwy_csum_part(sum, at, b + at, n);
		}
		assert_int_equal(rwy_csum_fold(sum), plainly(b, len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_parts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
