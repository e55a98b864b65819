/* SPDX-License-Identifier: Apache-2.0 */
/* Inside controller/store/ only: what a kind of store is. */
#ifndef CONTROLLER_STORE_INTERNAL_H
#define CONTROLLER_STORE_INTERNAL_H

#include "controller/store/store.h"

struct store_ops {
	void (*close)(struct store *s);
	void (*problem)(struct store *s, char *text);
	int (*range)(struct store *s, const char *prefix, uint64_t *rev, store_kv_cb *cb, void *ctx);
	void (*commit_many)(struct store *s, struct store_txn *t, unsigned n);
	int (*lease)(struct store *s, uint32_t ttl_ms, uint64_t *lease);
	int (*lease_renew)(struct store *s, uint64_t lease);
	int (*lease_end)(struct store *s, uint64_t lease);
	int (*watch)(struct store *s, const char *prefix, uint64_t from, const atomic_bool *stop,
	    store_watch_cb *cb, void *ctx);
};

struct store { /* each kind's own begins with it */
	const struct store_ops *ops;
};

/* --- etcd: one request (etcd_http.c) ---------------------------------------------------------- */

struct store_etcd_http;
struct json_t;
RWY_MUST_CHECK int store_etcd_http_new(
    struct store_etcd_http **out, const struct store_etcd_cfg *cfg, char *text);
void store_etcd_http_free(struct store_etcd_http *h);
/* POSTs *ask (its reference is taken) to `path`; *answer is the caller's. Asks endpoints in turn; one that
 * may have done it is not asked again unless `again`: STORE_EUNSURE. RWY_ENOMEM: the answer is too large. */
RWY_MUST_CHECK int store_etcd_http_post(
    struct store_etcd_http *h, const char *path, struct json_t *ask, bool again, struct json_t **answer);
/* The same as a stream of lines, until line returns non-zero (returned). tick is called several times a
 * second and ends it the same way. STORE_EDOWN: the stream ended, or was silent for long: ask another. */
typedef int store_etcd_line_cb(void *ctx, const char *text, size_t len);
typedef int store_etcd_tick_cb(void *ctx);
RWY_MUST_CHECK int store_etcd_http_stream(struct store_etcd_http *h, unsigned endpoint, const char *path,
    struct json_t *ask, store_etcd_line_cb *line, store_etcd_tick_cb *tick, void *ctx);
unsigned store_etcd_http_endpoints(const struct store_etcd_http *h);
/* The endpoint that answered last. */
unsigned store_etcd_http_good(struct store_etcd_http *h);

void store_etcd_http_problem(struct store_etcd_http *h, char *text); /* of the last request that failed */

/* Base64 (RFC 4648, 4): malloced, NULL: out of memory, or it is none. */
char *store_etcd_b64(const void *data, size_t len);
char *store_etcd_unb64(const char *text, size_t *len); /* with a 0 behind it */

#endif
