/* SPDX-License-Identifier: Apache-2.0 */
/* roce/build.h: its packets parse, have the requested fields, and an ICRC that equals the bitwise
 * CRC. */
#include "tests/lib/roce_pkt.h"

#include "roce/build.h"
#include "roce/wire.h"

static struct roce_addr addr(bool is6)
{
	struct roce_addr a = {.dqpn = 0x00fedc, .sport = 0xc123, .pkey = 0xffff, .tos = 0xba, .ttl = 17};

	if (is6) {
		tp_be(a.src.b, 0x20010db800000001, 8);
		a.src.b[15] = 0xa;
		tp_be(a.dst.b, 0x20010db800000002, 8);
		a.dst.b[15] = 0xb;
	} else {
		a.src = rwy_ip_from4((const uint8_t[]){192, 0, 2, 1});
		a.dst = rwy_ip_from4((const uint8_t[]){198, 51, 100, 2});
	}
	return a;
}

/* Checks the parts common to all built packets. */
static void check(
    uint8_t *b, uint32_t len, const struct roce_addr *a, uint8_t opcode, roce_psn psn, struct roce_pkt *p)
{
	bool is6 = !rwy_ip_is4(&a->dst);
	uint32_t crc = tp_icrc(b, len);

	assert_true(len <= ROCE_BUILD_MAX);
	assert_int_equal(roce_parse(b, len, p), ROCE_PARSE_OK);
	assert_int_equal(p->len, len);
	assert_int_equal(p->opcode, opcode);
	assert_int_equal(p->psn, psn);
	assert_int_equal(p->dqpn, a->dqpn);
	assert_int_equal(p->pkey, a->pkey);
	assert_int_equal(p->sport, a->sport);
	assert_int_equal(p->migreq, a->migreq);
	assert_int_equal(p->ecn, a->tos & 3);
	assert_int_equal(p->is6, is6);
	assert_true(rwy_ip_eq(&p->src, &a->src));
	assert_true(rwy_ip_eq(&p->dst, &a->dst));
	assert_int_equal(p->payload_len, 0);
	assert_false(p->solicited || p->fecn);
	if (is6) {
		assert_int_equal((b[0] & 0xf) << 4 | b[1] >> 4, a->tos);
		assert_int_equal(b[7], a->ttl);
	} else {
		assert_int_equal(b[1], a->tos);
		assert_int_equal(b[8], a->ttl);
		assert_int_equal(b[6], 0x40); /* DF, never a fragment */
	}
	assert_int_equal(p->bth[-2] | p->bth[-1], 0); /* no UDP checksum */
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(p->icrc[i], (crc >> (8 * i)) & 0xff);
}

static void test_ack(void **state)
{
	for (unsigned v = 0; v < 4; v++) {
		struct roce_addr a = addr(v & 1);
		uint8_t b[ROCE_BUILD_MAX];
		struct roce_pkt p;

		a.migreq = v & 2;
		for (unsigned syn = 0; syn < 128; syn++) {
			roce_psn psn = roce_psn_add(0xfffff0, syn);
			uint32_t len;

			memset(b, 0xee, sizeof(b));
			len = roce_build_ack(b, &a, psn, (uint8_t)syn, 0xabcde0 + syn);
			check(b, len, &a, ROCE_RC_ACK, psn, &p);
			assert_int_equal(roce_aeth_syndrome(&p), syn);
			assert_int_equal(roce_aeth_msn(&p), 0xabcde0 + syn);
			assert_false(p.ack_req || p.becn);
			for (uint32_t i = len; i < sizeof(b); i++)
				assert_int_equal(b[i], 0xee);
		}
	}
}

static void test_atomic_ack(void **state)
{
	for (unsigned is6 = 0; is6 < 2; is6++) {
		struct roce_addr a = addr(is6);
		uint8_t b[ROCE_BUILD_MAX];
		struct roce_pkt p;

		check(b, roce_build_atomic_ack(b, &a, 5, 0x1f, 7, 0x0123456789abcdef), &a, ROCE_RC_ATOMIC_ACK,
		    5, &p);
		assert_int_equal(roce_aeth_syndrome(&p), 0x1f);
		assert_int_equal(roce_aeth_msn(&p), 7);
		assert_int_equal(rwy_get64(p.ext + 4), 0x0123456789abcdef);
	}
}

static void test_read_req(void **state)
{
	for (unsigned is6 = 0; is6 < 2; is6++) {
		struct roce_addr a = addr(is6);
		uint8_t b[ROCE_BUILD_MAX];
		struct roce_pkt p;
		uint32_t len = roce_build_read_req(b, &a, 0xffffff, 0xfedcba9876543210, 0x1234, 0x80000000);

		check(b, len, &a, ROCE_RC_READ_REQ, 0xffffff, &p);
		assert_int_equal(roce_reth_va(&p), 0xfedcba9876543210);
		assert_int_equal(roce_reth_rkey(&p), 0x1234);
		assert_int_equal(roce_reth_len(&p), 0x80000000);
		assert_true(p.ack_req);
	}
}

