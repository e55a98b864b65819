/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standby gateway (engine/standby.h): which of a pair serves, and which ACKs wait for copies.
 * test_eng_takeover.c has what the standby makes of its copies.
 */
#include "tests/lib/eng_site_hosts.h"

#define LONG (10 * RWY_SEC)

static unsigned serving(void)
{
	return sp_gw[SP_A1].serves + sp_gw[SP_A2].serves;
}

static bool alone(unsigned gw)
{
	return !strcmp(sp_state(gw), "alone") || !strcmp(sp_state(gw), "copying");
}

/* Both may not acknowledge without asking anybody, at any time. */
static void run_checked(rwy_dur time)
{
	for (rwy_time end = sp_now + time; sp_now < end;) {
		sp_run(SP_STEP);
		assert_false(alone(SP_A1) && alone(SP_A2));
	}
}

static uint64_t epoch_of_other(unsigned gw)
{
	struct wan_stats s;

	eng_tunnel_stats(sp_gw[gw].e, SP_CABLE, &s);
	return s.peer_epoch;
}

/* --- starting ----------------------------------------------------------------------------------- */

/* The one with the smaller epoch serves; before that, neither. */
static void test_start_together(void **state)
{
	bool seen[2] = {false, false};

	for (unsigned i = 0; i < 12; i++) {
		unsigned first;

		assert_int_equal(sp_set_up(state), 0);
		sp_start(SP_B);
		for (unsigned k = 0; k < i; k++) { /* other epochs */
			sp_start(SP_A1);
			sp_kill(SP_A1);
		}
		sp_start(SP_A1);
		sp_start(SP_A2);
		assert_int_equal(serving(), 0);
		run_checked(SP_WAIT / 2);
		assert_int_equal(serving(), 1);
		first = sp_gw[SP_A1].serves ? SP_A1 : SP_A2;
		seen[first] = true;
		assert_string_equal(sp_state(first), "paired");
		assert_string_equal(sp_state(!first), "ready");
		assert_true(epoch_of_other(first) > epoch_of_other(!first));
		run_checked(2 * SP_WAIT);
		assert_int_equal(sp_gw[first].told, 1);
		assert_int_equal(sp_gw[!first].told, 0);
		assert_int_equal(sp_tear_down(state), 0);
	}
	assert_true(seen[SP_A1] && seen[SP_A2]);
}

#define ENTRIES 4
static struct eng_journal_entry journal[SP_GATEWAYS][ENTRIES];

static void with_journal(struct eng_cfg *c, unsigned gw)
{
	c->journal = journal[gw];
	c->journal_n = ENTRIES;
}

/* After a crash of both, the one that served goes on, whatever its epoch is. */
static void test_start_with_journal(void **state)
{
	for (unsigned i = 0; i < 12; i++) {
		unsigned active = i & 1;

		memset(journal, 0, sizeof(journal));
		assert_int_equal(sp_set_up(state), 0);
		sp_tune = with_journal;
		sh_begin();
		sp_start(SP_B);
		sp_start(active);
		sp_reach(active, "alone", 2 * SP_WAIT);
		sh_connect();
		sp_kill(active);
		sp_run(5 * RWY_SEC); /* until the witness knows */
		for (unsigned k = 0; k < i / 2; k++) {
			sp_start(SP_A1);
			sp_kill(SP_A1);
		}
		sp_start(SP_A1);
		sp_start(SP_A2);
		sp_reach(active, "paired", SP_WAIT / 2);
		sp_reach(!active, "ready", SH_SOON);
		assert_int_equal(sp_tear_down(state), 0);
	}
}

static void test_start_beside_active(void **state)
{
	sp_start(SP_B);
	sp_start(SP_A2);
	sp_reach(SP_A2, "alone", 2 * SP_WAIT);
	sp_start(SP_A1);
	sp_run(SP_WAIT / 2);
	assert_string_equal(sp_state(SP_A1), "ready");
	assert_string_equal(sp_state(SP_A2), "paired");
	run_checked(2 * SP_WAIT);
	assert_int_equal(sp_gw[SP_A1].told, 0);
	assert_int_equal(sp_gw[SP_A2].told, 1);
}

/* The other one is waited for first. */
static void test_start_alone(void **state)
{
	sp_cable(SP_CUT);
	sp_start(SP_B);
	sp_start(SP_A1);
	sp_run(SP_WAIT - RWY_MS);
	assert_string_equal(sp_state(SP_A1), "asking");
	sp_reach(SP_A1, "alone", 10 * RWY_MS);
	assert_true(sp_gw[SP_A1].serves);
	sh_begin();
	sh_connect();
	sh_request(6);
	assert_true(sh_acked(6));
}

/* The cable is dead, and the witness knows that the other one is active. */
static void test_start_without_cable(void **state)
{
	sp_start(SP_B);
	sp_start(SP_A1);
	sp_reach(SP_A1, "alone", 2 * SP_WAIT);
	sp_cable(SP_CUT);
	sp_start(SP_A2);
	run_checked(LONG);
	assert_string_equal(sp_state(SP_A2), "asking");
	assert_int_equal(sp_gw[SP_A2].told, 0);
	assert_string_equal(sp_state(SP_A1), "alone");
	assert_true(sp_counters(SP_A2)->lan_tx_packets == 0);
	sp_kill(SP_A1);
	sp_reach(SP_A2, "alone", LONG);
}

