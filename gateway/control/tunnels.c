/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the set of tunnels: check, build, publish, tell the workers, clean up. tunnels_merge.c
 * merges both sides, tunnels_worker.c changes a worker.
 */
#include "gateway/carrier/carrier.h"
#include "gateway/control/tunnels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gateway/control/change_lock.h"
#include "gateway/control/tunnels_int.h"
#include "gateway/keys/keys.h"
#include "gateway/offload/queues.h"

/* --- changes --------------------------------------------------------------------------------- */

struct change {
	struct gw_app *app;
	const struct conf *c;                        /* every tunnel at its number */
	uint64_t next, own, added, removed, retuned; /* sets of tunnels */
	bool tenants;                                /* c contains tenants */
	struct gw_cert **cert;                       /* as in gw_network_apply */
	struct gw_network_done *done;
	struct conf_error *err;
};

static int err_change(const struct change *x, int rc, const char *fmt, const char *name)
{
	*x->err = (struct conf_error){0};
	snprintf(x->err->msg, sizeof(x->err->msg), fmt, name);
	return rc;
}

static void change_plan(struct change *x)
{
	const struct conf *now = x->app->conf;

	x->removed = x->app->tunnels->there;
	for (unsigned i = 0; i < x->c->tunnels; i++) {
		const struct conf_tunnel *t = &x->c->tunnel[i];
		const uint64_t bit = (uint64_t)1 << i;

		if (!*t->name)
			continue;
		x->next |= bit;
		if (!(x->app->tunnels->there & bit)) {
			x->added |= bit;
			continue;
		}
		x->removed &= ~bit;
		if (!gw_tunnel_same(now, &now->tunnel[i], t))
			x->retuned |= bit;
	}
	x->done->added = (unsigned)__builtin_popcountll(x->added);
	x->done->removed = (unsigned)__builtin_popcountll(x->removed);
	x->done->changed = (unsigned)__builtin_popcountll(x->retuned);
	x->done->same = (unsigned)__builtin_popcountll(x->next) - x->done->added - x->done->changed;
}

/* Begins to remove tunnels from every engine. */
static void tunnels_remove(struct gw_app *app, uint64_t set)
{
	struct gw_tunnels *g = app->tunnels;
	uint64_t all = set;

	if (!set)
		return;
	for (unsigned w = 0; w < app->workers; w++) {
		uint64_t detached;

		/* When a worker hangs, the tick tries again. */
		if (gw_tunnels_detach(app, w, set & ~g->detached[w], &detached) == 0)
			g->detached[w] |= detached;
		all &= g->detached[w];
	}
	for (unsigned w = 0; w < app->workers; w++)
		g->detached[w] &= ~all;
	atomic_store(&g->removing, (atomic_load(&g->removing) | set) & ~all);
}

/* Builds new tunnels in every engine; nothing uses them yet. */
static int tunnels_build(const struct change *x)
{
	struct gw_app *app = x->app;

	for (unsigned i = 0; i < x->c->tunnels; i++)
		for (unsigned w = 0; (x->added >> i & 1) && w < app->workers; w++) {
			const int rc = gw_tunnel_build(app, w, x->c, i);

			if (!rc)
				continue;
			tunnels_remove(app, x->added);
			return err_change(x, rc,
			    rc == RWY_ENOMEM ? "tunnel %s: out of memory"
			                     : "tunnel %s: a worker does not take it: try again",
			    x->c->tunnel[i].name);
		}
	return 0;
}

static void publish(struct gw_app *app, const struct conf_tunnel *t, unsigned n)
{
	struct gw_tunnels *g = app->tunnels;

	pthread_rwlock_wrlock(&g->lock);
	memcpy(g->conf->tunnel, t, sizeof(g->conf->tunnel));
	g->conf->tunnels = n;
	pthread_rwlock_unlock(&g->lock);
}

/* Applies the tenants to the new set of tunnels; withdraws the published set when they do not
 * fit. */
static int tenants_apply(const struct change *x, const struct conf_tunnel *was, unsigned wases)
{
	struct gw_app *app = x->app;
	int rc;

	publish(app, x->c->tunnel, x->c->tunnels);
	if (!x->tenants)
		rc = gw_tenants_tunnels(app, x->err);
	else
		rc = gw_tenants_replace_all(app, x->c->tenant, x->c->tenants, &x->done->tenants, x->err);
	if (rc) {
		publish(app, was, wases);
		tunnels_remove(app, x->added);
	}
	return rc;
}

