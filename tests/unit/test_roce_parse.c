/* SPDX-License-Identifier: Apache-2.0 */
/* roce/parse.h: each reason, truncation at every length, both families, IPv4 options, IPv6 extension headers,
 * padding. */
#include "tests/lib/roce_pkt.h"

#include "roce/icrc.h"
#include "roce/parse.h"
#include "roce/wire.h"
#include "rwy/checksum.h"

static const uint8_t reth[16] = {
    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 2, 0};

static struct tp write_only(void)
{
	return (struct tp){.opcode = ROCE_RC_WRITE_ONLY,
	    .ext = reth,
	    .ext_len = 16,
	    .payload_len = 512,
	    .ttl = 64,
	    .frag = 0x4000,
	    .dqpn = 0x123456,
	    .psn = 0xabcdef};
}

/* Parses a copy at the end of a heap block, so that the sanitizers detect any read beyond it. */
static enum roce_parse_reason parse_exact(const uint8_t *b, uint32_t len, struct roce_pkt *out)
{
	uint8_t *heap = malloc(len ? len : 1);
	struct roce_pkt p;
	enum roce_parse_reason r;

	memcpy(heap, b, len);
	r = roce_parse(heap, len, &p);
	if (out)
		*out = p;
	free(heap);
	return r;
}

static void test_fields(void **state)
{
	static const struct rwy_ip src4 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}};
	static const struct rwy_ip dst6 = {{0xfd, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2}};
	struct tp t = write_only();
	uint8_t b[TP_MAX];
	struct roce_pkt p;
	uint32_t len;

	t.bth_flags = 0xc0;
	t.ack_req = true;
	t.tos = 0x6b;
	t.fb = 0xc0;
	t.payload_len = 509;
	t.pad = -1;
	for (unsigned is6 = 0; is6 < 2; is6++) {
		t.is6 = is6;
		len = tp_make(b, &t);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		assert_ptr_equal(p.ip, b);
		assert_ptr_equal(p.bth, b + (is6 ? 48 : 28));
		assert_ptr_equal(p.ext, p.bth + 12);
		assert_ptr_equal(p.payload, p.ext + 16);
		assert_ptr_equal(p.icrc, p.payload + 512);
		assert_ptr_equal(p.info, roce_op(ROCE_RC_WRITE_ONLY));
		assert_int_equal(p.len, len);
		assert_int_equal(p.payload_len, 509);
		assert_int_equal(p.pad, 3);
		assert_int_equal(p.dqpn, 0x123456);
		assert_int_equal(p.psn, 0xabcdef);
		assert_int_equal(p.pkey, 0xffff);
		assert_int_equal(p.sport, 49152);
		assert_int_equal(p.opcode, ROCE_RC_WRITE_ONLY);
		assert_int_equal(p.ip_hlen, is6 ? 40 : 20);
		assert_int_equal(p.ecn, 3);
		assert_int_equal(p.is6, is6);
		assert_true(p.ack_req && p.solicited && p.migreq && p.fecn && p.becn);
		assert_true(is6 ? rwy_ip_eq(&p.dst, &dst6) : rwy_ip_eq(&p.src, &src4));
		assert_int_equal(roce_reth_va(&p), 0x1122334455667788);
		assert_int_equal(roce_reth_rkey(&p), 0xaabbccdd);
		assert_int_equal(roce_reth_len(&p), 512);
	}
	t = (struct tp){.opcode = ROCE_RC_SEND_ONLY};
	len = tp_make(b, &t);
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	assert_false(p.ack_req || p.solicited || p.migreq || p.fecn || p.becn);
	assert_int_equal(p.payload_len, 0);
}

