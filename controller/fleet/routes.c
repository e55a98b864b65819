/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes for the agents of a site's hosts: for each prefix at another site the gateways of this
 * site, with weights; for each address pair that has a tunnel, that tunnel's gateway. Routes depend
 * on sessions, which are not stored. So their generation is the time of the last change, not a
 * revision of the store.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/route_index.h"
#include "controller/fleet/fleet.h"
#include "controller/server/poll.h"
#include "controller/server/req.h"
#include "controller/state/ctlr.h"
#include "controller/state/flow.h"
#include "controller/state/path.h"

#define GATEWAYS_MAX 64
#define ROUTES_MAX   20000

static uint64_t routes_generation(const struct ctlr *c, const struct ctlr_site *s)
{
	return s->routes_gen > c->routes_gen ? s->routes_gen : c->routes_gen;
}

static json_t *next_hop(const struct ctlr_gateway *g, uint32_t weight, bool six)
{
	const char(*lan)[MDL_ADDR] = g->reg.lan.at;

	for (unsigned i = 0; i < g->reg.lan.n; i++)
		if (six == (strchr(lan[i], ':') != NULL))
			return json_pack("{s:s, s:s, s:I}", "gateway", g->name, "address", lan[i], "weight",
			    (json_int_t)weight);
	return NULL;
}

/* qpn: of source and destination; NULL or 0: all. */
static void route_add(json_t *list, uint32_t vni, const char *source, const char *destination,
    const uint32_t *qpn, json_t *gateways)
{
	json_t *j;

	if (!json_array_size(gateways)) {
		json_decref(gateways);
		return;
	}
	j = json_pack(
	    "{s:I, s:s, s:o}", "vni", (json_int_t)vni, "destination", destination, "gateways", gateways);
	if (source)
		json_object_set_new(j, "source", json_string(source));
	if (qpn && qpn[0] && qpn[1]) {
		json_object_set_new(j, "source_qpn", json_integer(qpn[0]));
		json_object_set_new(j, "destination_qpn", json_integer(qpn[1]));
	}
	json_array_append_new(list, j);
}

/* The gateways of this site that have a tunnel to that site. No route leads to a relay. */
static json_t *next_hops(
    struct ctlr *c, const struct ctlr_site *here, const struct ctlr_site *there, bool six)
{
	struct ctlr_gateway *g[GATEWAYS_MAX];
	uint32_t w[GATEWAYS_MAX];
	const unsigned n = ctlr_path_weights(here, g, w, GATEWAYS_MAX);
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		bool connected = false;
		json_t *hop;

		for (const struct ctlr_gateway *p = ctlr_is_relay(g[i]) ? NULL : there->gateway;
		     p && !connected && g[i]->up; p = p->site_next) {
			const struct ctlr_tunnel *t = ctlr_tunnel_find(c, g[i]->name, p->name);

			connected = t && ctlr_tunnel_up(t) && ctlr_path_serves(t);
		}
		hop = connected && w[i] ? next_hop(g[i], w[i], six) : NULL;
		if (hop)
			json_array_append_new(list, hop);
	}
	return list;
}

static void host_prefix(const char *addr, char out[MDL_ADDR])
{
	snprintf(out, MDL_ADDR, strchr(addr, ':') ? "%.45s/128" : "%.45s/32", addr);
}

static void flow_route(json_t *list, const struct ctlr_site *here, const struct ctlr_flow *f)
{
	const unsigned mine = f->site[1] == here;
	const struct ctlr_tunnel *t = f->tunnel;
	const struct ctlr_gateway *g = t->end[t->end[1]->site == here];
	char source[MDL_ADDR], destination[MDL_ADDR];
	json_t *gateways = json_array();

	host_prefix(f->addr[mine], source);
	host_prefix(f->addr[!mine], destination);
	if (!ctlr_is_relay(g))
		json_array_append_new(gateways, next_hop(g, 1, strchr(source, ':') != NULL));
	route_add(
	    list, f->vni, source, destination, (const uint32_t[]){f->qpn[mine], f->qpn[!mine]}, gateways);
}

