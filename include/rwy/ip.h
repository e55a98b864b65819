/* SPDX-License-Identifier: Apache-2.0 */
/* An IP address of either family. IPv4 is stored IPv4-mapped (::ffff:a.b.c.d), as in RoCEv2 GIDs
 * (IBA A17.4.5). */
#ifndef RWY_IP_H
#define RWY_IP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct rwy_ip {
	uint8_t b[16];
};

/* Written with one store: addresses are usually read as a whole right afterwards, and a load that
 * spans several recent stores has to wait for them. */
static inline struct rwy_ip rwy_ip_from4(const uint8_t v4[4])
{
	typedef uint64_t two __attribute__((vector_size(16)));
	struct rwy_ip a;
	uint32_t v;
	two x;

	memcpy(&v, v4, 4);
	x = (two){0, (uint64_t)v << 32 | 0xffff0000u}; /* little-endian */
	memcpy(a.b, &x, 16);
	return a;
}

static inline bool rwy_ip_is4(const struct rwy_ip *a)
{
	uint64_t zeros;
	uint32_t prefix;

	memcpy(&zeros, a->b, 8); /* GCC calls memcmp() for 12 bytes */
	memcpy(&prefix, a->b + 8, 4);
	return !zeros && prefix == 0xffff0000u; /* little-endian */
}

static inline bool rwy_ip_eq(const struct rwy_ip *a, const struct rwy_ip *b)
{
	return memcmp(a->b, b->b, 16) == 0;
}

#endif
