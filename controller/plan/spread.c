/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted rendezvous hashing over a list of pairs. rwy/spread.h has the hash and the draw.
 */
#include <string.h>

#include "controller/plan/spread_int.h"
#include "controller/plan/weight.h"
#include "rwy/spread.h"

uint64_t plan_id(const char *name)
{
	return rwy_spread_id(name);
}

bool plan_first_site(const char *a, const char *b)
{
	return strcmp(a, b) <= 0;
}

uint64_t plan_key(
    enum plan_grain g, uint32_t vni, const struct plan_end *first, const struct plan_end *second)
{
	uint64_t h = rwy_spread_add((uint64_t)g, vni);

	h = rwy_spread_add_ip(h, &first->addr);
	switch (g) {
	case PLAN_GRAIN_NIC:
		break;
	case PLAN_GRAIN_ADDRESS:
		h = rwy_spread_add_ip(h, &second->addr);
		break;
	case PLAN_GRAIN_QP:
		h = rwy_spread_add_ip(h, &second->addr);
		h = rwy_spread_add(h, (uint64_t)first->qpn << 32 | second->qpn);
		break;
	case PLAN_GRAIN_COUNT:
		break;
	}
	return h;
}

uint32_t plan_pair_weight(uint32_t first, uint32_t second)
{
	if (first > PLAN_WEIGHT_MAX)
		first = PLAN_WEIGHT_MAX;
	if (second > PLAN_WEIGHT_MAX)
		second = PLAN_WEIGHT_MAX;
	return first * second;
}

/* Breaks a tie of two draws by the pairs themselves, so that the order of the list does not
 * matter. */
static bool before(const struct plan_pair *a, const struct plan_pair *b)
{
	return a->first != b->first ? a->first < b->first : a->second < b->second;
}

uint64_t plan_spread_cost(const struct plan_pair *p, uint64_t key)
{
	return rwy_spread_cost(rwy_spread_draw(key, p->first, p->second));
}

bool plan_spread_less(const struct plan_pair *a, uint64_t cost_a, const struct plan_pair *b, uint64_t cost_b)
{
	/* cost_a / weight_a < cost_b / weight_b */
	unsigned __int128 x = (unsigned __int128)cost_a * b->weight,
	                  y = (unsigned __int128)cost_b * a->weight;

	return x < y || (x == y && before(a, b));
}

int plan_spread(const struct plan_pair *pairs, unsigned n, uint64_t key)
{
	uint64_t cost, best_cost = 0;
	int best = -1;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (pairs[i].weight == 0)
			continue;
		cost = plan_spread_cost(&pairs[i], key);
		if (best < 0 || plan_spread_less(&pairs[i], cost, &pairs[best], best_cost)) {
			best = (int)i;
			best_cost = cost;
		}
	}
	return best;
}
