/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans a job. Its pairs of addresses are collected by pair of sites (a group), and each group
 * takes the same steps: gateways, bounds of the path, carrier, pairs of gateways, the bandwidth
 * that gateways have left, the network. A group that fails does not end the planning of the others.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/job_int.h"

/* The state of one planning. */
struct work {
	const struct plan_job *job;
	const struct plan_policy *policy;
	const struct plan_world_ops *world;
	void *ctx;
	rwy_time now;
	struct plan_job_result *r;
};

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a > PLAN_RATE_MAX || b > PLAN_RATE_MAX - a ? PLAN_RATE_MAX : a + b;
}

static uint64_t free_of(uint64_t has, uint64_t claimed)
{
	has = has < PLAN_RATE_MAX ? has : PLAN_RATE_MAX;
	return has > claimed ? has - claimed : 0;
}

/* The tighter of two bounds; 0 is no bound. */
static uint32_t tighter(uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return a | b;
	return a < b ? a : b;
}

/* v * ppm / 10^6, rounded down. */
static uint64_t part_of(uint64_t v, uint32_t ppm)
{
	return (uint64_t)((unsigned __int128)v * ppm / PLAN_PPM);
}

/* The group of two sites, given in order; -1: too many groups, -2: no memory. */
static int group_find(struct plan_job_result *r, const char *first, const char *second)
{
	struct plan_job_group *g;
	unsigned i;

	for (i = 0; i < r->n_groups; i++)
		if (strcmp(r->groups[i].first, first) == 0 && strcmp(r->groups[i].second, second) == 0)
			return (int)i;
	if (r->n_groups == PLAN_JOB_GROUPS_MAX)
		return -1;
	/* A power of two is full: double the room. */
	if ((r->n_groups & (r->n_groups - 1)) == 0) {
		g = realloc(r->groups, (r->n_groups ? 2 * (size_t)r->n_groups : 1) * sizeof(*g));
		if (!g)
			return -2;
		r->groups = g;
	}
	g = &r->groups[r->n_groups];
	memset(g, 0, sizeof(*g));
	g->first = first;
	g->second = second;
	return (int)r->n_groups++;
}

/* Assigns the job's pairs to groups. */
static int gather(struct work *w)
{
	struct plan_job_result *r = w->r;
	const struct plan_job_pair *p;
	struct plan_job_group *g;
	const char *a, *b;
	unsigned i;
	int k;

	for (i = 0; i < w->job->n; i++) {
		p = &w->job->pairs[i];
		r->rows[i] = (struct plan_job_row){-1, PLAN_JOB_ANY_GATEWAY, PLAN_JOB_ANY_GATEWAY, false};
		a = w->world->site_of(w->ctx, &p->a);
		b = w->world->site_of(w->ctx, &p->b);
		if (p->want.bandwidth_bps == 0)
			return RWY_EINVAL;
		if (!a || !b) {
			if (r->fail == PLAN_JOB_FITS)
				r->fail_pair = i;
			r->fail = PLAN_JOB_NO_SITE;
			continue;
		}
		if (strcmp(a, b) == 0)
			continue;
		r->rows[i].swapped = !plan_first_site(a, b);
		k = r->rows[i].swapped ? group_find(r, b, a) : group_find(r, a, b);
		if (k < 0)
			return k == -1 ? RWY_EINVAL : RWY_ENOMEM;
		g = &r->groups[k];
		r->rows[i].group = k;
		g->pairs++;
		g->want.bandwidth_bps = sum_of(g->want.bandwidth_bps, p->want.bandwidth_bps);
		g->want.delay_us = tighter(g->want.delay_us, p->want.delay_us);
		g->want.jitter_us = tighter(g->want.jitter_us, p->want.jitter_us);
	}
	return 0;
}

static void fail(struct plan_job_group *g, enum plan_job_fail why)
{
	if (g->fail == PLAN_JOB_FITS)
		g->fail = why;
}

/* A site's capabilities: the sum over its gateways, of all they have or of what they have left. */
static struct plan_caps site_caps(const struct plan_gateway *gw, unsigned n, bool left)
{
	struct plan_caps c = {0};
	unsigned i, k, streams = 0, qps = 0;
	uint32_t window = 0;

