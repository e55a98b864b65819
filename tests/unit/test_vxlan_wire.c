/* SPDX-License-Identifier: Apache-2.0 */
/* vxlan/vxlan.h: scapy's packets both ways, byte for byte; every reason of refusal; every
 * truncation; distribution of the source port. */
#include "tests/lib/roce_pkt.h"

#include "vxlan/ecn.h"
#include "vxlan/vxlan.h"

#include "tests/lib/vxlan_vectors.h"

static const char *verdict_name(unsigned verdict)
{
	static const char *const names[] = {
#define X(e, n, s) n,
	    VXLAN_REASONS(X)
#undef X
	};

	return names[verdict];
}

#define VECS (sizeof(vecs) / sizeof(vecs[0]))

static const uint8_t mac1[6] = {2, 0, 0, 0, 0, 1}, mac2[6] = {2, 0, 0, 0, 0, 2};

/* A copy at the end of a heap block, so that the sanitizers detect any read beyond it. */
static enum vxlan_reason decap_exact(const uint8_t *b, uint32_t len, struct vxlan_pkt *p)
{
	struct vxlan_cfg cfg;
	uint8_t *heap = malloc(len ? len : 1);
	enum vxlan_reason r;

	vxlan_cfg_default(&cfg);
	cfg.verify_csum = true;
	memcpy(heap, b, len);
	r = vxlan_decap(&cfg, heap, len, p);
	assert_memory_equal(heap, b, len);
	free(heap);
	return r;
}

static void vtep(struct rwy_ip *a, bool is6, uint8_t last)
{
	static const uint8_t doc6[4] = {0x20, 0x01, 0x0d, 0xb8};
	const uint8_t v4[4] = {192, 0, 2, last};

	*a = (struct rwy_ip){0};
	if (!is6) {
		*a = rwy_ip_from4(v4);
		return;
	}
	memcpy(a->b, doc6, 4);
	a->b[15] = last;
}

static void test_decap_scapy(void **state)
{
	for (unsigned i = 0; i < VECS; i++) {
		const struct vec *v = &vecs[i];
		struct vxlan_pkt p;
		struct rwy_ip a, b;

		vtep(&a, v->is6, 1);
		vtep(&b, v->is6, 2);
		assert_int_equal(decap_exact(v->bytes, v->len, &p), VXLAN_OK);
		assert_int_equal(p.vni, v->vni);
		assert_int_equal(p.outer_sport, v->sport);
		assert_int_equal(p.outer_tos, v->tos);
		assert_int_equal(p.outer_ttl, 64);
		assert_int_equal(p.outer6, v->is6);
		assert_true(rwy_ip_eq(&p.outer_src, &a) && rwy_ip_eq(&p.outer_dst, &b));
		assert_int_equal(p.inner, v->inner);
		assert_int_equal(p.roce, v->roce);
		assert_int_equal(p.tagged, v->tci != 0);
		assert_int_equal(p.tci, v->tci);
		assert_int_equal(p.net_off, v->net_off);
		assert_int_equal(p.eth_off, v->net_off - (v->tci ? 18 : 14));
		assert_int_equal(p.end, v->len);
		assert_memory_equal(p.src_mac, mac1, 6);
		assert_memory_equal(p.dst_mac, mac2, 6);
	}
}

static const struct vec *vec_named(const char *name)
{
	for (unsigned i = 0; i < VECS; i++)
		if (!strcmp(vecs[i].name, name))
			return &vecs[i];
	fail_msg("no vector %s", name);
	return NULL;
}

static void tmpl_for(struct vxlan_tmpl *t, const struct vec *v)
{
	struct vxlan_tmpl_cfg c = {.vni = v->vni,
	    .port = 4789,
	    .ttl = 64,
	    .udp_csum = v->csum,
	    .tag = v->tci != 0,
	    .tci = v->tci,
	    .src_mac = {2, 0, 0, 0, 0, 1}};

	vtep(&c.local, v->is6, 1);
	vtep(&c.remote, v->is6, 2);
	assert_int_equal(vxlan_tmpl_init(t, &c), 0);
}

