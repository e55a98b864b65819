/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's storage: an ordered map from keys to values with revisions, in SQLite (embedded,
 * one controller) or in etcd v3 (several). Revisions grow over all keys, one for each transaction.
 * Leases delete keys whose owner is gone. A watch reports changes in their order. One test suite
 * runs over both kinds (tests/lib/store/suite.c).
 *
 * Thread: any. Calls block, so they belong on a thread that can wait. Calls on one store run one at
 * a time, except store_watch(), which has a connection of its own.
 */
#ifndef CONTROLLER_STORE_STORE_H
#define CONTROLLER_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define STORE_KEY_MAX   256       /* bytes with its 0 */
#define STORE_VALUE_MAX (1 << 20) /* bytes */
#define STORE_OPS_MAX   128       /* operations in one transaction: etcd's default */
#define STORE_TEXT      256

/* Errors besides RWY_ENOMEM and RWY_EINVAL (above these limits). After all of them but
 * STORE_EUNSURE nothing has changed. */
#define STORE_ECONFLICT (-200) /* a comparison did not hold */
#define STORE_EDOWN     (-201) /* the store does not answer, or has no quorum */
#define STORE_EFULL     (-202) /* no space, or its quota is used up */
#define STORE_EUNSURE   (-203) /* no answer: the change may have been made. Read, then decide. */
#define STORE_ENOLEASE  (-204) /* there is no such lease, or it has expired */
#define STORE_ECOMPACT                                                                                       \
	(-205) /* a watch from a revision that is forgotten: read everything, then watch again */
const char *store_strerror(int rc);

struct store;

struct store_kv {
	const char *key;
	const char *value; /* NULL: the key was deleted; else a 0 follows it */
	size_t len;
	uint64_t create_rev, mod_rev; /* mod_rev of a deletion: the deletion's own revision */
	uint64_t lease;               /* 0: none */
};

struct store_cmp {
	const char *key;
	uint64_t mod_rev; /* the expected one; 0: the key does not exist */
};

struct store_op {
	const char *key;
	const char *value; /* NULL: delete; deleting a key that does not exist is no error */
	size_t len;
	uint64_t lease; /* the lease that the key ends with; 0: none */
};

struct store_txn {
	const struct store_cmp *cmp;
	unsigned cmps;
	const struct store_op *op; /* one for each key */
	unsigned ops;
	int rc;       /* out: 0 or an error */
	uint64_t rev; /* out: revision of the change */
};

/* Called for each key in order. *kv is valid during the call. A non-zero result ends the call,
 * which returns it. */
typedef int store_kv_cb(void *ctx, const struct store_kv *kv);

/* Opens the file, or creates it; refuses one that another process has open. bytes_max: STORE_EFULL
 * above this size; 0: no limit. On an error `text` (STORE_TEXT bytes) says what is wrong. */
RWY_MUST_CHECK int store_sqlite_open(struct store **out, const char *path, uint64_t bytes_max, char *text);

struct store_etcd_cfg {
	/* "http://127.0.0.1:2379"; the next one is asked when one does not answer */
	const char *const *endpoint;
	unsigned endpoints;
	const char *ca, *cert, *key; /* files; NULL: none */
	const char *user, *password; /* NULL: no login */
	const char *prefix;          /* prepended to every key: "/roceway/" */
	/* of one request at one endpoint; requests to each endpoint. 0: 1000 ms, twice */
	unsigned timeout_ms, attempts;
};
/* Does not connect: an etcd that is down now may come up later. RWY_EINVAL with `text`. */
RWY_MUST_CHECK int store_etcd_open(struct store **out, const struct store_etcd_cfg *cfg, char *text);

void store_close(struct store *s); /* NULL is allowed; no other call may be running */
/* Copies the store's own message about the last failure, STORE_TEXT bytes; "": there was none. */
void store_problem(struct store *s, char *text);

/* Calls cb for all keys that begin with prefix, as they are at one revision, *rev. */
RWY_MUST_CHECK int store_range(
    struct store *s, const char *prefix, uint64_t *rev, store_kv_cb *cb, void *ctx);
/* Commits the whole transaction or nothing. */
RWY_MUST_CHECK int store_commit(struct store *s, struct store_txn *t);
/* Commits several transactions in order, each with its own outcome in rc, together where the store
 * can. */
void store_commit_many(struct store *s, struct store_txn *t, unsigned n);

/* ttl_ms >= 1000; the store may round it up. */
RWY_MUST_CHECK int store_lease(struct store *s, uint32_t ttl_ms, uint64_t *lease);
/* Renews a lease for its whole term. STORE_ENOLEASE: it has expired. */
RWY_MUST_CHECK int store_lease_renew(struct store *s, uint64_t lease);
RWY_MUST_CHECK int store_lease_end(struct store *s, uint64_t lease); /* deletes the lease's keys */

/* Reports every change after revision `from` of keys that begin with prefix, in order, and
 * continues as changes happen. It ends when cb returns non-zero (which is returned), *stop becomes
 * true (0), or the store fails (negative). Several times a second cb gets kv NULL: all changes up
 * to `rev` are reported. */
typedef int store_watch_cb(void *ctx, const struct store_kv *kv, uint64_t rev);
RWY_MUST_CHECK int store_watch(struct store *s, const char *prefix, uint64_t from, const atomic_bool *stop,
    store_watch_cb *cb, void *ctx);

#endif
