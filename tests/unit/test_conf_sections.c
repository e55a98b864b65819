/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of the configuration beside ports and tunnels: controller, network, admission,
 * siblings, security. Each case is
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

static void test_controller(void **state)
{
#define REST "ca: /c, certificate: /d, key: /k, site: s"
	static const struct conf_bad bad[] = {
	    {0, "controller: {urls: ['http://c'], " REST "}\n", 19,
	        "expected `https://host` or `https://host:port` in `urls`, found `http://c`"},
	    {0, "controller:\n  urls: ['https://c', 'https://c:0']\n", 20, "found `https://c:0`"},
	    {0, "controller: {urls: ['https://c:70000'], " REST "}\n", 19, "found `https://c:70000`"},
	    {0, "controller: {urls: ['https://c/x'], " REST "}\n", 19, "found `https://c/x`"},
	    {0, "controller: {urls: ['https://a@c'], " REST "}\n", 19, "found `https://a@c`"},
	    {0, "controller: {urls: ['https://'], " REST "}\n", 19, "found `https://`"},
	    {0, "controller: {urls: ['https://[fd00::1'], " REST "}\n", 19, "found `https://[fd00::1`"},
	    {0, "controller: {urls: ['https://c', 'https://c'], " REST "}\n", 19,
	        "expected each controller once, found `https://c` again"},
	    {0, "controller: {urls: ['https://c'], certificate: /d, key: /k, site: s}\n", 19,
	        "expected `ca` beside `urls`: a PEM file, found nothing"},
	    {0, "controller: {urls: ['https://c'], ca: /c, certificate: /d, key: /k}\n", 19,
	        "expected `site` beside `urls`"},
	    {0, "controller: {urls: ['https://c'], " REST ", document: x}\n", 19,
	        "expected an absolute path"},
	    {0, "controller: {urls: ['https://c'], " REST ", tcp_bandwidth: port}\n", 19, "`tcp_bandwidth`"},
	    {0, "controller: {urls: ['https://c'], " REST ", tcp_congestion_control: reno}\n", 19,
	        "`tcp_congestion_control`"},
	    {0, "controller: {urls: []}\n", 19, "a list of at most 8"},
	    {0, "controller: {url: a}\n", 19, "expected `urls` or another known key of controller"},
	};
	char *text = NULL;
	struct conf *c;

	CONF_CHECK_BAD(conf_small, bad);
	/* With one, tunnels need no prefixes, and no tunnel is needed. */
	assert_true(
	    asprintf(&text, "%scontroller: {urls: ['https://c', 'https://[fd00::1]:7443'], " REST "}\n",
	        conf_small) > 0);
	strstr(text, "    prefixes")[4] = '#';
	c = conf_good(text);
	assert_int_equal(c->controller.urls, 2);
	assert_string_equal(c->controller.url[1], "https://[fd00::1]:7443");
	assert_string_equal(c->controller.site, "s");
	assert_string_equal(c->controller.document, "/var/lib/roceway/document.json");
	assert_int_equal(c->controller.tcp_bandwidth_Bps, 0);
	assert_string_equal(c->controller.tcp_cc, "auto");
	assert_int_equal(c->tunnel[0].prefixes, 0);
	conf_free(c);
	memmove(
	    strstr(text, "tunnels:"), strstr(text, "controller:"), strlen(strstr(text, "controller:")) + 1);
	c = conf_good(text);
	assert_int_equal(c->tunnels, 0);
	conf_free(c);
	*strstr(text, "controller:") = 0;
	conf_expect_bad(
	    text, strlen(text), 0, "expected `tunnels`: a list of 1 to 64 entries, found nothing");
	free(text);
}

