/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that hosts and VTEPs may not send (ov_lab.h): each increments one drop counter, the right
 * one, and nothing else. And randomly changed frames: each is counted once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/datapath/overlay.h"
#include "rwy/endian.h"
#include "tests/component/ov_lab.h"

#define RANDOM_FRAMES 100000

static struct ov_lab lab;
static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t stranger[6] = {0x02, 0xee, 0, 0, 0, 9};

/* --- one drop --------------------------------------------------------------------------------- */

struct seen {
	struct gw_counters c;
	struct gw_overlay_counters o;
};

static struct seen look(void)
{
	return (struct seen){ov_counters(&lab, FP_A), ov_overlay(&lab, FP_A)};
}

/* The sum of all drop counters of site A that changed, and the name of the last one. */
static uint64_t drops(const struct seen *a, const struct seen *b, const char **name)
{
	static const char *const gw[] = {
#define X(f, s) #f,
	    GW_COUNTERS(X)
#undef X
	};
	const uint64_t *x = (const uint64_t *)(const void *)&a->c, *y = (const uint64_t *)(const void *)&b->c;
	uint64_t sum = 0;

	for (unsigned i = 0; i < RTE_DIM(gw); i++)
		if (y[i] != x[i] && !strncmp(gw[i], "drop_", 5)) {
			sum += y[i] - x[i];
			*name = gw[i];
		}
	x = (const uint64_t *)(const void *)&a->o;
	y = (const uint64_t *)(const void *)&b->o;
	for (unsigned i = 0; i < GW_OVERLAY_COUNTERS; i++)
		if (y[i] != x[i] && !strncmp(gw_overlay_names[i].name, "drop_", 5)) {
			sum += y[i] - x[i];
			*name = gw_overlay_names[i].name;
		}
	return sum;
}

static void turn(void)
{
	for (unsigned i = 0; i < 3; i++)
		ov_turn(&lab);
}

static void refused(const char *counter, const uint8_t *frame, uint32_t len)
{
	struct seen before = look(), after;
	const char *name = "none";
	uint64_t n;

	ov_inject(&lab, FP_A, frame, len);
	turn();
	after = look();
	n = drops(&before, &after, &name);
	if (n != 1 || strcmp(name, counter) != 0)
		fail_msg("%lu drops, %s; expected %s", (unsigned long)n, name, counter);
	assert_int_equal(after.c.to_engine_lan, before.c.to_engine_lan);
	assert_int_equal(after.c.to_kernel, before.c.to_kernel);
}

static void taken(const uint8_t *frame, uint32_t len)
{
	struct seen before = look(), after;
	const char *name = "none";

	ov_inject(&lab, FP_A, frame, len);
	turn();
	after = look();
	if (drops(&before, &after, &name))
		fail_msg("dropped: %s", name);
	assert_int_equal(after.c.to_engine_lan, before.c.to_engine_lan + 1);
}

/* --- frames ------------------------------------------------------------------------------------------ */

/* A valid frame, and its fields that can be changed. */
struct how {
	struct rwy_ip src, dst;
	uint16_t sport;
	uint8_t inner_dst[6], inner_src[6];
	uint16_t inner_vid, inner_type;
	struct fr_outer o;
	uint16_t vid; /* of a VLAN frame */
	uint8_t vlan_dst[6];
};

static struct how right(enum ov_tenant t)
{
	bool v6 = ov_way(t, FP_A) == OV_VTEP6;
	struct how h = {.src = ov_host(FP_A, 1),
	    .dst = ov_host(FP_B, 1),
	    .sport = 0xc000,
	    .inner_type = 0x0800,
	    .vid = ov_vlan(t),
	    .o = {.src = ov_vtep(FP_A, 1, v6), .dst = ov_own(FP_A, v6), .vni = ov_vni[t]}};

	memcpy(h.o.dmac, lab.fp.gw[FP_A].port[FP_LAN].mac, 6);
	memcpy(h.o.smac, ov_vtep_mac(FP_A, 1), 6);
	memcpy(h.inner_dst, ov_gw_mac(t), 6);
	memcpy(h.inner_src, ov_host_mac(FP_A, 1), 6);
	memcpy(h.vlan_dst, h.o.dmac, 6);
	return h;
}

