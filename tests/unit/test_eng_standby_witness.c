/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair of gateways whose witness changes: its tunnel is taken away, or another one comes, while it
 * is asked who serves. Site A has two tunnels, each of which leads to a witness; hosts use the second.
 */
#include "engine/standby.h"

#include <stdio.h>

#include "engine/tunnel.h"
#include "tests/lib/eng_site_hosts.h"

#define LONG (10 * RWY_SEC)

static void name_first(struct eng_cfg *c, unsigned gw)
{
	snprintf(c->tunnel[SP_WAN].name, ENG_NAME_MAX, "first");
}

static void tune(struct eng_cfg *c, unsigned gw)
{
	sp_two_tunnels(c, gw);
	c->prefix[0].tunnel = SP_WAN_2;
}

static int begin(void **state)
{
	int r;

	sp_tune = tune;
	r = sp_set_up_paired(state);
	sh_begin();
	sh_connect();
	return r;
}

/* The tunnels of the first witness, which is dead. */
static void witness_dies(void)
{
	sp_link(SP_A_TO_B, SP_CUT);
	sp_link(SP_B_TO_A, SP_CUT);
}

/* As the control thread does it. False: it is still there. */
static bool take_away(unsigned gw, unsigned tunnel)
{
	struct eng_tunnel_old *old;

	if (!eng_tunnel_remove(sp_gw[gw].e, tunnel, &old, sp_now))
		return false;
	eng_tunnel_gone(old);
	return true;
}

static void add(unsigned gw, unsigned tunnel, uint64_t id)
{
	struct eng_tunnel_cfg c = sp_gw[gw].e->cfg.tunnel[SP_WAN];
	struct eng_tunnel_new *n;

	c.late = true;
	c.wan.tunnel_id = id;
	c.wan.index ^= 0x10000;
	assert_int_equal(eng_tunnel_make(&n, sp_gw[gw].e, tunnel, &c, sp_now), 0);
	assert_int_equal(eng_tunnel_add(sp_gw[gw].e, tunnel, n), 0);
}

static bool alone(unsigned gw)
{
	return sp_gw[gw].e && (!strcmp(sp_state(gw), "alone") || !strcmp(sp_state(gw), "copying"));
}

/* Tries to take the tunnel away with each turn, until it is gone. */
static void run_taking_away(unsigned gw, rwy_dur time)
{
	bool gone = false;

	for (rwy_time end = sp_now + time; sp_now < end;) {
		gone = gone || take_away(gw, SP_WAN);
		sp_run(SP_STEP);
		assert_false(alone(SP_A1) && alone(SP_A2));
	}
	assert_true(gone);
}

static void check_witness(unsigned gw, const char *name)
{
	struct eng_standby_info i;

	assert_true(eng_standby_info(sp_gw[gw].e, &i));
	assert_string_equal(i.witness, name);
}

static void test_taken_away_while_losing(void **state)
{
	witness_dies();
	sp_kill(SP_A2);
	sp_reach(SP_A1, "losing", 2 * SP_SILENCE);
	sh_request(6);
	sp_run(RWY_SEC);
	assert_string_equal(sp_state(SP_A1), "losing");
	assert_true(sh_acked(5));
	run_taking_away(SP_A1, LONG);
	assert_string_equal(sp_state(SP_A1), "alone");
	if (!sh_acked(6))
		sh_request(6);
	assert_true(sh_acked(6));
	sh_request(7);
	assert_true(sh_acked(7));
	sh_all_executed(8);
}

/* Its answer is under way: nothing but that decides. */
static void test_taken_away_before_the_answer(void **state)
{
	sp_link(SP_B_TO_A, SP_HELD);
	sp_kill(SP_A2);
	sp_reach(SP_A1, "losing", 2 * SP_SILENCE);
	for (unsigned i = 0; i < 100; i++) {
		assert_false(take_away(SP_A1, SP_WAN));
		assert_false(eng_tunnel_there(sp_gw[SP_A1].e, SP_WAN));
		assert_true(eng_tunnel_asked(sp_gw[SP_A1].e, SP_WAN));
		sp_run(RWY_MS);
	}
	assert_string_equal(sp_state(SP_A1), "losing");
	sp_link(SP_B_TO_A, SP_GOOD);
	sp_reach(SP_A1, "alone", SH_SOON);
	assert_false(eng_tunnel_asked(sp_gw[SP_A1].e, SP_WAN));
	assert_true(take_away(SP_A1, SP_WAN));
	sp_run(LONG);
	assert_string_equal(sp_state(SP_A1), "alone");
}

