/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways: registration, lease, document, and the end of a lease. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/fleet/pair.h"
#include "controller/job/jobs.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/pair.h"
#include "controller/state/work.h"

/* Slots of the table of gateways that a tick checks; a larger table is checked less often. */
#define SWEEP 1024

static json_t *gateway_record(const struct ctlr_gateway *g, const char *owner, bool up)
{
	return json_pack("{s:o, s:o, s:s, s:s}", "registration",
	    mdl_write(&model_registration_table, &g->reg), "lease", json_sprintf("%016" PRIx64, g->lease),
	    "owner", owner, "state", up ? "up" : "lost");
}

static void record_key(char key[STORE_KEY_MAX], const char *name)
{
	snprintf(key, STORE_KEY_MAX, "gateway/%s", name);
}

/* --- registration ----------------------------------------------------------------------------- */

static void reply_registered(void *ctx, int rc, uint64_t rev)
{
	struct ctlr_req *r = ctx;
	struct ctlr_gateway *g = ctlr_map_find(&r->c->gateways, r->arg[0]);

	if (!g) {
		ctlr_req_fail(r, 503, "", "gateway %s was removed meanwhile: register again", r->arg[0]);
		return;
	}
	g->heard = ctlr_now();
	g->expires = g->heard + ctlr_gateway_ttl_ms(r->c) * RWY_MS;
	ctlr_work_add(r->c, g, CTLR_WORK_TUNNELS);
	COUNT(r->c, registrations);
	ctlr_req_reply(r, 200,
	    json_pack("{s:o, s:I, s:I}", "lease", json_sprintf("%016" PRIx64, g->lease), "ttl_ms",
	        (json_int_t)ctlr_gateway_ttl_ms(r->c), "generation",
	        (json_int_t)ctlr_document_generation(r->c, g)));
}

static bool registration_same(
    const struct ctlr *c, const struct ctlr_gateway *g, const struct model_registration *reg)
{
	json_t *has = mdl_write(&model_registration_table, &g->reg);
	json_t *says = mdl_write(&model_registration_table, reg);
	const bool equal = g->up && !strcmp(g->owner, c->conf->name) && json_equal(has, says);

	json_decref(has);
	json_decref(says);
	return equal;
}

/* A gateway that is none of a pair. */
static enum ctlr_outcome register_alone(
    struct ctlr *c, struct ctlr_req *r, struct ctlr_gateway *g, const struct model_registration *reg)
{
	const struct ctlr_pair *p = ctlr_pair_of(c, r->arg[0]);
	struct ctlr_change *ch;
	char key[STORE_KEY_MAX];

	if (p && !ctlr_pair_may_end(r, p))
		return REQ_DONE;
	if (g && !p && registration_same(c, g, reg)) {
		reply_registered(r, 0, c->rev);
		return REQ_DONE;
	}
	ch = ctlr_change_new(NULL, NULL);
	ctlr_gateway_put(ch, r->arg[0], g, reg, ctlr_gateway_new_lease(), c->conf->name);
	if (p) {
		snprintf(key, sizeof(key), "pair/%s", p->name);
		ctlr_change_cmp(ch, key, p->mod_rev);
		ctlr_change_del(ch, key);
	}
	return ctlr_req_commit_then(r, ch, reply_registered);
}

enum ctlr_outcome ctlr_api_gateway_put(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_gateway *g = ctlr_map_find(&c->gateways, r->arg[0]);
	struct model_registration reg;
	enum ctlr_outcome outcome;

	if (!ctlr_req_is_gateway(r, r->arg[0]) || !ctlr_req_read(r, &model_registration_table, &reg, NULL))
		return REQ_DONE;
	if (ctlr_replica_unfit(r))
		outcome = REQ_DONE;
	else if (reg.has_pair)
		outcome = ctlr_pair_register(c, r, g, &reg);
	else
		outcome = register_alone(c, r, g, &reg);
	mdl_free(&model_registration_table, &reg);
	return outcome;
}

/* Its jobs' pairs are placed anew, and its tunnels go: as many as there is room for. */
static void remove_all_of(struct ctlr *c, struct ctlr_change *ch, struct ctlr_gateway *g)
{
	char key[STORE_KEY_MAX];

	if (g->up) {
		g->up = false;
		ctlr_job_moves(c, ch);
		g->up = true;
	}
	for (struct ctlr_tunnel *t = g->tunnel; t && ctlr_change_ops(ch) < STORE_OPS_MAX - 3;
	     t = t->next[ctlr_tunnel_side(t, g)])
		if (t->mod_rev) {
			snprintf(key, sizeof(key), "tunnel/%s", t->name);
			ctlr_change_del(ch, key);
		}
}

/* The last part of the change. Jobs and tunnels that are not in it follow when it is applied, at
 * all replicas: job/move.c, state/orphan.h. */
