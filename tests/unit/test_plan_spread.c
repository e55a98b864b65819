/* SPDX-License-Identifier: Apache-2.0
 * Connections over gateway pairs: shares, what moves and what does not, both directions, granularity; and
 * weights.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/plan/spread.h"
#include "controller/plan/weight.h"

#define KEYS 40000u

static struct rwy_ip ip(uint32_t v)
{
	uint8_t b[4] = {10, (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

	return rwy_ip_from4(b);
}

static struct plan_end end(uint32_t addr, uint32_t qpn)
{
	struct plan_end e = {ip(addr), qpn};

	return e;
}

static uint64_t key_of(unsigned i)
{
	struct plan_end a = end(i, 17), b = end(0x10000 + i, 18);

	return plan_key(PLAN_GRAIN_ADDRESS, 5, &a, &b);
}

/* All pairs of gateways named f0.. and s0.. with these weights. */
static unsigned mesh(
    struct plan_pair *p, const uint32_t *first, unsigned nf, const uint32_t *second, unsigned ns)
{
	char name[16];
	unsigned i, j, n = 0;

	for (i = 0; i < nf; i++) {
		for (j = 0; j < ns; j++, n++) {
			snprintf(name, sizeof(name), "f%u", i);
			p[n].first = plan_id(name);
			snprintf(name, sizeof(name), "s%u", j);
			p[n].second = plan_id(name);
			p[n].weight = plan_pair_weight(first[i], second[j]);
		}
	}
	return n;
}

/* Each pair's share of KEYS is that of its weight, within 5 standard deviations and within 5 %. */
static void check_shares(const struct plan_pair *p, unsigned n)
{
	unsigned count[64] = {0}, i;
	double sum = 0, want;

	for (i = 0; i < n; i++)
		sum += p[i].weight;
	for (i = 0; i < KEYS; i++)
		count[plan_spread(p, n, key_of(i))]++;
	for (i = 0; i < n; i++) {
		want = KEYS * (double)p[i].weight / sum;
		if (fabs(count[i] - want) > 5 * sqrt(want) ||
		    (want > 5000 && fabs(count[i] - want) > 0.05 * want))
			fail_msg("pair %u of weight %u got %u, not %.0f", i, p[i].weight, count[i], want);
	}
}

static void test_three_to_one(void **state)
{
	const uint32_t w[2] = {3, 1}, one[1] = {1};
	struct plan_pair p[64];

	check_shares(p, mesh(p, w, 2, one, 1));
}

static void test_shares(void **state)
{
	static const struct {
		uint32_t f[4], s[4];
	} cases[] = {
	    {{1, 1, 1, 1}, {1, 1, 1, 1}},
	    {{3, 1, 0, 0}, {3, 1, 0, 0}},
	    {{65535, 1, 65535, 30000}, {7, 7, 7, 7}},
	    {{65535, 65535, 65535, 65535}, {65535, 65535, 65535, 65535}},
	    {{1, 2, 3, 4}, {0, 0, 5, 1}},
	};
	struct plan_pair p[64];
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_shares(p, mesh(p, cases[i].f, 4, cases[i].s, 4));
}

static void test_deterministic(void **state)
{
	static const char known[] = "30100213021000100020200230010210";
	const uint32_t w[2] = {3, 1};
	struct plan_pair p[64], turned[64];
	unsigned i, j, n = mesh(p, w, 2, w, 2);
	int a, b;

	for (i = 0; i < n; i++)
		turned[i] = p[n - 1 - i];
	for (j = 0; j < 2000; j++) {
		a = plan_spread(p, n, key_of(j));
		b = plan_spread(turned, n, key_of(j));
		assert_int_equal(p[a].first, turned[b].first);
		assert_int_equal(p[a].second, turned[b].second);
	}
	/* Results of another implementation (Python, floating-point logarithms). */
	assert_int_equal(plan_id("gw-a1"), UINT64_C(0x675d958ab19f0673));
	assert_int_equal(key_of(1), UINT64_C(0xd805d84d0f8bca1b));
	for (j = 0; known[j]; j++)
		assert_int_equal(plan_spread(p, n, key_of(j)), known[j] - '0');
}

