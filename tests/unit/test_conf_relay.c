/* SPDX-License-Identifier: Apache-2.0 */
/* The key `relay`: the sample, what is refused with which words, and the file read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf/conf.h"

static char text[16384];

static void sample(void **state)
{
	struct conf_error err;
	struct conf *c;

	if (conf_load(&c, "conf/samples/proxy.yaml", &err) != 0)
		fail_msg("%s", err.msg);
	assert_int_equal(c->relay.addrs, 1);
	assert_int_equal(c->relay.allows, 2);
	assert_int_equal(c->relay.allow[1].ports[0], 20049);
	assert_int_equal(c->relay.maps, 1);
	assert_string_equal(c->relay.map[0].name, "nfs");
	conf_free(c);
}

static void no_relay(void **state)
{
	struct conf_error err;
	struct conf *c;

	assert_int_equal(conf_load(&c, "conf/samples/gateway.yaml", &err), 0);
	assert_int_equal(c->relay.addrs, 0);
	conf_free(c);
}

static void load_text(void)
{
	FILE *f = fopen("conf/samples/proxy.yaml", "r");
	size_t len;

	assert_non_null(f);
	len = fread(text, 1, sizeof(text) / 2, f);
	fclose(f);
	text[len] = 0;
}

/* Makes one change of the text. */
static void replace(const char *from, const char *to)
{
	char *at = strstr(text, from), rest[8192];

	assert_non_null(at);
	snprintf(rest, sizeof(rest), "%s", at + strlen(from));
	snprintf(at, sizeof(text) - (size_t)(at - text), "%s%s", to, rest);
}

/* The sample with one change is refused, and the message has these words. */
static void refused(const char *from, const char *to, const char *words)
{
	struct conf_error err;
	struct conf *c;

	load_text();
	replace(from, to);
	assert_int_equal(conf_parse(&c, text, strlen(text), "t", &err), RWY_EINVAL);
	if (!strstr(err.msg, words))
		fail_msg("%s", err.msg);
	assert_true(err.line > 1);
}

static void bad_input(void **state)
{
	refused("addresses: [10.1.0.254] ", "addresses: [10.1.0.253] ", "addresses of a LAN port");
	refused("listen: 10.1.0.254", "listen: 10.1.0.253", "one of `relay.addresses`");
	refused("target: 10.2.0.7", "target: 10.1.0.254", "the relay itself");
	refused("target: 10.2.0.7", "target: 10.3.0.7", "tunnel's `prefixes`");
	refused("target: 10.2.0.7", "target: \"fd00::1\"", "family");
	refused("redirect_port: 4790 ", "redirect_port: 20049 ", "redirect_port");
	refused("ask_port: 4795 ", "ask_port: 4791 ", "RoCE's");
	refused("  name: relay-a", "  name: relay-a\n  workers: 2", "1 worker");
	refused("links: 0}", "links: 0}\n    - {name: nfs, listen: 10.1.0.254, port: 1, target: 10.2.0.7}",
	    "a name of its own");
	refused("links: 0}", "links: 0}\n    - {name: x, listen: 10.1.0.254, port: 20049, target: 10.2.0.8}",
	    "an address and port of its own");
	refused("to: 10.2.0.0/24", "to: 10.2.0.1/24", "prefix");
	refused("ports: 1-65535", "ports: 9-1", "ports");
	refused("half_open_max", "half_open", "half_open_max");
}

