/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passive pairing of queue pairs that begin with the same PSN and use the same UDP port, where only
 * the order of answers tells them apart, and the host answers late.
 */
#include "tests/lib/eng_pair.h"

#define QPN_B 0x50 /* + i: the i-th queue pair at host B */
#define QPN_A 0x80

static void request_of(unsigned i, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = QPN_B + i,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
}

static void request(unsigned i)
{
	request_of(i, 0);
}

/* Host B acknowledges this PSN of its i-th queue pair. */
static void answer_to(unsigned i, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_A + i,
	    .syndrome = 0x1f,
	    .msn = psn + 1,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
	eng_pair_run(2 * RWY_MS);
}

static void answer(unsigned i)
{
	answer_to(i, 0);
}

/* The QPN at host A that the gateway beside host B has for the i-th queue pair; 0: none yet. */
static uint32_t partner(unsigned i)
{
	struct eng_flow_info info[8];
	uint32_t cursor = 0;
	unsigned n = eng_flows(site[1].e, &cursor, info, 8);

	for (unsigned k = 0; k < n; k++)
		if (info[k].local_qpn == QPN_B + i)
			return info[k].remote_qpn;
	fail_msg("no flow of queue pair %u", i);
	return 0;
}

static unsigned sent(unsigned i)
{
	return site[1].of_qpn[QPN_B + i];
}

static int set_up(void **state)
{
	assert_int_equal(eng_pair_set_up(state), 0);
	eng_pair_run(RWY_SEC);
	request(0);
	request(1);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(sent(0), 1);
	assert_int_equal(sent(1), 0); /* one at a time */
	return 0;
}

/*
 * The request was repeated before its answer came: so it has two answers. The second one comes when
 * the other queue pair has its turn, and nothing of the first one is outstanding any more.
 */
static void test_second_answer(void **state)
{
	while (sent(0) < 2)
		eng_pair_run(10 * RWY_MS);
	answer(0);
	assert_int_equal(partner(0), QPN_A);
	assert_int_equal(sent(1), 1);
	eng_pair_run(300 * RWY_MS);
	answer(0);
	assert_int_equal(partner(0), QPN_A);
	assert_int_equal(partner(1), 0);
	answer(1);
	assert_int_equal(partner(1), QPN_A + 1);
	assert_int_equal(partner(0), QPN_A);
}

/*
 * Several packets were repeated at once, and the host answers each, the last ones long after all is
 * acknowledged: these answers are not for the queue pair that has its turn meanwhile.
 */
static void test_many_answers(void **state)
{
	answer(0);
	for (roce_psn psn = 1; psn < 5; psn++)
		request_of(0, psn);
	eng_pair_run(5 * RWY_MS);
	while (sent(0) < 9) /* each of the four twice */
		eng_pair_run(10 * RWY_MS);
	answer_to(0, 4);
	for (unsigned i = 0; i < 3; i++) {
		eng_pair_run(300 * RWY_MS);
		answer_to(0, 4);
		assert_int_equal(partner(0), QPN_A);
		assert_int_equal(partner(1), 0);
	}
	answer(1);
	assert_int_equal(partner(1), QPN_A + 1);
	assert_int_equal(partner(0), QPN_A);
}

/*
 * No answer within its turn: another one begins only when the answer cannot come any more. Until
 * then an answer is for the one that had the turn.
 */
static void test_after_the_turn(void **state)
{
	eng_pair_run(1100 * RWY_MS);
	assert_int_equal(sent(1), 0);
	answer(0);
	assert_int_equal(partner(0), QPN_A);
	assert_int_equal(sent(1), 1);
	answer(1);
	assert_int_equal(partner(1), QPN_A + 1);
}

/*
 * The host answers nothing for longer than two turns, then everything: which queue pair its first
 * answer is for cannot be known, so it is not taken, and each is asked again.
 */
static void test_silent_for_turns(void **state)
{
	while (!sent(1))
		eng_pair_run(100 * RWY_MS);
	answer(0);
	answer(0); /* of a repeat */
	answer(1);
	assert_int_equal(partner(0), 0);
	assert_int_equal(partner(1), 0);
	for (unsigned i = 0, had = sent(1); i < 50 && sent(1) == had; i++)
		eng_pair_run(20 * RWY_MS);
	answer(1);
	assert_int_equal(partner(1), QPN_A + 1);
	assert_int_equal(partner(0), 0);
	answer(0);
	assert_int_equal(partner(0), QPN_A);
}

/* Only the flow that has its turn asks the host. */
static void test_waits_for_its_turn(void **state)
{
	unsigned had;

	while (!sent(1))
		eng_pair_run(10 * RWY_MS);
	had = sent(0);
	for (unsigned i = 0; i < 100; i++)
		eng_pair_run(10 * RWY_MS);
	assert_int_equal(sent(0), had);
}

/*
 * The near gateway dies in the turn of a queue pair, and the host falls silent in that turn. It may
 * answer much later, when no flow waited for a while, and then others do: its first answer is taken
 * for none of them.
 */
