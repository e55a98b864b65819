/* SPDX-License-Identifier: Apache-2.0 */
/* tenant/arp.h: requests that are answered and those that are not, ARP and neighbour discovery
 * alike; strict checks, every truncation and every bit; frames compared with scapy's; the limit of
 * requests. */
#include <stdio.h>

#include "tests/lib/roce_pkt.h"

#include "tenant/arp.h"
#include "vxlan/vxlan.h"

#include "tests/lib/vxlan_vectors.h"

static const char *verdict_name(unsigned verdict)
{
	static const char *const names[] = {
#define X(e, n, s) n,
	    ARP_WHATS(X)
#undef X
	};

	return names[verdict];
}

static const uint8_t host_mac[6] = {2, 0, 0, 0, 0, 1}, gw_mac[6] = {2, 0, 0, 0, 0, 0xfe};
static const uint8_t all_mac[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static struct rwy_ip ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	const uint8_t v4[4] = {a, b, c, d};

	return rwy_ip_from4(v4);
}

static struct rwy_ip ip6(uint8_t net, uint8_t last)
{
	struct rwy_ip a = {{0xfd}};

	a.b[7] = net;
	a.b[15] = last;
	return a;
}

/* 10.0.0.0/24 and fd00::/64 are behind VTEPs, 10.0.1.0/24 on the VLAN, 10.0.3.0/24 and
 * fd00:0:0:3::/64 behind a tunnel. */
static struct tenant_db *db;
static const struct tenant *tenant(bool proxy, const struct rwy_ip *own4, const struct rwy_ip *own6)
{
	static const struct tenant_limits lim = {.tenants = 4, .tunnels = 1};
	const struct tenant_prefix prefix[5] = {{{ip4(10, 0, 0, 0), 120}, {TENANT_VTEP, 0}},
	    {{ip4(10, 0, 1, 0), 120}, {TENANT_LAN, 0}}, {{ip4(10, 0, 3, 0), 120}, {TENANT_TUNNEL, 0}},
	    {{ip6(0, 0), 64}, {TENANT_VTEP, 0}}, {{ip6(3, 0), 64}, {TENANT_TUNNEL, 0}}};
	const struct tenant_set *s;
	struct tenant_cfg cfg;
	struct tenant_txn *x;
	struct tenant_err err;

	tenant_db_free(db);
	assert_int_equal(tenant_db_new(&db, &lim), 0);
	tenant_cfg_default(&cfg);
	cfg.name[0] = 'a';
	cfg.vni = 5;
	cfg.vlan = 7;
	cfg.prefix = prefix;
	cfg.prefixes = 5;
	cfg.proxy_arp = proxy;
	memcpy(cfg.gw_mac, gw_mac, 6);
	if (own4)
		cfg.gw_ip[0] = *own4;
	if (own6)
		cfg.gw_ip[1] = *own6;
	assert_int_equal(tenant_txn_begin(&x, db), 0);
	assert_int_equal(tenant_txn_add(x, &cfg, &err), 0);
	assert_int_equal(tenant_txn_commit(x, &s, &err), 0);
	return tenant_by_vni(s, 5);
}

static int teardown(void **state)
{
	tenant_db_free(db);
	db = NULL;
	return 0;
}

static uint32_t arp_frame(
    uint8_t *b, const uint8_t dst[6], uint8_t op, struct rwy_ip sender, struct rwy_ip target)
{
	static const uint8_t head[10] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 0};

	memset(b, 0, 60);
	memcpy(b, dst, 6);
	memcpy(b + 6, host_mac, 6);
	memcpy(b + 12, head, 10);
	b[21] = op;
	memcpy(b + 22, host_mac, 6);
	memcpy(b + 28, sender.b + 12, 4);
	memcpy(b + 38, target.b + 12, 4);
	return 42;
}

static enum arp_what rx_side(const struct tenant *t, enum tenant_side side, const uint8_t *b, uint32_t len,
    struct arp_msg *m, uint8_t *out, uint32_t *n)
{
	uint8_t *heap = malloc(len ? len : 1); /* at the end of a heap block */
	enum arp_what w;