/* What the file may not have, a command and a control center's document may not, either. */
static void same_rules_by_command(void **state)
{
	static const struct {
		const char *entry, *words;
	} bad[] = {
	    {"listen: 10.1.0.253, port: 1, target: 10.2.0.7", "one of `relay.addresses`"},
	    {"listen: 10.1.0.254, port: 1, target: 10.1.0.254", "the relay itself"},
	    {"listen: 10.1.0.254, port: 1, target: 10.9.0.7", "an address in a tunnel's `prefixes`"},
	};
	static const char tenant[] = "{vni: 5, prefixes: [{prefix: 172.16.1.0/24, at: vtep}]}",
	                  document[] =
	                      "tenants: [{name: red, vni: 5, prefixes: [{prefix: 172.16.1.0/24, at: vtep}]}]";
	struct conf_tenant t;
	struct conf_error err;
	struct conf_map m;
	struct conf *c, *d;
	char entry[128];

	load_text();
	assert_int_equal(conf_parse(&c, text, strlen(text), "t", &err), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(entry, sizeof(entry), "{%s}", bad[i].entry);
		assert_int_equal(conf_map_parse(c, entry, strlen(entry), "x", &m, &err), RWY_EINVAL);
		if (!strstr(err.msg, bad[i].words))
			fail_msg("%s", err.msg);
	}
	snprintf(entry, sizeof(entry), "{listen: 10.1.0.254, port: 1, target: 10.2.0.9}");
	assert_int_equal(conf_map_parse(c, entry, strlen(entry), "x", &m, &err), 0);
	memset(c->tunnel[0].name, 0, sizeof(c->tunnel[0].name)); /* it was removed by command */
	assert_int_equal(conf_map_parse(c, entry, strlen(entry), "x", &m, &err), RWY_EINVAL);
	assert_int_equal(conf_tenant_parse(c, tenant, strlen(tenant), "red", NULL, &t, &err), RWY_EINVAL);
	assert_string_equal(err.msg, "expected no tenants beside `relay`");
	assert_int_equal(conf_network_parse(&d, c, NULL, 0, document, strlen(document), &err), RWY_EINVAL);
	assert_string_equal(err.msg, "expected no tenants beside `relay`");
	conf_free(c);
}

/* A relay with two addresses reads its file again, where they are these. */
static int reload(const char *addresses, struct conf_error *err)
{
	char path[] = "/tmp/test_conf_relay.XXXXXX";
	struct conf *running, *c = NULL;
	int fd = mkstemp(path), rc;

	load_text();
	replace("addresses: [10.1.0.254/24]", "addresses: [10.1.0.254/24, 10.1.0.253/24, 10.1.0.252/24]");
	replace("addresses: [10.1.0.254] ", "addresses: [10.1.0.254, 10.1.0.253] ");
	assert_int_equal(conf_parse(&running, text, strlen(text), "t", err), 0);
	replace("[10.1.0.254, 10.1.0.253]", addresses);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = conf_reload(&c, path, running, err);
	unlink(path);
	conf_free(running);
	conf_free(c);
	return rc;
}

static void read_again(void **state)
{
	static const char *const other[] = {"[10.1.0.254, 10.1.0.252]", "[10.1.0.254]",
	    "[10.1.0.254, 10.1.0.253, 10.1.0.252]", "[10.1.0.253, 10.1.0.254]"};
	struct conf_error err;

	assert_int_equal(reload("[10.1.0.254, 10.1.0.253]", &err), 0);
	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		if (reload(other[i], &err) != RWY_EINVAL ||
		    !strstr(err.msg, "expected `addresses` of relay as it was"))
			fail_msg("%s: %s", other[i], err.msg);
	}
}

/* The map is the file's after a reload. */
static void map_read_again(void **state)
{
	static const char more[] =
	    "links: 0}\n    - {name: x, listen: 10.1.0.254, port: 9, target: 10.2.0.8}";
	struct conf *running, *c = NULL;
	char path[] = "/tmp/test_conf_relay.XXXXXX";
	struct conf_error err;
	int fd = mkstemp(path);

	load_text();
	assert_int_equal(conf_parse(&running, text, strlen(text), "t", &err), 0);
	replace("links: 0}", more);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	if (conf_reload(&c, path, running, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(c->relay.maps, 2);
	unlink(path);
	conf_free(running);
	conf_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sample),
	    cmocka_unit_test(no_relay),
	    cmocka_unit_test(bad_input),
	    cmocka_unit_test(same_rules_by_command),
	    cmocka_unit_test(read_again),
	    cmocka_unit_test(map_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
