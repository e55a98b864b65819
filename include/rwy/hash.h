/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of keys for tables in memory; they are no signatures. Values may change with the machine
 * and the version. Pure functions: any thread.
 */
#ifndef RWY_HASH_H
#define RWY_HASH_H

#include <stdint.h>
#include <string.h>

#include "rwy/ip.h"

#define RWY_HASH_MUL UINT64_C(0x9fb21c651e98df25)

/* Adds a word with one multiplication and uses both halves of the product. With the low half alone
 * the last bytes of an address would change the top bits only, and all hosts of a prefix would
 * share a slot. */
static inline uint64_t rwy_hash(uint64_t h, uint64_t v)
{
	unsigned __int128 p = (unsigned __int128)(h ^ v) * RWY_HASH_MUL;

	return (uint64_t)(p >> 64) ^ (uint64_t)p;
}

static inline uint64_t rwy_hash_ip(uint64_t h, const struct rwy_ip *ip)
{
	uint64_t w[2];

	memcpy(w, ip->b, 16);
	return rwy_hash(rwy_hash(h, w[0]), w[1]);
}

static inline uint64_t rwy_hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = rwy_hash(h, p[i]);
	return h;
}

/* The finalizer of splitmix64: each input bit changes half of the output bits. */
static inline uint64_t rwy_mix64(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

#endif
