/* SPDX-License-Identifier: Apache-2.0
 * Jobs: which fit and which are refused, what would fit instead, and the book of what they use.
 * test_plan_job_rows.c has the gateways of each pair, test_plan_job_ranks.c the rank tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/job_world.h"

struct job_case {
	const char *name;
	uint64_t gw0; /* first gateway of the first site; the others as in job_world() */
	uint32_t rtt_us;
	unsigned n_routes; /* 0: no request to the network */
	struct plan_route route[2];
	struct plan_triple want; /* of each of 4 pairs */
	enum plan_job_fail fail;
	struct plan_want fits; /* if it fails */
};

static const struct job_case cases[] = {
    {"fits", 300 * G, 20000, 0, {{.free_bps = 0}}, {10 * G, 12000, 500}, PLAN_JOB_FITS, {0}},
    {"too far", 300 * G, 30002, 0, {{.free_bps = 0}}, {10 * G, 15000, 500}, PLAN_JOB_DELAY,
        {0, 15001, 40, 0}},
    {"too unsteady", 300 * G, 20000, 0, {{.free_bps = 0}}, {10 * G, 0, 39}, PLAN_JOB_JITTER,
        {0, 10000, 40, 0}},
    {"nobody knows how far", 300 * G, 0, 0, {{.free_bps = 0}}, {10 * G, 40000, 0}, PLAN_JOB_DELAY,
        {0, 0, 0, 0}},
    {"nobody knows, nobody asks", 300 * G, 0, 0, {{.free_bps = 0}}, {10 * G, 0, 0}, PLAN_JOB_FITS, {0}},
    {"more than both sites", 300 * G, 20000, 0, {{.free_bps = 0}}, {101 * G, 0, 0}, PLAN_JOB_GOODPUT,
        {0, 10000, 40, 0}},
    {"a site has no gateway", 0, 20000, 0, {{.free_bps = 0}}, {G, 0, 0}, PLAN_JOB_NO_GATEWAY, {0, 0, 0, 0}},
    {"the network has it", 300 * G, 0, 1, {LEG("pe-1", "p", 100 * G, 10020)}, {20 * G, 12000, 500},
        PLAN_JOB_FITS, {0}},
    {"the network lacks the bandwidth", 300 * G, 0, 1, {LEG("pe-1", "p", 50 * G, 10020)},
        {20 * G, 12000, 500}, PLAN_JOB_NETWORK, {45995400000, 10020, 50, 0}},
    {"the network's paths are too long", 300 * G, 0, 2,
        {LEG("pe-1", "p", 50 * G, 20020), LEG("pe-2", "p", 50 * G, 30020)}, {G, 12000, 500}, PLAN_JOB_NETWORK,
        {0, 20020, 0, 0}},
};

static void test_table(void **state)
{
	struct plan_job_pair pairs[4];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 4};
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct job_case *c = &cases[i];
		struct job_world w = job_world();
		struct plan_job_result *r;
		const struct plan_want *f;

		w.gw_bps[0][0] = c->gw0;
		if (!c->gw0)
			w.gw_bps[0][1] = 0;
		w.rtt_us = c->rtt_us;
		w.network = c->n_routes;
		w.n_routes = c->n_routes;
		memcpy(w.route, c->route, sizeof(c->route));
		job_pairs(pairs, 4, 1, 3, c->want);
		r = job_plan(&w, &job);
		f = &r->groups[0].fits;
		if (r->fail != c->fail || r->n_groups != 1)
			fail_msg("%s: %s", c->name, plan_job_fail_text(r->fail));
		if (c->fail != PLAN_JOB_FITS &&
		    (f->delay_us != c->fits.delay_us || f->jitter_us != c->fits.jitter_us ||
		        (c->fits.bandwidth_bps && f->bandwidth_bps != c->fits.bandwidth_bps)))
			fail_msg("%s: would fit %llu bit/s, %u us, %u us", c->name,
			    (unsigned long long)f->bandwidth_bps, f->delay_us, f->jitter_us);
		assert_int_equal(r->n_claims != 0, c->fail == PLAN_JOB_FITS);
		plan_job_free(r);
	}
}

/* A job that names a carrier goes by it where gateways have it and no other job holds their tunnel
 * to another one, or not at all. */
