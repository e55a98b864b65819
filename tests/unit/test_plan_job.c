/* SPDX-License-Identifier: Apache-2.0
 * Jobs: rank tables, plans and refusals over a small world of three sites, the white paper's sample, and the
 * book.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "controller/plan/book.h"
#include "controller/plan/job.h"

#define T (1000 * RWY_SEC)
#define G UINT64_C(1000000000)

static struct rwy_ip ip(const char *text)
{
	uint8_t b[4];

	assert_int_equal(inet_pton(AF_INET, text, b), 1);
	return rwy_ip_from4(b);
}

/* Three sites 10.1/16, 10.2/16, 10.3/16; the gateways' bandwidth; the measured path; the network's
 * paths. */
struct world {
	uint64_t gw_bps[3][2];                /* 0: does not exist */
	uint64_t tcp_bps;                     /* besides native, of every gateway */
	uint32_t rtt_us, jitter_us, loss_ppm; /* rtt 0: not measured */
	uint64_t promised_bps;                /* of the path; 0: it is an internet path */
	enum plan_carrier held;               /* other jobs hold the tunnel of the first two gateways to it */
	bool network;
	struct plan_route route[4]; /* between any two sites */
	unsigned n_routes;
	struct plan_book *book;
	char name[3][2][PLAN_NAME_MAX];
};

static const char *const sites[3] = {"qingyang", "cluster2", "hangzhou"};

static const char *site_of(void *ctx, const struct rwy_ip *a)
{
	return a->b[12] == 10 && a->b[13] >= 1 && a->b[13] <= 3 ? sites[a->b[13] - 1] : NULL;
}

static unsigned gateways(void *ctx, const char *site, struct plan_gateway *out, unsigned max)
{
	struct world *w = ctx;
	char take[5 * PLAN_NAME_MAX];
	unsigned s, i, n = 0;

	for (s = 0; strcmp(sites[s], site) != 0; s++)
		;
	for (i = 0; i < 2; i++) {
		if (w->gw_bps[s][i] == 0)
			continue;
		assert_true(n < max);
		snprintf(w->name[s][i], PLAN_NAME_MAX, "gw-%s-%u", site, i);
		out[n] =
		    (struct plan_gateway){.id = plan_id(w->name[s][i]), .name = w->name[s][i], .weight = 0};
		out[n].caps.bandwidth_bps[PLAN_NATIVE] = w->gw_bps[s][i];
		out[n].caps.bandwidth_bps[PLAN_TCP] = w->tcp_bps;
		out[n].weight = (uint32_t)(w->gw_bps[s][i] / G);
		plan_book_gateway(take, sizeof(take), w->name[s][i]);
		out[n].claimed_bps = w->book ? plan_book_claimed(w->book, take) : 0;
		n++;
	}
	return n;
}

static void path(void *ctx, const char *first, const char *second, struct plan_path *out)
{
	struct world *w = ctx;
	struct plan_obs o = {.source = 1,
	    .carrier = PLAN_ANY,
	    .has = PLAN_HAS_RTT | PLAN_HAS_JITTER | PLAN_HAS_LOSS,
	    .at = T,
	    .rtt_us = w->rtt_us,
	    .jitter_us = w->jitter_us,
	    .loss_ppm = w->loss_ppm};

	assert_true(plan_first_site(first, second));
	if (w->promised_bps) {
		o.pushed = true;
		o.cls = PLAN_DETERMINISTIC;
		o.has |= PLAN_HAS_BANDWIDTH;
		o.bandwidth_bps = w->promised_bps;
	}
	plan_path_merge(out, &o, w->rtt_us != 0, T);
}

static uint64_t path_claimed(void *ctx, const char *first, const char *second)
{
	const struct world *w = ctx;
	char name[5 * PLAN_NAME_MAX];

	plan_book_path(name, sizeof(name), first, second);
	return w->book ? plan_book_claimed(w->book, name) : 0;
}

static int routes(void *ctx, const char *first, const char *second, struct plan_route *out, unsigned max)
{
	struct world *w = ctx;
	char take[5 * PLAN_NAME_MAX];
	uint64_t taken;
	unsigned i;

	if (!w->network)
		return RWY_ENOENT;
	for (i = 0; i < w->n_routes; i++) {
		out[i] = w->route[i];
		plan_book_route(take, sizeof(take), first, second, out[i].edge, out[i].name);
		taken = w->book ? plan_book_claimed(w->book, take) : 0;
		out[i].free_bps = out[i].free_bps > taken ? out[i].free_bps - taken : 0;
	}
	return (int)w->n_routes;
}

