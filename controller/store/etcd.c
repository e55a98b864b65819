/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in etcd v3, through its JSON gateway: 64-bit integers are strings, keys and values are
 * in base64, and fields that are 0 or empty are absent. The watch is in etcd_watch.c, requests in
 * etcd_http.c.
 */
#include "controller/store/etcd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 1000 /* keys in one answer */

static json_t *number(uint64_t v)
{
	return json_sprintf("%" PRIu64, v);
}

/* --- reading ---------------------------------------------------------------------------------- */

static json_t *range_ask(
    const struct store_etcd *s, const char *prefix, const char *after, uint64_t rev, unsigned page)
{
	json_t *ask = json_object();

	if (after) { /* the smallest key above it is the same with a 0 byte added */
		size_t n;
		char *key = store_etcd_unb64(after, &n), *next = key ? store_etcd_b64(key, n + 1) : NULL;

		json_object_set_new(ask, "key", next ? json_string(next) : NULL);
		free(key);
		free(next);
	} else {
		json_object_set_new(ask, "key", store_etcd_key(s, prefix, false));
	}
	json_object_set_new(ask, "range_end", store_etcd_key(s, prefix, true));
	json_object_set_new(ask, "limit", number(page));
	if (rev)
		json_object_set_new(ask, "revision", number(rev));
	return ask;
}

/* The next page begins after this key. It must be above the last page's, or reading would never
 * end. */
static int go_on(char **after, const char *key64)
{
	size_t n = 0, m = 0;
	char *key = store_etcd_unb64(key64, &n), *was = *after ? store_etcd_unb64(*after, &m) : NULL;
	int rc = 0;

	if (!key || (was && (memcmp(key, was, n < m ? n : m) < 0 || (n <= m && !memcmp(key, was, n)))))
		rc = STORE_EDOWN;
	free(key);
	free(was);
	free(*after);
	*after = rc ? NULL : strdup(key64);
	return rc ? rc : *after ? 0 : RWY_ENOMEM;
}

static int etcd_range(struct store *store, const char *prefix, uint64_t *rev, store_kv_cb *cb, void *ctx)
{
	struct store_etcd *s = (struct store_etcd *)store;
	unsigned page = PAGE;
	bool more = true;
	char *after = NULL;
	int rc = 0;

	*rev = 0;
	while (!rc && more) {
		json_t *answer, *list, *e;
		size_t i;

		rc = store_etcd_http_post(
		    s->http, "/v3/kv/range", range_ask(s, prefix, after, *rev, page), true, &answer);
		if (rc == RWY_ENOMEM && page > 1) { /* values are large: ask for fewer */
			page = page > 8 ? page / 8 : 1;
			rc = 0;
			continue;
		}
		if (rc)
			break;
		if (!*rev)
			*rev = store_etcd_u64(json_object_get(answer, "header"), "revision");
		list = json_object_get(answer, "kvs");
		json_array_foreach(list, i, e)
		{
			rc = store_etcd_kv_tell(s, e, false, cb, ctx);
			if (rc)
				break;
		}
		e = json_array_get(list, json_array_size(list) - 1);
		more = !rc && e && json_is_true(json_object_get(answer, "more"));
		if (more)
			rc = go_on(&after, json_string_value(json_object_get(e, "key")));
		json_decref(answer);
	}
	free(after);
	return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

static json_t *cmp_json(const struct store_etcd *s, const struct store_cmp *c)
{
	json_t *j = json_pack("{s:o, s:s, s:s}", "key", store_etcd_key(s, c->key, false), "result", "EQUAL",
	    "target", c->mod_rev ? "MOD" : "CREATE");

	json_object_set_new(j, c->mod_rev ? "mod_revision" : "create_revision", number(c->mod_rev));
	return j;
}

static json_t *op_json(const struct store_etcd *s, const struct store_op *op)
{
	char *value;
	json_t *put;

	if (!op->value)
		return json_pack(
		    "{s:{s:o}}", "request_delete_range", "key", store_etcd_key(s, op->key, false));
	value = store_etcd_b64(op->value, op->len);
	put = json_pack("{s:o, s:s}", "key", store_etcd_key(s, op->key, false), "value", value ? value : "");
	free(value);
	if (op->lease)
		json_object_set_new(put, "lease", number(op->lease));
	return json_pack("{s:o}", "request_put", put);
}

/* Commits n transactions as one. STORE_ECONFLICT: one of them failed, it is not known which. */
static int commit(struct store_etcd *s, const struct store_txn *t, unsigned n, uint64_t *rev)
{
	json_t *cmps = json_array(), *ops = json_array(), *answer;
	int rc;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < t[i].cmps; k++)
			json_array_append_new(cmps, cmp_json(s, &t[i].cmp[k]));
		for (unsigned k = 0; k < t[i].ops; k++)
			json_array_append_new(ops, op_json(s, &t[i].op[k]));
	}
	rc = store_etcd_http_post(
	    s->http, "/v3/kv/txn", json_pack("{s:o, s:o}", "compare", cmps, "success", ops), false, &answer);
	if (!rc && !json_is_true(json_object_get(answer, "succeeded")))
		rc = STORE_ECONFLICT;
	if (!rc)
		*rev = store_etcd_u64(json_object_get(answer, "header"), "revision");
	json_decref(answer);
	return rc;
}

