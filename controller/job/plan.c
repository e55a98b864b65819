/* SPDX-License-Identifier: Apache-2.0 */
/* Passes a job and the present state to the planner and writes the answer as JSON. Changes
 * nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/schema.h"
#include "controller/job/query.h"
#include "controller/job/answer.h"
#include "controller/job/jobs.h"
#include "controller/job/room.h"
#include "controller/job/shape.h"
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
	/* jobs whose claims count as free */
	struct ctlr_job *const *without;
	unsigned n_without;
};

/* --- the planner's questions ------------------------------------------------------------------ */

static const char *world_site(void *ctx, const struct rwy_ip *a)
{
	const struct world *w = ctx;
	const struct ctlr_site *s = ctlr_lpm_find(&w->c->lpm, w->vni, a);

	return s ? s->name : NULL;
}

static uint64_t claim_of(const struct ctlr_job *j, const char *name)
{
	uint64_t bps = 0;

	for (unsigned i = 0; j && i < j->claims; i++)
		if (!strcmp(j->claim[i].name, name))
			bps += j->claim[i].bps;
	return bps;
}

static uint64_t claimed_by_others(const struct world *w, const char *name)
{
	const uint64_t bps = plan_book_claimed(w->c->book, name);
	uint64_t own = claim_of(w->old, name);

	for (unsigned i = 0; i < w->n_without; i++)
		own += claim_of(w->without[i], name);
	return bps > own ? bps - own : 0;
}

static uint64_t gateway_claimed(const struct world *w, const char *gateway)
{
	char name[3 * PLAN_NAME_MAX];

	plan_book_gateway(name, sizeof(name), gateway);
	return claimed_by_others(w, name);
}

static uint64_t world_path_claimed(void *ctx, const char *first, const char *second)
{
	char name[5 * PLAN_NAME_MAX];

	plan_book_path(name, sizeof(name), first, second);
	return claimed_by_others(ctx, name);
}

/* Hosts of jobs are in gateways' paths, where a site has gateways. */
static bool is_for_jobs(const struct ctlr_site *s, const struct ctlr_gateway *g)
{
	const struct ctlr_gateway *x = s->gateway;

	while (x && (!x->up || ctlr_is_relay(x)))
		x = x->site_next;
	return g->up && (!x || !ctlr_is_relay(g));
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
		if (!is_for_jobs(s, g[i]))
			continue;
		out[k] = (struct plan_gateway){.id = plan_id(g[i]->name),
		    .name = g[i]->name,
		    .weight = weight[i],
		    .claimed_bps = gateway_claimed(w, g[i]->name)};
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
    .path_claimed = world_path_claimed,
    .routes = world_routes,
    .pair_takes = world_pair_takes};
static const struct plan_world_ops world_ops_again = {.site_of = world_site,
    .gateways = world_gateways,
    .path = world_path,
    .path_claimed = world_path_claimed,
    .routes = world_routes,
    .pair_up = world_pair_up,
    .pair_takes = world_pair_takes};

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

/* A plan that may be tried again without some other jobs. */
struct attempt {
	struct world *w;
	const struct plan_job *job;
	struct plan_job_result *res; /* the last one */
};

static int try_plan(struct attempt *a, struct ctlr_job *const *without, unsigned n)
{
	plan_job_free(a->res);
	a->res = NULL;
	a->w->without = without;
	a->w->n_without = n;
	return plan_job_new(&a->res, a->job, &a->w->c->conf->policy, &world_ops, a->w, ctlr_now());
}

static bool fits_without(void *ctx, struct ctlr_job *const *without, unsigned n)
{
	struct attempt *a = ctx;

	return !try_plan(a, without, n) && a->res->fail == PLAN_JOB_FITS;
}

static bool lacks_room(const struct plan_job_result *res)
{
	return res->fail == PLAN_JOB_GATEWAY || res->fail == PLAN_JOB_GOODPUT ||
	       res->fail == PLAN_JOB_NO_CARRIER;
}

static bool has_network(const struct plan_job_result *res)
{
	for (unsigned i = 0; i < res->n_groups; i++)
		if (res->groups[i].has_network)
			return true;
	return false;
}

/* Plans without jobs of a lower priority. Returns the names of those that have to go; NULL: it does
 * not fit without them either, and the attempt is as before. */
static json_t *preempt(struct attempt *a, const struct model_job *m)
{
	struct ctlr_job *out[ROOM_PREEMPT_MAX];
	const unsigned n = ctlr_room_preempt(a->w->c, a->w->old, m->priority, fits_without, a, out);
	json_t *names = n && !try_plan(a, out, n) ? json_array() : NULL;

	for (unsigned i = 0; names && i < n; i++)
		json_array_append_new(names, json_string(out[i]->name));
	if (!names)
		(void)try_plan(a, NULL, 0);
	return names;
}

