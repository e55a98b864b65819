/* SPDX-License-Identifier: Apache-2.0 */
/* The first set of tenants, its delivery to a new worker, and the end. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "gateway/control/tenants_int.h"

static int counts_new(struct gw_app *app)
{
	for (unsigned i = 0; i < app->workers; i++) {
		struct gw_tenant_count **c = &app->tenant_count[i];

		/* Mostly untouched: the kernel provides pages as indices are cleared for use. */
		void *p = mmap(NULL, GW_TENANT_COUNTS * sizeof(**c), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return RWY_ENOMEM;
		*c = p;
	}
	return 0;
}

static int first_set(struct gw_app *app)
{
	const struct conf *c = app->conf;
	struct gw_tenants_done done;
	struct conf_error err;
	int rc = 0;

	if (c->tenants)
		rc = gw_tenants_replace(app, c->tenant, c->tenants, &done, &err);
	if (rc)
		gw_log(GW_LOG_ERROR, "config", "%s:%u:%u: %s", err.file, err.line, err.column, err.msg);
	return rc;
}

int gw_tenants_new(struct gw_app *app)
{
	struct gw_tenants *g = calloc(1, sizeof(*g));
	struct tenant_limits lim;
	int rc;

	if (!g)
		return RWY_ENOMEM;
	pthread_mutex_init(&g->lock, NULL);
	app->tenants = g;
	gw_tenants_limits(app, &lim);
	g->clean = calloc(GW_TENANT_COUNTS, sizeof(*g->clean));
	g->retired = calloc(GW_TENANT_COUNTS, sizeof(*g->retired));
	rc = g->clean && g->retired ? counts_new(app) : RWY_ENOMEM;
	if (!rc)
		rc = tenant_db_new(&g->db, &lim);
	if (rc)
		gw_log(GW_LOG_ERROR, "tenant", "no memory for tenants");
	else
		gw_tenants_publish(app);
	return rc ? rc : first_set(app);
}

int gw_tenants_engine(struct gw_app *app, struct eng *e, unsigned worker, rwy_time now)
{
	struct gw_tenants *g = app->tenants;
	int rc;

	pthread_mutex_lock(&g->lock);
	rc = gw_delta_apply_all(app, e, tenant_db_current(g->db), now);
	pthread_mutex_unlock(&g->lock);
	if (rc)
		gw_log(
		    GW_LOG_ERROR, "tenant", "worker=%u cannot take the tenants: %s", worker, strerror(-rc));
	return rc;
}

void gw_tenants_free(struct gw_app *app)
{
	struct gw_tenants *g = app->tenants;

	if (!g)
		return;
	tenant_db_free(g->db);
	for (unsigned i = 0; i < app->workers; i++)
		if (app->tenant_count[i]) {
			munmap(app->tenant_count[i], GW_TENANT_COUNTS * sizeof(*app->tenant_count[i]));
			app->tenant_count[i] = NULL;
		}
	free(g->clean);
	free(g->retired);
	pthread_mutex_destroy(&g->lock);
	free(g);
	app->tenants = NULL;
}
