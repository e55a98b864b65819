/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway/publish.h: nothing is freed while a reader may have it, everything is freed afterwards; a reader
 * that sleeps or has left holds nobody up; many threads at once. Built with a sanitizer (`make asan`,
 * `make tsan`) the last test also finds what the publisher itself does too early.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "gateway/app.h"
#include "gateway/publish.h"

#define READERS 4
#define LONG    (30 * RWY_SEC) /* what must come comes before */
#define EACH    400            /* publications of one writer */

rwy_time gw_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (rwy_time)ts.tv_sec * RWY_SEC + (rwy_time)ts.tv_nsec + RWY_SEC;
}

/* --- objects ------------------------------------------------------------------------------------------- */

/* One that is freed says so for the rest of the test. */
struct thing {
	uint64_t serial; /* 1..; 0: freed */
	struct thing *next;
};

static struct gw_publisher *p;
static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thing *dead;
static _Atomic unsigned freed;

static struct thing *thing(uint64_t serial)
{
	struct thing *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->serial = serial;
	return t;
}

static void thing_free(void *object)
{
	struct thing *t = object;

	if (!t)
		return;
	t->serial = 0;
	pthread_mutex_lock(&dead_lock);
	t->next = dead;
	dead = t;
	pthread_mutex_unlock(&dead_lock);
	atomic_fetch_add(&freed, 1);
}

static int set_up(void **state)
{
	(void)state;
	atomic_store(&freed, 0);
	return gw_publisher_new(&p, READERS);
}

static int tear_down(void **state)
{
	(void)state;
	gw_publisher_free(p);
	while (dead) {
		struct thing *t = dead;

		dead = t->next;
		free(t);
	}
	return 0;
}

static uint64_t published(enum gw_published what, struct thing *t)
{
	const uint64_t token = gw_publish(p, what, t, thing_free);

	assert_true(token > 0);
	assert_ptr_equal(gw_published_get(p, what), t);
	return token;
}

/* --- one reader after the other -------------------------------------------------------------------------- */

static void test_freed_after_report(void **state)
{
	struct thing *a = thing(1), *b = thing(2);
	uint64_t token;

	(void)state;
	assert_null(gw_published_get(p, GW_TENANTS));
	gw_reader_join(p, 0);
	gw_reader_join(p, 3);
	published(GW_TENANTS, a);
	token = published(GW_TENANTS, b);
	gw_publisher_reap(p);
	assert_int_equal(freed, 0);
	assert_false(gw_publish_passed(p, token));
	gw_reader_quiescent(p, 0);
	gw_publisher_reap(p);
	assert_int_equal(freed, 0);
	gw_reader_quiescent(p, 3);
	assert_true(gw_publish_passed(p, token));
	gw_publisher_reap(p);
	assert_int_equal(a->serial, 0);
	assert_int_equal(b->serial, 2);
	assert_int_equal(freed, 1);
	gw_reader_leave(p, 0);
	gw_reader_leave(p, 3);
}

/* What was replaced before a report is free; what was replaced after it waits for the next one. */
static void test_each_in_its_time(void **state)
{
	struct thing *a = thing(1), *b = thing(2);
	uint64_t first, second;

	(void)state;
	gw_reader_join(p, 1);
	published(GW_NEXT_HOPS, a);
	published(GW_SIBLINGS, b);
	first = published(GW_NEXT_HOPS, thing(3));
	gw_reader_quiescent(p, 1);
	second = published(GW_SIBLINGS, NULL);
	assert_true(gw_publish_passed(p, first));
	assert_false(gw_publish_passed(p, second));
	gw_publisher_reap(p);
	assert_int_equal(a->serial, 0);
	assert_int_equal(b->serial, 2);
	gw_reader_quiescent(p, 1);
	gw_publisher_reap(p);
	assert_int_equal(b->serial, 0);
	gw_reader_leave(p, 1);
}