	for (i = 0; i < n; i++) {
		for (k = 0; k < PLAN_CARRIER_COUNT; k++)
			c.bandwidth_bps[k] = sum_of(c.bandwidth_bps[k],
			    free_of(gw[i].caps.bandwidth_bps[k], left ? gw[i].claimed_bps : 0));
		c.tcp_algorithms =
		    i ? c.tcp_algorithms & gw[i].caps.tcp_algorithms : gw[i].caps.tcp_algorithms;
		streams += gw[i].caps.tcp_streams ? gw[i].caps.tcp_streams : PLAN_TCP_STREAMS;
		window = tighter(window, gw[i].caps.tcp_window);
		qps += gw[i].caps.rdma_qps ? gw[i].caps.rdma_qps : PLAN_RDMA_QPS;
		c.rdma_window += gw[i].caps.rdma_window ? gw[i].caps.rdma_window : PLAN_RDMA_WINDOW;
	}
	c.rdma_qps = (uint8_t)(qps < UINT8_MAX ? qps : UINT8_MAX);
	c.tcp_streams = (uint8_t)(streams < UINT8_MAX ? streams : UINT8_MAX);
	c.tcp_window = window;
	return c;
}

/* If no network promises delay and jitter, the measured ones count. Unknown values bound
 * nothing. */
static void check_bounds(struct plan_job_group *g, const struct plan_path *path)
{
	const struct plan_leg *l = &path->by[PLAN_NATIVE];
	uint64_t delay = (l->rtt_us.v + 1) / 2;

	if (g->want.delay_us && (l->rtt_us.source == 0 || delay > g->want.delay_us))
		fail(g, PLAN_JOB_DELAY);
	if (g->want.jitter_us && (l->jitter_us.source == 0 || l->jitter_us.v > g->want.jitter_us))
		fail(g, PLAN_JOB_JITTER);
	g->fits.delay_us = l->rtt_us.source ? (uint32_t)delay : 0;
	g->fits.jitter_us = l->jitter_us.source ? (uint32_t)l->jitter_us.v : 0;
}

/* Builds the pairs of gateways. A gateway without the carrier gets the weight 0. */
static unsigned make_mesh(const struct work *w, const struct plan_job_group *g, struct plan_pair *p)
{
	const struct plan_gateway *a, *b;
	unsigned i, j, n = 0, c = g->decision.carrier;

	for (i = 0; i < g->n_gw[0]; i++) {
		for (j = 0; j < g->n_gw[1]; j++, n++) {
			a = &g->gw[0][i];
			b = &g->gw[1][j];
			p[n] = (struct plan_pair){a->id, b->id, 0};
			if (a->caps.bandwidth_bps[c] && b->caps.bandwidth_bps[c] &&
			    (!w->world->pair_up || w->world->pair_up(w->ctx, a->name, b->name)) &&
			    (!w->job->has_carrier || !w->world->pair_takes ||
			        w->world->pair_takes(w->ctx, a->name, b->name, (enum plan_carrier)c)))
				p[n].weight = plan_pair_weight(a->weight, b->weight);
		}
	}
	return n;
}

struct keyed {
	uint64_t key;
	unsigned row;
};