	memcpy(heap, b, len);
	memset(out, 0xee, ARP_FRAME_MAX);
	w = arp_rx(t, side, t->cfg.gw_mac, heap, 14, len, m, out, n);
	assert_memory_equal(heap, b, len);
	free(heap);
	assert_true(*n <= ARP_FRAME_MAX);
	assert_int_equal(*n != 0, w == ARP_ANSWER_OWN || w == ARP_ANSWER_PROXY);
	return w;
}

static void test_arp(void **state)
{
	struct rwy_ip own = ip4(10, 0, 0, 254), zero = ip4(0, 0, 0, 0), h = ip4(10, 0, 0, 1);
	const struct {
		const uint8_t *dst;
		uint8_t op;
		struct rwy_ip sender, target;
		enum arp_what proxy, plain; /* with and without proxy_arp */
		bool learn;
	} row[] = {
	    {all_mac, 1, h, own, ARP_ANSWER_OWN, ARP_ANSWER_OWN, true},
	    {gw_mac, 1, h, own, ARP_ANSWER_OWN, ARP_ANSWER_OWN, true}, /* refreshing */
	    {all_mac, 1, h, ip4(10, 0, 3, 9), ARP_ANSWER_PROXY, ARP_NO_PROXY, true},
	    {all_mac, 1, h, ip4(10, 0, 0, 2), ARP_LOCAL, ARP_LOCAL, true},
	    {all_mac, 1, h, ip4(10, 0, 1, 2), ARP_ANSWER_PROXY, ARP_NO_PROXY, true}, /* the other side */
	    {all_mac, 1, h, ip4(10, 9, 9, 9), ARP_NOWHERE, ARP_NOWHERE, true},
	    {all_mac, 1, h, h, ARP_HEARD, ARP_HEARD, true}, /* announcement */
	    {all_mac, 1, zero, own, ARP_ANSWER_OWN, ARP_ANSWER_OWN, false},
	    {all_mac, 1, zero, ip4(10, 0, 3, 9), ARP_PROBE, ARP_PROBE, false},
	    {all_mac, 1, zero, ip4(10, 0, 0, 2), ARP_PROBE, ARP_PROBE, false},
	    {gw_mac, 2, h, own, ARP_HEARD, ARP_HEARD, true},
	    {gw_mac, 2, zero, own, ARP_MALFORMED, ARP_MALFORMED, false},
	    {host_mac, 1, h, own, ARP_NOT_US, ARP_NOT_US, false},
	    {all_mac, 1, own, ip4(10, 0, 3, 9), ARP_CONFLICT, ARP_CONFLICT, false},
	    {all_mac, 1, own, own, ARP_CONFLICT, ARP_CONFLICT, false},
	    {gw_mac, 2, own, h, ARP_CONFLICT, ARP_CONFLICT, false},
	    {all_mac, 1, ip4(10, 0, 3, 1), own, ARP_FORGED, ARP_FORGED, false},
	    {all_mac, 1, ip4(10, 0, 1, 1), own, ARP_FORGED, ARP_FORGED,
	        false}, /* a LAN host's, from a VTEP */
	    {all_mac, 1, ip4(99, 0, 1, 1), own, ARP_FORGED, ARP_FORGED, false},
	    {gw_mac, 2, ip4(10, 0, 3, 1), own, ARP_FORGED, ARP_FORGED, false},
	    {all_mac, 1, h, ip4(224, 0, 0, 1), ARP_BAD_TARGET, ARP_BAD_TARGET, false},
	    {all_mac, 1, h, zero, ARP_BAD_TARGET, ARP_BAD_TARGET, false},
	};

	for (unsigned proxy = 0; proxy < 2; proxy++) {
		const struct tenant *t = tenant(proxy, &own, NULL);

		for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
			uint8_t b[64], out[ARP_FRAME_MAX];
			struct arp_msg m;
			uint32_t len = arp_frame(b, row[i].dst, row[i].op, row[i].sender, row[i].target), n;
			enum arp_what w = rx_side(t, TENANT_VTEP, b, len, &m, out, &n), want;

			want = proxy ? row[i].proxy : row[i].plain;
			if (w != want)
				fail_msg("row %u: %s, not %s", i, verdict_name(w), verdict_name(want));
			assert_int_equal(m.learn, row[i].learn);
			assert_true(rwy_ip_eq(&m.sender, &row[i].sender));
			assert_memory_equal(m.mac, host_mac, 6);
			if (n) {
				uint8_t reply[64];

				/* The frame that the host itself would have sent, with our MAC. */
				arp_frame(reply, host_mac, 2, row[i].target, row[i].sender);
				memcpy(reply + 6, gw_mac, 6);
				memcpy(reply + 22, gw_mac, 6);
				memcpy(reply + 32, host_mac, 6);
				assert_int_equal(n, 42);
				assert_memory_equal(out, reply, 42);
			}
		}
	}
}

