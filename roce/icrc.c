/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ICRC over a packet that roce_parse() accepted. ISA-L does the bulk; what is here is the masking and the
 * algebra that corrects a CRC from the bytes that changed. Not here: when a bad ICRC matters.
 */
#include "roce/icrc.h"

#include <immintrin.h>
#include <isa-l/crc.h>

#include "roce/crcpow.h"
#include "roce/wire.h"

#define SEED    0x2144df1cu /* CRC-32 of 8 bytes of 0xff, where IBA A17.3.3 puts the masked LRH */
#define POLY    0xedb88320u /* reflected */
#define MAX_HDR (60 + sizeof(struct roce_udp) + sizeof(struct roce_bth))

/* Offsets, from the IP header, whose bytes count as ones. IPv6 is handled where it is used. */
enum { IP4_TOS = 1, IP4_TTL = 8, IP4_CSUM = 10, IP6_HLIM = 7, UDP_CSUM = 6, BTH_FB = 4 };

static uint32_t crc(uint32_t seed, const uint8_t *p, uint64_t n)
{
	return crc32_gzip_refl(seed, p, n);
}

uint32_t roce_icrc_compute(const struct roce_pkt *pkt)
{
	uint8_t h[MAX_HDR + 8]; /* room for the fixed-size copies below */
	uint32_t hlen = pkt->ip_hlen;
	uint32_t n = hlen + sizeof(struct roce_udp) + sizeof(struct roce_bth);

	if (pkt->is6) {
		memcpy(h, pkt->ip, 60);
		h[0] |= 0x0f;
		h[1] = h[2] = h[3] = 0xff;
		h[IP6_HLIM] = 0xff;
	} else {
		if (hlen == sizeof(struct roce_ip4))
			memcpy(h, pkt->ip, 40);
		else
			memcpy(h, pkt->ip, n);
		h[IP4_TOS] = 0xff;
		h[IP4_TTL] = 0xff;
		h[IP4_CSUM] = h[IP4_CSUM + 1] = 0xff;
	}
	h[hlen + UDP_CSUM] = h[hlen + UDP_CSUM + 1] = 0xff;
	h[hlen + sizeof(struct roce_udp) + BTH_FB] = 0xff;
	return crc(crc(SEED, h, n), pkt->ext, (uint64_t)(pkt->icrc - pkt->ext));
}

static uint32_t load_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static void store_le32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

bool roce_icrc_ok(const struct roce_pkt *pkt)
{
	return load_le32(pkt->icrc) == roce_icrc_compute(pkt);
}

void roce_icrc_store(const struct roce_pkt *pkt)
{
	store_le32(pkt->icrc, roce_icrc_compute(pkt));
}

/* a * b modulo the polynomial, all reflected: bit 31 is x^0. */
static uint32_t mul_soft(uint32_t a, uint32_t b)
{
	uint32_t r = 0;

	for (int i = 31; i >= 0; i--) {
		r ^= a & (0u - ((b >> i) & 1));
		a = (a >> 1) ^ (POLY & (0u - (a & 1)));
	}
	return r;
}

/* The same with carry-less multiplication and a Barrett reduction; the constants are the reflected polynomial
 * and x^64 / P. */
__attribute__((target("pclmul"))) static uint32_t mul_clmul(uint32_t a, uint32_t b)
{
	const __m128i k = _mm_set_epi64x(0x1db710641, 0x1f7011641);
	const __m128i low32 = _mm_cvtsi64_si128(0xffffffff);
	__m128i r = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0);
	__m128i t;

	r = _mm_slli_epi64(r, 1);
	t = _mm_clmulepi64_si128(_mm_and_si128(r, low32), k, 0x00);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low32), k, 0x10);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(r, t), 1);
}

static uint32_t mul(uint32_t a, uint32_t b)
{
	return __builtin_cpu_supports("pclmul") ? mul_clmul(a, b) : mul_soft(a, b);
}

