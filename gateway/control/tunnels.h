/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels of the running gateway: they come, change and go, and what others carry does not notice.
 *
 * A tunnel's number (its place in conf->tunnel[], in engines, in tenants' prefixes) is its own as long as it
 * is there; a place without a name is free. A change is checked as a whole, new tunnels are built and given
 * to every worker's engine before anything leads to them, tenants follow, then rates, DSCP and prefixes, and
 * last what is removed is taken from engines, its connections some at a time. A refused change leaves
 * everything as it was.
 *
 * Two sides name tunnels and tenants: this gateway (its file, its local API) and the control center (its
 * document). A change by one leaves the other's as they are; a name belongs to one of them.
 *
 * Thread: who changes something holds gw_change_lock (change_lock.h). Threads other than workers read
 * app->conf->tunnel[] and app->conf->tunnels under gw_tunnels_read. Workers have copies of their own.
 */
#ifndef GATEWAY_CONTROL_TUNNELS_H
#define GATEWAY_CONTROL_TUNNELS_H

#include "gateway/app.h"
#include "gateway/control/tenants.h"

enum gw_side { GW_SIDE_OWN, GW_SIDE_CONTROLLER };

struct gw_tunnels;
/* Before any worker exists, after gw_tenants_new. conf: what app->conf is, to be written. first: so many
 * tunnels and tenants are the gateway's own, the rest is the control center's. */
RWY_MUST_CHECK int gw_tunnels_new(
    struct gw_app *app, struct conf *conf, unsigned own_tunnels, unsigned own_tenants);
void gw_tunnels_free(struct gw_app *app); /* after the workers have ended */

void gw_tunnels_read(struct gw_app *app); /* until gw_tunnels_read_end; not while changing something */
void gw_tunnels_read_end(struct gw_app *app);

struct gw_network_done {
	struct gw_tenants_done tenants;
	unsigned added, changed, removed, same; /* tunnels */
	rwy_dur took;
};

/* Replaces all that one side says. c: its tunnels and tenants, as conf_reload (GW_SIDE_OWN) gives them; of
 * GW_SIDE_CONTROLLER as conf_network_parse does with gw_tunnels_own's as `own`. c is used up, but still the
 * caller's to free. RWY_EINVAL and RWY_EEXIST with *err; RWY_EAGAIN: a worker was not reached, or too many
 * tunnels are still being removed; RWY_ENOMEM. Then nothing has changed. */
RWY_MUST_CHECK int gw_network_apply(struct gw_app *app, struct conf *c, enum gw_side side,
    struct gw_network_done *done, struct conf_error *err);
/* The gateway's own tunnels, densely; at most CONF_TUNNELS_MAX. How many. */
unsigned gw_tunnels_own(struct gw_app *app, struct conf_tunnel *out);

/* A flow with a tunnel of its own. Both directions are meant: src is the local host at one end, dst at the
 * other. qpn 0: any. */
struct gw_assignment {
	uint32_t vni;
	struct rwy_ip src, dst;
	uint32_t src_qpn, dst_qpn;
	char tunnel[CONF_NAME];
};
/* All of them anew, after the tunnels are there; those of tunnels that are not are left out. Under
 * gw_change_lock. RWY_ENOMEM: as they were. A worker that is late is told by the tick. */
RWY_MUST_CHECK int gw_assign(struct gw_app *app, const struct gw_assignment *v, unsigned n);

/* One tunnel of the gateway's own, as the local API says it. set: other ends are refused. del: RWY_ENOENT, or
 * RWY_EEXIST while tenants have prefixes behind it, or when it is the control center's. */
RWY_MUST_CHECK int gw_tunnel_add(
    struct gw_app *app, const struct conf_tunnel *t, struct gw_network_done *done, struct conf_error *err);
RWY_MUST_CHECK int gw_tunnel_set(
    struct gw_app *app, const struct conf_tunnel *t, struct gw_network_done *done, struct conf_error *err);
RWY_MUST_CHECK int gw_tunnel_del(
    struct gw_app *app, const char *name, struct gw_network_done *done, struct conf_error *err);
/* The number of a tunnel, -1: there is none. Under gw_tunnels_read or gw_change_lock. */
int gw_tunnel_find(const struct gw_app *app, const char *name);
enum gw_side gw_tunnel_side(const struct gw_app *app, unsigned tunnel);

/* Once a second, control thread: what is being removed, and workers that were not reached. */
void gw_tunnels_tick(struct gw_app *app);
/* Tunnels that are still being removed. */
unsigned gw_tunnels_removing(const struct gw_app *app);

#endif
