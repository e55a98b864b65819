/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of connections: who has a key, whose turn it is, and what two threads see. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/directory.h"

#define SIDES 4096

static struct eng_directory *d;

static int set_up(void **state)
{
	return eng_directory_new(&d, SIDES, 7);
}

static int tear_down(void **state)
{
	eng_directory_free(d);
	return 0;
}

static uint64_t hash(uint32_t qpn, uint32_t vni, bool requester)
{
	const struct eng_key k = {.src = {{10, 1}}, .dst = {{10, 2}}, .qpn = qpn};

	return eng_directory_hash(d, &k, vni, requester);
}

static void test_arguments(void **state)
{
	struct eng_directory *none = NULL;

	assert_int_equal(eng_directory_new(&none, 0, 1), RWY_EINVAL);
	assert_int_equal(eng_directory_new(&none, (1u << 26) + 1, 1), RWY_EINVAL);
	assert_null(none);
	eng_directory_free(NULL);
}

static void test_one_worker_has_it(void **state)
{
	const uint64_t h = hash(5, 0, false);

	assert_int_equal(eng_directory_find(d, h), -1);
	assert_true(eng_directory_add(d, h, 3));
	assert_true(eng_directory_add(d, h, 3)); /* it was there */
	assert_false(eng_directory_add(d, h, 0));
	assert_int_equal(eng_directory_find(d, h), 3);
	assert_int_equal(eng_directory_entries(d), 1);
	eng_directory_remove(d, h, 0); /* not its own */
	assert_int_equal(eng_directory_find(d, h), 3);
	eng_directory_remove(d, h, 3);
	assert_int_equal(eng_directory_find(d, h), -1);
	assert_int_equal(eng_directory_entries(d), 0);
	assert_true(eng_directory_add(d, h, ENG_WORKERS_MAX - 1));
	assert_int_equal(eng_directory_find(d, h), ENG_WORKERS_MAX - 1);
}

/* A tenant, a side and a queue pair are part of the key, and so is the direction. */
static void test_keys_differ(void **state)
{
	const struct eng_key a = {.src = {{10, 1}}, .dst = {{10, 2}}, .qpn = 5},
	                     b = {.src = {{10, 2}}, .dst = {{10, 1}}, .qpn = 5};

	assert_true(hash(5, 0, false) != hash(5, 0, true));
	assert_true(hash(5, 0, false) != hash(5, 9, false));
	assert_true(hash(5, 0, false) != hash(6, 0, false));
	assert_true(eng_directory_hash(d, &a, 0, false) != eng_directory_hash(d, &b, 0, false));
}

/* As many as it was made for find room, and all are found again. */
static void test_as_many_as_it_is_for(void **state)
{
	unsigned none = 0;

	for (uint32_t q = 0; q < SIDES; q++)
		none += !eng_directory_add(d, hash(q, 0, q & 1), q % ENG_WORKERS_MAX);
	assert_int_equal(none, 0);
	for (uint32_t q = 0; q < SIDES; q++)
		assert_int_equal(eng_directory_find(d, hash(q, 0, q & 1)), q % ENG_WORKERS_MAX);
	for (uint32_t q = 0; q < SIDES; q++)
		eng_directory_remove(d, hash(q, 0, q & 1), q % ENG_WORKERS_MAX);
	assert_int_equal(eng_directory_entries(d), 0);
}

/* Far more than it was made for: some find no room, and nothing of the others changes. */
static void test_full(void **state)
{
	unsigned in = 0;

	for (uint32_t q = 0; q < 8 * SIDES; q++)
		in += eng_directory_add(d, hash(q, 0, false), 1);
	assert_true(in < 8 * SIDES);
	assert_int_equal(eng_directory_entries(d), in);
	for (uint32_t q = 0; q < 8 * SIDES; q++)
		in -= eng_directory_find(d, hash(q, 0, false)) == 1;
	assert_int_equal(in, 0);
}

