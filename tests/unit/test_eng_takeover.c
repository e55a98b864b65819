/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standby takes over (engine/takeover.c): what hosts had ACKs for is carried out once, in order,
 * and their connections go on, or they get an error.
 */
#include "tests/lib/eng_site_hosts.h"

static const struct sp_host *a = &sp_host[SP_SITE_A];

static int begin_paired(void **state)
{
	int r = sp_set_up_paired(state);

	sh_begin();
	return r;
}

/* Nothing is stored, and nothing in custody. */
static void nothing_left(void)
{
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	assert_int_equal(eng_custody_bytes(sp_gw[SP_A2].e), 0);
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
	sh_active_dies();
	assert_int_equal(sh_b.done, 1);
	sh_taken(1);
	sh_all_executed(9);
	assert_int_equal(sh_b.again, 0);
	nothing_left();
	sh_goes_on(9, 5);
}

/*
 * The host may wait for an ACK that died, or for its timer after packets that died: it gets a NAK,
 * which is both, whether it asked for an ACK or not.
 */
static void test_ack_at_once(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_quiet = true;
	sh_request(6);
	assert_int_equal(a->acks, 1);
	sh_active_dies();
	sh_taken(1);
	assert_true(sh_acked(6));
	assert_true(sp_gw[SP_A2].asked >= 1);
	assert_int_equal(a->ack.from, SP_A2);
	assert_int_equal(a->ack.msn, 2);
	for (unsigned i = 0; i < a->n; i++)
		if (a->heard[i].from == SP_A2) { /* a NAK alone would name a PSN that the host never sent */
			assert_int_equal(a->heard[i].psn, 6);
			assert_int_equal(roce_aeth_type(a->heard[i].syndrome), ROCE_AETH_ACK);
			return;
		}
	fail();
}

/* The first NAK may be lost where the LAN does not know yet where the host's address is. */
static void test_asks_again(void **state)
{
	sh_connect();
	sh_active_dies();
	sh_taken(1);
	sp_run(RWY_SEC);
	assert_int_equal(sp_gw[SP_A2].asked, SP_ASKS);
	assert_int_equal(a->naks, 0);
	sh_goes_on(6, 2);
}

/* A host that goes on has heard it. */
static void test_asks_no_more(void **state)
{
	unsigned asked;

	sh_connect();
	sh_active_dies();
	sp_reach(SP_A2, "alone", SH_TAKEN);
	sp_run(10 * SP_STEP);
	sh_goes_on(6, 2);
	asked = sp_gw[SP_A2].asked;
	assert_true(asked && asked < SP_ASKS);
	sp_run(RWY_SEC);
	assert_int_equal(sp_gw[SP_A2].asked, asked);
}

/*
 * All is delivered, and the host's next two requests were lost with the gateway. Its third one, a
 * round trip later, seems to begin a new connection. It goes on by the NAK that asked for them.
 */
static void test_gap(void **state)
{
	unsigned gaps;

	sh_connect();
	sh_active_dies();
	sh_taken(1);
	sp_run(SH_SOON);
	gaps = sh_b.gaps;
	sh_request(8);
	for (roce_psn p = 6; p < 10; p++) {
		sh_ask(p, ROCE_RC_SEND_ONLY);
		sp_run(2 * SP_STEP);
		assert_true(sh_acked(p)); /* at once: nobody asks host B first */
	}
	sp_run(SH_SOON);
	sh_all_executed(10);
	assert_int_equal(sh_b.gaps, gaps);
}

/* But a host that does not follow the NAKs has begun anew. */
static void test_gap_of_new_connection(void **state)
{
	sh_connect();
	sh_active_dies();
	sh_taken(1);
	sp_run(SH_SOON);
	sh_b.epsn = 1000; /* so has host B */
	sh_b.done = 0;
	for (unsigned i = 0; i < 12; i++) {
		sh_request(1000);
		sp_run(5 * RWY_MS);
	}
	sp_run(RWY_SEC);
	assert_true(sh_acked(1000));
	assert_int_equal(sh_executed(1000), 1);
}

static void test_ack_not_sent(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sp_link(SP_2_TO_1, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(5));
	sh_active_dies();
	sh_taken(1);
	assert_true(sh_acked(6));
	sh_all_executed(7);
	sh_goes_on(7, 3);
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
	sh_active_dies();
	sh_taken(1);
	sh_all_executed(7);
	assert_int_equal(sh_b.again, 0);
	sh_goes_on(7, 3);
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
	sh_active_dies();
	sh_taken(1);
	sh_all_executed(7);
	assert_true(sh_acked(6));
	sh_goes_on(7, 3);
}

/* The connection has nothing under way: it is there. */
static void test_idle(void **state)
{
	sh_connect();
	sp_run(RWY_SEC);
	sh_active_dies();
	sh_taken(1);
	sh_goes_on(6, 2);
}