static int cmp_keyed(const void *va, const void *vb)
{
	const struct keyed *a = va, *b = vb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static void load(struct plan_job_group *g, unsigned pair, uint64_t bps)
{
	uint64_t *a = &g->gw_bps[0][pair / g->n_gw[1]], *b = &g->gw_bps[1][pair % g->n_gw[1]];

	*a = sum_of(*a, bps);
	*b = sum_of(*b, bps);
	g->pair_bps[pair] = sum_of(g->pair_bps[pair], bps);
}

/* True for an entry that means all queue pairs between two addresses, none of them known yet. */
static bool unknown(const struct plan_job *job, const struct plan_job_pair *p)
{
	return job->grain == PLAN_GRAIN_QP && (!p->a_qpn || !p->b_qpn);
}

/* Spreads such an entry over the pairs of gateways: each expects its share of the queue pairs. */
static void spread_unknown(
    const struct work *w, struct plan_job_group *g, int32_t group, const struct plan_pair *mesh, unsigned n)
{
	uint64_t weights = 0, bps = 0;
	unsigned i;

	for (i = 0; i < w->job->n; i++)
		if (w->r->rows[i].group == group && unknown(w->job, &w->job->pairs[i]))
			bps = sum_of(bps, w->job->pairs[i].want.bandwidth_bps);
	for (i = 0; i < n; i++)
		weights += mesh[i].weight;
	for (i = 0; weights && bps && i < n; i++)
		load(g, i, (uint64_t)(((unsigned __int128)bps * mesh[i].weight + weights - 1) / weights));
}

/* The index in the mesh where row i is now; -1: none. */
static int now_at(const struct work *w, unsigned i, const struct plan_pair *mesh, unsigned n)
{
	const struct plan_pair *now = w->job->now;

	for (unsigned k = 0; now && k < n; k++)
		if (mesh[k].first == now[i].first && mesh[k].second == now[i].second)
			return (int)k;
	return -1;
}

/* Pairs of addresses with one key go to one pair of gateways. */
static int spread_keys(
    struct work *w, struct plan_job_group *g, int32_t group, const struct plan_pair *mesh, unsigned n)
{
	struct keyed *k = calloc(g->pairs, sizeof(*k));
	uint64_t *keys = calloc(g->pairs, sizeof(*keys));
	int *assign = calloc(g->pairs, sizeof(*assign)), rc = RWY_ENOMEM;
	unsigned i, m = 0, unique = 0;

	if (!k || !keys || !assign)
		goto out;
	for (i = 0; i < w->job->n; i++) {
		const struct plan_job_pair *p = &w->job->pairs[i];
		struct plan_job_row *row = &w->r->rows[i];
		struct plan_end a = {p->a, p->a_qpn}, b = {p->b, p->b_qpn};

		if (row->group != group || unknown(w->job, p))
			continue;
		k[m].key = row->swapped ? plan_key(w->job->grain, w->job->vni, &b, &a)
		                        : plan_key(w->job->grain, w->job->vni, &a, &b);
		k[m++].row = i;
	}
	qsort(k, m, sizeof(*k), cmp_keyed);
	for (i = 0; i < m; i++) {
		if (i == 0 || k[i].key != k[i - 1].key) {
			assign[unique] = now_at(w, k[i].row, mesh, n);
			keys[unique++] = k[i].key;
		}
	}
	rc = w->job->stay ? plan_spread_stay(mesh, n, keys, unique, assign)
	                  : plan_spread_list(mesh, n, keys, unique, assign);
	if (rc < 0)
		goto out;
	for (i = 0, unique = 0; i < m; i++) {
		unique += i && k[i].key != k[i - 1].key;
		w->r->rows[k[i].row].first = (uint16_t)((unsigned)assign[unique] / g->n_gw[1]);
		w->r->rows[k[i].row].second = (uint16_t)((unsigned)assign[unique] % g->n_gw[1]);
		load(g, (unsigned)assign[unique], w->job->pairs[k[i].row].want.bandwidth_bps);
	}
	rc = 0;
out:
	free(k);
	free(keys);
	free(assign);
	return rc;
}

/* Chooses gateway pairs for the group's rows and sums the load of each gateway. RWY_EINVAL: no pair
 * has a weight. */
static int spread_rows(struct work *w, struct plan_job_group *g, int32_t group)
{
	struct plan_pair *mesh = calloc((size_t)g->n_gw[0] * g->n_gw[1], sizeof(*mesh));
	unsigned i, n;
	int rc = 0;

	g->pair_bps = calloc((size_t)g->n_gw[0] * g->n_gw[1], sizeof(*g->pair_bps));
	if (!mesh || !g->pair_bps) {
		free(mesh);
		return RWY_ENOMEM;
	}
	n = make_mesh(w, g, mesh);
	for (i = 0; i < n && mesh[i].weight == 0; i++)
		;
	rc = i < n ? spread_keys(w, g, group, mesh, n) : RWY_EINVAL;
	if (w->job->grain == PLAN_GRAIN_QP)
		spread_unknown(w, g, group, mesh, n);
	free(mesh);
	return rc;
}

/* Checks that each gateway has room for its load. If one has not: `fits` is the largest demand that
 * would fit when spread in the same way. */
static void check_gateways(struct plan_job_group *g)
{
	uint64_t left, most;
	unsigned side, i;

	for (side = 0; side < 2; side++) {
		for (i = 0; i < g->n_gw[side]; i++) {
			left = free_of(g->gw[side][i].caps.bandwidth_bps[g->decision.carrier],
			    g->gw[side][i].claimed_bps);
			if (g->gw_bps[side][i] <= left)
				continue;
			if (g->fail == PLAN_JOB_FITS) {
				g->fail_gw[0] = side;
				g->fail_gw[1] = i;
			}
			fail(g, PLAN_JOB_GATEWAY);
			most =
			    (uint64_t)((unsigned __int128)g->want.bandwidth_bps * left / g->gw_bps[side][i]);
			if (most < g->fits.bandwidth_bps)
				g->fits.bandwidth_bps = most;
		}
	}
}

static int check_network(struct work *w, struct plan_job_group *g)
{
	struct plan_want edge = g->want;
	uint64_t most;
	int rc;

	edge.bandwidth_bps = plan_edge_bps(g->want.bandwidth_bps, g->decision.a_ppm, g->decision.b_ppm);
	rc = plan_place(&g->placement, &edge, g->routes, g->n_routes);
	if (rc)
		return rc;
	if (g->placement.fail != PLAN_PLACED)
		fail(g, PLAN_JOB_NETWORK);
	g->fits.delay_us = g->placement.fits_delay_us;
	g->fits.jitter_us = g->placement.fits_jitter_us;
	most = part_of(part_of(g->placement.fits_bps, g->decision.b_ppm), g->decision.a_ppm);
	if (most < g->fits.bandwidth_bps)
		g->fits.bandwidth_bps = most;
	return 0;
}

static int ctlr_query_network(struct work *w, struct plan_job_group *g)
{
	int n;

	g->routes = calloc(PLAN_ROUTES_MAX, sizeof(*g->routes));
	if (!g->routes)
		return RWY_ENOMEM;
	n = w->world->routes ? w->world->routes(w->ctx, g->first, g->second, g->routes, PLAN_ROUTES_MAX)
	                     : RWY_ENOENT;
	if (n == RWY_ENOENT)
		return 0;
	if (n < 0)
		return n;
	g->has_network = true;
	g->n_routes = (unsigned)n < PLAN_ROUTES_MAX ? (unsigned)n : PLAN_ROUTES_MAX;
	return 0;
}

/* A site may be in several groups. The load that earlier groups of this job put on a gateway counts
 * as claimed for this one. */
static void claim_earlier_groups(const struct plan_job_result *r, struct plan_job_group *g, unsigned side)
{
	const char *site = side ? g->second : g->first;
	const struct plan_job_group *o;
	unsigned os, k, j;

	for (o = r->groups; o < g; o++) {
		if (strcmp(o->first, site) != 0 && strcmp(o->second, site) != 0)
			continue;
		os = strcmp(o->first, site) != 0;
		for (k = 0; k < g->n_gw[side]; k++)
			for (j = 0; j < o->n_gw[os]; j++)
				if (o->gw[os][j].id == g->gw[side][k].id)
					g->gw[side][k].claimed_bps =
					    sum_of(g->gw[side][k].claimed_bps, o->gw_bps[os][j]);
	}
}

/* A promise is for all jobs together. A measurement is of what this traffic gets beside theirs. */
static void leave_promise(const struct work *w, const struct plan_job_group *g, struct plan_path *path)
{
	const uint64_t claimed = path->cls != PLAN_INTERNET && w->world->path_claimed
	                             ? w->world->path_claimed(w->ctx, g->first, g->second)
	                             : 0;

	for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++) {
		struct plan_value *v = &path->by[k].bandwidth_bps;

		if (v->v) /* 0 is no bound */
			v->v = v->v > claimed ? v->v - claimed : 1;
	}
}

