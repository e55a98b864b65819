/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads. The writer passes changes from a queue to the store, many at a time. The watcher
 * applies the store's changes; a change is done when the watch has reported it. A watch that broke
 * off continues where it was, or the whole store is read again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"

#define QUEUE_MAX   200000
#define BATCH       256
#define APPLY_WAIT  (5 * RWY_SEC)
#define WATCH_LAG   RWY_SEC /* the watch restarts when a stored change is unreported for so long */
#define WATCH_LEAST (100 * RWY_MS)

struct ctlr_change {
	struct ctlr_change *next;
	ctlr_change_cb *cb;
	void *ctx;
	struct store_op *op;
	struct store_cmp *cmp;
	unsigned ops, cmps;
	bool failed; /* out of memory */
	uint64_t rev;
	rwy_time done;
};

struct ctlr_writer {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct ctlr_change *first, *last;
	unsigned n;
	/* stored, but not reported by the watch yet; under the state's lock */
	struct ctlr_change *applying;
	rwy_time moved; /* the watch's last start or report */
	atomic_bool stop;
	bool watch_locked; /* the watcher holds the state's lock */
	pthread_t writer, watcher;
	uint64_t lease;
	bool there; /* the replica's key is in the store, with this lease */
	rwy_time renewed;
};

/* --- changes ---------------------------------------------------------------------------------- */

struct ctlr_change *ctlr_change_new(ctlr_change_cb *cb, void *ctx)
{
	struct ctlr_change *ch = calloc(1, sizeof(*ch));

	if (ch) {
		ch->cb = cb;
		ch->ctx = ctx;
	}
	return ch;
}

void ctlr_change_set(struct ctlr_change *ch, ctlr_change_cb *cb, void *ctx)
{
	ch->cb = cb;
	ch->ctx = ctx;
}

static void change_free(struct ctlr_change *ch)
{
	for (unsigned i = 0; i < ch->ops; i++) {
		free((void *)(uintptr_t)ch->op[i].key);
		free((void *)(uintptr_t)ch->op[i].value);
	}
	for (unsigned i = 0; i < ch->cmps; i++)
		free((void *)(uintptr_t)ch->cmp[i].key);
	free(ch->op);
	free(ch->cmp);
	free(ch);
}

void ctlr_change_cancel(struct ctlr_change *ch)
{
	if (ch)
		change_free(ch);
}

static struct store_op *op_of(struct ctlr_change *ch, const char *key)
{
	for (unsigned i = 0; ch && i < ch->ops; i++)
		if (!strcmp(ch->op[i].key, key))
			return &ch->op[i];
	return NULL;
}

static void add_op(struct ctlr_change *ch, const char *key, char *value)
{
	struct store_op *has = op_of(ch, key), *more;
	char *k;

	if (has) {
		free((void *)(uintptr_t)has->value);
		*has = (struct store_op){has->key, value, value ? strlen(value) : 0, 0};
		return;
	}
	more = ch ? realloc(ch->op, (ch->ops + 1) * sizeof(*more)) : NULL;
	k = strdup(key);
	if (!more || !k) {
		if (ch)
			ch->failed = true;
		if (more)
			ch->op = more;
		free(k);
		free(value);
		return;
	}
	ch->op = more;
	ch->op[ch->ops++] = (struct store_op){k, value, value ? strlen(value) : 0, 0};
}

void ctlr_change_put(struct ctlr_change *ch, const char *key, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	if (!text && ch)
		ch->failed = true;
	else
		add_op(ch, key, text);
	json_decref(value);
}

void ctlr_change_del(struct ctlr_change *ch, const char *key)
{
	add_op(ch, key, NULL);
}

void ctlr_change_cmp(struct ctlr_change *ch, const char *key, uint64_t mod_rev)
{
	struct store_cmp *more = ch ? realloc(ch->cmp, (ch->cmps + 1) * sizeof(*more)) : NULL;
	char *k = strdup(key);

	if (!more || !k) {
		if (ch)
			ch->failed = true;
		if (more)
			ch->cmp = more;
		free(k);
		return;
	}
	ch->cmp = more;
	ch->cmp[ch->cmps++] = (struct store_cmp){k, mod_rev};
}

unsigned ctlr_change_ops(const struct ctlr_change *ch)
{
	return ch ? ch->ops : 0;
}

bool ctlr_change_submit(struct ctlr *c, struct ctlr_change *ch)
{
	struct ctlr_writer *w = c->writer;
	bool ok;

	if (!ch)
		return false;
	pthread_mutex_lock(&w->lock);
	ok = !ch->failed && w->n < QUEUE_MAX && !w->stop;
	if (ok) {
		ch->next = NULL;
		if (w->last)
			w->last->next = ch;
		else
			w->first = ch;
		w->last = ch;
		w->n++;
		pthread_cond_signal(&w->more);
	}
	pthread_mutex_unlock(&w->lock);
	if (!ok)
		change_free(ch);
	return ok;
}

