/* SPDX-License-Identifier: Apache-2.0 */
/* Walks an IP header up to its payload. */
#include "vxlan/ipwalk.h"

#include <string.h>

#include "roce/wire.h"
#include "rwy/ip.h"

#define IP6_HOPOPTS  0
#define IP6_ROUTING  43
#define IP6_FRAGMENT 44
#define IP6_DSTOPTS  60
#define IP6_MAX_EXT  8

static enum ip_walk walk4(const uint8_t *ip, uint32_t len, struct ip_l4 *l)
{
	const struct roce_ip4 *h = (const struct roce_ip4 *)ip;
	uint32_t hlen, tot;
	uint16_t frag;

	if (len < sizeof(*h))
		return IP_WALK_TRUNCATED;
	hlen = (h->ver_ihl & 0xfu) * 4;
	tot = rwy_get16(h->tot_len);
	if (hlen < sizeof(*h) || tot < hlen)
		return IP_WALK_BAD;
	if (tot > len)
		return IP_WALK_TRUNCATED;
	frag = rwy_get16(h->frag);
	l->off = hlen;
	l->end = tot;
	l->proto = h->proto;
	l->fragment = frag & (ROCE_IP4_MF | ROCE_IP4_OFFMASK);
	l->later = frag & ROCE_IP4_OFFMASK;
	l->ext = false;
	return IP_WALK_OK;
}

static enum ip_walk walk6_ext(const uint8_t *ip, struct ip_l4 *l)
{
	for (unsigned i = 0; i <= IP6_MAX_EXT; i++) {
		uint8_t kind = l->proto;

		if (kind == ROCE_IPPROTO_UDP && l->fragment && l->end - l->off < 8)
			return IP_WALK_BAD;
		if (kind != IP6_HOPOPTS && kind != IP6_ROUTING && kind != IP6_FRAGMENT && kind != IP6_DSTOPTS)
			return IP_WALK_OK;
		l->ext = true;
		if (l->end - l->off < 8)
			return IP_WALK_BAD;
		l->proto = ip[l->off];
		if (kind == IP6_FRAGMENT) {
			uint16_t f = rwy_get16(ip + l->off + 2);

			l->fragment = l->fragment || (f & 0xfff9);
			l->later = f & 0xfff8;
			l->off += 8;
			if (l->later)
				return IP_WALK_OK;
		} else {
			l->off += 8u + 8u * ip[l->off + 1];
		}
		if (l->off > l->end)
			return IP_WALK_BAD;
	}
	return IP_WALK_BAD;
}

/* Whether it is an IPv4-mapped address: no IPv6 packet has one (RFC 4291 2.5.5.2). */
static bool is_mapped(const uint8_t *addr)
{
	struct rwy_ip a;

	memcpy(a.b, addr, sizeof(a.b));
	return rwy_ip_is4(&a);
}

static enum ip_walk walk6(const uint8_t *ip, uint32_t len, struct ip_l4 *l)
{
	const struct roce_ip6 *h = (const struct roce_ip6 *)ip;

	if (len < sizeof(*h))
		return IP_WALK_TRUNCATED;
	l->off = sizeof(*h);
	l->end = (uint32_t)sizeof(*h) + rwy_get16(h->plen);
	l->proto = h->next;
	l->fragment = l->later = l->ext = false;
	if (l->end > len)
		return IP_WALK_TRUNCATED;
	if (is_mapped(h->src) || is_mapped(h->dst))
		return IP_WALK_BAD;
	return l->proto == ROCE_IPPROTO_UDP ? IP_WALK_OK : walk6_ext(ip, l);
}

enum ip_walk ip_walk(const uint8_t *ip, uint32_t len, struct ip_l4 *l)
{
	if (len < 1)
		return IP_WALK_TRUNCATED;
	if (ip[0] >> 4 == 4)
		return walk4(ip, len, l);
	if (ip[0] >> 4 == 6)
		return walk6(ip, len, l);
	return IP_WALK_BAD;
}