static void test_start_without_anybody(void **state)
{
	sp_cable(SP_CUT);
	sp_start(SP_A1);
	run_checked(LONG);
	assert_string_equal(sp_state(SP_A1), "asking");
	sp_start(SP_A2);
	run_checked(LONG);
	assert_int_equal(sp_gw[SP_A1].told + sp_gw[SP_A2].told, 0);
	sp_start(SP_B);
	run_checked(LONG);
	assert_int_equal(serving(), 1);
}

/* --- ACKs that wait for copies ------------------------------------------------------------------ */

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

/* A host whose timer ran out gets a single ACK only for what the standby has. */
static void test_single_ack_waits(void **state)
{
	sh_connect();
	hold();
	sh_ask(6, ROCE_RC_SEND_ONLY);
	sp_run(4 * RWY_MS);
	sh_ask(6, ROCE_RC_SEND_ONLY);
	sp_run(4 * RWY_MS);
	assert_true(sh_acked(5));
	let_go();
	assert_true(sh_acked(6));
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

/* --- the cable ---------------------------------------------------------------------------------- */

/* The standby does not hear that, so the active gateway asks the witness first. */
static void test_cable(void **state)
{
	sh_connect();
	sp_link(SP_2_TO_1, SP_CUT);
	sp_link(SP_B_TO_A, SP_HELD); /* the witness's word */
	sp_reach(SP_A1, "losing", 2 * SP_SILENCE);
	sh_request(6);
	sp_run(RWY_SEC);
	assert_string_equal(sp_state(SP_A1), "losing");
	assert_true(sh_acked(5));
	sp_link(SP_B_TO_A, SP_GOOD);
	sp_reach(SP_A1, "alone", SH_SOON);
	sp_run(SP_STEP);
	assert_true(sh_acked(6));
	sp_link(SP_1_TO_2, SP_CUT);
	run_checked(2 * RWY_SEC);
	assert_string_equal(sp_state(SP_A2), "asking");
	sh_request(7);
	assert_true(sh_acked(7));
	sp_cable(SP_GOOD);
	sp_reach(SP_A1, "paired", RWY_SEC);
	sp_reach(SP_A2, "ready", SH_SOON);
	hold();
	sh_request(8);
	assert_true(sh_acked(7));
	let_go();
	assert_true(sh_acked(8));
	sh_all_executed(9);
}

/* Both notice it, and ask the witness: one of them goes on, and acknowledges. */
static void test_cable_race(void **state)
{
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(sp_set_up_paired(state), 0);
		sh_begin();
		sh_connect();
		sp_run(i * RWY_MS);
		sp_cable(SP_CUT);
		sh_request(6);
		run_checked(RWY_SEC);
		assert_int_equal(serving(), 1);
		assert_true(sp_gw[SP_A1].replaced || !strcmp(sp_state(SP_A2), "asking"));
		sh_request(7);
		assert_true(sh_acked(7));
		sh_all_executed(8);
		assert_int_equal(sp_tear_down(state), 0);
	}
}

/* Nobody knows whether the other gateway goes on. */
static void test_cable_and_witness(void **state)
{
	sh_connect();
	sp_cable(SP_CUT);
	sp_link(SP_A_TO_B, SP_CUT);
	sp_link(SP_B_TO_A, SP_CUT);
	sh_request(6);
	run_checked(LONG);
	sh_request(7);
	assert_string_equal(sp_state(SP_A1), "losing");
	assert_string_equal(sp_state(SP_A2), "taking");
	assert_int_equal(sp_gw[SP_A2].told, 0);
	assert_true(sh_acked(5));
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_link(SP_B_TO_A, SP_GOOD);
	run_checked(LONG);
	assert_int_equal(serving(), 1);
	if (!sh_acked(7)) { /* the host's timer ran out */
		sh_request(6);
		sh_request(7);
	}
	assert_true(sh_acked(7));
	sh_all_executed(8);
}

/* --- a standby without memory ------------------------------------------------------------------- */

#define STORE (16 * 4096)

static void little_memory(struct eng_cfg *c, unsigned gw)
{
	c->buf_cost = 4096;
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

/* The standby says that it has nothing; so the active gateway need not ask the witness. */
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
	assert_string_equal(sp_state(SP_A1), "alone");
	assert_true(sh_acked(25));
	since = sp_now; /* at the latest */
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_run(SH_SOON);
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

#define PLAIN(t)  cmocka_unit_test_setup_teardown(t, sp_set_up, sp_tear_down)
#define PAIRED(t) cmocka_unit_test_setup_teardown(t, begin_paired, sp_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_start_together),
	    cmocka_unit_test(test_start_with_journal),
	    PLAIN(test_start_beside_active),
	    PLAIN(test_start_alone),
	    PLAIN(test_start_without_cable),
	    PLAIN(test_start_without_anybody),
	    PAIRED(test_ack_waits),
	    PAIRED(test_ack_waits_for_confirmation),
	    PAIRED(test_read_waits),
	    PAIRED(test_nak_waits),
	    PAIRED(test_single_ack_waits),
	    PAIRED(test_alone_as_near),
	    cmocka_unit_test_setup_teardown(test_near_is_not_copied, near_set_up, sp_tear_down),
	    PAIRED(test_release),
	    PAIRED(test_cable),
	    cmocka_unit_test(test_cable_race),
	    PAIRED(test_cable_and_witness),
	    cmocka_unit_test_setup_teardown(test_store_full, little_set_up, sp_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
