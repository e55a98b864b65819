/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the containers of a job their ranks, and turns the ranks' demands into those of pairs of
 * addresses; see split.h. */
#include "controller/job/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/path.h"

#define TOO_LITTLE 1000000000u /* us: a path that lacks what is asked for comes after all others */

static uint32_t one_or(uint64_t v)
{
	return v ? (uint32_t)v : 1;
}

static const struct model_container *containers_of(const struct model_job *m)
{
	return m->containers.at;
}

/* --- what ranks demand ------------------------------------------------------------------------ */

/* The demand of two ranks that talk. false: it cannot be, and the reply says why; r may be NULL. */
static bool demand_of(struct ctlr_req *r, const struct model_split *s, struct plan_model_demand *out)
{
	const struct model_training *t = &s->model;
	const struct plan_model model = {t->sequence_length, t->hidden_size, t->micro_batch_size,
	    t->global_batch_size, t->element_bytes, t->step_us, t->transfer_us, t->sequence_parallel};
	int rc;

	*out = (struct plan_model_demand){.bandwidth_bps = s->bandwidth_bps};
	if (!s->has_model)
		return true;
	rc = plan_model_demand(
	    out, &model, one_or(s->pipeline), one_or(s->data), one_or(s->tensor), MODEL_BPS_MAX);
	if (rc && r)
		ctlr_req_fail(r, 400, "split.model", "split.model: %s",
		    rc == PLAN_ERANGE
		        ? "it demands more than 10^15 bit/s between two ranks"
		        : "global_batch_size is no multiple of micro_batch_size x data, or the tensor "
		          "group cannot share an activation");
	return !rc;
}

static json_t *demand_json(const struct model_split *s, const struct plan_model_demand *d)
{
	json_t *j = json_pack("{s:I, s:I, s:I}", "bandwidth_bps", (json_int_t)d->bandwidth_bps, "delay_us",
	    (json_int_t)s->delay_us, "jitter_us", (json_int_t)s->jitter_us);

	if (s->has_model) {
		json_object_set_new(j, "bytes", json_integer((json_int_t)d->bytes));
		json_object_set_new(j, "micro_batches", json_integer((json_int_t)d->micro_batches));
		json_object_set_new(j, "transfer_us", json_integer((json_int_t)d->transfer_us));
	}
	return j;
}

/* --- checks ----------------------------------------------------------------------------------- */

static bool cluster_twice(struct ctlr_req *r, const struct model_split *s)
{
	const struct model_cluster *k = s->clusters.at;
	char field[64];

	for (unsigned i = 0; i < s->clusters.n; i++)
		for (unsigned n = 0; n < i; n++) {
			if (strcmp(k[i].site, k[n].site) != 0)
				continue;
			snprintf(field, sizeof(field), "split.clusters[%u].site", i);
			ctlr_req_fail(r, 400, field, "%s: %s has a cluster already", field, k[i].site);
			return true;
		}
	return false;
}

/* Names of containers, and addresses, are there once. */
static bool container_twice(struct ctlr_req *r, const struct model_job *m)
{
	const struct model_container *k = containers_of(m);
	json_t *seen = json_object();
	char field[80] = "";

	for (unsigned i = 0; i < m->containers.n && !*field; i++) {
		const struct model_nic *nic = k[i].nics.at;

		if (json_object_get(seen, k[i].name))
			snprintf(field, sizeof(field), "containers[%u].name", i);
		json_object_set_new(seen, k[i].name, json_true());
		for (unsigned n = 0; n < k[i].nics.n && !*field; n++) {
			char key[MDL_ADDR + 1];

			snprintf(key, sizeof(key), "/%s", nic[n].address);
			if (json_object_get(seen, key))
				snprintf(field, sizeof(field), "containers[%u].nics[%u].address", i, n);
			json_object_set_new(seen, key, json_true());
		}
	}
	json_decref(seen);
	if (*field)
		ctlr_req_fail(r, 400, field, "%s: it is there already", field);
	return *field;
}