/* --- the writer ------------------------------------------------------------------------------- */

static unsigned next_batch(struct ctlr_writer *w, struct ctlr_change **out, bool *stop)
{
	struct timespec ts;
	unsigned n = 0;

	pthread_mutex_lock(&w->lock);
	if (!w->first && !w->stop) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		ts.tv_nsec += 200000000;
		ts.tv_sec += ts.tv_nsec / 1000000000;
		ts.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&w->more, &w->lock, &ts);
	}
	for (; w->first && n < BATCH; n++) {
		out[n] = w->first;
		w->first = w->first->next;
		w->n--;
	}
	if (!w->first)
		w->last = NULL;
	*stop = w->stop && !n;
	pthread_mutex_unlock(&w->lock);
	return n;
}

static void finish_change(struct ctlr_change *ch, int rc)
{
	if (ch->cb)
		ch->cb(ch->ctx, rc, ch->rev);
	change_free(ch);
}

static void store_health(struct ctlr *c, int rc)
{
	const bool was = c->store_rc == 0, is = rc == 0 || rc == STORE_ECONFLICT || rc == RWY_EINVAL;
	char text[STORE_TEXT];

	if (was && !is) {
		store_problem(c->store, text);
		ctlr_event(c, EVENT_ERROR, "store", NULL, "%s: it refuses requests (%.160s)",
		    store_strerror(rc), text);
	}
	if (!was && is)
		ctlr_event(c, EVENT_INFO, "store", NULL, "it answers again");
	c->store_rc = is ? 0 : rc;
}

static void settle_change(struct ctlr *c, struct ctlr_change *ch, const struct store_txn *t)
{
	struct ctlr_writer *w = c->writer;

	if (t->rc == 0)
		COUNT(c, commits);
	if (t->rc == STORE_ECONFLICT)
		COUNT(c, commit_conflicts);
	store_health(c, t->rc);
	if (t->rc || t->rev <= c->rev) {
		ch->rev = t->rev;
		finish_change(ch, t->rc);
		return;
	}
	ch->rev = t->rev;
	ch->done = ctlr_now();
	ch->next = w->applying;
	w->applying = ch;
}

static void commit_batch(struct ctlr *c, struct ctlr_change **ch, unsigned n)
{
	struct store_txn t[BATCH];

	memset(t, 0, sizeof(t));
	for (unsigned i = 0; i < n; i++) {
		t[i].cmp = ch[i]->cmp;
		t[i].cmps = ch[i]->cmps;
		t[i].op = ch[i]->op;
		t[i].ops = ch[i]->ops;
	}
	store_commit_many(c->store, t, n);
	ctlr_lock(c);
	for (unsigned i = 0; i < n; i++)
		settle_change(c, ch[i], &t[i]);
	ctlr_unlock(c);
}

/* Renews the lease by which other replicas see this one. The outcome shows whether the store
 * works. */
static void replica_renew(struct ctlr *c)
{
	struct ctlr_writer *w = c->writer;
	char key[STORE_KEY_MAX];
	struct store_op op = {key, "{}", 2, 0};
	struct store_txn t = {.op = &op, .ops = 1};
	const rwy_time begin = ctlr_now();
	int rc = w->lease ? store_lease_renew(c->store, w->lease) : STORE_ENOLEASE;
	bool well, renewed;

	snprintf(key, sizeof(key), "replica/%s", c->conf->name);
	ctlr_lock(c);
	well = c->store_rc == 0;
	ctlr_unlock(c);
	op.lease = w->lease;
	if (rc == STORE_ENOLEASE) {
		rc = store_lease(c->store, CTLR_REPLICA_TTL, &op.lease);
		w->lease = rc ? 0 : op.lease;
		w->there = false;
	}
	renewed = !rc;
	if (!rc && (!well || !w->there)) { /* a full store renews leases but accepts no writes */
		rc = store_commit(c->store, &t);
		w->there |= !rc;
	}
	w->renewed = ctlr_now();
	ctlr_lock(c);
	store_health(c, rc);
	if (renewed && w->there)
		ctlr_replica_renewed(c, begin);
	ctlr_unlock(c);
}

