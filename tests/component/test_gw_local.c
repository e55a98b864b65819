/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tenant's packets between a host behind a VTEP and one on the VLAN of the same site, through
 * that site's gateway (ov_lab.h), byte by byte. The tenant, amber, is at site A: VNI 5004, VLAN
 * 104, hosts 192.168.1.1 .. 127 behind VTEPs, .128 .. 253 on the VLAN, the gateway .254; the same
 * in fd77:0:0:1::/64, where the VLAN's half begins at ::8000:0:0:0. Proxy ARP; WRITE from UDP port
 * 50000 is denied.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "roce/icrc.h"
#include "roce/parse.h"
#include "rwy/endian.h"
#include "tests/component/ov_lab.h"

#define WAIT  5000 /* ms, limit for expected frames */
#define VNI   5004
#define VLAN  104
#define SPORT 0xc123
#define NEAR  1   /* behind the VTEP */
#define FAR   129 /* on the VLAN */

static struct ov_lab lab;
static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t gw_mac[6] = {0x02, 0xa0, 9, 0, 0, 1};

/* --- the tenant --------------------------------------------------------------------------------------- */

static struct rwy_ip host6(uint8_t n)
{
	struct rwy_ip a = ov_host6(FP_A, n);

	a.b[8] = n >= 128 ? 0x80 : 0;
	return a;
}

static void amber(struct conf *c, enum fp_site s)
{
	struct tenant_prefix *p = calloc(5, sizeof(*p));
	struct acl_rule *r = calloc(1, sizeof(*r));
	struct rwy_ip *v = calloc(1, sizeof(*v));
	struct tenant_cfg *t;

	c->tenant = realloc(c->tenant, (c->tenants + 1) * sizeof(*c->tenant));
	if (!c->tenant || !p || !r || !v)
		fp_die("no memory");
	c->tenant[c->tenants] = (struct conf_tenant){0};
	t = &c->tenant[c->tenants++].cfg;
	tenant_cfg_default(t);
	snprintf(t->name, sizeof(t->name), "amber");
	t->vni = VNI;
	t->vlan = VLAN;
	p[0] = (struct tenant_prefix){{ov_host(s, 0), 96 + 25}, {TENANT_VTEP, 0}};
	p[1] = (struct tenant_prefix){{ov_host(s, 128), 96 + 25}, {TENANT_LAN, 0}};
	p[2] = (struct tenant_prefix){{ov_host(1 - s, 0), 96 + 24}, {TENANT_TUNNEL, 0}};
	p[3] = (struct tenant_prefix){{ov_host6(s, 0), 65}, {TENANT_VTEP, 0}};
	p[4] = (struct tenant_prefix){{ov_host6(s, 0), 65}, {TENANT_LAN, 0}};
	p[4].p.addr.b[8] = 0x80;
	t->prefix = p;
	t->prefixes = 5;
	*v = ov_vtep(s, 1, false);
	t->vtep = v;
	t->vteps = 1;
	t->proxy_arp = true;
	memcpy(t->gw_mac, gw_mac, 6);
	t->gw_ip[0] = ov_gw(s);
	t->gw_ip[1] = ov_host6(s, 254);
	t->gw_ip[1].b[8] = 0x80;
	*r = (struct acl_rule){.sport_lo = 50000, .sport_hi = 50000, .classes = 1 << ACL_WRITE};
	t->rule = r;
	t->rules = 1;
}

/* --- frames ------------------------------------------------------------------------------------------- */

static const uint8_t *port_mac(void)
{
	return lab.fp.gw[FP_A].port[FP_LAN].mac;
}

/* Sends host n's frame, as on its side, to the gateway. tos: of the outer header. */
static void send_frame(
    uint8_t n, uint8_t tos, const uint8_t dst[6], uint16_t type, const uint8_t *data, uint32_t len)
{
	struct fr_outer o = {
	    .src = ov_vtep(FP_A, 1, false), .dst = ov_own(FP_A, false), .vni = VNI, .tos = tos};
	uint8_t eth[FR_MAX], out[FR_MAX];

	if (n >= 128) {
		ov_inject(&lab, FP_A, out, fr_eth(out, dst, ov_host_mac(FP_A, n), VLAN, type, data, len));
		return;
	}
	memcpy(o.dmac, port_mac(), 6);
	memcpy(o.smac, ov_vtep_mac(FP_A, 1), 6);
	ov_inject(&lab, FP_A, out,
	    fr_vxlan(out, &o, eth, fr_eth(eth, dst, ov_host_mac(FP_A, n), 0, type, data, len)));
}

