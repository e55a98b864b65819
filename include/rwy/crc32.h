/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 of IEEE 802.3 (ISO 3309): arithmetic modulo its polynomial, and the CRC of a few bytes.
 * ISA-L's crc32_gzip_refl, which has the same values, is for the bulk: it is slow for short input.
 * All is reflected, bit 31 is x^0. A CRC is as zlib's crc32(): inverted before and after.
 */
#ifndef RWY_CRC32_H
#define RWY_CRC32_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <isa-l/crc.h>

#include "rwy/crcpow.h"

#define RWY_CRC32_POLY 0xedb88320u
/* The CRC of anything that ends with its own CRC, stored little-endian. */
#define RWY_CRC32_RESIDUE 0x2144df1cu
/* Bytes: of fewer there is a fast CRC, and the tables of rwy/crcpow.h reach over fewer. */
#define RWY_CRC32_SHORT 128u
#define RWY_CRC32_LONG  8192u

#define RWY_PCLMUL __attribute__((target("pclmul")))

static inline bool rwy_has_pclmul(void)
{
	return __builtin_cpu_supports("pclmul");
}

/* a * b modulo the polynomial, by bits: for machines without carry-less multiplication. */
static inline uint32_t rwy_crc32_mul_soft(uint32_t a, uint32_t b)
{
	uint32_t r = 0;

	for (int i = 31; i >= 0; i--) {
		r ^= a & (0u - ((b >> i) & 1));
		a = (a >> 1) ^ (RWY_CRC32_POLY & (0u - (a & 1)));
	}
	return r;
}

/* Carry-less product, 63 bits. */
RWY_PCLMUL static inline __m128i rwy_clmul(uint32_t a, uint32_t b)
{
	return _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0);
}

/* Returns a polynomial of 64 bits, bit 63 is x^0, modulo the CRC's (Barrett; the constants are the
 * CRC's polynomial and x^64 / polynomial). */
RWY_PCLMUL static inline uint32_t rwy_crc32_mod(__m128i r)
{
	const __m128i k = _mm_set_epi64x(0x1db710641, 0x1f7011641);
	const __m128i low32 = _mm_cvtsi64_si128(0xffffffff);
	__m128i t;

	t = _mm_clmulepi64_si128(_mm_and_si128(r, low32), k, 0x00);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low32), k, 0x10);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(r, t), 1);
}

/* The same for a sum of rwy_clmul()'s products. */
RWY_PCLMUL static inline uint32_t rwy_crc32_reduce(__m128i sum)
{
	return rwy_crc32_mod(_mm_slli_epi64(sum, 1));
}

/* Returns the carry-less product of a and x^(8 d). x^0 is its bit 95 where a has 64 bits (bit 63 is
 * x^0), its bit 63 where a has 32 (bit 31 is x^0). */
RWY_PCLMUL static inline __m128i rwy_crc32_mul_x8(uint64_t a, uint32_t d)
{
	return _mm_clmulepi64_si128(
	    _mm_cvtsi64_si128((long long)a), _mm_cvtsi64_si128((long long)rwy_x8_lo[d] << 1), 0);
}

/*
 * Eight bytes at a time, each by itself: none waits for the ones before, as in a pass over the
 * bytes. The CRC of eight bytes is their value times x^32, so if the first is d bytes before the
 * end they count as value * x^(8 (d - 4)). n: 8 .. RWY_CRC32_SHORT - 1.
 */
RWY_PCLMUL static inline uint32_t rwy_crc32_words(uint32_t crc, const uint8_t *p, uint32_t n)
{
	__m128i sum, high;
	uint64_t w;

	memcpy(&w, p, 8);
	sum = rwy_crc32_mul_x8(w ^ ~crc, n - 4);
	for (p += 8, n -= 8; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		sum = _mm_xor_si128(sum, rwy_crc32_mul_x8(w, n - 4));
	}
	if (n) { /* the last eight; those that were counted become zeros, which count for nothing */
		memcpy(&w, p + n - 8, 8);
		sum = _mm_xor_si128(sum, rwy_crc32_mul_x8(w & ~(uint64_t)0 << (64 - 8 * n), 4));
	}
	high = rwy_crc32_mul_x8((uint32_t)_mm_cvtsi128_si32(sum), 8);
	return ~rwy_crc32_mod(_mm_xor_si128(_mm_srli_si128(sum, 4), high));
}

/* The CRC of what has this CRC, continued over n bytes. Fewer than 8, and RWY_CRC32_SHORT or more,
 * take longer. */
static inline uint32_t rwy_crc32_short(uint32_t crc, const uint8_t *p, size_t n)
{
	if (n >= 8 && n < RWY_CRC32_SHORT && rwy_has_pclmul())
		return rwy_crc32_words(crc, p, (uint32_t)n);
	return crc32_gzip_refl(crc, p, n);
}

#endif
