/* SPDX-License-Identifier: Apache-2.0 */
/* The flow table, a chained hash of both sides of connections. */
#include "engine/place.h"
#include "engine/table.h"

static uint64_t mix64(uint64_t h)
{
	h ^= h >> 32;
	h *= 0x9fb21c651e98df25u;
	h ^= h >> 29;
	return h;
}

/*
 * Hosts number queue pairs one after the other. As many as BLOCK of them have buckets side by side,
 * so that the table of many queue pairs is a few cache lines for each block and not one for each
 * queue pair. Where a block begins nobody can guess.
 */
#define BLOCK 64u

uint32_t eng_key_hash(uint64_t seed, const struct eng_key *k, bool is_requester)
{
	const uint64_t block = k->qpn / BLOCK * 2 + is_requester + ((uint64_t)k->tenant << 24) + 1;
	uint64_t w[4];

	memcpy(w, &k->src, 16);
	memcpy(w + 2, &k->dst, 16);
	/* Asymmetric in src and dst: the two directions of a pair must not collide. */
	w[0] = mix64(w[0] + seed + 0x9e3779b97f4a7c15u * block) ^ w[1];
	w[2] = mix64(w[2] + w[0]) ^ w[3];
	return (uint32_t)mix64(w[2] * 0xc2b2ae3d27d4eb4fu + w[0]) + k->qpn % BLOCK;
}

struct eng_side *eng_find_hashed(
    const struct eng *e, const struct eng_key *k, uint32_t hash, bool is_requester)
{
	struct eng_side *side = e->table[hash & e->table_mask];

	while (side && !(side->hash == hash && side->is_requester == is_requester &&
	                   side->key.qpn == k->qpn && side->key.tenant == k->tenant &&
	                   rwy_ip_eq(&side->key.src, &k->src) && rwy_ip_eq(&side->key.dst, &k->dst)))
		side = side->chain;
	return side;
}

struct eng_side *eng_find(const struct eng *e, const struct eng_key *k, bool is_requester)
{
	return eng_find_hashed(e, k, eng_key_hash(e->hash_seed, k, is_requester), is_requester);
}

uint32_t eng_table_next(const struct eng *e, uint32_t slot)
{
	while (slot <= e->table_mask) {
		const uint64_t bits = e->occupied[slot / 64] >> slot % 64;

		if (bits)
			return slot + (uint32_t)__builtin_ctzll(bits);
		slot = (slot | 63) + 1;
	}
	return slot;
}

void eng_insert(struct eng *e, struct eng_side *side)
{
	struct eng_side **slot;

	side->hash = eng_key_hash(e->hash_seed, &side->key, side->is_requester);
	eng_place_began(side);
	slot = &e->table[side->hash & e->table_mask];
	/* Packets look for responder sides: these come first in a bucket. */
	while (side->is_requester && *slot)
		slot = &(*slot)->chain;
	side->chain = *slot;
	*slot = side;
	e->occupied[(side->hash & e->table_mask) / 64] |= (uint64_t)1 << side->hash % 64;
	e->sides++;
	side->tenant->sides++;
	e->tunnel[side->tunnel].sides++;
}

void eng_remove(struct eng *e, struct eng_side *side)
{
	uint32_t slot = side->hash & e->table_mask;
	struct eng_side **p = &e->table[slot];

	eng_place_gone(side);
	while (*p && *p != side)
		p = &(*p)->chain;
	if (*p) {
		*p = side->chain;
		e->sides--;
		side->tenant->sides--;
		e->tunnel[side->tunnel].sides--;
	}
	if (!e->table[slot])
		e->occupied[slot / 64] &= ~((uint64_t)1 << slot % 64);
}

uint64_t eng_random(struct eng *e)
{
	uint64_t z = (e->rng += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
