/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes between workers that steer by queue pair. The test plays the other worker of the gateway at
 * site 1: it has the responder side of host B, which answers host A's requests at this worker.
 */
#include "engine/directory.h"
#include "engine/place.h"
#include "tests/lib/eng_two_hosts.h"

#define WORKERS 2

static struct eng_directory *directory;
static struct eng_note leave; /* the latest LEAVE */
static unsigned leaves, lost; /* how many came; of the next ones so many are lost */

/* The key of B's requests. */
static struct eng_key key_of_b(void)
{
	const struct eng_key a = eng_key_of_a();

	return (struct eng_key){a.dst, a.src, QPN_A, 0};
}

static unsigned other_worker(void)
{
	return !site[1].e->cfg.worker;
}

static bool note(struct eng_site *s, unsigned worker, const struct eng_note *n)
{
	assert_int_equal(worker, other_worker());
	if (lost) {
		lost--;
		return false;
	}
	if (n->type != ENG_NOTE_LEAVE) {
		eng_note_free(&s->e->bufs, n);
		return true;
	}
	leave = *n;
	leaves++;
	return true;
}

static void several_workers(struct eng_cfg *c)
{
	const struct eng_key a = eng_key_of_a();

	eng_pair_with_journal(c);
	if (c->journal)
		return;
	c->directory = directory;
	c->workers = WORKERS;
	c->worker = (uint8_t)eng_owner(0, &a.src, &a.dst, WORKERS);
}

/* The other worker has the responder side of B, or has it no longer. */
static void other_has_b(bool has)
{
	const struct eng_key k = key_of_b();
	const uint64_t h = eng_directory_hash(directory, &k, 0, false);

	if (has)
		assert_true(eng_directory_add(directory, h, other_worker()));
	else
		eng_directory_remove(directory, h, other_worker());
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

/* B's queue pair says so to A's. */
static void answer_b(roce_psn psn)
{
	const struct rc_mk ack = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_A,
	    .syndrome = 0x1f,
	    .msn = 1,
	    .src = HOST_B,
	    .dst = HOST_A};

	eng_host_sends(1, &ack, 0);
	eng_pair_run(20 * RWY_MS);
}

/* A has an ACK; then both gateways start again, and the other worker has B's own requests. */
static int set_up(void **state)
{
	assert_int_equal(eng_directory_new(&directory, 64, 1), 0);
	memset(eng_pair_journal, 0, sizeof(eng_pair_journal));
	leaves = lost = 0;
	eng_pair_tune = several_workers;
	assert_int_equal(eng_pair_set_up(state), 0);
	send_a(0);
	answer_b(0);
	assert_int_equal(site[0].of[0].ack_psn, 0);
	assert_int_equal(site[0].acks, 1);
	eng_pair_restart(1);
	site[1].note = note;
	other_has_b(true);
	return 0;
}

static int tear_down(void **state)
{
	int rc = eng_pair_tear_down(state);

	eng_directory_free(directory);
	return rc;
}

/* The near gateway asks about what A was promised. */
static void resume(void)
{
	eng_now += RWY_MS; /* another seed than that of the other gateway */
	eng_pair_restart(0);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_RESUMING);
	assert_int_equal(site[1].requests, 0);
}

/* The other worker lets go of B, which has no ACK. */
static void let_go(void)
{
	struct eng_note n = {.type = ENG_NOTE_MOVED, .qpn = leave.key.qpn, .key = key_of_b()};

	assert_int_equal(leave.qpn, QPN_A);
	assert_int_equal(leave.key.qpn, QPN_B);
	other_has_b(false);
	eng_note_take(site[1].e, &n, eng_now);
	eng_pair_run(5 * RWY_MS);
}

/* B is asked which PSN it expects, and has everything. */
static void is_resumed(void)
{
	assert_int_equal(site[1].requests, 1);
	answer_b(0);
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_RUNNING);
}

static void test_leaves(void **state)
{
	resume();
	assert_true(leaves);
	let_go();
	is_resumed();
}

/* A note that finds no room is sent again. */
static void test_note_lost(void **state)
{
	lost = 5;
	resume();
	assert_int_equal(lost, 0);
	assert_true(leaves);
	let_go();
	is_resumed();
}

/* The other worker has lost B meanwhile, and sends nothing: B's own requests belong to this one. */
static void test_gone_meanwhile(void **state)
{
	resume();
	other_has_b(false);
	eng_pair_run(5 * RWY_MS);
	is_resumed();
}

/* B has ACKs at the other worker, and A may have some here: the connection ends. */
static void test_stays(void **state)
{
	struct eng_note n;

	resume();
	n = leave;
	n.type = ENG_NOTE_STAYS;
	n.from = other_worker();
	eng_note_take(site[1].e, &n, eng_now);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_FAILED);
	send_a(1);
	assert_int_equal(site[0].of[0].naks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_leaves, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_note_lost, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_gone_meanwhile, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_stays, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
