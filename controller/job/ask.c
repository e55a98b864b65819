/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for networks' controllers: see ask.h. */
#include "controller/job/ask_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/network.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/event.h"

#define WAIT_MAX    (30 * RWY_SEC) /* for somebody else who is at the same job */
#define REFUSED_MAX 3              /* times that a network refuses what it offered */

static void forget(struct ask *a)
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

static void ask_end(struct req *r)
{
	struct ask *a = r->ask;

	if (!a)
		return;
	r->ask = NULL;
	grant_leave(r->c, a->job, a);
	forget(a);
	free(a);
}

static struct ask *need(struct req *r, const char *job)
{
	if (!r->ask)
		r->ask = calloc(1, sizeof(*r->ask));
	if (r->ask) {
		r->ask->r = r;
		r->ask_end = ask_end;
		snprintf(r->ask->job, sizeof(r->ask->job), "%.31s", job);
	}
	return r->ask;
}

/* --- what is offered -------------------------------------------------------------------------- */

static bool served(const struct ctlr *c, const char *first, const char *second)
{
	for (unsigned i = 0; i < c->conf->providers; i++)
		if (network_serves(c, i, first, second))
			return true;
	return false;
}

/* What the job that this one replaces has of a path. */
static uint64_t own_share(struct ctlr *c, const struct job *old, const struct offer *o, unsigned route)
{
	json_t *entry = old ? ask_entry(json_object_get(old->json, "network"), o->first, o->second) : NULL;
	uint64_t sum = 0;
	json_t *leg;
	size_t i;

	json_array_foreach(json_object_get(entry, "legs"), i,
	    leg) if (network_find(c, mdl_text_of(leg, "provider")) == o->net[route] &&
	             !strcmp(mdl_text_of(leg, "edge"), o->route[route].edge) &&
	             !strcmp(mdl_text_of(leg, "path"), o->route[route].name)) sum +=
	    mdl_number_of(leg, "bandwidth_bps");
	return sum;
}

/* To be asked for, together with whatever else is. */
static int note(struct ctlr *c, struct req *r, const char *first, const char *second)
{
	struct ask *a = need(r, r->arg[1]);
	struct offer *more;

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
	more->nobody = true;
	a->missing = true;
	return RWY_ENOENT;
}

int ask_routes(struct ctlr *c, struct req *r, const struct job *old, const char *first, const char *second,
    struct plan_route *out, unsigned max)
{
	struct ask *a = r->ask;
	const struct offer *o = ask_offer(a, first, second);
	json_t *entry = a && a->made ? ask_entry(a->network, first, second) : NULL;

	if (entry)
		return ask_made_routes(entry, out, max);
	if (a && a->made && !o && served(c, first, second))
		a->stale = true; /* a way between these sites is new */
	if (!o && served(c, first, second))
		return note(c, r, first, second);
	if (!o || o->nobody)
		return RWY_ENOENT;
	for (unsigned i = 0; i < o->n && i < max; i++) {
		out[i] = o->route[i];
		out[i].free_bps += own_share(c, old, o, i);
	}
	return (int)(o->n < max ? o->n : max);
}

bool ask_missing(const struct req *r)
{
	return r->ask && (r->ask->missing || r->ask->stale);
}

json_t *ask_made(const struct req *r)
{
	return r->ask && r->ask->made ? r->ask->network : NULL;
}

/* --- waiting for others ----------------------------------------------------------------------- */

enum outcome ask_wait(struct ctlr *c, struct req *r, const char *job)
{
	struct ask *a = need(r, job);
	const rwy_time now = ctlr_now();

	if (!a)
		return req_fail(r, 503, "", "out of memory");
	if (!a->until)
		a->until = now + WAIT_MAX;
	if (now > a->until)
		return req_fail(r, 503, "",
		    "job %s: somebody else changes it, or its network does not answer: try later", job);
	r->next = c->again; /* several times a second, and when the store has told something */
	c->again = r;
	return REQ_WAIT;
}

enum outcome ask_anew(struct ctlr *c, struct req *r, const char *job)
{
	forget(r->ask);
	grant_leave(c, job, r->ask);
	return ask_wait(c, r, job);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void failed(struct ctlr *c, struct ask *a, const struct network_call *call)
{
	if (!call->rc || (a->rc && a->rc != PROVIDER_EREFUSED)) /* what is worse counts */
		return;
	a->rc = call->rc;
	network_text(c, call, a->text, sizeof(a->text));
}

static void refuse(struct ask *a)
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
	event(EVENT_WARNING, "job", a->job, "not planned: %s", a->text);
	req_fail(a->r, status, "", "%s", a->text);
	req_over(a->r);
}

/* true: all calls came back, and it goes on. */
static bool all_back(struct ask *a)
{
	return --a->waiting == 0;
}

