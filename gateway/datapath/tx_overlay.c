/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends packets to tenants' hosts: in VXLAN to the host's VTEP, or with the tenant's tag on its
 * VLAN. Headers go into the headroom as for all packets (tx.h).
 *
 * The adjacency of a host is cached (struct gw_adjacency): a packet costs a compare and the copy of
 * a template.
 */
#include <string.h>

#include "gateway/datapath/overlay.h"
#include "gateway/datapath/pkt.h"
#include "gateway/datapath/tx.h"
#include "gateway/datapath/vtep.h"

#define HDR_MAX (GW_L2_MAX + VXLAN_ENCAP_MAX)
static_assert(HDR_MAX <= RTE_PKTMBUF_HEADROOM, "a received frame has the room");

/* --- adjacency -------------------------------------------------------------------------------- */

static bool adjacency_vlan(
    struct gw_worker *w, struct gw_adjacency *y, const struct tenant *t, const struct vtep_host *at)
{
	struct gw_port *p = at->vtep.b[15] < w->app->ports ? w->app->port[at->vtep.b[15]] : NULL;

	if (!p)
		return false;
	y->port = p;
	y->nh = -1;
	y->l2_len = GW_ETH + GW_VLAN;
	memcpy(y->l2, at->mac, 6);
	memcpy(y->l2 + 6, p->mac, 6);
	rwy_put16(y->l2 + 12, RWY_ETHER_VLAN);
	rwy_put16(y->l2 + 14, t->cfg.vlan);
	return true;
}

static bool adjacency_vxlan(
    struct gw_worker *w, struct gw_adjacency *y, const struct tenant *t, const struct vtep_host *at)
{
	const struct gw_nh *nh = gw_vtep_next_hop(w, &at->vtep);

	if (!nh)
		return false;
	y->port = w->app->port[nh->port];
	y->vxlan = true;
	y->nh = nh->id;
	y->l2_len = nh->l2_len;
	gw_tx_l2(y->l2, nh, rwy_ip_is4(&at->vtep));
	memcpy(y->mac, at->mac, 6);
	return gw_vtep_template(w, &y->tmpl, t, y->port, NULL, &at->vtep);
}

/* Makes an adjacency. False: the host is unknown now; counted. */
static bool adjacency_make(
    struct gw_worker *w, struct gw_adjacency *y, const struct tenant *t, const struct rwy_ip *dst)
{
	struct tenant_at at = tenant_find(t, dst);
	struct vtep_host host;
	bool ok;

	y->changed = 0;
	if (at.side != TENANT_LAN && at.side != TENANT_VTEP) {
		w->c.drop_tenant_not_here++;
		return false;
	}
	if (!gw_host_find(w, t, (enum tenant_side)at.side, dst, &host)) {
		w->c.drop_tenant_unresolved++;
		return false;
	}
	*y = (struct gw_adjacency){
	    .host = *dst, .tenant = t->index, .nt_gen = w->nt->gen, .again = w->now + GW_RECHECK};
	ok = at.side == TENANT_LAN ? adjacency_vlan(w, y, t, &host) : adjacency_vxlan(w, y, t, &host);
	if (ok)
		y->changed = t->changed;
	return ok;
}

static const struct gw_adjacency *adjacency_find(
    struct gw_worker *w, const struct tenant *t, const struct rwy_ip *dst)
{
	struct gw_adjacency *y = &w->ov->adjacency[gw_overlay_hash(t->index, dst) & (GW_ADJACENCIES - 1)];

	if (y->changed == t->changed && y->tenant == t->index && y->nt_gen == w->nt->gen &&
	    w->now < y->again && rwy_ip_eq(&y->host, dst))
		return y;
	return adjacency_make(w, y, t, dst) ? y : NULL;
}

/* --- packets --------------------------------------------------------------------------------- */

/* Returns the same source port for a flow; for packets without a flow, the same for a pair of
 * hosts. */
static uint16_t source_port(const uint8_t *ip, uint32_t len)
{
	uint32_t qpn = 0;
	uint16_t sport = 0;
	struct gw_pkt k;

	if (!(ip[0] >> 4 == 4 ? gw_pkt_ip4(ip, len, &k) : gw_pkt_ip6(ip, len, &k)))
		return VXLAN_SPORT_FIRST;
	if (k.proto == IPPROTO_UDP && !k.fragment && len >= k.hdr + UDP_LEN + ROCE_BTH_LEN) {
		sport = rwy_get16(ip + k.hdr);
		if (rwy_get16(ip + k.hdr + 2) == ROCE_UDP_PORT)
			qpn = rwy_get24(ip + k.hdr + UDP_LEN + offsetof(struct roce_bth, dqpn));
	}
	return vxlan_sport(vxlan_flow_hash(&k.src, &k.dst, sport, qpn));
}

