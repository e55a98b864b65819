/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs have to go for one that preempts, and with how many trials they are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/job/room.h"

#define JOBS 5000

static struct ctlr c;
static struct ctlr_job job[JOBS];
static unsigned trials;

struct need {
	bool needs[JOBS]; /* by the job's number: it must go */
};

static bool fits(void *ctx, struct ctlr_job *const *without, unsigned n)
{
	const struct need *w = ctx;
	static bool gone[JOBS];

	trials++;
	memset(gone, 0, sizeof(gone));
	for (unsigned i = 0; i < n; i++)
		gone[without[i] - job] = true;
	for (unsigned i = 0; i < JOBS; i++)
		if (w->needs[i] && !gone[i])
			return false;
	return true;
}

static int setup(void **state)
{
	for (unsigned i = 0; i < JOBS; i++) {
		snprintf(job[i].name, sizeof(job[i].name), "j%u", i);
		job[i].json = json_pack("{s:{s:i}}", "job", "priority", (int)(i / 1000));
		job[i].claims = 1;
		job[i].mod_rev = 1 + i;
		if (ctlr_map_add(&c.jobs, &job[i].node, job[i].name))
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < JOBS; i++)
		json_decref(job[i].json);
	ctlr_map_free(&c.jobs);
	return 0;
}

static unsigned preempt(const struct need *w, uint64_t priority, struct ctlr_job **out)
{
	trials = 0;
	return ctlr_room_preempt(&c, NULL, priority, fits, (void *)(uintptr_t)w, out);
}

static void those_that_must_go_are_found(void **state)
{
	struct ctlr_job *out[ROOM_PREEMPT_MAX];
	static struct need w;

	memset(&w, 0, sizeof(w));
	w.needs[17] = w.needs[4999] = w.needs[2500] = w.needs[2501] = true;
	assert_int_equal(preempt(&w, 7, out), 4);
	/* the lowest priority first, of equal ones the youngest */
	assert_ptr_equal(out[0], &job[17]);
	assert_ptr_equal(out[1], &job[2501]);
	assert_ptr_equal(out[2], &job[2500]);
	assert_ptr_equal(out[3], &job[4999]);
	assert_in_range(trials, 1, 80);
	assert_int_equal(preempt(&w, 4, out), 0); /* one of them has this priority */
	assert_int_equal(trials, 1);
}

static void as_many_as_can_go(void **state)
{
	struct ctlr_job *out[ROOM_PREEMPT_MAX];
	static struct need w;

	memset(&w, 0, sizeof(w));
	for (unsigned i = 0; i < ROOM_PREEMPT_MAX; i++)
		w.needs[900 + 4 * i] = true;
	assert_int_equal(preempt(&w, 7, out), ROOM_PREEMPT_MAX);
	for (unsigned i = 0; i < ROOM_PREEMPT_MAX; i++)
		assert_ptr_equal(out[i], &job[900 + 4 * (ROOM_PREEMPT_MAX - 1 - i)]);
	assert_in_range(trials, 1, ROOM_TRIALS_MAX);
	w.needs[0] = true;
	assert_int_equal(preempt(&w, 7, out), 0);
	assert_in_range(trials, 1, ROOM_TRIALS_MAX);
}

/* Every plan is made with the controller's lock held. */
static void too_many_are_given_up_soon(void **state)
{
	struct ctlr_job *out[ROOM_PREEMPT_MAX];
	static struct need w;

	for (unsigned every = 1; every < 100; every += 7) {
		memset(&w, 0, sizeof(w));
		for (unsigned i = 0; i < JOBS; i += every)
			w.needs[i] = true;
		assert_int_equal(preempt(&w, 7, out), 0);
		assert_in_range(trials, 1, ROOM_TRIALS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(those_that_must_go_are_found),
	    cmocka_unit_test(as_many_as_can_go),
	    cmocka_unit_test(too_many_are_given_up_soon),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
