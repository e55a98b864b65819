/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths share a bottleneck: made-up queues, of one path or of several, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "wan/couple.h"

#define PATHS 4u
#define EACH  (2 * RWY_MS)

/* A queue whose length jumps, as others send more and less; each path of ours adds to it. */
struct queue {
	rwy_dur others;
	rwy_time jump_at;
};

struct world {
	struct wan_couple c;
	struct queue queue[PATHS];
	unsigned behind[PATHS];           /* the queue of a path */
	rwy_dur base[PATHS], adds, noise; /* noise: of a path alone, for some round trips at a time */
	bool limited;
	unsigned silent; /* a path without acknowledgements; PATHS: none */
	rwy_time now;
	rwy_dur stopped[PATHS]; /* how long it took no new data */
	uint64_t rng, seed;
};

static void begin(struct world *w, uint64_t seed)
{
	*w = (struct world){
	    .now = RWY_SEC, .adds = 3 * RWY_MS, .silent = PATHS, .rng = seed, .seed = seed << 32};
	wan_couple_init(&w->c, PATHS);
	for (unsigned i = 0; i < PATHS; i++) {
		w->behind[i] = i;
		w->base[i] = (20 + 7 * i) * RWY_MS;
	}
}

static void move(struct world *w)
{
	for (unsigned i = 0; i < PATHS; i++) {
		struct queue *q = &w->queue[i];

		if (w->now < q->jump_at)
			continue;
		q->others = rng_next(&w->rng) % (20 * RWY_MS);
		q->jump_at = w->now + RWY_SEC + rng_next(&w->rng) % (4 * RWY_SEC);
	}
}

static rwy_dur rtt_of(struct world *w, unsigned path)
{
	rwy_dur rtt = w->base[path] + w->queue[w->behind[path]].others;

	for (unsigned i = 0; i < PATHS; i++)
		if (w->behind[i] == w->behind[path] && !wan_couple_rests(&w->c, i))
			rtt += w->adds;
	if (w->noise) {
		uint64_t own = path + (w->now / (4 * w->base[path])) * PATHS + w->seed;

		rtt += rng_next(&own) % w->noise;
	}
	return rtt + rng_next(&w->rng) % (RWY_MS / 4);
}

static void run(struct world *w, rwy_dur span)
{
	rwy_time end = w->now + span;

	for (; w->now < end; w->now += EACH) {
		move(w);
		for (unsigned i = 0; i < PATHS; i++) {
			const struct wan_couple_sample s = {
			    .rtt = rtt_of(w, i), .base = w->base[i], .limited = w->limited};

			w->stopped[i] += wan_couple_rests(&w->c, i) ? EACH : 0;
			if (!wan_couple_rests(&w->c, i) && i != w->silent)
				wan_couple_note(&w->c, i, &s, w->now);
		}
	}
}

static unsigned resting(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PATHS; i++)
		n += w->c.path[i].state == WAN_COUPLE_RESTS;
	return n;
}

/* One queue of two, three or all: the one with the shortest round trip carries, and soon. */
static void test_shared(void **state)
{
	for (unsigned seed = 1; seed <= 30; seed++) {
		unsigned n = 2 + seed % 3;
		struct world w;

		begin(&w, seed);
		for (unsigned i = 0; i < n; i++)
			w.behind[i] = 0;
		run(&w, 110 * RWY_SEC);
		assert_int_equal(resting(&w), n - 1);
		for (unsigned i = 0; i < PATHS; i++)
			assert_int_equal(wan_couple_rests(&w.c, i), i > 0 && i < n);
	}
}

/* Two pairs behind a queue each: one of each pair carries. */
static void test_pairs(void **state)
{
	struct world w;

	begin(&w, 5);
	w.behind[1] = 0;
	w.behind[2] = w.behind[3] = 2;
	run(&w, 110 * RWY_SEC);
	assert_false(wan_couple_rests(&w.c, 0));
	assert_true(wan_couple_rests(&w.c, 1));
	assert_false(wan_couple_rests(&w.c, 2));
	assert_true(wan_couple_rests(&w.c, 3));
}

/* Queues of their own, an hour long. */
static void test_disjoint(void **state)
{
	for (unsigned seed = 1; seed <= 5; seed++) {
		struct world w;

		begin(&w, seed);
		run(&w, 3600 * RWY_SEC);
		assert_int_equal(w.c.found, 0);
		print_message("seed %u: %u tests in an hour\n", seed, w.c.tests);
		for (unsigned i = 0; i < PATHS; i++)
			assert_true(w.stopped[i] < 36 * RWY_SEC); /* 1 % */
	}
}

