/* SPDX-License-Identifier: Apache-2.0 */
/* Address prefixes. IPv4 is mapped: its lengths are 96 and above. */
#ifndef RWY_PREFIX_H
#define RWY_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/endian.h"
#include "rwy/ip.h"

/* Whether the first len bits (0..128) of both are equal. */
static inline bool rwy_prefix_match(const struct rwy_ip *prefix, unsigned len, const struct rwy_ip *a)
{
	uint64_t high = rwy_get64(prefix->b) ^ rwy_get64(a->b);
	uint64_t low = rwy_get64(prefix->b + 8) ^ rwy_get64(a->b + 8);

	if (len <= 64)
		return !len || !(high >> (64 - len));
	return !high && !(low >> (128 - len));
}

#endif
