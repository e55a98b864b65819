/* SPDX-License-Identifier: Apache-2.0 */
/* Headers and frames: values are read back as written, and impossible ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rwy/crc32.h"
#include "tests/lib/wan_link.h"
#include "wan/wire/pkt.h"

static void test_header(void **state)
{
	struct wan_pkt in = {
	    .version = 1, .type = 0, .flags = 1, .path = 3, .index = 0x12345678, .pn = 0x1122334455667788};
	struct wan_pkt out;
	uint8_t p[WAN_PKT_HDR];
	static const uint8_t want[16] = {
	    0x10, 1, 3, 0, 0x12, 0x34, 0x56, 0x78, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};

	wan_pkt_put(p, &in);
	assert_memory_equal(p, want, sizeof(want));
	wan_pkt_get(p, &out);
	assert_memory_equal(&in, &out, sizeof(in));
}

/* Any one bit is detected, in either piece. */
static void test_crc(void **state)
{
	uint8_t p[64];

	for (size_t i = 0; i < sizeof(p); i++)
		p[i] = (uint8_t)i;
	memset(p + 16, 0, 4);
	wan_pkt_seal(p, 30, p + 30, sizeof(p) - 30);
	uint8_t sealed[64];

	memcpy(sealed, p, sizeof(p));
	assert_true(wan_pkt_open(p, sizeof(p)));
	for (unsigned bit = 0; bit < 8 * sizeof(p); bit++) {
		memcpy(p, sealed, sizeof(p));
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(wan_pkt_open(p, sizeof(p)));
	}
}

/* A payload whose CRC is known without reading it: the datagram is the same. */
static uint32_t known(const struct rwy_buf *b, uint32_t crc)
{
	return crc32_gzip_refl(crc, b->data, b->len);
}

static void test_crc_known(void **state)
{
	uint8_t p[2][64], payload[1000];
	struct rwy_buf b = {.data = payload, .len = sizeof(payload)};

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(7 * i);
	for (size_t hdr = WAN_PKT_HDR; hdr <= sizeof(p[0]); hdr++) {
		for (unsigned k = 0; k < 2; k++) {
			memset(p[k], (int)hdr, sizeof(p[k]));
			memset(p[k] + 16, 0, 4);
		}
		wan_pkt_seal(p[0], hdr, b.data, b.len);
		wan_pkt_seal_over(p[1], hdr, &b, known);
		assert_memory_equal(p[0], p[1], sizeof(p[0]));
	}
}

static void test_varint(void **state)
{
	/* RFC 9000 A.1 */
	static const struct {
		uint64_t v;
		size_t n;
		uint8_t b[8];
	} all[] = {
	    {37, 1, {0x25}},
	    {15293, 2, {0x7b, 0xbd}},
	    {494878333, 4, {0x9d, 0x7f, 0x3e, 0x7d}},
	    {151288809941952652, 8, {0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c}},
	};
	uint8_t p[8];
	uint64_t v;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(wan_varint_size(all[i].v), all[i].n);
		assert_ptr_equal(wan_varint_put(p, all[i].v), p + all[i].n);
		assert_memory_equal(p, all[i].b, all[i].n);
		assert_ptr_equal(wan_varint_get(p, p + all[i].n, &v), p + all[i].n);
		assert_true(v == all[i].v);
		assert_null(wan_varint_get(p, p + all[i].n - 1, &v));
	}
}

