/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for networks' controllers; see query.h. */
#include "controller/job/query_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/network.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/event.h"

#define WAIT_MAX    (30 * RWY_SEC) /* for another request or replica that works on the same job */
#define REFUSED_MAX 3              /* times that a network may refuse what it offered */

static void query_forget(struct ctlr_query *a)
{
	for (unsigned i = 0; i < a->offers; i++) {
		free(a->offer[i].route);
		free(a->offer[i].net);
	}
	free(a->offer);
	a->offer = NULL;
	a->offers = 0;
	json_decref(a->network);
	a->network = NULL;
	a->made = a->missing = a->stale = false;
}

static void query_end(struct ctlr_req *r)
{
	struct ctlr_query *a = r->query;

	if (!a)
		return;
	r->query = NULL;
	ctlr_reservation_unlock(r->c, a->job, a);
	query_forget(a);
	free(a);
}

static struct ctlr_query *query_need(struct ctlr_req *r, const char *job)
{
	if (!r->query)
		r->query = calloc(1, sizeof(*r->query));
	if (r->query) {
		r->query->r = r;
		r->query_end = query_end;
		snprintf(r->query->job, sizeof(r->query->job), "%.31s", job);
	}
	return r->query;
}

/* --- candidates ------------------------------------------------------------------------------- */

static bool sites_served(const struct ctlr *c, const char *first, const char *second)
{
	for (unsigned i = 0; i < c->conf->providers; i++)
		if (ctlr_network_serves(c, i, first, second))
			return true;
	return false;
}

/* The share of a path that the replaced job has. */
static uint64_t own_share(
    struct ctlr *c, const struct ctlr_job *old, const struct ctlr_candidates *o, unsigned route)
{
	json_t *entry =
	    old ? ctlr_query_entry(json_object_get(old->json, "network"), o->first, o->second) : NULL;
	uint64_t sum = 0;
	json_t *leg;
	size_t i;

	json_array_foreach(json_object_get(entry, "legs"), i,
	    leg) if (ctlr_network_find(c, mdl_text_of(leg, "provider")) == o->net[route] &&
	             mdl_leg_is(leg, o->route[route].edge, o->route[route].name)) sum +=
	    mdl_number_of(leg, "bandwidth_bps");
	return sum;
}

/* Notes that the networks must be asked about these two sites. */
static int query_note(struct ctlr *c, struct ctlr_req *r, const char *first, const char *second)
{
	struct ctlr_query *a = query_need(r, r->arg[1]);
	struct ctlr_candidates *more;

	if (!a)
		return RWY_ENOMEM;
	more = realloc(a->offer, (a->offers + 1) * sizeof(*more));
	if (!more)
		return RWY_ENOMEM;
	a->offer = more;
	more += a->offers++;
	memset(more, 0, sizeof(*more));
	snprintf(more->first, sizeof(more->first), "%s", first);
	snprintf(more->second, sizeof(more->second), "%s", second);
	more->unserved = true;
	a->missing = true;
	return RWY_ENOENT;
}

int ctlr_query_routes(struct ctlr *c, struct ctlr_req *r, const struct ctlr_job *old, const char *first,
    const char *second, struct plan_route *out, unsigned max)
{
	struct ctlr_query *a = r->query;
	const struct ctlr_candidates *o = ctlr_query_candidates(a, first, second);
	json_t *entry = a && a->made ? ctlr_query_entry(a->network, first, second) : NULL;

	if (entry)
		return ctlr_query_made_routes(entry, out, max);
	if (a && a->made && !o && sites_served(c, first, second))
		a->stale = true; /* these sites became a pair after the tunnels were made */
	if (!o && sites_served(c, first, second))
		return query_note(c, r, first, second);
	if (!o || o->unserved)
		return RWY_ENOENT;
	for (unsigned i = 0; i < o->n && i < max; i++) {
		out[i] = o->route[i];
		out[i].free_bps += own_share(c, old, o, i);
	}
	return (int)(o->n < max ? o->n : max);
}

