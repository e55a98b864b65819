/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants' packets through two complete gateways (ov_lab.h): frames into one LAN port and out of
 * the other, byte by byte, with one and with two workers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "roce/icrc.h"
#include "rwy/endian.h"
#include "tests/component/ov_lab.h"

#define WAIT  5000 /* ms, limit for expected frames */
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

/* Receives the next frame at a site's LAN port that is no ARP. */
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

/* Receives a tenant's RoCE packet with that PSN: a slow machine causes needless retransmissions. */
static bool next_psn(enum fp_site s, enum ov_tenant t, uint32_t psn, uint8_t buf[FR_MAX], struct fr_seen *f)
{
	while (next_ip(s, buf, f, WAIT)) {
		uint32_t at = f->net[0] >> 4 == 4 ? 20 : 40;

		if ((f->vxlan ? f->vni == ov_vni[t] : f->vid == ov_vlan(t)) && f->net_len >= at + 20 &&
		    rwy_get16(f->net + at + 2) == 4791 && rwy_get24(f->net + at + 8 + 9) == psn)
			return true;
	}
	return false;
}

/* Receives UDP to a port, plain or of a tenant. */
static bool next_udp(enum fp_site s, uint16_t dport, uint8_t buf[FR_MAX], struct fr_seen *f, unsigned ms)
{
	while (next_ip(s, buf, f, ms))
		if (f->net[0] >> 4 == 4 && rwy_get16(f->net + 22) == dport)
			return true;
	return false;
}

/* Checks that a frame for host n of tenant t has its site's encapsulation. */
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
	assert_true(next_psn(FP_B, t, psn, buf, &f));
	check_wrap(&f, FP_B, t, 1);
	assert_int_equal(f.net_len, len);
	assert_int_equal(roce_parse((uint8_t *)(uintptr_t)f.net, f.net_len, &pkt), ROCE_PARSE_OK);
	assert_true(roce_icrc_ok(&pkt));
	assert_int_equal(pkt.psn, psn);
	for (uint32_t i = 0; i < 256; i++)
		assert_int_equal(pkt.payload[i], fill);
	len = fr_ack(ip, &a, psn + 1);
	ov_send_ip(&lab, FP_B, t, 1, ip, len);
	assert_true(next_psn(FP_A, t, psn, buf, &f));
	check_wrap(&f, FP_A, t, 1);
	assert_int_equal(bth_of(&f)[0], 0x11);
	assert_int_equal(rwy_get24(bth_of(&f) + 5), QPN_A);
	assert_int_equal(rwy_get24(bth_of(&f) + 9), psn);
	assert_int_equal(bth_of(&f)[12] >> 5, 0); /* an ACK */
}

/* --- a connection of each tenant --------------------------------------------------------------------- */

/* The destination host is unknown: the gateway asks for it, and the packet arrives after the
 * answer. */
static void test_unknown_host(void **state)
{
	struct fr_roce r = roce(FP_A, SPORT, QPN_B, 100, 0xa0), a = roce(FP_B, SPORT, QPN_A, 100, 0);
	uint8_t ip[FR_MAX], buf[FR_MAX], eth[64];
	uint32_t len;
	struct rwy_ip gw = ov_gw(FP_B), host = ov_host(FP_B, 1);
	struct fr_seen f;

	ov_settle(&lab, 20);
	ov_send_ip(&lab, FP_A, OV_RED, 1, ip, fr_write(ip, &r));
	do {
		assert_true(ov_receive(&lab, FP_B, buf, &len, WAIT));
		assert_true(fr_read(buf, len, &f));
	} while (!is_arp(&f, 1));
	assert_int_equal(f.vid, ov_vlan(OV_RED));
	assert_memory_equal(f.eth, all, 6);
	assert_memory_equal(f.net + 8, lab.fp.gw[FP_B].port[FP_LAN].mac, 6);
	assert_memory_equal(f.net + 14, gw.b + 12, 4);
	assert_memory_equal(f.net + 24, host.b + 12, 4);
	assert_true(ov_counters(&lab, FP_B).drop_tenant_unresolved > 0);
	ov_send(&lab, FP_B, OV_RED, eth,
	    arp_frame(eth, lab.fp.gw[FP_B].port[FP_LAN].mac, ov_host_mac(FP_B, 1), 2, host, gw));
	assert_true(next_psn(FP_B, OV_RED, 100, buf, &f));
	check_wrap(&f, FP_B, OV_RED, 1);
	ov_send_ip(&lab, FP_B, OV_RED, 1, ip, fr_ack(ip, &a, 1));
	assert_true(next_psn(FP_A, OV_RED, 100, buf, &f));
	check_wrap(&f, FP_A, OV_RED, 1);
	ov_settle(&lab, 5);
	/* All workers have heard the answer. */
	if (lab.fp.gw[FP_B].app.workers > 1)
		assert_true(ov_counters(&lab, FP_B).host_spread > 0);
}

