/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a pair of gateways serves, and whether the other one could (controller/plan/standby.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "controller/model/model.h"
#include "controller/plan/standby.h"
#include "engine/states.h"

static struct plan_standby pair;

static int set_up(void **state)
{
	pair = (struct plan_standby){
	    .serves = -1, .m = {{.name = "m1", .up = true}, {.name = "m2", .up = true}}};
	return 0;
}

static void says(unsigned k, enum plan_standby_state st, enum plan_standby_state other, uint64_t epoch)
{
	const struct plan_standby_status s = {.state = (uint8_t)st,
	    .other = (uint8_t)other,
	    .has_other = true,
	    .epoch = epoch,
	    .since_ms = 1000};

	plan_standby_settle(&pair, k, &s);
}

static const char *verdict(enum plan_standby_why *why)
{
	static struct plan_standby_verdict v;

	plan_standby_judge(&pair, "", &v);
	*why = v.why;
	return v.text;
}

static void judged(enum plan_standby_why want, const char *part)
{
	enum plan_standby_why why;
	const char *text = verdict(&why);

	assert_string_equal(plan_standby_why_name(why), plan_standby_why_name(want));
	assert_non_null(strstr(text, part));
}

static void paired(uint64_t epoch)
{
	says(0, PLAN_STANDBY_PAIRED, PLAN_STANDBY_READY, epoch);
	says(1, PLAN_STANDBY_READY, PLAN_STANDBY_PAIRED, epoch);
	assert_int_equal(pair.serves, 0);
	judged(PLAN_STANDBY_PROTECTED, "m1 serves, and m2 has everything");
}

/* --- words ------------------------------------------------------------------------------------ */

/* The gateway, the API's words and the planner's have one order. */
static void test_words(void **state)
{
	static const char *const eng[] = {
#define X(e, n, s) n,
	    ENG_SB_STATES(X)
#undef X
	};
	static const char *const ev[] = {
#define X(e, n, s) n,
	    ENG_SB_EVENTS(X)
#undef X
	};
	char word[MDL_NAME];

	assert_int_equal(PLAN_STANDBY_STATE_COUNT, ENG_SB_STATE_COUNT - 1);
	for (unsigned n = 0; n < PLAN_STANDBY_STATE_COUNT; n++) {
		const uint8_t i = (uint8_t)n;

		assert_string_equal(plan_standby_state_name(i), eng[i + 1]);
		assert_string_equal(mdl_word(MODEL_PAIR_STATES, i, word), eng[i + 1]);
		assert_true(*plan_standby_state_text(i) != 0);
		assert_int_equal(plan_standby_state_serves(i), i + 1 <= ENG_SB_LOSING);
	}
	assert_int_equal(PLAN_STANDBY_EVENT_COUNT, ENG_SB_EVENT_COUNT);
	for (unsigned n = 0; n < PLAN_STANDBY_EVENT_COUNT; n++) {
		const uint8_t i = (uint8_t)n;

		assert_string_equal(plan_standby_event_name(i), ev[i]);
		assert_string_equal(mdl_word(MODEL_PAIR_EVENTS, i, word), ev[i]);
		assert_true(*plan_standby_served_text(i) && *plan_standby_lost_text(i));
	}
	assert_string_equal(mdl_word(MODEL_PAIR_STATES, PLAN_STANDBY_STATE_COUNT, word), "");
	assert_string_equal(mdl_word(MODEL_PAIR_EVENTS, PLAN_STANDBY_EVENT_COUNT, word), "");
	assert_string_equal(plan_standby_state_name(PLAN_STANDBY_STATE_COUNT), "");
	assert_string_equal(plan_standby_event_name(PLAN_STANDBY_EVENT_COUNT), "");
}

/* --- who serves ------------------------------------------------------------------------------- */

static void test_begins(void **state)
{
	judged(PLAN_STANDBY_NOBODY, "no gateway of the pair");
	says(0, PLAN_STANDBY_ASKING, PLAN_STANDBY_ASKING, 0);
	assert_int_equal(pair.serves, -1);
	says(0, PLAN_STANDBY_ALONE, PLAN_STANDBY_STORING, 1);
	assert_int_equal(pair.serves, 0);
	assert_int_equal(pair.epoch, 1);
	judged(PLAN_STANDBY_NO_STANDBY, "m1 is alone: m2 is storing");
	says(0, PLAN_STANDBY_COPYING, PLAN_STANDBY_STORING, 1);
	judged(PLAN_STANDBY_BEHIND, "m1 is copying");
	says(0, PLAN_STANDBY_PAIRED, PLAN_STANDBY_READY, 1);
	judged(PLAN_STANDBY_BEHIND, "m2 is silent since its start");
	says(1, PLAN_STANDBY_STORING, PLAN_STANDBY_PAIRED, 1);
	judged(PLAN_STANDBY_BEHIND, "m2 is storing");
	paired(1);
}

/* The dead one's last word does not count against the one that took over. */
static void test_takeover(void **state)
{
	const struct plan_standby_status took = {.state = PLAN_STANDBY_ALONE,
	    .epoch = 4,
	    .has_served = true,
	    .served_by = PLAN_STANDBY_E_SILENT,
	    .served_ms = 77,
	    .since_ms = 78};

	paired(3);
	plan_standby_settle(&pair, 1, &took);
	assert_int_equal(pair.serves, 1);
	assert_int_equal(pair.epoch, 4);
	assert_int_equal(pair.since_ms, 77);
	assert_false(pair.m[0].said);
	judged(PLAN_STANDBY_NO_STANDBY, "m2 is alone: m1 is silent");
	plan_standby_restart(&pair, 0);
	says(0, PLAN_STANDBY_READY, PLAN_STANDBY_PAIRED, 4);
	says(1, PLAN_STANDBY_PAIRED, PLAN_STANDBY_READY, 4);
	assert_int_equal(pair.serves, 1);
	judged(PLAN_STANDBY_PROTECTED, "m2 serves, and m1 has everything");
}

static void test_hand_over(void **state)
{
	paired(3);
	says(0, PLAN_STANDBY_YIELDING, PLAN_STANDBY_READY, 3);
	assert_int_equal(pair.serves, 0); /* as long as nobody else says so */
	judged(PLAN_STANDBY_NO_STANDBY, "m1 is yielding");
	says(1, PLAN_STANDBY_ALONE, PLAN_STANDBY_REPLACED, 4);
	assert_int_equal(pair.serves, 1);
}

/* A process that stood still goes on saying that it serves. */
static void test_zombie(void **state)
{
	paired(3);
	says(1, PLAN_STANDBY_ALONE, PLAN_STANDBY_PAIRED, 4);
	says(0, PLAN_STANDBY_PAIRED, PLAN_STANDBY_READY, 3);
	assert_int_equal(pair.serves, 1);
	assert_int_equal(pair.epoch, 4);
	judged(PLAN_STANDBY_PAST, "m1 says that it serves in epoch 3, which is past: m2 serves in epoch 4");
	pair.m[0].up = false; /* its lease runs out */
	judged(PLAN_STANDBY_NO_STANDBY, "m2 is alone");
}

static void test_both_serve(void **state)
{
	paired(3);
	says(1, PLAN_STANDBY_ALONE, PLAN_STANDBY_PAIRED, 3);
	assert_int_equal(pair.serves, 0); /* the second word of one epoch is not believed */
	judged(PLAN_STANDBY_BOTH, "m1 and m2 both say that they serve, in epoch 3");
	says(1, PLAN_STANDBY_ALONE, PLAN_STANDBY_PAIRED, 2);
	assert_int_equal(pair.serves, 0);
	judged(PLAN_STANDBY_PAST, "m2 says that it serves in epoch 2");
	says(1, PLAN_STANDBY_READY, PLAN_STANDBY_PAIRED, 3);
	judged(PLAN_STANDBY_PROTECTED, "");
}

/* One process says a lower epoch than before; after a restart it may: its journal is gone. */
static void test_back_in_time(void **state)
{
	paired(9);
	says(0, PLAN_STANDBY_PAIRED, PLAN_STANDBY_READY, 5);
	assert_int_equal(pair.epoch, 9);
	judged(PLAN_STANDBY_PAST, "m1 says that it serves in epoch 5, and said 9 before");
	says(0, PLAN_STANDBY_PAIRED, PLAN_STANDBY_READY, 6); /* it is still below */
	judged(PLAN_STANDBY_PAST, "epoch 6, and said 9 before");
	plan_standby_restart(&pair, 0);
	plan_standby_restart(&pair, 1);
	judged(PLAN_STANDBY_NOBODY, "");
	says(0, PLAN_STANDBY_ALONE, PLAN_STANDBY_ASKING, 1);
	assert_int_equal(pair.serves, 0);
	assert_int_equal(pair.epoch, 1);
	judged(PLAN_STANDBY_NO_STANDBY, "m1 is alone");
}

/* --- whether the other one could -------------------------------------------------------------- */

static void test_unprotected(void **state)
{
	struct plan_standby_verdict v;
	struct plan_standby_status s;

	paired(3);
	plan_standby_judge(&pair, "wan", &v);
	assert_int_equal(v.why, PLAN_STANDBY_DIFFER);
	assert_string_equal(v.text, "m1 and m2 differ in wan");
	s = pair.m[1].st;
	s.refuses = true;
	plan_standby_settle(&pair, 1, &s);
	judged(PLAN_STANDBY_REFUSES, "m2 refuses the document");
	pair.m[1].up = false;
	judged(PLAN_STANDBY_LOST, "m2 does not renew its lease");
	memset(&pair.m[1], 0, sizeof(pair.m[1]));
	judged(PLAN_STANDBY_MISSING, "the standby of m1 has not registered");
	s = pair.m[0].st;
	s.state = PLAN_STANDBY_ALONE;
	s.has_other = false;
	s.has_lost = true;
	s.lost_by = PLAN_STANDBY_E_STUCK;
	plan_standby_settle(&pair, 0, &s);
	judged(PLAN_STANDBY_NO_STANDBY,
	    "m1 is alone: a copy could not be made, or was refused; the other one is silent");
	for (unsigned w = 0; w < PLAN_STANDBY_WHY_COUNT; w++)
		assert_true(*plan_standby_why_name(w) && plan_standby_why_severity(w) <= 2);
}

/* What would make a change of the store: each part does, times do not. */
static void test_differs(void **state)
{
	const struct plan_standby_status a = {.state = 3, .other = 8, .has_other = true, .epoch = 2};
	struct plan_standby_status b = a;

	b.since_ms = b.served_ms = b.lost_ms = 9;
	assert_false(plan_standby_status_differs(&a, &b));
#define DIFFERS(f, v)                                                                                        \
	b = a;                                                                                               \
	b.f = v;                                                                                             \
	assert_true(plan_standby_status_differs(&a, &b))
	DIFFERS(state, 1);
	DIFFERS(other, 1);
	DIFFERS(has_other, false);
	DIFFERS(has_served, true);
	DIFFERS(has_lost, true);
	DIFFERS(refuses, true);
	DIFFERS(epoch, 3);
	DIFFERS(configuration, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words),
	    cmocka_unit_test_setup(test_begins, set_up),
	    cmocka_unit_test_setup(test_takeover, set_up),
	    cmocka_unit_test_setup(test_hand_over, set_up),
	    cmocka_unit_test_setup(test_zombie, set_up),
	    cmocka_unit_test_setup(test_both_serve, set_up),
	    cmocka_unit_test_setup(test_back_in_time, set_up),
	    cmocka_unit_test_setup(test_unprotected, set_up),
	    cmocka_unit_test(test_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
