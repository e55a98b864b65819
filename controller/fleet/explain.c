/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a session's tunnel and carrier: inputs with sources and ages, the rule, the
 * alternatives. */
#include <stdio.h>
#include <string.h>

#include "controller/state/reserved.h"
#include "controller/fleet/fleet.h"
#include "controller/job/jobs.h"
#include "controller/plan/place.h"
#include "controller/server/req.h"
#include "controller/state/ctlr.h"
#include "controller/state/path.h"
#include "controller/state/route_index.h"

#define GATEWAYS_MAX 64

struct explain_ctx {
	struct ctlr *c;
	const struct ctlr_tunnel *t;
	rwy_time now;
};

/* The name of a source number of ctlr_path_get(): 0 is an assumption, 1 and 2 are the tunnel's
 * ends, then come networks' reports, last the reservations. */
static const char *source_name(void *ctx, uint32_t source)
{
	const struct explain_ctx *x = ctx;
	struct ctlr_push *p;

	if (!source)
		return "assumed";
	if (source == CTLR_RESERVED_SOURCE)
		return "reserved";
	if (source <= 2)
		return x->t->end[source - 1]->name;
	CTLR_MAP_EACH(&x->c->pushes, p)
	{
		if (p->id + 2 == source)
			return p->source;
	}
	return "gone";
}

static json_t *value_json(struct explain_ctx *x, const struct plan_value *v)
{
	return json_pack("{s:I, s:s, s:I}", "value", (json_int_t)v->v, "source", source_name(x, v->source),
	    "age_ms", (json_int_t)(v->source ? rwy_since(v->at, x->now) / RWY_MS : 0));
}

static json_t *caps_json(const struct plan_caps *p)
{
	json_t *j = json_object();

	for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++)
		json_object_set_new(j, plan_carrier_name(k), json_integer((json_int_t)p->bandwidth_bps[k]));
	json_object_set_new(j, "cnp", json_boolean(p->cnp));
	return j;
}

static json_t *inputs_json(struct explain_ctx *x, const struct plan_decision *d)
{
	const struct plan_path *path = &d->asked.path;
	json_t *legs = json_object();

	for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++) {
		const struct plan_leg *l = &path->by[k];

		json_object_set_new(legs, plan_carrier_name(k),
		    json_pack("{s:o, s:o, s:o, s:o, s:o}", "bandwidth_bps", value_json(x, &l->bandwidth_bps),
		        "rtt_us", value_json(x, &l->rtt_us), "jitter_us", value_json(x, &l->jitter_us),
		        "loss_ppm", value_json(x, &l->loss_ppm), "burst", value_json(x, &l->burst)));
	}
	return json_pack("{s:s, s:o, s:o, s:o, s:I}", "class", plan_class_name(path->cls), "path", legs,
	    x->t->end[0]->name, caps_json(&d->asked.source), x->t->end[1]->name,
	    caps_json(&d->asked.destination), "demand_bps", (json_int_t)d->asked.demand_bps);
}

static json_t *alternatives_json(const struct plan_decision *d)
{
	json_t *list = json_array();

	for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++)
		json_array_append_new(
		    list, json_pack("{s:s, s:I, s:s, s:s, s:b, s:b}", "carrier", plan_carrier_name(k),
		              "goodput_bps", (json_int_t)d->alt[k].goodput_bps, "limit",
		              plan_limit_name(d->alt[k].limit), "why", plan_limit_text(d->alt[k].limit),
		              "enough", d->alt[k].enough, "chosen", d->carrier == k));
	return list;
}

static json_t *pairs_json(struct ctlr *c, const struct ctlr_flow *f)
{
	struct ctlr_gateway *g[2][GATEWAYS_MAX];
	uint32_t w[2][GATEWAYS_MAX];
	const unsigned n[2] = {ctlr_path_weights(f->site[0], g[0], w[0], GATEWAYS_MAX),
	    ctlr_path_weights(f->site[1], g[1], w[1], GATEWAYS_MAX)};
	json_t *list = json_array();

	for (unsigned i = 0; i < n[0]; i++)
		for (unsigned k = 0; k < n[1]; k++) {
			const struct ctlr_tunnel *t = ctlr_tunnel_find(c, g[0][i]->name, g[1][k]->name);

			json_array_append_new(list,
			    json_pack("{s:o, s:I, s:b, s:I, s:b}", "pair",
			        json_sprintf("%s/%s", g[0][i]->name, g[1][k]->name), "weight",
			        (json_int_t)plan_pair_weight(w[0][i], w[1][k]), "up", t && ctlr_tunnel_up(t),
			        "flows", (json_int_t)(t ? t->flows : 0), "chosen", t && t == f->tunnel));
		}
	return list;
}

