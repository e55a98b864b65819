/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting against full recomputation: ICRC, IPv4 header checksum, UDP checksum. */
#include "proxy/rewrite.h"
#include "tests/lib/roce_pkt.h"

static struct rwy_ip addr_of(bool is6, uint32_t *seed)
{
	uint8_t v4[4];
	struct rwy_ip a;

	tp_be(v4, tp_rand(seed), 4);
	if (!is6)
		return rwy_ip_from4(v4);
	for (unsigned i = 0; i < 16; i++)
		a.b[i] = (uint8_t)tp_rand(seed);
	return a;
}

static void set_udp_sum(uint8_t *b, uint32_t len)
{
	uint8_t *csum = b + (b[0] >> 4 == 6 ? 40 : (b[0] & 15u) * 4) + 6;
	uint16_t v = tp_udp_residue(b, len);

	tp_be(csum, v ? v : 0xffff, 2);
}

/* Every checksum is what somebody who knows nothing of the old packet computes. */
static void assert_good(const uint8_t *b, uint32_t len, bool has_sum)
{
	uint32_t crc = tp_icrc(b, len);

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(b[len - 4 + i], (uint8_t)(crc >> 8 * i));
	if (b[0] >> 4 == 4)
		assert_int_equal(tp_ip4_csum(b, (b[0] & 15u) * 4), 0);
	if (has_sum)
		assert_int_equal(tp_udp_residue(b, len), 0);
}

static void rewrite_equals_recomputation(void **state)
{
	static const uint8_t opcodes[] = {0x04, 0x0a, 0x0c, 0x11, 0x13, 0x81};
	uint8_t b[TP_MAX], ext[32] = {0};
	uint32_t seed = 7;

	for (unsigned n = 0; n < 3000; n++) {
		uint8_t op = opcodes[tp_rand(&seed) % 6];
		struct tp t = {.opcode = op,
		    .is6 = n & 1,
		    .ttl = 64,
		    .tos = (uint8_t)tp_rand(&seed),
		    .ihl = n % 5 ? 0 : 7,
		    .dqpn = tp_rand(&seed) & 0xffffff,
		    .psn = tp_rand(&seed) & 0xffffff,
		    .ext = ext,
		    .ext_len = roce_op(op)->ext_len,
		    .pad = -1,
		    .seed = n + 1};
		bool has_sum = n % 3 == 0;
		struct rwy_ip src, dst;
		struct roce_pkt pkt;
		uint32_t len, qpn;

		if (roce_op(op)->flags & ROCE_F_PAYLOAD)
			t.payload_len = tp_rand(&seed) % 4097;
		else if (op == 0x81)
			t.payload_len = 0;
		len = tp_make(b, &t);
		if (has_sum)
			set_udp_sum(b, len);
		assert_int_equal(roce_parse(b, len, &pkt), ROCE_PARSE_OK);
		src = addr_of(t.is6, &seed);
		dst = addr_of(t.is6, &seed);
		qpn = tp_rand(&seed) & 0xffffff;
		proxy_rewrite_src(&pkt, &src);
		proxy_rewrite_dst(&pkt, &dst);
		proxy_rewrite_dqpn(&pkt, qpn);
		assert_good(b, len, has_sum);
		assert_int_equal(roce_parse(b, len, &pkt), ROCE_PARSE_OK);
		assert_true(rwy_ip_eq(&pkt.src, &src) && rwy_ip_eq(&pkt.dst, &dst));
		assert_int_equal(pkt.dqpn, qpn);
		assert_int_equal(pkt.psn, t.psn);
	}
}

/* What was wrong before stays wrong: a corrupt packet is never made good. */
static void bad_icrc_stays_bad(void **state)
{
	struct tp t = {.opcode = 0x04, .ttl = 64, .payload_len = 64, .pad = -1};
	const struct rwy_ip dst = rwy_ip_from4((const uint8_t[]){192, 0, 2, 9});
	uint8_t b[TP_MAX];
	uint32_t len = tp_make(b, &t), crc, got = 0;
	struct roce_pkt pkt;

	b[60] ^= 1;
	assert_int_equal(roce_parse(b, len, &pkt), ROCE_PARSE_OK);
	proxy_rewrite_dst(&pkt, &dst);
	crc = tp_icrc(b, len);
	for (unsigned i = 0; i < 4; i++)
		got |= (uint32_t)b[len - 4 + i] << 8 * i;
	assert_int_not_equal(crc, got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rewrite_equals_recomputation),
	    cmocka_unit_test(bad_icrc_stays_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