/*
 * The first witness gave the tunnels to the standby, and the active gateway did not hear of it. When
 * it may ask the other witness, that one says so.
 */
static void test_taken_away_after_a_takeover(void **state)
{
	sp_cable(SP_CUT);
	sp_link(SP_B_TO_A, SP_HELD);
	sp_freeze(SP_A1, true);
	sp_run(2 * SP_SILENCE);
	sp_link(SP_B_TO_A, SP_GOOD);
	sp_reach(SP_A2, "alone", SH_TAKEN);
	witness_dies();
	sp_freeze(SP_A1, false);
	run_taking_away(SP_A1, LONG);
	assert_string_equal(sp_state(SP_A1), "replaced");
	assert_string_equal(sp_state(SP_A2), "alone");
}

/* The same, when neither witness has decided yet. */
static void test_taken_away_from_both(void **state)
{
	for (unsigned i = 0; i < 8; i++) {
		bool gone[2] = {false, false};

		if (i) {
			assert_int_equal(sp_tear_down(state), 0);
			assert_int_equal(begin(state), 0);
		}
		witness_dies();
		sp_cable(SP_CUT);
		sp_run(RWY_SEC);
		assert_string_equal(sp_state(SP_A1), "losing");
		assert_string_equal(sp_state(SP_A2), "taking");
		for (rwy_time from = sp_now; sp_now < from + LONG;) {
			gone[i & 1] = gone[i & 1] || take_away(i & 1, SP_WAN);
			if (sp_now > from + i / 2 * RWY_SEC)
				gone[!(i & 1)] = gone[!(i & 1)] || take_away(!(i & 1), SP_WAN);
			sp_run(SP_STEP);
			assert_false(alone(SP_A1) && alone(SP_A2));
		}
		assert_int_equal(sp_gw[SP_A1].serves + sp_gw[SP_A2].serves, 1);
		assert_true(alone(SP_A1) || alone(SP_A2));
	}
}

/* The first witness answers again after one of the two has asked the next one. */
static void test_answers_again_late(void **state)
{
	rwy_time end;

	witness_dies();
	sp_cable(SP_CUT);
	sp_run(RWY_SEC);
	assert_false(take_away(SP_A1, SP_WAN));
	assert_false(take_away(SP_A2, SP_WAN));
	for (end = sp_now + LONG; sp_now < end && !alone(SP_A1) && !alone(SP_A2);)
		sp_run(SP_STEP);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_link(SP_B_TO_A, SP_GOOD);
	for (end = sp_now + LONG; sp_now < end; sp_run(SP_STEP))
		assert_false(alone(SP_A1) && alone(SP_A2));
	assert_true(alone(SP_A1) || alone(SP_A2));
}

static void test_taken_away_while_taking(void **state)
{
	witness_dies();
	sp_kill(SP_A1);
	sp_reach(SP_A2, "taking", 2 * SP_SILENCE);
	sp_run(RWY_SEC);
	assert_string_equal(sp_state(SP_A2), "taking");
	run_taking_away(SP_A2, LONG);
	assert_string_equal(sp_state(SP_A2), "alone");
	sh_request(6);
	assert_true(sh_acked(6));
	sh_all_executed(7);
}

/* A newcomer asks the next one at once: that one says whether somebody else is there. */
static void test_taken_away_while_asking(void **state)
{
	sp_kill(SP_A1);
	sp_kill(SP_A2);
	witness_dies();
	sp_run(LONG);
	sp_start(SP_A1);
	sp_run(2 * SP_WAIT);
	assert_string_equal(sp_state(SP_A1), "asking");
	assert_true(take_away(SP_A1, SP_WAN));
	sp_reach(SP_A1, "alone", SP_WAIT);
}