/* The next process is there before anybody noticed the death. */
static void test_restarts_at_once(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	sh_active_dies();
	sp_start(SP_A1);
	sp_reach(SP_A2, "paired", RWY_SEC);
	sp_reach(SP_A1, "ready", SH_SOON);
	assert_int_equal(sp_counters(SP_A2)->taken_over, 1);
	sh_all_executed(7);
	assert_false(sp_gw[SP_A1].serves);
	sh_goes_on(7, 3);
}

/*
 * The standby settles when it takes over, and acknowledges nothing. It is not settled before what the
 * gateway before acknowledged is delivered, also to a host that is silent.
 */
static void test_settles(void **state)
{
	struct eng_settle_info i;

	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_quiet = true;
	sh_request(6);
	sp_run(SH_SOON);
	eng_settle_begin(sp_gw[SP_A2].e, sp_now);
	sh_b.silent = true;
	sh_active_dies();
	sh_taken(1);
	eng_settle_get(sp_gw[SP_A2].e, &i);
	assert_int_equal(i.flows, 1);
	assert_int_equal(i.state, ENG_SETTLING);
	sh_b.silent = false;
	sp_run(SH_SOON * 10);
	eng_settle_get(sp_gw[SP_A2].e, &i);
	assert_int_equal(i.state, ENG_SETTLED);
}

/* Host B has silence to offer until the connection is given up: host A gets an error. */
static void test_error_after(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	sh_active_dies();
	sh_b.silent = true;
	sh_taken(1);
	sp_run(30 * RWY_SEC);
	sh_request(7);
	assert_true(a->naks > 0);
	nothing_left();
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
	sh_taken(1);
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
	sh_goes_on(12, 8);
}

/* The other one served meanwhile, and has just started again: only the witness knows. */
static void test_frozen_longer(void **state)
{
	sh_connect();
	sp_freeze(SP_A1, true);
	sh_taken(1);
	sp_kill(SP_A2);
	sp_start(SP_A2);
	sp_run(SH_SOON);
	sp_freeze(SP_A1, false);
	for (unsigned i = 0; i < 20; i++) {
		sh_ask(6, ROCE_RC_SEND_ONLY);
		sp_run(2 * SP_STEP);
	}
	assert_string_equal(sp_state(SP_A1), "replaced");
	assert_true(sh_acked(5));
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
		sp_reach(!active, "alone", SH_TAKEN);
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
	sh_active_dies();
	sh_taken(0);
	sh_b.silent = false;
	sh_request(SH_FIRST);
	sp_run(RWY_SEC);
	sh_request(SH_FIRST);
	assert_true(sh_acked(SH_FIRST));
	sh_all_executed(SH_FIRST + 1);
	sh_goes_on(6, 2);
}

/*
 * Host A was sent back to what host B expects (REWIND): neither gateway acknowledges anything before
 * B has executed a request.
 */
static void test_rewound(void **state)
{
	sh_b.epsn = SH_FIRST - 1;
	sh_request(SH_FIRST);
	assert_int_equal(a->naks, 1);
	sh_b.silent = true;
	sh_request(SH_FIRST - 1);
	sh_request(SH_FIRST);
	assert_int_equal(a->acks, 0);
	sh_active_dies();
	sh_taken(1);
	sh_request(SH_FIRST + 1);
	assert_int_equal(a->acks, 0);
	sh_b.silent = false;
	sp_run(RWY_SEC);
	assert_int_equal(sh_b.done, 3);
	assert_true(sh_acked(SH_FIRST + 1));
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
	sh_active_dies();
	sh_taken(1);
	assert_int_equal(sh_executed(NEW_PSN + 1), 1);
	assert_int_equal(sh_b.done, 2);
	assert_true(sh_acked(NEW_PSN + 1));
	sh_goes_on(NEW_PSN + 2, 3);
}

/* The host began anew while nobody served. */
static void test_reuse_meanwhile(void **state)
{
	sh_connect();
	sh_request(6);
	sh_active_dies();
	sh_taken(1);
	new_connection();
	sh_goes_on(NEW_PSN + 1, 2);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, begin_paired, sp_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_undelivered),
	    CASE(test_ack_at_once),
	    CASE(test_asks_again),
	    CASE(test_asks_no_more),
	    CASE(test_gap),
	    CASE(test_gap_of_new_connection),
	    CASE(test_ack_not_sent),
	    CASE(test_delivered_twice),
	    CASE(test_not_copied),
	    CASE(test_idle),
	    CASE(test_restarts_at_once),
	    CASE(test_settles),
	    CASE(test_error_after),
	    CASE(test_frozen),
	    CASE(test_frozen_longer),
	    CASE(test_again_and_again),
	    CASE(test_unpaired),
	    CASE(test_rewound),
	    CASE(test_reuse),
	    CASE(test_reuse_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