static int plan_group(struct work *w, struct plan_job_group *g, int32_t group)
{
	struct plan_question q = {
	    .demand_bps = g->want.bandwidth_bps, .pinned = w->job->has_carrier ? w->job->carrier : PLAN_ANY};
	const enum plan_job_fail none_fits = w->job->has_carrier ? PLAN_JOB_CARRIER : PLAN_JOB_NO_CARRIER;
	struct plan_hyst none = {0};
	unsigned side, k;
	int rc;

	for (side = 0; side < 2; side++) {
		g->n_gw[side] = w->world->gateways(
		    w->ctx, side ? g->second : g->first, g->gw[side], PLAN_SITE_GATEWAYS_MAX);
		if (g->n_gw[side] == 0)
			fail(g, PLAN_JOB_NO_GATEWAY);
		claim_earlier_groups(w->r, g, side);
	}
	rc = ctlr_query_network(w, g);
	if (rc || g->fail != PLAN_JOB_FITS)
		return rc;
	w->world->path(w->ctx, g->first, g->second, &q.path);
	if (g->has_network) {
		/* A demand for a reservation does not bound the carrier; the placement decides
		 * about it later. */
		for (k = 0; k < PLAN_CARRIER_COUNT; k++)
			q.path.by[k].bandwidth_bps = (struct plan_value){0};
	} else {
		check_bounds(g, &q.path);
		leave_promise(w, g, &q.path);
	}
	/* second time with all bandwidth: where nothing is left, running jobs still need a place */
	for (k = 0; k < 2; k++) {
		q.source = site_caps(g->gw[0], g->n_gw[0], !k);
		q.destination = site_caps(g->gw[1], g->n_gw[1], !k);
		plan_decide(&g->decision, &q, w->policy, &none, w->now);
		if (g->decision.carrier != PLAN_ANY || !w->job->now)
			break;
	}
	if (g->decision.carrier == PLAN_ANY) {
		fail(g, none_fits);
		return 0;
	}
	if (k)
		fail(g, PLAN_JOB_GATEWAY);
	g->fits.bandwidth_bps = g->decision.alt[g->decision.carrier].goodput_bps;
	if (!g->decision.enough)
		fail(g, PLAN_JOB_GOODPUT);
	rc = spread_rows(w, g, group);
	if (rc == RWY_EINVAL) {
		/* both sites have it, but no two gateways with a weight */
		fail(g, none_fits);
		g->fits.bandwidth_bps = 0;
		return 0;
	}
	if (rc)
		return rc;
	check_gateways(g);
	return g->has_network ? check_network(w, g) : 0;
}

