/* SPDX-License-Identifier: Apache-2.0 */
/* roce/icrc.c: captured packets of real hardware, random packets against a bitwise CRC, and the linear
 * correction. */
#include "tests/lib/roce_pkt.h"

#include "roce/icrc.h"
#include "roce/wire.h"
#include "rwy/crc32.h"

static uint32_t stored(const struct roce_pkt *p)
{
	return (uint32_t)p->icrc[3] << 24 | (uint32_t)p->icrc[2] << 16 | (uint32_t)p->icrc[1] << 8 |
	       p->icrc[0];
}

/* A CNP that a ConnectX-4 Lx sent, and a UC SEND ONLY packet: bytes as published with scapy's RoCE layer. */
static void test_published_vectors(void **state)
{
	static const uint8_t cnp[60] = {0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91,
	    0x61, 0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00,
	    0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00,
	    0x2a};
	/* id 1144, DF, ttl 64, tos 1, 192.168.0.7 to itself, port 49152, MigReq, pad 2, QP 211, PSN 13571856
	 */
	static const uint8_t uc[64] = {0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5,
	    0xc0, 0xa8, 0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0x00, 0x00,
	    0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10, 0x46, 0x30, 0x81, 0x8b,
	    0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00,
	    0x78, 0xf3, 0x53, 0xf3};
	struct roce_pkt p;
	uint8_t b[64];

	memcpy(b, cnp, sizeof(cnp));
	assert_int_equal(roce_parse(b, sizeof(cnp), &p), ROCE_PARSE_OK);
	assert_int_equal(roce_icrc_compute(&p), 0x2a00fd82);
	assert_true(roce_icrc_ok(&p));
	assert_true(p.becn);
	assert_int_equal(p.dqpn, 0x118);

	memcpy(b, uc, sizeof(uc));
	assert_int_equal(roce_parse(b, sizeof(uc), &p), ROCE_PARSE_OK);
	assert_int_equal(roce_icrc_compute(&p), 0xf353f378);
	assert_true(roce_icrc_ok(&p));
	assert_int_equal(p.psn, 13571856);
	assert_int_equal(p.payload_len, 18);
}

/* A random packet that parses: both families, options, lengths of all opcodes. */
static uint32_t make_random(uint8_t *b, uint32_t *s)
{
	static const uint8_t opcodes[] = {ROCE_RC_SEND_ONLY, ROCE_RC_WRITE_ONLY, ROCE_RC_WRITE_ONLY_IMM,
	    ROCE_RC_ACK, ROCE_RC_READ_REQ, ROCE_RC_READ_RESP_ONLY, ROCE_RC_CMP_SWAP, ROCE_UD_SEND_ONLY,
	    ROCE_OPCODE_CNP, 0xab, 0x4b};
	struct tp t = {.pad = -1, .seed = tp_rand(s) | 1};
	const struct roce_opinfo *i;
	uint8_t ext[64];

	t.opcode = opcodes[tp_rand(s) % sizeof(opcodes)];
	i = roce_op(t.opcode);
	t.is6 = tp_rand(s) & 1;
	t.ihl = (uint8_t)(5 + (tp_rand(s) & 1 ? tp_rand(s) % 11 : 0));
	t.tos = (uint8_t)tp_rand(s);
	t.ttl = (uint8_t)tp_rand(s);
	t.fb = (uint8_t)tp_rand(s);
	t.udp_csum = (uint16_t)(tp_rand(s) & 1 ? tp_rand(s) : 0);
	t.dqpn = tp_rand(s) & 0xffffff;
	t.psn = tp_rand(s) & 0xffffff;
	t.bth_flags = tp_rand(s) & 0xc0;
	t.ack_req = tp_rand(s) & 1;
	for (unsigned k = 0; k < sizeof(ext); k++)
		ext[k] = (uint8_t)tp_rand(s);
	t.ext = ext;
	t.ext_len = i->ext_len;
	if (i->flags & ROCE_F_PAYLOAD)
		t.payload_len = tp_rand(s) % (tp_rand(s) & 1 ? 64 : 4097);
	return tp_make(b, &t);
}

static void test_random_packets(void **state)
{
	uint8_t b[TP_MAX];
	struct roce_pkt p;
	uint32_t s = 12345;

	for (unsigned n = 0; n < 4000; n++) {
		uint32_t len = make_random(b, &s), good;

		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		good = tp_icrc(b, len);
		assert_int_equal(roce_icrc_compute(&p), good);
		assert_true(roce_icrc_ok(&p));
		p.icrc[tp_rand(&s) % 4] ^= (uint8_t)(1u << tp_rand(&s) % 8);
		assert_false(roce_icrc_ok(&p));
		roce_icrc_store(&p);
		assert_int_equal(stored(&p), good);
	}
}

