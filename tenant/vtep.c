/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of vtep.h: a chained hash over a fixed array of entries. Each tenant has a list of its
 * learned entries, from the most recently confirmed to the oldest.
 */
#include "tenant/vtep.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rwy/hash.h"

#define NONE UINT32_MAX

/* The part of an entry that a packet needs: one cache line. */
struct entry {
	struct rwy_ip host;
	struct vtep_host where;
	uint16_t tenant;
	bool used, moved;
	uint32_t chain; /* link of the hash chain, or of the free list */
	rwy_time seen;
	uint8_t fill[8];
};
static_assert(sizeof(struct entry) == 64, "one cache line");

/* The rest of an entry: its links in the tenant's list, and the time of its last move. */
struct rest {
	uint32_t newer, older;
	rwy_time moved_at;
};

struct of_tenant {
	uint32_t newest, oldest; /* ends of the list of learned entries */
	uint32_t learned;
};

struct vtep_tab {
	struct vtep_cfg cfg;
	struct vtep_counters count;
	struct entry *e;
	struct rest *rest; /* indexed like the entries */
	uint32_t *slot;
	struct of_tenant *of;
	uint32_t mask, free, total, sweep;
};

void vtep_cfg_default(struct vtep_cfg *cfg)
{
	*cfg = (struct vtep_cfg){.entries = 65536,
	    .per_tenant = 4096,
	    .tenants = 16384,
	    .age = 300 * RWY_SEC,
	    .hold = 100 * RWY_MS};
}

int vtep_new(struct vtep_tab **out, const struct vtep_cfg *cfg)
{
	struct vtep_tab *t;
	uint32_t slots = 16;

	if (!cfg->entries || cfg->entries > 1u << 24 || !cfg->per_tenant || cfg->per_tenant > cfg->entries ||
	    !cfg->tenants || cfg->tenants > 65536)
		return RWY_EINVAL;
	while (slots < cfg->entries + cfg->entries / 2)
		slots *= 2;
	t = calloc(1, sizeof(*t));
	if (!t)
		return RWY_ENOMEM;
	t->cfg = *cfg;
	t->mask = slots - 1;
	t->e = aligned_alloc(sizeof(*t->e), cfg->entries * sizeof(*t->e));
	t->rest = calloc(cfg->entries, sizeof(*t->rest));
	t->slot = malloc(slots * sizeof(*t->slot));
	t->of = malloc(cfg->tenants * sizeof(*t->of));
	if (!t->e || !t->rest || !t->slot || !t->of) {
		vtep_free(t);
		return RWY_ENOMEM;
	}
	memset(t->slot, 0xff, slots * sizeof(*t->slot));
	for (uint32_t i = 0; i < cfg->tenants; i++)
		t->of[i] = (struct of_tenant){NONE, NONE, 0};
	memset(t->e, 0, cfg->entries * sizeof(*t->e));
	for (uint32_t i = 0; i < cfg->entries; i++)
		t->e[i].chain = i + 1 < cfg->entries ? i + 1 : NONE;
	*out = t;
	return 0;
}

void vtep_free(struct vtep_tab *t)
{
	if (!t)
		return;
	free(t->e);
	free(t->rest);
	free(t->slot);
	free(t->of);
	free(t);
}

static uint32_t hash(uint32_t tenant, const struct rwy_ip *host)
{
	return (uint32_t)rwy_hash_ip(tenant * RWY_HASH_MUL, host);
}

static uint32_t entry_find(const struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host)
{
	uint32_t i = t->slot[hash(tenant, host) & t->mask];

	while (i != NONE && !(t->e[i].tenant == tenant && rwy_ip_eq(&t->e[i].host, host)))
		i = t->e[i].chain;
	return i;
}

static bool old(const struct vtep_tab *t, const struct entry *e, rwy_time now)
{
	return rwy_since(e->seen, now) > t->cfg.age;
}

/* --- list of a tenant's learned entries ------------------------------------------------------- */

static void list_remove(struct vtep_tab *t, uint32_t i)
{
	const struct rest *r = &t->rest[i];
	struct of_tenant *of = &t->of[t->e[i].tenant];

	*(r->newer == NONE ? &of->newest : &t->rest[r->newer].older) = r->older;
	*(r->older == NONE ? &of->oldest : &t->rest[r->older].newer) = r->newer;
}

static void list_front(struct vtep_tab *t, uint32_t i)
{
	struct rest *r = &t->rest[i];
	struct of_tenant *of = &t->of[t->e[i].tenant];

	r->newer = NONE;
	r->older = of->newest;
	*(of->newest == NONE ? &of->oldest : &t->rest[of->newest].newer) = i;
	of->newest = i;
}

