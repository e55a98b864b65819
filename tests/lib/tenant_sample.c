/* SPDX-License-Identifier: Apache-2.0 */
/* The tenant, and steps of a transaction that must succeed. It has no test. */
#include "tests/lib/tenant_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct prefix ts_net4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t len)
{
	const uint8_t v4[4] = {a, b, c, d};

	return (struct prefix){rwy_ip_from4(v4), (uint8_t)(96 + len)};
}

struct rwy_ip ts_ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return ts_net4(a, b, c, d, 32).addr;
}

void ts_sample(struct tenant_sample *s, const char *name, uint32_t vni, uint16_t vlan)
{
	memset(s, 0, sizeof(*s));
	tenant_cfg_default(&s->cfg);
	snprintf(s->cfg.name, sizeof(s->cfg.name), "%s", name);
	s->cfg.vni = vni;
	s->cfg.vlan = vlan;
	s->prefix[0] = (struct tenant_prefix){ts_net4(10, 0, 0, 0, 24), TS_VTEP};
	s->prefix[1] = (struct tenant_prefix){ts_net4(10, 0, 1, 0, 24), TS_LAN};
	s->prefix[2] = (struct tenant_prefix){ts_net4(10, 0, 0, 0, 8), TS_TUNNEL(0)};
	s->prefix[3] = (struct tenant_prefix){ts_net4(10, 0, 3, 0, 24), TS_TUNNEL(1)};
	s->prefix[4] = (struct tenant_prefix){{{{0xfd, 0, 0, 1}}, 64}, TS_VTEP};
	for (uint8_t i = 0; i < 3; i++)
		s->vtep[i] = ts_ip4(192, 0, 2, (uint8_t)(30 - i));
	for (unsigned i = 0; i < 4; i++)
		s->rule[i] = (struct acl_rule){.sport_hi = 65535, .classes = ACL_ALL, .allow = true};
	s->rule[0].src = ts_net4(10, 0, 0, 66, 32);
	s->rule[0].allow = false;
	s->rule[1].dst = ts_net4(10, 0, 3, 0, 25);
	s->cfg.prefix = s->prefix;
	s->cfg.prefixes = 5;
	s->cfg.vtep = s->vtep;
	s->cfg.vteps = 3;
	s->cfg.rule = s->rule;
	s->cfg.rules = 4;
	s->host[0] = (struct tenant_host){ts_ip4(10, 0, 1, 9), {{0}}, {2, 0, 0, 0, 1, 9}};
	s->host[1] = (struct tenant_host){ts_ip4(10, 0, 0, 9), s->vtep[1], {2, 0, 0, 0, 0, 9}};
	s->cfg.host = s->host;

	s->cfg.gw_mac[0] = 2;
	s->cfg.gw_mac[5] = 0xfe;
	s->cfg.gw_ip[0] = ts_ip4(10, 0, 0, 254);
}

struct tenant_db *ts_db(uint32_t tenants)
{
	struct tenant_limits lim = {.tenants = tenants, .tunnels = 2, .capacity_Bps = {1000000, 0}};
	struct tenant_db *db = NULL;

	assert_int_equal(tenant_db_new(&db, &lim), 0);
	return db;
}

const struct tenant_set *ts_commit(struct tenant_txn *x)
{
	const struct tenant_set *s = NULL;
	struct tenant_err err;

	assert_int_equal(tenant_txn_commit(x, &s, &err), 0);
	return s;
}

int ts_commit_shown(struct tenant_txn *x, const struct tenant_set **s, struct tenant_err *err, bool ask)
{
	const struct tenant_set *shown = NULL;
	int asked = ask ? tenant_txn_prepare(x, &shown, err) : 0, r = tenant_txn_commit(x, s, err);

	if (ask) {
		assert_int_equal(asked, r);
		assert_true(r || *s == shown);
	}
	return r;
}
