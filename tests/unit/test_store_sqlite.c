/* SPDX-License-Identifier: Apache-2.0 */
/* The common tests of the stores over SQLite (tests/lib/store/suite.c), and tests of its file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/store/calls.h"
#include "tests/lib/store/suite.h"

static char path[64];

static int sqlite_setup(void **state)
{
	char text[STORE_TEXT];
	int fd;

	snprintf(path, sizeof(path), "/tmp/rwy-store-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(store_sqlite_open(&store, path, 0, text), 0);
	return 0;
}

static void sqlite_remove(const char *p)
{
	char side[96];

	unlink(p);
	snprintf(side, sizeof(side), "%s-wal", p);
	unlink(side);
	snprintf(side, sizeof(side), "%s-shm", p);
	unlink(side);
}

static int sqlite_teardown(void **state)
{
	store_close(store);
	sqlite_remove(path);
	return 0;
}

static void sqlite_keeps_all_over_a_restart(void **state)
{
	const uint64_t rev = st_put(store, "r", "1");
	char text[STORE_TEXT];
	struct store *second;
	struct st_watcher *w;

	st_put(store, "r2", "2");
	assert_int_equal(store_sqlite_open(&second, path, 0, text), STORE_EDOWN);
	assert_non_null(strstr(text, "another process"));
	store_close(store);
	assert_int_equal(store_sqlite_open(&store, path, 0, text), 0);
	assert_string_equal(st_all(store, "").text, "r=1 r2=2 ");
	assert_int_equal(st_one(store, "r", 0).mod_rev, rev);
	assert_true(st_put(store, "r3", "3") > rev + 1);
	w = st_watch(store, rev); /* earlier changes are not stored */
	while (!__atomic_load_n(&w->rc, __ATOMIC_ACQUIRE))
		usleep(1000);
	assert_int_equal(st_watch_end(w, NULL), STORE_ECOMPACT);
}

static void a_full_sqlite_says_so_and_keeps_what_it_has(void **state)
{
	static char big[100000];
	char text[STORE_TEXT], small[] = "/tmp/rwy-full-XXXXXX";
	struct store_op op[2];
	struct store_txn t = {.op = op, .ops = 2};
	int rc = 0, fd = mkstemp(small);
	struct store *s;
	unsigned n = 0;

	assert_true(fd >= 0);
	close(fd);
	memset(big, 'x', sizeof(big) - 1);
	assert_int_equal(store_sqlite_open(&s, small, 400000, text), 0);
	st_put(s, "first", "1");
	while (!rc && n < 10) {
		char key[16];

		snprintf(key, sizeof(key), "big/%u", n);
		op[0] = st_op("count", key);
		op[1] = st_op(key, big);
		rc = store_commit(s, &t);
		n += !rc;
	}
	assert_int_equal(rc, STORE_EFULL);
	assert_true(n > 0);
	snprintf(text, sizeof(text), "count=big/%u ", n - 1);
	/* The last one that fitted, and nothing of the next. */
	assert_string_equal(st_one(s, "count", 0).text, text);
	assert_string_equal(st_one(s, "first", 0).text, "first=1 ");
	st_put(s, "big/0", NULL);
	st_put(s, "first", "2");
	store_close(s);
	sqlite_remove(small);
}

