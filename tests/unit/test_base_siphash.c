/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 against the vectors of its authors (vectors_sip64): key 00..0f, message 00, 01, ... */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/siphash.h"

static void test_vectors(void **state)
{
	static const struct {
		size_t len;
		uint64_t tag;
	} v[] = {{0, UINT64_C(0x726fdb47dd0e0e31)}, {1, UINT64_C(0x74f839c593dc67fd)},
	    {7, UINT64_C(0xab0200f58b01d137)}, {8, UINT64_C(0x93f5f5799a932462)},
	    {15, UINT64_C(0xa129ca6149be45e5)}, {16, UINT64_C(0x3f2acc7f57c29bdb)},
	    {63, UINT64_C(0x958a324ceb064572)}};
	uint8_t key[BASE_SIPHASH_KEY], text[64];

	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(v) / sizeof(*v); i++)
		assert_int_equal(base_siphash(key, text, v[i].len), v[i].tag);
}

static void test_key_and_text_count(void **state)
{
	uint8_t key[BASE_SIPHASH_KEY] = {0}, text[48] = {0};
	const uint64_t plain = base_siphash(key, text, sizeof(text));

	for (unsigned i = 0; i < sizeof(text); i++) {
		text[i] = 1;
		assert_true(base_siphash(key, text, sizeof(text)) != plain);
		text[i] = 0;
	}
	for (unsigned i = 0; i < sizeof(key); i++) {
		key[i] = 1;
		assert_true(base_siphash(key, text, sizeof(text)) != plain);
		key[i] = 0;
	}
	assert_true(base_siphash(key, text, sizeof(text) - 1) != plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vectors),
	    cmocka_unit_test(test_key_and_text_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
