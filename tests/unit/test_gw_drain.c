/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's drain (gateway/control/drain.h) over two made-up workers: SIGTERM and operators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/notify.h"
#include "gateway/control/drain.h"
#include "gateway/control/status.h"
#include "gateway/port/kernel.h"

#define WORKERS 2

struct eng {
	bool settles, hangs, paired;
	unsigned owes; /* flows */
	unsigned kept; /* flows of which the standby of a pair has everything */
	unsigned handed_over;
};

static struct eng eng[WORKERS];
static struct gw_app app;
static struct conf conf;
static int standby; /* its tunnel; < 0: no pair */
static rwy_time now;
static unsigned wakes;

rwy_time gw_now(void)
{
	return now;
}

static char notified[1024]; /* the last that systemd heard */

void gw_notify(const char *text)
{
	snprintf(notified, sizeof(notified), "%s", text);
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
	unsigned owes = e->owes + (e->paired ? 0 : e->kept);

	*out = (struct eng_settle_info){.state = owes ? ENG_SETTLING : ENG_SETTLED,
	    .flows = owes,
	    .bytes = 1000 * owes,
	    .kept = e->paired ? e->kept : 0};
}

int conf_standby(const struct conf *c)
{
	return standby;
}

bool eng_standby_info(const struct eng *e, struct eng_standby_info *out)
{
	*out = (struct eng_standby_info){.site = e->paired};
	return true;
}

bool eng_standby_hand_over(struct eng *e, rwy_time t)
{
	if (!e->paired)
		return false;
	e->handed_over++;
	e->paired = false;
	atomic_store(&app.pair, GW_PAIR_HIDES);
	return true;
}