static uint32_t write_of(const struct how *h, uint8_t *ip)
{
	static uint32_t psn = 1000;
	struct fr_roce r = {.src = h->src,
	    .dst = h->dst,
	    .sport = h->sport,
	    .dqpn = 0x99,
	    .psn = psn++,
	    .payload = 64,
	    .tos = 2};

	return fr_write(ip, &r);
}

static uint32_t vxlan(uint8_t *out, const struct how *h)
{
	uint8_t ip[FR_MAX], eth[FR_MAX];

	return fr_vxlan(out, &h->o, eth,
	    fr_eth(eth, h->inner_dst, h->inner_src, h->inner_vid, h->inner_type, ip, write_of(h, ip)));
}

static uint32_t vlan(uint8_t *out, const struct how *h)
{
	uint8_t ip[FR_MAX];

	return fr_eth(out, h->vlan_dst, h->inner_src, h->vid, h->inner_type, ip, write_of(h, ip));
}

#define REFUSED(counter, make, tenant, change)                                                               \
	do {                                                                                                 \
		struct how h = right(tenant);                                                                \
		uint8_t f[FR_MAX];                                                                           \
                                                                                                             \
		change;                                                                                      \
		refused(counter, f, make(f, &h));                                                            \
	} while (0)
#define TAKEN(make, tenant, change)                                                                          \
	do {                                                                                                 \
		struct how h = right(tenant);                                                                \
		uint8_t f[FR_MAX];                                                                           \
                                                                                                             \
		change;                                                                                      \
		taken(f, make(f, &h));                                                                       \
	} while (0)

/* --- tenant and location ---------------------------------------------------------------------- */

static void test_right(void **state)
{
	ov_settle(&lab, 20);
	TAKEN(vxlan, OV_RED, );
	TAKEN(vxlan, OV_BLUE, );
	TAKEN(vlan, OV_GREEN, );
	TAKEN(vlan, OV_GREEN, memcpy(h.vlan_dst, ov_gw_mac(OV_GREEN), 6));
}

static void test_admission(void **state)
{
	REFUSED("drop_tenant_unknown_vni", vxlan, OV_RED, h.o.vni = 777);
	REFUSED("drop_tenant_unknown_vlan", vlan, OV_GREEN, h.vid = 777);
	/* red's, but at the other site */
	REFUSED("drop_tenant_unknown_vlan", vlan, OV_GREEN, h.vid = 101);
	REFUSED("drop_tenant_foreign_vtep", vxlan, OV_RED, h.o.src = ov_vtep(FP_A, 3, false));
	REFUSED("drop_tenant_foreign_vtep", vxlan, OV_BLUE, h.o.vni = 5001;
	        memcpy(h.inner_dst, ov_gw_mac(OV_RED), 6));
	REFUSED("drop_tenant_foreign_vtep", vxlan, OV_RED, h.o.vni = 5002;
	        memcpy(h.inner_dst, ov_gw_mac(OV_BLUE), 6));
	REFUSED("drop_vtep_spoofed", vxlan, OV_RED, memcpy(h.o.smac, stranger, 6));
	REFUSED("drop_vtep_spoofed", vxlan, OV_BLUE, memcpy(h.o.smac, ov_vtep_mac(FP_A, 3), 6));
	REFUSED("drop_tenant_foreign_tag", vxlan, OV_RED, h.inner_vid = 101);
	REFUSED("drop_tenant_forged_source", vxlan, OV_RED, h.src = ov_host(FP_B, 5));
	REFUSED("drop_tenant_forged_source", vxlan, OV_RED, h.src = ov_ip4(10, 1, 0, 2));
	REFUSED("drop_tenant_forged_source", vxlan, OV_RED, h.src = ov_gw(FP_A));
	REFUSED("drop_tenant_forged_source", vlan, OV_GREEN, h.src = ov_host(FP_B, 5));
	REFUSED("drop_tenant_foreign_vtep", vxlan, OV_GREEN, ); /* its hosts are on the VLAN */
	REFUSED("drop_tenant_no_route", vxlan, OV_BLUE, h.dst = ov_ip4(10, 2, 0, 2));
	REFUSED("drop_tenant_local", vxlan, OV_BLUE, h.dst = ov_host(FP_A, 2));
	REFUSED("drop_tenant_local", vlan, OV_GREEN, h.dst = ov_gw(FP_A));
	REFUSED("drop_tenant_acl_denied", vlan, OV_GREEN, h.sport = 50000);
	TAKEN(vlan, OV_GREEN, h.sport = 50001);
	TAKEN(vxlan, OV_RED, h.sport = 50000);
	REFUSED("drop_tenant_mac", vxlan, OV_RED, memcpy(h.inner_dst, stranger, 6));
	REFUSED("drop_tenant_mac", vxlan, OV_RED, memcpy(h.inner_dst, all, 6));
	REFUSED("drop_tenant_mac", vlan, OV_GREEN, memcpy(h.vlan_dst, stranger, 6));
	REFUSED("drop_tenant_not_ip", vxlan, OV_RED, h.inner_type = 0x88cc);
	REFUSED("drop_tenant_not_ip", vlan, OV_GREEN, h.inner_type = 0x88cc);
}

