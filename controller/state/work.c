/* SPDX-License-Identifier: Apache-2.0 */
/* Work queues of the next tick; see work.h. */
#include "controller/state/work.h"

void ctlr_work_add(struct ctlr *c, struct ctlr_gateway *g, enum ctlr_work what)
{
	struct ctlr_work_link *l = &g->work[what];

	if (l->queued)
		return;
	l->queued = true;
	l->next = NULL;
	l->prev = c->work[what].last;
	*(l->prev ? &l->prev->work[what].next : &c->work[what].first) = g;
	c->work[what].last = g;
}

void ctlr_work_remove(struct ctlr *c, struct ctlr_gateway *g, enum ctlr_work what)
{
	struct ctlr_work_link *l = &g->work[what];

	if (!l->queued)
		return;
	*(l->prev ? &l->prev->work[what].next : &c->work[what].first) = l->next;
	*(l->next ? &l->next->work[what].prev : &c->work[what].last) = l->prev;
	l->queued = false;
}

struct ctlr_gateway *ctlr_work_next(struct ctlr *c, enum ctlr_work what)
{
	struct ctlr_gateway *g = c->work[what].first;

	if (g)
		ctlr_work_remove(c, g, what);
	return g;
}

/* The documents of a gateway's siblings describe it, too. */
void ctlr_work_add_documents(struct ctlr *c, struct ctlr_gateway *g)
{
	ctlr_work_add(c, g, CTLR_WORK_DOCUMENT);
	for (struct ctlr_gateway *s = g->site ? g->site->gateway : NULL; s; s = s->site_next)
		ctlr_work_add(c, s, CTLR_WORK_DOCUMENT);
}

void ctlr_work_add_site(struct ctlr *c, struct ctlr_site *s)
{
	for (struct ctlr_gateway *g = s->gateway; g; g = g->site_next) {
		ctlr_work_add(c, g, CTLR_WORK_DOCUMENT);
		ctlr_work_add(c, g, CTLR_WORK_TUNNELS);
		for (struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)]) {
			ctlr_work_add_tunnel(c, t);
			ctlr_work_add_documents(c, t->end[!ctlr_tunnel_side(t, g)]);
		}
	}
	ctlr_work_routes_changed(c, NULL);
}

void ctlr_work_add_tunnel(struct ctlr *c, struct ctlr_tunnel *t)
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

void ctlr_work_remove_tunnel(struct ctlr *c, struct ctlr_tunnel *t)
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

static void renew_generation(uint64_t *gen)
{
	const uint64_t now = ctlr_wall_ms();

	*gen = now > *gen ? now : *gen + 1;
}

void ctlr_work_routes_changed(struct ctlr *c, struct ctlr_site *s)
{
	renew_generation(s ? &s->routes_gen : &c->routes_gen);
}
