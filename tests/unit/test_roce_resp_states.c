/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder's table: each cell does what roce/resp_states.h says, and docs/states.md says the
 * same. Every state is reached as hosts and gateways reach it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rc_resp.h"
#include "tests/lib/states_page.h"

#define START   0xfffffeu /* PSNs wrap in the middle */
#define ACCESS  0x62
#define REM_OP  0x63
#define INV_REQ 0x61
#define PSN_SEQ 0x60

#define STATE(e, n, s) states_add("| `%s` | %s |\n", n, s);
#define EVENT(e, n, s) states_add("| `%s` | %s |\n", n, s);
#define EDGE(a, b)     states_add("    %s -> %s\n", states_lower(#a), states_lower(#b));

static void test_page(void **state)
{
	states_begin();
	states_add("| state | meaning |\n| --- | --- |\n");
	ROCE_RESP_STATES(STATE)
	states_add("\n| event | meaning |\n| --- | --- |\n");
	ROCE_RESP_EVENTS(EVENT)
	states_add("\n| state | repeated | next | ahead | response | pmtu | fail | lost | rewind | flush "
	           "| no_room | room |\n"
	           "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
#define ROW(s, p, n, a, r, m, f, l, w, o, x, y)                                                              \
	states_add("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", states_lower(#s),    \
	    #p, #n, #a, #r, #m, #f, #l, #w, #o, #x, #y);
	ROCE_RESP_TABLE(ROW)
#undef ROW
	states_add("\n```dot\ndigraph resp {\n");
	ROCE_RESP_CHANGES(EDGE)
	states_add("}\n```\n");
	states_compare();
}

/* --- cells -------------------------------------------------------------------------------------- */
static struct roce_resp_seen seen;

static roce_psn at(uint32_t i)
{
	return roce_psn_add(START, i);
}

/*
 * A SEND at START has its ACK. Where the state allows it, a READ of two responses follows and waits
 * for both.
 */
static void rx_in_state(struct rx *x, enum roce_resp_state s)
{
	rx_init(x, START, s == ROCE_RS_UNCOUNTED ? 0 : 1024);
	x->r.seen = &seen;
	assert_int_equal(rx_in(x, ROCE_RC_SEND_ONLY, at(0), 4, 0), ROCE_RESP_ACCEPT);
	rx_allow_all(x);
	assert_true(rx_flush(x));
	if (s == ROCE_RS_GAP_NAK_SENT) {
		rx_in(x, ROCE_RC_SEND_ONLY, at(2), 4, 0);
		assert_true(rx_flush(x));
	} else if (s == ROCE_RS_FAILED) {
		roce_resp_fail(&x->r, at(1), ACCESS);
	} else {
		assert_int_equal(rx_in(x, ROCE_RC_READ_REQ, at(1), 0, 2048), ROCE_RESP_ACCEPT);
		rx_allow_all(x);
	}
	if (s == ROCE_RS_GAP)
		rx_in(x, ROCE_RC_SEND_ONLY, at(4), 4, 0);
	if (s == ROCE_RS_NO_ROOM)
		roce_resp_no_room(&x->r);
	if (s == ROCE_RS_HELD)
		rx_in(x, ROCE_RC_SEND_LAST, at(3), 4, 0);
	if (s >= ROCE_RS_ERROR_OWED)
		roce_resp_fail(&x->r, at(3), ACCESS);
	if (s >= ROCE_RS_ERROR_SENT)
		assert_true(rx_flush(x));
	if (s == ROCE_RS_ERROR_AGAIN)
		rx_in(x, ROCE_RC_SEND_ONLY, at(3), 4, 0);
	assert_int_equal(x->r.state, s);
}

#define SILENCE 0x100 /* flush: nothing goes */
#define NONE    -1    /* the cell is impossible */

/* Verdict, answer, READ responses counted, PSN of the error after START, or syndrome. */
static int event(struct rx *x, enum roce_resp_event ev)
{
	const roce_psn epsn = x->r.epsn;

	switch (ev) {
	case ROCE_RSE_REPEATED:
		return rx_in(x, ROCE_RC_SEND_ONLY, at(0), 4, 0);
	case ROCE_RSE_NEXT:
		return rx_in(x, ROCE_RC_SEND_ONLY, epsn, 4, 0);
	case ROCE_RSE_AHEAD:
		return rx_in(x, ROCE_RC_SEND_ONLY, epsn + 2, 4, 0);
	case ROCE_RSE_RESPONSE:
		return (int)rx_answer(x, at(1), ROCE_RC_READ_RESP_FIRST);
	case ROCE_RSE_PMTU:
		return (int)roce_resp_set_pmtu(&x->r, 1024);
	case ROCE_RSE_FAIL:
		roce_resp_fail(&x->r, at(3), ACCESS);
		return (int)((x->r.fail_psn - START) & ROCE_PSN_MASK);
	case ROCE_RSE_LOST:
		roce_resp_lost(&x->r, at(0));
		return (int)((x->r.fail_psn - START) & ROCE_PSN_MASK);
	case ROCE_RSE_REWIND:
		roce_resp_rewind(&x->r, at(0));
		assert_int_equal(x->r.epsn, START);
		return (int)x->r.rd_n;
	case ROCE_RSE_FLUSH:
		return rx_flush(x) ? x->out.syndrome : SILENCE;
	case ROCE_RSE_NO_ROOM:
		roce_resp_no_room(&x->r);
		return 0;
	case ROCE_RSE_ROOM:
		roce_resp_room(&x->r);
		return 0;
	case ROCE_RSE_COUNT:
		break;
	}
	fail();
	return 0;
}

/* {state afterwards, result} for each event. */
struct after {
	int state, result;
};
#define S(w) ROCE_RS_##w
static const struct after cells[ROCE_RS_COUNT][ROCE_RSE_COUNT] = {
    [S(IN_ORDER)] = {{S(IN_ORDER), ROCE_RESP_DUP}, {S(IN_ORDER), ROCE_RESP_ACCEPT}, {S(GAP), ROCE_RESP_GAP},
        {S(IN_ORDER), ROCE_RESP_SERVE}, {S(IN_ORDER), 0}, {S(ERROR_OWED), 1}, {NONE, 0}, {S(GAP), 0},
        {S(IN_ORDER), SILENCE}, {S(NO_ROOM), 0}, {S(IN_ORDER), 0}},
    [S(UNCOUNTED)] = {{S(UNCOUNTED), ROCE_RESP_DUP}, {S(UNCOUNTED), ROCE_RESP_PARK},
        {S(UNCOUNTED), ROCE_RESP_PARK}, {S(UNCOUNTED), ROCE_RESP_UNEXPECTED}, {S(IN_ORDER), 2},
        {S(ERROR_OWED), 1}, {NONE, 0}, {S(GAP), 0}, {S(UNCOUNTED), SILENCE}, {NONE, 0}, {S(UNCOUNTED), 0}},
    [S(GAP)] = {{S(GAP), ROCE_RESP_DUP}, {S(IN_ORDER), ROCE_RESP_ACCEPT}, {S(GAP), ROCE_RESP_GAP},
        {S(GAP), ROCE_RESP_SERVE}, {S(GAP), 0}, {S(ERROR_OWED), 1}, {NONE, 0}, {S(GAP), 0}, {S(GAP), SILENCE},
        {S(NO_ROOM), 0}, {S(GAP), 0}},
    [S(GAP_NAK_SENT)] = {{S(GAP_NAK_SENT), ROCE_RESP_DUP}, {S(IN_ORDER), ROCE_RESP_ACCEPT},
        {S(GAP_NAK_SENT), ROCE_RESP_GAP}, {NONE, 0}, {S(GAP_NAK_SENT), 0}, {S(FAILED), 1}, {NONE, 0},
        {S(GAP), 0}, {S(GAP_NAK_SENT), SILENCE}, {S(NO_ROOM), 0}, {S(GAP_NAK_SENT), 0}},
    [S(NO_ROOM)] = {{S(NO_ROOM), ROCE_RESP_DUP}, {S(IN_ORDER), ROCE_RESP_ACCEPT}, {S(NO_ROOM), ROCE_RESP_GAP},
        {S(NO_ROOM), ROCE_RESP_SERVE}, {S(NO_ROOM), 0}, {S(ERROR_OWED), 1}, {NONE, 0}, {S(GAP), 0},
        {S(NO_ROOM), SILENCE}, {S(NO_ROOM), 0}, {S(GAP), 0}},
    [S(HELD)] = {{S(HELD), ROCE_RESP_DUP}, {S(HELD), ROCE_RESP_FAILED}, {S(HELD), ROCE_RESP_FAILED},
        {S(HELD), ROCE_RESP_SERVE}, {S(HELD), 0}, {S(ERROR_OWED), 1}, {NONE, 0}, {S(GAP), 0},
        {S(HELD), SILENCE}, {NONE, 0}, {S(HELD), 0}},
    [S(FAILED)] = {{S(FAILED), ROCE_RESP_DUP}, {S(ERROR_OWED), ROCE_RESP_FAILED},
        {S(ERROR_OWED), ROCE_RESP_FAILED}, {NONE, 0}, {S(FAILED), 0}, {S(FAILED), 1}, {S(ERROR_OWED), 0},
        {S(FAILED), 0}, {S(FAILED), SILENCE}, {NONE, 0}, {S(FAILED), 0}},
    [S(ERROR_OWED)] = {{S(ERROR_OWED), ROCE_RESP_DUP}, {S(ERROR_OWED), ROCE_RESP_FAILED},
        {S(ERROR_OWED), ROCE_RESP_FAILED}, {S(ERROR_OWED), ROCE_RESP_UNEXPECTED}, {S(ERROR_OWED), 0},
        {S(ERROR_OWED), 1}, {S(ERROR_OWED), 0}, {S(FAILED), 0}, {S(ERROR_SENT), ACCESS}, {NONE, 0},
        {S(ERROR_OWED), 0}},
    [S(ERROR_SENT)] = {{S(ERROR_AGAIN), ROCE_RESP_DUP}, {S(ERROR_AGAIN), ROCE_RESP_FAILED},
        {S(ERROR_AGAIN), ROCE_RESP_FAILED}, {S(ERROR_SENT), ROCE_RESP_UNEXPECTED}, {S(ERROR_SENT), 0},
        {S(ERROR_SENT), 1}, {S(ERROR_AGAIN), 0}, {S(FAILED), 0}, {S(ERROR_SENT), SILENCE}, {NONE, 0},
        {S(ERROR_SENT), 0}},
    [S(ERROR_AGAIN)] = {{S(ERROR_AGAIN), ROCE_RESP_DUP}, {S(ERROR_AGAIN), ROCE_RESP_FAILED},
        {S(ERROR_AGAIN), ROCE_RESP_FAILED}, {S(ERROR_AGAIN), ROCE_RESP_UNEXPECTED}, {S(ERROR_AGAIN), 0},
        {S(ERROR_AGAIN), 1}, {S(ERROR_AGAIN), 0}, {S(FAILED), 0}, {S(ERROR_SENT), ACCESS}, {NONE, 0},
        {S(ERROR_AGAIN), 0}},
};

static const char *const word[ROCE_RS_COUNT][ROCE_RSE_COUNT] = {
#define ROW(s, p, n, a, r, m, f, l, w, o, x, y) [ROCE_RS_##s] = {#p, #n, #a, #r, #m, #f, #l, #w, #o, #x, #y},
    ROCE_RESP_TABLE(ROW)
#undef ROW
};

static void test_cells(void **state)
{
	unsigned possible = 0, entered = 0;

	for (unsigned s = 0; s < ROCE_RS_COUNT; s++)
		for (unsigned e = 0; e < ROCE_RSE_COUNT; e++) {
			const struct after *want = &cells[s][e];
			struct rx x;

			assert_int_equal(want->state == NONE, strcmp(word[s][e], "IMPOSSIBLE") == 0);
			possible += want->state != NONE;
			if (want->state == NONE)
				continue;
			rx_in_state(&x, (enum roce_resp_state)s);
			seen.cell[s][e] = 0;
			assert_int_equal(event(&x, (enum roce_resp_event)e), want->result);
			assert_int_equal(x.r.state, want->state);
			assert_int_equal(seen.cell[s][e], 1);
			entered += seen.cell[s][e];
			rx_fini(&x);
		}
	assert_int_equal(entered, possible);
	print_message("responder: %u of %u possible cells entered\n", entered, possible);
}

/* --- what a cell decides by more than its state ----------------------------------------------- */
static void test_gap(void **state)
{
	struct rx x;

	rx_in_state(&x, ROCE_RS_GAP);
	rx_answer(&x, at(1), ROCE_RC_READ_RESP_FIRST);
	assert_false(rx_flush(&x)); /* the NAK would acknowledge the READ */
	rx_answer(&x, at(2), ROCE_RC_READ_RESP_LAST);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.syndrome, PSN_SEQ);
	assert_int_equal(x.r.state, ROCE_RS_GAP_NAK_SENT);
	x.now += 100 * RWY_MS;
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at(5), 4, 0), ROCE_RESP_GAP);
	assert_int_equal(x.r.state, ROCE_RS_GAP);
	rx_fini(&x);
}

