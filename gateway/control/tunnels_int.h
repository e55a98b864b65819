/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to tunnels*.c: who owns what, what a change is, what workers are told. */
#ifndef GATEWAY_CONTROL_TUNNELS_INT_H
#define GATEWAY_CONTROL_TUNNELS_INT_H

#include <pthread.h>

#include "gateway/control/tunnels.h"

struct gw_tunnels {
	struct conf *conf; /* app->conf, of which the tunnels change */
	pthread_rwlock_t lock;
	/* Read and written under gw_change_lock. Sets of tunnels: */
	uint64_t there, of_controller;
	_Atomic uint64_t removing;         /* taken from people's sight, not yet from every engine */
	uint64_t detached[GW_WORKERS_MAX]; /* of these, by worker: its engine has it no more */
	bool stale[GW_WORKERS_MAX]; /* this worker was not told the last change of rates and prefixes */
	struct eng_steer_cfg *way;  /* assignments, in engines' words */
	unsigned ways;
	bool assignments_stale[GW_WORKERS_MAX]; /* this worker was not told of them */
	char (*tenant)[TENANT_NAME_MAX];        /* the control center's, by name */
	unsigned tenants;
};

/* --- tunnels_merge.c: what both sides say together ------------------------------------------- */

/* c gets what the other side has; *own: set of its tunnels (by present place) that are the gateway's own. */
RWY_MUST_CHECK int gw_tunnels_merge(
    struct gw_app *app, struct conf *c, enum gw_side side, uint64_t *own, struct conf_error *err);
/* Whether a and b have the same ends: rate, DSCP, thresholds and prefixes may differ. */
bool gw_tunnel_same_ends(const struct conf_tunnel *a, const struct conf_tunnel *b);
bool gw_tunnel_same(const struct conf_tunnel *a, const struct conf_tunnel *b);
/* Gives each of c's tunnels its number: that of the running one of its name with the same ends, or a free
 * one. Tenants' places follow, and *own. RWY_EAGAIN: there are too many, with those that are being removed.
 */
RWY_MUST_CHECK int gw_tunnels_number(
    struct gw_app *app, struct conf *c, uint64_t *own, struct conf_error *err);

/* --- tunnels_worker.c: what a worker is told, on its thread. All: RWY_EAGAIN when it does not come to it. -
 */

/* Makes tunnel i of c and gives it to a worker. */
RWY_MUST_CHECK int gw_tunnel_build(struct gw_app *app, unsigned worker, const struct conf *c, unsigned i);
/* Rates, credit, thresholds, DSCP of all of c's tunnels, and the plain LAN's prefixes. */
RWY_MUST_CHECK int gw_tunnels_set(struct gw_app *app, unsigned worker, const struct conf *c);
/* The assignments that are in gw_tunnels. */
RWY_MUST_CHECK int gw_assignments_send(struct gw_app *app, unsigned worker);
/* Takes those of `set` out of a worker's engine; *detached: which are out. */
RWY_MUST_CHECK int gw_tunnels_detach(struct gw_app *app, unsigned worker, uint64_t set, uint64_t *detached);

#endif
