/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tunnel a connection goes through: what was assigned to its addresses (and its QP), or else the
 * prefix. Asked once, when the half is made. Not here: prefixes themselves (route.c), tunnels (tunnel.c).
 */
#include <stdlib.h>

#include "gateway/engine/eng.h"

/* Open addressing; a slot without a tunnel ends a search. */
struct eng_ways {
	uint32_t mask, n;
	struct eng_way_cfg slot[]; /* tunnel + 1; 0: empty */
};

static uint32_t hash(uint32_t vni, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn)
{
	const struct eng_key k = {*src, *dst, dqpn, vni};

	return eng_key_hash(&k, false);
}

static bool same(const struct eng_way_cfg *w, uint32_t vni, const struct rwy_ip *src,
    const struct rwy_ip *dst, uint32_t dqpn)
{
	return w->vni == vni && w->dqpn == dqpn && rwy_ip_eq(&w->src, src) && rwy_ip_eq(&w->dst, dst);
}

int eng_ways_new(struct eng_ways **out, const struct eng_way_cfg *v, unsigned n)
{
	uint32_t size = 16;
	struct eng_ways *w;

	while (size < 2 * n)
		size *= 2;
	w = calloc(1, sizeof(*w) + size * sizeof(w->slot[0]));
	if (!w)
		return RWY_ENOMEM;
	w->mask = size - 1;
	for (unsigned i = 0; i < n; i++) {
		uint32_t at = hash(v[i].vni, &v[i].src, &v[i].dst, v[i].dqpn) & w->mask;

		while (w->slot[at].tunnel && !same(&w->slot[at], v[i].vni, &v[i].src, &v[i].dst, v[i].dqpn))
			at = (at + 1) & w->mask;
		w->n += !w->slot[at].tunnel;
		w->slot[at] = v[i]; /* of two the last */
		w->slot[at].tunnel = (uint8_t)(v[i].tunnel + 1);
	}
	*out = w;
	return 0;
}

void eng_ways_free(struct eng_ways *w)
{
	free(w);
}

struct eng_ways *eng_ways_set(struct eng *e, struct eng_ways *w)
{
	struct eng_ways *old = e->ways;

	e->ways = w;
	return old;
}

static int find(
    const struct eng_ways *w, uint32_t vni, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn)
{
	uint32_t at = hash(vni, src, dst, dqpn) & w->mask;

	for (; w->slot[at].tunnel; at = (at + 1) & w->mask)
		if (same(&w->slot[at], vni, src, dst, dqpn))
			return w->slot[at].tunnel - 1;
	return -1;
}

int eng_way(const struct eng *e, uint32_t tenant, const struct rwy_ip *local, const struct rwy_ip *remote,
    uint32_t dqpn)
{
	const struct eng_ten *t = eng_tenant(e, tenant);
	int to = -1;

	if (e->ways && e->ways->n && t) {
		to = dqpn ? find(e->ways, t->cfg.vni, local, remote, dqpn) : -1;
		if (to < 0)
			to = find(e->ways, t->cfg.vni, local, remote, 0);
	}
	/* What is assigned to a tunnel that goes, goes as if nothing were assigned. */
	if (to >= 0 && eng_tunnel_there(e, (unsigned)to))
		return to;
	return eng_route_in(e, tenant, remote);
}

bool eng_behind(const struct eng *e, uint32_t tenant, const struct rwy_ip *local, const struct rwy_ip *remote,
    unsigned tunnel)
{
	const struct eng_ten *t = eng_tenant(e, tenant);

	return t && (eng_way(e, tenant, local, remote, 0) == (int)tunnel ||
	                eng_route_has(t->cfg.prefix, t->cfg.prefixes, remote, tunnel));
}

void eng_move(struct eng_half *h, unsigned tunnel)
{
	h->e->tun[h->tunnel].halves--;
	h->e->tun[tunnel].halves++;
	h->tunnel = (uint8_t)tunnel;
}

void eng_leave(struct eng_half *h, rwy_time now)
{
	struct eng_near *n = (struct eng_near *)h;

	if (h->is_far) {
		eng_far_free((struct eng_far *)h, now);
		return;
	}
	/* What its host was acknowledged may be lost: it must hear of that, when it asks for anything more.
	 * With nothing on the way the connection goes on elsewhere as if it were new. */
	if (h->state != ENG_FAILED && n->active && n->custody)
		eng_near_fail(n, n->resp.acked, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
		    "its tunnel was removed", now);
	if (h->state != ENG_FAILED) {
		eng_near_free(n, now);
		return;
	}
	eng_near_abort(n, now);
	if (n->rsp)
		wan_rx_reset(n->rsp, now);
	n->rsp = NULL;
	h->e->tun[ENG_NO_TUNNEL].min_rtt = h->e->tun[h->tunnel].min_rtt;
	eng_move(h, ENG_NO_TUNNEL);
}
