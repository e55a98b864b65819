/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file read again at run time: every key that needs a restart is found, at its line; the others
 * are accepted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/schema.h"

static const char good[] =
    "gateway: {name: a, workers: 2, log_level: info}\n"                                        /* 1 */
    "eal: {args: [-n, '2'], cores: 1-2}\n"                                                     /* 2 */
    "ports:\n"                                                                                 /* 3 */
    "  - {name: lan, device: net_null0, role: lan, addresses: [10.1.0.1/24], mtu: 1500}\n"     /* 4 */
    "  - {name: wan, device: net_null1, role: wan, addresses: [192.0.2.1/24]}\n"               /* 5 */
    "tunnels:\n"                                                                               /* 6 */
    "  - {name: b, port: wan, local: 192.0.2.1, remote: 192.0.2.2, security: none,\n"          /* 7 */
    "     prefixes: [10.2.0.0/24], congestion_control: auto, rate: 10Gbps}\n"                  /* 8 */
    "connections: {idle_expiry: 10min}\n"                                                      /* 9 */
    "memory: {buffers: 65536}\n"                                                               /* 10 */
    "api: {socket: /run/x.sock}\n"                                                             /* 11 */
    "tenants:\n"                                                                               /* 12 */
    "  - {name: red, vni: 5001, prefixes: [{prefix: 10.1.0.0/24, at: vtep}], limit: 1Gbps}\n"; /* 13 */

static char *with(const char *from, const char *to)
{
	const char *at = strstr(good, from);
	char *out;

	assert_non_null(at);
	assert_true(asprintf(&out, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from)) > 0);
	return out;
}

static int reload(struct conf **out, const char *text, struct conf_error *err)
{
	char path[] = "/tmp/test_conf_reload.XXXXXX";
	struct conf *running = NULL;
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(conf_parse(&running, good, sizeof(good) - 1, "good", err), 0);
	rc = conf_reload(out, path, running, err);
	conf_free(running);
	unlink(path);
	return rc;
}

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which cases read */
static const struct {
	const char *from, *to;
	unsigned line;
	const char *want;
} needs[] = {
    {"name: a,", "name: c,", 1, "expected `a` for `name`, which changes only with a restart, found `c`"},
    {"workers: 2", "workers: 1", 1, "expected `2` for `workers`"},
    {"log_level: info", "polling: busy", 1, "expected `adaptive` for `polling`"},
    {"'2'", "'3'", 2, "expected `args` of eal as it was: it changes only with a restart"},
    {"-n, '2'", "-n", 2, "expected `args` of eal as it was"},
    {"cores: 1-2", "cores: 2-3", 2, "expected `1-2` for `cores`"},
    {", cores: 1-2", "", 2, "expected `1-2` for `cores`, which changes only with a restart, found none"},
    {"net_null0", "net_null2", 4, "expected `net_null0` for `device`"},
    {"10.1.0.1/24", "10.1.0.2/24", 4, "expected `addresses` of ports[] as it was"},
    {"mtu: 1500", "mtu: 1400", 4, "expected `1500` for `mtu`"},
    {", mtu: 1500", ", vlan: 5", 4, "expected `0` for `vlan`"},
    {"idle_expiry: 10min", "idle_expiry: 5min", 9, "expected `10min` for `idle_expiry`"},
    {"idle_expiry: 10min", "max: 5000", 9, "expected `100000` for `max`"},
    {"buffers: 65536", "custody_total: 128MiB", 10, "expected `256MiB` for `custody_total`"},
    {"/run/x.sock", "/run/y.sock", 11, "expected `/run/x.sock` for `socket`"},
    {"connections:",
        "controller: {urls: ['https://c'], ca: /c, certificate: /d, key: /k, site: a}\nconnections:", 9,
        "expected `urls` of controller as it was"},
};

static void test_restart(void **state)
{
	for (unsigned i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		char *text = with(needs[i].from, needs[i].to);
		struct conf_error err;
		struct conf *c = NULL;

		if (reload(&c, text, &err) != RWY_EINVAL || err.line != needs[i].line ||
		    !strstr(err.msg, needs[i].want))
			fail_msg("%s: wanted line %u `%s`, got line %u: %s", needs[i].to, needs[i].line,
			    needs[i].want, err.line, err.msg);
		assert_null(c);
		free(text);
	}
}

static void test_live(void **state)
{
	static const struct {
		const char *from, *to;
	} live[] = {{"name: a", "name: a"}, {"log_level: info", "weight: 3"}, {"info", "debug"},
	    {"limit: 1Gbps", "limit: 2Gbps"}, {"name: red", "name: blue"},
	    {"mtu: 1500", "vlan: 0"}, /* as by default */
	    {"rate: 10Gbps", "rate: 10000Mbps"}, {"remote: 192.0.2.2", "remote: 192.0.2.3"},
	    {"10.2.0.0/24", "10.2.0.0/24, 10.3.0.0/24"},
	    {"congestion_control: auto", "congestion_control: bbr"}, {"10Gbps", "5Gbps"},
	    {"x.sock}", "x.sock, read_group: '100', operator_group: '4'}"},
	    {"connections:", "  - {name: c, port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none}\n"
	                     "connections:"}};

	for (unsigned i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
		char *text = with(live[i].from, live[i].to);
		struct conf_error err;
		struct conf *c = NULL;

		if (reload(&c, text, &err))
			fail_msg("%s: line %u: %s", live[i].to, err.line, err.msg);
		assert_int_equal(c->tenants, 1);
		conf_free(c);
		free(text);
	}
}

/* No key of the gateway as a whole is forgotten: it needs a restart, or the running gateway applies
 * it. */
static void test_every_key(void **state)
{
	for (unsigned i = 0; i < conf_keys_count; i++) {
		const struct conf_key *k = &conf_keys[i];
		const bool applied =
		    !strncmp(k->path, "tenants", 7) || !strncmp(k->path, "tunnels", 7) ||
		    !strncmp(k->path, "siblings", 8) || !strncmp(k->path, "relay.map", 9) ||
		    !strcmp(k->path, "gateway.weight") || !strcmp(k->path, "gateway.log_level") ||
		    !strcmp(k->path, "keys.certificate") || !strcmp(k->path, "keys.key") ||
		    !strcmp(k->path, "keys.ca") || !strcmp(k->path, "keys.crl") ||
		    !strcmp(k->path, "api.read_group") || !strcmp(k->path, "api.operator_group");

		if (k->type != CONF_T_GROUP && k->restart == applied)
			fail_msg("%s", k->path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_restart),
	    cmocka_unit_test(test_live),
	    cmocka_unit_test(test_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