static void remove_gateway(struct ctlr *c, struct ctlr_change *ch, const struct ctlr_gateway *g)
{
	char key[STORE_KEY_MAX];

	ctlr_change_put(ch, "touch/", json_object()); /* others' documents lose its tunnels */
	if (ctlr_pair_of(c, g->name)) {
		snprintf(key, sizeof(key), "pair/%s", g->name);
		ctlr_change_del(ch, key);
	}
	record_key(key, g->name);
	ctlr_change_cmp(ch, key, g->mod_rev);
	ctlr_change_del(ch, key);
}

/* The store takes no change so large. */
static enum ctlr_outcome delete_alone(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_gateway *g = ctlr_map_find(&c->gateways, r->arg[0]);
	struct ctlr_change *ch;

	if (!g)
		return ctlr_req_fail(r, 404, "", "there is no gateway %s", r->arg[0]);
	ch = ctlr_change_new(NULL, NULL);
	remove_gateway(c, ch, g);
	return ctlr_req_commit(r, ch, 200);
}

enum ctlr_outcome ctlr_api_gateway_delete(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_gateway *g = ctlr_map_find(&c->gateways, r->arg[0]);
	struct ctlr_change *ch;

	if (!ctlr_req_is_gateway(r, r->arg[0]))
		return REQ_DONE;
	if (!g)
		return ctlr_req_fail(r, 404, "", "there is no gateway %s", r->arg[0]);
	ch = ctlr_change_new(NULL, NULL);
	remove_all_of(c, ch, g);
	remove_gateway(c, ch, g);
	return ctlr_req_commit_or(r, ch, 200, delete_alone);
}

/* --- lease ------------------------------------------------------------------------------------ */

/* This replica becomes the gateway's owner, because the gateway talks to it now. */
static void take_over_gateway(struct ctlr *c, struct ctlr_gateway *g)
{
	char key[STORE_KEY_MAX];
	struct ctlr_change *ch;

	if (g->changing || !strcmp(g->owner, c->conf->name) || ctlr_replica_cut_off(c))
		return;
	record_key(key, g->name);
	ch = ctlr_change_new(NULL, NULL);
	ctlr_change_cmp(ch, key, g->mod_rev);
	ctlr_change_put(ch, key, gateway_record(g, c->conf->name, true));
	if (ctlr_change_submit(c, ch))
		ctlr_event(c, EVENT_INFO, "gateway", g->name, "came here from replica %s", g->owner);
}

bool ctlr_gateway_lease_holds(struct ctlr_req *r, const struct ctlr_gateway *g, uint64_t lease)
{
	const struct ctlr_pair *p = g->reg.has_pair ? ctlr_pair_of(r->c, g->name) : NULL;

	if (g->up && (p ? ctlr_pair_by_lease(p, lease) >= 0 : g->lease == lease))
		return true;
	ctlr_req_fail(r, 409, "lease", "lease: %s: register again",
	    g->lease == lease ? "it has run out" : "it is not the present one");
	ctlr_event(r->c, EVENT_WARNING, "refused", g->name, "a stale lease");
	return false;
}

static void lease_apply(
    struct ctlr *c, struct ctlr_req *r, struct ctlr_gateway *g, const struct model_lease *m)
{
	const bool news = m->has_refused && m->generation_refused != g->refused;

	ctlr_gateway_heard(c, g, m);
	if (news)
		ctlr_event(c, EVENT_ERROR, "gateway", g->name, "refuses generation %" PRIu64 ": %s",
		    g->refused, g->refusal);
	take_over_gateway(c, g);
	ctlr_gateway_renewed(c, r, g);
}

enum ctlr_outcome ctlr_api_lease_post(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_gateway *g = ctlr_map_find(&c->gateways, r->arg[0]);
	struct ctlr_pair *p;
	struct model_lease m;

	if (!ctlr_req_is_gateway(r, r->arg[0]) || !ctlr_req_read(r, &model_lease_table, &m, NULL))
		return REQ_DONE;
	p = g && g->reg.has_pair ? ctlr_pair_of(c, g->name) : NULL;
	if (!g) {
		ctlr_req_fail(r, 404, "", "there is no gateway %s: register", r->arg[0]);
	} else if (!ctlr_pair_lease_fits(r, p, &m)) {
		;
	} else if (strcmp(m.boot_id, ctlr_pair_boot_of(p, &m, g)) != 0) {
		ctlr_req_fail(r, 409, "boot_id", "boot_id: another start has registered: register again");
		ctlr_event(c, EVENT_WARNING, "refused", g->name, "a lease of another start");
	} else if (m.generation_running > c->rev) {
		ctlr_req_fail(r, 409, "generation_running",
		    "generation_running: %" PRIu64 " was never issued: register again", m.generation_running);
		ctlr_event(c, EVENT_WARNING, "refused", g->name,
		    "runs generation %" PRIu64 ", which was never issued", m.generation_running);
	} else if (ctlr_gateway_lease_holds(r, g, m.lease)) {
		if (p)
			ctlr_pair_lease(c, r, g, p, &m);
		else
			lease_apply(c, r, g, &m);
	}
	mdl_free(&model_lease_table, &m);
	return REQ_DONE;
}

