/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's drain (gateway/control/drain.h) over two made-up workers: SIGTERM and operators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/control/drain.h"
#include "gateway/port/kernel.h"

#define WORKERS 2

struct eng {
	bool settles, hangs;
	unsigned owes; /* flows */
};

static struct eng eng[WORKERS];
static struct gw_app app;
static rwy_time now;
static unsigned wakes;

rwy_time gw_now(void)
{
	return now;
}

void gw_kernel_wake(struct gw_kernel *k)
{
	wakes++;
}

int gw_call(struct gw_app *a, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg)
{
	if (eng[worker].hangs)
		return RWY_EAGAIN;
	fn(&eng[worker], arg);
	return 0;
}

void eng_settle_begin(struct eng *e, rwy_time t)
{
	e->settles = true;
}

void eng_settle_cancel(struct eng *e, rwy_time t)
{
	e->settles = false;
}

void eng_settle_get(const struct eng *e, struct eng_settle_info *out)
{
	*out = (struct eng_settle_info){
	    .state = e->owes ? ENG_SETTLING : ENG_SETTLED, .flows = e->owes, .bytes = 1000 * e->owes};
}

static int set_up(void **state)
{
	memset(eng, 0, sizeof(eng));
	app = (struct gw_app){.workers = WORKERS, .state = GW_RUNNING};
	now = 100 * RWY_SEC;
	return gw_drain_new(&app);
}

static int tear_down(void **state)
{
	gw_drain_free(&app);
	return 0;
}

static struct gw_drain_info look(void)
{
	struct gw_drain_info i;

	gw_drain_get(&app, &i, false);
	return i;
}

/* As the control thread does it. True: the gateway stops. */
static bool run(rwy_dur time)
{
	rwy_time end = now + time;

	for (; gw_drain_next(&app) <= end; now = now < end ? now + RWY_MS : end)
		if (gw_drain_tick(&app, now))
			return true;
		else if (now >= end)
			break;
	now = end;
	return false;
}

static int begin(bool keep, bool sigterm, rwy_dur timeout)
{
	return gw_drain_begin(&app, &(struct gw_drain_order){keep, sigterm, timeout});
}

static void test_off(void **state)
{
	assert_int_equal(gw_drain_next(&app), RWY_NEVER);
	assert_false(gw_drain_tick(&app, now));
	assert_int_equal(look().state, GW_DRAIN_OFF);
	assert_int_equal(gw_drain_cancel(&app), RWY_ENOENT);
	assert_false(eng[0].settles);
}

static void test_sigterm(void **state)
{
	eng[1].owes = 3;
	assert_int_equal(begin(false, true, 10 * RWY_SEC), 0);
	assert_int_equal(atomic_load(&app.state), GW_DRAINING);
	assert_true(wakes > 0);
	assert_false(run(5 * RWY_SEC));
	assert_true(eng[0].settles && eng[1].settles);
	assert_int_equal(look().flows, 3);
	assert_int_equal(look().bytes, 3000);
	assert_int_equal(look().settled, 1);
	assert_int_equal(look().elapsed, 5 * RWY_SEC);
	eng[1].owes = 0;
	assert_true(run(100 * RWY_MS));
	assert_int_equal(look().state, GW_DRAIN_DONE);
}

/* Its bound: it stops although something is owed, and the engines do not serve again before. */
static void test_sigterm_ends(void **state)
{
	eng[0].owes = 1;
	assert_int_equal(begin(false, true, 2 * RWY_SEC), 0);
	assert_false(run(2 * RWY_SEC - 10 * RWY_MS));
	assert_true(run(100 * RWY_MS));
	assert_true(eng[0].settles);
	assert_int_equal(look().flows, 1);
}

/* The second one is the caller's sign to stop at once; nobody cancels SIGTERM. */
static void test_sigterm_twice(void **state)
{
	eng[0].owes = 1;
	assert_int_equal(begin(false, true, 2 * RWY_SEC), 0);
	assert_int_equal(begin(false, true, 2 * RWY_SEC), RWY_EAGAIN);
	assert_int_equal(begin(true, false, 0), RWY_EAGAIN);
	assert_int_equal(gw_drain_cancel(&app), RWY_EAGAIN);
	assert_true(eng[0].settles);
}

/* SIGTERM while an operator keeps it drained: nothing is owed, it stops. */
static void test_sigterm_when_drained(void **state)
{
	assert_int_equal(begin(true, false, 0), 0);
	assert_false(run(100 * RWY_SEC));
	assert_int_equal(look().state, GW_DRAIN_DONE);
	assert_int_equal(gw_drain_next(&app), RWY_NEVER);
	assert_int_equal(begin(false, true, 2 * RWY_SEC), 0);
	assert_true(run(RWY_SEC));
}

/* The operator's command hears of the end before the gateway goes. */
static void test_operator_is_told(void **state)
{
	struct gw_drain_info i;

	assert_int_equal(begin(false, false, 0), 0);
	assert_false(run(100 * RWY_MS));
	gw_drain_get(&app, &i, true);
	assert_int_equal(i.state, GW_DRAIN_DONE);
	assert_true(run(50 * RWY_MS));
}

static void test_operator_is_away(void **state)
{
	assert_int_equal(begin(false, false, 0), 0);
	assert_false(run(400 * RWY_MS));
	assert_true(run(200 * RWY_MS));
}

static void test_timeout(void **state)
{
	eng[0].owes = 1;
	assert_int_equal(begin(false, false, RWY_SEC), 0);
	assert_false(run(2 * RWY_SEC));
	assert_int_equal(look().state, GW_DRAIN_OFF);
	assert_int_equal(look().end, GW_DRAIN_TIMED_OUT);
	assert_int_equal(atomic_load(&app.state), GW_RUNNING);
	assert_false(eng[0].settles || eng[1].settles);
	assert_int_equal(begin(true, false, 0), 0);
	assert_int_equal(look().end, GW_DRAIN_NO_END);
}

/* A worker that hangs has not settled; after a cancel it serves again when it can be told. */
static void test_worker_hangs(void **state)
{
	eng[1].hangs = true;
	assert_int_equal(begin(false, false, 0), 0);
	assert_false(run(10 * RWY_SEC));
	assert_int_equal(look().settled, 1);
	eng[1].owes = 1;
	eng[1].hangs = false;
	assert_false(run(RWY_SEC));
	assert_true(eng[1].settles);
	eng[1].hangs = true;
	assert_int_equal(gw_drain_cancel(&app), 0);
	assert_false(run(RWY_SEC));
	assert_true(eng[1].settles);
	eng[1].hangs = false;
	assert_false(run(RWY_SEC));
	assert_false(eng[1].settles);
	assert_int_equal(gw_drain_next(&app), RWY_NEVER);
}

/* An order replaces the one before. */
static void test_other_order(void **state)
{
	assert_int_equal(begin(true, false, 0), 0);
	assert_false(run(RWY_SEC));
	assert_int_equal(begin(false, false, 0), 0);
	assert_true(run(RWY_SEC));
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_off),
	    CASE(test_sigterm),
	    CASE(test_sigterm_ends),
	    CASE(test_sigterm_twice),
	    CASE(test_sigterm_when_drained),
	    CASE(test_operator_is_told),
	    CASE(test_operator_is_away),
	    CASE(test_timeout),
	    CASE(test_worker_hangs),
	    CASE(test_other_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