static bool pair_takes(void *ctx, const char *first, const char *second, enum plan_carrier carrier)
{
	const struct world *w = ctx;

	return w->held == PLAN_ANY || w->held == carrier || first[strlen(first) - 1] != '0' ||
	       second[strlen(second) - 1] != '0';
}

static const struct plan_world_ops ops = {.site_of = site_of,
    .gateways = gateways,
    .path = path,
    .path_claimed = path_claimed,
    .routes = routes,
    .pair_takes = pair_takes};

static struct world world(void)
{
	struct world w = {.gw_bps = {{300 * G, 100 * G}, {100 * G, 0}, {300 * G, 100 * G}},
	    .rtt_us = 20000,
	    .jitter_us = 40,
	    .held = PLAN_ANY};

	return w;
}

static struct plan_job_result *plan(struct world *w, const struct plan_job *job)
{
	struct plan_job_result *r = NULL;
	struct plan_policy p;

	plan_policy_default(&p);
	assert_int_equal(plan_job_new(&r, job, &p, &ops, w, T), 0);
	assert_non_null(r);
	return r;
}

/* n pairs between 10.A.0.x and 10.B.1.x. */
static void fill(struct plan_job_pair *p, unsigned n, unsigned a, unsigned b, struct plan_triple want)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const uint8_t x[4] = {10, (uint8_t)a, 0, (uint8_t)i}, y[4] = {10, (uint8_t)b, 1, (uint8_t)i};

		p[i] = (struct plan_job_pair){rwy_ip_from4(x), rwy_ip_from4(y), want, 0, 0};
	}
}

struct job_case {
	const char *name;
	uint64_t gw0; /* first gateway of the first site; the others as in world() */
	uint32_t rtt_us;
	unsigned n_routes; /* 0: no request to the network */
	struct plan_route route[2];
	struct plan_triple want; /* of each of 4 pairs */
	enum plan_job_fail fail;
	struct plan_want fits; /* if it fails */
};

#define LEG(e, n, bps, us)                                                                                   \
	{                                                                                                    \
		.edge = e, .name = n, .free_bps = (bps), .delay_us = (us), .jitter_us = 50                   \
	}

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
		struct world w = world();
		struct plan_job_result *r;
		const struct plan_want *f;

		w.gw_bps[0][0] = c->gw0;
		if (!c->gw0)
			w.gw_bps[0][1] = 0;
		w.rtt_us = c->rtt_us;
		w.network = c->n_routes;
		w.n_routes = c->n_routes;
		memcpy(w.route, c->route, sizeof(c->route));
		fill(pairs, 4, 1, 3, c->want);
		r = plan(&w, &job);
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

/* Planned again: pairs stay where possible, those of a lost gateway move, and all are placed though
 * nothing is free. */
static void test_again(void **state)
{
	struct plan_job_pair pairs[8];
	struct plan_pair now[8];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 8};
	struct world w = world();
	struct plan_job_result *r;
	struct plan_claim full;
	unsigned i;

	fill(pairs, 8, 1, 3, (struct plan_triple){G, 0, 0});
	r = plan(&w, &job);
	for (i = 0; i < 8; i++) /* all on the smaller gateways, except one without a place */
		now[i] = (struct plan_pair){r->groups[0].gw[0][1].id, r->groups[0].gw[1][1].id, 0};
	plan_job_free(r);
	now[5] = (struct plan_pair){0, 0, 0};
	job.now = now;
	job.stay = true;
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	for (i = 0; i < 8; i++)
		assert_int_equal(r->rows[i].first == 1 && r->rows[i].second == 1, i != 5);
	plan_job_free(r);
	w.gw_bps[0][1] = 0; /* lost, and the other one is full */
	assert_int_equal(plan_book_new(&w.book), 0);
	plan_book_gateway(full.name, sizeof(full.name), "gw-qingyang-0");
	full.bps = 300 * G;
	assert_int_equal(plan_book_claim(w.book, &full, 1), 0);
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_GATEWAY);
	assert_int_equal(r->n_claims, 0);
	for (i = 0; i < 8; i++)
		assert_true(r->rows[i].first < 2 && r->rows[i].second == 0); /* hangzhou is first */
	plan_job_free(r);
	job.now = NULL; /* as a new job it does not fit */
	job.stay = false;
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_NO_CARRIER);
	assert_int_equal(r->rows[0].first, PLAN_JOB_ANY_GATEWAY);
	plan_job_free(r);
	plan_book_free(w.book);
}