static void test_ack(void **state)
{
	uint64_t rng = 1;

	for (int round = 0; round < 2000; round++) {
		struct wan_f_ack a = {.path = (uint8_t)wan_rng_below(&rng, 8),
		                     .delay_us = (uint32_t)wan_rng_next(&rng),
		                     .at_us = (uint32_t)wan_rng_next(&rng)},
		                 b;
		uint64_t at = wan_rng_next(&rng) >> (2 + wan_rng_below(&rng, 40));
		uint8_t p[WAN_ACK_MAX];

		a.has_ecn = wan_rng_below(&rng, 2);
		if (a.has_ecn)
			a.ect0 = 1, a.ect1 = 2, a.ce = (uint32_t)wan_rng_next(&rng);
		for (unsigned want = 1 + wan_rng_below(&rng, WAN_ACK_RANGES_MAX); a.n < want; a.n++) {
			uint64_t len = wan_rng_below(&rng, 200);

			if (at < len + 300)
				break;
			a.r[a.n].hi = at;
			a.r[a.n].lo = at - len;
			at -= len + 2 + wan_rng_below(&rng, 98);
		}
		if (!a.n)
			continue;
		uint8_t *end = wan_f_ack_put(p, sizeof(p), &a);

		assert_ptr_equal(wan_f_ack_get(p + 1, end, p[0], &b), end);
		assert_int_equal(a.n, b.n);
		assert_memory_equal(a.r, b.r, a.n * sizeof(a.r[0]));
		assert_int_equal(a.delay_us, b.delay_us);
		assert_int_equal(a.at_us, b.at_us);
		assert_int_equal(a.ce, b.ce);
		for (const uint8_t *cut = p + 1; cut < end; cut++)
			assert_null(wan_f_ack_get(p + 1, cut, p[0], &b));
		/* In a small room only the newest ranges are written. */
		end = wan_f_ack_put(p, 44, &a);
		assert_true(end <= p + 44);
		assert_ptr_equal(wan_f_ack_get(p + 1, end, p[0], &b), end);
		assert_memory_equal(a.r, b.r, b.n * sizeof(a.r[0]));
	}
}

static void test_ack_malformed(void **state)
{
	uint8_t p[44] = {0};
	struct wan_f_ack a;

	rwy_put64(p + 1, 10);
	p[17] = 0; /* no range */
	assert_null(wan_f_ack_get(p, p + 19, WAN_F_ACK, &a));
	p[17] = 1;
	p[18] = 11; /* below 0 */
	assert_null(wan_f_ack_get(p, p + 19, WAN_F_ACK, &a));
	p[18] = 10;
	assert_non_null(wan_f_ack_get(p, p + 19, WAN_F_ACK, &a));
	p[17] = 2; /* a second range below 0 */
	p[18] = 8;
	p[19] = 1;
	p[20] = 0;
	assert_null(wan_f_ack_get(p, p + 21, WAN_F_ACK, &a));
	p[19] = 0;
	assert_non_null(wan_f_ack_get(p, p + 21, WAN_F_ACK, &a));
	p[17] = WAN_ACK_RANGES_MAX + 1;
	assert_null(wan_f_ack_get(p, p + 44, WAN_F_ACK, &a));
	p[17] = 1;
	p[1] = 0xff; /* an impossible packet number */
	assert_null(wan_f_ack_get(p, p + 44, WAN_F_ACK, &a));
}

static void data_round_trip(struct wan_f_data d, size_t payload)
{
	uint8_t p[400];
	struct wan_f_data out = {0};
	uint8_t *body = wan_f_data_put(p, &d);

	assert_int_equal(body - p, wan_f_data_size(&d));
	assert_ptr_equal(wan_f_data_get(p, body + payload, &out), body);
	assert_int_equal(d.dgram, out.dgram);
	assert_int_equal(d.open, out.open);
	assert_int_equal(d.frag, out.frag);
	assert_int_equal(d.wait, out.wait);
	if (d.wait) {
		assert_int_equal(d.after.flow, out.after.flow);
		assert_int_equal(d.after.count, out.after.count);
	}
	assert_int_equal(d.kind, out.kind);
	assert_int_equal(d.pcp, out.pcp);
	if (!d.dgram)
		assert_int_equal(d.flow, out.flow);
	if (!d.dgram || d.frag)
		assert_int_equal(d.seq, out.seq);
	if (d.frag) {
		assert_int_equal(d.total, out.total);
		assert_int_equal(d.fsize, out.fsize);
		assert_int_equal(d.index, out.index);
	}
	if (d.open) {
		assert_true(d.base == out.base);
		assert_int_equal(d.info_len, out.info_len);
		assert_memory_equal(d.info, out.info, d.info_len);
	}
	for (const uint8_t *cut = p; cut <= body; cut++)
		assert_null(wan_f_data_get(p, cut, &out));
	if (d.frag) { /* a fragment has exactly its stated length */
		assert_null(wan_f_data_get(p, body + payload - 1, &out));
		assert_null(wan_f_data_get(p, body + payload + 1, &out));
	}
}