static void send_ip(uint8_t n, uint8_t tos, const uint8_t *ip, uint32_t len)
{
	send_frame(n, tos, n >= 128 ? port_mac() : gw_mac, ip[0] >> 4 == 4 ? 0x0800 : 0x86dd, ip, len);
}

static void send_arp(uint8_t n, uint8_t op, const uint8_t dst[6], struct rwy_ip sender, struct rwy_ip target)
{
	uint8_t p[28], zero[6] = {0};

	fr_arp(p, op, ov_host_mac(FP_A, n), &sender, op == 1 ? zero : dst, &target);
	send_frame(n, 0, dst, 0x0806, p, 28);
}

static struct fr_roce roce(uint8_t from, uint8_t to, bool v6, uint32_t psn)
{
	return (struct fr_roce){.src = v6 ? host6(from) : ov_host(FP_A, from),
	    .dst = v6 ? host6(to) : ov_host(FP_A, to),
	    .sport = SPORT,
	    .dqpn = 0x99,
	    .psn = psn,
	    .payload = 256,
	    .fill = (uint8_t)psn,
	    .tos = 2};
}

/* Receives amber's next IP packet at A's LAN port. */
static bool next_ip(uint8_t buf[FR_MAX], struct fr_seen *f, unsigned ms)
{
	uint32_t len;

	while (ov_receive(&lab, FP_A, buf, &len, ms)) {
		assert_true(fr_read(buf, len, f));
		if (f->type != 0x0806 && (f->vxlan ? f->vni == VNI : f->vid == VLAN))
			return true;
	}
	return false;
}

/* --- counters ----------------------------------------------------------------------------------------- */

/* Compares the counters that one frame changed. */
#define DROPPED(counter, what)                                                                               \
	do {                                                                                                 \
		uint64_t before = ov_counters(&lab, FP_A).counter, sent = lab.out[FP_A];                     \
                                                                                                             \
		what;                                                                                        \
		for (unsigned i = 0; i < 4; i++)                                                             \
			ov_turn(&lab);                                                                       \
		assert_int_equal(ov_counters(&lab, FP_A).counter, before + 1);                               \
		assert_int_equal(rte_ring_count(lab.fp.gw[FP_A].port[FP_LAN].tx[0]), 0);                     \
		assert_int_equal(lab.out[FP_A], sent);                                                       \
	} while (0)

/* --- tests -------------------------------------------------------------------------------------------- */

/* A host asks for one of the other side: it gets the gateway's MAC address, and the gateway asks
 * for the other host at once, so that the next packet arrives. */
static void test_unknown(void **state)
{
	struct fr_roce r = roce(NEAR, FAR, false, 100);
	uint8_t ip[FR_MAX], buf[FR_MAX];
	bool answered = false, asked = false;
	struct fr_seen f;
	uint32_t len;

	ov_settle(&lab, 20);
	send_arp(NEAR, 1, all, r.src, r.dst);
	while (!answered || !asked) {
		assert_true(ov_receive(&lab, FP_A, buf, &len, WAIT));
		assert_true(fr_read(buf, len, &f));
		if (f.type != 0x0806)
			continue;
		if (f.net[7] == 2) {
			assert_true(f.vxlan && f.vni == VNI);
			assert_memory_equal(f.inner, ov_host_mac(FP_A, NEAR), 6);
			assert_memory_equal(f.net + 8, gw_mac, 6);
			assert_memory_equal(f.net + 14, r.dst.b + 12, 4);
			answered = true;
		} else if (f.vid == VLAN) {
			assert_memory_equal(f.net + 8, port_mac(), 6);
			assert_memory_equal(f.net + 24, r.dst.b + 12, 4);
			asked = true;
		}
	}
	send_arp(FAR, 2, port_mac(), r.dst, ov_gw(FP_A));
	ov_settle(&lab, 5);
	send_ip(NEAR, 2, ip, fr_write(ip, &r));
	assert_true(next_ip(buf, &f, WAIT));
	assert_int_equal(f.vid, VLAN);
}

