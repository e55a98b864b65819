/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets to tenants' hosts: in VXLAN to the VTEP that a host is behind, or with the tenant's tag on its
 * VLAN. Headers go into the headroom as for all packets (tx.h). And frames of our own making on the same
 * ways: ARP and ND.
 *
 * The way to a host is remembered (struct gw_way): a packet costs a compare and the copy of a template.
 */
#include <string.h>

#include "gateway/datapath/overlay.h"
#include "gateway/datapath/pkt.h"
#include "gateway/datapath/tx.h"

#define HDR_MAX (GW_L2_MAX + VXLAN_ENCAP_MAX)
static_assert(HDR_MAX <= RTE_PKTMBUF_HEADROOM, "a received frame has the room");
static_assert(HDR_MAX + ARP_FRAME_MAX + RTE_PKTMBUF_HEADROOM <= GW_SMALL_ROOM, "so has a small buffer");

/* --- the way to a VTEP ------------------------------------------------------------------------------- */

/* Its next hop; NULL: asked for, or there is none; counted. */
static const struct gw_nh *vtep_hop(struct gw_worker *w, const struct rwy_ip *vtep)
{
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;
	const struct gw_nh *nh = gw_nt_find(w->nt, w->app, vtep, -1, &miss, &addr, &port);

	if (nh) {
		w->nh_used[nh->id] = 1;
		return nh;
	}
	if (miss == GW_NH_UNRESOLVED) {
		gw_tx_ask(w, &addr, port);
		w->c.drop_vtep_unresolved++;
	} else {
		w->c.drop_vtep_unreachable++;
	}
	return NULL;
}

static bool same_net(const struct conf_prefix *own, const struct rwy_ip *a)
{
	struct prefix p = {.addr = own->addr, .len = own->len};
	unsigned full = p.len >> 3;

	return !memcmp(p.addr.b, a->b, full) &&
	       (!(p.len & 7) || !((p.addr.b[full] ^ a->b[full]) & (uint8_t)(0xff00 >> (p.len & 7))));
}

/* The port's own address to send to `vtep` from: one of the same network, else of the same family. */
static const struct rwy_ip *local_for(const struct gw_port *p, const struct rwy_ip *vtep)
{
	const struct rwy_ip *found = NULL;

	for (unsigned i = 0; i < p->conf->addrs; i++) {
		const struct conf_prefix *own = &p->conf->addr[i];

		if (rwy_ip_is4(&own->addr) != rwy_ip_is4(vtep))
			continue;
		if (same_net(own, vtep))
			return &own->addr;
		found = found ? found : &own->addr;
	}
	return found;
}

/* False: no address of ours, counted. */
static bool tmpl_make(struct gw_worker *w, struct vxlan_tmpl *out, const struct tenant *t,
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

/* --- the way to a host ------------------------------------------------------------------------------- */

static bool way_vlan(
    struct gw_worker *w, struct gw_way *y, const struct tenant *t, const struct vtep_host *at)
{
	struct gw_port *p = at->vtep.b[15] < w->app->ports ? w->app->port[at->vtep.b[15]] : NULL;

	if (!p)
		return false;
	y->port = p;
	y->nh = -1;
	y->l2_len = GW_ETH + GW_VLAN;
	memcpy(y->l2, at->mac, 6);
	memcpy(y->l2 + 6, p->mac, 6);
	rwy_put16(y->l2 + 12, ET_VLAN);
	rwy_put16(y->l2 + 14, t->cfg.vlan);
	return true;
}

static bool way_vxlan(
    struct gw_worker *w, struct gw_way *y, const struct tenant *t, const struct vtep_host *at)
{
	const struct gw_nh *nh = vtep_hop(w, &at->vtep);

	if (!nh)
		return false;
	y->port = w->app->port[nh->port];
	y->vxlan = true;
	y->nh = nh->id;
	y->l2_len = nh->l2_len;
	memcpy(y->l2, nh->l2, nh->l2_len);
	rwy_put16(y->l2 + nh->l2_len - 2, rwy_ip_is4(&at->vtep) ? ET_IP4 : ET_IP6);
	memcpy(y->mac, at->mac, 6);
	return tmpl_make(w, &y->tmpl, t, y->port, NULL, &at->vtep);
}

/* False: nobody knows it now; counted. */
static bool way_make(struct gw_worker *w, struct gw_way *y, const struct tenant *t, const struct rwy_ip *dst)
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
	*y = (struct gw_way){
	    .host = *dst, .tenant = t->index, .nt_gen = w->nt->gen, .again = w->now + GW_RECHECK};
	ok = at.side == TENANT_LAN ? way_vlan(w, y, t, &host) : way_vxlan(w, y, t, &host);
	if (ok)
		y->changed = t->changed;
	return ok;
}

static const struct gw_way *way_find(struct gw_worker *w, const struct tenant *t, const struct rwy_ip *dst)
{
	struct gw_way *y = &w->ov->way[gw_overlay_hash(t->index, dst) & (GW_WAYS - 1)];

	if (y->changed == t->changed && y->tenant == t->index && y->nt_gen == w->nt->gen &&
	    w->now < y->again && rwy_ip_eq(&y->host, dst))
		return y;
	return way_make(w, y, t, dst) ? y : NULL;
}

/* --- packets ----------------------------------------------------------------------------------------- */

