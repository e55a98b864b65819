/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload/offload.h: hardware with all rules, or with any part of them that offload_needs allows,
 * drops or forwards only packets that software would have dropped or forwarded: random ACLs and
 * packets compared with the plain matcher. Exact rules are exact. And by hand: masks, levels,
 * reasons, identity.
 */
#include <stdio.h>

#include "tests/lib/roce_pkt.h"

#include "tests/lib/offload_world.h"

#define WORLDS  400
#define PACKETS 600

struct world {
	struct tenant_db *db;
	const struct tenant_set *s;
	struct offload_list l;
	struct offload_cfg cfg;
};

static void world_new(struct world *w, bool simple, uint32_t *seed)
{
	struct tenant_limits lim = {.tenants = OW_TENANTS, .tunnels = 1};
	struct tenant_txn *x;
	struct tenant_err err;

	memset(w, 0, sizeof(*w));
	assert_int_equal(tenant_db_new(&w->db, &lim), 0);
	assert_int_equal(tenant_txn_begin(&x, w->db), 0);
	for (unsigned i = 0; i < OW_TENANTS; i++) {
		struct ow_tenant t;

		ow_tenant_rand(&t, i, simple, seed);
		assert_int_equal(tenant_txn_add(x, &t.cfg, &err), 0);
	}
	assert_int_equal(tenant_txn_commit(x, &w->s, &err), 0);
	ow_cfg(&w->cfg);
}

static void world_rules(struct world *w)
{
	assert_int_equal(offload_common(&w->l, &w->cfg, w->s), 0);
	for (uint32_t i = 1; i < w->s->top; i++)
		if (tenant_by_index(w->s, i))
			assert_int_equal(offload_tenant(&w->l, &w->cfg, tenant_by_index(w->s, i)), 0);
}

static void world_free(struct world *w)
{
	offload_list_fini(&w->l);
	tenant_db_free(w->db);
}

/* A drop on IPv6 by ports or operation is wrong after extension headers if the device parses them:
 * such a device must refuse it. */
static bool device_refuses(const struct offload_rule *r)
{
	return r->act == OFFLOAD_DROP && r->match.family == 6 &&
	       (r->match.sport_mask || r->match.opcode_mask || r->match.qp1);
}

/* A random part of the rules that is allowed when some are refused. */
static unsigned choose(
    const struct offload_list *l, unsigned refuse_percent, const struct offload_rule **in, uint32_t *seed)
{
	bool *out = calloc(l->n + 1, sizeof(*out));
	unsigned n = 0;

	for (unsigned i = 0; i < l->n; i++)
		out[i] = device_refuses(&l->rule[i]) || ow_rand(seed) % 100 < refuse_percent;
	for (unsigned i = 0; i < l->n; i++) {
		bool fine = !out[i];

		for (unsigned j = 0; j < l->n && fine && l->rule[i].act != OFFLOAD_PASS; j++)
			fine = !out[j] || !offload_needs(&l->rule[i], &l->rule[j]);
		if (fine)
			in[n++] = &l->rule[i];
	}
	free(out);
	return n;
}

static void test_never_more(void **state)
{
	uint64_t drops = 0, forwards = 0, denied = 0;
	uint32_t seed = 1;

	for (unsigned i = 0; i < WORLDS; i++) {
		const struct offload_rule **in;
		struct world w;
		unsigned n;

		world_new(&w, false, &seed);
		world_rules(&w);
		in = calloc(w.l.n, sizeof(*in));
		n = choose(&w.l, i % 3 * 10, in, &seed);
		for (unsigned k = 0; k < PACKETS; k++) {
			struct ow_pkt p;

			ow_pkt_rand(&p, w.s, &seed);
			ow_check(w.s, in, n, &p, &drops, &forwards);
			denied += ow_denied(w.s, &p);
		}
		free(in);
		world_free(&w);
	}
	printf("%llu of %llu denied packets dropped, %llu forwarded\n", (unsigned long long)drops,
	    (unsigned long long)denied, (unsigned long long)forwards);
	assert_true(drops > denied / 4 && drops < denied && forwards > 50);
}

