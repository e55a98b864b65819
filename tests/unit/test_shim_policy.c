/* SPDX-License-Identifier: Apache-2.0 */
/* redirect.conf: what a line means, which relay a target gets, and the message of each error. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>

#include "proxy/ask.h"
#include "shim/policy.h"

static struct shim_policy p;
static char err[400];

static struct rwy_ip ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return rwy_ip_from4((const uint8_t[]){a, b, c, d});
}

static void parse(const char *text)
{
	if (shim_policy_parse(&p, text, err, sizeof(err)) != 0)
		fail_msg("%s", err);
}

static void refused(const char *text, const char *words)
{
	assert_int_equal(shim_policy_parse(&p, text, err, sizeof(err)), RWY_EINVAL);
	if (!strstr(err, words))
		fail_msg("`%s`: `%s` instead of `%s`", text, err, words);
}

static void lines(void **state)
{
	const struct rwy_ip in = ip4(10, 2, 0, 9), wide = ip4(10, 3, 0, 9), out = ip4(11, 0, 0, 1);
	const struct shim_rule *r;

	parse("# to site B\n\n"
	      "redirect 10.0.0.0/8 via 10.1.0.1\r\n"
	      "  redirect\t10.2.0.0/24 via 10.1.0.2,weight=3 10.1.0.3,port=99,down else 10.1.0.4 # last\n"
	      "redirect fd00:2::/64 via fd00:1::1");
	r = shim_policy_find(&p, &in);
	assert_int_equal(r->relays, 3);
	assert_int_equal(p.relay[r->first].weight, 3);
	assert_int_equal(p.relay[r->first].port, PROXY_ASK_PORT);
	assert_int_equal(p.relay[r->first + 1].port, 99);
	assert_int_equal(p.relay[r->first + 1].weight, 1);
	assert_int_equal(p.relay[r->first + 1].order, 0);
	assert_int_equal(p.relay[r->first + 2].order, 1);
	assert_false(p.relay[r->first].down);
	assert_true(p.relay[r->first + 1].down);
	assert_int_equal(shim_policy_find(&p, &wide)->relays, 1);
	assert_null(shim_policy_find(&p, &out));
	assert_int_equal(p.rules, 3);
}

/* As many relays as there may be, in one line, and as many bytes as --via takes. */
static void long_lines(void **state)
{
	static char text[SHIM_FILE_MAX];
	size_t n = (size_t)sprintf(text, "redirect fd00::/16 via");

	for (unsigned i = 0; i < SHIM_RELAYS_MAX; i++)
		n += (size_t)sprintf(
		    text + n, " fd00:ffff:ffff:ffff:ffff:ffff:ffff:%04x,weight=100,port=65535,down", i);
	parse(text);
	assert_int_equal(p.rules, 1);
	assert_int_equal(p.rule[0].relays, SHIM_RELAYS_MAX);
	assert_int_equal(p.relay[SHIM_RELAYS_MAX - 1].weight, 100);
	sprintf(text + n, " fd00::1");
	refused(text, "line 1: expected fewer relays");

	for (unsigned i = n = 0; i < 111; i++)
		n += (size_t)sprintf(text + n, "10.1.0.1 ");
	n += (size_t)sprintf(text + n, "10.1.0.2,weight=1,port=4");
	assert_int_equal(n, 1023);
	assert_int_equal(shim_policy_via(&p, text, err, sizeof(err)), 0);
	assert_int_equal(p.relay[p.relays - 1].port, 4);
	sprintf(text + n, "0");
	assert_int_equal(shim_policy_via(&p, text, err, sizeof(err)), RWY_EINVAL);
	assert_string_equal(err, "expected fewer relays");
}

/* Relays, this host and the link are not reached by relays. */
static void direct(void **state)
{
	const struct rwy_ip relay = ip4(10, 1, 0, 1), self = ip4(127, 0, 0, 1), target = ip4(10, 2, 0, 1);
	const struct rwy_ip link = {.b = {0xfe, 0x80, [15] = 1}}, far = {.b = {0xfd, 0, [15] = 1}};

	assert_int_equal(shim_policy_via(&p, " 10.1.0.1 fd00:1::1,weight=2  10.1.0.2", err, sizeof(err)), 0);
	assert_int_equal(p.rules, 2);
	assert_null(shim_policy_find(&p, &relay));
	assert_null(shim_policy_find(&p, &self));
	assert_null(shim_policy_find(&p, &link));
	assert_int_equal(shim_policy_find(&p, &target)->relays, 2);
	assert_int_equal(shim_policy_find(&p, &far)->relays, 1);
	assert_int_equal(shim_policy_via(&p, "10.1.0.1", err, sizeof(err)), 0);
	assert_null(shim_policy_find(&p, &far));
	assert_int_equal(shim_policy_via(&p, " ", err, sizeof(err)), RWY_EINVAL);
	assert_int_equal(shim_policy_via(&p, "relay.example", err, sizeof(err)), RWY_EINVAL);
	assert_string_equal(err, "expected the address of a relay, found `relay.example`");
}

static void errors(void **state)
{
	static char text[64 << 10];

	refused("\nredirects 10.0.0.0/8 via 10.1.0.1", "line 2: expected redirect PREFIX via RELAY");
	refused("redirect", "a prefix, found nothing");
	refused("redirect 10.0.0.0/33 via 10.1.0.1", "a prefix, found `10.0.0.0/33`");
	refused("redirect 10.0.0.0/ via 10.1.0.1", "a prefix, found");
	refused("redirect 10.0.0.0/+8 via 10.1.0.1", "a prefix, found");
	refused("redirect 10.0.0.1/8 via 10.1.0.1", "without bits behind its length");
	refused("redirect ::ffff:10.0.0.0/104 via 10.1.0.1", "a prefix");
	refused("redirect 10.0.0.0/8 10.1.0.1", "`via`, found `10.1.0.1`");
	refused("redirect 10.0.0.0/8", "`via`, found nothing");
	refused("redirect 10.0.0.0/8 via", "the address of a relay, found nothing");
	refused("redirect 10.0.0.0/8 via relay.example", "the address of a relay, found `relay.example`");
	refused("redirect 10.0.0.0/8 via 10.1.0.1,weight=0", "weight=1..100, port=1..65535 or down");
	refused("redirect 10.0.0.0/8 via 10.1.0.1,weight=101", "weight=1..100");
	refused("redirect 10.0.0.0/8 via 10.1.0.1,colour=1", "found `colour=1`");
	refused("redirect 10.0.0.0/8 via 10.1.0.1,port=65536", "port=1..65535");
	refused("redirect 10.0.0.0/8 via 10.1.0.1,down=1", "or down, found `down=1`");
	refused("redirect 10.0.0.0/8 via else 10.1.0.1", "a relay before `else`");
	refused("redirect 10.0.0.0/8 via 10.1.0.1 else else 10.1.0.2", "a relay before `else`");
	refused("redirect 10.0.0.0/8 via 10.1.0.1 else", "the address of a relay");
	refused("redirect 10.0.0.0/8 via fd00::1", "the prefix's family, found `fd00::1`");
	refused("redirect 10.0.0.0/8 via 10.1.0.1\nredirect 10.0.0.0/8 via 10.1.0.2",
	    "line 2: expected a prefix of its own");
	for (unsigned i = 0; i <= SHIM_RULES_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "redirect 10.%u.%u.0/24 via 10.255.0.1\n", i / 256, i % 256);
	refused(text, "line 1025: expected fewer lines");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(long_lines),
	    cmocka_unit_test(direct), cmocka_unit_test(errors)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
