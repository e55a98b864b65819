/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sustained congestion of a path: what begins and ends it, what does not, and that it does not
 * flap. Paths are drawn from a seed, acknowledgement by acknowledgement.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/congest.h"

#define RTT (20 * RWY_MS)

struct path {
	struct wan_congest c;
	rwy_time now;
	uint64_t rng;
	/* The path: */
	double pps, loss, ce;
	rwy_dur rtt, queue;
	unsigned burst_every, burst; /* s; datagrams */
	unsigned clump;              /* datagrams per loss; 0: one */
	rwy_time burst_at;
	bool remarked_is_clean; /* traffic with the other DSCP does not meet the congestion */
	unsigned changes;
};

static double unit(struct path *p)
{
	p->rng += 0x9e3779b97f4a7c15u;
	uint64_t x = p->rng;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)((x ^ x >> 31) >> 11) / (double)(1ull << 53);
}

static void path_init(struct path *p, double pps, uint64_t seed)
{
	struct wan_congest_cfg cfg;

	wan_congest_cfg_default(&cfg);
	*p = (struct path){.now = RWY_SEC, .rng = seed, .pps = pps, .rtt = RTT};
	wan_congest_init(&p->c, &cfg, p->now);
}

/* Runs for `time`; an ACK for every 8 datagrams, or for each on a slow path. */
static void run(struct path *p, rwy_dur time)
{
	unsigned each = p->pps >= 1000 ? 8 : 1;
	rwy_dur step = (rwy_dur)(each * 1e9 / p->pps);

	for (rwy_time end = p->now + time; p->now < end; p->now += step) {
		bool clean = p->remarked_is_clean && p->c.st.by != WAN_CONGEST_NONE;
		uint32_t acked = 0, ce = 0;
		int32_t lost = 0;

		for (unsigned i = 0; i < each; i++) {
			if (!clean && unit(p) < p->loss)
				lost += p->clump ? (int32_t)p->clump : 1;
			else
				acked++;
			ce += !clean && unit(p) < p->ce;
		}
		if (p->burst && p->now >= p->burst_at) {
			p->burst_at = p->now + p->burst_every * RWY_SEC;
			lost += (int32_t)p->burst;
		}
		p->changes += wan_congest_note(&p->c, acked, lost, ce,
		    p->rtt + (clean ? 0 : p->queue) + (rwy_dur)(unit(p) * (double)RWY_MS), p->rtt, p->now);
	}
}

/* Runs until it begins (or ends), at most for `most`; returns the time, RWY_NEVER: it did not. */
static rwy_dur until(struct path *p, bool congested, rwy_dur most)
{
	rwy_time from = p->now;

	while (p->now < from + most) {
		if ((p->c.st.by != WAN_CONGEST_NONE) == congested)
			return p->now - from;
		run(p, 10 * RWY_MS);
	}
	return RWY_NEVER;
}

static const double rates[] = {50, 500, 5000, 50000};
#define RATES (sizeof(rates) / sizeof(*rates))

static void test_clean(void **state)
{
	for (unsigned i = 0; i < RATES; i++) {
		struct path p;

		path_init(&p, rates[i], i);
		run(&p, 100 * RWY_SEC);
		assert_int_equal(p.changes, 0);
		/* Loss that the carrier is made for, far below the threshold. */
		p.loss = .01;
		p.ce = .02;
		p.queue = 2 * RWY_MS;
		run(&p, 200 * RWY_SEC);
		assert_int_equal(p.changes, 0);
	}
}

static void test_bursts(void **state)
{
	struct path p;

	path_init(&p, 5000, 1);
	p.burst = 400;
	p.burst_every = 2;
	run(&p, 200 * RWY_SEC);
	assert_int_equal(p.changes, 0);
	/* A hundredth is lost, in random bursts of twenty. */
	path_init(&p, 28000, 2);
	p.clump = 20;
	p.loss = .01 / 20;
	run(&p, 300 * RWY_SEC);
	assert_int_equal(p.changes, 0);
	p.clump = 0;
	p.loss = 0;
	/* A standing queue for less than `hold`. */
	for (unsigned i = 0; i < 50; i++) {
		p.queue = 100 * RWY_MS;
		run(&p, 100 * RWY_MS);
		p.queue = 0;
		run(&p, RWY_SEC);
	}
	assert_int_equal(p.changes, 0);
}

