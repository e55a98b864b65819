/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/rewrite.h"

#include "roce/icrc.h"
#include "rwy/checksum.h"

enum { IP4_SRC = 12, IP4_DST = 16, IP6_SRC = 8, IP6_DST = 24, BTH_DQPN = 5 };

void proxy_rewrite_bytes(const struct roce_pkt *pkt, uint8_t *at, const uint8_t *bytes, unsigned n)
{
	uint8_t before[16];

	memcpy(before, at, n);
	if (!memcmp(before, bytes, n))
		return;
	memcpy(at, bytes, n);
	roce_icrc_adjust(pkt, at, before, n);
}

/* An IPv4 address: the header checksum, which the ICRC does not cover, follows (RFC 1624). */
static void rewrite_ip4(const struct roce_pkt *pkt, unsigned at, const uint8_t v4[4])
{
	uint8_t before[4];

	memcpy(before, pkt->ip + at, 4);
	rwy_ip4_set16(pkt->ip, at, rwy_get16(v4));
	rwy_ip4_set16(pkt->ip, at + 2, rwy_get16(v4 + 2));
	roce_icrc_adjust(pkt, pkt->ip + at, before, 4);
}

static void rewrite_ip(const struct roce_pkt *pkt, unsigned at4, unsigned at6, const struct rwy_ip *a)
{
	if (pkt->is6)
		proxy_rewrite_bytes(pkt, pkt->ip + at6, a->b, 16);
	else
		rewrite_ip4(pkt, at4, a->b + 12);
}

void proxy_rewrite_src(struct roce_pkt *pkt, const struct rwy_ip *src)
{
	rewrite_ip(pkt, IP4_SRC, IP6_SRC, src);
	pkt->src = *src;
}

void proxy_rewrite_dst(struct roce_pkt *pkt, const struct rwy_ip *dst)
{
	rewrite_ip(pkt, IP4_DST, IP6_DST, dst);
	pkt->dst = *dst;
}

void proxy_rewrite_dqpn(struct roce_pkt *pkt, uint32_t qpn)
{
	uint8_t b[3];

	rwy_put24(b, qpn);
	proxy_rewrite_bytes(pkt, pkt->bth + BTH_DQPN, b, 3);
	pkt->dqpn = qpn;
}
