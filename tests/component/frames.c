/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of frames.h. */
#include "tests/component/frames.h"

#include <stdlib.h>
#include <string.h>

#include "roce/build.h"
#include "roce/icrc.h"
#include "rwy/endian.h"

static uint32_t sum16(const uint8_t *p, uint32_t n)
{
	uint32_t s = 0;

	for (uint32_t i = 0; i < n; i += 2)
		s += rwy_get16(p + i);
	s = (s & 0xffff) + (s >> 16);
	return (s & 0xffff) + (s >> 16);
}

/* Writes the IP header for `len` bytes after it; returns its length. */
static uint32_t ip_head(
    uint8_t *p, const struct rwy_ip *src, const struct rwy_ip *dst, uint8_t tos, uint32_t len)
{
	if (!rwy_ip_is4(src)) {
		memset(p, 0, 40);
		rwy_put32(p, 0x60000000u | (uint32_t)tos << 20);
		rwy_put16(p + 4, (uint16_t)len);
		p[6] = 17;
		p[7] = 64;
		memcpy(p + 8, src->b, 16);
		memcpy(p + 24, dst->b, 16);
		return 40;
	}
	memset(p, 0, 20);
	p[0] = 0x45;
	p[1] = tos;
	rwy_put16(p + 2, (uint16_t)(20 + len));
	p[6] = 0x40;
	p[8] = 64;
	p[9] = 17;
	memcpy(p + 12, src->b + 12, 4);
	memcpy(p + 16, dst->b + 12, 4);
	rwy_put16(p + 10, (uint16_t)~sum16(p, 20));
	return 20;
}

static void udp_head(uint8_t *p, uint16_t sport, uint16_t dport, uint32_t len)
{
	rwy_put16(p, sport);
	rwy_put16(p + 2, dport);
	rwy_put16(p + 4, (uint16_t)len);
	rwy_put16(p + 6, 0);
}

uint32_t fr_write(uint8_t *ip, const struct fr_roce *r)
{
	uint32_t udp_len = 8 + 12 + 16 + r->payload + 4;
	uint32_t hdr = ip_head(ip, &r->src, &r->dst, r->tos, udp_len);
	uint8_t *udp = ip + hdr, *bth = udp + 8;
	struct roce_pkt pkt;

	udp_head(udp, r->sport, 4791, udp_len);
	memset(bth, 0, 28);
	bth[0] = 0x0a; /* RDMA WRITE Only */
	rwy_put16(bth + 2, 0xffff);
	rwy_put24(bth + 5, r->dqpn);
	bth[8] = 0x80;
	rwy_put24(bth + 9, r->psn);
	rwy_put64(bth + 12, 0x7f0000001000);
	rwy_put32(bth + 20, 0x1234);
	rwy_put32(bth + 24, r->payload);
	memset(bth + 28, r->fill, r->payload);
	if (roce_parse(ip, hdr + udp_len, &pkt) != ROCE_PARSE_OK)
		abort();
	roce_icrc_store(&pkt);
	return hdr + udp_len;
}

uint32_t fr_ack(uint8_t *ip, const struct fr_roce *r, uint32_t msn)
{
	struct roce_addr a = {.src = r->src,
	    .dst = r->dst,
	    .dqpn = r->dqpn,
	    .sport = r->sport,
	    .pkey = 0xffff,
	    .tos = r->tos,
	    .ttl = 64};

	return roce_build_ack(ip, &a, r->psn, 0x1f, msn);
}

uint32_t fr_udp(uint8_t *ip, const struct rwy_ip *src, const struct rwy_ip *dst, uint16_t sport,
    uint16_t dport, uint32_t payload)
{
	uint32_t hdr = ip_head(ip, src, dst, 0, 8 + payload);

	udp_head(ip + hdr, sport, dport, 8 + payload);
	memset(ip + hdr + 8, 0x5a, payload);
	return hdr + 8 + payload;
}

uint32_t fr_arp(uint8_t *p, uint8_t op, const uint8_t smac[6], const struct rwy_ip *sender,
    const uint8_t tmac[6], const struct rwy_ip *target)
{
	static const uint8_t head[7] = {0, 1, 8, 0, 6, 4, 0};

	memcpy(p, head, 7);
	p[7] = op;
	memcpy(p + 8, smac, 6);
	memcpy(p + 14, sender->b + 12, 4);
	memcpy(p + 18, tmac, 6);
	memcpy(p + 24, target->b + 12, 4);
	return 28;
}

