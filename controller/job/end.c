/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Withdraws jobs whose time is over, those that end together in one change: each change of jobs
 * compares the same guard, so of several at once all but one would lose. All locked.
 */
#include <stdio.h>
#include <stdlib.h>

#include "controller/job/jobs.h"
#include "controller/job/reservation.h"
#include "controller/job/split.h"
#include "controller/state/change.h"
#include "controller/state/event.h"

#define ENDS_MAX  60      /* jobs in a change, each with at most two operations */
#define BYTES_MAX 1000000 /* of records in a change: etcd accepts 1.5 MiB of all */
#define PAUSE_MS  1000    /* after a failure of the store */

struct ends {
	struct ctlr *c;
	unsigned n;
	struct {
		char name[MDL_NAME];
		bool undone; /* its containers did not come */
	} job[ENDS_MAX];
};

static void job_ended(const struct ends *e, unsigned i)
{
	ctlr_event(e->c, EVENT_INFO, "job", e->job[i].name, "%s",
	    e->job[i].undone ? "its containers did not come in time: it is undone" : "its time is over");
}

/* The job is tried again later, after others: it may be what the store does not take. */
static void job_waits(const struct ends *e, unsigned i)
{
	struct ctlr_job *j = ctlr_map_find(&e->c->jobs, e->job[i].name);

	if (j && j->until_ms)
		j->until_ms = ctlr_wall_ms() + PAUSE_MS;
}

static void on_ended(void *ctx, int rc, uint64_t rev)
{
	struct ends *e = ctx;

	e->c->jobs_ending = false;
	/* a change that the store finds too large goes job by job */
	e->c->jobs_end_alone = rc == RWY_EINVAL;
	for (unsigned i = 0; i < e->n; i++)
		if (!rc)
			job_ended(e, i);
		else if (rc != STORE_ECONFLICT && (rc != RWY_EINVAL || e->n == 1))
			job_waits(e, i);
	free(e);
}

/* Whether the job is over and nobody works on its tunnels. */
static bool is_over(struct ctlr *c, const struct ctlr_job *j, uint64_t now)
{
	return j->until_ms && now >= j->until_ms && !ctlr_reservation_locked(c, j->name, NULL);
}

static void end_jobs(struct ctlr *c, struct ends *e, struct ctlr_change *ch)
{
	const uint64_t now = ctlr_wall_ms();
	const unsigned max = c->jobs_end_alone ? 1 : ENDS_MAX;
	size_t bytes = 0;
	struct ctlr_job *j;

	ctlr_job_guard(c, ch);
	CTLR_MAP_EACH(&c->jobs, j)
	{
		if (e->n == max || bytes >= BYTES_MAX)
			break; /* the next tick has the others */
		if (!is_over(c, j, now))
			continue;
		snprintf(e->job[e->n].name, sizeof(e->job[0].name), "%s", j->name);
		e->job[e->n++].undone = ctlr_split_missing(j->json);
		bytes += ctlr_job_withdraw(c, ch, j);
	}
}

static bool any_over(struct ctlr *c)
{
	const uint64_t now = ctlr_wall_ms();
	struct ctlr_job *j;

	CTLR_MAP_EACH(&c->jobs, j)
	if (is_over(c, j, now))
		return true;
	return false;
}

void ctlr_job_end_tick(struct ctlr *c)
{
	struct ctlr_change *ch;
	struct ends *e;

	if (c->jobs_ending || !any_over(c))
		return;
	e = calloc(1, sizeof(*e));
	ch = e ? ctlr_change_new(on_ended, e) : NULL;
	if (!ch) {
		free(e);
		return;
	}
	e->c = c;
	end_jobs(c, e, ch);
	c->jobs_ending = true;
	if (!ctlr_change_submit(c, ch))
		on_ended(e, RWY_ENOMEM, 0);
}
