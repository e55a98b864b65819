/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by its destination where a packet goes: to a tunnel, here, to the kernel, nowhere. */
#include "gateway/datapath/rx.h"
#include "gateway/port/neigh.h"

static int verdict_decide(const struct gw_worker *w, const struct gw_port *p, const struct rwy_ip *dst)
{
	for (unsigned i = 0; i < p->conf->addrs; i++)
		if (rwy_ip_eq(&p->conf->addr[i].addr, dst))
			return GW_OWN;
	if (dst->b[0] == 0xfe && (dst->b[1] & 0xc0) == 0x80) /* link-local: the tap has one */
		return GW_TO_KERNEL;
	if (p->conf->role == CONF_ROLE_LAN) {
		int t = eng_route_plain(w->eng, dst);

		if (t >= 0)
			return t;
	}
	return GW_NO_ROUTE;
}

/* Behind a small cache, because verdict_decide() walks lists. */
int gw_verdict_find(struct gw_worker *w, const struct gw_port *p, const struct rwy_ip *dst)
{
	struct gw_verdict *v = &w->verdict[p->idx][gw_neigh_hash(0, dst) & (GW_VERDICTS - 1)];

	if (!v->valid || !rwy_ip_eq(&v->addr, dst)) {
		v->addr = *dst;
		v->tunnel = (int16_t)verdict_decide(w, p, dst);
		v->valid = 1;
	}
	return v->tunnel;
}

int gw_verdict_route(struct gw_worker *w, const struct rwy_ip *host)
{
	for (unsigned i = 0; i < w->ports; i++)
		if (w->app->port[i]->conf->role == CONF_ROLE_LAN)
			return gw_verdict_find(w, w->app->port[i], host);
	return GW_NO_ROUTE;
}