/* Same addresses, QPNs and PSNs in all tenants, alternating: each gets its own bytes, at its own
 * VTEP. */
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

/* DSCP of datagrams and of packets to the hosts' VTEPs: the tenant's, and another one under
 * congestion. */
static void test_dscp(void **state)
{
	struct fr_roce a = roce(FP_B, SPORT, QPN_A, 130, 0), r = roce(FP_A, SPORT, QPN_B, 121, 1);
	uint8_t ip[FR_MAX], buf[FR_MAX];
	uint64_t before;
	struct fr_seen f;

	for (unsigned congested = 0; congested < 2; congested++) {
		uint8_t dscp = congested ? 10 : 26;

		for (unsigned i = 0; i < lab.fp.gw[FP_A].app.workers; i++)
			lab.fp.gw[FP_A].app.worker[i]->tunnel_congested = congested;
		ov_settle(&lab, 5);
		before = lab.wan_dscp[FP_A][26];
		r.psn = a.psn = 121 + congested;
		ov_send_ip(&lab, FP_A, OV_RED, 1, ip, fr_write(ip, &r));
		assert_true(next_psn(FP_B, OV_RED, 121 + congested, buf, &f));
		assert_int_equal(f.net[1] >> 2, 0); /* the inner one is unchanged */
		/* The path itself is not congested: the datagram has the tenant's ordinary DSCP. */
		assert_true(lab.wan_dscp[FP_A][26] > before);
		ov_send_ip(&lab, FP_B, OV_RED, 1, ip, fr_ack(ip, &a, 121 + congested));
		assert_true(next_psn(FP_A, OV_RED, 121 + congested, buf, &f));
		check_wrap(&f, FP_A, OV_RED, 1);
		assert_int_equal(f.outer_tos >> 2, dscp);
	}
	before = lab.wan_dscp[FP_A][26];
	one_write(OV_BLUE, 121, 5); /* has none of its own: the tunnel's */
	assert_int_equal(lab.wan_dscp[FP_A][26], before);
	for (unsigned i = 0; i < lab.fp.gw[FP_A].app.workers; i++)
		lab.fp.gw[FP_A].app.worker[i]->tunnel_congested = 0;
}

static uint8_t pcp_of(const struct fr_seen *f)
{
	return f->eth[14] >> 5;
}

/*
 * 802.1Q priorities: an ACK has that of the host's own frames; red's at site B has one of its own
 * for all frames to its hosts.
 */