static void test_gap_closed_by_read(void **state)
{
	struct rx x;

	rx_init(&x, START, 0);
	rx_in(&x, ROCE_RC_SEND_ONLY, at(1), 4, 0);
	assert_int_equal(x.r.state, ROCE_RS_GAP);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, at(0), 0, 2048), ROCE_RESP_ACCEPT);
	assert_int_equal(x.r.state, ROCE_RS_UNCOUNTED);
	rx_fini(&x);
}

static void test_uncounted_only(void **state)
{
	struct rx x;

	rx_in_state(&x, ROCE_RS_UNCOUNTED);
	assert_int_equal(rx_answer(&x, at(1), ROCE_RC_READ_RESP_ONLY), ROCE_RESP_SERVE);
	assert_int_equal(x.r.state, ROCE_RS_IN_ORDER);
	assert_int_equal(x.r.epsn, at(2));
	rx_fini(&x);
}

/* Nobody can number the responses: the READ is the host's error. */
static void test_uncounted_too_many(void **state)
{
	struct rx x;

	rx_init(&x, START, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, at(0), 0, 1u << 31), ROCE_RESP_ACCEPT);
	assert_int_equal(roce_resp_set_pmtu(&x.r, 256), 1);
	assert_int_equal(x.r.state, ROCE_RS_HELD);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, at(0), 0, 1u << 31), ROCE_RESP_FAILED);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, at(0));
	assert_int_equal(x.out.syndrome, INV_REQ);
	rx_fini(&x);
}

