/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a pair of gateways: its sample, defaults, every rule at its line, reload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/schema.h"
#include "tests/lib/conf_change.h"

/* Line numbers matter below. */
static const char good[] =
    "gateway: {name: a, workers: 2}\n"                                                           /* 1 */
    "ports:\n"                                                                                   /* 2 */
    "  - {name: lan, device: net_null0, role: lan, addresses: [10.1.0.1/24],\n"                  /* 3 */
    "     mac: 02:00:00:00:00:01}\n"                                                             /* 4 */
    "  - {name: wan, device: net_null1, role: wan, addresses: [192.0.2.1/24],\n"                 /* 5 */
    "     mac: 02:00:00:00:00:02}\n"                                                             /* 6 */
    "  - {name: cable, device: net_null2, role: wan, addresses: [198.51.100.1/30],\n"            /* 7 */
    "     mtu: 1500}\n"                                                                          /* 8 */
    "tunnels:\n"                                                                                 /* 9 */
    "  - {name: b, port: wan, local: 192.0.2.1, remote: 192.0.2.2, security: none,\n"            /* 10 */
    "     prefixes: [10.2.0.0/24]}\n"                                                            /* 11 */
    "  - {name: pair, port: cable, local: 198.51.100.1, remote: 198.51.100.2, security: none,\n" /* 12 */
    "     standby: true}\n"                                                                      /* 13 */
    "connections: {ack_mode: site}\n"                                                            /* 14 */
    "api: {socket: /run/x.sock}\n";                                                              /* 15 */

static const struct conf_bad bad[] = {
    {1, "gateway: {name: a, steering: qp}", 0, "expected `pair` for `steering` with a standby, found `qp`"},
    {4, "     }", 3, "expected `mac` of port `lan`, the same at both gateways"},
    {6, "     }", 5, "expected `mac` of port `wan`"},
    {6, "     mac: 02:00:00:00:00:01}", 0, "expected a MAC address of its own, found that of port `lan`"},
    {6, "     mac: 03:00:00:00:00:02}", 0, "`mac`, found `03:00:00:00:00:02`"},
    {6, "     mac: 00:00:00:00:00:00}", 0, "`mac`, found `00:00:00:00:00:00`"},
    {8, "     mac: 02:00:00:00:00:03}", 0, "expected no `mac` of port `cable`"},
    {10, "  - {name: b, port: wan, local: 192.0.2.1, remote: 192.0.2.2, security: none, standby_beat: 5ms,",
        0, "expected `standby: true` beside `standby_beat`"},
    {10, "  - {name: b, port: wan, local: 192.0.2.1, remote: 192.0.2.2, security: none, standby: true,", 11,
        "expected no `prefixes` of tunnel `b`"},
    {10, "  - {name: b, port: cable, local: 198.51.100.1, remote: 198.51.100.9, security: none,", 0,
        "expected another port for tunnel `b` than `cable`"},
    {11, "     prefixes: [10.2.0.0/24], paths: [{port: cable, local: 198.51.100.1, udp_port: 5000}]}", 0,
        "expected another port for tunnel `b` than `cable`"},
    {11, "     standby: true}", 13, "expected one tunnel with `standby: true`, found `pair` beside `b`"},
    {13, "     standby: true, prefixes: [10.3.0.0/24]}", 0, "expected no `prefixes` of tunnel `pair`"},
    {13, "     standby: true, detour: tcp}", 0, "expected `off` for `detour` of tunnel `pair`"},
    {13, "     standby: true, carrier: tcp}", 0, "expected `native` for `carrier` of tunnel `pair`"},
    {13, "     standby: true, carrier: rdma, rdma_port: 4793}", 0,
        "expected `native` for `carrier` of tunnel `pair`, the pair's own, found `rdma`"},
    {13, "     standby: true, paths: [{udp_port: 5000}]}", 0, "expected no `paths` of tunnel `pair`"},
    {13, "     standby: yes}", 0, "expected one of `false`, `true` for `standby`, found `yes`"},
    {13, "     standby: true, standby_beat: 2s}", 0, "from 1ms to 1s for `standby_beat`, found `2s`"},
    {13, "     standby: true, standby_wait: 1ms}", 0, "for `standby_wait`, found `1ms`"},
    {13, "     standby: false}", 12, "expected `prefixes`"},
    {13, "     standby: false, prefixes: [10.3.0.0/24]}\ncontroller: {member: x}", 14,
        "expected a tunnel with `standby: true` beside `member`"},
    {15, "tenants: [{name: t, vni: 5, prefixes: [{prefix: 10.9.0.0/24, at: pair}]}]", 0,
        "expected another tunnel than `pair`, which leads to the other gateway of the pair"},
};

static void test_bad(void **state)
{
	CONF_CHECK_BAD(good, bad);
}

/* The gateway at the far end of another tunnel is the witness. */
static void test_alone(void **state)
{
	char *text = conf_change(good, 10, ""), *none = conf_change(text, 11, "");
	struct conf_error err;
	struct conf *c = NULL;

	assert_int_equal(conf_parse(&c, none, strlen(none), "x.yaml", &err), RWY_EINVAL);
	assert_int_equal(err.line, 13);
	assert_non_null(strstr(err.msg, "expected another tunnel beside `pair`"));
	free(text);
	/* A control center names others. */
	text = conf_change(none, 15,
	    "controller: {urls: ['https://c'], ca: /c, certificate: /d, key: /k, site: a, member: rack-1}");
	c = conf_good(text);
	assert_string_equal(c->controller.member, "rack-1");
	conf_free(c);
	free(none);
	free(text);
}

