/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of the journal: there is no memory for them, or no place, when a gateway starts; a
 * gateway starts again while an idle host is told of a loss.
 */
#include "tests/lib/eng_two_hosts.h"

static unsigned fatal[2]; /* requests that end the queue pair, by site: no responder accepts their length */

static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	fatal[s->idx] += pkt->opcode == ROCE_RC_WRITE_ONLY && roce_reth_len(pkt) >= 1u << 31;
}

static void starved(struct eng_cfg *c)
{
	eng_pair_with_journal(c);
	site[0].starved = true;
}

static int set_up(void **state)
{
	eng_pair_tune = eng_pair_with_journal;
	memset(eng_pair_journal, 0, sizeof(eng_pair_journal));
	memset(fatal, 0, sizeof(fatal));
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

static _Atomic uint32_t gap;

static void starved_for_long(struct eng_cfg *c)
{
	starved(c);
	c->journal_gap = &gap;
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
	assert_int_equal(gap, 1); /* nor is it for the next process */
	assert_int_equal(site[0].e->restore_at, RWY_NEVER);
	site[0].starved = false;
}

/*
 * The control center took a gateway that was lost its prefixes, and gives them back only when that
 * has registered. Its connections go on at once.
 */
static void test_restored_before_its_prefixes(void **state)
{
	connect_a();
	assert_int_equal(site[0].of[0].acks, 1);
	assert_int_equal(eng_prefixes_set(site[1].e, site[1].e->cfg.prefix, 0), 0);
	eng_pair_restart(0);
	eng_pair_run(RWY_SEC);
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_RUNNING);
	assert_int_equal(eng_counters(site[1].e)->drop_tunnel_msg, 0);
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

/* Host `from` says so to the other host, and time goes on. */
static void says(unsigned from, uint8_t opcode, roce_psn psn, uint8_t syndrome)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = from ? QPN_A : QPN_B,
	    .ack_req = true,
	    .payload_len = opcode == ROCE_RC_SEND_ONLY ? 64 : 0,
	    .syndrome = syndrome,
	    .msn = 1,
	    .src = HOST_A,
	    .dst = HOST_B};

	if (from)
		m = (struct rc_mk){m.opcode, .psn = m.psn, .dqpn = m.dqpn, .ack_req = true,
		    .payload_len = m.payload_len, .syndrome = syndrome, .msn = 1, .src = HOST_B,
		    .dst = HOST_A};
	eng_host_sends(from, &m, 0);
	eng_pair_run(20 * RWY_MS);
}

#define ACK    roce_aeth_make(ROCE_AETH_ACK, ROCE_CREDITS_NONE)
#define REFUSE roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS)

/* Both hosts have sent a request, and have an answer. */
static void connect_both(void)
{
	says(0, ROCE_RC_SEND_ONLY, 5, 0);
	says(1, ROCE_RC_ACK, 5, ACK);
	says(1, ROCE_RC_SEND_ONLY, 0x100, 0);
	says(0, ROCE_RC_ACK, 0x100, ACK);
	site[0].heard = site[1].heard = heard;
}

/* A request that host A has an ACK for is refused. While A is told, its own gateway starts again. */
static void test_restarted_while_telling(void **state)
{
	connect_both();
	says(0, ROCE_RC_SEND_ONLY, 6, 0);
	assert_int_equal(site[0].of[0].ack_psn, 6);
	says(1, ROCE_RC_ACK, 6, REFUSE);
	assert_true(fatal[0] > 0);
	assert_int_equal(eng_pair_journal[0].failed, ENG_JOURNAL_LOST);
	eng_pair_restart(0);
	site[0].heard = heard;
	fatal[0] = 0;
	eng_pair_run(RWY_SEC);
	says(0, ROCE_RC_ACK, 0x100, ACK); /* to the question which PSN it expects */
	assert_true(fatal[0] > 0);
}

/* It was told before the restart: it is not told again, for another queue pair may have its QPN. */
static void test_restarted_after_telling(void **state)
{
	connect_both();
	says(0, ROCE_RC_SEND_ONLY, 6, 0);
	says(1, ROCE_RC_ACK, 6, REFUSE);
	assert_true(fatal[0] > 0);
	says(0, ROCE_RC_ACK, 0x101, REFUSE); /* the answer to the request that ends its queue pair */
	assert_int_equal(eng_pair_journal[0].failed, ENG_JOURNAL_OVER);
	eng_pair_restart(0);
	site[0].requests = 0;
	eng_pair_run(120 * RWY_SEC);
	assert_int_equal(site[0].requests, 0);
}

/* A request that host B has an ACK for is refused. While B is told, the gateway of A starts again. */
static void test_other_restarted_while_telling(void **state)
{
	connect_both();
	says(1, ROCE_RC_SEND_ONLY, 0x101, 0);
	assert_int_equal(site[1].of[0].ack_psn, 0x101);
	says(0, ROCE_RC_ACK, 0x101, REFUSE);
	assert_true(fatal[1] > 0);
	eng_pair_restart(0);
	fatal[1] = 0;
	eng_pair_run(RWY_SEC);
	assert_true(fatal[1] > 0);
}

/*
 * Host A is sent back to what host B expects (REWIND), and has no ACK before B has executed a
 * request. Nor has it after a restart of its gateway.
 */
static void test_restarted_after_rewind(void **state)
{
	const uint8_t expects = roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ);

	says(0, ROCE_RC_SEND_ONLY, 5, 0);
	says(1, ROCE_RC_ACK, 3, expects);
	assert_int_equal(site[0].of[0].naks, 1);
	says(0, ROCE_RC_SEND_ONLY, 3, 0);
	assert_int_equal(site[0].of[0].acks, 0);
	eng_pair_restart(0);
	eng_pair_run(RWY_SEC);
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_RUNNING);
	says(0, ROCE_RC_SEND_ONLY, 3, 0);
	says(0, ROCE_RC_SEND_ONLY, 4, 0);
	assert_int_equal(site[0].of[0].acks, 0);
	says(1, ROCE_RC_ACK, 3, ACK);
	assert_int_equal(site[0].of[0].ack_psn, 4);
	assert_false(eng_side_of_a()->rewound);
}

#define MANY 40 /* requests: more than are sent to a host at a time */

/*
 * Host A, which is to be told, has many requests to answer first, and was silent for nearly as long
 * as it may be. It has that time again.
 */
static void test_told_after_silence(void **state)
{
	const uint64_t *timeouts = &eng_counters(site[0].e)->local_ack_timeout_err;

	connect_both();
	for (roce_psn i = 1; i <= MANY; i++)
		says(1, ROCE_RC_SEND_ONLY, 0x100 + i, 0);
	while (*timeouts < 7)
		eng_pair_run(10 * RWY_MS);
	says(0, ROCE_RC_SEND_ONLY, 6, 0);
	says(1, ROCE_RC_ACK, 6, REFUSE);
	while (*timeouts < 8)
		eng_pair_run(10 * RWY_MS);
	assert_int_equal(fatal[0], 0);
	for (roce_psn i = 1; i <= MANY; i++)
		says(0, ROCE_RC_ACK, 0x100 + i, ACK);
	assert_int_equal(fatal[0], 1);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, eng_pair_tear_down)
	const struct CMUnitTest tests[] = {TEST(test_restored_later), TEST(test_never_restored),
	    TEST(test_restored_before_its_prefixes), TEST(test_restored_when_room),
	    TEST(test_restarted_while_telling), TEST(test_restarted_after_telling),
	    TEST(test_other_restarted_while_telling), TEST(test_restarted_after_rewind),
	    TEST(test_told_after_silence)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
