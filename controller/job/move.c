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
#define BYTES_MAX   1000000 /* of records in a transaction: etcd accepts 1.5 MiB of all */
#define BROKEN_EACH RWY_SEC /* after this time measurements and claims may have changed */
#define TRIES_MAX   32      /* broken jobs that are planned in that time, twice: the lock is held */
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

/* Broken jobs that one pass may plan again. */
struct tries {
	bool each; /* the pass of each second, which goes on where the last one ended */
	unsigned left;
	const struct ctlr_job *last; /* the last one that it planned */
	bool more;                   /* it did not come to the end */
};

/* Whether the broken job is after the one that the last pass ended with. */
static bool is_next(const struct ctlr *c, const struct ctlr_job *j)
{
	const uint64_t p = ctlr_job_priority(j);

	return !*c->tried || p < c->tried_priority ||
	       (p == c->tried_priority && strcmp(j->name, c->tried) > 0);
}

/* Whether the job is to be planned again. */
static bool is_due(struct ctlr *c, const struct ctlr_job *j, struct tries *t)
{
	const bool again = t && json_object_get(j->json, "reason");

	if (j->too_large || (!lost_a_pair(c, j) && !j->stale && !(again && is_tried(c, j))))
		return false;
	if (!again)
		return true;
	if (t->each && !is_next(c, j))
		return false;
	t->more |= !t->left;
	return t->left;
}

static void count_try(const struct ctlr_job *j, struct tries *t)
{
	if (!t || !json_object_get(j->json, "reason"))
		return;
	t->left--;
	t->last = j;
}

/* Where the pass of the next second begins. */
static void tries_end(struct ctlr *c, const struct tries *t)
{
	if (!t->each)
		return;
	*c->tried = 0;
	if (t->more && t->last) {
		snprintf(c->tried, sizeof(c->tried), "%s", t->last->name);
		c->tried_priority = ctlr_job_priority(t->last);
	}
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

/* t: broken jobs are tried, too, at most so many; NULL: only if they lost a pair. */
static unsigned moves(struct ctlr *c, struct ctlr_change *ch, struct tries *t)
{
	struct move m[MOVES_MAX];
	json_t *touch = json_object(), *record;
	char key[STORE_KEY_MAX];
	const unsigned max = c->jobs_alone ? 1 : MOVES_MAX;
	unsigned n = 0;
	struct ctlr_job **all = ctlr_jobs_by_name(c);
	size_t bytes = 0, size;

	sort_by_priority(all);
	for (struct ctlr_job **p = all; p && *p; p++) {
		struct ctlr_job *j = *p;

		if (!is_due(c, j, t))
			continue;
		size = json_dumpb(j->json, NULL, 0, JSON_COMPACT);
		if (n == max || (n && bytes + size > BYTES_MAX)) {
			c->jobs_look = true; /* the next tick has the others */
			if (t)
				t->more = true;
			break;
		}
		count_try(j, t);
		record = ctlr_job_plan_again(c, j, NULL);
		if (j->stale && json_object_get(record, "reason"))
			json_object_set_new(record, "measured_ms", json_integer((json_int_t)ctlr_wall_ms()));
		if (!record || is_as_before(j, record)) {
			j->stale = false;
			json_decref(record);
			continue;
		}
		bytes += size;
		if (t)
			snprintf(c->moved, sizeof(c->moved), "%s", j->name);
		m[n].job = j;
		m[n].claims = ctlr_job_claims(record, &m[n].claim);
		book_move(c, &m[n++], true);
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

unsigned ctlr_job_moves(struct ctlr *c, struct ctlr_change *ch)
{
	return moves(c, ch, NULL);
}

/* --- time ------------------------------------------------------------------------------------- */

/* The change is larger than what this store takes, as an etcd with another limit. Its jobs go one
 * by one then, and one that is too large alone stays where it is until it is put again. */
static void too_large(struct ctlr *c)
{
	struct ctlr_job *j = ctlr_map_find(&c->jobs, c->moved);

	if (!c->jobs_alone)
		ctlr_event(
		    c, EVENT_WARNING, "store", NULL, "it takes no change so large: jobs move one by one");
	else if (j)
		ctlr_event(c, EVENT_ERROR, "job", j->name,
		    "its new plan is larger than the store takes: it stays as it is");
	if (c->jobs_alone && j)
		j->too_large = true;
	c->jobs_alone = true;
}

static void on_moved(void *ctx, int rc, uint64_t rev)
{
	struct ctlr *c = ctx;

	c->jobs_changing = false;
	if (!rc)
		return;
	if (rc == RWY_EINVAL)
		too_large(c);
	c->jobs_look = true; /* another replica may have been first; then nothing is left to do */
	c->jobs_at = ctlr_now() + (rc == STORE_ECONFLICT ? 0 : STORE_PAUSE);
}

void ctlr_job_move_tick(struct ctlr *c)
{
	const rwy_time now = ctlr_now();
	struct tries t = {.each = now >= c->jobs_broken_at};
	struct ctlr_change *ch;
	unsigned n;

	if (c->jobs_changing || now < c->jobs_at || (!c->jobs_look && !t.each))
		return;
	ch = ctlr_change_new(on_moved, c);
	if (!ch)
		return;
	c->jobs_look = false;
	t.left = t.each ? TRIES_MAX : c->jobs_tries;
	n = moves(c, ch, &t);
	c->jobs_tries = t.each ? TRIES_MAX : t.left;
	if (t.each)
		c->jobs_broken_at = now + BROKEN_EACH;
	tries_end(c, &t);
	if (!n) {
		c->jobs_alone = false;
		ctlr_change_cancel(ch);
		return;
	}
	c->jobs_changing = true;
	if (!ctlr_change_submit(c, ch))
		on_moved(c, RWY_ENOMEM, 0);
}
