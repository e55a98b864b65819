/* SPDX-License-Identifier: Apache-2.0 */
/* Records of tunnels without a gateway are removed, also when the store fails at first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "controller/fleet/fleet.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/orphan.h"
#include "controller/store/internal.h"

/* A store that answers transactions of tunnels as it is told. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t asked;
	int rc;
	unsigned tried, removed;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .asked = PTHREAD_COND_INITIALIZER};

static void fake_commit(struct store *s, struct store_txn *t, unsigned n)
{
	pthread_mutex_lock(&fake.lock);
	for (unsigned i = 0; i < n; i++) {
		if (strncmp(t[i].op->key, "tunnel/", 7) != 0)
			continue;
		assert_null(t[i].op->value);
		t[i].rc = fake.rc;
		fake.tried++;
		fake.removed += !fake.rc;
	}
	pthread_cond_broadcast(&fake.asked);
	pthread_mutex_unlock(&fake.lock);
}

static int fake_lease(struct store *s, uint32_t ttl_ms, uint64_t *lease)
{
	*lease = 1;
	return 0;
}

static int fake_lease_done(struct store *s, uint64_t lease)
{
	return 0;
}

static void fake_problem(struct store *s, char *text)
{
	*text = 0;
}

static int fake_watch(struct store *s, const char *prefix, uint64_t from, const atomic_bool *stop,
    store_watch_cb *cb, void *ctx)
{
	while (!*stop)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	return 0;
}

static void applied(struct ctlr *c, bool stop)
{
}

static const struct store_ops fake_ops = {.commit_many = fake_commit,
    .lease = fake_lease,
    .lease_renew = fake_lease_done,
    .lease_end = fake_lease_done,
    .problem = fake_problem,
    .watch = fake_watch};
static struct store fake_store = {&fake_ops};
static const struct ctlr_ops ops = {.applied = applied};
static struct ctlr_conf conf = {.name = "one"};
static struct ctlr c = {.conf = &conf, .ops = &ops, .store = &fake_store, .lock = PTHREAD_MUTEX_INITIALIZER};

static void answer(int rc)
{
	pthread_mutex_lock(&fake.lock);
	fake.rc = rc;
	fake.tried = fake.removed = 0;
	pthread_mutex_unlock(&fake.lock);
}

/* Ticks, each a second after the one before, until the store was asked so often. */
static void tick_until(unsigned tried)
{
	rwy_time now = ctlr_now();
	bool done = false;

	while (!done) {
		struct timespec ts;

		now += RWY_SEC;
		ctlr_lock(&c);
		ctlr_tunnels_tick(&c, now);
		ctlr_unlock(&c);
		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_sec += ts.tv_nsec / 990000000;
		ts.tv_nsec = (ts.tv_nsec + 10000000) % 1000000000;
		pthread_mutex_lock(&fake.lock);
		if (fake.tried < tried)
			pthread_cond_timedwait(&fake.asked, &fake.lock, &ts);
		done = fake.tried >= tried;
		pthread_mutex_unlock(&fake.lock);
	}
}

static void add(void)
{
	ctlr_lock(&c);
	ctlr_orphan_add(&c, "a/b", "a", 5);
	ctlr_orphan_add(&c, "a/c", "a", 6);
	ctlr_unlock(&c);
}

static void tried_again_after_a_failure(void **state)
{
	answer(STORE_EDOWN);
	add();
	tick_until(6);
	answer(0);
	tick_until(2);
	assert_int_equal(fake.removed, 2);
}

/* Another replica was first. */
static void no_more_after_a_conflict(void **state)
{
	answer(STORE_ECONFLICT);
	add();
	tick_until(2);
	ctlr_writer_stop(&c);
	assert_null(c.orphan);
	assert_int_equal(fake.tried, 2);
}

static int set_up(void **state)
{
	return ctlr_events_new(&c.events) || ctlr_writer_start(&c);
}

static int tear_down(void **state)
{
	ctlr_orphans_free(&c);
	ctlr_writer_free(&c);
	ctlr_events_free(c.events);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tried_again_after_a_failure),
	    cmocka_unit_test(no_more_after_a_conflict),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
