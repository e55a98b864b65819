/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a store (controller/store/store.h) in short, which fail the test when an answer is
 * wrong, and a watch in a thread. */
#ifndef TESTS_LIB_STORE_CALLS_H
#define TESTS_LIB_STORE_CALLS_H

#include <pthread.h>

#include "controller/store/store.h"

/* Puts the value, or deletes the key: NULL. */
struct store_op st_op(const char *key, const char *value);
/* Commits that alone, and returns its revision. */
uint64_t st_put(struct store *s, const char *key, const char *value);
/* The same if the key's revision is mod_rev; returns the store's answer. rev may be NULL. */
int st_put_if(struct store *s, const char *key, uint64_t mod_rev, const char *value, uint64_t *rev);

/* The keys that a range or a watch has reported: "KEY=VALUE " of each, "KEY=- " of one that was
 * deleted; and the revisions and the lease of the last. */
struct st_seen {
	unsigned n;
	char text[4096];
	uint64_t create_rev, mod_rev, lease;
};

/* Adds a key to a struct st_seen, `ctx`. */
int st_on_kv(void *ctx, const struct store_kv *kv);
/* All keys that begin with prefix. */
struct st_seen st_all(struct store *s, const char *prefix);
/* Reads the key. want: 0, or RWY_ENOENT or an error of the store. */
struct st_seen st_one(struct store *s, const char *key, int want);

/* A watch of keys that begin with w/, in its own thread. */
struct st_watcher {
	pthread_t thread;
	pthread_mutex_t lock;
	struct store *store;
	uint64_t from, done;
	struct st_seen seen;
	atomic_bool stop;
	int rc;
};

/* st_watch_end() the result. */
struct st_watcher *st_watch(struct store *s, uint64_t from);
/* Waits until it has reported n changes, and that of `key` unless that is NULL, or 20 s. */
void st_wait_for(struct st_watcher *w, unsigned n, const char *key);
/* Ends the watch, and returns what store_watch() did. *seen: what it reported; may be NULL. */
int st_watch_end(struct st_watcher *w, struct st_seen *seen);

#endif