static void test_loss_moves_only_its_own(void **state)
{
	const uint32_t w[4] = {4, 3, 2, 1};
	struct plan_pair p[64], q[64];
	unsigned i, j, n = mesh(p, w, 4, w, 4), moved = 0;
	int a, b;

	memcpy(q, p, sizeof(q));
	for (i = 0; i < 4; i++)
		q[i].weight = 0; /* f0 is gone */
	for (j = 0; j < KEYS; j++) {
		a = plan_spread(p, n, key_of(j));
		b = plan_spread(q, n, key_of(j));
		if (a < 4)
			moved++;
		else
			assert_int_equal(a, b);
		assert_true(b >= 4);
		/* Returned: everything as before. Absence from the list and weight 0 make no
		 * difference. */
		assert_int_equal(plan_spread(q + 4, n - 4, key_of(j)) + 4, b);
	}
	assert_true(moved > KEYS * 38 / 100 && moved < KEYS * 42 / 100);
}

static void test_weight_change_moves_one_way(void **state)
{
	const uint32_t w[3] = {2, 2, 2}, one[1] = {1};
	struct plan_pair p[64], q[64];
	unsigned j, n = mesh(p, w, 3, one, 1), moved = 0;
	int a, b;

	memcpy(q, p, sizeof(q));
	q[1].weight = 3;
	for (j = 0; j < KEYS; j++) {
		a = plan_spread(p, n, key_of(j));
		b = plan_spread(q, n, key_of(j));
		if (a != b) {
			assert_int_equal(b, 1);
			moved++;
		}
	}
	/* From a third to three sevenths. */
	assert_true(fabs(moved / (double)KEYS - (3.0 / 7 - 1.0 / 3)) < 0.01);
}

static void test_no_weight(void **state)
{
	const uint32_t none[2] = {0, 0}, w[2] = {1, 1};
	struct plan_pair p[64];
	unsigned n = mesh(p, none, 2, w, 2);

	assert_int_equal(plan_spread(p, n, 1), -1);
	assert_int_equal(plan_spread(p, 0, 1), -1);
}

static void test_grain(void **state)
{
	struct plan_end a = end(1, 17), a2 = end(1, 99), b = end(2, 18), c = end(3, 18);

	/* Address pair: addresses matter, QPNs do not. */
	assert_int_equal(plan_key(PLAN_GRAIN_ADDRESS, 1, &a, &b), plan_key(PLAN_GRAIN_ADDRESS, 1, &a2, &b));
	assert_int_not_equal(
	    plan_key(PLAN_GRAIN_ADDRESS, 1, &a, &b), plan_key(PLAN_GRAIN_ADDRESS, 1, &a, &c));
	/* NIC: the first site's address alone. */
	assert_int_equal(plan_key(PLAN_GRAIN_NIC, 1, &a, &b), plan_key(PLAN_GRAIN_NIC, 1, &a2, &c));
	assert_int_not_equal(plan_key(PLAN_GRAIN_NIC, 1, &a, &b), plan_key(PLAN_GRAIN_NIC, 1, &b, &a));
	/* QP: each queue pair alone. */
	assert_int_not_equal(plan_key(PLAN_GRAIN_QP, 1, &a, &b), plan_key(PLAN_GRAIN_QP, 1, &a2, &b));
	/* Tenants may have the same addresses. */
	assert_int_not_equal(plan_key(PLAN_GRAIN_QP, 1, &a, &b), plan_key(PLAN_GRAIN_QP, 2, &a, &b));
}