static void test_owner_frees(void **state)
{
	static const int mine;

	(void)state;
	assert_true(gw_publish(p, GW_TENANTS, &mine, NULL) > 0);
	assert_ptr_equal(gw_published_get(p, GW_TENANTS), &mine);
	assert_true(gw_publish_passed(p, gw_publish(p, GW_TENANTS, NULL, NULL)));
	gw_publisher_reap(p);
}

static void test_offline(void **state)
{
	uint64_t token;

	(void)state;
	gw_reader_join(p, 2);
	published(GW_STEERING, thing(1));
	gw_reader_offline(p, 2);
	token = published(GW_STEERING, thing(2));
	assert_true(gw_publish_passed(p, token));
	gw_publisher_reap(p);
	assert_int_equal(freed, 1);
	gw_reader_online(p, 2);
	token = published(GW_STEERING, thing(3));
	assert_false(gw_publish_passed(p, token));
	gw_reader_quiescent(p, 2);
	assert_true(gw_publish_passed(p, token));
	gw_reader_leave(p, 2);
}

static void test_leave_and_join(void **state)
{
	uint64_t token;

	(void)state;
	gw_reader_join(p, 0);
	gw_reader_join(p, 1);
	token = published(GW_STEERING, thing(1));
	gw_reader_quiescent(p, 0);
	assert_false(gw_publish_passed(p, token));
	gw_reader_leave(p, 1);
	assert_true(gw_publish_passed(p, token));
	gw_reader_join(p, 1);
	token = published(GW_STEERING, thing(2));
	gw_reader_quiescent(p, 0);
	assert_false(gw_publish_passed(p, token));
	gw_reader_quiescent(p, 1);
	assert_true(gw_publish_passed(p, token));
	gw_reader_leave(p, 0);
	gw_reader_leave(p, 1);
}

/* A reader that hangs: the writer gives up, and is told the truth later. */
static void test_wait_ends(void **state)
{
	uint64_t token;

	(void)state;
	gw_reader_join(p, 0);
	token = published(GW_TENANTS, thing(1));
	assert_false(gw_publish_wait(p, token, RWY_MS));
	gw_reader_quiescent(p, 0);
	assert_true(gw_publish_wait(p, token, LONG));
	gw_reader_leave(p, 0);
}

/* At the end all is freed, also what a reader never gave back. */
static void test_end_frees_all(void **state)
{
	(void)state;
	gw_reader_join(p, 0);
	for (uint64_t i = 1; i <= 5; i++)
		published(GW_NEXT_HOPS, thing(i));
	published(GW_TENANTS, thing(6));
	gw_publisher_free(p);
	p = NULL;
	assert_int_equal(freed, 6);
}

/* --- threads ---------------------------------------------------------------------------------------------- */

static sem_t asleep, wake;

static void *sleeper(void *arg)
{
	const struct thing *t;

	(void)arg;
	gw_reader_join(p, 0);
	t = gw_published_get(p, GW_TENANTS);
	if (t->serial != 1)
		return NULL;
	gw_reader_offline(p, 0);
	sem_post(&asleep);
	sem_wait(&wake);
	gw_reader_online(p, 0);
	t = gw_published_get(p, GW_TENANTS);
	gw_reader_leave(p, 0);
	return t->serial == 2 ? arg : NULL;
}

/* A thread that blocks for good, as a worker in epoll: publications are done, and it sees them when it wakes.
 */
static void test_sleeper(void **state)
{
	struct thing *old = thing(1);
	pthread_t th;
	void *ok;

	(void)state;
	sem_init(&asleep, 0, 0);
	sem_init(&wake, 0, 0);
	published(GW_TENANTS, old);
	assert_int_equal(pthread_create(&th, NULL, sleeper, &asleep), 0);
	sem_wait(&asleep);
	assert_true(gw_publish_wait(p, published(GW_TENANTS, thing(2)), LONG));
	gw_publisher_reap(p);
	assert_int_equal(old->serial, 0);
	sem_post(&wake);
	pthread_join(th, &ok);
	assert_non_null(ok);
	sem_destroy(&asleep);
	sem_destroy(&wake);
}

