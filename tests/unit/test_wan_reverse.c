/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use of arrival times: a queue on the reverse path is found, one on the forward path is not taken
 * for it, with unrelated clocks that drift, jump and wrap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wan/tunnel.h"

#define THERE (7 * RWY_MS)
#define BACK  (13 * RWY_MS)
#define EVERY RWY_MS

struct world {
	struct wan_path p;
	rwy_time now;
	uint32_t ahead_us; /* receiver's clock minus ours */
	int drift_ppm;
	rwy_dur there, back; /* queues */
};

static void begin(struct world *w, uint32_t ahead_us)
{
	memset(w, 0, sizeof(*w));
	w->now = 1000 * RWY_SEC;
	w->ahead_us = ahead_us;
}

static rwy_dur sample(struct world *w)
{
	rwy_time sent = w->now - THERE - w->there - BACK - w->back;
	rwy_time arrived = sent + THERE + w->there;
	int64_t apart = (int64_t)arrived / 1000000 * w->drift_ppm;
	uint32_t at_us = (uint32_t)(((int64_t)arrived + apart) / (int64_t)RWY_US) + w->ahead_us;

	wan_rtt_sample(&w->p, w->now - sent, 0, w->now);
	rwy_dur told = wan_reverse_delay(&w->p, sent, at_us, w->now);

	assert_true(told <= w->p.latest - w->p.min_rtt);
	w->now += EVERY;
	return told;
}

static void run(struct world *w, rwy_dur t)
{
	for (rwy_time end = w->now + t; w->now < end;)
		sample(w);
}

static void near(rwy_dur told, rwy_dur true_one, rwy_dur by)
{
	if (told + by < true_one || told > true_one + by)
		fail_msg("%.3f ms told, it is %.3f", (double)told / 1e6, (double)true_one / 1e6);
}

/* One second in four has no queue, as with our own probing. */
static void queues(uint32_t ahead_us, int drift_ppm)
{
	struct world w;

	begin(&w, ahead_us);
	w.drift_ppm = drift_ppm;
	run(&w, RWY_SEC);
	for (unsigned i = 0; i < 100; i++) {
		w.there = i % 4 ? i * 7 % 20 * RWY_MS : 0;
		w.back = i % 4 ? i * 3 % 15 * RWY_MS : 0;
		for (unsigned n = 0; n < 1000; n++)
			near(sample(&w), w.back,
			    RWY_MS + RWY_MS / 4); /* three seconds at 100 ppm, and as much taken off */
	}
}

static void test_queues(void **state)
{
	queues(0, 0);
	queues(0x12345678, 0);
	queues(UINT32_MAX - 2000000, 0);
	queues(77, 100);
	queues(77, -100);
}

/* The receiver's clock jumps while a queue stands: the result is wrong, within its limit, until the
 * round trip is about its smallest again. */
static void test_jump(void **state)
{
	static const int32_t by_us[] = {1000, -1000, 50000, -50000, 100000000, -100000000, INT32_MIN};

	for (size_t i = 0; i < sizeof(by_us) / sizeof(by_us[0]); i++) {
		struct world w;

		begin(&w, 5);
		run(&w, RWY_SEC);
		w.there = w.back = 5 * RWY_MS;
		run(&w, RWY_SEC);
		w.ahead_us += (uint32_t)by_us[i];
		run(&w, RWY_SEC);
		w.there = w.back = 0;
		run(&w, 2 * EVERY);
		w.there = 9 * RWY_MS;
		near(sample(&w), 0, 10 * RWY_US);
		w.back = 4 * RWY_MS;
		near(sample(&w), 4 * RWY_MS, 10 * RWY_US);
	}
}

/* The reverse path becomes longer permanently: after the lifetime of a smallest round trip, it is
 * no queue. */
static void test_longer(void **state)
{
	struct world w;

	begin(&w, 5);
	run(&w, RWY_SEC);
	w.back = 30 * RWY_MS;
	near(sample(&w), 30 * RWY_MS, 10 * RWY_US);
	run(&w, 11 * RWY_SEC);
	near(sample(&w), 0, 10 * RWY_US);
	w.there = 8 * RWY_MS;
	near(sample(&w), 0, 10 * RWY_US);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_queues), cmocka_unit_test(test_jump), cmocka_unit_test(test_longer)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