bool ctlr_split_sensible(struct ctlr_req *r, const struct model_job *m)
{
	const struct model_split *s = &m->split;
	struct plan_model_demand d;

	if (!m->has_split && m->containers.n)
		return ctlr_req_fail(r, 400, "containers", "containers: are for a split"), false;
	if (!m->has_split)
		return true;
	if (!m->containers.n)
		return ctlr_req_fail(r, 400, "containers", "containers: missing: a split needs them"), false;
	if (m->granularity == MODEL_QP)
		return ctlr_req_fail(r, 400, "granularity", "granularity: qp needs pairs with QPNs"), false;
	if (!s->has_model == !s->bandwidth_bps)
		return ctlr_req_fail(r, 400, "split", "split: expected either model or bandwidth_bps"), false;
	return demand_of(r, s, &d) && !cluster_twice(r, s) && !container_twice(r, m);
}

/* --- the planner's question ------------------------------------------------------------------- */

struct asked {
	struct plan_split s;
	struct plan_cluster cluster[PLAN_CLUSTERS_MAX];
	uint32_t cost[PLAN_CLUSTERS_MAX * PLAN_CLUSTERS_MAX];
	struct plan_container *pod;
};

static unsigned cluster_of(const struct model_split *s, const char *site)
{
	const struct model_cluster *k = s->clusters.at;
	unsigned i = 0;

	while (i < s->clusters.n && strcmp(k[i].site, site) != 0)
		i++;
	return i;
}

/* The site of a NIC, which must be one of the split's, and nobody else's NIC. */
static bool nic_known(struct ctlr *c, struct ctlr_req *r, const struct model_job *m,
    const struct ctlr_job *own, unsigned i, unsigned n, uint32_t *cluster)
{
	const struct model_nic *nic = containers_of(m)[i].nics.at;
	const struct ctlr_tenant *nt = *m->tenant ? ctlr_map_find(&c->tenants, m->tenant) : NULL;
	const struct ctlr_job *other = ctlr_containers_find(c, m->tenant, nic[n].address);
	const struct ctlr_site *site = NULL;
	struct rwy_ip ip;
	char field[80];

	if (ctlr_lpm_parse_ip(nic[n].address, &ip))
		site = ctlr_lpm_find(&c->lpm, nt ? nt->vni : 0, &ip);
	snprintf(field, sizeof(field), "containers[%u].nics[%u].address", i, n);
	if (!site) {
		ctlr_req_fail(r, 409, field, "%s: %s belongs to no site", field, nic[n].address);
		return false;
	}
	*cluster = cluster_of(&m->split, site->name);
	if (*cluster == m->split.clusters.n) {
		ctlr_req_fail(r, 409, field, "%s: %s is at %s, where the split has no cluster", field,
		    nic[n].address, site->name);
		return false;
	}
	if (other && other != own) {
		ctlr_req_fail(r, 409, field, "%s: the job %s has %s", field, other->name, nic[n].address);
		return false;
	}
	return true;
}

/* The place of a container: its zone's parts, then its server. */
static void set_place(struct plan_container *p, const struct model_container *k)
{
	char part[256];

	for (const char *s = k->zone; s && *s && p->levels < PLAN_LEVELS_MAX - 1;) {
		const size_t len = strcspn(s, "/");

		snprintf(part, sizeof(part), "%.*s", (int)len, s);
		if (len)
			p->level[p->levels++] = plan_id(part);
		s += len + (s[len] == '/');
	}
	if (*k->node)
		p->level[p->levels++] = plan_id(k->node);
}

static bool set_containers(struct ctlr *c, struct ctlr_req *r, const struct model_job *m,
    const struct ctlr_job *old, const json_t *failed, struct asked *q)
{
	const struct model_container *k = containers_of(m);

	for (unsigned i = 0; i < m->containers.n; i++) {
		struct plan_container *p = &q->pod[i];
		uint32_t cluster;

		p->ranks = (uint32_t)k[i].ranks;
		p->failed = json_object_get(failed, k[i].name) != NULL;
		set_place(p, &k[i]);
		for (unsigned n = 0; n < k[i].nics.n; n++) {
			if (!nic_known(c, r, m, old, i, n, &cluster))
				return false;
			if (n && cluster != p->cluster) {
				ctlr_req_fail(
				    r, 409, "containers", "containers[%u]: its NICs are at two sites", i);
				return false;
			}
			p->cluster = cluster;
		}
	}
	return true;
}

