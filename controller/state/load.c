/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the whole store: at start, and when the watch has lost track. apply.c knows what a record
 * means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/ctlr.h"

/* All records of the store at one revision; none is applied before all are read. */
struct load {
	struct ctlr_map seen;
	struct seen *first, **last;
};

struct seen {
	struct ctlr_map_node node;
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
	if (ctlr_map_add(&l->seen, &s->node, s->key)) {
		free(s);
		return RWY_ENOMEM;
	}
	*l->last = s;
	l->last = &s->next;
	return 0;
}

/* Removes objects whose records are gone. */
static void sweep_missing(
    struct ctlr *c, struct load *l, const struct ctlr_map *m, const char *prefix, uint64_t rev)
{
	struct ctlr_map_node *n = ctlr_map_next(m, NULL), *next;

	for (; n; n = next) {
		char key[STORE_KEY_MAX + 16];
		const struct store_kv kv = {.key = key, .mod_rev = rev};

		next = ctlr_map_next(m, n);
		snprintf(key, sizeof(key), "%s%s", prefix, n->key);
		if (!ctlr_map_find(&l->seen, key))
			ctlr_apply_record(c, &kv);
	}
}

/* Before records are applied: what was theirs may be another's now. */
static void sweep(struct ctlr *c, struct load *l, uint64_t rev)
{
	sweep_missing(c, l, &c->tunnels, "tunnel/", rev);
	sweep_missing(c, l, &c->gateways, "gateway/", rev);
	sweep_missing(c, l, &c->pairs, "pair/", rev);
	sweep_missing(c, l, &c->jobs, "job/", rev);
	sweep_missing(c, l, &c->tenants, "tenant/", rev);
	sweep_missing(c, l, &c->pushes, "link/", rev);
	sweep_missing(c, l, &c->detours, "detour/", rev);
	sweep_missing(c, l, &c->reservations, "reservation/", rev);
	sweep_missing(c, l, &c->replicas, "replica/", rev);
}

/* After records are applied, because these name sites. */
static void sweep_sites(struct ctlr *c, struct load *l, uint64_t rev)
{
	for (struct ctlr_site *it = ctlr_map_next(&c->sites, NULL), *next; it; it = next) {
		char key[STORE_KEY_MAX];
		const struct store_kv kv = {.key = key, .mod_rev = rev};

		next = ctlr_map_next(&c->sites, it);
		snprintf(key, sizeof(key), "site/%s", it->name);
		if (it->stored && !ctlr_map_find(&l->seen, key))
			ctlr_apply_record(c, &kv);
	}
}

static void all_applied(struct ctlr *c, struct load *l, uint64_t rev)
{
	sweep(c, l, rev);
	/* A prefix may have changed hands, and the records of both may come in any order. */
	ctlr_lpm_free(&c->lpm);
	c->lpm.filling = true;
	for (const struct seen *s = l->first; s; s = s->next)
		ctlr_apply_record(c, &s->kv);
	sweep_sites(c, l, rev);
	c->lpm.filling = false;
	c->rev = rev;
	c->loaded = true;
}

int ctlr_load_all(struct ctlr *c)
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
	ctlr_map_free(&l.seen);
	return rc;
}