static void test_cnp(void **state)
{
	for (unsigned is6 = 0; is6 < 2; is6++) {
		struct roce_addr a = addr(is6);
		uint8_t b[ROCE_BUILD_MAX];
		struct roce_pkt p;

		memset(b, 0xee, sizeof(b));
		check(b, roce_build_cnp(b, &a), &a, ROCE_OPCODE_CNP, 0, &p);
		assert_true(p.becn);
		assert_false(p.ack_req);
		for (unsigned i = 0; i < 16; i++)
			assert_int_equal(p.ext[i], 0);
	}
}

static void test_read_resp(void **state)
{
	static const uint8_t data[1025] = {7, 8, 9};
	static const uint32_t len[] = {1, 2, 3, 4, 1024, 1025};

	for (unsigned i = 0; i < 2 * sizeof(len) / sizeof(len[0]); i++) {
		struct roce_addr a = addr(i & 1);
		uint8_t b[sizeof(data) + ROCE_BUILD_MAX];
		struct roce_pkt p;
		struct roce_read_resp r = {.opcode = ROCE_RC_READ_RESP_LAST,
		    .syndrome = 0x1f,
		    .psn = 0x123456,
		    .msn = 0x654321,
		    .payload = data,
		    .len = len[i / 2]};
		uint32_t n = roce_build_read_resp(b, &a, &r);

		assert_int_equal(roce_parse(b, n, &p), ROCE_PARSE_OK);
		assert_int_equal(p.len, n);
		assert_int_equal(p.psn, r.psn);
		assert_int_equal(p.dqpn, a.dqpn);
		assert_int_equal(roce_aeth_syndrome(&p), 0x1f);
		assert_int_equal(roce_aeth_msn(&p), 0x654321);
		assert_int_equal(p.payload_len, len[i / 2]);
		assert_memory_equal(p.payload, data, len[i / 2]);
		assert_int_equal(tp_icrc(b, n), (uint32_t)p.icrc[0] | (uint32_t)p.icrc[1] << 8 |
		                                    (uint32_t)p.icrc[2] << 16 | (uint32_t)p.icrc[3] << 24);
		r.opcode = ROCE_RC_READ_RESP_MIDDLE; /* has no AETH */
		assert_int_equal(roce_build_read_resp(b, &a, &r), n - 4);
	}
}

/* From one family to the other, and back: the same packet. */
static void test_like(void **state)
{
	struct roce_addr to6 = addr(true), to4 = addr(false);
	uint8_t b[512], c[512], d[512];
	struct roce_pkt p, q;
	uint32_t n;

	for (unsigned se = 0; se < 2; se++) {
		const struct roce_read_resp r = {.opcode = ROCE_RC_READ_RESP_ONLY,
		    .psn = 9,
		    .msn = 8,
		    .payload = (const uint8_t *)"abcde",
		    .len = 5};

		n = roce_build_read_resp(b, &to4, &r);
		assert_int_equal(roce_parse(b, n, &p), ROCE_PARSE_OK);
		p.bth[1] |= se ? ROCE_BTH_SE : 0;
		p.bth[8] |= se ? ROCE_BTH_ACKREQ : 0;
		assert_int_equal(roce_parse(b, n, &p), ROCE_PARSE_OK);
		assert_int_equal(roce_build_like(c, &to6, &p, 0xabcdef), n + 20);
		assert_int_equal(roce_parse(c, n + 20, &q), ROCE_PARSE_OK);
		assert_int_equal(q.psn, 0xabcdef);
		assert_int_equal(q.solicited, se);
		assert_int_equal(q.ack_req, se);
		assert_int_equal(q.payload_len, 5);
		assert_memory_equal(q.ext, p.ext, 4 + 8);
		assert_int_equal(tp_icrc(c, n + 20), (uint32_t)q.icrc[0] | (uint32_t)q.icrc[1] << 8 |
		                                         (uint32_t)q.icrc[2] << 16 |
		                                         (uint32_t)q.icrc[3] << 24);
		assert_int_equal(roce_build_like(d, &to4, &q, 9), n);
		if (!se)
			assert_memory_equal(b, d, n);
	}
}

/* Values wider than their field lose the excess and change no other field. */
static void test_wide_values(void **state)
{
	struct roce_addr a = addr(false);
	uint8_t b[ROCE_BUILD_MAX], c[ROCE_BUILD_MAX];
	uint32_t n;

	n = roce_build_ack(b, &a, 0x01000002, 0, 0xff000003);
	a.dqpn |= 0xab000000;
	assert_int_equal(roce_build_ack(c, &a, 2, 0, 3), n);
	assert_memory_equal(b, c, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ack),
	    cmocka_unit_test(test_atomic_ack),
	    cmocka_unit_test(test_read_req),
	    cmocka_unit_test(test_cnp),
	    cmocka_unit_test(test_read_resp),
	    cmocka_unit_test(test_like),
	    cmocka_unit_test(test_wide_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
