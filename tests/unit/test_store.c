/* SPDX-License-Identifier: Apache-2.0 */
/* The common tests of the stores, over SQLite and over three etcd nodes; then tests of each store
 * alone. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "controller/store/store.h"
#include "controller/store/internal.h"
#include "tests/lib/store/etcd.h"

static struct cluster cluster;
static struct store *store; /* the store of the common tests */
static char path[64];
static unsigned prefix_no;

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

/* --- helpers ---------------------------------------------------------------------------------- */

static struct store_op op_put(const char *key, const char *value)
{
	return (struct store_op){key, value, value ? strlen(value) : 0, 0};
}

static int put_if(struct store *s, const char *key, uint64_t mod_rev, const char *value, uint64_t *rev)
{
	const struct store_cmp cmp = {key, mod_rev};
	const struct store_op op = op_put(key, value);
	struct store_txn t = {.cmp = &cmp, .cmps = 1, .op = &op, .ops = 1};
	const int rc = store_commit(s, &t);

	if (rev)
		*rev = t.rev;
	return rc;
}

static uint64_t put(struct store *s, const char *key, const char *value)
{
	const struct store_op op = op_put(key, value);
	struct store_txn t = {.op = &op, .ops = 1};

	assert_int_equal(store_commit(s, &t), 0);
	return t.rev;
}

struct seen {
	unsigned n;
	char text[4096];
	uint64_t create_rev, mod_rev, lease;
};

static int on_kv(void *ctx, const struct store_kv *kv)
{
	struct seen *s = ctx;
	const size_t k = strlen(s->text);

	if (kv->value)
		assert_int_equal(strlen(kv->value), kv->len);
	snprintf(s->text + k, sizeof(s->text) - k, "%s=%s ", kv->key, kv->value ? kv->value : "-");
	s->n++;
	s->create_rev = kv->create_rev;
	s->mod_rev = kv->mod_rev;
	s->lease = kv->lease;
	return 0;
}

static struct seen all(struct store *s, const char *prefix)
{
	struct seen seen = {0};
	uint64_t rev;

	assert_int_equal(store_range(s, prefix, &rev, on_kv, &seen), 0);
	assert_true(rev > 0);
	return seen;
}

struct seen_of {
	const char *key;
	struct seen *seen;
};

static int on_kv_of(void *ctx, const struct store_kv *kv)
{
	struct seen_of *of = ctx;

	return strcmp(kv->key, of->key) ? 0 : on_kv(of->seen, kv);
}

static struct seen one(struct store *s, const char *key, int want)
{
	struct seen seen = {0};
	uint64_t rev;
	int rc = store_range(s, key, &rev, on_kv_of, &(struct seen_of){key, &seen});

	assert_int_equal(rc ? rc : seen.n ? 0 : RWY_ENOENT, want);
	return seen;
}

/* --- common tests ----------------------------------------------------------------------------- */

static void what_is_put_is_there_in_order(void **state)
{
	uint64_t first = put(store, "a/2", "two"), second;
	struct seen s;

	put(store, "a/1", "one");
	put(store, "b/1", "other");
	second = put(store, "a/2", "second");
	assert_true(second > first);
	assert_string_equal(all(store, "a/").text, "a/1=one a/2=second ");
	s = one(store, "a/2", 0);
	assert_int_equal(s.create_rev, first);
	assert_int_equal(s.mod_rev, second);
	one(store, "a/3", RWY_ENOENT);
	one(store, "a/", RWY_ENOENT);
	assert_int_equal(all(store, "c/").n, 0);
}

static void a_comparison_that_fails_changes_nothing(void **state)
{
	const uint64_t rev = put(store, "k", "v");
	const struct store_cmp cmp[] = {{"k", rev}, {"other", 7}};
	const struct store_op op[] = {op_put("k", "new"), op_put("l", "new"), op_put("k2", NULL)};
	struct store_txn t = {.cmp = cmp, .cmps = 2, .op = op, .ops = 3};

	assert_int_equal(store_commit(store, &t), STORE_ECONFLICT);
	assert_string_equal(all(store, "").text, "k=v ");
	t.cmps = 1;
	assert_int_equal(store_commit(store, &t), 0);
	assert_string_equal(all(store, "").text, "k=new l=new ");
	assert_int_equal(store_commit(store, &t), STORE_ECONFLICT);
	assert_int_equal(put_if(store, "n", 0, "1", NULL), 0);
	assert_int_equal(put_if(store, "n", 0, "2", NULL), STORE_ECONFLICT);
	assert_string_equal(one(store, "n", 0).text, "n=1 ");
}

