/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair of gateways (engine/standby.h): which of them serves. test_eng_standby_acks.c has what waits
 * for copies, test_eng_takeover.c what the standby makes of them.
 */
#include "engine/standby.h"
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
static _Atomic uint64_t term[SP_GATEWAYS];

static void with_journal(struct eng_cfg *c, unsigned gw)
{
	c->journal = journal[gw];
	c->journal_n = ENTRIES;
	c->term = &term[gw];
}

static void no_journals(void)
{
	memset(journal, 0, sizeof(journal));
	for (unsigned i = 0; i < SP_GATEWAYS; i++)
		term[i] = 0;
}

/* After a crash of both, the one that served goes on, whatever its epoch is. */
static void test_start_with_journal(void **state)
{
	for (unsigned i = 0; i < 12; i++) {
		unsigned active = i & 1;

		no_journals();
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

static void with_old_journal(struct eng_cfg *c, unsigned gw)
{
	with_journal(c, gw);
	c->journal_for = 1;
}

static unsigned promises(unsigned gw)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ENTRIES; i++)
		n += journal[gw][i].used;
	return n;
}

/* A gateway waits for its turn until the journal is old: it begins anew, and asks no host by it. */
static void test_old_journal(void **state)
{
	for (unsigned old = 0; old < 2; old++) {
		no_journals();
		assert_int_equal(sp_set_up(state), 0);
		sp_tune = with_journal;
		sh_begin();
		sp_start(SP_B);
		sp_start(SP_A1);
		sp_reach(SP_A1, "alone", 2 * SP_WAIT);
		sh_connect();
		sp_kill(SP_A1);
		assert_true(promises(SP_A1) > 0);
		sp_run(5 * RWY_SEC); /* until the witness knows */
		sp_tune = old ? with_old_journal : with_journal;
		sp_start(SP_A1);
		assert_true(promises(SP_A1) > 0);
		sp_reach(SP_A1, "alone", 2 * SP_WAIT);
		assert_int_equal(promises(SP_A1) > 0, !old);
		assert_int_equal(sp_tear_down(state), 0);
	}
}

/* One died, the other one served alone, and died, too: both have a journal, of which that one's is newer. */
static void test_start_with_two_journals(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned last = i & 1;

		no_journals();
		assert_int_equal(sp_set_up(state), 0);
		sp_tune = with_journal;
		sh_begin();
		sp_start(SP_B);
		sp_start(!last);
		sp_reach(!last, "alone", 2 * SP_WAIT);
		sh_connect();
		sp_start(last);
		sp_reach(last, "ready", SP_WAIT);
		sp_kill(!last);
		sp_reach(last, "alone", RWY_SEC);
		sp_kill(last);
		if (i & 2) { /* the older one asks before the other one is there */
			sp_start(!last);
			sp_run(2 * SP_WAIT);
			sp_start(last);
		} else {
			sp_run(5 * RWY_SEC);
			sp_start(SP_A1);
			sp_start(SP_A2);
		}
		sp_reach(last, "paired", 10 * RWY_SEC);
		sp_reach(!last, "ready", SH_SOON);
		assert_int_equal(sp_tear_down(state), 0);
	}
}

/*
 * Both died, and start again while the witness still believes in the one before: nobody serves, for
 * that one's ACKs would be lost when the witness refuses it.
 */
