/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous score of a pair for a key; for spread.c and spread_bound.c only. */
#ifndef PLAN_SPREAD_INT_H
#define PLAN_SPREAD_INT_H

#include "controller/plan/spread.h"

/* The cost before the division by the weight. */
uint64_t plan_spread_cost(const struct plan_pair *p, uint64_t key);
/* True if a wins over b. Both have a weight. */
bool plan_spread_less(const struct plan_pair *a, uint64_t cost_a, const struct plan_pair *b, uint64_t cost_b);

#endif
