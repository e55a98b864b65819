/* SPDX-License-Identifier: Apache-2.0 */
/* Sends whole Ethernet frames: the kernel's, and our own ARP and ND to tenants' hosts. */
#include <string.h>

#include "gateway/datapath/tx.h"
#include "gateway/datapath/vtep.h"
#include "rwy/endian.h"
#include "rwy/ether.h"

static_assert(GW_L2_MAX + VXLAN_ENCAP_MAX + ARP_FRAME_MAX + RTE_PKTMBUF_HEADROOM <= GW_SMALL_ROOM,
    "an answer fits a small buffer");

void gw_tx_frame(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m)
{
	if (p->vlan) {
		uint8_t *d = (uint8_t *)rte_pktmbuf_prepend(m, GW_VLAN);

		if (!d) {
			w->c.drop_no_mbuf++;
			rte_pktmbuf_free(m);
			return;
		}
		memmove(d, d + GW_VLAN, 12);
		rwy_put16(d + 12, RWY_ETHER_VLAN);
		rwy_put16(d + 14, p->vlan);
	}
	w->c.from_kernel++;
	gw_tx_put(w, p, m);
}

void gw_tx_vxlan_frame(struct gw_worker *w, const struct tenant *t, const struct rwy_ip *local,
    const struct rwy_ip *vtep, const uint8_t *eth, uint32_t len)
{
	const struct gw_nh *nh = gw_vtep_next_hop(w, vtep);
	struct gw_port *p = nh ? w->app->port[nh->port] : NULL;
	struct vxlan_tmpl tmpl;
	struct rte_mbuf *m;
	uint32_t front;
	uint8_t *d;

	if (!nh || !gw_vtep_template(w, &tmpl, t, p, local, vtep))
		return;
	/* the frame has its own Ethernet header */
	front = nh->l2_len + vxlan_tmpl_headroom(&tmpl) - GW_ETH;
	m = gw_tx_small(w, front + len);
	if (!m)
		return;
	d = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(d + front, eth, len);
	gw_tx_l2(d, nh, rwy_ip_is4(vtep));
	vxlan_encap_frame(&tmpl, d + front, len, vxlan_sport(vxlan_flow_hash(vtep, vtep, 0, t->cfg.vni)), 0);
	gw_tx_put(w, p, m);
}

void gw_tx_vlan_frame(struct gw_worker *w, struct gw_port *p, uint16_t vid, const uint8_t *eth, uint32_t len)
{
	uint32_t add = rwy_get16(eth + 12) == RWY_ETHER_VLAN ? 0 : GW_VLAN;
	struct rte_mbuf *m = gw_tx_small(w, len + add);
	uint8_t *d;

	if (!m)
		return;
	d = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(d + add, eth, len);
	if (add) {
		memcpy(d, eth, 12);
		rwy_put16(d + 12, RWY_ETHER_VLAN);
		rwy_put16(d + 14, vid);
	}
	gw_tx_put(w, p, m);
}
