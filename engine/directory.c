/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of connections: buckets of one cache line. A key has two buckets, by two parts of
 * its hash, and is in the one that had more room (Azar et al., balanced allocations, 1999).
 */
#include "engine/directory.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "rwy/hash.h"
#include "rwy/prefetch.h"

#define WAYS       8 /* entries of a bucket: a cache line */
#define TURNS      1024
#define DOUBT      0x80 /* of a turn: eng_directory_turn_doubt() */
#define BITS       8    /* of an entry: the worker's number plus 1; 0: the entry is free */
#define WORKER     ((1u << BITS) - 1)
#define LOAD_SHIFT 1 /* there are twice as many entries as sides */
#define SIDES_MAX  (1u << 26)

struct bucket {
	_Atomic uint64_t entry[WAYS];
};

struct eng_directory {
	struct bucket *bucket;
	uint32_t mask; /* number of buckets - 1 */
	uint64_t seed;
	_Atomic uint8_t turn[TURNS]; /* the worker's number plus 1; 0: nobody's; and DOUBT */
	_Atomic uint32_t entries;
};
static_assert(sizeof(struct bucket) == RWY_CACHE_LINE, "one cache line");
static_assert(ENG_WORKERS_MAX < WORKER && ENG_WORKERS_MAX < DOUBT, "a worker's number fits");

int eng_directory_new(struct eng_directory **out, uint32_t sides, uint64_t seed)
{
	struct eng_directory *d;
	uint32_t n = 1;

	if (!sides || sides > SIDES_MAX)
		return RWY_EINVAL;
	while (n * WAYS < sides << LOAD_SHIFT)
		n <<= 1;
	d = calloc(1, sizeof(*d));
	if (!d)
		return RWY_ENOMEM;
	d->bucket = aligned_alloc(RWY_CACHE_LINE, n * sizeof(*d->bucket));
	if (!d->bucket) {
		free(d);
		return RWY_ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		for (unsigned k = 0; k < WAYS; k++)
			atomic_init(&d->bucket[i].entry[k], 0);
	d->mask = n - 1;
	d->seed = seed;
	*out = d;
	return 0;
}

void eng_directory_free(struct eng_directory *d)
{
	if (!d)
		return;
	free(d->bucket);
	free(d);
}

uint64_t eng_directory_hash(
    const struct eng_directory *d, const struct eng_key *k, uint32_t vni, bool requester)
{
	uint64_t h = rwy_hash(d->seed, (uint64_t)vni << 32 | k->qpn << 1 | requester);

	return rwy_mix64(rwy_hash_ip(rwy_hash_ip(h, &k->src), &k->dst));
}

static struct bucket *first_bucket(const struct eng_directory *d, uint64_t hash)
{
	return &d->bucket[hash >> 32 & d->mask];
}

static struct bucket *second_bucket(const struct eng_directory *d, uint64_t hash)
{
	return &d->bucket[(hash >> BITS ^ hash >> 40) & d->mask];
}

/* The place of the key's entry in a bucket; NULL: it is not there. *e: its value. */
static _Atomic uint64_t *entry_in(struct bucket *b, uint64_t hash, uint64_t *e)
{
	for (unsigned i = 0; i < WAYS; i++) {
		*e = atomic_load_explicit(&b->entry[i], memory_order_acquire);
		if (*e & WORKER && (*e ^ hash) >> BITS == 0)
			return &b->entry[i];
	}
	return NULL;
}

static _Atomic uint64_t *entry_of(const struct eng_directory *d, uint64_t hash, uint64_t *e)
{
	_Atomic uint64_t *at = entry_in(first_bucket(d, hash), hash, e);

	return at ? at : entry_in(second_bucket(d, hash), hash, e);
}

int eng_directory_find(const struct eng_directory *d, uint64_t hash)
{
	uint64_t e;

	return entry_of(d, hash, &e) ? (int)(e & WORKER) - 1 : -1;
}

static unsigned room(struct bucket *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WAYS; i++)
		n += !atomic_load_explicit(&b->entry[i], memory_order_relaxed);
	return n;
}

