/* SPDX-License-Identifier: Apache-2.0 */
/* Encapsulation: a template of all headers is copied in front of the packet and patched. */
#include "vxlan/vxlan.h"

#include <string.h>

#include "roce/wire.h"
#include "rwy/checksum.h"

#define UDP_LEN  ((uint32_t)sizeof(struct roce_udp))
#define IP_MAX   65535u /* longest IPv4 packet; also used as the bound for IPv6 */
#define ETH_TYPE 2

/* Whether a is the address of one host: neither unspecified nor a group. */
static bool unicast(const struct rwy_ip *a)
{
	static const struct rwy_ip zero;

	if (rwy_ip_is4(a))
		return a->b[12] != 0 && a->b[12] < 224;
	return a->b[0] != 0xff && !rwy_ip_eq(a, &zero);
}

static bool cfg_ok(const struct vxlan_tmpl_cfg *c)
{
	/* The remote end may be a group: RFC 7348 4.2 sends packets without a known VTEP to one. */
	static const struct rwy_ip zero;
	bool is4 = rwy_ip_is4(&c->local);

	return is4 == rwy_ip_is4(&c->remote) && unicast(&c->local) && !rwy_ip_eq(&c->remote, &zero) &&
	       (!is4 || rwy_get32(c->remote.b + 12)) && c->vni && c->vni <= VXLAN_VNI_MAX && c->port &&
	       c->ttl && !(c->src_mac[0] & 1) && (!c->tag || ((c->tci & 0xfff) && (c->tci & 0xfff) != 0xfff));
}

int vxlan_tmpl_init(struct vxlan_tmpl *t, const struct vxlan_tmpl_cfg *c)
{
	uint8_t *p = t->hdr;

	if (!cfg_ok(c))
		return RWY_EINVAL;
	memset(t, 0, sizeof(*t));
	t->udp_csum = c->udp_csum;
	if (rwy_ip_is4(&c->local)) {
		struct roce_ip4 *h = (struct roce_ip4 *)p;

		t->ip_len = sizeof(*h);
		h->ver_ihl = 0x45;
		rwy_put16(h->frag, ROCE_IP4_DF);
		h->ttl = c->ttl;
		h->proto = ROCE_IPPROTO_UDP;
		memcpy(h->src, c->local.b + 12, 4);
		memcpy(h->dst, c->remote.b + 12, 4);
		t->ip_sum = rwy_csum(p, sizeof(*h));
		t->pseudo = rwy_csum(h->src, 8) + ROCE_IPPROTO_UDP;
	} else {
		struct roce_ip6 *h = (struct roce_ip6 *)p;

		t->ip_len = sizeof(*h);
		h->vtf[0] = 0x60;
		h->next = ROCE_IPPROTO_UDP;
		h->hlim = c->ttl;
		memcpy(h->src, c->local.b, 16);
		memcpy(h->dst, c->remote.b, 16);
		t->pseudo = rwy_csum(h->src, 32) + ROCE_IPPROTO_UDP;
	}
	p += t->ip_len;
	rwy_put16(((struct roce_udp *)p)->dport, c->port);
	p += UDP_LEN;
	p[0] = 0x08; /* the I flag */
	rwy_put24(p + 4, c->vni);
	p += VXLAN_HLEN;
	memcpy(p + 6, c->src_mac, 6);
	t->eth_len = sizeof(struct roce_eth);
	if (c->tag) {
		rwy_put16(p + 12, RWY_ETHER_VLAN);
		rwy_put16(p + 14, c->tci);
		t->eth_len += (uint8_t)sizeof(struct roce_vlan);
	}
	t->len = (uint8_t)(t->ip_len + UDP_LEN + VXLAN_HLEN + t->eth_len);
	return 0;
}

/* Sets lengths, TOS, ports and checksums of a packet of `tot` bytes whose headers were just copied
 * to `o`. */
static inline void finish(const struct vxlan_tmpl *t, uint8_t *o, uint32_t tot, uint16_t sport, uint8_t tos)
{
	uint8_t *udp = o + t->ip_len;
	uint32_t udp_len = tot - t->ip_len;

	if (t->ip_len == sizeof(struct roce_ip4)) {
		o[1] = tos;
		rwy_put16(o + 2, (uint16_t)tot);
		rwy_put16(o + 10, (uint16_t)~rwy_csum_fold((uint64_t)t->ip_sum + tos + tot));
	} else {
		/* Flow label as in RFC 6438: entropy for routers that do not look at ports. */
		rwy_put32(o, 0x60000000u | (uint32_t)tos << 20 | sport);
		rwy_put16(o + 4, (uint16_t)udp_len);
	}
	rwy_put16(udp, sport);
	rwy_put16(udp + 4, (uint16_t)udp_len);
	if (t->udp_csum) {
		uint16_t sum = rwy_csum(udp, udp_len); /* the checksum field is 0 in the template */

		sum = (uint16_t)~rwy_csum_fold((uint64_t)sum + t->pseudo + udp_len);
		rwy_put16(udp + 6, sum ? sum : 0xffff); /* RFC 768: 0 means no checksum */
	}
}

uint8_t *vxlan_encap(const struct vxlan_tmpl *t, uint8_t *ip, uint32_t len, const uint8_t dst_mac[6],
    uint16_t sport, uint8_t tos)
{
	uint8_t *o = ip - t->len, *eth = ip - t->eth_len;
	uint8_t version = len ? ip[0] >> 4 : 0;

	if ((version != 4 && version != 6) || len > IP_MAX - t->len)
		return NULL;
	/* Common lengths as constants: a few vector stores. */
	if (t->len == VXLAN_ENCAP_IP4)
		memcpy(o, t->hdr, VXLAN_ENCAP_IP4);
	else if (t->len == VXLAN_ENCAP_IP6)
		memcpy(o, t->hdr, VXLAN_ENCAP_IP6);
	else
		memcpy(o, t->hdr, t->len);
	memcpy(eth, dst_mac, 6);
	rwy_put16(ip - ETH_TYPE, version == 4 ? RWY_ETHER_IP4 : RWY_ETHER_IP6);
	finish(t, o, len + t->len, sport, tos);
	return o;
}

uint8_t *vxlan_encap_frame(
    const struct vxlan_tmpl *t, uint8_t *eth, uint32_t len, uint16_t sport, uint8_t tos)
{
	uint32_t front = (uint32_t)t->len - t->eth_len;
	uint8_t *o = eth - front;

	if (len < sizeof(struct roce_eth) || len > IP_MAX - front)
		return NULL;
	memcpy(o, t->hdr, front);
	finish(t, o, len + front, sport, tos);
	return o;
}

uint32_t vxlan_flow_hash(const struct rwy_ip *src, const struct rwy_ip *dst, uint16_t sport, uint32_t dqpn)
{
	uint64_t w[4], h;

	memcpy(w, src->b, 16);
	memcpy(w + 2, dst->b, 16);
	h = w[1] * 0x9fb21c651e98df25u ^ w[0];
	h = (h ^ h >> 32) * 0xc2b2ae3d27d4eb4fu + w[3];
	h = (h ^ h >> 29) * 0x9fb21c651e98df25u + w[2];
	h = (h ^ h >> 32) * 0xc2b2ae3d27d4eb4fu + ((uint64_t)dqpn << 16 | sport);
	h = (h ^ h >> 29) * 0x9fb21c651e98df25u;
	return (uint32_t)(h >> 32);
}
