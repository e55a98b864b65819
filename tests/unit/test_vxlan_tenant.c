/* SPDX-License-Identifier: Apache-2.0 */
/* tenant/tenant.h: every refusal with its place, overlapping address spaces, admission, and long
 * random changes of a set compared with a plain model: look-ups, stable indices, no change by a
 * refusal, nothing freed early. */
#include <stdio.h>

#include "tests/lib/roce_pkt.h"

#include "tenant/tenant.h"

static struct prefix net4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t len)
{
	const uint8_t v4[4] = {a, b, c, d};

	return (struct prefix){rwy_ip_from4(v4), (uint8_t)(96 + len)};
}

static struct rwy_ip ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return net4(a, b, c, d, 32).addr;
}

#define LAN                                                                                                  \
	{                                                                                                    \
		TENANT_LAN, 0                                                                                \
	}
#define VTEP                                                                                                 \
	{                                                                                                    \
		TENANT_VTEP, 0                                                                               \
	}
#define TUNNEL(n)                                                                                            \
	{                                                                                                    \
		TENANT_TUNNEL, n                                                                             \
	}

/* An ordinary tenant: hosts behind VTEPs and on a VLAN, a network behind tunnel 0 and a part of it
 * behind tunnel 1. All tenants have the same addresses. */
struct sample {
	struct tenant_cfg cfg;
	struct tenant_prefix prefix[5];
	struct rwy_ip vtep[3];
	struct acl_rule rule[4];
	struct tenant_host host[2];
};

static void sample(struct sample *s, const char *name, uint32_t vni, uint16_t vlan)
{
	memset(s, 0, sizeof(*s));
	tenant_cfg_default(&s->cfg);
	snprintf(s->cfg.name, sizeof(s->cfg.name), "%s", name);
	s->cfg.vni = vni;
	s->cfg.vlan = vlan;
	s->prefix[0] = (struct tenant_prefix){net4(10, 0, 0, 0, 24), VTEP};
	s->prefix[1] = (struct tenant_prefix){net4(10, 0, 1, 0, 24), LAN};
	s->prefix[2] = (struct tenant_prefix){net4(10, 0, 0, 0, 8), TUNNEL(0)};
	s->prefix[3] = (struct tenant_prefix){net4(10, 0, 3, 0, 24), TUNNEL(1)};
	s->prefix[4] = (struct tenant_prefix){{{{0xfd, 0, 0, 1}}, 64}, VTEP};
	for (uint8_t i = 0; i < 3; i++)
		s->vtep[i] = ip4(192, 0, 2, (uint8_t)(30 - i));
	for (unsigned i = 0; i < 4; i++)
		s->rule[i] = (struct acl_rule){.sport_hi = 65535, .classes = ACL_ALL, .allow = true};
	s->rule[0].src = net4(10, 0, 0, 66, 32);
	s->rule[0].allow = false;
	s->rule[1].dst = net4(10, 0, 3, 0, 25);
	s->cfg.prefix = s->prefix;
	s->cfg.prefixes = 5;
	s->cfg.vtep = s->vtep;
	s->cfg.vteps = 3;
	s->cfg.rule = s->rule;
	s->cfg.rules = 4;
	s->host[0] = (struct tenant_host){ip4(10, 0, 1, 9), {{0}}, {2, 0, 0, 0, 1, 9}};
	s->host[1] = (struct tenant_host){ip4(10, 0, 0, 9), s->vtep[1], {2, 0, 0, 0, 0, 9}};
	s->cfg.host = s->host;

	s->cfg.gw_mac[0] = 2;
	s->cfg.gw_mac[5] = 0xfe;
	s->cfg.gw_ip[0] = ip4(10, 0, 0, 254);
}

static struct tenant_db *db_new(uint32_t tenants)
{
	struct tenant_limits lim = {.tenants = tenants, .tunnels = 2, .capacity_Bps = {1000000, 0}};
	struct tenant_db *db = NULL;

	assert_int_equal(tenant_db_new(&db, &lim), 0);
	return db;
}

