/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants in the configuration: accepted input, each refusal with its line, one tenant alone (the
 * local API), and back to text. Each case is the valid file below with one line changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "conf/schema.h"
#include "tests/lib/conf_change.h"

/* Line numbers matter below. */
static const char good[] =
    "gateway: {name: a}\n"                                                                 /* 1 */
    "ports:\n"                                                                             /* 2 */
    "  - {name: lan, device: net_null0, role: lan, vlan: 7, addresses: [10.1.0.1/24]}\n"   /* 3 */
    "  - {name: wan, device: net_null1, role: wan, addresses: [192.0.2.1/24]}\n"           /* 4 */
    "tunnels:\n"                                                                           /* 5 */
    "  - {name: b, port: wan, local: 192.0.2.1, remote: 192.0.2.2, security: none}\n"      /* 6 */
    "  - {name: site-c, port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none}\n" /* 7 */
    "tenants:\n"                                                                           /* 8 */
    "  - name: red\n"                                                                      /* 9 */
    "    vni: 5001\n"                                                                      /* 10 */
    "    vlan: 101\n"                                                                      /* 11 */
    "    prefixes:\n"                                                                      /* 12 */
    "      - {prefix: 10.1.0.0/24, at: vtep}\n"                                            /* 13 */
    "      - {prefix: 10.1.1.0/24, at: vlan}\n"                                            /* 14 */
    "      - {prefix: 10.2.0.0/24, at: b}\n"                                               /* 15 */
    "    vteps: [10.1.0.11, 10.1.0.12]\n"                                                  /* 16 */
    "    gateway_addresses: [10.1.0.1]\n"                                                  /* 17 */
    "    hosts:\n"                                                                         /* 18 */
    "      - {address: 10.1.0.5, mac: \"02:00:00:00:00:05\", vtep: 10.1.0.11}\n"           /* 19 */
    "      - {address: 10.1.1.6, mac: \"02:00:00:00:00:06\"}\n"                            /* 20 */
    "    acl:\n"                                                                           /* 21 */
    "      - {action: deny, source: 10.1.0.66/32, destination: 0.0.0.0/0}\n"               /* 22 */
    "      - {action: allow, source_ports: 49152-65535, operations: [write, read]}\n"      /* 23 */
    "    guarantee: 6Gbps\n"                                                               /* 24 */
    "    memory_percent: 60\n"                                                             /* 25 */
    "  - name: blue\n"                                                                     /* 26 */
    "    vni: 5002\n"                                                                      /* 27 */
    "    prefixes: [{prefix: 10.1.0.0/24, at: vtep}, {prefix: 10.2.0.0/24, at: b}]\n"      /* 28 */
    "    guarantee: 4Gbps\n";                                                              /* 29 */

static void test_good(void **state)
{
	struct conf *c = conf_good(good);
	const struct tenant_cfg *t = &c->tenant[0].cfg, *u = &c->tenant[1].cfg;
	static const uint8_t mac[6] = {2, 0x52, 0x57, 0, 0x13, 0x89};

	assert_int_equal(c->tenants, 2);
	assert_string_equal(t->name, "red");
	assert_int_equal(t->vni, 5001);
	assert_int_equal(t->vlan, 101);
	assert_int_equal(t->prefixes, 3);
	assert_int_equal(t->prefix[0].at.side, TENANT_VTEP);
	assert_int_equal(t->prefix[1].at.side, TENANT_LAN);
	assert_int_equal(t->prefix[2].at.side, TENANT_TUNNEL);
	assert_int_equal(t->prefix[2].at.tunnel, 0);
	assert_int_equal(t->prefix[2].p.len, 96 + 24);
	assert_int_equal(t->vteps, 2);
	assert_int_equal(t->hosts, 2);
	assert_int_equal(t->host[0].mac[5], 5);
	assert_int_equal(t->rules, 2);
	assert_false(t->rule[0].allow);
	assert_int_equal(t->rule[0].src.len, 128);
	assert_int_equal(t->rule[0].dst.len, 96);
	assert_int_equal(t->rule[0].classes, ACL_ALL);
	assert_int_equal(t->rule[0].sport_hi, 65535);
	assert_true(t->rule[1].allow);
	assert_int_equal(t->rule[1].src.len, 0);
	assert_int_equal(t->rule[1].sport_lo, 49152);
	assert_int_equal(t->rule[1].classes, 1u << ACL_WRITE | 1u << ACL_READ);
	assert_true(t->guarantee_Bps == 750000000 && t->limit_Bps == 0);
	assert_int_equal(t->memory_ppm, 600000);
	assert_memory_equal(t->gw_mac, mac, 6);
	assert_int_equal(c->tenant[0].line, 9);
	assert_int_equal(c->tenant[1].line, 26);
	/* defaults */
	assert_true(u->allow_default);
	assert_int_equal(u->weight, 1);
	assert_int_equal(u->dscp.map[63], 63);
	assert_memory_equal(&u->dscp, &u->dscp_congested, sizeof(u->dscp));
	assert_int_equal(u->ack_mode, TENANT_ACK_NEAR);
	conf_free(c);
}

