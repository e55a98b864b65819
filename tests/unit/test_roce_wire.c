/* SPDX-License-Identifier: Apache-2.0 */
/* roce/wire.h: each field at the place in the standard; written values are read back, and no other
 * field changes. */
#include "tests/lib/roce_cm_pkt.h"

#include "roce/wire.h"

static void test_bth_bits(void **state)
{
	static const uint8_t raw[12] = {
	    0x0a, 0xa0, 0x80, 0x01, 0xc0, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef};
	const struct roce_bth *h = (const struct roce_bth *)raw;

	assert_int_equal(h->opcode, 0x0a);
	assert_true(h->flags & ROCE_BTH_SE);
	assert_false(h->flags & ROCE_BTH_MIGREQ);
	assert_int_equal(roce_bth_pad(h), 2);
	assert_int_equal(h->flags & ROCE_BTH_TVER, 0);
	assert_int_equal(rwy_get16(h->pkey), 0x8001);
	assert_true(h->fb & ROCE_BTH_FECN);
	assert_true(h->fb & ROCE_BTH_BECN);
	assert_int_equal(rwy_get24(h->dqpn), 0x123456);
	assert_true(h->areq & ROCE_BTH_ACKREQ);
	assert_int_equal(rwy_get24(h->psn), 0xabcdef);
	for (unsigned pad = 0; pad < 4; pad++) {
		struct roce_bth b = {.flags = (uint8_t)(0xcf | pad << 4)};

		assert_int_equal(roce_bth_pad(&b), pad);
	}
}

static void test_ip6_bits(void **state)
{
	struct roce_ip6 h = {.vtf = {0x6a, 0xbc, 0xde, 0xf1}};

	assert_int_equal(roce_ip6_tclass(&h), 0xab);
	assert_int_equal(roce_ip6_flow(&h), 0xcdef1);
}

/* Every value of every packed byte of a REQ, bit by bit compared with IBA table 106. */
static void test_cm_req_bits(void **state)
{
	for (unsigned v = 0; v < 256; v++) {
		struct roce_cm_req m = {
		    .b43 = (uint8_t)v, .b47 = (uint8_t)v, .b50 = (uint8_t)v, .b51 = (uint8_t)v};

		m.primary.ack_timeout = (uint8_t)v;
		assert_int_equal(roce_cm_req_remote_resp_timeout(&m) << 3 | roce_cm_req_transport(&m) << 1 |
		                     roce_cm_req_flow_control(&m),
		    v);
		assert_int_equal(roce_cm_req_local_resp_timeout(&m) << 3 | roce_cm_req_retry_count(&m), v);
		assert_int_equal(roce_cm_req_path_mtu(&m) << 4 | (v & 8) | roce_cm_req_rnr_retry(&m), v);
		assert_int_equal(roce_cm_req_max_cm_retries(&m) << 4 | roce_cm_req_srq(&m) << 3 |
		                     roce_cm_req_ext_transport(&m),
		    v);
		assert_int_equal(roce_cm_path_ack_timeout(&m.primary), v >> 3);
	}
}

