/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a gateway's document. It comes from stored records alone, so every replica makes the same
 * one. Its generation is the revision of the last change of anything in it; a removal leaves its
 * revision under touch/.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/job/jobs.h"
#include "controller/state/ctlr.h"
#include "controller/state/path.h"
#include "controller/state/pinned.h"

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The revision of the last change of a gateway's tunnels. */
static uint64_t tunnels_rev(const struct ctlr_gateway *g)
{
	uint64_t gen = 0;

	for (const struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)]) {
		const struct ctlr_gateway *peer = t->end[!ctlr_tunnel_side(t, g)];

		if (!t->has)
			continue;
		gen = max_u64(gen, max_u64(t->mod_rev, peer->mod_rev));
		if (peer->site)
			gen = max_u64(gen, peer->site->mod_rev);
	}
	return gen;
}

uint64_t ctlr_document_generation(const struct ctlr *c, const struct ctlr_gateway *g)
{
	uint64_t gen = max_u64(max_u64(g->mod_rev, g->touch_rev), max_u64(c->touch_rev, g->job_rev));

	if (g->site)
		gen = max_u64(gen, max_u64(g->site->mod_rev, g->site->changed_rev));
	gen = max_u64(gen, tunnels_rev(g));
	for (const struct ctlr_gateway *s = g->site ? g->site->gateway : NULL; s; s = s->site_next)
		if (s != g)
			gen = max_u64(gen, max_u64(max_u64(s->mod_rev, s->job_rev), tunnels_rev(s)));
	return gen;
}

static json_t *prefixes_json(const struct ctlr_site *s)
{
	const char(*p)[MDL_ADDR] = s->m.prefixes.at;
	json_t *list = json_array();

	for (unsigned i = 0; i < s->m.prefixes.n; i++)
		json_array_append_new(list, json_string(p[i]));
	return list;
}

/* The tunnel can move to RDMA. Older gateways refuse what they do not know. */
static void rdma_add(const struct ctlr_gateway *g, const struct ctlr_gateway *peer, json_t *j)
{
	if (ctlr_path_rdma(g, peer))
		json_object_set_new(j, "rdma",
		    json_pack("{s:s, s:s}", "local", g->reg.capabilities.rdma.address, "remote",
		        peer->reg.capabilities.rdma.address));
}

static json_t *tunnel_for(struct ctlr *c, const struct ctlr_gateway *g, const struct ctlr_tunnel *t)
{
	const struct ctlr_gateway *peer = t->end[!ctlr_tunnel_side(t, g)];
	const bool serves = peer->up && ctlr_path_serves(t);
	char local[MDL_ADDR];
	const char *remote = ctlr_wan_pair(g, peer, local);
	json_t *j;

	if (!remote || !peer->site)
		return NULL;
	j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:I, s:o, s:s}", "name", peer->name, "peer",
	    peer->name, "remote", remote, "local", local, "carrier", plan_carrier_name(t->carrier),
	    "rate_bps", (json_int_t)t->rate_bps, "dscp", 0, "weight", (json_int_t)(serves ? t->weight : 0),
	    "prefixes", serves ? prefixes_json(peer->site) : json_array(), "security",
	    c->conf->security == CONF_SEC_KEYS ? "keys" : "none");
	ctlr_detour_add(c, t, j);
	ctlr_steer_add(g, t, remote, j);
	rdma_add(g, peer, j);
	return j;
}

/* The job's wishes for the tunnel. It changes to the carrier of its jobs with the next change of
 * the tunnel; until then an assignment that named it would be refused. */
static void put_wishes(json_t *a, const struct ctlr_job *j, const struct ctlr_tunnel *t)
{
	const json_t *job = json_object_get(j->json, "job");
	const enum plan_carrier wants = ctlr_pinned_wanted(job);

	if (wants == PLAN_ANY || wants != t->carrier || json_object_get(j->json, "preempted"))
		return;
	json_object_set_new(a, "carrier", json_string(plan_carrier_name(wants)));
	if (json_object_get(job, "dscp"))
		json_object_set_new(a, "dscp", json_copy(json_object_get(job, "dscp")));
}

static json_t *assignment_json(const struct ctlr_job *j, const struct ctlr_tunnel *t, const json_t *row,
    bool first, const char *pair, const char *slash)
{
	json_t *a = json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "job", j->name, "vni", (json_int_t)j->vni,
	    "source", json_copy(json_object_get(row, first ? "source" : "destination")), "destination",
	    json_copy(json_object_get(row, first ? "destination" : "source")), "tunnel",
	    first ? json_string(slash + 1) : json_stringn(pair, (size_t)(slash - pair)), "rate_bps",
	    json_copy(json_object_get(row, "gateway_bps")));

	const uint64_t priority = ctlr_job_priority(j);

	put_wishes(a, j, t);
	/* Others have its room: it gets the tenant's share. */
	if (json_object_get(j->json, "preempted"))
		json_object_set_new(a, "rate_bps", json_integer(0));
	if (priority)
		json_object_set_new(a, "priority", json_integer((json_int_t)priority));
	if (mdl_number_of(row, "source_qpn")) {
		json_object_set_new(a, "source_qpn",
		    json_integer((json_int_t)mdl_number_of(row, first ? "source_qpn" : "destination_qpn")));
		json_object_set_new(a, "destination_qpn",
		    json_integer((json_int_t)mdl_number_of(row, first ? "destination_qpn" : "source_qpn")));
	}
	return a;
}