static void test_derived(void **state)
{
	char *text = conf_change(good, 0,
	    "    dscp: 26\n    retry: 9\nconnections: {ack_mode: far, admission: cm, ack_timeout_min: 7ms, "
	    "rnr_retry: 2}");
	struct conf *c = conf_good(text);

	assert_int_equal(c->tenant[0].cfg.ack_mode, TENANT_ACK_FAR);
	assert_int_equal(c->tenant[1].cfg.dscp_congested.map[5], 26);
	assert_int_equal(c->tenant[0].cfg.admission, TENANT_ADMISSION_CM);
	assert_int_equal(c->tenant[0].cfg.timers.ack_min, 7 * RWY_MS);
	assert_int_equal(c->tenant[0].cfg.timers.ack_max, RWY_SEC);
	assert_int_equal(c->tenant[0].cfg.timers.rnr_retry, 2);
	assert_int_equal(c->tenant[0].cfg.timers.retry, 7);
	assert_int_equal(c->tenant[1].cfg.timers.retry, 9);
	conf_free(c);
	free(text);
	text = conf_change(
	    good, 29, "    dscp_congested: 8\n    gateway_mac: \"0a:00:00:00:00:01\"\n    ack_mode: end");
	c = conf_good(text);
	assert_int_equal(c->tenant[1].cfg.dscp_congested.map[5], 8);
	assert_int_equal(c->tenant[1].cfg.gw_mac[0], 10);
	assert_int_equal(c->tenant[1].cfg.ack_mode, TENANT_ACK_END);
	conf_free(c);
	free(text);
}

static void test_modes(void **state)
{
	char *text = conf_change(good, 0,
	    "    ack_modes:\n      - {from: 10.1.0.0/24, to: 10.2.0.7/32, mode: end}\n"
	    "      - {mode: causal}\nconnections: {ack_modes: [{to: 10.9.0.0/16, mode: far}]}");
	struct conf *c = conf_good(text);
	const struct tenant_cfg *t = &c->tenant[c->tenants - 1].cfg;

	assert_int_equal(t->modes, 2);
	assert_int_equal(t->mode[0].from.len, 96 + 24);
	assert_int_equal(t->mode[0].to.len, 128);
	assert_int_equal(t->mode[0].to.addr.b[15], 7);
	assert_int_equal(t->mode[0].mode, TENANT_ACK_END);
	assert_int_equal(t->mode[1].from.len, 0);
	assert_int_equal(t->mode[1].mode, TENANT_ACK_CAUSAL);
	assert_int_equal(c->modes, 1);
	assert_int_equal(c->mode[0].to.len, 96 + 16);
	assert_int_equal(c->mode[0].mode, TENANT_ACK_FAR);
	conf_free(c);
	free(text);
}