/* A control center's text, beside a tunnel of the file. */
static void test_network(void **state)
{
#define TUN(n, r, p)                                                                                         \
	"{\"name\": \"" n "\", \"port\": \"wan\", \"local\": \"192.0.2.1\", \"remote\": \"" r                \
	"\", \"security\": \"none\", \"prefixes\": [\"" p "\"]}"
	static const struct {
		const char *text, *want;
	} wrong[] = {
	    {"{\"gateway\": {\"name\": \"x\"}}", "expected `tunnels` or `tenants`, found `gateway`"},
	    {"{\"tunnels\": [" TUN("c", "192.0.2.2", "10.3.0.0/24") "]}",
	        "expected other UDP ports than tunnel"},
	    {"{\"tunnels\": [" TUN("c", "192.0.2.3", "10.2.0.0/24") "]}", "expected each prefix once"},
	    {"{\"tunnels\": [" TUN("site-b", "192.0.2.3", "10.3.0.0/24") "]}", "expected a name of its own"},
	    {"{\"tunnels\": [" TUN("c", "192.0.2.3", "10.1.0.0/25") "]}", "overlaps"},
	    {"{\"tunnels\": [" TUN("vlan", "192.0.2.3", "10.3.0.0/24") "]}", "expected another name"},
	    {"{\"tunnels\": 1}", "expected a list"},
	    {"{\"tunnels\": [], \"tenants\": [{\"name\": \"r\", \"vni\": 7, \"prefixes\": [{\"prefix\": "
	     "\"10.9.0.0/24\", \"at\": \"c\"}]}]}",
	        "expected `vtep`, `vlan` or a tunnel's name for `at`"},
	    {"{", "expected YAML"},
	    {"[]", "expected a mapping"},
	};
	static const char right[] = "{\"tunnels\": [" TUN("c", "192.0.2.3",
	    "10.3.0.0/24") "], \"tenants\": "
	                   "[{\"name\": \"r\", \"vni\": 7, \"prefixes\": [{\"prefix\": \"10.9.0.0/24\", "
	                   "\"at\": \"c\"}, {\"prefix\": \"10.8.0.0/24\", \"at\": \"site-b\"}]}]}";
	struct conf_error err;
	struct conf *base = conf_good(conf_small), *c = NULL;

	snprintf(base->tunnel[0].name, CONF_NAME, "site-b");
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const int rc =
		    conf_network_parse(&c, base, base->tunnel, 1, wrong[i].text, strlen(wrong[i].text), &err);

		if (rc != RWY_EINVAL || !strstr(err.msg, wrong[i].want))
			fail_msg("wanted %s, got %d %s", wrong[i].want, rc, err.msg);
		assert_null(c);
	}
	if (conf_network_parse(&c, base, base->tunnel, 1, right, sizeof(right) - 1, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(c->tunnels, 2);
	assert_string_equal(c->tunnel[1].name, "c");
	assert_int_equal(c->tunnel[1].port_idx, 1);
	assert_int_equal(c->tenant[0].cfg.prefix[0].at.tunnel, 1);
	assert_int_equal(c->tenant[0].cfg.prefix[1].at.tunnel, 0);
	conf_free(c);
	conf_free(base);
}

/* Workers that share address pairs keep no order between connections, and know no sibling. */
static void test_steering(void **state)
{
	static const struct conf_bad bad[] = {
	    {2, "  name: a\n  steering: both", 3, "expected one of `pair`, `qp` for `steering`"},
	    {2, "  name: a\n  steering: qp\nconnections: {ack_mode: causal}", 4,
	        "expected another ack mode beside `gateway.steering: qp`, found `causal`"},
	    {2, "  name: a\n  steering: qp\nconnections: {ack_modes: [{to: 10.2.0.0/24, mode: causal}]}", 4,
	        "expected another ack mode beside `gateway.steering: qp`"},
	    {2,
	        "  name: a\n  steering: qp\ntenants: [{name: r, vni: 7, vlan: 9, ack_mode: causal, "
	        "prefixes: [{prefix: 10.9.0.0/24, at: vlan}, {prefix: 10.8.0.0/24, at: b}]}]",
	        4, "expected another ack mode beside `gateway.steering: qp`"},
	};
	struct conf *c;
	char *text = conf_change(conf_small, 2, "  name: a\n  workers: 4\n  steering: qp");

	CONF_CHECK_BAD(conf_small, bad);
	c = conf_good(text);
	assert_int_equal(c->steering, CONF_STEER_QP);
	conf_free(c);
	free(text);
}

/* With a control center its admission is possible, also for the tenants that it names itself. */
static void test_admission(void **state)
{
	static const char tenants[] =
	    "{\"tenants\": [{\"name\": \"r\", \"vni\": 7, \"vlan\": 9, \"prefixes\": [{\"prefix\": "
	    "\"10.9.0.0/24\", \"at\": \"vlan\"}]}]}";
	struct conf *base, *c = NULL;
	struct conf_error err;
	char *text = NULL;

	assert_true(asprintf(&text,
	                "%sconnections: {admission: controller}\n"
	                "controller: {urls: ['https://c'], " REST "}\n",
	                conf_small) > 0);
	base = conf_good(text);
	assert_int_equal(base->admission, TENANT_ADMISSION_CONTROLLER);
	if (conf_network_parse(&c, base, base->tunnel, 1, tenants, sizeof(tenants) - 1, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(c->tenant[0].cfg.admission, TENANT_ADMISSION_CONTROLLER);
	conf_free(c);
	conf_free(base);
	free(text);
}

/* Other gateways of the site, and several at the other end. */
static void test_siblings(void **state)
{
	static const struct conf_bad bad[] = {
	    {0, "siblings:\n  - {name: c, address: 10.1.0.9}", 13,
	        "expected `peer` beside `siblings`: the name of the gateway at the other end of `b`"},
	    {2, "  name: a\n  weight: 0", 3, "from 1 to 65535"},
	    {0, "siblings:\n  - {name: a, address: 10.1.0.9}", 20, "found `a`, which is this one's"},
	    {0, "siblings:\n  - {name: c, address: 10.1.0.1}", 20, "expected another gateway's address"},
	    {0, "siblings:\n  - {name: c, address: 10.9.0.1}", 20, "subnet, found `10.9.0.1`"},
	    {0, "siblings:\n  - {name: c, address: 10.1.0.9}\n  - {name: c, address: 10.1.0.8}", 21,
	        "expected a name of its own, found `c` again"},
	    {0, "siblings:\n  - {name: c, address: 10.1.0.9}\n  - {name: d, address: 10.1.0.9}", 21,
	        "expected an address of its own, found `10.1.0.9` again"},
	    {0,
	        "siblings:\n  - {name: c, address: 10.1.0.9}\ncontroller: {urls: ['https://x'], ca: /c, "
	        "certificate: /d, key: /k, site: a}",
	        19, "expected no `siblings` beside `controller`"},
	};
	static const struct conf_bad steering[] = {
	    {1, "gateway: {name: a1, steering: qp}", 0, "expected `pair` for `steering` with `siblings`"},
	};
	static const char two[] = "gateway: {name: a1, weight: 3}\n"
	                          "ports:\n"
	                          "  - {name: lan, device: net_null0, role: lan, addresses: [10.1.0.1/24]}\n"
	                          "  - {name: wan, device: net_null1, role: wan, addresses: [192.0.2.1/24]}\n"
	                          "siblings: [{name: a2, address: 10.1.0.2, weight: 5}]\n"
	                          "tunnels:\n"
	                          "  - {name: x, peer: b1, port: wan, local: 192.0.2.1, remote: 192.0.2.2,\n"
	                          "     security: none, prefixes: [10.2.0.0/24], weight: 2}\n"
	                          "  - {name: y, peer: b2, port: wan, local: 192.0.2.1, remote: 192.0.2.3,\n"
	                          "     security: none, prefixes: [10.2.0.0/24]}\n";
	struct conf *c;
	char *same;

	CONF_CHECK_BAD(conf_small, bad);
	CONF_CHECK_BAD(two, steering);
	c = conf_good(two);
	assert_int_equal(c->weight, 3);
	assert_int_equal(c->siblings, 1);
	assert_string_equal(c->sibling[0].name, "a2");
	assert_int_equal(c->sibling[0].weight, 5);
	assert_string_equal(c->tunnel[1].peer, "b2");
	conf_free(c);
	same = strdup(two);
	assert_non_null(same);
	strstr(same, "b2")[1] = '1'; /* only one prefix per gateway */
	conf_expect_bad(same, strlen(same), 10, "expected each prefix once");
	free(same);
}

/* Tunnels have keys unless the file says otherwise; certificates and names are needed then. */
static void test_security(void **state)
{
	static const char keys[] = "keys: {certificate: /a, key: /b, ca: /c}\n";
	static const struct {
		const char *line17, *bad;
	} cases[] = {
	    {"    peer_name: b.net", NULL},
	    {"    peer: b", NULL},
	    {"    security: keys", "expected `peer_name` of tunnel `b`"},
	    {"    peer: b\n    keys_port: 4793", "expected a `keys_port` other than `tcp_port`"},
	    {"    peer: b\n    keys_port: 0", "for `keys_port`"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = conf_change(conf_small, 17, cases[i].line17), *all;
		struct conf_error err;
		struct conf *c = NULL;
		int rc;

		assert_true(asprintf(&all, "%s%s", text, keys) > 0);
		rc = conf_parse(&c, all, strlen(all), "f", &err);
		if (!cases[i].bad) {
			assert_int_equal(rc, 0);
			assert_int_equal(c->tunnel[0].security, CONF_SEC_KEYS);
			assert_string_equal(conf_tunnel_peer_name(&c->tunnel[0]), i ? "b" : "b.net");
			assert_string_equal(c->keys.ca, "/c");
			assert_true(c->keys.rekey == 60 * RWY_SEC);
		} else if (!rc || !strstr(err.msg, cases[i].bad)) {
			fail_msg("case %u: %d %s", i, rc, err.msg);
		}
		conf_free(c);
		free(all);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_controller),
	    cmocka_unit_test(test_network),
	    cmocka_unit_test(test_admission),
	    cmocka_unit_test(test_steering),
	    cmocka_unit_test(test_siblings),
	    cmocka_unit_test(test_security),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