static const enum gw_published slots[2] = {GW_NEXT_HOPS, GW_TENANTS};
static _Atomic uint64_t held[READERS][2]; /* serials that a reader has; UINT64_MAX: none */
static _Atomic unsigned wrong, looked;
static _Atomic bool stop;

static void nothing_held(unsigned reader)
{
	atomic_store(&held[reader][0], UINT64_MAX);
	atomic_store(&held[reader][1], UINT64_MAX);
}

static void turn(unsigned reader, uint64_t newest[2])
{
	const struct thing *t[2];

	for (unsigned i = 0; i < 2; i++) {
		t[i] = gw_published_get(p, slots[i]);
		atomic_store(&held[reader][i], t[i]->serial);
		if (t[i]->serial < newest[i]) /* freed, or an older one than before */
			atomic_fetch_add(&wrong, 1);
		newest[i] = t[i]->serial;
	}
	sched_yield();
	for (unsigned i = 0; i < 2; i++)
		if (__atomic_load_n(&t[i]->serial, __ATOMIC_RELAXED) != newest[i])
			atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&looked, 1);
	nothing_held(reader);
}

/* Now and then the odd ones sleep, and the last one leaves. */
static void *reader_main(void *arg)
{
	const unsigned reader = (unsigned)(uintptr_t)arg;
	uint64_t newest[2] = {1, 1};

	gw_reader_join(p, reader);
	for (unsigned n = 1; !atomic_load(&stop); n++) {
		gw_reader_quiescent(p, reader);
		turn(reader, newest);
		if (n % 7 == 0 && reader & 1) {
			gw_reader_offline(p, reader);
			sched_yield();
			gw_reader_online(p, reader);
			turn(reader, newest);
		} else if (n % 11 == 0 && reader == READERS - 1) {
			gw_reader_leave(p, reader);
			sched_yield();
			gw_reader_join(p, reader);
			turn(reader, newest);
		}
	}
	gw_reader_leave(p, reader);
	return NULL;
}

static void *writer_main(void *arg)
{
	const unsigned slot = (unsigned)(uintptr_t)arg;

	for (uint64_t serial = 2; serial < 2 + EACH; serial++) {
		uint64_t token = gw_publish(p, slots[slot], thing(serial), thing_free);

		if (!token)
			atomic_fetch_add(&wrong, 1);
		if (serial % 4 == 0) {
			if (!gw_publish_wait(p, token, LONG))
				atomic_fetch_add(&wrong, 1);
			for (unsigned r = 0; r < READERS; r++) /* all have this one or a later one */
				if (atomic_load(&held[r][slot]) < serial)
					atomic_fetch_add(&wrong, 1);
		}
		gw_publisher_reap(p);
	}
	return NULL;
}

static void test_all_at_once(void **state)
{
	pthread_t reader[READERS], writer[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		published(slots[i], thing(1));
	for (unsigned i = 0; i < READERS; i++) {
		nothing_held(i);
		assert_int_equal(pthread_create(&reader[i], NULL, reader_main, (void *)(uintptr_t)i), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&writer[i], NULL, writer_main, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(writer[i], NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(reader[i], NULL);
	assert_int_equal(wrong, 0);
	assert_true(looked > READERS);
	gw_publisher_reap(p);
	assert_int_equal(freed, 2 * EACH); /* all but the last of each */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    T(test_freed_after_report),
	    T(test_each_in_its_time),
	    T(test_owner_frees),
	    T(test_offline),
	    T(test_leave_and_join),
	    T(test_wait_ends),
	    T(test_end_frees_all),
	    T(test_sleeper),
	    T(test_all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
