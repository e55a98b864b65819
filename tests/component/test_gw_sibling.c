/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets between a gateway and its siblings (sibling/lab.h): which ones it hands on, and how. A
 * sibling's packets go out on the LAN as a router would send them, no packet is forwarded twice,
 * and a forged one is dropped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "gateway/datapath/sibling_seal.h"
#include "roce/icrc.h"
#include "roce/parse.h"
#include "rwy/endian.h"
#include "tests/component/sibling/lab.h"

/* As a2 hands it on. */
static void send_from_a2(uint8_t n, uint32_t qpn, uint32_t psn)
{
	const struct fr_roce r = sl_packet(n, qpn, psn, false);
	uint8_t ip[FR_MAX];
	uint32_t len = fr_write(ip, &r);

	if (sl.sealed)
		sl_seal(ip, len);
	sl_inject(FP_A, sl_mac[SL_A2], ip, len + (sl.sealed ? GW_SEAL_LEN : 0));
}

/* A's LAN gets only answers to the host: of these there may be some, to flows of earlier tests. */
static void expect_none_handed(void)
{
	uint8_t buf[FR_MAX];
	struct fr_seen f;

	while (sl_next(FP_A, SL_NOTHING, buf, &f))
		assert_memory_equal(f.eth, sl_host_mac, 6);
}

/* By the file's weights, 3 to 1: that share of 256 address pairs; the same for all QPs of a
 * pair. */
static void test_rule(void **state)
{
	const uint64_t before = sl_at_a().sibling_tx;
	unsigned theirs = 0;

	for (unsigned i = 0; i < 256; i++) {
		struct fr_roce r = sl_packet((uint8_t)(i % SL_HOSTS), 0x300000 + i, 1, false);
		uint8_t ip[FR_MAX];
		bool handed[2];

		r.dst.b[15] = (uint8_t)(2 + i / SL_HOSTS);
		for (unsigned k = 0; k < 2; k++) {
			const uint64_t was = sl_at_a().sibling_tx;

			r.dqpn += k << 12;
			sl_inject(FP_A, sl_host_mac, ip, fr_write(ip, &r));
			ov_turn(&sl.ov); /* the worker that receives it, */
			ov_turn(&sl.ov); /* and the owner */
			handed[k] = sl_at_a().sibling_tx > was;
		}
		assert_int_equal(handed[0], handed[1]);
		theirs += handed[0];
	}
	assert_in_range(theirs, 256 * 65 / 100, 256 * 85 / 100);
	assert_int_equal(sl_at_a().sibling_tx - before, 2 * theirs);
	ov_settle(&sl.ov, SL_NOTHING);
}

/* The forwarded packet equals the received one but for MAC addresses and one hop; ICRC and checksum
 * are valid. */
static void test_rewrite(void **state)
{
	sl_say_all(SL_A2);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		const struct gw_counters before = sl_at_a();
		const struct fr_roce r = sl_packet(3, sl_fresh(), 9, v6);
		uint8_t ip[FR_MAX], buf[FR_MAX];
		const uint32_t len = fr_write(ip, &r), ttl = v6 ? 7 : 8;
		struct roce_pkt pkt;
		struct fr_seen f;

		sl_inject(FP_A, sl_host_mac, ip, len);
		assert_true(sl_next(FP_A, SL_WAIT, buf, &f));
		assert_memory_equal(f.eth, sl_mac[SL_A2], 6);
		assert_memory_equal(f.eth + 6, sl.ov.fp.gw[FP_A].port[FP_LAN].mac, 6);
		assert_int_equal(f.type, v6 ? 0x86dd : 0x0800);
		assert_int_equal(f.net_len, len + (sl.sealed ? GW_SEAL_LEN : 0));
		if (sl.sealed) {
			sl_seal(ip, len);
			assert_memory_equal(f.net + len, ip + len, GW_SEAL_LEN);
		}
		assert_int_equal(f.net[ttl], ip[ttl] - 1);
		assert_int_equal(roce_parse((uint8_t *)(uintptr_t)f.net, len, &pkt), ROCE_PARSE_OK);
		assert_true(roce_icrc_ok(&pkt));
		ip[ttl]--;
		if (!v6)
			memcpy(ip + 10, f.net + 10, 2); /* fr_read() has checked it */
		assert_memory_equal(ip, f.net, len);
		assert_int_equal(sl_at_a().tx_in_place, before.tx_in_place + 1);
		assert_int_equal(sl_at_a().tx_copied, before.tx_copied);
		assert_int_equal(sl_at_a().sibling_tx, before.sibling_tx + 1);
	}
}

/* One hop left: it is carried as the engine carries it, unless an unknown sibling might send it in
 * a circle. */
static void test_last_hop(void **state)
{
	const struct sl_said x = {.no3 = true, .all = true, .weight = 1}, y = {.all = true, .weight = 1};
	const struct fr_roce r = sl_packet(3, sl_fresh(), 9, true);
	const uint64_t before = sl_at_a().drop_sibling_hops;
	uint8_t ip[FR_MAX], buf[FR_MAX];
	const uint32_t len = fr_write(ip, &r);
	struct fr_seen f;

	sl_say(&x);
	ip[7] = 1;
	sl_inject(FP_A, sl_host_mac, ip, len);
	assert_true(sl_next(FP_A, SL_WAIT, buf, &f));
	assert_memory_equal(f.eth, sl_mac[SL_A2], 6);
	assert_int_equal(f.net[7], 1);
	sl_say(&y); /* a3 has no MAC address */
	sl_inject(FP_A, sl_host_mac, ip, len);
	expect_none_handed();
	assert_int_equal(sl_at_a().drop_sibling_hops, before + 1);
}