static void test_cm_req_layout(void **state)
{
	struct cp_req r = {.tid = 5,
	    .comm = 0x01020304,
	    .qpn = 0x050607,
	    .psn = 0x08090a,
	    .mtu = 5,
	    .retry = 3,
	    .rnr = 7,
	    .timeout = 18,
	    .resp_res = 0x0b,
	    .init_depth = 0x0c,
	    .local_gid = {1, 2, 3},
	    .remote_gid = {4, 5, 6}};
	uint8_t mad[256];
	const struct roce_mad *h = (const struct roce_mad *)mad;
	const struct roce_cm_req *m = (const struct roce_cm_req *)(mad + 24);

	cp_make_req(mad, &r);
	assert_int_equal(h->mgmt_class, 7);
	assert_int_equal(rwy_get64(h->tid), 5);
	assert_int_equal(rwy_get16(h->attr_id), 0x10);
	assert_int_equal(rwy_get32(m->local_comm_id), r.comm);
	assert_int_equal(rwy_get64(m->ca_guid), 0x0011223344556677);
	assert_int_equal(rwy_get24(m->qpn), r.qpn);
	assert_int_equal(m->resp_res, r.resp_res);
	assert_int_equal(m->init_depth, r.init_depth);
	assert_int_equal(rwy_get24(m->psn), r.psn);
	assert_int_equal(roce_cm_req_path_mtu(m), 5);
	assert_int_equal(roce_cm_req_retry_count(m), 3);
	assert_int_equal(roce_cm_req_rnr_retry(m), 7);
	assert_int_equal(roce_cm_req_remote_resp_timeout(m), 20);
	assert_int_equal(roce_cm_req_local_resp_timeout(m), 21);
	assert_int_equal(roce_cm_req_max_cm_retries(m), 15);
	assert_true(roce_cm_req_srq(m) && roce_cm_req_flow_control(m));
	assert_int_equal(roce_cm_path_ack_timeout(&m->primary), 18);
	assert_int_equal(roce_cm_path_flow_label(&m->primary), 0x54321);
	assert_int_equal(m->primary.tclass, 0x6a);
	assert_int_equal(m->primary.hop_limit, 64);
	assert_memory_equal(m->primary.local_gid, r.local_gid, 16);
	assert_memory_equal(m->primary.remote_gid, r.remote_gid, 16);
}

static void test_cm_others_bits(void **state)
{
	for (unsigned v = 0; v < 256; v++) {
		struct roce_cm_rep p = {.b26 = (uint8_t)v, .b27 = (uint8_t)v};
		struct roce_cm_rej j = {.b8 = (uint8_t)v, .b9 = (uint8_t)v};
		struct roce_cm_mra a = {.b8 = (uint8_t)v, .b9 = (uint8_t)v};

		assert_int_equal(roce_cm_rep_ack_delay(&p) << 3 | roce_cm_rep_failover(&p) << 1 |
		                     roce_cm_rep_flow_control(&p),
		    v);
		assert_int_equal(roce_cm_rep_rnr_retry(&p) << 5 | roce_cm_rep_srq(&p) << 4 | (v & 15), v);
		assert_int_equal(roce_cm_rej_msg(&j), v >> 6);
		assert_int_equal(roce_cm_rej_info_len(&j), v >> 1);
		assert_int_equal(roce_cm_mra_msg(&a), v >> 6);
		assert_int_equal(roce_cm_mra_service_timeout(&a), v >> 3);
	}
}

static void test_endian(void **state)
{
	uint8_t b[9];

	memset(b, 0xee, sizeof(b));
	rwy_put24(b + 1, 0xff123456);
	assert_int_equal(rwy_get24(b + 1), 0x123456);
	assert_int_equal(b[0], 0xee);
	assert_int_equal(b[4], 0xee);
	rwy_put64(b + 1, 0x0102030405060708);
	assert_int_equal(b[1], 1);
	assert_int_equal(b[8], 8);
	assert_int_equal(rwy_get64(b + 1), 0x0102030405060708);
	assert_int_equal(rwy_get32(b + 5), 0x05060708);
	assert_int_equal(rwy_get16(b + 7), 0x0708);
	rwy_put32(b + 1, 0xa1b2c3d4);
	assert_int_equal(rwy_get32(b + 1), 0xa1b2c3d4);
	rwy_put16(b + 1, 0xfeed);
	assert_int_equal(rwy_get16(b + 1), 0xfeed);
	assert_int_equal(b[3], 0xc3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bth_bits),
	    cmocka_unit_test(test_ip6_bits),
	    cmocka_unit_test(test_cm_req_bits),
	    cmocka_unit_test(test_cm_req_layout),
	    cmocka_unit_test(test_cm_others_bits),
	    cmocka_unit_test(test_endian),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
