/* SPDX-License-Identifier: Apache-2.0
 * Placement: a table of offers and demands, and what holds for every placement.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/plan/place.h"

#define G UINT64_C(1000000000)

/* A route: edge, name, free bandwidth, delay, jitter, loss. */
#define R(e, n, bps, us, j, ppm)                                                                             \
	{                                                                                                    \
		.edge = e, .name = n, .free_bps = bps, .delay_us = us, .jitter_us = j, .loss_ppm = ppm       \
	}

struct place_case {
	const char *name;
	struct plan_route route[5]; /* ends without an edge */
	struct plan_want want;
	enum plan_place_fail fail;
	enum plan_shape shape;
	uint64_t bps[5]; /* by route */
	uint64_t fits_bps;
	uint32_t fits_delay_us, fits_jitter_us, fits_loss_ppm;
};

static const struct place_case cases[] = {
    {"nothing offered", {R("", "", 0, 0, 0, 0)}, {G, 0, 0, 0}, PLAN_NO_ROUTE, 0, {0}, 0, 0, 0, 0},
    {"one path", {R("pe1", "a", 10 * G, 9000, 50, 1)}, {4 * G, 10000, 100, 10}, PLAN_PLACED, PLAN_SAME_PATH,
        {4 * G}, 10 * G, 9000, 50, 1},
    {"one path, full to the bit", {R("pe1", "a", 10 * G, 9000, 50, 1)}, {10 * G, 0, 0, 0}, PLAN_PLACED,
        PLAN_SAME_PATH, {10 * G}, 10 * G, 9000, 50, 1},
    {"a bit too much", {R("pe1", "a", 10 * G, 9000, 50, 1)}, {10 * G + 1, 0, 0, 0}, PLAN_NO_BANDWIDTH,
        PLAN_SAME_PATH, {0}, 10 * G, 9000, 50, 1},
    {"both edges, the best path of each, by what they have",
        {R("pe1", "a", 10 * G, 1, 0, 0), R("pe1", "b", 30 * G, 1, 0, 0), R("pe2", "a", 10 * G, 1, 0, 0)},
        {20 * G, 0, 0, 0}, PLAN_PLACED, PLAN_SAME_PATH, {0, 15 * G, 5 * G}, 50 * G, 1, 0, 0},
    {"same-path is not enough: all paths by bandwidth",
        {R("pe1", "a", 10 * G, 1, 0, 0), R("pe1", "b", 30 * G, 1, 0, 0), R("pe2", "a", 10 * G, 1, 0, 0)},
        {45 * G, 0, 0, 0}, PLAN_PLACED, PLAN_MULTI_PATH, {9 * G, 27 * G, 9 * G}, 50 * G, 1, 0, 0},
    {"all of them are not enough",
        {R("pe1", "a", 10 * G, 1, 0, 0), R("pe1", "b", 30 * G, 1, 0, 0), R("pe2", "a", 10 * G, 1, 0, 0)},
        {51 * G, 0, 0, 0}, PLAN_NO_BANDWIDTH, PLAN_SAME_PATH, {0}, 50 * G, 1, 0, 0},
    {"too far", {R("pe1", "a", 10 * G, 12000, 5, 0), R("pe2", "a", 10 * G, 11000, 5, 0)}, {G, 10000, 0, 0},
        PLAN_NO_DELAY, 0, {0}, 0, 11000, 0, 0},
    {"too unsteady", {R("pe1", "a", 10 * G, 9000, 500, 0), R("pe2", "a", 10 * G, 11000, 5, 0)},
        {G, 10000, 100, 0}, PLAN_NO_JITTER, 0, {0}, 0, 9000, 500, 0},
    {"loses too much", {R("pe1", "a", 10 * G, 9000, 5, 50)}, {G, 10000, 100, 10}, PLAN_NO_LOSS, 0, {0}, 0,
        9000, 5, 50},
    {"bounds leave one path of two",
        {R("pe1", "near", 2 * G, 5000, 5, 0), R("pe1", "far", 90 * G, 25000, 5, 0)}, {2 * G, 10000, 0, 0},
        PLAN_PLACED, PLAN_SAME_PATH, {2 * G, 0}, 2 * G, 5000, 5, 0},
    {"bounds leave too little", {R("pe1", "near", 2 * G, 5000, 5, 0), R("pe1", "far", 90 * G, 25000, 5, 0)},
        {3 * G, 10000, 0, 0}, PLAN_NO_BANDWIDTH, 0, {0}, 2 * G, 5000, 5, 0},
    {"a full path is none", {R("pe1", "a", 0, 1, 0, 0), R("pe2", "b", G, 7, 0, 0)}, {G, 0, 0, 0}, PLAN_PLACED,
        PLAN_SAME_PATH, {0, G}, G, 7, 0, 0},
    {"all are full", {R("pe1", "a", 0, 1, 0, 0)}, {G, 0, 0, 0}, PLAN_NO_BANDWIDTH, 0, {0}, 0, 0, 0, 0},
    {"equals: the shorter, then the name",
        {R("pe1", "b", G, 5, 0, 0), R("pe1", "a", G, 5, 0, 0), R("pe1", "c", G, 6, 0, 0)}, {G, 0, 0, 0},
        PLAN_PLACED, PLAN_SAME_PATH, {0, G, 0}, 3 * G, 5, 0, 0},
    {"odd bits", {R("pe1", "a", 3, 1, 0, 0), R("pe2", "a", 3, 1, 0, 0), R("pe3", "a", 3, 1, 0, 0)},
        {7, 0, 0, 0}, PLAN_PLACED, PLAN_SAME_PATH, {3, 2, 2}, 9, 1, 0, 0},
};

