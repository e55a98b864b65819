/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input for the planner: weights of a site's gateways, a gateway's capabilities, and the path
 * between two gateways from measurements, networks' promises and reservations. Changes nothing.
 */
#include <string.h>

#include "controller/state/ctlr.h"
#include "controller/state/path.h"
#include "controller/state/pinned.h"
#include "controller/state/reserved.h"

#define GATEWAYS_MAX 64
#define OBS_MAX      (2 * PLAN_CARRIER_COUNT + 17)

unsigned ctlr_path_weights(const struct ctlr_site *s, struct ctlr_gateway **g, uint32_t *w, unsigned max)
{
	static const char *const name[] = {"equal", "bandwidth", "least"};
	const struct plan_weight_ops *ops =
	    plan_weight_find(s->m.has_weighting ? name[s->m.weighting] : "bandwidth");
	struct plan_gateway_load load[GATEWAYS_MAX];
	unsigned n = 0;

	for (struct ctlr_gateway *it = s->gateway; it && n < max && n < GATEWAYS_MAX;
	     it = it->site_next, n++) {
		g[n] = it;
		load[n] = (struct plan_gateway_load){.up = it->up,
		    .bandwidth_bps = it->reg.capabilities.rocev2.bandwidth_bps
		                         ? it->reg.capabilities.rocev2.bandwidth_bps
		                         : it->reg.capabilities.tcp.bandwidth_bps,
		    .rate_bps = it->load.rate_bps,
		    .sessions = (uint32_t)it->load.sessions,
		    .cpu_ppm = (uint32_t)it->load.cpu_ppm,
		    .custody_ppm = (uint32_t)it->load.custody_ppm};
	}
	if (n)
		ops->weigh(load, n, w);
	return n;
}

void ctlr_path_caps(const struct ctlr_gateway *g, struct plan_caps *out)
{
	const struct model_caps *m = &g->reg.capabilities;
	const char(*a)[MDL_NAME] = m->tcp.algorithms.at;

	memset(out, 0, sizeof(*out));
	out->bandwidth_bps[PLAN_NATIVE] = m->rocev2.bandwidth_bps;
	out->bandwidth_bps[PLAN_TCP] = m->tcp.bandwidth_bps;
	out->bandwidth_bps[PLAN_QUIC] = m->quic.bandwidth_bps;
	out->bandwidth_bps[PLAN_RDMA] = m->rdma.bandwidth_bps;
	out->quic_cubic = m->quic.has_congestion_control && m->quic.congestion_control == MODEL_CUBIC;
	out->rdma_qps = (uint8_t)m->rdma.qps;
	out->rdma_window = m->rdma.window_bytes;
	out->cnp = m->rocev2.cnp;
	for (unsigned i = 0; i < m->tcp.algorithms.n; i++)
		out->tcp_algorithms |= !strcmp(a[i], "bbr")     ? PLAN_TCP_BBR
		                       : !strcmp(a[i], "cubic") ? PLAN_TCP_CUBIC
		                       : !strcmp(a[i], "reno")  ? PLAN_TCP_RENO
		                                                : 0;
}

bool ctlr_path_rdma(const struct ctlr_gateway *a, const struct ctlr_gateway *b)
{
	const struct model_caps *x = &a->reg.capabilities, *y = &b->reg.capabilities;

	return x->has_rdma && y->has_rdma && (*x->rdma.address == '[') == (*y->rdma.address == '[') &&
	       !strcmp(strrchr(x->rdma.address, ':'), strrchr(y->rdma.address, ':'));
}

static struct plan_obs obs_measured(const struct ctlr_link *l, uint32_t source)
{
	const struct model_link *m = &l->m;
	struct plan_obs o = {.source = source,
	    .carrier = (enum plan_carrier)m->carrier,
	    .has = PLAN_HAS_LOSS | PLAN_HAS_JITTER,
	    .at = l->at,
	    .bandwidth_bps = m->bandwidth_bps,
	    .rtt_us = (uint32_t)(m->rtt_us < PLAN_US_MAX ? m->rtt_us : PLAN_US_MAX),
	    .jitter_us = (uint32_t)(m->jitter_us < PLAN_US_MAX ? m->jitter_us : PLAN_US_MAX),
	    .loss_ppm = (uint32_t)m->loss_ppm,
	    .burst = (uint32_t)m->burst};

	o.has |= m->bandwidth_bps ? PLAN_HAS_BANDWIDTH : 0;
	o.has |= m->rtt_us ? PLAN_HAS_RTT : 0;
	o.has |= m->burst ? PLAN_HAS_BURST : 0;
	return o;
}

