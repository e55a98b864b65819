/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of the SQLite store: kept in the file, timed here. After a restart every owner gets a full
 * term to come back. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "controller/store/sqlite.h"

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

struct store_sqlite_lease *store_sqlite_lease_find(struct store_sqlite *s, uint64_t id)
{
	for (unsigned i = 0; i < s->leases; i++)
		if (s->lease[i].id == id)
			return &s->lease[i];
	return NULL;
}

struct leased {
	char (*key)[STORE_KEY_MAX];
	unsigned n;
};

static int leased_keys(struct store_sqlite *s, uint64_t id, struct leased *l)
{
	sqlite3_stmt *st = s->stmt[S_LEASED];
	int rc;

	store_sqlite_bind_u64(st, 1, id);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		char(*more)[STORE_KEY_MAX] = realloc(l->key, (l->n + 1) * sizeof(*more));

		if (!more)
			break;
		l->key = more;
		snprintf(l->key[l->n++], STORE_KEY_MAX, "%.*s", sqlite3_column_bytes(st, 0),
		    (const char *)sqlite3_column_blob(st, 0));
	}
	sqlite3_reset(st);
	return rc == SQLITE_ROW ? RWY_ENOMEM : store_sqlite_error(rc);
}

static int lease_drop(struct store_sqlite *s, uint64_t id)
{
	struct leased l = {NULL, 0};
	uint64_t rev = s->rev;
	int rc = store_sqlite_begin(s);

	if (rc)
		return rc;
	rc = leased_keys(s, id, &l);
	if (l.n)
		rev++;
	for (unsigned i = 0; !rc && i < l.n; i++)
		rc = store_sqlite_del(s, l.key[i], rev);
	store_sqlite_bind_u64(s->stmt[S_LEASE_DEL], 1, id);
	if (!rc)
		rc = store_sqlite_step(s->stmt[S_LEASE_DEL]);
	rc = store_sqlite_finish(s, rev, rc);
	free(l.key);
	return rc;
}

static void lease_forget(struct store_sqlite *s, struct store_sqlite_lease *l)
{
	*l = s->lease[--s->leases];
}

void store_sqlite_expire(struct store_sqlite *s)
{
	const uint64_t now = now_ms();

	for (unsigned i = 0; i < s->leases;)
		if (s->lease[i].expires_ms > now || lease_drop(s, s->lease[i].id))
			i++;
		else
			lease_forget(s, &s->lease[i]);
}

int store_sqlite_lease(struct store *store, uint32_t ttl_ms, uint64_t *lease)
{
	struct store_sqlite *s = (struct store_sqlite *)store;
	int rc = RWY_ENOMEM; /* too many leases */
	uint64_t id;

	pthread_mutex_lock(&s->lock);
	if (s->leases < LEASES_MAX)
		rc = store_sqlite_there(s);
	if (!rc) {
		do
			sqlite3_randomness(sizeof(id), &id);
		while (!(id >>= 1) || store_sqlite_lease_find(s, id));
		store_sqlite_bind_u64(s->stmt[S_LEASE_PUT], 1, id);
		store_sqlite_bind_u64(s->stmt[S_LEASE_PUT], 2, ttl_ms);
		rc = store_sqlite_step(s->stmt[S_LEASE_PUT]);
		if (!rc)
			s->lease[s->leases++] = (struct store_sqlite_lease){id, now_ms() + ttl_ms, ttl_ms};
		*lease = id;
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int store_sqlite_lease_renew(struct store *store, uint64_t lease)
{
	struct store_sqlite *s = (struct store_sqlite *)store;
	struct store_sqlite_lease *l;
	int rc;

	pthread_mutex_lock(&s->lock);
	store_sqlite_expire(s);
	l = store_sqlite_lease_find(s, lease);
	rc = l ? store_sqlite_there(s) : STORE_ENOLEASE;
	if (!rc)
		l->expires_ms = now_ms() + l->ttl_ms;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int store_sqlite_lease_end(struct store *store, uint64_t lease)
{
	struct store_sqlite *s = (struct store_sqlite *)store;
	struct store_sqlite_lease *l;
	int rc = STORE_ENOLEASE;

	pthread_mutex_lock(&s->lock);
	l = store_sqlite_lease_find(s, lease);
	if (l)
		rc = lease_drop(s, lease);
	if (l && !rc)
		lease_forget(s, l);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* The leases of the process before: their owners get a full term to come back. */
int store_sqlite_leases_load(struct store_sqlite *s)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, "SELECT id, ttl FROM lease", -1, &st, NULL);

	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW && s->leases < LEASES_MAX) {
			const uint32_t ttl = (uint32_t)sqlite3_column_int64(st, 1);

			s->lease[s->leases++] = (struct store_sqlite_lease){
			    (uint64_t)sqlite3_column_int64(st, 0), now_ms() + ttl, ttl};
		}
	}
	sqlite3_finalize(st);
	return store_sqlite_error(rc);
}
