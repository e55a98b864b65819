/* SPDX-License-Identifier: Apache-2.0 */
/* Passes a job and the present state to the planner and writes the answer as JSON. Changes
 * nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/schema.h"
#include "controller/job/query.h"
#include "controller/job/jobs.h"
#include "controller/job/split.h"
#include "controller/plan/book.h"
#include "controller/plan/job.h"
#include "controller/server/req.h"
#include "controller/state/path.h"
#include "controller/state/pinned.h"
#include "controller/state/route_index.h"

struct world {
	struct ctlr *c;
	uint32_t vni;
	const struct ctlr_job *old;
	struct ctlr_req *r; /* the request that asks networks; NULL: networks are not asked */
	json_t *network;    /* made by networks for the job; it stays */
};

/* --- the planner's questions ------------------------------------------------------------------ */

static const char *world_site(void *ctx, const struct rwy_ip *a)
{
	const struct world *w = ctx;
	const struct ctlr_site *s = ctlr_lpm_find(&w->c->lpm, w->vni, a);

	return s ? s->name : NULL;
}

static uint64_t claimed_by_others(const struct world *w, const char *gateway)
{
	char name[3 * PLAN_NAME_MAX];
	uint64_t bps;

	plan_book_gateway(name, sizeof(name), gateway);
	bps = plan_book_claimed(w->c->book, name);
	for (unsigned i = 0; w->old && i < w->old->claims; i++)
		if (!strcmp(w->old->claim[i].name, name))
			bps -= bps < w->old->claim[i].bps ? bps : w->old->claim[i].bps;
	return bps;
}

static unsigned world_gateways(void *ctx, const char *site, struct plan_gateway *out, unsigned max)
{
	const struct world *w = ctx;
	const struct ctlr_site *s = ctlr_map_find(&w->c->sites, site);
	struct ctlr_gateway *g[PLAN_SITE_GATEWAYS_MAX];
	uint32_t weight[PLAN_SITE_GATEWAYS_MAX];
	const unsigned n = s ? ctlr_path_weights(s, g, weight, PLAN_SITE_GATEWAYS_MAX) : 0;
	unsigned k = 0;

	for (unsigned i = 0; i < n && k < max; i++) {
		if (!g[i]->up)
			continue;
		out[k] = (struct plan_gateway){.id = plan_id(g[i]->name),
		    .name = g[i]->name,
		    .weight = weight[i],
		    .claimed_bps = claimed_by_others(w, g[i]->name)};
		ctlr_path_caps(g[i], &out[k++].caps);
	}
	return k;
}

static void world_path(void *ctx, const char *first, const char *second, struct plan_path *out)
{
	const struct world *w = ctx;

	ctlr_path_between(w->c, first, second, out);
}

static int world_routes(
    void *ctx, const char *first, const char *second, struct plan_route *out, unsigned max)
{
	const struct world *w = ctx;
	json_t *entry = ctlr_query_entry(w->network, first, second);

	if (entry)
		return ctlr_query_made_routes(entry, out, max);
	return w->r ? ctlr_query_routes(w->c, w->r, w->old, first, second, out, max) : RWY_ENOENT;
}

static bool world_pair_up(void *ctx, const char *first, const char *second)
{
	const struct world *w = ctx;
	const struct ctlr_tunnel *t = ctlr_tunnel_find(w->c, first, second);

	return t && ctlr_tunnel_up(t);
}

static bool world_pair_takes(void *ctx, const char *first, const char *second, enum plan_carrier carrier)
{
	const struct world *w = ctx;
	const enum plan_carrier held = ctlr_pinned_get(w->c, first, second, w->old);

	return held == PLAN_ANY || held == carrier;
}

/* A new job may come before its tunnels. A job that moves needs a tunnel that is up. */
static const struct plan_world_ops world_ops = {.site_of = world_site,
    .gateways = world_gateways,
    .path = world_path,
    .routes = world_routes,
    .pair_takes = world_pair_takes};
static const struct plan_world_ops world_ops_again = {.site_of = world_site,
    .gateways = world_gateways,
    .path = world_path,
    .routes = world_routes,
    .pair_up = world_pair_up,
    .pair_takes = world_pair_takes};