/* ACLs over prefixes alone: hardware drops exactly the denied RoCE packets. */
static void test_exact(void **state)
{
	uint64_t drops = 0;
	uint32_t seed = 2;

	for (unsigned i = 0; i < WORLDS; i++) {
		const struct offload_rule **in;
		struct world w;
		unsigned n;

		world_new(&w, true, &seed);
		w.cfg.forward = false;
		world_rules(&w);
		in = calloc(w.l.n, sizeof(*in));
		n = choose(&w.l, 0, in, &seed);
		for (unsigned k = 0; k < PACKETS; k++) {
			struct ow_pkt p;
			const struct offload_rule *r;

			ow_pkt_rand(&p, w.s, &seed);
			p.roce = true;
			p.fragment = p.ext = false;
			if (p.vtep.b[15] == 99) /* the ACL allows one from a foreign VTEP */
				p.vtep.b[15] = 11;
			r = ow_match(in, n, &p);
			assert_int_equal(r && r->act == OFFLOAD_DROP, ow_denied(w.s, &p));
			drops += r && r->act == OFFLOAD_DROP;
		}
		for (unsigned k = 0; k < w.l.n; k++)
			assert_int_not_equal(w.l.rule[k].act, OFFLOAD_NOTHING);
		free(in);
		world_free(&w);
	}
	assert_true(drops > WORLDS * PACKETS / 20);
}

/* --- by hand ------------------------------------------------------------------------------------------ */

/* The rules of one tenant with this ACL, on a VLAN only. */
static void one(struct offload_list *l, const struct acl_rule *rule, unsigned n, bool dflt)
{
	struct tenant_limits lim = {.tenants = 1};
	struct tenant_db *db;
	struct tenant_txn *x;
	struct tenant_err err;
	struct ow_tenant t;
	const struct tenant_set *s;
	struct offload_cfg cfg;
	uint32_t seed = 3;

	ow_tenant_rand(&t, 0, true, &seed);
	t.prefix[0] = (struct tenant_prefix){t.prefix[1].p, {TENANT_LAN, 0}};
	t.cfg.prefixes = 1;
	t.cfg.vni = t.cfg.vteps = t.cfg.hosts = 0;
	t.cfg.vtep_learn = false;
	t.cfg.rule = rule;
	t.cfg.rules = n;
	t.cfg.allow_default = dflt;
	assert_int_equal(tenant_db_new(&db, &lim), 0);
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &t.cfg, &err), 0);
	assert_int_equal(tenant_txn_commit(x, &s, &err), 0);
	offload_cfg_default(&cfg);
	l->n = 0;
	assert_int_equal(offload_tenant(l, &cfg, tenant_by_index(s, 1)), 0);
	tenant_db_free(db);
}

static struct acl_rule rule(bool allow, uint16_t classes, uint16_t lo, uint16_t hi)
{
	return (struct acl_rule){.allow = allow, .classes = classes, .sport_lo = lo, .sport_hi = hi};
}

static void test_masks(void **state)
{
	struct offload_list l = {0};
	struct acl_rule r = rule(false, ACL_ALL, 49152, 65535);

	one(&l, &r, 1, true);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.rule[0].match.sport, 0xc000);
	assert_int_equal(l.rule[0].match.sport_mask, 0xc000);
	assert_int_equal(l.rule[0].match.opcode_mask, 0);
	r = rule(false, 1 << ACL_WRITE, 0, 65535); /* 06-07 and 08-0b of RC, UC, RD and XRC */
	one(&l, &r, 1, true);
	assert_int_equal(l.n, 8);
	for (unsigned i = 0; i < l.n; i++)
		assert_int_equal(l.rule[i].match.opcode_mask, i & 1 ? 0xfc : 0xfe);
	r = rule(false, 1 << ACL_CM, 0, 65535);
	one(&l, &r, 1, true);
	assert_int_equal(l.n, 1);
	assert_true(
	    l.rule[0].match.qp1 && l.rule[0].match.opcode == 0x64 && l.rule[0].match.opcode_mask == 0xfe);
	r = rule(false, ACL_ALL, 1, 65534); /* 30 masks: still one rule of the ACL's */
	one(&l, &r, 1, true);
	assert_int_equal(l.n, 30);
	offload_list_fini(&l);
}

