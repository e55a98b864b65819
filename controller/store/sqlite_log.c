/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of changes. A reader holds a reference to the event it reports, so the lock is not held
 * during callbacks. */
#include "controller/store/sqlite_log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_NS 100000000

struct event {
	unsigned refs;
	uint64_t bytes;
	struct store_kv kv;
	char text[]; /* key 0 value 0 */
};

struct store_sqlite_log {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct event *ring[SQLITE_LOG_EVENTS];
	uint64_t first, published, end; /* counts of events since the start */
	uint64_t bytes;
	/* changes up to rev are published; those up to `forgotten` are no longer in the ring */
	uint64_t rev, forgotten;
};

int store_sqlite_log_new(struct store_sqlite_log **out, uint64_t rev)
{
	struct store_sqlite_log *l = calloc(1, sizeof(*l));
	pthread_condattr_t attr;

	if (!l)
		return RWY_ENOMEM;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->more, &attr);
	l->rev = l->forgotten = rev;
	*out = l;
	return 0;
}

static struct event **event_slot(struct store_sqlite_log *l, uint64_t i)
{
	return &l->ring[i % SQLITE_LOG_EVENTS];
}

static void release(struct event *e)
{
	if (!--e->refs)
		free(e);
}

void store_sqlite_log_free(struct store_sqlite_log *l)
{
	if (!l)
		return;
	for (uint64_t i = l->first; i < l->end; i++)
		release(*event_slot(l, i));
	pthread_cond_destroy(&l->more);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void forget_first(struct store_sqlite_log *l)
{
	struct event *e = *event_slot(l, l->first++);

	l->forgotten = e->kv.mod_rev;
	l->bytes -= e->bytes;
	if (l->published < l->first)
		l->published = l->first;
	release(e);
}

int store_sqlite_log_add(struct store_sqlite_log *l, const struct store_kv *kv)
{
	const size_t key = strlen(kv->key) + 1, size = sizeof(struct event) + key + kv->len + 1;
	struct event *e = malloc(size);

	if (!e)
		return RWY_ENOMEM;
	e->refs = 1;
	e->bytes = size;
	e->kv = *kv;
	memcpy(e->text, kv->key, key);
	e->kv.key = e->text;
	if (kv->value) {
		memcpy(e->text + key, kv->value, kv->len);
		e->text[key + kv->len] = 0;
		e->kv.value = e->text + key;
	}
	pthread_mutex_lock(&l->lock);
	while (l->end - l->first >= SQLITE_LOG_EVENTS ||
	       (l->end > l->first && l->bytes + size > SQLITE_LOG_BYTES))
		forget_first(l);
	*event_slot(l, l->end++) = e;
	l->bytes += size;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

void store_sqlite_log_publish(struct store_sqlite_log *l, uint64_t rev)
{
	pthread_mutex_lock(&l->lock);
	l->published = l->end;
	l->rev = rev;
	pthread_cond_broadcast(&l->more);
	pthread_mutex_unlock(&l->lock);
}

void store_sqlite_log_undo(struct store_sqlite_log *l)
{
	pthread_mutex_lock(&l->lock);
	while (l->end > l->published) {
		struct event *e = *event_slot(l, --l->end);

		l->bytes -= e->bytes;
		release(e);
	}
	pthread_mutex_unlock(&l->lock);
}

static void wait_more(struct store_sqlite_log *l)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += WAIT_NS;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&l->more, &l->lock, &ts);
}

/* Index of the first event after rev. Revisions grow along the ring. */
static uint64_t first_after(struct store_sqlite_log *l, uint64_t rev)
{
	uint64_t lo = l->first, hi = l->published;

	while (lo < hi) {
		const uint64_t mid = lo + (hi - lo) / 2;

		if ((*event_slot(l, mid))->kv.mod_rev > rev)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

int store_sqlite_log_tell(
    struct store_sqlite_log *l, const char *prefix, uint64_t *from, store_watch_cb *cb, void *ctx)
{
	const size_t n = strlen(prefix);
	uint64_t rev;
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	if (l->rev <= *from)
		wait_more(l);
	rev = l->rev;
	if (*from < l->forgotten) {
		pthread_mutex_unlock(&l->lock);
		return STORE_ECOMPACT;
	}
	for (uint64_t i = first_after(l, *from), end = l->published; !rc && i < end; i++) {
		struct event *e;

		if (i < l->first) { /* overwritten during a callback */
			rc = STORE_ECOMPACT;
			break;
		}
		e = *event_slot(l, i);
		if (strncmp(e->kv.key, prefix, n) != 0)
			continue;
		e->refs++;
		pthread_mutex_unlock(&l->lock);
		rc = cb(ctx, &e->kv, e->kv.mod_rev);
		pthread_mutex_lock(&l->lock);
		release(e);
	}
	pthread_mutex_unlock(&l->lock);
	if (rc)
		return rc;
	*from = rev > *from ? rev : *from;
	return cb(ctx, NULL, *from);
}