static const struct conf_bad values[] = {
    {9, "  - name: re d", 0, "expected a name of at most 31"},
    {10, "    vni: 0", 0, "expected an integer from 1 to 16777215 for `vni`, found `0`"},
    {10, "    vni: 16777216", 0, "found `16777216`"},
    {10, "    vni: \"5001\"", 0, "found the text"},
    {10, "", 9, "expected `vni`: an integer from 1 to 16777215, found nothing"},
    {10, "    vni: 5001\n    vnii: 1", 11, "expected `vni` or another known key of tenants[], found `vnii`"},
    {10, "    vni: 5001\n    vni: 1", 11, "expected each key once, found `vni` again (first in line 10)"},
    {11, "    vlan: 4095", 0, "from 0 to 4094"},
    {12, "    prefixes: []\n    x:", 0, "expected a list of 1 to 1024 mappings for `prefixes`"},
    {13, "      - {prefix: 10.1.0.1/24, at: vtep}", 0, "without host bits, `10.1.0.0/24`"},
    {13, "      - {prefix: any, at: vtep}", 0, "expected a prefix such as"},
    {13, "      - {prefix: '::/0', at: vtep}", 0, "2000::/3"},
    {13, "      - {prefix: 10.1.0.0/24}", 0, "expected `at`: `vtep`, `vlan` or a tunnel's name"},
    {13, "      - {prefix: 10.1.0.0/24, at: site-d}", 0,
        "expected `vtep`, `vlan` or a tunnel's name for `at`, perhaps `site-c`, found `site-d`"},
    {13, "      - {prefix: 10.1.0.0/24, at: xyzzyx}", 0, "tunnel's name for `at`, found `xyzzyx`"},
    {13, "      - {prefix: 10.1.0.0/24, att: vtep}", 0,
        "expected `at` or another known key of tenants[].prefixes[], found `att`"},
    {13, "      - 10.1.0.0/24", 0, "mappings for `prefixes`, found `10.1.0.0/24`"},
    {16, "    vteps: [224.0.0.1]", 0, "addresses for `vteps`, found `224.0.0.1`"},
    {16, "    vteps: 10.1.0.11", 0, "a list of at most 256"},
    {17, "    gateway_addresses: [10.1.0.1, 10.1.0.2]", 0, "at most one IPv4 and one IPv6"},
    {17, "    gateway_mac: 03:00:00:00:00:01", 0, "a station's MAC address"},
    {17, "    gateway_mac: 00:00:00:00:00:00", 0, "a station's MAC address"},
    {17, "    gateway_mac: 02:00:00:00:00:0", 0, "a station's MAC address"},
    {17, "    gateway_mac: 02:00:00:00:00:010", 0, "a station's MAC address"},
    {17, "    proxy_arp: yes", 0, "expected one of `false`, `true` for `proxy_arp`, found `yes`"},
    {19, "      - {address: 10.1.0.5, mac: \"02:00:00:00:00:05\", vtepp: 10.1.0.11}", 0,
        "expected `vtep` or another known key of tenants[].hosts[]"},
    {22, "      - {action: drop}", 0, "expected one of `deny`, `allow` for `action`, found `drop`"},
    {22, "      - {source: any}", 0, "expected `action`"},
    {22, "      - {action: deny, source: 10.1.0.66}", 0, "expected a prefix such as"},
    {22, "      - {action: deny, source_ports: 5-4}", 0, "expected a UDP port or a range"},
    {22, "      - {action: deny, source_ports: 65536}", 0, "expected a UDP port or a range"},
    {22, "      - {action: deny, operations: []}", 0, "expected a list of one of `send`, `write`"},
    {22, "      - {action: deny, operations: [writ]}", 0, "found `writ`"},
    {22, "      - {action: deny, operations: [read, read]}", 0, "found `read` again"},
    {22, "      - {action: deny, destinaton: any}", 0,
        "expected `destination` or another known key of tenants[].acl[], found `destinaton`"},
    {24, "    guarantee: 7kbps", 0, "expected a rate from 8kbps to 1Tbps, or `none` for `guarantee`"},
    {24, "    guarantee: 0", 0, "found `0`"},
    {24, "    weight: 0", 0, "from 1 to 1000"},
    {24, "    priority: 8", 0, "from 0 to 7"},
    {24, "    dscp: 64", 0, "expected an integer from 0 to 63, or `keep` for `dscp`, found `64`"},
    {24, "    acl_default: permit", 0, "one of `deny`, `allow`"},
    {24, "    ack_mode: late", 0, "one of `near`, `far`, `end`, `causal`, `site`"},
    {24, "    admission: controller", 0, "`open` or `cm` for `admission` without `controller.urls`"},
    {24, "    retry: 256", 0, "expected an integer from 1 to 255 for `retry`, found `256`"},
    {24, "    ack_timeout_min: 0ms", 0, "from 1ms to 1min for `ack_timeout_min`, found `0ms`"},
    {24, "    ack_timeout_min: 2s", 0, "at least `ack_timeout_min`, 2s, for `ack_timeout_max`, found `1s`"},
    {24, "    ack_timeout_max: 2ms", 0, "at least `ack_timeout_min`, 50ms, for `ack_timeout_max`"},
    {24, "    ack_modes: [{from: 10.1.0.0/24, mode: late}]", 0,
        "one of `near`, `far`, `end`, `causal`, `site` for `mode`, found `late`"},
    {24, "    ack_modes: [{from: 10.1.0.1/24, mode: end}]", 0,
        "expected a prefix without host bits, `10.1.0.0/24`, found `10.1.0.1/24`"},
    {24, "    ack_modes: [{to: 10.1.0.0/24}]", 0, "expected `mode`: one of"},
    {25, "    memory_percent: 101", 0, "expected a percentage from 0 to 100 for `memory_percent`"},
    {25, "    memory_percent: 0.00001", 0, "expected a percentage"},
    {0, "  - 5", 30, "mappings for `tenants`, found `5`"},
};