static void submit(struct ctlr *c, struct ask *a, struct network_call *call, network_cb *done)
{
	if (!call) {
		a->rc = RWY_ENOMEM;
		snprintf(a->text, sizeof(a->text), "out of memory");
		return;
	}
	call->done = done;
	call->ctx = a;
	if (network_submit(c, call)) {
		a->waiting++;
		return;
	}
	failed(c, a, call);
	network_call_free(call);
}

/* --- asking for paths ------------------------------------------------------------------------- */

static void take_paths(struct ctlr *c, struct offer *o, const struct network_call *call)
{
	const size_t max = o->n + (size_t)call->n;
	struct plan_route *route = realloc(o->route, (max + 1) * sizeof(*route));
	uint8_t *net;

	if (route)
		o->route = route;
	net = realloc(o->net, max + 1);
	if (net)
		o->net = net;
	if (call->n || network_sure(c, call->net))
		o->nobody = false;
	for (int i = 0; route && net && i < call->n && o->n < PLAN_ROUTES_MAX; i++) {
		if (!network_edge(c, call->net, call->route[i].edge))
			continue;
		o->route[o->n] = call->route[i];
		o->net[o->n++] = (uint8_t)call->net;
	}
}

static void paths_end(struct ask *a)
{
	if (a->rc)
		refuse(a);
	else
		req_run_again(a->r);
}

static void on_paths(struct ctlr *c, struct network_call *call)
{
	struct ask *a = call->ctx;
	struct offer *o = ask_offer(a, call->first, call->second);

	failed(c, a, call);
	if (!call->rc && o)
		take_paths(c, o, call);
	if (all_back(a))
		paths_end(a);
}

enum outcome ask_paths(struct ctlr *c, struct req *r, const char *job)
{
	struct ask *a = r->ask;

	if (a->stale)
		return ask_anew(c, r, job);
	if (!grant_claim(c, job, a))
		return req_fail(r, 503, "", "out of memory");
	a->until = 0;
	a->missing = false;
	a->rc = 0;
	a->waiting = 0;
	for (unsigned i = 0; i < a->offers; i++) {
		struct offer *o = &a->offer[i];

		for (unsigned k = 0; !o->asked && k < c->conf->providers; k++)
			if (network_serves(c, k, o->first, o->second))
				submit(c, a, network_call_new(NETWORK_ASK, k, "", o->first, o->second),
				    on_paths);
		o->asked = true;
	}
	if (a->waiting)
		return REQ_WAIT;
	return req_fail(r, 503, "", "%s", a->text);
}

/* --- making ----------------------------------------------------------------------------------- */

static void make_end(struct ctlr *c, struct ask *a)
{
	struct req *r = a->r;

	if (!a->rc) {
		a->made = true;
		req_run_again(r);
	} else if (a->rc == PROVIDER_EREFUSED && ++a->refused < REFUSED_MAX) {
		a->rc = 0;
		if (ask_anew(c, r, a->job) == REQ_DONE) /* somebody was faster: look again */
			req_over(r);
	} else {
		refuse(a);
	}
}

static void on_made(struct ctlr *c, struct network_call *call)
{
	struct ask *a = call->ctx;

	failed(c, a, call);
	if (all_back(a))
		make_end(c, a);
}

/* grant/JOB is stored: whatever happens now, somebody will know. */
static enum outcome make(struct ctlr *c, struct req *r)
{
	struct ask *a = r->ask;
	json_t *record = json_pack("{s:O}", "network", a->network), *n;
	size_t i;

	a->rc = 0;
	a->waiting = 1;
	json_array_foreach(a->network, i, n) for (unsigned k = 0; k < c->conf->providers; k++)
	{
		struct network_call *call = grant_call(
		    c, k, mdl_text_of(n, "name"), mdl_text_of(n, "first"), mdl_text_of(n, "second"), record);

		if (call && call->what == NETWORK_DROP) /* has no leg of it */
			network_call_free(call);
		else
			submit(c, a, call, on_made);
	}
	json_decref(record);
	if (--a->waiting)
		return REQ_WAIT;
	return req_fail(r, 503, "", "%s", a->text);
}

enum outcome ask_make(struct ctlr *c, struct req *r, const char *job, json_t *record)
{
	struct ask *a = r->ask;
	struct change *ch = change_new(NULL, NULL);

	json_decref(a->network);
	a->network = json_incref(json_object_get(record, "network"));
	if (!grant_claim(c, job, a)) {
		change_cancel(ch);
		json_decref(record);
		return req_fail(r, 503, "", "out of memory");
	}
	grant_put(c, ch, job, grant_tunnels(c, job, record));
	json_decref(record);
	return req_commit_next(r, ch, make);
}
