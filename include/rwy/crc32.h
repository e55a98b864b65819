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

/* Returns a reduced sum of products (Barrett; the constants are the polynomial and x^64 /
 * polynomial). */
RWY_PCLMUL static inline uint32_t rwy_crc32_reduce(__m128i r)
{
	const __m128i k = _mm_set_epi64x(0x1db710641, 0x1f7011641);
	const __m128i low32 = _mm_cvtsi64_si128(0xffffffff);
	__m128i t;

	r = _mm_slli_epi64(r, 1);
	t = _mm_clmulepi64_si128(_mm_and_si128(r, low32), k, 0x00);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low32), k, 0x10);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(r, t), 1);
}

/*
 * Each word by itself: none waits for the one before, as in a pass over the bytes. The CRC of a
 * word is its value times x^32, so one whose first byte is d bytes before the end counts as word *
 * x^(8 d).
 */
RWY_PCLMUL static inline uint32_t rwy_crc32_words(uint32_t crc, const uint8_t *p, uint32_t n)
{
	__m128i sum = rwy_clmul(~crc, rwy_x8_lo[n]);
	uint32_t w;

	for (; n >= 4; n -= 4, p += 4) {
		memcpy(&w, p, 4);
		sum = _mm_xor_si128(sum, rwy_clmul(w, rwy_x8_lo[n]));
	}
	w = 0;
	if (n) { /* behind zeros, which count for nothing: 4 bytes before the end */
		memcpy((uint8_t *)&w + 4 - n, p, n);
		sum = _mm_xor_si128(sum, rwy_clmul(w, rwy_x8_lo[4]));
	}
	return ~rwy_crc32_reduce(sum);
}

/* The CRC of what has this CRC, continued over n bytes; RWY_CRC32_SHORT and more take longer. */
static inline uint32_t rwy_crc32_short(uint32_t crc, const uint8_t *p, size_t n)
{
	if (n < RWY_CRC32_SHORT && rwy_has_pclmul())
		return rwy_crc32_words(crc, p, (uint32_t)n);
	return crc32_gzip_refl(crc, p, n);
}

#endif