static const struct conf_bad rules[] = {
    {26, "  - name: red", 0, "expected a name of its own, found `red`, which is tenant 1's too (line 9)"},
    {27, "    vni: 5001", 0, "expected a VNI of its own, found `5001`, which is tenant `red`'s too"},
    {27, "    vni: 5002\n    vlan: 101", 28,
        "expected a VLAN of its own, found `101`, which is tenant `red`'s too"},
    {27, "    vni: 5002\n    vlan: 7", 28,
        "expected a VLAN of its own, found `7`, which is LAN port `lan`'s"},
    {11, "", 14, "expected `vtep` or a tunnel's name for `at` of a tenant without `vlan`, found `vlan`"},
    {15, "      - {prefix: 10.1.1.0/24, at: b}", 0, "expected each prefix once, found `10.1.1.0/24` again"},
    {16, "    vteps: [10.1.0.11, 10.1.0.12, 10.1.0.11]", 0,
        "expected each VTEP once, found `10.1.0.11` again"},
    {16, "    vteps: [10.1.0.11, 10.1.0.1]", 0,
        "expected a host's VTEP, found `10.1.0.1`, which is the gateway's own"},
    {16, "    vteps: [10.1.0.11, 192.0.2.1]", 0, "`192.0.2.1`, which is the gateway's own"},
    {17, "    gateway_addresses: ['fd00::1', 10.2.0.1]", 0,
        "expected gateway_addresses in prefixes that are here (`vtep`, `vlan`), found `10.2.0.1`"},
    {19, "      - {address: 10.1.1.5, mac: '02:00:00:00:00:05', vtep: 10.1.0.11}", 0,
        "expected an address in a prefix at `vtep` for a host with `vtep`, found `10.1.1.5`"},
    {19, "      - {address: 10.2.0.5, mac: '02:00:00:00:00:05'}", 0,
        "expected an address in a prefix at `vlan` for a host without `vtep`, found `10.2.0.5`"},
    {19, "      - {address: 10.1.0.5, mac: '02:00:00:00:00:05', vtep: 10.1.0.13}", 0,
        "expected one of the tenant's `vteps`, found `10.1.0.13`"},
    {20, "      - {address: 10.1.0.5, mac: '02:00:00:00:00:05', vtep: 10.1.0.12}", 0,
        "expected each host once, found `10.1.0.5` again"},
    {22, "      - {action: deny, source: 10.3.0.0/24}", 0,
        "expected a prefix that meets the tenant's own, found `10.3.0.0/24`"},
    {22, "      - {action: deny, destination: 'fd00::/64'}", 0, "meets the tenant's own, found `fd00::/64`"},
    {22, "      - {action: deny, source: 10.1.0.0/24, destination: 'fd00::/64'}", 0,
        "`source` and `destination` are of different families"},
    {24, "    guarantee: 2Gbps\n    limit: 1Gbps", 25,
        "expected at least `guarantee`, 2Gbps, for `limit`, found `1Gbps`"},
    {29, "    guarantee: 4001Mbps", 0,
        "expected guarantees of at most 10Gbps in all on tunnel `b`, found 10001Mbps up to here"},
    {24, "    guarantee: 11Gbps", 0, "on tunnel `b`, found 11Gbps up to here"},
    {29, "    memory_percent: 40.5", 0,
        "expected at most 100 for `memory_percent` of all tenants together, found 100.5 up to here"},
    {7, "  - {name: vtep, port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none}", 0,
        "expected another name for a tunnel where there are tenants, found `vtep`"},
    {7, "  - {name: vlan, port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none}", 0,
        "found `vlan`"},
};

static void test_values(void **state)
{
	CONF_CHECK_BAD(good, values);
}