/* One flow, one source port; of what is no flow, one pair of hosts. */
static uint16_t entropy(const uint8_t *ip, uint32_t len)
{
	uint32_t qpn = 0;
	uint16_t sport = 0;
	struct gw_pkt k;

	if (!(ip[0] >> 4 == 4 ? gw_pkt_ip4(ip, len, &k) : gw_pkt_ip6(ip, len, &k)))
		return VXLAN_SPORT_FIRST;
	if (k.proto == P_UDP && !k.fragment && len >= k.hdr + UDP_LEN + BTH_LEN) {
		sport = rwy_get16(ip + k.hdr);
		if (rwy_get16(ip + k.hdr + 2) == ROCE_PORT)
			qpn = rwy_get24(ip + k.hdr + UDP_LEN + 5);
	}
	return vxlan_sport(vxlan_flow_hash(&k.src, &k.dst, sport, qpn));
}

/* The path that a packet came on is congested for good. */
static bool congested(const struct gw_worker *w, const struct tenant *t, const uint8_t *ip)
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

/* Headers directly in front of `at`, where the packet is or, of headers that go apart, where it would be:
 * only its first byte is looked at there. `ip` is the packet. */
static bool headers(const struct gw_worker *w, const struct gw_way *y, const struct tenant *t, uint8_t *at,
    const uint8_t *ip, uint32_t len)
{
	if (y->vxlan) {
		const struct vxlan_dscp *d = congested(w, t, ip) ? &t->cfg.dscp_congested : &t->cfg.dscp;
		uint8_t tos = vxlan_outer_tos(d, vxlan_tos_get(ip));

		at = vxlan_encap(&y->tmpl, at, len, y->mac, entropy(ip, len), tos);
		if (!at)
			return false;
		memcpy(at - y->l2_len, y->l2, y->l2_len);
		return true;
	}
	memcpy(at - y->l2_len, y->l2, y->l2_len);
	rwy_put16(at - 2, ip[0] >> 4 == 4 ? ET_IP4 : ET_IP6);
	return true;
}

static struct rte_mbuf *with_headers(struct gw_worker *w, const struct gw_way *y, const struct tenant *t,
    const struct eng_lan_tx *tx, uint32_t hlen, uint32_t len)
{
	const uint8_t *ip = tx->buf ? tx->buf->data : tx->bytes;
	uint8_t h[HDR_MAX + 1];

	if (tx->buf && gw_tx_fits(y->port, tx->buf, hlen)) {
		if (!headers(w, y, t, tx->buf->data, ip, len)) {
			gw_tx_give_up(tx);
			return NULL;
		}
		w->c.tx_in_place++;
		return gw_tx_in_place(tx->buf, hlen, len, tx->own);
	}
	h[hlen] = ip[0];
	if (!headers(w, y, t, h + hlen, ip, len)) {
		gw_tx_give_up(tx);
		return NULL;
	}
	return tx->buf ? gw_tx_apart(w, y->port, h, hlen, tx->buf, 0, len, tx->own)
	               : gw_tx_copy(w, h, hlen, tx->bytes, len);
}

void gw_tx_tenant(struct gw_worker *w, const struct eng_lan_tx *tx)
{
	const struct tenant *t = tenant_by_index(w->ts, tx->tenant);
	const struct gw_way *y = t ? way_find(w, t, tx->dst) : NULL;
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
	m = with_headers(w, y, t, tx, y->l2_len + front, len);
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

/* --- frames of our own ------------------------------------------------------------------------------- */

void gw_tx_vxlan_frame(struct gw_worker *w, const struct tenant *t, const struct rwy_ip *local,
    const struct rwy_ip *vtep, const uint8_t *eth, uint32_t len)
{
	const struct gw_nh *nh = vtep_hop(w, vtep);
	struct gw_port *p = nh ? w->app->port[nh->port] : NULL;
	struct vxlan_tmpl tmpl;
	struct rte_mbuf *m;
	uint32_t front;
	uint8_t *d;

	if (!nh || !tmpl_make(w, &tmpl, t, p, local, vtep))
		return;
	front = nh->l2_len + vxlan_tmpl_headroom(&tmpl) - GW_ETH; /* the frame brings its Ethernet header */
	m = gw_tx_small(w, front + len);
	if (!m)
		return;
	d = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(d + front, eth, len);
	memcpy(d, nh->l2, nh->l2_len);
	rwy_put16(d + nh->l2_len - 2, rwy_ip_is4(vtep) ? ET_IP4 : ET_IP6);
	vxlan_encap_frame(&tmpl, d + front, len, vxlan_sport(vxlan_flow_hash(vtep, vtep, 0, t->cfg.vni)), 0);
	gw_tx_put(w, p, m);
}

void gw_tx_vlan_frame(struct gw_worker *w, struct gw_port *p, uint16_t vid, const uint8_t *eth, uint32_t len)
{
	uint32_t add = rwy_get16(eth + 12) == ET_VLAN ? 0 : GW_VLAN;
	struct rte_mbuf *m = gw_tx_small(w, len + add);
	uint8_t *d;

	if (!m)
		return;
	d = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(d + add, eth, len);
	if (add) {
		memcpy(d, eth, 12);
		rwy_put16(d + 12, ET_VLAN);
		rwy_put16(d + 14, vid);
	}
	gw_tx_put(w, p, m);
}