static void begins_and_ends(struct path *p, enum wan_congest_by by, double loss, double ce, rwy_dur queue)
{
	rwy_dur took;

	run(p, 20 * RWY_SEC);
	assert_int_equal(p->changes, 0);
	p->loss = loss;
	p->ce = ce;
	p->queue = queue;
	took = until(p, true, 30 * RWY_SEC);
	assert_int_equal(p->c.st.by, by);
	assert_true(took >= 50 * RWY_MS); /* four slots of the eight */
	if (p->pps >= 1000)
		assert_true(took <= RWY_SEC);
	run(p, 60 * RWY_SEC);
	assert_int_equal(p->changes, 1);
	if (by == WAN_CONGEST_LOSS && p->pps >= 1000)
		assert_in_range(p->c.st.loss_ppm, loss * 6e5, loss * 1.5e6);
	if (by == WAN_CONGEST_MARKS && p->pps >= 1000)
		assert_in_range(p->c.st.marks_ppm, ce * 6e5, ce * 1.5e6);
	if (by == WAN_CONGEST_DELAY)
		assert_in_range(p->c.st.delay, queue, queue + RWY_MS);
	p->loss = p->ce = 0;
	p->queue = 0;
	took = until(p, false, 60 * RWY_SEC);
	assert_true(took != RWY_NEVER);
	if (p->pps >= 1000) /* the present calm time, and one more */
		assert_true(took <= 5 * RWY_SEC);
	run(p, 60 * RWY_SEC);
	assert_int_equal(p->changes, 2);
	assert_int_equal(p->c.st.begins, 1);
}

static void test_sustained(void **state)
{
	for (unsigned i = 0; i < RATES; i++) {
		struct path p;

		path_init(&p, rates[i], i + 10);
		begins_and_ends(&p, WAN_CONGEST_LOSS, .12, 0, 0);
		path_init(&p, rates[i], i + 20);
		begins_and_ends(&p, WAN_CONGEST_MARKS, 0, .4, 0);
		path_init(&p, rates[i], i + 30);
		begins_and_ends(&p, WAN_CONGEST_DELAY, 0, 0, 30 * RWY_MS);
	}
}

/* At the threshold, at half of it, and between: some changes, not many. */
static void test_edge(void **state)
{
	for (unsigned i = 0; i < RATES; i++)
		for (unsigned k = 2; k <= 6; k++) {
			struct path p;

			path_init(&p, rates[i], i * 10 + k);
			p.loss = .03 * k / 4;
			run(&p, 600 * RWY_SEC);
			if (p.changes > 20)
				fail_msg("%u changes in 10 min at %.0f datagrams/s and %.2f %% loss",
				    p.changes, rates[i], p.loss * 100);
		}
}

/* With the other DSCP, traffic no longer meets the congestion: it must not flap. */
static void test_own_effect(void **state)
{
	struct path p;

	path_init(&p, 5000, 3);
	p.loss = .2;
	p.remarked_is_clean = true;
	run(&p, 600 * RWY_SEC);
	assert_in_range(p.c.st.begins, 3, 12);
	/* Much later, it is as quick as at the beginning. */
	p.loss = 0;
	run(&p, 3000 * RWY_SEC);
	assert_int_equal(p.c.st.by, WAN_CONGEST_NONE);
	p.remarked_is_clean = false;
	p.loss = .2;
	assert_true(until(&p, true, 2 * RWY_SEC) != RWY_NEVER);
	p.loss = 0;
	assert_true(until(&p, false, 6 * RWY_SEC) != RWY_NEVER);
}

/* A longer path is no queue: it counts as one for a while. */
static void test_longer_way(void **state)
{
	struct path p;

	path_init(&p, 1000, 4);
	run(&p, 10 * RWY_SEC);
	p.rtt = 3 * RTT;
	assert_true(until(&p, true, 5 * RWY_SEC) != RWY_NEVER);
	assert_int_equal(p.c.st.by, WAN_CONGEST_DELAY);
	assert_true(until(&p, false, 100 * RWY_SEC) != RWY_NEVER);
	run(&p, 300 * RWY_SEC);
	assert_int_equal(p.c.st.begins, 1);
	p.rtt = RTT; /* and back */
	run(&p, 300 * RWY_SEC);
	assert_int_equal(p.c.st.begins, 1);
}