static bool obs_pushed(const struct ctlr_push *p, struct plan_obs *o, rwy_time now)
{
	const uint64_t wall = ctlr_wall_ms();
	/* the clock of the replica that took it may be ahead */
	const uint64_t age = wall > p->at_ms ? (wall - p->at_ms) * RWY_MS : 0;

	if (age > p->m.ttl_ms * RWY_MS || age > now)
		return false;
	*o = (struct plan_obs){.source = p->id + 2,
	    .pushed = true,
	    .carrier = PLAN_ANY,
	    .cls = (enum plan_class)p->m.class,
	    .has = PLAN_HAS_BANDWIDTH | PLAN_HAS_RTT | PLAN_HAS_JITTER | PLAN_HAS_LOSS,
	    .at = now - age,
	    .ttl = p->m.ttl_ms * RWY_MS,
	    .bandwidth_bps = p->m.bandwidth_bps,
	    .rtt_us = (uint32_t)(2 * p->m.delay_us < PLAN_US_MAX ? 2 * p->m.delay_us : PLAN_US_MAX),
	    .jitter_us = (uint32_t)(p->m.jitter_us < PLAN_US_MAX ? p->m.jitter_us : PLAN_US_MAX),
	    .loss_ppm = (uint32_t)p->m.loss_ppm};
	return true;
}

void ctlr_path_get(
    struct ctlr *c, const struct ctlr_tunnel *t, unsigned from, struct plan_path *out, rwy_time now)
{
	const struct ctlr_site *a = t->end[from]->site, *b = t->end[!from]->site;
	struct plan_obs obs[OBS_MAX];
	const unsigned most = OBS_MAX;
	bool reserved;
	struct ctlr_push *p;
	unsigned n = 0;

	/* The other end's measurements come first: of two of the same age the later in the list
	 * counts. */
	for (unsigned e = 0; e < 2; e++)
		for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++) {
			const struct ctlr_link *l = &t->link[e ? from : !from][k];

			if (l->has)
				obs[n++] = obs_measured(l, 1 + (e ? from : !from));
		}
	reserved = ctlr_reserved_obs(c, t->name, &obs[n], now);
	n += reserved;
	if (c->pushes.n && a && b)
		CTLR_MAP_EACH(&c->pushes, p)
		{
			const bool forth = !strcmp(p->site[0], a->name) && !strcmp(p->site[1], b->name);
			const bool back = !strcmp(p->site[0], b->name) && !strcmp(p->site[1], a->name);

			if ((!forth && !back) || n == most || !obs_pushed(p, &obs[n], now))
				continue;
			if (reserved && obs[n].cls == PLAN_INTERNET)
				obs[n].cls = PLAN_RESERVED; /* networks reserve a part of it */
			n++;
		}
	plan_path_merge(out, obs, n, now);
}

static bool site_wants(const struct ctlr_site *a, const struct ctlr_site *b)
{
	const char(*p)[MDL_NAME] = a->m.peers.at;

	if (!a->m.has_peers)
		return true;
	for (unsigned i = 0; i < a->m.peers.n; i++)
		if (!strcmp(p[i], b->name))
			return true;
	return false;
}

bool ctlr_sites_want(const struct ctlr_site *a, const struct ctlr_site *b)
{
	return a != b && site_wants(a, b) && site_wants(b, a);
}

/* Whether a gateway of g's kind is up at the site, with a tunnel to g. */
static bool has_like(const struct ctlr_gateway *g, const struct ctlr_site *at)
{
	for (const struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)]) {
		const struct ctlr_gateway *peer = t->end[!ctlr_tunnel_side(t, g)];

		if (t->has && peer->site == at && peer->up && ctlr_is_relay(peer) == ctlr_is_relay(g))
			return true;
	}
	return false;
}

bool ctlr_path_serves(const struct ctlr_tunnel *t)
{
	const struct ctlr_gateway *a = t->end[0], *b = t->end[1];

	return ctlr_is_relay(a) == ctlr_is_relay(b) || (!has_like(a, b->site) && !has_like(b, a->site));
}

void ctlr_path_between(struct ctlr *c, const char *first, const char *second, struct plan_path *out)
{
	const struct ctlr_site *a = ctlr_map_find(&c->sites, first), *b = ctlr_map_find(&c->sites, second);

	plan_path_default(out);
	for (const struct ctlr_gateway *g = a ? a->gateway : NULL; g; g = g->site_next)
		for (const struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)])
			if (b && t->end[!ctlr_tunnel_side(t, g)]->site == b && ctlr_tunnel_up(t)) {
				ctlr_path_get(c, t, ctlr_tunnel_side(t, g), out, ctlr_now());
				return;
			}
}

void ctlr_path_question(struct ctlr *c, const struct ctlr_tunnel *t, struct plan_question *q, rwy_time now)
{
	memset(q, 0, sizeof(*q));
	ctlr_path_caps(t->end[0], &q->source);
	ctlr_path_caps(t->end[1], &q->destination);
	if (!ctlr_path_rdma(t->end[0], t->end[1]))
		q->source.bandwidth_bps[PLAN_RDMA] = 0;
	ctlr_path_get(c, t, 0, &q->path, now);
	q->pinned = ctlr_pinned_get(c, t->end[0]->name, t->end[1]->name, NULL);
}
