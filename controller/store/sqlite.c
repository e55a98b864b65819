/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in one SQLite file, for one process. The file counts revisions; the last changes are
 * also in memory for watches (sqlite_log.c). Statements and transactions are in sqlite_txn.c.
 * Several transactions of the store share one of SQLite, and its fsync.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/sqlite.h"

static const char *const sql[S_COUNT] = {
    [S_GET] = "SELECT key, value, created, modified, lease FROM kv WHERE key = ?1",
    [S_RANGE] =
        "SELECT key, value, created, modified, lease FROM kv WHERE key >= ?1 AND substr(key, 1, ?2) = ?1 "
        "AND key < ?3 ORDER BY key",
    [S_PUT] = "INSERT INTO kv (key, value, created, modified, lease) VALUES (?1, ?2, ?3, ?4, ?5) "
              "ON CONFLICT (key) DO UPDATE SET value = ?2, modified = ?4, lease = ?5",
    [S_DEL] = "DELETE FROM kv WHERE key = ?1",
    [S_REV] = "UPDATE meta SET revision = ?1",
    [S_LEASED] = "SELECT key FROM kv WHERE lease = ?1 ORDER BY key",
    [S_LEASE_PUT] = "INSERT INTO lease (id, ttl) VALUES (?1, ?2)",
    [S_LEASE_DEL] = "DELETE FROM lease WHERE id = ?1",
};

/* --- reading ---------------------------------------------------------------------------------- */

static void row_kv(sqlite3_stmt *st, char key[STORE_KEY_MAX], struct store_kv *kv)
{
	const char *value = sqlite3_column_blob(st, 1);

	snprintf(key, STORE_KEY_MAX, "%.*s", sqlite3_column_bytes(st, 0),
	    (const char *)sqlite3_column_blob(st, 0));
	kv->key = key;
	kv->len = (size_t)sqlite3_column_bytes(st, 1);
	kv->value = value ? value : "";
	kv->create_rev = (uint64_t)sqlite3_column_int64(st, 2);
	kv->mod_rev = (uint64_t)sqlite3_column_int64(st, 3);
	kv->lease = (uint64_t)sqlite3_column_int64(st, 4);
}

static int walk(sqlite3_stmt *st, store_kv_cb *cb, void *ctx)
{
	int rc, out = 0;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW && !out) {
		char key[STORE_KEY_MAX];
		struct store_kv kv;
		char *copy;

		row_kv(st, key, &kv);
		copy = malloc(kv.len + 1); /* SQLite does not terminate a blob */
		if (!copy) {
			out = RWY_ENOMEM;
			break;
		}
		memcpy(copy, kv.value, kv.len);
		copy[kv.len] = 0;
		kv.value = copy;
		out = cb(ctx, &kv);
		free(copy);
	}
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return out ? out : store_sqlite_error(rc);
}

static int sqlite_range(struct store *store, const char *prefix, uint64_t *rev, store_kv_cb *cb, void *ctx)
{
	struct store_sqlite *s = (struct store_sqlite *)store;
	sqlite3_stmt *st = s->stmt[S_RANGE];
	const size_t n = strlen(prefix);
	char end[STORE_KEY_MAX + 2];
	int rc;

	snprintf(end, sizeof(end), "%s\xff", prefix); /* above all UTF-8 text with this prefix */
	pthread_mutex_lock(&s->lock);
	store_sqlite_bind_text(st, 1, prefix, n);
	sqlite3_bind_int(st, 2, (int)n);
	store_sqlite_bind_text(st, 3, end, n + 1);
	*rev = s->rev;
	rc = walk(st, cb, ctx);
	if (rc == STORE_EDOWN)
		store_sqlite_note_problem(s);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* Revisions of the key's creation and last change; 0: it does not exist. */
static int revisions(struct store_sqlite *s, const char *key, uint64_t *created, uint64_t *modified)
{
	sqlite3_stmt *st = s->stmt[S_GET];
	int rc;

	*created = *modified = 0;
	store_sqlite_bind_text(st, 1, key, strlen(key));
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*created = (uint64_t)sqlite3_column_int64(st, 2);
		*modified = (uint64_t)sqlite3_column_int64(st, 3);
	}
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return store_sqlite_error(rc);
}

