/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ICRC over a packet that roce_parse() accepted. ISA-L computes the bulk; this file masks fields
 * and has the algebra that corrects a CRC from the changed bytes.
 */
#include "roce/icrc.h"

#include "roce/wire.h"
#include "rwy/crc32.h"

/* CRC-32 of 8 bytes of 0xff, which stand for the masked LRH of IBA A17.3.3 */
#define SEED 0x2144df1cu

#define ADJUST_MAX 16 /* four words */

#define IP4_LEN  ((uint32_t)sizeof(struct roce_ip4))
#define IP6_LEN  ((uint32_t)sizeof(struct roce_ip6))
#define ACK_REST ((uint32_t)(sizeof(struct roce_udp) + sizeof(struct roce_bth) + sizeof(struct roce_aeth)))

/* Offsets within their header of fields that count as ones. */
enum { IP4_TOS = 1, IP4_TTL = 8, IP4_CSUM = 10, IP6_HLIM = 7, UDP_CSUM = 6, BTH_FB = 4 };

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

/* --- arithmetic modulo the polynomial --------------------------------------------------------- */

/* Terms of (w0 x^(8 d0) + w1 x^(8 d1) + w2 x^(8 d2) + w3 x^(8 d3)) x^(8 n). Each d is below 128, n
 * below 8192. */
struct terms {
	uint32_t w[4], d[4], n;
};

static uint32_t terms_soft(const struct terms *t)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 4; i++)
		sum ^= t->w[i] ? rwy_crc32_mul_soft(t->w[i], rwy_x8_lo[t->d[i]]) : 0;
	return rwy_crc32_mul_soft(rwy_crc32_mul_soft(sum, rwy_x8_lo[t->n % 128]), rwy_x8_hi[t->n / 128]);
}

RWY_PCLMUL static uint32_t terms_clmul(const struct terms *t)
{
	__m128i a =
	    _mm_xor_si128(rwy_clmul(t->w[0], rwy_x8_lo[t->d[0]]), rwy_clmul(t->w[1], rwy_x8_lo[t->d[1]]));
	__m128i b =
	    _mm_xor_si128(rwy_clmul(t->w[2], rwy_x8_lo[t->d[2]]), rwy_clmul(t->w[3], rwy_x8_lo[t->d[3]]));
	uint32_t shift = rwy_crc32_reduce(rwy_clmul(rwy_x8_lo[t->n % 128], rwy_x8_hi[t->n / 128]));

	return rwy_crc32_reduce(rwy_clmul(rwy_crc32_reduce(_mm_xor_si128(a, b)), shift));
}

static inline uint32_t terms_sum(const struct terms *t)
{
	return rwy_has_pclmul() ? terms_clmul(t) : terms_soft(t);
}

/* --- computation ------------------------------------------------------------------------------ */

/*
 * Sets *t to the change of the CRC up to `end` when the masked fields become ones. Four words of
 * the headers contain all of them, the first one of the packet among them: the CRC of what was
 * before counts like it. The CRC of a word is its value times x^32, so a word at distance d (from
 * its first byte to the end) counts as word * x^(8 d).
 */
static void mask_terms(const struct roce_pkt *pkt, const uint8_t *end, struct terms *t)
{
	const uint8_t *ip = pkt->ip, *udp = ip + pkt->ip_hlen;
	uint32_t hdrs = pkt->ip_hlen + (uint32_t)sizeof(struct roce_udp) + (uint32_t)sizeof(struct roce_bth);

	if (pkt->is6) { /* traffic class and flow label; hop limit */
		t->w[0] = ~load_le32(ip) & 0xffffff0f;
		t->w[1] = ~load_le32(ip + 4) & 0xff000000;
		t->d[1] = hdrs - 4;
	} else { /* TOS; TTL and header checksum */
		t->w[0] = ~load_le32(ip) & 0x0000ff00;
		t->w[1] = ~load_le32(ip + 8) & 0xffff00ff;
		t->d[1] = hdrs - 8;
	}
	t->d[0] = hdrs;
	t->w[2] = ~load_le32(udp + 4) & 0xffff0000; /* UDP checksum */
	t->d[2] = 16;
	t->w[3] = ~load_le32(pkt->bth + BTH_FB) & 0x000000ff; /* FECN, BECN, reserved */
	t->d[3] = 8;
	t->n = (uint32_t)(end - pkt->ext);
}

/*
 * One pass over the packet in place, then the masked fields are added by linearity: headers are not
 * copied, and the two halves do not wait for each other.
 */
uint32_t roce_icrc_compute(const struct roce_pkt *pkt)
{
	struct terms t;

	mask_terms(pkt, pkt->icrc, &t);
	return crc32_gzip_refl(SEED, pkt->ip, (uint64_t)(pkt->icrc - pkt->ip)) ^ terms_sum(&t);
}

/*
 * A packet whose masked fields are ones ends with its own CRC, so the whole has the residue. Two
 * differences are added by linearity: the bytes before the packet are others than 8 of 0xff, and
 * the masked fields are not ones.
 */
uint32_t roce_icrc_extend(uint32_t crc, const struct roce_pkt *pkt)
{
	struct terms t;

	mask_terms(pkt, pkt->icrc + ROCE_ICRC_LEN, &t);
	t.w[0] ^= crc ^ SEED;
	return RWY_CRC32_RESIDUE ^ terms_sum(&t);
}

uint32_t roce_content_crc(const struct roce_pkt *pkt)
{
	return crc32_gzip_refl(pkt->opcode, pkt->ext, (uint64_t)(pkt->icrc - pkt->ext));
}

