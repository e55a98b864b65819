/* SPDX-License-Identifier: Apache-2.0 */
/* A store's calls with their answers checked, and a thread that watches. */
#include "tests/lib/store/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct store_op st_op(const char *key, const char *value)
{
	return (struct store_op){key, value, value ? strlen(value) : 0, 0};
}

int st_put_if(struct store *s, const char *key, uint64_t mod_rev, const char *value, uint64_t *rev)
{
	const struct store_cmp cmp = {key, mod_rev};
	const struct store_op op = st_op(key, value);
	struct store_txn t = {.cmp = &cmp, .cmps = 1, .op = &op, .ops = 1};
	const int rc = store_commit(s, &t);

	if (rev)
		*rev = t.rev;
	return rc;
}

uint64_t st_put(struct store *s, const char *key, const char *value)
{
	const struct store_op op = st_op(key, value);
	struct store_txn t = {.op = &op, .ops = 1};

	assert_int_equal(store_commit(s, &t), 0);
	return t.rev;
}

int st_on_kv(void *ctx, const struct store_kv *kv)
{
	struct st_seen *s = ctx;
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

struct st_seen st_all(struct store *s, const char *prefix)
{
	struct st_seen seen = {0};
	uint64_t rev;

	assert_int_equal(store_range(s, prefix, &rev, st_on_kv, &seen), 0);
	assert_true(rev > 0);
	return seen;
}

struct seen_of {
	const char *key;
	struct st_seen *seen;
};

static int on_kv_of(void *ctx, const struct store_kv *kv)
{
	struct seen_of *of = ctx;

	return strcmp(kv->key, of->key) ? 0 : st_on_kv(of->seen, kv);
}

struct st_seen st_one(struct store *s, const char *key, int want)
{
	struct st_seen seen = {0};
	uint64_t rev;
	int rc = store_range(s, key, &rev, on_kv_of, &(struct seen_of){key, &seen});

	assert_int_equal(rc ? rc : seen.n ? 0 : RWY_ENOENT, want);
	return seen;
}

static int on_watch(void *ctx, const struct store_kv *kv, uint64_t rev)
{
	struct st_watcher *w = ctx;

	pthread_mutex_lock(&w->lock);
	if (kv)
		st_on_kv(&w->seen, kv);
	else
		w->done = rev;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void *watcher_main(void *arg)
{
	struct st_watcher *w = arg;

	w->rc = store_watch(w->store, "w/", w->from, &w->stop, on_watch, w);
	return NULL;
}

struct st_watcher *st_watch(struct store *s, uint64_t from)
{
	struct st_watcher *w = calloc(1, sizeof(*w));

	w->store = s;
	w->from = from;
	pthread_mutex_init(&w->lock, NULL);
	assert_int_equal(pthread_create(&w->thread, NULL, watcher_main, w), 0);
	return w;
}

void st_wait_for(struct st_watcher *w, unsigned n, const char *key)
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

int st_watch_end(struct st_watcher *w, struct st_seen *seen)
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