uint32_t fr_eth(uint8_t *out, const uint8_t dst[6], const uint8_t src[6], uint16_t vid, uint16_t type,
    const uint8_t *data, uint32_t len)
{
	uint8_t *p = out + 12;

	memcpy(out, dst, 6);
	memcpy(out + 6, src, 6);
	if (vid) {
		rwy_put16(p, 0x8100);
		rwy_put16(p + 2, vid);
		p += 4;
	}
	rwy_put16(p, type);
	memcpy(p + 2, data, len);
	return (uint32_t)(p + 2 - out) + len;
}

uint32_t fr_vxlan(uint8_t *out, const struct fr_outer *o, const uint8_t *inner, uint32_t len)
{
	uint8_t b[FR_MAX];
	uint32_t hdr = ip_head(b, &o->src, &o->dst, o->tos, 16 + len);

	udp_head(b + hdr, 55555, 4789, 16 + len);
	memset(b + hdr + 8, 0, 8);
	b[hdr + 8] = o->flags ? o->flags : 0x08;
	rwy_put24(b + hdr + 12, o->vni);
	memcpy(b + hdr + 16, inner, len);
	return fr_eth(out, o->dmac, o->smac, 0, rwy_ip_is4(&o->src) ? 0x0800 : 0x86dd, b, hdr + 16 + len);
}

/* --- parsing ---------------------------------------------------------------------------------- */

static bool read_eth(const uint8_t *p, uint32_t len, uint16_t *vid, uint16_t *type, uint32_t *off)
{
	if (len < 18)
		return false;
	*vid = 0;
	*off = 14;
	*type = rwy_get16(p + 12);
	if (*type == 0x8100) {
		*vid = rwy_get16(p + 14) & 0xfff;
		*type = rwy_get16(p + 16);
		*off = 18;
	}
	return true;
}

/* Checks each field of the outer headers by RFC 7348. */
static bool read_vxlan(const uint8_t *ip, uint32_t len, struct fr_seen *s)
{
	bool is4 = ip[0] >> 4 == 4;
	uint32_t hdr = is4 ? 20 : 40, off;
	const uint8_t *udp = ip + hdr;
	uint16_t vid;

	s->vxlan = true;
	s->outer = ip;
	if (is4) {
		if (sum16(ip, 20) != 0xffff || rwy_get16(ip + 2) != len || ip[6] != 0x40 || ip[8] != 64)
			return false;
		s->outer_tos = ip[1];
		s->outer_src = rwy_ip_from4(ip + 12);
		s->outer_dst = rwy_ip_from4(ip + 16);
	} else {
		if (rwy_get16(ip + 4) != len - 40 || ip[7] != 64)
			return false;
		s->outer_tos = (uint8_t)(rwy_get16(ip) >> 4);
		memcpy(s->outer_src.b, ip + 8, 16);
		memcpy(s->outer_dst.b, ip + 24, 16);
	}
	s->outer_sport = rwy_get16(udp);
	if (s->outer_sport < 49152 || rwy_get16(udp + 4) != len - hdr || rwy_get16(udp + 6) != 0 ||
	    rwy_get32(udp + 8) != 0x08000000 || udp[15] != 0)
		return false;
	s->vni = rwy_get24(udp + 12);
	s->inner = udp + 16;
	if (!read_eth(s->inner, len - hdr - 16, &vid, &s->type, &off) || vid)
		return false;
	s->net = s->inner + off;
	s->net_len = len - hdr - 16 - off;
	return true;
}

bool fr_read(const uint8_t *frame, uint32_t len, struct fr_seen *s)
{
	const uint8_t *ip;
	uint32_t off;

	memset(s, 0, sizeof(*s));
	s->eth = s->inner = frame;
	if (!read_eth(frame, len, &s->vid, &s->type, &off))
		return false;
	ip = s->net = frame + off;
	s->net_len = len - off;
	if (s->type == 0x0800 && s->net_len > 44 && ip[9] == 17 && rwy_get16(ip + 22) == 4789)
		return read_vxlan(ip, s->net_len, s);
	if (s->type == 0x86dd && s->net_len > 64 && ip[6] == 17 && rwy_get16(ip + 42) == 4789)
		return read_vxlan(ip, s->net_len, s);
	return true;
}
