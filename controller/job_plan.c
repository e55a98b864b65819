/* SPDX-License-Identifier: Apache-2.0 */
/* A job before the planner: the world as it is asked for, and the answer as JSON. Nothing changes here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/jobs.h"
#include "controller/plan/job.h"
#include "gateway/conf/schema.h"

struct world {
	struct ctlr *c;
	uint32_t vni;
	const struct job *old;
};

/* --- what the planner asks
 * -------------------------------------------------------------------------------------------- */

static const char *world_site(void *ctx, const struct rwy_ip *a)
{
	const struct world *w = ctx;
	const struct site *s = lpm_find(&w->c->lpm, w->vni, a);

	return s ? s->name : NULL;
}

static uint64_t taken(const struct world *w, const char *gateway)
{
	char name[3 * PLAN_NAME_MAX];
	uint64_t bps;

	plan_book_gateway(name, sizeof(name), gateway);
	bps = plan_book_taken(w->c->book, name);
	for (unsigned i = 0; w->old && i < w->old->takes; i++)
		if (!strcmp(w->old->take[i].name, name))
			bps -= bps < w->old->take[i].bps ? bps : w->old->take[i].bps;
	return bps;
}

static unsigned world_gateways(void *ctx, const char *site, struct plan_gateway *out, unsigned max)
{
	const struct world *w = ctx;
	const struct site *s = map_find(&w->c->sites, site);
	struct gateway *g[PLAN_SITE_GATEWAYS_MAX];
	uint32_t weight[PLAN_SITE_GATEWAYS_MAX];
	const unsigned n = s ? site_weights(s, g, weight, PLAN_SITE_GATEWAYS_MAX) : 0;
	unsigned k = 0;

	for (unsigned i = 0; i < n && k < max; i++) {
		if (!g[i]->up)
			continue;
		out[k] = (struct plan_gateway){.id = plan_id(g[i]->name),
		    .name = g[i]->name,
		    .weight = weight[i],
		    .taken_bps = taken(w, g[i]->name)};
		tunnel_caps(g[i], &out[k++].caps);
	}
	return k;
}

static void world_path(void *ctx, const char *first, const char *second, struct plan_path *out)
{
	const struct world *w = ctx;
	const struct site *a = map_find(&w->c->sites, first), *b = map_find(&w->c->sites, second);

	plan_path_default(out);
	for (const struct gateway *g = a ? a->gateway : NULL; g; g = g->site_next)
		for (const struct tunnel *t = g->tunnel; t; t = t->next[tunnel_side(t, g)])
			if (b && t->end[!tunnel_side(t, g)]->site == b && tunnel_up(t)) {
				tunnel_path(w->c, t, tunnel_side(t, g), out, ctlr_now());
				return;
			}
}

static int world_routes(
    void *ctx, const char *first, const char *second, struct plan_route *out, unsigned max)
{
	return RWY_ENOENT; /* no network's controller is asked yet */
}

static const struct plan_world_ops world_ops = {
    .site_of = world_site, .gateways = world_gateways, .path = world_path, .routes = world_routes};

/* --- the job
 * -----------------------------------------------------------------------------------------------------------
 */

static uint32_t cut(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

static int from_ranks(struct req *r, const struct model_job *m, struct plan_job_pair **out)
{
	const struct model_rank *from = m->ranks.at;
	const struct plan_triple want = {
	    m->demand.bandwidth_bps, cut(m->demand.delay_us), cut(m->demand.jitter_us)};
	const unsigned max = 2 * m->ranks.n;
	struct plan_rank *rank = calloc(m->ranks.n, sizeof(*rank));
	uint32_t bad = 0;
	int n = RWY_ENOMEM;

	*out = calloc(max, sizeof(**out));
	if (rank && *out) {
		for (unsigned i = 0; i < m->ranks.n; i++) {
			rank[i].rank = (uint32_t)from[i].rank;
			rank[i].stage = (uint32_t)from[i].stage;
			(void)lpm_ip(from[i].address, &rank[i].addr);
		}
		n = plan_job_ranks(rank, m->ranks.n, &want, m->ring, *out, max, &bad);
		if (n < 0)
			req_fail(r, 400, "ranks",
			    "ranks: rank %" PRIu32
			    ": expected each rank once, stages 0, 1, 2, ... with as many ranks each",
			    bad);
		if (n > (int)max)
			n = (int)max;
	} else {
		req_fail(r, 503, "", "out of memory");
	}
	free(rank);
	return n;
}

static int from_pairs(struct req *r, const struct model_job *m, struct plan_job_pair **out)
{
	const struct model_pair *from = m->pairs.at;

	*out = calloc(m->pairs.n, sizeof(**out));
	if (!*out) {
		req_fail(r, 503, "", "out of memory");
		return RWY_ENOMEM;
	}
	for (unsigned i = 0; i < m->pairs.n; i++) {
		(void)lpm_ip(from[i].source, &(*out)[i].a);
		(void)lpm_ip(from[i].destination, &(*out)[i].b);
		(*out)[i].want = (struct plan_triple){
		    from[i].bandwidth_bps, cut(from[i].delay_us), cut(from[i].jitter_us)};
	}
	return (int)m->pairs.n;
}

/* --- the answer
 * ----------------------------------------------------------------------------------------------------------
 */

static json_t *ip(const struct rwy_ip *a)
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

	json_t *j = json_pack("{s:o, s:o, s:s, s:I, s:I}", "source", ip(a), "destination", ip(b), "carrier",
	    plan_carrier_name(k), "gateway_bps",
	    (json_int_t)plan_gateway_bps(p->want.bandwidth_bps, policy->gateway_ppm[k]), "edge_bps",
	    (json_int_t)plan_edge_bps(p->want.bandwidth_bps, policy->gateway_ppm[k], policy->wan_ppm));

	if (row->first < g->n_gw[0] && row->second < g->n_gw[1]) /* else: of each queue pair its own */
		json_object_set_new(
		    j, "pair", json_sprintf("%s/%s", g->gw[0][row->first].name, g->gw[1][row->second].name));
	return j;
}

