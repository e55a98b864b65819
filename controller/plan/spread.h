/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pair of gateways carries what: weighted rendezvous hashing over the pairs of two sites. A pair gets
 * its share by weight; a pair that comes, goes or changes its weight moves only what goes to it or comes from
 * it; both directions of a connection have the same key, so the same pair. Integers only: every replica and
 * every run answers the same. Cost: one step for each pair of these two sites.
 */
#ifndef PLAN_SPREAD_H
#define PLAN_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ip.h"

/* Granularity: traffic that stays together on one pair. */
#define PLAN_GRAINS(X)                                                                                       \
	X(PLAN_GRAIN_ADDRESS, "address-pair", "all between two addresses")                                   \
	X(PLAN_GRAIN_NIC, "nic", "all of one address (a NIC has one) of the first site")                     \
	X(PLAN_GRAIN_QP, "qp", "each connection by itself")

enum plan_grain {
#define X(e, w, s) e,
	PLAN_GRAINS(X)
#undef X
	    PLAN_GRAIN_COUNT
};
/* By its word; PLAN_GRAIN_COUNT: no such. */

/* One end of a connection. */
struct plan_end {
	struct rwy_ip addr;
	uint32_t qpn;
};

/*
 * The key of a connection. `first` is the end at the first of the two sites, whichever the caller holds to be
 * first (plan_first_site; the same for both directions, whoever reports).
 */
uint64_t plan_key(
    enum plan_grain g, uint32_t vni, const struct plan_end *first, const struct plan_end *second);

/* Site a is the first of the two, by name. Equal names: true. */
bool plan_first_site(const char *a, const char *b);

/* The id of a gateway, for pairs: of its name. */
uint64_t plan_id(const char *name);

struct plan_pair {
	uint64_t first, second; /* plan_id of the gateways of the first and the second site */
	uint32_t weight;        /* 0: takes nothing; see plan_pair_weight */
};

/* The weight of a pair of gateways with these weights (0..PLAN_WEIGHT_MAX). */
uint32_t plan_pair_weight(uint32_t first, uint32_t second);

/* Which of n pairs; -1: none has a weight. The order of the pairs does not matter. */
int plan_spread(const struct plan_pair *pairs, unsigned n, uint64_t key);

/*
 * The same with bounded loads, for few keys: chance alone would spread 16 connections 3:1 as anything from
 * 9:7 to 16:0. count[i] keys are on pair i so far; of the pairs with less than their share of one key more
 * (rounded up) the one that rendezvous likes best. So no pair is ever above its share, and what is on a pair
 * stays until it goes. Counts of pairs without weight do not count. -1: none has a weight.
 */
int plan_spread_next(const struct plan_pair *pairs, unsigned n, const uint32_t *count, uint64_t key);

/*
 * A whole list of m keys at once, each pair its share to one key. assign[j] is in 0..n-1 where key j is now
 * (it stays, if the shares allow), or -1; after it where it belongs. What moves is what must: the keys of
 * pairs that lost their weight, and of pairs that are above their share the ones that rendezvous likes least
 * there. n <= PLAN_PAIRS_MAX. RWY_EINVAL: none has a weight, or too many; RWY_ENOMEM; then assign is as it
 * was. Returns how many moved or are new.
 */
#define PLAN_PAIRS_MAX 4096
RWY_MUST_CHECK int plan_spread_list(
    const struct plan_pair *pairs, unsigned n, const uint64_t *keys, unsigned m, int *assign);
/* The same, but what is on a pair with a weight stays there, whatever the shares. Keys in ascending order. */
RWY_MUST_CHECK int plan_spread_stay(
    const struct plan_pair *pairs, unsigned n, const uint64_t *keys, unsigned m, int *assign);

#endif
