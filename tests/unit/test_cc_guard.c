/* SPDX-License-Identifier: Apache-2.0 */
/* The boundary: an algorithm with invalid answers, alone and under a tunnel that must still
 * work. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/guard.h"
#include "cc/limits.h"
#include "tests/lib/wan_pair.h"

#define MIN_RATE ((uint64_t)125000)
#define MAX_RATE ((uint64_t)12500000)

/* Answers set by the test. */
static uint64_t evil_rate_now, evil_window_now, evil_ticks;
static rwy_time evil_next_now = RWY_NEVER;

static void evil_init(void *state, const struct cc_cfg *cfg, rwy_time now)
{
	memset(state, 0xa5, CC_STATE_SIZE);
}

static void evil_on_sent(void *state, uint32_t bytes, uint64_t inflight, rwy_time now)
{
}

static void evil_on_ack(void *state, const struct cc_ack *ack, rwy_time now)
{
}

static void evil_on_lost(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now)
{
}

static void evil_on_persistent(void *state, rwy_time now)
{
}

static void evil_on_tick(void *state, rwy_time now)
{
	evil_ticks++;
}

static rwy_time evil_next(const void *state)
{
	return evil_next_now;
}

static uint64_t evil_rate(const void *state)
{
	return evil_rate_now;
}

static uint64_t evil_window(const void *state)
{
	return evil_window_now;
}

static int evil_print(const void *state, char *out, size_t size)
{
	memset(out, '\n', size); /* not terminated */
	return 1 << 30;
}

static const struct cc_ops evil = {
    .name = "evil",
    .init = evil_init,
    .on_sent = evil_on_sent,
    .on_ack = evil_on_ack,
    .on_lost = evil_on_lost,
    .on_persistent = evil_on_persistent,
    .on_tick = evil_on_tick,
    .next = evil_next,
    .rate = evil_rate,
    .window = evil_window,
    .print = evil_print,
};

