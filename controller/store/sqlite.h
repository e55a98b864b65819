/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the SQLite store. The caller holds the store's lock. */
#ifndef CONTROLLER_STORE_SQLITE_H
#define CONTROLLER_STORE_SQLITE_H

#include <pthread.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "controller/store/sqlite_log.h"
#include "controller/store/internal.h"

#define LEASES_MAX 4096

enum store_sqlite_stmt { S_GET, S_RANGE, S_PUT, S_DEL, S_REV, S_LEASED, S_LEASE_PUT, S_LEASE_DEL, S_COUNT };

struct store_sqlite_lease {
	uint64_t id, expires_ms;
	uint32_t ttl_ms;
};

struct store_sqlite {
	struct store store;
	pthread_mutex_t lock;
	sqlite3 *db;
	sqlite3_stmt *stmt[S_COUNT];
	uint64_t rev; /* of the last change */
	struct store_sqlite_log *log;
	struct store_sqlite_lease lease[LEASES_MAX];
	unsigned leases;
	char *path;
	struct file {
		dev_t dev;
		ino_t ino;
	} file, wal; /* as opened: they must stay the same files */
	char problem[STORE_TEXT];
};

/* --- sqlite_txn.c ----------------------------------------------------------------------------- */

/* The STORE_E code for one of SQLite's. */
int store_sqlite_error(int rc);
/* Runs SQL text. STORE_E errors. */
int store_sqlite_run(struct store_sqlite *s, const char *text);
int store_sqlite_step(sqlite3_stmt *st); /* runs a statement that yields no rows */
void store_sqlite_bind_u64(sqlite3_stmt *st, int i, uint64_t v);
/* s must not change until the statement has run. */
void store_sqlite_bind_text(sqlite3_stmt *st, int i, const char *s, size_t len);
/* Keeps the reason of the last failure for store_problem(). */
void store_sqlite_note_problem(struct store_sqlite *s);
/* Deletes a key, and adds the deletion at revision rev to the log. */
int store_sqlite_del(struct store_sqlite *s, const char *key, uint64_t rev);
/* True if the file and its WAL are the ones that were opened. first: remembers them. */
bool store_sqlite_files_same(struct store_sqlite *s, bool first);
/* STORE_EDOWN: the file was moved or deleted, so a write would be lost. */
int store_sqlite_there(struct store_sqlite *s);
/* Begins a transaction of SQLite. STORE_E errors. */
int store_sqlite_begin(struct store_sqlite *s);
/* Commits all since BEGIN, or rolls it back if rc is an error. Returns rc, or the commit's
 * error. */
int store_sqlite_finish(struct store_sqlite *s, uint64_t rev, int rc);

/* --- sqlite_lease.c --------------------------------------------------------------------------- */

/* NULL: there is no such lease. */
struct store_sqlite_lease *store_sqlite_lease_find(struct store_sqlite *s, uint64_t id);
/* Ends the leases that have run out, and deletes their keys. */
void store_sqlite_expire(struct store_sqlite *s);
/* Reads the file's leases. Each gets a full term from now. */
RWY_MUST_CHECK int store_sqlite_leases_load(struct store_sqlite *s);
/* The store's operations; see store.h. These take the lock themselves. */
int store_sqlite_lease(struct store *store, uint32_t ttl_ms, uint64_t *lease);
int store_sqlite_lease_renew(struct store *store, uint64_t lease);
int store_sqlite_lease_end(struct store *store, uint64_t lease);

#endif
