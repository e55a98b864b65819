/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant/tenant.h: many changes of a set. Indices are stable and not reused early; long random
 * changes are compared with a plain model: look-ups, no change by a refusal, nothing freed early.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/roce_pkt.h"
#include "tests/lib/tenant_sample.h"

/* Removed indices are not reused until every worker has released them. */
static void test_index_reuse(void **state)
{
	struct tenant_db *db = ts_db(4);
	const struct tenant_set *s;
	struct tenant_txn *x;
	struct tenant_err err;
	struct tenant_sample a;
	uint32_t ia;

	ts_sample(&a, "a", 5, 0);
	a.cfg.prefixes = 1;
	a.cfg.rules = 0;
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	ia = tenant_by_vni(ts_commit(x), 5)->index;
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_del(x, "a", &err), 0);
	s = ts_commit(x);
	assert_null(tenant_by_index(s, ia));
	assert_int_equal(tenant_db_release(db, ia), RWY_EAGAIN); /* workers may still see it */
	assert_int_equal(tenant_db_release(db, ia + 1), RWY_ENOENT);

	/* The same name again is another tenant. */
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	s = ts_commit(x);
	assert_int_not_equal(tenant_by_vni(s, 5)->index, ia);

	assert_int_equal(tenant_db_quiesced(db, s->generation - 2), 1); /* the first, empty set */
	assert_int_equal(tenant_db_release(db, ia), RWY_EAGAIN);
	assert_int_equal(tenant_db_quiesced(db, s->generation), 3); /* tenant a, two sets */
	assert_int_equal(tenant_db_quiesced(db, s->generation), 0);
	assert_int_equal(tenant_db_release(db, ia), 0);
	assert_int_equal(tenant_db_release(db, ia), RWY_ENOENT);
	ts_sample(&a, "c", 7, 0);
	a.cfg.prefixes = 1;
	a.cfg.rules = 0;
	/* An aborted transaction costs no index. */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(tenant_txn_begin(&x, db), 0);
		assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
		if (i < 2)
			tenant_txn_abort(x);
	}
	assert_int_equal(tenant_by_vni(ts_commit(x), 7)->index, ia);
	tenant_db_free(db);
	tenant_txn_abort(NULL);
}

/* A transaction that adds and removes endlessly runs out of indices, not of memory; nothing is
 * lost. */
static void test_churn_in_one(void **state)
{
	struct tenant_db *db = ts_db(4);
	struct tenant_txn *x;
	struct tenant_err err;
	struct tenant_sample a;
	char name[16];
	unsigned n = 0;

	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(tenant_txn_begin(&x, db), 0);
		for (n = 0; n < 100; n++) {
			snprintf(name, sizeof(name), "t%u.%u", round, n);
			ts_sample(&a, name, 5 + n, 0);
			a.cfg.prefixes = 1;
			a.cfg.rules = 0;
			if (tenant_txn_add(x, &a.cfg, &err))
				break;
			assert_int_equal(tenant_txn_del(x, name, &err), 0);
		}
		assert_int_equal(err.why, TENANT_E_BUSY);
		assert_int_equal(n, 4);
		assert_int_equal(ts_commit(x)->n, 0);
	}
	assert_true(tenant_db_current(db)->top <= 6);
	tenant_db_free(db);
}

/* --- random changes compared with a plain model ----------------------------------------------- */

#define NAMES 40
struct model {
	bool there;
	uint32_t vni;
	uint16_t vlan;
	uint8_t octet; /* 10.OCTET.0.0/16 is behind tunnel 1 */
	uint32_t index;
	uint64_t changed;
};

static void cfg_of(struct tenant_sample *s, unsigned i, const struct model *m)
{
	char name[16];

	snprintf(name, sizeof(name), "tenant-%u", i);
	ts_sample(s, name, m->vni, m->vlan);
	s->cfg.prefixes = 4;
	s->prefix[3].p = ts_net4(10, m->octet, 0, 0, 16);
	s->cfg.rules = 1;
	if (!m->vlan)
		s->prefix[1].at = (struct tenant_at)TS_TUNNEL(1);
}

static bool clash(const struct model *m)
{
	for (unsigned i = 0; i < NAMES; i++)
		for (unsigned j = 0; j < i; j++)
			if (m[i].there && m[j].there &&
			    (m[i].vni == m[j].vni || (m[i].vlan && m[i].vlan == m[j].vlan)))
				return true;
	return false;
}

static void held(const struct tenant_set *s, const struct model *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NAMES; i++) {
		char name[16];
		const struct tenant *t;
		struct rwy_ip a = ts_ip4(10, m[i].octet, 1, 1),
		              b = ts_ip4(10, (uint8_t)(m[i].octet + 1), 1, 1);

		snprintf(name, sizeof(name), "tenant-%u", i);
		t = tenant_by_name(s, name);
		assert_int_equal(t != NULL, m[i].there);
		if (!t)
			continue;
		n++;
		assert_ptr_equal(tenant_by_vni(s, m[i].vni), t);
		if (m[i].vlan)
			assert_ptr_equal(tenant_by_vlan(s, m[i].vlan), t);
		assert_ptr_equal(tenant_by_index(s, t->index), t);
		assert_int_equal(t->index, m[i].index);
		assert_int_equal(t->changed, m[i].changed);
		assert_int_equal(tenant_find(t, &a).tunnel, 1);
		assert_int_equal(tenant_find(t, &b).tunnel, 0);
	}
	assert_int_equal(s->n, n);
}

