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
	    cmocka_unit_test(test_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