/* --- writing, inside a transaction of SQLite -------------------------------------------------- */

static int put_record(struct store_sqlite *s, const struct store_op *op, uint64_t rev)
{
	struct store_kv kv = {op->key, op->value, op->len, rev, rev, op->lease};
	sqlite3_stmt *st = s->stmt[S_PUT];
	uint64_t created, modified;
	int rc = revisions(s, op->key, &created, &modified);

	if (rc)
		return rc;
	if (created)
		kv.create_rev = created;
	store_sqlite_bind_text(st, 1, op->key, strlen(op->key));
	store_sqlite_bind_text(st, 2, op->value, op->len);
	store_sqlite_bind_u64(st, 3, rev);
	store_sqlite_bind_u64(st, 4, rev);
	store_sqlite_bind_u64(st, 5, op->lease);
	rc = store_sqlite_step(st);
	return rc ? rc : store_sqlite_log_add(s->log, &kv);
}

static int holds(struct store_sqlite *s, const struct store_txn *t)
{
	uint64_t created, modified;
	int rc;

	for (unsigned i = 0; i < t->cmps; i++) {
		rc = revisions(s, t->cmp[i].key, &created, &modified);
		if (rc)
			return rc;
		if (modified != t->cmp[i].mod_rev)
			return STORE_ECONFLICT;
	}
	for (unsigned i = 0; i < t->ops; i++)
		if (t->op[i].value && t->op[i].lease && !store_sqlite_lease_find(s, t->op[i].lease))
			return STORE_ENOLEASE;
	return 0;
}

/* Runs the transaction and sets its outcome. Non-zero: SQLite failed, and all since BEGIN with
 * it. */
static int txn_run(struct store_sqlite *s, struct store_txn *t, uint64_t *rev)
{
	int rc = holds(s, t);

	t->rc = rc;
	if (rc)
		return rc == STORE_ECONFLICT || rc == STORE_ENOLEASE ? 0 : rc;
	t->rev = *rev + 1;
	for (unsigned i = 0; !rc && i < t->ops; i++)
		rc = t->op[i].value ? put_record(s, &t->op[i], t->rev)
		                    : store_sqlite_del(s, t->op[i].key, t->rev);
	*rev = t->rev;
	return rc;
}

static int commit_batch(struct store_sqlite *s, struct store_txn *t, unsigned n)
{
	uint64_t rev = s->rev;
	int rc = store_sqlite_begin(s);

	if (rc)
		return rc;
	for (unsigned i = 0; !rc && i < n; i++)
		rc = txn_run(s, &t[i], &rev);
	return store_sqlite_finish(s, rev, rc);
}

static void sqlite_commit_many(struct store *store, struct store_txn *t, unsigned n)
{
	struct store_sqlite *s = (struct store_sqlite *)store;
	int rc;

	pthread_mutex_lock(&s->lock);
	store_sqlite_expire(s);
	rc = commit_batch(s, t, n);
	for (unsigned i = 0; rc && i < n; i++) { /* one may be too large, and the others not */
		const int failed = n > 1 ? commit_batch(s, &t[i], 1) : rc;

		if (failed) /* else it has the outcome that txn_run() set */
			t[i].rc = failed;
	}
	pthread_mutex_unlock(&s->lock);
}

static int sqlite_watch(struct store *store, const char *prefix, uint64_t from, const atomic_bool *stop,
    store_watch_cb *cb, void *ctx)
{
	struct store_sqlite *s = (struct store_sqlite *)store;

	while (!atomic_load_explicit(stop, memory_order_acquire)) {
		int rc = store_sqlite_log_tell(s->log, prefix, &from, cb, ctx);

		if (rc)
			return rc;
		pthread_mutex_lock(&s->lock);
		store_sqlite_expire(s);
		pthread_mutex_unlock(&s->lock);
	}
	return 0;
}