/* The demand reported as fitting is accepted, and no more. */
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
	struct world w = world();
	struct plan_job_result *r;

	fill(pairs, 4, 1, 3, (struct plan_triple){G, 0, 0});
	r = plan(&w, &job); /* nobody has it */
	assert_int_equal(r->fail, PLAN_JOB_CARRIER);
	plan_job_free(r);
	w.tcp_bps = 100 * G;
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	assert_int_equal(r->groups[0].decision.carrier, PLAN_TCP);
	plan_job_free(r);
	w.held = PLAN_NATIVE; /* around that tunnel */
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	for (unsigned i = 0; i < 4; i++)
		assert_true(r->rows[i].first || r->rows[i].second);
	plan_job_free(r);
	w.gw_bps[0][1] = w.gw_bps[2][1] = 0; /* there is no other */
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_CARRIER);
	assert_int_equal(r->groups[0].fits.bandwidth_bps, 0);
	plan_job_free(r);
	job.carrier = PLAN_NATIVE;
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	job.has_carrier = false; /* it takes the tunnel as it is */
	w.held = PLAN_TCP;
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
}

/* What a network promises of a path is for all jobs together, and is free again after one of them. */
static void test_promise(void **state)
{
	struct plan_job_pair pairs[4];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 4};
	struct world w = world();
	struct plan_job_result *first, *r;

	w.promised_bps = 100 * G;
	assert_int_equal(plan_book_new(&w.book), 0);
	fill(pairs, 4, 1, 3, (struct plan_triple){15 * G, 0, 0});
	first = plan(&w, &job);
	assert_int_equal(first->fail, PLAN_JOB_FITS);
	assert_int_equal(plan_book_claim(w.book, first->claims, first->n_claims), 0);
	r = plan(&w, &job); /* 60 of 92 Gbit/s of payload are gone */
	assert_int_equal(r->fail, PLAN_JOB_GOODPUT);
	assert_in_range(r->groups[0].fits.bandwidth_bps, 31 * G, 32 * G);
	plan_job_free(r);
	fill(pairs, 4, 1, 3, (struct plan_triple){31 * G / 4, 0, 0});
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	fill(pairs, 4, 1, 2, (struct plan_triple){15 * G, 0, 0}); /* another path */
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	plan_book_release(w.book, first->claims, first->n_claims);
	fill(pairs, 4, 1, 3, (struct plan_triple){23 * G - 1, 0, 0});
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	plan_job_free(first);
	plan_book_free(w.book);
}

static void test_fits_is_true(void **state)
{
	struct plan_job_pair pairs[4];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 4};
	static const struct plan_route p = LEG("pe-1", "p", 100 * G, 10020);
	struct plan_job_result *r;
	unsigned network, more;
	uint64_t most;

	for (network = 0; network < 2; network++) {
		struct world w = world();

		w.network = network;
		w.route[0] = p;
		w.n_routes = 1;
		fill(pairs, 4, 1, 3, (struct plan_triple){200 * G, 0, 0});
		r = plan(&w, &job);
		assert_int_not_equal(r->fail, PLAN_JOB_FITS);
		most = r->groups[0].fits.bandwidth_bps;
		plan_job_free(r);
		assert_true(most > 80 * G && most < 800 * G);
		for (more = 0; more < 2; more++) {
			fill(pairs, 4, 1, 3, (struct plan_triple){most / 4 + more * G / 100, 0, 0});
			r = plan(&w, &job);
			assert_int_equal(r->fail == PLAN_JOB_FITS, !more);
			plan_job_free(r);
		}
	}
}