/* Reports of a connection in either direction give the same pair. */
static void test_both_directions(void **state)
{
	const uint32_t w[2] = {3, 1};
	const char *site_of_a = "qingyang", *site_of_b = "hangzhou";
	struct plan_pair p[64];
	unsigned i, n = mesh(p, w, 2, w, 2);
	uint64_t there, back;

	for (i = 0; i < 5000; i++) {
		struct plan_end a = end(i, i), b = end(0x10000 + i, i + 1);

		there = plan_first_site(site_of_a, site_of_b) ? plan_key(PLAN_GRAIN_QP, 0, &a, &b)
		                                              : plan_key(PLAN_GRAIN_QP, 0, &b, &a);
		back = plan_first_site(site_of_b, site_of_a) ? plan_key(PLAN_GRAIN_QP, 0, &b, &a)
		                                             : plan_key(PLAN_GRAIN_QP, 0, &a, &b);
		assert_int_equal(plan_spread(p, n, there), plan_spread(p, n, back));
	}
}

/* 16 connections 3:1 are 12 and 4, for any keys; 4 x 4 pairs get their share to within one. */
static void test_bounded_is_exact(void **state)
{
	const uint32_t w[2] = {3, 1}, one[1] = {1}, many[4] = {4, 3, 2, 1};
	struct plan_pair p[64];
	uint32_t count[64];
	unsigned seed, i, n;
	int k;

	for (seed = 0; seed < 500; seed++) {
		memset(count, 0, sizeof(count));
		n = mesh(p, w, 2, one, 1);
		for (i = 0; i < 16; i++) {
			k = plan_spread_next(p, n, count, key_of(seed * 16 + i));
			assert_in_range(k, 0, n - 1);
			count[k]++;
		}
		assert_int_equal(count[0], 12);
		assert_int_equal(count[1], 4);
		memset(count, 0, sizeof(count));
		n = mesh(p, many, 4, w, 2);
		for (i = 0; i < 77; i++) {
			k = plan_spread_next(p, n, count, key_of(seed * 77 + i));
			count[k]++;
			assert_true(count[k] * 40 < (i + 1) * p[k].weight + 40); /* weights: 10 x 4 */
		}
	}
	assert_int_equal(plan_spread_next(p, 0, count, 1), -1);
}

/* A pair without weight gets nothing, and sessions still counted there do not change the others'
 * shares. */
static void test_bounded_without_weight(void **state)
{
	const uint32_t w[3] = {3, 1, 0}, one[1] = {1};
	uint32_t count[3] = {0, 0, 1000};
	struct plan_pair p[64];
	unsigned i, n = mesh(p, w, 3, one, 1);

	for (i = 0; i < 40; i++)
		count[plan_spread_next(p, n, count, key_of(i))]++;
	assert_int_equal(count[0], 30);
	assert_int_equal(count[1], 10);
	assert_int_equal(count[2], 1000);
}

static void tally(const int *assign, unsigned m, uint32_t *count, unsigned n)
{
	unsigned i;

	memset(count, 0, n * sizeof(*count));
	for (i = 0; i < m; i++) {
		assert_in_range(assign[i], 0, n - 1);
		count[assign[i]]++;
	}
}

#define LIST 1000u

/* Lists: shares to within one key; a loss moves only the lost pairs' keys, a return only the
 * newcomer's share, a repetition nothing; the order of the list does not matter. */
static void test_list(void **state)
{
	const uint32_t w[4] = {5, 3, 2, 1}, one[1] = {1};
	static uint64_t keys[LIST], turned[LIST];
	static int a[LIST], b[LIST], c[LIST];
	struct plan_pair p[64], q[64];
	uint32_t count[4], was[4];
	unsigned i, gone, m, n = mesh(p, w, 4, one, 1), moved;

	for (m = 1; m <= LIST; m = m * 3 + 1) {
		for (i = 0; i < m; i++) {
			keys[i] = key_of(i);
			turned[m - 1 - i] = keys[i];
			a[i] = c[i] = -1;
		}
		assert_int_equal(plan_spread_list(p, n, keys, m, a), m);
		assert_int_equal(plan_spread_list(p, n, turned, m, c), m);
		tally(a, m, was, n);
		for (i = 0; i < m; i++)
			assert_int_equal(a[i], c[m - 1 - i]);
		for (i = 0; i < n; i++)
			assert_true(fabs(was[i] - m * w[i] / 11.0) < 1);
		assert_int_equal(plan_spread_list(p, n, keys, m, a), 0);
		for (gone = 0; gone < n; gone++) {
			memcpy(q, p, sizeof(q));
			q[gone].weight = 0;
			memcpy(b, a, sizeof(b));
			assert_int_equal(plan_spread_list(q, n, keys, m, b), was[gone]);
			tally(b, m, count, n);
			assert_int_equal(count[gone], 0);
			for (i = 0; i < m; i++)
				assert_true(a[i] == (int)gone || a[i] == b[i]);
			for (i = 0; i < n; i++)
				assert_true(i == gone || fabs(count[i] - m * w[i] / (11.0 - w[gone])) < 1);
			/* Returned: only to the one that came back. */
			memcpy(c, b, sizeof(c));
			moved = (unsigned)plan_spread_list(p, n, keys, m, c);
			assert_true(moved <= was[gone] + 1);
			for (i = 0; i < m; i++)
				assert_true(b[i] == c[i] || c[i] == (int)gone);
		}
	}
}