/* Applies rates and prefixes. The change stands: the tick repeats it for a late worker. */
static void tunnels_tune(const struct change *x)
{
	struct gw_app *app = x->app;

	for (unsigned w = 0; w < app->workers; w++) {
		const int rc = gw_tunnels_set(app, w, x->c);

		app->tunnels->stale[w] = rc != 0;
		if (rc)
			gw_log(GW_LOG_WARNING, "tunnel", "worker=%u is not told of a change yet: %s", w,
			    strerror(-rc));
	}
	if (x->added)
		gw_tenants_shares(app);
}

/* A tunnel stays, with another carrier or other detours. */
static void carrier_retune(
    struct gw_app *app, unsigned i, const struct conf_tunnel *was, const struct conf_tunnel *t)
{
	char why[160];

	if (was->carrier != t->carrier &&
	    gw_carrier_set(app, i, (enum wan_carrier)t->carrier, why, sizeof(why)) != 0)
		gw_log(GW_LOG_WARNING, "carrier", "tunnel=%s %s", t->name, why);
	if ((was->detour != t->detour || was->detour_after != t->detour_after) &&
	    gw_carrier_detour(app, i, (enum wan_carrier)t->detour, t->detour_after, why, sizeof(why)) != 0)
		gw_log(GW_LOG_WARNING, "carrier", "tunnel=%s detour: %s", t->name, why);
}

/*
 * The file's certificates are the gateway's, before a carrier of a new tunnel asks for them. The
 * names of these files are part of each configuration that is checked later; other keys of `keys`
 * change only with a restart.
 */
static void certificates_take(const struct change *x)
{
	struct gw_tunnels *g = x->app->tunnels;
	struct conf_tunnel_keys now;

	if (!x->cert)
		return;
	gw_keys_take(x->app, x->c, *x->cert);
	*x->cert = NULL;
	now = x->c->keys;
	now.alg = g->conf->keys.alg;
	now.rekey = g->conf->keys.rekey;
	now.lifetime = g->conf->keys.lifetime;
	pthread_rwlock_wrlock(&g->lock);
	g->conf->keys = now;
	pthread_rwlock_unlock(&g->lock);
}

static void keys_and_carrier(const struct change *x, unsigned i, const struct conf_tunnel *t)
{
	(void)!gw_keys_tunnel(x->app, i, t);
	(void)!gw_carrier_tunnel(x->app, i, t);
}

/*
 * Applies keys and carriers. A carrier that is impossible is logged and shown, and the tunnel is
 * native. What is removed goes first: a new tunnel may use its ports and addresses.
 */
static void carriers_apply(const struct change *x, const struct conf_tunnel *was)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (x->removed >> i & 1)
			keys_and_carrier(x, i, NULL);
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		const struct conf_tunnel *t = &x->c->tunnel[i];

		if (x->added >> i & 1)
			keys_and_carrier(x, i, t);
		else if (x->retuned >> i & 1)
			carrier_retune(x->app, i, &was[i], t);
	}
}

static int change_commit(struct change *x)
{
	struct gw_tunnels *g = x->app->tunnels;
	struct conf_tunnel *was = malloc(sizeof(g->conf->tunnel));
	const unsigned wases = g->conf->tunnels;
	int rc;

	if (!was)
		return err_change(x, RWY_ENOMEM, "out of memory%s", "");
	memcpy(was, g->conf->tunnel, sizeof(g->conf->tunnel));
	rc = tunnels_build(x);
	if (!rc)
		rc = tenants_apply(x, was, wases);
	if (!rc) {
		certificates_take(x);
		carriers_apply(x, was);
	}
	free(was);
	if (rc)
		return rc;
	g->there = x->next;
	g->of_controller = x->next & ~x->own;
	if (x->added | x->removed | x->retuned)
		tunnels_tune(x);
	tunnels_remove(x->app, x->removed);
	gw_queue_rules_follow(x->app);
	return 0;
}

