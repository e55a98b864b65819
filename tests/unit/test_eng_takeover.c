/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standby takes over (engine/takeover.c): what hosts had ACKs for is carried out once, in order,
 * and their connections go on, or they get an error.
 */
#include "tests/lib/eng_site_hosts.h"

#include "roce/psn.h"

#define TAKEN (SP_SILENCE + 20 * RWY_MS) /* time to notice the death and to ask the witness */

static const struct sp_host *a = &sp_host[SP_SITE_A];

static int begin_paired(void **state)
{
	int r = sp_set_up_paired(state);

	sh_begin();
	return r;
}

/* What is on its way between the sites is lost with it. */
static void active_dies(void)
{
	sp_link(SP_A_TO_B, SP_CUT);
	sp_link(SP_B_TO_A, SP_CUT);
	sp_kill(SP_A1);
	sp_run(SP_STEP);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_link(SP_B_TO_A, SP_GOOD);
	sp_cable(SP_GOOD);
}

static void taken(unsigned flows)
{
	sp_reach(SP_A2, "alone", TAKEN);
	assert_true(sp_gw[SP_A2].serves);
	assert_int_equal(sp_counters(SP_A2)->taken_over, flows);
	sp_run(2 * SH_SOON);
}

/* Nothing is stored, and nothing in custody. */
static void nothing_left(void)
{
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	assert_int_equal(eng_custody_bytes(sp_gw[SP_A2].e), 0);
}

/* The connection goes on: MSN `msn` comes with the ACK of request psn. */
static void goes_on(roce_psn psn, roce_msn msn)
{
	sh_request(psn);
	assert_true(sh_acked(psn));
	assert_int_equal(a->ack.msn, msn);
	assert_int_equal(a->naks, 0);
	assert_int_equal(sh_executed(psn), 1);
	sp_run(2 * SH_SOON);
	nothing_left();
}

/* --- requests ----------------------------------------------------------------------------------- */

static void test_undelivered(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	for (roce_psn p = 6; p < 9; p++)
		sh_request(p);
	assert_true(sh_acked(8));
	assert_int_equal(a->ack.msn, 4);
	active_dies();
	assert_int_equal(sh_b.done, 1);
	taken(1);
	sh_all_executed(9);
	assert_int_equal(sh_b.again, 0);
	nothing_left();
	goes_on(9, 5);
}

/* The host may wait for an ACK that died: it gets one, whether it asked for one or not. */
static void test_ack_at_once(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_quiet = true;
	sh_request(6);
	assert_int_equal(a->acks, 1);
	active_dies();
	taken(1);
	assert_true(sh_acked(6));
	assert_int_equal(a->ack.from, SP_A2);
	assert_int_equal(a->ack.msn, 2);
}

static void test_ack_not_sent(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sp_link(SP_2_TO_1, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(5));
	active_dies();
	taken(1);
	assert_true(sh_acked(6));
	sh_all_executed(7);
	goes_on(7, 3);
}

/* The far host has executed it, and the standby does not know. */
static void test_delivered_twice(void **state)
{
	sh_connect();
	sp_link(SP_1_TO_2, SP_HELD); /* RELEASE */
	sh_ask(6, ROCE_RC_SEND_ONLY);
	sp_run(2 * SP_STEP);
	sp_link(SP_1_TO_2, SP_GOOD);
	sp_run(SP_STEP);
	sp_link(SP_1_TO_2, SP_HELD);
	sp_run(SH_SOON);
	assert_true(sh_acked(6));
	assert_int_equal(sh_executed(6), 1);
	assert_true(sp_bytes(SP_A2, ENG_MEM_STORED) > 0);
	sp_link(SP_1_TO_2, SP_CUT);
	active_dies();
	taken(1);
	sh_all_executed(7);
	assert_int_equal(sh_b.again, 0);
	goes_on(7, 3);
}

