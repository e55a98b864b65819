/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ack mode `site` (engine/copy.h): which ACKs and answers wait for copies at the standby gateway, what
 * it stores, and until when.
 */
#include "tests/lib/eng_site_hosts.h"

static void hold(void)
{
	sp_link(SP_1_TO_2, SP_HELD);
}

static void let_go(void)
{
	sp_link(SP_1_TO_2, SP_GOOD);
	sp_run(SH_SOON);
}

static void test_ack_waits(void **state)
{
	sh_connect();
	assert_int_equal(sp_counters(SP_A1)->copies_sent, 1);
	hold();
	sh_request(6);
	assert_int_equal(sh_executed(6), 1); /* it need not wait to go there */
	assert_true(sh_acked(5));
	let_go();
	assert_true(sh_acked(6));
	assert_int_equal(sp_host[SP_SITE_A].ack.msn, 2);
	assert_int_equal(sp_counters(SP_A1)->copies_sent, 2);
}

/* The standby has it, and the active gateway does not know. */
static void test_ack_waits_for_confirmation(void **state)
{
	sh_connect();
	sp_link(SP_2_TO_1, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(5));
	sp_link(SP_2_TO_1, SP_GOOD);
	sp_run(SH_SOON);
	assert_true(sh_acked(6));
}

/* The next process of the standby gets the copy that the one before it did not, and no others. */
static void test_ack_waits_for_the_same_process(void **state)
{
	sh_connect();
	hold();
	sp_link(SP_B_TO_A, SP_HELD); /* the witness's word */
	sh_ask(6, ROCE_RC_SEND_ONLY);
	sp_run(RWY_MS);
	sp_kill(SP_A2);
	sp_start(SP_A2);
	let_go();
	assert_string_equal(sp_state(SP_A1), "losing");
	sp_run(SH_SOON);
	assert_true(sh_acked(5));
	sp_link(SP_B_TO_A, SP_GOOD);
	sp_run(SH_SOON);
	assert_true(sh_acked(6));
	sh_all_executed(7);
}

/* An answer says that the far host has all before it, and nothing of that may be lost. */
static void test_read_waits(void **state)
{
	sh_connect();
	hold();
	sh_request(6);
	sh_ask(7, ROCE_RC_READ_REQ);
	sp_run(4 * RWY_MS);
	assert_int_equal(sh_executed(7), 1);
	for (unsigned i = 0; i < 5; i++)
		sh_b_reads(7, i);
	sp_run(4 * RWY_MS);
	assert_int_equal(sp_host[SP_SITE_A].responses, 0);
	assert_true(sp_bytes(SP_A1, ENG_MEM_COPIES) > 0);
	let_go();
	assert_int_equal(sp_host[SP_SITE_A].responses, 5);
	assert_int_equal(sp_bytes(SP_A1, ENG_MEM_COPIES), 0);
}

/* A NAK of a gap acknowledges all before it. */
static void test_nak_waits(void **state)
{
	sh_connect();
	hold();
	sh_ask(6, ROCE_RC_SEND_ONLY);
	sh_ask(8, ROCE_RC_SEND_ONLY);
	sp_run(SH_SOON);
	assert_int_equal(sp_host[SP_SITE_A].naks, 0);
	let_go();
	assert_int_equal(sp_host[SP_SITE_A].naks, 1);
	sh_request(7);
	sh_request(8);
	assert_true(sh_acked(8));
	sh_all_executed(9);
}

#define COST 4096

static void little_custody(struct eng_cfg *c, unsigned gw)
{
	c->buf_cost = COST;
	c->custody_conn = 3 * COST;
}

static int custody_set_up(void **state)
{
	int r;

	sp_tune = little_custody;
	r = sp_set_up_paired(state);
	sh_begin();
	return r;
}

/* ACKs wait for memory. A host whose timer ran out gets one, if the standby has the request. */
static void test_single_ack_waits(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	sh_request(7);
	assert_true(sh_acked(7));
	hold();
	sh_ask(8, ROCE_RC_SEND_ONLY);
	sp_run(4 * RWY_MS);
	sh_ask(8, ROCE_RC_SEND_ONLY);
	sp_run(4 * RWY_MS);
	assert_true(sh_acked(7));
	let_go();
	assert_true(sh_acked(7));
	assert_int_equal(sp_counters(SP_A1)->ack_single, 0);
	sh_request(8);
	assert_true(sh_acked(8));
	assert_int_equal(sp_counters(SP_A1)->ack_single, 1);
}

/* Without a standby no ACK waits. */
static void test_alone_as_near(void **state)
{
	sh_connect();
	sp_kill(SP_A2);
	sp_reach(SP_A1, "alone", 2 * SP_SILENCE);
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	assert_int_equal(sh_executed(6), 0);
	assert_int_equal(sp_bytes(SP_A1, ENG_MEM_COPIES), 0);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_run(SH_SOON);
	sh_all_executed(7);
}

static void mode_near(struct eng_cfg *c, unsigned gw)
{
	c->ack_mode = ENG_ACK_NEAR;
}

