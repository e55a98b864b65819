/* SPDX-License-Identifier: Apache-2.0 */
/* An IP address of either family: IPv4 is kept IPv4-mapped (::ffff:a.b.c.d), as in RoCEv2 GIDs (IBA A17.4.5).
 */
#ifndef RWY_IP_H
#define RWY_IP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct rwy_ip {
	uint8_t b[16];
};

static inline struct rwy_ip rwy_ip_from4(const uint8_t v4[4])
{
	struct rwy_ip a = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};

	memcpy(a.b + 12, v4, 4);
	return a;
}

static inline bool rwy_ip_is4(const struct rwy_ip *a)
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(a->b, prefix, 12) == 0;
}

static inline bool rwy_ip_eq(const struct rwy_ip *a, const struct rwy_ip *b)
{
	return memcmp(a->b, b->b, 16) == 0;
}

#endif