static const struct tenant_set *commit(struct tenant_txn *x)
{
	const struct tenant_set *s = NULL;
	struct tenant_err err;

	assert_int_equal(tenant_txn_commit(x, &s, &err), 0);
	return s;
}

/* Commit gives the same result and set, with or without prepare before. */
static int commit_shown(struct tenant_txn *x, const struct tenant_set **s, struct tenant_err *err, bool ask)
{
	const struct tenant_set *shown = NULL;
	int asked = ask ? tenant_txn_prepare(x, &shown, err) : 0, r = tenant_txn_commit(x, s, err);

	if (ask) {
		assert_int_equal(asked, r);
		assert_true(r || *s == shown);
	}
	return r;
}

static void test_lookups(void **state)
{
	struct tenant_db *db = db_new(10);
	struct tenant_txn *x;
	struct tenant_err err;
	struct sample a, b;
	const struct tenant_set *s = tenant_db_current(db);
	const struct tenant *ta, *tb, *t;
	struct rwy_ip who;

	assert_int_equal(s->generation, 1);
	assert_null(tenant_by_vni(s, 5));
	assert_null(tenant_by_vlan(s, 5));
	assert_null(tenant_by_name(s, "a"));
	sample(&a, "a", 5, 100);
	a.cfg.hosts = 2;
	sample(&b, "b", 6, 0);
	b.prefix[1].at = (struct tenant_at)TUNNEL(1);
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	assert_int_equal(tenant_txn_add(x, &b.cfg, &err), 0);
	memset(a.prefix, 0xee, sizeof(a.prefix)); /* copied */
	s = commit(x);
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
	AT(ta, ip4(10, 0, 0, 0), TENANT_VTEP, 0);
	AT(ta, ip4(10, 0, 0, 255), TENANT_VTEP, 0);
	AT(ta, ip4(10, 0, 1, 7), TENANT_LAN, 0);
	AT(tb, ip4(10, 0, 1, 7), TENANT_TUNNEL, 1);
	AT(ta, ip4(10, 0, 2, 0), TENANT_TUNNEL, 0);
	AT(ta, ip4(10, 0, 3, 255), TENANT_TUNNEL, 1);
	AT(ta, ip4(10, 0, 4, 0), TENANT_TUNNEL, 0);
	AT(ta, ip4(10, 255, 255, 255), TENANT_TUNNEL, 0);
	AT(ta, ip4(11, 0, 0, 0), TENANT_NOWHERE, 0);
	AT(ta, ip4(9, 255, 255, 255), TENANT_NOWHERE, 0);
	AT(ta, ((struct rwy_ip){{0xfd, 0, 0, 1, 0, 0, 0, 0, 9}}), TENANT_VTEP, 0);
	AT(ta, ((struct rwy_ip){{0xfd, 0, 0, 1, 0, 0, 0, 1}}), TENANT_NOWHERE, 0);
#undef AT
	for (uint8_t i = 27; i < 32; i++) {
		who = ip4(192, 0, 2, i);
		assert_int_equal(
		    tenant_of_vxlan(s, 5, &who, 0, &t), i >= 28 && i <= 30 ? TENANT_OK : TENANT_FOREIGN_VTEP);
		assert_ptr_equal(t, ta);
	}
	who = ip4(192, 0, 2, 28);
	assert_int_equal(tenant_of_vxlan(s, 7, &who, 0, &t), TENANT_UNKNOWN_VNI);
	assert_int_equal(tenant_of_vxlan(s, 5, &who, 100, &t), TENANT_OK);
	assert_int_equal(tenant_of_vxlan(s, 5, &who, 101, &t), TENANT_FOREIGN_TAG);
	assert_int_equal(tenant_of_vxlan(s, 6, &who, 100, &t), TENANT_FOREIGN_TAG);
	tenant_db_free(db);
}

