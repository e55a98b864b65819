/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of every kind of store: keys, transactions, leases, and watches. */
#include "tests/lib/store/suite.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/store/calls.h"

struct store *store;

static void what_is_put_is_there_in_order(void **state)
{
	uint64_t first = st_put(store, "a/2", "two"), second;
	struct st_seen s;

	st_put(store, "a/1", "one");
	st_put(store, "b/1", "other");
	second = st_put(store, "a/2", "second");
	assert_true(second > first);
	assert_string_equal(st_all(store, "a/").text, "a/1=one a/2=second ");
	s = st_one(store, "a/2", 0);
	assert_int_equal(s.create_rev, first);
	assert_int_equal(s.mod_rev, second);
	st_one(store, "a/3", RWY_ENOENT);
	st_one(store, "a/", RWY_ENOENT);
	assert_int_equal(st_all(store, "c/").n, 0);
}

static void a_comparison_that_fails_changes_nothing(void **state)
{
	const uint64_t rev = st_put(store, "k", "v");
	const struct store_cmp cmp[] = {{"k", rev}, {"other", 7}};
	const struct store_op op[] = {st_op("k", "new"), st_op("l", "new"), st_op("k2", NULL)};
	struct store_txn t = {.cmp = cmp, .cmps = 2, .op = op, .ops = 3};

	assert_int_equal(store_commit(store, &t), STORE_ECONFLICT);
	assert_string_equal(st_all(store, "").text, "k=v ");
	t.cmps = 1;
	assert_int_equal(store_commit(store, &t), 0);
	assert_string_equal(st_all(store, "").text, "k=new l=new ");
	assert_int_equal(store_commit(store, &t), STORE_ECONFLICT);
	assert_int_equal(st_put_if(store, "n", 0, "1", NULL), 0);
	assert_int_equal(st_put_if(store, "n", 0, "2", NULL), STORE_ECONFLICT);
	assert_string_equal(st_one(store, "n", 0).text, "n=1 ");
}

static void a_transaction_has_one_revision(void **state)
{
	const struct store_op op[] = {st_op("x", "1"), st_op("y", "1")};
	struct store_txn t = {.op = op, .ops = 2};

	assert_int_equal(store_commit(store, &t), 0);
	assert_int_equal(st_one(store, "x", 0).mod_rev, t.rev);
	assert_int_equal(st_one(store, "y", 0).mod_rev, t.rev);
}

static void deleting_needs_nothing_there(void **state)
{
	st_put(store, "d", "1");
	st_put(store, "d", NULL);
	st_one(store, "d", RWY_ENOENT);
	st_put(store, "d", NULL);
	assert_true(st_one(store, "d", RWY_ENOENT).n == 0);
}

static void too_large_is_refused(void **state)
{
	static char big[STORE_VALUE_MAX + 2], key[STORE_KEY_MAX + 1];
	struct store_op op[STORE_OPS_MAX + 1];
	struct store_txn t = {.op = op, .ops = 1};

	memset(big, 'x', STORE_VALUE_MAX + 1);
	memset(key, 'k', STORE_KEY_MAX);
	op[0] = st_op("k", big);
	assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	op[0] = st_op(key, "v");
	assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	for (unsigned i = 0; i <= STORE_OPS_MAX; i++)
		op[i] = st_op("k", "v");
	t.ops = STORE_OPS_MAX + 1;
	assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	t.ops = 2; /* a key twice */
	assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	assert_int_equal(st_all(store, "").n, 0);
}

static void each_of_many_has_its_own_outcome(void **state)
{
	const struct store_cmp absent = {"m/0", 0};
	const struct store_op op[] = {
	    st_op("m/0", "a"), st_op("m/1", "b"), st_op("m/2", "c"), st_op("m/0", "z")};
	struct store_txn t[] = {
	    {.cmp = &absent, .cmps = 1, .op = &op[0], .ops = 1},
	    {.op = &op[1], .ops = 1},
	    {.cmp = &absent, .cmps = 1, .op = &op[3], .ops = 1}, /* not absent now */
	    {.op = &op[2], .ops = 0},                            /* nothing to do */
	    {.op = &op[2], .ops = 1},
	};

	store_commit_many(store, t, 5);
	assert_int_equal(t[0].rc, 0);
	assert_int_equal(t[1].rc, 0);
	assert_int_equal(t[2].rc, STORE_ECONFLICT);
	assert_int_equal(t[3].rc, RWY_EINVAL);
	assert_int_equal(t[4].rc, 0);
	assert_true(t[4].rev >= t[1].rev && t[1].rev >= t[0].rev);
	assert_string_equal(st_all(store, "m/").text, "m/0=a m/1=b m/2=c ");
}

static void bytes_come_back_as_they_were(void **state)
{
	char value[300], key[] = "key/\xc3\xa4\xe2\x82\xac";

	for (unsigned i = 0; i < sizeof(value) - 1; i++)
		value[i] = (char)(1 + i % 255);
	value[sizeof(value) - 1] = 0;
	for (size_t len = 250; len < sizeof(value); len++) {
		struct st_seen s;

		st_put(store, key, value + sizeof(value) - 1 - len);
		s = st_one(store, key, 0);
		assert_string_equal(strchr(s.text, '=') + 1 + 0, s.text + sizeof(key));
		assert_memory_equal(s.text + sizeof(key), value + sizeof(value) - 1 - len, len);
	}
}