static void test_held_until_acked(void **state)
{
	struct rx x;

	rx_in_state(&x, ROCE_RS_HELD);
	rx_answer(&x, at(1), ROCE_RC_READ_RESP_FIRST);
	rx_answer(&x, at(2), ROCE_RC_READ_RESP_LAST);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, at(3));
	assert_int_equal(x.out.syndrome, INV_REQ);
	assert_int_equal(x.r.state, ROCE_RS_ERROR_SENT);
	rx_fini(&x);
}

/* A failure behind the host's own error: the host's error is named. */
static void test_held_then_fail(void **state)
{
	struct rx x;

	rx_in_state(&x, ROCE_RS_HELD);
	rx_answer(&x, at(1), ROCE_RC_READ_RESP_FIRST);
	rx_answer(&x, at(2), ROCE_RC_READ_RESP_LAST);
	roce_resp_fail(&x.r, at(9), ACCESS);
	assert_int_equal(x.r.state, ROCE_RS_ERROR_OWED);
	assert_int_equal(x.r.fail_psn, at(3));
	rx_fini(&x);
}

/* --- lost responses --------------------------------------------------------------------------- */

/* The connection fails while three SENDs have their ACKs, and the host repeats the first. */
static void lost_at(struct rx *x, uint32_t i)
{
	rx_init(x, START, 1024);
	for (unsigned k = 0; k < 3; k++)
		rx_in(x, ROCE_RC_SEND_ONLY, at(k), 4, 0);
	rx_allow_all(x);
	rx_flush(x);
	roce_resp_fail(&x->r, at(i), REM_OP);
	roce_resp_lost(&x->r, at(i));
	assert_true(rx_flush(x));
	assert_int_equal(x->out.psn, at(i));
	assert_int_equal(x->out.syndrome, REM_OP);
	assert_false(rx_flush(x));
}