static const uint64_t values[] = {0, 1, 2, 1249, 1250, 124999, 125000, 125001, 1500, 2999, 3000, 3001,
    12499999, 12500000, 12500001, CC_RATE_MAX, CC_RATE_MAX + 1, CC_WINDOW_MAX, CC_WINDOW_MAX + 1,
    UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
#define VALUES (sizeof(values) / sizeof(values[0]))

/* Every pair: the result is within the limits, and counted if and only if it was changed. */
static void test_bounds(void **state)
{
	struct cc_cfg cfg = {.rate_Bps = MAX_RATE, .min_rate_Bps = MIN_RATE, .mtu = 1500};

	for (size_t i = 0; i < VALUES; i++) {
		for (size_t k = 0; k < VALUES; k++) {
			struct cc_answer a;

			evil_rate_now = values[i];
			evil_window_now = values[k];
			unsigned bad = cc_guard_ask(&evil, NULL, &cfg, &a);

			assert_in_range(a.rate_Bps, MIN_RATE, MAX_RATE);
			assert_in_range(a.window, 3000, CC_WINDOW_MAX);
			assert_int_equal(
			    bad, (unsigned)(a.rate_Bps != values[i]) + (unsigned)(a.window != values[k]));
		}
	}
}

/* No configured maximum, no minimum, or a minimum above the maximum: never 0, the maximum wins. */
static void test_odd_configuration(void **state)
{
	struct cc_cfg none = {.mtu = 1500}, crossed = {.rate_Bps = 50000, .min_rate_Bps = 90000, .mtu = 1500};

	evil_window_now = 100000;
	for (size_t i = 0; i < VALUES; i++) {
		struct cc_answer a;

		evil_rate_now = values[i];
		cc_guard_ask(&evil, NULL, &none, &a);
		assert_in_range(a.rate_Bps, CC_RATE_MIN, CC_RATE_MAX);
		cc_guard_ask(&evil, NULL, &crossed, &a);
		assert_int_equal(a.rate_Bps, 50000);
	}
}

/* A timer that is always due does not keep the worker awake; one that is NULL never fires. */
static void test_timer(void **state)
{
	rwy_time now = 5 * RWY_SEC;

	evil_next_now = 0;
	assert_int_equal(cc_guard_next(&evil, NULL, now), now + CC_TICK_MIN);
	evil_next_now = now + RWY_SEC;
	assert_int_equal(cc_guard_next(&evil, NULL, now), now + RWY_SEC);
	evil_next_now = RWY_NEVER;
	assert_int_equal(cc_guard_next(&evil, NULL, now), RWY_NEVER);
	assert_int_equal(cc_guard_next(&cc_auto, NULL, now), RWY_NEVER);
}

static void test_print(void **state)
{
	char line[16];

	memset(line, 'x', sizeof(line));
	cc_guard_print(&evil, NULL, line, sizeof(line));
	assert_int_equal(strlen(line), sizeof(line) - 1);
	assert_null(strchr(line, '\n'));
	cc_guard_print(&evil, NULL, line, 0);
}

static const struct wan_link_cfg link_cfg = {
    .delay = 5 * RWY_MS, .rate_Bps = 2 * MAX_RATE, .overhead = 42, .queue_bytes = 200000};

/* Under a real tunnel: data arrives, at a rate within the limits, and each invalid answer is
 * counted. */
static void tunnel(uint64_t rate, uint64_t window, rwy_time next)
{
	struct wan_cfg c;
	struct wan_pair p;
	struct wan_stats s;

	evil_rate_now = rate;
	evil_window_now = window;
	evil_next_now = next;
	evil_ticks = 0;
	wan_cfg_default(&c);
	c.cc = &evil;
	c.cc_cfg.rate_Bps = MAX_RATE;
	c.cc_cfg.min_rate_Bps = MIN_RATE;
	wan_pair_init(&p, &c, &link_cfg, &link_cfg, 7);
	wan_pair_streams(&p, 1, 200, 1000, 1000, 1000);
	assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
	wan_get_stats(p.end[0].t, &s);
	print_message("rate %llu, window %llu: %llu nonsense, %llu ticks\n", (unsigned long long)rate,
	    (unsigned long long)window, (unsigned long long)s.c.cc_nonsense, (unsigned long long)evil_ticks);
	assert_in_range(s.rate_Bps, MIN_RATE, MAX_RATE);
	assert_true(s.cwnd >= 2 * 1472);
	assert_true(s.c.cc_nonsense > 0);
	assert_int_equal(p.errors, 0);
	assert_true(evil_ticks <= 2 * ((p.now + CC_TICK_MIN) / CC_TICK_MIN));
	wan_pair_fini(&p);
}

static void test_tunnel(void **state)
{
	tunnel(0, 0, RWY_NEVER);
	tunnel(UINT64_MAX, UINT64_MAX, RWY_NEVER);
	tunnel(1, UINT64_MAX, 0);
	tunnel(UINT64_MAX, 1, 0);
}

/* Our own algorithms never give invalid answers. */
static void test_ours(void **state)
{
	static const char *const names[] = {"auto", "fixed", "bbr", "swift", "dcqcn", "cubic"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct wan_cfg c;
		struct wan_pair p;
		struct wan_stats s;

		wan_cfg_default(&c);
		c.cc = cc_find(names[i]);
		c.cc_cfg.rate_Bps = MAX_RATE;
		c.cc_cfg.min_rate_Bps = MIN_RATE;
		wan_pair_init(&p, &c, &link_cfg, &link_cfg, 7);
		wan_pair_streams(&p, 2, 5000, 100, 4000, 1000);
		assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
		wan_get_stats(p.end[0].t, &s);
		assert_int_equal(s.c.cc_nonsense, 0);
		assert_int_equal(strncmp(s.cc, names[i], strlen(names[i])), 0);
		assert_int_equal(p.errors, 0);
		wan_pair_fini(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_odd_configuration),
	    cmocka_unit_test(test_timer),
	    cmocka_unit_test(test_print),
	    cmocka_unit_test(test_tunnel),
	    cmocka_unit_test(test_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