/* Our bytes equal scapy's, before an unchanged packet. */
static void test_encap_scapy(void **state)
{
	for (unsigned i = 0; i < VECS; i++) {
		const struct vec *v = &vecs[i];
		uint32_t len = v->len - v->net_off, frame = len + (v->tci ? 18 : 14);
		uint8_t room[256];
		struct vxlan_tmpl t;
		uint8_t *o;

		tmpl_for(&t, v);
		if (v->inner == VXLAN_INNER_IP4 || v->inner == VXLAN_INNER_IP6) {
			assert_int_equal(vxlan_tmpl_headroom(&t), v->net_off);
			memset(room, 0xee, sizeof(room));
			memcpy(room + 100, v->bytes + v->net_off, len);
			o = vxlan_encap(&t, room + 100, len, mac2, v->sport, v->tos);
			assert_ptr_equal(o, room + 100 - v->net_off);
			assert_memory_equal(o, v->bytes, v->len);
			assert_int_equal(o[-1], 0xee);
			assert_int_equal(room[100 + len], 0xee);
		}
		memset(room, 0xee, sizeof(room));
		memcpy(room + 100, v->bytes + v->len - frame, frame);
		o = vxlan_encap_frame(&t, room + 100, frame, v->sport, v->tos);
		assert_ptr_equal(o, room + 100 - (v->is6 ? 56 : 36));
		assert_memory_equal(o, v->bytes, v->len);
		assert_int_equal(o[-1], 0xee);
	}
}

/* A checksum of 0 is written as 0xffff (RFC 768): every source port, so every possible sum. */
static void test_csum_never_zero(void **state)
{
	static const char *const names[] = {"ip4-csum-over-ip4", "ip6-csum-over-ip6"};
	struct vxlan_cfg cfg = {.port = 4789, .verify_csum = true};

	for (unsigned i = 0; i < 2; i++) {
		const struct vec *v = vec_named(names[i]);
		unsigned ffff = 0;
		struct vxlan_tmpl t;
		struct vxlan_pkt p;
		uint8_t room[256];

		tmpl_for(&t, v);
		memcpy(room + 100, v->bytes + v->net_off, v->len - v->net_off);
		for (uint32_t sport = 0; sport < 65536; sport++) {
			uint8_t *o =
			    vxlan_encap(&t, room + 100, v->len - v->net_off, mac2, (uint16_t)sport, v->tos);
			uint16_t csum = rwy_get16(o + (v->is6 ? 46 : 26));

			assert_int_not_equal(csum, 0);
			ffff += csum == 0xffff;
			assert_int_equal(vxlan_decap(&cfg, o, v->len, &p), VXLAN_OK);
		}
		assert_in_range(ffff, 1, 2);
	}
}

/* Every prefix of every vector is refused and nothing beyond its end is read. */
static void test_truncated(void **state)
{
	for (unsigned i = 0; i < VECS; i++)
		for (uint32_t len = 0; len < vecs[i].len; len++) {
			struct vxlan_pkt p;

			assert_int_equal(decap_exact(vecs[i].bytes, len, &p), VXLAN_TRUNCATED);
		}
}

/* Ethernet padding after the packet is not part of it. */
static void test_padding(void **state)
{
	uint8_t b[256] = {0};
	struct vxlan_pkt p;

	memcpy(b, vecs[0].bytes, vecs[0].len);
	assert_int_equal(decap_exact(b, vecs[0].len + 9, &p), VXLAN_OK);
	assert_int_equal(p.end, vecs[0].len);
}

/* A change of a vector, at most four bytes, and the expected result. Offsets: IPv4 underlay 0 IP,
 * 20 UDP, 28 VXLAN, 36 Ethernet, 50 inner; IPv6 underlay 20 bytes later. */