void roce_icrc_store(const struct roce_pkt *pkt)
{
	store_le32(pkt->icrc, roce_icrc_compute(pkt));
}

/*
 * Each word of the packet by itself: none waits for the one before, as in a pass over the bytes.
 * The initial value counts as part of the first word. n, hlen: bytes; constants where it is called.
 */
RWY_PCLMUL static inline __attribute__((always_inline)) uint32_t words_clmul(
    const uint8_t *ip, uint32_t n, uint32_t hlen)
{
	__m128i sum = _mm_setzero_si128();

#pragma GCC unroll 16
	for (uint32_t at = 0; at < n; at += 4) {
		uint32_t w = load_le32(ip + at);

		if (at == 0)
			w = (w | (hlen == IP4_LEN ? 0x0000ff00 : 0xffffff0f)) ^ ~SEED;
		else if (hlen == IP4_LEN ? at == 8 : at == 4)
			w |= hlen == IP4_LEN ? 0xffff00ff : 0xff000000;
		else if (at == hlen + 4)
			w |= 0xffff0000; /* UDP checksum */
		else if (at == hlen + sizeof(struct roce_udp) + BTH_FB)
			w |= 0x000000ff;
		sum = _mm_xor_si128(sum, rwy_clmul(w, rwy_x8_lo[n - at]));
	}
	return ~rwy_crc32_reduce(sum);
}

RWY_PCLMUL static uint32_t ack_clmul(const uint8_t *ip, bool is6)
{
	return is6 ? words_clmul(ip, IP6_LEN + ACK_REST, IP6_LEN)
	           : words_clmul(ip, IP4_LEN + ACK_REST, IP4_LEN);
}

/* Every second packet from a host that executes requests is an ACK. */
static bool is_plain_ack(const struct roce_pkt *pkt)
{
	return pkt->info->op == ROCE_OP_ACK && (uint32_t)(pkt->icrc - pkt->ip) == pkt->ip_hlen + ACK_REST &&
	       pkt->ip_hlen == (pkt->is6 ? IP6_LEN : IP4_LEN);
}

bool roce_icrc_ok(const struct roce_pkt *pkt)
{
	if (is_plain_ack(pkt) && rwy_has_pclmul())
		return load_le32(pkt->icrc) == ack_clmul(pkt->ip, pkt->is6);
	return load_le32(pkt->icrc) == roce_icrc_compute(pkt);
}

void roce_icrc_store_ack(uint8_t *ip, bool is6)
{
	uint32_t hlen = is6 ? IP6_LEN : IP4_LEN;
	struct roce_pkt pkt;

	if (rwy_has_pclmul()) {
		store_le32(ip + hlen + ACK_REST, ack_clmul(ip, is6));
		return;
	}
	roce_parse_offsets(ip, &pkt);
	roce_icrc_store(&pkt);
}

/* --- correction ------------------------------------------------------------------------------- */

/* Whether the byte at `off` from the IP header always counts as ones. */
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

/* Whether the UDP checksum covers the byte: the addresses, or UDP and what follows, except the
 * checksum itself (RFC 768, RFC 8200 8.1). */
static bool in_udp_sum(const struct roce_pkt *pkt, uint32_t off)
{
	uint32_t hlen = pkt->ip_hlen;

	if (off >= hlen)
		return off != hlen + UDP_CSUM && off != hlen + UDP_CSUM + 1;
	return pkt->is6 ? off >= 8 : off >= 12 && off < 20;
}

/* Adds the change of the byte at `off` from `was` to `is` to a ones' complement sum (RFC 1624,
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
	rwy_put16(csum, v ? v : 0xffff); /* 0 would mean "no checksum" */
}

void roce_icrc_adjust(const struct roce_pkt *pkt, const uint8_t *at, const uint8_t *before, unsigned n)
{
	uint32_t off = (uint32_t)(at - pkt->ip);
	uint32_t end = (uint32_t)(pkt->icrc - pkt->ip);
	bool has_sum = rwy_get16(pkt->ip + pkt->ip_hlen + UDP_CSUM) != 0;
	struct terms t = {.n = end - off - n};
	uint8_t was[4];
	uint32_t sum = 0;

	/*
	 * The changed bytes as four words aligned to the last byte: byte i, counted from the end,
	 * is in word i / 4, whose distance to that end is 4 (i / 4 + 1).
	 */
	for (unsigned i = 0; i < n && i < ADJUST_MAX; i++) {
		unsigned j = n - 1 - i;
		uint32_t diff = is_masked(pkt, off + j) ? 0 : at[j] ^ before[j];

		t.w[i / 4] |= diff << (24 - 8 * (i % 4));
		if (has_sum && in_udp_sum(pkt, off + j))
			sum = sum_change(sum, off + j, before[j], at[j]);
	}
	for (unsigned i = 0; i < 4; i++)
		t.d[i] = 4 * (i + 1);
	memcpy(was, pkt->icrc, 4);
	store_le32(pkt->icrc, load_le32(pkt->icrc) ^ terms_sum(&t));
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
	if (*areq == before)
		return;
	if (rwy_get16(pkt->ip + pkt->ip_hlen + UDP_CSUM)) {
		roce_icrc_adjust(pkt, areq, &before, 1);
		return;
	}
	/* The common case, for each packet that goes to a host alone: one byte that is not
	 * masked. */
	struct terms t = {
	    .w = {(uint32_t)(before ^ *areq) << 24}, .d = {4}, .n = (uint32_t)(pkt->icrc - areq - 1)};

	store_le32(pkt->icrc, load_le32(pkt->icrc) ^ terms_sum(&t));
}
