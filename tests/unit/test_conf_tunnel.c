/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels in the configuration: their keys, paths, UDP ports and prefixes. Each case is
 * the small configuration (tests/lib/conf_change.h) with one line changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/schema.h"
#include "conf/value.h"
#include "engine/engine.h"
#include "tests/lib/conf_change.h"

/* One tunnel alone, new and changed. */
static void test_tunnel(void **state)
{
	static const char all[] =
	    "{port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none, rate: 1Gbps}";
	struct conf *c = conf_good(conf_small);
	struct conf_tunnel t, u;
	struct conf_error err;

	assert_int_equal(conf_tunnel_parse(all, sizeof(all) - 1, "t", NULL, &t, &err), 0);
	assert_string_equal(t.name, "t");
	assert_int_equal(t.udp_port, 4793);
	assert_int_equal(
	    conf_tunnel_parse("{rate: 2Gbps, prefixes: [10.7.0.0/24]}", 38, "t", &t, &u, &err), 0);
	assert_int_equal(u.rate_Bps, 250000000);
	assert_int_equal(u.prefixes, 1);
	assert_true(rwy_ip_eq(&u.remote, &t.remote));
	assert_int_equal(conf_tunnel_parse("{rate: 2}", 9, "t", &t, &u, &err), RWY_EINVAL);
	assert_int_equal(conf_tunnel_parse("{name: u}", 9, "t", &t, &u, &err), RWY_EINVAL);
	assert_int_equal(conf_tunnel_parse("{rate: 2Gbps}", 13, "t", NULL, &u, &err), RWY_EINVAL);
	assert_int_equal(conf_tunnel_parse(all, sizeof(all) - 1, "-", NULL, &u, &err), RWY_EINVAL);
	c->tunnel[1] = t;
	c->tunnels = 2;
	assert_int_equal(conf_tunnels_check(c, &err), 0);
	assert_int_equal(c->tunnel[1].port_idx, 1);
	c->tunnel[1].remote = c->tunnel[0].remote;
	assert_int_equal(conf_tunnels_check(c, &err), RWY_EINVAL);
	assert_non_null(strstr(err.msg, "expected other UDP ports"));
	c->tunnel[1].remote = t.remote;
	c->tunnel[1].carrier = CONF_CARRIER_TCP;
	c->tunnel[1].tcp_port = 0;
	assert_int_equal(conf_tunnels_check(c, &err), RWY_EINVAL);
	assert_non_null(strstr(err.msg, "expected a `tcp_port` with `carrier: tcp`"));
	c->tunnel[1] = t;
	c->tunnel[1].remote = c->tunnel[0].remote;
	c->tunnel[0].name[0] = 0; /* free */
	assert_int_equal(conf_tunnels_check(c, &err), 0);
	conf_free(c);
}

static void test_keys(void **state)
{
	static const struct conf_bad bad[] = {
	    {2, "  nam: a", 0, "expected `name` or another known key of gateway, found `nam`"},
	    {2, "  xyzzy: a", 0, "expected a known key of gateway, found `xyzzy`"},
	    {0, "conections: {}\n", 19, "expected `connections` or another known key, found `conections`"},
	    {0, "\"a\\nb\": 1\n", 19, "found `a?b`"},
	    {5, "    devise: x", 0, "expected `device` or another known key of ports[], found `devise`"},
	    {0, "gateway: {name: b}\n", 19,
	        "expected each key once, found `gateway` again (first in line 1)"},
	    {5, "    name: lan", 0, "expected each key once, found `name` again (first in line 4)"},
	    {2, "  workers: 1", 1, "expected `name`: a name"},
	    {5, "", 4, "expected `device`"},
	    {6, "", 4, "expected `role`: one of `lan`, `wan`, found nothing"},
	    {7, "", 4, "expected `addresses`"},
	    {17, "", 13, "expected `keys.certificate`, `keys.key` and `keys.ca` for the keys of tunnel `b`"},
	    {17, "    security: keys", 17, "`security: none`"},
	    {12, "memory: 1", 13, "expected YAML, found: "},
	};
	CONF_CHECK_BAD(conf_small, bad);
	conf_expect_bad(
	    "gateway: {name: a}\n", 19, 0, "expected `ports`: a list of 2 to 16 mappings, found nothing");
	conf_expect_bad("gateway: 1\n", 11, 1, "expected a mapping of keys for `gateway`, found `1`");
	conf_expect_bad("ports: []\n", 10, 0, "expected `gateway.name`: a name");
	conf_expect_bad("gateway: {name: a}\nports: []\n", 29, 2,
	    "expected a list of 2 to 16 mappings for `ports`, found 0");
	conf_expect_bad("gateway: {name: a}\nports: [1]\n", 30, 2,
	    "expected a list of 2 to 16 mappings for `ports`, found `1`");
}

/* --- paths ------------------------------------------------------------------------------------- */
/* The conf_small file with paths behind line 18. The caller frees it. */
static char *with_paths(const char *paths)
{
	static char line[1024];

	snprintf(line, sizeof(line), "    prefixes: [10.2.0.0/24]\n    paths:\n%s", paths);
	return conf_change(conf_small, 18, line);
}

