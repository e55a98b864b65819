/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of the running gateway: the set that workers read, its changes, and what becomes of a tenant that
 * was removed. The set itself, its checks and its look-ups are tenant/tenant.h; connections of tenants are
 * the engine's (eng_tenant_*).
 *
 * A change is checked as a whole, given to every worker's engine, published, and reported done when every
 * worker runs its generation. Order: what is new is in the engines before packets are admitted for it; what
 * is removed is refused at the door before its connections are forgotten. A refused change leaves everything
 * as it was.
 *
 * Thread: the functions with a gw_app may be called from any thread but a worker's; they wait for each other.
 * Workers read gw_tenants_of() once a turn and say in gw_worker.ts_gen which generation they run.
 */
#ifndef GATEWAY_CONTROL_TENANTS_H
#define GATEWAY_CONTROL_TENANTS_H

#include "conf/conf.h"
#include "gateway/app.h"
#include "gateway/datapath/tenants.h"
#include "rwy/err.h"
#include "tenant/tenant.h"

struct gw_tenants;

/* From app->conf, before any worker exists: the first set. What goes wrong is logged. */
RWY_MUST_CHECK int gw_tenants_new(struct gw_app *app);
void gw_tenants_free(struct gw_app *app); /* after the workers have ended */
/* One worker's engine, before the worker runs: all tenants of the present set. */
RWY_MUST_CHECK int gw_tenants_engine(struct gw_app *app, struct eng *e, unsigned worker, rwy_time now);

/* How long a change took, ns: from the call to the last worker running it. */
struct gw_tenants_done {
	uint64_t generation;
	rwy_dur took;
	unsigned added, changed, removed, same;
};

/* One tenant: added (RWY_EEXIST when there is one of the name), or changed (RWY_ENOENT when there is none).
 * *err says why not, in the words of the configuration: RWY_EINVAL, RWY_EEXIST, RWY_ENOENT, RWY_ENOMEM, and
 * RWY_EAGAIN: a worker's engine was not reached, or indices are still in use; then nothing has changed. A
 * worker that has the change and is late in taking up the set is logged, and the change stands. */
RWY_MUST_CHECK int gw_tenant_add(
    struct gw_app *app, const struct conf_tenant *t, struct gw_tenants_done *done, struct conf_error *err);
RWY_MUST_CHECK int gw_tenant_set(
    struct gw_app *app, const struct conf_tenant *t, struct gw_tenants_done *done, struct conf_error *err);
/* Its connections are forgotten some at a time, after this returns. */
RWY_MUST_CHECK int gw_tenant_del(
    struct gw_app *app, const char *name, struct gw_tenants_done *done, struct conf_error *err);
/* All of them anew: those that are the same stay the same objects, and no connection of theirs notices. */
RWY_MUST_CHECK int gw_tenants_replace(struct gw_app *app, const struct conf_tenant *t, unsigned n,
    struct gw_tenants_done *done, struct conf_error *err);

/* The same after app->conf->tunnel[] has changed: guarantees and places are checked by what it says now. */
RWY_MUST_CHECK int gw_tenants_replace_all(struct gw_app *app, const struct conf_tenant *t, unsigned n,
    struct gw_tenants_done *done, struct conf_error *err);
/* Whether the tenants there are fit app->conf->tunnel[] as it is now; from then on it counts. */
RWY_MUST_CHECK int gw_tenants_tunnels(struct gw_app *app, struct conf_error *err);
/* Every engine is told every tenant's share anew, for a tunnel that it has not had. */
void gw_tenants_shares(struct gw_app *app);
/* Whether a tenant has prefixes behind a tunnel, and one that has. */
bool gw_tenants_use(struct gw_app *app, unsigned tunnel, char name[TENANT_NAME_MAX]);

/* A tenant as it is now, deeply copied: conf_tenant_fini. RWY_ENOENT. */
RWY_MUST_CHECK int gw_tenant_get(struct gw_app *app, const char *name, struct conf_tenant *out);
/* A tenant for the API. Counters are sums over workers. */
struct gw_tenant_info {
	char name[TENANT_NAME_MAX];
	uint32_t index, vni;
	uint16_t vlan;
	uint64_t generation;               /* in which it became what it is */
	struct eng_tenant_stats eng;       /* of all workers */
	uint64_t rx_packets, rx_bytes;     /* admitted from its hosts, from the IP header on */
	uint64_t tx_packets, tx_bytes;     /* sent to its hosts */
	uint64_t drop[TENANT_ADMIT_COUNT]; /* by reason; [TENANT_OK] is 0 */
	uint64_t forged_host;              /* contradicted where its source is known to be (vtep.h) */
	uint64_t guarantee_Bps, limit_Bps;
	uint32_t weight;
};
/* Up to max tenants whose name comes after `after` ("" to start), by name. How many. */
unsigned gw_tenants_get(struct gw_app *app, const char *after, struct gw_tenant_info *out, unsigned max);
/* One by its name: RWY_ENOENT. */
RWY_MUST_CHECK int gw_tenant_info_get(struct gw_app *app, const char *name, struct gw_tenant_info *out);
/* Names by index: "" of 0, "(removed)" where there is none any more. */
void gw_tenant_names(struct gw_app *app, const uint32_t *index, unsigned n, char (*name)[TENANT_NAME_MAX]);
/* The generation published, and the oldest one that a worker still runs. */
void gw_tenants_generation(const struct gw_app *app, uint64_t *published, uint64_t *running);

/* Once a second, control thread: what was removed and is gone everywhere gives its index back. */
void gw_tenants_tick(struct gw_app *app);

#endif
