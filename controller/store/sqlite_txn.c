/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and transactions of SQLite, and whether the opened file is still in its place. The
 * caller holds the store's lock. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "controller/store/sqlite.h"

int store_sqlite_error(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return 0;
	case SQLITE_FULL:
	case SQLITE_TOOBIG:
		return STORE_EFULL;
	case SQLITE_NOMEM:
		return RWY_ENOMEM;
	default: /* SQLite's own codes */
		return STORE_EDOWN;
	}
}

int store_sqlite_run(struct store_sqlite *s, const char *text)
{
	return store_sqlite_error(sqlite3_exec(s->db, text, NULL, NULL, NULL));
}

/* Runs a statement that yields no rows. */
int store_sqlite_step(sqlite3_stmt *st)
{
	const int rc = sqlite3_step(st);

	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return store_sqlite_error(rc);
}

void store_sqlite_bind_text(sqlite3_stmt *st, int i, const char *s, size_t len)
{
	sqlite3_bind_blob(st, i, s, (int)len, SQLITE_STATIC);
}

void store_sqlite_bind_u64(sqlite3_stmt *st, int i, uint64_t v)
{
	sqlite3_bind_int64(st, i, (sqlite3_int64)v);
}

/* Keeps SQLite's message about the last failure, and the reason why the file cannot be written. */
void store_sqlite_note_problem(struct store_sqlite *s)
{
	const bool can = !s->path || !access(s->path, W_OK);
	const int e = errno;

	snprintf(s->problem, sizeof(s->problem), "%.140s: %s%s%s", s->path ? s->path : "",
	    s->db ? sqlite3_errmsg(s->db) : "out of memory", can ? "" : ": ", can ? "" : strerror(e));
}

int store_sqlite_del(struct store_sqlite *s, const char *key, uint64_t rev)
{
	const struct store_kv kv = {key, NULL, 0, 0, rev, 0};
	int rc;

	store_sqlite_bind_text(s->stmt[S_DEL], 1, key, strlen(key));
	rc = store_sqlite_step(s->stmt[S_DEL]);
	if (rc || !sqlite3_changes(s->db))
		return rc;
	return store_sqlite_log_add(s->log, &kv);
}

static int set_rev(struct store_sqlite *s, uint64_t rev)
{
	store_sqlite_bind_u64(s->stmt[S_REV], 1, rev);
	return store_sqlite_step(s->stmt[S_REV]);
}

static bool file_is(const char *path, struct file *f, bool first)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	if (first)
		*f = (struct file){st.st_dev, st.st_ino};
	return f->dev == st.st_dev && f->ino == st.st_ino;
}

bool store_sqlite_files_same(struct store_sqlite *s, bool first)
{
	char wal[PATH_MAX];

	snprintf(wal, sizeof(wal), "%s-wal", s->path);
	return file_is(s->path, &s->file, first) && file_is(wal, &s->wal, first);
}

int store_sqlite_there(struct store_sqlite *s)
{
	if (store_sqlite_files_same(s, false))
		return 0;
	snprintf(s->problem, sizeof(s->problem), "%.160s or its WAL has been moved or deleted: start again",
	    s->path);
	return STORE_EDOWN;
}

int store_sqlite_begin(struct store_sqlite *s)
{
	int rc = store_sqlite_there(s);

	if (rc)
		return rc;
	rc = store_sqlite_run(s, "BEGIN IMMEDIATE");
	if (rc)
		store_sqlite_note_problem(s);
	return rc;
}

/* Commits all since BEGIN, or rolls it back. */
int store_sqlite_finish(struct store_sqlite *s, uint64_t rev, int rc)
{
	if (!rc)
		rc = set_rev(s, rev);
	if (!rc)
		rc = store_sqlite_run(s, "COMMIT");
	if (rc) {
		store_sqlite_note_problem(s);
		(void)store_sqlite_run(s, "ROLLBACK");
		store_sqlite_log_undo(s->log);
		return rc;
	}
	s->rev = rev;
	store_sqlite_log_publish(s->log, rev);
	return 0;
}
