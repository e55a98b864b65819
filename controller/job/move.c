/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves jobs that lost gateways or tunnels: places their pairs anew on what is up and stores the
 * new plan. The change compares the revision that the plan was made from, so only one of several
 * replicas succeeds. A lease that runs out takes the new plans along in its own transaction
 * (gateway.c), so gateways and hosts see one step. A gateway that comes back moves nothing, but
 * broken jobs are tried again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/jobs.h"
#include "controller/job/react.h"
#include "controller/state/change.h"
#include "controller/state/event.h"

#define MOVES_MAX   24      /* jobs in a transaction */
#define TOUCH_MAX   60      /* gateways in a transaction; if more, all are touched */
#define ROWS_MAX    2500    /* rows in a transaction: etcd accepts 1.5 MB */
#define BROKEN_EACH RWY_SEC /* after this time measurements and claims may have changed */
#define STORE_PAUSE (RWY_SEC / 4)

/* True if a pair of the job has lost its gateway or tunnel. */
static bool lost_a_pair(struct ctlr *c, const struct ctlr_job *j)
{
	const struct ctlr_gateway *g;
	const struct ctlr_tunnel *t;
	json_t *row, *pair;
	size_t i;

	for (unsigned k = 0; k < j->claims; k++) {
		if (strncmp(j->claim[k].name, "gw/", 3) != 0)
			continue;
		g = ctlr_map_find(&c->gateways, j->claim[k].name + 3);
		if (!g || !g->up)
			return true;
	}
	json_array_foreach(json_object_get(j->json, "plan"), i, row)
	{
		pair = json_object_get(row, "pair");
		t = ctlr_tunnel_of_pair(c, json_string_value(pair));
		if (pair && (!t || !ctlr_tunnel_up(t)))
			return true;
	}
	return false;
}

/* A job that does not fit is tried again. */
static bool is_tried(struct ctlr *c, const struct ctlr_job *j)
{
	return json_object_get(j->json, "reason") && !ctlr_job_react_holds(c, j);
}

/* Nothing to store. A job that is broken as before is not stored for another loss of its path. */
static bool is_as_before(const struct ctlr_job *j, const json_t *record)
{
	return json_equal(record, j->json) ||
	       (json_object_get(j->json, "reason") && !ctlr_job_differs(j->json, record));
}

/* Touches the gateways that lose a pair: nothing else in their documents changes. */
static void touch_losers(json_t *touch, const json_t *was, const json_t *is)
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

static void put_touches(struct ctlr_change *ch, json_t *touch)
{
	char key[STORE_KEY_MAX];
	const char *name;
	json_t *v;

	if (json_object_size(touch) > TOUCH_MAX) {
		ctlr_change_put(ch, "touch/", json_object());
		return;
	}
	json_object_foreach(touch, name, v)
	{
		snprintf(key, sizeof(key), "touch/%s", name);
		ctlr_change_put(ch, key, json_incref(v));
	}
}

static int by_priority(const void *va, const void *vb)
{
	const struct ctlr_job *a = *(struct ctlr_job *const *)va, *b = *(struct ctlr_job *const *)vb;
	const uint64_t x = ctlr_job_priority(a), y = ctlr_job_priority(b);

	if (x != y)
		return x > y ? -1 : 1;
	return strcmp(a->name, b->name);
}

struct move {
	const struct ctlr_job *job;
	struct plan_claim *claim;
	unsigned claims;
};

/* Books a job's new claims so that the next plan counts them (forth), or the stored ones again. */
static void book_move(struct ctlr *c, const struct move *m, bool forth)
{
	if (forth) {
		plan_book_release(c->book, m->job->claim, m->job->claims);
		if (plan_book_claim(c->book, m->claim, m->claims))
			ctlr_event(c, EVENT_ERROR, "job", m->job->name, "out of memory");
		return;
	}
	plan_book_release(c->book, m->claim, m->claims);
	if (plan_book_claim(c->book, m->job->claim, m->job->claims))
		ctlr_event(c, EVENT_ERROR, "job", m->job->name, "out of memory");
}

/* Those of the highest priority first, so that they get the room that there is. */
static void sort_by_priority(struct ctlr_job **all)
{
	size_t n = 0;

	while (all && all[n])
		n++;
	if (n)
		qsort(all, n, sizeof(*all), by_priority);
}

unsigned ctlr_job_moves(struct ctlr *c, struct ctlr_change *ch, bool broken)
{
	struct move m[MOVES_MAX];
	json_t *touch = json_object(), *record;
	char key[STORE_KEY_MAX];
	unsigned n = 0;
	struct ctlr_job **all = ctlr_jobs_by_name(c);
	size_t rows = 0;

	sort_by_priority(all);
	for (struct ctlr_job **p = all; p && *p; p++) {
		struct ctlr_job *j = *p;

		if (!lost_a_pair(c, j) && !j->stale && !(broken && is_tried(c, j)))
			continue;
		if (n == MOVES_MAX || rows > ROWS_MAX) {
			c->jobs_look = true; /* the next tick has the others */
			break;
		}
		record = ctlr_job_plan_again(c, j, NULL);
		if (j->stale && json_object_get(record, "reason"))
			json_object_set_new(record, "measured_ms", json_integer((json_int_t)ctlr_wall_ms()));
		if (!record || is_as_before(j, record)) {
			j->stale = false;
			json_decref(record);
			continue;
		}
		m[n].job = j;
		m[n].claims = ctlr_job_claims(record, &m[n].claim);
		book_move(c, &m[n++], true);
		rows += json_array_size(json_object_get(record, "plan"));
		touch_losers(touch, j->json, record);
		snprintf(key, sizeof(key), "job/%s", j->name);
		ctlr_change_cmp(ch, key, j->mod_rev);
		ctlr_change_put(ch, key, record);
	}
	for (unsigned i = n; i-- > 0;) {
		book_move(c, &m[i], false);
		free(m[i].claim);
	}
	if (n) {
		ctlr_change_cmp(ch, "guard/config", c->guard_rev);
		ctlr_change_put(ch, "guard/config", json_object());
		put_touches(ch, touch);
	}
	json_decref(touch);
	free(all);
	return n;
}

/* --- time ------------------------------------------------------------------------------------- */

static void on_moved(void *ctx, int rc, uint64_t rev)
{
	struct ctlr *c = ctx;

	c->jobs_changing = false;
	if (!rc)
		return;
	c->jobs_look = true; /* another replica may have been first; then nothing is left to do */
	c->jobs_at = ctlr_now() + (rc == STORE_ECONFLICT ? 0 : STORE_PAUSE);
}

void ctlr_job_move_tick(struct ctlr *c)
{
	const rwy_time now = ctlr_now();
	struct ctlr_change *ch;

	if (c->jobs_changing || now < c->jobs_at || (!c->jobs_look && now < c->jobs_broken_at))
		return;
	ch = ctlr_change_new(on_moved, c);
	if (!ch)
		return;
	c->jobs_look = false;
	c->jobs_broken_at = now + BROKEN_EACH;
	if (!ctlr_job_moves(c, ch, true)) {
		ctlr_change_cancel(ch);
		return;
	}
	c->jobs_changing = true;
	if (!ctlr_change_submit(c, ch))
		on_moved(c, RWY_ENOMEM, 0);
}
