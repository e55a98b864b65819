/* SPDX-License-Identifier: Apache-2.0 */
/* The "network" of a job's record: one network tunnel for each pair of sites, with its legs and the
 * share of each pair of gateways. */
#include <stdio.h>
#include <string.h>

#include "controller/job/query_int.h"
#include "controller/provider/json.h"
#include "controller/server/req.h"

json_t *ctlr_query_entry(json_t *network, const char *first, const char *second)
{
	json_t *n;
	size_t i;

	json_array_foreach(network, i, n) if (!strcmp(mdl_text_of(n, "first"), first) &&
	                                      !strcmp(mdl_text_of(n, "second"), second)) return n;
	return NULL;
}

static void read_steer(struct plan_steer *out, const json_t *leg)
{
	const json_t *steer = json_object_get(leg, "steer");
	char why[96];

	if (!steer || !provider_json_steer(out, steer, why, sizeof(why)))
		*out = (struct plan_steer){0}; /* there is none, or of another version */
}

unsigned ctlr_query_granted(const json_t *entry, uint64_t bps, struct plan_granted *out, unsigned max)
{
	const uint64_t all = mdl_number_of(entry, "bandwidth_bps");
	unsigned n = 0;
	json_t *leg;
	size_t i;

	json_array_foreach(json_object_get(entry, "legs"), i, leg)
	{
		struct plan_granted *g = &out[n];

		if (!all || n == max || json_is_true(json_object_get(leg, "gone")))
			continue;
		*g = (struct plan_granted){0};
		snprintf(g->edge, sizeof(g->edge), "%s", mdl_text_of(leg, "edge"));
		snprintf(g->name, sizeof(g->name), "%s", mdl_text_of(leg, "path"));
		g->bps = (uint64_t)((unsigned __int128)mdl_number_of(leg, "bandwidth_bps") * bps / all);
		read_steer(&g->steer, leg);
		n += g->bps != 0;
	}
	return n;
}

int ctlr_query_made_routes(json_t *entry, struct plan_route *out, unsigned max)
{
	unsigned n = 0;
	json_t *leg;
	size_t i;

	json_array_foreach(json_object_get(entry, "legs"), i, leg)
	{
		if (n == max)
			break;
		out[n] = (struct plan_route){.free_bps = PLAN_RATE_MAX / PLAN_ROUTES_MAX,
		    .delay_us = (uint32_t)mdl_number_of(leg, "delay_us"),
		    .jitter_us = (uint32_t)mdl_number_of(leg, "jitter_us"),
		    .loss_ppm = (uint32_t)mdl_number_of(leg, "loss_ppm")};
		read_steer(&out[n].steer, leg);
		snprintf(out[n].edge, sizeof(out[n].edge), "%s", mdl_text_of(leg, "edge"));
		snprintf(out[n++].name, sizeof(out[0].name), "%s", mdl_text_of(leg, "path"));
	}
	return (int)n;
}

static json_t *legs_json(struct ctlr *c, const struct plan_job_group *g, const struct ctlr_candidates *o)
{
	json_t *legs = json_array();

	for (unsigned i = 0; i < g->placement.n; i++) {
		const unsigned at = g->placement.leg[i].route;
		const struct plan_route *p = &g->routes[at];
		json_t *leg = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "provider",
		    c->conf->provider[o->net[at]].name, "edge", p->edge, "path", p->name, "bandwidth_bps",
		    (json_int_t)g->placement.leg[i].bps, "delay_us", (json_int_t)p->delay_us, "jitter_us",
		    (json_int_t)p->jitter_us, "loss_ppm", (json_int_t)p->loss_ppm);

		if (plan_steers(&p->steer))
			json_object_set_new(leg, "steer", provider_steer_json(&p->steer));
		json_array_append_new(legs, leg);
	}
	return legs;
}

/* Each pair of gateways gets a share of the reservation, by the load that it carries. */
static json_t *pairs_json(const struct plan_job_group *g, uint64_t reserved)
{
	json_t *out = json_object();
	char name[2 * PLAN_NAME_MAX];

	for (unsigned i = 0; g->pair_bps && i < g->n_gw[0]; i++)
		for (unsigned k = 0; k < g->n_gw[1]; k++) {
			const char *a = g->gw[0][i].name, *b = g->gw[1][k].name;
			const uint64_t bps = g->pair_bps[i * g->n_gw[1] + k];
			const bool first = strcmp(a, b) < 0;

			snprintf(name, sizeof(name), "%s/%s", first ? a : b, first ? b : a);
			if (bps && g->want.bandwidth_bps)
				json_object_set_new(out, name,
				    json_integer((json_int_t)((unsigned __int128)reserved * bps /
				                              g->want.bandwidth_bps)));
		}
	return out;
}

static json_t *entry_json(
    struct ctlr *c, const struct ctlr_query *a, const char *job, const struct plan_job_group *g)
{
	json_t *legs = legs_json(c, g, ctlr_query_candidates(a, g->first, g->second));
	uint64_t reserved = 0;

	for (unsigned i = 0; i < g->placement.n; i++)
		reserved += g->placement.leg[i].bps;
	return json_pack("{s:o, s:s, s:s, s:s, s:I, s:I, s:o}", "name",
	    json_sprintf("%s~%s~%s", job, g->first, g->second), "first", g->first, "second", g->second,
	    "shape", plan_shape_name(g->placement.shape), "bandwidth_bps", (json_int_t)reserved,
	    "reserved_ms", (json_int_t)ctlr_wall_ms(), "legs", legs);
}

json_t *ctlr_query_network(struct ctlr *c, const struct ctlr_req *r, const char *job,
    const struct plan_job_result *res, json_t *given)
{
	json_t *out = json_array(), *entry;

	for (unsigned i = 0; i < res->n_groups; i++) {
		const struct plan_job_group *g = &res->groups[i];

		if (given)
			entry = json_copy(ctlr_query_entry(given, g->first, g->second));
		else
			entry = g->has_network && r ? entry_json(c, r->query, job, g) : NULL;
		if (!entry)
			continue;
		json_object_set_new(entry, "pairs", pairs_json(g, mdl_number_of(entry, "bandwidth_bps")));
		json_array_append_new(out, entry);
	}
	if (json_array_size(out))
		return out;
	json_decref(out);
	return NULL;
}

struct ctlr_candidates *ctlr_query_candidates(
    const struct ctlr_query *a, const char *first, const char *second)
{
	for (unsigned i = 0; a && i < a->offers; i++)
		if (!strcmp(a->offer[i].first, first) && !strcmp(a->offer[i].second, second))
			return &a->offer[i];
	return NULL;
}
