/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of pairs of gateways: registration and lease; see pair.h. A member's word is stored when
 * it differs from the last one, so all replicas know who serves, also after a start.
 */
#include "controller/fleet/pair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/state/change.h"
#include "controller/state/event.h"
#include "controller/state/work.h"

#define AGAIN (RWY_SEC / 4) /* after the store refused */

/* --- records ---------------------------------------------------------------------------------- */

/* Adds the pair as it is to be. */
static void pair_put(struct ctlr_change *ch, const struct ctlr_pair *p)
{
	char key[STORE_KEY_MAX];

	snprintf(key, sizeof(key), "pair/%s", p->name);
	ctlr_change_cmp(ch, key, p->mod_rev);
	ctlr_change_put(ch, key, ctlr_pair_json(p));
}

/* Two measurements of one kind of machine. Plans may be made with either. */
static bool quic_same(const struct model_registration *a, const struct model_registration *b)
{
	const uint64_t x = a->capabilities.quic.bandwidth_bps, y = b->capabilities.quic.bandwidth_bps;

	return x <= 2 * y && y <= 2 * x;
}

static bool common_same(const struct model_registration *a, const struct model_registration *b)
{
	json_t *x = ctlr_pair_common(a), *y = ctlr_pair_common(b);
	const bool same = a->has_pair == b->has_pair && quic_same(a, b) && json_equal(x, y);

	json_decref(x);
	json_decref(y);
	return same;
}

/*
 * The gateway's record follows member k if there is none, if it is lost, and if k is the one that
 * serves: a standby with another registration changes nothing.
 */
static void follow(
    struct ctlr_change *ch, const struct ctlr_gateway *g, const struct ctlr_pair *p, unsigned k)
{
	const struct ctlr_member *m = &p->member[k];
	const bool leads = p->p.serves == (int)k || !p->p.m[!k].up;

	if (!g || !g->up || (leads && (!common_same(&g->reg, &m->reg) || strcmp(g->owner, m->owner) != 0)))
		ctlr_gateway_put(ch, p->name, g, &m->reg, m->lease, m->owner);
}

/* --- registration ----------------------------------------------------------------------------- */

bool ctlr_pair_may_end(struct ctlr_req *r, const struct ctlr_pair *p)
{
	for (unsigned k = 0; k < PLAN_MEMBERS; k++)
		if (p->p.m[k].up) {
			ctlr_req_fail(r, 409, "pair",
			    "pair: gateway %s is a pair, and its member %s is up: one that is none of a pair "
			    "has "
			    "another name",
			    p->name, p->p.m[k].name);
			ctlr_event(r->c, EVENT_ERROR, "refused", p->name,
			    "it is a pair: one that is none of a pair registers under its name");
			return false;
		}
	return true;
}

/* Its place: its own, one that was never used, one whose gateway is lost. -1: both are up. */
static int place_of(const struct ctlr_pair *p, const char *member)
{
	const int k = ctlr_pair_member(p, member);

	if (k >= 0 || !p)
		return k >= 0 ? k : 0;
	for (int i = 0; i < PLAN_MEMBERS; i++)
		if (!*p->p.m[i].name)
			return i;
	for (int i = 0; i < PLAN_MEMBERS; i++)
		if (!p->p.m[i].up)
			return i;
	return -1;
}

/* False, with a reply and an event: this one cannot be the member that it says it is. */
static bool may_join(
    struct ctlr_req *r, const struct ctlr_pair *p, const struct model_registration *reg, int k)
{
	const char *member = reg->pair.member;
	char why[200] = "";
	const char *field = "pair.member";

	if (!p)
		return true;
	if (k < 0)
		snprintf(why, sizeof(why),
		    "gateway %s is a pair of %s and %s, which are up: %s is a third one", p->name,
		    p->p.m[0].name, p->p.m[1].name, member);
	else if (p->p.m[k].up && !strcmp(p->p.m[k].name, member) &&
	         !strcmp(p->member[k].was_boot, reg->boot_id) &&
	         strcmp(p->member[k].reg.boot_id, reg->boot_id) != 0)
		snprintf(why, sizeof(why),
		    "two processes of gateway %s say that they are its member %s: each "
		    "needs a name of its own",
		    p->name, member);
	else if (p->p.m[!k].up && strcmp(p->member[!k].reg.site, reg->site) != 0) {
		field = "site";
		snprintf(why, sizeof(why),
		    "gateway %s is a pair, %s is at site %s and %s at %s: both must be at one "
		    "site",
		    p->name, p->p.m[!k].name, p->member[!k].reg.site, member, reg->site);
	}
	if (!*why)
		return true;
	ctlr_req_fail(r, 409, field, "%s: %s", field, why);
	ctlr_event(r->c, EVENT_ERROR, "refused", p->name, "%s", why);
	COUNT(r->c, pair_conflicts);
	return false;
}