/* The network's tunnel that a job has between these sites, and the rule that placed it. */
static json_t *network_json(struct ctlr *c, const struct ctlr_flow *f)
{
	const struct ctlr_job *j = ctlr_route_job(c, f->vni, f->addr[0], f->addr[1], f->qpn[0], f->qpn[1]);
	json_t *n, *out;
	size_t i;

	json_array_foreach(j ? json_object_get(j->json, "network") : NULL, i, n)
	{
		const char *first = json_string_value(json_object_get(n, "first"));
		const char *second = json_string_value(json_object_get(n, "second"));
		const char *shape = json_string_value(json_object_get(n, "shape"));

		if (!first || !second || !shape || strcmp(first, f->site[0]->name) != 0 ||
		    strcmp(second, f->site[1]->name) != 0)
			continue;
		out = json_deep_copy(n);
		json_object_set_new(out, "job", json_string(j->name));
		json_object_set_new(out, "reason", json_string(plan_shape_text(shape)));
		return out;
	}
	return NULL;
}

static void pair_reason(json_t *out, enum ctlr_flow_why why)
{
	static const char *const text[][2] = {
#define X(e, w, s) {w, s},
	    FLOW_WHYS(X)
#undef X
	};

	json_object_set_new(out, "pair_rule", json_string(text[why][0]));
	json_object_set_new(out, "pair_reason", json_string(text[why][1]));
}

/* The sentence of a rule's word; "" for an unknown word. */
static const char *rule_text(const char *name)
{
	for (unsigned r = 0; r < PLAN_RULE_COUNT; r++)
		if (!strcmp(plan_rule_name((enum plan_rule)r), name))
			return plan_rule_text((enum plan_rule)r);
	return "";
}

enum ctlr_outcome ctlr_api_session_explain(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_session *s = ctlr_map_find(&c->sessions, r->arg[0]);
	struct explain_ctx x = {.c = c, .now = ctlr_now()};
	struct plan_question q;
	struct plan_decision d;
	struct plan_hyst hyst;
	char text[2048];
	json_t *out;

	if (!s)
		return ctlr_req_fail(r, 404, "", "there is no session %s", r->arg[0]);
	out = json_pack("{s:o}", "session", ctlr_session_json(s));
	if (s->flow) {
		json_t *network = network_json(c, s->flow);

		json_object_set_new(out, "pairs", pairs_json(c, s->flow));
		if (network)
			json_object_set_new(out, "network", network);
	}
	if (!s->flow || !s->flow->tunnel) {
		json_object_set_new(out, "rule", json_string("none"));
		json_object_set_new(out, "reason",
		    json_string(
		        s->reason ? s->reason : "no pair of gateways of these sites is up with a tunnel"));
		return ctlr_req_reply(r, 200, out);
	}
	pair_reason(out, s->flow->why);
	x.t = s->flow->tunnel;
	if (x.t->paths)
		json_object_set(out, "paths", x.t->paths);
	if (*x.t->unsteered)
		json_object_set_new(out, "unsteered", json_string(x.t->unsteered));
	hyst = x.t->hyst;
	ctlr_path_question(c, x.t, &q, x.now);
	plan_decide(&d, &q, &c->conf->policy, &hyst, x.now);
	plan_explain(text, sizeof(text), &d, source_name, &x);
	json_object_set_new(out, "rule", json_string(plan_rule_name(d.rule)));
	json_object_set_new(out, "reason", json_string(plan_rule_text(d.rule)));
	json_object_set_new(out, "inputs", inputs_json(&x, &d));
	json_object_set_new(out, "alternatives", alternatives_json(&d));
	json_object_set_new(out, "decision",
	    json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s}", "carrier", plan_carrier_name(d.carrier),
	        "tunnel", x.t->name, "n_bps", (json_int_t)d.n_bps, "gateway_bps", (json_int_t)d.gateway_bps,
	        "edge_bps", (json_int_t)d.edge_bps, "decided_by", x.t->rule, "decided_reason",
	        rule_text(x.t->rule), "text", text));
	return ctlr_req_reply(r, 200, out);
}