struct bad {
	const char *vec;
	struct {
		uint16_t at;
		uint8_t to;
	} set[4];
	bool no_fix; /* do not correct the outer IPv4 checksum */
	enum vxlan_reason want;
};
static const struct bad bads[] = {
    {"ip4-over-ip4", {{0, 0x55}}, false, VXLAN_BAD_IP},
    {"ip4-over-ip4", {{0, 0x44}}, false, VXLAN_BAD_IP},
    {"ip4-over-ip4", {{3, 19}}, false, VXLAN_BAD_IP},
    {"ip4-over-ip4", {{8, 63}}, true, VXLAN_BAD_IP},
    {"ip4-over-ip6", {{0, 0x70}}, false, VXLAN_BAD_IP},
    {"ip4-over-ip4", {{9, 6}}, false, VXLAN_NOT_VXLAN},
    {"ip4-over-ip4", {{23, 0xb6}}, false, VXLAN_NOT_VXLAN},
    {"ip4-over-ip6", {{43, 0xb6}}, false, VXLAN_NOT_VXLAN},
    {"ip4-over-ip6", {{6, 58}}, false, VXLAN_NOT_VXLAN},
    {"ip4-over-ip4", {{6, 0x20}}, false, VXLAN_FRAGMENT},
    {"ip4-over-ip4", {{7, 0x01}}, false, VXLAN_NOT_VXLAN}, /* a later fragment has no port */
    {"ip4-over-ip4", {{12, 0}}, false, VXLAN_BAD_SOURCE},
    {"ip4-over-ip4", {{12, 127}}, false, VXLAN_BAD_SOURCE},
    {"ip4-over-ip4", {{12, 224}}, false, VXLAN_BAD_SOURCE},
    {"ip4-over-ip4", {{12, 255}}, false, VXLAN_BAD_SOURCE},
    {"ip4-over-ip6", {{8, 0xff}}, false, VXLAN_BAD_SOURCE},
    {"ip4-over-ip6", {{8, 0}, {9, 0}, {10, 0}, {11, 0}}, false, VXLAN_BAD_SOURCE}, /* ::1 */
    {"ip4-over-ip4", {{25, 0x4d}}, false, VXLAN_BAD_UDP},
    {"ip4-over-ip4", {{25, 0x4f}}, false, VXLAN_BAD_UDP},
    {"ip4-over-ip6", {{45, 0}}, false, VXLAN_BAD_UDP},
    {"ip4-csum-over-ip4", {{60, 0x99}}, false, VXLAN_BAD_CSUM},
    {"odd-csum-over-ip6", {{100, 0x99}}, false, VXLAN_BAD_CSUM},
    {"ip4-over-ip4", {{28, 0x00}}, false, VXLAN_NO_VNI},
    {"ip4-over-ip4", {{28, 0xf7}}, false, VXLAN_NO_VNI},
    {"ip4-over-ip4", {{28, 0x0c}}, false, VXLAN_BAD_FLAGS},
    {"ip4-over-ip4", {{28, 0x18}}, false, VXLAN_BAD_FLAGS},
    {"ip4-over-ip4", {{28, 0x28}}, false, VXLAN_BAD_FLAGS},
    {"ip4-over-ip4", {{28, 0xcb}}, false, VXLAN_OK}, /* reserved bits are ignored (RFC 7348 5) */
    {"ip4-over-ip4", {{29, 0xff}, {30, 0xff}, {31, 0xff}, {35, 0xff}}, false, VXLAN_OK},
    {"ip4-over-ip4", {{32, 0}, {33, 0}, {34, 0}}, false, VXLAN_ZERO_VNI},
    {"ip4-over-ip4", {{42, 3}}, false, VXLAN_INNER_SOURCE},
    {"ip4-over-ip4", {{42, 0}, {47, 0}}, false, VXLAN_INNER_SOURCE},
    {"ip4-tag-over-ip4", {{52, 0x81}, {53, 0x00}}, false, VXLAN_INNER_TAG},
    {"ip4-tag-over-ip4", {{52, 0x88}, {53, 0xa8}}, false, VXLAN_INNER_TAG},
    {"ip4-over-ip4", {{48, 0x88}, {49, 0xa8}}, false, VXLAN_INNER_TAG},
    {"ip4-over-ip4", {{50, 0x65}}, false, VXLAN_INNER_IP},
    {"ip4-over-ip4", {{50, 0x44}}, false, VXLAN_INNER_IP},
    {"ip4-over-ip4", {{53, 0x31}}, false, VXLAN_INNER_IP},
    {"ip6-over-ip4", {{50, 0x45}}, false, VXLAN_INNER_IP},
    {"ip6-over-ip4", {{55, 0x1d}}, false, VXLAN_INNER_IP},
    {"ip4-over-ip4", {{48, 0x86}, {49, 0xdd}}, false, VXLAN_INNER_IP},
    {"ip4-over-ip4", {{73, 0xb5}}, false, VXLAN_NESTED},
    {"ip6-over-ip4", {{93, 0xb5}}, false, VXLAN_NESTED},
    {"ip4-over-ip4", {{56, 0x20}, {73, 0xb5}}, false, VXLAN_NESTED}, /* in a first fragment, too */
    {"ip4-over-ip6", {{93, 0xb5}}, false, VXLAN_NESTED},
};