static void reply_registered(void *ctx, int rc, uint64_t rev)
{
	struct ctlr_req *r = ctx;
	struct ctlr_gateway *g = ctlr_map_find(&r->c->gateways, r->arg[0]);
	struct ctlr_pair *p = ctlr_pair_of(r->c, r->arg[0]);
	const int k = ctlr_pair_member(p, r->arg[1]);

	if (!g || k < 0) {
		ctlr_req_fail(r, 503, "", "gateway %s was removed meanwhile: register again", r->arg[0]);
		return;
	}
	g->heard = p->member[k].heard = ctlr_now();
	p->member[k].expires = g->heard + ctlr_gateway_ttl_ms(r->c) * RWY_MS;
	ctlr_work_add(r->c, g, CTLR_WORK_TUNNELS);
	COUNT(r->c, registrations);
	ctlr_req_reply(r, 200,
	    json_pack("{s:o, s:I, s:I}", "lease", json_sprintf("%016" PRIx64, p->member[k].lease), "ttl_ms",
	        (json_int_t)ctlr_gateway_ttl_ms(r->c), "generation",
	        (json_int_t)ctlr_document_generation(r->c, g)));
}

/* The member registers once more, with nothing new. */
static bool registered_already(const struct ctlr *c, const struct ctlr_gateway *g, const struct ctlr_pair *p,
    unsigned k, const struct model_registration *reg)
{
	json_t *has, *says;
	bool same;

	if (!g || !g->up || !p || !p->p.m[k].up || strcmp(p->member[k].owner, c->conf->name) != 0)
		return false;
	has = mdl_write(&model_registration_table, &p->member[k].reg);
	says = mdl_write(&model_registration_table, reg);
	same = json_equal(has, says);
	json_decref(has);
	json_decref(says);
	return same;
}

/* Puts the member into p; reg stays the caller's, also while p has a copy of it. */
static void join(const struct ctlr *c, struct ctlr_pair *p, unsigned k, const struct model_registration *reg)
{
	struct ctlr_member *m = &p->member[k];
	const bool same = !strcmp(p->p.m[k].name, reg->pair.member);

	if (!same || strcmp(m->reg.boot_id, reg->boot_id) != 0) {
		plan_standby_restart(&p->p, k);
		memset(m->was_boot, 0, sizeof(m->was_boot));
		if (same)
			memcpy(m->was_boot, m->reg.boot_id, sizeof(m->was_boot));
	}
	if (!same && p->p.serves == (int)k)
		p->p.serves = -1;
	snprintf(p->p.m[k].name, sizeof(p->p.m[k].name), "%s", reg->pair.member);
	p->p.m[k].up = true;
	m->reg = *reg;
	m->lease = ctlr_gateway_new_lease();
	snprintf(m->owner, sizeof(m->owner), "%s", c->conf->name);
}

enum ctlr_outcome ctlr_pair_register(
    struct ctlr *c, struct ctlr_req *r, struct ctlr_gateway *g, const struct model_registration *reg)
{
	const struct ctlr_pair *p = ctlr_pair_of(c, r->arg[0]);
	const int k = place_of(p, reg->pair.member);
	struct ctlr_change *ch;
	struct ctlr_pair now;

	if (!may_join(r, p, reg, k))
		return REQ_DONE;
	snprintf(r->arg[1], sizeof(r->arg[1]), "%s", reg->pair.member);
	if (registered_already(c, g, p, (unsigned)k, reg)) {
		reply_registered(r, 0, c->rev);
		return REQ_DONE;
	}
	now = p ? *p : (struct ctlr_pair){.p.serves = -1};
	snprintf(now.name, sizeof(now.name), "%.31s", r->arg[0]);
	join(c, &now, (unsigned)k, reg);
	ch = ctlr_change_new(NULL, NULL);
	pair_put(ch, &now);
	follow(ch, g, &now, (unsigned)k);
	return ctlr_req_commit_then(r, ch, reply_registered);
}

