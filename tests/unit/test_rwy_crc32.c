/* SPDX-License-Identifier: Apache-2.0 */
/* include/rwy/crc32.h against a CRC bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rwy/crc32.h"
#include "tests/lib/rng.h"

static uint32_t bitwise(uint32_t crc, const uint8_t *p, size_t n)
{
	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (RWY_CRC32_POLY & (0u - (crc & 1)));
	}
	return ~crc;
}

/* The check value of the catalogue of CRCs (CRC-32/ISO-HDLC). */
static void test_check_value(void **state)
{
	const uint8_t *digits = (const uint8_t *)"123456789";

	assert_int_equal(bitwise(0, digits, 9), 0xcbf43926);
	assert_int_equal(rwy_crc32_short(0, digits, 9), 0xcbf43926);
}

/* All lengths up to beyond those that are short, from any CRC, at any alignment. */
static void test_short(void **state)
{
	uint8_t bytes[RWY_CRC32_SHORT + 24];
	uint64_t rng = 1;

	for (size_t n = 0; n < RWY_CRC32_SHORT + 16; n++)
		for (unsigned k = 0; k < 50; k++) {
			const uint32_t crc = k ? (uint32_t)rng_next(&rng) : 0;

			for (size_t i = 0; i < sizeof(bytes); i++)
				bytes[i] = (uint8_t)rng_next(&rng);
			assert_int_equal(
			    rwy_crc32_short(crc, bytes + k % 8, n), bitwise(crc, bytes + k % 8, n));
		}
}

/* Bytes that end with their own CRC have the residue. */
static void test_residue(void **state)
{
	uint8_t bytes[100];
	uint64_t rng = 2;

	for (size_t n = 0; n + 4 <= sizeof(bytes); n++) {
		uint32_t crc;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)rng_next(&rng);
		crc = bitwise(0, bytes, n);
		memcpy(bytes + n, &crc, 4);
		assert_int_equal(bitwise(0, bytes, n + 4), RWY_CRC32_RESIDUE);
	}
}

/* Each entry of the tables: a difference of CRCs is that power of x, so many zero bytes later. */
static void test_powers(void **state)
{
	static const uint8_t zeros[RWY_CRC32_LONG];
	const uint32_t a = 0x12345678;

	for (uint32_t n = 0; n < RWY_CRC32_LONG; n += n < 300 ? 1 : 32) {
		uint32_t want = crc32_gzip_refl(a, zeros, n) ^ crc32_gzip_refl(0, zeros, n);
		uint32_t shift = rwy_crc32_mul_soft(rwy_x8_lo[n % 128], rwy_x8_hi[n / 128]);

		assert_int_equal(rwy_crc32_mul_soft(a, shift), want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_check_value),
	    cmocka_unit_test(test_short),
	    cmocka_unit_test(test_residue),
	    cmocka_unit_test(test_powers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
