/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internet checksums (RFC 1071): whole and incremental. Values are in host order as the header field reads
 * (rwy_get16), sums are not yet complemented.
 */
#ifndef VXLAN_CSUM_H
#define VXLAN_CSUM_H

#include <stdint.h>

#include "rwy/endian.h"

static inline uint16_t vxlan_csum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sum of len bytes; an odd last byte counts as if a zero followed it. Folded to 16 bits, host order. */
static inline uint16_t vxlan_csum(const uint8_t *p, uint32_t len)
{
	uint64_t sum = 0;
	uint32_t w = 0;

	for (; len >= 4; len -= 4, p += 4) {
		memcpy(&w, p, 4);
		sum += w;
	}
	w = 0;
	memcpy(&w, p, len);
	return __builtin_bswap16(
	    vxlan_csum_fold(sum + w)); /* byte order does not matter to the sum: RFC 1071 2 (B) */
}

/* A header checksum after one 16-bit word of what it covers changed (RFC 1624, equation 3). */
static inline uint16_t vxlan_csum_adjust(uint16_t csum, uint16_t before, uint16_t after)
{
	return (uint16_t)~vxlan_csum_fold((uint64_t)(uint16_t)~csum + (uint16_t)~before + after);
}

#endif