static bool add_to(struct bucket *b, uint64_t e)
{
	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t none = 0;

		if (!atomic_load_explicit(&b->entry[i], memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(
		        &b->entry[i], &none, e, memory_order_release, memory_order_relaxed))
			return true;
	}
	return false;
}

bool eng_directory_add(struct eng_directory *d, uint64_t hash, unsigned worker)
{
	const uint64_t e = (hash & ~(uint64_t)WORKER) | (worker + 1);
	struct bucket *a = first_bucket(d, hash), *b = second_bucket(d, hash);
	const bool second = room(b) > room(a);
	uint64_t there;

	if (entry_of(d, hash, &there))
		return (there & WORKER) == worker + 1;
	if (!add_to(second ? b : a, e) && !add_to(second ? a : b, e))
		return false;
	atomic_fetch_add_explicit(&d->entries, 1, memory_order_relaxed);
	return true;
}

/* Two workers that entered it at the same time may have left it in both buckets. */
static void remove_from(struct eng_directory *d, struct bucket *b, uint64_t entry)
{
	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t e = entry;

		if (atomic_compare_exchange_strong_explicit(
		        &b->entry[i], &e, 0, memory_order_release, memory_order_relaxed))
			atomic_fetch_sub_explicit(&d->entries, 1, memory_order_relaxed);
	}
}

void eng_directory_remove(struct eng_directory *d, uint64_t hash, unsigned worker)
{
	const uint64_t e = (hash & ~(uint64_t)WORKER) | (worker + 1);

	remove_from(d, first_bucket(d, hash), e);
	if (second_bucket(d, hash) != first_bucket(d, hash))
		remove_from(d, second_bucket(d, hash), e);
}

uint32_t eng_directory_entries(const struct eng_directory *d)
{
	return atomic_load_explicit(&d->entries, memory_order_relaxed);
}

uint32_t eng_directory_turn(const struct eng_key *k, uint32_t vni)
{
	return eng_owner_hash(&k->src, &k->dst) ^ vni * 0x9e3779b1u;
}

static _Atomic uint8_t *turn_at(struct eng_directory *d, uint32_t pair)
{
	return &d->turn[pair % TURNS];
}

bool eng_directory_turn_take(struct eng_directory *d, uint32_t pair, unsigned worker)
{
	_Atomic uint8_t *turn = turn_at(d, pair);
	uint8_t was = atomic_load_explicit(turn, memory_order_relaxed);

	while (!(was & ~DOUBT))
		if (atomic_compare_exchange_weak_explicit(turn, &was, (uint8_t)(was | (worker + 1)),
		        memory_order_acquire, memory_order_relaxed))
			return true;
	return (was & ~DOUBT) == worker + 1;
}

bool eng_directory_turn_same(uint32_t pair_a, uint32_t pair_b)
{
	return pair_a % TURNS == pair_b % TURNS;
}

void eng_directory_turn_give(struct eng_directory *d, uint32_t pair, unsigned worker)
{
	_Atomic uint8_t *turn = turn_at(d, pair);
	uint8_t was = atomic_load_explicit(turn, memory_order_relaxed);

	while ((was & ~DOUBT) == worker + 1)
		if (atomic_compare_exchange_weak_explicit(
		        turn, &was, was & DOUBT, memory_order_release, memory_order_relaxed))
			return;
}

void eng_directory_turn_doubt(struct eng_directory *d, uint32_t pair)
{
	atomic_fetch_or_explicit(turn_at(d, pair), DOUBT, memory_order_relaxed);
}

bool eng_directory_turn_doubted(struct eng_directory *d, uint32_t pair)
{
	return atomic_fetch_and_explicit(turn_at(d, pair), (uint8_t)~DOUBT, memory_order_relaxed) & DOUBT;
}

int eng_directory_turn_of(const struct eng_directory *d, uint32_t pair)
{
	return (atomic_load_explicit(&d->turn[pair % TURNS], memory_order_acquire) & ~DOUBT) - 1;
}