/* Without a request before: the first packet causes it, and is dropped. */
static void test_unasked(void **state)
{
	struct fr_roce r = roce(FAR, 5, false, 1);
	uint8_t ip[FR_MAX], buf[FR_MAX];
	uint64_t before = ov_counters(&lab, FP_A).drop_tenant_unresolved;
	struct fr_seen f;
	uint32_t len;

	send_ip(FAR, 2, ip, fr_write(ip, &r));
	do {
		assert_true(ov_receive(&lab, FP_A, buf, &len, WAIT));
		assert_true(fr_read(buf, len, &f));
	} while (f.type != 0x0806 || !f.vxlan || f.net[7] != 1);
	assert_int_equal(f.vni, VNI);
	assert_memory_equal(f.net + 24, r.dst.b + 12, 4);
	assert_int_equal(ov_counters(&lab, FP_A).drop_tenant_unresolved, before + 1);
	send_arp(5, 2, gw_mac, r.dst, ov_gw(FP_A));
	ov_settle(&lab, 5);
	send_ip(FAR, 2, ip, fr_write(ip, &r));
	assert_true(next_ip(buf, &f, WAIT));
	assert_true(f.vxlan);
	assert_memory_equal(f.inner, ov_host_mac(FP_A, 5), 6);
}

/* Unchanged but for the hop count, its checksum, and ECN by RFC 6040; the gateway does not touch
 * RC. */
static void arrives(uint8_t from, uint8_t to, bool v6, uint8_t outer_ecn, uint8_t ecn)
{
	static uint32_t psn = 1000;
	struct fr_roce r = roce(from, to, v6, psn++);
	struct gw_counters a = ov_counters(&lab, FP_A), b;
	uint8_t ip[FR_MAX], buf[FR_MAX];
	uint32_t len = fr_write(ip, &r), at = v6 ? 40 : 20;
	struct roce_pkt pkt;
	struct fr_seen f;

	send_ip(from, outer_ecn, ip, len);
	assert_true(next_ip(buf, &f, WAIT));
	assert_int_equal(f.net_len, len);
	assert_memory_equal(f.inner, ov_host_mac(FP_A, to), 6);
	assert_memory_equal(f.eth + 6, port_mac(), 6);
	if (to >= 128) {
		assert_false(f.vxlan);
		assert_int_equal(f.vid, VLAN);
	} else {
		struct rwy_ip own = ov_own(FP_A, false), vtep = ov_vtep(FP_A, 1, false);

		assert_true(f.vxlan);
		assert_memory_equal(f.eth, ov_vtep_mac(FP_A, 1), 6);
		assert_memory_equal(f.inner + 6, gw_mac, 6);
		assert_true(rwy_ip_eq(&f.outer_src, &own) && rwy_ip_eq(&f.outer_dst, &vtep));
		assert_int_equal(f.outer_tos & 3, ecn);
	}
	assert_int_equal(f.net[v6 ? 7 : 8], 63);
	assert_memory_equal(f.net + at, ip + at, len - at);
	/* Checks IPv4's header checksum, too. */
	assert_int_equal(roce_parse((uint8_t *)(uintptr_t)f.net, f.net_len, &pkt), ROCE_PARSE_OK);
	assert_true(roce_icrc_ok(&pkt));
	assert_int_equal(pkt.ecn, ecn);
	b = ov_counters(&lab, FP_A);
	assert_int_equal(b.tenant_local, a.tenant_local + 1);
	assert_int_equal(b.to_engine_lan, a.to_engine_lan);
	assert_int_equal(b.tx_in_place, a.tx_in_place + 1);
	assert_int_equal(b.tx_payload_copied, a.tx_payload_copied);
}

static void test_both_ways(void **state)
{
	for (unsigned i = 0; i < 10; i++) {
		arrives(NEAR, FAR, false, 2, 2);
		arrives(FAR, NEAR, false, 0, 2);
	}
	arrives(NEAR, FAR, false, 3, 3);
}