static void test_rules(void **state)
{
	CONF_CHECK_BAD(good, rules);
}

/* Messages point at the value, not at the beginning of its line. */
static void test_column(void **state)
{
	char *text = conf_change(good, 15, "      - {prefix: 10.2.0.0/24, at: nowhere}");
	struct conf *c = NULL;
	struct conf_error err;

	assert_int_equal(conf_parse(&c, text, strlen(text), "x.yaml", &err), RWY_EINVAL);
	assert_int_equal(err.line, 15);
	assert_int_equal(err.column, 35);
	free(text);
}

/* A gateway with all tenants from the API has `tenants: []`; without the key, tunnels need
 * prefixes. */
static void test_tunnel_prefixes(void **state)
{
	const char *at = strstr(good, "tenants:");
	struct conf_error err;
	struct conf *c = NULL;
	char *text;

	assert_int_equal(conf_parse(&c, good, (size_t)(at - good), "x.yaml", &err), RWY_EINVAL);
	assert_int_equal(err.line, 6);
	assert_non_null(strstr(err.msg, "expected `prefixes`: a list of 1 to 64 prefixes"));
	assert_true(asprintf(&text, "%.*stenants: []\n", (int)(at - good), good) > 0);
	c = conf_good(text);
	assert_int_equal(c->tenants, 0);
	conf_free(c);
	free(text);
}

/* n tenants with 4 prefixes and `acl` rules each, malloced. */
static char *many(unsigned n, unsigned acl, size_t *len)
{
	char *text;
	FILE *f = open_memstream(&text, len);

	fprintf(f, "%.*stenants:\n", (int)(strstr(good, "tenants:") - good), good);
	for (unsigned i = 1; i <= n; i++) {
		fprintf(f, "  - name: t%u\n    vni: %u\n    prefixes:\n", i, i);
		for (unsigned k = 0; k < 4; k++)
			fprintf(f, "      - {prefix: 10.%u.0.0/24, at: %s}\n", k, k % 2 ? "b" : "vtep");
		for (unsigned k = 0; k < acl; k++)
			fprintf(f,
			    "%s      - {action: deny, source: 10.0.0.%u/32, operations: [write, read]}\n",
			    k ? "" : "    acl:\n", k);
	}
	fclose(f);
	return text;
}

static void test_many(void **state)
{
	struct conf_error err;
	struct conf *c = NULL;
	size_t len;
	char *text = many(4000, 10, &len);

	if (conf_parse(&c, text, len, "x.yaml", &err))
		fail_msg("line %u: %s", err.line, err.msg);
	assert_int_equal(c->tenants, 4000);
	assert_int_equal(c->tenant[3999].cfg.vni, 4000);
	assert_int_equal(c->tenant[3999].cfg.rules, 10);
	conf_free(c);
	free(text);
	text = many(TENANT_COUNT_MAX + 1, 0, &len);
	assert_int_equal(conf_parse(&c, text, len, "x.yaml", &err), RWY_EINVAL);
	assert_int_equal(err.line, 9 + 7 * TENANT_COUNT_MAX);
	assert_non_null(strstr(err.msg, "expected at most 16384 entries in `tenants`, found more"));
	free(text);
}

/* --- one tenant ------------------------------------------------------------------------------- */

static struct conf_tenant one(
    const struct conf *c, const char *text, const char *name, const struct conf_tenant *base)
{
	struct conf_tenant t;
	struct conf_error err;

	if (conf_tenant_parse(c, text, strlen(text), name, base, &t, &err))
		fail_msg("%u:%u: %s\n%s", err.line, err.column, err.msg, text);
	return t;
}

static void one_bad(const struct conf *c, const char *text, const char *name, const struct conf_tenant *base,
    const char *want)
{
	struct conf_tenant t;
	struct conf_error err;

	if (conf_tenant_parse(c, text, strlen(text), name, base, &t, &err) != RWY_EINVAL ||
	    !strstr(err.msg, want))
		fail_msg("`%s` wanted, got %s\n%s", want, err.msg, text);
	assert_null(t.cfg.prefix);
}

