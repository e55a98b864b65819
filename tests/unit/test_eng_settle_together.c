/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of a gateway settle together (engine/settle_together.c). The engine of site 0 is one
 * of two workers, and the test says what the other one says.
 */
#include "engine/lanes.h"
#include "engine/settle.h"
#include "tests/lib/eng_pair.h"

#define QPN_A    0x51
#define QPN_B    0x50
#define SOON     (8 * RWY_MS)   /* a round trip and a pass; less than CLOSING lasts */
#define TOO_MUCH (160 * RWY_MS) /* longer than CLOSING lasts, and than others may be silent */

static struct eng_lanes lanes;
static unsigned worker;

static void tune(struct eng_cfg *c)
{
	if (c->seed != 1) /* site 1 has one worker */
		return;
	memset(&lanes, 0, sizeof(lanes));
	eng_lanes_begin(&lanes, 0, 7);
	c->lanes = &lanes;
	c->worker = (uint8_t)worker;
	c->workers = 2;
}

static int set_up_leader(void **state)
{
	worker = 0;
	eng_pair_tune = tune;
	return eng_pair_set_up(state);
}

static int set_up_follower(void **state)
{
	worker = 1;
	eng_pair_tune = tune;
	return eng_pair_set_up(state);
}

static int tear_down(void **state)
{
	eng_pair_tune = NULL;
	return eng_pair_tear_down(state);
}

static void send(unsigned from, roce_psn psn, uint8_t opcode)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = from ? QPN_A : QPN_B,
	    .ack_req = !from,
	    .syndrome = 0x1f,
	    .msn = psn - 4,
	    .len = 64,
	    .payload_len = opcode == ROCE_RC_SEND_ONLY ? 64 : 0,
	    .src = {10, from ? 2 : 1, 0, 3},
	    .dst = {10, from ? 1 : 2, 0, 3}};

	eng_host_sends(from, &m, 0);
	eng_pair_run(SOON);
}

/* Host A sends a request. True: host B got it; it answers. */
static bool passes(roce_psn psn)
{
	const unsigned before = site[1].requests;

	send(0, psn, ROCE_RC_SEND_ONLY);
	if (site[1].requests == before)
		return false;
	send(1, psn, ROCE_RC_ACK);
	return true;
}

static void assert_state(enum eng_settle_state state)
{
	struct eng_settle_info i;

	eng_settle_get(site[0].e, &i);
	assert_int_equal(i.state, state);
}

static void assert_turn(uint32_t turn)
{
	assert_int_equal(atomic_load(&lanes.settle.turn), turn);
}

static void other_says(uint32_t turn, enum eng_settle_how how)
{
	atomic_store(&lanes.settle.said[!worker], eng_settle_word(turn, how));
	eng_pair_run(SOON);
}

static void leader_is_at(uint32_t turn)
{
	atomic_store(&lanes.settle.turn, turn);
	eng_pair_run(SOON);
}

static void assert_says(uint32_t turn, enum eng_settle_how how)
{
	assert_int_equal(atomic_load(&lanes.settle.said[worker]), eng_settle_word(turn, how));
}

static void begin(void)
{
	eng_settle_begin(site[0].e, eng_now);
	eng_pair_run(SOON);
}

/* It owes nothing, and goes on to take requests for as long as the other worker owes something. */
static void leader_waits_for_others(void **state)
{
	assert_true(passes(5));
	begin();
	assert_state(ENG_SETTLING);
	assert_turn(2);
	assert_true(passes(6));
	other_says(2, ENG_SETTLE_OWES);
	assert_state(ENG_SETTLING);
	other_says(2, ENG_SETTLE_NOTHING);
	assert_state(ENG_CLOSING);
	assert_turn(3);
	assert_false(passes(7));
	other_says(3, ENG_SETTLE_NOTHING);
	assert_state(ENG_SETTLED);
	assert_int_equal(atomic_load(&lanes.settle.over), 3);
	eng_settle_cancel(site[0].e, eng_now);
	assert_turn(4);
	eng_pair_run(SOON);
	assert_true(passes(7));
}

/* A word about an earlier turn is none about this one. */
static void leader_takes_no_old_word(void **state)
{
	other_says(0, ENG_SETTLE_NOTHING);
	begin();
	assert_turn(2);
	assert_state(ENG_SETTLING);
	other_says(2, ENG_SETTLE_NOTHING);
	assert_state(ENG_CLOSING);
	eng_pair_run(SOON);
	assert_state(ENG_CLOSING);
}