static void test_pcp(void **state)
{
	struct fr_roce r = roce(FP_A, SPORT, QPN_B, 121, 1), a = roce(FP_B, SPORT, QPN_A, 121, 0);
	uint8_t ip[FR_MAX], eth[FR_MAX], frame[FR_MAX], buf[FR_MAX];
	const uint8_t *port = lab.fp.gw[FP_A].port[FP_LAN].mac;
	struct fr_seen f;
	uint32_t len;

	for (unsigned pcp = 7; pcp >= 6; pcp--, r.psn++, a.psn++) {
		len = fr_write(ip, &r);
		len = fr_eth(eth, port, ov_host_mac(FP_A, 1), 0, 0x0800, ip, len);
		len = ov_wrap(&lab, FP_A, OV_GREEN, eth, len, frame);
		frame[14] |= (uint8_t)(pcp << 5);
		ov_inject(&lab, FP_A, frame, len);
		assert_true(next_psn(FP_B, OV_GREEN, r.psn, buf, &f));
		check_wrap(&f, FP_B, OV_GREEN, 1); /* no tag, and nowhere to stamp */
		ov_send_ip(&lab, FP_B, OV_GREEN, 1, ip, fr_ack(ip, &a, a.psn));
		assert_true(next_psn(FP_A, OV_GREEN, r.psn, buf, &f));
		check_wrap(&f, FP_A, OV_GREEN, 1);
		assert_int_equal(pcp_of(&f), pcp);
	}
	r.psn = a.psn = 123;
	ov_send_ip(&lab, FP_A, OV_RED, 1, ip, fr_write(ip, &r));
	assert_true(next_psn(FP_B, OV_RED, 123, buf, &f));
	check_wrap(&f, FP_B, OV_RED, 1);
	assert_int_equal(pcp_of(&f), 4);
	ov_send_ip(&lab, FP_B, OV_RED, 1, ip, fr_ack(ip, &a, 123));
	assert_true(next_psn(FP_A, OV_RED, 123, buf, &f));
}

/* --- IPv6 inside, over IPv6 and IPv4 ----------------------------------------------------------------- */

/* RFC 4861: solicits the gateway's address, and host B announces itself. */
static uint32_t nd_frame(uint8_t *eth, const uint8_t dst[6], const uint8_t src[6], uint8_t type,
    struct rwy_ip from, struct rwy_ip to, struct rwy_ip target)
{
	uint8_t p[72] = {0x60, [5] = 32, [6] = 58, [7] = 255};
	uint32_t sum = 32 + 58;

