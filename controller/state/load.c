/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that the store has, at start and when the watch lost track. Not here: what a record means
 * (apply.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/ctlr.h"

/* All of the store as it was at one revision, before any of it is applied. */
struct load {
	struct map seen;
	struct seen *first, **last;
};

struct seen {
	struct map_node node;
	struct seen *next;
	struct store_kv kv;
	char key[STORE_KEY_MAX], value[];
};

static int on_load(void *ctx, const struct store_kv *kv)
{
	struct load *l = ctx;
	struct seen *s = malloc(sizeof(*s) + kv->len + 1);

	if (!s)
		return RWY_ENOMEM;
	snprintf(s->key, sizeof(s->key), "%s", kv->key);
	memcpy(s->value, kv->value, kv->len + 1);
	s->kv = *kv;
	s->kv.key = s->key;
	s->kv.value = s->value;
	s->next = NULL;
	if (map_add(&l->seen, &s->node, s->key)) {
		free(s);
		return RWY_ENOMEM;
	}
	*l->last = s;
	l->last = &s->next;
	return 0;
}

/* What is not in the store any more. */
static void sweep(struct ctlr *c, struct load *l, const struct map *m, const char *prefix, uint64_t rev)
{
	struct map_node *n = map_next(m, NULL), *next;

	for (; n; n = next) {
		char key[STORE_KEY_MAX + 16];
		const struct store_kv kv = {.key = key, .mod_rev = rev};

		next = map_next(m, n);
		snprintf(key, sizeof(key), "%s%s", prefix, n->key);
		if (!map_find(&l->seen, key))
			apply_kv(c, &kv);
	}
}

static void all_applied(struct ctlr *c, struct load *l, uint64_t rev)
{
	for (const struct seen *s = l->first; s; s = s->next)
		apply_kv(c, &s->kv);
	sweep(c, l, &c->tunnels, "tunnel/", rev);
	sweep(c, l, &c->gateways, "gateway/", rev);
	sweep(c, l, &c->jobs, "job/", rev);
	sweep(c, l, &c->tenants, "tenant/", rev);
	sweep(c, l, &c->pushes, "link/", rev);
	sweep(c, l, &c->grants, "grant/", rev);
	sweep(c, l, &c->replicas, "replica/", rev);
	for (struct site *it = map_next(&c->sites, NULL), *next; it; it = next) {
		char key[STORE_KEY_MAX];
		const struct store_kv kv = {.key = key, .mod_rev = rev};

		next = map_next(&c->sites, it);
		snprintf(key, sizeof(key), "site/%s", it->name);
		if (it->stored && !map_find(&l->seen, key))
			apply_kv(c, &kv);
	}
	c->rev = rev;
	c->loaded = true;
}

int apply_load(struct ctlr *c)
{
	struct load l = {.last = &l.first};
	uint64_t rev = 0;
	int rc = store_range(c->store, "", &rev, on_load, &l);

	if (!rc) {
		ctlr_lock(c);
		all_applied(c, &l, rev);
		ctlr_unlock(c);
	}
	for (struct seen *s = l.first, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	map_free(&l.seen);
	return rc;
}