/*
 * Cost of two stages that talk between these sites: the delay, and far more if the path is known to
 * lack bandwidth or to be too long.
 */
static uint32_t path_cost(
    struct ctlr *c, const struct model_split *s, const char *a, const char *b, uint64_t bps)
{
	const struct ctlr_site *x = ctlr_map_find(&c->sites, a), *y = ctlr_map_find(&c->sites, b);
	const struct plan_leg *leg;
	struct plan_path path;
	uint64_t delay;

	if (!x || !y || !ctlr_sites_want(x, y))
		return PLAN_COST_NONE;
	ctlr_path_between(c, a, b, &path);
	leg = &path.by[PLAN_NATIVE];
	delay = leg->rtt_us.v / 2;
	if ((s->delay_us && delay > s->delay_us) || (leg->bandwidth_bps.v && leg->bandwidth_bps.v < bps))
		delay += TOO_LITTLE;
	return (uint32_t)(delay < PLAN_COST_NONE ? delay : PLAN_COST_NONE - 1);
}

static void set_clusters(struct ctlr *c, const struct model_job *m, struct asked *q)
{
	const struct model_cluster *k = m->split.clusters.at;
	const unsigned n = m->split.clusters.n;
	struct plan_model_demand d;
	uint64_t bps = 0;

	if (demand_of(NULL, &m->split, &d) &&
	    __builtin_mul_overflow(d.bandwidth_bps, (uint64_t)q->s.data * q->s.tensor, &bps))
		bps = UINT64_MAX;
	for (unsigned i = 0; i < n; i++)
		q->cluster[i] = (struct plan_cluster){
		    (uint32_t)k[i].ranks, k[i].has_first ? (uint32_t)k[i].first : PLAN_RANK_NONE};
	for (unsigned a = 0; a < n; a++)
		for (unsigned b = 0; b < a; b++)
			q->cost[a * n + b] = q->cost[b * n + a] =
			    path_cost(c, &m->split, k[a].site, k[b].site, bps);
}

/* --- ranks that stay -------------------------------------------------------------------------- */

/* True if the job has ranks and was cut in the same way. */
static bool same_split(const struct ctlr_job *old, const struct model_job *m)
{
	static const char *const keys[] = {"pipeline", "data", "tensor", "clusters"};
	json_t *now, *was;
	bool same;

	if (!old)
		return false;
	was = json_object_get(json_object_get(old->json, "job"), "split");
	same = was && (!ctlr_split_missing(old->json) || json_object_get(old->json, "reason"));
	now = same ? mdl_write(&model_job_table, m) : NULL;
	for (unsigned i = 0; same && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const json_t *a = json_object_get(was, keys[i]),
		             *b = json_object_get(json_object_get(now, "split"), keys[i]);

		same = a && b ? json_equal(a, b) : (a ? a : b) == NULL || json_integer_value(a ? a : b) == 1;
	}
	json_decref(now);
	return same;
}

static void keep_ranks(const struct ctlr_job *old, const struct model_job *m, struct asked *q)
{
	json_t *table = json_object_get(old->json, "ranks"), *byname = json_object(), *e;
	size_t i;

	json_array_foreach(json_object_get(table, "first"), i, e) if (i < q->s.clusters) q->cluster[i].first =
	    (uint32_t)json_integer_value(e);
	json_array_foreach(json_object_get(table, "containers"), i, e)
	    json_object_set(byname, mdl_text_of(e, "name"), e);
	for (i = 0; i < m->containers.n; i++) {
		e = json_object_get(byname, containers_of(m)[i].name);
		q->pod[i].first = (uint32_t)mdl_number_of(e, "first");
		q->pod[i].count = (uint32_t)mdl_number_of(e, "count");
	}
	json_decref(byname);
}