/* The accessors find their headers after those of RD and XRC. */
static void test_ext_behind_others(void **state)
{
	uint8_t b[TP_MAX], ext[64] = {0};
	struct tp t = {.ext = ext};
	struct roce_pkt p;
	uint32_t len;

	memcpy(ext + 4, reth, 16); /* XRCETH, RETH */
	t.opcode = 0xac;
	t.ext_len = 20;
	len = tp_make(b, &t);
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	assert_int_equal(roce_reth_rkey(&p), 0xaabbccdd);

	memcpy(ext + 12, reth, 16); /* RDETH, DETH, RETH */
	t.opcode = 0x4c;
	t.ext_len = 28;
	len = tp_make(b, &t);
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	assert_int_equal(roce_reth_va(&p), 0x1122334455667788);

	tp_be(ext, 0x00000007, 4); /* RDETH, AETH */
	tp_be(ext + 4, 0x60000102, 4);
	t.opcode = 0x51;
	t.ext_len = 8;
	len = tp_make(b, &t);
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	assert_int_equal(roce_aeth_syndrome(&p), 0x60);
	assert_int_equal(roce_aeth_msn(&p), 0x102);

	tp_be(ext, 0x1f00abcd, 4); /* AETH alone */
	t.opcode = ROCE_RC_ACK;
	t.ext_len = 4;
	len = tp_make(b, &t);
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	assert_int_equal(roce_aeth_syndrome(&p), 0x1f);
	assert_int_equal(roce_aeth_msn(&p), 0xabcd);
	assert_int_equal(roce_aeth_type(roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP)), ROCE_AETH_NAK);
	assert_int_equal(roce_aeth_value(roce_aeth_make(ROCE_AETH_RNR, 17)), 17);
}

/* A jumbo frame is as bad with an unknown operation as with a known one. */
static void test_jumbo(void **state)
{
	static uint8_t b[9000];

	for (unsigned c = 0; c < 256; c++) {
		struct tp t = {.opcode = (uint8_t)c};
		struct roce_pkt p;

		tp_make(b, &t);
		rwy_ip4_set16(b, 2, sizeof(b));
		rwy_put16(b + 24, sizeof(b) - 20);
		assert_int_equal(roce_parse(b, sizeof(b), &p), ROCE_PARSE_BAD_LENGTH);
	}
}

/* Every valid opcode with just its headers, and with payload where it may have some. */
static void test_every_opcode(void **state)
{
	uint8_t b[TP_MAX], ext[64] = {0};
	struct roce_pkt p;

	for (unsigned c = 0; c < 256; c++) {
		const struct roce_opinfo *i = roce_op((uint8_t)c);
		bool full = i->pos == ROCE_POS_FIRST || i->pos == ROCE_POS_MIDDLE;
		struct tp t = {.opcode = (uint8_t)c,
		    .ext = ext,
		    .ext_len = i->ext_len,
		    .is6 = c & 1,
		    .pad = -1,
		    .psn = 0xabc000 + c,
		    .dqpn = 0xdef000 + c};
		uint32_t len;

		if (i->flags & ROCE_F_PAYLOAD)
			t.payload_len = full ? 1024 : 7;
		len = tp_make(b, &t);
		if (!roce_op_is_valid(i)) {
			assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_UNKNOWN_OPCODE);
			assert_ptr_equal(p.info, i);
			assert_int_equal(p.opcode, c);
			assert_int_equal(p.psn, t.psn);
			assert_int_equal(p.dqpn, t.dqpn);
			assert_true(roce_icrc_ok(&p));
			continue;
		}
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		assert_int_equal(p.payload_len, t.payload_len);
		assert_int_equal(p.payload - p.ext, i->ext_len);
	}
}

/* The offsets of a packet that parsed before are found again, with options and padding, too. */
static void test_offsets(void **state)
{
	for (unsigned v = 0; v < 3; v++) {
		struct roce_pkt p, again;
		struct tp t = write_only();
		uint8_t b[TP_MAX + 32];
		uint32_t len;

		t.is6 = v == 1;
		t.ihl = v == 2 ? 15 : 5;
		len = tp_make(b, &t);
		memset(b + len, 0xee, 32);
		memset(&again, 0xee, sizeof(again));
		assert_int_equal(roce_parse(b, len + 32, &p), ROCE_PARSE_OK);
		roce_parse_offsets(b, &again);
		assert_ptr_equal(again.ip, p.ip);
		assert_ptr_equal(again.bth, p.bth);
		assert_ptr_equal(again.ext, p.ext);
		assert_ptr_equal(again.icrc, p.icrc);
		assert_int_equal(again.len, p.len);
		assert_int_equal(again.ip_hlen, p.ip_hlen);
		assert_int_equal(again.is6, p.is6);
	}
}

