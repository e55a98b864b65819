/* SPDX-License-Identifier: Apache-2.0 */
/* Links: measured by gateways (in memory), and reported by networks' controllers (stored, with an
 * end). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"
#include "controller/state/reserved.h"
#include "controller/state/work.h"

const struct ctlr_link *ctlr_link_latest(const struct ctlr_tunnel *t)
{
	const struct ctlr_link *a = &t->link[0][t->carrier], *b = &t->link[1][t->carrier];

	if (!a->has || !b->has)
		return a->has ? a : b->has ? b : NULL;
	return a->at >= b->at ? a : b;
}

/* --- measured links --------------------------------------------------------------------------- */

/* Takes what one end says of the paths in networks. It is not stored. */
static void take_paths(struct ctlr_tunnel *t, unsigned side, const struct model_link *m)
{
	const struct model_link_path *p = m->paths.at;

	json_decref(t->along[side]);
	t->along[side] = m->paths.n ? json_array() : NULL;
	for (unsigned i = 0; i < m->paths.n; i++)
		json_array_append_new(t->along[side], mdl_write(&model_link_path_table, &p[i]));
}

static void link_take(struct ctlr *c, struct ctlr_gateway *g, const struct model_link *m, rwy_time now)
{
	struct ctlr_tunnel *t = ctlr_tunnel_find(c, g->name, m->peer);
	struct ctlr_link *l;

	if (!t) {
		COUNT(c, links_unknown);
		return;
	}
	l = &t->link[ctlr_tunnel_side(t, g)][m->carrier];
	l->has = true;
	l->m = *m;
	l->m.paths = (struct mdl_list){0}; /* the request's */
	take_paths(t, ctlr_tunnel_side(t, g), m);
	l->at = now > m->age_ms * RWY_MS ? now - m->age_ms * RWY_MS : 0;
	ctlr_work_add_tunnel(c, t);
	COUNT(c, links);
}

enum ctlr_outcome ctlr_api_link_post(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_gateway *g = ctlr_map_find(&c->gateways, r->arg[0]);
	struct model_link_report m;

	if (!ctlr_req_is_gateway(r, r->arg[0]) || !ctlr_req_read(r, &model_link_report_table, &m, NULL))
		return REQ_DONE;
	if (!g)
		ctlr_req_fail(r, 404, "", "there is no gateway %s: register", r->arg[0]);
	else if (ctlr_gateway_lease_holds(r, g, m.has_lease ? m.lease : g->lease)) {
		for (unsigned i = 0; i < m.links.n; i++)
			link_take(c, g, &((const struct model_link *)m.links.at)[i], ctlr_now());
		ctlr_req_reply_revision(r, 200, 0);
	}
	mdl_free(&model_link_report_table, &m);
	return REQ_DONE;
}

/* --- reported links --------------------------------------------------------------------------- */

static void push_key(const struct ctlr_req *r, char key[STORE_KEY_MAX])
{
	snprintf(key, STORE_KEY_MAX, "link/%.31s/%.31s/%.31s", r->arg[0], r->arg[1], r->arg[2]);
}

static bool may_push(struct ctlr_req *r)
{
	if (r->who.role != ROLE_NETWORK || !strcmp(r->who.name, r->arg[2]))
		return true;
	ctlr_req_fail(r, 403, "", "the certificate is %s's, not %s's", r->who.name, r->arg[2]);
	return false;
}

enum ctlr_outcome ctlr_api_link_put(struct ctlr *c, struct ctlr_req *r)
{
	struct model_link_push m;
	const struct ctlr_push *p;
	char key[STORE_KEY_MAX];
	struct ctlr_change *ch;

	if (!may_push(r) || !ctlr_req_read(r, &model_link_push_table, &m, NULL))
		return REQ_DONE;
	if (!strcmp(r->arg[0], r->arg[1]))
		return ctlr_req_fail(r, 400, "site_b", "site_b: expected another site than site_a");
	for (unsigned i = 0; i < 2; i++)
		if (!ctlr_map_find(&c->sites, r->arg[i]))
			return ctlr_req_fail(
			    r, 409, i ? "site_b" : "site_a", "there is no site %s", r->arg[i]);
	push_key(r, key);
	p = ctlr_map_find(&c->pushes, key + strlen("link/"));
	ch = ctlr_change_new(NULL, NULL);
	/* a delayed report must not replace a newer one */
	ctlr_change_cmp(ch, key, p ? p->mod_rev : 0);
	ctlr_change_put(ch, key,
	    json_pack("{s:o, s:I}", "link", mdl_write(&model_link_push_table, &m), "at_ms",
	        (json_int_t)ctlr_wall_ms()));
	return ctlr_req_commit(r, ch, 200);
}

