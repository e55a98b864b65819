/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "engine/tunnel.h"
#include "gateway/datapath/lease.h"

#define EVERY (5 * RWY_MS)
static_assert(GW_WORKERS_MAX <= WAN_HALVES_MAX, "a half in each worker");

int gw_leases_new(struct gw_app *app)
{
	if (app->workers == 1)
		return 0;
	app->leases = aligned_alloc(alignof(struct wan_leases), CONF_TUNNELS_MAX * sizeof(*app->leases));
	if (!app->leases)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		gw_leases_reset(app, i);
	return 0;
}

void gw_leases_free(struct gw_app *app)
{
	free(app->leases);
	app->leases = NULL;
}

void gw_leases_reset(struct gw_app *app, unsigned tunnel)
{
	if (app->leases)
		wan_leases_init(&app->leases[tunnel], app->workers);
}

void gw_lease_begin(struct gw_worker *w, unsigned tunnel)
{
	if (w->app->leases)
		wan_lease_begin(&w->lease[tunnel], &w->app->leases[tunnel]);
}

void gw_lease_turn(struct gw_worker *w)
{
	const rwy_dur span = rwy_since(w->leased_at, w->now);

	if (!w->app->leases || span < EVERY)
		return;
	w->leased_at = w->now;
	for (unsigned i = 0; i < w->tunnels; i++) {
		struct wan_leases *all = &w->app->leases[i];

		if (!w->tun[i].conf) /* a free number */
			continue;
		const uint32_t wants = eng_tunnel_lease_wanted(w->eng, i, span);

		eng_tunnel_lease_set(w->eng, i, wan_lease_turn(&w->lease[i], all, w->idx, wants));
		wan_lease_release(&w->lease[i], all); /* it sends at the lower rate now */
	}
}