static int set_up(void **state)
{
	memset(eng, 0, sizeof(eng));
	app = (struct gw_app){.workers = WORKERS, .state = GW_RUNNING, .conf = &conf};
	standby = -1;
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

	gw_drain_get(&app, &i);
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
	return gw_drain_begin(
	    &app, &(struct gw_drain_order){.keep = keep, .signal = sigterm, .timeout = timeout});
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
	gw_drain_get(&app, &i);
	assert_int_equal(i.state, GW_DRAIN_DONE);
	assert_false(run(50 * RWY_MS));
	gw_drain_told(&app);
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

/* A hidden standby does not forward, nor does a gateway that is kept drained. */
static void test_status(void **state)
{
	gw_status_say(&app, true, NULL);
	assert_string_equal(notified, "STATUS=forwarding\nREADY=1");
	assert_int_equal(begin(true, false, 0), 0);
	assert_false(run(RWY_SEC));
	assert_string_equal(notified, "STATUS=drained");
	gw_status_say(&app, true, "; reload refused"); /* the words stay */
	assert_string_equal(notified, "READY=1");
	atomic_store(&app.pair, GW_PAIR_HIDES);
	assert_int_equal(gw_drain_cancel(&app), 0);
	assert_string_equal(notified, "STATUS=standby of a pair");
	gw_status_say(&app, true, "; reload refused");
	assert_string_equal(notified, "STATUS=standby of a pair; reload refused\nREADY=1");
}

/* --- one of a pair ------------------------------------------------------------------------------ */
static void pair(void)
{
	standby = 1;
	app.workers = 1;
	eng[0].paired = true;
	eng[0].kept = 5;
	atomic_store(&app.pair, GW_PAIR_SERVES);
}

static int hand_over(void)
{
	return gw_drain_begin(&app, &(struct gw_drain_order){.hand_over = true});
}

/* What the standby has need not be drained; the gateway stops when the standby serves. */
static void test_pair_stops(void **state)
{
	pair();
	assert_int_equal(begin(false, true, 10 * RWY_SEC), 0);
	assert_false(run(RWY_SEC));
	assert_int_equal(eng[0].handed_over, 1);
	assert_int_equal(look().state, GW_DRAIN_YIELDS);
	assert_true(gw_drain_stops(&app) && gw_drain_yields(&app));
	assert_int_equal(gw_drain_cancel(&app), RWY_EAGAIN);
	atomic_store(&app.pair, GW_PAIR_REPLACED);
	assert_true(run(10 * RWY_MS));
	assert_true(look().taken);
}

/* What only this gateway has is drained first. */
static void test_pair_drains_first(void **state)
{
	pair();
	eng[0].owes = 1;
	assert_int_equal(begin(false, true, 10 * RWY_SEC), 0);
	assert_false(run(RWY_SEC));
	assert_int_equal(eng[0].handed_over, 0);
	eng[0].owes = 0;
	assert_false(run(10 * RWY_MS));
	assert_int_equal(eng[0].handed_over, 1);
}

/* The standby does not take over: all is drained, as without a pair. */
static void test_pair_not_taken(void **state)
{
	pair();
	assert_int_equal(begin(false, true, 10 * RWY_SEC), 0);
	assert_false(run(10 * RWY_MS));
	atomic_store(&app.pair, GW_PAIR_SERVES);
	assert_false(run(RWY_SEC));
	assert_int_equal(look().state, GW_DRAIN_ON);
	assert_int_equal(look().flows, 5);
	eng[0].kept = 0;
	assert_true(run(100 * RWY_MS));
	assert_int_equal(eng[0].handed_over, 1);
	assert_false(look().taken);
}

/* The standby dies between the last look at the flows and the order. */
static void test_pair_standby_lost(void **state)
{
	pair();
	eng[0].owes = 1;
	assert_int_equal(begin(false, true, 10 * RWY_SEC), 0);
	assert_false(run(RWY_SEC));
	eng[0].paired = false;
	eng[0].owes = 0;
	assert_false(run(RWY_SEC));
	assert_int_equal(look().flows, 5);
	eng[0].kept = 0;
	assert_true(run(100 * RWY_MS));
	assert_int_equal(eng[0].handed_over, 0);
}

static void test_hand_over(void **state)
{
	assert_int_equal(hand_over(), RWY_ENOENT);
	pair();
	assert_int_equal(hand_over(), 0);
	assert_false(run(10 * RWY_MS));
	assert_false(gw_drain_stops(&app));
	assert_true(gw_drain_yields(&app));
	assert_int_equal(hand_over(), RWY_EAGAIN);
	atomic_store(&app.pair, GW_PAIR_REPLACED);
	assert_false(run(100 * RWY_MS)); /* the operator is told first */
	assert_true(run(RWY_SEC));
	assert_false(gw_drain_stops(&app)); /* it is to start again */
}

/* The first SIGTERM does not cut an operator's hand-over off; the second one does. */
static void test_sigterm_while_it_yields(void **state)
{
	pair();
	assert_int_equal(hand_over(), 0);
	assert_false(run(10 * RWY_MS));
	assert_true(gw_drain_yields(&app));
	assert_int_equal(begin(false, true, 10 * RWY_SEC), 0);
	assert_int_equal(look().state, GW_DRAIN_YIELDS);
	assert_int_equal(begin(false, true, 10 * RWY_SEC), RWY_EAGAIN);
	assert_false(run(RWY_SEC));
	assert_int_equal(eng[0].handed_over, 1);
	atomic_store(&app.pair, GW_PAIR_REPLACED);
	assert_true(run(10 * RWY_MS));
	assert_true(look().taken);
	assert_true(gw_drain_stops(&app)); /* it is not to start again */
}

/* The same when the standby has taken over, and the operator was not told yet. */
static void test_sigterm_after_it_yielded(void **state)
{
	pair();
	assert_int_equal(hand_over(), 0);
	assert_false(run(10 * RWY_MS));
	atomic_store(&app.pair, GW_PAIR_REPLACED);
	assert_false(run(10 * RWY_MS));
	assert_int_equal(begin(false, true, 10 * RWY_SEC), 0);
	assert_true(run(10 * RWY_MS));
	assert_int_equal(eng[0].handed_over, 1);
}

static void test_hand_over_not_taken(void **state)
{
	pair();
	assert_int_equal(hand_over(), 0);
	assert_false(run(10 * RWY_MS));
	atomic_store(&app.pair, GW_PAIR_SERVES);
	assert_false(run(RWY_SEC));
	assert_int_equal(look().state, GW_DRAIN_OFF);
	assert_int_equal(look().end, GW_DRAIN_NOT_TAKEN);
	assert_int_equal(atomic_load(&app.state), GW_RUNNING);
	assert_false(eng[0].settles || gw_drain_yields(&app));
}

/* It was drained, and kept so: a stop still hands over. */
static void test_hand_over_when_drained(void **state)
{
	pair();
	assert_int_equal(begin(true, false, 0), 0);
	assert_false(run(RWY_SEC));
	assert_int_equal(eng[0].handed_over, 0);
	assert_int_equal(begin(false, true, 10 * RWY_SEC), 0);
	assert_false(run(RWY_SEC));
	assert_int_equal(eng[0].handed_over, 1);
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
	    CASE(test_status),
	    CASE(test_pair_stops),
	    CASE(test_pair_drains_first),
	    CASE(test_pair_not_taken),
	    CASE(test_pair_standby_lost),
	    CASE(test_hand_over),
	    CASE(test_sigterm_while_it_yields),
	    CASE(test_sigterm_after_it_yielded),
	    CASE(test_hand_over_not_taken),
	    CASE(test_hand_over_when_drained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
