/* SPDX-License-Identifier: Apache-2.0
 * Ranks of small random topologies against the best of all orders of their sites and containers.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/long_case.h"
#include "tests/lib/plan_ranks.h"
#include "tests/lib/rng.h"

#define SMALL 7 /* containers at most: 5040 orders */

struct topology {
	struct plan_cluster cluster[4];
	struct plan_container pod[SMALL];
	uint32_t cost[16];
	struct plan_split s;
};

static void set_sites(struct topology *t, uint64_t *rng)
{
	const unsigned n = t->s.clusters;
	uint32_t x[4], y[4];

	for (unsigned i = 0; i < n; i++) {
		x[i] = (uint32_t)rng_below(rng, 10000);
		y[i] = (uint32_t)rng_below(rng, 10000);
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++) /* paths of a network that has no straight lines */
			t->cost[i * n + k] = (x[i] > x[k] ? x[i] - x[k] : x[k] - x[i]) +
			                     (y[i] > y[k] ? y[i] - y[k] : y[k] - y[i]);
}

/* Up to four sites, a few containers of one to three tensor groups each in racks of rooms, and as
 * many stages as there is room for; perhaps a spare or two. */
static void draw(struct topology *t, uint64_t *rng)
{
	uint32_t groups[4] = {0};
	unsigned n;

	memset(t, 0, sizeof(*t));
	t->s = (struct plan_split){.tensor = 1u << rng_below(rng, 3),
	    .data = 1 + (uint32_t)rng_below(rng, 3),
	    .ring = rng_below(rng, 2),
	    .cluster = t->cluster,
	    .clusters = 1 + (unsigned)rng_below(rng, 4),
	    .container = t->pod,
	    .cost = t->cost};
	set_sites(t, rng);
	n = t->s.clusters + (unsigned)rng_below(rng, SMALL - t->s.clusters + 1);
	t->s.containers = n;
	for (unsigned i = 0; i < n; i++) {
		struct plan_container *p = &t->pod[i];
		const uint32_t has = i < t->s.clusters ? t->s.data : 1 + (uint32_t)rng_below(rng, 3);

		p->cluster = i < t->s.clusters ? i : (uint32_t)rng_below(rng, t->s.clusters);
		p->ranks = has * t->s.tensor;
		groups[p->cluster] += has;
		p->levels = 3;
		p->level[0] = rng_below(rng, 2);
		p->level[1] = rng_below(rng, 3);
		p->level[2] = 100 + i;
	}
	for (unsigned i = 0; i < t->s.clusters; i++) {
		const uint32_t stages = groups[i] / t->s.data;

		t->cluster[i] = (struct plan_cluster){stages * t->s.data * t->s.tensor, NONE};
		t->s.pipeline += stages;
	}
}

/* The hops of a table: who has which group. It is computed anew here, over all groups. */
static uint64_t hops_of(const struct plan_split *s, const uint32_t *of)
{
	const uint32_t groups = s->pipeline * s->data, d = s->data;
	uint64_t sum = 0;

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t h = g + 1; h < groups; h++) {
			const bool one_stage = g / d == h / d;
			const bool ring = one_stage && (h - g == 1 || h - g == d - 1);
			const bool next = h - g == d;

			if ((ring || next) && of[g] != of[h] &&
			    s->container[of[g]].cluster == s->container[of[h]].cluster)
				sum += plan_ranks_hops(&s->container[of[g]], &s->container[of[h]]);
		}
	return sum;
}

static uint64_t best_hops;

/* Tries every order of containers pod[0..n) of one cluster from position k on. */
static void all_orders(const struct plan_split *s, uint32_t *pod, unsigned n, unsigned k, uint32_t groups)
{
	struct plan_split one = *s;
	uint32_t of[64], g = 0;
	uint64_t hops;

	if (k == n) {
		for (unsigned i = 0; i < n; i++)
			for (uint32_t m = 0; m < s->container[pod[i]].ranks / s->tensor && g < groups; m++)
				of[g++] = pod[i];
		one.pipeline = groups / s->data;
		hops = hops_of(&one, of);
		best_hops = hops < best_hops ? hops : best_hops;
		return;
	}
	for (unsigned i = k; i < n; i++) {
		const uint32_t a = pod[k], b = pod[i];

		pod[k] = b;
		pod[i] = a;
		all_orders(s, pod, n, k + 1, groups);
		pod[k] = a;
		pod[i] = b;
	}
}

static uint64_t best_hops_of(const struct plan_split *s)
{
	uint64_t sum = 0;

	for (uint32_t c = 0; c < s->clusters; c++) {
		uint32_t pod[SMALL];
		unsigned n = 0;

		for (uint32_t i = 0; i < s->containers; i++)
			if (s->container[i].cluster == c)
				pod[n++] = i;
		best_hops = UINT64_MAX;
		all_orders(s, pod, n, 0, s->cluster[c].ranks / s->tensor);
		sum += best_hops;
	}
	return sum;
}

static uint64_t cost_of_order(const struct plan_split *s, const uint32_t *order)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i < s->clusters; i++)
		sum += s->cost[order[i - 1] * s->clusters + order[i]];
	if (s->ring && s->pipeline > 2 && s->clusters > 1)
		sum += s->cost[order[s->clusters - 1] * s->clusters + order[0]];
	return sum;
}

static uint64_t best_cost_of(const struct plan_split *s, uint32_t *order, unsigned k)
{
	uint64_t best = UINT64_MAX, c;

	if (k == s->clusters)
		return cost_of_order(s, order);
	for (unsigned i = k; i < s->clusters; i++) {
		const uint32_t a = order[k], b = order[i];

		order[k] = b;
		order[i] = a;
		c = best_cost_of(s, order, k + 1);
		best = c < best ? c : best;
		order[k] = a;
		order[i] = b;
	}
	return best;
}

static void test_random_topologies(void **state)
{
	const unsigned rounds = long_rounds(1000);
	unsigned same = 0;

	for (unsigned seed = 0; seed < rounds; seed++) {
		uint32_t of[64], order[4] = {0, 1, 2, 3}, found[4];
		uint64_t rng = seed, hops, best, cost = 0;
		struct plan_ranks *r;
		struct topology t;

		draw(&t, &rng);
		r = assign(&t.s);
		assert_int_equal(r->fail, PLAN_RANKS_FIT);
		assert_int_equal(r->missing_all, 0);
		check_table(&t.s, r, of);
		hops = hops_of(&t.s, of);
		assert_int_equal(hops, r->hops);
		best = best_hops_of(&t.s);
		same += hops == best;
		if (hops * 100 > best * 105)
			fail_msg("seed %u: %" PRIu64 " hops, the best order has %" PRIu64, seed, hops, best);
		for (unsigned i = 0; i < t.s.clusters; i++) {
			unsigned before = 0;

			for (unsigned k = 0; k < t.s.clusters; k++)
				before += r->cluster_first[k] < r->cluster_first[i];
			found[before] = i;
		}
		cost = cost_of_order(&t.s, found);
		assert_int_equal(cost, r->cost_us);
		assert_int_equal(cost, best_cost_of(&t.s, order, 0));
		plan_ranks_free(r);
	}
	print_message("%u of %u orders of containers are the best\n", same, rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_topologies)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