static void test_admits(void **state)
{
	struct tenant_db *db = db_new(10);
	struct tenant_txn *x;
	struct tenant_err err;
	struct sample a;
	const struct tenant *t;
	struct tenant_at to;
	uint16_t rule;

	sample(&a, "a", 5, 100);
	a.cfg.allow_default = false;
	a.cfg.rules = 2;
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	t = tenant_by_vni(commit(x), 5);
#define ADMIT(from, to_ip, side, want, want_rule)                                                            \
	assert_int_equal(                                                                                    \
	    tenant_admits(t, side, &(struct acl_key){from, to_ip, 50000, ACL_WRITE}, &to, &rule), want);     \
	assert_int_equal(rule, want_rule)
	ADMIT(ip4(10, 0, 0, 1), ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_OK, 1);
	assert_int_equal(to.side, TENANT_TUNNEL);
	assert_int_equal(to.tunnel, 1);
	ADMIT(ip4(10, 0, 0, 66), ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_DENIED, 0);
	ADMIT(ip4(10, 0, 0, 1), ip4(10, 0, 3, 200), TENANT_VTEP, TENANT_DENIED, ACL_DEFAULT);
	/* From behind a VTEP: a LAN host's address, a far host's, an unknown one. */
	ADMIT(ip4(10, 0, 1, 1), ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_FORGED_SOURCE, ACL_DEFAULT);
	ADMIT(ip4(10, 0, 1, 1), ip4(10, 0, 3, 1), TENANT_LAN, TENANT_OK, 1);
	ADMIT(ip4(10, 0, 4, 1), ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_FORGED_SOURCE, ACL_DEFAULT);
	ADMIT(ip4(99, 0, 4, 1), ip4(10, 0, 3, 1), TENANT_VTEP, TENANT_FORGED_SOURCE, ACL_DEFAULT);
	ADMIT(ip4(10, 0, 0, 1), ip4(99, 0, 3, 1), TENANT_VTEP, TENANT_NO_ROUTE, ACL_DEFAULT);
#undef ADMIT
	tenant_db_free(db);
}