/* The same request from the VLAN side: a LAN host is valid there. */
static void test_sides(void **state)
{
	struct rwy_ip own = ip4(10, 0, 0, 254);
	const struct tenant *t = tenant(true, &own, NULL);
	uint8_t b[64], out[ARP_FRAME_MAX];
	struct arp_msg m;
	uint32_t len = arp_frame(b, all_mac, 1, ip4(10, 0, 1, 1), ip4(10, 0, 3, 9)), n;

	assert_int_equal(rx_side(t, TENANT_LAN, b, len, &m, out, &n), ARP_ANSWER_PROXY);
	assert_int_equal(rx_side(t, TENANT_VTEP, b, len, &m, out, &n), ARP_FORGED);
	len = arp_frame(b, all_mac, 1, ip4(10, 0, 0, 1), ip4(10, 0, 3, 9));
	assert_int_equal(rx_side(t, TENANT_LAN, b, len, &m, out, &n), ARP_FORGED);
}

static void test_tag(void **state)
{
	struct rwy_ip own = ip4(10, 0, 0, 254);
	const struct tenant *t = tenant(true, &own, NULL);
	uint8_t b[64], tagged[68], out[ARP_FRAME_MAX];
	struct arp_msg m;
	uint32_t n;

	arp_frame(b, all_mac, 1, ip4(10, 0, 0, 1), own);
	memcpy(tagged, b, 12);
	tp_be(tagged + 12, 0x81006007, 4);
	memcpy(tagged + 16, b + 12, 30);
	assert_int_equal(arp_rx(t, TENANT_VTEP, t->cfg.gw_mac, tagged, 18, 46, &m, out, &n), ARP_ANSWER_OWN);
	assert_int_equal(n, 46);
	assert_memory_equal(out + 12, tagged + 12, 4);
	assert_int_equal(out[16] << 8 | out[17], 0x0806);
}

/* On a VLAN the gateway's address has the port's MAC: it answers and asks with that, and accepts
 * frames to either. */
static void test_port_mac(void **state)
{
	static const uint8_t port[6] = {2, 0xaa, 1, 2, 3, 4};
	struct rwy_ip own = ip4(10, 0, 0, 254), target = ip4(10, 0, 0, 9);
	const struct tenant *t = tenant(true, &own, NULL);
	uint8_t b[64], out[ARP_FRAME_MAX];
	struct arp_msg m;
	uint32_t n;

	arp_frame(b, port, 1, ip4(10, 0, 0, 1), own);
	assert_int_equal(arp_rx(t, TENANT_VTEP, t->cfg.gw_mac, b, 14, 42, &m, out, &n), ARP_NOT_US);
	assert_int_equal(arp_rx(t, TENANT_VTEP, port, b, 14, 42, &m, out, &n), ARP_ANSWER_OWN);
	assert_memory_equal(out + 6, port, 6);
	assert_memory_equal(out + 22, port, 6);
	arp_frame(b, t->cfg.gw_mac, 1, ip4(10, 0, 0, 1), own);
	assert_int_equal(arp_rx(t, TENANT_VTEP, port, b, 14, 42, &m, out, &n), ARP_ANSWER_OWN);
	assert_int_equal(arp_ask(t, port, &target, 0, out), 42);
	assert_memory_equal(out + 6, port, 6);
	assert_memory_equal(out + 22, port, 6);
}