static void test_data(void **state)
{
	uint8_t info[WAN_OPEN_MAX] = "information about the flow";
	struct wan_f_data d = {.kind = 1, .flow = 0xfedcba98, .seq = 0x01020304};

	assert_int_equal(wan_f_data_size(&d) + WAN_PKT_HDR, 30);
	data_round_trip(d, 100);
	d.pcp = 8 + 5;
	data_round_trip(d, 100);
	d.open = true;
	d.base = (uint64_t)7 << 40;
	d.info = info;
	d.info_len = 26;
	data_round_trip(d, 100);
	d.info_len = 0;
	data_round_trip(d, 1);
	d.info_len = WAN_OPEN_MAX;
	data_round_trip(d, 1);
	d.frag = true;
	d.total = 250;
	d.fsize = 100;
	data_round_trip(d, 100);
	d.index = 2;
	data_round_trip(d, 50);
	d.wait = true;
	d.after = (struct rwy_after){0x89abcdef, 0x76543210};
	data_round_trip(d, 50);
	d.open = d.frag = false;
	data_round_trip(d, 50);
	d = (struct wan_f_data){.dgram = true, .kind = 2, .pcp = 15};
	data_round_trip(d, 5);
	d.frag = true;
	d.seq = 99;
	d.total = 101;
	d.fsize = 100;
	d.index = 1;
	data_round_trip(d, 1);
}

static void test_fragment_numbers(void **state)
{
	struct wan_f_data d = {.frag = true, .total = 1000, .fsize = 100, .index = 10}, out;
	uint8_t p[400];

	uint8_t *end = wan_f_data_put(p, &d);

	assert_null(wan_f_data_get(p, end + 100, &out)); /* begins after the end */
	d.index = WAN_FRAGS_MAX;
	d.fsize = 10;
	wan_f_data_put(p, &d);
	assert_null(wan_f_data_get(p, end + 10, &out)); /* too many */
	d.index = 0;
	d.fsize = 0;
	wan_f_data_put(p, &d);
	assert_null(wan_f_data_get(p, end + 1, &out));
	d.fsize = 20; /* would need more than WAN_FRAGS_MAX */
	wan_f_data_put(p, &d);
	assert_null(wan_f_data_get(p, end + 20, &out));
}

/* Writes a run of n packets of these lengths at p. Returns its end. */
static uint8_t *run_put(uint8_t *p, const uint16_t *len, uint8_t n)
{
	const struct wan_f_data d = {
	    .run = n, .first = len[0], .kind = 2, .pcp = 8 + 5, .flow = 0xfedcba98, .seq = 0xfffffffe};
	uint8_t *at = wan_f_data_put(p, &d);

	assert_int_equal(at - p, wan_f_data_size(&d));
	for (unsigned i = 0; i < n; i++) {
		if (i) {
			rwy_put16(at, len[i]);
			at += WAN_RUN_NEXT;
		}
		memset(at, (int)(i + 1), len[i]);
		at += len[i];
	}
	return at;
}

static void test_run(void **state)
{
	static const uint16_t len[] = {100, 1, 255, 256, 100};
	uint8_t p[1000], *end = run_put(p, len, 5);
	struct wan_f_data d;
	uint32_t n;
	const uint8_t *at = wan_f_data_get(p, end, &d);

	assert_ptr_equal(at, p + WAN_RUN_LEN);
	assert_true(d.run == 5 && d.first == 100 && d.kind == 2 && d.pcp == 8 + 5);
	assert_true(d.flow == 0xfedcba98 && d.seq == 0xfffffffe);
	assert_false(d.dgram || d.open || d.frag || d.wait);
	n = d.first;
	for (unsigned i = 0; i < 5; i++) {
		if (i)
			at = wan_f_run_next(at, &n);
		assert_true(n == len[i] && at[0] == i + 1 && at[n - 1] == i + 1);
	}
	assert_ptr_equal(at + n, end);
	/* one packet is a run, too; a DATA frame read after it has nothing of it */
	end = run_put(p, len, 1);
	assert_non_null(wan_f_data_get(p, end, &d));
	end = wan_f_data_put(p, &(struct wan_f_data){.flow = 1});
	assert_non_null(wan_f_data_get(p, end + 1, &d));
	assert_false(d.run);
}

/* Writes a bundle of n packets, of flow i and sequence 100 - i. Returns its end. */
static uint8_t *bundle_put(uint8_t *p, const uint16_t *len, uint8_t n)
{
	uint8_t *at = p;

	for (unsigned i = 0; i < n; i++) {
		const struct wan_f_data d = {.bundle = true,
		    .run = n,
		    .first = len[0],
		    .kind = i & 1,
		    .pcp = 8,
		    .flow = i,
		    .seq = 100 - i};

		at = i ? wan_f_bundle_put(at, &d, len[i]) : wan_f_data_put(at, &d);
		memset(at, (int)(i + 1), len[i]);
		at += len[i];
	}
	return at;
}