static void test_rows(void **state)
{
	struct plan_job_pair pairs[16];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 16};
	struct world w = world();
	struct plan_job_result *r, *back;
	unsigned i, side, count[2] = {0};
	struct rwy_ip a;

	fill(pairs, 16, 1, 3, (struct plan_triple){G, 0, 0});
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	assert_string_equal(r->groups[0].first, "hangzhou");
	for (i = 0; i < 16; i++) {
		assert_true(r->rows[i].group == 0 && r->rows[i].swapped);
		count[r->rows[i].first]++;
	}
	/* Mesh 9:3:3:1: exactly, and so 3:1 at each side. */
	assert_int_equal(count[0], 12);
	for (side = 0; side < 2; side++) {
		assert_int_equal(r->groups[0].gw_bps[side][0], 12 * G);
		assert_int_equal(r->groups[0].gw_bps[side][1], 4 * G);
	}
	/* In the other direction: the same gateways. */
	for (i = 0; i < 16; i++) {
		a = pairs[i].a;
		pairs[i].a = pairs[i].b;
		pairs[i].b = a;
	}
	back = plan(&w, &job);
	for (i = 0; i < 16; i++) {
		assert_int_equal(back->rows[i].first, r->rows[i].first);
		assert_int_equal(back->rows[i].second, r->rows[i].second);
		assert_false(back->rows[i].swapped);
	}
	plan_job_free(r);
	plan_job_free(back);
}

static void test_grains(void **state)
{
	struct plan_job_pair pairs[16];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_NIC, .pairs = pairs, .n = 16};
	struct world w = world();
	struct plan_job_result *r;
	unsigned i;

	/* Eight NICs of the first site (by name: hangzhou), each in two pairs: the two stay together. */
	fill(pairs, 16, 1, 3, (struct plan_triple){G, 0, 0});
	for (i = 8; i < 16; i++)
		pairs[i].b = pairs[i - 8].b;
	r = plan(&w, &job);
	for (i = 8; i < 16; i++)
		assert_true(
		    r->rows[i].first == r->rows[i - 8].first && r->rows[i].second == r->rows[i - 8].second);
	plan_job_free(r);
	job.grain = PLAN_GRAIN_QP;
	r = plan(&w, &job);
	assert_int_equal(r->rows[0].first, PLAN_JOB_ANY_GATEWAY);
	assert_int_equal(r->groups[0].gw_bps[0][0], 12 * G);
	assert_int_equal(r->groups[0].gw_bps[1][1], 4 * G);
	plan_job_free(r);
}

/* Named queue pairs have a pair of gateways each, by weight; unnamed ones share the rest. */
static void test_named_qps(void **state)
{
	struct plan_job_pair pairs[17];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_QP, .pairs = pairs, .n = 17};
	struct plan_pair now[17] = {{0, 0, 0}};
	struct world w = world();
	struct plan_job_result *r, *again;
	unsigned i, on[2][2] = {{0}}, moved = 0;

	fill(pairs, 17, 1, 3, (struct plan_triple){G, 0, 0});
	for (i = 0; i < 16; i++) {
		pairs[i].b = pairs[0].b;
		pairs[i].a = pairs[0].a;
		pairs[i].a_qpn = 100 + i;
		pairs[i].b_qpn = 200 + i;
	}
	pairs[16].want.bandwidth_bps = 16 * G;
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	for (i = 0; i < 16; i++)
		on[r->rows[i].first][r->rows[i].second]++;
	assert_int_equal(on[0][0], 9);
	assert_int_equal(on[0][1], 3);
	assert_int_equal(on[1][0], 3);
	assert_int_equal(on[1][1], 1);
	assert_int_equal(r->rows[16].first, PLAN_JOB_ANY_GATEWAY);
	assert_int_equal(r->groups[0].gw_bps[0][0], 24 * G);
	assert_int_equal(r->groups[0].gw_bps[1][1], 8 * G);
	assert_int_equal(r->groups[0].pair_bps[0], 18 * G);
	/* A gateway is lost: other pairs stay. */
	for (i = 0; i < 16; i++)
		now[i] = (struct plan_pair){
		    r->groups[0].gw[0][r->rows[i].first].id, r->groups[0].gw[1][r->rows[i].second].id, 0};
	w.gw_bps[2][1] = 0; /* first of the first site by name */
	job.now = now;
	job.stay = true;
	again = plan(&w, &job);
	assert_int_equal(again->fail, PLAN_JOB_FITS);
	for (i = 0; i < 16; i++) {
		moved += r->rows[i].first == 1;
		assert_int_equal(again->rows[i].first, 0);
		if (r->rows[i].first == 0)
			assert_int_equal(again->rows[i].second, r->rows[i].second);
	}
	assert_int_equal(moved, 4);
	plan_job_free(again);
	plan_job_free(r);
}