static void fix_nd(uint8_t *b, uint32_t len)
{
	uint32_t s = 58 + len - 54;

	b[56] = b[57] = 0;
	for (uint32_t i = 22; i < len; i++)
		s += (uint32_t)b[i] << (i & 1 ? 0 : 8);
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	tp_be(b + 56, ~s & 0xffff, 2);
}

static void test_nd(void **state)
{
	struct rwy_ip own = ip6(0, 9), other = ip6(0, 0xfe), h = ip6(0, 1), seven = ip6(0, 7);
	const struct tenant *t = tenant(true, NULL, &own);
	uint8_t b[128], out[ARP_FRAME_MAX];
	struct arp_msg m;
	uint32_t n, len = sizeof(vec_ns);

	assert_int_equal(rx_side(t, TENANT_VTEP, vec_ns, len, &m, out, &n), ARP_ANSWER_OWN);
	assert_true(m.learn && m.is6 && m.request && rwy_ip_eq(&m.sender, &h) && rwy_ip_eq(&m.target, &own));
	assert_int_equal(n, sizeof(vec_na_own));
	assert_memory_equal(out, vec_na_own, n);

	/* The answer parsed as by another gateway: of its own address, a conflict. */
	memcpy(b, vec_na_own, n);
	memcpy(b, gw_mac, 6);
	assert_int_equal(rx_side(t, TENANT_VTEP, b, n, &m, out, &n), ARP_CONFLICT);

	/* Duplicate address detection for our address: answered to all (RFC 4861 7.2.4) */
	memcpy(b, vec_ns, len);
	memset(b + 22, 0, 16);
	b[19] = 24; /* no option may be there */
	fix_nd(b, len - 8);
	assert_int_equal(rx_side(t, TENANT_VTEP, b, len - 8, &m, out, &n), ARP_ANSWER_OWN);
	assert_false(m.learn);
	assert_int_equal(out[0] << 8 | out[5], 0x3301);
	assert_int_equal(out[38] << 8 | out[53], 0xff01);
	assert_int_equal(out[58], 0xa0); /* router, override, not solicited */
	b[19] = 32;
	fix_nd(b, len);
	assert_int_equal(rx_side(t, TENANT_VTEP, b, len, &m, out, &n), ARP_MALFORMED); /* RFC 4861 7.1.1 */

	/* From a link-local address: answered, not learned. */
	memcpy(b, vec_ns, len);
	b[22] = 0xfe;
	b[23] = 0x80;
	fix_nd(b, len);
	assert_int_equal(rx_side(t, TENANT_VTEP, b, len, &m, out, &n), ARP_ANSWER_OWN);
	assert_false(m.learn);

	/* From an IPv4-mapped address: it would be learned as the IPv4 host's. */
	memcpy(b, vec_ns, len);
	memset(b + 22, 0, 16);
	b[32] = b[33] = 0xff;
	b[34] = 10;
	b[37] = 1;
	fix_nd(b, len);
	assert_int_equal(rx_side(t, TENANT_VTEP, b, len, &m, out, &n), ARP_MALFORMED);

	/* As a proxy; the same address made a tunnel's */
	t = tenant(true, NULL, &other);
	assert_int_equal(rx_side(t, TENANT_VTEP, vec_ns, len, &m, out, &n), ARP_LOCAL);
	memcpy(b, vec_ns, len);
	b[54 + 8 + 7] = 3; /* target in the network behind the tunnel */
	fix_nd(b, len);
	assert_int_equal(rx_side(t, TENANT_VTEP, b, len, &m, out, &n), ARP_ANSWER_PROXY);
	assert_int_equal(n, sizeof(vec_na_proxy));
	memcpy(b, vec_na_proxy, n);
	b[29] = b[54 + 8 + 7] = 3;
	fix_nd(b, n);
	assert_memory_equal(out, b, n);

	assert_int_equal(arp_ask(t, t->cfg.gw_mac, &seven, 0, out), sizeof(vec_ns_made));
	assert_memory_equal(out, vec_ns_made, sizeof(vec_ns_made));
	assert_int_equal(
	    arp_ask(t, t->cfg.gw_mac,
	        &(struct rwy_ip){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}}, 0, out),
	    0);
}

