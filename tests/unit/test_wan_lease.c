/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a tunnel's rate that its halves lease: who gets what, and that it is never more than
 * the whole, also with several threads; and a tunnel's rate with a part of it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "tests/lib/wan_one_path.h"
#include "wan/lease.h"

#define WHOLE  WAN_LEASE_WHOLE
#define ROUNDS 3

struct world {
	struct wan_leases all;
	struct wan_lease half[WAN_HALVES_MAX];
};

static void begin(struct world *w, unsigned halves)
{
	wan_leases_init(&w->all, halves);
	for (unsigned i = 0; i < halves; i++)
		wan_lease_begin(&w->half[i], &w->all);
}

/* The sum of all leases and the free part. */
static uint64_t sum_of(struct world *w)
{
	uint64_t sum = atomic_load(&w->all.free);

	for (unsigned i = 0; i < w->all.halves; i++)
		sum += w->half[i].held;
	return sum;
}

static void turns(struct world *w, const uint32_t *demand, unsigned rounds)
{
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < w->all.halves; i++) {
			wan_lease_turn(&w->half[i], &w->all, i, demand[i]);
			assert_true(sum_of(w) + w->half[i].giving == WHOLE);
			wan_lease_release(&w->half[i], &w->all);
			assert_int_equal(sum_of(w), WHOLE);
		}
}

/* One that sends alone has all but what the others keep to begin with. */
static void test_alone(void **state)
{
	for (unsigned halves = 2; halves <= WAN_HALVES_MAX; halves *= 2) {
		uint32_t demand[WAN_HALVES_MAX] = {[1] = WHOLE};
		struct world w;

		begin(&w, halves);
		assert_int_equal(w.half[1].held, WHOLE / halves);
		turns(&w, demand, ROUNDS);
		assert_true(w.half[1].held >= WHOLE - WHOLE / WAN_LEASE_LEAST);
		for (unsigned i = 0; i < halves; i++)
			assert_true(w.half[i].held > 0);
	}
}

/* All send as much as they can: equal parts, whoever had more before. */
static void test_equal(void **state)
{
	uint32_t one[4] = {WHOLE}, all[4] = {WHOLE, WHOLE, WHOLE, WHOLE};
	struct world w;

	begin(&w, 4);
	turns(&w, one, ROUNDS);
	turns(&w, all, ROUNDS);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(w.half[i].held, WHOLE / 4 - 1, WHOLE / 4 + 1);
}

/* Max-min: small demands are met, and the others share what is left. */
static void test_max_min(void **state)
{
	uint32_t demand[4] = {WHOLE / 10, WHOLE, WHOLE / 5, WHOLE};
	struct world w;

	begin(&w, 4);
	turns(&w, demand, ROUNDS);
	assert_int_equal(w.half[0].held, WHOLE / 10);
	assert_int_equal(w.half[2].held, WHOLE / 5);
	assert_in_range(w.half[1].held, WHOLE * 35 / 100 - 2, WHOLE * 35 / 100 + 2);
	assert_in_range(w.half[3].held, WHOLE * 35 / 100 - 2, WHOLE * 35 / 100 + 2);
}

/* A half that pauses keeps its part for some turns, and has all again soon after it goes on. */
static void test_pause(void **state)
{
	uint32_t busy[2] = {WHOLE, WHOLE / 4}, pause[2] = {0, WHOLE / 4};
	struct world w;

	begin(&w, 2);
	turns(&w, busy, ROUNDS);
	assert_int_equal(w.half[0].held, WHOLE - WHOLE / 4);
	turns(&w, pause, 1);
	assert_true(w.half[0].held > WHOLE / 2);
	turns(&w, pause, 100);
	assert_true(w.half[0].held <= WHOLE / 2);
	turns(&w, busy, ROUNDS);
	assert_int_equal(w.half[0].held, WHOLE - WHOLE / 4);
}

static void test_random(void **state)
{
	uint64_t rng = 1;

	for (unsigned i = 0; i < 2000; i++) {
		unsigned halves = 1 + rng_next(&rng) % WAN_HALVES_MAX;
		uint32_t demand[WAN_HALVES_MAX];
		struct world w;

		begin(&w, halves);
		for (unsigned n = 0; n < 10; n++) {
			for (unsigned k = 0; k < halves; k++)
				demand[k] = rng_next(&rng) % 3 ? rng_next(&rng) % (2 * WHOLE) : 0;
			turns(&w, demand, 1);
		}
	}
}

struct job {
	struct world *w;
	unsigned half;
};

