/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of the running gateway: the set that workers read, its changes, and the removal of
 * tenants. The set itself, its checks and its lookups are in tenant/tenant.h; tenants' connections
 * belong to the engine (eng_tenant_*).
 *
 * A change is checked as a whole, given to every worker's engine, published, and reported as done
 * when every worker runs its generation. Order: engines have a new tenant before its packets are
 * admitted; packets of a removed tenant are refused before its connections are removed. A refused
 * change leaves everything unchanged.
 *
 * Thread: the functions with a gw_app may be called from any thread but a worker's; they wait for
 * each other. Workers read gw_tenants_of() once a turn (gateway/publish.h).
 */
#ifndef GATEWAY_CONTROL_TENANTS_H
#define GATEWAY_CONTROL_TENANTS_H

#include "conf/conf.h"
#include "gateway/app.h"
#include "gateway/datapath/tenants.h"
#include "rwy/err.h"
#include "tenant/tenant.h"

struct gw_tenants;

/* Makes the first set from app->conf, before any worker exists. Errors are logged. */
RWY_MUST_CHECK int gw_tenants_new(struct gw_app *app);
void gw_tenants_free(struct gw_app *app); /* call it after the workers have ended */
/* Gives all tenants of the present set to one worker's engine, before the worker runs. RWY_ENOMEM
 * and other errors of the engine: logged; the worker must not run. */
RWY_MUST_CHECK int gw_tenants_engine(struct gw_app *app, struct eng *e, unsigned worker, rwy_time now);

/* The result of a change. took: ns from the call until the last worker runs it. */
struct gw_tenants_done {
	uint64_t generation;
	rwy_dur took;
	unsigned added, changed, removed, same;
};

/* Adds one tenant (RWY_EEXIST: the name is in use) or changes one (RWY_ENOENT: no such name). On
 * error *err has the reason in the words of the configuration, and nothing changed: RWY_EINVAL,
 * RWY_EEXIST, RWY_ENOENT, RWY_ENOMEM; RWY_EAGAIN: a worker's engine was not reached, or indices are
 * still in use. When a worker has the change but is late to run the set, this is logged and the
 * change stands. */
RWY_MUST_CHECK int gw_tenant_add(
    struct gw_app *app, const struct conf_tenant *t, struct gw_tenants_done *done, struct conf_error *err);
RWY_MUST_CHECK int gw_tenant_set(
    struct gw_app *app, const struct conf_tenant *t, struct gw_tenants_done *done, struct conf_error *err);
/* Removes a tenant. Its connections are removed step by step after this returns. */
RWY_MUST_CHECK int gw_tenant_del(
    struct gw_app *app, const char *name, struct gw_tenants_done *done, struct conf_error *err);
/* Replaces all tenants. Unchanged tenants keep their objects, and their connections are not
 * affected. */
RWY_MUST_CHECK int gw_tenants_replace(struct gw_app *app, const struct conf_tenant *t, unsigned n,
    struct gw_tenants_done *done, struct conf_error *err);

/* The same after app->conf->tunnel[] has changed: guarantees and places are checked against its new
 * contents. */
RWY_MUST_CHECK int gw_tenants_replace_all(struct gw_app *app, const struct conf_tenant *t, unsigned n,
    struct gw_tenants_done *done, struct conf_error *err);
/*
 * Checks the present tenants against the new app->conf->tunnel[] and uses it from then on.
 * RWY_EINVAL with *err: a tenant needs what is not there any more; RWY_ENOMEM. The bounds are as
 * before then.
 */
RWY_MUST_CHECK int gw_tenants_tunnels(struct gw_app *app, struct conf_error *err);
/* Repeats every tenant's share to every engine, for a tunnel that was added. */
void gw_tenants_shares(struct gw_app *app);
/* Returns whether a tenant has prefixes behind a tunnel, and the name of one. */
bool gw_tenants_use(struct gw_app *app, unsigned tunnel, char name[TENANT_NAME_MAX]);

/* Returns a deep copy of a tenant, for conf_tenant_fini. RWY_ENOENT. */
RWY_MUST_CHECK int gw_tenant_get(struct gw_app *app, const char *name, struct conf_tenant *out);
/*
 * Appends deep copies of the tenants that `wanted` (with ctx) says yes to, by their names, to
 * c->tenant, for conf_free. In one pass and without the workers. `wanted` takes no lock of tenants.
 * RWY_ENOMEM: some are appended.
 */
RWY_MUST_CHECK int gw_tenants_append(
    struct gw_app *app, bool (*wanted)(const void *ctx, const char *name), const void *ctx, struct conf *c);

/* A tenant for the API. Counters are sums over workers. */
struct gw_tenant_info {
	char name[TENANT_NAME_MAX];
	uint32_t index, vni;
	uint16_t vlan;
	uint64_t generation;         /* generation of its last change */
	struct eng_tenant_stats eng; /* sums over all workers */
	/* admitted from its hosts; bytes from the IP header on */
	uint64_t rx_packets, rx_bytes;
	uint64_t tx_packets, tx_bytes;     /* sent to its hosts */
	uint64_t drop[TENANT_ADMIT_COUNT]; /* drops by reason; [TENANT_OK] is 0 */
	uint64_t forged_host;              /* contradicted the known place of its source (vtep.h) */
	uint64_t guarantee_Bps, limit_Bps;
	uint32_t weight;
};
/* Fills in up to max tenants after `after` ("" to start), sorted by name. Returns their number. */
unsigned gw_tenants_get(struct gw_app *app, const char *after, struct gw_tenant_info *out, unsigned max);
/* Returns one tenant by its name. RWY_ENOENT. */
RWY_MUST_CHECK int gw_tenant_info_get(struct gw_app *app, const char *name, struct gw_tenant_info *out);
/* There is a tenant of this name now. Any thread: takes the tenants' lock. */
bool gw_tenant_exists(struct gw_app *app, const char *name);
#define GW_TENANT_REMOVED "(removed)"
/* Fills in names by index: "" for 0, GW_TENANT_REMOVED when there is no such tenant. */
void gw_tenant_names(struct gw_app *app, const uint32_t *index, unsigned n, char (*name)[TENANT_NAME_MAX]);
/* The generation published, and the last one that every worker was seen to run. */
void gw_tenants_generation(struct gw_app *app, uint64_t *published, uint64_t *running);

/* Called once a second by the control thread: releases the indices of tenants that are removed
 * everywhere. */
void gw_tenants_tick(struct gw_app *app);

#endif
