/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that a gateway of a pair sends when it begins to serve. Its addresses are those of the
 * other one, so hosts need not learn anything; switches must learn behind which port the MAC
 * address is now.
 */
#include "gateway/datapath/overlay.h"
#include "gateway/datapath/resolve.h"
#include "gateway/datapath/standby.h"
#include "gateway/datapath/tx.h"
#include "rwy/checksum.h"

#define ARP_BYTES 28
#define ND_BYTES  72 /* IPv6, neighbour advertisement, option */
#define IP6_BYTES 40
#define FINDS     16 /* connections looked at in one turn */

/* RFC 5227 section 2.3: an ARP announcement. */
static void put_arp(uint8_t *p, const uint8_t mac[6], const uint8_t ip[4])
{
	static const uint8_t request[8] = {0, 1, 8, 0, 6, 4, 0, 1}; /* Ethernet, IPv4 */

	memcpy(p, request, 8);
	memcpy(p + 8, mac, 6);
	memcpy(p + 14, ip, 4);
	memset(p + 18, 0, 6);
	memcpy(p + 24, ip, 4);
}

/* RFC 4861 section 7.2.6: an unsolicited neighbour advertisement to all nodes. */
static void put_na(uint8_t *p, const uint8_t mac[6], const struct rwy_ip *ip)
{
	static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};
	uint8_t *icmp = p + IP6_BYTES;
	uint64_t sum;

	memset(p, 0, ND_BYTES);
	p[0] = 0x60;
	rwy_put16(p + 4, ND_BYTES - IP6_BYTES);
	p[6] = 58; /* ICMPv6 */
	p[7] = 255;
	memcpy(p + 8, ip->b, 16);
	memcpy(p + 24, all_nodes, 16);
	icmp[0] = 136;
	icmp[4] = 0xa0; /* a router; override */
	memcpy(icmp + 8, ip->b, 16);
	icmp[24] = 2; /* target's link-layer address */
	icmp[25] = 1;
	memcpy(icmp + 26, mac, 6);
	sum = rwy_csum(p + 8, 32) + (uint64_t)(ND_BYTES - IP6_BYTES) + 58;
	sum += rwy_csum(icmp, ND_BYTES - IP6_BYTES);
	rwy_put16(icmp + 2, (uint16_t)~rwy_csum_fold(sum));
}

static void announce(struct gw_worker *w, struct gw_port *p, const struct rwy_ip *ip)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	                     all_nodes[6] = {0x33, 0x33, 0, 0, 0, 1};
	const bool is4 = rwy_ip_is4(ip);
	const uint32_t len = p->l2_len + (is4 ? ARP_BYTES : ND_BYTES);
	struct rte_mbuf *m = gw_tx_small(w, len);
	uint8_t *d;

	if (!m)
		return;
	d = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(d, is4 ? broadcast : all_nodes, 6);
	memcpy(d + 6, p->mac, 6);
	if (p->l2_len > GW_ETH) {
		rwy_put16(d + 12, RWY_ETHER_VLAN);
		rwy_put16(d + 14, p->vlan);
	}
	rwy_put16(d + p->l2_len - 2, is4 ? RWY_ETHER_ARP : RWY_ETHER_IP6);
	if (is4)
		put_arp(d + p->l2_len, p->mac, ip->b + 12);
	else
		put_na(d + p->l2_len, p->mac, ip);
	w->c.tx_announced++;
	gw_tx_put(w, p, m);
}

/* On its VLAN a tenant's gateway has the port's MAC address: who asks for itself is heard. */
static void announce_tenants(struct gw_worker *w, struct gw_port *p)
{
	static const struct rwy_ip none;
	uint8_t frame[ARP_FRAME_MAX];

	for (uint16_t vlan = 1; w->ts->n && vlan <= TENANT_VLAN_MAX; vlan++) {
		const struct tenant *t = tenant_by_vlan(w->ts, vlan);

		for (unsigned k = 0; t && k < 2; k++) {
			const struct rwy_ip *own = &t->cfg.gw_ip[k];
			uint32_t len = rwy_ip_eq(own, &none) ? 0 : arp_ask(t, p->mac, own, vlan, frame);

			if (!len)
				continue;
			w->c.tx_announced++;
			gw_tx_vlan_frame(w, p, vlan, frame, len);
		}
	}
}

void gw_standby_announce(struct gw_worker *w, bool lan)
{
	for (unsigned i = 0; i < w->app->ports; i++) {
		struct gw_port *p = w->app->port[i];

		if (p->pair || (p->conf->role == CONF_ROLE_LAN && !lan))
			continue;
		for (unsigned a = 0; a < p->conf->addrs; a++)
			announce(w, p, &p->conf->addr[a].addr);
		if (p->conf->role == CONF_ROLE_LAN)
			announce_tenants(w, p);
	}
}

/* The kernel of a gateway that hid knows no host. Those that have connections are asked for before
 * the first packet to them. */
void gw_standby_find_hosts(struct gw_worker *w, uint32_t *cursor)
{
	struct eng_flow_info f[FINDS];
	unsigned n = eng_flows(w->eng, cursor, f, FINDS);

	for (unsigned i = 0; i < n; i++) {
		enum gw_nh_miss miss;
		struct rwy_ip addr;
		uint16_t port;

		if (!f[i].tenant && !gw_nt_find(w->nt, w->app, &f[i].local, GW_NH_LAN, &miss, &addr, &port) &&
		    miss == GW_NH_UNRESOLVED)
			gw_resolve_ask(w, &addr, port);
	}
}