static void drop(struct vtep_tab *t, uint32_t i)
{
	struct entry *e = &t->e[i];
	uint32_t *p = &t->slot[hash(e->tenant, &e->host) & t->mask];

	while (*p != i)
		p = &t->e[*p].chain;
	*p = e->chain;
	list_remove(t, i);
	t->of[e->tenant].learned--;
	e->used = false;
	e->chain = t->free;
	t->free = i;
	t->total--;
}

static uint32_t entry_new(struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host)
{
	uint32_t i = t->free, *slot = &t->slot[hash(tenant, host) & t->mask];
	struct entry *e;

	if (i == NONE)
		return NONE;
	e = &t->e[i];
	t->free = e->chain;
	*e = (struct entry){.host = *host, .tenant = (uint16_t)tenant, .used = true, .chain = *slot};
	*slot = i;
	list_front(t, i);
	t->of[tenant].learned++;
	t->total++;
	return i;
}

/* --- packets ---------------------------------------------------------------------------------- */

const struct vtep_host *vtep_find(
    const struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host, rwy_time now)
{
	uint32_t i = entry_find(t, tenant, host);

	return i == NONE || old(t, &t->e[i], now) ? NULL : &t->e[i].where;
}

static bool is_at(const struct entry *e, const struct rwy_ip *vtep, const uint8_t mac[6])
{
	return rwy_ip_eq(&e->where.vtep, vtep) && !memcmp(e->where.mac, mac, 6);
}

static void place(struct entry *e, const struct rwy_ip *vtep, const uint8_t mac[6], rwy_time now)
{
	e->where.vtep = *vtep;
	memcpy(e->where.mac, mac, 6);
	e->seen = now;
}

static enum vtep_learn learn_new(struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host,
    const struct rwy_ip *vtep, const uint8_t mac[6], rwy_time now)
{
	struct of_tenant *of = &t->of[tenant];
	uint32_t i;

	/* A tenant makes room among its own entries: at its bound always, and when the table is
	 * full, if it has any. */
	if (of->learned && (of->learned >= t->cfg.per_tenant || t->free == NONE)) {
		bool aged = old(t, &t->e[of->oldest], now);

		t->count.aged += aged;
		t->count.pushed_out += !aged;
		drop(t, of->oldest);
	}
	i = entry_new(t, tenant, host);
	if (i == NONE) {
		t->count.full++;
		return VTEP_FULL;
	}
	place(&t->e[i], vtep, mac, now);
	t->count.learned++;
	return VTEP_NEW;
}

enum vtep_learn vtep_learn(struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host,
    const struct rwy_ip *vtep, const uint8_t mac[6], rwy_time now)
{
	uint32_t i = entry_find(t, tenant, host);
	struct entry *e;

	if (i == NONE)
		return learn_new(t, tenant, host, vtep, mac, now);
	e = &t->e[i];
	if (old(t, e, now)) { /* an expired entry counts as absent */
		t->count.aged++;
		drop(t, i);
		return learn_new(t, tenant, host, vtep, mac, now);
	}
	if (!is_at(e, vtep, mac)) {
		if (e->moved && rwy_since(t->rest[i].moved_at, now) < t->cfg.hold) {
			t->count.held++;
			return VTEP_HELD;
		}
		place(e, vtep, mac, now);
		e->moved = true;
		t->rest[i].moved_at = now;
		t->count.moved++;
		list_remove(t, i);
		list_front(t, i);
		return VTEP_MOVED;
	}
	/* The list is reordered a few times in an entry's life, not per packet. */
	if (rwy_since(e->seen, now) > t->cfg.age / 64) {
		e->seen = now;
		list_remove(t, i);
		list_front(t, i);
	}
	return VTEP_KNOWN;
}

/* --- removal ---------------------------------------------------------------------------------- */

bool vtep_clear(struct vtep_tab *t, uint32_t tenant, uint32_t budget)
{
	struct of_tenant *of = &t->of[tenant];

	for (; budget && of->oldest != NONE; budget--)
		drop(t, of->oldest);
	return of->oldest == NONE;
}

unsigned vtep_age(struct vtep_tab *t, uint32_t budget, rwy_time now)
{
	unsigned n = 0;

	if (budget > t->cfg.entries)
		budget = t->cfg.entries;
	for (; budget; budget--) {
		uint32_t i = t->sweep++;

		if (t->sweep == t->cfg.entries)
			t->sweep = 0;
		if (t->e[i].used && old(t, &t->e[i], now)) {
			drop(t, i);
			n++;
		}
	}
	t->count.aged += n;
	return n;
}

uint32_t vtep_total(const struct vtep_tab *t)
{
	return t->total;
}

const struct vtep_counters *vtep_counters(const struct vtep_tab *t)
{
	return &t->count;
}
