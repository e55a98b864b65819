/* SPDX-License-Identifier: Apache-2.0 */
/* The chosen number of repairs, against losses drawn at random. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

/* Loses in bursts of a mean length, with a total share. */
struct weather {
	double loss, burst;
	uint64_t seed;
	bool bad;
};

static double unit(uint64_t *seed)
{
	return wan_rng_below(seed, 1u << 30) / (double)(1u << 30);
}

static bool lost(struct weather *w)
{
	double stay = w->burst > 1 ? 1 - 1 / w->burst : w->loss;
	double enter = w->burst > 1 ? w->loss / (1 - w->loss) / w->burst : w->loss;

	return w->bad = unit(&w->seed) < (w->bad ? stay : enter);
}

/* One group: true if more is lost than its repairs cover. */
static bool fails(const struct wan_fec_plan *p, unsigned k, struct weather *w)
{
	unsigned gone[WAN_FEC_DEPTH_MAX] = {0}, over = 0;

	for (unsigned i = 0; i < (k + p->m) * p->depth; i++)
		gone[i % p->depth] += lost(w);
	for (unsigned i = 0; i < p->depth; i++)
		over += gone[i] > p->m ? gone[i] - p->m : 0;
	for (unsigned i = 0; i < p->g; i++)
		over += lost(w);
	return over > p->g;
}

static void test_enough(void **state)
{
	static const struct {
		double loss, burst, eps;
		unsigned depth, k;
		double share; /* of repairs, at most */
	} row[] = {
	    {0.001, 1, 1e-2, 1, 200, 0.015},
	    {0.01, 1, 1e-2, 1, 32, 0.13},
	    {0.001, 1, 1e-2, 5, 205, 0.007},
	    {0.01, 1, 1e-2, 5, 205, 0.027},
	    {0.01, 1, 3e-3, 16, 224, 0.026},
	    {0.001, 8, 1e-2, 18, 224, 0.02},
	    {0.01, 8, 1e-2, 18, 224, 0.045},
	    {0.01, 8, 3e-3, 27, 224, 0.045},
	    {0.0001, 8, 3e-3, 27, 224, 0.01},
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct weather w = {.loss = row[i].loss, .burst = row[i].burst, .seed = i + 1};
		struct wan_fec_law law = {.loss = row[i].loss, .burst = row[i].burst};
		struct wan_fec_plan p = {.depth = row[i].depth, .eps = row[i].eps};
		unsigned failed = 0, times = (unsigned)(100 / row[i].eps);

		if (times * row[i].depth > 100000)
			times = 100000 / row[i].depth;
		wan_fec_choose(row[i].k, &law, WAN_FEC_PARITY_MAX, &p);
		for (unsigned n = 0; n < times; n++)
			failed += fails(&p, row[i].k, &w);
		print_message(
		    "loss %g burst %g, %u x %u: %u each, %u shared, %.2f %%: fails %.5f, thought %.5f\n",
		    row[i].loss, row[i].burst, p.depth, row[i].k, p.m, p.g,
		    100. * (p.m * p.depth + p.g) / (row[i].k * p.depth), failed / (double)times, p.fail);
		assert_true(p.m > 0 && p.fail <= p.eps);
		/* The law is near the truth, and the goal is nearly reached. */
		assert_true(failed <= 2 * p.eps * times + 10);
		assert_true(p.m * p.depth + p.g <= row[i].share * row[i].k * p.depth);
	}
}

static void test_bounds(void **state)
{
	for (unsigned depth = 1; depth <= WAN_FEC_DEPTH_MAX; depth++)
		for (unsigned most = 0; most <= WAN_FEC_PARITY_MAX; most += 13)
			for (int l = 0; l < 8; l++)
				for (int b = 0; b < 4; b++) {
					struct wan_fec_law law = {
					    .loss = 1e-7 * pow(7, l), .burst = pow(3, b)};
					struct wan_fec_plan p = {.depth = depth, .eps = 1e-4};

					wan_fec_choose(100, &law, most, &p);
					assert_true(p.m * depth + p.g <= most);
					assert_true(p.m + p.g <= WAN_FEC_M_MAX);
					assert_true(p.g <= WAN_FEC_SHARED_MAX && (p.m || !p.g));
				}
	struct wan_fec_law rare = {.loss = 1e-9, .burst = 1};
	struct wan_fec_plan p = {.depth = 4, .eps = 1e-4};

	wan_fec_choose(200, &rare, 100, &p);
	assert_int_equal(p.m, 0);
}

