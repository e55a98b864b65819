/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that the far host ends: both gateways report the same reason. Two engines with a
 * perfect WAN.
 */
#include "tests/lib/eng_pair.h"
#include "engine/msg.h"

#define QPN_A 0x51
#define QPN_B 0x50

static void request(roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
	eng_pair_run(20 * RWY_MS);
}

static void answer(roce_psn psn, uint8_t syndrome)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_A,
	    .syndrome = syndrome,
	    .msn = 1,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
	eng_pair_run(20 * RWY_MS);
}

static void assert_ends(const char *near, const char *far)
{
	const char *want[2] = {near, far};

	for (unsigned i = 0; i < 2; i++) {
		struct eng_flow_info f = eng_pair_flow(i);

		assert_string_equal(f.state, "failed");
		assert_string_equal(f.error, want[i]);
	}
}

static void paired(void)
{
	request(5);
	answer(5, 0x1f);
	request(6);
}

static void test_refused(void **state)
{
	paired();
	answer(6, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	assert_ends("the far host refused: remote access error", "remote access error");
}

static void test_refused_operation(void **state)
{
	paired();
	answer(6, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP));
	assert_ends("the far host refused: remote operational error", "remote operational error");
}

static void test_silent(void **state)
{
	paired();
	eng_pair_run(30 * RWY_SEC);
	assert_ends("the far host did not answer: retry count exceeded", "retry count exceeded");
}

static void host_a_says(uint8_t syndrome, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .syndrome = syndrome,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
	eng_pair_run(20 * RWY_MS);
}

static struct {
	uint8_t opcode;
	uint32_t len;
} last;

static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (roce_op_is_request(pkt->info))
		last.opcode = pkt->opcode;
	if (pkt->info->flags & ROCE_F_RETH)
		last.len = roce_reth_len(pkt);
}

#define EXPECTS_A 0x100 /* PSN of host B's first request, which never came */

/* Host A, idle, names the PSN that it expects, and gets there a request that no responder accepts. */
static void assert_idle_host_is_told(void)
{
	site[0].heard = heard;
	assert_int_equal(site[0].requests, 1);
	host_a_says(roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ), EXPECTS_A);
	assert_int_equal(site[0].requests, 2);
	assert_int_equal(site[0].psn, EXPECTS_A);
	assert_int_equal(last.opcode, ROCE_RC_WRITE_ONLY);
	assert_true(last.len > 1u << 31 || last.len == 1u << 31);
	host_a_says(roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_INV_REQ), EXPECTS_A);
	assert_int_equal(eng_counters(site[0].e)->conns_lost, 1);
	eng_pair_run(10 * RWY_SEC);
	assert_int_equal(site[0].requests, 2);
}

/* Host A has an ACK for what host B refuses, and nothing outstanding: it is told all the same. */
static void test_idle_host_is_told(void **state)
{
	paired();
	assert_int_equal(site[0].of[0].ack_psn, 6);
	answer(6, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	assert_idle_host_is_told();
	request(7);
	assert_true(site[0].of[0].naks > 0);
}

/* The hosts connect anew before the request that ends host A's queue pair is answered: it is not repeated. */
static void test_connected_anew(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = EXPECTS_A + 7,
	    .dqpn = QPN_A,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	paired();
	answer(6, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	site[0].heard = heard;
	host_a_says(roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ), EXPECTS_A);
	assert_int_equal(last.opcode, ROCE_RC_WRITE_ONLY);
	eng_host_sends(1, &m, 0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(last.opcode, ROCE_RC_SEND_ONLY);
	host_a_says(0x1f, EXPECTS_A + 7);
	assert_int_equal(site[1].of[0].acks, 1);
	eng_pair_run(5 * RWY_SEC);
	assert_int_equal(last.opcode, ROCE_RC_SEND_ONLY);
}

static void test_idle_host_of_a_silent_one(void **state)
{
	paired();
	for (unsigned i = 0; i < 3000 && !site[0].requests; i++)
		eng_pair_run(10 * RWY_MS);
	assert_idle_host_is_told();
}

static void tune_end(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_END;
}

static int set_up_end(void **state)
{
	int r;

	eng_pair_tune = tune_end;
	r = eng_pair_set_up(state);
	eng_pair_tune = NULL;
	return r;
}

/* What host B refuses is acknowledged to nobody: the NAK says it all. */
static void test_told_by_the_nak(void **state)
{
	paired();
	assert_int_equal(site[0].of[0].ack_psn, 5);
	answer(6, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	assert_int_equal(site[0].of[0].naks, 1);
	eng_pair_run(10 * RWY_SEC);
	assert_int_equal(site[0].requests, 0);
}

/* No buffer is free when host B refuses: host A is told as soon as one is. */
static void test_told_later(void **state)
{
	paired();
	site[1].starved = true;
	answer(6, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
	assert_true(eng_counters(site[1].e)->drop_no_buffer > 0);
	site[1].starved = false;
	eng_pair_run(20 * RWY_MS);
	assert_ends("the far host refused: remote access error", "remote access error");
}

/* The same with the word that ACKs may begin. */
static void test_begins_later(void **state)
{
	request(5);
	site[1].starved = true;
	answer(5, 0x1f);
	assert_int_equal(site[0].of[0].acks, 0);
	assert_true(eng_custody_bytes(site[0].e) > 0); /* else host A would look like a new one */
	site[1].starved = false;
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].of[0].acks, 1);
	assert_int_equal(site[0].of[0].ack_psn, 5);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
}

/* And without a buffer for the request that ends the queue pair of an idle host. */
static void test_idle_host_is_told_later(void **state)
{
	paired();
	site[0].starved = true;
	answer(6, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	eng_pair_run(RWY_SEC);
	assert_int_equal(site[0].requests, 0);
	site[0].starved = false;
	eng_pair_run(RWY_SEC);
	assert_true(site[0].requests > 0);
}

/* A number unknown to this version, and those of older gateways. */
static void test_wire(void **state)
{
	struct eng_ctrl c = {.type = ENG_CTRL_FAIL, .syndrome = 0x63}, got;
	uint8_t bytes[ENG_CTRL_LEN];

	for (unsigned i = 0; i < 256; i++) {
		c.end = (uint8_t)i;
		eng_ctrl_encode(bytes, &c);
		assert_int_equal(bytes[2], i);
		assert_true(eng_ctrl_decode(&got, bytes, sizeof(bytes)));
		assert_int_equal(got.end, i < ENG_ENDS ? i : ENG_END_UNKNOWN);
		assert_true(*eng_end_text((enum eng_end)got.end, 0, false));
		assert_true(*eng_end_text((enum eng_end)got.end, 0, true));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_refused, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_refused_operation, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_silent, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_idle_host_is_told, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(
	        test_idle_host_of_a_silent_one, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_connected_anew, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_told_by_the_nak, set_up_end, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_told_later, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_begins_later, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(
	        test_idle_host_is_told_later, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test(test_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