int plan_job_new(struct plan_job_result **out, const struct plan_job *job, const struct plan_policy *policy,
    const struct plan_world_ops *world, void *ctx, rwy_time now)
{
	struct work w = {job, policy, world, ctx, now, NULL};
	unsigned i;
	int rc;

	*out = NULL;
	if (job->n == 0 || job->n > PLAN_JOB_PAIRS_MAX || (unsigned)job->grain >= PLAN_GRAIN_COUNT)
		return RWY_EINVAL;
	w.r = calloc(1, sizeof(*w.r));
	if (!w.r)
		return RWY_ENOMEM;
	w.r->n_rows = job->n;
	w.r->rows = calloc(job->n, sizeof(*w.r->rows));
	rc = w.r->rows ? gather(&w) : RWY_ENOMEM;
	for (i = 0; rc == 0 && i < w.r->n_groups; i++) {
		rc = plan_group(&w, &w.r->groups[i], (int32_t)i);
		if (w.r->fail == PLAN_JOB_FITS)
			w.r->fail = w.r->groups[i].fail;
	}
	if (rc == 0 && w.r->fail == PLAN_JOB_FITS)
		rc = plan_job_claims(w.r);
	if (rc)
		plan_job_free(w.r);
	else
		*out = w.r;
	return rc;
}