/* First packets show the hosts' locations: learned entries are as good as requested ones. */
static void test_ip6(void **state)
{
	struct fr_roce r = roce(NEAR, FAR, true, 1), s = roce(FAR, NEAR, true, 1);
	uint8_t ip[FR_MAX];

	send_ip(NEAR, 2, ip, fr_write(ip, &r));
	send_ip(FAR, 2, ip, fr_write(ip, &s));
	ov_settle(&lab, 20);
	arrives(NEAR, FAR, true, 2, 2);
	arrives(FAR, NEAR, true, 0, 2);
	arrives(NEAR, FAR, true, 3, 3);
}

static void test_refused(void **state)
{
	struct fr_roce r = roce(NEAR, FAR, false, 5000);
	uint8_t ip[FR_MAX];
	uint32_t len;

	ov_settle(&lab, 5);
	len = fr_write(ip, &r);
	ip[8] = 1;
	rwy_put16(ip + 10, (uint16_t)(rwy_get16(ip + 10) + (63 << 8)));
	DROPPED(drop_tenant_hops, send_ip(NEAR, 2, ip, len));
	len = fr_write(ip, &r);
	ip[6] |= 0x20; /* the first fragment of more */
	rwy_put16(ip + 10, (uint16_t)(rwy_get16(ip + 10) - 0x2000));
	DROPPED(drop_tenant_bad, send_ip(NEAR, 2, ip, len));
	len = fr_write(ip, &r);
	ip[10] ^= 1; /* its checksum */
	DROPPED(drop_tenant_bad, send_ip(NEAR, 2, ip, len));
	len = fr_write(ip, &r);
	ip[28] = 0x1f; /* reserved opcode */
	DROPPED(drop_tenant_bad, send_ip(NEAR, 2, ip, len));
	/* RFC 6040: a congestion mark on the outer header, and hosts without ECN. */
	r.tos = 0;
	len = fr_write(ip, &r);
	DROPPED(drop_vxlan_ecn, send_ip(NEAR, 3, ip, len));
	/* To the gateway; to the same side */
	r = roce(FAR, 254, false, 1);
	len = fr_write(ip, &r);
	DROPPED(drop_tenant_local, send_ip(FAR, 2, ip, len));
	r = roce(NEAR, 5, false, 1);
	len = fr_write(ip, &r);
	DROPPED(drop_tenant_local, send_ip(NEAR, 2, ip, len));
	/* MTU 1500 holds 1500 on the VLAN, 1450 in VXLAN. */
	r = roce(FAR, NEAR, false, 1);
	len = fr_udp(ip, &r.src, &r.dst, 1000, 2000, 1451 - 28);
	DROPPED(drop_tx_too_long, send_ip(FAR, 2, ip, len));
}

/* An address of the other side, another host's MAC address, a packet that the ACL denies. */
static void test_admission(void **state)
{
	struct fr_roce r = roce(FAR, NEAR, false, 6000);
	struct gw_overlay_counters a = ov_overlay(&lab, FP_A), b;
	uint8_t ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;

	send_ip(NEAR, 2, ip, fr_write(ip, &r));
	ov_settle(&lab, 5);
	b = ov_overlay(&lab, FP_A);
	assert_int_equal(b.admit[TENANT_FORGED_SOURCE], a.admit[TENANT_FORGED_SOURCE] + 1);
	for (unsigned i = 0; i < 2; i++) {
		r = i ? roce(FAR, NEAR, false, 1) : roce(NEAR, FAR, false, 1);
		r.sport = 50000;
		a = ov_overlay(&lab, FP_A);
		send_ip(i ? FAR : NEAR, 2, ip, fr_write(ip, &r));
		ov_settle(&lab, 5);
		b = ov_overlay(&lab, FP_A);
		assert_int_equal(b.admit[TENANT_DENIED], a.admit[TENANT_DENIED] + 1);
		assert_int_equal(b.admit[TENANT_OK], a.admit[TENANT_OK]);
		/* Its answers are no WRITEs. */
		send_ip(i ? FAR : NEAR, 2, ip, fr_ack(ip, &r, 1));
		assert_true(next_ip(buf, &f, WAIT));
	}
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_unknown),
	    cmocka_unit_test(test_unasked),
	    cmocka_unit_test(test_both_ways),
	    cmocka_unit_test(test_ip6),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_admission),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	ov_conf_more = amber;
	return ov_main(argc, argv, &lab, run);
}
