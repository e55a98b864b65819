/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets for the tests of roce/, written byte by byte, independent of roce/build.c and
 * roce/icrc.c: the tests compare two implementations.
 */
#ifndef TESTS_LIB_ROCE_PKT_H
#define TESTS_LIB_ROCE_PKT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#define TP_MAX 4400

struct tp {
	uint8_t opcode;
	uint8_t bth_flags; /* SE, MigReq, TVer; the pad count is added */
	bool is6;
	bool ack_req;
	uint8_t tos, ttl, fb;
	uint8_t ihl; /* IPv4, in words; 0 = 5 */
	uint16_t frag;
	uint16_t udp_csum;
	uint16_t dport; /* 0 = 4791 */
	uint32_t dqpn, psn;
	const uint8_t *ext;
	uint32_t ext_len;
	uint32_t payload_len;
	int pad; /* -1: as much as needed */
	uint32_t seed;
};

/* A small generator: a failing case is named by its seed. */
static inline uint32_t tp_rand(uint32_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

static inline void tp_be(uint8_t *p, uint64_t v, unsigned n)
{
	while (n--) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

static inline uint16_t tp_ip4_csum(const uint8_t *p, unsigned len)
{
	uint32_t s = 0;

	for (unsigned i = 0; i < len; i += 2)
		s += (uint32_t)p[i] << 8 | p[i + 1];
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static inline void tp_fix_csum(uint8_t *b)
{
	tp_be(b + 10, 0, 2);
	tp_be(b + 10, tp_ip4_csum(b, (b[0] & 15u) * 4), 2);
}

/* CRC-32 of IEEE 802.3 bit by bit, literally, without a table. */
static inline uint32_t tp_crc(uint32_t state, const uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (int b = 0; b < 8; b++) {
			uint32_t in = (p[i] >> b) & 1;

			state = (state >> 1) ^ ((state ^ in) & 1 ? 0xedb88320u : 0);
		}
	return state;
}

/* The ICRC of a packet of `len` bytes (ICRC included), by masking a copy. */
static inline uint32_t tp_icrc(const uint8_t *b, uint32_t len)
{
	uint8_t c[8 + TP_MAX];
	uint8_t *ip = c + 8;
	uint32_t hlen;

	assert_true(len <= TP_MAX && len >= 24);
	memset(c, 0xff, 8);
	memcpy(ip, b, len);
	if (b[0] >> 4 == 4) {
		hlen = (b[0] & 15u) * 4;
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	} else {
		hlen = 40;
		ip[0] |= 0xf;
		ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
	}
	ip[hlen + 6] = ip[hlen + 7] = 0xff;
	ip[hlen + 8 + 4] = 0xff;
	return ~tp_crc(0xffffffff, c, 8 + len - 4);
}

/* The UDP checksum over pseudo header, UDP header and data, with the field itself: 0 for a right
 * packet. */
static inline uint16_t tp_udp_residue(const uint8_t *b, uint32_t len)
{
	bool is6 = b[0] >> 4 == 6;
	uint32_t hlen = is6 ? 40 : (b[0] & 15u) * 4;
	uint32_t s = 17 + (len - hlen);

	for (uint32_t i = is6 ? 8 : 12; i < (is6 ? 40u : 20u); i += 2)
		s += (uint32_t)b[i] << 8 | b[i + 1];
	for (uint32_t i = hlen; i < len; i++)
		s += (uint32_t)b[i] << ((i - hlen) & 1 ? 0 : 8);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

/* Writes the packet with its ICRC. Returns its length. */
static inline uint32_t tp_make(uint8_t *b, const struct tp *t)
{
	uint32_t pad = t->pad < 0 ? (4 - t->payload_len % 4) % 4 : (uint32_t)t->pad;
	uint32_t hlen = t->is6 ? 40 : (t->ihl ? t->ihl : 5) * 4u;
	uint32_t tot = hlen + 8 + 12 + t->ext_len + t->payload_len + pad + 4;
	uint32_t seed = t->seed ? t->seed : 1, crc;
	uint8_t *udp = b + hlen, *bth = udp + 8;

	assert_true(tot <= TP_MAX);
	memset(b, 0, tot);
	if (t->is6) {
		tp_be(b, 6u << 28 | (uint32_t)t->tos << 20 | 0x12345, 4);
		tp_be(b + 4, tot - 40, 2);
		b[6] = 17;
		b[7] = t->ttl;
		tp_be(b + 8, 0xfd00000000000001, 8);
		b[23] = 1;
		tp_be(b + 24, 0xfd00000000000002, 8);
		b[39] = 2;
	} else {
		b[0] = (uint8_t)(0x40 | hlen / 4);
		b[1] = t->tos;
		tp_be(b + 2, tot, 2);
		tp_be(b + 4, 0x1234, 2);
		tp_be(b + 6, t->frag, 2);
		b[8] = t->ttl;
		b[9] = 17;
		tp_be(b + 12, 0x0a000001, 4);
		tp_be(b + 16, 0x0a000002, 4);
		for (uint32_t i = 20; i < hlen; i++)
			b[i] = 1; /* no-operation options */
		tp_fix_csum(b);
	}
	tp_be(udp, 49152, 2);
	tp_be(udp + 2, t->dport ? t->dport : 4791, 2);
	tp_be(udp + 4, tot - hlen, 2);
	tp_be(udp + 6, t->udp_csum, 2);
	bth[0] = t->opcode;
	bth[1] = (uint8_t)(t->bth_flags | pad << 4);
	tp_be(bth + 2, 0xffff, 2);
	bth[4] = t->fb;
	tp_be(bth + 5, t->dqpn, 3);
	bth[8] = t->ack_req ? 0x80 : 0;
	tp_be(bth + 9, t->psn, 3);
	if (t->ext)
		memcpy(bth + 12, t->ext, t->ext_len);
	for (uint32_t i = 0; i < t->payload_len; i++)
		bth[12 + t->ext_len + i] = (uint8_t)tp_rand(&seed);
	crc = tp_icrc(b, tot);
	for (unsigned i = 0; i < 4; i++)
		b[tot - 4 + i] = (uint8_t)(crc >> (8 * i));
	return tot;
}

#endif