bool ctlr_query_missing(const struct ctlr_req *r)
{
	return r->query && (r->query->missing || r->query->stale);
}

json_t *ctlr_query_made(const struct ctlr_req *r)
{
	return r->query && r->query->made ? r->query->network : NULL;
}

/* --- waiting for others ----------------------------------------------------------------------- */

enum ctlr_outcome ctlr_query_wait(struct ctlr *c, struct ctlr_req *r, const char *job)
{
	struct ctlr_query *a = query_need(r, job);
	const rwy_time now = ctlr_now();

	if (!a)
		return ctlr_req_fail(r, 503, "", "out of memory");
	if (!a->until)
		a->until = now + WAIT_MAX;
	if (now > a->until)
		return ctlr_req_fail(r, 503, "",
		    "job %s: another request changes it, or its network does not answer: try later", job);
	/* runs again several times a second, and when the store reports a change */
	r->next = c->retry;
	c->retry = r;
	return REQ_WAIT;
}

/* The tunnels that were made no longer fit the plan: starts again from the beginning. */
static enum ctlr_outcome query_restart(struct ctlr *c, struct ctlr_req *r, const char *job)
{
	query_forget(r->query);
	ctlr_reservation_unlock(c, job, r->query);
	return ctlr_query_wait(c, r, job);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void note_failure(struct ctlr *c, struct ctlr_query *a, const struct ctlr_network_call *call)
{
	if (!call->rc || (a->rc && a->rc != PROVIDER_EREFUSED)) /* the worse failure counts */
		return;
	a->rc = call->rc;
	ctlr_network_text(c, call, a->text, sizeof(a->text));
}

static void query_refuse(struct ctlr_query *a)
{
	unsigned status = 503;

	switch (a->rc) {
	case PROVIDER_EREFUSED:
		status = 409;
		break;
	case PROVIDER_EBAD:
	case RWY_EINVAL:
		status = 502;
		break;
	}
	ctlr_event(a->r->c, EVENT_WARNING, "job", a->job, "not planned: %s", a->text);
	ctlr_req_fail(a->r, status, "", "%s", a->text);
	ctlr_req_conclude(a->r);
}

/* True if this was the last call to return. */
static bool all_returned(struct ctlr_query *a)
{
	return --a->waiting == 0;
}

static void submit_call(
    struct ctlr *c, struct ctlr_query *a, struct ctlr_network_call *call, ctlr_network_cb *done)
{
	if (!call) {
		a->rc = RWY_ENOMEM;
		snprintf(a->text, sizeof(a->text), "out of memory");
		return;
	}
	call->done = done;
	call->ctx = a;
	if (ctlr_network_submit(c, call)) {
		a->waiting++;
		return;
	}
	note_failure(c, a, call);
	ctlr_network_call_free(call);
}

/* --- querying paths --------------------------------------------------------------------------- */

static void add_candidates(struct ctlr *c, struct ctlr_candidates *o, const struct ctlr_network_call *call)
{
	const size_t max = o->n + (size_t)call->n;
	struct plan_route *route = realloc(o->route, (max + 1) * sizeof(*route));
	uint8_t *net;

	if (route)
		o->route = route;
	net = realloc(o->net, max + 1);
	if (net)
		o->net = net;
	if (call->n || ctlr_network_sure(c, call->net))
		o->unserved = false;
	for (int i = 0; route && net && i < call->n && o->n < PLAN_ROUTES_MAX; i++) {
		if (!ctlr_network_edge(c, call->net, call->route[i].edge))
			continue;
		o->route[o->n] = call->route[i];
		o->net[o->n++] = (uint8_t)call->net;
	}
}

static void paths_ended(struct ctlr_query *a)
{
	if (a->rc)
		query_refuse(a);
	else
		ctlr_req_run(a->r);
}

static void on_paths(struct ctlr *c, struct ctlr_network_call *call)
{
	struct ctlr_query *a = call->ctx;
	struct ctlr_candidates *o = ctlr_query_candidates(a, call->first, call->second);

	note_failure(c, a, call);
	if (!call->rc && o)
		add_candidates(c, o, call);
	if (all_returned(a))
		paths_ended(a);
}

enum ctlr_outcome ctlr_query_paths(struct ctlr *c, struct ctlr_req *r, const char *job)
{
	struct ctlr_query *a = r->query;

