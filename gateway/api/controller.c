/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/controller: the gateway's relation to its control center (docs/gateway-control.md). */
#include "gateway/api/api.h"
#include "gateway/agent/ctrl.h"
#include "gateway/control/tunnels.h"

static const char *state_name(enum agent_state s)
{
	switch (s) {
	case AGENT_AWAY:
		return "away";
	case AGENT_REGISTERING:
		return "registering";
	case AGENT_REGISTERED:
		return "registered";
	}
	rwy_unreachable();
}

static json_t *counters(const struct agent_status *s)
{
	json_t *o = json_object();

#define X(f, t) json_object_set_new(o, #f, json_integer((json_int_t)s->f));
	AGENT_COUNTERS(X)
#undef X
	return o;
}

/* Lists the tunnels that the controller made. */
static json_t *tunnels(const struct gw_app *app)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < app->conf->tunnels; i++)
		if (*app->conf->tunnel[i].name && gw_tunnel_side(app, i) == GW_SIDE_CONTROLLER)
			json_array_append_new(list, json_string(app->conf->tunnel[i].name));
	return list;
}

void api_controller(const struct api_req *req, struct api_reply *reply)
{
	const struct conf_controller *c = &req->app->conf->controller;
	struct agent_status s;
	json_t *urls = json_array();
	char member[CONF_NAME];

	for (unsigned i = 0; i < c->urls; i++)
		json_array_append_new(urls, json_string(c->url[i]));
	if (!gw_ctrl_status(req->app, &s)) {
		reply->json = json_pack("{s:s, s:o}", "state", "none", "urls", urls);
		return;
	}
	reply->json = json_pack(
	    "{s:s, s:o, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:s, s:s, s:s, s:o, s:o}", "state",
	    state_name(s.state), "urls", urls, "url", s.url, "name", req->app->conf->name, "site", c->site,
	    "since_seconds", (double)s.since_ms / 1e3, "renewed_seconds", (double)s.renewed_ms / 1e3,
	    "retry_seconds", (double)s.retry_ms / 1e3, "ttl_seconds", (double)s.ttl_ms / 1e3, "generation",
	    (json_int_t)s.generation, "refused", (json_int_t)s.refused, "refusal", s.why, "problem",
	    s.problem, "document", c->document, "tunnels", tunnels(req->app), "counters", counters(&s));
	conf_member(req->app->conf, member);
	if (*member)
		json_object_set_new(reply->json, "member", json_string(member));
}
