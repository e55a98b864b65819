/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration as a whole: the sample file, types and ranges, rules between keys, YAML, the
 * reference manual. Each case is the small configuration (tests/lib/conf_change.h) with one line
 * changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/schema.h"
#include "conf/value.h"
#include "engine/engine.h"
#include "tests/lib/conf_change.h"

static void test_good(void **state)
{
	struct conf *c = conf_good(conf_small);
	char text[64];

	assert_string_equal(c->name, "a");
	assert_int_equal(c->ports, 2);
	assert_int_equal(c->port[1].role, CONF_ROLE_WAN);
	assert_int_equal(c->port[0].addr[0].len, 96 + 24);
	conf_print_prefix(&c->port[0].addr[0], text, sizeof(text));
	assert_string_equal(text, "10.1.0.1/24");
	assert_int_equal(c->tunnels, 1);
	assert_int_equal(c->tunnel[0].port_idx, 1);
	assert_true(c->tunnel[0].rate_Bps == 1250000000);
	assert_true(c->idle_expiry == 600 * RWY_SEC);
	conf_free(c);
	conf_free(NULL);
}

static void test_source_check_off(void **state)
{
	char *text = conf_change(conf_small, 7, "    addresses: [10.1.0.1/24]\n    source_check: off");
	struct conf *c = conf_good(text);

	assert_false(c->port[0].source_check);
	assert_true(c->port[1].source_check);
	conf_free(c);
	free(text);
}

/* The sample is complete and shows the defaults: a difference to a file without the keys is an
 * error in one of them. */
static void test_sample_is_defaults(void **state)
{
	struct conf_error err;
	struct conf *c = NULL, *d = conf_good(conf_small);

	if (conf_load(&c, "conf/samples/gateway.yaml", &err))
		fail_msg("%s:%u:%u %s", err.file, err.line, err.column, err.msg);
	assert_int_equal(c->workers, d->workers);
	assert_int_equal(c->polling, d->polling);
	assert_int_equal(c->log_level, d->log_level);
	assert_string_equal(c->cores, d->cores);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(c->port[i].mtu, d->port[i].mtu);
		assert_int_equal(c->port[i].vlan, d->port[i].vlan);
		assert_true(c->port[i].source_check && d->port[i].source_check);
	}
	assert_int_equal(c->tunnel[0].udp_port, d->tunnel[0].udp_port);
	assert_string_equal(c->tunnel[0].cc, d->tunnel[0].cc);
	assert_true(c->tunnel[0].rate_Bps == d->tunnel[0].rate_Bps);
	assert_int_equal(c->ack_mode, d->ack_mode);
	assert_int_equal(c->admission, d->admission);
	assert_int_equal(c->conns_max, d->conns_max);
	assert_int_equal(c->half_open_max, d->half_open_max);
	assert_true(c->idle_expiry == d->idle_expiry);
	assert_true(c->ack_timeout_min == d->ack_timeout_min && c->ack_timeout_max == d->ack_timeout_max);
	assert_int_equal(c->rnr_retry, d->rnr_retry);
	assert_int_equal(c->retry, d->retry);
	assert_int_equal(c->host_window, d->host_window);
	assert_int_equal(c->buffers, d->buffers);
	assert_true(c->custody_conn == d->custody_conn && c->custody_total == d->custody_total);
	assert_true(c->read_cache_conn == d->read_cache_conn);
	assert_string_equal(c->api_socket, d->api_socket);
	assert_int_equal(c->eal_argc, 4);
	assert_string_equal(c->eal_args[3], "512");
	assert_int_equal(c->tunnel[0].prefixes, 2);
	assert_int_equal(c->tunnel[0].prefix[1].len, 64);
	conf_free(c);
	conf_free(d);
}

