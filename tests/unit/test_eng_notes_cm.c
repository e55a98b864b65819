/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM with gateways that steer by queue pair: the message that sets a connection up goes when the
 * connection's worker has it. The test plays the other worker of the gateway at site 1.
 */
#include "engine/directory.h"
#include "engine/place.h"
#include "tests/lib/eng_cm.h"
#include "tests/lib/eng_two_hosts.h"

#define WORKERS 17 /* so many that the connection is not at the home worker */
#define RETRY   7

static struct eng_directory *directory[2];
static struct eng_note open; /* the latest CM_OPEN, whose message the test has */
static unsigned opens;
static unsigned answers; /* of the worker under test */
static bool full;        /* there is no room for notes */

static bool note(struct eng_site *s, unsigned worker, const struct eng_note *n)
{
	if (full)
		return false;
	if (n->type != ENG_NOTE_CM_OPEN) {
		assert_int_equal(worker, n->from);
		assert_int_equal(n->type, ENG_NOTE_CM_OPENED);
		assert_non_null(n->b);
		answers++;
		eng_note_free(&s->e->bufs, n);
		return true;
	}
	assert_int_equal(worker, n->target);
	assert_int_equal(n->from, s->e->cfg.worker);
	assert_non_null(n->b);
	open = *n;
	opens++;
	return true;
}

/* Each engine is the home worker of the hosts' addresses. */
static void several_workers(struct eng_cfg *c)
{
	const struct eng_key a = eng_key_of_a();

	c->directory = directory[c->prefix[0].addr.b[13] == 1];
	c->workers = WORKERS;
	c->worker = (uint8_t)eng_owner(0, &a.src, &a.dst, WORKERS);
}

static int set_up(void **state)
{
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(eng_directory_new(&directory[i], 64, 1), 0);
	opens = answers = 0;
	full = false;
	eng_pair_tune = several_workers;
	assert_int_equal(eng_pair_set_up(state), 0);
	site[1].note = note;
	eng_cm_req(0, RETRY, RETRY, 14);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(opens, 0);
	return 0;
}

static int tear_down(void **state)
{
	int rc = eng_pair_tear_down(state);

	for (unsigned i = 0; i < 2; i++)
		eng_directory_free(directory[i]);
	return rc;
}

static void reply(void)
{
	eng_cm_rep(0, RETRY);
	eng_pair_run(20 * RWY_MS);
}

/* CM messages that the gateway at site 1 has carried. */
static uint64_t carried(void)
{
	return eng_counters(site[1].e)->cm_messages;
}

/* The other worker has opened the connection. */
static void opened(void)
{
	struct eng_note n = open;

	n.type = ENG_NOTE_CM_OPENED;
	eng_note_take(site[1].e, &n, eng_now);
	eng_pair_run(20 * RWY_MS);
}

static void test_opened(void **state)
{
	reply();
	assert_int_equal(opens, 1);
	assert_int_equal(carried(), 1); /* the REQ */
	opened();
	assert_int_equal(carried(), 2);
	reply(); /* again: it is there */
	assert_int_equal(opens, 1);
	assert_int_equal(carried(), 3);
}

/* The other worker has no memory, or its answer is lost. The REP's repeat asks again. */
static void test_not_opened(void **state)
{
	for (unsigned i = 1; i < 4; i++) {
		reply();
		assert_int_equal(opens, i);
		eng_note_free(&site[1].e->bufs, &open);
		assert_int_equal(carried(), 1);
	}
	reply();
	opened();
	assert_int_equal(carried(), 2);
}

static void test_no_room(void **state)
{
	full = true;
	reply();
	assert_int_equal(carried(), 1);
	assert_int_equal(eng_counters(site[1].e)->drop_note_full, 1);
	full = false;
	reply();
	opened();
	assert_int_equal(carried(), 2);
}

/* The note comes to this worker as if it were for it. */
static void asked_itself(uint32_t tenant)
{
	const struct eng_key a = eng_key_of_a(), b = {a.dst, a.src, QPN_A, 0};

	reply();
	eng_place_recall(site[1].e, &b, false, open.target);
	eng_place_recall(site[1].e, &a, true, open.target);
	open.target = site[1].e->cfg.worker;
	open.from = (uint8_t)((open.target + 1) % WORKERS);
	open.tenant = tenant;
	eng_note_take(site[1].e, &open, eng_now);
}

/* This worker is the one that is to have the connection, and tells the home worker. */
static void test_asked(void **state)
{
	asked_itself(0);
	assert_int_equal(answers, 1);
	assert_int_equal(eng_counters(site[1].e)->cm_connections, 1);
}

/* The same, and it cannot have it: its tenant is gone. */
static void test_asked_in_vain(void **state)
{
	asked_itself(1);
	assert_int_equal(answers, 0);
	assert_int_equal(eng_counters(site[1].e)->cm_connections, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_opened, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_not_opened, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_asked, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_asked_in_vain, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