static void test_refused(void **state)
{
	unsigned seen[VXLAN_REASON_COUNT] = {0};

	for (unsigned i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		const struct bad *b = &bads[i];
		const struct vec *v = vec_named(b->vec);
		uint8_t copy[256];
		struct vxlan_pkt p;
		enum vxlan_reason r;

		memcpy(copy, v->bytes, v->len);
		for (unsigned s = 0; s < 4; s++)
			if (b->set[s].at || !s)
				copy[b->set[s].at] = b->set[s].to;
		if (!v->is6 && !b->no_fix) {
			copy[10] = copy[11] = 0;
			tp_be(copy + 10, tp_ip4_csum(copy, 20), 2);
		}
		r = decap_exact(copy, v->len, &p);
		if (r != b->want)
			fail_msg("row %u: %s, not %s", i, verdict_name(r), verdict_name(b->want));
		seen[r]++;
	}
	seen[VXLAN_TRUNCATED]++;   /* test_truncated */
	seen[VXLAN_EXT_HEADER]++;  /* test_extension_headers */
	seen[VXLAN_INNER_SHORT]++; /* test_short_inside */
	for (unsigned r = 0; r < VXLAN_REASON_COUNT; r++)
		if (!seen[r])
			fail_msg("no case for %s", verdict_name(r));
}

/* Packets whose headers are consistent but leave no room for the next header. */
static void test_short_inside(void **state)
{
	const struct vec *v = vec_named("ip4-tag-over-ip4");

	for (uint32_t end = 28; end < v->net_off; end++) {
		uint8_t copy[256];
		struct vxlan_pkt p;

		memcpy(copy, v->bytes, end);
		tp_be(copy + 2, end, 2);
		tp_be(copy + 24, end - 20, 2);
		copy[10] = copy[11] = 0;
		tp_be(copy + 10, tp_ip4_csum(copy, 20), 2);
		assert_int_equal(decap_exact(copy, end, &p), end < 36 ? VXLAN_BAD_UDP : VXLAN_INNER_SHORT);
	}
}

/* Inserts `n` bytes of extension header at `at`, and corrects the lengths of header `ip` and of all
 * headers around it. */
static uint32_t splice(uint8_t *b, uint32_t len, uint32_t at, const uint8_t *ext, uint32_t n)
{
	memmove(b + at + n, b + at, len - at);
	memcpy(b + at, ext, n);
	return len + n;
}