/* A life of random changes. `resting`: indices of removed tenants that are not released yet. */
struct life {
	struct tenant_db *db;
	struct model now[NAMES];
	uint32_t seed;
	bool resting[4096];
};

static uint32_t draw(struct life *l, uint32_t n)
{
	return tp_rand(&l->seed) % n;
}

/* All again, some omitted, some changed. */
static void draw_reload(struct life *l, struct tenant_txn *x, struct model *next)
{
	struct tenant_err err;
	struct tenant_sample c;

	tenant_txn_clear(x);
	for (unsigned i = 0; i < NAMES; i++) {
		uint32_t k = draw(l, 8);

		if (k == 0)
			next[i].octet = (uint8_t)(100 + draw(l, 100));
		if (k == 1)
			next[i].there = false;
		if (!next[i].there)
			continue;
		cfg_of(&c, i, &next[i]);
		assert_int_equal(tenant_txn_add(x, &c.cfg, &err), 0);
	}
}

/* One comes, changes or goes. */
static void draw_change(struct life *l, struct tenant_txn *x, struct model *next)
{
	unsigned i = draw(l, NAMES);
	const struct tenant_set *shown;
	struct tenant_err err;
	char name[16];
	struct tenant_sample c;
	bool was = next[i].there;

	/* and then it is changed again */
	(void)!tenant_txn_prepare(x, &shown, &err);
	if (was && draw(l, 3) == 0) {
		snprintf(name, sizeof(name), "tenant-%u", i);
		assert_int_equal(tenant_txn_del(x, name, &err), 0);
		next[i].there = false;
		return;
	}
	next[i].there = true;
	next[i].vni = 1 + draw(l, 200);
	next[i].vlan = (uint16_t)draw(l, 100);
	next[i].octet = (uint8_t)(100 + draw(l, 100));
	cfg_of(&c, i, &next[i]);
	assert_int_equal(was ? tenant_txn_set(x, &c.cfg, &err) : tenant_txn_add(x, &c.cfg, &err), 0);
}

/* Takes the indices of new tenants from the set; no removed tenant's index may be used again. */
static void note_indices(struct life *l, const struct tenant_set *s, struct model *next)
{
	for (unsigned i = 0; i < NAMES; i++) {
		const struct model *m = &l->now[i];
		bool same = m->there && next[i].there && m->vni == next[i].vni && m->vlan == next[i].vlan &&
		            m->octet == next[i].octet;
		char name[16];
		const struct tenant *t;

		snprintf(name, sizeof(name), "tenant-%u", i);
		t = tenant_by_name(s, name);
		if (m->there && !next[i].there) {
			l->resting[m->index] = true;
		} else if (!m->there && next[i].there) {
			next[i].index = t->index;
			assert_false(l->resting[t->index]);
		}
		if (!same && next[i].there)
			next[i].changed = s->generation;
	}
}

static uint32_t release_all(struct life *l)
{
	uint32_t released = 0;

	for (uint32_t i = 1; i < sizeof(l->resting); i++)
		if (!tenant_db_release(l->db, i)) {
			assert_true(l->resting[i]);
			l->resting[i] = false;
			released++;
		}
	return released;
}

static void test_long_life(void **state)
{
	struct life l = {.db = ts_db(NAMES), .seed = 20};
	const struct tenant_set *s = tenant_db_current(l.db), *prev = s;
	uint32_t applied = 0, refused = 0, released = 0;

	for (unsigned round = 0; round < 3000; round++) {
		struct model next[NAMES], old[NAMES];
		struct tenant_txn *x;
		struct tenant_err err;
		bool reload = draw(&l, 16) == 0;
		int r;

		memcpy(next, l.now, sizeof(next));
		memcpy(old, l.now, sizeof(old));
		assert_int_equal(tenant_txn_begin(&x, l.db), 0);
		if (reload)
			draw_reload(&l, x, next);
		else
			draw_change(&l, x, next);
		r = ts_commit_shown(x, &s, &err, draw(&l, 2));
		assert_int_equal(r != 0, clash(next));
		if (r) {
			tenant_txn_abort(x);
			assert_ptr_equal(tenant_db_current(l.db), s);
			held(s, l.now);
			refused++;
			continue;
		}
		applied++;
		note_indices(&l, s, next);
		memcpy(l.now, next, sizeof(next));
		held(s, l.now);
		held(prev, old); /* sets that workers still read are unchanged */
		tenant_db_quiesced(l.db, s->generation - 1);
		prev = s;
		if (round % 7 == 0)
			released += release_all(&l);
	}
	assert_true(applied > 500 && refused > 100 && released > 100);
	assert_true(s->top < 4 * NAMES);
	tenant_db_free(l.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_index_reuse),
	    cmocka_unit_test(test_churn_in_one),
	    cmocka_unit_test(test_long_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