/* Shorter than its headers say, at every length; longer is Ethernet padding. */
static void test_every_truncation(void **state)
{
	for (unsigned v = 0; v < 3; v++) {
		struct tp t = write_only();
		uint8_t b[TP_MAX];
		struct roce_pkt p;
		uint32_t len;

		t.is6 = v == 1;
		t.ihl = v == 2 ? 15 : 5;
		t.payload_len = 8;
		len = tp_make(b, &t);
		for (uint32_t n = 0; n < len; n++)
			assert_int_equal(parse_exact(b, n, NULL), ROCE_PARSE_TRUNCATED);
		assert_int_equal(parse_exact(b, len, NULL), ROCE_PARSE_OK);
		memset(b + len, 0xee, 64);
		for (uint32_t n = len; n < len + 64; n++) {
			assert_int_equal(parse_exact(b, n, &p), ROCE_PARSE_OK);
			assert_int_equal(p.len, len);
		}
	}
}

/* The IP and UDP lengths agree with the buffer but leave too little for RoCE: never OK, never out of bounds.
 */
static void test_every_consistent_shortening(void **state)
{
	for (unsigned is6 = 0; is6 < 2; is6++) {
		uint32_t hlen = is6 ? 40 : 20;

		for (uint32_t n = hlen; n < hlen + 8 + 12 + 16 + 4; n++) {
			struct tp t = write_only();
			uint8_t b[TP_MAX];
			enum roce_parse_reason want = ROCE_PARSE_BAD_LENGTH;

			t.is6 = is6;
			tp_make(b, &t);
			tp_be(b + (is6 ? 4 : 2), is6 ? n - 40 : n, 2);
			tp_be(b + hlen + 4, n - hlen, 2);
			if (!is6)
				tp_fix_csum(b);
			if (n < hlen + 8)
				want = ROCE_PARSE_BAD_UDP;
			assert_int_equal(parse_exact(b, n, NULL), want);
		}
	}
}

static void test_bad_ip(void **state)
{
	struct tp t = write_only();
	uint8_t b[TP_MAX];
	struct roce_pkt p;
	uint32_t len = tp_make(b, &t);

	for (unsigned v = 0; v < 16; v++) {
		b[0] = (uint8_t)(v << 4 | 5);
		if (v != 4 && v != 6)
			assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_BAD_IP);
	}
	for (unsigned ihl = 0; ihl < 5; ihl++) {
		b[0] = (uint8_t)(0x40 | ihl);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_BAD_IP);
	}
	tp_make(b, &t);
	tp_be(b + 2, 19, 2); /* total length below the header's */
	tp_fix_csum(b);
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_BAD_IP);

	/* The checksum detects any single bit of the IPv4 header that the length checks do not. */
	for (unsigned bit = 0; bit < 160; bit++) {
		tp_make(b, &t);
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		assert_int_not_equal(roce_parse(b, len, &p), ROCE_PARSE_NOT_ROCE);
	}
	for (unsigned ihl = 6; ihl <= 15; ihl++) { /* the sum includes options */
		t.ihl = (uint8_t)ihl;
		len = tp_make(b, &t);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		assert_int_equal(p.ip_hlen, ihl * 4);
		b[ihl * 4 - 1] ^= 4;
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_BAD_IP);
	}
}

/* An IPv6 packet of addresses by which struct rwy_ip means IPv4. */
static void test_mapped(void **state)
{
	static const uint16_t ports[] = {0, 53};
	struct tp t = write_only();

	t.is6 = true;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned at = 8; at < 40; at += 16) {
			uint8_t b[TP_MAX];
			uint32_t len;

			t.dport = ports[i];
			len = tp_make(b, &t);
			memset(b + at, 0, 10);
			b[at + 10] = b[at + 11] = 0xff;
			assert_int_equal(parse_exact(b, len, NULL), ROCE_PARSE_BAD_IP);
			b[at + 9] = 1; /* not mapped */
			assert_int_equal(parse_exact(b, len, NULL), i ? ROCE_PARSE_NOT_ROCE : ROCE_PARSE_OK);
		}
	}
}