/* --- document --------------------------------------------------------------------------------- */

void ctlr_gateway_end_poll(struct ctlr *c, struct ctlr_gateway *g)
{
	for (unsigned k = 0; k < CTLR_MEMBERS; k++) {
		struct ctlr_req *r = g->poll[k];

		g->poll[k] = NULL;
		if (!r)
			continue;
		ctlr_req_fail(r, 404, "", "gateway %s has been removed", g->name);
		ctlr_req_finish(r);
	}
}

static void end_poll(struct ctlr_gateway *g, unsigned k)
{
	struct ctlr_req *r = g->poll[k];

	g->poll[k] = NULL;
	ctlr_req_finish(r);
}

enum ctlr_outcome ctlr_api_document_get(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_gateway *g = ctlr_map_find(&c->gateways, r->arg[0]);
	uint64_t wait;
	unsigned k;

	if (!ctlr_req_is_gateway(r, r->arg[0]) || !ctlr_req_number(r, "after", 0, INT64_MAX, 0, &r->after) ||
	    !ctlr_req_number(r, "wait_ms", 0, MODEL_WAIT_MAX_MS, 0, &wait))
		return REQ_DONE;
	if (!g)
		return ctlr_req_fail(r, 404, "", "there is no gateway %s: register", r->arg[0]);
	if (!ctlr_pair_poll_of(r, g, &k))
		return REQ_DONE;
	if (r->after > c->rev)
		return ctlr_req_fail(
		    r, 409, "after", "after: %" PRIu64 " was never issued: ask with after=0", r->after);
	if (ctlr_document_generation(c, g) > r->after) {
		COUNT(c, documents);
		return ctlr_req_reply(r, 200, ctlr_document_json(c, g));
	}
	r->status = 304;
	if (!wait || r->who.role != ROLE_GATEWAY)
		return REQ_DONE;
	if (g->poll[k])
		end_poll(g, k);
	if (!r->until) /* set in an earlier run of this handler otherwise */
		r->until = ctlr_now() + wait * RWY_MS;
	g->poll[k] = r;
	return REQ_WAIT;
}

/* --- time ------------------------------------------------------------------------------------- */

#define EXPIRE_MAX 16 /* gateways in one change */
#define TOGETHER   3  /* attempts to store the change together with jobs */

struct expiry {
	struct ctlr *c;
	unsigned n;
	char name[EXPIRE_MAX][MDL_NAME];
};

static void on_expired(void *ctx, int rc, uint64_t rev)
{
	struct expiry *e = ctx;

	for (unsigned i = 0; rc && i < e->n; i++) {
		struct ctlr_gateway *g = ctlr_map_find(&e->c->gateways, e->name[i]);

		if (!g)
			continue;
		g->changing = false;
		/* too large for this store: without the jobs at once, which follow one by one */
		g->missed = rc == RWY_EINVAL ? TOGETHER : g->missed + 1;
		/* a job changed meanwhile: try again at once; a failing store gets a pause */
		g->expires = ctlr_now() + (rc == STORE_ECONFLICT ? 0 : RWY_SEC / 4);
		ctlr_pair_not_down(e->c, g);
	}
	free(e);
}

/* Stores in one change that these gateways are down, together with the new plans of their jobs.
 * Flows move when the change is applied. */
static void expire_gateways(struct ctlr *c, struct ctlr_gateway **g, unsigned n, bool alone)
{
	struct expiry *e = malloc(sizeof(*e));
	char key[STORE_KEY_MAX];
	struct ctlr_change *ch = e ? ctlr_change_new(on_expired, e) : NULL;

	if (!ch) {
		free(e);
		return;
	}
	e->c = c;
	e->n = n;
	for (unsigned i = 0; i < n; i++)
		g[i]->up = false;
	if (!alone)
		ctlr_job_moves(c, ch);
	for (unsigned i = 0; i < n; i++) {
		g[i]->up = true;
		memcpy(e->name[i], g[i]->name, sizeof(e->name[i]));
		record_key(key, g[i]->name);
		ctlr_change_cmp(ch, key, g[i]->mod_rev);
		ctlr_change_put(ch, key, gateway_record(g[i], g[i]->owner, false));
		ctlr_pair_down(c, ch, g[i]);
		g[i]->changing = true;
		COUNT(c, expired);
	}
	if (!ctlr_change_submit(c, ch))
		on_expired(e, RWY_ENOMEM, 0);
}

