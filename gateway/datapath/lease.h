/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of a gateway lease the rates of each tunnel by demand (wan/lease.h). */
#ifndef GATEWAY_DATAPATH_LEASE_H
#define GATEWAY_DATAPATH_LEASE_H

#include "gateway/gw.h"

/* Makes what the workers share, app->leases, before they run; nothing with one worker.
 * RWY_ENOMEM. */
RWY_MUST_CHECK int gw_leases_new(struct gw_app *app);
void gw_leases_free(struct gw_app *app); /* call it after the workers have ended */
/* Divides the rate of a tunnel anew, before its number is used again. No worker has the number.
 * Thread: the one that adds tunnels. */
void gw_leases_reset(struct gw_app *app, unsigned tunnel);

/* The worker has this tunnel now. On its thread, or before it runs. */
void gw_lease_begin(struct gw_worker *w, unsigned tunnel);
/* Gives and takes of the rates of all tunnels, every 5 ms. Once a turn, on its thread. */
void gw_lease_turn(struct gw_worker *w);

#endif