	memcpy(p + 8, from.b, 16);
	memcpy(p + 24, to.b, 16);
	p[40] = type;
	p[44] = type == 136 ? 0x60 : 0;
	memcpy(p + 48, target.b, 16);
	p[64] = type == 136 ? 2 : 1;
	p[65] = 1;
	memcpy(p + 66, src, 6);
	for (unsigned i = 8; i < 72; i += 2)
		sum += rwy_get16(p + i);
	sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(p + 42, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
	return fr_eth(eth, dst, src, 0, 0x86dd, p, 72);
}

static void test_ip6(void **state)
{
	struct rwy_ip gw = ov_host6(FP_A, 0xfe), a = ov_host6(FP_A, 1), b = ov_host6(FP_B, 1),
	              bgw = ov_host6(FP_B, 0xfe);
	struct fr_roce r = {
	    .src = a, .dst = b, .sport = SPORT, .dqpn = QPN_B, .psn = 7, .payload = 128, .fill = 0x66};
	uint8_t eth[FR_MAX], ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;
	uint32_t len;

	ov_send(&lab, FP_A, OV_BLUE, eth,
	    nd_frame(eth, ov_gw_mac(OV_BLUE), ov_host_mac(FP_A, 1), 135, a, gw, gw));
	do
		assert_true(next_ip(FP_A, buf, &f, WAIT));
	while (f.type != 0x86dd);
	check_wrap(&f, FP_A, OV_BLUE, 1);
	assert_int_equal(f.net[40], 136);
	assert_memory_equal(f.net + 48, gw.b, 16);
	assert_memory_equal(f.net + 66, ov_gw_mac(OV_BLUE), 6);
	ov_send(&lab, FP_B, OV_BLUE, eth,
	    nd_frame(eth, ov_gw_mac(OV_BLUE), ov_host_mac(FP_B, 1), 136, b, bgw, b));
	len = fr_write(ip, &r);
	ov_send_ip(&lab, FP_A, OV_BLUE, 1, ip, len);
	assert_true(next_psn(FP_B, OV_BLUE, 7, buf, &f));
	check_wrap(&f, FP_B, OV_BLUE, 1);
	assert_int_equal(f.net_len, len);
	assert_memory_equal(f.net + 8, ip + 8, 32);
	assert_int_equal(f.net[40 + 8 + 28], 0x66);
	r = (struct fr_roce){.src = b, .dst = a, .sport = SPORT, .dqpn = QPN_A, .psn = 7};
	ov_send_ip(&lab, FP_B, OV_BLUE, 1, ip, fr_ack(ip, &r, 1));
	assert_true(next_psn(FP_A, OV_BLUE, 7, buf, &f));
	check_wrap(&f, FP_A, OV_BLUE, 1);
	assert_int_equal(f.net[40 + 8], 0x11);
}

/* --- ARP --------------------------------------------------------------------------------------------- */

/* Asks for `target`; returns whether it was answered, with the expected MAC address. */
static bool ask(enum fp_site s, enum ov_tenant t, struct rwy_ip target, const uint8_t *expect)
{
	uint8_t eth[64], buf[FR_MAX];
	struct fr_seen f;
	uint32_t len;

	ov_settle(&lab, 2);
	ov_send(&lab, s, t, eth, arp_frame(eth, all, ov_host_mac(s, 1), 1, ov_host(s, 1), target));
	ov_turn(&lab);
	do {
		if (!ov_receive(&lab, s, buf, &len, 5))
			return false;
		assert_true(fr_read(buf, len, &f));
	} while (!is_arp(&f, 2));
	assert_memory_equal(f.inner, ov_host_mac(s, 1), 6);
	assert_memory_equal(f.inner + 6, expect, 6);
	assert_memory_equal(f.net + 8, expect, 6);
	assert_memory_equal(f.net + 14, target.b + 12, 4);
	if (ov_way(t, s) == OV_VLAN)
		assert_int_equal(f.vid, ov_vlan(t));
	else
		assert_int_equal(f.vni, ov_vni[t]);
	return true;
}

static void test_arp(void **state)
{
	assert_true(ask(FP_A, OV_RED, ov_gw(FP_A), ov_gw_mac(OV_RED)));
	assert_true(ask(FP_A, OV_BLUE, ov_gw(FP_A), ov_gw_mac(OV_BLUE)));
	assert_true(ask(FP_A, OV_GREEN, ov_gw(FP_A), lab.fp.gw[FP_A].port[FP_LAN].mac));
	assert_true(ask(FP_A, OV_RED, ov_host(FP_B, 9), ov_gw_mac(OV_RED))); /* proxy */
	assert_true(ask(FP_B, OV_RED, ov_host(FP_A, 9), lab.fp.gw[FP_B].port[FP_LAN].mac));
	assert_false(ask(FP_A, OV_GREEN, ov_host(FP_B, 9), all)); /* no proxy */
	assert_false(ask(FP_A, OV_RED, ov_host(FP_A, 9), all));   /* on the same side */
	assert_false(ask(FP_A, OV_RED, ov_ip4(172, 16, 0, 1), all));
}

/* --- ECN, lengths ------------------------------------------------------------------------------------ */

static void outer_ce(uint8_t tos)
{
	struct fr_outer o = {
	    .src = ov_vtep(FP_A, 1, false), .dst = ov_own(FP_A, false), .vni = 5001, .tos = 3};
	uint8_t ip[FR_MAX], eth[FR_MAX], buf[FR_MAX];
	struct fr_roce r = roce(FP_A, SPORT, QPN_B, 200, 1);

	r.tos = tos;
	memcpy(o.dmac, lab.fp.gw[FP_A].port[FP_LAN].mac, 6);
	memcpy(o.smac, ov_vtep_mac(FP_A, 1), 6);
	ov_inject(&lab, FP_A, buf,
	    fr_vxlan(buf, &o, eth,
	        fr_eth(eth, ov_gw_mac(OV_RED), ov_host_mac(FP_A, 1), 0, 0x0800, ip, fr_write(ip, &r))));
	for (unsigned i = 0; i < 4; i++)
		ov_turn(&lab);
}

static uint64_t engine_marked(void)
{
	const struct gw_app *app = &lab.fp.gw[FP_A].app;
	uint64_t n = 0;

	for (unsigned i = 0; i < app->workers; i++)
		n += eng_counters(app->worker[i]->eng)->np_ecn_marked;
	return n;
}

/* RFC 6040: the mark reaches the engine; a sender without ECN loses the packet. */
static void test_ecn(void **state)
{
	uint64_t ce = ov_overlay(&lab, FP_A).ecn.ecn_ce, marked = engine_marked();
	uint64_t dropped = ov_counters(&lab, FP_A).drop_vxlan_ecn, in = ov_counters(&lab, FP_A).to_engine_lan;

	outer_ce(2);
	assert_int_equal(ov_overlay(&lab, FP_A).ecn.ecn_ce, ce + 1);
	assert_int_equal(engine_marked(), marked + 1);
	assert_int_equal(ov_counters(&lab, FP_A).to_engine_lan, in + 1);
	outer_ce(0);
	assert_int_equal(ov_counters(&lab, FP_A).drop_vxlan_ecn, dropped + 1);
	assert_int_equal(ov_counters(&lab, FP_A).to_engine_lan, in + 1);
}

/* The outer packet counts: an MTU of 1500 holds 1450 bytes in VXLAN and 1500 on a VLAN. */
static void test_mtu(void **state)
{
	struct rwy_ip a = ov_host(FP_A, 1), b = ov_host(FP_B, 1);
	uint8_t ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;
	uint64_t before;

	ov_settle(&lab, 20);
	before = ov_counters(&lab, FP_B).drop_tx_too_long;
	ov_send_ip(&lab, FP_A, OV_BLUE, 1, ip, fr_udp(ip, &a, &b, 1000, 2000, 1450 - 28));
	assert_true(next_udp(FP_B, 2000, buf, &f, WAIT));
	check_wrap(&f, FP_B, OV_BLUE, 1);
	assert_int_equal(f.net_len, 1450);
	ov_send_ip(&lab, FP_A, OV_BLUE, 1, ip, fr_udp(ip, &a, &b, 1000, 2000, 1451 - 28));
	for (unsigned i = 0; i < 100 && ov_counters(&lab, FP_B).drop_tx_too_long == before; i++)
		ov_settle(&lab, 5);
	assert_int_equal(ov_counters(&lab, FP_B).drop_tx_too_long, before + 1);
	ov_send_ip(&lab, FP_A, OV_RED, 1, ip, fr_udp(ip, &a, &b, 1000, 2000, 1500 - 28));
	assert_true(next_udp(FP_B, 2000, buf, &f, WAIT));
	check_wrap(&f, FP_B, OV_RED, 1);
	assert_int_equal(f.net_len, 1500);
}

/* The plain LAN beside tenants: unchanged, but VXLAN does not cross it. */
static void test_plain(void **state)
{
	struct rwy_ip a = ov_ip4(10, 1, 0, 2), b = ov_ip4(10, 2, 0, 2);
	static const uint8_t host[6] = {0x02, 0xaa, 0, 0, 0, 1};
	uint8_t ip[FR_MAX], eth[FR_MAX], buf[FR_MAX];
	uint64_t before = ov_counters(&lab, FP_A).drop_vxlan_transit;
	struct fr_seen f;
	uint32_t len;

	for (uint16_t dport = 4788; dport < 4790; dport++) {
		len = fr_udp(ip, &a, &b, 1000, dport, 100);
		ov_inject(
		    &lab, FP_A, eth, fr_eth(eth, lab.fp.gw[FP_A].port[FP_LAN].mac, host, 0, 0x0800, ip, len));
	}
	assert_true(next_udp(FP_B, 4788, buf, &f, WAIT));
	assert_memory_equal(f.eth, host, 6);
	assert_int_equal(f.vid, 0);
	assert_false(next_udp(FP_B, 4789, buf, &f, 20));
	assert_int_equal(ov_counters(&lab, FP_A).drop_vxlan_transit, before + 1);
}

static void red_pcp(struct conf *c, enum fp_site s)
{
	c->tenant[OV_RED].cfg.pcp = s == FP_B ? 1 + 4 : 0;
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_unknown_host),
	    cmocka_unit_test(test_clashing),
	    cmocka_unit_test(test_dscp),
	    cmocka_unit_test(test_pcp),
	    cmocka_unit_test(test_ip6),
	    cmocka_unit_test(test_arp),
	    cmocka_unit_test(test_ecn),
	    cmocka_unit_test(test_mtu),
	    cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	ov_conf_more = red_pcp;
	return ov_main(argc, argv, &lab, run);
}