static bool shares_key(const struct store_txn *a, const struct store_txn *b)
{
	for (unsigned i = 0; i < a->ops; i++) {
		for (unsigned k = 0; k < b->ops; k++)
			if (!strcmp(a->op[i].key, b->op[k].key))
				return true;
		for (unsigned k = 0; k < b->cmps; k++)
			if (!strcmp(a->op[i].key, b->cmp[k].key))
				return true;
	}
	return false;
}

/* How many transactions from t on fit into one: etcd's limits, and none reads a key that another
 * writes. */
static unsigned together(const struct store_txn *t, unsigned n)
{
	unsigned ops = t->ops, cmps = t->cmps, k = 1;
	size_t bytes = 0;

	for (unsigned i = 0; i < t->ops; i++)
		bytes += t->op[i].len;
	for (; k < n; k++) {
		ops += t[k].ops;
		cmps += t[k].cmps;
		for (unsigned i = 0; i < t[k].ops; i++)
			bytes += t[k].op[i].len;
		if (ops > STORE_OPS_MAX || cmps > STORE_OPS_MAX || bytes > STORE_VALUE_MAX / 2)
			break;
		for (unsigned i = 0; i < k; i++)
			if (shares_key(&t[i], &t[k]))
				return k;
	}
	return k;
}

/* True if a transaction that was committed before changed a key that this one compares. */
static bool beaten(const struct store_txn *t, const struct store_txn *first)
{
	for (const struct store_txn *b = first; b < t; b++)
		for (unsigned i = 0; !b->rc && i < b->ops; i++)
			for (unsigned k = 0; k < t->cmps; k++)
				if (t->cmp[k].mod_rev != b->rev && !strcmp(t->cmp[k].key, b->op[i].key) &&
				    (b->op[i].value || t->cmp[k].mod_rev))
					return true;
	return false;
}

static void etcd_commit_many(struct store *store, struct store_txn *t, unsigned n)
{
	struct store_etcd *s = (struct store_etcd *)store;

	for (unsigned i = 0; i < n;) {
		unsigned m = together(t + i, n - i);
		uint64_t rev = 0;
		int rc;

		if (beaten(&t[i], t)) {
			t[i++].rc = STORE_ECONFLICT;
			continue;
		}
		rc = commit(s, t + i, m, &rev);
		for (unsigned k = 0; k < m; k++) {
			t[i + k].rc = rc;
			t[i + k].rev = rev;
			if (rc && m > 1 && rc != STORE_EDOWN && rc != STORE_EUNSURE)
				t[i + k].rc = commit(s, &t[i + k], 1, &t[i + k].rev);
		}
		i += m;
	}
}

/* --- leases ----------------------------------------------------------------------------------- */

static int etcd_lease(struct store *store, uint32_t ttl_ms, uint64_t *lease)
{
	struct store_etcd *s = (struct store_etcd *)store;
	json_t *answer;
	int rc = store_etcd_http_post(s->http, "/v3/lease/grant",
	    json_pack("{s:o}", "TTL", number((ttl_ms + 999) / 1000)), true, &answer);

	if (!rc)
		*lease = store_etcd_u64(answer, "ID");
	json_decref(answer);
	return rc;
}

static int etcd_lease_renew(struct store *store, uint64_t lease)
{
	struct store_etcd *s = (struct store_etcd *)store;
	json_t *answer;
	int rc = store_etcd_http_post(
	    s->http, "/v3/lease/keepalive", json_pack("{s:o}", "ID", number(lease)), true, &answer);

	if (!rc && !store_etcd_u64(json_object_get(answer, "result"), "TTL"))
		rc = STORE_ENOLEASE;
	json_decref(answer);
	return rc;
}

static int etcd_lease_end(struct store *store, uint64_t lease)
{
	struct store_etcd *s = (struct store_etcd *)store;
	json_t *answer;
	int rc = store_etcd_http_post(
	    s->http, "/v3/lease/revoke", json_pack("{s:o}", "ID", number(lease)), true, &answer);

	json_decref(answer);
	return rc;
}

/* --- open, close ------------------------------------------------------------------------------ */

static void etcd_close(struct store *store)
{
	struct store_etcd *s = (struct store_etcd *)store;

	store_etcd_http_free(s->http);
	free(s);
}

static void etcd_problem(struct store *store, char *text)
{
	store_etcd_http_problem(((struct store_etcd *)store)->http, text);
}

static const struct store_ops etcd_ops = {
    .close = etcd_close,
    .problem = etcd_problem,
    .range = etcd_range,
    .commit_many = etcd_commit_many,
    .lease = etcd_lease,
    .lease_renew = etcd_lease_renew,
    .lease_end = etcd_lease_end,
    .watch = store_etcd_watch,
};

int store_etcd_open(struct store **out, const struct store_etcd_cfg *cfg, char *text)
{
	const char *prefix = cfg->prefix && *cfg->prefix ? cfg->prefix : "/roceway/";
	struct store_etcd *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return RWY_ENOMEM;
	s->store.ops = &etcd_ops;
	if (strlen(prefix) >= sizeof(s->prefix)) {
		snprintf(text, STORE_TEXT, "expected a prefix of at most %zu bytes", sizeof(s->prefix) - 1);
		free(s);
		return RWY_EINVAL;
	}
	memcpy(s->prefix, prefix, strlen(prefix) + 1);
	rc = store_etcd_http_new(&s->http, cfg, text);
	if (rc)
		free(s);
	else
		*out = &s->store;
	return rc;
}