static void test_one_new(void **state)
{
	static const char json[] = "{\"vni\":7,\"prefixes\":[{\"prefix\":\"10.1.0.0/24\",\"at\":\"vtep\"},"
	                           "{\"prefix\":\"fd00:2::/64\",\"at\":\"site-c\"}],\"proxy_arp\":true}";
	struct conf *c = conf_good(good);
	struct conf_tenant t = one(c, json, "green", NULL);

	assert_string_equal(t.cfg.name, "green");
	assert_int_equal(t.cfg.vni, 7);
	assert_int_equal(t.cfg.prefix[1].at.tunnel, 1);
	assert_true(t.cfg.proxy_arp);
	conf_tenant_fini(&t);
	t = one(c, "name: green\nvni: 7\nprefixes: [{prefix: 10.1.0.0/24, at: vtep}]\n", NULL, NULL);
	assert_string_equal(t.cfg.name, "green");
	conf_tenant_fini(&t);
	one_bad(c, json, NULL, NULL, "expected `name`");
	one_bad(c, json, "no good", NULL, "expected a tenant's name");
	one_bad(c, "name: red\nvni: 7\nprefixes: [{prefix: 10.1.0.0/24, at: vtep}]\n", "green", NULL,
	    "expected `green` for `name`, found `red`");
	one_bad(c, "vni: 7", "green", NULL, "expected `prefixes`");
	one_bad(c, "", "green", NULL, "found an empty text");
	one_bad(c, "[]", "green", NULL, "expected a mapping of keys");
	one_bad(c, "vni: 7\nvlan: 7\nprefixes: [{prefix: 10.1.0.0/24, at: vtep}]\n", "green", NULL,
	    "which is LAN port `lan`'s");
	one_bad(c, "vni: 7\nprefixes: [{prefix: 10.1.0.0/24, at: b}]\nguarantee: 11Gbps\n", "green", NULL,
	    "of at most 10Gbps in all on tunnel `b`, found 11Gbps");
	conf_free(c);
}

/* Absent keys stay unchanged; values derived from changed keys follow. */
static void test_one_changed(void **state)
{
	struct conf *c = conf_good(good);
	const struct conf_tenant *base = &c->tenant[0];
	struct conf_tenant t = one(c, "{limit: 8Gbps, vteps: [10.1.0.11]}", "red", base), u;

	assert_true(t.cfg.limit_Bps == 1000000000 && t.cfg.guarantee_Bps == base->cfg.guarantee_Bps);
	assert_int_equal(t.cfg.vteps, 1);
	assert_int_equal(t.cfg.prefixes, 3);
	assert_ptr_not_equal(t.cfg.prefix, base->cfg.prefix);
	assert_memory_equal(t.cfg.gw_mac, base->cfg.gw_mac, 6);
	u = one(c, "{limit: none, vni: 5003, dscp: 10, gateway_mac: '0a:00:00:00:00:01'}", NULL, &t);
	conf_tenant_fini(&t);
	assert_true(u.cfg.limit_Bps == 0);
	assert_int_equal(u.cfg.dscp_congested.map[0], 10);
	t = one(c,
	    "{vni: 5004, dscp_congested: 8, prefixes: [{prefix: 10.1.0.0/24, at: vtep}, {prefix: "
	    "10.1.1.0/24, at: vlan}]}",
	    NULL, &u);
	conf_tenant_fini(&u);
	assert_int_equal(t.cfg.gw_mac[0], 10); /* its own, whatever the VNI */
	assert_int_equal(t.cfg.dscp.map[0], 10);
	assert_int_equal(t.cfg.dscp_congested.map[0], 8);
	assert_int_equal(t.cfg.prefixes, 2);
	conf_tenant_fini(&t);
	t = one(c, "{vni: 5003}", "red", base);
	assert_int_equal(t.cfg.gw_mac[5], 5003 & 0xff);
	conf_tenant_fini(&t);
	one_bad(c, "{name: blue}", "red", base, "expected `red` for `name`, found `blue`");
	one_bad(c, "{vlan: 0}", "red", base, "of a tenant without `vlan`");
	one_bad(c, "{limit: 1Gbps}", "red", base, "expected at least `guarantee`");
	one_bad(c, "{acl: [{action: deny, source: 10.9.0.0/24}]}", "red", base, "meets the tenant's own");
	conf_free(c);
}

/* --- back to text ---------------------------------------------------------------------------------- */

