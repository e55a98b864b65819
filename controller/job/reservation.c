/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels in networks and their records; see reservation.h. */
#include "controller/job/reservation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/network.h"
#include "controller/job/react.h"
#include "controller/state/change.h"
#include "controller/state/event.h"

#define PAUSE_MIN RWY_SEC
#define PAUSE_MAX (60 * RWY_SEC)

/* --- locks ------------------------------------------------------------------------------------ */

static struct ctlr_reservation *reservation_need(struct ctlr *c, const char *job)
{
	return CTLR_MAP_NEED(&c->reservations, struct ctlr_reservation, job, job);
}

static void reservation_free(struct ctlr *c, struct ctlr_reservation *g)
{
	ctlr_map_del(&c->reservations, &g->node);
	json_decref(g->tunnels);
	free(g);
}

static void drop_unused(struct ctlr *c, struct ctlr_reservation *g)
{
	if (!g->mod_rev && !g->by && !g->settling && !g->touched)
		reservation_free(c, g);
}

static bool locked_elsewhere(const struct ctlr *c, const struct ctlr_reservation *g)
{
	return g->mod_rev && strcmp(g->owner, c->conf->name) != 0;
}

bool ctlr_reservation_locked(struct ctlr *c, const char *job, const void *by)
{
	const struct ctlr_reservation *g = ctlr_map_find(&c->reservations, job);

	return g && ((g->by && g->by != by) || g->settling || g->changing || locked_elsewhere(c, g));
}

bool ctlr_reservation_lock(struct ctlr *c, const char *job, const void *by)
{
	struct ctlr_reservation *g = reservation_need(c, job);

	if (g)
		g->by = by;
	return g;
}

void ctlr_reservation_unlock(struct ctlr *c, const char *job, const void *by)
{
	struct ctlr_reservation *g = ctlr_map_find(&c->reservations, job);

	if (!g || g->by != by)
		return;
	g->by = NULL;
	g->at = 0;
	drop_unused(c, g);
}

/* --- tunnels of records ----------------------------------------------------------------------- */

static bool same_tunnel(const json_t *a, const json_t *b)
{
	return !strcmp(mdl_text_of(a, "provider"), mdl_text_of(b, "provider")) &&
	       !strcmp(mdl_text_of(a, "name"), mdl_text_of(b, "name"));
}

static bool is_listed(const json_t *list, const json_t *one)
{
	size_t i;
	json_t *t;

	json_array_foreach((json_t *)(uintptr_t)list, i, t) if (same_tunnel(t, one)) return true;
	return false;
}

/* A tunnel of a job may have legs at several providers: lists one entry for each. */
static void list_record(json_t *list, const json_t *record)
{
	json_t *network = json_object_get(record, "network"), *n, *leg;
	size_t i, k;

	json_array_foreach(network, i, n)
	{
		json_array_foreach(json_object_get(n, "legs"), k, leg)
		{
			json_t *one = json_pack("{s:O, s:O, s:O, s:O}", "provider",
			    json_object_get(leg, "provider"), "name", json_object_get(n, "name"), "first",
			    json_object_get(n, "first"), "second", json_object_get(n, "second"));

			if (one && !is_listed(list, one))
				json_array_append(list, one);
			json_decref(one);
		}
	}
}

json_t *ctlr_reservation_tunnels(struct ctlr *c, const char *job, const json_t *record)
{
	const struct ctlr_reservation *g = ctlr_map_find(&c->reservations, job);
	json_t *list = g && g->tunnels ? json_copy(g->tunnels) : json_array();

	list_record(list, record);
	return list;
}

json_t *ctlr_reservation_without(const json_t *tunnels, const json_t *record)
{
	json_t *has = json_array(), *out = json_array(), *t;
	size_t i;

	list_record(has, record);
	json_array_foreach((json_t *)(uintptr_t)tunnels, i, t) if (!is_listed(has, t))
	    json_array_append(out, t);
	json_decref(has);
	return out;
}