/* Sends n datagrams through this weather; returns the largest loss expected meanwhile. */
static double weather_of(struct wan_fec_path *p, uint64_t *pn, unsigned n, double loss, double burst)
{
	struct weather w = {.loss = loss, .burst = burst, .seed = *pn + 1};
	bool before = false;
	double most = 0, x;

	for (unsigned i = 0; i < n; i++, (*pn)++) {
		bool now = loss > 0 && lost(&w);

		if (now)
			wan_fec_note_lost(p, *pn, before, RWY_SEC);
		else
			wan_fec_note_acked(p, 1);
		before = now;
		x = wan_fec_expect(p);
		most = x > most ? x : most;
	}
	return most;
}

/*
 * The loss of a path changes: known after 8,000 datagrams at 1 %, however many came without a loss
 * before. Where it does not change nothing is forgotten, and bursts do not look like a change.
 */
static void test_loss_changes(void **state)
{
	static const rwy_dur rtt = 20 * RWY_MS;
	struct wan_fec fec = {0};
	struct wan_fec_path p = {.fec = &fec, .srtt = &rtt, .min_rtt = &rtt};
	uint64_t pn = 0;

	assert_true(weather_of(&p, &pn, 500000, 0, 1) <= 3e-6);
	weather_of(&p, &pn, 8000, .01, 1);
	assert_true(wan_fec_expect(&p) > .006 && wan_fec_expect(&p) < .02);
	p.est = (struct wan_fec_est){0};
	weather_of(&p, &pn, 300000, 2e-4, 1);
	assert_true(weather_of(&p, &pn, 2000000, 2e-4, 1) < 4e-4);
	p.est = (struct wan_fec_est){0};
	weather_of(&p, &pn, 300000, 1e-3, 8);
	assert_true(weather_of(&p, &pn, 2000000, 1e-3, 8) < 2e-3);
}

/* Two paths of a tunnel at 10 Gb/s. The second one has hardly carried anything. */
struct two {
	rwy_dur rtt;
	uint64_t ns_fp;
	struct wan_fec x;
	struct wan_fec_path p[2];
};

static void begin_two(struct two *w, double lost)
{
	*w = (struct two){.rtt = 20 * RWY_MS,
	    .ns_fp = ((uint64_t)8 << RWY_PACE_BITS) / 10,
	    .x = {.peer = true, .extra_max = 0.2, .mtu = 4320, .paths = 2, .path = {&w->p[0], &w->p[1]}}};
	for (unsigned i = 0; i < 2; i++)
		w->p[i] = (struct wan_fec_path){.fec = &w->x,
		    .id = (uint8_t)i,
		    .srtt = &w->rtt,
		    .min_rtt = &w->rtt,
		    .ns_fp = &w->ns_fp,
		    .mtu = 4320};
	wan_fec_refresh(&w->p[1]);
	w->p[0].est = (struct wan_fec_est){.n = 50000, .lost = 50000 * lost, .runs = 50000 * lost};
	wan_fec_refresh(&w->p[0]); /* as after each ACK of it; the other one has only answered probes */
}

/* A new path expects what the other one loses, until it has carried enough itself. */
static void test_new_path(void **state)
{
	struct two w;

	begin_two(&w, 0.01);
	assert_false(wan_fec_needless(&w.p[1], 30 * 4172, 4172));
	assert_true(wan_fec_expect(&w.p[1]) > 0.009 && wan_fec_expect(&w.p[1]) < 0.011);
	wan_fec_note_acked(&w.p[1], 1000);
	assert_true(wan_fec_expect(&w.p[1]) > 0.004 && wan_fec_expect(&w.p[1]) < 0.006);
	wan_fec_note_acked(&w.p[1], 1000);
	assert_true(wan_fec_expect(&w.p[1]) <= 3e-6);
	begin_two(&w, 0);
	assert_true(wan_fec_expect(&w.p[1]) <= 3e-6);
}

