/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of controller/store/: the operations of a kind of store, and helpers of
 * etcd's. */
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

struct store { /* each kind's object begins with it */
	const struct store_ops *ops;
};

/* --- etcd's requests (etcd_http.c) ------------------------------------------------------------ */

struct store_etcd_http;
struct json_t;
/* Makes the client of an etcd; connects to nothing. `text` gets the reason of a failure, STORE_TEXT
 * bytes. */
RWY_MUST_CHECK int store_etcd_http_new(
    struct store_etcd_http **out, const struct store_etcd_cfg *cfg, char *text);
void store_etcd_http_free(struct store_etcd_http *h);
/* POSTs `ask` to `path`, and takes over its reference; the caller owns *answer. It tries endpoints
 * in turn. One that may have executed the request is the last, STORE_EUNSURE, unless `again` allows
 * a repetition. RWY_ENOMEM: no memory, or the answer is too large. */
RWY_MUST_CHECK int store_etcd_http_post(
    struct store_etcd_http *h, const char *path, struct json_t *ask, bool again, struct json_t **answer);
/* The same for a stream of lines, until `line` returns non-zero, which is returned. `tick` is
 * called several times a second and may end the stream in the same way. STORE_EDOWN: the stream
 * ended or was silent for long; try another endpoint. */
typedef int store_etcd_line_cb(void *ctx, const char *text, size_t len);
typedef int store_etcd_tick_cb(void *ctx);
RWY_MUST_CHECK int store_etcd_http_stream(struct store_etcd_http *h, unsigned endpoint, const char *path,
    struct json_t *ask, store_etcd_line_cb *line, store_etcd_tick_cb *tick, void *ctx);
/* The number of endpoints. */
unsigned store_etcd_http_endpoints(const struct store_etcd_http *h);
/* Index of the endpoint that answered last. */
unsigned store_etcd_http_good(struct store_etcd_http *h);

/* Why the last failed request failed. */
void store_etcd_http_problem(struct store_etcd_http *h, char *text);

/* Base64 (RFC 4648, 4), malloced. NULL: out of memory, or the text is invalid. */
char *store_etcd_b64(const void *data, size_t len);
char *store_etcd_unb64(const char *text, size_t *len); /* with a 0 after it */

#endif