static void reservation_key(char key[STORE_KEY_MAX], const char *job)
{
	snprintf(key, STORE_KEY_MAX, "reservation/%.31s", job);
}

void ctlr_reservation_put(struct ctlr *c, struct ctlr_change *ch, const char *job, json_t *tunnels)
{
	const struct ctlr_reservation *g = ctlr_map_find(&c->reservations, job);
	const uint64_t rev = g ? g->mod_rev : 0;
	char key[STORE_KEY_MAX];

	reservation_key(key, job);
	ctlr_change_cmp(ch, key, rev);
	if (json_array_size(tunnels))
		ctlr_change_put(ch, key, json_pack("{s:s, s:O}", "owner", c->conf->name, "tunnels", tunnels));
	else if (rev)
		ctlr_change_del(ch, key);
	json_decref(tunnels);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void call_leg(struct ctlr_network_call *call, const json_t *leg)
{
	const unsigned n = call->placement.n;
	struct plan_route *r = &call->route[n];

	if (n == PLAN_ROUTES_MAX)
		return;
	snprintf(r->edge, sizeof(r->edge), "%s", mdl_text_of(leg, "edge"));
	snprintf(r->name, sizeof(r->name), "%s", mdl_text_of(leg, "path"));
	call->placement.leg[n] = (struct plan_leg_share){(uint16_t)n, mdl_number_of(leg, "bandwidth_bps")};
	call->placement.n++;
}

struct ctlr_network_call *ctlr_reservation_call(struct ctlr *c, unsigned net, const char *name,
    const char *first, const char *second, const json_t *record)
{
	struct ctlr_network_call *call = ctlr_network_call_new(NETWORK_MAKE, net, name, first, second);
	json_t *n, *leg;
	size_t i, k;

	if (!call)
		return NULL;
	json_array_foreach(json_object_get(record, "network"), i, n)
	{
		if (strcmp(mdl_text_of(n, "name"), name) != 0)
			continue;
		call->placement.shape =
		    strcmp(mdl_text_of(n, "shape"), "multi-path") ? PLAN_SAME_PATH : PLAN_MULTI_PATH;
		json_array_foreach(json_object_get(n, "legs"), k,
		    leg) if (ctlr_network_find(c, mdl_text_of(leg, "provider")) == (int)net)
		    call_leg(call, leg);
	}
	if (!call->placement.n)
		call->what = NETWORK_DROP;
	return call;
}

/* --- settling --------------------------------------------------------------------------------- */

static void settle_end(struct ctlr *c, struct ctlr_reservation *g);

static void on_settled(struct ctlr *c, struct ctlr_network_call *call)
{
	struct ctlr_reservation *g = call->ctx;
	const struct ctlr_job *j = ctlr_map_find(&c->jobs, g->job);

	if (call->rc && call->what == NETWORK_MAKE && call->rc == PROVIDER_EREFUSED)
		ctlr_event(c, EVENT_ERROR, "job", g->job, "network %s no longer has its reservation: %s",
		    c->conf->provider[call->net].name, call->err.text);
	else if (call->rc)
		g->failed = true;
	else if (j && call->what == NETWORK_MAKE)
		(void)ctlr_legs_found(
		    c, j, c->conf->provider[call->net].name, call->name, NULL, PROVIDER_WHOLE);
	g->settling--;
	if (!g->settling)
		settle_end(c, g);
}

struct removal {
	struct ctlr *c;
	char job[MDL_NAME];
};

static void removal_done(void *ctx, int rc, uint64_t rev)
{
	struct removal *x = ctx;
	struct ctlr_reservation *g = ctlr_map_find(&x->c->reservations, x->job);

	if (g) {
		g->changing = false;
		g->touched &= rc != 0;
		g->at = rc ? ctlr_now() + RWY_SEC : 0;
		g->pause = rc ? g->pause : 0;
		drop_unused(x->c, g);
	}
	free(x);
}

/* Stores the record with these tunnels; without tunnels deletes it. */
static void rewrite_reservation(struct ctlr *c, struct ctlr_reservation *g, json_t *tunnels)
{
	struct removal *x = calloc(1, sizeof(*x));
	struct ctlr_change *ch = x ? ctlr_change_new(removal_done, x) : NULL;

	if (!ch) {
		free(x);
		json_decref(tunnels);
		g->at = ctlr_now() + RWY_SEC;
		return;
	}
	x->c = c;
	memcpy(x->job, g->job, sizeof(x->job));
	ctlr_reservation_put(c, ch, g->job, tunnels);
	g->changing = true;
	if (!ctlr_change_submit(c, ch))
		removal_done(x, RWY_ENOMEM, 0);
}

static void settle_end(struct ctlr *c, struct ctlr_reservation *g)
{
	if (!g->mod_rev)
		return; /* ctlr_reservation_tick() continues */
	if (!g->failed) {
		rewrite_reservation(c, g, NULL);
		return;
	}
	g->pause = !g->pause ? PAUSE_MIN : g->pause < PAUSE_MAX / 2 ? 2 * g->pause : PAUSE_MAX;
	g->at = ctlr_now() + g->pause;
}

static void settle_reservation(struct ctlr *c, struct ctlr_reservation *g)
{
	const struct ctlr_job *j = ctlr_map_find(&c->jobs, g->job);
	json_t *t;
	size_t i;

	g->failed = false;
	g->touched = true;
	g->settling = 1;
	json_array_foreach(g->tunnels, i, t)
	{
		const char *provider = mdl_text_of(t, "provider");
		const int net = ctlr_network_find(c, provider);
		struct ctlr_network_call *call;

		if (net < 0) {
			ctlr_event(c, EVENT_WARNING, "job", g->job,
			    "network %s is no longer in the configuration: its tunnel %s remains there",
			    provider, mdl_text_of(t, "name"));
			continue;
		}
		call = ctlr_reservation_call(c, (unsigned)net, mdl_text_of(t, "name"),
		    mdl_text_of(t, "first"), mdl_text_of(t, "second"), j ? j->json : NULL);
		if (call) {
			call->patient = true;
			call->done = on_settled;
			call->ctx = g;
		}
		if (call && ctlr_network_submit(c, call)) {
			g->settling++;
			continue;
		}
		ctlr_network_call_free(call);
		g->failed = true;
	}
	if (!--g->settling)
		settle_end(c, g);
}

/* The record was deleted while calls ran: a change whose answer was lost took effect, or another
 * replica was first. The tunnels of the job's present record are then settled again. */
static void overtaken(struct ctlr *c, struct ctlr_reservation *g)
{
	const struct ctlr_job *j = ctlr_map_find(&c->jobs, g->job);

	g->touched = false;
	if (j && json_array_size(json_object_get(j->json, "network")))
		rewrite_reservation(c, g, ctlr_reservation_tunnels(c, g->job, j->json));
	else
		drop_unused(c, g);
}

void ctlr_reservation_tick(struct ctlr *c, rwy_time now)
{
	struct ctlr_reservation *g, *next;

	for (g = ctlr_map_next(&c->reservations, NULL); g; g = next) {
		next = ctlr_map_next(&c->reservations, g);
		if (g->by || g->settling || g->changing || now < g->at)
			continue;
		if (!g->mod_rev && g->touched)
			overtaken(c, g);
		else if (!g->mod_rev)
			continue;
		else if (!locked_elsewhere(c, g))
			settle_reservation(c, g);
		else if (!ctlr_replica_alive(c, g->owner))
			/* this replica takes it over */
			rewrite_reservation(c, g, json_incref(g->tunnels));
	}
}

bool ctlr_reservation_again(struct ctlr *c, const char *job)
{
	const struct ctlr_job *j = ctlr_map_find(&c->jobs, job);
	struct ctlr_reservation *g;

	if (!j || !json_object_get(j->json, "network") || ctlr_reservation_locked(c, job, NULL))
		return false;
	g = reservation_need(c, job);
	if (g)
		rewrite_reservation(c, g, ctlr_reservation_tunnels(c, job, j->json));
	return g;
}

/* --- from the store --------------------------------------------------------------------------- */

/* The store may have a record of another version, or a foreign one. */
static bool record_ok(const json_t *record)
{
	json_t *tunnels = json_object_get(record, "tunnels"), *t;
	bool ok = json_is_string(json_object_get(record, "owner")) && json_is_array(tunnels);
	size_t i;

	json_array_foreach(tunnels, i, t) ok = ok && *mdl_text_of(t, "provider") && *mdl_text_of(t, "name") &&
	                                       *mdl_text_of(t, "first") && *mdl_text_of(t, "second");
	return ok;
}

void ctlr_reservation_apply(struct ctlr *c, const struct store_kv *kv, const char *job)
{
	json_t *record = kv->value ? json_loadb(kv->value, kv->len, 0, NULL) : NULL;
	struct ctlr_reservation *g;

	if (kv->value && !record_ok(record)) {
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "the record cannot be read: left alone");
		json_decref(record);
		return;
	}
	g = kv->value ? reservation_need(c, job) : ctlr_map_find(&c->reservations, job);
	if (g) {
		json_decref(g->tunnels);
		g->tunnels = json_incref(json_object_get(record, "tunnels"));
		snprintf(g->owner, sizeof(g->owner), "%.31s", mdl_text_of(record, "owner"));
		g->mod_rev = kv->value ? kv->mod_rev : 0;
		if (!kv->value)
			drop_unused(c, g);
	}
	json_decref(record);
}

