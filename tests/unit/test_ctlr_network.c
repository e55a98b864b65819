/* SPDX-License-Identifier: Apache-2.0 */
/* A network's queue: what requests wait for comes before the questions about tunnels that are
 * there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/job/network.h"
#include "controller/job/react.h"
#include "controller/state/event.h"

#define JOBS 300

/* --- a network that holds its first answer ---------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t news;
	bool hold, held;
	unsigned asked, asked_before_query, done;
	int rc;
} net = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static int fake_has(
    struct provider *p, const char *name, struct plan_route *out, unsigned max, struct provider_err *err)
{
	pthread_mutex_lock(&net.lock);
	net.asked++;
	net.held = true;
	pthread_cond_broadcast(&net.news);
	while (net.hold)
		pthread_cond_wait(&net.news, &net.lock);
	pthread_mutex_unlock(&net.lock);
	return PROVIDER_WHOLE;
}

static int fake_routes(struct provider *p, const char *first, const char *second, struct plan_route *out,
    unsigned max, struct provider_err *err)
{
	pthread_mutex_lock(&net.lock);
	net.asked_before_query = net.asked;
	pthread_mutex_unlock(&net.lock);
	return 0;
}

static void fake_close(struct provider *p)
{
}

static int fake_open(
    struct provider **out, const struct provider_option *o, unsigned n, struct provider_err *err);

static const struct provider_ops fake_ops = {
    .name = "fake", .open = fake_open, .close = fake_close, .routes = fake_routes, .has = fake_has};
static struct provider fake = {&fake_ops};

static int fake_open(
    struct provider **out, const struct provider_option *o, unsigned n, struct provider_err *err)
{
	*out = &fake;
	return 0;
}

/* These replace provider/find.c. */
const struct provider_ops *provider_find(const char *name)
{
	return &fake_ops;
}

const struct provider_ops *provider_at(unsigned i)
{
	return i ? NULL : &fake_ops;
}

int provider_check(
    const struct provider_ops *ops, const struct provider_option *o, unsigned n, struct provider_err *err)
{
	return 0;
}

static void until(const unsigned *what, unsigned n)
{
	pthread_mutex_lock(&net.lock);
	while (*what < n)
		pthread_cond_wait(&net.news, &net.lock);
	pthread_mutex_unlock(&net.lock);
}

/* --- the state -------------------------------------------------------------------------------- */

static struct ctlr_conf conf = {.name = "me",
    .providers = 1,
    .provider = {{.name = "net-1", .kind = "fake"}},
    .ask_networks = 10 * RWY_SEC};
static struct ctlr c = {.conf = &conf, .lock = PTHREAD_MUTEX_INITIALIZER};
static struct ctlr_job job[JOBS];

static void on_query(struct ctlr *x, struct ctlr_network_call *call)
{
	pthread_mutex_lock(&net.lock);
	net.rc = call->rc;
	net.done++;
	pthread_cond_broadcast(&net.news);
	pthread_mutex_unlock(&net.lock);
}

static void tick(rwy_time now)
{
	ctlr_lock(&c);
	ctlr_ask_tick(&c, now);
	ctlr_unlock(&c);
}

/* A slow network with many tunnels: a request waits for the answer that is under way, for no more,
 * and is not refused because of the questions. */
static void a_request_comes_before_the_questions(void **state)
{
	struct ctlr_network_call *call = ctlr_network_call_new(NETWORK_QUERY, 0, "", "a", "b");
	const rwy_time now = ctlr_now();

	net.hold = true;
	for (unsigned i = 0; i < JOBS; i++)
		tick(now);
	until(&net.asked, 1);
	call->done = on_query;
	assert_true(ctlr_network_submit(&c, call));
	pthread_mutex_lock(&net.lock);
	net.hold = false;
	pthread_cond_broadcast(&net.news);
	pthread_mutex_unlock(&net.lock);
	until(&net.done, 1);
	assert_int_equal(net.rc, 0);
	assert_int_equal(net.asked_before_query, 1);
}

/* All of them are asked for in a round, and again in the next one. */
static void all_jobs_are_asked_for(void **state)
{
	rwy_time now = ctlr_now();

	for (unsigned round = 1; round <= 2; round++) {
		unsigned asked = 0;

		while (asked < round * JOBS) {
			tick(now);
			pthread_mutex_lock(&net.lock);
			asked = net.asked;
			pthread_mutex_unlock(&net.lock);
		}
		assert_int_equal(asked, round * JOBS);
		now += conf.ask_networks + RWY_SEC;
	}
}

static int set_up(void **state)
{
	for (unsigned i = 0; i < JOBS; i++) {
		struct ctlr_job *j = &job[i];

		snprintf(j->name, sizeof(j->name), "j%u", i);
		j->json = json_pack("{s:[{s:s+, s:s, s:s, s:[{s:s, s:s, s:s}]}]}", "network", "name", j->name,
		    "~a~b", "first", "a", "second", "b", "legs", "provider", "net-1", "edge", "e", "path",
		    "p");
		if (!j->json || ctlr_map_add(&c.jobs, &j->node, j->name))
			return -1;
	}
	return ctlr_events_new(&c.events) || ctlr_networks_open(&c);
}

static int tear_down(void **state)
{
	ctlr_networks_stop(&c);
	ctlr_networks_close(&c);
	for (unsigned i = 0; i < JOBS; i++)
		json_decref(job[i].json);
	ctlr_map_free(&c.jobs);
	ctlr_map_free(&c.reservations);
	ctlr_events_free(c.events);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_request_comes_before_the_questions),
	    cmocka_unit_test(all_jobs_are_asked_for),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
