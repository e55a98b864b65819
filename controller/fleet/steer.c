/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gateways send along what networks granted: a tunnel's record has its paths there (plan/steer.h),
 * which both gateways get with their documents. Elsewhere: what was granted (state/reserved.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/job/query.h"
#include "controller/plan/spread.h"
#include "controller/plan/steer.h"
#include "controller/state/reserved.h"

#define APART    64 /* UDP ports between paths: the most workers of a gateway */
#define WANS_MAX 64 /* addresses that a registration has at most */

/* --- the record ------------------------------------------------------------------------------- */

static void read_text(char out[PLAN_NAME_MAX], const json_t *o, const char *key)
{
	snprintf(out, PLAN_NAME_MAX, "%s", mdl_text_of(o, key));
}

static void read_paths(struct plan_paths *out, const json_t *list)
{
	size_t i;
	json_t *o;

	memset(out, 0, sizeof(*out));
	json_array_foreach((json_t *)(uintptr_t)list, i, o)
	{
		struct plan_steered *p = &out->path[i];

		if (i == PLAN_PATHS_MAX)
			return;
		read_text(p->edge, o, "edge");
		read_text(p->name, o, "path");
		read_text(p->addr[0], o, "first");
		read_text(p->addr[1], o, "second");
		p->bps = mdl_number_of(o, "bandwidth_bps");
		p->dscp = (uint8_t)mdl_number_of(o, "dscp");
		p->source_port = (uint16_t)mdl_number_of(o, "source_port");
		out->n = (unsigned)i + 1;
	}
}

static void put_text(json_t *o, const char *key, const char *text)
{
	if (*text)
		json_object_set_new(o, key, json_string(text));
}

static void put_number(json_t *o, const char *key, unsigned v)
{
	if (v)
		json_object_set_new(o, key, json_integer((json_int_t)v));
}

/* rate_bps: what a gateway may send, without the network's own headers. */
static json_t *write_paths(const struct plan_paths *p, uint32_t wan_ppm)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < p->n; i++) {
		const struct plan_steered *s = &p->path[i];
		const uint64_t rate = (uint64_t)((unsigned __int128)s->bps * wan_ppm / PLAN_PPM);
		json_t *o = json_pack("{s:s, s:s, s:I, s:I}", "edge", s->edge, "path", s->name,
		    "bandwidth_bps", (json_int_t)s->bps, "rate_bps",
		    (json_int_t)(rate < MODEL_TUNNEL_BPS ? rate : MODEL_TUNNEL_BPS));

		put_text(o, "first", s->addr[0]);
		put_text(o, "second", s->addr[1]);
		put_number(o, "dscp", s->dscp);
		put_number(o, "source_port", s->source_port);
		json_array_append_new(list, o);
	}
	return list;
}

/* --- the decision ----------------------------------------------------------------------------- */

/* The gateway's addresses of the WAN without their ports. */
static unsigned addresses(char (*out)[PLAN_NAME_MAX], const struct ctlr_gateway *g)
{
	const char(*at)[MDL_ADDR] = g->reg.wan.at;
	unsigned i;

	for (i = 0; i < g->reg.wan.n && i < WANS_MAX; i++)
		ctlr_wan_address(out[i], at[i]);
	return i;
}

/* The end at the site that is first by name. */
static unsigned first_end(const struct ctlr_tunnel *t)
{
	return !plan_first_site(t->end[0]->reg.site, t->end[1]->reg.site);
}

struct work {
	struct plan_paths was, is;
	struct plan_granted leg[PLAN_ROUTES_MAX];
	unsigned legs;
	char addr[2][WANS_MAX][PLAN_NAME_MAX];
};

/* Adds the tunnel's parts of an entry's legs, of which `bps` are its own. */
static void add_legs(void *ctx, const json_t *entry, uint64_t bps)
{
	struct work *w = ctx;

	w->legs += ctlr_query_granted(entry, bps, &w->leg[w->legs], PLAN_ROUTES_MAX - w->legs);
}

static void steer_native(const struct ctlr_tunnel *t, struct work *w)
{
	const unsigned first = first_end(t);
	struct plan_underlay end[2];
	char local[MDL_ADDR];

	for (unsigned i = 0; i < 2; i++) {
		const struct ctlr_gateway *g = t->end[first ^ i];

		end[i] = (struct plan_underlay){
		    g->name, addresses(w->addr[i], g), (const char(*)[PLAN_NAME_MAX])w->addr[i]};
	}
	read_paths(&w->was, t->paths);
	plan_steer_paths(&w->is, &w->was, w->leg, w->legs, end,
	    ctlr_wan_pair(t->end[0], t->end[1], local) && strchr(local, ':'));
}

json_t *ctlr_steer_decide(
    struct ctlr *c, const struct ctlr_tunnel *t, enum plan_carrier carrier, char *why, size_t size)
{
	struct work *w = calloc(1, sizeof(*w));
	json_t *paths = NULL;

	*why = 0;
	if (!w)
		return NULL;
	ctlr_reserved_each(c, t->name, add_legs, w);
	if (w->legs && carrier != PLAN_NATIVE)
		snprintf(why, size, "it goes by %s, which has one way", plan_carrier_name(carrier));
	else if (w->legs)
		steer_native(t, w);
	if (*w->is.why)
		snprintf(why, size, "%s", w->is.why);
	if (w->is.n)
		paths = write_paths(&w->is, c->conf->policy.wan_ppm);
	free(w);
	return paths;
}

/* --- the document ----------------------------------------------------------------------------- */

static json_t *path_for(const json_t *p, bool first, unsigned udp_port)
{
	const bool there = mdl_number_of(p, "bandwidth_bps");
	json_t *o = json_pack("{s:o, s:I, s:i}", "label",
	    json_sprintf("%s/%s", mdl_text_of(p, "edge"), mdl_text_of(p, "path")), "rate_bps",
	    (json_int_t)mdl_number_of(p, "rate_bps"), "udp_port", (int)udp_port);

	put_text(o, "local", mdl_text_of(p, first ? "first" : "second"));
	put_text(o, "remote", mdl_text_of(p, first ? "second" : "first"));
	put_number(o, "dscp", (unsigned)mdl_number_of(p, "dscp"));
	put_number(o, "source_port", (unsigned)mdl_number_of(p, "source_port"));
	put_text(o, "use", there ? "granted" : "never");
	return o;
}

void ctlr_steer_add(const struct ctlr_gateway *g, const struct ctlr_tunnel *t, const char *remote, json_t *j)
{
	const bool first = t->end[first_end(t)] == g;
	const char *colon = strrchr(remote, ':');
	const unsigned port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	json_t *list, *p;
	size_t i;

	if (!json_array_size(t->paths) || !port || t->carrier != PLAN_NATIVE)
		return;
	list = json_array();
	json_array_foreach(t->paths, i, p)
	    json_array_append_new(list, path_for(p, first, port + APART * ((unsigned)i + 1)));
	json_object_set_new(j, "paths", list);
	/* Data without a reservation has the same ways: the network promised no others. */
	json_object_set_new(j, "own_path", json_string("spare"));
}
