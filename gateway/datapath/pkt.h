/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first look at a received IP packet: addresses, lengths, and where the parts lie. Not here: what is in
 * it (roce/parse.h) and what becomes of it (rx.c, rx_overlay.c).
 */
#ifndef GATEWAY_DATAPATH_PKT_H
#define GATEWAY_DATAPATH_PKT_H

#include "gateway/gw.h"
#include "gateway/port/mbuf.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "vxlan/vxlan.h"

#define ET_IP4    0x0800
#define ET_ARP    0x0806
#define ET_VLAN   0x8100
#define ET_IP6    0x86dd
#define IP4_LEN   20
#define IP6_LEN   40
#define UDP_LEN   8
#define P_TCP     6
#define P_UDP     17
#define P_ICMP6   58
#define ROCE_PORT 4791
#define BTH_LEN   12

struct gw_pkt {
	uint32_t off;    /* of the IP header in the frame */
	uint32_t ip_len; /* bytes from the IP header on, without Ethernet's padding */
	uint32_t hdr;    /* bytes of the IP header */
	uint8_t proto;   /* IPv6: the first next-header; tunnel datagrams have no extension headers */
	uint8_t ecn;
	bool fragment;
	struct rwy_ip src, dst;
};

static inline bool gw_pkt_ip4(const uint8_t *d, uint32_t left, struct gw_pkt *k)
{
	uint32_t hdr = (d[0] & 15u) * 4;

	if (left < IP4_LEN || d[0] >> 4 != 4 || hdr < IP4_LEN || hdr > left)
		return false;
	k->ip_len = rwy_get16(d + 2);
	k->hdr = hdr;
	k->proto = d[9];
	k->ecn = d[1] & 3;
	k->fragment = (rwy_get16(d + 6) & 0x3fff) != 0;
	k->src = rwy_ip_from4(d + 12);
	k->dst = rwy_ip_from4(d + 16);
	return k->ip_len >= hdr;
}

static inline bool gw_pkt_ip6(const uint8_t *d, uint32_t left, struct gw_pkt *k)
{
	if (left < IP6_LEN || d[0] >> 4 != 6)
		return false;
	k->ip_len = IP6_LEN + rwy_get16(d + 4);
	k->hdr = IP6_LEN;
	k->proto = d[6];
	k->ecn = (d[1] >> 4) & 3;
	k->fragment = false;
	memcpy(k->src.b, d + 8, 16);
	memcpy(k->dst.b, d + 24, 16);
	return true;
}

/* The IP header at k->off of a frame; its EtherType says which. NULL, or the counter of why it is none. */
static inline uint64_t *gw_pkt_ip(
    struct gw_worker *w, const struct rte_mbuf *m, uint16_t type, struct gw_pkt *k)
{
	const uint8_t *d = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off);
	uint32_t left = m->data_len - k->off;

	if (left == 0 || !(type == ET_IP4 ? gw_pkt_ip4(d, left, k) : gw_pkt_ip6(d, left, k)))
		return &w->c.drop_bad_ip;
	return k->ip_len > left ? &w->c.drop_rx_truncated : NULL;
}

/* One hop less (RFC 1812 5.3.1, RFC 8200 3). False: it was the last one. No ICRC covers it (IBA A17.3.3). */
static inline bool gw_pkt_hop(uint8_t *ip)
{
	uint8_t *left = ip[0] >> 4 == 4 ? ip + 8 : ip + 7;

	if (*left <= 1)
		return false;
	if (ip[0] >> 4 == 4)
		rwy_ip4_set16(ip, 8, (uint16_t)(rwy_get16(ip + 8) - 0x100));
	else
		--*left;
	return true;
}

/* The UDP header of a whole packet; NULL: it has none. */
static inline const uint8_t *gw_pkt_udp(const struct rte_mbuf *m, const struct gw_pkt *k)
{
	if (k->proto != P_UDP || k->fragment || k->ip_len < k->hdr + UDP_LEN)
		return NULL;
	return rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off + k->hdr);
}

/* --- what rx.c and rx_overlay.c do the same way ------------------------------------------------------ */

static inline void gw_rx_drop(struct rte_mbuf *m, uint64_t *counter)
{
	(*counter)++;
	rte_pktmbuf_free(m);
}

/* True: given away, to its owner or as a drop. */
bool gw_rx_hand_over(struct gw_worker *w, struct rte_mbuf *m, unsigned owner);
/* Dropped while packet buffers are short? Only what frees some is taken then. */
bool gw_rx_frees_memory(struct rte_mbuf *m, const struct gw_pkt *k);
/* To the engine with the next lot; the packet is k->ip_len bytes at k->off. */
void gw_rx_engine(struct gw_worker *w, struct rte_mbuf *m, const struct gw_pkt *k, uint32_t tenant);

/* --- rx_overlay.c: frames of tenants ----------------------------------------------------------------- */

/* An IP packet to one of the port's own addresses, while there are tenants. False: not VXLAN, and not taken.
 */
bool gw_rx_vxlan(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, uint32_t off, bool owned);
/* Fetches what a frame will probably need; its first lines are in the cache. */
void gw_rx_overlay_ahead(const struct gw_worker *w, const struct rte_mbuf *m);
/* An IPv6 packet with extension headers is VXLAN. */
bool gw_rx_is_vxlan6(const struct gw_worker *w, const uint8_t *ip, uint32_t len);
/* A packet of the plain LAN is VXLAN: while there are tenants it does not cross, for nobody on the other side
 * could tell it from a VTEP's. `len` bytes from the IP header on. */
static inline bool gw_rx_transit(const struct gw_worker *w, const uint8_t *ip, uint32_t len)
{
	bool is4 = ip[0] >> 4 == 4;
	uint32_t hdr = is4 ? (ip[0] & 15u) * 4 : IP6_LEN;
	uint8_t proto = is4 ? ip[9] : ip[6];

	if (len < hdr + 4)
		return false;
	if (proto == P_UDP)
		return rwy_get16(ip + hdr + 2) == VXLAN_UDP_PORT && !(is4 && rwy_get16(ip + 6) & 0x1fff);
	return !is4 && proto != P_TCP && proto != P_ICMP6 && gw_rx_is_vxlan6(w, ip, len);
}

/* A frame with a VLAN tag that is not the port's own; its EtherType and what lies behind it. */
void gw_rx_vlan(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, uint16_t vid, uint16_t type,
    uint32_t off, bool owned);

#endif