/* Appends the job's assignments in the gateway's own terms: from its site to the other one. */
static void job_assignments(struct ctlr *c, struct ctlr_gateway *g, json_t *list)
{
	const struct ctlr_tunnel *t;
	struct ctlr_job **all = ctlr_jobs_by_name(c);
	json_t *row;
	size_t i;

	for (struct ctlr_job **p = all; p && *p; p++) {
		const struct ctlr_job *j = *p;

		if (ctlr_job_lacks_tenant(c, j))
			continue;
		json_array_foreach(json_object_get(j->json, "plan"), i, row)
		{
			const char *pair = json_string_value(json_object_get(row, "pair"));
			const char *slash = pair ? strchr(pair, '/') : NULL;
			const size_t n = strlen(g->name);
			const bool first = slash && (size_t)(slash - pair) == n && !strncmp(pair, g->name, n);
			const bool second = slash && !strcmp(slash + 1, g->name);

			if (!first && !second)
				continue;
			t = ctlr_tunnel_of_pair(c, pair);
			if (!t || !ctlr_tunnel_up(t)) /* a broken job's pair that has no tunnel */
				continue;
			json_array_append_new(list, assignment_json(j, t, row, first, pair, slash));
		}
	}
	free(all);
}

/* Another gateway of the site: its LAN address, its tunnels, and the address pairs that a plan
 * assigns to it. NULL: it has no LAN address. */
static json_t *sibling_for(struct ctlr *c, struct ctlr_gateway *s)
{
	const char(*lan)[MDL_ADDR] = s->reg.lan.at;
	json_t *tunnels = json_array(), *pairs = json_array(), *all = json_array(), *a;
	size_t i;

	for (const struct ctlr_tunnel *t = s->tunnel; t; t = t->next[ctlr_tunnel_side(t, s)]) {
		const struct ctlr_gateway *peer = t->end[!ctlr_tunnel_side(t, s)];
		char local[MDL_ADDR];

		if (t->has && peer->site && ctlr_wan_pair(s, peer, local))
			json_array_append_new(tunnels, json_pack("{s:s, s:I}", "peer", peer->name, "weight",
			                                   (json_int_t)(peer->up ? t->weight : 0)));
	}
	job_assignments(c, s, all);
	json_array_foreach(all, i, a)
	{
		json_t *p = json_integer_value(json_object_get(a, "vni")) ? NULL : json_deep_copy(a);

		json_object_del(p, "job"); /* the other fields say which packets */
		json_object_del(p, "tunnel");
		json_object_del(p, "rate_bps");
		json_object_del(p, "priority");
		json_object_del(p, "carrier");
		json_object_del(p, "dscp");
		if (p)
			json_array_append_new(pairs, p);
	}
	json_decref(all);
	if (!s->reg.lan.n) {
		json_decref(tunnels);
		json_decref(pairs);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", s->name, "address", lan[0], "state",
	    s->up ? "up" : "lost", "tunnels", tunnels, "pairs", pairs);
}

/* Appends the tenants of the gateway's site, and their permits. A relay has none: hosts connect to
 * its own address. */
static void tenants_add(struct ctlr *c, const struct ctlr_gateway *g, json_t *tenants, json_t *permits)
{
	struct ctlr_tenant **all = ctlr_is_relay(g) ? NULL : calloc(c->tenants.n + 1, sizeof(*all));
	/* sorted by name, as at every replica */
	const size_t n = all ? ctlr_map_page(&c->tenants, NULL, (void **)all, c->tenants.n) : 0;

	for (size_t i = 0; i < n; i++) {
		json_t *j = ctlr_tenant_for(c, all[i], g);

		if (!j)
			continue;
		ctlr_permits_add(all[i], permits);
		json_array_append_new(tenants, j);
	}
	free(all);
}

/* Appends the other gateways of the site. Packets of hosts come to gateways by routes that may
 * change, but to a relay because it was named: no other takes its place. */
static void siblings_add(struct ctlr *c, struct ctlr_gateway *g, json_t *siblings)
{
	if (!g->site || ctlr_is_relay(g))
		return;
	for (struct ctlr_gateway *s = g->site->gateway; s; s = s->site_next) {
		json_t *j = s != g && !ctlr_is_relay(s) ? sibling_for(c, s) : NULL;

		if (j)
			json_array_append_new(siblings, j);
	}
}

json_t *ctlr_document_json(struct ctlr *c, struct ctlr_gateway *g)
{
	json_t *tenants = json_array(), *tunnels = json_array(), *assignments = json_array();
	json_t *siblings = json_array(), *permits = json_array(), *doc;

	for (const struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)]) {
		json_t *j = t->has ? tunnel_for(c, g, t) : NULL;

		if (j)
			json_array_append_new(tunnels, j);
	}
	tenants_add(c, g, tenants, permits);
	job_assignments(c, g, assignments);
	siblings_add(c, g, siblings);
	doc = json_pack("{s:I, s:o, s:o, s:o, s:o}", "generation", (json_int_t)ctlr_document_generation(c, g),
	    "tenants", tenants, "tunnels", tunnels, "assignments", assignments, "siblings", siblings);
	/* A gateway that does not know permits refuses what it does not know. */
	if (json_array_size(permits))
		json_object_set(doc, "permits", permits);
	json_decref(permits);
	return doc;
}