static void a_transaction_has_one_revision(void **state)
{
	const struct store_op op[] = {op_put("x", "1"), op_put("y", "1")};
	struct store_txn t = {.op = op, .ops = 2};

	assert_int_equal(store_commit(store, &t), 0);
	assert_int_equal(one(store, "x", 0).mod_rev, t.rev);
	assert_int_equal(one(store, "y", 0).mod_rev, t.rev);
}

static void deleting_needs_nothing_there(void **state)
{
	put(store, "d", "1");
	put(store, "d", NULL);
	one(store, "d", RWY_ENOENT);
	put(store, "d", NULL);
	assert_true(one(store, "d", RWY_ENOENT).n == 0);
}

static void too_large_is_refused(void **state)
{
	static char big[STORE_VALUE_MAX + 2], key[STORE_KEY_MAX + 1];
	struct store_op op[STORE_OPS_MAX + 1];
	struct store_txn t = {.op = op, .ops = 1};

	memset(big, 'x', STORE_VALUE_MAX + 1);
	memset(key, 'k', STORE_KEY_MAX);
	op[0] = op_put("k", big);
	assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	op[0] = op_put(key, "v");
	assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	for (unsigned i = 0; i <= STORE_OPS_MAX; i++)
		op[i] = op_put("k", "v");
	t.ops = STORE_OPS_MAX + 1;
	assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	t.ops = 2; /* a key twice */
	assert_int_equal(store_commit(store, &t), RWY_EINVAL);
	assert_int_equal(all(store, "").n, 0);
}

static void each_of_many_has_its_own_outcome(void **state)
{
	const struct store_cmp absent = {"m/0", 0};
	const struct store_op op[] = {
	    op_put("m/0", "a"), op_put("m/1", "b"), op_put("m/2", "c"), op_put("m/0", "z")};
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
	assert_string_equal(all(store, "m/").text, "m/0=a m/1=b m/2=c ");
}

static void bytes_come_back_as_they_were(void **state)
{
	char value[300], key[] = "key/\xc3\xa4\xe2\x82\xac";

	for (unsigned i = 0; i < sizeof(value) - 1; i++)
		value[i] = (char)(1 + i % 255);
	value[sizeof(value) - 1] = 0;
	for (size_t len = 250; len < sizeof(value); len++) {
		struct seen s;

		put(store, key, value + sizeof(value) - 1 - len);
		s = one(store, key, 0);
		assert_string_equal(strchr(s.text, '=') + 1 + 0, s.text + sizeof(key));
		assert_memory_equal(s.text + sizeof(key), value + sizeof(value) - 1 - len, len);
	}
}

static void more_than_a_page_is_read(void **state)
{
	char key[2100][16];
	struct store_op op[100];
	uint64_t rev;
	struct seen s = {0};

	for (unsigned i = 0; i < 2100; i += 100) {
		struct store_txn t = {.op = op, .ops = 100};

		for (unsigned k = 0; k < 100; k++) {
			snprintf(key[i + k], sizeof(key[0]), "p/%05u", i + k);
			op[k] = op_put(key[i + k], "v");
		}
		assert_int_equal(store_commit(store, &t), 0);
	}
	assert_int_equal(store_range(store, "p/", &rev, on_kv, &s), 0);
	assert_int_equal(s.n, 2100);
}

static void a_lease_takes_its_keys_along(void **state)
{
	struct store_op op = op_put("leased", "1");
	struct store_txn t = {.op = &op, .ops = 1};
	uint64_t lease, other;

	assert_int_equal(store_lease(store, 999, &lease), RWY_EINVAL);
	assert_int_equal(store_lease(store, 60000, &lease), 0);
	assert_int_equal(store_lease(store, 60000, &other), 0);
	op.lease = lease;
	assert_int_equal(store_commit(store, &t), 0);
	assert_int_equal(one(store, "leased", 0).lease, lease);
	put(store, "free", "1");
	assert_int_equal(store_lease_renew(store, lease), 0);
	assert_int_equal(store_lease_end(store, other), 0);
	assert_string_equal(all(store, "").text, "free=1 leased=1 ");
	assert_int_equal(store_lease_end(store, lease), 0);
	assert_string_equal(all(store, "").text, "free=1 ");
	assert_int_equal(store_lease_renew(store, lease), STORE_ENOLEASE);
	assert_int_equal(store_lease_end(store, lease), STORE_ENOLEASE);
	assert_int_equal(store_commit(store, &t), STORE_ENOLEASE);
	assert_string_equal(all(store, "").text, "free=1 ");
}