static const struct {
	const char *path;
	const char *value;
} odd[] = {{"vlan", "102"}, {"vtep_learning", "true"}, {"gateway_addresses", "[10.1.0.1]"},
    {"gateway_mac", "'0a:00:00:00:00:01'"}, {"proxy_arp", "true"}, {"acl_default", "deny"},
    {"ack_mode", "end"}, {"ack_modes", "[{from: 10.1.0.0/24, mode: end}, {to: 10.2.0.0/16, mode: causal}]"},
    {"admission", "cm"}, {"ack_timeout_min", "2ms"}, {"ack_timeout_max", "3s"}, {"retry", "99"},
    {"rnr_retry", "0"}, {"limit", "9Gbps"}, {"weight", "3"}, {"priority", "7"}, {"dscp", "0"},
    {"dscp_congested", "63"}, {"pcp", "7"}, {"memory_percent", "0.0001"},
    {"vteps", "[10.1.0.12, 'fd00::5', 10.1.0.11]"}};

static void same(const struct conf_tenant *a, const struct conf_tenant *b)
{
	struct tenant_cfg x = a->cfg, y = b->cfg;

	assert_memory_equal(x.prefix, y.prefix, x.prefixes * sizeof(*x.prefix));
	assert_int_equal(x.rules, y.rules);
	for (unsigned i = 0; i < x.rules; i++) {
		assert_true(
		    prefix_eq(&x.rule[i].src, &y.rule[i].src) && prefix_eq(&x.rule[i].dst, &y.rule[i].dst));
		assert_int_equal(x.rule[i].sport_lo, y.rule[i].sport_lo);
		assert_int_equal(x.rule[i].sport_hi, y.rule[i].sport_hi);
		assert_int_equal(x.rule[i].classes, y.rule[i].classes);
		assert_int_equal(x.rule[i].allow, y.rule[i].allow);
	}
	assert_int_equal(x.vteps, y.vteps);
	assert_memory_equal(x.vtep, y.vtep, x.vteps * sizeof(*x.vtep));
	assert_int_equal(x.hosts, y.hosts);
	assert_memory_equal(x.host, y.host, x.hosts * sizeof(*x.host));
	x.prefix = y.prefix;
	x.rule = y.rule;
	x.vtep = y.vtep;
	x.host = y.host;
	assert_memory_equal(&x, &y, sizeof(x));
}

static void round_trip(const struct conf *c, const struct conf_tenant *t)
{
	struct conf_tenant u;
	struct conf *d;
	size_t len;
	char *text, *file;
	FILE *f = open_memstream(&text, &len);

	conf_tenant_print(f, c, t, CONF_JSON);
	fclose(f);
	assert_null(strchr(text, '\n'));
	u = one(c, text, NULL, NULL);
	same(t, &u);
	conf_tenant_fini(&u);
	free(text);
	f = open_memstream(&text, &len);
	conf_tenant_print(f, c, t, CONF_YAML);
	fclose(f);
	assert_true(
	    asprintf(&file, "%.*stenants:\n%s", (int)(strstr(good, "tenants:") - good), good, text) > 0);
	d = conf_good(file);
	same(t, &d->tenant[0]);
	conf_free(d);
	free(file);
	free(text);
}

static void test_print(void **state)
{
	struct conf *c = conf_good(good);

	round_trip(c, &c->tenant[0]);
	round_trip(c, &c->tenant[1]);
	for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		char text[128];
		struct conf_tenant t;

		snprintf(text, sizeof(text), "%s: %s", odd[i].path, odd[i].value);
		t = one(c, text, NULL, &c->tenant[0]);
		round_trip(c, &t);
		conf_tenant_fini(&t);
	}
	conf_free(c);
}

static void test_print_yaml(void **state)
{
	static const char want[] = "  - name: blue\n"
	                           "    vni: 5002\n"
	                           "    prefixes:\n"
	                           "      - {prefix: 10.1.0.0/24, at: vtep}\n"
	                           "      - {prefix: 10.2.0.0/24, at: b}\n"
	                           "    guarantee: 4Gbps\n";
	struct conf *c = conf_good(good);
	char text[512] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	conf_tenant_print(f, c, &c->tenant[1], CONF_YAML);
	fclose(f);
	assert_string_equal(text, want);
	conf_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_derived),
	    cmocka_unit_test(test_modes),
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_rules),
	    cmocka_unit_test(test_column),
	    cmocka_unit_test(test_tunnel_prefixes),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_one_new),
	    cmocka_unit_test(test_one_changed),
	    cmocka_unit_test(test_print),
	    cmocka_unit_test(test_print_yaml),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