/*
 * The CRC-32 of some bytes and a packet behind them, from the packet's headers: the same as by
 * reading all of it. When a covered byte is wrong the headers still give the CRC of the right packet,
 * which the wrong one does not have.
 */
static void test_follow(void **state)
{
	uint8_t b[TP_MAX];
	struct roce_pkt p;
	uint32_t s = 4711;

	for (unsigned n = 0; n < 4000; n++) {
		uint32_t len = make_random(b, &s), before = tp_rand(&s), at, all;

		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		all = crc32_gzip_refl(before, b, len);
		assert_int_equal(roce_icrc_extend(before, &p), all);
		at = tp_rand(&s) % (len - (uint32_t)(p.ext - b));
		p.ext[at] ^= (uint8_t)(1u << tp_rand(&s) % 8);
		assert_int_not_equal(crc32_gzip_refl(before, b, len), all);
		assert_int_equal(roce_icrc_extend(before, &p), all);
	}
}

/* Routers change masked fields, which the ICRC must ignore. Every other bit must change it. */
static void test_what_is_covered(void **state)
{
	for (unsigned is6 = 0; is6 < 2; is6++) {
		struct tp t = {.opcode = ROCE_RC_SEND_ONLY, .is6 = is6, .payload_len = 20};
		uint8_t b[TP_MAX];
		struct roce_pkt p;
		uint32_t len = tp_make(b, &t), hlen = is6 ? 40 : 20;

		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		for (uint32_t bit = 0; bit < len * 8; bit++) {
			uint32_t at = bit / 8;
			bool masked;

			if (is6)
				masked = (at == 0 && bit % 8 < 4) || (at >= 1 && at <= 3) || at == 7;
			else
				masked = at == 1 || at == 8 || at == 10 || at == 11;
			masked |= at == hlen + 6 || at == hlen + 7 || at == hlen + 12;
			b[at] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(roce_icrc_ok(&p), masked);
			b[at] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* After random changes of 1..16 bytes anywhere, the corrected ICRC equals the recomputed one, and a
 * valid UDP checksum stays valid. */
static void test_adjust_random(void **state)
{
	uint8_t b[TP_MAX];
	struct roce_pkt p;
	uint32_t s = 777;

	for (unsigned n = 0; n < 6000; n++) {
		uint32_t len = make_random(b, &s);
		bool with_sum = n & 1;
		uint8_t before[16];

		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		if (with_sum) {
			uint8_t *csum = p.bth - 2;

			tp_be(csum, 0, 2);
			tp_be(csum, tp_udp_residue(b, len), 2);
			if (!csum[0] && !csum[1])
				csum[0] = csum[1] = 0xff;
		} else {
			tp_be(p.bth - 2, 0, 2);
		}
		for (unsigned rounds = 0; rounds < 3; rounds++) {
			uint32_t room = (uint32_t)(p.icrc - p.bth), at = tp_rand(&s) % room;
			uint32_t cnt = 1 + tp_rand(&s) % 16;

			if (cnt > room - at)
				cnt = room - at;
			memcpy(before, p.bth + at, cnt);
			for (uint32_t k = 0; k < cnt; k++)
				p.bth[at + k] ^= (uint8_t)(tp_rand(&s) & 3 ? tp_rand(&s) : 0);
			roce_icrc_adjust(&p, p.bth + at, before, cnt);
			assert_int_equal(stored(&p), tp_icrc(b, len));
			if (with_sum)
				assert_int_equal(tp_udp_residue(b, len), 0);
			else
				assert_int_equal(p.bth[-2] | p.bth[-1], 0);
		}
	}
}

/* Every distance from the packet's first byte to its last, one byte and sixteen. */
static void test_adjust_every_distance(void **state)
{
	static const uint32_t width[] = {1, 2, 3, 4, 5, 7, 8, 12, 16};
	struct tp t = {.opcode = ROCE_RC_SEND_ONLY, .payload_len = 4096, .ihl = 15, .frag = 0x4000};
	uint8_t b[TP_MAX], before[16];
	struct roce_pkt p;
	uint32_t len = tp_make(b, &t), s = 99;

	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	for (uint32_t at = 0; at < len - 4; at++) {
		uint32_t cnt = width[at % (sizeof(width) / sizeof(width[0]))];

		if (cnt > len - 4 - at)
			cnt = len - 4 - at;
		memcpy(before, b + at, cnt);
		for (uint32_t k = 0; k < cnt; k++)
			if (at + k >= 60 || (at + k >= 12 && at + k < 20)) /* keep version and lengths */
				b[at + k] = (uint8_t)tp_rand(&s);
		roce_icrc_adjust(&p, b + at, before, cnt);
		assert_int_equal(stored(&p), tp_icrc(b, len));
	}
}

/* Addresses are covered by the ICRC and by the UDP checksum; masked bytes in the range do no harm. */
static void test_adjust_addresses(void **state)
{
	for (unsigned is6 = 0; is6 < 2; is6++) {
		struct tp t = {.opcode = ROCE_RC_SEND_ONLY, .is6 = is6, .payload_len = 100};
		uint8_t b[TP_MAX], before[16];
		struct roce_pkt p;
		uint32_t len = tp_make(b, &t);
		uint32_t at = is6 ? 7 : 8,
		         n = is6 ? 16 : 12; /* hop limit / TTL .. into the destination address */

		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		tp_be(p.bth - 2, 0, 2);
		tp_be(p.bth - 2, tp_udp_residue(b, len), 2);
		memcpy(before, b + at, n);
		b[at]--;
		b[at + n - 1] ^= 0x5a;
		b[at + n - 4] ^= 0xa5;
		if (!is6)
			tp_fix_csum(b);
		roce_icrc_adjust(&p, b + at, before, n);
		assert_int_equal(stored(&p), tp_icrc(b, len));
		assert_int_equal(tp_udp_residue(b, len), 0);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	}
}

static void test_set_ackreq(void **state)
{
	uint8_t b[TP_MAX], copy[TP_MAX];
	struct roce_pkt p;
	uint32_t s = 4242;

	for (unsigned n = 0; n < 500; n++) {
		uint32_t len = make_random(b, &s);
		bool was;

		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		memcpy(copy, b, len);
		was = p.ack_req;
		roce_icrc_set_ackreq(&p, was);
		assert_memory_equal(b, copy, len);
		roce_icrc_set_ackreq(&p, !was);
		assert_int_equal(p.ack_req, !was);
		assert_int_equal(p.bth[8] >> 7, !was);
		assert_int_equal(stored(&p), tp_icrc(b, len));
		roce_icrc_set_ackreq(&p, was);
		assert_memory_equal(p.bth, copy + (p.bth - b), len - (uint32_t)(p.bth - b));

		/* A bad packet stays bad: the correction never hides corruption. */
		p.icrc[0] ^= 1;
		roce_icrc_set_ackreq(&p, !was);
		assert_false(roce_icrc_ok(&p));
	}
}

/* ACKs have a check of their own: it says the same as the general one, whichever bit is wrong. */
static void test_ack_each_bit(void **state)
{
	for (unsigned is6 = 0; is6 < 2; is6++) {
		const uint8_t aeth[4] = {0x1f, 0, 0, 9};
		struct tp t = {.opcode = ROCE_RC_ACK, .is6 = is6, .psn = 0x123456, .ext = aeth, .ext_len = 4};
		unsigned wrong = 0, bits;
		struct roce_pkt p;
		uint8_t b[256];

		memset(b, 0, sizeof(b));
		assert_int_equal(roce_parse(b, tp_make(b, &t), &p), ROCE_PARSE_OK);
		assert_int_equal((uint32_t)(p.icrc - p.ip), p.ip_hlen + 24);
		roce_icrc_store(&p);
		assert_true(roce_icrc_ok(&p));
		bits = 8 * p.len;
		for (unsigned i = 0; i < bits; i++) {
			b[i / 8] ^= (uint8_t)(1u << i % 8);
			wrong += !roce_icrc_ok(&p);
			assert_int_equal(roce_icrc_ok(&p), stored(&p) == roce_icrc_compute(&p));
			b[i / 8] ^= (uint8_t)(1u << i % 8);
		}
		/* All but the fields that count as ones. */
		assert_int_equal(bits - wrong, is6 ? 28 + 8 + 16 + 8 : 8 + 8 + 16 + 16 + 8);
		assert_true(roce_icrc_ok(&p));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_published_vectors),
	    cmocka_unit_test(test_random_packets),
	    cmocka_unit_test(test_follow),
	    cmocka_unit_test(test_what_is_covered),
	    cmocka_unit_test(test_adjust_random),
	    cmocka_unit_test(test_adjust_every_distance),
	    cmocka_unit_test(test_adjust_addresses),
	    cmocka_unit_test(test_set_ackreq),
	    cmocka_unit_test(test_ack_each_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
