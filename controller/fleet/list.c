/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of gateways, hosts, links of relays and tunnels in pages. */
#include <stdlib.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"

/* Replies with a page of a map: {what: [...], next: ...}. */
static enum ctlr_outcome list_page(struct ctlr *c, struct ctlr_req *r, const struct ctlr_map *m,
    const char *what, json_t *(*one)(struct ctlr *c, const void *it))
{
	json_t *out = json_array();
	struct ctlr_map_node **page;
	uint64_t limit;
	size_t n;

	if (!ctlr_req_number(r, "limit", 1, 1000, 100, &limit)) {
		json_decref(out);
		return REQ_DONE;
	}
	page = calloc(limit, sizeof(*page));
	n = page ? ctlr_map_page(m, ctlr_req_param(r, "after"), (void **)page, limit) : 0;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(out, one(c, page[i]));
	ctlr_req_reply(r, 200,
	    json_pack(
	        "{s:o, s:o}", what, out, "next", n == limit ? json_string(page[n - 1]->key) : json_null()));
	free(page);
	return REQ_DONE;
}

static json_t *gateway_one(struct ctlr *c, const void *it)
{
	return ctlr_gateway_json(c, it);
}

enum ctlr_outcome ctlr_api_gateway_list(struct ctlr *c, struct ctlr_req *r)
{
	return list_page(c, r, &c->gateways, "gateways", gateway_one);
}

static json_t *host_one(struct ctlr *c, const void *it)
{
	return ctlr_host_json(c, it);
}

enum ctlr_outcome ctlr_api_host_list(struct ctlr *c, struct ctlr_req *r)
{
	return list_page(c, r, &c->hosts, "hosts", host_one);
}

static json_t *relay_link_one(struct ctlr *c, const void *it)
{
	return ctlr_relay_link_json(c, it);
}

enum ctlr_outcome ctlr_api_relay_link_list(struct ctlr *c, struct ctlr_req *r)
{
	return list_page(c, r, &c->relay_links, "links", relay_link_one);
}

/* Returns what each end measured of its paths in networks, by gateway. */
static json_t *along_json(const struct ctlr_tunnel *t)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < 2; i++)
		if (t->along[i])
			json_object_set(o, t->end[i]->name, t->along[i]);
	return o;
}

static json_t *tunnel_one(struct ctlr *c, const void *it)
{
	const struct ctlr_tunnel *t = it;
	const struct ctlr_link *l = ctlr_link_latest(t);
	json_t *j = json_pack("{s:s, s:[s,s], s:[s,s], s:s, s:s, s:I, s:I, s:s, s:I}", "name", t->name,
	    "gateways", t->end[0]->name, t->end[1]->name, "sites", t->end[0]->reg.site, t->end[1]->reg.site,
	    "state", ctlr_tunnel_up(t) ? "up" : "lost", "carrier", plan_carrier_name(t->carrier), "rate_bps",
	    (json_int_t)t->rate_bps, "weight", (json_int_t)t->weight, "reason", t->rule, "sessions",
	    (json_int_t)t->flows);

	if (t->reserved_bps)
		json_object_set_new(j, "reserved_bps", json_integer((json_int_t)t->reserved_bps));
	if (t->paths)
		json_object_set(j, "paths", t->paths);
	if (t->along[0] || t->along[1])
		json_object_set_new(j, "along", along_json(t));
	if (*t->unsteered)
		json_object_set_new(j, "unsteered", json_string(t->unsteered));
	ctlr_detour_add(c, t, j);
	if (l)
		json_object_update_new(
		    j, json_pack("{s:I, s:I, s:I, s:I, s:I}", "rtt_us", (json_int_t)l->m.rtt_us, "jitter_us",
		           (json_int_t)l->m.jitter_us, "loss_ppm", (json_int_t)l->m.loss_ppm, "bandwidth_bps",
		           (json_int_t)l->m.bandwidth_bps, "age_ms",
		           (json_int_t)(rwy_since(l->at, ctlr_now()) / RWY_MS)));
	return j;
}

enum ctlr_outcome ctlr_api_tunnel_list(struct ctlr *c, struct ctlr_req *r)
{
	return list_page(c, r, &c->tunnels, "tunnels", tunnel_one);
}
