/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the set of tenants: transactions, publication of a set, and the freeing of old sets
 * and tenants. */
#include <stdlib.h>
#include <string.h>

#include "tenant/internal.h"

#define INDEX_MAX UINT16_MAX

/* An object retired at generation `since`: freed when every worker runs that generation. */
struct retired {
	uint64_t since;
	const struct tenant *tenant; /* either tenant or set */
	struct tenant_set *set;
};

/* The index of a retired tenant: reused when every worker runs that generation. */
struct retired_index {
	uint32_t index;
	uint64_t since;
};

struct tenant_db {
	struct tenant_limits lim;
	struct tenant_set *set;
	uint64_t quiesced;
	struct retired *retired;
	size_t retired_n, retired_cap;
	struct retired_index *waiting;
	size_t waiting_n, waiting_cap;
	uint16_t *free; /* indices to reuse */
	size_t free_n, free_cap;
	uint32_t next; /* lowest index that was never used */
	bool open;     /* a transaction is open */
};

struct tenant_txn {
	struct tenant_db *db;
	const struct tenant **by_index; /* tenants of the next set; room for INDEX_MAX + 1 */
	uint16_t *name_slot;
	uint32_t name_mask, n, top;
	size_t free_n; /* number of unused indices in db->free */
	uint32_t next;
	uint32_t fresh; /* indices given out: bounds the room above and the names in the table */
	/* set that commit would publish, until the next change; NULL: not made */
	struct tenant_set *prepared;
};

/* --- database --------------------------------------------------------------------------------- */

int tenant_db_new(struct tenant_db **out, const struct tenant_limits *lim)
{
	struct tenant_db *db;

	if (!lim->tenants || lim->tenants > TENANT_COUNT_MAX || lim->tunnels > TENANT_TUNNELS_MAX)
		return RWY_EINVAL;
	db = calloc(1, sizeof(*db));
	if (!db)
		return RWY_ENOMEM;
	db->lim = *lim;
	db->next = 1;
	db->set = tenant_set_alloc(0, 1);
	if (!db->set) {
		free(db);
		return RWY_ENOMEM;
	}
	db->set->generation = 1;
	*out = db;
	return 0;
}

int tenant_db_limits(struct tenant_db *db, const struct tenant_limits *lim, struct tenant_limits *was)
{
	if (!lim->tenants || lim->tenants > TENANT_COUNT_MAX || lim->tunnels > TENANT_TUNNELS_MAX)
		return RWY_EINVAL;
	if (was)
		*was = db->lim;
	db->lim = *lim;
	return 0;
}

static void retired_free(struct retired *r)
{
	tenant_unmake(r->tenant);
	free(r->set);
}

void tenant_db_free(struct tenant_db *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < db->retired_n; i++)
		retired_free(&db->retired[i]);
	for (uint32_t i = 1; i < db->set->top; i++)
		tenant_unmake(db->set->by_index[i]);
	free(db->set);
	free(db->retired);
	free(db->waiting);
	free(db->free);
	free(db);
}

const struct tenant_set *tenant_db_current(const struct tenant_db *db)
{
	return db->set;
}

unsigned tenant_db_quiesced(struct tenant_db *db, uint64_t generation)
{
	size_t kept = 0;
	unsigned freed;

	for (size_t i = 0; i < db->retired_n; i++) {
		if (db->retired[i].since <= generation)
			retired_free(&db->retired[i]);
		else
			db->retired[kept++] = db->retired[i];
	}
	freed = (unsigned)(db->retired_n - kept);
	db->retired_n = kept;
	if (generation > db->quiesced)
		db->quiesced = generation;
	return freed;
}

int tenant_db_release(struct tenant_db *db, uint32_t index)
{
	for (size_t i = 0; i < db->waiting_n; i++) {
		if (db->waiting[i].index != index)
			continue;
		if (db->waiting[i].since > db->quiesced)
			return RWY_EAGAIN;
		db->waiting[i] = db->waiting[--db->waiting_n];
		db->free[db->free_n++] = (uint16_t)index; /* there is room since the removal */
		return 0;
	}
	return RWY_ENOENT;
}

/* --- transactions ----------------------------------------------------------------------------- */