/* A batch that fails as a whole is made again, each alone: all keep the outcomes that they have then. */
static void a_change_that_lost_stays_lost_beside_one_too_large(void **state)
{
	static char big[800001];
	char text[STORE_TEXT], small[] = "/tmp/rwy-full-XXXXXX";
	struct store_cmp stale = {"guard", 0};
	struct store_op op[4];
	struct store_txn t[] = {{.cmp = &stale, .cmps = 1, .op = &op[0], .ops = 1}, {.op = &op[1], .ops = 1},
	    {.op = &op[2], .ops = 1}, {.op = &op[3], .ops = 1}};
	int fd = mkstemp(small);
	struct store *s;
	uint64_t rev;

	assert_true(fd >= 0);
	close(fd);
	memset(big, 'x', sizeof(big) - 1);
	op[0] = st_op("site/new", "1");
	op[1] = st_op("big/2", big);
	op[2] = st_op("site/other", "1");
	op[3] = st_op("leased", "1");
	op[3].lease = 77; /* there is none */
	assert_int_equal(store_sqlite_open(&s, small, 1 << 20, text), 0);
	st_put(s, "big/1", big);
	rev = st_put(s, "guard", "1");
	store_commit_many(s, t, 4);
	assert_int_equal(t[0].rc, STORE_ECONFLICT);
	assert_int_equal(t[1].rc, STORE_EFULL);
	assert_int_equal(t[2].rc, 0);
	assert_int_equal(t[2].rev, rev + 1);
	assert_int_equal(t[3].rc, STORE_ENOLEASE);
	st_one(s, "site/new", RWY_ENOENT);
	st_one(s, "big/2", RWY_ENOENT);
	st_one(s, "site/other", 0);
	store_close(s);
	sqlite_remove(small);
}

/* Another process deletes the file: later writes would be lost with this process. */
static void a_file_that_is_gone_takes_nothing(void **state)
{
	static const char *const side[] = {"", "-wal"};

	for (unsigned i = 0; i < 2; i++) {
		char name[96], away[112], text[STORE_TEXT];
		uint64_t lease;

		st_put(store, "k", "1");
		assert_int_equal(store_lease(store, 60000, &lease), 0);
		snprintf(name, sizeof(name), "%s%s", path, side[i]);
		snprintf(away, sizeof(away), "%s.away", name);
		assert_int_equal(rename(name, away), 0);
		assert_int_equal(
		    st_put_if(store, "k", st_one(store, "k", 0).mod_rev, "2", NULL), STORE_EDOWN);
		assert_int_equal(store_lease_renew(store, lease), STORE_EDOWN);
		assert_int_equal(store_lease(store, 60000, &lease), STORE_EDOWN);
		store_problem(store, text);
		assert_non_null(strstr(text, "moved or deleted"));
		assert_string_equal(st_one(store, "k", 0).text, "k=1 ");
		assert_int_equal(rename(away, name), 0); /* back again: nothing was lost */
		st_put(store, "k", "3");
	}
}

static void a_file_that_is_no_store_is_told(void **state)
{
	char other[] = "/tmp/rwy-other-XXXXXX", text[STORE_TEXT];
	int fd = mkstemp(other);
	struct store *s;

	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(write(fd, "not a database", 14), 14);
	close(fd);
	assert_int_equal(store_sqlite_open(&s, other, 0, text), STORE_EDOWN);
	assert_non_null(strstr(text, "not a database"));
	unlink(other);
}

static void a_path_that_cannot_be_is_told(void **state)
{
	char text[STORE_TEXT];
	struct store *s;

	assert_int_equal(store_sqlite_open(&s, "/nowhere/at/all", 0, text), STORE_EDOWN);
	assert_non_null(strstr(text, "/nowhere/at/all: "));
}

int main(void)
{
	const struct CMUnitTest alone[] = {
	    cmocka_unit_test_setup_teardown(sqlite_keeps_all_over_a_restart, sqlite_setup, sqlite_teardown),
	    cmocka_unit_test(a_full_sqlite_says_so_and_keeps_what_it_has),
	    cmocka_unit_test(a_change_that_lost_stays_lost_beside_one_too_large),
	    cmocka_unit_test_setup_teardown(a_file_that_is_gone_takes_nothing, sqlite_setup, sqlite_teardown),
	    cmocka_unit_test(a_file_that_is_no_store_is_told),
	    cmocka_unit_test(a_path_that_cannot_be_is_told),
	};
	int failed = store_suite_run("sqlite", sqlite_setup, sqlite_teardown);

	failed += cmocka_run_group_tests_name("sqlite alone", alone, NULL, NULL);
	return failed;
}