static void test_sample_names_every_key(void **state)
{
	static const char *const samples[] = {
	    "conf/samples/gateway.yaml", "conf/samples/proxy.yaml", "conf/samples/pair.yaml"};
	char text[32768];
	size_t len = 0;

	for (unsigned i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		FILE *f = fopen(samples[i], "r");

		assert_non_null(f);
		len += fread(text + len, 1, sizeof(text) - 1 - len, f);
		fclose(f);
	}
	text[len] = 0;
	for (unsigned i = 0; i < conf_keys_count; i++) {
		const char *dot = strrchr(conf_keys[i].path, '.');
		char key[64];

		snprintf(key, sizeof(key), "%s:", dot ? dot + 1 : conf_keys[i].path);
		if (!strstr(text, key))
			fail_msg("%s is not in the sample", conf_keys[i].path);
	}
}

/* The commented example is valid without the comment marks. */
static void test_sample_tenants(void **state)
{
	FILE *f = fopen("conf/samples/gateway.yaml", "r");
	char line[256], *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool tenants = false;
	struct conf *c;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		tenants = tenants || !strcmp(line, "# tenants:\n");
		fputs(tenants ? line + 2 : line, out);
	}
	fclose(f);
	fclose(out);
	c = conf_good(text);
	assert_int_equal(c->tenants, 1);
	assert_int_equal(c->tenant[0].cfg.prefixes, 3);
	assert_int_equal(c->tenant[0].cfg.prefix[2].at.side, TENANT_TUNNEL);
	assert_int_equal(c->tenant[0].cfg.rules, 1);
	assert_int_equal(c->tenant[0].cfg.rule[0].classes, 1u << ACL_WRITE | 1u << ACL_READ);
	assert_true(c->tenant[0].cfg.guarantee_Bps == 125000000);
	assert_int_equal(c->tenant[0].cfg.memory_ppm, 100000);
	conf_free(c);
	free(text);
}