/* Queues that move alike, but do not become shorter when others stop: a test says so, and tests
 * become rare. */
static void test_alike(void **state)
{
	struct world w;

	begin(&w, 3);
	for (unsigned i = 0; i < PATHS; i++)
		w.behind[i] = 0;
	w.adds = 0;
	run(&w, 3600 * RWY_SEC);
	print_message("%u tests in an hour, stopped for %.1f s\n", w.c.tests, (double)w.stopped[1] / 1e9);
	assert_int_equal(w.c.found, 0);
	assert_true(w.c.tests > 0);
	for (unsigned i = 0; i < PATHS; i++)
		assert_true(w.stopped[i] < 36 * RWY_SEC);
}

/*
 * Queues that move alike, and each path's own round trip at random: every other turn of a test looks
 * as if the paths shared, and none of them rests by chance.
 */
static void test_chance(void **state)
{
	unsigned found = 0, tests = 0;

	for (unsigned seed = 1; seed <= 40; seed++) {
		struct world w;

		begin(&w, seed);
		for (unsigned i = 0; i < PATHS; i++)
			w.behind[i] = 0;
		w.adds = 0;
		w.noise = 4 * RWY_MS;
		run(&w, 900 * RWY_SEC);
		found += w.c.found;
		tests += w.c.tests;
	}
	print_message("%u tests, %u found\n", tests, found);
	assert_true(tests > 100);
	assert_int_equal(found, 0);
}

/* A path that has rested is tried again, and rests longer if nothing has changed; else it carries. */
static void test_again(void **state)
{
	for (unsigned changed = 0; changed < 2; changed++) {
		struct world w;

		begin(&w, 8);
		w.behind[1] = 0;
		run(&w, 110 * RWY_SEC);
		assert_int_equal(resting(&w), 1);
		rwy_time until = w.c.path[1].until;

		run(&w, until - w.now - RWY_SEC);
		assert_int_equal(resting(&w), 1);
		if (changed)
			w.behind[1] = 1;
		run(&w, 2 * RWY_SEC);
		assert_int_equal(resting(&w), 0);
		run(&w, 110 * RWY_SEC);
		assert_int_equal(resting(&w), !changed);
		if (!changed)
			assert_true(w.c.path[1].until > until + 240 * RWY_SEC);
	}
}

/* When the one that carries falls silent, the others carry at once; also in the middle of a test. */
static void test_gone(void **state)
{
	struct world w;

	begin(&w, 9);
	w.behind[1] = w.behind[2] = 0;
	run(&w, 110 * RWY_SEC);
	assert_int_equal(resting(&w), 2);
	wan_couple_gone(&w.c, 0);
	assert_int_equal(resting(&w), 0);
	w.silent = 0;
	run(&w, 110 * RWY_SEC);
	assert_false(wan_couple_rests(&w.c, 1)); /* the next best */
	assert_true(wan_couple_rests(&w.c, 2));

	begin(&w, 9);
	w.behind[1] = 0;
	while (!w.c.testing)
		run(&w, EACH);
	assert_true(wan_couple_rests(&w.c, 1));
	wan_couple_gone(&w.c, 0);
	assert_false(w.c.testing);
	assert_false(wan_couple_rests(&w.c, 1));
}

/* While hosts have little to send nothing is compared, and a test that has begun finds nothing. */
static void test_limited(void **state)
{
	struct world w;

	begin(&w, 10);
	w.behind[1] = 0;
	w.limited = true;
	run(&w, 100 * RWY_SEC);
	assert_int_equal(w.c.tests, 0);
	w.limited = false;
	while (!w.c.testing)
		run(&w, EACH);
	w.limited = true;
	run(&w, RWY_SEC);
	assert_false(w.c.testing);
	assert_int_equal(w.c.found, 0);
	assert_false(wan_couple_rests(&w.c, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_shared),
	    cmocka_unit_test(test_pairs),
	    cmocka_unit_test(test_disjoint),
	    cmocka_unit_test(test_alike),
	    cmocka_unit_test(test_chance),
	    cmocka_unit_test(test_again),
	    cmocka_unit_test(test_gone),
	    cmocka_unit_test(test_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
