/* SPDX-License-Identifier: Apache-2.0 */
/* RC packets for tests; see rc_pkt.h. */
#include "tests/lib/rc_pkt.h"

#include <stdio.h>
#include <string.h>

#include "roce/icrc.h"
#include "rwy/endian.h"

static uint8_t *put_ext(uint8_t *p, const struct rc_mk *m, const struct roce_opinfo *i)
{
	if (i->flags & ROCE_F_RDETH) {
		rwy_put32(p, 0);
		p += 4;
	}
	if (i->flags & ROCE_F_DETH) {
		rwy_put32(p, m->qkey);
		rwy_put32(p + 4, m->src_qpn);
		p += 8;
	}
	if (i->flags & ROCE_F_XRCETH) {
		rwy_put32(p, 0);
		p += 4;
	}
	if (i->flags & ROCE_F_RETH) {
		rwy_put64(p, m->va);
		rwy_put32(p + 8, m->rkey);
		rwy_put32(p + 12, m->len);
		p += 16;
	}
	if (i->flags & ROCE_F_ATOMICETH) {
		rwy_put64(p, m->va);
		rwy_put32(p + 8, m->rkey);
		rwy_put64(p + 12, m->swap_add);
		rwy_put64(p + 20, m->compare);
		p += 28;
	}
	if (i->flags & ROCE_F_AETH) {
		rwy_put32(p, (uint32_t)m->syndrome << 24 | (m->msn & ROCE_PSN_MASK));
		p += 4;
	}
	if (i->flags & ROCE_F_ATOMICACKETH) {
		rwy_put64(p, m->original);
		p += 8;
	}
	if (i->flags & (ROCE_F_IMMDT | ROCE_F_IETH)) {
		rwy_put32(p, m->imm);
		p += 4;
	}
	return p;
}

static void put_ip(uint8_t *ip, const struct rc_mk *m, uint32_t len)
{
	static const uint8_t none[4], src[4] = {10, 0, 0, 1}, dst[4] = {10, 0, 0, 2};
	uint32_t sum = 0;

	memset(ip, 0, 28);
	ip[0] = 0x45;
	rwy_put16(ip + 2, (uint16_t)len);
	ip[6] = 0x40; /* DF */
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, memcmp(m->src, none, 4) ? m->src : src, 4);
	memcpy(ip + 16, memcmp(m->dst, none, 4) ? m->dst : dst, 4);
	for (int k = 0; k < 20; k += 2)
		sum += rwy_get16(ip + k);
	sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
	rwy_put16(ip + 20, 0xc000);
	rwy_put16(ip + 22, ROCE_UDP_PORT);
	rwy_put16(ip + 24, (uint16_t)(len - 20));
}

uint32_t rc_pkt_make(uint8_t *out, const struct rc_mk *m)
{
	const struct roce_opinfo *info = roce_op(m->opcode);
	uint32_t pad = (0u - m->payload_len) & 3;
	uint8_t *bth = out + 28, *p = bth + ROCE_BTH_LEN;
	enum roce_parse_reason parsed;
	struct roce_pkt pkt;
	uint32_t len;

	p = put_ext(p, m, info);
	if (m->payload)
		memcpy(p, m->payload, m->payload_len);
	else
		memset(p, 0, m->payload_len);
	memset(p + m->payload_len, 0, pad + ROCE_ICRC_LEN);
	len = (uint32_t)(p - out) + m->payload_len + pad + ROCE_ICRC_LEN;
	put_ip(out, m, len);
	bth[0] = m->opcode;
	bth[1] = (uint8_t)(pad << 4);
	rwy_put16(bth + 2, 0xffff);
	rwy_put32(bth + 4, m->dqpn & ROCE_PSN_MASK);
	rwy_put32(bth + 8, (m->psn & ROCE_PSN_MASK) | (m->ack_req ? 0x80000000u : 0));
	parsed = roce_parse(out, len, &pkt);
	if (parsed == ROCE_PARSE_OK || parsed == ROCE_PARSE_UNKNOWN_OPCODE)
		roce_icrc_store(&pkt);
	return len;
}

bool rc_pkt_read(uint8_t *bytes, uint32_t len, struct roce_pkt *pkt)
{
	return roce_parse(bytes, len, pkt) == ROCE_PARSE_OK && roce_icrc_ok(pkt);
}

void rc_pkt_print(const uint8_t *bytes, uint32_t len)
{
	uint8_t copy[RC_PKT_MAX]; /* a reader may write */
	struct roce_pkt p;

	if (len > sizeof(copy))
		return;
	memcpy(copy, bytes, len);
	if (!rc_pkt_read(copy, len, &p))
		return;
	fprintf(stderr, "%s psn=%u len=%u%s", p.info->name ? p.info->name : "?", p.psn, p.payload_len,
	    p.ack_req ? " AckReq" : "");
	if (p.info->flags & ROCE_F_AETH)
		fprintf(stderr, " syndrome=%02x msn=%u", roce_aeth_syndrome(&p), roce_aeth_msn(&p));
}
