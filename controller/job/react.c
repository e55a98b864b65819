/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that follow what is measured: see react.h. A plan is made from the path as it was then.
 * When loss, round trip or bandwidth change, the carrier, the rates at the WAN's edge, and whether
 * the job fits at all may be others. Pairs stay at their gateways where they can.
 */
#include "controller/job/react.h"

#include <string.h>

#include "controller/job/jobs.h"
#include "controller/job/split.h"

#define EACH        (RWY_SEC / 10) /* between two jobs */
#define NOTABLE_PPM 100000         /* a change of a rate above this is stored */

bool ctlr_job_is_ours(struct ctlr *c, const struct ctlr_job *j)
{
	const struct ctlr_tunnel *t = NULL;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(j->json, "plan"), i, row)
	{
		t = ctlr_tunnel_of_pair(c, json_string_value(json_object_get(row, "pair")));
		if (t)
			break;
	}
	return !t || ctlr_tunnel_is_ours(c, t);
}

bool ctlr_job_react_holds(struct ctlr *c, const struct ctlr_job *j)
{
	const uint64_t at = mdl_number_of(j->json, "measured_ms");

	return at && (ctlr_wall_ms() < at + c->conf->policy.hold / RWY_MS || !ctlr_job_is_ours(c, j));
}

static bool is_notable(const json_t *was, const json_t *is, const char *key)
{
	const uint64_t a = mdl_number_of(was, key), b = mdl_number_of(is, key), d = a > b ? a - b : b - a;

	return d > a / (1000000 / NOTABLE_PPM);
}

static bool same(const json_t *a, const json_t *b, const char *key)
{
	const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);

	return x && y ? json_equal(x, y) : x == y;
}

bool ctlr_job_differs(const json_t *was, const json_t *is)
{
	json_t *old = json_object_get(was, "plan"), *plan = json_object_get(is, "plan"), *row;
	size_t i;

	if (!same(was, is, "reason") || json_array_size(old) != json_array_size(plan))
		return true;
	json_array_foreach(plan, i, row)
	{
		const json_t *before = json_array_get(old, i);

		if (!same(before, row, "pair") || !same(before, row, "carrier") ||
		    is_notable(before, row, "gateway_bps") || is_notable(before, row, "edge_bps"))
			return true;
	}
	return false;
}

/* Networks promise what they reserved; jobs that are broken or wait are tried again anyway. */
static bool follows(struct ctlr *c, const struct ctlr_job *j)
{
	return !j->stale && !json_object_get(j->json, "reason") && !json_object_get(j->json, "network") &&
	       !ctlr_split_missing(j->json) && json_array_size(json_object_get(j->json, "plan")) &&
	       ctlr_job_is_ours(c, j);
}

static void look_at(struct ctlr *c, struct ctlr_job *j, rwy_time now)
{
	json_t *record = follows(c, j) ? ctlr_job_plan_again(c, j, NULL) : NULL;

	if (!record || !ctlr_job_differs(j->json, record)) {
		j->differs_at = 0;
	} else if (!j->differs_at) {
		j->differs_at = now;
	} else if (rwy_since(j->differs_at, now) >= c->conf->policy.confirm) {
		j->stale = true;
		c->jobs_look = true;
	}
	json_decref(record);
}

void ctlr_job_react_tick(struct ctlr *c, rwy_time now)
{
	struct ctlr_job *j = NULL;

	if (now < c->react_at || c->jobs_changing)
		return;
	c->react_at = now + EACH;
	if (!ctlr_map_page(&c->jobs, c->reacted, (void **)&j, 1)) {
		*c->reacted = 0;
		return;
	}
	memcpy(c->reacted, j->name, sizeof(c->reacted));
	look_at(c, j, now);
}
