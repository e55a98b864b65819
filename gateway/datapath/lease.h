/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of a gateway lease parts of each tunnel's rates by demand (wan/lease.h). */
#ifndef GATEWAY_DATAPATH_LEASE_H
#define GATEWAY_DATAPATH_LEASE_H

#include "gateway/gw.h"

/* Makes what the workers share, app->leases; nothing with one worker. Before they run. */
RWY_MUST_CHECK int gw_leases_new(struct gw_app *app);
void gw_leases_free(struct gw_app *app); /* call it after the workers have ended */
/* A number of a tunnel, which no worker has, is used again. The thread that adds tunnels. */
void gw_leases_reset(struct gw_app *app, unsigned tunnel);

/* The worker has this tunnel now. On its thread, or before it runs. */
void gw_lease_begin(struct gw_worker *w, unsigned tunnel);
/* Gives and takes parts of all tunnels, when w->lease_at has come. Once a turn, on its thread. */
void gw_lease_turn(struct gw_worker *w);

#endif
