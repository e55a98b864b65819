/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants' packets through two whole gateways (ov_lab.h): what goes in at one LAN port and what comes out at
 * the other, byte by byte, with one and with two workers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rte_eal.h>
#include <stdlib.h>
#include <string.h>

#include "roce/icrc.h"
#include "rwy/endian.h"
#include "tests/gw/ov_lab.h"

#define WAIT  5000 /* ms at most for what must come */
#define QPN_A 0x11
#define QPN_B 0x22
#define SPORT 0xc123

static struct ov_lab lab;
static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* --- helpers ----------------------------------------------------------------------------------------- */

static uint32_t arp_frame(uint8_t *eth, const uint8_t dst[6], const uint8_t src[6], uint8_t op,
    struct rwy_ip sender, struct rwy_ip target)
{
	uint8_t p[28], zero[6] = {0};

	fr_arp(p, op, src, &sender, op == 1 ? zero : dst, &target);
	return fr_eth(eth, dst, src, 0, 0x0806, p, 28);
}

static void announce(enum fp_site s, enum ov_tenant t, uint8_t n)
{
	uint8_t eth[64];

	ov_send(&lab, s, t, eth, arp_frame(eth, all, ov_host_mac(s, n), 1, ov_host(s, n), ov_host(s, n)));
	ov_turn(&lab);
}

static bool is_arp(const struct fr_seen *f, uint8_t op)
{
	return f->type == 0x0806 && f->net[7] == op;
}

/* The next frame at a site's LAN port that is no ARP. */
static bool next_ip(enum fp_site s, uint8_t buf[FR_MAX], struct fr_seen *f, unsigned ms)
{
	uint32_t len;

	while (ov_receive(&lab, s, buf, &len, ms)) {
		assert_true(fr_read(buf, len, f));
		if (f->type != 0x0806)
			return true;
	}
	return false;
}

/* A frame for host n of tenant t is as its site has it. */
static void check_wrap(const struct fr_seen *f, enum fp_site s, enum ov_tenant t, uint8_t n)
{
	const uint8_t *port = lab.fp.gw[s].port[FP_LAN].mac;
	bool v6 = ov_way(t, s) == OV_VTEP6;
	struct rwy_ip own = ov_own(s, v6), vtep = ov_vtep(s, 1, v6);

	assert_memory_equal(f->eth + 6, port, 6);
	assert_memory_equal(f->inner, ov_host_mac(s, n), 6);
	if (ov_way(t, s) == OV_VLAN) {
		assert_false(f->vxlan);
		assert_int_equal(f->vid, ov_vlan(t));
		return;
	}
	assert_true(f->vxlan);
	assert_int_equal(f->vid, 0);
	assert_int_equal(f->vni, ov_vni[t]);
	assert_memory_equal(f->eth, ov_vtep_mac(s, 1), 6);
	assert_memory_equal(f->inner + 6, ov_gw_mac(t), 6);
	assert_true(rwy_ip_eq(&f->outer_src, &own));
	assert_true(rwy_ip_eq(&f->outer_dst, &vtep));
}

static struct fr_roce roce(enum fp_site from, uint16_t sport, uint32_t dqpn, uint32_t psn, uint8_t fill)
{
	return (struct fr_roce){.src = ov_host(from, 1),
	    .dst = ov_host(1 - from, 1),
	    .sport = sport,
	    .dqpn = dqpn,
	    .psn = psn,
	    .payload = 256,
	    .fill = fill,
	    .tos = 2};
}

static const uint8_t *bth_of(const struct fr_seen *f)
{
	return f->net + 20 + 8;
}

/* Host A writes, host B answers, A is acknowledged. */
static void one_write(enum ov_tenant t, uint32_t psn, uint8_t fill)
{
	struct fr_roce r = roce(FP_A, SPORT, QPN_B, psn, fill), a = roce(FP_B, SPORT, QPN_A, psn, 0);
	uint8_t ip[FR_MAX], buf[FR_MAX];
	uint32_t len = fr_write(ip, &r);
	struct roce_pkt pkt;
	struct fr_seen f;

	ov_send_ip(&lab, FP_A, t, 1, ip, len);
	assert_true(next_ip(FP_B, buf, &f, WAIT));
	check_wrap(&f, FP_B, t, 1);
	assert_int_equal(f.net_len, len);
	assert_int_equal(roce_parse((uint8_t *)(uintptr_t)f.net, f.net_len, &pkt), ROCE_PARSE_OK);
	assert_true(roce_icrc_ok(&pkt));
	assert_int_equal(pkt.psn, psn);
	for (uint32_t i = 0; i < 256; i++)
		assert_int_equal(pkt.payload[i], fill);
	len = fr_ack(ip, &a, psn + 1);
	ov_send_ip(&lab, FP_B, t, 1, ip, len);
	assert_true(next_ip(FP_A, buf, &f, WAIT));
	check_wrap(&f, FP_A, t, 1);
	assert_int_equal(bth_of(&f)[0], 0x11);
	assert_int_equal(rwy_get24(bth_of(&f) + 5), QPN_A);
	assert_int_equal(rwy_get24(bth_of(&f) + 9), psn);
	assert_int_equal(bth_of(&f)[12] >> 5, 0); /* an ACK */
}