/* A newcomer has nobody to ask; when a tunnel comes, it asks there. */
static void test_none_left_while_asking(void **state)
{
	sp_tear_down(state);
	sp_tune = name_first;
	assert_int_equal(sp_set_up_paired(state), 0);
	sp_kill(SP_A1);
	sp_kill(SP_A2);
	sp_link(SP_A_TO_B, SP_CUT);
	sp_run(LONG);
	sp_start(SP_A1);
	sp_run(2 * SP_WAIT);
	assert_string_equal(sp_state(SP_A1), "asking");
	assert_true(take_away(SP_A1, SP_WAN));
	sp_run(LONG);
	assert_string_equal(sp_state(SP_A1), "asking");
	sp_link(SP_A_TO_B, SP_GOOD);
	add(SP_A1, SP_WAN, 0);
	sp_reach(SP_A1, "alone", LONG);
}

/* The standby is complete, and the next witness has agreed long ago that it may take over. */
static void test_taken_away_while_pairing(void **state)
{
	sp_kill(SP_A2);
	sp_reach(SP_A1, "alone", SP_WAIT);
	sp_link(SP_B_TO_A, SP_HELD);
	sp_start(SP_A2);
	sp_reach(SP_A1, "pairing", SP_WAIT);
	sp_run(SP_WAIT);
	assert_string_equal(sp_state(SP_A1), "pairing");
	assert_true(take_away(SP_A1, SP_WAN));
	sp_reach(SP_A1, "paired", SH_SOON);
}

/* Nobody is left who could say who goes on; when somebody is, he does. */
static void test_none_left(void **state)
{
	sp_tear_down(state);
	sp_tune = name_first;
	assert_int_equal(sp_set_up_paired(state), 0);
	check_witness(SP_A1, "first");
	sp_link(SP_A_TO_B, SP_CUT);
	sp_kill(SP_A2);
	sp_reach(SP_A1, "losing", 2 * SP_SILENCE);
	for (rwy_time end = sp_now + LONG; sp_now < end && !take_away(SP_A1, SP_WAN);)
		sp_run(SP_STEP);
	check_witness(SP_A1, "");
	sp_run(LONG);
	assert_string_equal(sp_state(SP_A1), "losing");
	sp_link(SP_A_TO_B, SP_GOOD);
	add(SP_A1, SP_WAN, 0);
	sp_reach(SP_A1, "alone", LONG);
	check_witness(SP_A1, "first");
}

/* A tunnel that would be chosen before the witness's comes while that one is asked. */
static void test_another_comes(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned gw = i ? SP_A2 : SP_A1;

		if (i) {
			assert_int_equal(sp_tear_down(state), 0);
			assert_int_equal(begin(state), 0);
		}
		while (!take_away(SP_A1, SP_WAN) || !take_away(SP_A2, SP_WAN))
			sp_run(SP_STEP);
		sp_gw[gw].e->cfg.tunnel[SP_WAN_2].late = true;
		sp_link(SP_B_TO_A_2, SP_HELD);
		sp_kill(!gw);
		sp_reach(gw, i ? "taking" : "losing", 2 * SP_SILENCE);
		add(gw, SP_WAN, 1);
		sp_run(RWY_SEC);
		assert_string_equal(sp_state(gw), i ? "taking" : "losing");
		sp_link(SP_B_TO_A_2, SP_GOOD);
		sp_reach(gw, "alone", SH_SOON);
	}
}

#define PAIRED(t) cmocka_unit_test_setup_teardown(t, begin, sp_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    PAIRED(test_taken_away_while_losing),
	    PAIRED(test_taken_away_before_the_answer),
	    PAIRED(test_taken_away_after_a_takeover),
	    PAIRED(test_taken_away_from_both),
	    PAIRED(test_answers_again_late),
	    PAIRED(test_taken_away_while_taking),
	    PAIRED(test_taken_away_while_asking),
	    PAIRED(test_none_left_while_asking),
	    PAIRED(test_taken_away_while_pairing),
	    PAIRED(test_none_left),
	    PAIRED(test_another_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
