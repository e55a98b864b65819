/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settling (engine/settle.h) in two engines with a perfect WAN: what was promised to host A reaches
 * host B, nothing new is promised, and A's connection goes on.
 */
#include "tests/lib/eng_pair.h"

#define QPN_A 0x51
#define QPN_B 0x50
#define SOON  (8 * RWY_MS) /* a round trip and a pass; less than CLOSING lasts */

static uint32_t qp;          /* added to both QPNs */
static rwy_dur after = SOON; /* each packet */

static void ask(roce_psn psn, uint8_t opcode)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = QPN_B + qp,
	    .ack_req = true,
	    .len = 64,
	    .payload_len = opcode == ROCE_RC_SEND_ONLY ? 64 : 0,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
	eng_pair_run(after);
}

static void request(roce_psn psn)
{
	ask(psn, ROCE_RC_SEND_ONLY);
}

static void answer_by(roce_psn psn, uint8_t opcode)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = QPN_A + qp,
	    .syndrome = 0x1f,
	    .msn = psn - 4,
	    .payload_len = opcode == ROCE_RC_ACK ? 0 : 64,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
	eng_pair_run(after);
}

static void answer(roce_psn psn)
{
	answer_by(psn, ROCE_RC_ACK);
}

static void assert_settle(enum eng_settle_state state, uint32_t flows)
{
	struct eng_settle_info i;

	eng_settle_get(site[0].e, &i);
	assert_int_equal(i.state, state);
	assert_int_equal(i.flows, flows);
	assert_int_equal(i.bytes != 0, flows != 0);
}

static void begin(void)
{
	eng_settle_begin(site[0].e, eng_now);
	eng_pair_run(SOON);
}

static void cancel(void)
{
	eng_settle_cancel(site[0].e, eng_now);
}

static bool acked_to(roce_psn psn)
{
	return site[0].of[0].acks && site[0].of[0].ack_psn == psn;
}

/* Host B has request 5 and not 6; host A has ACKs for both. */
static void owing(void)
{
	request(5);
	answer(5);
	request(6);
	assert_true(acked_to(6));
	assert_int_equal(site[1].psn, 6);
}

static void test_idle(void **state)
{
	assert_settle(ENG_SERVING, 0);
	begin();
	assert_settle(ENG_SETTLED, 0);
}

static void test_waits_for_what_was_promised(void **state)
{
	owing();
	begin();
	assert_settle(ENG_SETTLING, 1);
	assert_string_equal(eng_pair_flow(0).limit, "drain");
	eng_pair_run(200 * RWY_MS);
	assert_settle(ENG_SETTLING, 1);
	answer(6);
	eng_pair_run(SOON);
	assert_settle(ENG_SETTLED, 0);
}

/* A request that comes meanwhile goes to host B at once, and is acknowledged when B has it. */
static void test_promises_nothing_new(void **state)
{
	owing();
	begin();
	request(7);
	assert_true(acked_to(6));
	answer(6);
	eng_pair_run(SOON);
	assert_true(acked_to(6));
	assert_int_equal(site[1].psn, 7);
	assert_settle(ENG_SETTLED, 0); /* although 7 is in custody */
	assert_true(eng_custody_bytes(site[0].e) > 0);
	answer(7);
	assert_true(acked_to(7));
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	assert_settle(ENG_SETTLED, 0);
}

static uint64_t refused(void)
{
	return eng_counters(site[0].e)->drop_draining;
}

/* Host A waits: its request is dropped as if it were lost, and it sends it again. */
static void test_settled_takes_nothing(void **state)
{
	owing();
	answer(6);
	begin();
	assert_settle(ENG_SETTLED, 0);
	request(7);
	ask(8, ROCE_RC_READ_REQ);
	assert_int_equal(refused(), 2);
	request(6); /* a late duplicate, which may be the first request of a new connection */
	assert_int_equal(refused(), 3);
	assert_int_equal(site[0].of[0].naks, 0);
	assert_int_equal(site[1].psn, 6);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	cancel();
	eng_pair_run(SOON);
	request(7);
	assert_true(acked_to(7));
	assert_int_equal(site[1].psn, 7);
}

