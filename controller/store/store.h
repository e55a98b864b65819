/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller keeps: an ordered map of keys to values with revisions, in SQLite (embedded, one
 * controller) or etcd v3 (several). Every change has a revision, which grows over all keys; a transaction has
 * one. Leases remove keys whose owner is gone; a watch tells changes in their order. One test suite runs over
 * both (tests/unit/test_store.c).
 *
 * Calls block: they belong to a thread that has nothing else to do. Any thread; calls on one store take
 * turns, but for store_watch, which has a connection of its own.
 */
#ifndef CONTROLLER_STORE_STORE_H
#define CONTROLLER_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define STORE_KEY_MAX   256       /* bytes, with the 0 at the end */
#define STORE_VALUE_MAX (1 << 20) /* bytes */
#define STORE_OPS_MAX   128       /* of one transaction, as etcd's default */
#define STORE_TEXT      256

/* Besides RWY_ENOMEM and RWY_EINVAL (larger than the above). Nothing has changed, but for STORE_EUNSURE. */
#define STORE_ECONFLICT (-200) /* a comparison did not hold */
#define STORE_EDOWN     (-201) /* the store does not answer, or has no quorum */
#define STORE_EFULL     (-202) /* no space, or its quota is used up */
#define STORE_EUNSURE   (-203) /* the answer was lost: it may have been done. Read, then decide. */
#define STORE_ENOLEASE  (-204) /* no such lease, or it has expired */
#define STORE_ECOMPACT                                                                                       \
	(-205) /* a watch from a revision that is forgotten: read everything, then watch again */
const char *store_strerror(int rc);

struct store;

struct store_kv {
	const char *key;
	const char *value; /* NULL: the key was deleted; else with a 0 behind it */
	size_t len;
	uint64_t create_rev, mod_rev; /* of a deletion: mod_rev is the deletion's */
	uint64_t lease;               /* 0: none */
};

struct store_cmp {
	const char *key;
	uint64_t mod_rev; /* the expected one; 0: there is no such key */
};

struct store_op {
	const char *key;
	const char *value; /* NULL: delete, which is no error when there is none */
	size_t len;
	uint64_t lease; /* goes when that does; 0: stays */
};

struct store_txn {
	const struct store_cmp *cmp;
	unsigned cmps;
	const struct store_op *op; /* one a key */
	unsigned ops;
	int rc;       /* out: 0 or an error of its own */
	uint64_t rev; /* out: of the change */
};

/* Called for each key in order; the kv is the store's until it returns. Non-zero ends the walk and is
 * returned. */
typedef int store_kv_cb(void *ctx, const struct store_kv *kv);

/* path: a file, made when there is none; bytes_max: STORE_EFULL above; 0: as the disk allows. Refused while
 * another process has it open. text, STORE_TEXT bytes, tells what is wrong. */
RWY_MUST_CHECK int store_sqlite_open(struct store **out, const char *path, uint64_t bytes_max, char *text);

struct store_etcd_cfg {
	const char *const *endpoint; /* "http://127.0.0.1:2379"; asked in turn while one does not answer */
	unsigned endpoints;
	const char *ca, *cert, *key;   /* files; NULL: none */
	const char *user, *password;   /* NULL: none */
	const char *prefix;            /* before every key, "/roceway/" */
	unsigned timeout_ms, attempts; /* of one request, at one endpoint; 0: 1000, and each endpoint twice */
};
/* Does not connect: an etcd that is down now may be up later. */
RWY_MUST_CHECK int store_etcd_open(struct store **out, const struct store_etcd_cfg *cfg, char *text);

void store_close(struct store *s); /* NULL is allowed; no call and no watch may be under way */
/* The last failure in the store's own words, STORE_TEXT bytes; "": there was none. */
void store_problem(struct store *s, char *text);

/* All keys that begin with prefix, as of one revision, *rev. */
RWY_MUST_CHECK int store_range(
    struct store *s, const char *prefix, uint64_t *rev, store_kv_cb *cb, void *ctx);
/* All of it or nothing. */
RWY_MUST_CHECK int store_commit(struct store *s, struct store_txn *t);
/* Several in this order, each with its own outcome in rc, for the price of one where the store can. */
void store_commit_many(struct store *s, struct store_txn *t, unsigned n);

/* ttl_ms: 1000 and more; the store may round it up. */
RWY_MUST_CHECK int store_lease(struct store *s, uint32_t ttl_ms, uint64_t *lease);
RWY_MUST_CHECK int store_lease_renew(struct store *s, uint64_t lease);
RWY_MUST_CHECK int store_lease_end(struct store *s, uint64_t lease); /* its keys go */

/* Every change after revision `from` to keys that begin with prefix, in order; then, as they come, until cb
 * returns non-zero (returned), *stop becomes true (0) or the store fails (negative). cb with kv NULL: all
 * changes up to `rev` have been told, and there is time to look around: several times a second. */
typedef int store_watch_cb(void *ctx, const struct store_kv *kv, uint64_t rev);
RWY_MUST_CHECK int store_watch(struct store *s, const char *prefix, uint64_t from, const atomic_bool *stop,
    store_watch_cb *cb, void *ctx);

#endif
