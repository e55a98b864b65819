/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the SQLite store. All under its lock. */
#ifndef CONTROLLER_STORE_SQLITE_H
#define CONTROLLER_STORE_SQLITE_H

#include <pthread.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "controller/store/sqlite_log.h"
#include "controller/store/internal.h"

#define LEASES_MAX 4096

enum stmt { S_GET, S_RANGE, S_PUT, S_DEL, S_REV, S_LEASED, S_LEASE_PUT, S_LEASE_DEL, S_COUNT };

struct lease {
	uint64_t id, expires_ms;
	uint32_t ttl_ms;
};

struct sqlite_store {
	struct store store;
	pthread_mutex_t lock;
	sqlite3 *db;
	sqlite3_stmt *stmt[S_COUNT];
	uint64_t rev; /* of the last change */
	struct sqlite_log *log;
	struct lease lease[LEASES_MAX];
	unsigned leases;
	char *path;
	struct file {
		dev_t dev;
		ino_t ino;
	} file, wal; /* as they were opened */
	char problem[STORE_TEXT];
};

/* --- sqlite_txn.c ----------------------------------------------------------------------------- */

/* The STORE_E code of one of SQLite's. */
int sqlite_error(int rc);
int sqlite_run(struct sqlite_store *s, const char *text);
int sqlite_step(sqlite3_stmt *st); /* one that gives no rows */
void sqlite_bind_u64(sqlite3_stmt *st, int i, uint64_t v);
/* s stays as it is until the statement has run. */
void sqlite_bind_text(sqlite3_stmt *st, int i, const char *s, size_t len);
/* Keeps the reason of the last failure for store_problem(). */
void sqlite_note_problem(struct sqlite_store *s);
int sqlite_del(struct sqlite_store *s, const char *key, uint64_t rev);
/* The file and its WAL are those that were opened. first: remembers which these are. */
bool sqlite_files_are(struct sqlite_store *s, bool first);
/* STORE_EDOWN: the file has been moved or deleted, and a write to it would be lost. */
int sqlite_there(struct sqlite_store *s);
int sqlite_begin(struct sqlite_store *s);
/* What was said since BEGIN, done or not. */
int sqlite_finish(struct sqlite_store *s, uint64_t rev, int rc);

/* --- sqlite_lease.c --------------------------------------------------------------------------- */

struct lease *sqlite_lease_find(struct sqlite_store *s, uint64_t id);
void sqlite_expire(struct sqlite_store *s);
RWY_MUST_CHECK int sqlite_leases_load(struct sqlite_store *s);
int sqlite_lease(struct store *store, uint32_t ttl_ms, uint64_t *lease);
int sqlite_lease_renew(struct store *store, uint64_t lease);
int sqlite_lease_end(struct store *store, uint64_t lease);

#endif