/* --- a connection of each tenant --------------------------------------------------------------------- */

/* The destination's host is not known: it is asked for, and the packet arrives after the answer. */
static void test_unknown_host(void **state)
{
	struct fr_roce r = roce(FP_A, SPORT, QPN_B, 100, 0xa0), a = roce(FP_B, SPORT, QPN_A, 100, 0);
	uint8_t ip[FR_MAX], buf[FR_MAX], eth[64];
	uint32_t len;
	struct rwy_ip gw = ov_gw(FP_B), host = ov_host(FP_B, 1);
	struct fr_seen f;

	ov_settle(&lab, 20);
	ov_send_ip(&lab, FP_A, OV_RED, 1, ip, fr_write(ip, &r));
	assert_true(ov_receive(&lab, FP_B, buf, &len, WAIT));
	assert_true(fr_read(buf, len, &f));
	assert_true(is_arp(&f, 1));
	assert_int_equal(f.vid, ov_vlan(OV_RED));
	assert_memory_equal(f.eth, all, 6);
	assert_memory_equal(f.net + 8, lab.fp.gw[FP_B].port[FP_LAN].mac, 6);
	assert_memory_equal(f.net + 14, gw.b + 12, 4);
	assert_memory_equal(f.net + 24, host.b + 12, 4);
	assert_true(ov_counters(&lab, FP_B).drop_tenant_unresolved > 0);
	ov_send(&lab, FP_B, OV_RED, eth,
	    arp_frame(eth, lab.fp.gw[FP_B].port[FP_LAN].mac, ov_host_mac(FP_B, 1), 2, host, gw));
	assert_true(next_ip(FP_B, buf, &f, WAIT));
	check_wrap(&f, FP_B, OV_RED, 1);
	assert_int_equal(rwy_get24(bth_of(&f) + 9), 100);
	ov_send_ip(&lab, FP_B, OV_RED, 1, ip, fr_ack(ip, &a, 1));
	assert_true(next_ip(FP_A, buf, &f, WAIT));
	check_wrap(&f, FP_A, OV_RED, 1);
	ov_settle(&lab, 5);
}

/* Same addresses, QPNs and PSNs in all tenants, turn by turn: each sees its own bytes, at its own VTEP. */
static void test_clashing(void **state)
{
	struct gw_tenant_count before[OV_TENANTS], after;

	for (unsigned t = 0; t < OV_TENANTS; t++) {
		announce(FP_B, (enum ov_tenant)t, 1);
		before[t] = ov_count(&lab, FP_A, (enum ov_tenant)t);
	}
	for (uint32_t psn = 101; psn < 121; psn++)
		for (unsigned t = 0; t < OV_TENANTS; t++)
			one_write((enum ov_tenant)t, psn, (uint8_t)(psn + 64 * t));
	for (unsigned t = 0; t < OV_TENANTS; t++) {
		after = ov_count(&lab, FP_A, (enum ov_tenant)t);
		assert_int_equal(after.rx_packets - before[t].rx_packets, 20);
		assert_int_equal(after.rx_bytes - before[t].rx_bytes, 20 * (20 + 8 + 12 + 16 + 256 + 4));
		assert_true(after.tx_packets - before[t].tx_packets >= 20);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_unknown_host),
	    cmocka_unit_test(test_clashing),
	};
	char *eal[] = {argv[0], "--no-huge", "--no-shconf", "-m", "400", "--no-pci", "--lcores", "0",
	    "--log-level", "error", NULL};

	int rc;

	gw_log_init(GW_LOG_WARNING);
	if (rte_eal_init(10, eal) < 0)
		return 1;
	ov_lab_new(&lab, argc > 1 ? (unsigned)atoi(argv[1]) : 1);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (rc)
		ov_dump(&lab, stderr);
	return rc;
}