/* Errors within one tenant: refused at once, with their place; the transaction continues. */
static void test_refused_tenant(void **state)
{
	struct tenant_db *db = db_new(10);
	struct tenant_txn *x;
	struct tenant_err err;
	struct sample a;
	char text[256];
	unsigned seen = 0;

	assert_int_equal(tenant_txn_begin(&x, db), 0);
#define BAD(change, reason, at)                                                                              \
	sample(&a, "a", 5, 100);                                                                             \
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
	BAD(a.vtep[2] = ip4(224, 0, 0, 1), TENANT_E_VTEP, 2);
	BAD(a.cfg.hosts = TENANT_HOSTS_MAX + 1, TENANT_E_HOSTS, -1);
	BAD(a.cfg.hosts = 2; a.host[0].vtep = a.vtep[0], TENANT_E_HOST, 0); /* its address is on the VLAN */
	BAD(a.cfg.hosts = 2; a.host[1].vtep = (struct rwy_ip){{0}}, TENANT_E_HOST, 1);
	BAD(a.cfg.hosts = 2; a.host[1].vtep = ip4(192, 0, 2, 99), TENANT_E_HOST, 1);
	BAD(a.cfg.hosts = 2; a.host[1].addr = ip4(10, 0, 3, 1), TENANT_E_HOST, 1);
	BAD(a.cfg.hosts = 2; a.host[0].mac[0] = 1, TENANT_E_HOST, 0);
	BAD(a.cfg.hosts = 2; memset(a.host[1].mac, 0, 6), TENANT_E_HOST, 1);
	BAD(a.cfg.hosts = 2; a.host[1] = a.host[0], TENANT_E_HOST, 1);
	BAD(a.cfg.gw_mac[0] = 3, TENANT_E_GATEWAY, -1);
	BAD(memset(a.cfg.gw_mac, 0, 6), TENANT_E_GATEWAY, -1);
	BAD(a.cfg.gw_ip[0] = ip4(10, 0, 3, 1), TENANT_E_GATEWAY, 0); /* behind a tunnel */
	BAD(a.cfg.gw_ip[0] = ip4(99, 0, 3, 1), TENANT_E_GATEWAY, 0);
	BAD(a.cfg.gw_ip[1] = ip4(10, 0, 0, 254), TENANT_E_GATEWAY, 1);
	BAD(a.rule[2].classes = 0, TENANT_E_RULE, 2);
	assert_int_equal(err.rule_why, ACL_E_CLASSES);
	BAD(a.rule[3].sport_lo = 65535; a.rule[3].sport_hi = 1, TENANT_E_RULE, 3);
	BAD(a.cfg.rules = ACL_RULES_MAX + 1, TENANT_E_RULE, ACL_RULES_MAX + 1);
	BAD(a.rule[3].src = net4(11, 0, 0, 0, 8), TENANT_E_RULE_OUTSIDE, 3);
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
	struct tenant_db *db = db_new(10);
	struct tenant_txn *x;
	struct tenant_err err;
	struct sample a;

	assert_int_equal(tenant_txn_begin(&x, db), 0);
	/* A rule wider than the tenant's prefixes is valid: it overlaps them. */
	sample(&a, "a", 5, 100);
	a.rule[3].src = net4(0, 0, 0, 0, 1);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), RWY_EEXIST);
	assert_int_equal(err.why, TENANT_E_EXISTS);
	assert_int_equal(tenant_txn_del(x, "b", &err), RWY_ENOENT);
	strcpy(a.cfg.name, "b");
	assert_int_equal(tenant_txn_set(x, &a.cfg, &err), RWY_ENOENT);
	assert_int_equal(err.why, TENANT_E_UNKNOWN);
	assert_string_equal(err.name, "b");
	sample(&a, "b", 5, 0);
	assert_int_equal(tenant_txn_set(x, &a.cfg, &err), RWY_ENOENT);
	assert_int_equal(commit(x)->n, 1);
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
		struct tenant_db *db = db_new(10);
		const struct tenant_set *before, *s = NULL;
		struct tenant_txn *x, *y;
		struct tenant_err err;
		struct sample a, b;
		int r;

		sample(&a, "a", 5, 100);
		a.cfg.guarantee_Bps = 600000;
		a.cfg.memory_ppm = 500000;
		sample(&b, "b", row[i].vni, row[i].vlan);
		b.cfg.guarantee_Bps = row[i].guarantee;
		b.cfg.memory_ppm = row[i].ppm;
		if (!row[i].vlan)
			b.prefix[1].at = (struct tenant_at)TUNNEL(1);
		if (row[i].far)
			b.prefix[2].at.tunnel = 1;
		assert_int_equal(tenant_txn_begin(&x, db), 0);
		assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
		before = commit(x);
		assert_int_equal(tenant_txn_begin(&x, db), 0);
		assert_int_equal(tenant_txn_begin(&y, db), RWY_EINVAL); /* one at a time */
		assert_int_equal(tenant_txn_add(x, &b.cfg, &err), 0);
		r = commit_shown(x, &s, &err, i & 1);
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
			assert_int_equal(commit(x)->n, 1);
		}
		tenant_db_free(db);
	}
}

/* Removed indices are not reused until every worker has released them. */
static void test_index_reuse(void **state)
{
	struct tenant_db *db = db_new(4);
	const struct tenant_set *s;
	struct tenant_txn *x;
	struct tenant_err err;
	struct sample a;
	uint32_t ia;

	sample(&a, "a", 5, 0);
	a.cfg.prefixes = 1;
	a.cfg.rules = 0;
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	ia = tenant_by_vni(commit(x), 5)->index;
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_del(x, "a", &err), 0);
	s = commit(x);
	assert_null(tenant_by_index(s, ia));
	assert_int_equal(tenant_db_release(db, ia), RWY_EAGAIN); /* workers may still see it */
	assert_int_equal(tenant_db_release(db, ia + 1), RWY_ENOENT);

	/* The same name again is another tenant. */
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	s = commit(x);
	assert_int_not_equal(tenant_by_vni(s, 5)->index, ia);

	assert_int_equal(tenant_db_quiesced(db, s->generation - 2), 1); /* the first, empty set */
	assert_int_equal(tenant_db_release(db, ia), RWY_EAGAIN);
	assert_int_equal(tenant_db_quiesced(db, s->generation), 3); /* tenant a, two sets */
	assert_int_equal(tenant_db_quiesced(db, s->generation), 0);
	assert_int_equal(tenant_db_release(db, ia), 0);
	assert_int_equal(tenant_db_release(db, ia), RWY_ENOENT);
	sample(&a, "c", 7, 0);
	a.cfg.prefixes = 1;
	a.cfg.rules = 0;
	/* An aborted transaction costs no index. */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(tenant_txn_begin(&x, db), 0);
		assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
		if (i < 2)
			tenant_txn_abort(x);
	}
	assert_int_equal(tenant_by_vni(commit(x), 7)->index, ia);
	tenant_db_free(db);
	tenant_txn_abort(NULL);
}

