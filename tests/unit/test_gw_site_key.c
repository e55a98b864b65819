/* SPDX-License-Identifier: Apache-2.0 */
/* The site's key (gateway/control/site_key.h): its file, and what is wrong with one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/control/site_key.h"

#define GOOD "00112233445566778899aAbBcCdDeEfF"

static char path[32];

static int read_text(uint8_t key[BASE_SIPHASH_KEY], const char *text, mode_t mode)
{
	int fd, rc;

	memcpy(path, "/tmp/site_key.XXXXXX", 21);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	rc = gw_site_key_read(key, path);
	unlink(path);
	return rc;
}

static void test_good(void **state)
{
	static const uint8_t want[BASE_SIPHASH_KEY] = {
	    0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
	static const char *const texts[] = {GOOD, GOOD "\n"};

	for (unsigned i = 0; i < 2; i++) {
		uint8_t key[BASE_SIPHASH_KEY] = {0};

		assert_int_equal(read_text(key, texts[i], 0600), 0);
		assert_memory_equal(key, want, sizeof(key));
	}
}

static void test_bad_text(void **state)
{
	static const char *const bad[] = {"", "\n", "0011", GOOD "0", GOOD "\n\n", GOOD " \n", "g" GOOD,
	    "0x112233445566778899aabbccddeeff", "00112233445566778899aabbccddee g",
	    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"};
	uint8_t key[BASE_SIPHASH_KEY];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(read_text(key, bad[i], 0600), RWY_EINVAL);
}

static void test_open_to_others(void **state)
{
	static const mode_t modes[] = {0640, 0604, 0660, 0644};
	uint8_t key[BASE_SIPHASH_KEY];

	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		assert_int_equal(read_text(key, GOOD, modes[i]), RWY_EINVAL);
	assert_int_equal(read_text(key, GOOD, 0400), 0);
}

static void test_no_file(void **state)
{
	uint8_t key[BASE_SIPHASH_KEY];

	assert_int_equal(gw_site_key_read(key, "/nonexistent/key"), RWY_EINVAL);
	assert_int_equal(gw_site_key_read(key, "/tmp"), RWY_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_bad_text),
	    cmocka_unit_test(test_open_to_others),
	    cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
