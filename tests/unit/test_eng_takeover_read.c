/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READs and ATOMICs when the standby takes over (engine/takeover.c): the far host is asked once, and
 * the near host gets each answer.
 */
#include "tests/lib/eng_site_hosts.h"

static const struct sp_host *a = &sp_host[SP_SITE_A];

static int begin_paired(void **state)
{
	int r = sp_set_up_paired(state);

	sh_begin();
	return r;
}

static unsigned responses(roce_psn psn)
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->n; i++)
		n += a->heard[i].psn == psn && roce_op(a->heard[i].opcode)->op != ROCE_OP_ACK &&
		     roce_op_is_response(roce_op(a->heard[i].opcode));
	return n;
}

/* Each of the READ's responses came once. */
static void read_complete(roce_psn first)
{
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(responses(first + i), 1);
	assert_int_equal(sh_executed(first), 1);
	assert_int_equal(sh_b.again, 0);
}

static void begin_read(roce_psn psn)
{
	sh_ask(psn, ROCE_RC_READ_REQ);
	sp_run(SH_SOON);
	assert_int_equal(sh_executed(psn), 1);
	for (unsigned i = 0; i < 2; i++)
		sh_b_reads(psn, i);
	sp_run(SH_SOON); /* and the standby knows that they were sent */
	assert_int_equal(a->responses, 2);
}

/* Two responses were sent, and the others are not made yet. */
static void test_read_in_the_middle(void **state)
{
	sh_connect();
	begin_read(6);
	sh_active_dies();
	sh_taken(1);
	for (unsigned i = 2; i < 5; i++)
		sh_b_reads(6, i);
	sp_run(SH_SOON);
	read_complete(6);
	sh_goes_on(11, 3);
}

/* The others die on their way: the far gateway still has them. */
static void test_read_lost(void **state)
{
	sh_connect();
	begin_read(6);
	sp_link(SP_B_TO_A, SP_HELD);
	for (unsigned i = 2; i < 5; i++)
		sh_b_reads(6, i);
	sp_run(SH_SOON);
	sh_active_dies();
	sh_taken(1);
	read_complete(6);
	sh_goes_on(11, 3);
}

/* Two READs and a SEND after them; host B answers all. */
static void test_read_and_more(void **state)
{
	sh_connect();
	begin_read(6);
	sh_b.mute = true; /* an ACK would say that the answers before it are lost */
	sh_ask(11, ROCE_RC_READ_REQ);
	sh_ask(16, ROCE_RC_SEND_ONLY);
	sp_run(SH_SOON);
	sp_link(SP_B_TO_A, SP_HELD);
	for (unsigned i = 2; i < 10; i++)
		sh_b_reads(i < 5 ? 6 : 11, i % 5);
	sh_b.mute = false;
	sh_b_sends(16, ROCE_RC_ACK, 0x1f);
	sp_run(SH_SOON);
	sh_active_dies();
	sh_taken(1);
	read_complete(6);
	read_complete(11);
	assert_true(sh_acked(16));
	assert_int_equal(sh_executed(16), 1);
	sh_goes_on(17, 5);
}

/* A response that was sent a moment ago may have died in the NIC. The host asks for it, if so. */
static void test_read_sent_just_now(void **state)
{
	sh_connect();
	begin_read(6);
	sp_link(SP_1_TO_2, SP_HELD);
	sh_b_reads(6, 2);
	sp_run(4 * RWY_MS);
	assert_int_equal(a->responses, 3);
	sp_link(SP_1_TO_2, SP_CUT);
	sh_active_dies();
	sh_taken(1);
	for (unsigned i = 3; i < 5; i++)
		sh_b_reads(6, i);
	sp_run(SH_SOON);
	for (unsigned i = 0; i < 5; i++)
		assert_true(responses(6 + i) >= 1);
	assert_int_equal(responses(8), 2);
	assert_int_equal(sh_b.done, 2);
	assert_int_equal(sh_b.again, 0);
	sh_goes_on(11, 3);
}

/*
 * The requests reached the far host, and their copies died on the cable: the responses come to a
 * gateway that does not know the requests yet. The host repeats these.
 */
static void test_copies_lost(void **state)
{
	sh_connect();
	sp_link(SP_1_TO_2, SP_CUT);
	sh_b.mute = true;
	sh_ask(6, ROCE_RC_FETCH_ADD);
	sh_ask(7, ROCE_RC_READ_REQ);
	sh_ask(12, ROCE_RC_SEND_ONLY);
	sp_run(2 * SP_WAN_WAY);
	assert_int_equal(sh_executed(7), 1);
	sp_link(SP_B_TO_A, SP_HELD);
	sh_b_sends(6, ROCE_RC_ATOMIC_ACK, 0x1f);
	for (unsigned i = 0; i < 5; i++)
		sh_b_reads(7, i);
	sh_b.mute = false;
	sh_b_sends(12, ROCE_RC_ACK, 0x1f);
	sp_run(SP_STEP);
	sh_active_dies();
	sh_taken(1);
	assert_int_equal(a->responses, 0);
	sh_ask(6, ROCE_RC_FETCH_ADD);
	sp_run(SP_STEP);
	assert_int_equal(responses(6), 1);
	sh_ask(7, ROCE_RC_READ_REQ);
	sh_ask(12, ROCE_RC_SEND_ONLY);
	sp_run(SH_SOON);
	read_complete(7);
	assert_true(sh_acked(12));
	assert_int_equal(responses(6), 1);
	assert_int_equal(sh_executed(6), 1);
	assert_int_equal(sh_executed(12), 1);
	sh_goes_on(13, 5);
}

/* It was executed, and its answer died. */
static void test_atomic(void **state)
{
	sh_connect();
	sh_ask(6, ROCE_RC_FETCH_ADD);
	sp_run(SH_SOON);
	assert_int_equal(sh_executed(6), 1);
	sp_link(SP_B_TO_A, SP_HELD);
	sh_b_sends(6, ROCE_RC_ATOMIC_ACK, 0x1f);
	sp_run(SH_SOON);
	assert_int_equal(a->responses, 0);
	sh_active_dies();
	sh_taken(1);
	assert_int_equal(responses(6), 1);
	assert_int_equal(sh_executed(6), 1);
	assert_int_equal(sh_b.again, 0);
	sh_goes_on(7, 3);
}

/* It was not executed. */
static void test_atomic_undelivered(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_ask(6, ROCE_RC_FETCH_ADD);
	sp_run(SH_SOON);
	sh_active_dies();
	sh_taken(1);
	assert_int_equal(sh_executed(6), 1);
	sh_b_sends(6, ROCE_RC_ATOMIC_ACK, 0x1f);
	sp_run(SH_SOON);
	assert_int_equal(responses(6), 1);
	sh_goes_on(7, 3);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, begin_paired, sp_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_read_in_the_middle),
	    CASE(test_read_lost),
	    CASE(test_read_and_more),
	    CASE(test_read_sent_just_now),
	    CASE(test_copies_lost),
	    CASE(test_atomic),
	    CASE(test_atomic_undelivered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