static bool lease_ran_out(const struct ctlr *c, const struct ctlr_gateway *g, rwy_time now)
{
	const struct ctlr_pair *p = g->reg.has_pair ? ctlr_pair_of(c, g->name) : NULL;

	if (!g->up || now < g->expires || g->changing || ctlr_replica_cut_off(c))
		return false;
	if (p)
		return ctlr_pair_ran_out(c, p, now);
	return !strcmp(g->owner, c->conf->name) || !ctlr_replica_alive(c, g->owner);
}

struct due { /* gateways that expire in a tick: [0] with their jobs, [1] alone, jobs later */
	struct ctlr_gateway *g[2][EXPIRE_MAX];
	unsigned n[2];
};

/* Collects the gateway if its lease has run out, and ends its poll if that has. */
static void check_gateway(struct ctlr *c, struct ctlr_gateway *g, struct due *d, rwy_time now)
{
	const bool alone = g->missed >= TOGETHER;

	if (lease_ran_out(c, g, now) && d->n[alone] < EXPIRE_MAX) /* if full, the next tick */
		d->g[alone][d->n[alone]++] = g;
	for (unsigned k = 0; k < CTLR_MEMBERS; k++)
		if (g->poll[k] && now >= g->poll[k]->until)
			end_poll(g, k);
	if (g->reg.has_pair)
		ctlr_pair_tick(c, g, now);
}

void ctlr_gateway_tick(struct ctlr *c, rwy_time now)
{
	const struct ctlr_map *m = &c->gateways;
	struct due d = {.n = {0, 0}};
	struct ctlr_gateway *g;

	while ((g = ctlr_work_next(c, CTLR_WORK_DOCUMENT)))
		for (unsigned k = 0; k < CTLR_MEMBERS; k++)
			if (g->poll[k] && ctlr_document_generation(c, g) > g->poll[k]->after) {
				/* its thread makes the document, outside this tick */
				ctlr_req_resume(g->poll[k]);
				g->poll[k] = NULL;
			}
	for (size_t i = 0; i < SWEEP && i < m->slots; i++)
		for (struct ctlr_map_node *n = m->slot[c->swept_gateways++ & (m->slots - 1)]; n; n = n->next)
			check_gateway(c, (struct ctlr_gateway *)n, &d, now);
	for (unsigned alone = 0; alone < 2; alone++)
		if (d.n[alone])
			expire_gateways(c, d.g[alone], d.n[alone], alone);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *strings_json(const struct mdl_list *l, size_t size)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < l->n; i++)
		json_array_append_new(out, json_string((const char *)l->at + i * size));
	return out;
}

json_t *ctlr_gateway_json(struct ctlr *c, const struct ctlr_gateway *g)
{
	json_t *reg = mdl_write(&model_registration_table, &g->reg);
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:O, s:O, s:I, s:I, s:I, s:s}", "name", g->name,
	    "site", g->reg.site, "version", g->reg.version, "state", g->up ? "up" : "lost", "lan",
	    strings_json(&g->reg.lan, MDL_ADDR), "wan", strings_json(&g->reg.wan, MDL_ADDR), "ports",
	    json_object_get(reg, "ports") ? json_object_get(reg, "ports") : json_array(), "capabilities",
	    json_object_get(reg, "capabilities"), "generation", (json_int_t)ctlr_document_generation(c, g),
	    "generation_running", (json_int_t)g->running, "age_ms",
	    (json_int_t)(rwy_since(g->heard ? g->heard : c->started, ctlr_now()) / RWY_MS), "owner",
	    g->owner);

	if (g->refused) {
		json_object_set_new(j, "generation_refused", json_integer((json_int_t)g->refused));
		json_object_set_new(j, "refusal", json_string(g->refusal));
	}
	if (g->heard) {
		json_object_set_new(j, "load",
		    json_pack("{s:I, s:I, s:I, s:I}", "sessions", (json_int_t)g->load.sessions, "rate_bps",
		        (json_int_t)g->load.rate_bps, "cpu_ppm", (json_int_t)g->load.cpu_ppm, "custody_ppm",
		        (json_int_t)g->load.custody_ppm));
		if (ctlr_is_relay(g))
			json_object_set_new(
			    json_object_get(j, "load"), "links", json_integer((json_int_t)g->load.links));
	}
	json_decref(reg);
	if (g->reg.has_pair)
		ctlr_pair_add(c, g, j);
	return j;
}

enum ctlr_outcome ctlr_api_gateway_get(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_gateway *g = ctlr_map_find(&c->gateways, r->arg[0]);

	if (!ctlr_req_is_gateway(r, r->arg[0]))
		return REQ_DONE;
	if (!g)
		return ctlr_req_fail(r, 404, "", "there is no gateway %s", r->arg[0]);
	return ctlr_req_reply(r, 200, ctlr_gateway_json(c, g));
}