/* Engines know the tunnel of a pair by its number, from their start. */
static int pair_check(const struct change *x)
{
	const int was = conf_standby(x->app->conf), will = conf_standby(x->c);

	if (was == will && (was < 0 || !(x->removed >> was & 1 || x->added >> was & 1)) &&
	    (was < 0 || gw_tunnel_same_ends(x->app->conf, &x->app->conf->tunnel[was], &x->c->tunnel[was])))
		return 0;
	return err_change(x, RWY_EINVAL,
	    "tunnel %s leads to the other gateway of a pair: it changes only with a restart",
	    was >= 0 ? x->app->conf->tunnel[was].name : x->c->tunnel[will].name);
}

static int change_run(struct change *x)
{
	rwy_time start = gw_now();
	int rc;

	change_plan(x);
	rc = pair_check(x);
	if (!rc)
		rc = change_commit(x);
	x->done->took = rwy_since(start, gw_now());
	return rc;
}

/* --- changes by one side ---------------------------------------------------------------------- */

static int names_note(struct gw_tunnels *g, const struct conf_tenant *t, unsigned n)
{
	char(*more)[TENANT_NAME_MAX] = malloc((n ? n : 1) * sizeof(*more));

	if (!more)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < n; i++)
		snprintf(more[i], sizeof(more[i]), "%s", t[i].cfg.name);
	qsort(more, n, sizeof(*more), gw_tunnels_by_name);
	pthread_rwlock_wrlock(&g->lock);
	free(g->tenant);
	g->tenant = more;
	g->tenants = n;
	pthread_rwlock_unlock(&g->lock);
	return 0;
}

int gw_network_apply(struct gw_app *app, struct conf *c, enum gw_side side, struct gw_cert **cert,
    struct gw_network_done *done, struct conf_error *err)
{
	struct change x = {.app = app, .c = c, .tenants = true, .cert = cert, .done = done, .err = err};
	const unsigned said = c->tenants;
	int rc;

	*done = (struct gw_network_done){0};
	rc = gw_tunnels_merge(app, c, side, &x.own, err);
	if (!rc)
		rc = conf_tunnels_check(c, err);
	if (!rc)
		rc = gw_tunnels_number(app, c, &x.own, err);
	if (!rc)
		rc = change_run(&x);
	if (!rc && side == GW_SIDE_CONTROLLER && names_note(app->tunnels, c->tenant, said) != 0)
		gw_log(GW_LOG_ERROR, "tunnel",
		    "out of memory: tenants of the control center are now the gateway's own");
	return rc;
}

/* Copies all running tunnels, to change one of them. */
static struct conf *running_copy(const struct gw_app *app)
{
	struct conf *c = conf_network_new(app->conf);

	if (!c)
		return NULL;
	memcpy(c->tunnel, app->conf->tunnel, sizeof(c->tunnel));
	c->tunnels = app->conf->tunnels;
	return c;
}

static int apply_copy(
    struct gw_app *app, struct conf *c, uint64_t own, struct gw_network_done *done, struct conf_error *err)
{
	struct change x = {.app = app, .c = c, .own = own, .done = done, .err = err};
	int rc = conf_tunnels_check(c, err);

	return rc ? rc : change_run(&x);
}

static int err_tunnel(struct conf_error *err, int rc, const char *fmt, const char *name)
{
	*err = (struct conf_error){0};
	snprintf(err->msg, sizeof(err->msg), fmt, name);
	return rc;
}

int gw_tunnel_add(
    struct gw_app *app, const struct conf_tunnel *t, struct gw_network_done *done, struct conf_error *err)
{
	const uint64_t busy = app->tunnels->there | atomic_load(&app->tunnels->removing);
	struct conf *c;
	unsigned at;
	int rc;

	*done = (struct gw_network_done){0};
	if (gw_tunnel_find(app, t->name) >= 0)
		return err_tunnel(err, RWY_EEXIST, "tunnel %s is there already", t->name);
	if (busy == UINT64_MAX)
		return err_tunnel(
		    err, RWY_EAGAIN, "%s: too many tunnels, with those that are being removed", t->name);
	c = running_copy(app);
	if (!c)
		return err_tunnel(err, RWY_ENOMEM, "%s: out of memory", t->name);
	at = (unsigned)__builtin_ctzll(~busy);
	c->tunnel[at] = *t;
	if (c->tunnels <= at)
		c->tunnels = at + 1;
	rc = apply_copy(
	    app, c, (app->tunnels->there & ~app->tunnels->of_controller) | (uint64_t)1 << at, done, err);
	conf_free(c);
	return rc;
}

