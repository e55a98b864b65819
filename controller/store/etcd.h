/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the etcd store. */
#ifndef CONTROLLER_STORE_ETCD_H
#define CONTROLLER_STORE_ETCD_H

#include <jansson.h>

#include "controller/store/internal.h"

struct store_etcd {
	struct store store;
	struct store_etcd_http *http;
	char prefix[STORE_KEY_MAX];
};

uint64_t store_etcd_u64(const json_t *j, const char *key); /* 0 when it is not there */
/* The key with the prefix, in base64; or the end of the range of all that begin with it. */
json_t *store_etcd_key(const struct store_etcd *s, const char *key, bool end);
int store_etcd_kv_tell(const struct store_etcd *s, const json_t *j, bool deleted, store_kv_cb *cb, void *ctx);
int store_etcd_watch(struct store *store, const char *prefix, uint64_t from, const atomic_bool *stop,
    store_watch_cb *cb, void *ctx);

#endif