static void *writer_main(void *arg)
{
	struct ctlr *c = arg;
	struct ctlr_change *ch[BATCH];
	bool stop = false;

	while (!stop) {
		const unsigned n = next_batch(c->writer, ch, &stop);

		if (n)
			commit_batch(c, ch, n);
		if (rwy_since(c->writer->renewed, ctlr_now()) > CTLR_REPLICA_TTL / 3 * RWY_MS)
			replica_renew(c);
	}
	return NULL;
}

/* --- the watch -------------------------------------------------------------------------------- */

/* Finishes changes that the watch has reported, and those that have waited too long: they are
 * stored, and the watch will report them. */
static void finish_applied(struct ctlr *c)
{
	struct ctlr_writer *w = c->writer;
	const rwy_time now = ctlr_now();

	for (struct ctlr_change **p = &w->applying, *ch; (ch = *p);) {
		if (ch->rev > c->rev && rwy_since(ch->done, now) < APPLY_WAIT) {
			p = &ch->next;
			continue;
		}
		*p = ch->next;
		finish_change(ch, 0);
	}
	c->ops->applied(c, false);
}

/* Holds the lock from the first change of a transaction to the last: nobody sees half of it. */
static void watch_lock(struct ctlr *c, bool lock)
{
	struct ctlr_writer *w = c->writer;

	if (lock == w->watch_locked)
		return;
	w->watch_locked = lock;
	if (lock)
		ctlr_lock(c);
	else
		ctlr_unlock(c);
}

/* True if the watch is behind: a member of etcd that hangs reports nothing. */
static bool lags(const struct ctlr_writer *w)
{
	const rwy_time now = ctlr_now();

	for (const struct ctlr_change *ch = w->applying; ch; ch = ch->next)
		if (rwy_since(ch->done, now) > WATCH_LAG && rwy_since(w->moved, now) > WATCH_LAG)
			return true;
	return false;
}

static int on_watch(void *ctx, const struct store_kv *kv, uint64_t rev)
{
	struct ctlr *c = ctx;
	struct ctlr_writer *w = c->writer;
	int rc = 0;

	watch_lock(c, true);
	if (kv || rev > c->rev)
		w->moved = ctlr_now();
	if (kv)
		ctlr_apply_record(c, kv);
	else if (rev > c->rev)
		c->rev = rev;
	if (!kv) {
		finish_applied(c);
		rc = lags(c->writer) ? RWY_EAGAIN : 0;
		watch_lock(c, false);
	}
	return rc;
}

static void *watcher_main(void *arg)
{
	struct ctlr *c = arg;
	struct ctlr_writer *w = c->writer;

	while (!atomic_load_explicit(&w->stop, memory_order_acquire)) {
		const rwy_time begin = ctlr_now();
		int rc;

		w->moved = begin;
		rc = store_watch(c->store, "", c->rev, &w->stop, on_watch, c);
		watch_lock(c, false); /* the watch broke off within a transaction */
		if (!rc)
			break;
		COUNT(c, watch_restarts);
		if (rc == STORE_ECOMPACT) {
			ctlr_event(
			    c, EVENT_WARNING, "store", NULL, "%s: reading everything", store_strerror(rc));
			rc = ctlr_load_all(c);
		}
		/* A store that forgets at once would be asked all the time. */
		if (rc || rwy_since(begin, ctlr_now()) < WATCH_LEAST)
			nanosleep(&(struct timespec){0, 200000000}, NULL);
		ctlr_lock(c);
		finish_applied(c);
		ctlr_unlock(c);
	}
	return NULL;
}

/* --- start, stop ------------------------------------------------------------------------------ */

int ctlr_writer_start(struct ctlr *c)
{
	struct ctlr_writer *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	if (!w)
		return RWY_ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->more, &attr);
	c->writer = w;
	c->renewed = ctlr_now();
	if (pthread_create(&w->writer, NULL, writer_main, c))
		return RWY_ENOMEM;
	if (pthread_create(&w->watcher, NULL, watcher_main, c))
		return RWY_ENOMEM;
	return 0;
}

void ctlr_writer_stop(struct ctlr *c)
{
	struct ctlr_writer *w = c->writer;

	pthread_mutex_lock(&w->lock);
	atomic_store_explicit(&w->stop, true, memory_order_release);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->writer, NULL);
	pthread_join(w->watcher, NULL);
	ctlr_lock(c);
	c->ops->applied(c, true);
	while (w->applying) {
		struct ctlr_change *ch = w->applying;

		w->applying = ch->next;
		finish_change(ch, 0);
	}
	ctlr_unlock(c);
	if (w->lease && store_lease_end(c->store, w->lease))
		gw_log(GW_LOG_WARNING, "store", "this replica's lease is left to run out");
}

void ctlr_writer_free(struct ctlr *c)
{
	free(c->writer);
	c->writer = NULL;
}
