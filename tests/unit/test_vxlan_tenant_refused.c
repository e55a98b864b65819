/* SPDX-License-Identifier: Apache-2.0 */
/* tenant/tenant.h: every refusal with its place. Nothing is applied; the transaction continues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "tests/lib/tenant_sample.h"

/* Errors within one tenant: refused at once, with their place; the transaction continues. */
static void test_refused_tenant(void **state)
{
	struct tenant_db *db = ts_db(10);
	struct tenant_txn *x;
	struct tenant_err err;
	struct tenant_sample a;
	char text[256];
	unsigned seen = 0;

	assert_int_equal(tenant_txn_begin(&x, db), 0);
#define BAD(change, reason, at)                                                                              \
	ts_sample(&a, "a", 5, 100);                                                                          \
	change;                                                                                              \
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), RWY_EINVAL);                                       \
	assert_int_equal(err.why, reason);                                                                   \
	assert_int_equal(err.item, at);                                                                      \
	assert_true(strlen(tenant_err_text(&err, text, sizeof(text))) > 10);                                 \
	seen++
	BAD(a.cfg.name[0] = 0, TENANT_E_NAME, -1);
	BAD(a.cfg.name[0] = ' ', TENANT_E_NAME, -1);
	BAD(memset(a.cfg.name, 'x', sizeof(a.cfg.name)), TENANT_E_NAME, -1);
	BAD((a.cfg.vni = 0, a.cfg.vlan = 0), TENANT_E_NUMBER, -1);
	BAD(a.cfg.vni = 0x1000000, TENANT_E_VNI, -1);
	BAD(a.cfg.vlan = 4095, TENANT_E_VLAN, -1);
	BAD(a.cfg.prefixes = TENANT_PREFIXES_MAX + 1, TENANT_E_PREFIXES, -1);
	BAD(a.prefix[3].p.len--, TENANT_E_PREFIX, 3);
	BAD(a.prefix[4].p.len = 129, TENANT_E_PREFIX, 4);
	BAD(a.prefix[3] = a.prefix[0], TENANT_E_PREFIX_TWICE, 3);
	BAD(a.prefix[3].at.tunnel = 2, TENANT_E_PLACE, 3);
	BAD(a.prefix[0].at.side = TENANT_NOWHERE, TENANT_E_PLACE, 0);
	BAD(a.prefix[0].at.side = 77, TENANT_E_PLACE, 0);
	BAD(a.cfg.vlan = 0, TENANT_E_PLACE, 1);
	BAD(a.cfg.vni = 0, TENANT_E_PLACE, 0);
	BAD(a.cfg.vteps = TENANT_VTEPS_MAX + 1, TENANT_E_VTEPS, -1);
	BAD(a.vtep[1] = a.vtep[0], TENANT_E_VTEP, 1);
	BAD(a.vtep[2] = ts_ip4(224, 0, 0, 1), TENANT_E_VTEP, 2);
	BAD(a.cfg.hosts = TENANT_HOSTS_MAX + 1, TENANT_E_HOSTS, -1);
	/* its address is on the VLAN */
	BAD(a.cfg.hosts = 2; a.host[0].vtep = a.vtep[0], TENANT_E_HOST, 0);
	BAD(a.cfg.hosts = 2; a.host[1].vtep = (struct rwy_ip){{0}}, TENANT_E_HOST, 1);
	BAD(a.cfg.hosts = 2; a.host[1].vtep = ts_ip4(192, 0, 2, 99), TENANT_E_HOST, 1);
	BAD(a.cfg.hosts = 2; a.host[1].addr = ts_ip4(10, 0, 3, 1), TENANT_E_HOST, 1);
	BAD(a.cfg.hosts = 2; a.host[0].mac[0] = 1, TENANT_E_HOST, 0);
	BAD(a.cfg.hosts = 2; memset(a.host[1].mac, 0, 6), TENANT_E_HOST, 1);
	BAD(a.cfg.hosts = 2; a.host[1] = a.host[0], TENANT_E_HOST, 1);
	BAD(a.cfg.gw_mac[0] = 3, TENANT_E_GATEWAY, -1);
	BAD(memset(a.cfg.gw_mac, 0, 6), TENANT_E_GATEWAY, -1);
	BAD(a.cfg.gw_ip[0] = ts_ip4(10, 0, 3, 1), TENANT_E_GATEWAY, 0); /* behind a tunnel */
	BAD(a.cfg.gw_ip[0] = ts_ip4(99, 0, 3, 1), TENANT_E_GATEWAY, 0);
	BAD(a.cfg.gw_ip[1] = ts_ip4(10, 0, 0, 254), TENANT_E_GATEWAY, 1);
	BAD(a.rule[2].classes = 0, TENANT_E_RULE, 2);
	assert_int_equal(err.rule_why, ACL_E_CLASSES);
	BAD(a.rule[3].sport_lo = 65535; a.rule[3].sport_hi = 1, TENANT_E_RULE, 3);
	BAD(a.cfg.rules = ACL_RULES_MAX + 1, TENANT_E_RULE, ACL_RULES_MAX + 1);
	BAD(a.rule[3].src = ts_net4(11, 0, 0, 0, 8), TENANT_E_RULE_OUTSIDE, 3);
	BAD((a.rule[2].dst = (struct prefix){{{0xfe}}, 8}), TENANT_E_RULE_OUTSIDE, 2);
	BAD(a.cfg.ack_mode = TENANT_ACK_SITE + 1, TENANT_E_ACK_MODE, -1);
	BAD((a.cfg.guarantee_Bps = 2000, a.cfg.limit_Bps = 1999), TENANT_E_RATE, -1);
	BAD(a.cfg.guarantee_Bps = 999, TENANT_E_RATE, -1);
	BAD(a.cfg.weight = 0, TENANT_E_WEIGHT, -1);
	BAD(a.cfg.weight = TENANT_WEIGHT_MAX + 1, TENANT_E_WEIGHT, -1);
	BAD(a.cfg.priority = 8, TENANT_E_PRIORITY, -1);
	BAD(a.cfg.dscp.map[63] = 64, TENANT_E_DSCP, -1);
	BAD(a.cfg.pcp = 1 + 8, TENANT_E_PCP, -1);
	BAD(a.cfg.memory_ppm = TENANT_PPM + 1, TENANT_E_SHARE, -1);
