/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the etcd store. */
#ifndef CONTROLLER_STORE_ETCD_H
#define CONTROLLER_STORE_ETCD_H

#include <jansson.h>

#include "controller/store/internal.h"

struct store_etcd {
	struct store store;
	struct store_etcd_http *http;
	char prefix[STORE_KEY_MAX];
};

uint64_t store_etcd_u64(const json_t *j, const char *key); /* 0: the field is absent */
/* The key with the store's prefix, in base64; with `end` the end of the range of keys that begin
 * so. */
json_t *store_etcd_key(const struct store_etcd *s, const char *key, bool end);
/* Calls cb with an entry of etcd's JSON, without the prefix; skips foreign keys. Returns cb's
 * result, or STORE_EDOWN: the entry is malformed, or no memory. */
int store_etcd_kv_tell(const struct store_etcd *s, const json_t *j, bool deleted, store_kv_cb *cb, void *ctx);
/* store_ops.watch; etcd_watch.c. */
int store_etcd_watch(struct store *store, const char *prefix, uint64_t from, const atomic_bool *stop,
    store_watch_cb *cb, void *ctx);

#endif