static void *run_half(void *arg)
{
	struct job *j = arg;
	uint64_t rng = j->half + 1;

	for (unsigned i = 0; i < 20000; i++) {
		wan_lease_turn(&j->w->half[j->half], &j->w->all, j->half, rng_next(&rng) % WHOLE);
		wan_lease_release(&j->w->half[j->half], &j->w->all);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[4];
	struct job job[4];
	struct world w;

	begin(&w, 4);
	for (unsigned i = 0; i < 4; i++) {
		job[i] = (struct job){&w, i};
		assert_int_equal(pthread_create(&thread[i], NULL, run_half, &job[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(sum_of(&w), WHOLE);
}

#define RATE 100000000u

/* The part counts for the tunnel's rate and for that of a path; a little more is not worth a
 * change, less is. */
static void test_lease_of_rates(void **state)
{
	struct wan_path *p = wan_one_path(4096, RWY_SEC);
	const struct wan_congest_cfg congest = p->t->cfg.congest;

	wan_retune(p->t, RATE, &congest, RWY_SEC);
	assert_int_equal(wan_path_cc_cfg(p).rate_Bps, RATE);
	wan_retune_lease(p->t, WHOLE / 4);
	assert_int_equal(wan_path_cc_cfg(p).rate_Bps, RATE / 4);
	wan_retune_lease(p->t, WHOLE / 4 + 1);
	assert_int_equal(wan_path_cc_cfg(p).rate_Bps, RATE / 4);
	wan_retune_lease(p->t, WHOLE / 4 - 1);
	assert_true(wan_path_cc_cfg(p).rate_Bps < RATE / 4);
	wan_retune_lease(p->t, WHOLE / 2);
	wan_retune_path(p->t, 0, RATE / 2);
	assert_int_equal(wan_path_cc_cfg(p).rate_Bps, RATE / 4);
	wan_retune(p->t, RATE / 2, &congest, RWY_SEC);
	assert_int_equal(wan_path_cc_cfg(p).rate_Bps, RATE / 4);
	wan_retune_lease(p->t, WHOLE);
	assert_int_equal(wan_path_cc_cfg(p).rate_Bps, RATE / 2);
	wan_free(p->t);
}

/* A half that sends little wants twice that, or twice what is in flight a round trip; a half that
 * sends as much as it may wants all. */
static void test_wanted(void **state)
{
	struct wan_path *p = wan_one_path(4096, RWY_SEC);

	wan_retune(p->t, RATE, &(struct wan_congest_cfg){0}, RWY_SEC);
	wan_retune_lease(p->t, WHOLE / 2);
	assert_int_equal(wan_lease_wanted(p->t, 5 * RWY_MS), 0);
	p->sent_bytes += RATE / 1000; /* in 10 ms: a tenth of the rate */
	assert_in_range(wan_lease_wanted(p->t, 10 * RWY_MS), WHOLE / 5 - 1, WHOLE / 5 + 1);
	assert_int_equal(wan_lease_wanted(p->t, 10 * RWY_MS), 0);
	p->sent_bytes += RATE / 1000;
	assert_int_equal(wan_lease_wanted(p->t, 2 * RWY_MS), WHOLE); /* all of its half */
	assert_int_equal(wan_lease_wanted(p->t, 10 * RWY_MS), 0);
	/* The window is closed: nothing is sent. */
	p->srtt = 100 * RWY_MS;
	p->inflight = RATE / 100; /* a tenth of the rate for a round trip */
	assert_in_range(wan_lease_wanted(p->t, 10 * RWY_MS), WHOLE / 5 - 1, WHOLE / 5 + 1);
	assert_int_equal(wan_lease_wanted(p->t, 0), 0);
	p->inflight = 0;
	wan_free(p->t);
}

/* The rates of granted paths divide data, however small the lease is. */
static void test_granted(void **state)
{
	struct wan_path *p = wan_one_path(4096, RWY_SEC);

	p->t->cfg.cc_cfg.min_rate_Bps = 125000;
	wan_retune_path(p->t, 0, 4000000);
	const uint64_t clock = p->part.ns_fp;

	wan_retune_lease(p->t, WHOLE / 64);
	assert_int_equal(wan_path_cc_cfg(p).rate_Bps, 125000);
	assert_int_equal(p->part.ns_fp, clock);
	wan_free(p->t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_alone),
	    cmocka_unit_test(test_equal),
	    cmocka_unit_test(test_max_min),
	    cmocka_unit_test(test_pause),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_lease_of_rates),
	    cmocka_unit_test(test_wanted),
	    cmocka_unit_test(test_granted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
