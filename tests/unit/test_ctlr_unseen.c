/* SPDX-License-Identifier: Apache-2.0 */
/* A change that is stored while the watch reports nothing: what the reply says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "controller/server/http.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/event.h"
#include "controller/store/internal.h"

/* Time passes with each look at it. */
rwy_time ctlr_now(void)
{
	static _Atomic rwy_time now = 1000 * RWY_SEC;

	return atomic_fetch_add(&now, 100 * RWY_MS);
}

uint64_t ctlr_wall_ms(void)
{
	return 1700000000000;
}

/* --- replaces http.c -------------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t news;
	bool finished;
} end = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

void ctlr_req_finish(struct ctlr_req *r)
{
	pthread_mutex_lock(&end.lock);
	end.finished = true;
	pthread_cond_broadcast(&end.news);
	pthread_mutex_unlock(&end.lock);
}

void ctlr_req_resume(struct ctlr_req *r)
{
}

/* --- a store that takes all and reports nothing ----------------------------------------------- */

static _Atomic uint64_t visible; /* up to this revision all is reported */

static void fake_commit(struct store *s, struct store_txn *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		t[i].rc = 0;
		t[i].rev = 7;
	}
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
	int rc = 0;

	while (!*stop && !rc) {
		rc = cb(ctx, NULL, visible);
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	return rc;
}

static const struct store_ops fake_ops = {.commit_many = fake_commit,
    .lease = fake_lease,
    .lease_renew = fake_lease_done,
    .lease_end = fake_lease_done,
    .problem = fake_problem,
    .watch = fake_watch};
static struct store fake_store = {&fake_ops};

static void applied(struct ctlr *c, bool stop)
{
}

static const struct ctlr_ops ops = {.applied = applied};
static struct ctlr_conf conf = {.name = "one"};
static struct ctlr c = {.conf = &conf, .ops = &ops, .store = &fake_store, .lock = PTHREAD_MUTEX_INITIALIZER};

/* --- tests ------------------------------------------------------------------------------------ */

/* The reply from the state, which has it. */
static void then(void *ctx, int rc, uint64_t rev)
{
	(void)ctlr_req_reply(ctx, 201, json_pack("{s:b}", "there", c.rev >= rev));
}

/* Stores one record, and returns the reply's status. *json: its body. */
static unsigned put(ctlr_change_cb *how, json_t **json)
{
	struct ctlr_req r = {.c = &c, .method = "PUT"};
	struct ctlr_change *ch = ctlr_change_new(NULL, NULL);

	ctlr_change_put(ch, "site/x", json_object());
	end.finished = false;
	ctlr_lock(&c);
	assert_int_equal(how ? ctlr_req_commit_then(&r, ch, how) : ctlr_req_commit(&r, ch, 200), REQ_WAIT);
	ctlr_unlock(&c);
	pthread_mutex_lock(&end.lock);
	while (!end.finished)
		pthread_cond_wait(&end.news, &end.lock);
	pthread_mutex_unlock(&end.lock);
	*json = r.json;
	return r.status;
}

static void what_is_not_seen_is_no_reply(void **state)
{
	json_t *json;

	assert_int_equal(put(then, &json), 503);
	assert_non_null(strstr(mdl_text_of(json, "error"), "is stored"));
	json_decref(json);
}

static void a_revision_is_a_reply_at_once(void **state)
{
	json_t *json;

	assert_int_equal(put(NULL, &json), 200);
	assert_int_equal(mdl_number_of(json, "revision"), 7);
	json_decref(json);
}

static void what_is_seen_is_the_reply(void **state)
{
	json_t *json;

	visible = 7;
	assert_int_equal(put(then, &json), 201);
	assert_true(json_is_true(json_object_get(json, "there")));
	json_decref(json);
}

static int set_up(void **state)
{
	return ctlr_events_new(&c.events) || ctlr_writer_start(&c);
}

static int tear_down(void **state)
{
	ctlr_writer_stop(&c);
	ctlr_writer_free(&c);
	ctlr_events_free(c.events);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_not_seen_is_no_reply),
	    cmocka_unit_test(a_revision_is_a_reply_at_once),
	    cmocka_unit_test(what_is_seen_is_the_reply),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