/* The standby has only what came in time; the host repeats the rest. */
static void test_not_copied(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	sp_link(SP_1_TO_2, SP_CUT);
	sh_request(7);
	assert_true(sh_acked(6));
	active_dies();
	taken(1);
	sh_all_executed(7);
	assert_true(sh_acked(6));
	goes_on(7, 3);
}

/* The connection has nothing under way: it is there. */
static void test_idle(void **state)
{
	sh_connect();
	sp_run(RWY_SEC);
	active_dies();
	taken(1);
	goes_on(6, 2);
}

/* The next process is there before anybody noticed the death. */
static void test_restarts_at_once(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	active_dies();
	sp_start(SP_A1);
	sp_reach(SP_A2, "paired", RWY_SEC);
	sp_reach(SP_A1, "ready", SH_SOON);
	assert_int_equal(sp_counters(SP_A2)->taken_over, 1);
	sh_all_executed(7);
	assert_false(sp_gw[SP_A1].serves);
	goes_on(7, 3);
}

/* Host B has silence to offer until the connection is given up: host A gets an error. */
static void test_error_after(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	active_dies();
	sh_b.silent = true;
	taken(1);
	sp_run(30 * RWY_SEC);
	sh_request(7);
	assert_true(a->naks > 0);
	nothing_left();
}

/* --- READs and ATOMICs -------------------------------------------------------------------------- */

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
	active_dies();
	taken(1);
	for (unsigned i = 2; i < 5; i++)
		sh_b_reads(6, i);
	sp_run(SH_SOON);
	read_complete(6);
	goes_on(11, 3);
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
	active_dies();
	taken(1);
	read_complete(6);
	goes_on(11, 3);
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
	active_dies();
	taken(1);
	read_complete(6);
	read_complete(11);
	assert_true(sh_acked(16));
	assert_int_equal(sh_executed(16), 1);
	goes_on(17, 5);
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
	active_dies();
	taken(1);
	for (unsigned i = 3; i < 5; i++)
		sh_b_reads(6, i);
	sp_run(SH_SOON);
	for (unsigned i = 0; i < 5; i++)
		assert_true(responses(6 + i) >= 1);
	assert_int_equal(responses(8), 2);
	assert_int_equal(sh_b.done, 2);
	assert_int_equal(sh_b.again, 0);
	goes_on(11, 3);
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
	active_dies();
	taken(1);
	assert_int_equal(responses(6), 1);
	assert_int_equal(sh_executed(6), 1);
	assert_int_equal(sh_b.again, 0);
	goes_on(7, 3);
}

/* It was not executed. */
static void test_atomic_undelivered(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_ask(6, ROCE_RC_FETCH_ADD);
	sp_run(SH_SOON);
	active_dies();
	taken(1);
	assert_int_equal(sh_executed(6), 1);
	sh_b_sends(6, ROCE_RC_ATOMIC_ACK, 0x1f);
	sp_run(SH_SOON);
	assert_int_equal(responses(6), 1);
	goes_on(7, 3);
}

/* --- the gateway that was active ---------------------------------------------------------------- */

static void test_frozen(void **state)
{
	unsigned sent;

	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	sh_ask(7, ROCE_RC_SEND_ONLY);
	sp_run(SP_STEP); /* it has the request, and gave no ACK yet */
	sp_freeze(SP_A1, true);
	sp_link(SP_A_TO_B, SP_GOOD);
	taken(1);
	sh_request(7);
	sh_all_executed(8);
	sent = sp_gw[SP_A1].sent;
	sp_freeze(SP_A1, false);
	for (roce_psn p = 8; p < 12; p++)
		sh_request(p);
	sp_reach(SP_A1, "replaced", RWY_SEC);
	assert_int_equal(sp_gw[SP_A1].replaced, 1);
	assert_false(sp_gw[SP_A1].serves);
	sp_run(RWY_SEC);
	assert_int_equal(sp_gw[SP_A1].sent, sent);
	assert_int_equal(sp_gw[SP_A1].replaced, 1);
	sh_all_executed(12);
	assert_true(sh_acked(11));
	/* Its next process is the standby. */
	sp_kill(SP_A1);
	sp_start(SP_A1);
	sp_reach(SP_A2, "paired", RWY_SEC);
	sp_reach(SP_A1, "ready", SH_SOON);
	goes_on(12, 8);
}

