/* SPDX-License-Identifier: Apache-2.0 */
/* Packet records as bytes at the edge of the gateway; see bytes.h. */
#include "tests/sim/dc/bytes.h"

#include <string.h>

#include "roce/icrc.h"
#include "roce/parse.h"
#include "rwy/endian.h"
#include "tests/lib/roce_cm_mad.h"
#include "tests/sim/dc/hostile.h"
#include "tests/sim/dc/nic.h"

#define TAG        DC_THIN_TAG
#define PATTERN    (64u << 10)
#define TCP        6
#define UDP        17
#define IP_HEADERS 40

bool dc_thin;
static uint8_t pattern[PATTERN + 4096];

static uint64_t mix(uint64_t x)
{
	return rng_next(&x);
}

static void payload_at(uint32_t dqpn, uint32_t psn, uint8_t tag[TAG], const uint8_t **rest)
{
	uint64_t h = mix((uint64_t)dqpn << 32 | psn);

	if (!pattern[0])
		for (uint32_t i = 0; i < sizeof(pattern); i++)
			pattern[i] = (uint8_t)(mix(i) | 1);
	memcpy(tag, &h, TAG);
	*rest = pattern + (h >> 40) % PATTERN;
}

static void payload_put(const struct dc_pkt *p, uint8_t *out)
{
	uint8_t tag[TAG];
	const uint8_t *rest;

	payload_at(p->dqpn, p->psn, tag, &rest);
	memcpy(out, tag, p->len < TAG ? p->len : TAG);
	if (!dc_thin && p->len > TAG)
		memcpy(out + TAG, rest, p->len - TAG);
}

static bool payload_ok(const struct dc_pkt *p, const uint8_t *at)
{
	uint8_t tag[TAG];
	const uint8_t *rest;

	payload_at(p->dqpn, p->psn, tag, &rest);
	return memcmp(at, tag, p->len < TAG ? p->len : TAG) == 0 &&
	       (dc_thin || p->len <= TAG || memcmp(at + TAG, rest, p->len - TAG) == 0);
}

static uint8_t opcode(const struct dc *dc, const struct dc_pkt *p)
{
	static const uint8_t send[2][2] = {
	    {ROCE_RC_SEND_MIDDLE, ROCE_RC_SEND_LAST}, {ROCE_RC_SEND_FIRST, ROCE_RC_SEND_ONLY}};
	static const uint8_t write[2][2] = {
	    {ROCE_RC_WRITE_MIDDLE, ROCE_RC_WRITE_LAST}, {ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_ONLY}};

	switch ((enum dc_kind)p->kind) {
	case DC_DATA:
		return dc->s.op == OP_SEND ? send[p->first][p->last] : write[p->first][p->last];
	case DC_ACK:
	case DC_NAK:
		return ROCE_RC_ACK;
	case DC_CNP:
	case DC_PFC:
		break;
	}
	return ROCE_OPCODE_CNP;
}

static void host_ip(const struct dc *dc, unsigned host, uint8_t *out)
{
	unsigned local = host % dc->per_site;

	out[0] = 10;
	out[1] = (uint8_t)(1 + dc_site(dc, host));
	out[2] = 0;
	out[3] = (uint8_t)(local + 2);
}

static unsigned host_of(const struct dc *dc, const struct rwy_ip *a)
{
	return (a->b[13] - 1u) * dc->per_site + a->b[15] - 2u;
}

struct rwy_ip dc_site_net(unsigned site)
{
	uint8_t v4[4] = {10, (uint8_t)(1 + site), 0, 0};

	return rwy_ip_from4(v4);
}