/* Sends from red's host 5 at VTEP n. The drop counter that changed; NULL: none. */
static const char *from_vtep(uint8_t n)
{
	struct seen before = look(), after;
	struct how h = right(OV_RED);
	const char *name = NULL;
	uint8_t f[FR_MAX];

	h.src = ov_host(FP_A, 5);
	h.o.src = ov_vtep(FP_A, n, false);
	memcpy(h.o.smac, ov_vtep_mac(FP_A, n), 6);
	ov_inject(&lab, FP_A, f, vxlan(f, &h));
	turn();
	after = look();
	drops(&before, &after, &name);
	return name;
}

/* A host may move, but not back at once; it may send from its new place. Checked only if less than
 * 100 ms passed. */
static void move_twice(void)
{
	for (unsigned tries = 0; tries < 50; tries++) {
		const char *first, *move, *back, *stay;
		rwy_time start;

		ov_settle(&lab, 110);
		first = from_vtep(1);
		ov_settle(&lab, 110);
		start = gw_now();
		move = from_vtep(2);
		back = from_vtep(1);
		stay = from_vtep(2);
		if (gw_now() - start > 90 * RWY_MS)
			continue;
		assert_null(first);
		assert_null(move);
		assert_string_equal(back, "drop_host_forged");
		assert_null(stay);
		return;
	}
	fail_msg("the machine is too slow to look");
}

/* A host keeps its place: a configured one always, a learned one for a while. */
static void test_places(void **state)
{
	REFUSED("drop_host_forged", vlan, OV_GREEN, h.src = ov_host(FP_A, 77));
	TAKEN(vlan, OV_GREEN, h.src = ov_host(FP_A, 77); memcpy(h.inner_src, ov_host_mac(FP_A, 77), 6));
	REFUSED("drop_host_forged", vlan, OV_GREEN, h.src = ov_host(FP_A, 77));
	assert_true(ov_overlay(&lab, FP_A).host.forged >= 2);
	move_twice();
}

/* Two hosts of two tenants share a cache slot of a worker: neither gets the other's admission. */
static void test_slots(void **state)
{
	const struct tenant_set *ts = gw_tenants_of(&lab.fp.gw[FP_A].app);
	uint32_t red = tenant_by_vni(ts, 5001)->index, blue = tenant_by_vni(ts, 5002)->index;
	unsigned found = 0;

	for (unsigned i = 1; i < 250; i++)
		for (unsigned k = 1; k < 250; k++) {
			struct rwy_ip a = ov_host(FP_A, (uint8_t)i), b = ov_host(FP_A, (uint8_t)k);

			if ((gw_overlay_hash(red, &a) ^ gw_overlay_hash(blue, &b)) & (GW_BINDINGS - 1))
				continue;
			found++;
			TAKEN(vxlan, OV_RED, h.src = a);
			TAKEN(vxlan, OV_BLUE, h.src = b);
			REFUSED("drop_tenant_foreign_vtep", vxlan, OV_BLUE, h.src = a; h.o.vni = 5001;
			        memcpy(h.inner_dst, ov_gw_mac(OV_RED), 6));
		}
	assert_true(found > 10);
}

/* --- VXLAN itself ------------------------------------------------------------------------------------ */