/* --- lease ------------------------------------------------------------------------------------ */

bool ctlr_pair_lease_fits(struct ctlr_req *r, const struct ctlr_pair *p, const struct model_lease *m)
{
	if (p && !m->has_pair)
		ctlr_req_fail(r, 409, "pair", "pair: missing: gateway %s is a pair: register again", p->name);
	else if (!p && m->has_pair)
		ctlr_req_fail(r, 409, "pair", "pair: gateway %s is known as none: register again", r->arg[0]);
	else if (p && ctlr_pair_member(p, m->pair.member) < 0)
		ctlr_req_fail(
		    r, 404, "pair.member", "gateway %s has no member %s: register", p->name, m->pair.member);
	else
		return true;
	return false;
}

const char *ctlr_pair_boot_of(
    const struct ctlr_pair *p, const struct model_lease *m, const struct ctlr_gateway *g)
{
	return p ? p->member[ctlr_pair_member(p, m->pair.member)].reg.boot_id : g->reg.boot_id;
}

static uint64_t ago(uint64_t now_ms, uint64_t age_ms)
{
	return age_ms < now_ms ? now_ms - age_ms : 0;
}

static void status_take(struct plan_standby_status *s, const struct model_lease *m, uint64_t now_ms)
{
	const struct model_standby *say = &m->pair;

	*s = (struct plan_standby_status){.state = say->state,
	    .other = say->other,
	    .has_other = say->has_other,
	    .has_served = say->has_served,
	    .has_lost = say->has_lost,
	    .served_by = say->served.by,
	    .lost_by = say->lost.by,
	    .refuses = m->has_refused,
	    .configuration = say->configuration,
	    .epoch = say->epoch,
	    .since_ms = ago(now_ms, say->age_ms),
	    .served_ms = ago(now_ms, say->served.age_ms),
	    .lost_ms = ago(now_ms, say->lost.age_ms)};
}

struct written {
	struct ctlr *c;
	char name[MDL_NAME];
};

static void on_written(void *ctx, int rc, uint64_t rev)
{
	struct written *w = ctx;
	struct ctlr_pair *p = rc ? ctlr_pair_of(w->c, w->name) : NULL;

	if (p) { /* another change was first: at once; a failing store gets a pause */
		p->changing = false;
		p->again = ctlr_now() + (rc == STORE_ECONFLICT ? 0 : AGAIN);
	}
	free(w);
}

/* Submits the pair as it is to be, and the gateway's record if it follows member k (-1: it does
 * not). */
static void pair_submit(
    struct ctlr *c, const struct ctlr_gateway *g, struct ctlr_pair *p, const struct ctlr_pair *now, int k)
{
	struct written *w = malloc(sizeof(*w));
	struct ctlr_change *ch = w ? ctlr_change_new(on_written, w) : NULL;

	if (!ch) {
		free(w);
		return;
	}
	w->c = c;
	memcpy(w->name, p->name, sizeof(w->name));
	pair_put(ch, now);
	if (k >= 0)
		follow(ch, g, now, (unsigned)k);
	if (ctlr_change_submit(c, ch))
		p->changing = true;
	else
		free(w);
}

/* Stores what members said. */
static void pair_write(struct ctlr *c, const struct ctlr_gateway *g, struct ctlr_pair *p)
{
	struct ctlr_pair now = *p;
	bool some = false;

	for (unsigned k = 0; k < PLAN_MEMBERS; k++) {
		struct ctlr_member *m = &now.member[k];

		if (!m->wants || !now.p.m[k].up)
			continue;
		plan_standby_settle(&now.p, k, &m->want);
		snprintf(m->owner, sizeof(m->owner), "%s", c->conf->name);
		some = true;
	}
	if (some)
		pair_submit(c, g, p, &now, ctlr_pair_serving(&now));
}