/* A transaction that adds and removes endlessly runs out of indices, not of memory; nothing is
 * lost. */
static void test_churn_in_one(void **state)
{
	struct tenant_db *db = db_new(4);
	struct tenant_txn *x;
	struct tenant_err err;
	struct sample a;
	char name[16];
	unsigned n = 0;

	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(tenant_txn_begin(&x, db), 0);
		for (n = 0; n < 100; n++) {
			snprintf(name, sizeof(name), "t%u.%u", round, n);
			sample(&a, name, 5 + n, 0);
			a.cfg.prefixes = 1;
			a.cfg.rules = 0;
			if (tenant_txn_add(x, &a.cfg, &err))
				break;
			assert_int_equal(tenant_txn_del(x, name, &err), 0);
		}
		assert_int_equal(err.why, TENANT_E_BUSY);
		assert_int_equal(n, 4);
		assert_int_equal(commit(x)->n, 0);
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

static void cfg_of(struct sample *s, unsigned i, const struct model *m)
{
	char name[16];

	snprintf(name, sizeof(name), "tenant-%u", i);
	sample(s, name, m->vni, m->vlan);
	s->cfg.prefixes = 4;
	s->prefix[3].p = net4(10, m->octet, 0, 0, 16);
	s->cfg.rules = 1;
	if (!m->vlan)
		s->prefix[1].at = (struct tenant_at)TUNNEL(1);
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
		struct rwy_ip a = ip4(10, m[i].octet, 1, 1), b = ip4(10, (uint8_t)(m[i].octet + 1), 1, 1);

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
	struct sample c;

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
	struct sample c;
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
	struct life l = {.db = db_new(NAMES), .seed = 20};
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
		r = commit_shown(x, &s, &err, draw(&l, 2));
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

static void test_limits(void **state)
{
	struct tenant_limits lim = {.tenants = 0, .tunnels = 1};
	struct tenant_db *db = NULL;
	struct tenant_txn *x;
	struct tenant_err err;
	struct sample a;

	assert_int_equal(tenant_db_new(&db, &lim), RWY_EINVAL);
	lim.tenants = TENANT_COUNT_MAX + 1;
	assert_int_equal(tenant_db_new(&db, &lim), RWY_EINVAL);
	lim.tenants = 1;
	lim.tunnels = TENANT_TUNNELS_MAX + 1;
	assert_int_equal(tenant_db_new(&db, &lim), RWY_EINVAL);
	db = db_new(1);
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	sample(&a, "a", 5, 100);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), 0);
	sample(&a, "b", 6, 101);
	assert_int_equal(tenant_txn_add(x, &a.cfg, &err), RWY_EINVAL);
	assert_int_equal(err.why, TENANT_E_COUNT);
	tenant_txn_abort(x);
	tenant_db_free(db);
	tenant_db_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lookups),
	    cmocka_unit_test(test_admits),
	    cmocka_unit_test(test_refused_tenant),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_refused_set),
	    cmocka_unit_test(test_index_reuse),
	    cmocka_unit_test(test_churn_in_one),
	    cmocka_unit_test(test_long_life),
	    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