static void test_bundle(void **state)
{
	static const uint16_t len[] = {100, 1, 255};
	uint8_t p[1000], *end = bundle_put(p, len, 3);
	struct wan_f_data d;
	uint32_t n;
	const uint8_t *at = wan_f_data_get(p, end, &d);

	assert_ptr_equal(at, p + WAN_BUNDLE_LEN);
	assert_true(d.bundle && d.run == 3 && wan_f_data_size(&d) == WAN_BUNDLE_LEN);
	n = d.first;
	for (unsigned i = 0; i < 3; i++) {
		if (i)
			at = wan_f_bundle_next(at + n, &d, &n);
		assert_true(d.flow == i && d.seq == 100 - i && d.kind == (i & 1) && d.pcp == 8);
		assert_true(n == len[i] && at[0] == i + 1 && at[n - 1] == i + 1);
	}
	assert_ptr_equal(at + n, end);
	/* one packet is a bundle, too; a DATA frame read after it has nothing of it */
	assert_non_null(wan_f_data_get(p, bundle_put(p, len, 1), &d));
	end = wan_f_data_put(p, &(struct wan_f_data){.flow = 1});
	assert_non_null(wan_f_data_get(p, end + 1, &d));
	assert_false(d.run || d.bundle);
}

static void test_bundle_malformed(void **state)
{
	static const uint16_t len[WAN_BUNDLE_MAX + 1] = {10, 1, 20, 1, 1, 1, 1, 1, 1, 1};
	uint8_t p[300], *end = bundle_put(p, len, 3);
	struct wan_f_data d;

	p[end - p] = 0;
	assert_null(wan_f_data_get(p, end + 1, &d)); /* bytes that no packet has */
	for (const uint8_t *cut = p; cut < end; cut++)
		assert_null(wan_f_data_get(p, cut, &d));
	p[1] = 0; /* no packet */
	assert_null(wan_f_data_get(p, end, &d));
	assert_null(wan_f_data_get(p, p + WAN_BUNDLE_HEAD, &d));
	p[1] = 2; /* fewer, and more, than there are */
	assert_null(wan_f_data_get(p, end, &d));
	p[1] = 4;
	assert_null(wan_f_data_get(p, end, &d));
	p[1] = 3;
	rwy_put16(p + WAN_BUNDLE_HEAD + 9, 0); /* an empty one */
	assert_null(wan_f_data_get(p, end, &d));
	assert_non_null(wan_f_data_get(p, bundle_put(p, len, WAN_BUNDLE_MAX), &d));
	assert_null(wan_f_data_get(p, bundle_put(p, len, WAN_BUNDLE_MAX + 1), &d));
}

static void test_run_malformed(void **state)
{
	static const uint16_t len[] = {10, 1, 20};
	uint8_t p[200], *end = run_put(p, len, 3);
	uint8_t *second = p + WAN_RUN_LEN + 10, *third = second + WAN_RUN_NEXT + 1;
	struct wan_f_data d;

	p[end - p] = 0;
	assert_null(wan_f_data_get(p, end + 1, &d)); /* bytes that no packet has */
	for (const uint8_t *cut = p; cut < end; cut++)
		assert_null(wan_f_data_get(p, cut, &d));
	p[10] = 0; /* no packet */
	assert_null(wan_f_data_get(p, end, &d));
	assert_null(wan_f_data_get(p, p + WAN_RUN_LEN, &d));
	p[10] = 2; /* fewer, and more, than there are */
	assert_null(wan_f_data_get(p, end, &d));
	p[10] = 4;
	assert_null(wan_f_data_get(p, end, &d));
	p[10] = 255;
	assert_null(wan_f_data_get(p, end, &d));
	p[10] = 3;
	/* lengths that lie: of the first, a middle one, the last */
	for (unsigned lie = 0; lie < 0x10000; lie++) {
		rwy_put16(p + 11, (uint16_t)lie);
		assert_true(lie == 10 || !wan_f_data_get(p, end, &d));
	}
	rwy_put16(p + 11, 10);
	for (unsigned lie = 0; lie < 0x10000; lie++) {
		rwy_put16(second, (uint16_t)lie);
		assert_true(lie == 1 || !wan_f_data_get(p, end, &d));
	}
	rwy_put16(second, 1);
	for (unsigned lie = 0; lie < 0x10000; lie++) {
		rwy_put16(third, (uint16_t)lie);
		assert_true(lie == 20 || !wan_f_data_get(p, end, &d));
	}
	rwy_put16(third, 20);
	assert_non_null(wan_f_data_get(p, end, &d));
	/* an empty last packet */
	rwy_put16(third, 0);
	assert_null(wan_f_data_get(p, third + WAN_RUN_NEXT, &d));
}