/* The first request of a new connection likewise. */
static void test_new_connection_waits(void **state)
{
	begin();
	request(5);
	assert_int_equal(refused(), 1);
	assert_int_equal(site[1].requests, 0);
	cancel();
	request(5);
	answer(5);
	assert_true(acked_to(5));
}

/* Its timer ran out: one ACK saves the retry count, and is owed, too, before the end. */
static void test_single_acks(void **state)
{
	owing();
	begin();
	request(7);
	request(8);
	request(7);
	assert_true(acked_to(7));
	answer(6);
	assert_settle(ENG_CLOSING, 1);
	request(8); /* no more of them */
	assert_true(acked_to(7));
	answer(7);
	eng_pair_run(SOON);
	assert_settle(ENG_SETTLED, 0);
	request(8);
	assert_true(acked_to(7));
}

/* The end takes too long: hosts get single ACKs again. */
static void test_closing_is_short(void **state)
{
	owing();
	begin();
	request(7);
	request(8);
	request(7);
	answer(6);
	eng_pair_run(200 * RWY_MS);
	assert_settle(ENG_SETTLING, 1);
	request(8);
	assert_true(acked_to(8));
	answer(8);
	eng_pair_run(SOON);
	assert_settle(ENG_SETTLED, 0);
}

static void test_cancel(void **state)
{
	owing();
	begin();
	request(7);
	cancel();
	assert_settle(ENG_SERVING, 0);
	request(8);
	assert_true(acked_to(8));
	begin();
	assert_settle(ENG_SETTLING, 1);
	answer(8);
	eng_pair_run(SOON);
	assert_settle(ENG_SETTLED, 0);
	cancel();
	eng_pair_run(SOON);
	request(9);
	assert_true(acked_to(9));
}

/*
 * The far gateway believes that nothing is owed: before it knows better, requests are acknowledged
 * when host B has them.
 */
static void test_serves_again_when_heard(void **state)
{
	owing();
	answer(6);
	begin();
	assert_settle(ENG_SETTLED, 0);
	eng_pair_cut(true);
	cancel();
	request(7);
	request(7);
	assert_true(acked_to(6));
	eng_pair_cut(false);
	eng_pair_run(RWY_SEC);
	answer(7);
	assert_true(acked_to(7));
	request(8);
	assert_true(acked_to(8));
}

/* It need not be asked twice. */
static void test_begin_again(void **state)
{
	owing();
	begin();
	begin();
	assert_settle(ENG_SETTLING, 1);
	answer(6);
	eng_pair_run(SOON);
	begin();
	assert_settle(ENG_SETTLED, 0);
}

/* A READ's answer is waited for. With it nothing is owed, however long DELIVERED takes. */
static void test_read(void **state)
{
	owing();
	answer(6);
	ask(7, ROCE_RC_READ_REQ);
	begin();
	assert_settle(ENG_CLOSING, 1);
	eng_pair_delay(500 * RWY_MS);
	answer_by(7, ROCE_RC_READ_RESP_ONLY);
	eng_pair_run(650 * RWY_MS);
	assert_int_equal(site[0].responses, 1);
	assert_true(eng_custody_bytes(site[0].e) > 0);
	assert_settle(ENG_SETTLED, 0);
}

/* More connections than one step looks at: each counts, and none is passed over. */
#define MANY 700
static void large(struct eng_cfg *c)
{
	c->conns_max = 4 * MANY;
}

static int large_set_up(void **state)
{
	eng_pair_tune = large;
	return eng_pair_set_up(state);
}

static void test_many(void **state)
{
	for (qp = 0; qp < 2 * MANY; qp += 2) {
		request(5);
		answer(5);
	}
	after = 0;
	for (qp = 2; qp < 2 * MANY; qp += 4)
		request(6);
	after = SOON;
	eng_settle_begin(site[0].e, eng_now);
	eng_pair_run(SOON);
	assert_settle(ENG_SETTLING, MANY / 2);
	after = 0;
	for (qp = 2; qp < 2 * MANY; qp += 4)
		answer(6);
	after = SOON;
	qp = 0;
	eng_pair_run(4 * SOON);
	assert_settle(ENG_SETTLED, 0);
}

