/* SPDX-License-Identifier: Apache-2.0 */
/* The set of tunnels for other threads to read. tunnels.c changes it. */
#include "gateway/control/tunnels_int.h"

#include <stdlib.h>
#include <string.h>

void gw_tunnels_read(struct gw_app *app)
{
	if (app->tunnels)
		pthread_rwlock_rdlock(&app->tunnels->lock);
}

void gw_tunnels_read_end(struct gw_app *app)
{
	if (app->tunnels)
		pthread_rwlock_unlock(&app->tunnels->lock);
}

int gw_tunnel_find(const struct gw_app *app, const char *name)
{
	for (unsigned i = 0; i < app->conf->tunnels; i++)
		if (*name && !strcmp(app->conf->tunnel[i].name, name))
			return (int)i;
	return -1;
}

enum gw_side gw_tunnel_side(const struct gw_app *app, unsigned tunnel)
{
	return app->tunnels && app->tunnels->of_controller >> tunnel & 1 ? GW_SIDE_CONTROLLER : GW_SIDE_OWN;
}

int gw_tunnels_by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

enum gw_side gw_tenant_side(const struct gw_app *app, const char *name)
{
	const struct gw_tunnels *g = app->tunnels;

	if (g && bsearch(name, g->tenant, g->tenants, sizeof(*g->tenant), gw_tunnels_by_name))
		return GW_SIDE_CONTROLLER;
	return GW_SIDE_OWN;
}

unsigned gw_tunnels_own(struct gw_app *app, struct conf_tunnel *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < app->conf->tunnels; i++)
		if (*app->conf->tunnel[i].name && gw_tunnel_side(app, i) == GW_SIDE_OWN)
			out[n++] = app->conf->tunnel[i];
	return n;
}

unsigned gw_tunnels_removing(const struct gw_app *app)
{
	return app->tunnels ? (unsigned)__builtin_popcountll(atomic_load(&app->tunnels->removing)) : 0;
}