static void test_not_roce(void **state)
{
	struct tp t = write_only();
	uint8_t b[TP_MAX];
	struct roce_pkt p;
	uint32_t len;

	for (unsigned is6 = 0; is6 < 2; is6++) {
		t.is6 = is6;
		t.dport = 4790;
		len = tp_make(b, &t);
		memset(&p, 0xee, sizeof(p));
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_NOT_ROCE);
		assert_int_equal(p.src.b[15], 1); /* addresses are valid */
		assert_int_equal(p.dst.b[15], 2);
		assert_int_equal(p.len, len);
		t.dport = 0;
		len = tp_make(b, &t);
		for (unsigned proto = 0; proto < 256; proto++) {
			bool ext = is6 && (proto == 0 || proto == 43 || proto == 44 || proto == 60);

			b[is6 ? 6 : 9] = (uint8_t)proto;
			if (!is6)
				tp_fix_csum(b);
			if (proto != 17 && !ext)
				assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_NOT_ROCE);
		}
	}
	/* The source port does not decide that a packet is RoCEv2. */
	t = write_only();
	t.dport = 53;
	len = tp_make(b, &t);
	tp_be(b + 20, 4791, 2);
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_NOT_ROCE);
}

static void test_ip4_fragments(void **state)
{
	static const struct {
		uint16_t frag;
		uint16_t dport;
		enum roce_parse_reason want;
	} c[] = {
	    {0x4000, 4791, ROCE_PARSE_OK},       /* DF */
	    {0x0000, 4791, ROCE_PARSE_OK},       /* neither */
	    {0x2000, 4791, ROCE_PARSE_FRAGMENT}, /* first of several */
	    {0x6000, 4791, ROCE_PARSE_FRAGMENT}, /* DF does not help */
	    {0x2000, 53, ROCE_PARSE_NOT_ROCE},
	    /* a later fragment has no UDP header: the apparent port is data */
	    {0x2001, 4791, ROCE_PARSE_NOT_ROCE},
	    {0x0001, 4791, ROCE_PARSE_NOT_ROCE},
	    {0x5fff, 4791, ROCE_PARSE_NOT_ROCE},
	};

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct tp t = write_only();
		uint8_t b[TP_MAX];
		struct roce_pkt p;
		uint32_t len;

		t.frag = c[i].frag;
		t.dport = c[i].dport;
		len = tp_make(b, &t);
		assert_int_equal(roce_parse(b, len, &p), c[i].want);
		assert_int_equal(p.src.b[15], 1);
	}
}

/* Puts `n` bytes of extension headers between the IPv6 header and UDP. */
static uint32_t insert_ext(uint8_t *b, uint32_t len, uint8_t first, const uint8_t *ext, uint32_t n)
{
	memmove(b + 40 + n, b + 40, len - 40);
	memcpy(b + 40, ext, n);
	b[6] = first;
	tp_be(b + 4, len + n - 40, 2);
	return len + n;
}