/* One change each of a valid solicitation; valid checksums unless the checksum is the error. */
static void test_nd_refused(void **state)
{
	static const struct {
		uint16_t at;
		uint8_t to;
		bool no_fix;
		enum arp_what want;
	} row[] = {
	    {21, 254, false, ARP_MALFORMED}, /* hop limit: from beyond the link */
	    {55, 1, false, ARP_MALFORMED},   /* code */
	    {57, 0x12, true, ARP_MALFORMED}, /* checksum */
	    {54, 133, false, ARP_OTHER},     /* router solicitation */
	    {54, 128, false, ARP_OTHER},     /* echo */
	    {20, 6, false, ARP_OTHER},       /* TCP */
	    {62, 0xff, false, ARP_BAD_TARGET},
	    {79, 0, false, ARP_MALFORMED},  /* option of length 0 */
	    {79, 2, false, ARP_MALFORMED},  /* longer than the packet */
	    {85, 0x55, false, ARP_BAD_MAC}, /* not the sender of the frame */
	    {11, 0x55, false, ARP_BAD_MAC},
	    {6, 3, false, ARP_BAD_MAC},       /* a group sends */
	    {53, 0x08, false, ARP_MALFORMED}, /* multicast group of another address */
	    {38, 0xfe, false, ARP_MALFORMED}, /* unicast, but not to the target */
	    {0, 2, false, ARP_NOT_US},
	    {29, 3, false, ARP_FORGED}, /* sender is behind the tunnel */
	    {22, 0xfc, false, ARP_FORGED},
	    {14, 0x50, false, ARP_MALFORMED},
	};
	struct rwy_ip own = ip6(0, 9);
	const struct tenant *t = tenant(true, NULL, &own);

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t b[128], out[ARP_FRAME_MAX];
		struct arp_msg m;
		uint32_t n;
		enum arp_what w;

		memcpy(b, vec_ns, sizeof(vec_ns));
		b[row[i].at] = row[i].to;
		if (!row[i].no_fix)
			fix_nd(b, sizeof(vec_ns));
		w = rx_side(t, TENANT_VTEP, b, sizeof(vec_ns), &m, out, &n);
		if (w != row[i].want)
			fail_msg("row %u: %s, not %s", i, verdict_name(w), verdict_name(row[i].want));
	}
}

/* Truncated anywhere, or with any one relevant bit changed, a request is not answered as if it were
 * complete. */
static void test_damage(void **state)
{
	struct rwy_ip own4 = ip4(10, 0, 0, 254), own6 = ip6(0, 9);
	const struct tenant *t = tenant(true, &own4, &own6);
	uint8_t b[128], out[ARP_FRAME_MAX];
	struct arp_msg m;
	uint32_t n, len = arp_frame(b, all_mac, 1, ip4(10, 0, 0, 1), own4);

	for (uint32_t cut = 0; cut < len; cut++)
		assert_true(
		    rx_side(t, TENANT_VTEP, b, cut, &m, out, &n) >= (cut < 14 ? ARP_OTHER : ARP_MALFORMED));
	for (uint32_t cut = 0; cut < sizeof(vec_ns); cut++) {
		rx_side(t, TENANT_VTEP, vec_ns, cut, &m, out, &n);
		assert_int_equal(n, 0);
	}
	/* ARP has no checksum: types, lengths, operation, sender's MAC and padding bits of the
	 * header. */
	for (uint32_t bit = 6 * 8; bit < 28 * 8; bit++) {
		arp_frame(b, all_mac, 1, ip4(10, 0, 0, 1), own4);
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		rx_side(t, TENANT_VTEP, b, len, &m, out, &n);
		assert_int_equal(n, 0);
	}
	for (uint32_t bit = 14 * 8; bit < sizeof(vec_ns) * 8; bit++) {
		uint32_t byte = bit / 8;

		memcpy(b, vec_ns, sizeof(vec_ns));
		b[byte] ^= (uint8_t)(1 << bit % 8);
		rx_side(t, TENANT_VTEP, b, sizeof(vec_ns), &m, out, &n);
		/* Traffic class and flow label are ignored. */
		assert_int_equal(n != 0, (byte == 14 && bit % 8 < 4) || (byte > 14 && byte < 18));
	}
}