static const struct conf_bad types_and_ranges[] = {
    {2, "  workers: 10x", 0, "expected an integer from 1 to 64 for `workers`, found `10x`"},
    {2, "  workers: 0", 0, "from 1 to 64"},
    {2, "  workers: 65", 0, "found `65`"},
    {2, "  workers: 99999999999999999999999", 0, "expected an integer"},
    {2, "  workers: -1", 0, "found `-1`"},
    {2, "  workers: 010", 0, "found `010`"},
    {2, "  workers: 1.0", 0, "found `1.0`"},
    {2, "  workers: \"1\"", 0, "found the text \"1\""},
    {2, "  workers: [1]", 0, "found a list"},
    {2, "  workers: {a: 1}", 0, "found a mapping"},
    {2, "  workers:", 0, "found nothing"},
    {2, "  workers: ~", 0, "found nothing"},
    {2, "  polling: lazy", 0, "expected one of `adaptive`, `busy` for `polling`, found `lazy`"},
    {2, "  polling: adapt", 0, "found `adapt`"},
    {2, "  name: -x", 0, "expected a name of at most 31"},
    {2, "  name: a b", 0, "found `a b`"},
    {2, "  name: \"a\\nb\"", 0, "found the text \"a?b\""},
    {2, "  name: \"a\\0b\"", 0, "zero byte"},
    {2, "  name: aaaaaaaaaabbbbbbbbbbccccccccccdd", 0, "at most 31"},
    {5, "    device: ''", 0, "printable ASCII"},
    {5, "    mtu: 575", 0, "from 576 to 9000"},
    {5, "    mtu: 9001", 0, "from 576 to 9000"},
    {5, "    vlan: 4095", 0, "from 0 to 4094"},
    {5, "    source_check: loose", 0, "one of `off`, `on`"},
    {7, "    addresses: []", 0, "a list of 1 to 8"},
    {7, "    addresses: 10.1.0.1/24", 0, "found `10.1.0.1/24`"},
    {7, "    addresses: [10.1.0.1]", 0, "length of its subnet"},
    {7, "    addresses: [10.1.0.1/33]", 0, "length of its subnet"},
    {7, "    addresses: [10.1.0.1/24x]", 0, "length of its subnet"},
    {7, "    addresses: [224.0.0.1/24]", 0, "length of its subnet"},
    {7, "    addresses: ['::ffff:10.1.0.1/120']", 0, "length of its subnet"},
    {7, "    addresses: [10.1.0.0/24]", 0, "its subnet's own address"},
    {7, "    addresses: [10.1.0.255/24]", 0, "its subnet's broadcast address"},
    {7,
        "    addresses: "
        "[1.0.0.1/24,1.0.1.1/24,1.0.2.1/24,1.0.3.1/24,1.0.4.1/24,1.0.5.1/24,1.0.6.1/24,1.0.7.1/"
        "24,1.0.8.1/24]",
        0, "at most 8 entries"},
    {15, "    local: 192.0.2", 0, "unicast address"},
    {15, "    local: 127.0.0.1", 0, "unicast address"},
    {15, "    local: '::'", 0, "unicast address"},
    {15, "    local: 'ff02::1'", 0, "unicast address"},
    {16, "    remote: example.org", 0, "unicast address for `remote`, found `example.org`"},
    {17, "    security: aes", 0, "expected one of `none`, `keys`"},
    {18, "    rate: 10", 0, "expected a rate from 1Mbps to 1Tbps for `rate`, found `10`"},
    {18, "    rate: 10gbps", 0, "found `10gbps`"},
    {18, "    rate: 10 Gbps", 0, "found `10 Gbps`"},
    {18, "    udp_port: 80", 0, "from 1024 to 65535"},
    {18, "    prefixes: [10.2.0.5/24]", 0, "without host bits, `10.2.0.0/24`, found `10.2.0.5/24`"},
    {18, "    prefixes: ['fd00:2::1/64']", 0, "without host bits, `fd00:2::/64`"},
    {18, "    prefixes: ['::/0']", 0, "2000::/3"},
    {18, "    prefixes: [10.2.0.0]", 0, "expected a prefix"},
    {18, "    prefixes: [[10.2.0.0/24]]", 0, "found a list"},
    {0, "memory: {custody_total: 1X}\n", 19,
        "expected a size from 1MiB to 1TiB for `custody_total`, found `1X`"},
    {0, "memory: {custody_total: 1}\n", 19, "from 1MiB"},
    {0, "connections: {idle_expiry: 10}\n", 19,
        "expected a duration from 1s to 24h for `idle_expiry`, found `10`"},
    {0, "connections: {idle_expiry: 10m}\n", 19, "expected a duration"},
    {0, "connections: {retry: 0}\n", 19, "from 1 to 255"},
    {0, "connections: {admission: closed}\n", 19,
        "expected one of `open`, `cm`, `controller` for `admission`, found `closed`"},
    {0, "connections:\n  admission: controller\n", 20,
        "expected `open` or `cm` for `admission` without `controller.urls`, found `controller`"},
    {0, "connections: {rnr_retry: 8}\n", 19, "from 0 to 7"},
    {0, "connections: {ack_timeout_min: 900us}\n", 19,
        "expected a duration from 1ms to 1min for `ack_timeout_min`, found `900us`"},
    {0, "connections: {ack_timeout_max: 11min}\n", 19,
        "expected a duration from 1ms to 10min for `ack_timeout_max`, found `11min`"},
    {0, "connections: {ack_timeout_max: 40ms}\n", 19,
        "expected at least `ack_timeout_min`, 50ms, for `ack_timeout_max`, found `40ms`"},
    {0, "connections:\n  ack_timeout_max: 2s\n  ack_timeout_min: 3s\n", 20,
        "expected at least `ack_timeout_min`, 3s, for `ack_timeout_max`, found `2s`"},
    {0, "connections: {ack_timeout_min: 3s}\n", 19, "expected at least `ack_timeout_min`, 3s"},
    {0, "eal: {cores: 2-1}\n", 19, "CPU numbers"},
    {0, "eal: {args: [a, [b]]}\n", 19, "found a list"},
    {0, "eal: {args: [a, ~]}\n", 19, "found nothing"},
    {0, "api: {socket: run/x}\n", 19,
        "expected an absolute path of at most 107 characters for `socket`, found `run/x`"},
    {0, "api: {read_group: ''}\n", 19, "`read_group`"},
    {0, "api:\n  read_group: '100'\n  operator_group: no-such-group\n", 21,
        "expected the name or number of a group of this machine for `operator_group`, found "
        "`no-such-group`"},
    {0, "api: {read_group: 4294967295}\n", 19, "for `read_group`, found `4294967295`"},
    {0, "api: {read_group: 65534}\n", 19, "expected a group other than 65534 for `read_group`"},
};