static void test_carrier(void **state)
{
	struct plan_job_pair pairs[4];
	struct plan_job job = {.name = "j",
	    .grain = PLAN_GRAIN_ADDRESS,
	    .pairs = pairs,
	    .n = 4,
	    .has_carrier = true,
	    .carrier = PLAN_TCP};
	struct job_world w = job_world();
	struct plan_job_result *r;

	job_pairs(pairs, 4, 1, 3, (struct plan_triple){G, 0, 0});
	r = job_plan(&w, &job); /* nobody has it */
	assert_int_equal(r->fail, PLAN_JOB_CARRIER);
	plan_job_free(r);
	w.tcp_bps = 100 * G;
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	assert_int_equal(r->groups[0].decision.carrier, PLAN_TCP);
	plan_job_free(r);
	w.held = PLAN_NATIVE; /* around that tunnel */
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	for (unsigned i = 0; i < 4; i++)
		assert_true(r->rows[i].first || r->rows[i].second);
	plan_job_free(r);
	w.gw_bps[0][1] = w.gw_bps[2][1] = 0; /* there is no other */
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_CARRIER);
	assert_int_equal(r->groups[0].fits.bandwidth_bps, 0);
	plan_job_free(r);
	job.carrier = PLAN_NATIVE;
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	job.has_carrier = false; /* it takes the tunnel as it is */
	w.held = PLAN_TCP;
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
}

/* A network's promise of a path is for all jobs together, and is free again after one of
 * them. */
static void test_promise(void **state)
{
	struct plan_job_pair pairs[4];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 4};
	struct job_world w = job_world();
	struct plan_job_result *first, *r;

	w.promised_bps = 100 * G;
	assert_int_equal(plan_book_new(&w.book), 0);
	job_pairs(pairs, 4, 1, 3, (struct plan_triple){15 * G, 0, 0});
	first = job_plan(&w, &job);
	assert_int_equal(first->fail, PLAN_JOB_FITS);
	assert_int_equal(plan_book_claim(w.book, first->claims, first->n_claims), 0);
	r = job_plan(&w, &job); /* 60 of 92 Gbit/s of payload are gone */
	assert_int_equal(r->fail, PLAN_JOB_GOODPUT);
	assert_in_range(r->groups[0].fits.bandwidth_bps, 31 * G, 32 * G);
	plan_job_free(r);
	job_pairs(pairs, 4, 1, 3, (struct plan_triple){31 * G / 4, 0, 0});
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	job_pairs(pairs, 4, 1, 2, (struct plan_triple){15 * G, 0, 0}); /* another path */
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	plan_book_release(w.book, first->claims, first->n_claims);
	job_pairs(pairs, 4, 1, 3, (struct plan_triple){23 * G - 1, 0, 0});
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	plan_job_free(first);
	plan_book_free(w.book);
}

/* The demand reported as fitting is accepted, and no more. */
static void test_fits_is_true(void **state)
{
	struct plan_job_pair pairs[4];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 4};
	static const struct plan_route p = LEG("pe-1", "p", 100 * G, 10020);
	struct plan_job_result *r;
	unsigned network, more;
	uint64_t most;

	for (network = 0; network < 2; network++) {
		struct job_world w = job_world();

		w.network = network;
		w.route[0] = p;
		w.n_routes = 1;
		job_pairs(pairs, 4, 1, 3, (struct plan_triple){200 * G, 0, 0});
		r = job_plan(&w, &job);
		assert_int_not_equal(r->fail, PLAN_JOB_FITS);
		most = r->groups[0].fits.bandwidth_bps;
		plan_job_free(r);
		assert_true(most > 80 * G && most < 800 * G);
		for (more = 0; more < 2; more++) {
			job_pairs(pairs, 4, 1, 3, (struct plan_triple){most / 4 + more * G / 100, 0, 0});
			r = job_plan(&w, &job);
			assert_int_equal(r->fail == PLAN_JOB_FITS, !more);
			plan_job_free(r);
		}
	}
}

static void test_three_sites(void **state)
{
	struct plan_job_pair pairs[9];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 9};
	struct job_world w = job_world();
	struct plan_job_result *r;
	unsigned i;

	job_pairs(pairs, 4, 1, 2, (struct plan_triple){20 * G, 0, 0});
	job_pairs(pairs + 4, 4, 2, 3, (struct plan_triple){20 * G, 0, 0});
	job_pairs(pairs + 8, 1, 1, 1, (struct plan_triple){G, 0, 0});
	r = job_plan(&w, &job);
	/* cluster2 has 100 Gbit/s; each group alone fits, both do not. */
	assert_int_equal(r->n_groups, 2);
	assert_int_equal(r->rows[8].group, -1);
	assert_int_equal(r->groups[0].fail, PLAN_JOB_FITS);
	assert_int_not_equal(r->groups[1].fail, PLAN_JOB_FITS);
	assert_int_equal(r->groups[1].fits.bandwidth_bps / G, 20);
	plan_job_free(r);
	for (i = 0; i < 8; i++)
		pairs[i].want.bandwidth_bps = 12 * G;
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	pairs[3].b = rwy_ip_from4((uint8_t[4]){192, 0, 2, 1});
	r = job_plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_NO_SITE);
	assert_int_equal(r->fail_pair, 3);
	plan_job_free(r);
}

