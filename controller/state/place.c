/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places flows on tunnels. A flow is placed when its first session opens, and keeps its tunnel
 * while that is up. Both directions, and all reporters, share the flow. flow.c ends it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/event.h"
#include "controller/state/flow.h"
#include "controller/state/path.h"
#include "controller/state/route_index.h"
#include "controller/state/work.h"

#define GATEWAYS_MAX 64

/* Counts the other queue pairs of the flow's job on this tunnel. */
static uint32_t flows_of_job(const struct ctlr_tunnel *t, const struct ctlr_flow *f)
{
	uint32_t n = 0;

	for (const struct ctlr_flow *x = t->flow; x; x = x->next)
		n += x != f && x->qpn[0] && x->job == f->job;
	return n;
}

/* The tunnel of a flow: the one that its job's plan names; else `now`, the one that a gateway
 * reports; else by weighted rendezvous over the pairs of its sites' gateways. NULL: none is up. */
static struct ctlr_tunnel *choose_tunnel(
    struct ctlr *c, const struct ctlr_flow *f, struct ctlr_tunnel *now, enum ctlr_flow_why *why)
{
	/* static for its size; the lock protects it */
	static struct plan_pair pair[GATEWAYS_MAX * GATEWAYS_MAX];
	static struct ctlr_tunnel *tunnel[GATEWAYS_MAX * GATEWAYS_MAX];
	static uint32_t count[GATEWAYS_MAX * GATEWAYS_MAX];
	struct ctlr_gateway *g[2][GATEWAYS_MAX];
	uint32_t w[2][GATEWAYS_MAX];
	const unsigned a = ctlr_path_weights(f->site[0], g[0], w[0], GATEWAYS_MAX);
	const unsigned b = ctlr_path_weights(f->site[1], g[1], w[1], GATEWAYS_MAX);
	const enum plan_grain grain = f->qpn[0] ? PLAN_GRAIN_QP : PLAN_GRAIN_ADDRESS;
	struct ctlr_tunnel *t = ctlr_route_tunnel(c, f);
	struct plan_end end[2] = {{.qpn = f->qpn[0]}, {.qpn = f->qpn[1]}};
	uint64_t key;
	unsigned n = 0;
	int k;

	*why = FLOW_JOB;
	if (t && ctlr_tunnel_up(t))
		return t;
	*why = FLOW_UNDER_WAY;
	if (now && ctlr_tunnel_up(now) &&
	    ((now->end[0]->site == f->site[0] && now->end[1]->site == f->site[1]) ||
	        (now->end[0]->site == f->site[1] && now->end[1]->site == f->site[0])))
		return now;
	*why = FLOW_SPREAD;
	for (unsigned i = 0; i < a; i++)
		for (unsigned j = 0; j < b; j++) {
			t = ctlr_tunnel_find(c, g[0][i]->name, g[1][j]->name);
			if (!t || !ctlr_tunnel_up(t) || !ctlr_path_serves(t))
				continue;
			pair[n] = (struct plan_pair){plan_id(g[0][i]->name), plan_id(g[1][j]->name),
			    plan_pair_weight(w[0][i], w[1][j])};
			count[n] = grain == PLAN_GRAIN_QP ? flows_of_job(t, f) : t->flows;
			tunnel[n++] = t;
		}
	for (unsigned i = 0; i < 2; i++)
		if (!ctlr_lpm_parse_ip(f->addr[i], &end[i].addr))
			return NULL;
	key = plan_key(grain, f->vni, &end[0], &end[1]);
	if (grain == PLAN_GRAIN_QP && c->replicas.n > 1)
		/* different replicas may decide about its two ends */
		k = plan_spread(pair, n, key);
	else
		k = n ? plan_spread_next(pair, n, count, key) : -1;
	return k < 0 ? NULL : tunnel[k];
}

static bool job_by_qp(const struct ctlr_job *j)
{
	return !strcmp(mdl_text_of(json_object_get(j->json, "job"), "granularity"), "qp");
}

static void place_flow(struct ctlr *c, struct ctlr_flow *f, struct ctlr_tunnel *now)
{
	struct ctlr_tunnel *t = choose_tunnel(c, f, now, &f->why);

	ctlr_flow_unlink(f);
	if (t)
		ctlr_flow_link(f, t);
	ctlr_work_routes_changed(c, f->site[0]);
	ctlr_work_routes_changed(c, f->site[1]);
}

static struct ctlr_site *site_of(struct ctlr *c, uint32_t vni, const char *addr)
{
	struct rwy_ip a;

	return ctlr_lpm_parse_ip(addr, &a) ? ctlr_lpm_find(&c->lpm, vni, &a) : NULL;
}

struct ctlr_flow *ctlr_flow_decide(struct ctlr *c, uint32_t vni, const char *source, const char *destination,
    const uint32_t qpn[2], struct ctlr_site *at, struct ctlr_tunnel *now, const char **reason)
{
	struct ctlr_site *s = site_of(c, vni, source), *d = site_of(c, vni, destination);
	const struct ctlr_job *j =
	    qpn[0] && qpn[1] ? ctlr_route_job(c, vni, source, destination, qpn[0], qpn[1]) : NULL;
	const bool by_qp = j && job_by_qp(j);
	char key[sizeof(((struct ctlr_flow *)0)->key)];
	struct ctlr_flow *f;
	bool swap;

	if (!s && d != at)
		s = at;
	else if (!d && s != at)
		d = at;
	if (!s || !d || s == d) {
		*reason = s == d && s ? "both addresses are at one site" : "an address is at no known site";
		return NULL;
	}
	swap = !plan_first_site(s->name, d->name);
	ctlr_flow_key(key, vni, swap ? destination : source, swap ? source : destination,
	    by_qp ? qpn[swap] : 0, by_qp ? qpn[!swap] : 0);
	f = ctlr_map_find(&c->flows, key);
	if (!f) {
		f = ctlr_flow_new(c, key);
		if (!f) {
			*reason = "out of memory";
			return NULL;
		}
		f->vni = vni;
		f->qpn[0] = by_qp ? qpn[swap] : 0;
		f->qpn[1] = by_qp ? qpn[!swap] : 0;
		f->job = by_qp ? plan_id(j->name) : 0;
		snprintf(f->addr[0], MDL_ADDR, "%s", swap ? destination : source);
		snprintf(f->addr[1], MDL_ADDR, "%s", swap ? source : destination);
	}
	f->site[0] = swap ? d : s;
	f->site[1] = swap ? s : d;
	if (!f->tunnel || !ctlr_tunnel_up(f->tunnel))
		place_flow(c, f, now);
	*reason = f->tunnel ? NULL : "no pair of gateways of these sites is up with a tunnel";
	return f;
}

void ctlr_flow_settle(struct ctlr *c, struct ctlr_flow *f)
{
	if (!f->tunnel || !ctlr_tunnel_up(f->tunnel))
		place_flow(c, f, NULL);
}

/* --- changes of tunnels ----------------------------------------------------------------------- */

void ctlr_flow_replan_gateway(struct ctlr *c, struct ctlr_gateway *g)
{
	unsigned n = 0;

	for (struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)])
		for (struct ctlr_flow *f = t->flow, *next; f && !ctlr_tunnel_up(t); f = next, n++) {
			next = f->next;
			place_flow(c, f, NULL);
		}
	if (n)
		ctlr_event(c, EVENT_INFO, "plan", g->name, "%u flows of its tunnels go elsewhere", n);
}

/* --- the end of sessions ---------------------------------------------------------------------- */
