/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted rendezvous hashing over the pairs of gateways of two sites: which pair carries a flow. A
 * pair gets its share by weight. A pair that comes, goes or changes its weight moves only keys that
 * go to it or come from it. Both directions of a connection have the same key, hence the same pair.
 * Integers only: every replica and every run gets the same answer. Cost: one step per pair.
 */
#ifndef PLAN_SPREAD_H
#define PLAN_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ip.h"

/* Granularity: the traffic that stays together on one pair. X(enumerator, word, sentence) */
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
/* The granularity with this word; PLAN_GRAIN_COUNT: there is none. */

/* One end of a connection. */
struct plan_end {
	struct rwy_ip addr;
	uint32_t qpn;
};

/*
 * The key of a connection. `first` is the end at the site that plan_first_site() calls first, so
 * both directions have the same key.
 */
uint64_t plan_key(
    enum plan_grain g, uint32_t vni, const struct plan_end *first, const struct plan_end *second);

/* True if site a is the first of the two, by name. Equal names: true. */
bool plan_first_site(const char *a, const char *b);

/* The id of a gateway: a hash of its name. */
uint64_t plan_id(const char *name);

struct plan_pair {
	uint64_t first, second; /* plan_id() of the gateways at the first and at the second site */
	uint32_t weight;        /* 0: takes nothing; see plan_pair_weight() */
};

/* The weight of a pair whose gateways have these weights (0..PLAN_WEIGHT_MAX). */
uint32_t plan_pair_weight(uint32_t first, uint32_t second);

/* The index of the key's pair; -1: no pair has a weight. The order of the pairs does not matter. */
int plan_spread(const struct plan_pair *pairs, unsigned n, uint64_t key);

/*
 * The same with bounded loads, for few keys. Chance alone spreads 16 connections at weights 3:1
 * anywhere from 9:7 to 16:0. count[i] is the number of keys on pair i now. Among the pairs that
 * hold less than their share, counted with one key more and rounded up, the rendezvous order
 * decides. So no pair exceeds its share, and a key that is placed stays. Counts of pairs without
 * weight are ignored. -1: no pair has a weight.
 */
int plan_spread_next(const struct plan_pair *pairs, unsigned n, const uint32_t *count, uint64_t key);

/*
 * Assigns m keys at once so that each pair has its share, to within one key. On entry assign[j] is
 * the pair of key j (0..n-1), which it keeps if the shares allow, or -1; on return it is the pair
 * that the key belongs to. Only necessary moves happen: keys of pairs without weight, and of pairs
 * above their share the keys that rendezvous likes least there. n <= PLAN_PAIRS_MAX.
 *
 * Returns how many keys moved or are new. RWY_EINVAL: no pair has a weight, or n is too large;
 * RWY_ENOMEM; `assign` is unchanged then.
 */
#define PLAN_PAIRS_MAX 4096
RWY_MUST_CHECK int plan_spread_list(
    const struct plan_pair *pairs, unsigned n, const uint64_t *keys, unsigned m, int *assign);
/* The same, but a key on a pair with a weight stays there whatever the shares. Keys are in
 * ascending order. */
RWY_MUST_CHECK int plan_spread_stay(
    const struct plan_pair *pairs, unsigned n, const uint64_t *keys, unsigned m, int *assign);

#endif
