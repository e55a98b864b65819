/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs whose gateways or tunnels went: their pairs are placed anew on what is up, and the plan that results
 * goes to the store, compared with the revision it was made from, so that of several replicas one is first. A
 * lease that runs out takes the new plans along in its own transaction (gateway.c): gateways and hosts see
 * one step. What comes back moves nothing, but a job that is broken is tried again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/jobs.h"
#include "controller/state/change.h"
#include "controller/state/event.h"

#define MOVES_MAX   24      /* jobs of one transaction */
#define TOUCH_MAX   60      /* gateways of one transaction; more: all */
#define ROWS_MAX    2500    /* of one transaction: etcd takes 1.5 MB */
#define BROKEN_EACH RWY_SEC /* what is measured or taken may be another by now */
#define STORE_PAUSE (RWY_SEC / 4)

/* Has something that it needs gone? */
static bool strays(struct ctlr *c, const struct job *j)
{
	const struct gateway *g;
	const struct tunnel *t;
	json_t *row, *pair;
	size_t i;

	for (unsigned k = 0; k < j->takes; k++) {
		if (strncmp(j->take[k].name, "gw/", 3) != 0)
			continue;
		g = map_find(&c->gateways, j->take[k].name + 3);
		if (!g || !g->up)
			return true;
	}
	json_array_foreach(json_object_get(j->json, "plan"), i, row)
	{
		pair = json_object_get(row, "pair");
		t = tunnel_of(c, json_string_value(pair));
		if (pair && (!t || !tunnel_up(t)))
			return true;
	}
	return false;
}

/* Gateways that lose a pair: nothing else in their documents tells. */
static void losers(json_t *touch, const json_t *was, const json_t *is)
{
	json_t *old = json_object_get(was, "plan"), *plan = json_object_get(is, "plan"), *row;
	char name[2][MDL_NAME];
	size_t i;

	json_array_foreach(old, i, row)
	{
		const json_t *pair = json_object_get(row, "pair");

		if (!pair || json_equal(pair, json_object_get(json_array_get(plan, i), "pair")) ||
		    sscanf(json_string_value(pair), "%31[^/]/%31s", name[0], name[1]) != 2)
			continue;
		json_object_set_new(touch, name[0], json_object());
		json_object_set_new(touch, name[1], json_object());
	}
}

static void touch_all(struct change *ch, json_t *touch)
{
	char key[STORE_KEY_MAX];
	const char *name;
	json_t *v;

	if (json_object_size(touch) > TOUCH_MAX) {
		change_put(ch, "touch/", json_object());
		return;
	}
	json_object_foreach(touch, name, v)
	{
		snprintf(key, sizeof(key), "touch/%s", name);
		change_put(ch, key, json_incref(v));
	}
}

struct move {
	const struct job *job;
	struct plan_take *take;
	unsigned takes;
};

/* The next job's plan is made with what this one takes now; what is booked is the store's again in the end.
 */
static void book(struct ctlr *c, const struct move *m, bool forth)
{
	if (forth) {
		plan_book_give(c->book, m->job->take, m->job->takes);
		if (plan_book_take(c->book, m->take, m->takes))
			event(EVENT_ERROR, "job", m->job->name, "out of memory");
		return;
	}
	plan_book_give(c->book, m->take, m->takes);
	if (plan_book_take(c->book, m->job->take, m->job->takes))
		event(EVENT_ERROR, "job", m->job->name, "out of memory");
}

unsigned job_moves(struct ctlr *c, struct change *ch, bool broken)
{
	struct move m[MOVES_MAX];
	json_t *touch = json_object(), *record;
	char key[STORE_KEY_MAX];
	unsigned n = 0;
	struct job **all = jobs_by_name(c);
	size_t rows = 0;

	for (struct job **p = all; p && *p; p++) {
		struct job *j = *p;

		if (!strays(c, j) && !(broken && json_object_get(j->json, "reason")))
			continue;
		if (n == MOVES_MAX || rows > ROWS_MAX) {
			c->jobs_look = true; /* the others then */
			break;
		}
		record = job_plan_again(c, j);
		if (!record || json_equal(record, j->json)) {
			json_decref(record);
			continue;
		}
		m[n].job = j;
		m[n].takes = job_takes(record, &m[n].take);
		book(c, &m[n++], true);
		rows += json_array_size(json_object_get(record, "plan"));
		losers(touch, j->json, record);
		snprintf(key, sizeof(key), "job/%s", j->name);
		change_cmp(ch, key, j->mod_rev);
		change_put(ch, key, record);
	}
	for (unsigned i = n; i-- > 0;) {
		book(c, &m[i], false);
		free(m[i].take);
	}
	if (n) {
		change_cmp(ch, "guard/config", c->guard_rev);
		change_put(ch, "guard/config", json_object());
		touch_all(ch, touch);
	}
	json_decref(touch);
	free(all);
	return n;
}

/* --- time ------------------------------------------------------------------------------------- */

static void moved(void *ctx, int rc, uint64_t rev)
{
	struct ctlr *c = ctx;

	c->jobs_changing = false;
	if (!rc)
		return;
	c->jobs_look = true; /* another replica was first: then there is nothing to do any more */
	c->jobs_at = ctlr_now() + (rc == STORE_ECONFLICT ? 0 : STORE_PAUSE);
}

void job_move_tick(struct ctlr *c)
{
	const rwy_time now = ctlr_now();
	struct change *ch;

	if (c->jobs_changing || now < c->jobs_at || (!c->jobs_look && now < c->jobs_broken_at))
		return;
	ch = change_new(moved, c);
	if (!ch)
		return;
	c->jobs_look = false;
	c->jobs_broken_at = now + BROKEN_EACH;
	if (!job_moves(c, ch, true)) {
		change_cancel(ch);
		return;
	}
	c->jobs_changing = true;
	if (!change_submit(c, ch))
		moved(c, RWY_ENOMEM, 0);
}