static const struct offload_rule *nothing(const struct offload_list *l)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->rule[i].act == OFFLOAD_NOTHING)
			return &l->rule[i];
	fail();
	return NULL;
}

static void test_reasons(void **state)
{
	struct offload_list l = {0};
	struct acl_rule r[40];

	r[0] = rule(false, 1 << ACL_OTHER, 0, 65535);
	one(&l, r, 1, true);
	assert_true(l.n > 1); /* reserved opcodes are expressible */
	assert_int_equal(nothing(&l)->left, OFFLOAD_LEFT_NOT_ROCE);
	r[0] = rule(false, 1 << ACL_UD, 0, 65535);
	one(&l, r, 1, true);
	assert_int_equal(l.n, 1);
	assert_int_equal(nothing(&l)->left, OFFLOAD_LEFT_UD);
	r[0] = rule(false, 1 << ACL_WRITE, 1, 65534);
	one(&l, r, 1, true);
	assert_int_equal(l.n, 1);
	assert_int_equal(nothing(&l)->left, OFFLOAD_LEFT_MASKS);
	assert_int_equal(nothing(&l)->item, 0);
	for (unsigned i = 0; i < 40; i++)
		r[i] = rule(i & 1, ACL_ALL, (uint16_t)(i ^ 1) * 100, 65535);
	one(&l, r, 40, false);
	assert_int_equal(nothing(&l)->left, OFFLOAD_LEFT_LEVELS);
	for (unsigned i = 0; i < 40; i++)
		r[i] = rule(false, ACL_ALL, 1, 65534);
	one(&l, r, 40, false); /* 1,200 rules and one */
	assert_int_equal(l.n, 1);
	assert_int_equal(nothing(&l)->left, OFFLOAD_LEFT_MANY);
	for (enum offload_left i = 0; i < OFFLOAD_LEFT_COUNT; i++)
		assert_true(strlen(offload_left_text(i)) > 5);
	offload_list_fini(&l);
}

/* An allow rule without a later deny is not needed; with one it comes before it. */
static void test_levels(void **state)
{
	struct offload_list l = {0};
	struct acl_rule r[3] = {rule(false, ACL_ALL, 49152, 65535), rule(true, ACL_ALL, 0, 65535),
	    rule(false, ACL_ALL, 0, 65535)};

	one(&l, r, 2, true);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.rule[0].prio, OFFLOAD_PRIO_ACL);
	one(&l, r, 3, true);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.rule[1].act, OFFLOAD_PASS);
	assert_true(l.rule[0].prio < l.rule[1].prio && l.rule[1].prio < l.rule[2].prio);
	assert_true(offload_needs(&l.rule[2], &l.rule[1]) && !offload_needs(&l.rule[0], &l.rule[1]));
	r[1].classes = 1 << ACL_READ; /* does not overlap the rule that denies writes */
	r[2].classes = 1 << ACL_WRITE;
	one(&l, r, 3, true);
	for (unsigned i = 0; i < l.n; i++)
		assert_int_not_equal(l.rule[i].act, OFFLOAD_PASS);
	offload_list_fini(&l);
}

/* An unchanged rule keeps its identity when others are added and removed. */
static void test_identity(void **state)
{
	struct offload_list a = {0}, b = {0};
	struct acl_rule r[2] = {rule(false, 1 << ACL_WRITE, 0, 65535), rule(false, ACL_ALL, 49152, 65535)};

	one(&a, r + 1, 1, true);
	one(&b, r, 2, true);
	assert_int_equal(a.n, 1);
	assert_true(offload_rule_same(&a.rule[0], &b.rule[b.n - 1]));
	assert_int_equal(a.rule[0].item, 0);
	assert_int_equal(b.rule[b.n - 1].item, 1);
	for (unsigned i = 0; i + 1 < b.n; i++)
		assert_false(offload_rule_same(&a.rule[0], &b.rule[i]));
	offload_list_fini(&a);
	offload_list_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_never_more),
	    cmocka_unit_test(test_exact),
	    cmocka_unit_test(test_masks),
	    cmocka_unit_test(test_reasons),
	    cmocka_unit_test(test_levels),
	    cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
