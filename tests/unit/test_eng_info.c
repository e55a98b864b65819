/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's activity as the engine reports it. */
#include "tests/lib/eng_pair.h"

#define QPN_A 0x51
#define QPN_B 0x50

static void send(unsigned from, uint8_t opcode, roce_psn psn)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = from ? QPN_A : QPN_B,
	    .ack_req = true,
	    .syndrome = 0x1f,
	    .msn = 1,
	    .src = {10, (uint8_t)(1 + from), 0, 3},
	    .dst = {10, (uint8_t)(2 - from), 0, 3}};

	if (opcode != ROCE_RC_ACK)
		m.payload_len = 64;
	eng_host_sends(from, &m, 0);
	eng_pair_run(20 * RWY_MS);
}

static void pair(void)
{
	send(0, ROCE_RC_SEND_ONLY, 5);
	send(1, ROCE_RC_ACK, 5);
	send(1, ROCE_RC_SEND_ONLY, 70);
	send(0, ROCE_RC_ACK, 70);
}

static void assert_told(const char *state, rwy_dur least, rwy_dur most)
{
	for (unsigned i = 0; i < 2; i++) {
		struct eng_flow_info f = eng_pair_flow(i);

		assert_string_equal(f.state, state);
		assert_in_range(eng_now - f.last, least, most);
	}
}

static void test_idle(void **state)
{
	pair();
	assert_told("paired", 0, 100 * RWY_MS);
	eng_pair_run(ENG_IDLE - 100 * RWY_MS);
	assert_told("paired", ENG_IDLE - 200 * RWY_MS, ENG_IDLE);
	eng_pair_run(200 * RWY_MS);
	assert_told("idle", ENG_IDLE, ENG_IDLE + 200 * RWY_MS);
	send(0, ROCE_RC_SEND_ONLY, 6);
	send(1, ROCE_RC_ACK, 6);
	assert_told("paired", 0, 100 * RWY_MS);
}

/* One host asks, the other only answers: both gateways see activity. */
static void test_one_way(void **state)
{
	pair();
	for (unsigned i = 0; i < 4; i++) {
		eng_pair_run(3 * RWY_SEC);
		send(1, ROCE_RC_SEND_ONLY, 71 + i);
		send(0, ROCE_RC_ACK, 71 + i);
		assert_told("paired", 0, 100 * RWY_MS);
	}
}

/* A request to a host that has not answered yet. */
static void test_unanswered(void **state)
{
	pair();
	eng_pair_run(ENG_IDLE + 100 * RWY_MS);
	assert_told("idle", ENG_IDLE, 2 * ENG_IDLE);
	send(1, ROCE_RC_SEND_ONLY, 71);
	assert_told("paired", 0, 100 * RWY_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_idle, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_one_way, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_unanswered, eng_pair_set_up, eng_pair_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
