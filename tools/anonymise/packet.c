/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a RoCEv2 packet, in their order: IP, UDP, BTH, extension headers. */
#include "tools/anonymise/packet.h"

#include <string.h>

#include "roce/cm.h"
#include "roce/icrc.h"
#include "roce/wire.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "tools/anonymise/cm.h"

#define GSI_QKEY 0x80010000u /* IBA 10.2.4: the same everywhere */
#define IP_NOP   1           /* RFC 791: an option that does nothing */

static void qpn(const struct anon_key *key, uint8_t *at)
{
	uint32_t v = anon_qpn(key, (uint32_t)at[0] << 16 | rwy_get16(at + 1));

	at[0] = (uint8_t)(v >> 16);
	rwy_put16(at + 1, (uint16_t)v);
}

/* The bytes at `va` are a virtual address and an R_Key (RETH, AtomicETH). */
static void memory(const struct anon_key *key, uint8_t *va)
{
	uint32_t rkey = rwy_get32(va + 8);

	rwy_put64(va, anon_va(key, rkey, rwy_get64(va)));
	rwy_put32(va + 8, anon_32(key, ANON_RKEY, rkey));
}

static void ip_and_udp(const struct anon_key *key, struct roce_pkt *p)
{
	struct roce_udp *udp = (struct roce_udp *)(p->bth - sizeof(*udp));

	if (p->is6) {
		struct roce_ip6 *h = (struct roce_ip6 *)p->ip;

		anon_ip6(key, h->src);
		anon_ip6(key, h->dst);
		/* Hosts make the flow label of QPNs. */
		rwy_put32(h->vtf, rwy_get32(h->vtf) & 0xfff00000u);
	} else {
		struct roce_ip4 *h = (struct roce_ip4 *)p->ip;

		anon_ip4(key, h->src);
		anon_ip4(key, h->dst);
		memset(p->ip + sizeof(*h), IP_NOP, p->ip_hlen - sizeof(*h));
		memset(h->csum, 0, sizeof(h->csum));
		rwy_put16(h->csum, (uint16_t)~rwy_csum(p->ip, p->ip_hlen));
	}
	rwy_put16(udp->sport, anon_port(key, p->sport));
	memset(udp->csum, 0, sizeof(udp->csum));
}

static bool extensions(const struct anon_key *key, const struct roce_pkt *p)
{
	uint16_t has = p->info->flags;
	uint8_t *at = p->ext;

	if (has & ROCE_F_RDETH) {
		qpn(key, at + 1);
		at += sizeof(struct roce_rdeth);
	}
	if (has & ROCE_F_DETH) {
		if (rwy_get32(at) != GSI_QKEY)
			memset(at, 0, 4);
		qpn(key, at + 5);
		at += sizeof(struct roce_deth);
	}
	if (has & ROCE_F_XRCETH) {
		qpn(key, at + 1);
		at += sizeof(struct roce_xrceth);
	}
	if (has & ROCE_F_RETH) {
		memory(key, at);
		at += sizeof(struct roce_reth);
	}
	if (has & ROCE_F_ATOMICETH) {
		memory(key, at);
		memset(at + 12, 0, sizeof(struct roce_atomiceth) - 12);
		at += sizeof(struct roce_atomiceth);
	}
	if (has & ROCE_F_AETH)
		at += sizeof(struct roce_aeth);
	if (has & ROCE_F_ATOMICACKETH) {
		memset(at, 0, sizeof(struct roce_atomicacketh));
		at += sizeof(struct roce_atomicacketh);
	}
	if (has & ROCE_F_IMMDT) {
		memset(at, 0, sizeof(struct roce_immdt));
		at += sizeof(struct roce_immdt);
	}
	if (has & ROCE_F_IETH) {
		rwy_put32(at, anon_32(key, ANON_RKEY, rwy_get32(at)));
		at += sizeof(struct roce_ieth);
	}
	if (p->info->op == ROCE_OP_CNP) {
		memset(at, 0, ROCE_CNP_PAD_LEN);
		at += ROCE_CNP_PAD_LEN;
	}
	return at == p->payload;
}

bool anon_packet(const struct anon_key *key, uint8_t *ip, uint32_t len, uint32_t captured)
{
	struct roce_pkt p;
	uint32_t error;

	if (roce_parse(ip, len, &p) != ROCE_PARSE_OK || captured < (uint32_t)(p.payload - ip))
		return false;
	error = rwy_get32(p.icrc) ^ __builtin_bswap32(roce_icrc_compute(&p));
	ip_and_udp(key, &p);
	if (!extensions(key, &p))
		return false;
	qpn(key, p.bth + 5);
	if (roce_is_gsi(&p) && p.payload_len == ROCE_MAD_LEN)
		anon_mad(key, p.payload);
	else
		memset(p.payload, 0, (size_t)(p.icrc - p.payload));
	memset(p.icrc + ROCE_ICRC_LEN, 0, (size_t)(ip + len - p.icrc) - ROCE_ICRC_LEN);
	if (captured < p.len)
		memset(p.icrc, 0, ROCE_ICRC_LEN);
	else
		rwy_put32(p.icrc, __builtin_bswap32(roce_icrc_compute(&p)) ^ error);
	return true;
}
