/* SPDX-License-Identifier: Apache-2.0 */
/* Parses ARP and neighbor discovery strictly, and decides. arp_make.c writes frames. */
#include "tenant/arp.h"

#include <string.h>

#include "roce/wire.h"
#include "rwy/checksum.h"
#include "tenant/arp_int.h"
#include "vxlan/ipwalk.h"

static bool mac_ok(const uint8_t mac[6])
{
	static const uint8_t none[6];

	return !(mac[0] & 1) && memcmp(mac, none, 6) != 0;
}

static bool host_ok(const struct rwy_ip *a)
{
	if (rwy_ip_is4(a))
		return a->b[12] && a->b[12] != 127 && a->b[12] < 224;
	return a->b[0] != 0xff && !arp_ip_none(a);
}

/* RFC 826: a request to broadcast or to us, an answer to us, or an announcement to all. */
static enum arp_what read4(const uint8_t *eth, const uint8_t *p, uint32_t len, struct arp_msg *m)
{
	static const uint8_t head[6] = {0, 1, 8, 0, 6, 4}; /* Ethernet, IPv4, their lengths */

	if (len < ARP_LEN || memcmp(p, head, 6) != 0 || p[6] != 0 || (p[7] != 1 && p[7] != 2))
		return ARP_MALFORMED;
	m->request = p[7] == 1;
	memcpy(m->mac, p + 8, 6);
	m->sender = rwy_ip_from4(p + 14);
	m->target = rwy_ip_from4(p + 24);
	if (!mac_ok(m->mac) || memcmp(m->mac, eth + 6, 6) != 0)
		return ARP_BAD_MAC;
	return host_ok(&m->target) || !m->request ? ARP_HEARD : ARP_BAD_TARGET;
}

/* Finds the source or target link-layer address option, as `want` says; NULL: absent. False:
 * malformed options. */
static bool option_find(const uint8_t *p, uint32_t len, uint8_t want, const uint8_t **mac)
{
	*mac = NULL;
	while (len) {
		uint32_t n = len >= 2 ? 8u * p[1] : 0;

		if (!n || n > len)
			return false; /* RFC 4861 4.6: length 0 */
		if (p[0] == want) {
			if (n != 8 || *mac)
				return false;
			*mac = p + 2;
		}
		p += n;
		len -= n;
	}
	return true;
}

/* RFC 4861 7.1.1 and 7.1.2. */
static enum arp_what read6(const uint8_t *eth, const uint8_t *p, uint32_t len, struct arp_msg *m)
{
	const struct roce_ip6 *h = (const struct roce_ip6 *)p;
	const uint8_t *icmp = p + sizeof(*h), *mac;
	struct rwy_ip src, dst, group;
	uint8_t group_mac[6];
	struct ip_l4 l;
	uint32_t n;

	if (ip_walk(p, len, &l) != IP_WALK_OK || p[0] >> 4 != 6)
		return ARP_MALFORMED;
	n = l.end - l.off;
	if (l.ext || l.proto != ND_ICMP6 || n < 1 || (icmp[0] != ND_SOLICIT && icmp[0] != ND_ADVERT))
		return ARP_OTHER;
	if (h->hlim != 255 || n < ND_LEN || icmp[1] != 0 ||
	    rwy_csum_fold((uint64_t)rwy_csum(h->src, 32) + n + ND_ICMP6 + rwy_csum(icmp, n)) != 0xffff)
		return ARP_MALFORMED;
	memcpy(src.b, h->src, 16);
	memcpy(dst.b, h->dst, 16);
	memcpy(m->target.b, icmp + 8, 16);
	m->request = icmp[0] == ND_SOLICIT;
	if (!option_find(icmp + ND_LEN, n - ND_LEN, m->request ? 1 : 2, &mac))
		return ARP_MALFORMED;
	memcpy(m->mac, eth + 6, 6);
	if (!mac_ok(m->mac) || (mac && memcmp(mac, m->mac, 6) != 0))
		return ARP_BAD_MAC;
	if (!host_ok(&m->target) || rwy_ip_is4(&m->target))
		return ARP_BAD_TARGET;
	m->sender = m->request ? src : m->target;
	if (!m->request)
		return dst.b[0] == 0xff && icmp[4] & 0x40 ? ARP_MALFORMED : ARP_HEARD;
	arp_group_of(&m->target, &group, group_mac);
	if (rwy_ip_eq(&dst, &group))
		return arp_ip_none(&src) && mac ? ARP_MALFORMED : ARP_HEARD;
	return rwy_ip_eq(&dst, &m->target) && !arp_ip_none(&src) ? ARP_HEARD : ARP_MALFORMED;
}