static void test_turn_cut_short(void **state)
{
	unsigned had;

	answer(0);
	assert_int_equal(sent(1), 1);
	eng_pair_run(100 * RWY_MS);
	eng_pair_restart(0);
	eng_pair_run(900 * RWY_MS);
	request(2);
	eng_pair_run(5 * RWY_MS);
	assert_true(sent(2) > 0);
	answer(1);
	answer(1); /* of a repeat */
	assert_int_equal(partner(2), 0);
	had = sent(2);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(sent(2), had);
	eng_pair_run(120 * RWY_MS);
	assert_int_equal(sent(2), had + 1);
	answer(2);
	assert_int_equal(partner(2), QPN_A + 2);
}

/* --- a gateway whose hosts still answer what the process before it asked -------------------------- */
static void follow(struct eng_cfg *c)
{
	c->follows = true;
}

static int set_up_second(void **state)
{
	eng_pair_tune = follow;
	return set_up(state);
}

static int tear_down_second(void **state)
{
	eng_pair_tune = NULL;
	return eng_pair_tear_down(state);
}

/* The first answers are for what was asked before: they are not taken, and the flow asks again. */
static void test_asked_before(void **state)
{
	answer(1);
	assert_int_equal(partner(0), 0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(sent(0), 2);
	assert_int_equal(sent(1), 0);
	answer(0);
	assert_int_equal(partner(0), QPN_A);
	answer(1); /* the doubt is over */
	assert_int_equal(partner(1), QPN_A + 1);
}

/* The same just after a turn, where an answer would be of the flow that had it. */
static void test_asked_before_late(void **state)
{
	eng_pair_run(1100 * RWY_MS);
	assert_int_equal(sent(1), 0);
	answer(1);
	assert_int_equal(partner(0), 0);
	while (!sent(1))
		eng_pair_run(10 * RWY_MS);
	answer(0);
	assert_int_equal(partner(0), 0);
	assert_int_equal(partner(1), 0);
}

/* --- a host that is silent because it expects an earlier PSN -------------------------------------- */
static roce_psn question;
static unsigned questions;

static void note_question(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (pkt->opcode != ROCE_RC_WRITE_ONLY || pkt->dqpn != QPN_B)
		return;
	assert_int_equal(pkt->payload_len, 0);
	question = pkt->psn;
	questions++;
}

static void test_silent_host(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = ROCE_PSN_MASK - 3,
	    .dqpn = QPN_A,
	    .syndrome = 0x1f,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};
	unsigned naks = site[0].of[0].naks;

	questions = 0;
	site[1].heard = note_question;
	eng_pair_run(45 * RWY_MS);
	assert_int_equal(questions, 0);
	while (!questions)
		eng_pair_run(10 * RWY_MS);
	assert_int_equal(question, ROCE_PSN_MASK + 1 - ROCE_OUTSTANDING_MAX);
	eng_host_sends(1, &m, 0); /* of the duplicate: it expects the PSN after this one */
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(partner(0), QPN_A);
	questions = 0; /* that could be the answer to something from before: it is asked again */
	for (unsigned i = 0; i < 200 && !questions; i++)
		eng_pair_run(RWY_MS);
	eng_host_sends(1, &m, 0);
	eng_pair_run(5 * RWY_MS);
	request(0);
	eng_pair_run(200 * RWY_MS);
	assert_int_equal(site[0].of[0].naks, naks + 1);
	assert_int_equal(site[0].of[0].acks, 0);
}

static void restart_both(void)
{
	eng_pair_restart(0);
	eng_pair_run(RWY_MS);
	eng_pair_restart(1);
	eng_pair_run(RWY_SEC);
}

/*
 * Both gateways start again, and the host at A goes on with PSN 5. Host B first acknowledges what the
 * process before had sent, then that: A is not sent back.
 */
static void test_acks_of_before(void **state)
{
	answer(0);
	for (roce_psn psn = 1; psn < 5; psn++)
		request_of(0, psn);
	eng_pair_run(5 * RWY_MS);
	restart_both();
	request_of(0, 5);
	eng_pair_run(5 * RWY_MS);
	answer_to(0, 2);
	answer_to(0, 4);
	assert_int_equal(site[0].of[0].naks, 0);
	answer_to(0, 5);
	request_of(0, 6);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[0].of[0].naks, 0);
	assert_int_equal(site[0].of[0].ack_psn, 6);
}

/* The same host lacks PSN 3: it says so when it is asked again. */
static void test_acks_after_before(void **state)
{
	unsigned had;

	restart_both();
	request_of(0, 5);
	eng_pair_run(5 * RWY_MS);
	answer_to(0, 2);
	had = sent(0);
	for (unsigned i = 0; i < 200 && sent(0) == had; i++)
		eng_pair_run(RWY_MS);
	assert_int_equal(site[0].of[0].naks, 0);
	answer_to(0, 2);
	eng_pair_run(5 * RWY_MS);
	request_of(0, 5);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[0].of[0].naks, 1);
	assert_int_equal(site[0].of[0].acks, 0);
}

#define TEST(t)   cmocka_unit_test_setup_teardown(t, set_up, eng_pair_tear_down)
#define SECOND(t) cmocka_unit_test_setup_teardown(t, set_up_second, tear_down_second)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_second_answer), TEST(test_many_answers),
	    TEST(test_after_the_turn), TEST(test_silent_for_turns), TEST(test_waits_for_its_turn),
	    TEST(test_silent_host), TEST(test_turn_cut_short), SECOND(test_asked_before),
	    SECOND(test_asked_before_late), TEST(test_acks_of_before), TEST(test_acks_after_before)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
