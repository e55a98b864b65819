/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels between the gateways of any two sites that want each other, and their decisions (plan/).
 * The replica that owns a tunnel's first gateway decides about the tunnel and writes changes to the
 * store.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/orphan.h"
#include "controller/state/path.h"
#include "controller/state/reserved.h"
#include "controller/state/work.h"

#define PER_CHANGE   60  /* tunnels in a change */
#define PER_TICK     600 /* decisions in a tick, since it holds the lock */
#define GATEWAYS_MAX 64
#define ORPHAN_PAUSE (RWY_SEC / 4) /* after a failure of the store */
#define NOTABLE_PPM  100000        /* a change of rate or weight above this is stored */

/* --- the decision ----------------------------------------------------------------------------- */

/* The rate that the tunnel may use: the capability of both ends with this carrier, and at most the
 * network's reservation or promise less the WAN's own headers. A measured rate does not bound it:
 * congestion control found that rate, and a bound taken from it would only ever shrink. */
static uint64_t rate_of(
    const struct plan_question *q, const struct plan_policy *p, enum plan_carrier k, uint64_t reserved)
{
	uint64_t rate = q->source.bandwidth_bps[k], edge = reserved;

	if (q->destination.bandwidth_bps[k] < rate)
		rate = q->destination.bandwidth_bps[k];
	rate = plan_gateway_bps(rate, p->gateway_ppm[k]);
	if (!reserved && q->path.cls != PLAN_INTERNET)
		edge = q->path.by[k].bandwidth_bps.v;
	if (edge) {
		edge = (uint64_t)((unsigned __int128)edge * p->wan_ppm / PLAN_PPM);
		rate = edge < rate ? edge : rate;
	}
	if (rate > MODEL_TUNNEL_BPS)
		rate = MODEL_TUNNEL_BPS;
	return rate ? rate : 1;
}

static uint32_t weight_of(const struct ctlr_tunnel *t)
{
	struct ctlr_gateway *g[GATEWAYS_MAX];
	uint32_t w[GATEWAYS_MAX], end[2] = {0, 0};

	for (unsigned i = 0; i < 2; i++) {
		const unsigned n = ctlr_path_weights(t->end[i]->site, g, w, GATEWAYS_MAX);

		for (unsigned k = 0; k < n; k++)
			if (g[k] == t->end[i])
				end[i] = w[k];
	}
	/* reduced to 16 bits; a weight that is not 0 stays so */
	end[0] = plan_pair_weight(end[0], end[1]);
	return end[0] && end[0] < 65536 ? 1 : end[0] >> 16;
}

static bool is_notable(uint64_t was, uint64_t is)
{
	const uint64_t diff = was > is ? was - is : is - was;

	return diff > was / (1000000 / NOTABLE_PPM) || (!was != !is);
}

struct batch {
	struct ctlr *c;
	struct ctlr_change *ch;
	unsigned n;
	char name[PER_CHANGE][2 * MDL_NAME];
};

/* After a failure the tunnels of the change are decided again. */
static void batch_done(void *ctx, int rc, uint64_t rev)
{
	struct batch *b = ctx;

	for (unsigned i = 0; i < b->n; i++) {
		struct ctlr_tunnel *t = ctlr_map_find(&b->c->tunnels, b->name[i]);

		if (!t)
			continue;
		t->changing = false;
		if (rc) {
			t->hyst = (struct plan_hyst){
			    .has = t->has, .carrier = t->carrier, .challenger = t->carrier};
			t->again = ctlr_now() + RWY_SEC;
		}
	}
	free(b);
}

static bool batch_room(struct ctlr *c, struct batch **b)
{
	if (*b)
		return true;
	*b = calloc(1, sizeof(**b));
	if (*b) {
		(*b)->c = c;
		(*b)->ch = ctlr_change_new(batch_done, *b);
	}
	if (*b && !(*b)->ch) {
		free(*b);
		*b = NULL;
	}
	return *b;
}

static void batch_send(struct ctlr *c, struct batch **b)
{
	if (!*b)
		return;
	if (!(*b)->n) {
		ctlr_change_cancel((*b)->ch);
		free(*b);
	} else if (!ctlr_change_submit(c, (*b)->ch))
		batch_done(*b, RWY_ENOMEM, 0);
	*b = NULL;
}

