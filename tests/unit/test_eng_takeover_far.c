/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair of gateways as the far ones: host B's requests for host A. The standby has nothing of these
 * connections. The gateway of site B sends again what was not reported, and host A says where it is.
 */
#include "tests/lib/eng_site_hosts.h"

#include "roce/psn.h"

#define FIRST 105u
#define TAKEN (SP_SILENCE + 20 * RWY_MS)

static struct {
	bool mute;
	roce_psn epsn;
	roce_msn msn;
	unsigned done, again, gaps;
	roce_psn psn[SH_DONE];
} host_a;

static void a_sends(roce_psn psn, uint8_t opcode, uint8_t syndrome)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = SH_QPN_B,
	    .syndrome = syndrome,
	    .msn = host_a.msn,
	    .original = 77,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	sp_host_sends(SP_SITE_A, &m);
}

/* It executes requests in order, and answers at once. */
static void a_hears(const struct sp_packet *p)
{
	const struct roce_opinfo *op = roce_op(p->opcode);
	uint8_t answer = roce_op_is_atomic(op) ? ROCE_RC_ATOMIC_ACK : ROCE_RC_ACK;

	if (p->site != SP_SITE_A || !roce_op_is_request(op))
		return;
	if (roce_psn_after(p->psn, host_a.epsn)) {
		host_a.gaps++;
		a_sends(host_a.epsn, ROCE_RC_ACK, 0x60);
		return;
	}
	if (p->psn == host_a.epsn) {
		host_a.psn[host_a.done++] = p->psn;
		host_a.epsn = roce_psn_add(p->psn, 1);
		host_a.msn++;
	} else {
		host_a.again++;
	}
	if (!host_a.mute)
		a_sends(
		    roce_op_is_atomic(op) ? p->psn : roce_psn_add(host_a.epsn, ROCE_PSN_MASK), answer, 0x1f);
}

static void ask(roce_psn psn, uint8_t opcode)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = SH_QPN_A,
	    .ack_req = true,
	    .swap_add = 1,
	    .payload_len = opcode == ROCE_RC_SEND_ONLY ? 64 : 0,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	sp_host_sends(SP_SITE_B, &m);
	sp_run(SH_SOON);
}

static const struct sp_host *b = &sp_host[SP_SITE_B];

static int connected(void **state)
{
	int r = sp_set_up_paired(state);

	memset(&host_a, 0, sizeof(host_a));
	host_a.epsn = FIRST;
	sp_heard = a_hears;
	ask(FIRST, ROCE_RC_SEND_ONLY);
	assert_int_equal(b->ack.psn, FIRST);
	return r;
}

static void active_dies(void)
{
	sp_link(SP_A_TO_B, SP_CUT);
	sp_link(SP_B_TO_A, SP_CUT);
	sp_kill(SP_A1);
	sp_run(SP_STEP);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_link(SP_B_TO_A, SP_GOOD);
	host_a.mute = false;
	sp_reach(SP_A2, "alone", TAKEN);
	sp_run(4 * SH_SOON);
}

/* All that host B has ACKs for was executed once, in order. */
static void all_executed(roce_psn end)
{
	sp_run(RWY_SEC);
	assert_int_equal(host_a.done, end - FIRST);
	for (unsigned i = 0; i < host_a.done; i++)
		assert_int_equal(host_a.psn[i], FIRST + i);
	assert_int_equal(b->naks, 0);
	assert_int_equal(eng_custody_bytes(sp_gw[SP_B].e), 0);
}

static void test_undelivered(void **state)
{
	sp_link(SP_B_TO_A, SP_HELD);
	for (roce_psn p = FIRST + 1; p < FIRST + 4; p++)
		ask(p, ROCE_RC_SEND_ONLY);
	assert_int_equal(b->ack.psn, FIRST + 3); /* site B acknowledges as `near` */
	active_dies();
	all_executed(FIRST + 4);
	ask(FIRST + 4, ROCE_RC_SEND_ONLY);
	assert_int_equal(b->ack.psn, FIRST + 4);
	all_executed(FIRST + 5);
}