static void test_paths(void **state)
{
	char *text = with_paths("      - {udp_port: 5000}\n"
	                        "      - {remote: 192.0.2.3, udp_port: 4793, source_port: 6000, dscp: 10, "
	                        "rate: 1Gbps, use: never, label: pe-1/p}\n    own_path: spare");
	struct conf *c;
	struct conf_error err;
	struct conf_path p;

	if (conf_parse(&c, text, strlen(text), "x.yaml", &err))
		fail_msg("line %u: %s", err.line, err.msg);
	assert_int_equal(c->tunnel[0].paths, 2);
	assert_int_equal(c->tunnel[0].path_probe, 5 * RWY_MS);
	p = conf_tunnel_path(&c->tunnel[0], 0);
	assert_int_equal(p.udp_port, 4793);
	assert_int_equal(p.source_port, 4793);
	assert_int_equal(p.use, CONF_USE_SPARE);
	p = conf_tunnel_path(&c->tunnel[0], 1);
	assert_string_equal(p.port, "wan");
	assert_int_equal(p.port_idx, 1);
	assert_true(rwy_ip_eq(&p.local, &c->tunnel[0].local));
	assert_true(rwy_ip_eq(&p.remote, &c->tunnel[0].remote));
	assert_int_equal(p.udp_port, 5000);
	assert_int_equal(p.source_port, 5000);
	assert_int_equal(p.dscp, 0);
	assert_int_equal(p.rate_Bps, c->tunnel[0].rate_Bps);
	assert_int_equal(p.use, CONF_USE_ALWAYS);
	p = conf_tunnel_path(&c->tunnel[0], 2);
	assert_false(rwy_ip_eq(&p.remote, &c->tunnel[0].remote));
	assert_int_equal(p.source_port, 6000);
	assert_int_equal(p.dscp, 10);
	assert_int_equal(p.rate_Bps, 125000000);
	assert_int_equal(p.use, CONF_USE_NEVER);
	assert_string_equal(p.label, "pe-1/p");
	conf_free(c);
	free(text);
}

static void test_bad_paths(void **state)
{
	static const struct {
		const char *paths, *want;
		unsigned at;
	} bad[] = {
	    {"      - {remote: 192.0.2.3}", "expected `udp_port`", 20},
	    {"      - {udp_port: 4793}", "expected other UDP ports than path 0 of tunnel `b`", 20},
	    {"      - {udp_port: 5000}\n      - {udp_port: 5000}", "than path 1 of tunnel `b`", 21},
	    {"      - {udp_port: 4791}", "other than RoCE's 4791", 20},
	    {"      - {udp_port: 5000, port: lan}", "which has role `lan`", 20},
	    {"      - {udp_port: 5000, port: other}", "which is no port's name", 20},
	    {"      - {udp_port: 5000, local: 192.0.2.9}", "expected an address of port `wan`", 20},
	    {"      - {udp_port: 5000, remote: 192.0.2.1}", "which is our own", 20},
	    {"      - {udp_port: 5000, remote: 2001:db8::1}", "expected an IPv4 address as in `local`", 20},
	    {"      - {udp_port: 5000, dscp: 64}", "dscp", 20},
	    {"      - {udp_port: 5000, rate: 1kbps}", "rate", 20},
	    {"      - {udp_port: 5000, use: seldom}", "one of `always`, `spare`, `never`, `granted`", 20},
	    {"      - {udp_port: 5000, label: \"\"}", "label", 20},
	    {"      - {udp_port: 5000}\n    own_path: never", "one of `always`, `spare`", 21},
	    {"      []\n    own_path: spare", "expected `paths` beside `own_path: spare`", 21},
	    {"      - {udp_port: 5000, colour: red}", "a known key of tunnels[].paths[]", 20},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *text = with_paths(bad[i].paths);

		conf_expect_bad(text, strlen(text), bad[i].at, bad[i].want);
		free(text);
	}
}

static void test_udp_ports_and_workers(void **state)
{
	char *many = conf_change(conf_small, 2, "  name: a\n  workers: 64"), *text;

	text = conf_change(many, 18, "    security: none\n    udp_port: 65500");
	conf_expect_bad(
	    text, strlen(text), 19, "expected at most 65472 for `udp_port` with 64 workers, found `65500`");
	free(text);
	text = conf_change(many, 18, "    security: none\n    udp_port: 4780");
	conf_expect_bad(text, strlen(text), 19, "other than RoCE's 4791, found `4780` to `4843`");
	free(text);
	text = conf_change(many, 18, "    security: none\n    udp_port: 65472");
	conf_free(conf_good(text));
	free(text);
	text = conf_change(many, 18, "    security: none\n    rate: 63.9Mbps");
	conf_expect_bad(text, strlen(text), 19,
	    "expected at least 64Mbps for `rate` with 64 workers, which share it, found `63900kbps`");
	free(text);
	free(many);
}

static void test_prefixes_in_all(void **state)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs(conf_small, f);
	for (unsigned t = 1; t <= 4; t++) {
		fprintf(f,
		    "  - {name: t%u, port: wan, local: 192.0.2.1, remote: 192.0.2.%u, security: none, "
		    "prefixes: [",
		    t, t + 2);
		for (unsigned i = 0; i < CONF_PREFIXES_MAX; i++)
			fprintf(f, "%s20.%u.%u.0/24", i ? ", " : "", t, i);
		fputs("]}\n", f);
	}
	fclose(f);
	conf_expect_bad(text, len, 22, "expected at most 256 prefixes in all tunnels, found 257 up to here");
	free(text);
	assert_int_equal(ENG_PREFIXES_MAX, 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tunnel),
	    cmocka_unit_test(test_keys),
	    cmocka_unit_test(test_paths),
	    cmocka_unit_test(test_bad_paths),
	    cmocka_unit_test(test_udp_ports_and_workers),
	    cmocka_unit_test(test_prefixes_in_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