/* Late datagrams were not lost; almost no traffic shows nothing; ignored values have no effect. */
static void test_not(void **state)
{
	struct wan_congest_cfg cfg = {.hold = 100 * RWY_MS, .clear = RWY_SEC};
	struct path p;

	path_init(&p, 5000, 5);
	for (unsigned i = 0; i < 5000; i++, p.now += RWY_MS) {
		assert_false(wan_congest_note(&p.c, 6, 2, 0, RTT, RTT, p.now));
		assert_false(wan_congest_note(&p.c, 2, -2, 0, RTT, RTT, p.now));
	}
	path_init(&p, 2, 6);
	p.loss = .3;
	run(&p, 30 * RWY_SEC);
	assert_int_equal(p.changes, 0);
	path_init(&p, 5000, 7);
	wan_congest_init(&p.c, &cfg, p.now);
	p.loss = p.ce = .5;
	p.queue = 200 * RWY_MS;
	run(&p, 30 * RWY_SEC);
	assert_int_equal(p.changes, 0);
	/* Before the first round trip is known. */
	for (unsigned i = 0; i < 5000; i++, p.now += RWY_MS)
		assert_false(wan_congest_note(&p.c, 6, 2, 0, 0, 0, p.now));
}

/* --- a tunnel over a link ------------------------------------------------------------------------- */

static struct wan_end over(struct wan_link_cfg l, const struct cc_ops *cc, uint64_t rate_Bps)
{
	struct wan_pair p;
	struct wan_cfg c;
	struct wan_end e;

	l.delay = 5 * RWY_MS;
	l.rate_Bps = 12500000;
	l.overhead = 42;
	wan_cfg_default(&c);
	c.cc = cc;
	c.cc_cfg.rate_Bps = rate_Bps;
	wan_pair_init(&p, &c, &l, &l, 5);
	wan_pair_streams(&p, 2, 15000, 1000, 1000, 4000);
	assert_true(wan_pair_run(&p, p.now + 100 * RWY_SEC));
	assert_int_equal(p.errors, 0);
	e = p.end[0];
	wan_pair_fini(&p);
	assert_int_equal(p.pool.live, 0);
	return e;
}

static void test_tunnel(void **state)
{
	struct wan_end e = over((struct wan_link_cfg){.queue_bytes = 200000, .loss_ppm = 10000}, &cc_auto, 0);

	assert_int_equal(e.congest_changes, 0); /* what the carrier is made for */
	assert_int_equal(e.congested_sent, 0);
	e = over((struct wan_link_cfg){.queue_bytes = 200000, .loss_ppm = 120000}, &cc_auto, 0);
	assert_int_equal(e.congest_changes, 1);
	assert_int_equal(e.congest.by, WAN_CONGEST_LOSS);
	assert_true(e.congest.since > 0);
	assert_true(e.congested_sent > 10000);
	/* A reserved rate above the path's; then the path's rate, with a standing queue. */
	e = over((struct wan_link_cfg){.queue_bytes = 20000}, &cc_fixed, 16000000);
	assert_int_equal(e.congest.by, WAN_CONGEST_LOSS);
	e = over((struct wan_link_cfg){.ecn_bytes = 5000}, &cc_fixed, 13000000);
	assert_int_equal(e.congest.by, WAN_CONGEST_MARKS);
	e = over((struct wan_link_cfg){.ecn_clear = true}, &cc_fixed, 13000000);
	assert_int_equal(e.congest.by, WAN_CONGEST_DELAY);
}

static void test_names(void **state)
{
	assert_string_equal(wan_congest_name(WAN_CONGEST_NONE), "none");
	assert_string_equal(wan_congest_name(WAN_CONGEST_LOSS), "loss");
	assert_string_equal(wan_congest_name(WAN_CONGEST_MARKS), "marks");
	assert_string_equal(wan_congest_name(WAN_CONGEST_DELAY), "delay");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_clean),
	    cmocka_unit_test(test_bursts),
	    cmocka_unit_test(test_sustained),
	    cmocka_unit_test(test_edge),
	    cmocka_unit_test(test_own_effect),
	    cmocka_unit_test(test_longer_way),
	    cmocka_unit_test(test_not),
	    cmocka_unit_test(test_tunnel),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
