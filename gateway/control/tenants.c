/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the set of tenants: check, tell the engines, publish, wait, clean up. tenants_eng.c
 * makes the changes for engines; tenants_info.c is for the API.
 */
#include "gateway/control/tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gateway/offload/offload.h"
#include "gateway/control/tenants_int.h"

#define RETIRED_TURN 256           /* removed tenants looked at in one go */
#define TICK_TIME    (20 * RWY_MS) /* of the control thread, a worker */

/* --- generations ----------------------------------------------------------------------------- */

/* Under the lock. */
static uint64_t generation_running(struct gw_app *app)
{
	struct gw_tenants *g = app->tenants;

	if (g->running < g->published && gw_publish_passed(app->publisher, g->token))
		g->running = g->published;
	return g->running;
}

void gw_tenants_publish(struct gw_app *app)
{
	struct gw_tenants *g = app->tenants;
	const struct tenant_set *s = tenant_db_current(g->db);

	(void)generation_running(app); /* of the generation before: its token goes */
	g->token = gw_publish(app->publisher, GW_TENANTS, s, NULL);
	g->published = s->generation;
}

void gw_tenants_generation(struct gw_app *app, uint64_t *published, uint64_t *running)
{
	struct gw_tenants *g = app->tenants;

	pthread_mutex_lock(&g->lock);
	*published = g->published;
	*running = generation_running(app);
	pthread_mutex_unlock(&g->lock);
}

static void quiesced(struct gw_app *app)
{
	tenant_db_quiesced(app->tenants->db, generation_running(app));
}

/* --- steps of a change, in order -------------------------------------------------------------- */

/* Updates workers that an earlier change did not reach. */
static int stale_resync(const struct gw_txn_input *a)
{
	struct gw_tenants *g = a->app->tenants;

	for (unsigned i = 0; i < a->app->workers; i++) {
		int rc = g->stale[i] ? gw_delta_resync(a->app, i, tenant_db_current(g->db)) : 0;

		if (rc)
			return gw_txn_err_worker(a, i, rc);
		g->stale[i] = false;
	}
	return 0;
}

/* Clears the counts of indices that are used from now on. */
static void counts_clear(struct gw_app *app, const struct tenant_set *next)
{
	const struct tenant_set *old = tenant_db_current(app->tenants->db);

	for (uint32_t i = 1; i < next->top; i++)
		if (tenant_by_index(next, i) && !tenant_by_index(old, i))
			for (unsigned w = 0; w < app->workers; w++)
				memset(&app->tenant_count[w][i], 0, sizeof(struct gw_tenant_count));
}

static int engines_update(const struct gw_txn_input *a, const struct gw_plan *p)
{
	struct gw_app *app = a->app;
	int rc = 0;
	unsigned w;

	for (w = 0; w < app->workers && !rc; w++)
		rc = gw_delta_send(app, w, &p->forth);
	if (!rc)
		return 0;
	(void)gw_txn_err_worker(a, w - 1, rc);
	while (w--)
		if (gw_delta_send(app, w, &p->back) != 0)
			app->tenants->stale[w] = true;
	return rc;
}

/* Packets of removed tenants are refused by now: engines begin to remove their connections and free
 * their VNIs. */
static void removed_begin(struct gw_app *app, const uint32_t *removed, unsigned n)
{
	struct gw_tenants *g = app->tenants;

	for (unsigned w = 0; n && w < app->workers; w++)
		if (gw_retired_clean(app, w, removed, n, UINT64_MAX) != 0)
			g->stale[w] = true;
}

/* Hardware stops what the next set forbids. */
static int hardware_prepare(const struct gw_txn_input *a, const struct tenant_set *next)
{
	char why[OFFLOAD_WHY];
	int rc = a->app->offload_hooks ? a->app->offload_hooks->prepare(a->app, next, why) : 0;

	if (rc) {
		gw_txn_err_locate(a, NULL);
		snprintf(a->err->msg, sizeof(a->err->msg), "%s: try again", why);
	}
	return rc;
}

/* Ends the transaction, successful or not. */
static int commit(const struct gw_txn_input *a, struct tenant_txn *x, struct gw_tenants_done *done)
{
	struct gw_app *app = a->app;
	struct gw_tenants *g = app->tenants;
	const struct tenant_set *old = tenant_db_current(g->db), *next;
	unsigned before = g->retired_n;
	struct tenant_err te;
	struct gw_plan p;
	int rc = tenant_txn_prepare(x, &next, &te);

	if (rc) {
		(void)gw_txn_err_tenant(a, rc, &te);
		goto abort;
	}
	rc = gw_plan_new(&p, app, old, next);
	if (rc) {
		(void)gw_txn_err_memory(a);
		goto abort;
	}
	*done = (struct gw_tenants_done){
	    .added = p.added, .changed = p.changed, .removed = p.removed, .same = p.same};
	done->generation = old->generation;
	if (!p.added && !p.changed && !p.removed) {
		gw_plan_free(&p);
		goto abort; /* nothing to do is no failure: rc is 0 */
	}
	counts_clear(app, next);
	rc = hardware_prepare(a, next);
	if (!rc)
		rc = engines_update(a, &p);
	gw_plan_free(&p);
	if (rc)
		goto back;
	for (uint32_t i = 1; i < old->top; i++)
		if (tenant_by_index(old, i) && !tenant_by_index(next, i))
			g->retired[g->retired_n++] = i;
	rc = tenant_txn_commit(x, &next, &te);
	if (rc) { /* impossible: it was prepared */
		g->retired_n = before;
		(void)gw_txn_err_tenant(a, rc, &te);
		goto back;
	}
	done->generation = next->generation;
	gw_tenants_publish(app);
	if (gw_publish_wait(app->publisher, g->token, GW_TAKE_UP_WAIT)) {
		if (app->offload_hooks)
			app->offload_hooks->commit(app);
	} else
		gw_log(GW_LOG_WARNING, "tenant", "generation=%lu is published, but a worker does not run it",
		    (unsigned long)next->generation);
	removed_begin(app, g->retired + before, g->retired_n - before);
	quiesced(app);
	return 0;
back:
	if (app->offload_hooks)
		app->offload_hooks->back(app, old);
abort:
	tenant_txn_abort(x);
	return rc;
}