/* Makes the part of a decision that is stored. */
struct decided {
	enum plan_carrier carrier;
	uint64_t rate, reserved;
	uint32_t weight;
	const char *rule;
	json_t *paths;       /* or NULL */
	char unsteered[192]; /* "": nothing to say */
};

static void tunnel_write(struct batch *b, struct ctlr_tunnel *t, const struct decided *d)
{
	char key[STORE_KEY_MAX];
	json_t *j = json_pack("{s:s, s:I, s:I, s:s}", "carrier", plan_carrier_name(d->carrier), "rate_bps",
	    (json_int_t)d->rate, "weight", (json_int_t)d->weight, "rule", d->rule);

	if (d->reserved)
		json_object_set_new(j, "reserved_bps", json_integer((json_int_t)d->reserved));
	if (d->paths)
		json_object_set(j, "paths", d->paths);
	if (*d->unsteered)
		json_object_set_new(j, "unsteered", json_string(d->unsteered));
	snprintf(key, sizeof(key), "tunnel/%s", t->name);
	ctlr_change_put(b->ch, key, j);
	snprintf(b->name[b->n++], sizeof(b->name[0]), "%s", t->name);
	t->changing = true;
	COUNT(b->c, tunnel_changes);
}

static void tunnel_remove(struct ctlr *c, struct batch *b, struct ctlr_tunnel *t)
{
	char key[STORE_KEY_MAX];

	if (!t->mod_rev) {
		ctlr_tunnel_free(c, t);
		return;
	}
	snprintf(key, sizeof(key), "tunnel/%s", t->name);
	ctlr_change_del(b->ch, key);
	ctlr_change_put(b->ch, "touch/", json_object());
	snprintf(b->name[b->n++], sizeof(b->name[0]), "%s", t->name);
	t->changing = true;
}

/* Whether a decision is worth a change of the record. */
static bool is_news(const struct ctlr_tunnel *t, const struct decided *d)
{
	return !t->has || t->carrier != d->carrier || is_notable(t->rate_bps, d->rate) ||
	       is_notable(t->weight, d->weight) || t->reserved_bps != d->reserved ||
	       (t->paths || d->paths ? !json_equal(t->paths, d->paths) : false) ||
	       strcmp(t->unsteered, d->unsteered) != 0;
}

static void decide_tunnel(struct ctlr *c, struct ctlr_tunnel *t, struct batch **b, rwy_time now)
{
	const struct plan_policy *policy = &c->conf->policy;
	struct plan_decision d;
	struct plan_question q;
	struct ctlr_reserved_sum reserve;
	struct decided w = {0};

	t->again = t->changing ? now : 0; /* after the change, from what is there then */
	if (t->changing || !ctlr_tunnel_is_ours(c, t) || !batch_room(c, b))
		return;
	if (!ctlr_sites_want(t->end[0]->site, t->end[1]->site)) {
		batch_send(c, b); /* a removal needs a change of its own */
		if (batch_room(c, b))
			tunnel_remove(c, *b, t);
		batch_send(c, b);
		return;
	}
	if (!t->end[0]->up || !t->end[1]->up)
		return;
	ctlr_path_question(c, t, &q, now);
	plan_decide(&d, &q, policy, &t->hyst, now);
	if (d.carrier == PLAN_ANY) {
		if (t->has || strcmp(t->rule, plan_rule_name(d.rule)) != 0)
			ctlr_event(c, EVENT_WARNING, "tunnel", t->name, "%s", plan_rule_text(d.rule));
		snprintf(t->rule, sizeof(t->rule), "%s", plan_rule_name(d.rule));
		return;
	}
	t->again = d.again_at == RWY_NEVER ? 0 : d.again_at;
	ctlr_reserved_get(c, t->name, &reserve);
	w.carrier = d.carrier;
	w.rate = rate_of(&q, policy, d.carrier, reserve.bps);
	w.reserved = reserve.bps;
	w.weight = weight_of(t);
	w.rule = plan_rule_name(d.rule);
	w.paths = ctlr_steer_decide(c, t, d.carrier, w.unsteered, sizeof(w.unsteered));
	if (!is_news(t, &w)) {
		json_decref(w.paths);
		return;
	}
	tunnel_write(*b, t, &w);
	json_decref(w.paths);
	if ((*b)->n == PER_CHANGE)
		batch_send(c, b);
}