static void test_extension_headers(void **state)
{
	static const uint8_t hop[8] = {17, 0, 1, 4}, frag[8] = {17, 0, 0, 1}, whole[8] = {17, 0, 0, 0};
	const struct vec *v = vec_named("ip4-over-ip6"), *w = vec_named("ip6-over-ip6");
	uint8_t b[512];
	struct vxlan_pkt p;
	uint32_t len;

	for (unsigned i = 0; i < 3; i++) {
		memcpy(b, v->bytes, v->len);
		len = splice(b, v->len, 40, i == 0 ? hop : i == 1 ? frag : whole, 8);
		tp_be(b + 4, len - 40, 2);
		b[6] = i ? 44 : 0;
		assert_int_equal(decap_exact(b, len, &p), i == 1 ? VXLAN_FRAGMENT : VXLAN_EXT_HEADER);
	}

	/* Inside: RoCE after extension headers is not for the fast path, and VXLAN after them is
	 * still nested. */
	for (unsigned nested = 0; nested < 2; nested++) {
		memcpy(b, w->bytes, w->len);
		len = splice(b, w->len, w->net_off + 40, hop, 8);
		b[w->net_off + 6] = 0;
		tp_be(b + w->net_off + 4, len - w->net_off - 40, 2);
		tp_be(b + 4, len - 40, 2);
		tp_be(b + 44, len - 40, 2);
		if (nested)
			tp_be(b + w->net_off + 50, 4789, 2);
		assert_int_equal(decap_exact(b, len, &p), nested ? VXLAN_NESTED : VXLAN_OK);
		if (!nested)
			assert_false(p.roce);
	}
	b[w->net_off + 41] = 200; /* the chain leaves the packet */
	assert_int_equal(decap_exact(b, len, &p), VXLAN_INNER_IP);

	/* Inside: eight headers, and nine. */
	static const uint8_t more[8] = {60, 0, 1, 4};

	memcpy(b, w->bytes, w->len);
	len = splice(b, w->len, w->net_off + 40, hop, 8);
	b[w->net_off + 6] = 60;
	for (unsigned n = 1; n <= 9; n++) {
		tp_be(b + w->net_off + 4, len - w->net_off - 40, 2);
		tp_be(b + 4, len - 40, 2);
		tp_be(b + 44, len - 40, 2);
		assert_int_equal(decap_exact(b, len, &p), n <= 8 ? VXLAN_OK : VXLAN_INNER_IP);
		len = splice(b, len, w->net_off + 40, more, 8);
	}

	/* Inside: a first fragment that leaves the UDP header to the next one. */
	for (unsigned n = 0; n <= 8; n++) {
		memcpy(b, w->bytes, w->len);
		splice(b, w->len, w->net_off + 40, frag, 8);
		len = w->net_off + 48 + n;
		b[w->net_off + 6] = 44;
		tp_be(b + w->net_off + 4, 8 + n, 2);
		tp_be(b + 4, len - 40, 2);
		tp_be(b + 44, len - 40, 2);
		assert_int_equal(decap_exact(b, len, &p), n < 8 ? VXLAN_INNER_IP : VXLAN_OK);
	}
}

/* Fragmented RoCE is not RoCE. */
/* An IPv4-mapped address in an IPv6 header, outside and inside. */
static void test_mapped(void **state)
{
	const struct vec *v = vec_named("ip6-over-ip6");

	for (unsigned k = 0; k < 4; k++) {
		uint32_t at = (k & 2 ? v->net_off : 0) + (k & 1 ? 24 : 8);
		uint8_t b[256];
		struct vxlan_pkt p;

		memcpy(b, v->bytes, v->len);
		memset(b + at, 0, 10);
		b[at + 10] = b[at + 11] = 0xff;
		assert_int_equal(decap_exact(b, v->len, &p), k & 2 ? VXLAN_INNER_IP : VXLAN_BAD_IP);
	}
}

static void test_inner_fragment(void **state)
{
	const struct vec *v = vec_named("ip4-over-ip4");
	uint8_t b[256];
	struct vxlan_pkt p;

	memcpy(b, v->bytes, v->len);
	b[56] = 0x20;
	assert_int_equal(decap_exact(b, v->len, &p), VXLAN_OK);
	assert_false(p.roce);
}

static void test_config(void **state)
{
	const struct vec *v = vec_named("ip4-over-ip4"), *tag = vec_named("ip4-tag-over-ip4");
	struct vxlan_cfg cfg;
	struct vxlan_pkt p;
	uint8_t b[256];

	vxlan_cfg_default(&cfg);
	assert_int_equal(cfg.port, 4789);
	assert_int_equal(vxlan_decap(&cfg, tag->bytes, tag->len, &p), VXLAN_OK);
	cfg.inner_vlan = false;
	assert_int_equal(vxlan_decap(&cfg, tag->bytes, tag->len, &p), VXLAN_INNER_TAG);
	assert_int_equal(vxlan_decap(&cfg, v->bytes, v->len, &p), VXLAN_OK);
	memcpy(b, v->bytes, v->len);
	tp_be(b + 22, 8472, 2);
	assert_int_equal(vxlan_decap(&cfg, b, v->len, &p), VXLAN_NOT_VXLAN);
	cfg.port = 8472;
	assert_int_equal(vxlan_decap(&cfg, b, v->len, &p), VXLAN_OK);
	assert_int_equal(vxlan_decap(&cfg, v->bytes, v->len, &p), VXLAN_NOT_VXLAN);
}