static void test_refused(void **state)
{
	struct plan_job_pair pairs[2];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 0};
	struct plan_job_result *r;
	struct plan_policy p;
	struct job_world w = job_world();

	plan_policy_default(&p);
	job_pairs(pairs, 2, 1, 3, (struct plan_triple){G, 0, 0});
	assert_int_equal(plan_job_new(&r, &job, &p, &job_world_ops, &w, T), RWY_EINVAL);
	job.n = PLAN_JOB_PAIRS_MAX + 1;
	assert_int_equal(plan_job_new(&r, &job, &p, &job_world_ops, &w, T), RWY_EINVAL);
	job.n = 2;
	pairs[1].want.bandwidth_bps = 0;
	assert_int_equal(plan_job_new(&r, &job, &p, &job_world_ops, &w, T), RWY_EINVAL);
	assert_null(r);
}

/* Jobs until it is full; the last is refused; a withdrawal makes room for exactly that one. */
static void test_book(void **state)
{
	struct plan_job_pair pairs[4];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 4};
	static const struct plan_route p = LEG("pe-1", "p", 100 * G, 10020);
	struct plan_job_result *r[8];
	struct job_world w = job_world();
	unsigned n;

	w.network = true;
	w.route[0] = p;
	w.n_routes = 1;
	assert_int_equal(plan_book_new(&w.book), 0);
	/* 20 payload, some 21.7 at the edge: four of them */
	job_pairs(pairs, 4, 1, 3, (struct plan_triple){5 * G, 0, 0});
	for (n = 0; n < 8; n++) {
		r[n] = job_plan(&w, &job);
		if (r[n]->fail != PLAN_JOB_FITS)
			break;
		assert_int_equal(plan_book_claim(w.book, r[n]->claims, r[n]->n_claims), 0);
	}
	assert_int_equal(n, 4);
	assert_int_equal(r[4]->fail, PLAN_JOB_NETWORK);
	plan_job_free(r[4]);
	plan_book_release(w.book, r[1]->claims, r[1]->n_claims);
	r[4] = job_plan(&w, &job);
	assert_int_equal(r[4]->fail, PLAN_JOB_FITS);
	for (n = 0; n < 4; n++) {
		plan_book_release(w.book, r[n]->claims, r[n]->n_claims);
		plan_job_free(r[n]);
	}
	plan_job_free(r[4]);
	assert_int_equal(plan_book_claimed(w.book, "gw/gw-qingyang-0"), 0);
	plan_book_free(w.book);
}

/* Many names, claimed and released: sums are right, and released names leave room. */
static void test_book_many(void **state)
{
	struct plan_claim t[3];
	struct plan_book *b;
	unsigned i, round;

	assert_int_equal(plan_book_new(&b), 0);
	memset(t, 0, sizeof(t));
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 5000; i++) {
			snprintf(t[0].name, sizeof(t[0].name), "gw/%u/%u", round, i);
			t[0].bps = i + 1;
			strncpy(t[1].name, "gw/all", sizeof(t[1].name) - 1);
			t[1].bps = 2;
			assert_int_equal(plan_book_claim(b, t, 3), 0); /* the third has no name */
		}
		assert_int_equal(plan_book_claimed(b, "gw/all"), 10000);
		for (i = 0; i < 5000; i++) {
			snprintf(t[0].name, sizeof(t[0].name), "gw/%u/%u", round, i);
			assert_int_equal(plan_book_claimed(b, t[0].name), i + 1);
			t[0].bps = i + 1;
			plan_book_release(b, t, 3);
			assert_int_equal(plan_book_claimed(b, t[0].name), 0);
		}
	}
	t[1].bps = UINT64_MAX;
	assert_int_equal(plan_book_claim(b, &t[1], 1), 0);
	assert_int_equal(plan_book_claim(b, &t[1], 1), 0);
	assert_int_equal(plan_book_claimed(b, "gw/all"), UINT64_MAX);
	assert_int_equal(plan_book_claimed(b, ""), 0);
	plan_book_free(b);
	plan_book_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_carrier),
	    cmocka_unit_test(test_promise),
	    cmocka_unit_test(test_fits_is_true),
	    cmocka_unit_test(test_three_sites),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_book),
	    cmocka_unit_test(test_book_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
