/* SPDX-License-Identifier: Apache-2.0 */
/* tenant/tenant.h: look-ups of tenants with overlapping address spaces, and admission. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "tests/lib/tenant_sample.h"

static void test_lookups(void **state)
{
	struct tenant_db *db = ts_db(10);
	struct tenant_txn *x;
	struct tenant_err err;
	struct tenant_sample a, b;
	const struct tenant_set *s = tenant_db_current(db);
	const struct tenant *ta, *tb, *t;
	struct rwy_ip who;

	assert_int_equal(s->generation, 1);
	assert_null(tenant_by_vni(s, 5));
	assert_null(tenant_by_vlan(s, 5));
	assert_null(tenant_by_name(s, "a"));
	ts_sample(&a, "a", 5, 100);
	a.cfg.hosts = 2;
	ts_sample(&b, "b", 6, 0);
	b.prefix[1].at = (struct tenant_at)TS_TUNNEL(1);
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	assert_int_equal(tenant_txn_add(x, &b.cfg, &err), 0);
	memset(a.prefix, 0xee, sizeof(a.prefix)); /* copied */
	s = ts_commit(x);
	assert_int_equal(s->generation, 2);
	assert_int_equal(s->n, 2);
	ta = tenant_by_vni(s, 5);
	tb = tenant_by_vni(s, 6);
	assert_true(ta && tb && ta != tb && ta->index && tb->index);
	assert_ptr_equal(tenant_by_vlan(s, 100), ta);
	assert_ptr_equal(tenant_by_name(s, "b"), tb);
	assert_ptr_equal(tenant_by_index(s, ta->index), ta);
	assert_null(tenant_by_index(s, 0));
	assert_null(tenant_by_index(s, 99));
	assert_null(tenant_by_vlan(s, 0));
	assert_null(tenant_by_vlan(s, 0xffff));
	assert_null(tenant_by_vni(s, 0));
	assert_int_equal(ta->tunnels, 3);
	assert_int_equal(ta->cfg.hosts, 2); /* sorted by address */
	assert_true(rwy_ip_eq(&ta->cfg.host[0].addr, &a.host[1].addr));
	assert_true(rwy_ip_eq(&ta->cfg.host[1].addr, &a.host[0].addr) && ta->cfg.host[1].mac[5] == 9);

	/* The same addresses, each tenant's own places; longest match, edges, both families. */
#define AT(tenant, addr, sd, tn)                                                                             \
	who = addr;                                                                                          \
	assert_int_equal(tenant_find(tenant, &who).side, sd);                                                \
	assert_int_equal(tenant_find(tenant, &who).tunnel, tn)
	AT(ta, ts_ip4(10, 0, 0, 0), TENANT_VTEP, 0);
	AT(ta, ts_ip4(10, 0, 0, 255), TENANT_VTEP, 0);
	AT(ta, ts_ip4(10, 0, 1, 7), TENANT_LAN, 0);
	AT(tb, ts_ip4(10, 0, 1, 7), TENANT_TUNNEL, 1);
	AT(ta, ts_ip4(10, 0, 2, 0), TENANT_TUNNEL, 0);
	AT(ta, ts_ip4(10, 0, 3, 255), TENANT_TUNNEL, 1);
	AT(ta, ts_ip4(10, 0, 4, 0), TENANT_TUNNEL, 0);
	AT(ta, ts_ip4(10, 255, 255, 255), TENANT_TUNNEL, 0);
	AT(ta, ts_ip4(11, 0, 0, 0), TENANT_NOWHERE, 0);
	AT(ta, ts_ip4(9, 255, 255, 255), TENANT_NOWHERE, 0);
	AT(ta, ((struct rwy_ip){{0xfd, 0, 0, 1, 0, 0, 0, 0, 9}}), TENANT_VTEP, 0);
	AT(ta, ((struct rwy_ip){{0xfd, 0, 0, 1, 0, 0, 0, 1}}), TENANT_NOWHERE, 0);
#undef AT
	for (uint8_t i = 27; i < 32; i++) {
		who = ts_ip4(192, 0, 2, i);
		assert_int_equal(
		    tenant_of_vxlan(s, 5, &who, 0, &t), i >= 28 && i <= 30 ? TENANT_OK : TENANT_FOREIGN_VTEP);
		assert_ptr_equal(t, ta);
	}
	who = ts_ip4(192, 0, 2, 28);
	assert_int_equal(tenant_of_vxlan(s, 7, &who, 0, &t), TENANT_UNKNOWN_VNI);
	assert_int_equal(tenant_of_vxlan(s, 5, &who, 100, &t), TENANT_OK);
	assert_int_equal(tenant_of_vxlan(s, 5, &who, 101, &t), TENANT_FOREIGN_TAG);
	assert_int_equal(tenant_of_vxlan(s, 6, &who, 100, &t), TENANT_FOREIGN_TAG);
	tenant_db_free(db);
}

static void test_admits(void **state)
{
	struct tenant_db *db = ts_db(10);
	struct tenant_txn *x;
	struct tenant_err err;
	struct tenant_sample a;
	const struct tenant *t;
	struct tenant_at to;
	uint16_t rule;

	ts_sample(&a, "a", 5, 100);
	a.cfg.allow_default = false;
	a.cfg.rules = 2;
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	t = tenant_by_vni(ts_commit(x), 5);
#define ADMIT(from, to_ip, side, want, want_rule)                                                            \
	assert_int_equal(                                                                                    \
	    tenant_admits(t, side, &(struct acl_key){from, to_ip, 50000, ACL_WRITE}, &to, &rule), want);     \
	assert_int_equal(rule, want_rule)
	ADMIT(ts_ip4(10, 0, 0, 1), ts_ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_OK, 1);
	assert_int_equal(to.side, TENANT_TUNNEL);
	assert_int_equal(to.tunnel, 1);
	ADMIT(ts_ip4(10, 0, 0, 66), ts_ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_DENIED, 0);
	ADMIT(ts_ip4(10, 0, 0, 1), ts_ip4(10, 0, 3, 200), TENANT_VTEP, TENANT_DENIED, ACL_DEFAULT);
	/* From behind a VTEP: a LAN host's address, a far host's, an unknown one. */
	ADMIT(ts_ip4(10, 0, 1, 1), ts_ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_FORGED_SOURCE, ACL_DEFAULT);
	ADMIT(ts_ip4(10, 0, 1, 1), ts_ip4(10, 0, 3, 1), TENANT_LAN, TENANT_OK, 1);
	ADMIT(ts_ip4(10, 0, 4, 1), ts_ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_FORGED_SOURCE, ACL_DEFAULT);
	ADMIT(ts_ip4(99, 0, 4, 1), ts_ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_FORGED_SOURCE, ACL_DEFAULT);
	ADMIT(ts_ip4(10, 0, 0, 1), ts_ip4(99, 0, 3, 1), TENANT_VTEP, TENANT_NO_ROUTE, ACL_DEFAULT);
#undef ADMIT
	tenant_db_free(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lookups),
	    cmocka_unit_test(test_admits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