static void test_ip6_extension_headers(void **state)
{
	static const struct {
		uint16_t first;
		uint16_t dport;
		uint32_t n;
		uint8_t ext[16];
		enum roce_parse_reason want;
	} c[] = {
	    /* Hop-by-hop, destination, routing before UDP. */
	    {0, 4791, 8, {17, 0}, ROCE_PARSE_BAD_IP},
	    {60, 4791, 16, {17, 1}, ROCE_PARSE_BAD_IP},
	    {43, 4791, 16, {60, 0, 0, 0, 0, 0, 0, 0, 17, 0}, ROCE_PARSE_BAD_IP},
	    {0, 53, 8, {17, 0}, ROCE_PARSE_NOT_ROCE},
	    {0, 4791, 8, {6, 0}, ROCE_PARSE_NOT_ROCE},
	    {0, 4791, 8, {58, 0}, ROCE_PARSE_NOT_ROCE},
	    /* Fragment header: first, first and only, later, first of another protocol. */
	    {44, 4791, 8, {17, 0, 0, 1}, ROCE_PARSE_FRAGMENT},
	    {44, 4791, 8, {17, 0, 0, 0}, ROCE_PARSE_FRAGMENT},
	    {44, 4791, 8, {17, 0, 0, 8}, ROCE_PARSE_NOT_ROCE},
	    {44, 53, 8, {17, 0, 0, 1}, ROCE_PARSE_NOT_ROCE},
	    /* A chain that leaves its packet. */
	    {0, 4791, 8, {17, 255}, ROCE_PARSE_BAD_IP},
	};

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct tp t = write_only();
		uint8_t b[TP_MAX];
		uint32_t len;

		t.is6 = true;
		t.dport = c[i].dport;
		len = insert_ext(b, tp_make(b, &t), (uint8_t)c[i].first, c[i].ext, c[i].n);
		assert_int_equal(parse_exact(b, len, NULL), c[i].want);
	}

	/* A chain of more than 8 headers ends the walk. */
	struct tp t = write_only();
	uint8_t b[TP_MAX], chain[128] = {0};
	uint32_t len;

	t.is6 = true;
	t.dport = 53;
	for (uint32_t n = 1; n <= 16; n++) {
		for (size_t i = 0; i < n; i++)
			chain[8 * i] = i == n - 1 ? 17 : 60;
		len = insert_ext(b, tp_make(b, &t), 60, chain, 8 * n);
		assert_int_equal(parse_exact(b, len, NULL), n <= 8 ? ROCE_PARSE_NOT_ROCE : ROCE_PARSE_BAD_IP);
	}

	/* A first fragment that leaves the UDP header, or a part of it, to the next one. */
	static const uint8_t frag[16] = {60, 0, 0, 1, [8] = 17};

	for (uint32_t n = 0; n <= 8; n++) {
		tp_make(b, &t);
		len = insert_ext(b, 40 + n, 44, frag, sizeof(frag));
		assert_int_equal(parse_exact(b, len, NULL), n < 8 ? ROCE_PARSE_BAD_IP : ROCE_PARSE_NOT_ROCE);
	}

	/* Nothing after the IPv6 header. */
	memset(b, 0, 40);
	b[0] = 0x60;
	for (unsigned proto = 0; proto < 256; proto++) {
		enum roce_parse_reason want = ROCE_PARSE_NOT_ROCE;

		if (proto == 17)
			want = ROCE_PARSE_BAD_UDP;
		else if (proto == 0 || proto == 43 || proto == 44 || proto == 60)
			want = ROCE_PARSE_BAD_IP;
		b[6] = (uint8_t)proto;
		assert_int_equal(parse_exact(b, 40, NULL), want);
	}
}

static void test_bad_udp(void **state)
{
	for (unsigned is6 = 0; is6 < 2; is6++) {
		struct tp t = write_only();
		uint8_t b[TP_MAX], *ulen = b + (is6 ? 44 : 24);
		struct roce_pkt p;
		uint32_t len, right;

		t.is6 = is6;
		len = tp_make(b, &t);
		right = len - (is6 ? 40 : 20);
		for (uint32_t v = 0; v < 65536; v++) {
			tp_be(ulen, v, 2);
			assert_int_equal(
			    roce_parse(b, len, &p), v == right ? ROCE_PARSE_OK : ROCE_PARSE_BAD_UDP);
		}
	}
}

static void test_bad_bth(void **state)
{
	struct tp t = write_only();
	uint8_t b[TP_MAX];
	struct roce_pkt p;

	for (unsigned v = 1; v < 16; v++) {
		t.bth_flags = (uint8_t)v;
		assert_int_equal(roce_parse(b, tp_make(b, &t), &p), ROCE_PARSE_BAD_BTH);
		assert_int_equal(p.src.b[15], 1);
	}
}