/* A packet forwarded by a sibling is accepted here, and the rest of that flow, too. */
static void test_never_twice(void **state)
{
	const uint32_t qpn = sl_fresh();
	const uint64_t kept = sl_at_a().sibling_kept, sent = sl_at_a().sibling_tx;

	sl_say_all(SL_A2);
	send_from_a2(6, qpn, 1);
	sl_expect_carried(qpn);
	assert_int_equal(sl_at_a().sibling_kept, kept + 1);
	sl_send_write(6, qpn, 2);
	sl_expect_carried(qpn);
	assert_int_equal(sl_at_a().sibling_tx, sent);
	ov_settle(&sl.ov, SL_NOTHING);
}

/*
 * A host that writes a sibling's MAC address into its frames, without the site's key: its packet is
 * dropped, and the flow whose addresses it has goes on to the sibling. Nor is another packet's seal
 * of use.
 */
static void test_forged(void **state)
{
	const struct gw_counters before = sl_at_a();
	const uint32_t qpn = sl_fresh();
	const struct fr_roce r = sl_packet(6, qpn, 1, false), other = sl_packet(6, qpn, 2, false);
	uint8_t ip[FR_MAX], theirs[FR_MAX];
	const uint32_t len = fr_write(ip, &r);

	if (!sl.sealed) /* nothing tells it from a sibling's: test_never_twice */
		return;
	sl_say_all(SL_A2);
	sl_inject(FP_A, sl_mac[SL_A2], ip, len);
	memset(ip + len, 0, GW_SEAL_LEN);
	sl_inject(FP_A, sl_mac[SL_A2], ip, len + GW_SEAL_LEN);
	assert_int_equal(fr_write(theirs, &other), len);
	sl_seal(theirs, len);
	memcpy(ip + len, theirs + len, GW_SEAL_LEN);
	sl_inject(FP_A, sl_mac[SL_A2], ip, len + GW_SEAL_LEN);
	sl_seal(ip, len);
	sl_inject(FP_A, sl_mac[SL_A2], ip, len + GW_SEAL_LEN - 1);
	expect_none_handed();
	assert_int_equal(sl_at_a().drop_sibling_forged, before.drop_sibling_forged + 4);
	assert_int_equal(sl_at_a().sibling_kept, before.sibling_kept);
	assert_int_equal(sl_at_a().to_engine_lan, before.to_engine_lan);
	sl_send_write(6, qpn, 1);
	sl_expect_handed(SL_A2, qpn);
	ov_settle(&sl.ov, SL_NOTHING);
}

/* A sibling with an unknown MAC address: the gateway asks for it, and drops the packet, which the
 * host sends again. */
static void test_unresolved(void **state)
{
	const uint64_t before = sl_at_a().drop_sibling_unresolved;
	const struct gw_app *app = &sl.ov.fp.gw[FP_A].app;
	const uint32_t qpn = sl_fresh();
	bool asked = false;

	sl_say_all(SL_A3);
	sl_send_write(8, qpn, 1);
	expect_none_handed();
	assert_int_equal(sl_at_a().drop_sibling_unresolved, before + 1);
	for (unsigned w = 0; w < app->workers; w++)
		for (uint32_t i = app->worker[w]->ask_tail; i != app->worker[w]->ask_head; i++) {
			const struct rwy_ip a3 = sl_sibling(SL_A3);

			asked |= rwy_ip_eq(&app->worker[w]->ask[i % GW_ASKS].addr, &a3);
		}
	assert_true(asked);
}

/* Only RoCE: packets without state may use any gateway. Tenants' packets are not forwarded. */
static void test_what_is_not_roce(void **state)
{
	const uint64_t before = sl_at_a().sibling_tx;
	const struct fr_roce r = sl_packet(9, sl_fresh(), 1, false);
	uint8_t ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;

	sl_say_all(SL_A2);
	sl_inject(FP_A, sl_host_mac, ip, fr_udp(ip, &r.src, &r.dst, 1000, 2000, 64));
	do
		assert_true(sl_next(FP_B, SL_WAIT, buf, &f));
	while (rwy_get16(f.net + 22) != 2000);
	assert_int_equal(sl_at_a().sibling_tx, before);
}

static int tests(void)
{
	const struct CMUnitTest t[] = {
	    cmocka_unit_test(test_rule),
	    cmocka_unit_test(test_rewrite),
	    cmocka_unit_test(test_last_hop),
	    cmocka_unit_test(test_never_twice),
	    cmocka_unit_test(test_forged),
	    cmocka_unit_test(test_unresolved),
	    cmocka_unit_test(test_what_is_not_roce),
	};

	gw_log_set(GW_LOG_ERROR); /* hosts that never answer cause warnings */
	return cmocka_run_group_tests(t, NULL, NULL);
}

int main(int argc, char **argv)
{
	return sl_main(argc, argv, tests);
}
