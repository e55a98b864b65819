/* SPDX-License-Identifier: Apache-2.0 */
/* The common tests of the stores over three etcd nodes (tests/lib/store/suite.c), and tests of etcd
 * alone: replicas, compaction, nodes that die, and its base64. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "controller/store/internal.h"
#include "tests/lib/store/calls.h"
#include "tests/lib/store/etcd.h"
#include "tests/lib/store/suite.h"

static struct cluster cluster;
static unsigned prefix_no;

static struct store *etcd_open(const char *prefix)
{
	const char *urls[CLUSTER_NODES] = {cluster.url[0], cluster.url[1], cluster.url[2]};
	const struct store_etcd_cfg cfg = {.endpoint = urls, .endpoints = CLUSTER_NODES, .prefix = prefix};
	char text[STORE_TEXT];
	struct store *s;

	assert_int_equal(store_etcd_open(&s, &cfg, text), 0);
	return s;
}

static int etcd_setup(void **state)
{
	char prefix[32];

	if (!cluster.pid[0] && !cluster_start(&cluster))
		return -1;
	snprintf(prefix, sizeof(prefix), "/t%u/", prefix_no++);
	store = etcd_open(prefix);
	return 0;
}

static int etcd_teardown(void **state)
{
	store_close(store);
	return 0;
}

static void base64_of_any_length(void **state)
{
	char *text, *back;
	size_t n;

	for (size_t len = 0; len < 100; len++) {
		char in[100];

		for (size_t i = 0; i < len; i++)
			in[i] = (char)(i * 37 + len);
		text = store_etcd_b64(in, len);
		back = store_etcd_unb64(text, &n);
		assert_int_equal(n, len);
		assert_memory_equal(back, in, len);
		free(text);
		free(back);
	}
	assert_null(store_etcd_unb64("a", &n));
	assert_null(store_etcd_unb64("a===", &n));
	assert_null(store_etcd_unb64("ab c", &n));
	assert_null(store_etcd_unb64("=abc", &n));
}

static void replicas_see_each_other(void **state)
{
	struct store *a = etcd_open("/both/"), *b = etcd_open("/both/");
	uint64_t rev = st_put(a, "w/1", "a");
	struct st_watcher *w = st_watch(b, rev);
	struct st_seen s;

	st_put(a, "w/2", "b");
	st_wait_for(w, 1, NULL);
	assert_int_equal(st_put_if(b, "w/1", rev, "b", &rev), 0);
	st_wait_for(w, 2, NULL);
	assert_string_equal(st_one(a, "w/1", 0).text, "w/1=b ");
	assert_int_equal(st_watch_end(w, &s), 0);
	assert_string_equal(s.text, "w/2=b w/1=b ");
	store_close(a);
	store_close(b);
}

static void a_compacted_revision_is_told(void **state)
{
	const uint64_t from = st_put(store, "w/c", "1");
	const uint64_t rev = (st_put(store, "w/c", "2"), st_put(store, "w/c", "3"));
	struct st_watcher *w;
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "ETCDCTL_API=3 etcdctl --endpoints=%s compact %llu >/dev/null 2>&1",
	    cluster.url[0], (unsigned long long)rev);
	assert_int_equal(system(cmd), 0);
	w = st_watch(store, from - 1);
	for (unsigned i = 0; i < 1000 && !__atomic_load_n(&w->rc, __ATOMIC_ACQUIRE); i++)
		usleep(10000);
	assert_int_equal(st_watch_end(w, NULL), STORE_ECOMPACT);
	assert_string_equal(st_one(store, "w/c", 0).text, "w/c=3 ");
}

/* Above etcd's limit, and above that of its JSON gateway: it is refused for good. */
static void a_transaction_that_is_too_large_is_invalid(void **state)
{
	static char big[800001];
	const struct store_op op[] = {
	    {"l/a", big, 800000, 0}, {"l/b", big, 800000, 0}, {"l/c", big, 800000, 0}};

	memset(big, 'x', sizeof(big) - 1);
	for (unsigned ops = 2; ops <= 3; ops++) {
		struct store_txn t = {.op = op, .ops = ops};

		assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	}
	assert_int_equal(st_all(store, "l/").n, 0);
}

/* Any node may die, in any way: writes continue, and the watch misses nothing. */
static void a_node_that_dies_is_not_noticed(void **state)
{
	const uint64_t from = st_put(store, "w/n", "0");
	struct st_watcher *w = st_watch(store, from);
	char want[4096] = "", value[16];
	struct st_seen s;
	unsigned n = 0;

	for (unsigned node = 0; node < CLUSTER_NODES; node++) {
		cluster_node_kill(&cluster, node, node == 1 ? SIGTERM : SIGKILL);
		for (unsigned i = 0; i < 5; i++) {
			int rc = STORE_EDOWN;

			snprintf(value, sizeof(value), "%u.%u", node, i);
			snprintf(want + strlen(want), sizeof(want) - strlen(want), "w/n=%s ", value);
			/* An answer may be lost while a leader is elected: then the record is
			 * read. */
			for (unsigned k = 0; rc && k < 50; k++) {
				rc = st_put_if(store, "w/n", st_one(store, "w/n", 0).mod_rev, value, NULL);
				if (rc && strstr(st_one(store, "w/n", 0).text, value))
					rc = 0;
				if (rc)
					usleep(100000);
			}
			assert_int_equal(rc, 0);
			st_wait_for(w, ++n, NULL);
		}
		assert_true(cluster_node_start(&cluster, node));
		for (unsigned k = 0; k < 100; k++) {
			char cmd[256];

			snprintf(cmd, sizeof(cmd),
			    "ETCDCTL_API=3 etcdctl --endpoints=%s get x >/dev/null 2>&1", cluster.url[node]);
			if (!system(cmd))
				break;
			usleep(100000);
		}
	}
	assert_int_equal(st_watch_end(w, &s), 0);
	assert_string_equal(s.text, want);
}

static void without_a_quorum_nothing_is_done(void **state)
{
	struct st_seen s = {0};
	uint64_t rev;
	int rc;

	st_put(store, "q", "1");
	cluster_node_kill(&cluster, 0, SIGKILL);
	cluster_node_kill(&cluster, 1, SIGKILL);
	rc = st_put_if(store, "q", st_one(store, "q", STORE_EDOWN).mod_rev, "2", NULL);
	assert_true(rc == STORE_EDOWN || rc == STORE_EUNSURE);
	assert_int_equal(store_range(store, "", &rev, st_on_kv, &s), STORE_EDOWN);
	cluster_node_kill(&cluster, 2, SIGKILL);
	assert_int_equal(st_put_if(store, "q", 0, "2", NULL), STORE_EDOWN);
}

int main(void)
{
	const struct CMUnitTest alone[] = {
	    cmocka_unit_test(base64_of_any_length),
	    cmocka_unit_test(replicas_see_each_other),
	    cmocka_unit_test_setup_teardown(a_compacted_revision_is_told, etcd_setup, etcd_teardown),
	    cmocka_unit_test_setup_teardown(
	        a_transaction_that_is_too_large_is_invalid, etcd_setup, etcd_teardown),
	    cmocka_unit_test_setup_teardown(a_node_that_dies_is_not_noticed, etcd_setup, etcd_teardown),
	    cmocka_unit_test_setup_teardown(without_a_quorum_nothing_is_done, etcd_setup, etcd_teardown),
	};
	int failed = store_suite_run("etcd", etcd_setup, etcd_teardown);

	failed += cmocka_run_group_tests_name("etcd alone", alone, NULL, NULL);
	cluster_stop(&cluster);
	return failed;
}