static void test_types_and_ranges(void **state)
{
	CONF_CHECK_BAD(conf_small, types_and_ranges);
}

static void test_yaml(void **state)
{
	static const struct conf_bad bad[] = {
	    {2, "\tname: a", 0, "found a tab"},
	    {2, "  name: [a", 3, "expected YAML"},
	    {2, "  name: &x a", 0, "an anchor or a tag"},
	    {2, "  name: *x", 0, "an alias"},
	    {2, "  name: !!str a", 0, "an anchor or a tag"},
	    {2, "  name: [[[[[[[a]]]]]]]", 0, "at most 6 levels"},
	    {2, "  ? [a]\n  : b", 0, "expected a key"},
	    {2, "  name: \x01", 0, "expected UTF-8 text"},
	    {2, "  name: \xff", 0, "expected UTF-8 text"},
	    {0, "---\ngateway: {name: a}\n", 19, "expected one document"},
	};
	const size_t many = (size_t)CONF_NODES_MAX * 2 + 2;
	char *big = malloc(CONF_FILE_MAX + 1), *marked;

	CONF_CHECK_BAD(conf_small, bad);
	assert_true(asprintf(&marked, "\xef\xbb\xbf%s", conf_small) > 0);
	conf_free(conf_good(marked)); /* some editors begin a file with a byte order mark */
	free(marked);
	conf_expect_bad("\xef\xbb\xbf", 3, 0, "an empty text");
	conf_expect_bad("", 0, 0, "an empty text");
	conf_expect_bad("# nothing\n", 10, 0, "an empty text");
	conf_expect_bad("- a\n", 4, 1, "expected a mapping of keys (`key: value`), found a list");
	conf_expect_bad("a\n", 2, 1, "found a single value");
	assert_non_null(big);
	memset(big, '#', CONF_FILE_MAX + 1);
	conf_expect_bad(big, CONF_FILE_MAX + 1, 0, "at most 64MiB");
	for (size_t i = 0; i < many; i++)
		big[i] = !i ? '[' : i % 2 ? '1' : ',';
	conf_expect_bad(big, many, 1, "too many values");
	free(big);
}