static void test_three_sites(void **state)
{
	struct plan_job_pair pairs[9];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 9};
	struct world w = world();
	struct plan_job_result *r;
	unsigned i;

	fill(pairs, 4, 1, 2, (struct plan_triple){20 * G, 0, 0});
	fill(pairs + 4, 4, 2, 3, (struct plan_triple){20 * G, 0, 0});
	fill(pairs + 8, 1, 1, 1, (struct plan_triple){G, 0, 0});
	r = plan(&w, &job);
	/* cluster2 has 100 Gbit/s; each group alone fits, both do not. */
	assert_int_equal(r->n_groups, 2);
	assert_int_equal(r->rows[8].group, -1);
	assert_int_equal(r->groups[0].fail, PLAN_JOB_FITS);
	assert_int_not_equal(r->groups[1].fail, PLAN_JOB_FITS);
	assert_int_equal(r->groups[1].fits.bandwidth_bps / G, 20);
	plan_job_free(r);
	for (i = 0; i < 8; i++)
		pairs[i].want.bandwidth_bps = 12 * G;
	r = plan(&w, &job);
	assert_int_equal(r->fail, PLAN_JOB_FITS);
	plan_job_free(r);
	pairs[3].b = ip("192.0.2.1");
	r = plan(&w, &job);
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
	struct world w = world();

	plan_policy_default(&p);
	fill(pairs, 2, 1, 3, (struct plan_triple){G, 0, 0});
	assert_int_equal(plan_job_new(&r, &job, &p, &ops, &w, T), RWY_EINVAL);
	job.n = PLAN_JOB_PAIRS_MAX + 1;
	assert_int_equal(plan_job_new(&r, &job, &p, &ops, &w, T), RWY_EINVAL);
	job.n = 2;
	pairs[1].want.bandwidth_bps = 0;
	assert_int_equal(plan_job_new(&r, &job, &p, &ops, &w, T), RWY_EINVAL);
	assert_null(r);
}