/* Another worker cannot keep its promises in time: hosts are served again, and then the next try. */
static void leader_opens_again(void **state)
{
	assert_true(passes(5));
	begin();
	other_says(2, ENG_SETTLE_NOTHING);
	assert_state(ENG_CLOSING);
	other_says(3, ENG_SETTLE_TOO_LONG);
	assert_state(ENG_SETTLING);
	assert_turn(4);
	assert_true(passes(6));
	other_says(4, ENG_SETTLE_NOTHING);
	for (unsigned i = 0; i < 200 && atomic_load(&lanes.settle.turn) == 4; i++)
		eng_pair_run(RWY_MS);
	assert_turn(5);
	assert_state(ENG_CLOSING);
	other_says(5, ENG_SETTLE_NOTHING);
	assert_state(ENG_SETTLED);
}

/* It says nothing at all, and CLOSING takes too long. */
static void leader_waits_for_so_long(void **state)
{
	begin();
	other_says(2, ENG_SETTLE_NOTHING);
	assert_state(ENG_CLOSING);
	eng_pair_run(TOO_MUCH);
	assert_state(ENG_SETTLING);
	assert_turn(4);
}

static void follower_follows(void **state)
{
	assert_true(passes(5));
	leader_is_at(2);
	begin();
	assert_state(ENG_SETTLING);
	assert_says(2, ENG_SETTLE_NOTHING);
	eng_pair_run(TOO_MUCH);
	assert_true(passes(6));
	leader_is_at(3);
	assert_state(ENG_CLOSING);
	assert_says(3, ENG_SETTLE_NOTHING);
	assert_false(passes(7));
	leader_is_at(4);
	assert_state(ENG_SETTLING);
	assert_true(passes(7));
	eng_pair_run(TOO_MUCH);
	assert_says(4, ENG_SETTLE_NOTHING);
	leader_is_at(5);
	atomic_store(&lanes.settle.over, 5);
	eng_pair_run(SOON);
	assert_state(ENG_SETTLED);
	eng_settle_cancel(site[0].e, eng_now);
	assert_state(ENG_SERVING);
	assert_says(0, ENG_SETTLE_OWES);
}

/* It begins again while worker 0 has not heard of the end of the drain before. */
static void follower_is_early(void **state)
{
	atomic_store(&lanes.settle.turn, 7);
	atomic_store(&lanes.settle.over, 7);
	assert_true(passes(5));
	send(0, 6, ROCE_RC_SEND_ONLY);
	begin();
	eng_pair_run(TOO_MUCH);
	assert_state(ENG_SETTLING);
	send(1, 6, ROCE_RC_ACK);
	leader_is_at(8);
	assert_says(8, ENG_SETTLE_NOTHING);
}

/* It owes something, and says so; in CLOSING for as long as that may last. */
static void follower_owes(void **state)
{
	assert_true(passes(5));
	send(0, 6, ROCE_RC_SEND_ONLY);
	leader_is_at(2);
	begin();
	assert_says(2, ENG_SETTLE_OWES);
	leader_is_at(3);
	assert_state(ENG_SETTLING); /* worker 0 did not wait for its word */
	leader_is_at(4);
	send(1, 6, ROCE_RC_ACK);
	assert_says(4, ENG_SETTLE_NOTHING);
	assert_true(passes(7));
	send(0, 8, ROCE_RC_READ_REQ);
	leader_is_at(5);
	assert_state(ENG_CLOSING);
	assert_says(5, ENG_SETTLE_OWES);
	eng_pair_run(TOO_MUCH);
	assert_state(ENG_CLOSING);
	assert_says(5, ENG_SETTLE_TOO_LONG);
	leader_is_at(6);
	assert_state(ENG_SETTLING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(leader_waits_for_others, set_up_leader, tear_down),
	    cmocka_unit_test_setup_teardown(leader_takes_no_old_word, set_up_leader, tear_down),
	    cmocka_unit_test_setup_teardown(leader_opens_again, set_up_leader, tear_down),
	    cmocka_unit_test_setup_teardown(leader_waits_for_so_long, set_up_leader, tear_down),
	    cmocka_unit_test_setup_teardown(follower_follows, set_up_follower, tear_down),
	    cmocka_unit_test_setup_teardown(follower_is_early, set_up_follower, tear_down),
	    cmocka_unit_test_setup_teardown(follower_owes, set_up_follower, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
