/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any answers of etcd. Zero bytes divide the input into answers for all requests of the store, in
 * order; the watch gets the rest as lines. Keys and values must be complete, and every request must
 * end.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/internal.h"

static const uint8_t *at, *end;
static unsigned asked;

/* The next answer; NULL: there is none left. */
static const char *next(size_t *len)
{
	const uint8_t *from = at, *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;

	if (at >= end)
		return NULL;
	stop = stop ? stop : end;
	*len = (size_t)(stop - from);
	at = stop + 1;
	return (const char *)from;
}

/* --- replaces etcd_http.c --------------------------------------------------------------------- */

int store_etcd_http_new(struct store_etcd_http **out, const struct store_etcd_cfg *cfg, char *text)
{
	*out = NULL;
	return 0;
}

void store_etcd_http_free(struct store_etcd_http *h)
{
}

int store_etcd_http_post(
    struct store_etcd_http *h, const char *path, struct json_t *ask, bool again, struct json_t **answer)
{
	size_t len = 0;
	const char *text = next(&len);

	if (!ask || ++asked > 10000)
		abort();
	json_decref(ask);
	*answer = text ? json_loadb(text, len, 0, NULL) : NULL;
	return *answer ? 0 : STORE_EDOWN;
}

int store_etcd_http_stream(struct store_etcd_http *h, unsigned endpoint, const char *path, struct json_t *ask,
    store_etcd_line_cb *line, store_etcd_tick_cb *tick, void *ctx)
{
	size_t len = 0;
	int rc = 0;

	json_decref(ask);
	for (const char *text; !rc && (text = next(&len));)
		rc = line(ctx, text, len);
	return rc ? rc : tick(ctx) ? RWY_EAGAIN : STORE_EDOWN;
}

unsigned store_etcd_http_endpoints(const struct store_etcd_http *h)
{
	return 1;
}

unsigned store_etcd_http_good(struct store_etcd_http *h)
{
	return 0;
}

void store_etcd_http_problem(struct store_etcd_http *h, char *text)
{
	*text = 0;
}

/* --- results ---------------------------------------------------------------------------------- */

static int on_kv(void *ctx, const struct store_kv *kv)
{
	const size_t n = strlen(kv->key);

	if (!n || n >= STORE_KEY_MAX || (kv->value && kv->value[kv->len]))
		abort();
	return 0;
}

static int on_watch(void *ctx, const struct store_kv *kv, uint64_t rev)
{
	if (kv)
		on_kv(ctx, kv);
	return !kv && at >= end ? RWY_EAGAIN : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct store_cmp cmp = {"k", 1};
	const struct store_op op[] = {{"k", "v", 1, 0}, {"l", NULL, 0, 0}};
	struct store_txn t[] = {{.cmp = &cmp, .cmps = 1, .op = op, .ops = 1}, {.op = op + 1, .ops = 1}};
	const struct store_etcd_cfg cfg = {.prefix = "/p/"};
	const atomic_bool stop = false;
	char text[STORE_TEXT];
	uint64_t rev, lease;
	struct store *s;

	at = data;
	end = data + size;
	asked = 0;
	if (store_etcd_open(&s, &cfg, text))
		abort();
	(void)!store_range(s, "", &rev, on_kv, NULL);
	store_commit_many(s, t, 2);
	for (unsigned i = 0; i < 2; i++)
		if (t[i].rc > 0)
			abort();
	if (!store_lease(s, 1000, &lease))
		(void)!store_lease_renew(s, lease);
	(void)!store_watch(s, "", 1, &stop, on_watch, NULL);
	store_close(s);
	return 0;
}