/* --- the answer ------------------------------------------------------------------------------- */

static json_t *ip_json(const struct rwy_ip *a)
{
	char text[MDL_ADDR];

	conf_print_ip(a, text, sizeof(text));
	return json_string(text);
}

static json_t *row_json(const struct plan_job_result *res, const struct plan_job_row *row,
    const struct plan_job_pair *p, const struct ctlr *c)
{
	const struct plan_job_group *g = &res->groups[row->group];
	const struct plan_policy *policy = &c->conf->policy;
	const enum plan_carrier k = g->decision.carrier;
	const struct rwy_ip *a = row->swapped ? &p->b : &p->a, *b = row->swapped ? &p->a : &p->b;

	json_t *j = json_pack("{s:o, s:o, s:s, s:I, s:I}", "source", ip_json(a), "destination", ip_json(b),
	    "carrier", plan_carrier_name(k), "gateway_bps",
	    (json_int_t)plan_gateway_bps(p->want.bandwidth_bps, policy->gateway_ppm[k]), "edge_bps",
	    (json_int_t)plan_edge_bps(p->want.bandwidth_bps, policy->gateway_ppm[k], policy->wan_ppm));

	if (p->a_qpn && p->b_qpn) {
		json_object_set_new(j, "source_qpn", json_integer(row->swapped ? p->b_qpn : p->a_qpn));
		json_object_set_new(j, "destination_qpn", json_integer(row->swapped ? p->a_qpn : p->b_qpn));
	}
	/* otherwise each queue pair has its own */
	if (row->first < g->n_gw[0] && row->second < g->n_gw[1])
		json_object_set_new(
		    j, "pair", json_sprintf("%s/%s", g->gw[0][row->first].name, g->gw[1][row->second].name));
	return j;
}

/* True if the plan has no decision for this row: no gateway, no tunnel, or no site. */
static bool is_unplaced(const struct plan_job_result *res, const struct plan_job_row *row)
{
	const struct plan_job_group *g = row->group < 0 ? NULL : &res->groups[row->group];

	for (unsigned i = 0; g && i < g->n_gw[0]; i++)
		if (g->gw_bps[0][i])
			return false;
	return true;
}

static void add_claim(json_t *claims, const char *name, json_int_t bps)
{
	json_array_append_new(claims, json_pack("{s:s, s:I}", "name", name, "bps", bps));
}

/* Adds the claims of the tunnels as networks made them, whatever the plan would be now. */
static void add_network_claims(json_t *claims, json_t *network)
{
	char name[5 * PLAN_NAME_MAX];
	json_t *n, *leg;
	size_t i, k;

	json_array_foreach(network, i, n) json_array_foreach(json_object_get(n, "legs"), k, leg)
	{
		plan_book_route(name, sizeof(name), json_string_value(json_object_get(n, "first")),
		    json_string_value(json_object_get(n, "second")),
		    json_string_value(json_object_get(leg, "edge")),
		    json_string_value(json_object_get(leg, "path")));
		add_claim(claims, name, json_integer_value(json_object_get(leg, "bandwidth_bps")));
	}
}

/* Makes the record. network: its reference is taken over. was: the row of each pair in the present
 * record, which it keeps if it has no new one; NULL: a new job. */
static json_t *record_json(const struct ctlr *c, const struct plan_job_result *res,
    const struct plan_job_pair *pairs, json_t *posted, json_t **was, json_t *network)
{
	const uint64_t duration = (uint64_t)json_integer_value(json_object_get(posted, "duration_ms"));
	json_t *plan = json_array(), *claims = json_array(), *j;

	for (unsigned i = 0; i < res->n_rows; i++)
		if (!is_unplaced(res, &res->rows[i]))
			json_array_append_new(plan, row_json(res, &res->rows[i], &pairs[i], c));
		else if (was && was[i])
			json_array_append(plan, was[i]);
	for (unsigned i = 0; i < res->n_claims; i++)
		if (strncmp(res->claims[i].name, "net/", 4) != 0)
			add_claim(claims, res->claims[i].name, (json_int_t)res->claims[i].bps);
	if (res->fail == PLAN_JOB_FITS)
		add_network_claims(claims, network);
	j = json_pack("{s:O, s:o, s:o, s:I}", "job", posted, "plan", plan, "claims", claims, "until_ms",
	    (json_int_t)(duration ? ctlr_wall_ms() + duration : 0));
	if (network)
		json_object_set_new(j, "network", network);
	return j;
}

