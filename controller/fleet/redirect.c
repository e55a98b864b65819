/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirects for the agents of a site's hosts: for each prefix at another site the relays that
 * connections go by, with order and weights. Which relays is what the site says (`relays`), else
 * the site's own. Weights follow loads, which are not stored; so the list is made anew a few times
 * a second while anybody asks, and its generation is the time when it became another one.
 */
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/poll.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/path.h"

#define GATEWAYS_MAX  64
#define OFFERS_MAX    16   /* relays of one prefix */
#define REDIRECTS_MAX 1024 /* prefixes: what a host's redirect.conf takes */
#define RELAYS_MAX    4096 /* relays of all prefixes: the same */
#define WEIGHT_MAX    100
#define LOOK_EVERY    (200 * RWY_MS)

/* A relay that hosts of the site are offered. */
struct offer {
	const struct ctlr_gateway *g;
	uint64_t order, weight; /* weight 1..100 */
};

/* --- which relays ----------------------------------------------------------------------------- */

/* The share of a relay among those of its site, by their loads: 1..100. */
static uint64_t weight_by_load(const struct ctlr_gateway *relay)
{
	struct ctlr_gateway *g[GATEWAYS_MAX];
	uint32_t w[GATEWAYS_MAX];
	const unsigned n = relay->site ? ctlr_path_weights(relay->site, g, w, GATEWAYS_MAX) : 0;
	uint64_t most = 0, own = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!ctlr_is_relay(g[i]))
			continue;
		most = w[i] > most ? w[i] : most;
		own = g[i] == relay ? w[i] : own;
	}
	own = most ? own * WEIGHT_MAX / most : 0;
	return own ? own : 1;
}

static unsigned offers_of(struct ctlr *c, const struct ctlr_site *here, struct offer *o)
{
	const struct model_site_relay *said = here->m.relays.at;
	unsigned n = 0;

	for (unsigned i = 0; here->m.has_relays && i < here->m.relays.n && n < OFFERS_MAX; i++) {
		const struct ctlr_gateway *g = ctlr_map_find(&c->gateways, said[i].gateway);

		if (g && ctlr_is_relay(g))
			o[n++] = (struct offer){
			    g, said[i].order, said[i].weight ? said[i].weight : weight_by_load(g)};
	}
	for (const struct ctlr_gateway *g = here->m.has_relays ? NULL : here->gateway; g && n < OFFERS_MAX;
	     g = g->site_next)
		if (ctlr_is_relay(g))
			o[n++] = (struct offer){g, 0, weight_by_load(g)};
	return n;
}

/* --- the list --------------------------------------------------------------------------------- */

/* Whether the relay has a tunnel to the site; *up: one that serves. */
static bool reaches(const struct ctlr_gateway *g, const struct ctlr_site *there, bool *up)
{
	bool any = false;

	*up = false;
	for (const struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)]) {
		if (!t->has || t->end[!ctlr_tunnel_side(t, g)]->site != there)
			continue;
		any = true;
		*up |= ctlr_tunnel_up(t) && ctlr_path_serves(t);
	}
	return any;
}

/* The relay's first address of this family; NULL: none. */
static const char *address_of(const struct ctlr_gateway *g, bool six)
{
	const char(*a)[MDL_ADDR] = g->reg.capabilities.relay.addresses.at;

	for (unsigned i = 0; i < g->reg.capabilities.relay.addresses.n; i++)
		if (six == (strchr(a[i], ':') != NULL))
			return a[i];
	return NULL;
}

static json_t *relays_json(
    const struct offer *o, unsigned n, const struct ctlr_site *there, const char *prefix)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		const char *address = address_of(o[i].g, strchr(prefix, ':') != NULL);
		bool up;

		if (!address || !o[i].g->reg.capabilities.relay.ask_port || !reaches(o[i].g, there, &up))
			continue;
		json_array_append_new(
		    list, json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "gateway", o[i].g->name, "address",
		              address, "port", (json_int_t)o[i].g->reg.capabilities.relay.ask_port, "order",
		              (json_int_t)o[i].order, "weight", (json_int_t)o[i].weight, "state",
		              up ? "up" : "lost"));
	}
	return list;
}

