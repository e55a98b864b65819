/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internet checksums (RFC 1071), whole and incremental. Values are in host order, as rwy_get16
 * reads the header field; sums are not yet complemented.
 */
#ifndef RWY_CHECKSUM_H
#define RWY_CHECKSUM_H

#include <stdint.h>

#include "rwy/endian.h"

#define RWY_IP4_CSUM 10 /* offset of the checksum in an IPv4 header */

static inline uint16_t rwy_csum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Returns the sum of len bytes, folded to 16 bits, in host order; an odd last byte is padded with
 * zero. */
static inline uint16_t rwy_csum(const uint8_t *p, uint32_t len)
{
	uint64_t sum = 0;
	uint32_t w = 0;

	for (; len >= 4; len -= 4, p += 4) {
		memcpy(&w, p, 4);
		sum += w;
	}
	w = 0;
	memcpy(&w, p, len);
	/* The sum does not depend on the byte order: RFC 1071 2 (B). */
	return __builtin_bswap16(rwy_csum_fold(sum + w));
}

/* Adds a part of what is summed, which begins `at` bytes behind the beginning; at may be odd. */
static inline uint64_t rwy_csum_part(uint64_t sum, uint32_t at, const uint8_t *p, uint32_t len)
{
	const uint16_t part = rwy_csum(p, len);

	return sum + (at & 1 ? __builtin_bswap16(part) : part); /* RFC 1071 2 (B) */
}

/* Sets the 16-bit word at an even offset of an IPv4 header and updates the checksum (RFC 1624,
 * equation 3). */
static inline void rwy_ip4_set16(uint8_t *ip, unsigned at, uint16_t v)
{
	uint32_t sum = (uint32_t)(uint16_t)~rwy_get16(ip + RWY_IP4_CSUM) + (uint16_t)~rwy_get16(ip + at) + v;

	sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(ip + at, v);
	rwy_put16(ip + RWY_IP4_CSUM, (uint16_t) ~(sum + (sum >> 16)));
}

#endif