/* The demand that would fit. Delay and jitter only where they were measured or promised. */
static json_t *fits_json(const struct plan_job_group *g, const struct plan_job_pair *p)
{
	const bool network = g->fail == PLAN_JOB_NETWORK;
	json_t *j = json_pack("{s:o, s:o, s:o, s:I}", "source", ip_json(&p->a), "destination", ip_json(&p->b),
	    "reason",
	    json_sprintf("%s%s%s", plan_job_fail_text(g->fail), network ? ": " : "",
	        network ? plan_place_fail_text(g->placement.fail) : ""),
	    "bandwidth_bps", (json_int_t)g->fits.bandwidth_bps);

	if (g->fits.delay_us)
		json_object_set_new(j, "delay_us", json_integer(g->fits.delay_us));
	if (g->fits.jitter_us)
		json_object_set_new(j, "jitter_us", json_integer(g->fits.jitter_us));
	return j;
}

/* Refuses the job: one line for each pair of sites that does not fit, with its first pair of
 * addresses. */
static void refuse_job(
    struct ctlr_req *r, const struct plan_job_result *res, const struct plan_job_pair *pairs)
{
	json_t *fits = json_array(), *j;
	bool listed[4096] = {false};

	for (unsigned i = 0; i < res->n_rows; i++) {
		const int32_t k = res->rows[i].group;

		if (k < 0 || k >= 4096 || listed[k] || res->groups[k].fail == PLAN_JOB_FITS)
			continue;
		listed[k] = true;
		json_array_append_new(fits, fits_json(&res->groups[k], &pairs[i]));
	}
	j = json_pack("{s:s, s:o}", "error", plan_job_fail_text(res->fail), "fits", fits);
	if (res->fail == PLAN_JOB_NO_SITE)
		json_object_set_new(j, "field", json_sprintf("pairs[%u]", res->fail_pair));
	ctlr_req_reply(r, 409, j);
}

/* The gateways that the job's pairs have now. NULL: out of memory, or it had none. */
static struct plan_pair *current_pairs(
    struct ctlr *c, const struct ctlr_job *old, const struct plan_job_pair *pairs, int n)
{
	struct plan_pair *now = old && n > 0 ? calloc((size_t)n, sizeof(*now)) : NULL;
	char a[MDL_ADDR], b[MDL_ADDR];

	for (int i = 0; now && i < n; i++) {
		conf_print_ip(&pairs[i].a, a, sizeof(a));
		conf_print_ip(&pairs[i].b, b, sizeof(b));
		now[i] = ctlr_route_pair(c, old, a, b, pairs[i].a_qpn, pairs[i].b_qpn);
	}
	return now;
}

static const enum plan_grain grain[] = {PLAN_GRAIN_ADDRESS, PLAN_GRAIN_NIC, PLAN_GRAIN_QP};

/* The record of a job that nothing is planned for: it waits for containers, or all are at one
 * site. */
static json_t *record_without_pairs(const struct model_job *m, json_t *posted, bool waits)
{
	const uint64_t hold = m->split.hold_ms ? m->split.hold_ms : MODEL_HOLD_MS;
	const uint64_t time = waits ? hold : m->duration_ms;

	return json_pack("{s:O, s:[], s:[], s:I}", "job", posted, "plan", "claims", "until_ms",
	    (json_int_t)(time ? ctlr_wall_ms() + time : 0));
}

/* Adds the table of ranks to a record. Takes it over. */
static void record_add_ranks(json_t *record, json_t *table, bool waits)
{
	if (!record || !table) {
		json_decref(table);
		return;
	}
	json_object_set_new(record, "ranks", table);
	if (ctlr_split_missing(record) && !waits && !json_object_get(record, "reason"))
		json_object_set_new(record, "reason", ctlr_split_reason(record));
}

