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
	} file, wal; /* as they were opened */
	char problem[STORE_TEXT];
};

/* --- sqlite_txn.c ----------------------------------------------------------------------------- */

/* The STORE_E code of one of SQLite's. */
int store_sqlite_error(int rc);
int store_sqlite_run(struct store_sqlite *s, const char *text);
int store_sqlite_step(sqlite3_stmt *st); /* one that gives no rows */
void store_sqlite_bind_u64(sqlite3_stmt *st, int i, uint64_t v);
/* s stays as it is until the statement has run. */
void store_sqlite_bind_text(sqlite3_stmt *st, int i, const char *s, size_t len);
/* Keeps the reason of the last failure for store_problem(). */
void store_sqlite_note_problem(struct store_sqlite *s);
int store_sqlite_del(struct store_sqlite *s, const char *key, uint64_t rev);
/* The file and its WAL are those that were opened. first: remembers which these are. */
bool store_sqlite_files_same(struct store_sqlite *s, bool first);
/* STORE_EDOWN: the file has been moved or deleted, and a write to it would be lost. */
int store_sqlite_there(struct store_sqlite *s);
int store_sqlite_begin(struct store_sqlite *s);
/* Commits everything since BEGIN, or rolls it back when rc is an error; returns rc or the commit's. */
int store_sqlite_finish(struct store_sqlite *s, uint64_t rev, int rc);

/* --- sqlite_lease.c --------------------------------------------------------------------------- */

struct store_sqlite_lease *store_sqlite_lease_find(struct store_sqlite *s, uint64_t id);
void store_sqlite_expire(struct store_sqlite *s);
RWY_MUST_CHECK int store_sqlite_leases_load(struct store_sqlite *s);
int store_sqlite_lease(struct store *store, uint32_t ttl_ms, uint64_t *lease);
int store_sqlite_lease_renew(struct store *store, uint64_t lease);
int store_sqlite_lease_end(struct store *store, uint64_t lease);

#endif
