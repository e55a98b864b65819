/* SPDX-License-Identifier: Apache-2.0 */
/* Between ranks.c and its two searches. */
#ifndef PLAN_RANKS_INT_H
#define PLAN_RANKS_INT_H

#include "controller/plan/ranks.h"

/* ranks_order.c: fills order[] with the clusters along the pipeline, and *cost. RWY_ENOENT: no
 * order has a path between all neighbours. RWY_ENOMEM. */
RWY_MUST_CHECK int ranks_order(const struct plan_split *s, uint32_t *order, uint64_t *cost);

/*
 * ranks_place.c: orders the n containers of one cluster; those that come after `groups` tensor
 * groups are filled are spare. `chosen` has their indices, in the order to begin with, and gets the
 * order that was found. Returns its hops: the sum of plan_ranks_hops() over all groups that talk to
 * each other.
 */
uint64_t ranks_place(const struct plan_split *s, uint32_t *chosen, unsigned n, uint32_t groups);
/* The hops of this order. `of` has room for `groups` entries. */
uint64_t ranks_hops(
    const struct plan_split *s, const uint32_t *chosen, unsigned n, uint32_t groups, uint32_t *of);

#endif