/* Keys stay on their pair, above its share or not; new ones fill pairs below. */
static void test_stay(void **state)
{
	const uint32_t w[4] = {5, 3, 2, 1}, one[1] = {1};
	static uint64_t keys[LIST];
	static int a[LIST], b[LIST];
	struct plan_pair p[64];
	uint32_t count[4];
	unsigned i, n = mesh(p, w, 4, one, 1);

	for (i = 0; i < LIST; i++) {
		keys[i] = key_of(i);
		a[i] = i < 900 ? 3 : i < 950 ? 0 : -1;
	}
	memcpy(b, a, sizeof(b));
	assert_int_equal(plan_spread_stay(p, n, keys, LIST, b), 50);
	tally(b, LIST, count, n);
	for (i = 0; i < 950; i++)
		assert_int_equal(a[i], b[i]);
	assert_int_equal(count[3], 900);
	assert_int_equal(plan_spread_stay(p, n, keys, LIST, b), 0);
	/* The full one is lost: by shares. */
	p[3].weight = 0;
	assert_int_equal(plan_spread_stay(p, n, keys, LIST, b), 900);
	tally(b, LIST, count, n);
	for (i = 0; i < 3; i++)
		assert_true(fabs(count[i] - LIST * w[i] / 10.0) <= 1);
	for (i = 900; i < 950; i++)
		assert_int_equal(b[i], 0);
	p[0].weight = p[1].weight = p[2].weight = 0;
	assert_int_equal(plan_spread_stay(p, n, keys, LIST, b), RWY_EINVAL);
	assert_int_equal(plan_spread_stay(p, 0, keys, LIST, b), RWY_EINVAL);
}

static void test_list_refused(void **state)
{
	const uint32_t none[2] = {0, 0}, w[2] = {1, 1};
	uint64_t key = 1;
	struct plan_pair p[64];
	unsigned n = mesh(p, none, 2, w, 2);
	int a = -1;

	assert_int_equal(plan_spread_list(p, n, &key, 1, &a), RWY_EINVAL);
	assert_int_equal(plan_spread_list(p, 0, &key, 1, &a), RWY_EINVAL);
	n = mesh(p, w, 2, w, 2);
	a = 4711; /* an index outside is none */
	assert_int_equal(plan_spread_list(p, n, &key, 1, &a), 1);
	assert_in_range(a, 0, n - 1);
	assert_int_equal(plan_spread_list(p, n, &key, 0, &a), 0);
}

#define GBIT UINT64_C(1000000000)

static void weigh(const char *alg, const struct plan_gateway_load *g, unsigned n, uint32_t *w)
{
	const struct plan_weight_ops *o = plan_weight_find(alg);

	assert_non_null(o);
	o->weigh(g, n, w);
}

