/* SPDX-License-Identifier: Apache-2.0 */
/* Longest prefix match and the owner hash: pure functions. */
#include "engine/steer.h"

#include <string.h>

#include "rwy/prefix.h"

int eng_route_of(const struct eng_prefix *prefix, unsigned n, const struct rwy_ip *dst)
{
	int best = -1, best_len = -1;

	for (unsigned i = 0; i < n; i++) {
		const struct eng_prefix *p = &prefix[i];

		if (p->len > best_len && rwy_prefix_match(&p->addr, p->len, dst)) {
			best = p->tunnel;
			best_len = p->len;
		}
	}
	return best;
}

uint64_t eng_route_set(const struct eng_prefix *prefix, unsigned n, const struct rwy_ip *dst)
{
	uint64_t set = 0;
	int best_len = -1;

	for (unsigned i = 0; i < n; i++) {
		const struct eng_prefix *p = &prefix[i];

		if (p->len < best_len || !rwy_prefix_match(&p->addr, p->len, dst))
			continue;
		set = (p->len == best_len ? set : 0) | (uint64_t)1 << p->tunnel;
		best_len = p->len;
	}
	return set;
}

uint32_t eng_owner_hash(const struct rwy_ip *a, const struct rwy_ip *b)
{
	uint64_t x[2], y[2], h;

	memcpy(x, a->b, 16);
	memcpy(y, b->b, 16);
	/* Sums and xors are symmetric: both directions have one hash. */
	h = (x[0] ^ y[0]) * 0x9fb21c651e98df25u + (x[1] ^ y[1]);
	h += (x[1] + y[1]) * 0xc2b2ae3d27d4eb4fu;
	h ^= h >> 29;
	h *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32);
}

unsigned eng_owner(uint32_t vni, const struct rwy_ip *a, const struct rwy_ip *b, unsigned workers)
{
	return (eng_owner_hash(a, b) ^ vni * 0x9e3779b1u) % workers;
}
