/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants when the set of tunnels changes: capacities, shares, use of a tunnel. */
#include <stdio.h>

#include "gateway/control/tenants_int.h"

void gw_tenants_limits(const struct gw_app *app, struct tenant_limits *lim)
{
	*lim = (struct tenant_limits){.tenants = TENANT_COUNT_MAX, .tunnels = app->conf->tunnels};
	for (unsigned i = 0; i < lim->tunnels; i++)
		lim->capacity_Bps[i] = app->conf->tunnel[i].rate_Bps;
}

int gw_tenants_replace_all(struct gw_app *app, const struct conf_tenant *t, unsigned n,
    struct gw_tenants_done *done, struct conf_error *err)
{
	struct tenant_db *db = app->tenants->db;
	struct tenant_limits lim, was;
	int rc;

	gw_tenants_limits(app, &lim);
	pthread_mutex_lock(&app->tenants->lock);
	rc = tenant_db_limits(db, &lim, &was);
	pthread_mutex_unlock(&app->tenants->lock);
	if (!rc)
		rc = gw_tenants_replace(app, t, n, done, err);
	if (rc) {
		pthread_mutex_lock(&app->tenants->lock);
		(void)!tenant_db_limits(db, &was, NULL);
		pthread_mutex_unlock(&app->tenants->lock);
	}
	return rc;
}

int gw_tenants_tunnels(struct gw_app *app, struct conf_error *err)
{
	const struct gw_txn_input a = {app, NULL, 0, err};
	struct tenant_db *db = app->tenants->db;
	struct tenant_limits lim, was;
	const struct tenant_set *next;
	struct tenant_txn *x = NULL;
	struct tenant_err te;
	int rc;

	gw_tenants_limits(app, &lim);
	pthread_mutex_lock(&app->tenants->lock);
	rc = tenant_db_limits(db, &lim, &was);
	if (!rc && tenant_txn_begin(&x, db) != 0)
		rc = gw_txn_err_memory(&a);
	if (!rc && (rc = tenant_txn_prepare(x, &next, &te)) != 0)
		(void)gw_txn_err_tenant(&a, rc, &te);
	tenant_txn_abort(x);
	if (rc)
		(void)!tenant_db_limits(db, &was, NULL);
	pthread_mutex_unlock(&app->tenants->lock);
	return rc;
}

void gw_tenants_shares(struct gw_app *app)
{
	struct gw_tenants *g = app->tenants;

	pthread_mutex_lock(&g->lock);
	for (unsigned w = 0; w < app->workers; w++)
		if (gw_delta_send_all(app, w, tenant_db_current(g->db)) != 0)
			g->stale[w] = true; /* the tick repeats it */
	pthread_mutex_unlock(&g->lock);
}

bool gw_tenants_use(struct gw_app *app, unsigned tunnel, char name[TENANT_NAME_MAX])
{
	const struct tenant_set *s;
	bool used = false;

	pthread_mutex_lock(&app->tenants->lock);
	s = tenant_db_current(app->tenants->db);
	for (uint32_t i = 1; i < s->top && !used; i++) {
		const struct tenant *t = tenant_by_index(s, i);

		used = t && (t->tunnels >> tunnel & 1);
		if (used)
			snprintf(name, TENANT_NAME_MAX, "%s", t->cfg.name);
	}
	pthread_mutex_unlock(&app->tenants->lock);
	return used;
}
