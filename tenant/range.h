/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address prefixes, and the elementary ranges into which a set of them divides the address space:
 * all addresses of a range have the same prefixes. Finding an address's range is one binary search
 * without branches over a packed array: with 16 IPv4 prefixes two cache lines, with 1,000 eleven
 * steps. The ACL and the tenant's longest-prefix match use it. IPv4 and IPv6 have separate arrays.
 *
 * Thread: one builds it; then it is constant, and any thread reads it.
 */
#ifndef TENANT_RANGE_H
#define TENANT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/endian.h"
#include "rwy/err.h"
#include "rwy/ip.h"

struct prefix {
	struct rwy_ip addr;
	/* 0..128; IPv4 is mapped: 96 + its length; 0: all addresses of both families */
	uint8_t len;
};

/* Whether p is well-formed: its length is in range, no bits are set behind it, and it is not a
 * short IPv6 prefix (1..95 bits of ::) that would include all of IPv4 by accident. */
bool prefix_ok(const struct prefix *p);
/* True if the address is in the prefix. */
bool prefix_has(const struct prefix *p, const struct rwy_ip *a);
/* Whether one prefix lies within the other. */
bool prefix_meets(const struct prefix *a, const struct prefix *b);
/* It has IPv4 addresses only. */
static inline bool prefix_is4(const struct prefix *p)
{
	return p->len >= 96 && rwy_ip_is4(&p->addr);
}
/* The same addresses, if both are prefix_ok(). */
static inline bool prefix_eq(const struct prefix *a, const struct prefix *b)
{
	return a->len == b->len && rwy_ip_eq(&a->addr, &b->addr);
}

/* Ranges are numbered: IPv4 from 0, IPv6 from n4. */
struct range_map {
	unsigned __int128 *lo6; /* first address of each range, ascending; the first is 0 */
	uint32_t *lo4;
	uint32_t n4, n6; /* both >= 1 */
};

/* All prefixes must be prefix_ok. Makes one allocation, at m->lo6. RWY_ENOMEM. */
RWY_MUST_CHECK int range_init(struct range_map *m, const struct prefix *p, unsigned n);
void range_fini(struct range_map *m);

/* Returns the ranges of a prefix that was given to range_init: [at[0], at[1]) of IPv4 and [at[2],
 * at[3]) of IPv6, numbered as above. */
void range_of_prefix(const struct range_map *m, const struct prefix *p, uint32_t at[4]);

/* Sorts n >= 1 numbers and removes duplicates. Returns the new length. */
uint32_t range_sort16(uint16_t *v, uint32_t n);

/* The number of an IPv4 address's range: < m->n4. key: the address in host order. */
static inline uint32_t range_find4(const struct range_map *m, uint32_t key)
{
	const uint32_t *base = m->lo4;

	for (uint32_t n = m->n4; n > 1;) {
		uint32_t half = n / 2;

		base += half & -(uint32_t)(base[half] <= key);
		n -= half;
	}
	return (uint32_t)(base - m->lo4);
}

/* The same of an IPv6 address, without n4: < m->n6. */
static inline uint32_t range_find6(const struct range_map *m, unsigned __int128 key)
{
	const unsigned __int128 *base = m->lo6;

	for (uint32_t n = m->n6; n > 1;) {
		uint32_t half = n / 2;

		base += half & -(uint32_t)(base[half] <= key);
		n -= half;
	}
	return (uint32_t)(base - m->lo6);
}

/* The number of an address's range: < m->n4 + m->n6. */
static inline uint32_t range_find(const struct range_map *m, const struct rwy_ip *a)
{
	uint64_t hi = rwy_get64(a->b), lo = rwy_get64(a->b + 8);

	if (!hi && lo >> 32 == 0xffff)
		return range_find4(m, (uint32_t)lo);
	return m->n4 + range_find6(m, (unsigned __int128)hi << 64 | lo);
}

#endif
