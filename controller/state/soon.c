/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is looked at with the next tick: gateways whose documents may have changed, or which may have other
 * tunnels now; tunnels that are decided again. In queues, so that a tick costs what there is to do, however
 * many there are. All locked.
 */
#include "controller/state/ctlr.h"
#include "controller/state/work.h"

void gateway_soon(struct ctlr *c, struct gateway *g, enum soon what)
{
	struct soon_link *l = &g->soon[what];

	if (l->queued)
		return;
	l->queued = true;
	l->next = NULL;
	l->prev = c->soon[what].last;
	*(l->prev ? &l->prev->soon[what].next : &c->soon[what].first) = g;
	c->soon[what].last = g;
}

void gateway_not_soon(struct ctlr *c, struct gateway *g, enum soon what)
{
	struct soon_link *l = &g->soon[what];

	if (!l->queued)
		return;
	*(l->prev ? &l->prev->soon[what].next : &c->soon[what].first) = l->next;
	*(l->next ? &l->next->soon[what].prev : &c->soon[what].last) = l->prev;
	l->queued = false;
}

struct gateway *gateway_next_soon(struct ctlr *c, enum soon what)
{
	struct gateway *g = c->soon[what].first;

	if (g)
		gateway_not_soon(c, g, what);
	return g;
}

/* What is said of it is in its siblings' documents, too. */
void gateway_dirty(struct ctlr *c, struct gateway *g)
{
	gateway_soon(c, g, SOON_DOCUMENT);
	for (struct gateway *s = g->site ? g->site->gateway : NULL; s; s = s->site_next)
		gateway_soon(c, s, SOON_DOCUMENT);
}

void site_dirty(struct ctlr *c, struct site *s)
{
	for (struct gateway *g = s->gateway; g; g = g->site_next) {
		gateway_soon(c, g, SOON_DOCUMENT);
		gateway_soon(c, g, SOON_TUNNELS);
		for (struct tunnel *t = g->tunnel; t; t = t->next[tunnel_side(t, g)]) {
			tunnel_plan(c, t);
			gateway_dirty(c, t->end[!tunnel_side(t, g)]);
		}
	}
	routes_changed(c, NULL);
}

void tunnel_plan(struct ctlr *c, struct tunnel *t)
{
	if (t->plan)
		return;
	t->plan = true;
	t->plan_prev = NULL;
	t->plan_next = c->plan;
	if (c->plan)
		c->plan->plan_prev = t;
	c->plan = t;
}

void tunnel_unplan(struct ctlr *c, struct tunnel *t)
{
	if (!t->plan)
		return;
	if (t->plan_prev)
		t->plan_prev->plan_next = t->plan_next;
	else
		c->plan = t->plan_next;
	if (t->plan_next)
		t->plan_next->plan_prev = t->plan_prev;
	t->plan = false;
}

static void renew(uint64_t *gen)
{
	const uint64_t now = ctlr_wall_ms();

	*gen = now > *gen ? now : *gen + 1;
}

void routes_changed(struct ctlr *c, struct site *s)
{
	renew(s ? &s->routes_gen : &c->routes_gen);
}