static json_t *plan_pairs(struct ctlr *c, struct ctlr_req *r, const char *name, const struct model_job *m,
    json_t *posted, const struct ctlr_job *old, struct plan_job_pair *pairs, int n)
{
	const struct ctlr_tenant *nt = *m->tenant ? ctlr_map_find(&c->tenants, m->tenant) : NULL;
	struct world w = {c, nt ? nt->vni : 0, old, r, NULL};
	struct plan_pair *now = current_pairs(c, old, pairs, n);
	const enum plan_carrier carrier = ctlr_pinned_wanted(posted);
	const struct plan_job job = {.name = name,
	    .grain = grain[m->granularity],
	    .vni = w.vni,
	    .pairs = pairs,
	    .n = n > 0 ? (unsigned)n : 0,
	    .has_carrier = carrier != PLAN_ANY,
	    .carrier = carrier,
	    .now = now};
	struct plan_job_result *res = NULL;
	json_t *record = NULL;
	int rc = n > 0 ? plan_job_new(&res, &job, &c->conf->policy, &world_ops, &w, ctlr_now()) : RWY_EINVAL;

	if (rc && !r->status)
		ctlr_req_fail(r, rc == RWY_ENOMEM ? 503 : 400, "", "%s",
		    rc == RWY_ENOMEM ? "out of memory" : "expected at least one pair");
	else if (!rc && ctlr_query_missing(r) && res->fail != PLAN_JOB_NO_SITE &&
	         res->fail != PLAN_JOB_NO_GATEWAY)
		record = NULL; /* the networks' paths decide */
	else if (!rc && res->fail != PLAN_JOB_FITS)
		refuse_job(r, res, pairs);
	else if (!rc)
		record = record_json(
		    c, res, pairs, posted, NULL, ctlr_query_network(c, r, name, res, ctlr_query_made(r)));
	plan_job_free(res);
	free(now);
	return record;
}

json_t *ctlr_job_plan(struct ctlr *c, struct ctlr_req *r, const char *name, const struct model_job *m,
    json_t *posted, const struct ctlr_job *old)
{
	json_t *table = m->has_split ? ctlr_split_table(c, r, m, old, NULL) : NULL, *record;
	struct plan_job_pair *pairs;
	const bool waits = mdl_number_of(table, "missing");
	int n;

	if (m->has_split && !table)
		return NULL;
	n = ctlr_job_pairs(r, m, table, &pairs);
	if (m->has_split && n == 0)
		record = record_without_pairs(m, posted, waits);
	else
		record = plan_pairs(c, r, name, m, posted, old, pairs, n);
	record_add_ranks(record, table, waits);
	free(pairs);
	return record;
}

/* --- planning again --------------------------------------------------------------------------- */

/* True if the address and QPN are the row's source or destination. */
static bool is_end(const json_t *row, bool destination, const struct rwy_ip *a, uint32_t qpn)
{
	const char *has = json_string_value(json_object_get(row, destination ? "destination" : "source"));
	char text[MDL_ADDR];

	conf_print_ip(a, text, sizeof(text));
	return has && !strcmp(has, text) &&
	       json_integer_value(json_object_get(row, destination ? "destination_qpn" : "source_qpn")) ==
	           (json_int_t)qpn;
}

static bool is_pair(const json_t *row, const struct plan_job_pair *p)
{
	return (is_end(row, false, &p->a, p->a_qpn) && is_end(row, true, &p->b, p->b_qpn)) ||
	       (is_end(row, false, &p->b, p->b_qpn) && is_end(row, true, &p->a, p->a_qpn));
}

/* The rows of a stored plan are in the order of its pairs. Pairs within one site have no row. */
static void match_rows(const struct ctlr_job *j, const struct plan_job_pair *pairs, unsigned n, json_t **was,
    struct plan_pair *now)
{
	json_t *plan = json_object_get(j->json, "plan"), *row;
	char name[2][MDL_NAME];
	const char *pair;
	size_t k = 0;