/* --- networks that forget --------------------------------------------------------------------- */

static void on_mirrored(struct ctlr *c, struct ctlr_network_call *call)
{
	if (call->rc && call->rc != NETWORK_STOPS)
		ctlr_event(c, EVENT_ERROR, "network", c->conf->provider[call->net].name, "tunnel %s: %s",
		    call->name, call->err.text);
}

static void mirror_one(struct ctlr *c, const json_t *tunnel, const json_t *record)
{
	const int net = ctlr_network_find(c, mdl_text_of(tunnel, "provider"));
	struct ctlr_network_call *call;

	if (net < 0 || !ctlr_network_forgets(c, (unsigned)net))
		return;
	call = ctlr_reservation_call(c, (unsigned)net, mdl_text_of(tunnel, "name"),
	    mdl_text_of(tunnel, "first"), mdl_text_of(tunnel, "second"), record);
	if (!call)
		return;
	call->patient = true;
	call->done = on_mirrored;
	if (!ctlr_network_submit(c, call))
		ctlr_network_call_free(call);
}

static bool same_legs(const json_t *was, const json_t *is)
{
	json_t *a = json_object_get(was, "network"), *b = json_object_get(is, "network");

	if (json_array_size(a) != json_array_size(b))
		return false;
	for (size_t i = 0; i < json_array_size(a); i++) {
		const json_t *x = json_array_get(a, i), *y = json_array_get(b, i);

		if (!json_equal(json_object_get(x, "name"), json_object_get(y, "name")) ||
		    !json_equal(json_object_get(x, "legs"), json_object_get(y, "legs")))
			return false;
	}
	return true;
}

void ctlr_reservation_mirror(struct ctlr *c, const char *job, const json_t *was, const json_t *is)
{
	json_t *list, *t;
	size_t i;

	/* only its gateways changed, or no network has a part in it */
	if (!c->conf->providers || same_legs(was, is))
		return;
	list = json_array();
	list_record(list, was);
	list_record(list, is);
	json_array_foreach(list, i, t) mirror_one(c, t, is);
	json_decref(list);
}

void ctlr_reservations_free(struct ctlr *c)
{
	struct ctlr_map_node *n;

	while ((n = ctlr_map_next(&c->reservations, NULL)))
		reservation_free(c, (struct ctlr_reservation *)n);
	ctlr_map_free(&c->reservations);
}