static void more_than_a_page_is_read(void **state)
{
	char key[2100][16];
	struct store_op op[100];
	uint64_t rev;
	struct st_seen s = {0};

	for (unsigned i = 0; i < 2100; i += 100) {
		struct store_txn t = {.op = op, .ops = 100};

		for (unsigned k = 0; k < 100; k++) {
			snprintf(key[i + k], sizeof(key[0]), "p/%05u", i + k);
			op[k] = st_op(key[i + k], "v");
		}
		assert_int_equal(store_commit(store, &t), 0);
	}
	assert_int_equal(store_range(store, "p/", &rev, st_on_kv, &s), 0);
	assert_int_equal(s.n, 2100);
}

static void a_lease_takes_its_keys_along(void **state)
{
	struct store_op op = st_op("leased", "1");
	struct store_txn t = {.op = &op, .ops = 1};
	uint64_t lease, other;

	assert_int_equal(store_lease(store, 999, &lease), RWY_EINVAL);
	assert_int_equal(store_lease(store, 60000, &lease), 0);
	assert_int_equal(store_lease(store, 60000, &other), 0);
	op.lease = lease;
	assert_int_equal(store_commit(store, &t), 0);
	assert_int_equal(st_one(store, "leased", 0).lease, lease);
	st_put(store, "free", "1");
	assert_int_equal(store_lease_renew(store, lease), 0);
	assert_int_equal(store_lease_end(store, other), 0);
	assert_string_equal(st_all(store, "").text, "free=1 leased=1 ");
	assert_int_equal(store_lease_end(store, lease), 0);
	assert_string_equal(st_all(store, "").text, "free=1 ");
	assert_int_equal(store_lease_renew(store, lease), STORE_ENOLEASE);
	assert_int_equal(store_lease_end(store, lease), STORE_ENOLEASE);
	assert_int_equal(store_commit(store, &t), STORE_ENOLEASE);
	assert_string_equal(st_all(store, "").text, "free=1 ");
}

static void a_watch_tells_what_was_and_what_comes(void **state)
{
	uint64_t from = st_put(store, "w/1", "a"), last;
	struct st_watcher *w;
	struct st_seen s;

	st_put(store, "w/2", "b");
	st_put(store, "v/2", "not this");
	w = st_watch(store, from);
	st_wait_for(w, 1, NULL);
	st_put(store, "w/2", NULL);
	last = st_put(store, "w/3", "c");
	st_wait_for(w, 3, NULL);
	assert_int_equal(st_watch_end(w, &s), 0);
	assert_string_equal(s.text, "w/2=b w/2=- w/3=c ");
	assert_int_equal(s.mod_rev, last);
}

static void a_lease_that_runs_out_is_told(void **state)
{
	struct store_op op = st_op("w/leased", "1");
	struct store_txn t = {.op = &op, .ops = 1};
	struct st_watcher *w;
	struct st_seen s;

	assert_int_equal(store_lease(store, 1000, &op.lease), 0);
	assert_int_equal(store_commit(store, &t), 0);
	w = st_watch(store, t.rev);
	st_wait_for(w, 1, NULL);
	assert_int_equal(st_watch_end(w, &s), 0);
	assert_string_equal(s.text, "w/leased=- ");
	st_one(store, "w/leased", RWY_ENOENT);
}

struct writer {
	pthread_t thread;
	unsigned no, unsure; /* puts that may have been done: etcd's leader changed */
	int rc;              /* another error than that */
};

static void *writer_main(void *arg)
{
	struct writer *w = arg;
	char key[32];

	for (unsigned i = 0; i < 100 && !w->rc; i++) {
		const struct store_op op = st_op(key, "x");
		struct store_txn t = {.op = &op, .ops = 1};
		int rc;

		snprintf(key, sizeof(key), "w/%u/%02u", w->no, i % 10);
		rc = store_commit(store, &t);
		if (rc == STORE_EUNSURE)
			w->unsure++;
		else
			w->rc = rc;
	}
	return NULL;
}

static void writers_at_once_are_told_in_one_order(void **state)
{
	const uint64_t from = st_put(store, "w/", "0");
	struct st_watcher *a = st_watch(store, from), *b = st_watch(store, from);
	struct writer w[3] = {{.no = 1}, {.no = 2}, {.no = 3}};
	struct st_seen sa, sb;
	unsigned unsure = 0;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, writer_main, &w[i]), 0);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].rc, 0);
		unsure += w[i].unsure;
	}
	st_put(store, "w/end", "1");
	st_wait_for(a, 1, "w/end");
	st_wait_for(b, 1, "w/end");
	assert_int_equal(st_watch_end(a, &sa), 0);
	assert_int_equal(st_watch_end(b, &sb), 0);
	assert_in_range(sa.n, 301 - unsure, 301);
	assert_string_equal(sa.text, sb.text);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int store_suite_run(const char *name, int (*set_up)(void **state), int (*tear_down)(void **state))
{
	const struct CMUnitTest tests[] = {
	    CASE(what_is_put_is_there_in_order),
	    CASE(a_comparison_that_fails_changes_nothing),
	    CASE(a_transaction_has_one_revision),
	    CASE(deleting_needs_nothing_there),
	    CASE(too_large_is_refused),
	    CASE(each_of_many_has_its_own_outcome),
	    CASE(bytes_come_back_as_they_were),
	    CASE(more_than_a_page_is_read),
	    CASE(a_lease_takes_its_keys_along),
	    CASE(a_watch_tells_what_was_and_what_comes),
	    CASE(a_lease_that_runs_out_is_told),
	    CASE(writers_at_once_are_told_in_one_order),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