static void test_turns(void **state)
{
	assert_int_equal(eng_directory_turn_of(d, 77), -1);
	assert_true(eng_directory_turn_take(d, 77, 2));
	assert_true(eng_directory_turn_take(d, 77, 2));
	assert_false(eng_directory_turn_take(d, 77, 0));
	assert_int_equal(eng_directory_turn_of(d, 77), 2);
	assert_int_equal(eng_directory_turn_of(d, 78), -1);
	eng_directory_turn_give(d, 77, 0); /* not its own */
	assert_int_equal(eng_directory_turn_of(d, 77), 2);
	eng_directory_turn_give(d, 77, 2);
	assert_true(eng_directory_turn_take(d, 77, 0));
	assert_true(eng_directory_turn_same(77, 77));
	assert_false(eng_directory_turn_same(77, 78));
}

/* Doubt stays, whoever has the turn, until somebody takes note of it. */
static void test_turn_in_doubt(void **state)
{
	eng_directory_turn_doubt(d, 77);
	assert_int_equal(eng_directory_turn_of(d, 77), -1);
	assert_true(eng_directory_turn_take(d, 77, 63));
	assert_int_equal(eng_directory_turn_of(d, 77), 63);
	assert_false(eng_directory_turn_take(d, 77, 0));
	eng_directory_turn_give(d, 77, 63);
	assert_true(eng_directory_turn_take(d, 77, 0));
	assert_false(eng_directory_turn_doubted(d, 78));
	assert_true(eng_directory_turn_doubted(d, 77));
	assert_false(eng_directory_turn_doubted(d, 77));
	assert_int_equal(eng_directory_turn_of(d, 77), 0);
	eng_directory_turn_doubt(d, 77);
	eng_directory_turn_give(d, 77, 0);
	assert_true(eng_directory_turn_doubted(d, 77));
	assert_int_equal(eng_directory_turn_of(d, 77), -1);
}

/* Both directions of an address pair have one turn, and its tenants have turns of their own. */
static void test_turn_of_a_tenant(void **state)
{
	const struct eng_key a = {.src = {{10, 1}}, .dst = {{10, 2}}, .qpn = 5},
	                     b = {.src = {{10, 2}}, .dst = {{10, 1}}, .qpn = 6};

	for (uint32_t vni = 0; vni < 8; vni++) {
		assert_int_equal(eng_directory_turn(&a, vni), eng_directory_turn(&b, vni));
		for (uint32_t other = 0; other < vni; other++)
			assert_false(eng_directory_turn_same(
			    eng_directory_turn(&a, vni), eng_directory_turn(&a, other)));
	}
}

#define ROUNDS 200000

static _Atomic int in_turn, both;

/* Takes the turn and gives it back; nobody else has it meanwhile. */
static void *take_turns(void *worker)
{
	const unsigned w = (unsigned)(uintptr_t)worker;

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (!eng_directory_turn_take(d, 5, w))
			continue;
		if (atomic_fetch_add(&in_turn, 1))
			atomic_fetch_add(&both, 1);
		atomic_fetch_sub(&in_turn, 1);
		eng_directory_turn_give(d, 5, w);
	}
	return NULL;
}

/* Enters keys of its own beside the other thread's, and finds each until it takes it out. */
static void *add_and_remove(void *worker)
{
	const unsigned w = (unsigned)(uintptr_t)worker;
	uintptr_t lost = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		const uint64_t h = hash(2 * (i % 512) + w, 0, false);

		if (!eng_directory_add(d, h, w))
			continue; /* their buckets are full */
		lost += eng_directory_find(d, h) != (int)w;
		eng_directory_remove(d, h, w);
	}
	return (void *)lost;
}

static void run_two(void *(*f)(void *), uintptr_t result[2])
{
	pthread_t t[2];
	void *r;

	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, f, (void *)i), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(t[i], &r), 0);
		result[i] = (uintptr_t)r;
	}
}

static void test_two_threads(void **state)
{
	uintptr_t r[2];

	run_two(take_turns, r);
	assert_int_equal(both, 0);
	run_two(add_and_remove, r);
	assert_int_equal(r[0], 0);
	assert_int_equal(r[1], 0);
	assert_int_equal(eng_directory_entries(d), 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_arguments), TEST(test_one_worker_has_it),
	    TEST(test_keys_differ), TEST(test_as_many_as_it_is_for), TEST(test_full), TEST(test_turns),
	    TEST(test_turn_in_doubt), TEST(test_turn_of_a_tenant), TEST(test_two_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