	for (unsigned i = 0; i < n; i++) {
		row = json_array_get(plan, k);
		if (!row || !is_pair(row, &pairs[i]))
			continue;
		k++;
		was[i] = row;
		pair = json_string_value(json_object_get(row, "pair"));
		if (pair && sscanf(pair, "%31[^/]/%31s", name[0], name[1]) == 2)
			now[i] = (struct plan_pair){plan_id(name[0]), plan_id(name[1]), 0};
	}
}

static json_t *reason_json(const struct plan_job_result *res)
{
	for (unsigned i = 0; i < res->n_groups; i++)
		if (res->groups[i].fail == res->fail)
			return json_sprintf("%s and %s: %s", res->groups[i].first, res->groups[i].second,
			    plan_job_fail_text(res->fail));
	return json_string(plan_job_fail_text(res->fail));
}

/* Plans with all pairs in place that can stay; if that does not fit, by shares; if that does not
 * fit either, returns the first plan. */
static struct plan_job_result *plan_staying(struct plan_job job, struct world *w)
{
	struct plan_job_result *res = NULL, *other = NULL;

	job.stay = true;
	if (plan_job_new(&res, &job, &w->c->conf->policy, &world_ops_again, w, ctlr_now()))
		return NULL;
	job.stay = false;
	if (res->fail == PLAN_JOB_FITS ||
	    plan_job_new(&other, &job, &w->c->conf->policy, &world_ops_again, w, ctlr_now()))
		return res;
	if (other->fail == PLAN_JOB_FITS) {
		plan_job_free(res);
		return other;
	}
	plan_job_free(other);
	return res;
}

/* The plan of a job's pairs, kept where they are. others: they are not the pairs that it has. */
static json_t *plan_pairs_again(struct ctlr *c, const struct ctlr_job *j, const struct model_job *m,
    struct plan_job_pair *pairs, unsigned n, bool others)
{
	json_t *network = json_object_get(j->json, "network"), *record = NULL;
	json_t **was = calloc((size_t)n + 1, sizeof(*was));
	struct plan_pair *now =
	    others ? current_pairs(c, j, pairs, (int)n) : calloc((size_t)n + 1, sizeof(*now));
	struct world w = {c, j->vni, j, NULL, network};
	const enum plan_carrier carrier = ctlr_pinned_wanted(json_object_get(j->json, "job"));
	const struct plan_job job = {.name = j->name,
	    .grain = grain[m->granularity],
	    .vni = j->vni,
	    .pairs = pairs,
	    .n = n,
	    .has_carrier = carrier != PLAN_ANY,
	    .carrier = carrier,
	    .now = now};
	struct plan_job_result *res = NULL;

	if (was && now) {
		if (!others)
			match_rows(j, pairs, n, was, now);
		res = plan_staying(job, &w);
	}
	if (res) {
		if (network)
			network = ctlr_query_network(c, NULL, j->name, res, network);
		record = record_json(c, res, pairs, json_object_get(j->json, "job"), was, network);
		if (res->fail != PLAN_JOB_FITS)
			json_object_set_new(record, "reason", reason_json(res));
	}
	plan_job_free(res);
	free(was);
	free(now);
	return record;
}

json_t *ctlr_job_plan_again(struct ctlr *c, const struct ctlr_job *j, json_t *table)
{
	json_t *ranks = table ? table : json_object_get(j->json, "ranks"), *record = NULL;
	struct plan_job_pair *pairs = NULL;
	struct mdl_error err;
	struct model_job m;
	int n;

	if (mdl_read(json_object_get(j->json, "job"), &model_job_table, &m, &err))
		return NULL;
	n = ctlr_job_pairs(NULL, &m, ranks, &pairs);
	if (n > 0)
		record = plan_pairs_again(c, j, &m, pairs, (unsigned)n, table != NULL);
	else if (n == 0 && table) /* all of it is at one site */
		record = record_without_pairs(&m, json_object_get(j->json, "job"), false);
	if (record) {
		json_object_set(record, "until_ms", json_object_get(j->json, "until_ms"));
		record_add_ranks(record, json_incref(ranks), false);
	}
	mdl_free(&model_job_table, &m);
	free(pairs);
	return record;
}
