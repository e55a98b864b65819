/* SPDX-License-Identifier: Apache-2.0 */
/* vxlan/ecn.h: RFC 6040's tables entry by entry, checksums compared with a full computation, DSCP
 * policies. */
#include "tests/lib/roce_pkt.h"

#include "vxlan/ecn.h"

/* RFC 6040 figure 4 as printed: rows inner, columns outer; 'd' drop, '!' dangerous, '?' unused. */
static const char *const figure4[4][4] = {
    /* Outer: Not-ECT, ECT(0), ECT(1), CE. */
    {"0", "0!", "0!", "d!"}, /* inner Not-ECT */
    {"2", "2", "1", "3"},    /* ECT(0) */
    {"1", "1?", "1", "3"},   /* ECT(1) */
    {"3", "3", "3!", "3"},   /* CE */
};
static const uint8_t order[4] = {0, 2, 1, 3};

static void test_decap_table(void **state)
{
	for (unsigned i = 0; i < 4; i++)
		for (unsigned o = 0; o < 4; o++) {
			const char *cell = figure4[i][o];
			/* Bits above the field must not matter. */
			const struct vxlan_ecn_out *r = vxlan_ecn_decap(0xfc | order[i], 0x54 | order[o]);

			assert_int_equal(r->drop, cell[0] == 'd');
			if (cell[0] != 'd')
				assert_int_equal(r->ecn, cell[0] - '0');
			assert_int_equal(r->verdict, cell[1] == '!'   ? VXLAN_ECN_DANGEROUS
			                             : cell[1] == '?' ? VXLAN_ECN_UNUSED
			                                              : VXLAN_ECN_FINE);
		}
}

/* Without marks the output equals the input; a mark on the way is never lost and never invented. */
static void test_round_trip(void **state)
{
	for (uint8_t inner = 0; inner < 4; inner++) {
		uint8_t outer = vxlan_ecn_encap(0xa8 | inner);
		const struct vxlan_ecn_out *r = vxlan_ecn_decap(inner, outer);

		assert_int_equal(outer, inner);
		assert_int_equal(r->ecn, inner);
		assert_false(r->drop);
		assert_int_equal(r->verdict, VXLAN_ECN_FINE);
		r = vxlan_ecn_decap(inner, VXLAN_CE);
		assert_true(inner == VXLAN_NOT_ECT ? r->drop : r->ecn == VXLAN_CE);
	}
}

static void header(uint8_t *ip, bool is6, uint8_t tos, uint32_t *seed)
{
	for (unsigned i = 0; i < 40; i++)
		ip[i] = (uint8_t)tp_rand(seed);
	if (is6) {
		ip[0] = (uint8_t)(0x60 | tos >> 4);
		ip[1] = (uint8_t)(tos << 4 | (ip[1] & 15));
		return;
	}
	ip[0] = 0x45;
	ip[1] = tos;
	ip[10] = ip[11] = 0;
	tp_be(ip + 10, tp_ip4_csum(ip, 20), 2);
}

/* Every byte to every other, both families: only the traffic class changes, and the checksum stays
 * valid. */
static void test_tos_set(void **state)
{
	uint32_t seed = 7;

	for (unsigned from = 0; from < 256; from++)
		for (unsigned to = 0; to < 256; to += from % 3 + 1) {
			uint8_t a[40], b[40], csum[2] = {0, 0};

			header(a, false, (uint8_t)from, &seed);
			memcpy(b, a, 40);
			vxlan_tos_set(b, (uint8_t)to);
			assert_int_equal(vxlan_tos_get(b), to);
			memcpy(csum, b + 10, 2);
			b[10] = b[11] = 0;
			assert_int_equal(rwy_get16(csum), tp_ip4_csum(b, 20));
			b[1] = a[1];
			memcpy(b + 10, a + 10, 2);
			assert_memory_equal(a, b, 40);

			header(a, true, (uint8_t)from, &seed);
			assert_int_equal(vxlan_tos_get(a), from);
			memcpy(b, a, 40);
			vxlan_tos_set(b, (uint8_t)to);
			assert_int_equal(vxlan_tos_get(b), to);
			vxlan_tos_set(b, (uint8_t)from);
			assert_memory_equal(a, b, 40);
		}
}

/* An invalid checksum stays invalid: the way does not repair damage. */
static void test_wrong_stays_wrong(void **state)
{
	uint32_t seed = 3;

	for (unsigned i = 0; i < 1000; i++) {
		uint8_t a[40];

		header(a, false, 0x6a, &seed);
		a[12] ^= 0x10;
		vxlan_tos_set(a, (uint8_t)(tp_rand(&seed) & 0xff));
		assert_int_not_equal(rwy_csum(a, 20), 0xffff);
	}
}

static void test_apply_counts(void **state)
{
	struct vxlan_ecn_counters c = {0};
	uint32_t seed = 11;

	for (unsigned is6 = 0; is6 < 2; is6++)
		for (uint8_t i = 0; i < 4; i++)
			for (uint8_t o = 0; o < 4; o++) {
				uint8_t a[40], b[40];

				header(a, is6, (uint8_t)(0x68 | i), &seed);
				memcpy(b, a, 40);
				if (vxlan_ecn_apply(b, o, &c)) {
					assert_int_equal(vxlan_tos_get(b), 0x68 | vxlan_ecn_decap(i, o)->ecn);
					if (!is6)
						assert_int_equal(rwy_csum(b, 20), 0xffff);
				} else {
					assert_true(i == VXLAN_NOT_ECT && o == VXLAN_CE);
					assert_memory_equal(a, b, 40);
				}
			}
	assert_int_equal(c.ecn_ce, 4);
	assert_int_equal(c.ecn_ect1, 2);
	assert_int_equal(c.ecn_drop, 2);
	assert_int_equal(c.ecn_unused, 2);
	assert_int_equal(c.ecn_dangerous, 8);
}

static void test_dscp(void **state)
{
	struct vxlan_dscp p, q;

	vxlan_dscp_keep(&p);
	for (unsigned t = 0; t < 256; t++)
		assert_int_equal(vxlan_outer_tos(&p, (uint8_t)t), t);
	assert_int_equal(vxlan_dscp_set(&p, 46), 0);
	for (unsigned t = 0; t < 256; t++)
		assert_int_equal(vxlan_outer_tos(&p, (uint8_t)t), 46 << 2 | (t & 3));
	q = p;
	assert_int_equal(vxlan_dscp_set(&p, 64), RWY_EINVAL);
	assert_memory_equal(&p, &q, sizeof(p));
	for (unsigned i = 0; i < 64; i++)
		p.map[i] = (uint8_t)(63 - i);
	for (unsigned t = 0; t < 256; t++)
		assert_int_equal(vxlan_outer_tos(&p, (uint8_t)t), (63 - (t >> 2)) << 2 | (t & 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_decap_table),
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_tos_set),
	    cmocka_unit_test(test_wrong_stays_wrong),
	    cmocka_unit_test(test_apply_counts),
	    cmocka_unit_test(test_dscp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