static bool own(const struct tenant *t, const struct rwy_ip *a)
{
	return !arp_ip_none(a) && (rwy_ip_eq(a, &t->cfg.gw_ip[0]) || rwy_ip_eq(a, &t->cfg.gw_ip[1]));
}

/* A link-local address is on every link and in no tenant's prefix: it may ask, and is not
 * learned. */
static bool link_local(const struct rwy_ip *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static enum arp_what decide(const struct tenant *t, enum tenant_side side, const uint8_t mac[6],
    const uint8_t *eth, struct arp_msg *m)
{
	bool probe = arp_ip_none(&m->sender), announce = rwy_ip_eq(&m->sender, &m->target) && m->request;
	struct tenant_at at = tenant_find(t, &m->target);

	if (!(eth[0] & 1) && memcmp(eth, mac, 6) != 0 && memcmp(eth, t->cfg.gw_mac, 6) != 0)
		return ARP_NOT_US;
	if (own(t, &m->sender))
		return ARP_CONFLICT;
	if (!probe && tenant_find(t, &m->sender).side != side && !(link_local(&m->sender) && m->request))
		return ARP_FORGED;
	m->learn = !probe && !link_local(&m->sender);
	if (!m->request || announce)
		return probe ? ARP_MALFORMED : ARP_HEARD;
	if (own(t, &m->target))
		return ARP_ANSWER_OWN; /* also for a probe: RFC 5227 2.1.1, RFC 4862 5.4.4 */
	if (probe)
		return ARP_PROBE;
	switch ((enum tenant_side)at.side) {
	case TENANT_NOWHERE:
		return ARP_NOWHERE;
	case TENANT_LAN:
	case TENANT_VTEP:
		if (at.side == side)
			return ARP_LOCAL;
		break; /* broadcasts do not go from one side to the other */
	case TENANT_TUNNEL:
		break;
	}
	return t->cfg.proxy_arp ? ARP_ANSWER_PROXY : ARP_NO_PROXY;
}

enum arp_what arp_rx(const struct tenant *t, enum tenant_side side, const uint8_t mac[6], const uint8_t *eth,
    uint32_t net_off, uint32_t len, struct arp_msg *m, uint8_t out[ARP_FRAME_MAX], uint32_t *out_len)
{
	enum arp_what w;
	uint16_t type;

	*out_len = 0;
	if (net_off < sizeof(struct roce_eth) ||
	    net_off > sizeof(struct roce_eth) + sizeof(struct roce_vlan) || len < net_off)
		return ARP_OTHER;
	memset(m, 0, sizeof(*m));
	type = rwy_get16(eth + net_off - 2);
	m->is6 = type == RWY_ETHER_IP6;
	if (type == RWY_ETHER_ARP)
		w = read4(eth, eth + net_off, len - net_off, m);
	else if (m->is6)
		w = read6(eth, eth + net_off, len - net_off, m);
	else
		return ARP_OTHER;
	if (w != ARP_HEARD)
		return w;
	w = decide(t, side, mac, eth, m);
	if (w == ARP_ANSWER_OWN || w == ARP_ANSWER_PROXY) {
		uint16_t tci = net_off > sizeof(struct roce_eth) ? rwy_get16(eth + net_off - 4) : 0;

		*out_len = arp_make_answer(mac, m, w == ARP_ANSWER_OWN, tci, out);
	}
	return w;
}
