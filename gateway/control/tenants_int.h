/* SPDX-License-Identifier: Apache-2.0 */
/* Private to tenants*.c: the owner of the set, changes for engines, and the part of a worker that
 * only DPDK code sees. */
#ifndef GATEWAY_CONTROL_TENANTS_INT_H
#define GATEWAY_CONTROL_TENANTS_INT_H

#include <pthread.h>

#include "gateway/control/tenants.h"

struct gw_tenants {
	/* Held to change anything, and to read data that a change could free. */
	pthread_mutex_t lock;
	struct tenant_db *db;
	/* the generation published last; its token (gateway/publish.h) */
	uint64_t published, token;
	uint64_t running; /* every worker runs this generation or a later one */
	/* this worker's engine may not be as the set says: it was not reached */
	bool stale[GW_WORKERS_MAX];
	/* by index of a removed tenant: set of workers with nothing left of it */
	uint64_t *clean;
	uint32_t *retired; /* indices of removed tenants, until they are released */
	unsigned retired_n;
};

/* tenants.c: publishes the db's present set. Under the lock. */
void gw_tenants_publish(struct gw_app *app);

/* One transaction's input and where its complaint goes. */
struct gw_txn_input {
	struct gw_app *app;
	const struct conf_tenant *t;
	unsigned n;
	struct conf_error *err;
};

/* --- tenants_err.c: fill *a->err; those with an rc return it ---------------------------------- */

/* Sets the place of t in the file; NULL: no place. */
void gw_txn_err_locate(const struct gw_txn_input *a, const struct conf_tenant *t);
int gw_txn_err_tenant(const struct gw_txn_input *a, int rc, const struct tenant_err *te);
int gw_txn_err_memory(const struct gw_txn_input *a);
int gw_txn_err_worker(const struct gw_txn_input *a, unsigned worker, int rc);

/* --- tenants_tunnels.c ----------------------------------------------------------------------- */

/* Reads the configured capacities of the tunnels. */
void gw_tenants_limits(const struct gw_app *app, struct tenant_limits *lim);

/* --- tenants_eng.c: lists of changes for engines ---------------------------------------------- */

struct gw_delta_op {
	uint32_t index;
	bool remove;
	/* VNI to use while the tenant's own still belongs to another one; 0: that is an error */
	uint32_t park_vni;
	uint32_t memory_ppm;       /* reserved part of the engine's custody memory */
	struct eng_tenant_cfg cfg; /* the list owns the memory of prefix and mode */
	struct eng_mode mode[ENG_MODES_MAX];
};
struct gw_delta {
	struct gw_delta_op *op;
	unsigned n, max;
	struct eng_prefix *prefix;
	size_t prefixes, prefixes_max;
};

/* The changes from one set to another, and back. */
struct gw_plan {
	struct gw_delta forth, back;
	unsigned added, changed, removed, same;
};
/* RWY_ENOMEM. gw_plan_free() frees the lists. */
RWY_MUST_CHECK int gw_plan_new(
    struct gw_plan *p, const struct gw_app *app, const struct tenant_set *old, const struct tenant_set *next);
void gw_plan_free(struct gw_plan *p);

/* Applies the list at a worker, in steps. RWY_EAGAIN: the worker did not answer; or an error of the
 * engine. After an error a part may have been applied. A worker that does not exist yet needs
 * nothing. */
RWY_MUST_CHECK int gw_delta_send(struct gw_app *app, unsigned worker, const struct gw_delta *f);
/* Applies every tenant of `s` to an engine that does not run yet. */
RWY_MUST_CHECK int gw_delta_apply_all(
    const struct gw_app *app, struct eng *e, const struct tenant_set *s, rwy_time now);
/* Applies every tenant of `s` at a worker once more. */
RWY_MUST_CHECK int gw_delta_send_all(struct gw_app *app, unsigned worker, const struct tenant_set *s);
/* Makes this worker's engine equal to `s`, whatever it had before. */
RWY_MUST_CHECK int gw_delta_resync(struct gw_app *app, unsigned worker, const struct tenant_set *s);

/* Removes retired tenants from a worker's engine and host table until `end`. Marks in t->clean
 * those that are removed completely. RWY_EAGAIN: the worker did not answer. */
RWY_MUST_CHECK int gw_retired_clean(
    struct gw_app *app, unsigned worker, const uint32_t *index, unsigned n, rwy_time end);

/* --- tenants_worker.c ------------------------------------------------------------------------ */

/* On the worker's thread: gw_hosts_clear. */
bool gw_tenants_worker_clear(struct gw_app *app, unsigned worker, uint32_t index);

#endif
