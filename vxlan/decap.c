/* SPDX-License-Identifier: Apache-2.0 */
/* Decapsulation: outer IP, UDP, VXLAN, inner Ethernet, then the inner packet, in that order. */
#include "vxlan/vxlan.h"

#include <string.h>

#include "roce/parse.h"
#include "roce/wire.h"
#include "rwy/checksum.h"
#include "vxlan/ecn.h"
#include "vxlan/ipwalk.h"

#define FLAG_I    0x08
#define FLAGS_GPE 0x34 /* version and next protocol of draft-ietf-nvo3-vxlan-gpe */

void vxlan_cfg_default(struct vxlan_cfg *cfg)
{
	*cfg = (struct vxlan_cfg){.port = VXLAN_UDP_PORT, .inner_vlan = true};
}

/* A VTEP is one host with a unicast address (RFC 1122 3.2.1.3, RFC 4291 2.7). */
static bool source_ok(const uint8_t *ip)
{
	static const uint8_t zero[16];

	if (ip[0] >> 4 == 4)
		return ip[12] != 0 && ip[12] != 127 && ip[12] < 224;
	if (ip[8] == 0xff)
		return false;
	return memcmp(ip + 8, zero, 15) != 0 || ip[23] > 1; /* not :: and not ::1 */
}

static bool udp_csum_ok(const uint8_t *ip, const struct ip_l4 *l)
{
	const uint8_t *udp = ip + l->off;
	uint32_t udp_len = l->end - l->off;
	uint64_t sum;

	if (!rwy_get16(udp + 6))
		return true;
	sum = ip[0] >> 4 == 4 ? rwy_csum(ip + 12, 8) : rwy_csum(ip + 8, 32);
	sum += ROCE_IPPROTO_UDP + udp_len + rwy_csum(udp, udp_len);
	return rwy_csum_fold(sum) == 0xffff;
}

/* Parses the outer headers; *l is the payload of the IP header. */
static enum vxlan_reason outer(const struct vxlan_cfg *cfg, const uint8_t *ip, uint32_t len, struct ip_l4 *l)
{
	enum ip_walk w = ip_walk(ip, len, l);
	const struct roce_udp *udp;

	if (w != IP_WALK_OK)
		return w == IP_WALK_TRUNCATED ? VXLAN_TRUNCATED : VXLAN_BAD_IP;
	if (ip[0] >> 4 == 4 && rwy_csum(ip, l->off) != 0xffff)
		return VXLAN_BAD_IP;
	if (l->proto != ROCE_IPPROTO_UDP || l->later || l->end - l->off < 4)
		return VXLAN_NOT_VXLAN;
	udp = (const struct roce_udp *)(ip + l->off);
	if (rwy_get16(udp->dport) != cfg->port)
		return VXLAN_NOT_VXLAN;
	if (l->fragment)
		return VXLAN_FRAGMENT; /* RFC 7348 4.3 */
	if (l->ext)
		return VXLAN_EXT_HEADER;
	if (!source_ok(ip))
		return VXLAN_BAD_SOURCE;
	if (l->end - l->off < sizeof(*udp) || rwy_get16(udp->len) != l->end - l->off)
		return VXLAN_BAD_UDP;
	if (cfg->verify_csum && !udp_csum_ok(ip, l))
		return VXLAN_BAD_CSUM;
	return VXLAN_OK;
}

