/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ack mode `end`: all but the packet that completes a message is acknowledged early. Two engines
 * with a perfect WAN of 50 ms; host B answers when the test says so.
 */
#include "tests/lib/roce_cm_pkt.h"
#include "tests/lib/eng_pair.h"

#include "roce/cm.h"
#include "roce/icrc.h"

#define QPN_A 0x51
#define QPN_B 0x50
#define MTU   256
#define FIRST 5 /* PSN */

static void a_sends(uint8_t opcode, roce_psn psn, bool ack_req)
{
	bool more = opcode == ROCE_RC_WRITE_FIRST || opcode == ROCE_RC_WRITE_MIDDLE;
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .ack_req = ack_req,
	    .len = opcode == ROCE_RC_WRITE_FIRST ? 2 * MTU + 64 : 64,
	    .payload_len = opcode == ROCE_RC_READ_REQ ? 0
	                   : more                     ? MTU
	                                              : 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
}

/* A WRITE of three packets, each with AckReq. */
static void a_writes(roce_psn psn)
{
	a_sends(ROCE_RC_WRITE_FIRST, psn, true);
	a_sends(ROCE_RC_WRITE_MIDDLE, psn + 1, true);
	a_sends(ROCE_RC_WRITE_LAST, psn + 2, true);
}

static void b_answers(uint8_t opcode, roce_psn psn, roce_msn msn)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = QPN_A,
	    .syndrome = 0x1f,
	    .msn = msn,
	    .payload_len = opcode == ROCE_RC_ACK ? 0 : 64,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
}

static void far_and_end(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_END;
	c->idle_expiry = 100 * RWY_SEC;
}

static int set_up(void **state)
{
	eng_pair_tune = far_and_end;
	eng_pair_set_up(state);
	eng_pair_tune = NULL;
	a_sends(ROCE_RC_WRITE_ONLY, FIRST, true);
	eng_pair_run(20 * RWY_MS);
	b_answers(ROCE_RC_ACK, FIRST, 1);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, FIRST);
	eng_pair_delay(50 * RWY_MS);
	return 0;
}

static void test_message(void **state)
{
	unsigned acks = site[0].acks;

	a_writes(FIRST + 1);
	eng_pair_run(2 * RWY_MS);
	/* All but the last, at once. */
	assert_int_equal(site[0].acks, acks + 1);
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 2);
	eng_pair_run(300 * RWY_MS);
	assert_int_equal(site[1].psn, FIRST + 3);
	assert_int_equal(site[0].acks, acks + 1);
	b_answers(ROCE_RC_ACK, FIRST + 3, 2);
	eng_pair_run(200 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 3);
}

/* What follows the last packet of a message waits with it, and goes with it. */
static void test_pipelined(void **state)
{
	a_writes(FIRST + 1);
	a_writes(FIRST + 4);
	eng_pair_run(300 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 2);
	b_answers(ROCE_RC_ACK, FIRST + 3, 2);
	eng_pair_run(120 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 5);
	b_answers(ROCE_RC_ACK, FIRST + 6, 3);
	eng_pair_run(120 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 6);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
}

static unsigned heard, asked, spoilt;

static void b_hears(struct eng_site *s, const struct roce_pkt *pkt)
{
	heard++;
	asked += pkt->ack_req;
	spoilt += !roce_icrc_ok(pkt);
}

/* Every request of A asks for an ACK; of those that go to B together only the last one does. */
static void test_one_ack_asked(void **state)
{
	heard = asked = spoilt = 0;
	site[1].heard = b_hears;
	a_writes(FIRST + 1);
	a_writes(FIRST + 4);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(heard, 6);
	assert_int_equal(spoilt, 0);
	assert_int_equal(asked, 1);
	assert_int_equal(site[1].psn, FIRST + 6);
	b_answers(ROCE_RC_ACK, FIRST + 6, 3);
	eng_pair_run(120 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 6);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	site[1].heard = NULL;
}

/* A host that repeats the last packet gets no ACK for it. */
static void test_repeated(void **state)
{
	a_writes(FIRST + 1);
	eng_pair_run(10 * RWY_MS);
	for (unsigned i = 0; i < 6; i++) {
		a_sends(ROCE_RC_WRITE_LAST, FIRST + 3, true);
		eng_pair_run(10 * RWY_MS);
	}
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 2);
	assert_int_equal(site[1].of_qpn[QPN_B], 4);
}