/* Returns the number of a tunnel that the local API may change. */
static int own_find(const struct gw_app *app, const char *name, struct conf_error *err)
{
	const int at = gw_tunnel_find(app, name);

	if (at < 0)
		return err_tunnel(err, RWY_ENOENT, "no tunnel %s", name);
	if (gw_tunnel_side(app, (unsigned)at) == GW_SIDE_CONTROLLER)
		return err_tunnel(err, RWY_EEXIST, "tunnel %s is the control center's", name);
	return at;
}

int gw_tunnel_set(
    struct gw_app *app, const struct conf_tunnel *t, struct gw_network_done *done, struct conf_error *err)
{
	const int at = own_find(app, t->name, err);
	struct conf *c;
	int rc;

	*done = (struct gw_network_done){0};
	if (at < 0)
		return at;
	if (!gw_tunnel_same_ends(app->conf, &app->conf->tunnel[at], t))
		return err_tunnel(err, RWY_EINVAL,
		    "tunnel %s: only rate, carrier, detour, DSCP, thresholds, prefixes and paths that are "
		    "no narrower can change; for others remove and add it",
		    t->name);
	c = running_copy(app);
	if (!c)
		return err_tunnel(err, RWY_ENOMEM, "%s: out of memory", t->name);
	c->tunnel[at] = *t;
	rc = apply_copy(app, c, app->tunnels->there & ~app->tunnels->of_controller, done, err);
	conf_free(c);
	return rc;
}

int gw_tunnel_del(struct gw_app *app, const char *name, struct gw_network_done *done, struct conf_error *err)
{
	const int at = own_find(app, name, err);
	char user[TENANT_NAME_MAX];
	struct conf *c;
	int rc;

	*done = (struct gw_network_done){0};
	if (at < 0)
		return at;
	if (gw_tenants_use(app, (unsigned)at, user)) {
		rc = err_tunnel(err, RWY_EEXIST, "tenant %s has prefixes behind it", user);
		return rc;
	}
	c = running_copy(app);
	if (!c)
		return err_tunnel(err, RWY_ENOMEM, "%s: out of memory", name);
	memset(&c->tunnel[at], 0, sizeof(c->tunnel[at]));
	while (c->tunnels && !*c->tunnel[c->tunnels - 1].name)
		c->tunnels--;
	rc = apply_copy(app, c, app->tunnels->there & ~app->tunnels->of_controller, done, err);
	conf_free(c);
	return rc;
}

/* --- once a second --------------------------------------------------------------------------- */

void gw_tunnels_tick(struct gw_app *app)
{
	struct gw_tunnels *g = app->tunnels;

	if (!g || !gw_change_trylock())
		return; /* the thread that holds the lock does the work, or the next tick */
	tunnels_remove(app, atomic_load(&g->removing));
	for (unsigned w = 0; w < app->workers; w++)
		if (g->stale[w] && gw_tunnels_set(app, w, app->conf) == 0)
			g->stale[w] = false;
	gw_change_unlock();
}

/* --- creation -------------------------------------------------------------------------------- */

int gw_tunnels_new(struct gw_app *app, struct conf *conf, unsigned own_tunnels, unsigned own_tenants)
{
	struct gw_tunnels *g = calloc(1, sizeof(*g));
	const unsigned theirs = conf->tenants - own_tenants;

	if (!g)
		return RWY_ENOMEM;
	pthread_rwlock_init(&g->lock, NULL);
	g->conf = conf;
	for (unsigned i = 0; i < conf->tunnels; i++) {
		g->there |= (uint64_t)1 << i;
		if (i >= own_tunnels)
			g->of_controller |= (uint64_t)1 << i;
	}
	if (names_note(g, theirs ? &conf->tenant[own_tenants] : NULL, theirs) != 0) {
		free(g);
		return RWY_ENOMEM;
	}
	app->tunnels = g;
	return 0;
}

void gw_tunnels_free(struct gw_app *app)
{
	struct gw_tunnels *g = app->tunnels;

	if (!g)
		return;
	pthread_rwlock_destroy(&g->lock);
	free(g->tenant);
	free(g);
	app->tunnels = NULL;
}
