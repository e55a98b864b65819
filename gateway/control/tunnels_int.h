/* SPDX-License-Identifier: Apache-2.0 */
/* Private to tunnels*.c: owners of tunnels and tenants, a change, and its parts for workers. */
#ifndef GATEWAY_CONTROL_TUNNELS_INT_H
#define GATEWAY_CONTROL_TUNNELS_INT_H

#include <pthread.h>

#include "gateway/control/tunnels.h"

struct gw_tunnels {
	struct conf *conf; /* app->conf, whose tunnels change */
	pthread_rwlock_t lock;
	/* Read and written under gw_change_lock. Sets of tunnels, a bit each: */
	uint64_t there, of_controller;
	/* hidden from the API and the CLI, not yet released by every engine */
	_Atomic uint64_t removing;
	uint64_t detached[GW_WORKERS_MAX]; /* of these, by worker: its engine has released it */
	/* this worker was not told the last change of rates and prefixes */
	bool stale[GW_WORKERS_MAX];
	/* The control center's, sorted by name. Written under `lock`, too. */
	char (*tenant)[TENANT_NAME_MAX];
	unsigned tenants;
};

/* --- tunnels_merge.c: both sides together ----------------------------------------------------- */

/* Adds the other side's to c; *own: set of c's tunnels (by present index) that are the gateway's
 * own. */
RWY_MUST_CHECK int gw_tunnels_merge(
    struct gw_app *app, struct conf *c, enum gw_side side, uint64_t *own, struct conf_error *err);
/* Whether b may take the place of the running a: it has the same ends, and no path for smaller
 * datagrams. Rate, DSCP, thresholds, prefixes and paths may differ. c: has the ports. */
bool gw_tunnel_same_ends(const struct conf *c, const struct conf_tunnel *a, const struct conf_tunnel *b);
/* True if a and b are equal in everything. */
bool gw_tunnel_same(const struct conf *c, const struct conf_tunnel *a, const struct conf_tunnel *b);
/* Gives each of c's tunnels its number: that of the running tunnel of its name with the same ends,
 * or a free one. Tenants' places and *own follow. RWY_EAGAIN: too many, including those being
 * removed. */
RWY_MUST_CHECK int gw_tunnels_number(
    struct gw_app *app, struct conf *c, uint64_t *own, struct conf_error *err);

/* --- tunnels_get.c ---------------------------------------------------------------------------- */

/* Orders tenants' names, for qsort() and bsearch(). */
int gw_tunnels_by_name(const void *a, const void *b);

/* --- tunnels_worker.c: run on the worker's thread; RWY_EAGAIN: no answer ---------------------- */

/* Creates tunnel i of c and gives it to a worker. */
RWY_MUST_CHECK int gw_tunnel_build(struct gw_app *app, unsigned worker, const struct conf *c, unsigned i);
/* Sets rates, credit, thresholds and DSCP of all of c's tunnels, and the plain LAN's prefixes. */
RWY_MUST_CHECK int gw_tunnels_set(struct gw_app *app, unsigned worker, const struct conf *c);
/* Takes those of `set` out of a worker's engine; *detached: which are out. */
RWY_MUST_CHECK int gw_tunnels_detach(struct gw_app *app, unsigned worker, uint64_t set, uint64_t *detached);

#endif
