/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the journal for which there is no memory, or no place, when a gateway starts. */
#include "tests/lib/eng_two_hosts.h"

static void starved(struct eng_cfg *c)
{
	eng_pair_with_journal(c);
	site[0].starved = true;
}

static int set_up(void **state)
{
	eng_pair_tune = eng_pair_with_journal;
	memset(eng_pair_journal, 0, sizeof(eng_pair_journal));
	return eng_pair_set_up(state);
}

static void send_a(roce_psn psn)
{
	const struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = HOST_A,
	    .dst = HOST_B};

	eng_host_sends(0, &m, 0);
	eng_pair_run(20 * RWY_MS);
}

/* Host A has sent to B, and B has answered. */
static void connect_a(void)
{
	const struct rc_mk ack = {
	    .opcode = ROCE_RC_ACK, .dqpn = QPN_A, .syndrome = 0x1f, .msn = 1, .src = HOST_B, .dst = HOST_A};

	send_a(0);
	eng_host_sends(1, &ack, 0);
	eng_pair_run(20 * RWY_MS);
}

/*
 * At the restart there is no buffer to ask the far gateway. The promise waits until there is one, and
 * what the host sends meanwhile begins no new connection.
 */
static void test_restored_later(void **state)
{
	const struct eng_key k = eng_key_of_a();
	const struct eng_side *side;

	connect_a();
	eng_pair_cut(true);
	send_a(1);
	assert_int_equal(site[0].of[0].ack_psn, 1);
	eng_pair_tune = starved;
	eng_pair_restart(0);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(eng_pair_journal[0].used, 1);
	send_a(2);
	assert_int_equal(eng_counters(site[0].e)->drop_resuming, 1);
	site[0].starved = false;
	send_a(2); /* it is tried at once */
	eng_pair_run(RWY_MS);
	side = eng_find(site[0].e, &k, false);
	assert_non_null(side);
	assert_int_equal(side->state, ENG_R_RESUMING);
	assert_int_equal(eng_pair_journal[0].used, 1);
}

static void starved_for_long(struct eng_cfg *c)
{
	starved(c);
	c->journal_for = RWY_SEC;
}

/* The promise is forgotten when the journal is too old, and then the journal is not the whole. */
static void test_never_restored(void **state)
{
	connect_a();
	send_a(1);
	eng_pair_tune = starved_for_long;
	eng_pair_restart(0);
	eng_pair_run(500 * RWY_MS);
	assert_int_equal(eng_pair_journal[0].used, 1);
	assert_true(site[0].e->cfg.journal_whole);
	eng_pair_run(RWY_SEC);
	assert_int_equal(eng_pair_journal[0].used, 0);
	assert_false(site[0].e->cfg.journal_whole);
	assert_int_equal(site[0].e->restore_at, RWY_NEVER);
	site[0].starved = false;
}

#define FULL_VNI 7

/* A tenant has all flows that it may have: its entry waits, and is not counted at each try. */
static void test_restored_when_room(void **state)
{
	struct eng_tenant_cfg c = site[0].e->tenant[0]->cfg;

	eng_pair_cut(true);
	for (uint32_t i = 0; i < 2; i++)
		eng_pair_journal[i] = (struct eng_journal_entry){.used = 1,
		    .qpn = QPN_B + i,
		    .lqpn = QPN_A + i,
		    .vni = FULL_VNI,
		    .src = rwy_ip_from4((uint8_t[4])HOST_A),
		    .dst = rwy_ip_from4((uint8_t[4])HOST_B)};
	eng_pair_restart(0);
	c.vni = FULL_VNI;
	c.flows_max = 1;
	c.prefix = site[0].e->tenant[0]->cfg.prefix;
	assert_int_equal(eng_tenant_set(site[0].e, 1, &c, eng_now), 0);
	eng_pair_run(3 * RWY_SEC);
	assert_int_equal(site[0].e->sides, 1);
	assert_int_equal(eng_counters(site[0].e)->drop_flow_table_full, 0);
	site[0].e->tenant[1]->cfg.flows_max = 0;
	eng_pair_run(300 * RWY_MS);
	assert_int_equal(site[0].e->sides, 2);
	assert_int_equal(site[0].e->restore_at, RWY_NEVER);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, eng_pair_tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_restored_later), TEST(test_never_restored), TEST(test_restored_when_room)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