/* Jobs until it is full; the last is refused; a withdrawal makes room for exactly that one. */
static void test_book(void **state)
{
	struct plan_job_pair pairs[4];
	struct plan_job job = {.name = "j", .grain = PLAN_GRAIN_ADDRESS, .pairs = pairs, .n = 4};
	static const struct plan_route p = LEG("pe-1", "p", 100 * G, 10020);
	struct plan_job_result *r[8];
	struct world w = world();
	unsigned n;

	w.network = true;
	w.route[0] = p;
	w.n_routes = 1;
	assert_int_equal(plan_book_new(&w.book), 0);
	fill(pairs, 4, 1, 3,
	    (struct plan_triple){5 * G, 0, 0}); /* 20 payload, some 21.7 at the edge: four of them */
	for (n = 0; n < 8; n++) {
		r[n] = plan(&w, &job);
		if (r[n]->fail != PLAN_JOB_FITS)
			break;
		assert_int_equal(plan_book_claim(w.book, r[n]->claims, r[n]->n_claims), 0);
	}
	assert_int_equal(n, 4);
	assert_int_equal(r[4]->fail, PLAN_JOB_NETWORK);
	plan_job_free(r[4]);
	plan_book_release(w.book, r[1]->claims, r[1]->n_claims);
	r[4] = plan(&w, &job);
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

static const struct plan_triple some = {G, 1, 2};

static void test_ranks(void **state)
{
	struct plan_rank r[8], x;
	struct plan_job_pair p[16];
	uint32_t bad;
	unsigned i;

	for (i = 0; i < 8; i++)
		r[i] = (struct plan_rank){i, i / 2, rwy_ip_from4((uint8_t[4]){10, 1, 0, (uint8_t)i})};
	x = r[0];
	r[0] = r[7];
	r[7] = x; /* in any order */
	assert_int_equal(plan_job_ranks(r, 8, &some, false, p, 16, &bad), 6);
	for (i = 0; i < 6; i++)
		assert_true(p[i].a.b[15] == i && p[i].b.b[15] == i + 2 && p[i].want.bandwidth_bps == G);
	assert_int_equal(plan_job_ranks(r, 8, &some, true, p, 16, &bad), 8);
	assert_true(p[7].a.b[15] == 7 && p[7].b.b[15] == 1);
	/* counted, not written */
	assert_int_equal(plan_job_ranks(r, 8, &some, true, p, 3, &bad), 8);
	assert_int_equal(
	    plan_job_ranks(r, 4, &some, true, p, 16, &bad), 2); /* two stages are neighbours once */
	assert_int_equal(plan_job_ranks(r, 2, &some, true, p, 16, &bad), 0); /* one stage: no pairs */
	assert_int_equal(plan_job_ranks(r, 0, &some, true, p, 16, &bad), RWY_EINVAL);
	assert_int_equal(plan_job_ranks(r, 7, &some, false, p, 16, &bad), RWY_EINVAL); /* a stage of one */
	assert_int_equal(bad, 6);
	r[5].rank = 2;
	assert_int_equal(plan_job_ranks(r, 8, &some, false, p, 16, &bad), RWY_EINVAL);
	assert_int_equal(bad, 2);
	for (i = 0; i < 8; i++)
		r[i] = (struct plan_rank){i, i / 2 + (i >= 4), r[i].addr}; /* stage 2 is missing */
	assert_int_equal(plan_job_ranks(r, 8, &some, false, p, 16, &bad), RWY_EINVAL);
	assert_int_equal(bad, 4);
}

static uint64_t number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* conf/samples/jobs/: the white paper's training job (table 3: TP 4, PP 6, 24 GPUs) over its three sites
 * (figure 31).
 */
static void test_white_paper(void **state)
{
	json_t *doc = json_load_file("conf/samples/jobs/mixtral-pp6.json", JSON_REJECT_DUPLICATES, NULL),
	       *row;
	json_t *net = json_load_file("conf/samples/jobs/three-sites.json", JSON_REJECT_DUPLICATES, NULL);
	const json_t *want = json_object_get(doc, "demand");
	const struct plan_triple t = {number(want, "bandwidth_bps"), (uint32_t)number(want, "delay_us"),
	    (uint32_t)number(want, "jitter_us")};
	struct plan_rank r[64];
	struct plan_job_pair p[64];
	struct plan_job job = {.name = "mixtral-pp6", .grain = PLAN_GRAIN_ADDRESS, .pairs = p};
	struct world w = world();
	struct plan_job_result *res;
	unsigned i, across = 0;
	uint32_t bad;
	size_t at;
	int n;

	json_array_foreach(json_object_get(doc, "ranks"), at, row) r[at] =
	    (struct plan_rank){(uint32_t)number(row, "rank"), (uint32_t)number(row, "stage"),
	        ip(json_string_value(json_object_get(row, "address")))};
	assert_int_equal(at, 24);
	n = plan_job_ranks(r, (unsigned)at, &t, false, p, 64, &bad);
	assert_int_equal(n, 20); /* five borders of stages, four ranks each */
	job.n = (unsigned)n;
	w.network = true;
	json_array_foreach(json_object_get(net, "paths"), at, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "first")), "hangzhou") != 0 ||
		    strcmp(json_string_value(json_object_get(row, "second")), "qingyang") != 0)
			continue;
		w.route[0] = (struct plan_route){"pe-1", "p", number(row, "bandwidth_bps"),
		    (uint32_t)number(row, "delay_us"), (uint32_t)number(row, "jitter_us"), 0,
		    {{"", ""}, 0, 0}};
		w.n_routes = 1;
	}
	assert_int_equal(w.n_routes, 1);
	res = plan(&w, &job);
	assert_int_equal(res->fail, PLAN_JOB_FITS);
	assert_int_equal(res->n_groups, 1);
	for (i = 0; i < job.n; i++)
		across += res->rows[i].group == 0;
	assert_int_equal(across, 4); /* stage 3 to 4 leaves the site */
	assert_int_equal(res->groups[0].want.bandwidth_bps, 4 * t.bandwidth_bps);
	assert_int_equal(res->groups[0].placement.shape, PLAN_SAME_PATH);
	plan_job_free(res);
	/* The white paper's narrow link (test 6: 400 Mbit/s): refused, and what would fit. */
	w.route[0].free_bps = 400000000;
	res = plan(&w, &job);
	assert_int_equal(res->fail, PLAN_JOB_NETWORK);
	assert_in_range(res->groups[0].fits.bandwidth_bps, 360000000, 370000000);
	plan_job_free(res);
	json_decref(doc);
	json_decref(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_again),
	    cmocka_unit_test(test_carrier),
	    cmocka_unit_test(test_promise),
	    cmocka_unit_test(test_fits_is_true),
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_grains),
	    cmocka_unit_test(test_named_qps),
	    cmocka_unit_test(test_three_sites),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_book),
	    cmocka_unit_test(test_book_many),
	    cmocka_unit_test(test_ranks),
	    cmocka_unit_test(test_white_paper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