	if (a->stale)
		return query_restart(c, r, job);
	if (!ctlr_reservation_lock(c, job, a))
		return ctlr_req_fail(r, 503, "", "out of memory");
	a->until = 0;
	a->missing = false;
	a->rc = 0;
	a->waiting = 0;
	for (unsigned i = 0; i < a->offers; i++) {
		struct ctlr_candidates *o = &a->offer[i];

		for (unsigned k = 0; !o->asked && k < c->conf->providers; k++)
			if (ctlr_network_serves(c, k, o->first, o->second))
				submit_call(c, a,
				    ctlr_network_call_new(NETWORK_QUERY, k, "", o->first, o->second),
				    on_paths);
		o->asked = true;
	}
	if (a->waiting)
		return REQ_WAIT;
	return ctlr_req_fail(r, 503, "", "%s", a->text);
}

/* --- making tunnels --------------------------------------------------------------------------- */

static void making_ended(struct ctlr *c, struct ctlr_query *a)
{
	struct ctlr_req *r = a->r;

	if (!a->rc) {
		a->made = true;
		ctlr_req_run(r);
	} else if (a->rc == PROVIDER_EREFUSED && ++a->refused < REFUSED_MAX) {
		a->rc = 0;
		/* the path was taken by another job: query again */
		if (query_restart(c, r, a->job) == REQ_DONE)
			ctlr_req_conclude(r);
	} else {
		query_refuse(a);
	}
}

static void on_made(struct ctlr *c, struct ctlr_network_call *call)
{
	struct ctlr_query *a = call->ctx;

	note_failure(c, a, call);
	if (all_returned(a))
		making_ended(c, a);
}

/* Makes the tunnels. reservation/JOB is stored before: after a crash it names the tunnels to
 * settle. */
static enum ctlr_outcome make_tunnels(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_query *a = r->query;
	json_t *record = json_pack("{s:O}", "network", a->network), *n;
	size_t i;

	a->rc = 0;
	a->waiting = 1;
	json_array_foreach(a->network, i, n) for (unsigned k = 0; k < c->conf->providers; k++)
	{
		struct ctlr_network_call *call = ctlr_reservation_call(
		    c, k, mdl_text_of(n, "name"), mdl_text_of(n, "first"), mdl_text_of(n, "second"), record);

		if (call && call->what == NETWORK_DROP) /* no leg of it is there */
			ctlr_network_call_free(call);
		else
			submit_call(c, a, call, on_made);
	}
	json_decref(record);
	if (--a->waiting)
		return REQ_WAIT;
	return ctlr_req_fail(r, 503, "", "%s", a->text);
}

enum ctlr_outcome ctlr_query_make(struct ctlr *c, struct ctlr_req *r, const char *job, json_t *record)
{
	struct ctlr_query *a = r->query;
	struct ctlr_change *ch = ctlr_change_new(NULL, NULL);

	json_decref(a->network);
	a->network = json_incref(json_object_get(record, "network"));
	if (!ctlr_reservation_lock(c, job, a)) {
		ctlr_change_cancel(ch);
		json_decref(record);
		return ctlr_req_fail(r, 503, "", "out of memory");
	}
	ctlr_reservation_put(c, ch, job, ctlr_reservation_tunnels(c, job, record));
	json_decref(record);
	return ctlr_req_commit_next(r, ch, make_tunnels);
}
