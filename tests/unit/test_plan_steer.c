/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of a tunnel in what a network granted: their numbers, addresses, and why there are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/plan/steer.h"

static const char addr_a[][PLAN_NAME_MAX] = {"192.0.2.11", "198.51.100.11", "fd00:9::1"};
static const char addr_b[][PLAN_NAME_MAX] = {"192.0.2.21", "203.0.113.21", "fd00:9::2"};
static const struct plan_underlay end[2] = {{"a1", 3, addr_a}, {"b1", 3, addr_b}};
static const struct plan_paths none;

static struct plan_granted leg(const char *edge, const char *name, uint64_t bps, uint8_t dscp)
{
	struct plan_granted g = {.bps = bps, .steer = {.dscp = dscp}};

	snprintf(g.edge, sizeof(g.edge), "%s", edge);
	snprintf(g.name, sizeof(g.name), "%s", name);
	return g;
}

static void expect(const struct plan_paths *p, unsigned at, const char *edge, uint64_t bps)
{
	assert_true(at < p->n);
	assert_string_equal(p->path[at].edge, edge);
	assert_int_equal(p->path[at].bps, bps);
}

/* A path keeps its number while it is granted, whatever comes and goes beside it. */
static void test_numbers(void **state)
{
	struct plan_granted g[4] = {leg("pe-1", "p", 60, 10), leg("pe-2", "p", 40, 12),
	    leg("pe-1", "p", 6, 10), leg("pe-3", "p", 5, 14)};
	struct plan_paths p, q;

	plan_steer_paths(&p, &none, g, 3, end, false); /* two jobs at pe-1 */
	assert_string_equal(p.why, "");
	assert_int_equal(p.n, 2);
	expect(&p, 0, "pe-1", 66);
	expect(&p, 1, "pe-2", 40);
	assert_int_equal(p.path[1].dscp, 12);
	assert_string_equal(p.path[1].addr[0], "");
	plan_steer_paths(&q, &p, &g[1], 1, end, false); /* pe-1 vanishes */
	assert_int_equal(q.n, 2);
	expect(&q, 0, "pe-1", 0);
	expect(&q, 1, "pe-2", 40);
	plan_steer_paths(&p, &q, g, 2, end, false); /* it is back */
	expect(&p, 0, "pe-1", 60);
	expect(&p, 1, "pe-2", 40);
	plan_steer_paths(&p, &q, &g[3], 1, end, false); /* another one gets its number; pe-2's is free */
	assert_int_equal(p.n, 1);
	expect(&p, 0, "pe-3", 5);
	assert_int_equal(p.path[0].dscp, 14);
	plan_steer_paths(&q, &p, g, 0, end, false);
	assert_int_equal(q.n, 0);
	assert_string_equal(q.why, "");
}

/* A gateway's first address in the network that the edge looks at. */
static void test_addresses(void **state)
{
	struct plan_granted g = leg("pe-1", "p", 60, 0);
	struct plan_paths p;

	g.steer = (struct plan_steer){.net = {"198.51.100.0/25", "203.0.113.21"}, .source_port = 5000};
	plan_steer_paths(&p, &none, &g, 1, end, true); /* both are said: the tunnel's do not matter */
	assert_string_equal(p.why, "");
	assert_string_equal(p.path[0].addr[0], "198.51.100.11");
	assert_string_equal(p.path[0].addr[1], "203.0.113.21");
	assert_int_equal(p.path[0].source_port, 5000);
	g.steer = (struct plan_steer){.net = {"", "fd00::/15"}};
	plan_steer_paths(&p, &none, &g, 1, end, true);
	assert_string_equal(p.path[0].addr[0], "");
	assert_string_equal(p.path[0].addr[1], "fd00:9::2");
	g.steer = (struct plan_steer){.net = {"0.0.0.0/0", ""}};
	plan_steer_paths(&p, &none, &g, 1, end, false);
	assert_string_equal(p.path[0].addr[0], "192.0.2.11");
}

static void test_why_not(void **state)
{
	struct plan_granted g[8] = {leg("pe-1", "p", 60, 10), leg("pe-2", "q", 40, 0)};
	struct plan_paths p;

	plan_steer_paths(&p, &none, g, 2, end, false);
	assert_int_equal(p.n, 0);
	assert_string_equal(p.why, "path q at pe-2: the network does not say how to get into it");
	g[1].steer = (struct plan_steer){.net = {"198.51.100.128/25", ""}};
	plan_steer_paths(&p, &none, g, 2, end, false);
	assert_int_equal(p.n, 0);
	assert_string_equal(p.why, "path q at pe-2: gateway a1 has no address in 198.51.100.128/25");
	g[1].steer = (struct plan_steer){.net = {"", "192.0.2.22"}};
	plan_steer_paths(&p, &none, g, 2, end, false);
	assert_string_equal(p.why, "path q at pe-2: gateway b1 has no address in 192.0.2.22");
	g[1].steer = (struct plan_steer){.net = {"fd00:9::/64", ""}};
	plan_steer_paths(&p, &none, g, 2, end, false);
	assert_string_equal(p.why, "path q at pe-2: fd00:9::1 is not of the tunnel's family");
	for (unsigned i = 0; i < 8; i++) {
		char edge[8];

		snprintf(edge, sizeof(edge), "pe-%u", i);
		g[i] = leg(edge, "p", 1, 10);
	}
	plan_steer_paths(&p, &none, g, 7, end, false);
	assert_int_equal(p.n, 7);
	plan_steer_paths(&p, &none, g, 8, end, false);
	assert_int_equal(p.n, 0);
	assert_string_equal(p.why, "the network granted more than 7 paths");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_addresses),
	    cmocka_unit_test(test_why_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