/* --- watches ---------------------------------------------------------------------------------- */

struct watcher {
	pthread_t thread;
	pthread_mutex_t lock;
	struct store *store;
	uint64_t from, done;
	struct seen seen;
	atomic_bool stop;
	int rc;
};

static int on_watch(void *ctx, const struct store_kv *kv, uint64_t rev)
{
	struct watcher *w = ctx;

	pthread_mutex_lock(&w->lock);
	if (kv)
		on_kv(&w->seen, kv);
	else
		w->done = rev;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void *watcher_main(void *arg)
{
	struct watcher *w = arg;

	w->rc = store_watch(w->store, "w/", w->from, &w->stop, on_watch, w);
	return NULL;
}

static struct watcher *watch(struct store *s, uint64_t from)
{
	struct watcher *w = calloc(1, sizeof(*w));

	w->store = s;
	w->from = from;
	pthread_mutex_init(&w->lock, NULL);
	assert_int_equal(pthread_create(&w->thread, NULL, watcher_main, w), 0);
	return w;
}

/* Waits until it has reported n changes, and that of `key` unless that is NULL, or 20 s. */
static void wait_for(struct watcher *w, unsigned n, const char *key)
{
	for (unsigned i = 0; i < 2000; i++) {
		bool enough;

		pthread_mutex_lock(&w->lock);
		enough = w->seen.n >= n && (!key || strstr(w->seen.text, key));
		pthread_mutex_unlock(&w->lock);
		if (enough)
			return;
		usleep(10000);
	}
	fail_msg("told %u of %u: %s", w->seen.n, n, w->seen.text);
}

static int watch_end(struct watcher *w, struct seen *seen)
{
	int rc;

	atomic_store_explicit(&w->stop, true, memory_order_release);
	pthread_join(w->thread, NULL);
	rc = w->rc;
	if (seen)
		*seen = w->seen;
	pthread_mutex_destroy(&w->lock);
	free(w);
	return rc;
}

static void a_watch_tells_what_was_and_what_comes(void **state)
{
	uint64_t from = put(store, "w/1", "a"), last;
	struct watcher *w;
	struct seen s;

	put(store, "w/2", "b");
	put(store, "v/2", "not this");
	w = watch(store, from);
	wait_for(w, 1, NULL);
	put(store, "w/2", NULL);
	last = put(store, "w/3", "c");
	wait_for(w, 3, NULL);
	assert_int_equal(watch_end(w, &s), 0);
	assert_string_equal(s.text, "w/2=b w/2=- w/3=c ");
	assert_int_equal(s.mod_rev, last);
}

static void a_lease_that_runs_out_is_told(void **state)
{
	struct store_op op = op_put("w/leased", "1");
	struct store_txn t = {.op = &op, .ops = 1};
	struct watcher *w;
	struct seen s;

	assert_int_equal(store_lease(store, 1000, &op.lease), 0);
	assert_int_equal(store_commit(store, &t), 0);
	w = watch(store, t.rev);
	wait_for(w, 1, NULL);
	assert_int_equal(watch_end(w, &s), 0);
	assert_string_equal(s.text, "w/leased=- ");
	one(store, "w/leased", RWY_ENOENT);
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
		const struct store_op op = op_put(key, "x");
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
	const uint64_t from = put(store, "w/", "0");
	struct watcher *a = watch(store, from), *b = watch(store, from);
	struct writer w[3] = {{.no = 1}, {.no = 2}, {.no = 3}};
	struct seen sa, sb;
	unsigned unsure = 0;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, writer_main, &w[i]), 0);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].rc, 0);
		unsure += w[i].unsure;
	}
	put(store, "w/end", "1");
	wait_for(a, 1, "w/end");
	wait_for(b, 1, "w/end");
	assert_int_equal(watch_end(a, &sa), 0);
	assert_int_equal(watch_end(b, &sb), 0);
	assert_in_range(sa.n, 301 - unsure, 301);
	assert_string_equal(sa.text, sb.text);
}