/* Behind a READ: ACKs wait for its response, not for the report that came after it. */
static void test_behind_read(void **state)
{
	a_sends(ROCE_RC_READ_REQ, FIRST + 1, true);
	a_writes(FIRST + 2);
	eng_pair_run(60 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, FIRST);
	b_answers(ROCE_RC_READ_RESP_ONLY, FIRST + 1, 2);
	eng_pair_run(53 * RWY_MS);
	assert_int_equal(site[0].responses, 1);
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 3);
	b_answers(ROCE_RC_ACK, FIRST + 4, 3);
	eng_pair_run(200 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, FIRST + 4);
}

/* --- patience ------------------------------------------------------------------------------- */

static void cm_sends(unsigned from, const uint8_t *mad)
{
	uint8_t b[TP_MAX];
	uint32_t len = cp_packet(b, mad, false, 256), crc;

	tp_be(b + 12, from ? 0x0a020003 : 0x0a010003, 4);
	tp_be(b + 16, from ? 0x0a010003 : 0x0a020003, 4);
	tp_fix_csum(b);
	crc = tp_icrc(b, len);
	for (unsigned i = 0; i < 4; i++)
		b[len - 4 + i] = (uint8_t)(crc >> (8 * i));
	eng_host_sends_bytes(from, b, len);
}

static void connect_with(uint8_t timeout, uint8_t retry)
{
	struct cp_req q = {.tid = 7,
	    .comm = 0xa1,
	    .qpn = QPN_A + 1,
	    .psn = 9,
	    .mtu = 3,
	    .retry = retry,
	    .rnr = 7,
	    .timeout = timeout};
	struct cp_rep p = {
	    .tid = 7, .comm = 0xb1, .remote = 0xa1, .qpn = QPN_B + 1, .psn = FIRST, .rnr = 7, .ack_delay = 1};
	uint8_t mad[256];

	cp_make_req(mad, &q);
	cm_sends(0, mad);
	eng_pair_run(200 * RWY_MS);
	cp_make_rep(mad, &p);
	cm_sends(1, mad);
	eng_pair_run(12 * RWY_SEC); /* until the round trips of before are forgotten */
}

static struct eng_flow_info by_cm(void)
{
	struct eng_flow_info f[4];
	uint32_t cursor = 0;
	unsigned n = 0;

	do
		n += eng_flows(site[0].e, &cursor, f + n, 4 - n);
	while (cursor && n < 4);
	for (unsigned i = 0; i < n; i++)
		if (f[i].local_qpn == QPN_A + 1)
			return f[i];
	fail();
	return f[0];
}

static void test_impatient(void **state)
{
	connect_with(11, 3); /* 4 x 16.8 ms, and the round trip is 100 ms */
	assert_int_equal(by_cm().patience, 4 * (4096 << 12));
	assert_true(by_cm().impatient);
	assert_string_equal(by_cm().ack_mode, "end");
}

static void test_patient(void **state)
{
	connect_with(12, 5); /* 201 ms */
	assert_false(by_cm().impatient);
}

static void test_endless(void **state)
{
	connect_with(0, 3);
	assert_int_equal(by_cm().patience, 0);
	assert_false(by_cm().impatient);
}

/* CM named both QPNs: the first ACK takes one round trip, as every other. */
static void test_first_ack(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = FIRST,
	    .dqpn = QPN_B + 1,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	connect_with(12, 5);
	unsigned acks = site[0].acks;

	eng_host_sends(0, &m, 0);
	eng_pair_run(60 * RWY_MS);
	assert_int_equal(site[1].of_qpn[QPN_B + 1], 1);
	m = (struct rc_mk){.opcode = ROCE_RC_ACK,
	    .psn = FIRST,
	    .dqpn = QPN_A + 1,
	    .syndrome = 0x1f,
	    .msn = 1,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};
	eng_host_sends(1, &m, 0);
	eng_pair_run(60 * RWY_MS);
	assert_int_equal(site[0].acks, acks + 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, eng_pair_tear_down)
	const struct CMUnitTest tests[] = {
	    T(test_message),
	    T(test_pipelined),
	    T(test_one_ack_asked),
	    T(test_repeated),
	    T(test_behind_read),
	    T(test_first_ack),
	    T(test_impatient),
	    T(test_patient),
	    T(test_endless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