static json_t *record_json(const struct ctlr *c, const struct plan_job_result *res,
    const struct plan_job_pair *pairs, json_t *posted)
{
	const uint64_t duration = (uint64_t)json_integer_value(json_object_get(posted, "duration_ms"));
	json_t *plan = json_array(), *takes = json_array();

	for (unsigned i = 0; i < res->n_rows; i++)
		if (res->rows[i].group >= 0)
			json_array_append_new(plan, row_json(res, &res->rows[i], &pairs[i], c));
	for (unsigned i = 0; i < res->n_takes; i++)
		json_array_append_new(takes, json_pack("{s:s, s:I}", "name", res->takes[i].name, "bps",
		                                 (json_int_t)res->takes[i].bps));
	return json_pack("{s:O, s:o, s:o, s:I}", "job", posted, "plan", plan, "takes", takes, "until_ms",
	    (json_int_t)(duration ? ctlr_wall_ms() + duration : 0));
}

/* One line for each two sites that do not fit: by their first pair. */
static void refuse(struct req *r, const struct plan_job_result *res, const struct plan_job_pair *pairs)
{
	json_t *fits = json_array(), *j;
	bool told[4096] = {false};

	for (unsigned i = 0; i < res->n_rows; i++) {
		const int32_t k = res->rows[i].group;

		if (k < 0 || k >= 4096 || told[k] || res->groups[k].fail == PLAN_JOB_FITS)
			continue;
		told[k] = true;
		json_array_append_new(
		    fits, json_pack("{s:o, s:o, s:s, s:I}", "source", ip(&pairs[i].a), "destination",
		              ip(&pairs[i].b), "reason", plan_job_fail_text(res->groups[k].fail),
		              "bandwidth_bps", (json_int_t)res->groups[k].fits.bandwidth_bps));
	}
	j = json_pack("{s:s, s:o}", "error", plan_job_fail_text(res->fail), "fits", fits);
	if (res->fail == PLAN_JOB_NO_SITE)
		json_object_set_new(j, "field", json_sprintf("pairs[%u]", res->fail_pair));
	req_reply(r, 409, j);
}

json_t *job_plan(struct ctlr *c, struct req *r, const char *name, const struct model_job *m, json_t *posted,
    const struct job *old)
{
	static const enum plan_grain grain[] = {PLAN_GRAIN_ADDRESS, PLAN_GRAIN_NIC, PLAN_GRAIN_QP};
	const struct net_tenant *nt = *m->tenant ? map_find(&c->tenants, m->tenant) : NULL;
	struct world w = {c, nt ? nt->vni : 0, old};
	struct plan_job_pair *pairs = NULL;
	const int n = m->ranks.n ? from_ranks(r, m, &pairs) : from_pairs(r, m, &pairs);
	const struct plan_job job = {.name = name,
	    .grain = grain[m->granularity],
	    .vni = w.vni,
	    .pairs = pairs,
	    .n = n > 0 ? (unsigned)n : 0};
	struct plan_job_result *res = NULL;
	json_t *record = NULL;
	int rc = n > 0 ? plan_job_new(&res, &job, &c->conf->policy, &world_ops, &w, ctlr_now()) : RWY_EINVAL;

	if (rc && !r->status)
		req_fail(r, rc == RWY_ENOMEM ? 503 : 400, "", "%s",
		    rc == RWY_ENOMEM ? "out of memory" : "expected at least one pair");
	else if (!rc && res->fail != PLAN_JOB_FITS)
		refuse(r, res, pairs);
	else if (!rc)
		record = record_json(c, res, pairs, posted);
	plan_job_free(res);
	free(pairs);
	return record;
}