/* Two ports on one interface, by another virtual device or another form of the PCI address. */
static void test_one_device(void **state)
{
	static const struct {
		const char *lan, *wan;
		bool same;
	} cases[] = {
	    {"net_af_packet0,iface=eth1", "net_af_packet1,iface=eth1", true},
	    {"net_af_packet0,iface=eth1,qpairs=2", "net_af_xdp0,iface=eth1", true},
	    {"net_af_packet0,iface=eth1", "net_af_packet1,iface=eth10", false},
	    {"net_af_packet0,iface=eth1", "net_af_packet0,iface=eth2", true},
	    {"0000:3b:00.0", "3b:00.0", true},
	    {"0000:3b:00.0,representor=0", "0000:3b:00.0,representor=1", false},
	    {"0000:3b:00.0", "0000:3b:00.1", false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[2][128];

		snprintf(line[0], sizeof(line[0]), "    device: \"%s\"", cases[i].lan);
		snprintf(line[1], sizeof(line[1]), "    device: \"%s\"", cases[i].wan);
		char *one = conf_change(conf_small, 5, line[0]), *both = conf_change(one, 9, line[1]);

		if (cases[i].same)
			conf_expect_bad(both, strlen(both), 9,
			    "expected a device of its own, found the device of port `lan`");
		else
			conf_free(conf_good(both));
		free(both);
		free(one);
	}
}

/* The kernel's interface of a port is named after it, and has 15 characters. */
static void test_port_name(void **state)
{
	char *good = conf_change(conf_small, 4, "  - name: elevenchars");
	char *bad = conf_change(conf_small, 4, "  - name: twelve-chars");

	conf_free(conf_good(good));
	conf_expect_bad(bad, strlen(bad), 4, "11");
	free(bad);
	free(good);
}

static void test_cross(void **state)
{
	static const struct conf_bad bad[] = {
	    {8, "  - name: lan", 0, "expected a name of its own, found `lan`, which is port 1's too"},
	    {9, "    device: net_null0", 0, "found the device of port `lan`"},
	    {9, "    device: \"net_null0,size=64\"", 9, "found the device of port `lan`"},
	    {6, "    role: wan", 3, "expected at least one port of role `lan`, found none"},
	    {10, "    role: lan", 3, "expected at least one port of role `wan`, found none"},
	    {11, "    addresses: [10.1.0.1/24]", 0, "overlaps port `lan`"},
	    {11, "    addresses: [10.1.0.7/8]", 0, "overlaps port `lan`"},
	    {11, "    addresses: [192.0.2.1/24, 192.0.2.1/24]", 0,
	        "expected each address once, found `192.0.2.1/24` again"},
	    {10, "    role: wan\n    mtu: 600", 11, "expected at least 604 for `mtu`"},
	    {7, "    addresses: [10.1.0.1/24, \"fd00:1::1/64\"]\n    mtu: 1000", 7, "IPv6 needs 1280"},
	    {14, "    port: lan", 0,
	        "expected the name of a port of role `wan`, found `lan`, which has role `lan`"},
	    {14, "    port: wam", 0, "found `wam`, which is no port's name"},
	    {15, "    local: 192.0.2.3", 0,
	        "expected an address of port `wan`, found `192.0.2.3`, which it does not have"},
	    {16, "    remote: 192.0.2.1", 0, "which is our own"},
	    {16, "    remote: 10.1.0.1", 0, "which is our own"},
	    {16, "    remote: 'fd00::1'", 0, "expected an IPv4 address as in `local`, found `fd00::1`"},
	    {17, "    security: none\n    udp_port: 4791", 18, "other than RoCE's 4791"},
	    {17, "    security: none\n    carrier: quic", 18, "expected `keys.certificate`"},
	    {17, "    security: none\n    carrier: quic\n    quic_port: 0", 18, "expected a `quic_port`"},
	    {17, "    security: none\n    detour: quic", 18,
	        "expected `keys.certificate`, `keys.key` and `keys.ca` with `detour: quic`"},
	    {17, "    security: none\n    detour: quic\n    quic_port: 0", 18,
	        "expected a `quic_port` with `detour: quic`, found `0`"},
	    {17, "    security: none\n    detour: tcp\n    tcp_port: 0", 18,
	        "expected a `tcp_port` with `detour: tcp`, found `0`"},
	    {17, "    security: none\n    carrier: tcp\n    tcp_port: 0", 18,
	        "expected a `tcp_port` with `carrier: tcp`, found `0`"},
	    {17, "    security: none\n    detour: rdma", 18, "expected one of `off`, `tcp`, `quic`"},
	    {17, "    security: none\n    detour_after: 9", 18, "for `detour_after`"},
	    {17, "    security: none\n    carrier: rdma", 18,
	        "expected an `rdma_port` with `carrier: rdma`, found `0`"},
	    {17, "    security: none\n    rdma_port: 4793\n    rdma_buffers: 8", 19, "for `rdma_buffers`"},
	    {17, "    security: none\n    peer_name: b.net\n    quic_port: 4793", 19,
	        "other than the native UDP ports 4793 to 4793 of tunnel `b`, found `4793`"},
	    {17, "    security: none\n    peer_name: b.net\n    paths: [{udp_port: 4792}]", 13,
	        "expected a `quic_port` other than the native UDP ports 4792 to 4792 of tunnel `b`"},
	    {0,
	        "  - {name: c, port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none, udp_port: "
	        "5000,\n     prefixes: [10.3.0.0/24], peer_name: c, quic_port: 4793}\n",
	        20, "other than the native UDP ports 4793 to 4793 of tunnel `b`, found `4793`"},
	    {0,
	        "  - {name: c, port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none, udp_port: "
	        "5000,\n     prefixes: [10.3.0.0/24], peer_name: c, tcp_local: 198.51.100.1, quic_port: "
	        "4793, "
	        "tcp_port: 0, carrier: tcp}\n",
	        20, "expected a `tcp_port` with `carrier: tcp`"},
	    {0, "keys: {certificate: /a.pem}\n", 19, "found no `key`"},
	    {0, "keys: {certificate: /a, key: /b, crl: /c}\n", 19, "found no `ca`"},
	    {0, "keys: {rekey: 500ms}\n", 19, "for `rekey`"},
	    {18, "    prefixes: [10.2.0.0/24, 10.3.0.0/24, 10.2.0.0/24]", 0, "found `10.2.0.0/24` again"},
	    {18, "    prefixes: [10.1.0.0/16]", 0, "overlaps `10.1.0.1/24` of LAN port `lan`"},
	    {18, "    prefixes: [10.1.0.128/25]", 0, "overlaps `10.1.0.1/24` of LAN port `lan`"},
	    {18, "    prefixes: [0.0.0.0/0]", 0, "overlaps"},
	    {0, "memory: {custody_total: 257MiB}\n", 19,
	        "expected at most 256MiB for `custody_total`: `buffers` times 4KiB"},
	    {0, "memory: {buffers: 1024}\n", 19, "expected at most 4MiB for `custody_total`"},
	    {0, "memory: {custody_total: 16MiB}\n", 19,
	        "expected at most 16MiB for `custody_per_connection`: `custody_total`"},
	    {0, "memory: {read_cache_per_connection: 512MiB}\n", 19, "for `read_cache_per_connection`"},
	    {0, "connections: {max: 100}\n", 19,
	        "expected at most `max`, 100, for `half_open_max`, found `1024`"},
	    {2, "  name: a\n  workers: 2\neal: {cores: 3}", 4,
	        "expected a CPU for each of 2 workers, found `3`: 1"},
	    {2, "  name: a\n  workers: 2\neal: {args: [-n, --lcores=1@2]}", 4,
	        "`workers` and `cores` place the threads"},
	    {0, "eal: {args: [-l, '1']}\n", 19, "expected no `-l`"},
	    {0, "eal: {args: [--vdev, x]}\n", 19,
	        "expected no `--vdev`: a virtual device is a port's `device`"},
	};
	static const char second[] =
	    "  - {name: %s, port: wan, local: 192.0.2.1, remote: %s, security: none, prefixes: [%s]}\n";
	char text[1024];

	CONF_CHECK_BAD(conf_small, bad);
	snprintf(text, sizeof(text), second, "b", "192.0.2.3", "10.3.0.0/24");
	conf_check_bad(conf_small, &(struct conf_bad){0, text, 19, "found `b`, which is tunnel 1's too"}, 1);
	snprintf(text, sizeof(text), second, "c", "192.0.2.2", "10.3.0.0/24");
	conf_check_bad(conf_small,
	    &(struct conf_bad){0, text, 19, "expected other UDP ports than tunnel `b` to the same peer"}, 1);
	snprintf(text, sizeof(text), second, "c", "192.0.2.3", "10.2.0.0/24");
	conf_check_bad(
	    conf_small, &(struct conf_bad){0, text, 19, "found `10.2.0.0/24` again (tunnel `b`)"}, 1);
}

static void test_accepted_forms(void **state)
{
	static const char second[] = "  - {name: c, port: wan, local: 192.0.2.1, remote: 1.0.0.2, security: "
	                             "none, prefixes: [2.0.0.0/8]}\n";
	static const char *const more[] = {"connections:\n", "connections: {idle_expiry: 90s}\n",
	    "memory: {custody_total: 33554432}\n", "memory: {custody_total: 0.125GiB}\n",
	    "eal:\n  cores: 0,2-5\n", "eal: {args: []}\n", "api: {socket: \"/tmp/x.sock\"}\n", "...\n"};
	char *with_second;

	for (unsigned i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		char *text = conf_change(conf_small, 0, more[i]);

		conf_free(conf_good(text));
		free(text);
	}
	with_second = conf_change(conf_small, 0, second);
	conf_free(conf_good(with_second));
	free(with_second);
}

static void test_scan(void **state)
{
	uint64_t v;
	unsigned n;

	assert_true(conf_scan_size("1.5KiB", &v) && v == 1536);
	assert_true(conf_scan_size("0", &v) && v == 0);
	assert_false(conf_scan_size("1.0001KiB", &v)); /* no whole number of bytes */
	assert_false(conf_scan_size("99999999999TiB", &v));
	assert_false(
	    conf_scan_size("1.KiB", &v) || conf_scan_size(".5KiB", &v) || conf_scan_size("1kib", &v));
	assert_true(conf_scan_duration("50us", &v) && v == 50 * RWY_US);
	assert_true(conf_scan_duration("100ms", &v) && v == 100 * RWY_MS);
	assert_true(conf_scan_duration("2.5h", &v) && v == 9000 * RWY_SEC);
	assert_false(
	    conf_scan_duration("5", &v) || conf_scan_duration("5ss", &v) || conf_scan_duration("-5s", &v));
	assert_true(conf_scan_rate("2.5Gbps", &v) && v == 2500000000u);
	assert_true(conf_scan_cpus("0", &n) && n == 1);
	assert_true(conf_scan_cpus("1-3,7", &n) && n == 4);
	assert_false(conf_scan_cpus("1-3,3", &n) || conf_scan_cpus("1,", &n) || conf_scan_cpus("", &n) ||
	             conf_scan_cpus("4096", &n));
}

static void test_schema(void **state)
{
	char text[4096];

	for (unsigned i = 0; i < conf_keys_count; i++) {
		struct conf c; /* larger than any group's struct */
		struct conf_error err;

		conf_key_describe(&conf_keys[i], text, sizeof(text));
		assert_true(strlen(text) > 0 && strlen(text) < 160);
		assert_non_null(conf_keys[i].text);
		memset(&c, 0, sizeof(c));
		if (conf_keys[i].dflt && conf_fill_default(&c, &conf_keys[i], &err))
			fail_msg("%s", err.msg);
	}
}

/* A FIFO that nobody writes is empty; it is not waited for. */
static void test_load_fifo(void **state)
{
	struct conf_error err;
	struct conf *c;
	char dir[] = "/tmp/test_conf.XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(20);
	assert_int_equal(conf_load(&c, path, &err), RWY_EINVAL);
	alarm(0);
	assert_non_null(strstr(err.msg, "found an empty text"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_load_errors(void **state)
{
	struct conf_error err;
	struct conf *c;
	char text[512];
	FILE *f = fmemopen(text, sizeof(text), "w");

	assert_int_equal(conf_load(&c, "/nonexistent/x.yaml", &err), RWY_EINVAL);
	assert_int_equal(conf_load(&c, "/", &err), RWY_EINVAL);
	assert_string_equal(err.msg, "cannot read: Is a directory");
	conf_error_print(f, &err);
	err.line = 3;
	err.column = 4;
	conf_error_print(f, &err);
	fclose(f);
	assert_string_equal(text, "/: cannot read: Is a directory\n/:3:4: cannot read: Is a directory\n");
}

static void test_reference(void **state)
{
	char *want, *have;
	size_t len;
	FILE *f = open_memstream(&want, &len);

	conf_print_reference(f);
	fclose(f);
	if (getenv("ROCEWAY_UPDATE")) {
		f = fopen("docs/configuration.md", "w");
		assert_non_null(f);
		assert_int_equal(fwrite(want, 1, len, f), len);
		fclose(f);
	}
	f = fopen("docs/configuration.md", "r");
	assert_non_null(f);
	have = calloc(1, len + 2);
	assert_int_equal(fread(have, 1, len + 1, f), len);
	fclose(f);
	assert_string_equal(have, want);
	free(have);
	free(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_source_check_off),
	    cmocka_unit_test(test_sample_is_defaults),
	    cmocka_unit_test(test_sample_names_every_key),
	    cmocka_unit_test(test_sample_tenants),
	    cmocka_unit_test(test_types_and_ranges),
	    cmocka_unit_test(test_yaml),
	    cmocka_unit_test(test_one_device),
	    cmocka_unit_test(test_port_name),
	    cmocka_unit_test(test_cross),
	    cmocka_unit_test(test_accepted_forms),
	    cmocka_unit_test(test_scan),
	    cmocka_unit_test(test_schema),
	    cmocka_unit_test(test_load_errors),
	    cmocka_unit_test(test_load_fifo),
	    cmocka_unit_test(test_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