static void test_start_too_soon(void **state)
{
	assert_int_equal(sp_set_up_paired(state), 0);
	sp_cable(SP_CUT);
	sp_kill(SP_A2);
	sp_reach(SP_A1, "alone", SP_WAIT);
	sp_run(RWY_MS);
	sp_kill(SP_A1);
	sp_cable(SP_GOOD);
	sp_start(SP_A1);
	sp_start(SP_A2);
	run_checked(RWY_SEC);
	assert_int_equal(serving(), 0);
	run_checked(LONG);
	assert_int_equal(serving(), 1);
	assert_int_equal(sp_gw[SP_A1].replaced + sp_gw[SP_A2].replaced, 0);
	assert_true(!strcmp(sp_state(SP_A1), "paired") || !strcmp(sp_state(SP_A2), "paired"));
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

/* The other one asks the witness when this one starts, and dies before it has an answer. */
static void test_start_beside_taking(void **state)
{
	sp_link(SP_A_TO_B, SP_CUT);
	sp_kill(SP_A1);
	sp_reach(SP_A2, "taking", 2 * SP_SILENCE);
	sp_start(SP_A1);
	sp_run(2 * SP_WAIT);
	assert_string_equal(sp_state(SP_A1), "asking");
	sp_kill(SP_A2);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_reach(SP_A1, "alone", LONG);
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
	sp_link(SP_1_TO_2, SP_HELD);
	sh_request(8);
	assert_true(sh_acked(7));
	sp_link(SP_1_TO_2, SP_GOOD);
	sp_run(SH_SOON);
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

/* --- handing over ------------------------------------------------------------------------------- */

/* Nothing waits for silence: a round trip of the cable, one of the WAN. */
static void test_hand_over(void **state)
{
	const rwy_time soon = 2 * SP_WAN_WAY + 5 * SP_STEP;

	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	sp_link(SP_A_TO_B, SP_CUT); /* it is with the standby alone */
	sp_link(SP_A_TO_B, SP_GOOD);
	assert_true(eng_standby_hand_over(sp_gw[SP_A1].e, sp_now));
	assert_string_equal(sp_state(SP_A1), "yielding");
	assert_false(sp_gw[SP_A1].serves);
	assert_false(eng_standby_hand_over(sp_gw[SP_A1].e, sp_now));
	for (rwy_time end = sp_now + soon; sp_now < end && !sp_gw[SP_A2].serves;)
		sp_run(SP_STEP);
	assert_true(sp_gw[SP_A2].serves);
	sp_reach(SP_A1, "replaced", 4 * SP_STEP);
	assert_int_equal(sp_gw[SP_A1].replaced, 1);
	assert_int_equal(sp_counters(SP_A2)->taken_over, 1);
	sp_run(SH_SOON);
	sh_request(7);
	assert_true(sh_acked(7));
	sh_all_executed(8);
	sp_kill(SP_A1);
	sp_start(SP_A1);
	sp_reach(SP_A2, "paired", RWY_SEC);
	assert_true(eng_standby_hand_over(sp_gw[SP_A2].e, sp_now)); /* and back */
	sp_reach(SP_A1, "alone", SH_SOON);
	sh_request(8);
	assert_true(sh_acked(8));
	sh_all_executed(9);
}

/* Only to a standby that has everything. */
static void test_hand_over_to_nobody(void **state)
{
	assert_false(eng_standby_hand_over(sp_gw[SP_A2].e, sp_now));
	sp_kill(SP_A2);
	assert_true(sp_gw[SP_A1].serves);
	sp_reach(SP_A1, "alone", SP_WAIT);
	assert_false(eng_standby_hand_over(sp_gw[SP_A1].e, sp_now));
	assert_true(sp_gw[SP_A1].serves);
}

/* The standby dies before it has heard of it: this gateway has lost nothing, and goes on. */
static void test_hand_over_standby_dies(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	assert_true(eng_standby_hand_over(sp_gw[SP_A1].e, sp_now));
	sp_kill(SP_A2);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_run(2 * RWY_SEC);
	assert_string_equal(sp_state(SP_A1), "alone");
	assert_true(sp_gw[SP_A1].serves);
	sh_request(7);
	assert_true(sh_acked(7));
	sh_all_executed(8);
}

/* The standby starts again meanwhile. */
static void test_hand_over_standby_restarts(void **state)
{
	sh_connect();
	assert_true(eng_standby_hand_over(sp_gw[SP_A1].e, sp_now));
	sp_kill(SP_A2);
	sp_start(SP_A2);
	run_checked(2 * RWY_SEC);
	assert_string_equal(sp_state(SP_A1), "paired");
	assert_string_equal(sp_state(SP_A2), "ready");
	sh_request(6);
	assert_true(sh_acked(6));
}

/* The witness does not answer: nobody serves for a while, and then one of the two. */
static void test_hand_over_without_witness(void **state)
{
	sh_connect();
	sp_link(SP_A_TO_B, SP_CUT);
	assert_true(eng_standby_hand_over(sp_gw[SP_A1].e, sp_now));
	run_checked(2 * RWY_SEC);
	assert_string_equal(sp_state(SP_A1), "losing");
	assert_string_equal(sp_state(SP_A2), "taking");
	sp_link(SP_A_TO_B, SP_GOOD);
	run_checked(LONG);
	assert_int_equal(serving(), 1);
	sh_request(6);
	assert_true(sh_acked(6));
	sh_all_executed(7);
}

/* It stands still in the middle, and does not know what happened. */
static void test_hand_over_frozen(void **state)
{
	sh_connect();
	assert_true(eng_standby_hand_over(sp_gw[SP_A1].e, sp_now));
	sp_run(SP_STEP);
	sp_freeze(SP_A1, true);
	sp_reach(SP_A2, "alone", SH_TAKEN);
	sp_run(RWY_SEC);
	sp_freeze(SP_A1, false);
	run_checked(RWY_SEC);
	assert_string_equal(sp_state(SP_A1), "replaced");
	assert_true(sp_gw[SP_A2].serves);
}

/* --- the witness -------------------------------------------------------------------------------- */

/* Tunnels of a control center get other numbers at the two: both choose the same all the same. */
static void test_witness(void **state)
{
	static struct eng a, b;
	static const struct {
		unsigned at;
		uint64_t id;
	} mine[] = {{1, 70}, {2, 30}, {5, 90}}, other[] = {{4, 70}, {6, 30}, {1, 90}};
	struct wan_tunnel *some = sp_gw[SP_A1].e->tunnel[SP_CABLE].wan;

	a.cfg.standby.on = b.cfg.standby.on = true;
	a.cfg.tunnels = b.cfg.tunnels = 8;
	a.tunnel[0].wan = b.tunnel[0].wan = some; /* the pair's own */
	assert_int_equal(eng_sb_witness(&a), ENG_SB_NO_WITNESS);
	for (unsigned i = 0; i < 3; i++) {
		a.tunnel[mine[i].at].wan = b.tunnel[other[i].at].wan = some;
		a.cfg.tunnel[mine[i].at].late = b.cfg.tunnel[other[i].at].late = true;
		a.cfg.tunnel[mine[i].at].wan.tunnel_id = mine[i].id;
		b.cfg.tunnel[other[i].at].wan.tunnel_id = other[i].id;
	}
	assert_int_equal(eng_sb_witness(&a), 2);
	assert_int_equal(eng_sb_witness(&b), 6);
	a.tunnel[2].wan = b.tunnel[6].wan = NULL; /* it is removed */
	assert_int_equal(eng_sb_witness(&a), 1);
	assert_int_equal(eng_sb_witness(&b), 4);
	a.tunnel[7].wan = b.tunnel[7].wan = some; /* of the file */
	a.cfg.tunnel[7].wan.tunnel_id = b.cfg.tunnel[7].wan.tunnel_id = 99;
	assert_int_equal(eng_sb_witness(&a), 7);
	assert_int_equal(eng_sb_witness(&b), 7);
}

/* --- what is said of it ------------------------------------------------------------------------- */

static struct eng_standby_info info_of(unsigned gw)
{
	struct eng_standby_info i;

	assert_true(eng_standby_info(sp_gw[gw].e, &i));
	return i;
}

/* Who asks learns why a gateway serves, why it has no standby, and which of two served last. */
static void test_reasons(void **state)
{
	const uint64_t first = info_of(SP_A1).term;
	struct eng_standby_info i;
	rwy_time was = sp_now;

	assert_string_equal(info_of(SP_A1).took_by, "granted"); /* it started alone */
	assert_string_equal(info_of(SP_A1).lost_by, "");
	assert_string_equal(info_of(SP_A2).took_by, "");
	assert_int_equal(info_of(SP_A2).term, first);
	sp_kill(SP_A1);
	sp_reach(SP_A2, "alone", LONG);
	i = info_of(SP_A2);
	assert_string_equal(i.took_by, "silent");
	assert_true(i.took_at > was && i.took_at <= sp_now);
	assert_int_equal(i.term, first + 1);
	sp_start(SP_A1);
	sp_reach(SP_A2, "paired", LONG);
	assert_true(eng_standby_hand_over(sp_gw[SP_A2].e, sp_now));
	sp_reach(SP_A1, "alone", SH_SOON);
	assert_string_equal(info_of(SP_A1).took_by, "yields");
	assert_int_equal(info_of(SP_A1).term, first + 2);
	sp_reach(SP_A2, "replaced", SH_SOON);
	assert_string_equal(info_of(SP_A2).took_by, "silent"); /* as before: it is history */
	sp_kill(SP_A2);
	sp_start(SP_A2);
	sp_reach(SP_A1, "paired", LONG);
	was = sp_now;
	sp_kill(SP_A2);
	sp_reach(SP_A1, "alone", LONG);
	i = info_of(SP_A1);
	assert_string_equal(i.lost_by, "silent");
	assert_true(i.lost_at > was && i.lost_at <= sp_now);
	assert_string_equal(i.took_by, "yields");
	assert_int_equal(i.term, first + 2);
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
	    cmocka_unit_test(test_old_journal),
	    cmocka_unit_test(test_start_with_two_journals),
	    cmocka_unit_test_teardown(test_start_too_soon, sp_tear_down),
	    PLAIN(test_start_beside_active),
	    PLAIN(test_start_alone),
	    PLAIN(test_start_without_cable),
	    PLAIN(test_start_without_anybody),
	    PAIRED(test_start_beside_taking),
	    PAIRED(test_cable),
	    cmocka_unit_test(test_cable_race),
	    PAIRED(test_cable_and_witness),
	    PAIRED(test_hand_over),
	    PAIRED(test_hand_over_to_nobody),
	    PAIRED(test_hand_over_standby_dies),
	    PAIRED(test_hand_over_standby_restarts),
	    PAIRED(test_hand_over_without_witness),
	    PAIRED(test_hand_over_frozen),
	    PAIRED(test_witness),
	    PAIRED(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
