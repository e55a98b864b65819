/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of the SQLite store: kept in the file, timed here. Who was before a restart gets a whole term to
 * come back. */
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

struct lease *sqlite_lease_find(struct sqlite_store *s, uint64_t id)
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

static int leased_keys(struct sqlite_store *s, uint64_t id, struct leased *l)
{
	sqlite3_stmt *st = s->stmt[S_LEASED];
	int rc;

	sqlite_bind_u64(st, 1, id);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		char(*more)[STORE_KEY_MAX] = realloc(l->key, (l->n + 1) * sizeof(*more));

		if (!more)
			break;
		l->key = more;
		snprintf(l->key[l->n++], STORE_KEY_MAX, "%.*s", sqlite3_column_bytes(st, 0),
		    (const char *)sqlite3_column_blob(st, 0));
	}
	sqlite3_reset(st);
	return rc == SQLITE_ROW ? RWY_ENOMEM : sqlite_error(rc);
}

static int lease_drop(struct sqlite_store *s, uint64_t id)
{
	struct leased l = {NULL, 0};
	uint64_t rev = s->rev;
	int rc = sqlite_begin(s);

	if (rc)
		return rc;
	rc = leased_keys(s, id, &l);
	if (l.n)
		rev++;
	for (unsigned i = 0; !rc && i < l.n; i++)
		rc = sqlite_del(s, l.key[i], rev);
	sqlite_bind_u64(s->stmt[S_LEASE_DEL], 1, id);
	if (!rc)
		rc = sqlite_step(s->stmt[S_LEASE_DEL]);
	rc = sqlite_finish(s, rev, rc);
	free(l.key);
	return rc;
}

static void lease_forget(struct sqlite_store *s, struct lease *l)
{
	*l = s->lease[--s->leases];
}

void sqlite_expire(struct sqlite_store *s)
{
	const uint64_t now = now_ms();

	for (unsigned i = 0; i < s->leases;)
		if (s->lease[i].expires_ms > now || lease_drop(s, s->lease[i].id))
			i++;
		else
			lease_forget(s, &s->lease[i]);
}

int sqlite_lease(struct store *store, uint32_t ttl_ms, uint64_t *lease)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	int rc = RWY_ENOMEM; /* too many */
	uint64_t id;

	pthread_mutex_lock(&s->lock);
	if (s->leases < LEASES_MAX)
		rc = sqlite_there(s);
	if (!rc) {
		do
			sqlite3_randomness(sizeof(id), &id);
		while (!(id >>= 1) || sqlite_lease_find(s, id));
		sqlite_bind_u64(s->stmt[S_LEASE_PUT], 1, id);
		sqlite_bind_u64(s->stmt[S_LEASE_PUT], 2, ttl_ms);
		rc = sqlite_step(s->stmt[S_LEASE_PUT]);
		if (!rc)
			s->lease[s->leases++] = (struct lease){id, now_ms() + ttl_ms, ttl_ms};
		*lease = id;
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int sqlite_lease_renew(struct store *store, uint64_t lease)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct lease *l;
	int rc;

	pthread_mutex_lock(&s->lock);
	sqlite_expire(s);
	l = sqlite_lease_find(s, lease);
	rc = l ? sqlite_there(s) : STORE_ENOLEASE;
	if (!rc)
		l->expires_ms = now_ms() + l->ttl_ms;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int sqlite_lease_end(struct store *store, uint64_t lease)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct lease *l;
	int rc = STORE_ENOLEASE;

	pthread_mutex_lock(&s->lock);
	l = sqlite_lease_find(s, lease);
	if (l)
		rc = lease_drop(s, lease);
	if (l && !rc)
		lease_forget(s, l);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* Those of the process before us: their owners get a whole term to come back. */
int sqlite_leases_load(struct sqlite_store *s)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, "SELECT id, ttl FROM lease", -1, &st, NULL);

	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW && s->leases < LEASES_MAX) {
			const uint32_t ttl = (uint32_t)sqlite3_column_int64(st, 1);

			s->lease[s->leases++] =
			    (struct lease){(uint64_t)sqlite3_column_int64(st, 0), now_ms() + ttl, ttl};
		}
	}
	sqlite3_finalize(st);
	return sqlite_error(rc);
}