/* A message is protected with the credit that another path earned. */
static void test_one_credit(void **state)
{
	const struct wan_fec_message y = {.total = 1024, .own = 1024, .left = 1024, .bytes = 4172};
	struct wan_fec_plan none, plan;
	struct two w;

	begin_two(&w, 0.01);
	assert_true(!wan_fec_plan(&w.p[1], &y, &none) || none.m < 2);
	for (unsigned i = 0; i < 2000; i++)
		wan_fec_earn(&w.p[0], 4 << 20, 4172);
	assert_true(w.x.credit > 100 * 4172);
	assert_true(wan_fec_plan(&w.p[1], &y, &plan));
	assert_true(plan.fail <= plan.eps);
	/* The path that earned it is reset: what the other one may save stays. */
	wan_fec_lose_credit(&w.p[0]);
	assert_true(w.x.credit > 0 && w.x.credit <= w.p[1].most[1]);
	wan_fec_forget(&w.p[1]);
	wan_fec_lose_credit(&w.p[0]); /* no path is left that could save */
	assert_true(w.x.credit <= 0);
	wan_fec_spend(&w.p[1], 4172 * 200);
	wan_fec_earn(&w.p[1], 4 << 20, 1);
	assert_true(w.x.credit >= -64. * 4320);
}

/* A report may be lost: the next one says the same ranges again, and the one after that does not. */
static void test_told_twice(void **state)
{
	struct wan_fec_path p = {.id = 1, .report = {{.pn = 7, .more = 2}, {.pn = 20}}, .reports = 2};
	uint8_t first[250], next[250], *end = wan_fec_put_rebuilt(&p, first, first + sizeof(first), true);

	assert_int_equal(end - first, WAN_REBUILT_HEAD + 2 * WAN_REBUILT_ENTRY);
	assert_int_equal(p.reports, 0);
	p.report[p.reports++] = (struct wan_fec_rebuilt){.pn = 30};
	end = wan_fec_put_rebuilt(&p, next, next + sizeof(next), true);
	assert_int_equal(end - next, WAN_REBUILT_HEAD + 3 * WAN_REBUILT_ENTRY);
	assert_memory_equal(next + WAN_REBUILT_HEAD, first + WAN_REBUILT_HEAD, 2 * WAN_REBUILT_ENTRY);
	end = wan_fec_put_rebuilt(&p, next, next + sizeof(next), true);
	assert_int_equal(end - next, WAN_REBUILT_HEAD + WAN_REBUILT_ENTRY);
	assert_int_equal(rwy_get64(next + WAN_REBUILT_HEAD), 30);
	assert_ptr_equal(wan_fec_put_rebuilt(&p, next, next + sizeof(next), true), next);
	/* Where an ACK would not fit behind them, only the new ones go. */
	p.report[p.reports++] = (struct wan_fec_rebuilt){.pn = 40};
	p.told[p.told_n++] = (struct wan_fec_rebuilt){.pn = 31};
	end = wan_fec_put_rebuilt(&p, next, next + WAN_REBUILT_HEAD + 2 * WAN_REBUILT_ENTRY, true);
	assert_int_equal(end - next, WAN_REBUILT_HEAD + WAN_REBUILT_ENTRY);
	assert_int_equal(rwy_get64(next + WAN_REBUILT_HEAD), 40);
	/* Other frames of one ACK repeat nothing. */
	assert_ptr_equal(wan_fec_put_rebuilt(&p, next, next + sizeof(next), false), next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_enough),
	    cmocka_unit_test(test_loss_changes),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_new_path),
	    cmocka_unit_test(test_one_credit),
	    cmocka_unit_test(test_told_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