/* The NAK came too late for the host: it moves on to the PSN that the host resends first. */
static void test_lost_moves(void **state)
{
	struct rx x;

	lost_at(&x, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at(1), 4, 0), ROCE_RESP_FAILED);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, at(1));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at(7), 4, 0), ROCE_RESP_FAILED);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, at(3)); /* not after what has its ACK */
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at(0), 4, 0), ROCE_RESP_DUP);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, at(3));
	rx_fini(&x);
}

/* A host that resends from a PSN after the expected one: nothing before that is accepted. */
static void test_lost_ahead(void **state)
{
	struct rx x;

	lost_at(&x, 6);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at(3), 4, 0), ROCE_RESP_GAP);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at(5), 4, 0), ROCE_RESP_GAP);
	assert_false(rx_flush(&x));
	assert_int_equal(x.r.state, ROCE_RS_ERROR_SENT);
	assert_int_equal(x.r.epsn, at(3));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at(6), 4, 0), ROCE_RESP_FAILED);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at(5), 4, 0), ROCE_RESP_GAP);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, at(6));
	rx_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_page),
	    cmocka_unit_test(test_cells),
	    cmocka_unit_test(test_gap),
	    cmocka_unit_test(test_gap_closed_by_read),
	    cmocka_unit_test(test_uncounted_only),
	    cmocka_unit_test(test_uncounted_too_many),
	    cmocka_unit_test(test_held_until_acked),
	    cmocka_unit_test(test_held_then_fail),
	    cmocka_unit_test(test_lost_moves),
	    cmocka_unit_test(test_lost_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
