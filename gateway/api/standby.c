/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /v1/standby: this gateway as one of a pair (docs/standby.md); the same for the status, for health
 * and for Prometheus. Worker 0 is asked, which leads the others (engine/board.h).
 */
#include "gateway/api/api.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(e, n, s) [e] = n,
    ENG_SB_STATES(X)
#undef X
};
static const char *const sentences[] = {
#define X(e, n, s) [e] = (s),
    ENG_SB_STATES(X)
#undef X
};

static const struct {
	const char *name, *sentence;
} events[] = {
#define X(e, n, s) [e] = {n, s},
    ENG_SB_EVENTS(X)
#undef X
};

struct ask {
	struct eng_standby_info i;
	bool is; /* one of a pair */
};

/* The gateway, as its worker 0 has it; workers that do not serve although that one does. */
struct standing {
	struct eng_standby_info i;
	unsigned waiting;
};

static void ask(struct eng *e, void *arg)
{
	struct ask *a = arg;

	a->is = eng_standby_info(e, &a->i);
}

enum pair { PAIR_NONE, PAIR_SILENT, PAIR_IS }; /* SILENT: the worker does not answer */

static enum pair pair_ask(struct gw_app *app, struct standing *out)
{
	struct ask a = {.is = false};

	*out = (struct standing){{.state = "", .other = "", .took_by = "", .lost_by = ""}, 0};
	if (!app->workers || conf_standby(app->conf) < 0)
		return PAIR_NONE;
	if (gw_call(app, 0, ask, &a) != 0 || !a.is)
		return PAIR_SILENT;
	out->i = a.i;
	for (unsigned w = 1; w < app->workers; w++) {
		if (gw_call(app, w, ask, &a) != 0 || !a.is)
			return PAIR_SILENT;
		out->i.flows += a.i.flows;
		out->i.bytes += a.i.bytes;
		out->waiting += out->i.serves && !a.i.serves;
	}
	return PAIR_IS;
}

static unsigned state_of(const struct eng_standby_info *i)
{
	unsigned s = 0;

	while (s < ENG_SB_STATE_COUNT && strcmp(names[s], i->state) != 0)
		s++;
	return s;
}

/* All is as it should be: the other gateway has, or this one is ready to take over, everything. */
static bool whole(const struct standing *st)
{
	const unsigned s = state_of(&st->i);

	return (s == ENG_SB_PAIRED || s == ENG_SB_READY) && !st->waiting;
}

/* What made this gateway serve, or lose its standby, and when; null: nothing did. */
static json_t *event_json(const struct gw_app *a, const char *by, rwy_time at)
{
	char when[32] = "";

	for (unsigned i = 0; *by && i < sizeof(events) / sizeof(events[0]); i++)
		if (!strcmp(events[i].name, by)) {
			api_utc(at, when);
			return json_pack("{s:s, s:s, s:s, s:f}", "by", by, "meaning", events[i].sentence,
			    "at", when, "seconds", (double)rwy_since(at, gw_now()) / 1e9);
		}
	return json_null();
}

/* It waits for a word that nobody can say, or that has not come for a second; NULL: it does not. */
static const char *waits(const struct eng_standby_info *i)
{
	const unsigned s = state_of(i);

	if (s != ENG_SB_LOSING && s != ENG_SB_TAKING)
		return NULL;
	if (!*i->witness)
		return "the other gateway is silent, and no tunnel leads to a witness that could say who "
		       "goes on";
	if (rwy_since(i->since, gw_now()) < RWY_SEC)
		return NULL;
	return "the other gateway is silent, and the witness does not answer: nobody says who goes on";
}

static const char *meaning(const struct standing *st)
{
	const unsigned s = state_of(&st->i);
	const char *why = waits(&st->i);

	if (st->waiting)
		return "it serves, but the witness has not given all workers their tunnels yet: their "
		       "hosts wait";
	return why ? why : s < ENG_SB_STATE_COUNT ? sentences[s] : "";
}

json_t *api_standby_json(const struct api_req *req)
{
	const struct gw_app *a = req->app;
	struct standing st;
	const enum pair pair = pair_ask(req->app, &st);
	const struct eng_standby_info i = st.i;
	char since[32] = "";

	if (pair == PAIR_NONE)
		return json_null();
	if (i.since)
		api_utc(i.since, since);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:b, s:b, s:b, s:I, s:I, s:I, s:o, s:o}",
	    "tunnel", a->conf->tunnel[conf_standby(a->conf)].name, "state", i.state, "meaning", meaning(&st),
	    "other", i.other, "witness", i.witness, "since", since, "seconds",
	    i.since ? (double)rwy_since(i.since, gw_now()) / 1e9 : 0.0, "serves", i.serves, "site", i.site,
	    "degraded", !whole(&st), "flows", (json_int_t)i.flows, "bytes", (json_int_t)i.bytes, "epoch",
	    (json_int_t)i.term, "serves_by", event_json(a, i.took_by, i.took_at), "lost_by",
	    event_json(a, i.lost_by, i.lost_at));
}

void api_standby(const struct api_req *req, struct api_reply *reply)
{
	reply->json = json_pack("{s:o}", "standby", api_standby_json(req));
}

const char *api_standby_health(const struct api_req *req, bool *ok)
{
	struct standing st;

	*ok = true;
	switch (pair_ask(req->app, &st)) {
	case PAIR_NONE:
		return conf_wants_site(req->app->conf) ? "ack mode `site` without a pair: it is as `near`"
		                                       : NULL;
	case PAIR_SILENT:
		*ok = false;
		return "the worker does not answer";
	case PAIR_IS:
		break;
	}
	*ok = whole(&st);
	return meaning(&st);
}

static void gauge(FILE *f, const char *name, const char *text)
{
	fprintf(f, "# HELP roceway_standby_%s %s.\n# TYPE roceway_standby_%s gauge\n", name, text, name);
}

void api_metrics_standby(FILE *f, const struct api_req *req)
{
	struct standing st;
	const bool is = pair_ask(req->app, &st) == PAIR_IS;
	const struct eng_standby_info i = st.i;

	if (!is && req->app->workers) /* no worker: --print-metrics */
		return;
	gauge(f, "state", "1 for the state of this gateway as one of a pair, 0 for all others");
	for (unsigned s = ENG_SB_NONE + 1; is && s < ENG_SB_STATE_COUNT; s++)
		fprintf(f, "roceway_standby_state{state=\"%s\"} %d\n", names[s], s == state_of(&i));
	gauge(f, "serves", "1 when this gateway of a pair serves hosts");
	if (is)
		fprintf(f, "roceway_standby_serves %d\n", i.serves);
	gauge(f, "site", "1 when ack mode `site` is in effect: the other gateway has what is acknowledged");
	if (is)
		fprintf(f, "roceway_standby_site %d\n", i.site);
	gauge(f, "degraded", "1 when the other gateway could not take over without loss, or this one");
	if (is)
		fprintf(f, "roceway_standby_degraded %d\n", !whole(&st));
	gauge(f, "flows", "connections with copies at the other gateway, or stored for it");
	if (is)
		fprintf(f, "roceway_standby_flows %" PRIu32 "\n", i.flows);
	gauge(f, "bytes", "bytes of copies on their way to it, or stored for it");
	if (is)
		fprintf(f, "roceway_standby_bytes %" PRIu64 "\n", i.bytes);
}
