/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches etcd: one POST whose answer never ends, with one or several events a line. The stream may
 * end for many reasons; a server that stops says so in a last line and closes cleanly. The next
 * endpoint continues after the last revision.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "controller/store/etcd.h"

#define PAUSE_NS 50000000 /* pause before the next endpoint; all may fail at once */

struct watch {
	struct store_etcd *s;
	const atomic_bool *stop;
	store_watch_cb *cb;
	void *ctx;
	uint64_t done; /* the revision up to which changes are reported */
	bool progress; /* this stream has reported something */
	bool stopped;
};

static int on_event(void *ctx, const struct store_kv *kv)
{
	struct watch *w = ctx;

	return w->cb(w->ctx, kv, kv->mod_rev);
}

static int on_line(void *ctx, const char *text, size_t len)
{
	struct watch *w = ctx;
	json_t *j = json_loadb(text, len, 0, NULL), *result = json_object_get(j, "result"), *list, *e;
	uint64_t rev;
	int rc = 0;
	size_t i;

	if (!result) { /* {"error": ...}: the server stops, or has no leader */
		json_decref(j);
		return STORE_EDOWN;
	}
	if (json_is_true(json_object_get(result, "canceled")))
		rc = store_etcd_u64(result, "compact_revision") ? STORE_ECOMPACT : STORE_EDOWN;
	list = json_object_get(result, "events");
	for (i = 0; !rc && i < json_array_size(list); i++) {
		const char *type;

		e = json_array_get(list, i);
		type = json_string_value(json_object_get(e, "type"));
		rc = store_etcd_kv_tell(
		    w->s, json_object_get(e, "kv"), type && !strcmp(type, "DELETE"), on_event, w);
	}
	/* the header's revision may be ahead of events that come with the next line */
	rev = store_etcd_u64(
	    json_object_get(json_array_get(list, json_array_size(list) - 1), "kv"), "mod_revision");
	if (!rc && rev > w->done) {
		w->done = rev;
		rc = w->cb(w->ctx, NULL, w->done);
	}
	w->progress |= !rc;
	json_decref(j);
	return rc;
}

static int on_tick(void *ctx)
{
	struct watch *w = ctx;

	if (atomic_load_explicit(w->stop, memory_order_acquire)) {
		w->stopped = true;
		return RWY_EAGAIN;
	}
	return w->cb(w->ctx, NULL, w->done);
}

static json_t *watch_ask(const struct store_etcd *s, const char *prefix, uint64_t from)
{
	json_t *create = json_pack("{s:o, s:o, s:o}", "key", store_etcd_key(s, prefix, false), "range_end",
	    store_etcd_key(s, prefix, true), "start_revision", json_sprintf("%" PRIu64, from));

	return json_pack("{s:o}", "create_request", create);
}

int store_etcd_watch(struct store *store, const char *prefix, uint64_t from, const atomic_bool *stop,
    store_watch_cb *cb, void *ctx)
{
	struct store_etcd *s = (struct store_etcd *)store;
	struct watch w = {.s = s, .stop = stop, .cb = cb, .ctx = ctx, .done = from};
	unsigned endpoint = store_etcd_http_good(s->http), failed = 0;
	int rc = 0;

	while (!w.stopped && failed < store_etcd_http_endpoints(s->http)) {
		w.progress = false;
		rc = store_etcd_http_stream(
		    s->http, endpoint, "/v3/watch", watch_ask(s, prefix, w.done + 1), on_line, on_tick, &w);
		if (w.stopped)
			return 0;
		if (rc != STORE_EDOWN)
			return rc;
		failed = w.progress ? 0 : failed + 1;
		endpoint++;
		nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
	}
	return w.stopped ? 0 : rc;
}