static void ip4_sum(uint8_t *ip)
{
	uint32_t s = 0;

	rwy_put16(ip + 10, 0);
	for (unsigned i = 0; i < 20; i += 2)
		s += rwy_get16(ip + i);
	s = (s & 0xffff) + (s >> 16);
	rwy_put16(ip + 10, (uint16_t) ~((s & 0xffff) + (s >> 16)));
}

/* Sends make()'s frame with `bytes` at `off` of its outer IP header. */
static void poked(const char *counter, uint32_t off, uint32_t value, unsigned bytes)
{
	struct how h = right(OV_RED);
	uint8_t f[FR_MAX];
	uint32_t len = vxlan(f, &h);

	for (unsigned i = 0; i < bytes; i++)
		f[14 + off + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	if (off < 20 && off != 10)
		ip4_sum(f + 14);
	refused(counter, f, len);
}

static void test_vxlan(void **state)
{
	struct how h = right(OV_RED);
	uint8_t f[FR_MAX], inner[FR_MAX], eth[FR_MAX];
	uint32_t len;

	poked("drop_vxlan_bad_ip", 10, 0x1234, 2);
	poked("drop_vxlan_fragment", 6, 0x2000, 2);
	poked("drop_vxlan_fragment", 6, 0x0010, 2);
	poked("drop_vxlan_bad_source", 12, 0x7f000001, 4);
	poked("drop_vxlan_bad_udp", 24, 20, 2);
	poked("drop_vxlan_no_vni", 28, 0x00, 1);
	poked("drop_vxlan_bad_flags", 28, 0x0c, 1);
	poked("drop_vxlan_zero_vni", 32, 0, 3);
	poked("drop_vxlan_inner_source", 36 + 6, 0x01, 1);
	poked("drop_vxlan_inner_ip", 50, 0x65, 1);
	len = fr_udp(eth, &h.src, &h.dst, 1, 4789, 64);
	len = fr_eth(inner, h.inner_dst, h.inner_src, 0, 0x0800, eth, len);
	refused("drop_vxlan_nested", f, fr_vxlan(f, &h.o, inner, len));
	refused("drop_rx_truncated", f, len - 20);
}

/* --- ARP --------------------------------------------------------------------------------------------- */

static void arp(const char *counter, enum ov_tenant t, uint8_t op, const uint8_t *dst, const uint8_t *src,
    struct rwy_ip sender, struct rwy_ip target)
{
	uint8_t p[28], eth[64], f[FR_MAX];
	uint32_t len;

	fr_arp(p, op, src, &sender, dst, &target);
	len = fr_eth(eth, dst, src, 0, 0x0806, p, 28);
	refused(counter, f, ov_wrap(&lab, FP_A, t, eth, len, f));
}

static void test_arp(void **state)
{
	const uint8_t *mac = ov_host_mac(FP_A, 1);
	struct rwy_ip a = ov_host(FP_A, 1), b = ov_host(FP_B, 1), gw = ov_gw(FP_A);

	arp("drop_arp_forged", OV_RED, 1, all, mac, b, gw);
	arp("drop_arp_forged", OV_GREEN, 1, all, mac, ov_ip4(10, 1, 0, 2), gw);
	arp("drop_arp_conflict", OV_RED, 2, ov_gw_mac(OV_RED), mac, gw, a);
	arp("drop_arp_conflict", OV_GREEN, 1, all, mac, gw, gw);
	arp("drop_arp_not_ours", OV_RED, 2, stranger, mac, a, gw);
	arp("drop_arp_no_proxy", OV_GREEN, 1, all, mac, a, b);
	arp("drop_arp_nowhere", OV_RED, 1, all, mac, a, ov_ip4(172, 16, 0, 1));
	arp("drop_arp_malformed", OV_RED, 3, all, mac, a, gw);
	arp("drop_host_forged", OV_GREEN, 1, all, mac, ov_host(FP_A, 77), gw);
}

/* --- random frames ---------------------------------------------------------------------------- */

static uint32_t rnd(void)
{
	static uint64_t s = 0x2545f4914f6cdd1d;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return (uint32_t)(s >> 32);
}

/* A valid frame of a random kind. */
static uint32_t any(uint8_t *f)
{
	enum ov_tenant t = (enum ov_tenant)(rnd() % OV_TENANTS);
	struct how h = right(t);
	uint8_t p[28], eth[64], n = (uint8_t)(1 + rnd() % 250);
	struct rwy_ip zero = {{0}};

	h.src = ov_host(FP_A, n);
	memcpy(h.inner_src, ov_host_mac(FP_A, n), 6);
	if (rnd() % 4)
		return ov_way(t, FP_A) == OV_VLAN ? vlan(f, &h) : vxlan(f, &h);
	fr_arp(p, (uint8_t)(1 + rnd() % 2), h.inner_src, &h.src, zero.b, rnd() & 1 ? &h.dst : &h.src);
	return ov_wrap(&lab, FP_A, t, eth, fr_eth(eth, all, h.inner_src, 0, 0x0806, p, 28), f);
}

/* Changes bytes, mostly in headers; sometimes truncates. */
static uint32_t damage(uint8_t *f, uint32_t len)
{
	for (unsigned n = rnd() % 5; n; n--) {
		uint32_t at = rnd() % RTE_MIN(len, rnd() & 3 ? 100u : len);

		f[at] = rnd() & 1 ? (uint8_t)rnd() : f[at] ^ (uint8_t)(1u << rnd() % 8);
	}
	if (!(rnd() % 16))
		len = 1 + rnd() % len;
	/* otherwise most would end at the outer checksum */
	if (len > 34 && f[12] == 8 && !(rnd() & 1))
		ip4_sum(f + 14);
	return len;
}

/* Number of ARP frames that ended without a drop. */
static uint64_t arp_ends(const struct gw_overlay_counters *o)
{
	return o->arp[ARP_ANSWER_OWN] + o->arp[ARP_ANSWER_PROXY] + o->arp[ARP_HEARD] + o->arp[ARP_LOCAL] +
	       o->arp[ARP_PROBE];
}

/*
 * Every frame ends once: in the engine, in the kernel, as ARP, or as a drop. The counters of ARP
 * and drops may both have a frame: a valid ARP that contradicts a known location; forged_arp
 * counts those. The gateway's own frames could be dropped as well; the test prevents that.
 */
static void test_random(void **state)
{
	struct seen before, after;
	uint64_t ends, dropped;
	const char *name;

	ov_settle(&lab, 20);
	before = look();
	for (unsigned i = 0; i < RANDOM_FRAMES; i++) {
		uint8_t f[FR_MAX];

		ov_inject(&lab, FP_A, f, damage(f, any(f)));
		if (i % 16 == 15)
			ov_settle(&lab, 0);
	}
	ov_settle(&lab, 20);
	after = look();
	dropped = drops(&before, &after, &name);
	ends = dropped + after.c.to_engine_lan - before.c.to_engine_lan + after.c.to_kernel -
	       before.c.to_kernel + arp_ends(&after.o) - arp_ends(&before.o);
	assert_int_equal(ends, RANDOM_FRAMES);
	assert_true(dropped > RANDOM_FRAMES / 10 && dropped < RANDOM_FRAMES);
}

/* Afterwards all packet buffers are free except those in custody. */
static void test_buffers(void **state)
{
	unsigned free_before, free_after;

	ov_settle(&lab, 50);
	free_before = rte_mempool_avail_count(lab.fp.pools.big);
	for (unsigned i = 0; i < 500; i++) {
		REFUSED("drop_tenant_unknown_vni", vxlan, OV_RED, h.o.vni = 777);
		REFUSED("drop_vtep_spoofed", vxlan, OV_RED, memcpy(h.o.smac, stranger, 6));
		REFUSED("drop_tenant_local", vlan, OV_GREEN, h.dst = ov_gw(FP_A));
		REFUSED("drop_vxlan_bad_flags", vxlan, OV_RED, h.o.flags = 0x0c);
	}
	ov_settle(&lab, 5);
	free_after = rte_mempool_avail_count(lab.fp.pools.big);
	assert_true(free_after + 200 > free_before);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_right),
	    cmocka_unit_test(test_admission),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_slots),
	    cmocka_unit_test(test_vxlan),
	    cmocka_unit_test(test_arp),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return ov_main(argc, argv, &lab, run);
}