/* --- time ------------------------------------------------------------------------------------- */

static void gateway_meets(struct ctlr *c, struct ctlr_gateway *g, struct ctlr_site *other, unsigned *left)
{
	if (!ctlr_sites_want(g->site, other))
		return;
	for (struct ctlr_gateway *peer = other->gateway; peer; peer = peer->site_next) {
		struct ctlr_tunnel *t = ctlr_tunnel_need(c, g, peer);

		if (t && !t->has && !t->changing)
			ctlr_work_add_tunnel(c, t);
		*left -= *left > 0;
	}
}

static void gateway_plan(struct ctlr *c, struct ctlr_gateway *g, unsigned *left)
{
	const char(*p)[MDL_NAME] = g->site->m.peers.at;
	struct ctlr_site *s;

	for (struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)])
		ctlr_work_add_tunnel(c, t);
	if (!g->site->m.has_peers)
		CTLR_MAP_EACH(&c->sites, s)
	gateway_meets(c, g, s, left);
	for (unsigned i = 0; i < g->site->m.peers.n; i++) {
		s = ctlr_map_find(&c->sites, p[i]);
		if (s)
			gateway_meets(c, g, s, left);
	}
}

static bool has_least_site(const struct ctlr_tunnel *t)
{
	return ctlr_site_least(t->end[0]->site) || ctlr_site_least(t->end[1]->site);
}

/* Once a second queues each tunnel whose decision may change without a report: weights follow
 * loads, observations expire, and decisions name a time. */
static void sweep_tunnels(struct ctlr *c, rwy_time now)
{
	const size_t step = c->tunnels.slots * CTLR_TICK_MS / 1000 + 1;

	for (size_t i = 0; i < step && c->tunnels.slots; i++) {
		struct ctlr_map_node *n = c->tunnels.slot[c->swept++ & (c->tunnels.slots - 1)];

		for (; n; n = n->next) {
			struct ctlr_tunnel *t = (struct ctlr_tunnel *)n;
			if (!t->has || (t->again && t->again <= now) || (c->least && has_least_site(t)))
				ctlr_work_add_tunnel(c, t);
		}
	}
}

/* A record that the store has not removed is tried again. After a conflict nothing is left to do:
 * the gateway is back, or the watch tells of another record of the tunnel, or of none. */
static void orphan_done(void *ctx, int rc, uint64_t rev)
{
	struct ctlr_orphan *o = ctx;

	if (!rc || rc == STORE_ECONFLICT) {
		free(o);
		return;
	}
	o->c->orphans_at = ctlr_now() + ORPHAN_PAUSE;
	ctlr_orphan_put(o);
}

static bool drop_orphan(struct ctlr *c, struct ctlr_orphan *o)
{
	struct ctlr_change *ch = ctlr_change_new(orphan_done, o);
	char key[STORE_KEY_MAX];

	/* It is back, or this version cannot read its record. */
	snprintf(key, sizeof(key), "gateway/%s", o->gateway);
	ctlr_change_cmp(ch, key, 0);
	snprintf(key, sizeof(key), "tunnel/%s", o->tunnel);
	ctlr_change_cmp(ch, key, o->mod_rev);
	ctlr_change_del(ch, key);
	return ctlr_change_submit(c, ch);
}

/* Each goes in a change of its own: one that is refused must not keep the others. */
static void drop_orphans(struct ctlr *c, rwy_time now)
{
	struct ctlr_orphan *o;

	for (unsigned left = PER_TICK; now >= c->orphans_at && left && (o = ctlr_orphan_take(c)); left--)
		if (!drop_orphan(c, o)) {
			orphan_done(o, RWY_ENOMEM, 0);
			return;
		}
}

void ctlr_tunnels_tick(struct ctlr *c, rwy_time now)
{
	struct batch *b = NULL;
	unsigned left = PER_TICK;
	struct ctlr_gateway *g;

	while (left && (g = ctlr_work_next(c, CTLR_WORK_TUNNELS)))
		if (g->site)
			gateway_plan(c, g, &left);
	sweep_tunnels(c, now);
	drop_orphans(c, now);
	for (left = PER_TICK; c->plan && left; left--) {
		struct ctlr_tunnel *t = c->plan;

		ctlr_work_remove_tunnel(c, t);
		decide_tunnel(c, t, &b, now);
	}
	batch_send(c, &b);
}