/* A relay, too: its links go to the other one. */
static void test_relay(void **state)
{
	char *one = conf_change(good, 1, "gateway: {name: a}"),
	     *text = conf_change(one, 15, "relay: {addresses: [10.1.0.1]}");
	struct conf *c = conf_good(text);

	assert_int_equal(conf_standby(c), 1);
	assert_int_equal(c->relay.addrs, 1);
	conf_free(c);
	free(one);
	free(text);
}

static void test_defaults(void **state)
{
	char *text;
	struct conf *c = conf_good(good);

	assert_int_equal(conf_standby(c), 1);
	assert_string_equal(c->tunnel[1].cc, "fixed");
	assert_int_equal(c->tunnel[1].fec, CONF_FEC_OFF);
	assert_true(c->tunnel[1].standby_beat == 10 * RWY_MS && c->tunnel[1].standby_wait == 15 * RWY_SEC);
	assert_string_equal(c->tunnel[0].cc, "auto");
	assert_int_equal(c->tunnel[0].fec, CONF_FEC_AUTO);
	assert_memory_equal(c->port[0].mac, "\x02\0\0\0\0\x01", 6);
	assert_true(conf_wants_site(c));
	conf_free(c);
	text = conf_change(
	    good, 13, "     standby: true, fec: auto, congestion_control: bbr, standby_beat: 1ms}");
	c = conf_good(text);
	assert_string_equal(c->tunnel[1].cc, "bbr");
	assert_int_equal(c->tunnel[1].fec, CONF_FEC_AUTO);
	assert_true(c->tunnel[1].standby_beat == RWY_MS);
	conf_free(c);
	free(text);
}

/* Where mode `site` may be asked for: it is as `near` without a pair. */
static void test_site(void **state)
{
	static const struct {
		const char *line14;
		bool site;
	} cases[] = {{"connections: {ack_mode: near}", false},
	    {"connections: {ack_modes: [{to: 10.2.0.7/32, mode: site}]}", true},
	    {"tenants: [{name: t, vni: 5, ack_mode: site, prefixes: [{prefix: 10.9.0.0/24, at: b}]}]", true},
	    {"tenants: [{name: t, vni: 5, ack_modes: [{mode: site}], prefixes: [{prefix: 10.9.0.0/24, at: "
	     "b}]}]",
	        true},
	    {"tenants: [{name: t, vni: 5, ack_mode: end, prefixes: [{prefix: 10.9.0.0/24, at: b}]}]", false}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = conf_change(good, 14, cases[i].line14);
		struct conf *c = conf_good(text);

		assert_int_equal(conf_wants_site(c), cases[i].site);
		conf_free(c);
		free(text);
	}
}

static void test_sample(void **state)
{
	struct conf_error err;
	struct conf *c;

	if (conf_load(&c, "conf/samples/pair.yaml", &err) != 0)
		fail_msg("%s:%u:%u %s", err.file, err.line, err.column, err.msg);
	assert_int_equal(conf_standby(c), 1);
	assert_int_equal(c->ack_mode, CONF_ACK_SITE);
	conf_free(c);
}

/* --- the file is read again ------------------------------------------------------------------- */

static int reload(const char *was, const char *now, struct conf_error *err)
{
	char path[] = "/tmp/test_conf_standby.XXXXXX";
	struct conf *running = conf_good(was), *c = NULL;
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, now, strlen(now)), strlen(now));
	close(fd);
	rc = conf_reload(&c, path, running, err);
	unlink(path);
	conf_free(running);
	conf_free(c);
	return rc;
}

static void test_reload(void **state)
{
	static const struct {
		unsigned line;
		const char *with, *want; /* NULL: it is applied */
		unsigned at;
	} cases[] = {
	    {13, "     standby: true, standby_beat: 20ms}",
	        "expected `10ms` for `standby_beat`, which changes", 13},
	    {13, "     standby: true, standby_wait: 20s}", "expected `15s` for `standby_wait`", 13},
	    {13, "     standby: true, name: other}", "expected `pair` for `name`", 13},
	    {13, "     standby: true, udp_port: 5555}", "expected `4793` for `udp_port`", 13},
	    {13, "     standby: true, congestion_control: bbr}", "expected `fixed` for `congestion_control`",
	        13},
	    {13, "     prefixes: [10.3.0.0/24]}", "expected tunnel `pair` with `standby: true` as it was", 9},
	    {4, "     mac: 02:00:00:00:00:07}", "expected `02:00:00:00:00:01` for `mac`", 4},
	    {13, "     standby: true, rate: 25Gbps}", NULL, 0},
	    {11, "     prefixes: [10.2.0.0/24, 10.3.0.0/24]}", NULL, 0},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = conf_change(good, cases[i].line, cases[i].with);
		char *named =
		    strstr(text, "name: other")
		        ? conf_change(text, 12,
		              "  - {port: cable, local: 198.51.100.1, remote: 198.51.100.2, security: none,")
		        : NULL;
		struct conf_error err = {0};
		int rc = reload(good, named ? named : text, &err);

		if (cases[i].want
		        ? rc != RWY_EINVAL || err.line != cases[i].at || !strstr(err.msg, cases[i].want)
		        : rc != 0)
			fail_msg("%s: %d, line %u: %s", cases[i].with, rc, err.line, err.msg);
		free(named);
		free(text);
	}
}

static void test_reload_adds(void **state)
{
	char *none = conf_change(good, 13, "     prefixes: [10.3.0.0/24]}");
	struct conf_error err = {0};

	assert_int_equal(reload(none, good, &err), RWY_EINVAL);
	assert_int_equal(err.line, 12);
	assert_non_null(strstr(err.msg, "expected no tunnel with `standby: true`"));
	free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_relay),
	    cmocka_unit_test(test_alone),
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_site),
	    cmocka_unit_test(test_sample),
	    cmocka_unit_test(test_reload),
	    cmocka_unit_test(test_reload_adds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