/* With an absolute deadline a later begin is another demand. */
static uint64_t later(struct attempt *a, const struct model_job *m)
{
	const uint64_t at =
	    m->deadline_ms || !lacks_room(a->res) ? 0 : ctlr_room_later(a->w->c, a->w->old, fits_without, a);

	(void)try_plan(a, NULL, 0);
	return at;
}

static void refuse(struct attempt *a, struct ctlr_req *r, const struct model_job *m)
{
	const uint64_t at = later(a, m);

	if (a->res)
		ctlr_answer_refuse(r, a->res, a->job->pairs, m, at);
	else
		ctlr_req_fail(r, 503, "", "out of memory");
}

/* The record of the attempt, or NULL with a reply, or NULL without one: networks must be asked. */
static json_t *decide(struct attempt *a, struct ctlr_req *r, const struct model_job *m, json_t *posted)
{
	json_t *names = NULL, *record;

	if (ctlr_query_missing(r) && a->res->fail != PLAN_JOB_NO_SITE && a->res->fail != PLAN_JOB_NO_GATEWAY)
		return NULL; /* the networks' paths decide */
	if (m->preempt && lacks_room(a->res) && !has_network(a->res))
		names = preempt(a, m);
	if (!a->res || a->res->fail != PLAN_JOB_FITS) {
		refuse(a, r, m);
		json_decref(names);
		return NULL;
	}
	record = ctlr_answer_record(a->res, a->job->pairs, posted, NULL,
	    ctlr_query_network(a->w->c, r, a->job->name, a->res, ctlr_query_made(r)));
	if (names)
		json_object_set_new(record, "preempts", names);
	return record;
}

static json_t *plan_pairs(struct ctlr *c, struct ctlr_req *r, const char *name, const struct model_job *m,
    json_t *posted, const struct ctlr_job *old, struct plan_job_pair *pairs, int n)
{
	const struct ctlr_tenant *nt = *m->tenant ? ctlr_map_find(&c->tenants, m->tenant) : NULL;
	struct world w = {.c = c, .vni = nt ? nt->vni : 0, .old = old, .r = r};
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
	struct attempt a = {.w = &w, .job = &job};
	json_t *record = NULL;
	int rc = n > 0 ? try_plan(&a, NULL, 0) : RWY_EINVAL;

	if (rc && !r->status)
		ctlr_req_fail(r, rc == RWY_ENOMEM ? 503 : 400, "", "%s",
		    rc == RWY_ENOMEM ? "out of memory" : "expected at least one pair");
	else if (!rc)
		record = decide(&a, r, m, posted);
	plan_job_free(a.res);
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
	n = ctlr_job_pairs(r, m, table, ctlr_shape_since(r), &pairs);
	if (m->has_split && n == 0)
		record = record_without_pairs(m, posted, waits);
	else
		record = plan_pairs(c, r, name, m, posted, old, pairs, n);
	record_add_ranks(record, table, waits);
	ctlr_shape_put(record, m, ctlr_shape_since(r));
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

/* A preempted job stays one until it fits, and one that the path broke is known as such. */
static void put_reason(json_t *record, const json_t *old, const struct plan_job_result *res)
{
	json_t *preempted = json_object_get(old, "preempted");

	if (preempted) {
		json_object_set(record, "preempted", preempted);
		json_object_set(record, "reason", json_object_get(old, "reason"));
	} else {
		json_object_set_new(record, "reason", ctlr_answer_reason(res));
		if (json_object_get(old, "measured_ms"))
			json_object_set(record, "measured_ms", json_object_get(old, "measured_ms"));
	}
}

/* The plan of a job's pairs, kept where they are. others: they are not the pairs that it has. */
static json_t *plan_pairs_again(struct ctlr *c, const struct ctlr_job *j, const struct model_job *m,
    struct plan_job_pair *pairs, unsigned n, bool others)
{
	json_t *network = json_object_get(j->json, "network"), *record = NULL;
	json_t **was = calloc((size_t)n + 1, sizeof(*was));
	struct plan_pair *now =
	    others ? current_pairs(c, j, pairs, (int)n) : calloc((size_t)n + 1, sizeof(*now));
	struct world w = {.c = c, .vni = j->vni, .old = j, .network = network};
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
		record = ctlr_answer_record(res, pairs, json_object_get(j->json, "job"), was, network);
		if (res->fail != PLAN_JOB_FITS)
			put_reason(record, j->json, res);
		else if (json_object_get(j->json, "preempts"))
			json_object_set(record, "preempts", json_object_get(j->json, "preempts"));
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
	n = ctlr_job_pairs(NULL, &m, ranks, mdl_number_of(j->json, "since_ms"), &pairs);
	if (n > 0)
		record = plan_pairs_again(c, j, &m, pairs, (unsigned)n, table != NULL);
	else if (n == 0 && table) /* all of it is at one site */
		record = record_without_pairs(&m, json_object_get(j->json, "job"), false);
	if (record) {
		ctlr_shape_keep(record, j->json);
		record_add_ranks(record, json_incref(ranks), false);
	}
	mdl_free(&model_job_table, &m);
	free(pairs);
	return record;
}
