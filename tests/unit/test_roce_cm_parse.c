/* SPDX-License-Identifier: Apache-2.0 */
/* roce/cm.h: messages built by hand are parsed, and packets that are none are told. */
#include "tests/lib/roce_cm_track.h"

static void test_parse_req(void **state)
{
	struct cp_req r = ct_req;
	struct roce_cm_msg m;
	uint8_t mad[256];

	cp_make_req(mad, &r);
	assert_int_equal(ct_parse(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_REQ);
	assert_int_equal(m.tid, 0x1122334455667788);
	assert_int_equal(m.local_comm_id, 0xa0a0a0a1);
	assert_int_equal(m.remote_comm_id, 0);
	assert_int_equal(m.service_id, 0x0000000001061b58);
	assert_int_equal(m.qpn, 0xaa);
	assert_int_equal(m.starting_psn, 0x123456);
	assert_int_equal(m.pkey, 0xffff);
	assert_int_equal(m.path_mtu, 1024);
	assert_int_equal(m.transport, ROCE_RC);
	assert_int_equal(m.retry_count, 7);
	assert_int_equal(m.rnr_retry, 6);
	assert_int_equal(m.local_ack_timeout, 19);
	assert_int_equal(m.responder_resources, 128);
	assert_int_equal(m.initiator_depth, 16);
	assert_int_equal(m.flow_label, 0x54321);
	assert_true(m.flow_control && m.srq);
	assert_memory_equal(m.local_gid.b, r.local_gid, 16);
	assert_memory_equal(m.remote_gid.b, r.remote_gid, 16);

	for (uint8_t code = 0; code < 16; code++) {
		r.mtu = code;
		cp_make_req(mad, &r);
		assert_int_equal(ct_parse(mad, &m), 0);
		assert_int_equal(m.path_mtu, code >= 1 && code <= 5 ? 128 << code : 0);
	}
	for (uint8_t t = 0; t < 4; t++) {
		static const uint8_t want[] = {ROCE_RC, ROCE_UC, ROCE_RD, ROCE_XRC};

		r.transport = t;
		r.ext_transport = t == 3;
		cp_make_req(mad, &r);
		assert_int_equal(ct_parse(mad, &m), 0);
		assert_int_equal(m.transport, want[t]);
	}
}

static void test_parse_others(void **state)
{
	struct roce_cm_msg m;
	uint8_t mad[256];

	cp_make_rep(mad, &ct_rep);
	assert_int_equal(ct_parse(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_REP);
	assert_int_equal(m.local_comm_id, 0xb0b0b0b2);
	assert_int_equal(m.remote_comm_id, 0xa0a0a0a1);
	assert_int_equal(m.qpn, 0xbb);
	assert_int_equal(m.starting_psn, 0x654321);
	assert_int_equal(m.rnr_retry, 5);
	assert_int_equal(m.responder_resources, 8);
	assert_int_equal(m.initiator_depth, 4);
	assert_int_equal(m.ack_delay, 15);
	assert_true(m.flow_control && m.srq);

	cp_make_ids(mad, 0x14, 7, 1, 2);
	assert_int_equal(ct_parse(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_RTU);
	assert_int_equal(m.local_comm_id, 1);
	assert_int_equal(m.remote_comm_id, 2);
	assert_int_equal(m.qpn, 0);

	cp_make_rej(mad, 7, 3, 4, 1, 28);
	assert_int_equal(ct_parse(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_REJ);
	assert_int_equal(m.msg, 1);
	assert_int_equal(m.rej_reason, 28);

	cp_make_ids(mad, 0x11, 7, 3, 4);
	mad[32] = 0x40;
	mad[33] = 25 << 3;
	assert_int_equal(ct_parse(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_MRA);
	assert_int_equal(m.msg, 1);
	assert_int_equal(m.service_timeout, 25);

	cp_make_dreq(mad, 7, 3, 4, 0xabcdef);
	assert_int_equal(ct_parse(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_DREQ);
	assert_int_equal(m.qpn, 0xabcdef);
}

/* SIDR, LAP, and future attributes: carried, not refused. */
static void test_unknown_attributes(void **state)
{
	struct roce_cm_msg m;
	uint8_t mad[256];

	for (uint32_t attr = 0; attr < 0x10000; attr += attr < 0x40 ? 1 : 251) {
		cp_make_ids(mad, (uint16_t)attr, 9, 1, 2);
		assert_int_equal(ct_parse(mad, &m), 0);
		assert_int_equal(m.attr, attr);
	}
}

static void test_not_cm(void **state)
{
	static const struct {
		uint16_t at; /* from the BTH */
		uint8_t value;
	} other[] = {
	    {7, 2},         /* destination QP 2 */
	    {12, 0},        /* Q_Key */
	    {19, 2},        /* source QP 2 */
	    {20 + 0, 2},    /* base version */
	    {20 + 1, 0x03}, /* class: subnet administration */
	    {20 + 2, 1},    /* class version */
	    {20 + 3, 0x81}, /* method: GetResp */
	};
	uint8_t b[TP_MAX], mad[256];
	struct roce_cm_msg m;
	struct roce_pkt p;
	uint32_t len;

	cp_make_req(mad, &ct_req);
	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		len = cp_packet(b, mad, i & 1, 256);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		p.bth[other[i].at] = other[i].value;
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		assert_int_equal(roce_cm_parse(&p, &m), RWY_ENOENT);
	}
	/* Every length but a MAD's. */
	for (uint32_t n = 0; n < 256; n++) {
		len = cp_packet(b, mad, false, n & ~3u);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		assert_int_equal(roce_cm_parse(&p, &m), RWY_EMALFORMED);
	}
	/* The right number of bytes, but some of them are pad. */
	len = cp_packet(b, mad, false, 256);
	b[28 + 1] |= 0x30;
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	assert_int_equal(roce_cm_parse(&p, &m), RWY_EMALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse_req),
	    cmocka_unit_test(test_parse_others),
	    cmocka_unit_test(test_unknown_attributes),
	    cmocka_unit_test(test_not_cm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