void ctlr_pair_lease(struct ctlr *c, struct ctlr_req *r, struct ctlr_gateway *g, struct ctlr_pair *p,
    const struct model_lease *l)
{
	const int k = ctlr_pair_member(p, l->pair.member);
	struct ctlr_member *m = &p->member[k];
	const struct plan_member *it = &p->p.m[k];
	const bool news = l->has_refused && l->generation_refused != m->refused;
	struct plan_standby_status says;
	struct ctlr_pair will = *p; /* as it is when this is stored */

	m->heard = ctlr_now();
	m->expires = m->heard + ctlr_gateway_ttl_ms(c) * RWY_MS;
	m->running = l->generation_running;
	m->load = l->load;
	m->refused = l->has_refused ? l->generation_refused : 0;
	snprintf(m->refusal, sizeof(m->refusal), "%s", l->has_refused && l->refusal ? l->refusal : "");
	if (news)
		ctlr_event(c, EVENT_ERROR, "gateway", g->name, "%s refuses generation %" PRIu64 ": %s",
		    it->name, m->refused, m->refusal);
	status_take(&says, l, ctlr_wall_ms());
	plan_standby_settle(&will.p, (unsigned)k, &says);
	if (ctlr_pair_serving(&will) == k)
		ctlr_gateway_heard(c, g, l);
	m->wants =
	    !it->said || plan_standby_status_differs(&it->st, &says) || strcmp(m->owner, c->conf->name) != 0;
	m->want = says;
	if (m->wants && !p->changing)
		pair_write(c, g, p);
	ctlr_gateway_renewed(c, r, g);
}

bool ctlr_pair_poll_of(struct ctlr_req *r, const struct ctlr_gateway *g, unsigned *out)
{
	const struct ctlr_pair *p = g->reg.has_pair ? ctlr_pair_of(r->c, g->name) : NULL;
	const char *member = ctlr_req_param(r, "member");
	const int k = ctlr_pair_member(p, member ? member : "");

	*out = 0;
	if (!p || r->who.role != ROLE_GATEWAY)
		return true;
	if (k < 0) {
		ctlr_req_fail(r, 404, "member", "member: gateway %s has no member %s: register", g->name,
		    member ? member : "without a name");
		return false;
	}
	*out = (unsigned)k;
	return true;
}

/* --- time ------------------------------------------------------------------------------------- */

/* The member's lease ran out, and this replica may say so. */
static bool member_ran_out(const struct ctlr *c, const struct ctlr_pair *p, unsigned k, rwy_time now)
{
	const struct ctlr_member *m = &p->member[k];

	return now >= m->expires && !ctlr_replica_cut_off(c) &&
	       (!strcmp(m->owner, c->conf->name) || !ctlr_replica_alive(c, m->owner));
}

bool ctlr_pair_ran_out(const struct ctlr *c, const struct ctlr_pair *p, rwy_time now)
{
	for (unsigned k = 0; k < PLAN_MEMBERS; k++)
		if (p->p.m[k].up && !member_ran_out(c, p, k, now))
			return false;
	return !p->changing;
}

void ctlr_pair_tick(struct ctlr *c, struct ctlr_gateway *g, rwy_time now)
{
	struct ctlr_pair *p = ctlr_pair_of(c, g->name);

	if (!p || p->changing || now < p->again)
		return;
	pair_write(c, g, p);
	for (unsigned k = 0; k < PLAN_MEMBERS && !p->changing; k++) {
		struct ctlr_pair less = *p;

		if (!p->p.m[k].up || !p->p.m[!k].up || !member_ran_out(c, p, k, now) ||
		    member_ran_out(c, p, !k, now))
			continue; /* both: the gateway is lost */
		less.p.m[k].up = false;
		COUNT(c, expired);
		pair_submit(c, g, p, &less, -1);
	}
}

void ctlr_pair_down(struct ctlr *c, struct ctlr_change *ch, const struct ctlr_gateway *g)
{
	struct ctlr_pair *p = g->reg.has_pair ? ctlr_pair_of(c, g->name) : NULL, now;

	if (!p)
		return;
	now = *p;
	now.p.m[0].up = now.p.m[1].up = false;
	pair_put(ch, &now);
	p->changing = true;
}

void ctlr_pair_not_down(struct ctlr *c, const struct ctlr_gateway *g)
{
	struct ctlr_pair *p = g->reg.has_pair ? ctlr_pair_of(c, g->name) : NULL;

	if (p)
		p->changing = false;
}
