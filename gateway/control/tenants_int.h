/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to tenants*.c: the set's keeper, what engines are given, and what of a worker only DPDK code sees.
 */
#ifndef GATEWAY_CONTROL_TENANTS_INT_H
#define GATEWAY_CONTROL_TENANTS_INT_H

#include <pthread.h>

#include "gateway/control/tenants.h"

struct gw_tenants {
	/* Held to change anything, and to read what a change could free. */
	pthread_mutex_t lock;
	struct tenant_db *db;
	bool stale[GW_WORKERS_MAX]; /* this worker's engine may not be as the set says: it was not reached */
	uint64_t *clean;            /* by index of a removed tenant: set of workers with nothing left of it */
	uint32_t *retired;          /* indices of removed tenants, until they are released */
	unsigned retired_n;
};

/* One transaction's input and where its complaint goes. */
struct gw_txn_input {
	struct gw_app *app;
	const struct conf_tenant *t;
	unsigned n;
	struct conf_error *err;
};

/* --- tenants_err.c: *a->err is filled; those with a code return it --------------------------- */

/* Empty, at the place of t in the file; NULL: nowhere. */
void gw_txn_err_locate(const struct gw_txn_input *a, const struct conf_tenant *t);
int gw_txn_err_tenant(const struct gw_txn_input *a, int rc, const struct tenant_err *te);
int gw_txn_err_memory(const struct gw_txn_input *a);
int gw_txn_err_worker(const struct gw_txn_input *a, unsigned worker, int rc);

/* --- tenants_tunnels.c ----------------------------------------------------------------------- */

/* The tunnels' capacities as they are configured. */
void gw_tenants_limits(const struct gw_app *app, struct tenant_limits *lim);

/* --- tenants_eng.c: lists of what an engine is to be told ------------------------------------ */

struct gw_delta_op {
	uint32_t index;
	bool remove;
	uint32_t park_vni; /* when the VNI is another's for now: take this one instead; 0: that is an error */
	uint32_t memory_ppm;       /* of the engine's custody memory, reserved */
	struct eng_tenant_cfg cfg; /* prefix is in the list's own memory */
};
struct gw_delta {
	struct gw_delta_op *op;
	unsigned n, max;
	struct eng_prefix *prefix;
	size_t prefixes, prefixes_max;
};

/* The changes that lead from one set to another, and back. */
struct gw_plan {
	struct gw_delta forth, back;
	unsigned added, changed, removed, same;
};
RWY_MUST_CHECK int gw_plan_new(
    struct gw_plan *p, const struct gw_app *app, const struct tenant_set *old, const struct tenant_set *next);
void gw_plan_free(struct gw_plan *p);

/* All of it at a worker, some at a time. RWY_EAGAIN: the worker did not come to it; or what the engine said.
 * Then some may have been done. A worker that is not there yet needs nothing. */
RWY_MUST_CHECK int gw_delta_send(struct gw_app *app, unsigned worker, const struct gw_delta *f);
/* Every tenant of `s` on an engine that does not run yet. */
RWY_MUST_CHECK int gw_delta_apply_all(
    const struct gw_app *app, struct eng *e, const struct tenant_set *s, rwy_time now);
/* Every tenant of `s` at a worker once more. */
RWY_MUST_CHECK int gw_delta_send_all(struct gw_app *app, unsigned worker, const struct tenant_set *s);
/* This worker's engine as `s` says, whatever it was told before. */
RWY_MUST_CHECK int gw_delta_resync(struct gw_app *app, unsigned worker, const struct tenant_set *s);

/* Takes removed tenants from a worker's engine and hosts table. Marks in t->clean those that are gone, goes
 * on until `end`. RWY_EAGAIN: the worker did not come to it. */
RWY_MUST_CHECK int gw_retired_clean(
    struct gw_app *app, unsigned worker, const uint32_t *index, unsigned n, rwy_time end);

/* --- tenants_worker.c ------------------------------------------------------------------------ */

/* The oldest generation that the worker may read; UINT64_MAX: it is not there. */
uint64_t gw_tenants_worker_gen(const struct gw_app *app, unsigned worker);
void gw_tenants_worker_wake(struct gw_app *app, unsigned worker);
/* On the worker's thread: gw_hosts_clear. */
bool gw_tenants_worker_clear(struct gw_app *app, unsigned worker, uint32_t index);

#endif