static void add_pair_route(json_t *list, struct ctlr *c, const struct ctlr_site *s,
    const struct ctlr_gateway *g, uint32_t vni, const char (*addr)[MDL_ADDR], const uint32_t qpn[2])
{
	char source[MDL_ADDR], destination[MDL_ADDR];
	json_t *gateways = json_array();
	struct rwy_ip a;
	const unsigned mine = ctlr_lpm_parse_ip(addr[1], &a) && ctlr_lpm_find(&c->lpm, vni, &a) == s;

	host_prefix(addr[mine], source);
	host_prefix(addr[!mine], destination);
	if (!ctlr_is_relay(g))
		json_array_append_new(gateways, next_hop(g, 1, strchr(source, ':') != NULL));
	route_add(list, vni, source, destination, (const uint32_t[]){qpn[mine], qpn[!mine]}, gateways);
}

static void tenant_routes(struct ctlr *c, const struct ctlr_site *here, json_t *list)
{
	struct ctlr_tenant *nt;

	CTLR_MAP_EACH(&c->tenants, nt)
	{
		json_t *sites = json_object_get(nt->json, "sites"), *there, *p;
		const char *name;
		size_t i;

		if (!json_object_get(sites, here->name))
			continue;
		json_object_foreach(sites, name, there)
		{
			const struct ctlr_site *s = ctlr_map_find(&c->sites, name);

			json_array_foreach(json_object_get(there, "prefixes"), i, p)
			{
				const char *prefix = json_string_value(json_object_get(p, "prefix"));

				if (s && s != here && prefix)
					route_add(list, nt->vni, NULL, prefix, NULL,
					    next_hops(c, here, s, strchr(prefix, ':') != NULL));
			}
		}
	}
}

static void job_routes(struct ctlr *c, struct ctlr_site *s, json_t *list)
{
	const struct ctlr_route *x;

	CTLR_MAP_EACH(&c->routes, x)
	{
		const struct ctlr_gateway *a = ctlr_map_find(&c->gateways, x->gateway[0]),
		                          *b = ctlr_map_find(&c->gateways, x->gateway[1]);
		const struct ctlr_flow *f;

		if (!a || !b || !a->up || !b->up || (a->site != s && b->site != s))
			continue;
		f = ctlr_flow_find(c, x->vni, x->addr[0], x->addr[1], x->qpn[0], x->qpn[1]);
		if (!f || !f->tunnel) /* otherwise the flow has its own entry */
			add_pair_route(list, c, s, a->site == s ? a : b, x->vni, x->addr, x->qpn);
	}
}

static json_t *routes_json(struct ctlr *c, struct ctlr_site *here)
{
	json_t *list = json_array();
	struct ctlr_site *s;

	CTLR_MAP_EACH(&c->sites, s)
	{
		const char(*p)[MDL_ADDR] = s->m.prefixes.at;

		for (unsigned i = 0; i < s->m.prefixes.n && ctlr_sites_want(here, s); i++)
			route_add(
			    list, 0, NULL, p[i], NULL, next_hops(c, here, s, strchr(p[i], ':') != NULL));
	}
	tenant_routes(c, here, list);
	job_routes(c, here, list);
	for (const struct ctlr_gateway *g = here->gateway; g; g = g->site_next)
		for (const struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)])
			for (const struct ctlr_flow *f = t->flow; f && json_array_size(list) < ROUTES_MAX;
			     f = f->next)
				flow_route(list, here, f);
	return json_pack("{s:I, s:s, s:o}", "generation", (json_int_t)routes_generation(c, here), "site",
	    here->name, "routes", list);
}

static bool routes_changed(struct ctlr *c, const struct ctlr_req *r)
{
	const struct ctlr_site *s = ctlr_map_find(&c->sites, ctlr_req_param(r, "site"));

	return !s || routes_generation(c, s) != r->after;
}

enum ctlr_outcome ctlr_api_routes_get(struct ctlr *c, struct ctlr_req *r)
{
	const char *name = ctlr_req_param(r, "site");
	uint64_t wait;

	if (!ctlr_req_number(r, "after", 0, INT64_MAX, 0, &r->after) ||
	    !ctlr_req_number(r, "wait_ms", 0, MODEL_WAIT_MAX_MS, 0, &wait))
		return REQ_DONE;
	if (!name || !mdl_is_name(name))
		return ctlr_req_fail(r, 400, "site", "site: expected a site's name");
	r->site = ctlr_map_find(&c->sites, name);
	if (!r->site)
		return ctlr_req_fail(r, 404, "", "there is no site %s", name);
	if (routes_generation(c, r->site) != r->after)
		return ctlr_req_reply(r, 200, routes_json(c, r->site));
	return ctlr_poll_wait(c, r, routes_changed, wait);
}
