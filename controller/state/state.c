/* SPDX-License-Identifier: Apache-2.0 */
/* The objects and their links to each other. apply.c reads the store's records. All locked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/ctlr.h"
#include "controller/state/flow.h"
#include "controller/state/orphan.h"
#include "controller/state/reserved.h"
#include "controller/state/work.h"

/* --- sites ------------------------------------------------------------------------------------ */

struct ctlr_site *ctlr_site_need(struct ctlr *c, const char *name)
{
	return CTLR_MAP_NEED(&c->sites, struct ctlr_site, name, name);
}

static bool site_in_use(const struct ctlr *c, const struct ctlr_site *s)
{
	const struct ctlr_lpm *l = &c->lpm;

	/* sites are few: every one is kept while there are flows or prefixes */
	return s->stored || s->gateways || l->map.n || c->flows.n;
}

void ctlr_site_drop_unused(struct ctlr *c, struct ctlr_site *s)
{
	if (site_in_use(c, s))
		return;
	ctlr_map_del(&c->sites, &s->node);
	json_decref(s->redirects);
	mdl_free(&model_site_table, &s->m);
	free(s);
}

/* --- gateways --------------------------------------------------------------------------------- */

struct ctlr_gateway *ctlr_gateway_need(struct ctlr *c, const char *name)
{
	return CTLR_MAP_NEED(&c->gateways, struct ctlr_gateway, name, name);
}

void ctlr_gateway_set_site(struct ctlr *c, struct ctlr_gateway *g, struct ctlr_site *s)
{
	struct ctlr_site *old = g->site;

	if (old == s)
		return;
	if (old) {
		struct ctlr_gateway **p = &old->gateway;

		while (*p != g)
			p = &(*p)->site_next;
		*p = g->site_next;
		old->gateways--;
		ctlr_work_add_site(c, old);
	}
	g->site = s;
	if (s) { /* sorted by name: replicas list them in the same order */
		struct ctlr_gateway **p = &s->gateway;

		while (*p && strcmp((*p)->name, g->name) < 0)
			p = &(*p)->site_next;
		g->site_next = *p;
		*p = g;
		s->gateways++;
	}
	if (old)
		ctlr_site_drop_unused(c, old);
}

void ctlr_gateway_drop_sessions(struct ctlr *c, struct ctlr_gateway *g, unsigned member)
{
	struct ctlr_session *s = g ? g->session : NULL, *next;

	for (; s; s = next) {
		next = s->next;
		if (member == CTLR_ALL_MEMBERS || s->member == member)
			ctlr_session_free(c, s);
	}
}

void ctlr_gateway_free(struct ctlr *c, struct ctlr_gateway *g)
{
	if (g->poll[0] || g->poll[1])
		c->ops->gateway_removed(c, g);
	ctlr_gateway_drop_sessions(c, g, CTLR_ALL_MEMBERS);
	for (struct ctlr_tunnel *t = g->tunnel, *next; t; t = next) {
		next = t->next[ctlr_tunnel_side(t, g)];
		ctlr_tunnel_free(c, t);
	}
	ctlr_gateway_set_site(c, g, NULL);
	for (unsigned i = 0; i < CTLR_WORK_KINDS; i++)
		ctlr_work_remove(c, g, i);
	if (g->up)
		c->up--;
	ctlr_map_del(&c->gateways, &g->node);
	mdl_free(&model_registration_table, &g->reg);
	free(g);
}

/* --- tunnels ---------------------------------------------------------------------------------- */

void ctlr_tunnel_key(char out[2 * MDL_NAME], const char *a, const char *b)
{
	const bool first = strcmp(a, b) < 0;

	snprintf(out, 2 * (size_t)MDL_NAME, "%s/%s", first ? a : b, first ? b : a);
}

struct ctlr_tunnel *ctlr_tunnel_find(struct ctlr *c, const char *a, const char *b)
{
	char key[2 * MDL_NAME];

	ctlr_tunnel_key(key, a, b);
	return ctlr_map_find(&c->tunnels, key);
}

struct ctlr_tunnel *ctlr_tunnel_need(struct ctlr *c, struct ctlr_gateway *a, struct ctlr_gateway *b)
{
	char key[sizeof(((struct ctlr_tunnel *)0)->name)];
	struct ctlr_tunnel *t;

	ctlr_tunnel_key(key, a->name, b->name);
	t = CTLR_MAP_NEED(&c->tunnels, struct ctlr_tunnel, name, key);
	if (!t || t->end[0])
		return t;
	t->end[0] = strcmp(a->name, b->name) < 0 ? a : b;
	t->end[1] = t->end[0] == a ? b : a;
	/* sorted by the peer's name: documents are the same at all replicas */
	for (unsigned i = 0; i < 2; i++) {
		struct ctlr_tunnel **p = &t->end[i]->tunnel;
		const char *peer = t->end[!i]->name;

		while (*p && strcmp((*p)->end[!ctlr_tunnel_side(*p, t->end[i])]->name, peer) < 0)
			p = &(*p)->next[ctlr_tunnel_side(*p, t->end[i])];
		t->next[i] = *p;
		*p = t;
		t->end[i]->tunnels++;
		ctlr_work_add_documents(c, t->end[i]);
	}
	return t;
}

