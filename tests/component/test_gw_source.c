/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source addresses of the plain LAN (ov_lab.h): site A checks them, site B does not. At site A a
 * half of the LAN's addresses, from 10.1.0.128 on, is behind the tunnel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/component/ov_lab.h"

#define WAIT 5000 /* turns of a millisecond, limit for what must happen */

static struct ov_lab lab;

static uint64_t carried(enum fp_site s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < lab.fp.gw[s].app.workers; i++)
		n += eng_counters(lab.fp.gw[s].app.worker[i]->eng)->dgrams;
	return n;
}

/* UDP from a plain host with this address. True: its gateway carries it; else it was foreign. */
static bool plain_carries(enum fp_site s, struct rwy_ip src)
{
	static const uint8_t host[6] = {0x02, 0xaa, 0, 0, 0, 9};
	uint64_t before = carried(s), foreign = ov_counters(&lab, s).drop_lan_foreign_source;
	struct rwy_ip to = ov_ip4(10, s == FP_A ? 2 : 1, 0, 2);
	uint8_t ip[FR_MAX], eth[FR_MAX];
	uint32_t len = fr_udp(ip, &src, &to, 1000, 7000, 100);
	bool carries;

	ov_inject(&lab, s, eth, fr_eth(eth, lab.fp.gw[s].port[FP_LAN].mac, host, 0, 0x0800, ip, len));
	for (unsigned i = 0;
	     i < WAIT && carried(s) == before && ov_counters(&lab, s).drop_lan_foreign_source == foreign; i++)
		ov_settle(&lab, 1);
	carries = carried(s) == before + 1;
	assert_int_equal(ov_counters(&lab, s).drop_lan_foreign_source, foreign + !carries);
	return carries;
}

/* The longer of a LAN's route and a tunnel's prefix decides. */
static void test_plain_source(void **state)
{
	for (unsigned i = 0; i < 2; i++) { /* decided, and remembered */
		assert_true(plain_carries(FP_A, ov_ip4(10, 1, 0, 2)));
		assert_false(plain_carries(FP_A, ov_ip4(10, 2, 0, 9)));
		assert_false(plain_carries(FP_A, ov_ip4(203, 0, 113, 5)));
		assert_true(plain_carries(FP_A, ov_ip4(10, 1, 0, 127)));
		assert_false(plain_carries(FP_A, ov_ip4(10, 1, 0, 128)));
		assert_true(plain_carries(FP_B, ov_ip4(10, 1, 0, 9)));
		assert_true(plain_carries(FP_B, ov_ip4(203, 0, 113, 5)));
	}
}

static void conf(struct conf *c, enum fp_site s)
{
	struct conf_tunnel *t = &c->tunnel[0];

	c->port[FP_LAN].source_check = s == FP_A;
	if (s == FP_A)
		t->prefix[t->prefixes++] =
		    (struct conf_prefix){.addr = ov_ip4(10, 1, 0, 128), .len = 96 + 25};
}

static int run(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain_source)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	ov_conf_more = conf;
	return ov_main(argc, argv, &lab, run);
}