/* Host A has executed it, and the gateway of site B does not know. */
static void test_not_reported(void **state)
{
	sp_link(SP_A_TO_B, SP_HELD);
	ask(FIRST + 1, ROCE_RC_SEND_ONLY);
	ask(FIRST + 2, ROCE_RC_SEND_ONLY);
	assert_int_equal(host_a.done, 3);
	active_dies();
	all_executed(FIRST + 3);
	ask(FIRST + 3, ROCE_RC_SEND_ONLY);
	all_executed(FIRST + 4);
}

/* Host A's ACK was lost with the gateway. */
static void test_not_answered(void **state)
{
	host_a.mute = true;
	ask(FIRST + 1, ROCE_RC_SEND_ONLY);
	assert_int_equal(host_a.done, 2);
	active_dies();
	all_executed(FIRST + 2);
}

/* Its answer died with the gateway: only a second execution would bring it again. */
static void test_atomic_answer_lost(void **state)
{
	sp_link(SP_A_TO_B, SP_HELD);
	ask(FIRST + 1, ROCE_RC_FETCH_ADD);
	assert_int_equal(host_a.done, 2);
	active_dies();
	for (unsigned i = 0; i < 20 && !b->naks && !b->responses; i++) {
		ask(FIRST + 1, ROCE_RC_FETCH_ADD);
		sp_run(RWY_SEC);
	}
	assert_true(b->naks || b->responses);
	assert_int_equal(host_a.done, 2);
}

static void test_atomic_undelivered(void **state)
{
	sp_link(SP_B_TO_A, SP_HELD);
	ask(FIRST + 1, ROCE_RC_FETCH_ADD);
	assert_int_equal(host_a.done, 1);
	active_dies();
	sp_run(RWY_SEC);
	assert_int_equal(host_a.done, 2);
	assert_int_equal(b->responses, 1);
	assert_int_equal(b->naks, 0);
}

/* What waited in the NIC of a gateway that stood still is of no use to host A any more. */
static void test_frozen(void **state)
{
	unsigned sent;

	sp_link(SP_B_TO_A, SP_HELD);
	ask(FIRST + 1, ROCE_RC_SEND_ONLY);
	ask(FIRST + 2, ROCE_RC_SEND_ONLY);
	sp_freeze(SP_A1, true);
	sp_link(SP_B_TO_A, SP_GOOD);
	sp_reach(SP_A2, "alone", TAKEN);
	all_executed(FIRST + 3);
	ask(FIRST + 3, ROCE_RC_SEND_ONLY);
	sent = sp_gw[SP_A1].sent;
	sp_freeze(SP_A1, false);
	sp_reach(SP_A1, "replaced", RWY_SEC);
	assert_int_equal(sp_gw[SP_A1].sent, sent);
	all_executed(FIRST + 4);
	assert_int_equal(host_a.again, 0);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, connected, sp_tear_down)

/*
 * Host B has the results, and only the word that they arrived did not reach site A. Host A need not
 * remember them any more, so it is not asked again.
 */
static void test_atomic_answered(void **state)
{
	const unsigned n = 20;

	for (roce_psn p = FIRST + 1; p <= FIRST + n; p++) {
		struct rc_mk m = {.opcode = ROCE_RC_FETCH_ADD,
		    .psn = p,
		    .dqpn = SH_QPN_A,
		    .swap_add = 1,
		    .src = {10, 2, 0, 3},
		    .dst = {10, 1, 0, 3}};

		sp_host_sends(SP_SITE_B, &m);
	}
	sp_run(SP_WAN_WAY + 3 * SP_STEP);
	sp_link(SP_B_TO_A, SP_HELD);
	sp_run(SH_SOON);
	assert_int_equal(host_a.done, n + 1);
	assert_int_equal(b->responses, n);
	assert_true(eng_custody_bytes(sp_gw[SP_B].e) > 0);
	active_dies();
	all_executed(FIRST + n + 1);
	assert_int_equal(host_a.again, 0);
	assert_int_equal(b->responses, n);
	ask(FIRST + n + 1, ROCE_RC_FETCH_ADD);
	all_executed(FIRST + n + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_undelivered),
	    CASE(test_not_reported),
	    CASE(test_not_answered),
	    CASE(test_atomic_answer_lost),
	    CASE(test_atomic_undelivered),
	    CASE(test_frozen),
	    CASE(test_atomic_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