static void test_weights(void **state)
{
	const struct plan_gateway_load g[4] = {
	    {.up = true, .bandwidth_bps = 300 * GBIT, .rate_bps = 0},
	    {.up = true, .bandwidth_bps = 100 * GBIT, .rate_bps = 50 * GBIT, .cpu_ppm = 100000},
	    {.up = false, .bandwidth_bps = 400 * GBIT},
	    {.up = true, .bandwidth_bps = 0, .cpu_ppm = 2000000},
	};
	uint32_t w[4];

	weigh("equal", g, 4, w);
	assert_true(w[0] == w[1] && w[1] == w[3] && w[0] > 0 && w[2] == 0);
	weigh("bandwidth", g, 4, w);
	assert_true(w[0] == 3 * w[1]); /* exactly: shares of few connections depend on it */
	assert_true(w[2] == 0 && w[3] == 1);
	weigh("least", g, 4, w);
	/* Idle against half loaded: 3 x 8 to 1 x 4. */
	assert_true(fabs(w[0] / (double)w[1] - 6) < 0.01);
	assert_true(w[2] == 0 && w[3] == 1);
}

static void test_weights_stay_in_range(void **state)
{
	const struct plan_gateway_load g[3] = {
	    {.up = true, .bandwidth_bps = UINT64_MAX, .rate_bps = UINT64_MAX, .cpu_ppm = UINT32_MAX},
	    {.up = true, .bandwidth_bps = 1, .rate_bps = UINT64_MAX, .custody_ppm = UINT32_MAX},
	    {.up = true, .bandwidth_bps = UINT64_MAX},
	};
	const struct plan_weight_ops *o;
	uint32_t w[3];
	unsigned i, j;

	for (i = 0; (o = plan_weight_at(i)) != NULL; i++) {
		assert_ptr_equal(plan_weight_find(o->name), o);
		o->weigh(g, 3, w);
		for (j = 0; j < 3; j++)
			assert_in_range(w[j], 1, PLAN_WEIGHT_MAX);
		o->weigh(g, 0, w);
	}
	assert_int_equal(i, 3);
	assert_null(plan_weight_find("random"));
}

/* Registered bandwidths, 16 connections: 12 and 4, including weights. */
static void test_bandwidths_three_to_one(void **state)
{
	const struct plan_gateway_load g[2] = {
	    {.up = true, .bandwidth_bps = 30 * GBIT}, {.up = true, .bandwidth_bps = 10 * GBIT}};
	const uint32_t one[1] = {1};
	uint32_t w[2], count[2] = {0};
	struct plan_pair p[64];
	unsigned i;

	weigh("bandwidth", g, 2, w);
	(void)mesh(p, w, 2, one, 1);
	for (i = 0; i < 16; i++)
		count[plan_spread_next(p, 2, count, key_of(i))]++;
	assert_int_equal(count[0], 12);
}

/* Small changes of load do not change the weights: nothing moves. */
static void test_least_is_steady(void **state)
{
	struct plan_gateway_load g[2] = {
	    {.up = true, .bandwidth_bps = 100 * GBIT, .rate_bps = 31 * GBIT},
	    {.up = true, .bandwidth_bps = 100 * GBIT, .rate_bps = 60 * GBIT},
	};
	uint32_t w[2], v[2];

	weigh("least", g, 2, w);
	g[0].rate_bps += GBIT;
	g[1].rate_bps -= GBIT;
	weigh("least", g, 2, v);
	assert_memory_equal(w, v, sizeof(w));
	assert_true(w[0] > w[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_three_to_one),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_deterministic),
	    cmocka_unit_test(test_loss_moves_only_its_own),
	    cmocka_unit_test(test_weight_change_moves_one_way),
	    cmocka_unit_test(test_no_weight),
	    cmocka_unit_test(test_grain),
	    cmocka_unit_test(test_both_directions),
	    cmocka_unit_test(test_bounded_is_exact),
	    cmocka_unit_test(test_bounded_without_weight),
	    cmocka_unit_test(test_list),
	    cmocka_unit_test(test_stay),
	    cmocka_unit_test(test_list_refused),
	    cmocka_unit_test(test_weights),
	    cmocka_unit_test(test_weights_stay_in_range),
	    cmocka_unit_test(test_bandwidths_three_to_one),
	    cmocka_unit_test(test_least_is_steady),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