/* --- the table -------------------------------------------------------------------------------- */

/* Refuses what the planner refused. */
static void refuse_split(struct ctlr_req *r, const struct plan_ranks *p)
{
	char field[64] = "split.clusters";

	if (p->fail == PLAN_RANKS_STAGE)
		snprintf(field, sizeof(field), "split.clusters[%u].ranks", p->bad);
	if (p->fail == PLAN_RANKS_TENSOR)
		snprintf(field, sizeof(field), "containers[%u].ranks", p->bad);
	ctlr_req_fail(
	    r, p->fail == PLAN_RANKS_PATH ? 409 : 400, field, "%s: %s", field, plan_ranks_fail_text(p->fail));
}

static json_t *table_json(
    const struct model_job *m, const struct asked *q, const struct plan_ranks *p, const json_t *failed)
{
	const bool waits = p->missing_all && !failed;
	json_t *first = json_array(), *list = json_array(), *e;
	struct plan_model_demand d;

	for (unsigned i = 0; i < q->s.clusters; i++)
		json_array_append_new(first, json_integer(p->cluster_first[i]));
	for (unsigned i = 0; i < q->s.containers; i++) {
		e = json_pack("{s:s, s:I, s:I, s:I}", "name", containers_of(m)[i].name, "cluster",
		    (json_int_t)q->pod[i].cluster, "first", (json_int_t)(waits ? 0 : p->share[i].first),
		    "count", (json_int_t)(waits ? 0 : p->share[i].count));
		if (q->pod[i].failed)
			json_object_set_new(e, "failed", json_true());
		json_array_append_new(list, e);
	}
	(void)demand_of(NULL, &m->split, &d);
	return json_pack("{s:I, s:o, s:o, s:o}", "missing", (json_int_t)p->missing_all, "first", first,
	    "containers", list, "demand", demand_json(&m->split, &d));
}

/* The generation changes with the ranks, and only with them. It is above all earlier ones, also of
 * another job of this name: a revision of the store. */
static void set_generation(struct ctlr *c, const struct ctlr_job *old, json_t *table)
{
	const json_t *was = json_object_get(old ? old->json : NULL, "ranks");
	const bool same =
	    was && json_equal(json_object_get(was, "containers"), json_object_get(table, "containers"));

	json_object_set_new(table, "generation",
	    json_integer(same ? (json_int_t)mdl_number_of(was, "generation") : (json_int_t)c->rev + 1));
}

json_t *ctlr_split_table(struct ctlr *c, struct ctlr_req *r, const struct model_job *m,
    const struct ctlr_job *old, const json_t *failed)
{
	struct asked *q = calloc(1, sizeof(*q));
	struct plan_ranks *p = NULL;
	json_t *table = NULL;
	int rc = RWY_ENOMEM;

	if (q)
		q->pod = calloc((size_t)m->containers.n + 1, sizeof(*q->pod));
	if (q && q->pod) {
		q->s = (struct plan_split){one_or(m->split.pipeline), one_or(m->split.data),
		    one_or(m->split.tensor), m->ring, q->cluster, m->split.clusters.n, q->pod,
		    m->containers.n, q->cost};
		set_clusters(c, m, q);
		if (set_containers(c, r, m, old, failed, q)) {
			if (same_split(old, m))
				keep_ranks(old, m, q);
			rc = plan_ranks_new(&p, &q->s);
		}
	}
	if (p && p->fail != PLAN_RANKS_FIT)
		refuse_split(r, p);
	else if (p)
		table = table_json(m, q, p, failed);
	else if (!r->status)
		ctlr_req_fail(r, rc == RWY_ENOMEM ? 503 : 400, rc == RWY_ENOMEM ? "" : "split", "%s",
		    rc == RWY_ENOMEM ? "out of memory" : "split: more than 65536 ranks");
	if (table)
		set_generation(c, old, table);
	plan_ranks_free(p);
	if (q)
		free(q->pod);
	free(q);
	return table;
}