/* --- SQLite alone ----------------------------------------------------------------------------- */

static void sqlite_keeps_all_over_a_restart(void **state)
{
	const uint64_t rev = put(store, "r", "1");
	char text[STORE_TEXT];
	struct store *second;
	struct watcher *w;

	put(store, "r2", "2");
	assert_int_equal(store_sqlite_open(&second, path, 0, text), STORE_EDOWN);
	assert_non_null(strstr(text, "another process"));
	store_close(store);
	assert_int_equal(store_sqlite_open(&store, path, 0, text), 0);
	assert_string_equal(all(store, "").text, "r=1 r2=2 ");
	assert_int_equal(one(store, "r", 0).mod_rev, rev);
	assert_true(put(store, "r3", "3") > rev + 1);
	w = watch(store, rev); /* earlier changes are not stored */
	while (!__atomic_load_n(&w->rc, __ATOMIC_ACQUIRE))
		usleep(1000);
	assert_int_equal(watch_end(w, NULL), STORE_ECOMPACT);
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
	put(s, "first", "1");
	while (!rc && n < 10) {
		char key[16];

		snprintf(key, sizeof(key), "big/%u", n);
		op[0] = op_put("count", key);
		op[1] = op_put(key, big);
		rc = store_commit(s, &t);
		n += !rc;
	}
	assert_int_equal(rc, STORE_EFULL);
	assert_true(n > 0);
	snprintf(text, sizeof(text), "count=big/%u ", n - 1);
	/* The last one that fitted, and nothing of the next. */
	assert_string_equal(one(s, "count", 0).text, text);
	assert_string_equal(one(s, "first", 0).text, "first=1 ");
	put(s, "big/0", NULL);
	put(s, "first", "2");
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

		put(store, "k", "1");
		assert_int_equal(store_lease(store, 60000, &lease), 0);
		snprintf(name, sizeof(name), "%s%s", path, side[i]);
		snprintf(away, sizeof(away), "%s.away", name);
		assert_int_equal(rename(name, away), 0);
		assert_int_equal(put_if(store, "k", one(store, "k", 0).mod_rev, "2", NULL), STORE_EDOWN);
		assert_int_equal(store_lease_renew(store, lease), STORE_EDOWN);
		assert_int_equal(store_lease(store, 60000, &lease), STORE_EDOWN);
		store_problem(store, text);
		assert_non_null(strstr(text, "moved or deleted"));
		assert_string_equal(one(store, "k", 0).text, "k=1 ");
		assert_int_equal(rename(away, name), 0); /* back again: nothing was lost */
		put(store, "k", "3");
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

/* --- etcd alone ------------------------------------------------------------------------------- */

static void replicas_see_each_other(void **state)
{
	struct store *a = etcd_open("/both/"), *b = etcd_open("/both/");
	uint64_t rev = put(a, "w/1", "a");
	struct watcher *w = watch(b, rev);
	struct seen s;

	put(a, "w/2", "b");
	wait_for(w, 1, NULL);
	assert_int_equal(put_if(b, "w/1", rev, "b", &rev), 0);
	wait_for(w, 2, NULL);
	assert_string_equal(one(a, "w/1", 0).text, "w/1=b ");
	assert_int_equal(watch_end(w, &s), 0);
	assert_string_equal(s.text, "w/2=b w/1=b ");
	store_close(a);
	store_close(b);
}

static void a_compacted_revision_is_told(void **state)
{
	const uint64_t from = put(store, "w/c", "1");
	const uint64_t rev = (put(store, "w/c", "2"), put(store, "w/c", "3"));
	struct watcher *w;
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "ETCDCTL_API=3 etcdctl --endpoints=%s compact %llu >/dev/null 2>&1",
	    cluster.url[0], (unsigned long long)rev);
	assert_int_equal(system(cmd), 0);
	w = watch(store, from - 1);
	for (unsigned i = 0; i < 1000 && !__atomic_load_n(&w->rc, __ATOMIC_ACQUIRE); i++)
		usleep(10000);
	assert_int_equal(watch_end(w, NULL), STORE_ECOMPACT);
	assert_string_equal(one(store, "w/c", 0).text, "w/c=3 ");
}