/* The two take over from each other in turn. */
static void test_again_and_again(void **state)
{
	unsigned active = SP_A1;
	roce_psn psn = 6;

	sh_connect();
	for (unsigned i = 0; i < 6; i++, active = !active) {
		sp_link(SP_A_TO_B, SP_HELD);
		sh_request(psn++);
		sh_request(psn++);
		assert_true(sh_acked(psn - 1));
		sp_link(SP_A_TO_B, SP_CUT);
		sp_kill(active);
		sp_link(SP_A_TO_B, SP_GOOD);
		sp_reach(!active, "alone", TAKEN);
		sp_run(SH_SOON);
		sp_start(active);
		sp_reach(!active, "paired", RWY_SEC);
		sp_reach(active, "ready", SH_SOON);
		sp_run(SH_SOON); /* the witness knows that the tunnel may be taken */
		sh_all_executed(psn);
		assert_true(sh_acked(psn - 1));
		assert_int_equal(a->ack.msn, psn - SH_FIRST);
		assert_int_equal(sp_bytes(active, ENG_MEM_STORED), 0);
	}
	assert_int_equal(a->naks, 0);
}

/* --- connections in other states ---------------------------------------------------------------- */

/* No ACK was given: the host's repeated request begins the connection at the standby. */
static void test_unpaired(void **state)
{
	sh_b.silent = true;
	sh_ask(SH_FIRST, ROCE_RC_SEND_ONLY);
	sp_run(SH_SOON);
	assert_int_equal(a->acks, 0);
	active_dies();
	taken(0);
	sh_b.silent = false;
	sh_request(SH_FIRST);
	sp_run(RWY_SEC);
	sh_request(SH_FIRST);
	assert_true(sh_acked(SH_FIRST));
	sh_all_executed(SH_FIRST + 1);
	goes_on(6, 2);
}

#define NEW_PSN 0x8000u

/* Host A and host B created their QPs again, with the same numbers. */
static void new_connection(void)
{
	sp_run(RWY_SEC);
	sh_begin();
	sh_b.epsn = NEW_PSN;
	sh_request(NEW_PSN);
	sp_run(RWY_SEC);
	if (!sh_acked(NEW_PSN))
		sh_request(NEW_PSN);
	assert_true(sh_acked(NEW_PSN));
	assert_int_equal(sh_b.done, 1);
}

/* The standby has the new connection, and nothing of the old one. */
static void test_reuse(void **state)
{
	sh_connect();
	sh_request(6);
	new_connection();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(NEW_PSN + 1);
	assert_true(sh_acked(NEW_PSN + 1));
	active_dies();
	taken(1);
	assert_int_equal(sh_executed(NEW_PSN + 1), 1);
	assert_int_equal(sh_b.done, 2);
	assert_true(sh_acked(NEW_PSN + 1));
	goes_on(NEW_PSN + 2, 3);
}

/* The host began anew while nobody served. */
static void test_reuse_meanwhile(void **state)
{
	sh_connect();
	sh_request(6);
	active_dies();
	taken(1);
	new_connection();
	goes_on(NEW_PSN + 1, 2);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, begin_paired, sp_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_undelivered),
	    CASE(test_ack_at_once),
	    CASE(test_ack_not_sent),
	    CASE(test_delivered_twice),
	    CASE(test_not_copied),
	    CASE(test_idle),
	    CASE(test_restarts_at_once),
	    CASE(test_error_after),
	    CASE(test_read_in_the_middle),
	    CASE(test_read_lost),
	    CASE(test_read_and_more),
	    CASE(test_read_sent_just_now),
	    CASE(test_atomic),
	    CASE(test_atomic_undelivered),
	    CASE(test_frozen),
	    CASE(test_again_and_again),
	    CASE(test_unpaired),
	    CASE(test_reuse),
	    CASE(test_reuse_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