enum ctlr_outcome ctlr_api_link_delete(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_push *p;
	char key[STORE_KEY_MAX];
	struct ctlr_change *ch;

	if (!may_push(r))
		return REQ_DONE;
	push_key(r, key);
	p = ctlr_map_find(&c->pushes, key + strlen("link/"));
	if (!p)
		return ctlr_req_fail(r, 404, "", "there is no link %s", key + strlen("link/"));
	ch = ctlr_change_new(NULL, NULL);
	ctlr_change_cmp(ch, key, p->mod_rev);
	ctlr_change_del(ch, key);
	return ctlr_req_commit(r, ch, 200);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void measured_add(json_t *list, const struct ctlr_tunnel *t, rwy_time now)
{
	for (unsigned e = 0; e < 2; e++)
		for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++) {
			const struct ctlr_link *l = &t->link[e][k];

			if (!l->has)
				continue;
			json_array_append_new(list,
			    json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "gateway",
			        t->end[e]->name, "peer", t->end[!e]->name, "carrier", plan_carrier_name(k),
			        "rtt_us", (json_int_t)l->m.rtt_us, "rtt_min_us", (json_int_t)l->m.rtt_min_us,
			        "jitter_us", (json_int_t)l->m.jitter_us, "loss_ppm",
			        (json_int_t)l->m.loss_ppm, "burst", (json_int_t)l->m.burst, "bandwidth_bps",
			        (json_int_t)l->m.bandwidth_bps, "age_ms",
			        (json_int_t)(rwy_since(l->at, now) / RWY_MS), "source", t->end[e]->name));
		}
}

static json_t *pushed_json(struct ctlr *c)
{
	const uint64_t now = ctlr_wall_ms();
	json_t *list = json_array();
	struct ctlr_push *p;
	char class[MDL_NAME];

	CTLR_MAP_EACH(&c->pushes, p)
	{
		const uint64_t age = now > p->at_ms ? now - p->at_ms : 0;

		if (age <= p->m.ttl_ms)
			json_array_append_new(
			    list, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "site_a",
			              p->site[0], "site_b", p->site[1], "source", p->source, "class",
			              mdl_word(MODEL_CLASSES, p->m.class, class), "bandwidth_bps",
			              (json_int_t)p->m.bandwidth_bps, "delay_us", (json_int_t)p->m.delay_us,
			              "jitter_us", (json_int_t)p->m.jitter_us, "loss_ppm",
			              (json_int_t)p->m.loss_ppm, "ttl_ms", (json_int_t)p->m.ttl_ms, "age_ms",
			              (json_int_t)age));
	}
	return list;
}

enum ctlr_outcome ctlr_api_link_list(struct ctlr *c, struct ctlr_req *r)
{
	json_t *measured = json_array(), *reserved;
	struct ctlr_tunnel **page;
	uint64_t limit;
	size_t n;

	if (!ctlr_req_number(r, "limit", 1, 1000, 100, &limit)) {
		json_decref(measured);
		return REQ_DONE;
	}
	page = calloc(limit, sizeof(*page));
	n = page ? ctlr_map_page(&c->tunnels, ctlr_req_param(r, "after"), (void **)page, limit) : 0;
	for (size_t i = 0; i < n; i++)
		measured_add(measured, page[i], ctlr_now());
	reserved = json_array();
	ctlr_reserved_list(c, reserved);
	ctlr_req_reply(r, 200,
	    json_pack("{s:o, s:o, s:o, s:o}", "measured", measured, "pushed", pushed_json(c), "reserved",
	        reserved, "next", n == limit ? json_string(page[n - 1]->name) : json_null()));
	free(page);
	return REQ_DONE;
}
