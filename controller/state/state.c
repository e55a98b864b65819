/* SPDX-License-Identifier: Apache-2.0 */
/* Objects and how they hang together. Not here: what the store says of them (apply.c). All locked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/ctlr.h"
#include "controller/state/flow.h"
#include "controller/state/reserve.h"
#include "controller/state/work.h"

/* --- sites ------------------------------------------------------------------------------------ */

struct site *site_need(struct ctlr *c, const char *name)
{
	struct site *s = map_find(&c->sites, name);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	snprintf(s->name, sizeof(s->name), "%s", name);
	if (map_add(&c->sites, &s->node, s->name)) {
		free(s);
		return NULL;
	}
	return s;
}

static bool site_in_use(const struct ctlr *c, const struct site *s)
{
	const struct lpm *l = &c->lpm;

	/* sites are few and come to stay: one that flows or tenants still name is kept */
	return s->stored || s->gateways || l->map.n || c->flows.n;
}

void site_drop_unused(struct ctlr *c, struct site *s)
{
	if (site_in_use(c, s))
		return;
	map_del(&c->sites, &s->node);
	mdl_free(&model_site_table, &s->m);
	free(s);
}

/* --- gateways --------------------------------------------------------------------------------- */

struct gateway *gateway_need(struct ctlr *c, const char *name)
{
	struct gateway *g = map_find(&c->gateways, name);

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	snprintf(g->name, sizeof(g->name), "%s", name);
	if (map_add(&c->gateways, &g->node, g->name)) {
		free(g);
		return NULL;
	}
	return g;
}

void gateway_set_site(struct ctlr *c, struct gateway *g, struct site *s)
{
	struct site *old = g->site;

	if (old == s)
		return;
	if (old) {
		struct gateway **p = &old->gateway;

		while (*p != g)
			p = &(*p)->site_next;
		*p = g->site_next;
		old->gateways--;
		site_dirty(c, old);
	}
	g->site = s;
	if (s) { /* by name: replicas weigh them in the same order */
		struct gateway **p = &s->gateway;

		while (*p && strcmp((*p)->name, g->name) < 0)
			p = &(*p)->site_next;
		g->site_next = *p;
		*p = g;
		s->gateways++;
	}
	if (old)
		site_drop_unused(c, old);
}

void gateway_free(struct ctlr *c, struct gateway *g)
{
	if (g->poll)
		c->ops->gateway_removed(c, g);
	while (g->session)
		session_free(c, g->session);
	for (struct tunnel *t = g->tunnel, *next; t; t = next) {
		next = t->next[tunnel_side(t, g)];
		tunnel_free(c, t);
	}
	gateway_set_site(c, g, NULL);
	for (unsigned i = 0; i < SOON_KINDS; i++)
		gateway_not_soon(c, g, i);
	if (g->up)
		c->up--;
	map_del(&c->gateways, &g->node);
	mdl_free(&model_registration_table, &g->reg);
	free(g);
}

/* --- tunnels ---------------------------------------------------------------------------------- */

static void tunnel_key(char out[2 * MDL_NAME], const char *a, const char *b)
{
	const bool first = strcmp(a, b) < 0;

	snprintf(out, 2 * (size_t)MDL_NAME, "%s/%s", first ? a : b, first ? b : a);
}

struct tunnel *tunnel_find(struct ctlr *c, const char *a, const char *b)
{
	char key[2 * MDL_NAME];

	tunnel_key(key, a, b);
	return map_find(&c->tunnels, key);
}

struct tunnel *tunnel_need(struct ctlr *c, struct gateway *a, struct gateway *b)
{
	struct tunnel *t = tunnel_find(c, a->name, b->name);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	tunnel_key(t->name, a->name, b->name);
	if (map_add(&c->tunnels, &t->node, t->name)) {
		free(t);
		return NULL;
	}
	t->end[0] = strcmp(a->name, b->name) < 0 ? a : b;
	t->end[1] = t->end[0] == a ? b : a;
	for (unsigned i = 0; i < 2; i++) { /* by the peer's name: documents are the same at all replicas */
		struct tunnel **p = &t->end[i]->tunnel;
		const char *peer = t->end[!i]->name;

		while (*p && strcmp((*p)->end[!tunnel_side(*p, t->end[i])]->name, peer) < 0)
			p = &(*p)->next[tunnel_side(*p, t->end[i])];
		t->next[i] = *p;
		*p = t;
		t->end[i]->tunnels++;
		gateway_dirty(c, t->end[i]);
	}
	return t;
}

void tunnel_free(struct ctlr *c, struct tunnel *t)
{
	flow_lost_tunnel(c, t);
	tunnel_unplan(c, t);
	for (unsigned i = 0; i < 2; i++) {
		struct tunnel **p = &t->end[i]->tunnel;

		while (*p != t)
			p = &(*p)->next[tunnel_side(*p, t->end[i])];
		*p = t->next[i];
		t->end[i]->tunnels--;
		gateway_dirty(c, t->end[i]);
	}
	map_del(&c->tunnels, &t->node);
	free(t);
}

bool tunnel_up(const struct tunnel *t)
{
	return t->has && t->end[0]->up && t->end[1]->up;
}

/* --- the end ---------------------------------------------------------------------------------- */

void state_free(struct ctlr *c)
{
	struct map_node *n;

	while ((n = map_next(&c->gateways, NULL)))
		gateway_free(c, (struct gateway *)n);
	while ((n = map_next(&c->pushes, NULL))) {
		map_del(&c->pushes, n);
		free(n);
	}
	while ((n = map_next(&c->replicas, NULL))) {
		map_del(&c->replicas, n);
		free(n);
	}
	while ((n = map_next(&c->flows, NULL))) {
		map_del(&c->flows, n);
		free(n);
	}
	while ((n = map_next(&c->sites, NULL))) {
		struct site *s = (struct site *)n;

		map_del(&c->sites, n);
		mdl_free(&model_site_table, &s->m);
		free(s);
	}
	reserve_free(c);
	lpm_free(&c->lpm);
	map_free(&c->gateways);
	map_free(&c->sites);
	map_free(&c->tunnels);
	map_free(&c->sessions);
	map_free(&c->flows);
	map_free(&c->tenants);
	map_free(&c->jobs);
	map_free(&c->pushes);
	map_free(&c->replicas);
	map_free(&c->vnis);
	map_free(&c->routed);
	plan_book_free(c->book);
}

struct tunnel *tunnel_of(struct ctlr *c, const char *pair)
{
	char a[MDL_NAME], b[MDL_NAME];

	return pair && sscanf(pair, "%31[^/]/%31s", a, b) == 2 ? tunnel_find(c, a, b) : NULL;
}

struct job **jobs_by_name(struct ctlr *c)
{
	struct job **all = calloc(c->jobs.n + 1, sizeof(*all));

	if (all)
		(void)map_page(&c->jobs, NULL, (void **)all, c->jobs.n);
	return all;
}

/* So that all of them together renew at most so often: three times a term. */
uint32_t gateway_ttl_ms(const struct ctlr *c)
{
	const uint64_t lease = c->conf->lease / RWY_MS, spread = c->gateways.n * 3000 / c->conf->heartbeats;

	return (uint32_t)(lease > spread ? lease : spread);
}