static void test_table(void **state)
{
	static struct plan_placement pl;
	unsigned i, k, n;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct place_case *c = &cases[i];
		uint64_t bps[5] = {0};

		for (n = 0; n < 5 && c->route[n].edge[0]; n++)
			;
		assert_int_equal(plan_place(&pl, &c->want, c->route, n), 0);
		for (k = 0; k < pl.n; k++)
			bps[pl.leg[k].route] = pl.leg[k].bps;
		if (pl.fail != c->fail || (c->fail == PLAN_PLACED && pl.shape != c->shape) ||
		    memcmp(bps, c->bps, sizeof(bps)))
			fail_msg("%s: %s, %s, %llu %llu %llu", c->name, plan_place_fail_text(pl.fail),
			    plan_shape_name(pl.shape), (unsigned long long)bps[0], (unsigned long long)bps[1],
			    (unsigned long long)bps[2]);
		if (pl.fits_bps != c->fits_bps || pl.fits_delay_us != c->fits_delay_us ||
		    pl.fits_jitter_us != c->fits_jitter_us || pl.fits_loss_ppm != c->fits_loss_ppm)
			fail_msg("%s: would fit %llu, %u us, %u us, %u ppm", c->name,
			    (unsigned long long)pl.fits_bps, pl.fits_delay_us, pl.fits_jitter_us,
			    pl.fits_loss_ppm);
	}
}

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Random offers: the placed rate equals the demand, within the limits and each path's bandwidth;
 * the demand reported as fitting does fit; a larger one does not. */
static void test_whatever_is_offered(void **state)
{
	static struct plan_route r[PLAN_ROUTES_MAX];
	static struct plan_placement pl, again;
	struct plan_want w;
	uint64_t x = 42, sum;
	unsigned t, i, n, placed = 0;

	for (t = 0; t < 3000; t++) {
		n = (unsigned)(next(&x) % (t % 50 ? 12 : PLAN_ROUTES_MAX + 1));
		for (i = 0; i < n; i++) {
			memset(&r[i], 0, sizeof(r[i]));
			snprintf(r[i].edge, sizeof(r[i].edge), "pe%u", (unsigned)(next(&x) % 4));
			snprintf(r[i].name, sizeof(r[i].name), "p%u", i);
			r[i].free_bps = next(&x) >> (next(&x) % 64);
			r[i].delay_us = (uint32_t)(next(&x) % 50000);
			r[i].jitter_us = (uint32_t)(next(&x) % 500);
		}
		w = (struct plan_want){1 + (next(&x) >> (next(&x) % 64)), (uint32_t)(next(&x) % 2 * 25000),
		    (uint32_t)(next(&x) % 2 * 250), 0};
		if (w.bandwidth_bps == 0)
			w.bandwidth_bps = 1;
		assert_int_equal(plan_place(&pl, &w, r, n), 0);
		for (i = 0, sum = 0; i < pl.n; i++) {
			assert_true(pl.leg[i].route < n && pl.leg[i].bps > 0);
			assert_true(pl.leg[i].bps <= r[pl.leg[i].route].free_bps);
			assert_true(!w.delay_us || r[pl.leg[i].route].delay_us <= w.delay_us);
			assert_true(!w.jitter_us || r[pl.leg[i].route].jitter_us <= w.jitter_us);
			sum += pl.leg[i].bps;
		}
		assert_int_equal(sum, pl.fail == PLAN_PLACED ? w.bandwidth_bps : 0);
		placed += pl.fail == PLAN_PLACED;
		if (pl.fits_bps) {
			w.bandwidth_bps = pl.fits_bps;
			assert_int_equal(plan_place(&again, &w, r, n), 0);
			assert_int_equal(again.fail, PLAN_PLACED);
			w.bandwidth_bps++;
			assert_int_equal(plan_place(&again, &w, r, n), 0);
			assert_int_equal(again.fail, PLAN_NO_BANDWIDTH);
		}
	}
	assert_true(placed > 500 && placed < 2500);
}

static void test_refused(void **state)
{
	static struct plan_route r[PLAN_ROUTES_MAX + 1];
	static struct plan_placement pl;
	const struct plan_want some = {1, 0, 0, 0}, none = {0};

	assert_int_equal(plan_place(&pl, &some, r, PLAN_ROUTES_MAX + 1), RWY_EINVAL);
	assert_int_equal(plan_place(&pl, &none, r, 1), RWY_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_whatever_is_offered),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
