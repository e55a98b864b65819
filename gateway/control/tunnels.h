/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels of the running gateway: they are added, changed and removed without effect on other
 * tunnels' traffic.
 *
 * A tunnel keeps its number (its index in conf->tunnel[], in engines, in tenants' prefixes) as long
 * as it exists; an entry without a name is free. A change is checked as a whole. New tunnels are
 * built and given to every worker's engine before anything uses them; then tenants follow, then
 * rates, DSCP and prefixes; last, removed tunnels are taken out of the engines, their connections
 * step by step. A refused change leaves everything unchanged.
 *
 * Two sides define tunnels and tenants: this gateway (its file, its local API) and the control
 * center (its document). A change by one side keeps the other side's; a name belongs to one side.
 *
 * Thread: a thread that changes something holds gw_change_lock (change_lock.h). Threads other than
 * workers read app->conf->tunnel[] and app->conf->tunnels under gw_tunnels_read. Workers have
 * copies.
 */
#ifndef GATEWAY_CONTROL_TUNNELS_H
#define GATEWAY_CONTROL_TUNNELS_H

#include "gateway/app.h"
#include "gateway/control/tenants.h"

enum gw_side { GW_SIDE_OWN, GW_SIDE_CONTROLLER };

struct gw_tunnels;
/* Call it before any worker exists, after gw_tenants_new. conf: app->conf, writable. The first
 * own_tunnels tunnels and own_tenants tenants are the gateway's own; the rest belongs to the
 * control center. RWY_ENOMEM: nothing was made. */
RWY_MUST_CHECK int gw_tunnels_new(
    struct gw_app *app, struct conf *conf, unsigned own_tunnels, unsigned own_tenants);
void gw_tunnels_free(struct gw_app *app); /* call it after the workers have ended */

/* Locks for reading until gw_tunnels_read_end; not while changing something. */
void gw_tunnels_read(struct gw_app *app);
void gw_tunnels_read_end(struct gw_app *app);

struct gw_network_done {
	struct gw_tenants_done tenants;
	unsigned added, changed, removed, same; /* tunnels */
	rwy_dur took;
};

struct gw_cert;
/*
 * Replaces all tunnels and tenants of one side. c: those of GW_SIDE_OWN from conf_reload, those of
 * GW_SIDE_CONTROLLER from conf_network_parse with gw_tunnels_own's as `own`. Uses up the contents
 * of c, which the caller still frees. cert: the certificates of c->keys (gw_keys_read), which the
 * gateway has from then on; *cert becomes NULL. cert NULL: its certificates stay. On error nothing
 * changed: RWY_EINVAL and RWY_EEXIST with *err; RWY_EAGAIN: a worker was not reached, or too many
 * tunnels are still being removed; RWY_ENOMEM.
 */
RWY_MUST_CHECK int gw_network_apply(struct gw_app *app, struct conf *c, enum gw_side side,
    struct gw_cert **cert, struct gw_network_done *done, struct conf_error *err);
/* Copies the gateway's own tunnels without gaps; at most CONF_TUNNELS_MAX. Returns their number. */
unsigned gw_tunnels_own(struct gw_app *app, struct conf_tunnel *out);

/*
 * A flow with a tunnel of its own; tunnel "": it is only admitted. Both directions are meant: src
 * is the local host at one end, dst at the other. qpn 0: any.
 */
struct gw_assignment {
	uint32_t vni;
	struct rwy_ip src, dst;
	uint32_t src_qpn, dst_qpn;
	char tunnel[CONF_NAME], job[CONF_NAME];
	/* of what each end sends: guaranteed and not exceeded; 0: the tenant's share */
	uint64_t rate_bps;
	uint8_t priority; /* below WAN_PRIORITIES */
	bool has_dscp;    /* of its datagrams on the WAN; needs a rate */
	uint8_t dscp;
};
/*
 * Replaces all assignments; the tunnels that they name exist before. An assignment whose tunnel
 * does not exist only admits its connection. Under gw_change_lock. Waits until every worker has
 * them, but for a worker that hangs. RWY_ENOMEM: the assignments are as before.
 */
RWY_MUST_CHECK int gw_assign(struct gw_app *app, const struct gw_assignment *v, unsigned n);

/*
 * Add, change or remove one of the gateway's own tunnels for the local API. Under gw_change_lock.
 * After an error nothing has changed, and *err has the reason: RWY_EINVAL, RWY_EAGAIN and
 * RWY_ENOMEM as gw_network_apply(), and
 *   add: RWY_EEXIST: the name is in use; RWY_EAGAIN: all numbers are, also by removed tunnels
 *   set: RWY_ENOENT; RWY_EEXIST: it is the control center's; RWY_EINVAL: t has other ends
 *   del: RWY_ENOENT; RWY_EEXIST: it is the control center's, or tenants have prefixes behind it
 */
RWY_MUST_CHECK int gw_tunnel_add(
    struct gw_app *app, const struct conf_tunnel *t, struct gw_network_done *done, struct conf_error *err);
RWY_MUST_CHECK int gw_tunnel_set(
    struct gw_app *app, const struct conf_tunnel *t, struct gw_network_done *done, struct conf_error *err);
RWY_MUST_CHECK int gw_tunnel_del(
    struct gw_app *app, const char *name, struct gw_network_done *done, struct conf_error *err);
/* Returns the number of a tunnel; -1: none. Under gw_tunnels_read or gw_change_lock. */
int gw_tunnel_find(const struct gw_app *app, const char *name);
enum gw_side gw_tunnel_side(const struct gw_app *app, unsigned tunnel);
/* Returns whose tenant it is; GW_SIDE_OWN also if there is none of this name. Under gw_tunnels_read
 * or gw_change_lock. */
enum gw_side gw_tenant_side(const struct gw_app *app, const char *name);

/* Called once a second by the control thread: continues removals, and repeats changes for late
 * workers. */
void gw_tunnels_tick(struct gw_app *app);
/* Returns the number of tunnels still being removed. */
unsigned gw_tunnels_removing(const struct gw_app *app);

#endif