static void test_ask4(void **state)
{
	struct rwy_ip own = ip4(10, 0, 0, 254), target = ip4(10, 0, 0, 7);
	const struct tenant *t = tenant(false, &own, NULL);
	uint8_t b[64], out[ARP_FRAME_MAX];

	arp_frame(b, all_mac, 1, own, target);
	memcpy(b + 6, gw_mac, 6);
	memcpy(b + 22, gw_mac, 6);
	assert_int_equal(arp_ask(t, t->cfg.gw_mac, &target, 0, out), 42);
	assert_memory_equal(out, b, 42);
	assert_int_equal(arp_ask(t, t->cfg.gw_mac, &target, 0x2007, out), 46);
	assert_int_equal(rwy_get32(out + 12), 0x81002007);
	assert_memory_equal(out + 16, b + 12, 30);
	assert_int_equal(arp_ask(t, t->cfg.gw_mac, &(struct rwy_ip){{0xfd}}, 0, out), 0);
}

static void test_rate(void **state)
{
	struct arp_rate_cfg good, c;
	struct arp_rate *r;
	struct rwy_ip a = ip4(10, 0, 0, 1);
	uint32_t seed = 9, asked = 0;
	rwy_time now = 0;

	arp_rate_cfg_default(&good);
	assert_int_equal(arp_rate_new(&r, &good), 0);
	assert_true(arp_rate_ask(r, 3, &a, now));
	assert_false(arp_rate_ask(r, 3, &a, now + 999 * RWY_MS));
	assert_true(arp_rate_ask(r, 4, &a, now)); /* another tenant's host */
	assert_true(arp_rate_ask(r, 3, &a, now + RWY_SEC));
	/* A scan of a million addresses in ten seconds: the burst, and one each 10 ms. */
	now = 100 * RWY_SEC;
	for (unsigned i = 0; i < 1000000; i++, now += 10 * RWY_US) {
		a = ip4(10, (uint8_t)(tp_rand(&seed)), (uint8_t)tp_rand(&seed), (uint8_t)tp_rand(&seed));
		asked += arp_rate_ask(r, 5, &a, now);
	}
	assert_in_range(asked, 900, 1016);
	assert_true(arp_rate_ask(r, 6, &a, now)); /* no other tenant is affected */
	/* After silence the burst is available again, and no more than that. */
	now += 1000 * RWY_SEC;
	for (asked = 0, seed = 0; seed < 100; seed++) {
		a = ip4(10, 0, 1, (uint8_t)seed);
		asked += arp_rate_ask(r, 5, &a, now);
	}
	assert_int_equal(asked, 16);
	arp_rate_free(r);
	arp_rate_free(NULL);
#define BAD(change)                                                                                          \
	c = good;                                                                                            \
	change;                                                                                              \
	assert_int_equal(arp_rate_new(&r, &c), RWY_EINVAL)
	BAD(c.slots = 0);
	BAD(c.slots = 3);
	BAD(c.tenants = 0);
	BAD(c.burst = 0);
	BAD(c.every = 0);
#undef BAD
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_arp),
	    cmocka_unit_test(test_sides),
	    cmocka_unit_test(test_tag),
	    cmocka_unit_test(test_port_mac),
	    cmocka_unit_test(test_nd),
	    cmocka_unit_test(test_nd_refused),
	    cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_ask4),
	    cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