#undef BAD
	assert_int_equal(seen, 45);
	tenant_txn_abort(x);
	tenant_db_free(db);
}

static void test_names(void **state)
{
	struct tenant_db *db = ts_db(10);
	struct tenant_txn *x;
	struct tenant_err err;
	struct tenant_sample a;

	assert_int_equal(tenant_txn_begin(&x, db), 0);
	/* A rule wider than the tenant's prefixes is valid: it overlaps them. */
	ts_sample(&a, "a", 5, 100);
	a.rule[3].src = ts_net4(0, 0, 0, 0, 1);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), RWY_EEXIST);
	assert_int_equal(err.why, TENANT_E_EXISTS);
	assert_int_equal(tenant_txn_del(x, "b", &err), RWY_ENOENT);
	strcpy(a.cfg.name, "b");
	assert_int_equal(tenant_txn_set(x, &a.cfg, &err), RWY_ENOENT);
	assert_int_equal(err.why, TENANT_E_UNKNOWN);
	assert_string_equal(err.name, "b");
	ts_sample(&a, "b", 5, 0);
	assert_int_equal(tenant_txn_set(x, &a.cfg, &err), RWY_ENOENT);
	assert_int_equal(ts_commit(x)->n, 1);
	tenant_db_free(db);
}

/* Errors between tenants: found at commit; nothing is applied, and the transaction can be
 * corrected. */
static void test_refused_set(void **state)
{
	static const struct {
		uint32_t vni;
		uint16_t vlan;
		uint64_t guarantee;
		uint32_t ppm;
		bool far; /* its tunnel has no known capacity */
		enum tenant_error want;
	} row[] = {
	    {5, 0, 0, 0, false, TENANT_E_VNI_TWICE},
	    {6, 100, 0, 0, false, TENANT_E_VLAN_TWICE},
	    {6, 0, 400001, 0, false, TENANT_E_GUARANTEE},
	    {6, 0, UINT64_MAX, 0, false, TENANT_E_GUARANTEE},
	    {6, 0, 400001, 0, true, TENANT_E_NONE},
	    {6, 0, 0, 500001, false, TENANT_E_SHARE},
	    {6, 0, 400000, 500000, false, TENANT_E_NONE},
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct tenant_db *db = ts_db(10);
		const struct tenant_set *before, *s = NULL;
		struct tenant_txn *x, *y;
		struct tenant_err err;
		struct tenant_sample a, b;
		int r;

		ts_sample(&a, "a", 5, 100);
		a.cfg.guarantee_Bps = 600000;
		a.cfg.memory_ppm = 500000;
		ts_sample(&b, "b", row[i].vni, row[i].vlan);
		b.cfg.guarantee_Bps = row[i].guarantee;
		b.cfg.memory_ppm = row[i].ppm;
		if (!row[i].vlan)
			b.prefix[1].at = (struct tenant_at)TS_TUNNEL(1);
		if (row[i].far)
			b.prefix[2].at.tunnel = 1;
		assert_int_equal(tenant_txn_begin(&x, db), 0);
		assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
		before = ts_commit(x);
		assert_int_equal(tenant_txn_begin(&x, db), 0);
		assert_int_equal(tenant_txn_begin(&y, db), RWY_EINVAL); /* one at a time */
		assert_int_equal(tenant_txn_add(x, &b.cfg, &err), 0);
		r = ts_commit_shown(x, &s, &err, i & 1);
		assert_int_equal(r, row[i].want == TENANT_E_NONE ? 0 : RWY_EINVAL);
		if (r) {
			assert_int_equal(err.why, row[i].want);
			assert_string_equal(err.name, "b");
			if (err.why == TENANT_E_VNI_TWICE || err.why == TENANT_E_VLAN_TWICE)
				assert_string_equal(err.other, "a");
			if (err.why == TENANT_E_GUARANTEE)
				assert_int_equal(err.item, 0);
			assert_ptr_equal(tenant_db_current(db), before);
			assert_null(tenant_by_name(before, "b"));
			assert_int_equal(tenant_txn_del(x, "b", &err), 0);
			assert_int_equal(ts_commit(x)->n, 1);
		}
		tenant_db_free(db);
	}
}

static void test_limits(void **state)
{
	struct tenant_limits lim = {.tenants = 0, .tunnels = 1};
	struct tenant_db *db = NULL;
	struct tenant_txn *x;
	struct tenant_err err;
	struct tenant_sample a;

	assert_int_equal(tenant_db_new(&db, &lim), RWY_EINVAL);
	lim.tenants = TENANT_COUNT_MAX + 1;
	assert_int_equal(tenant_db_new(&db, &lim), RWY_EINVAL);
	lim.tenants = 1;
	lim.tunnels = TENANT_TUNNELS_MAX + 1;
	assert_int_equal(tenant_db_new(&db, &lim), RWY_EINVAL);
	db = ts_db(1);
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	ts_sample(&a, "a", 5, 100);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	ts_sample(&a, "b", 6, 101);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), RWY_EINVAL);
	assert_int_equal(err.why, TENANT_E_COUNT);
	tenant_txn_abort(x);
	tenant_db_free(db);
	tenant_db_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_refused_tenant),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_refused_set),
	    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