/* Parses VXLAN and inner Ethernet with its tag, from `at` on. */
static enum vxlan_reason frame(
    const struct vxlan_cfg *cfg, const uint8_t *ip, uint32_t at, struct vxlan_pkt *p)
{
	static const uint8_t zero[6];
	const uint8_t *vx = ip + at;

	if (p->end - at < VXLAN_HLEN)
		return VXLAN_BAD_UDP;
	if (!(vx[0] & FLAG_I))
		return VXLAN_NO_VNI;
	if (vx[0] & FLAGS_GPE)
		return VXLAN_BAD_FLAGS;
	p->vni = rwy_get24(vx + 4);
	if (!p->vni)
		return VXLAN_ZERO_VNI;
	p->eth_off = at + VXLAN_HLEN;
	p->net_off = p->eth_off + (uint32_t)sizeof(struct roce_eth);
	if (p->net_off > p->end)
		return VXLAN_INNER_SHORT;
	memcpy(p->dst_mac, ip + p->eth_off, 6);
	memcpy(p->src_mac, ip + p->eth_off + 6, 6);
	p->ethertype = rwy_get16(ip + p->eth_off + 12);
	p->tci = 0;
	p->tagged = p->ethertype == RWY_ETHER_VLAN;
	if (p->src_mac[0] & 1 || !memcmp(p->src_mac, zero, 6))
		return VXLAN_INNER_SOURCE;
	if (p->tagged) {
		if (!cfg->inner_vlan)
			return VXLAN_INNER_TAG;
		if (p->end - p->net_off < sizeof(struct roce_vlan))
			return VXLAN_INNER_SHORT;
		p->tci = rwy_get16(ip + p->net_off);
		p->ethertype = rwy_get16(ip + p->net_off + 2);
		p->net_off += (uint32_t)sizeof(struct roce_vlan);
	}
	if (p->ethertype == RWY_ETHER_VLAN || p->ethertype == RWY_ETHER_QINQ)
		return VXLAN_INNER_TAG;
	return VXLAN_OK;
}

/* Classifies the inner packet: whether it fits its EtherType, is RoCE, or is VXLAN again. */
static enum vxlan_reason inner(const struct vxlan_cfg *cfg, const uint8_t *ip, struct vxlan_pkt *p)
{
	const uint8_t *in = ip + p->net_off;
	struct ip_l4 l;
	uint16_t dport;

	p->roce = false;
	if (p->ethertype != RWY_ETHER_IP4 && p->ethertype != RWY_ETHER_IP6) {
		p->inner = p->ethertype == RWY_ETHER_ARP ? VXLAN_INNER_ARP : VXLAN_INNER_OTHER;
		return VXLAN_OK;
	}
	p->inner = p->ethertype == RWY_ETHER_IP4 ? VXLAN_INNER_IP4 : VXLAN_INNER_IP6;
	if (ip_walk(in, p->end - p->net_off, &l) != IP_WALK_OK ||
	    in[0] >> 4 != (p->inner == VXLAN_INNER_IP4 ? 4 : 6))
		return VXLAN_INNER_IP;
	if (l.proto != ROCE_IPPROTO_UDP || l.later || l.end - l.off < 4)
		return VXLAN_OK;
	dport = rwy_get16(in + l.off + 2);
	if (dport == cfg->port)
		return VXLAN_NESTED;
	p->roce = dport == ROCE_UDP_PORT && !l.fragment && !l.ext;
	return VXLAN_OK;
}

enum vxlan_reason vxlan_decap(
    const struct vxlan_cfg *cfg, const uint8_t *ip, uint32_t len, struct vxlan_pkt *out)
{
	struct ip_l4 l;
	enum vxlan_reason r = outer(cfg, ip, len, &l);

	if (r != VXLAN_OK)
		return r;
	out->end = l.end;
	r = frame(cfg, ip, l.off + (uint32_t)sizeof(struct roce_udp), out);
	if (r != VXLAN_OK)
		return r;
	r = inner(cfg, ip, out);
	if (r != VXLAN_OK)
		return r;
	out->outer_sport = rwy_get16(ip + l.off);
	out->outer_tos = vxlan_tos_get(ip);
	out->outer6 = ip[0] >> 4 == 6;
	if (out->outer6) {
		memcpy(out->outer_src.b, ip + 8, 16);
		memcpy(out->outer_dst.b, ip + 24, 16);
		out->outer_ttl = ip[7];
	} else {
		out->outer_src = rwy_ip_from4(ip + 12);
		out->outer_dst = rwy_ip_from4(ip + 16);
		out->outer_ttl = ip[8];
	}
	return VXLAN_OK;
}