static int near_set_up(void **state)
{
	int r;

	sp_tune = mode_near;
	r = sp_set_up_paired(state);
	sh_begin();
	return r;
}

static void test_near_is_not_copied(void **state)
{
	sh_connect();
	hold();
	sh_request(6);
	assert_true(sh_acked(6));
	let_go();
	assert_int_equal(sp_counters(SP_A1)->copies_sent, 0);
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
}

/* Nothing is stored that the far host has. */
static void test_release(void **state)
{
	struct eng_standby_info i;

	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	for (roce_psn p = 6; p < 10; p++)
		sh_request(p);
	assert_true(sh_acked(9));
	assert_true(sp_bytes(SP_A2, ENG_MEM_STORED) > 0);
	assert_true(eng_standby_info(sp_gw[SP_A2].e, &i));
	assert_int_equal(i.flows, 1);
	assert_int_equal(i.bytes, sp_bytes(SP_A2, ENG_MEM_STORED));
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_run(2 * SH_SOON);
	sh_all_executed(10);
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	assert_int_equal(sp_bytes(SP_A1, ENG_MEM_COPIES), 0);
	sh_ask(10, ROCE_RC_READ_REQ);
	sp_run(SH_SOON);
	for (unsigned n = 0; n < 5; n++) {
		assert_true(sp_bytes(SP_A2, ENG_MEM_STORED) > 0);
		sh_b_reads(10, n);
		sp_run(SH_SOON);
	}
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
}

/* --- a standby without memory ------------------------------------------------------------------- */

#define STORE (16 * COST)

static void little_memory(struct eng_cfg *c, unsigned gw)
{
	c->buf_cost = COST;
	if (gw == SP_A2)
		c->custody_conn = c->custody_total = c->memory_conn = c->memory_total = STORE;
}

static int little_set_up(void **state)
{
	int r;

	sp_tune = little_memory;
	r = sp_set_up_paired(state);
	sh_begin();
	return r;
}

/* The active gateway goes on alone when the witness agrees, and tries again a second later. */
static void test_store_full(void **state)
{
	rwy_time since;
	uint64_t copies;

	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	for (roce_psn p = 6; p < 6 + 20; p++) {
		sh_ask(p, ROCE_RC_SEND_ONLY);
		sp_run(SP_STEP);
	}
	sp_run(SH_SOON);
	assert_int_equal(sp_counters(SP_A2)->drop_store_full, 1);
	assert_true(sp_counters(SP_A1)->copy_failed > 0);
	assert_string_equal(sp_state(SP_A1), "losing");
	assert_false(sh_acked(25));
	since = sp_now; /* at the latest */
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_reach(SP_A1, "alone", SH_SOON);
	sp_run(SH_SOON);
	assert_true(sh_acked(25));
	sh_all_executed(26);
	copies = sp_counters(SP_A1)->copies_sent;
	sp_run(since + RWY_SEC - 3 * SH_SOON - sp_now);
	assert_string_equal(sp_state(SP_A1), "alone");
	assert_string_equal(sp_state(SP_A2), "storing");
	assert_int_equal(sp_counters(SP_A1)->copies_sent, copies);
	sp_reach(SP_A1, "paired", 8 * SH_SOON);
	sp_reach(SP_A2, "ready", SH_SOON);
	assert_int_equal(sp_gw[SP_A1].told, 1);
}

static int begin_paired(void **state)
{
	int r = sp_set_up_paired(state);

	sh_begin();
	return r;
}

/*
 * No buffer is left in the turn that copies all connections: the gateway has no standby then, and
 * tries again.
 */
static void test_no_buffer_for_copies(void **state)
{
	sh_begin();
	sp_start(SP_B);
	sp_start(SP_A1);
	sp_reach(SP_A1, "alone", 4 * SP_WAIT);
	sh_connect();
	sh_b.silent = true;
	sh_request(6);
	sp_start(SP_A2);
	while (strcmp(sp_state(SP_A2), "storing"))
		sp_run(SP_STEP);
	sp_gw[SP_A1].starved = true;
	while (!sp_counters(SP_A1)->copy_failed)
		sp_run(SP_STEP);
	sp_gw[SP_A1].starved = false;
	sp_reach(SP_A1, "paired", 5 * RWY_SEC);
	sh_request(7);
	assert_true(sh_acked(7));
}

#define PAIRED(t) cmocka_unit_test_setup_teardown(t, begin_paired, sp_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    PAIRED(test_ack_waits),
	    PAIRED(test_ack_waits_for_confirmation),
	    PAIRED(test_ack_waits_for_the_same_process),
	    PAIRED(test_read_waits),
	    PAIRED(test_nak_waits),
	    cmocka_unit_test_setup_teardown(test_no_buffer_for_copies, sp_set_up, sp_tear_down),
	    cmocka_unit_test_setup_teardown(test_single_ack_waits, custody_set_up, sp_tear_down),
	    PAIRED(test_alone_as_near),
	    cmocka_unit_test_setup_teardown(test_near_is_not_copied, near_set_up, sp_tear_down),
	    PAIRED(test_release),
	    cmocka_unit_test_setup_teardown(test_store_full, little_set_up, sp_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