static void test_payload_rules(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t payload;
		int pad;
		enum roce_parse_reason want;
	} c[] = {
	    {ROCE_RC_SEND_ONLY, 0, 0, ROCE_PARSE_OK},
	    {ROCE_RC_SEND_ONLY, 1, 3, ROCE_PARSE_OK},
	    {ROCE_RC_SEND_ONLY, 4096, 0, ROCE_PARSE_OK},
	    {ROCE_RC_SEND_ONLY, 4100, 0, ROCE_PARSE_BAD_LENGTH}, /* above the largest path MTU */
	    {ROCE_RC_SEND_ONLY, 1, 0, ROCE_PARSE_BAD_LENGTH},    /* not a multiple of 4 */
	    {ROCE_RC_SEND_ONLY, 2, 3, ROCE_PARSE_BAD_LENGTH},
	    {ROCE_RC_SEND_FIRST, 1024, 0, ROCE_PARSE_OK},
	    {ROCE_RC_SEND_FIRST, 0, 0, ROCE_PARSE_BAD_LENGTH},
	    /* only the end of a message may be padded */
	    {ROCE_RC_SEND_FIRST, 1023, 1, ROCE_PARSE_BAD_LENGTH},
	    {ROCE_RC_SEND_MIDDLE, 1022, 2, ROCE_PARSE_BAD_LENGTH},
	    {ROCE_RC_SEND_MIDDLE, 0, 0, ROCE_PARSE_BAD_LENGTH},
	    {ROCE_RC_SEND_LAST, 1, 3, ROCE_PARSE_OK},
	    {ROCE_RC_SEND_LAST, 0, 0, ROCE_PARSE_BAD_LENGTH},
	    {ROCE_RC_READ_RESP_MIDDLE, 4096, 0, ROCE_PARSE_OK},
	};
	uint8_t b[TP_MAX], ext[64] = {0};
	struct roce_pkt p;

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct tp t = {
		    .opcode = c[i].opcode, .payload_len = c[i].payload, .pad = c[i].pad, .ext = ext};

		t.ext_len = roce_op(t.opcode)->ext_len;
		assert_int_equal(roce_parse(b, tp_make(b, &t), &p), c[i].want);
	}
	/* A pad count without bytes: on an empty SEND, on an ACK. */
	for (unsigned pad = 1; pad < 4; pad++) {
		struct tp t = {.opcode = ROCE_RC_SEND_ONLY, .bth_flags = (uint8_t)(pad << 4)};

		assert_int_equal(roce_parse(b, tp_make(b, &t), &p), ROCE_PARSE_BAD_LENGTH);
		t.opcode = ROCE_RC_ACK;
		t.ext = ext;
		t.ext_len = 4;
		assert_int_equal(roce_parse(b, tp_make(b, &t), &p), ROCE_PARSE_BAD_LENGTH);
	}
	/* Bytes after an opcode without payload. */
	for (unsigned c2 = 0; c2 < 256; c2++) {
		const struct roce_opinfo *info = roce_op((uint8_t)c2);
		struct tp t = {.opcode = (uint8_t)c2, .ext = ext, .ext_len = info->ext_len, .payload_len = 4};

		if (roce_op_is_valid(info) && !(info->flags & ROCE_F_PAYLOAD))
			assert_int_equal(roce_parse(b, tp_make(b, &t), &p), ROCE_PARSE_BAD_LENGTH);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fields),
	    cmocka_unit_test(test_ext_behind_others),
	    cmocka_unit_test(test_jumbo),
	    cmocka_unit_test(test_every_opcode),
	    cmocka_unit_test(test_offsets),
	    cmocka_unit_test(test_every_truncation),
	    cmocka_unit_test(test_every_consistent_shortening),
	    cmocka_unit_test(test_bad_ip),
	    cmocka_unit_test(test_mapped),
	    cmocka_unit_test(test_not_roce),
	    cmocka_unit_test(test_ip4_fragments),
	    cmocka_unit_test(test_ip6_extension_headers),
	    cmocka_unit_test(test_bad_udp),
	    cmocka_unit_test(test_bad_bth),
	    cmocka_unit_test(test_payload_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