/* The byte behind the HELLO of older gateways. */
static void test_hello_more(void **state)
{
	struct wan_f_hello in = {.mtu = 1472, .rx_window = 7, .more = WAN_HELLO_RUN}, out;
	uint8_t p[WAN_HELLO_LEN + 1];

	assert_ptr_equal(wan_f_hello_put(p, &in), p + WAN_HELLO_LEN + 1);
	assert_true(wan_f_hello_get(p, WAN_HELLO_LEN + 1, &out));
	assert_int_equal(out.more, WAN_HELLO_RUN);
	assert_true(wan_f_hello_get(p, WAN_HELLO_LEN, &out));
	assert_int_equal(out.more, 0);
	in.more = 0;
	assert_ptr_equal(wan_f_hello_put(p, &in), p + WAN_HELLO_LEN);
}

static void test_hello(void **state)
{
	struct wan_f_hello in = {.flags = WAN_HELLO_WANT | WAN_HELLO_KEEP << WAN_HELLO_CLAIM | WAN_HELLO_HELD,
	    .claim = WAN_HELLO_INHERIT | 99,
	    .mtu = 1472,
	    .index = 1,
	    .tunnel_id = 2,
	    .epoch = 3,
	    .nonce = 4,
	    .echo = 5,
	    .echo_epoch = 6,
	    .rx_window = 7,
	    .ack_delay_us = 8,
	    .rx_bytes = 9,
	    .rx_cost = 10};
	struct wan_f_hello out;
	uint8_t p[WAN_HELLO_LEN];

	memset(&out, 0, sizeof(out));
	assert_ptr_equal(wan_f_hello_put(p, &in), p + WAN_HELLO_LEN);
	assert_true(wan_f_hello_get(p, WAN_HELLO_LEN, &out));
	assert_int_equal(in.flags, out.flags);
	assert_int_equal(in.claim, out.claim);
	assert_int_equal(wan_f_hello_claim(&out), WAN_HELLO_KEEP);
	out.claim = WAN_HELLO_INHERIT; /* without a number */
	assert_int_equal(wan_f_hello_claim(&out), WAN_HELLO_NO_CLAIM);
	assert_int_equal(in.mtu, out.mtu);
	assert_int_equal(in.index, out.index);
	assert_true(in.tunnel_id == out.tunnel_id && in.epoch == out.epoch && in.nonce == out.nonce &&
	            in.echo == out.echo);
	assert_true(in.echo_epoch == out.echo_epoch && in.rx_bytes == out.rx_bytes);
	assert_int_equal(in.rx_cost, out.rx_cost);
	assert_true(in.rx_window == out.rx_window && in.ack_delay_us == out.ack_delay_us);
	assert_false(wan_f_hello_get(p, WAN_HELLO_LEN - 1, &out));
	in.mtu = WAN_HELLO_MTU - 1;
	wan_f_hello_put(p, &in);
	assert_false(wan_f_hello_get(p, WAN_HELLO_LEN, &out));
	/* a refusal has no more than what it answers */
	in = (struct wan_f_hello){.flags = WAN_HELLO_GONE, .epoch = 3, .echo = 5};
	wan_f_hello_put(p, &in);
	assert_true(wan_f_hello_get(p, WAN_HELLO_LEN, &out));
	assert_true(out.echo == 5 && !out.mtu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_header),
	    cmocka_unit_test(test_crc),
	    cmocka_unit_test(test_crc_known),
	    cmocka_unit_test(test_varint),
	    cmocka_unit_test(test_ack),
	    cmocka_unit_test(test_ack_malformed),
	    cmocka_unit_test(test_data),
	    cmocka_unit_test(test_fragment_numbers),
	    cmocka_unit_test(test_run),
	    cmocka_unit_test(test_run_malformed),
	    cmocka_unit_test(test_bundle),
	    cmocka_unit_test(test_bundle_malformed),
	    cmocka_unit_test(test_hello),
	    cmocka_unit_test(test_hello_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