/* Whether the packet's path is in sustained congestion. */
static bool path_is_congested(const struct gw_worker *w, const struct tenant *t, const uint8_t *ip)
{
	struct tenant_at at;
	struct rwy_ip src;

	if (!(w->tunnel_congested & t->tunnels))
		return false;
	if (ip[0] >> 4 == 4)
		src = rwy_ip_from4(ip + 12);
	else
		memcpy(src.b, ip + 8, 16);
	at = tenant_find(t, &src);
	return at.side == TENANT_TUNNEL && w->tunnel_congested >> at.tunnel & 1;
}

/* Writes headers directly in front of `at`: where the packet is, or, for separate headers, where it
 * would be; only the first byte there is read. `ip` is the packet. */
static bool headers_write(const struct gw_worker *w, const struct gw_adjacency *y, const struct tenant *t,
    uint8_t *at, const uint8_t *ip, uint32_t len, uint8_t pcp)
{
	if (y->vxlan) {
		const struct vxlan_dscp *d =
		    path_is_congested(w, t, ip) ? &t->cfg.dscp_congested : &t->cfg.dscp;
		uint8_t tos = vxlan_outer_tos(d, vxlan_tos_get(ip));

		at = vxlan_encap(&y->tmpl, at, len, y->mac, source_port(ip, len), tos);
		if (!at)
			return false;
	}
	gw_tx_l2_copy(at - y->l2_len, y->l2, y->l2_len);
	gw_tx_pcp(at - y->l2_len, y->l2_len, pcp);
	if (!y->vxlan)
		rwy_put16(at - 2, ip[0] >> 4 == 4 ? RWY_ETHER_IP4 : RWY_ETHER_IP6);
	return true;
}

static struct rte_mbuf *packet_encapsulate(struct gw_worker *w, const struct gw_adjacency *y,
    const struct tenant *t, const struct eng_lan_tx *tx, uint32_t hlen, uint32_t len)
{
	const uint8_t *ip = tx->buf ? tx->buf->data : tx->bytes;
	const uint8_t pcp = tenant_pcp(&t->cfg, tx->pcp);
	uint8_t h[HDR_MAX + 1];

	if (tx->buf && gw_tx_fits(y->port, tx->buf, hlen)) {
		if (!headers_write(w, y, t, tx->buf->data, ip, len, pcp)) {
			gw_tx_give_up(tx);
			return NULL;
		}
		w->c.tx_in_place++;
		return gw_tx_in_place(tx->buf, hlen, len, tx->own);
	}
	h[hlen] = ip[0];
	if (!headers_write(w, y, t, h + hlen, ip, len, pcp)) {
		gw_tx_give_up(tx);
		return NULL;
	}
	return tx->buf ? gw_tx_apart(w, y->port, h, hlen, tx->buf, 0, len, tx->own)
	               : gw_tx_copy(w, h, hlen, tx->bytes, len);
}

void gw_tx_tenant(struct gw_worker *w, const struct eng_lan_tx *tx)
{
	const struct tenant *t = tenant_by_index(w->ts, tx->tenant);
	const struct gw_adjacency *y = t ? adjacency_find(w, t, tx->dst) : NULL;
	uint32_t len = tx->buf ? tx->buf->len : tx->len, front;
	struct rte_mbuf *m;

	if (!y) {
		w->c.drop_tenant_gone += !t;
		gw_tx_give_up(tx);
		return;
	}
	front = y->vxlan ? vxlan_tmpl_headroom(&y->tmpl) : 0;
	if (front + len > y->port->conf->mtu || !len) {
		w->c.drop_tx_too_long++;
		gw_tx_give_up(tx);
		return;
	}
	m = packet_encapsulate(w, y, t, tx, y->l2_len + front, len);
	if (!m)
		return;
	if (y->vxlan) {
		w->nh_used[y->nh] = 1;
		w->c.tx_vxlan++;
	} else {
		w->c.tx_vlan++;
	}
	w->tenants[t->index].tx_packets++;
	w->tenants[t->index].tx_bytes += len;
	gw_tx_put(w, y->port, m);
}
