/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first parse of a received IP packet: addresses, lengths and offsets, enough to find its owner.
 * roce/parse.h reads its contents, rx.h decides about it.
 */
#ifndef GATEWAY_DATAPATH_PKT_H
#define GATEWAY_DATAPATH_PKT_H

#include <netinet/in.h>
#include <rte_mbuf.h>

#include "roce/parse.h"
#include "roce/wire.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "rwy/ether.h"
#include "rwy/ip.h"

#define IP4_LEN ((uint32_t)sizeof(struct roce_ip4))
#define IP6_LEN ((uint32_t)sizeof(struct roce_ip6))
#define UDP_LEN ((uint32_t)sizeof(struct roce_udp))

struct gw_pkt {
	uint32_t off;    /* offset of the IP header in the frame */
	uint32_t ip_len; /* bytes from the IP header on, without Ethernet padding */
	uint32_t hdr;    /* bytes of the IP header */
	/* IPv6: the first next-header; tunnel datagrams have no extension headers */
	uint8_t proto;
	uint8_t ecn;
	uint8_t pcp; /* of the frame, as in struct rwy_buf; the caller sets it */
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
	return !rwy_ip_is4(&k->src) && !rwy_ip_is4(&k->dst);
}

enum gw_pkt_fault { GW_PKT_OK, GW_PKT_BAD_IP, GW_PKT_TRUNCATED };

/* Parses the IP header at k->off of a frame; its EtherType gives the family. */
static inline enum gw_pkt_fault gw_pkt_ip(const struct rte_mbuf *m, uint16_t type, struct gw_pkt *k)
{
	const uint8_t *d = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off);
	uint32_t left = m->data_len - k->off;

	if (left == 0 || !(type == RWY_ETHER_IP4 ? gw_pkt_ip4(d, left, k) : gw_pkt_ip6(d, left, k)))
		return GW_PKT_BAD_IP;
	return k->ip_len > left ? GW_PKT_TRUNCATED : GW_PKT_OK;
}

/* Decrements TTL or hop limit (RFC 1812 5.3.1, RFC 8200 3). False: it was the last hop. The ICRC
 * does not cover it (IBA A17.3.3). */
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

/* Returns the UDP header of a whole packet; NULL: it has none. */
static inline const uint8_t *gw_pkt_udp(const struct rte_mbuf *m, const struct gw_pkt *k)
{
	if (k->proto != IPPROTO_UDP || k->fragment || k->ip_len < k->hdr + UDP_LEN)
		return NULL;
	return rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off + k->hdr);
}

/* Returns the BTH of a whole RoCEv2 packet (IBA A17.3); NULL: it is another packet. */
static inline const uint8_t *gw_pkt_bth(const struct rte_mbuf *m, const struct gw_pkt *k)
{
	const uint8_t *udp = gw_pkt_udp(m, k);

	if (!udp || rwy_get16(udp + 2) != ROCE_UDP_PORT || k->ip_len < k->hdr + UDP_LEN + ROCE_BTH_LEN)
		return NULL;
	return udp + UDP_LEN;
}

static inline uint32_t gw_bth_qpn(const uint8_t *bth)
{
	return rwy_get24(bth + offsetof(struct roce_bth, dqpn));
}

#endif