/* Is the byte at `off` from the IP header taken as ones, whatever it is? */
static bool is_masked(const struct roce_pkt *pkt, uint32_t off)
{
	uint32_t hlen = pkt->ip_hlen;

	if (off >= hlen)
		return off == hlen + UDP_CSUM || off == hlen + UDP_CSUM + 1 ||
		       off == hlen + sizeof(struct roce_udp) + BTH_FB;
	if (pkt->is6)
		return (off >= 1 && off <= 3) || off == IP6_HLIM;
	return off == IP4_TOS || off == IP4_TTL || off == IP4_CSUM || off == IP4_CSUM + 1;
}

/* Is it covered by the UDP checksum: the addresses, or UDP and what follows, but the checksum itself (RFC
 * 768, RFC 8200 8.1)? */
static bool in_udp_sum(const struct roce_pkt *pkt, uint32_t off)
{
	uint32_t hlen = pkt->ip_hlen;

	if (off >= hlen)
		return off != hlen + UDP_CSUM && off != hlen + UDP_CSUM + 1;
	return pkt->is6 ? off >= 8 : off >= 12 && off < 20;
}

/* Adds to a ones' complement sum what changing the byte at `off` from `was` to `is` does to it (RFC 1624,
 * equation 3). */
static uint32_t sum_change(uint32_t sum, uint32_t off, uint8_t was, uint8_t is)
{
	unsigned shift = off & 1 ? 0 : 8;

	return sum + (0xffffu ^ (uint32_t)was << shift) + ((uint32_t)is << shift);
}

static void udp_sum_mend(const struct roce_pkt *pkt, uint32_t sum)
{
	uint8_t *csum = pkt->ip + pkt->ip_hlen + UDP_CSUM;
	uint16_t v;

	sum += 0xffffu ^ rwy_get16(csum);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	v = (uint16_t)~sum;
	rwy_put16(csum, v ? v : 0xffff); /* 0 would say "no checksum" */
}

void roce_icrc_adjust(const struct roce_pkt *pkt, const uint8_t *at, const uint8_t *before, unsigned n)
{
	uint32_t off = (uint32_t)(at - pkt->ip);
	uint32_t end = (uint32_t)(pkt->icrc - pkt->ip);
	bool has_sum = rwy_get16(pkt->ip + pkt->ip_hlen + UDP_CSUM) != 0;
	uint32_t sum = 0, delta = 0;
	uint8_t was[4];

	/* Words of 4 bytes from `at` on; a word's own CRC is its value times x^32, then the zeros behind it.
	 */
	for (unsigned i = 0; i < n; i += 4) {
		uint32_t word = 0, dist;

		for (unsigned j = i; j < i + 4 && j < n; j++) {
			uint8_t d = at[j] ^ before[j];

			if (has_sum && in_udp_sum(pkt, off + j))
				sum = sum_change(sum, off + j, before[j], at[j]);
			if (!is_masked(pkt, off + j))
				word |= (uint32_t)d << (8 * (j - i));
		}
		if (!word)
			continue;
		dist = end - (off + i); /* bytes from the word's first byte to the ICRC */
		if (dist < 4) {
			/* The word hangs over the end: shift it so that its last byte is the packet's last.
			 */
			word <<= 8 * (4 - dist);
			dist = 4;
		}
		delta ^= mul(mul(word, roce_x8_lo[dist % 64]), roce_x8_hi[dist / 64]);
	}
	memcpy(was, pkt->icrc, 4);
	store_le32(pkt->icrc, load_le32(pkt->icrc) ^ delta);
	if (!has_sum)
		return;
	for (uint32_t j = 0; j < 4; j++)
		sum = sum_change(sum, end + j, was[j], pkt->icrc[j]);
	udp_sum_mend(pkt, sum);
}

void roce_icrc_set_ackreq(struct roce_pkt *pkt, bool ack_req)
{
	uint8_t *areq = &((struct roce_bth *)pkt->bth)->areq;
	uint8_t before = *areq;

	*areq = (uint8_t)((before & ~ROCE_BTH_ACKREQ) | (ack_req ? ROCE_BTH_ACKREQ : 0));
	pkt->ack_req = ack_req;
	if (*areq != before)
		roce_icrc_adjust(pkt, areq, &before, 1);
}