/* Any node may die, in any way: writes continue, and the watch misses nothing. */
static void a_node_that_dies_is_not_noticed(void **state)
{
	const uint64_t from = put(store, "w/n", "0");
	struct watcher *w = watch(store, from);
	char want[4096] = "", value[16];
	struct seen s;
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
				rc = put_if(store, "w/n", one(store, "w/n", 0).mod_rev, value, NULL);
				if (rc && strstr(one(store, "w/n", 0).text, value))
					rc = 0;
				if (rc)
					usleep(100000);
			}
			assert_int_equal(rc, 0);
			wait_for(w, ++n, NULL);
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
	assert_int_equal(watch_end(w, &s), 0);
	assert_string_equal(s.text, want);
}

static void without_a_quorum_nothing_is_done(void **state)
{
	struct seen s = {0};
	uint64_t rev;
	int rc;

	put(store, "q", "1");
	cluster_node_kill(&cluster, 0, SIGKILL);
	cluster_node_kill(&cluster, 1, SIGKILL);
	rc = put_if(store, "q", one(store, "q", STORE_EDOWN).mod_rev, "2", NULL);
	assert_true(rc == STORE_EDOWN || rc == STORE_EUNSURE);
	assert_int_equal(store_range(store, "", &rev, on_kv, &s), STORE_EDOWN);
	cluster_node_kill(&cluster, 2, SIGKILL);
	assert_int_equal(put_if(store, "q", 0, "2", NULL), STORE_EDOWN);
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

#define SUITE(kind)                                                                                          \
	cmocka_unit_test_setup_teardown(what_is_put_is_there_in_order, kind##_setup, kind##_teardown),       \
	    cmocka_unit_test_setup_teardown(                                                                 \
	        a_comparison_that_fails_changes_nothing, kind##_setup, kind##_teardown),                     \
	    cmocka_unit_test_setup_teardown(a_transaction_has_one_revision, kind##_setup, kind##_teardown),  \
	    cmocka_unit_test_setup_teardown(deleting_needs_nothing_there, kind##_setup, kind##_teardown),    \
	    cmocka_unit_test_setup_teardown(too_large_is_refused, kind##_setup, kind##_teardown),            \
	    cmocka_unit_test_setup_teardown(                                                                 \
	        each_of_many_has_its_own_outcome, kind##_setup, kind##_teardown),                            \
	    cmocka_unit_test_setup_teardown(bytes_come_back_as_they_were, kind##_setup, kind##_teardown),    \
	    cmocka_unit_test_setup_teardown(more_than_a_page_is_read, kind##_setup, kind##_teardown),        \
	    cmocka_unit_test_setup_teardown(a_lease_takes_its_keys_along, kind##_setup, kind##_teardown),    \
	    cmocka_unit_test_setup_teardown(                                                                 \
	        a_watch_tells_what_was_and_what_comes, kind##_setup, kind##_teardown),                       \
	    cmocka_unit_test_setup_teardown(a_lease_that_runs_out_is_told, kind##_setup, kind##_teardown),   \
	    cmocka_unit_test_setup_teardown(                                                                 \
	        writers_at_once_are_told_in_one_order, kind##_setup, kind##_teardown)

int main(void)
{
	const struct CMUnitTest sqlite[] = {
	    SUITE(sqlite),
	    cmocka_unit_test_setup_teardown(sqlite_keeps_all_over_a_restart, sqlite_setup, sqlite_teardown),
	    cmocka_unit_test(a_full_sqlite_says_so_and_keeps_what_it_has),
	    cmocka_unit_test_setup_teardown(a_file_that_is_gone_takes_nothing, sqlite_setup, sqlite_teardown),
	    cmocka_unit_test(a_file_that_is_no_store_is_told),
	    cmocka_unit_test(a_path_that_cannot_be_is_told),
	    cmocka_unit_test(base64_of_any_length),
	};
	const struct CMUnitTest etcd[] = {
	    SUITE(etcd),
	    cmocka_unit_test(replicas_see_each_other),
	    cmocka_unit_test_setup_teardown(a_compacted_revision_is_told, etcd_setup, etcd_teardown),
	    cmocka_unit_test_setup_teardown(a_node_that_dies_is_not_noticed, etcd_setup, etcd_teardown),
	    cmocka_unit_test_setup_teardown(without_a_quorum_nothing_is_done, etcd_setup, etcd_teardown),
	};
	int failed = cmocka_run_group_tests_name("sqlite", sqlite, NULL, NULL);

	failed += cmocka_run_group_tests_name("etcd", etcd, NULL, NULL);
	cluster_stop(&cluster);
	return failed;
}
