/* SPDX-License-Identifier: Apache-2.0 */
/* Common to all kinds of store: limits, and the call of the kind's own functions. */
#include <stdlib.h>
#include <string.h>

#include "controller/store/internal.h"

const char *store_strerror(int rc)
{
	switch (rc) {
	case 0:
		return "done";
	case STORE_ECONFLICT:
		return "something else changed it meanwhile";
	case STORE_EDOWN:
		return "the store does not answer";
	case STORE_EFULL:
		return "the store is full";
	case STORE_EUNSURE:
		return "the store's answer was lost";
	case STORE_ENOLEASE:
		return "the store's lease has expired";
	case STORE_ECOMPACT:
		return "the store has forgotten that revision";
	case RWY_EINVAL:
		return "too large for the store";
	case RWY_ENOENT:
		return "there is no such key";
	case RWY_ENOMEM:
		return "out of memory";
	}
	return "the store fails";
}

void store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}

void store_problem(struct store *s, char *text)
{
	s->ops->problem(s, text);
}

static bool key_ok(const char *key)
{
	const size_t n = key ? strlen(key) : 0;

	return n && n < STORE_KEY_MAX;
}

int store_range(struct store *s, const char *prefix, uint64_t *rev, store_kv_cb *cb, void *ctx)
{
	return strlen(prefix) < STORE_KEY_MAX ? s->ops->range(s, prefix, rev, cb, ctx) : RWY_EINVAL;
}

static bool txn_ok(const struct store_txn *t)
{
	if (!t->ops || t->ops > STORE_OPS_MAX || t->cmps > STORE_OPS_MAX)
		return false;
	for (unsigned i = 0; i < t->cmps; i++)
		if (!key_ok(t->cmp[i].key))
			return false;
	for (unsigned i = 0; i < t->ops; i++) {
		if (!key_ok(t->op[i].key) || (t->op[i].value && t->op[i].len > STORE_VALUE_MAX))
			return false;
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(t->op[k].key, t->op[i].key))
				return false;
	}
	return true;
}

/* Invalid transactions get RWY_EINVAL and are skipped; runs of valid ones go to the store. */
void store_commit_many(struct store *s, struct store_txn *t, unsigned n)
{
	for (unsigned i = 0, from = 0; i <= n; i++) {
		const bool ok = i < n && txn_ok(&t[i]);

		if (ok)
			continue;
		if (i > from)
			s->ops->commit_many(s, t + from, i - from);
		from = i + 1;
		if (i < n)
			t[i].rc = RWY_EINVAL;
	}
}

int store_commit(struct store *s, struct store_txn *t)
{
	store_commit_many(s, t, 1);
	return t->rc;
}

int store_lease(struct store *s, uint32_t ttl_ms, uint64_t *lease)
{
	return ttl_ms >= 1000 ? s->ops->lease(s, ttl_ms, lease) : RWY_EINVAL;
}

int store_lease_renew(struct store *s, uint64_t lease)
{
	return lease ? s->ops->lease_renew(s, lease) : STORE_ENOLEASE;
}

int store_lease_end(struct store *s, uint64_t lease)
{
	return lease ? s->ops->lease_end(s, lease) : STORE_ENOLEASE;
}

int store_watch(struct store *s, const char *prefix, uint64_t from, const atomic_bool *stop,
    store_watch_cb *cb, void *ctx)
{
	return s->ops->watch(s, prefix, from, stop, cb, ctx);
}