void ctlr_tunnel_free(struct ctlr *c, struct ctlr_tunnel *t)
{
	ctlr_flow_lost_tunnel(c, t);
	ctlr_work_remove_tunnel(c, t);
	for (unsigned i = 0; i < 2; i++) {
		struct ctlr_tunnel **p = &t->end[i]->tunnel;

		while (*p != t)
			p = &(*p)->next[ctlr_tunnel_side(*p, t->end[i])];
		*p = t->next[i];
		t->end[i]->tunnels--;
		ctlr_work_add_documents(c, t->end[i]);
	}
	ctlr_map_del(&c->tunnels, &t->node);
	json_decref(t->paths);
	json_decref(t->along[0]);
	json_decref(t->along[1]);
	free(t);
}

bool ctlr_tunnel_up(const struct ctlr_tunnel *t)
{
	return t->has && t->end[0]->up && t->end[1]->up;
}

/* --- freeing all ------------------------------------------------------------------------------ */

void ctlr_state_free(struct ctlr *c)
{
	struct ctlr_map_node *n;

	while ((n = ctlr_map_next(&c->gateways, NULL)))
		ctlr_gateway_free(c, (struct ctlr_gateway *)n);
	while ((n = ctlr_map_next(&c->pushes, NULL))) {
		ctlr_map_del(&c->pushes, n);
		free(n);
	}
	while ((n = ctlr_map_next(&c->detours, NULL))) {
		ctlr_map_del(&c->detours, n);
		free(n);
	}
	while ((n = ctlr_map_next(&c->replicas, NULL))) {
		ctlr_map_del(&c->replicas, n);
		free(n);
	}
	while ((n = ctlr_map_next(&c->flows, NULL))) {
		ctlr_map_del(&c->flows, n);
		free(n);
	}
	while ((n = ctlr_map_next(&c->sites, NULL))) {
		struct ctlr_site *s = (struct ctlr_site *)n;

		ctlr_map_del(&c->sites, n);
		json_decref(s->redirects);
		mdl_free(&model_site_table, &s->m);
		free(s);
	}
	ctlr_reserved_free(c);
	ctlr_map_free(&c->pinned); /* its entries were freed with the jobs */
	ctlr_lpm_free(&c->lpm);
	ctlr_orphans_free(c);
	ctlr_map_free(&c->gateways);
	ctlr_map_free(&c->sites);
	ctlr_map_free(&c->tunnels);
	ctlr_map_free(&c->sessions);
	ctlr_map_free(&c->relay_links); /* its entries were freed with the sessions */
	ctlr_map_free(&c->flows);
	ctlr_map_free(&c->tenants);
	ctlr_map_free(&c->jobs);
	ctlr_map_free(&c->pushes);
	ctlr_map_free(&c->detours);
	ctlr_map_free(&c->replicas);
	ctlr_map_free(&c->vnis);
	ctlr_map_free(&c->routes);
	ctlr_map_free(&c->containers);
	plan_book_free(c->book);
}

struct ctlr_tunnel *ctlr_tunnel_of_pair(struct ctlr *c, const char *pair)
{
	char a[MDL_NAME], b[MDL_NAME];

	return pair && sscanf(pair, "%31[^/]/%31s", a, b) == 2 ? ctlr_tunnel_find(c, a, b) : NULL;
}

struct ctlr_job **ctlr_jobs_by_name(struct ctlr *c)
{
	struct ctlr_job **all = calloc(c->jobs.n + 1, sizeof(*all));

	if (all)
		(void)ctlr_map_page(&c->jobs, NULL, (void **)all, c->jobs.n);
	return all;
}

/* The term of a gateway's lease in ms. A gateway renews three times a term; with many gateways the
 * term grows, so that all renewals together stay below `gateways.heartbeats`. */
uint32_t ctlr_gateway_ttl_ms(const struct ctlr *c)
{
	const size_t leases = c->gateways.n + c->pairs.n; /* of a pair both have one */
	const uint64_t lease = c->conf->lease / RWY_MS, spread = leases * 3000 / c->conf->heartbeats;

	return (uint32_t)(lease > spread ? lease : spread);
}

rwy_time ctlr_lease_expiry(const struct ctlr *c)
{
	const rwy_dur term = ctlr_gateway_ttl_ms(c) * RWY_MS;

	const rwy_time now = ctlr_now();

	return rwy_time_max(now + term, c->loaded ? c->grace_until : now + c->conf->grace);
}
