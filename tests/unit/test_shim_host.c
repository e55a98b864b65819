/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of a process follows its file, and those who use the one before keep it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "shim/host.h"

static char folder[] = "/tmp/rwy-shim-XXXXXX", file[64], other[64];

/* As whoever changes it has to: a new file, renamed. */
static void put(const char *text)
{
	FILE *f = fopen(other, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(other, file), 0);
}

static void follows(void **state)
{
	struct shim_policy *first, *second, *third;

	assert_null(shim_host_policy()); /* no file: it was named, so that is an error */
	put("redirect 10.2.0.0/24 via 10.1.0.1 10.1.0.2\n");
	first = shim_host_policy();
	assert_non_null(first);
	assert_int_equal(first->relays, 2);
	second = shim_host_policy();
	assert_ptr_equal(first, second);
	shim_host_policy_end(second);
	first->relay[1].down_until = 77;
	put("redirect 10.2.0.0/24 via 10.1.0.2 10.1.0.2,port=9 10.1.0.1,down\n");
	second = shim_host_policy();
	assert_int_equal(second->relays, 3);
	assert_int_equal(second->relay[0].down_until, 77);
	assert_int_equal(second->relay[1].down_until, 0);
	assert_true(second->relay[2].down);
	assert_int_equal(first->relays, 2); /* whoever asks by it meanwhile still has it */
	shim_host_policy_end(first);
	put("redirect 10.2.0.0/24 over 10.1.0.2\n");
	third = shim_host_policy();
	assert_ptr_equal(third, second);
	shim_host_policy_end(third);
	shim_host_policy_end(second);
	put("# directly\n");
	third = shim_host_policy();
	assert_int_equal(third->rules, 0);
	shim_host_policy_end(third);
	shim_host_policy_end(NULL);
}

static int begin(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/redirect.conf", folder);
	snprintf(other, sizeof(other), "%s/new", folder);
	unsetenv(SHIM_ENV_VIA);
	return setenv(SHIM_ENV_FILE, file, 1);
}

static int end(void **state)
{
	unlink(file);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(follows)};

	return cmocka_run_group_tests(tests, begin, end);
}
