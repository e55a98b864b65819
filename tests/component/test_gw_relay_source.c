/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source addresses at a relay (ov_lab.h): site A checks them, site B does not. A REQ in the name of
 * a host that is not on the relay's LAN makes no link, whatever the access list says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/datapath/edge.h"
#include "tests/component/ov_lab.h"
#include "tests/lib/proxy_cm.h"

#define WAIT 5000 /* turns of a millisecond, limit for what must happen */
#define PORT 7000

static struct ov_lab lab;

static struct proxy_map_now links(enum fp_site s)
{
	struct proxy_map_now n;

	proxy_map_count(lab.fp.gw[s].w->edge->core.map, &n);
	return n;
}

/* Whether a REQ from this address makes a link. */
static bool is_taken(enum fp_site s, struct rwy_ip src)
{
	static const uint8_t host[6] = {0x02, 0xaa, 0, 0, 0, 9};
	static uint32_t comm;
	const uint32_t before = links(s).half_open;
	const uint64_t foreign = ov_counters(&lab, s).drop_lan_foreign_source;
	const struct px_req r = {
	    .src = src, .dst = fp_relay_ip(s), .comm = ++comm, .qpn = 17, .tid = comm, .port = PORT};
	uint8_t ip[TP_MAX], eth[FR_MAX];
	uint32_t len = px_make_req(ip, &r);

	ov_inject(&lab, s, eth, fr_eth(eth, lab.fp.gw[s].port[FP_LAN].mac, host, 0, 0x0800, ip, len));
	for (unsigned i = 0; i < WAIT && links(s).half_open == before &&
	                     ov_counters(&lab, s).drop_lan_foreign_source == foreign;
	     i++)
		ov_settle(&lab, 1);
	assert_int_not_equal(
	    links(s).half_open > before, ov_counters(&lab, s).drop_lan_foreign_source > foreign);
	return links(s).half_open > before;
}

static void test_relay_source(void **state)
{
	for (unsigned i = 0; i < 2; i++) { /* decided, and remembered */
		assert_true(is_taken(FP_A, ov_ip4(10, 1, 0, 2)));
		assert_false(is_taken(FP_A, ov_ip4(10, 2, 0, 9)));
		assert_false(is_taken(FP_A, ov_ip4(10, 77, 0, 5)));
		assert_true(is_taken(FP_B, ov_ip4(10, 77, 0, 5)));
	}
}

static void conf(struct conf *c, enum fp_site s)
{
	c->port[FP_LAN].source_check = s == FP_A;
	fp_relay_conf(c, s);
	c->relay.map[0] = (struct conf_map){.name = "m",
	    .listen = fp_relay_ip(s),
	    .port = PORT,
	    .target = ov_ip4(10, s == FP_A ? 2 : 1, 0, 2),
	    .target_port = PORT};
	c->relay.maps = 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_relay_source)};

	ov_conf_more = conf;
	ov_lab_new(&lab, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