#define ENTRIES 16
static struct eng_journal_entry journal[ENTRIES];
static bool keep_journal; /* of the process before */

static void with_journal(struct eng_cfg *c)
{
	if (c->seed != 1) /* site 1 has none */
		return;
	if (!keep_journal)
		memset(journal, 0, sizeof(journal));
	c->journal = journal;
	c->journal_n = ENTRIES;
}

static int journal_set_up(void **state)
{
	eng_pair_tune = with_journal;
	return eng_pair_set_up(state);
}

static unsigned entries(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ENTRIES; i++)
		n += journal[i].used;
	return n;
}

/* The next process has to ask about a promise. */
static int one_entry(void **state)
{
	eng_pair_tune = NULL;
	return eng_pair_tear_down(state) || entries() != 1;
}

/* There is nothing to ask, and QPNs may be used anew meanwhile. */
static int no_entry(void **state)
{
	eng_pair_tune = NULL;
	return eng_pair_tear_down(state) || entries() != 0;
}

static void test_journal_stays(void **state)
{
	owing();
	begin();
	assert_int_equal(entries(), 1);
}

static void test_journal_is_empty(void **state)
{
	test_journal_stays(state);
	answer(6);
	eng_pair_run(SOON);
	assert_settle(ENG_SETTLED, 0);
	assert_int_equal(entries(), 1); /* a cancelled drain needs it */
}

static void mode_far(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_FAR;
}

/* In mode far what the far gateway has is acknowledged, but not before the end. */
static void test_far(void **state)
{
	owing();
	begin();
	assert_settle(ENG_SETTLING, 1);
	request(7);
	assert_true(acked_to(6));
	answer(7);
	eng_pair_run(SOON);
	assert_true(acked_to(7));
	assert_settle(ENG_SETTLED, 0);
}

static int far_set_up(void **state)
{
	eng_pair_tune = mode_far;
	return eng_pair_set_up(state);
}

static int tuned_tear_down(void **state)
{
	eng_pair_tune = NULL;
	return eng_pair_tear_down(state);
}

/* A flow that ends owes nothing any more: its host gets an error. */
static void test_failed(void **state)
{
	owing();
	begin();
	assert_settle(ENG_SETTLING, 1);
	eng_pair_run(30 * RWY_SEC); /* B is silent */
	assert_settle(ENG_SETTLED, 0);
	assert_string_equal(eng_pair_flow(0).state, "failed");
}

/* Host A does not know yet that its connection failed: the next process tells it. */
static void test_failed_is_kept(void **state)
{
	owing();
	begin();
	eng_pair_run(30 * RWY_SEC); /* B is silent */
	assert_settle(ENG_SETTLED, 0);
	assert_int_equal(site[0].of[0].naks, 0);
	keep_journal = true;
	assert_int_equal(eng_pair_tear_down(state), 0);
	assert_int_equal(entries(), 1);
	assert_int_equal(eng_pair_set_up(state), 0);
	eng_pair_run(SOON);
	after = 0;
	request(7);
	request(8); /* of the same burst: no new connection */
	after = SOON;
	eng_pair_run(SOON);
	assert_true(site[0].of[0].naks > 0);
	assert_int_equal(site[1].requests, 0);
	keep_journal = false;
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, eng_pair_set_up, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_idle),
	    CASE(test_waits_for_what_was_promised),
	    CASE(test_promises_nothing_new),
	    CASE(test_single_acks),
	    CASE(test_closing_is_short),
	    CASE(test_cancel),
	    CASE(test_serves_again_when_heard),
	    CASE(test_begin_again),
	    CASE(test_read),
	    CASE(test_settled_takes_nothing),
	    CASE(test_new_connection_waits),
	    CASE(test_failed),
	    cmocka_unit_test_setup_teardown(test_many, large_set_up, tuned_tear_down),
	    cmocka_unit_test_setup_teardown(test_journal_stays, journal_set_up, one_entry),
	    cmocka_unit_test_setup_teardown(test_journal_is_empty, journal_set_up, no_entry),
	    cmocka_unit_test_setup_teardown(test_failed_is_kept, journal_set_up, one_entry),
	    cmocka_unit_test_setup_teardown(test_far, far_set_up, tuned_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