/* --- open, close ------------------------------------------------------------------------------ */

static void sqlite_close(struct store *store)
{
	struct store_sqlite *s = (struct store_sqlite *)store;

	for (unsigned i = 0; i < S_COUNT; i++)
		sqlite3_finalize(s->stmt[i]);
	sqlite3_close(s->db);
	store_sqlite_log_free(s->log);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s);
}

static void sqlite_problem(struct store *store, char *text)
{
	struct store_sqlite *s = (struct store_sqlite *)store;

	pthread_mutex_lock(&s->lock);
	memcpy(text, s->problem, STORE_TEXT);
	pthread_mutex_unlock(&s->lock);
}

static const struct store_ops sqlite_ops = {
    .close = sqlite_close,
    .problem = sqlite_problem,
    .range = sqlite_range,
    .commit_many = sqlite_commit_many,
    .lease = store_sqlite_lease,
    .lease_renew = store_sqlite_lease_renew,
    .lease_end = store_sqlite_lease_end,
    .watch = sqlite_watch,
};

static int number(struct store_sqlite *s, const char *text, uint64_t *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, text, -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*out = (uint64_t)sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? 0 : STORE_EDOWN;
}

static int prepare(struct store_sqlite *s, uint64_t bytes_max)
{
	uint64_t page = 4096;
	char text[96];
	int rc = store_sqlite_run(s,
	    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
	    "CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value BLOB NOT NULL, created INTEGER, "
	    "modified INTEGER, lease INTEGER) WITHOUT ROWID;"
	    "CREATE INDEX IF NOT EXISTS leased ON kv (lease) WHERE lease != 0;"
	    "CREATE TABLE IF NOT EXISTS lease (id INTEGER PRIMARY KEY, ttl INTEGER);"
	    "CREATE TABLE IF NOT EXISTS meta (revision INTEGER);"
	    "INSERT INTO meta SELECT 1 WHERE NOT EXISTS (SELECT * FROM meta)");

	if (!rc)
		rc = number(s, "PRAGMA page_size", &page);
	if (!rc && bytes_max) {
		snprintf(
		    text, sizeof(text), "PRAGMA max_page_count=%llu", (unsigned long long)(bytes_max / page));
		rc = store_sqlite_run(s, text);
	}
	for (unsigned i = 0; !rc && i < S_COUNT; i++)
		rc = store_sqlite_error(
		    sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->stmt[i], NULL));
	if (!rc)
		rc = number(s, "SELECT revision FROM meta", &s->rev);
	/* the first write shows whether the file is writable, and creates the WAL */
	if (!rc)
		rc = store_sqlite_run(s, "UPDATE meta SET revision = revision");
	if (!rc && !store_sqlite_files_same(s, true))
		rc = STORE_EDOWN;
	return rc ? rc : store_sqlite_leases_load(s);
}

int store_sqlite_open(struct store **out, const char *path, uint64_t bytes_max, char *text)
{
	struct store_sqlite *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return RWY_ENOMEM;
	s->store.ops = &sqlite_ops;
	pthread_mutex_init(&s->lock, NULL);
	s->path = strdup(path);
	rc = s->path ? store_sqlite_error(sqlite3_open_v2(path, &s->db,
	                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL))
	             : RWY_ENOMEM;
	if (!rc)
		rc = prepare(s, bytes_max);
	if (!rc)
		rc = store_sqlite_log_new(&s->log, s->rev);
	if (!rc) {
		*out = &s->store;
		return 0;
	}
	store_sqlite_note_problem(s);
	snprintf(text, STORE_TEXT, "%.200s%s", s->problem,
	    s->db && sqlite3_errcode(s->db) == SQLITE_BUSY ? ": another process has it open" : "");
	sqlite_close(&s->store);
	return rc;
}