/* --- transactions ---------------------------------------------------------------------------- */

static int admissible(const struct gw_txn_input *a, const struct conf_tenant *t)
{
	if (t->cfg.vni)
		return 0;
	gw_txn_err_locate(a, t);
	snprintf(a->err->msg, sizeof(a->err->msg),
	    "tenant %.31s: needs a VNI: between gateways a tenant is known by it", t->cfg.name);
	return RWY_EINVAL;
}

enum change { ADD, SET, REPLACE };

static int txn_fill(const struct gw_txn_input *a, struct tenant_txn *x, enum change what)
{
	struct tenant_err te;
	int rc = 0;

	if (what == REPLACE)
		tenant_txn_clear(x);
	for (unsigned i = 0; i < a->n && !rc; i++) {
		rc = admissible(a, &a->t[i]);
		if (rc)
			break;
		rc =
		    what == SET ? tenant_txn_set(x, &a->t[i].cfg, &te) : tenant_txn_add(x, &a->t[i].cfg, &te);
		if (rc)
			(void)gw_txn_err_tenant(a, rc, &te);
	}
	return rc;
}

static int change_run(
    const struct gw_txn_input *a, enum change what, const char *del, struct gw_tenants_done *done)
{
	struct gw_tenants *g = a->app->tenants;
	rwy_time start = gw_now();
	struct tenant_txn *x;
	struct tenant_err te;
	int rc;

	*a->err = (struct conf_error){0};
	*done = (struct gw_tenants_done){0};
	pthread_mutex_lock(&g->lock);
	rc = stale_resync(a);
	if (!rc && tenant_txn_begin(&x, g->db) != 0)
		rc = gw_txn_err_memory(a);
	if (!rc) {
		if (!del)
			rc = txn_fill(a, x, what);
		else if ((rc = tenant_txn_del(x, del, &te)) != 0)
			(void)gw_txn_err_tenant(a, rc, &te);
		if (rc)
			tenant_txn_abort(x);
		else
			rc = commit(a, x, done);
	}
	pthread_mutex_unlock(&g->lock);
	done->took = rwy_since(start, gw_now());
	return rc;
}

int gw_tenant_add(
    struct gw_app *app, const struct conf_tenant *t, struct gw_tenants_done *done, struct conf_error *err)
{
	return change_run(&(struct gw_txn_input){app, t, 1, err}, ADD, NULL, done);
}

int gw_tenant_set(
    struct gw_app *app, const struct conf_tenant *t, struct gw_tenants_done *done, struct conf_error *err)
{
	return change_run(&(struct gw_txn_input){app, t, 1, err}, SET, NULL, done);
}

int gw_tenant_del(struct gw_app *app, const char *name, struct gw_tenants_done *done, struct conf_error *err)
{
	return change_run(&(struct gw_txn_input){app, NULL, 0, err}, ADD, name, done);
}

int gw_tenants_replace(struct gw_app *app, const struct conf_tenant *t, unsigned n,
    struct gw_tenants_done *done, struct conf_error *err)
{
	return change_run(&(struct gw_txn_input){app, t, n, err}, REPLACE, NULL, done);
}

/* --- once a second --------------------------------------------------------------------------- */

/* Processes some of the removed tenants, another part each time. */
static void retired_release(struct gw_app *app)
{
	struct gw_tenants *g = app->tenants;
	uint64_t all = app->workers < 64 ? ((uint64_t)1 << app->workers) - 1 : UINT64_MAX;
	unsigned n = g->retired_n < RETIRED_TURN ? g->retired_n : RETIRED_TURN, kept = 0,
	         rest = g->retired_n - n;
	uint32_t turn[RETIRED_TURN];

	for (unsigned w = 0; w < app->workers; w++)
		if (gw_retired_clean(app, w, g->retired, n, gw_now() + TICK_TIME) != 0)
			return; /* the worker hangs: try later */
	for (unsigned i = 0; i < n; i++) {
		uint32_t idx = g->retired[i];

		if (g->clean[idx] == all && tenant_db_release(g->db, idx) == 0)
			g->clean[idx] = 0;
		else
			turn[kept++] = idx;
	}
	memmove(g->retired, g->retired + n, rest * sizeof(*g->retired));
	memcpy(g->retired + rest, turn, kept * sizeof(*turn));
	g->retired_n = rest + kept;
}

void gw_tenants_tick(struct gw_app *app)
{
	struct gw_tenants *g = app->tenants;

	if (pthread_mutex_trylock(&g->lock) != 0)
		/* who changes something takes its time; frames for the kernel do not wait for it */
		return;
	quiesced(app);
	for (unsigned w = 0; w < app->workers && g->running == g->published; w++)
		if (g->stale[w] && gw_delta_resync(app, w, tenant_db_current(g->db)) == 0)
			g->stale[w] = false;
	if (g->retired_n)
		retired_release(app);
	pthread_mutex_unlock(&g->lock);
}
