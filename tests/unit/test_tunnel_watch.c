/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about a tunnel: which are written, when, and their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/control/tunnel_watch.h"

#define T0 (100 * RWY_SEC)

static struct tunnel_watch w;
static rwy_time now;

static enum watch_line step(bool up, rwy_time changed)
{
	enum watch_line say = tunnel_watch_step(&w, up, changed, now);

	if (say != WATCH_NOTHING)
		w.logged = w.changes;
	return say;
}

static int set_up(void **state)
{
	now = T0;
	tunnel_watch_init(&w, now);
	return 0;
}

static void test_never_up(void **state)
{
	for (; now < T0 + WATCH_PATIENCE; now += RWY_SEC)
		assert_int_equal(step(false, 0), WATCH_NOTHING);
	assert_int_equal(step(false, 0), WATCH_ABSENT);
	for (; now < T0 + 3600 * RWY_SEC; now += RWY_SEC)
		assert_int_equal(step(false, 0), WATCH_NOTHING);
	assert_int_equal(step(true, now - 10), WATCH_UP);
	assert_int_equal(w.since - w.before, now - 10 - T0);
}

static void test_up_soon(void **state)
{
	assert_int_equal(step(true, now + 5), WATCH_UP);
	for (; now < T0 + 20 * RWY_SEC; now += RWY_SEC)
		assert_int_equal(step(true, T0 + 5), WATCH_NOTHING);
	assert_int_equal(step(false, now - 3), WATCH_DOWN);
	assert_int_equal(w.since, now - 3);
	assert_int_equal(w.before, T0 + 5);
	now += 100 * RWY_SEC;
	assert_int_equal(step(true, now), WATCH_UP);
	assert_int_equal(w.since - w.before, 100 * RWY_SEC + 3);
}

/* Down and up again between two looks. */
static void test_there_and_back(void **state)
{
	assert_int_equal(step(true, now), WATCH_UP);
	now += RWY_SEC;
	assert_int_equal(step(true, now - 100), WATCH_UP);
	assert_int_equal(w.changes, 3);
	now += RWY_SEC;
	assert_int_equal(step(true, w.since), WATCH_NOTHING);
}

/* It changes every second for an hour: a limited number of lines, and the last state is logged. */
static void test_flapping(void **state)
{
	unsigned lines = 0;
	bool up = false;
	enum watch_line last = WATCH_NOTHING;

	for (unsigned i = 0; i < 3600; i++, now += RWY_SEC) {
		enum watch_line say = step(up = !up, now);

		lines += say != WATCH_NOTHING;
		last = say ? say : last;
	}
	assert_in_range(lines, 100, WATCH_BURST + 3600 * RWY_SEC / WATCH_REFILL);
	for (rwy_time end = now + WATCH_REFILL; now <= end; now += RWY_SEC) {
		enum watch_line say = step(up, w.since);

		last = say ? say : last;
	}
	assert_int_equal(last, up ? WATCH_UP : WATCH_DOWN);
	assert_int_equal(w.logged, w.changes);
}

/* After a quiet time a burst is logged, and no more. */
static void test_burst(void **state)
{
	unsigned lines = 0;
	bool up = false;

	now += 3600 * RWY_SEC;
	for (unsigned i = 0; i < 20; i++, now += RWY_SEC)
		lines += step(up = !up, now) != WATCH_NOTHING;
	assert_int_equal(lines, WATCH_BURST);
}

/* --- sentences -------------------------------------------------------------------------------- */

static void assert_says(enum watch_line say, const struct watch_facts *f, const char *want)
{
	char text[1024];

	tunnel_watch_text(text, sizeof(text), say, f);
	if (!strstr(text, want))
		fail_msg("wanted `%s` in `%s`", want, text);
}

static void test_words(void **state)
{
	struct conf_tunnel c = {.name = "site-b", .port = "wan", .udp_port = 4793};
	struct watch_facts f = {.conf = &c, .workers = 2, .sent = 12, .link = true, .resolved = true};

	c.local = rwy_ip_from4((const uint8_t[4]){192, 0, 2, 1});
	c.remote = rwy_ip_from4((const uint8_t[4]){192, 0, 2, 2});
	assert_says(WATCH_ABSENT, &f,
	    "tunnel=site-b state=down remote=192.0.2.2 local=192.0.2.1 port=wan udp_port=4793 workers_up=0/2 "
	    "sent=12 received=0 event=\"does not come up: no HELLO was answered");
	f.strangers = 1;
	assert_says(WATCH_ABSENT, &f, "datagrams from other addresses");
	f.received = 1;
	assert_says(WATCH_ABSENT, &f, "one direction only");
	f.other_tunnel = 1;
	assert_says(WATCH_ABSENT, &f, "a tunnel that is not this one");
	f.other_version = 1;
	assert_says(WATCH_ABSENT, &f, "another version");
	f.workers_up = 1;
	assert_says(WATCH_ABSENT, &f, "a part of the workers");
	f.resolved = false;
	assert_says(WATCH_ABSENT, &f, "MAC address of the next hop");
	assert_says(WATCH_DOWN, &f, "MAC address of the next hop");
	f.link = false;
	assert_says(WATCH_DOWN, &f, "no link");
	f = (struct watch_facts){.conf = &c,
	    .workers = 2,
	    .workers_up = 2,
	    .rtt = 20 * RWY_MS,
	    .lasted = 12345 * RWY_MS,
	    .flaps = 3,
	    .link = true,
	    .resolved = true};
	assert_says(WATCH_UP, &f, "state=up remote=192.0.2.2");
	assert_says(WATCH_UP, &f, "down_for=12.3s rtt_ms=20.00 changes_untold=3");
	f.rtt = 0;
	assert_says(WATCH_UP, &f, "down_for=12.3s changes_untold=3");
	f.workers_up = 0;
	assert_says(WATCH_DOWN, &f, "up_for=12.3s changes_untold=3 event=\"the peer is silent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_never_up, set_up),
	    cmocka_unit_test_setup(test_up_soon, set_up),
	    cmocka_unit_test_setup(test_there_and_back, set_up),
	    cmocka_unit_test_setup(test_flapping, set_up),
	    cmocka_unit_test_setup(test_burst, set_up),
	    cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
