/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/datapath/vtep.h"

#include <string.h>

#include "gateway/datapath/resolve.h"
#include "rwy/prefix.h"

bool gw_vtep_genuine(struct gw_worker *w, const struct gw_from *f)
{
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;
	const struct gw_nh *nh = gw_nt_find(w->nt, w->app, &f->at, GW_NH_LAN, &miss, &addr, &port);

	if (!nh && miss == GW_NH_NO_ROUTE) {
		w->c.drop_vtep_unreachable++;
		return false;
	}
	if (!rwy_ip_eq(&addr, &f->at) || (nh && nh->port == f->port->idx && !memcmp(nh->l2, f->link, 6)))
		return true;
	gw_resolve_ask(w, &addr, port);
	(*(nh ? &w->c.drop_vtep_spoofed : &w->c.drop_vtep_unresolved))++;
	return false;
}

/* Returns the VTEP's next hop; NULL: asked for, or there is none; counted. */
const struct gw_nh *gw_vtep_next_hop(struct gw_worker *w, const struct rwy_ip *vtep)
{
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;
	const struct gw_nh *nh = gw_nt_find(w->nt, w->app, vtep, GW_NH_LAN, &miss, &addr, &port);

	if (nh) {
		w->nh_used[nh->id] = 1;
		return nh;
	}
	if (miss == GW_NH_UNRESOLVED) {
		gw_resolve_ask(w, &addr, port);
		w->c.drop_vtep_unresolved++;
	} else {
		w->c.drop_vtep_unreachable++;
	}
	return NULL;
}

/* Returns the port's source address towards `vtep`: one of the same network, else of the same
 * family. */
static const struct rwy_ip *local_for(const struct gw_port *p, const struct rwy_ip *vtep)
{
	const struct rwy_ip *found = NULL;

	for (unsigned i = 0; i < p->conf->addrs; i++) {
		const struct conf_prefix *own = &p->conf->addr[i];

		if (rwy_ip_is4(&own->addr) != rwy_ip_is4(vtep))
			continue;
		if (rwy_prefix_match(&own->addr, own->len, vtep))
			return &own->addr;
		found = found ? found : &own->addr;
	}
	return found;
}

/* False: we have no address of the family; counted. */
bool gw_vtep_template(struct gw_worker *w, struct vxlan_tmpl *out, const struct tenant *t,
    const struct gw_port *p, const struct rwy_ip *local, const struct rwy_ip *vtep)
{
	struct vxlan_tmpl_cfg c = {
	    .remote = *vtep, .vni = t->cfg.vni, .port = w->ov->vxlan.port, .ttl = GW_ENCAP_TTL};

	if (!local)
		local = local_for(p, vtep);
	if (local)
		c.local = *local;
	memcpy(c.src_mac, t->cfg.gw_mac, 6);
	if (local && vxlan_tmpl_init(out, &c) == 0)
		return true;
	w->c.drop_vtep_unreachable++;
	return false;
}