/* Makes room for n more elements. */
static bool reserve(void **v, size_t *cap, size_t have, size_t more, size_t each)
{
	size_t want = have + more;
	void *p;

	if (want <= *cap)
		return true;
	want += want / 2 + 8;
	p = realloc(*v, want * each);
	if (!p)
		return false;
	*v = p;
	*cap = want;
	return true;
}
#define RESERVE(db, what, more)                                                                              \
	reserve((void **)&(db)->what, &(db)->what##_cap, (db)->what##_n, more, sizeof((db)->what[0]))

int tenant_txn_begin(struct tenant_txn **out, struct tenant_db *db)
{
	const struct tenant_set *s = db->set;
	uint32_t slots = 64, room = s->top + db->lim.tenants + 1;
	struct tenant_txn *x;

	if (db->open)
		return RWY_EINVAL;
	/* A transaction may remove all tenants and add as many: the table holds the names of
	 * both. */
	while (slots < 2 * (s->n + db->lim.tenants + 1))
		slots *= 2;
	x = calloc(1, sizeof(*x) + room * sizeof(x->by_index[0]) + slots * sizeof(x->name_slot[0]));
	if (!x)
		return RWY_ENOMEM;
	x->db = db;
	x->by_index = (const struct tenant **)(void *)(x + 1);
	x->name_slot = (uint16_t *)(void *)(x->by_index + room);
	x->name_mask = slots - 1;
	x->n = s->n;
	x->top = s->top;
	x->free_n = db->free_n;
	x->next = db->next;
	memcpy(x->by_index, s->by_index, s->top * sizeof(x->by_index[0]));
	for (uint32_t i = 1; i < s->top; i++)
		if (s->by_index[i])
			tenant_name_add(x->name_slot, x->name_mask, s->by_index[i]->cfg.name, i);
	db->open = true;
	*out = x;
	return 0;
}

/* Whether the present set has t as well: then the transaction must not free it. */
static bool is_old(const struct tenant_txn *x, const struct tenant *t)
{
	return tenant_by_index(x->db->set, t->index) == t;
}

/* Replaces the tenant of this index by t, which may be NULL. */
static void txn_put(struct tenant_txn *x, uint32_t index, const struct tenant *t)
{
	const struct tenant *was = x->by_index[index];

	free(x->prepared);
	x->prepared = NULL;
	if (was && !is_old(x, was))
		tenant_unmake(was);
	x->n += (t != NULL) - (was != NULL);
	x->by_index[index] = t;
}

void tenant_txn_clear(struct tenant_txn *x)
{
	for (uint32_t i = 1; i < x->top; i++)
		if (x->by_index[i])
			txn_put(x, i, NULL);
}

/* Returns the index for a new name: the one of the present set, a released one, or a fresh one. 0:
 * none. */
static uint32_t index_for(struct tenant_txn *x, const char *name)
{
	const struct tenant *was = tenant_by_name(x->db->set, name);
	uint32_t i;

	if (was)
		return was->index;
	if (x->fresh >= x->db->lim.tenants) /* a tenant was added and removed again and again */
		return 0;
	if (x->free_n)
		i = x->db->free[--x->free_n];
	else if (x->next < INDEX_MAX)
		i = x->next++;
	else
		return 0;
	if (i >= x->top)
		x->top = i + 1;
	return i;
}

static uint32_t txn_find(const struct tenant_txn *x, const char *name)
{
	return tenant_name_find(x->name_slot, x->name_mask, x->by_index, name);
}

/* Puts cfg under its name's index; keeps the old tenant if nothing changed. */
static int put_cfg(struct tenant_txn *x, uint32_t index, const struct tenant_cfg *cfg, struct tenant_err *err)
{
	const struct tenant *old = tenant_by_index(x->db->set, index);
	struct tenant *t;
	int r;

	if (old && tenant_same(old, cfg)) {
		txn_put(x, index, old);
		return 0;
	}
	r = tenant_make(&t, cfg, &x->db->lim, err);
	if (r)
		return r;
	t->index = index;
	t->changed = x->db->set->generation + 1;
	txn_put(x, index, t);
	return 0;
}

static bool name_ends(const char *name)
{
	return memchr(name, 0, TENANT_NAME_MAX) != NULL;
}

int tenant_txn_add(struct tenant_txn *x, const struct tenant_cfg *cfg, struct tenant_err *err)
{
	size_t free_n = x->free_n;
	uint32_t next = x->next, top = x->top, i;
	int r;

	if (!name_ends(cfg->name))
		return tenant_fail(err, RWY_EINVAL, TENANT_E_NAME, cfg->name, -1);
	if (txn_find(x, cfg->name))
		return tenant_fail(err, RWY_EEXIST, TENANT_E_EXISTS, cfg->name, -1);
	if (x->n >= x->db->lim.tenants)
		return tenant_fail(err, RWY_EINVAL, TENANT_E_COUNT, cfg->name, -1);
	i = index_for(x, cfg->name);
	if (i) {
		r = put_cfg(x, i, cfg, err);
		if (!r) {
			x->fresh += x->free_n != free_n || x->next != next;
			tenant_name_add(x->name_slot, x->name_mask, cfg->name, i);
			return 0;
		}
	} else {
		r = tenant_fail(err, RWY_EAGAIN, TENANT_E_BUSY, cfg->name, -1);
	}
	x->free_n = free_n;
	x->next = next;
	x->top = top;
	return r;
}

int tenant_txn_set(struct tenant_txn *x, const struct tenant_cfg *cfg, struct tenant_err *err)
{
	uint32_t i = name_ends(cfg->name) ? txn_find(x, cfg->name) : 0;

	if (!i)
		return tenant_fail(err, RWY_ENOENT, TENANT_E_UNKNOWN, cfg->name, -1);
	return put_cfg(x, i, cfg, err);
}

int tenant_txn_del(struct tenant_txn *x, const char *name, struct tenant_err *err)
{
	uint32_t i = txn_find(x, name);

	if (!i)
		return tenant_fail(err, RWY_ENOENT, TENANT_E_UNKNOWN, name, -1);
	txn_put(x, i, NULL);
	return 0;
}

/* --- commit ----------------------------------------------------------------------------------- */

static struct tenant_set *set_make(const struct tenant_txn *x, struct tenant_err *err)
{
	struct tenant_set *s = tenant_set_alloc(x->n, x->top);

	if (!s) {
		(void)tenant_fail(err, RWY_ENOMEM, TENANT_E_MEMORY, "", -1);
		return NULL;
	}
	if (tenant_set_fill(s, x->by_index, &x->db->lim, err)) {
		free(s);
		return NULL;
	}
	s->generation = x->db->set->generation + 1;
	return s;
}

/* Returns unused indices of the transaction. */
static void indices_settle(struct tenant_txn *x)
{
	struct tenant_db *db = x->db;

	for (size_t i = x->free_n; i < db->free_n; i++)
		if (!x->by_index[db->free[i]])
			db->free[x->free_n++] = db->free[i];
	db->free_n = x->free_n;
	for (uint32_t i = db->next; i < x->next; i++)
		if (!x->by_index[i])
			db->free[db->free_n++] = (uint16_t)i;
	db->next = x->next;
}

static void retire(struct tenant_db *db, const struct tenant_set *s)
{
	struct tenant_set *old = db->set;

	for (uint32_t i = 1; i < old->top; i++) {
		const struct tenant *was = old->by_index[i];

		if (was && was != s->by_index[i])
			db->retired[db->retired_n++] =
			    (struct retired){.since = s->generation, .tenant = was};
		if (was && !s->by_index[i])
			db->waiting[db->waiting_n++] = (struct retired_index){i, s->generation};
	}
	db->retired[db->retired_n++] = (struct retired){.since = s->generation, .set = old};
}

int tenant_txn_prepare(struct tenant_txn *x, const struct tenant_set **next, struct tenant_err *err)
{
	struct tenant_db *db = x->db;
	size_t gone = 0, left = 0;

	for (uint32_t i = 1; i < db->set->top; i++) {
		const struct tenant *was = db->set->by_index[i];

		gone += was && was != x->by_index[i];
		left += was && !x->by_index[i];
	}
	/* Reserves room for all that will be noted, so that nothing fails half way. free: one for
	 * each index that waits or will wait. */
	if (!RESERVE(db, retired, gone + 1) || !RESERVE(db, waiting, left) ||
	    !RESERVE(db, free, db->waiting_n + left + x->fresh))
		return tenant_fail(err, RWY_ENOMEM, TENANT_E_MEMORY, "", -1);
	if (!x->prepared)
		x->prepared = set_make(x, err);
	if (!x->prepared)
		return err->why == TENANT_E_MEMORY ? RWY_ENOMEM : RWY_EINVAL;
	*next = x->prepared;
	return 0;
}

int tenant_txn_commit(struct tenant_txn *x, const struct tenant_set **out, struct tenant_err *err)
{
	struct tenant_db *db = x->db;
	int r = tenant_txn_prepare(x, out, err);

	if (r)
		return r;
	retire(db, x->prepared);
	indices_settle(x);
	db->set = x->prepared;
	db->open = false;
	free(x);
	return 0;
}

void tenant_txn_abort(struct tenant_txn *x)
{
	if (!x)
		return;
	tenant_txn_clear(x); /* frees what belongs to the transaction */
	free(x->prepared);
	x->db->open = false;
	free(x);
}