static void put_ip(const struct dc *dc, const struct dc_pkt *p, uint8_t *ip, uint32_t len, uint8_t proto)
{
	uint32_t sum = 0;

	memset(ip, 0, 28);
	ip[0] = 0x45;
	ip[1] = p->ecn;
	rwy_put16(ip + 2, (uint16_t)len);
	ip[6] = 0x40; /* DF */
	ip[8] = 64;
	ip[9] = proto;
	host_ip(dc, p->src, ip + 12);
	host_ip(dc, p->dst, ip + 16);
	for (int k = 0; k < 20; k += 2)
		sum += rwy_get16(ip + k);
	sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
	rwy_put16(ip + 20, (uint16_t)(0xc000 | (p->hash & 0x3fff)));
	rwy_put16(ip + 22, ROCE_UDP_PORT);
	rwy_put16(ip + 24, (uint16_t)(len - 20));
}

/* A CM REQ of the hostile host for one more queue pair. */
static uint32_t cm_make(const struct dc *dc, const struct dc_pkt *p, uint8_t *out)
{
	uint8_t *bth = out + 28, *deth = bth + ROCE_BTH_LEN;
	uint32_t len = 28 + ROCE_BTH_LEN + 8 + 256 + ROCE_ICRC_LEN;
	struct cp_req req = {.tid = p->psn,
	    .comm = p->psn + 1,
	    .qpn = DC_BOGUS_QPN + p->psn / 2,
	    .psn = p->psn,
	    .mtu = 5,
	    .retry = 7,
	    .local_gid = {[10] = 0xff, 0xff},
	    .remote_gid = {[10] = 0xff, 0xff}};
	struct roce_pkt pkt;

	host_ip(dc, p->src, req.local_gid + 12);
	host_ip(dc, p->dst, req.remote_gid + 12);
	memset(out, 0, len);
	put_ip(dc, p, out, len, UDP);
	bth[0] = 0x64; /* UD SEND ONLY */
	bth[1] = 0x40;
	rwy_put16(bth + 2, 0xffff);
	rwy_put32(bth + 4, p->dqpn);
	rwy_put32(deth, 0x80010000);
	rwy_put32(deth + 4, 1);
	cp_make_req(deth + 8, &req);
	if (roce_parse(out, len, &pkt) == ROCE_PARSE_OK)
		roce_icrc_store(&pkt);
	return len;
}

/* The message's number is the sequence number of a TCP header that has nothing else, and its payload. */
static uint32_t ip_make(const struct dc *dc, const struct dc_pkt *p, uint8_t *out)
{
	const uint32_t len = IP_HEADERS + p->len,
	               there = dc_thin && len > DC_THIN_BYTES ? DC_THIN_BYTES : len;

	put_ip(dc, p, out, len, TCP);
	memset(out + 20, 0, there - 20);
	rwy_put32(out + 24, p->psn);
	rwy_put32(out + IP_HEADERS, p->psn);
	return len;
}

static bool ip_read(const struct dc *dc, const uint8_t *ip, uint32_t len, struct dc_pkt *p)
{
	struct rwy_ip src = rwy_ip_from4(ip + 12), dst = rwy_ip_from4(ip + 16);

	if (len < IP_HEADERS + 8 || rwy_get16(ip + 2) != len)
		return false;
	p->kind = DC_DATA;
	p->dqpn = DC_IP_QPN;
	p->psn = rwy_get32(ip + 24);
	p->src = (uint16_t)host_of(dc, &src);
	p->dst = (uint16_t)host_of(dc, &dst);
	p->ecn = ip[1] & 3;
	p->first = p->last = true;
	p->len = (uint16_t)(len - IP_HEADERS);
	p->wire = len + 38;
	p->hash = p->psn * 0x9e3779b9u;
	return p->dst < dc->hosts && rwy_get32(ip + IP_HEADERS) == p->psn;
}

