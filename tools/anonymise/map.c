/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers go through a Feistel network whose rounds are SipHash. Each bit of an address is flipped
 * by a SipHash of the bits before it (the construction of Crypto-PAn: Xu, Fan, Ammar, Moon 2002).
 */
#include "tools/anonymise/map.h"

#include <string.h>

#include "rwy/endian.h"

#define ROUNDS     6
#define QPN_MASK   0xffffffu
#define PORT_FIRST 0xc000u /* IANA's dynamic ports, of which RoCEv2 hosts choose */

static uint64_t prf(const struct anon_key *key, enum anon_kind kind, uint8_t round, uint64_t v)
{
	uint8_t in[10];

	in[0] = (uint8_t)kind;
	in[1] = round;
	rwy_put64(in + 2, v);
	return base_siphash(key->k, in, sizeof(in));
}

/* A permutation of the numbers of 2 * half bits. */
static uint64_t permute(const struct anon_key *key, enum anon_kind kind, unsigned half, uint64_t v)
{
	uint64_t mask = (1ull << half) - 1, left = v >> half, right = v & mask;

	for (uint8_t r = 0; r < ROUNDS; r++) {
		uint64_t next = left ^ (prf(key, kind, r, right) & mask);

		left = right;
		right = next;
	}
	return left << half | right;
}

static unsigned bit_of(const uint8_t *p, unsigned i)
{
	return p[i / 8] >> (7 - i % 8) & 1u;
}

/* Flips the bits from `keep` on, each by those before it in the original. */
static void flip(const struct anon_key *key, enum anon_kind kind, uint8_t *ip, unsigned bits, unsigned keep)
{
	uint8_t in[18] = {(uint8_t)kind}, out[16];

	memcpy(out, ip, bits / 8);
	for (unsigned i = 0; i < bits; i++) {
		in[1] = (uint8_t)i;
		if (i >= keep && base_siphash(key->k, in, sizeof(in)) & 1)
			out[i / 8] ^= (uint8_t)(0x80u >> i % 8);
		in[2 + i / 8] |= (uint8_t)(bit_of(ip, i) << (7 - i % 8));
	}
	memcpy(ip, out, bits / 8);
}

static int is_zero(const uint8_t *p, unsigned n)
{
	uint8_t any = 0;

	while (n)
		any |= p[--n];
	return !any;
}

void anon_ip4(const struct anon_key *key, uint8_t ip[4])
{
	unsigned keep = 1;

	if (is_zero(ip, 4))
		return;
	while (keep < 4 && bit_of(ip, keep - 1))
		keep++;
	flip(key, ANON_IP4, ip, 32, keep);
}

void anon_ip6(const struct anon_key *key, uint8_t ip[16])
{
	if (!is_zero(ip, 16))
		flip(key, ANON_IP6, ip, 128, ip[0] >= 0xfc ? 10 : 3);
}

void anon_gid(const struct anon_key *key, uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(gid, mapped, sizeof(mapped)) == 0)
		anon_ip4(key, gid + 12);
	else
		anon_ip6(key, gid);
}

void anon_mac(const struct anon_key *key, uint8_t mac[6])
{
	uint64_t v;

	if (mac[0] & 1)
		return;
	v = prf(key, ANON_MAC, 0, (uint64_t)rwy_get16(mac) << 32 | rwy_get32(mac + 2));
	rwy_put16(mac, (uint16_t)((v >> 32 & 0xfcff) | 0x0200));
	rwy_put32(mac + 2, (uint32_t)v);
}

uint32_t anon_qpn(const struct anon_key *key, uint32_t qpn)
{
	if (qpn <= 1 || qpn == QPN_MASK)
		return qpn;
	/* Three numbers are no results: going on from them keeps the map one to one. */
	do
		qpn = (uint32_t)permute(key, ANON_QPN, 12, qpn);
	while (qpn <= 1 || qpn == QPN_MASK);
	return qpn;
}

uint32_t anon_32(const struct anon_key *key, enum anon_kind kind, uint32_t v)
{
	return (uint32_t)permute(key, kind, 16, v);
}

uint64_t anon_64(const struct anon_key *key, enum anon_kind kind, uint64_t v)
{
	return permute(key, kind, 32, v);
}

uint64_t anon_va(const struct anon_key *key, uint32_t rkey, uint64_t va)
{
	return va + prf(key, ANON_VA, 0, rkey);
}

uint16_t anon_port(const struct anon_key *key, uint16_t port)
{
	if (port < PORT_FIRST)
		return port;
	return (uint16_t)(PORT_FIRST | permute(key, ANON_PORT, 7, port & (0xffffu ^ PORT_FIRST)));
}
