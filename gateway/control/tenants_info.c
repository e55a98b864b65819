/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants for the API: one as configured, all with their counters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/tenants_int.h"

#define SLICE (50 * RWY_US)

/* --- deep copy of one ------------------------------------------------------------------------- */

int gw_tenant_get(struct gw_app *app, const char *name, struct conf_tenant *out)
{
	struct gw_tenants *g = app->tenants;
	const struct tenant *t;
	int rc = RWY_ENOENT;

	pthread_mutex_lock(&g->lock);
	t = tenant_by_name(tenant_db_current(g->db), name);
	if (t)
		rc = conf_tenant_copy(out, &(struct conf_tenant){.cfg = t->cfg});
	pthread_mutex_unlock(&g->lock);
	return rc;
}

int gw_tenants_append(
    struct gw_app *app, bool (*wanted)(const void *ctx, const char *name), const void *ctx, struct conf *c)
{
	struct gw_tenants *g = app->tenants;
	const struct tenant_set *s;
	struct conf_tenant *more;
	int rc = 0;

	pthread_mutex_lock(&g->lock);
	s = tenant_db_current(g->db);
	more = realloc(c->tenant, (c->tenants + s->n + 1) * sizeof(*more));
	if (more)
		c->tenant = more;
	else
		rc = RWY_ENOMEM;
	for (uint32_t i = 1; !rc && i < s->top; i++) {
		const struct tenant *t = tenant_by_index(s, i);

		if (!t || !wanted(ctx, t->cfg.name))
			continue;
		rc = conf_tenant_copy(&c->tenant[c->tenants], &(struct conf_tenant){.cfg = t->cfg});
		c->tenants += !rc;
	}
	pthread_mutex_unlock(&g->lock);
	return rc;
}

bool gw_tenant_exists(struct gw_app *app, const char *name)
{
	struct gw_tenants *g = app->tenants;
	bool there;

	pthread_mutex_lock(&g->lock);
	there = tenant_by_name(tenant_db_current(g->db), name);
	pthread_mutex_unlock(&g->lock);
	return there;
}

/* --- all tenants ----------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct tenant *x = *(const struct tenant *const *)a, *y = *(const struct tenant *const *)b;

	return strcmp(x->cfg.name, y->cfg.name);
}

static void info_cfg(struct gw_tenant_info *o, const struct tenant *t)
{
	*o = (struct gw_tenant_info){.index = t->index,
	    .vni = t->cfg.vni,
	    .vlan = t->cfg.vlan,
	    .generation = t->changed,
	    .guarantee_Bps = t->cfg.guarantee_Bps,
	    .limit_Bps = t->cfg.limit_Bps,
	    .weight = t->cfg.weight};
	memcpy(o->name, t->cfg.name, sizeof(o->name));
}

static uint64_t read64(const uint64_t *v)
{
	return __atomic_load_n(v, __ATOMIC_RELAXED);
}

static void info_count(struct gw_tenant_info *o, const struct gw_tenant_count *c)
{
	o->rx_packets += read64(&c->rx_packets);
	o->rx_bytes += read64(&c->rx_bytes);
	o->tx_packets += read64(&c->tx_packets);
	o->tx_bytes += read64(&c->tx_bytes);
	o->forged_host += read64(&c->forged_host);
	for (unsigned i = 0; i < TENANT_ADMIT_COUNT; i++)
		o->drop[i] += read64(&c->drop[i]);
}

struct stats_slice {
	struct gw_tenant_info *o;
	unsigned n, at;
};

static void stats_slice(struct eng *e, void *arg)
{
	struct stats_slice *a = arg;
	rwy_time end = gw_now() + SLICE;

	do {
		struct eng_tenant_stats st, *to = &a->o[a->at].eng;

		if (eng_tenant_stats(e, a->o[a->at++].index, &st)) {
			to->accepted += st.accepted;
			to->accepted_bytes += st.accepted_bytes;
			to->delivered += st.delivered;
			to->custody += st.custody;
			to->flows += st.flows;
			to->held += st.held;
			to->most += st.most;
			to->max += st.max;
			to->reserve += st.reserve;
			to->hosts += st.hosts;
		}
	} while (a->at < a->n && gw_now() < end);
}

/* A worker that does not answer is left out. */
static void info_engines(struct gw_app *app, struct gw_tenant_info *o, unsigned n)
{
	for (unsigned w = 0; w < app->workers; w++) {
		struct stats_slice a = {.o = o, .n = n};

		while (app->worker[w] && a.at < n && gw_call(app, w, stats_slice, &a) == 0)
			;
	}
}

void gw_tenant_names(struct gw_app *app, const uint32_t *index, unsigned n, char (*name)[TENANT_NAME_MAX])
{
	struct gw_tenants *g = app->tenants;

	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < n; i++) {
		const struct tenant *t = tenant_by_index(tenant_db_current(g->db), index[i]);

		snprintf(name[i], sizeof(name[i]), "%s", t ? t->cfg.name : index[i] ? GW_TENANT_REMOVED : "");
	}
	pthread_mutex_unlock(&g->lock);
}

static void info_make(struct gw_app *app, struct gw_tenant_info *o, const struct tenant *t)
{
	info_cfg(o, t);
	for (unsigned w = 0; w < app->workers; w++)
		info_count(o, &app->tenant_count[w][t->index]);
}

int gw_tenant_info_get(struct gw_app *app, const char *name, struct gw_tenant_info *out)
{
	struct gw_tenants *g = app->tenants;
	const struct tenant *t;

	pthread_mutex_lock(&g->lock);
	t = tenant_by_name(tenant_db_current(g->db), name);
	if (t) {
		info_make(app, out, t);
		info_engines(app, out, 1);
	}
	pthread_mutex_unlock(&g->lock);
	return t ? 0 : RWY_ENOENT;
}

unsigned gw_tenants_get(struct gw_app *app, const char *after, struct gw_tenant_info *out, unsigned max)
{
	struct gw_tenants *g = app->tenants;
	const struct tenant_set *s;
	const struct tenant **v;
	unsigned n = 0;

	pthread_mutex_lock(&g->lock);
	s = tenant_db_current(g->db);
	v = malloc((s->n + 1) * sizeof(struct tenant *));
	for (uint32_t i = 1; v && i < s->top; i++)
		if (tenant_by_index(s, i) && strcmp(tenant_by_index(s, i)->cfg.name, after) > 0)
			v[n++] = tenant_by_index(s, i);
	if (n)
		qsort(v, n, sizeof(struct tenant *), by_name);
	n = n < max ? n : max;
	for (unsigned i = 0; i < n; i++)
		info_make(app, &out[i], v[i]);
	info_engines(app, out, n);
	pthread_mutex_unlock(&g->lock);
	free(v);
	return n;
}