struct redirects {
	json_t *list;
	size_t relays;
	unsigned left; /* prefixes that a host's file has no room for */
};

static void redirect_add(
    struct redirects *r, const char *prefix, const struct ctlr_site *there, json_t *relays)
{
	const size_t n = json_array_size(relays);

	if (n && json_array_size(r->list) < REDIRECTS_MAX && r->relays + n <= RELAYS_MAX) {
		json_array_append_new(r->list,
		    json_pack("{s:s, s:s, s:O}", "prefix", prefix, "site", there->name, "relays", relays));
		r->relays += n;
	} else if (n) {
		r->left++;
	}
	json_decref(relays);
}

static struct redirects redirects_make(struct ctlr *c, const struct ctlr_site *here)
{
	struct ctlr_site **all = calloc(c->sites.n + 1, sizeof(*all));
	const size_t sites = all ? ctlr_map_page(&c->sites, NULL, (void **)all, c->sites.n) : 0;
	struct redirects r = {.list = json_array()};
	struct offer o[OFFERS_MAX];
	const unsigned n = offers_of(c, here, o);

	for (size_t i = 0; i < sites; i++) {
		const char(*p)[MDL_ADDR] = all[i]->m.prefixes.at;

		for (unsigned k = 0; k < all[i]->m.prefixes.n && ctlr_sites_want(here, all[i]); k++)
			redirect_add(&r, p[k], all[i], relays_json(o, n, all[i], p[k]));
	}
	free(all);
	return r;
}

/* Hosts reach the targets of these prefixes without relays. */
static void tell_left(struct ctlr *c, struct ctlr_site *s, unsigned left)
{
	if (left && left != s->redirects_left)
		ctlr_event(c, EVENT_WARNING, "site", s->name,
		    "its hosts take redirects of %u prefixes and %u relays: %u prefixes are left out",
		    REDIRECTS_MAX, RELAYS_MAX, left);
	s->redirects_left = left;
}

/* Makes the site's list, if that is due, and gives it a generation of its own if it is another. */
static void redirects_look(struct ctlr *c, struct ctlr_site *s)
{
	const rwy_time now = ctlr_now();
	struct redirects r;

	if (s->redirects && rwy_since(s->redirects_at, now) < LOOK_EVERY)
		return;
	r = redirects_make(c, s);
	s->redirects_at = now;
	tell_left(c, s, r.left);
	if (!r.list || (s->redirects && json_equal(s->redirects, r.list))) {
		json_decref(r.list);
		return;
	}
	json_decref(s->redirects);
	s->redirects = r.list;
	s->redirects_gen = ctlr_wall_ms() > s->redirects_gen ? ctlr_wall_ms() : s->redirects_gen + 1;
}

/* --- the API ---------------------------------------------------------------------------------- */

static bool redirects_changed(struct ctlr *c, const struct ctlr_req *r)
{
	struct ctlr_site *s = ctlr_map_find(&c->sites, ctlr_req_param(r, "site"));

	if (!s)
		return true;
	redirects_look(c, s);
	return s->redirects_gen != r->after;
}

enum ctlr_outcome ctlr_api_redirects_get(struct ctlr *c, struct ctlr_req *r)
{
	const char *name = ctlr_req_param(r, "site");
	struct ctlr_site *s;
	uint64_t wait;

	if (!ctlr_req_number(r, "after", 0, INT64_MAX, 0, &r->after) ||
	    !ctlr_req_number(r, "wait_ms", 0, MODEL_WAIT_MAX_MS, 0, &wait))
		return REQ_DONE;
	if (!name || !mdl_is_name(name))
		return ctlr_req_fail(r, 400, "site", "site: expected a site's name");
	s = ctlr_map_find(&c->sites, name);
	if (!s)
		return ctlr_req_fail(r, 404, "", "there is no site %s", name);
	if (!redirects_changed(c, r))
		return ctlr_poll_wait(c, r, redirects_changed, wait);
	return ctlr_req_reply(r, 200,
	    json_pack("{s:I, s:s, s:o}", "generation", (json_int_t)s->redirects_gen, "site", s->name,
	        "redirects", json_deep_copy(s->redirects)));
}