uint32_t dc_bytes_make(const struct dc *dc, const struct dc_pkt *p, uint8_t *out)
{
	const struct roce_opinfo *info = roce_op(opcode(dc, p));
	uint32_t body = p->kind == DC_CNP ? 16 : p->len, pad = (0u - body) & 3;
	uint8_t *bth = out + 28, *at = bth + ROCE_BTH_LEN;
	struct roce_pkt pkt;
	uint32_t len;

	if (p->dqpn == 1)
		return cm_make(dc, p, out);
	if (p->dqpn == DC_IP_QPN)
		return ip_make(dc, p, out);
	memset(at, 0, 16);
	if (info->flags & ROCE_F_RETH) {
		rwy_put64(at, 0x10000000 + (uint64_t)p->psn * 4096);
		rwy_put32(at + 8, 0x1234);
		rwy_put32(at + 12, p->aux);
		at += 16;
	}
	if (info->flags & ROCE_F_AETH) {
		rwy_put32(at, (p->kind == DC_NAK ? 0x60u : 0x1fu) << 24 | (p->aux & ROCE_PSN_MASK));
		at += 4;
	}
	if (p->kind == DC_DATA)
		payload_put(p, at);
	len = (uint32_t)(at - out) + body + pad + ROCE_ICRC_LEN;
	put_ip(dc, p, out, len, UDP);
	bth[0] = info - roce_opinfo;
	bth[1] = (uint8_t)(pad << 4 | 0x40); /* MigReq, as hardware sets it */
	rwy_put16(bth + 2, 0xffff);
	rwy_put32(bth + 4, p->dqpn | (p->kind == DC_CNP ? 0x40000000u : 0));
	rwy_put32(bth + 8, p->psn | (p->ackreq ? 0x80000000u : 0));
	if (dc_thin && len > DC_THIN_BYTES)
		return len;
	memset(at + body, 0, pad + ROCE_ICRC_LEN);
	if (roce_parse(out, len, &pkt) == ROCE_PARSE_OK)
		roce_icrc_store(&pkt);
	return len;
}

bool dc_bytes_read(const struct dc *dc, uint8_t *ip, uint32_t len, struct dc_pkt *p)
{
	struct roce_pkt k;

	if (len > 20 && ip[9] == TCP)
		return ip_read(dc, ip, len, p);
	if (roce_parse(ip, len, &k) != ROCE_PARSE_OK || !roce_icrc_ok(&k))
		return false;
	p->src = (uint16_t)host_of(dc, &k.src);
	p->dst = (uint16_t)host_of(dc, &k.dst);
	p->dqpn = k.dqpn;
	p->psn = k.psn;
	p->ecn = k.ecn;
	p->ackreq = k.ack_req;
	p->first = roce_op_starts(k.info);
	p->last = roce_op_ends(k.info);
	p->wire = k.len + 42;
	p->aux = 0;
	p->len = 0;
	if (p->dst >= dc->hosts)
		return false;
	if (dc_is_hostile(p->dqpn)) { /* its host has no such queue pair */
		p->kind = DC_DATA;
		p->hash = p->dqpn;
		return true;
	}
	if (dc_qp_id(p->dqpn) >= dc->qp_n)
		return false;
	p->gen = dc->qps[dc_qp_id(p->dqpn)]->gen;
	p->hash = dc->qps[dc_qp_id(p->dqpn)]->hash;
	switch ((enum roce_op)k.info->op) {
	case ROCE_OP_WRITE:
	case ROCE_OP_SEND:
		p->kind = DC_DATA;
		p->len = (uint16_t)k.payload_len;
		if (k.info->flags & ROCE_F_RETH)
			p->aux = roce_reth_len(&k);
		return payload_ok(p, k.payload);
	case ROCE_OP_ACK:
		p->kind = roce_aeth_type(roce_aeth_syndrome(&k)) == ROCE_AETH_ACK ? DC_ACK : DC_NAK;
		p->aux = roce_aeth_msn(&k);
		/* Simulated hosts send no RNR NAK and no invalid packet. */
		return p->kind == DC_ACK || (roce_aeth_type(roce_aeth_syndrome(&k)) == ROCE_AETH_NAK &&
		                                roce_aeth_value(roce_aeth_syndrome(&k)) == ROCE_NAK_PSN_SEQ);
	case ROCE_OP_CNP:
		p->kind = DC_CNP;
		return true;
	default:
		return false;
	}
}