static void test_tmpl_refuses(void **state)
{
	struct vxlan_tmpl_cfg good = {.vni = 1, .port = 4789, .ttl = 64, .tag = true, .tci = 1}, c;
	struct vxlan_tmpl t;
	uint8_t b[200] = {0};

	vtep(&good.local, false, 1);
	vtep(&good.remote, false, 2);
	assert_int_equal(vxlan_tmpl_init(&t, &good), 0);
	assert_null(vxlan_encap(&t, b + 100, 20, mac2, 50000, 0)); /* version 0 */
	assert_null(vxlan_encap(&t, b + 100, 0, mac2, 50000, 0));
	b[100] = 0x45;
	assert_null(vxlan_encap(&t, b + 100, 65535 - 54 + 1, mac2, 50000, 0));
	assert_null(vxlan_encap_frame(&t, b + 100, 13, 50000, 0));
	assert_null(vxlan_encap_frame(&t, b + 100, 65535 - 36 + 1, 50000, 0));
	assert_non_null(vxlan_encap(&t, b + 100, 65535 - 54, mac2, 50000, 0));
#define BAD(change)                                                                                          \
	c = good;                                                                                            \
	change;                                                                                              \
	assert_int_equal(vxlan_tmpl_init(&t, &c), RWY_EINVAL)
	BAD(c.vni = 0);
	BAD(c.vni = 0x1000000);
	BAD(c.port = 0);
	BAD(c.ttl = 0);
	BAD(c.tci = 0);
	BAD(c.tci = 0xfff);
	BAD(c.src_mac[0] = 1);
	BAD(vtep(&c.remote, true, 2));
	BAD(memset(&c.remote, 0, 16));
	BAD(c.local.b[12] = 224);
	BAD(c.local.b[12] = 0);
#undef BAD
}

/* Distribution: in range, stable, and flows that differ in one field are spread as by a fair hash
 * (chi square over 64 buckets of 100,000 flows: mean 63, 8 standard deviations above it would be
 * 153). */
static void test_source_port(void **state)
{
	static const char *const what[] = {"qpn", "source port", "host"};

	for (unsigned kind = 0; kind < 3; kind++) {
		unsigned bucket[64] = {0};
		double chi = 0;

		for (uint32_t i = 0; i < 100000; i++) {
			const uint8_t a4[4] = {
			    10, 0, kind == 2 ? (uint8_t)(i >> 8) : 0, kind == 2 ? (uint8_t)i : 1};
			const uint8_t b4[4] = {10, 1, kind == 2 ? (uint8_t)(i >> 16) : 0, 2};
			struct rwy_ip a = rwy_ip_from4(a4), b = rwy_ip_from4(b4);
			uint32_t qpn = kind == 0 ? i : 17;
			uint16_t sport = kind == 1 ? (uint16_t)(i * 40503u >> 3) : 65472;
			uint16_t out = vxlan_sport(vxlan_flow_hash(&a, &b, sport, qpn));

			assert_true(out >= VXLAN_SPORT_FIRST);
			assert_int_equal(out, vxlan_sport(vxlan_flow_hash(&a, &b, sport, qpn)));
			bucket[out & 63]++;
		}
		for (unsigned i = 0; i < 64; i++) {
			double d = bucket[i] - 100000 / 64.0;

			chi += d * d / (100000 / 64.0);
		}
		if (chi > 153 && kind != 1) /* source ports repeat: 65536 at most */
			fail_msg("%s: chi square %.0f", what[kind], chi);
		for (unsigned i = 0; i < 64; i++)
			assert_in_range(bucket[i], 1000, 2200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_decap_scapy),
	    cmocka_unit_test(test_encap_scapy),
	    cmocka_unit_test(test_csum_never_zero),
	    cmocka_unit_test(test_truncated),
	    cmocka_unit_test(test_padding),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_short_inside),
	    cmocka_unit_test(test_extension_headers),
	    cmocka_unit_test(test_mapped),
	    cmocka_unit_test(test_inner_fragment),
	    cmocka_unit_test(test_config),
	    cmocka_unit_test(test_tmpl_refuses),
	    cmocka_unit_test(test_source_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
