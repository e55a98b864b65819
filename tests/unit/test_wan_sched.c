/* SPDX-License-Identifier: Apache-2.0 */
/* Classes: guarantees hold, the rest is shared by weight, limits hold, changes apply at run time,
 * one class equals none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define RATE 125000000 /* 1 Gb/s */
#define LEN  4000

static void start(struct wan_pair *p, uint32_t streams, uint32_t queue)
{
	struct wan_link_cfg l = {.delay = RWY_MS, .rate_Bps = RATE, .overhead = 42, .queue_bytes = 4000000};
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.mtu[0] = 4320;
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = RATE;
	c.rx_window = 1 << 20;
	wan_pair_init(p, &c, &l, &l, 5);
	wan_pair_streams(p, streams, 1 << 20, LEN, LEN, queue);
	wan_pair_run(p, p->now + 20 * RWY_MS);
}

static void set(struct wan_pair *p, unsigned id, uint64_t guarantee, uint64_t limit, uint32_t weight)
{
	struct wan_class_cfg c = {.guarantee_Bps = guarantee, .limit_Bps = limit, .weight = weight};

	assert_int_equal(wan_class_set(p->end[0].t, id, &c), 0);
}

static uint64_t sent(struct wan_pair *p, unsigned id)
{
	struct wan_class_stats s;

	wan_class_stats(p->end[0].t, id, &s);
	return s.sent;
}

/* Shares of the rate that classes 0..n-1 got in time t. */
static void shares(struct wan_pair *p, unsigned n, rwy_dur t, double *out)
{
	uint64_t before[8];

	assert_true(n <= 8);
	for (unsigned i = 0; i < n; i++)
		before[i] = sent(p, i);
	wan_pair_run(p, p->now + t);
	for (unsigned i = 0; i < n; i++)
		out[i] = (double)(sent(p, i) - before[i]) / ((double)RATE * (double)t / 1e9);
}

static void near(double got, double want, double off)
{
	if (got < want - off || got > want + off)
		fail_msg("%.4f, not %.4f", got, want);
}

/* Streams come in pairs, one per direction: the i-th from end 0. */
static struct wan_stream *out(struct wan_pair *p, uint32_t i)
{
	return &p->stream[2 * i];
}

static void test_guarantees(void **state)
{
	struct wan_pair p;
	double s[4];

	start(&p, 40, 400);
	set(&p, 1, RATE / 2, 0, 1);
	set(&p, 2, RATE / 10 * 3, 0, 2);
	set(&p, 3, RATE / 10, 0, 1);
	for (uint32_t i = 0; i < 20; i++)
		wan_tx_class(out(&p, i)->tx, 1 + i % 3);
	wan_pair_run(&p, p.now + 10 * RWY_MS);
	/* Within 10 ms each has its guarantee; the rest, a tenth, is shared 1:2:1. */
	shares(&p, 4, 10 * RWY_MS, s);
	assert_true(s[1] >= 0.495 && s[2] >= 0.297 && s[3] >= 0.099);
	shares(&p, 4, 200 * RWY_MS, s);
	near(s[0], 0, 0.001);
	near(s[1], 0.525, 0.01);
	near(s[2], 0.350, 0.01);
	near(s[3], 0.125, 0.01);
	near(s[1] + s[2] + s[3], 1, 0.01);
	assert_true(wan_pair_finish(&p));
}

static void test_weights(void **state)
{
	struct wan_pair p;
	double s[4];

	start(&p, 40, 400);
	set(&p, 1, 0, 0, 500);
	set(&p, 2, 0, 0, 300);
	set(&p, 3, 0, 0, 200);
	/* One flow against many: more flows give a class no more. */
	for (uint32_t i = 0; i < 20; i++)
		wan_tx_class(out(&p, i)->tx, i == 0 ? 1 : i < 4 ? 2 : 3);
	shares(&p, 4, 20 * RWY_MS, s);
	shares(&p, 4, 200 * RWY_MS, s);
	near(s[1], 0.5, 0.01);
	near(s[2], 0.3, 0.01);
	near(s[3], 0.2, 0.01);
	assert_true(wan_pair_finish(&p));
}

/* Nothing is reserved: a class alone gets everything; but a limit holds also then. */
static void test_limit(void **state)
{
	struct wan_pair p;
	double s[3];

	start(&p, 4, 400);
	set(&p, 1, RATE / 4, RATE / 2, 1);
	set(&p, 2, 0, RATE / 10, 1000);
	wan_tx_class(out(&p, 0)->tx, 1);
	wan_tx_class(out(&p, 1)->tx, 1);
	shares(&p, 3, 10 * RWY_MS, s);
	shares(&p, 3, 200 * RWY_MS, s);
	near(s[1], 0.5, 0.01);
	wan_tx_class(out(&p, 1)->tx, 2);
	shares(&p, 3, 10 * RWY_MS, s);
	shares(&p, 3, 200 * RWY_MS, s);
	near(s[1], 0.5, 0.01);
	near(s[2], 0.1, 0.005);
	/* Changed at run time. */
	set(&p, 2, 0, RATE / 5, 1);
	set(&p, 1, 0, 0, 1);
	shares(&p, 3, 20 * RWY_MS, s);
	near(s[1], 0.8, 0.03);
	near(s[2], 0.2, 0.02);
	assert_true(wan_pair_finish(&p));
}

/*
 * A worker that gets a processor only every 65 ms: a slow class, whose limit is its guarantee, has its
 * rate nevertheless; a fast one, which would send a burst, catches up with 10 ms only.
 */
static void test_lag(void **state)
{
	const uint64_t slow = 200000, fast = RATE / 10;
	struct wan_pair p;
	uint64_t before[3];

	start(&p, 4, 4000);
	set(&p, 1, slow, slow, 1);
	set(&p, 2, fast, fast, 1);
	wan_tx_class(out(&p, 0)->tx, 1);
	wan_tx_class(out(&p, 1)->tx, 2);
	wan_pair_run(&p, p.now + 100 * RWY_MS);
	before[1] = sent(&p, 1);
	before[2] = sent(&p, 2);
	for (unsigned i = 0; i < 40; i++) {
		p.now += 60 * RWY_MS;
		wan_pair_run(&p, p.now + 5 * RWY_MS);
	}
	near((double)(sent(&p, 1) - before[1]) / (2.6 * (double)slow), 1, 0.03);
	near((double)(sent(&p, 2) - before[2]) / (2.6 * (double)fast), 15. / 65, 0.03);
	assert_true(wan_pair_finish(&p));
}

/* More is guaranteed than available: the higher priority gets all of its guarantee, the other the
 * rest. */
static void test_priority(void **state)
{
	struct wan_class_cfg high = {.guarantee_Bps = RATE / 10 * 6, .weight = 1, .priority = 7};
	struct wan_pair p;
	double s[3];

	start(&p, 40, 400);
	set(&p, 1, RATE / 2, 0, 1);
	for (uint32_t i = 0; i < 20; i++)
		wan_tx_class(out(&p, i)->tx, 1 + i % 2);
	assert_int_equal(wan_class_set(p.end[0].t, 2, &high), 0);
	for (uint32_t i = 1; i < 20; i += 2)
		wan_tx_class(out(&p, i)->tx, 2);
	shares(&p, 3, 30 * RWY_MS, s);
	shares(&p, 3, 200 * RWY_MS, s);
	near(s[2], 0.6, 0.01);
	near(s[1], 0.4, 0.01);
	/* The reverse, at run time. */
	high.priority = 0;
	assert_int_equal(wan_class_set(p.end[0].t, 2, &high), 0);
	assert_int_equal(wan_class_set(p.end[0].t, 1,
	                     &(struct wan_class_cfg){.guarantee_Bps = RATE / 2, .weight = 1, .priority = 1}),
	    0);
	shares(&p, 3, 30 * RWY_MS, s);
	shares(&p, 3, 200 * RWY_MS, s);
	near(s[1], 0.5, 0.01);
	near(s[2], 0.5, 0.01);
	high.priority = WAN_PRIORITIES;
	assert_int_equal(wan_class_set(p.end[0].t, 2, &high), RWY_EINVAL);
	assert_true(wan_pair_finish(&p));
}

#define RESERVED (WAN_CLASSES_MAX / 2) /* a class number of the other table */

static void set_part(struct wan_pair *p, unsigned id, uint64_t rate, unsigned parent)
{
	struct wan_class_cfg c = {.guarantee_Bps = rate, .limit_Bps = rate, .weight = 1, .parent = parent};

	assert_int_equal(wan_class_set(p->end[0].t, id, &c), 0);
}

/* A class within another: both have what is theirs, and together no more than the outer one. */
static void test_parent(void **state)
{
	struct wan_class_cfg c = {.weight = 1, .parent = 1};
	struct wan_pair p;
	double s[3], r;
	uint64_t had;

	start(&p, 60, 400);
	set(&p, 1, RATE / 2, RATE / 2, 1);
	set_part(&p, RESERVED + 9, RATE / 5, 1);
	for (uint32_t i = 0; i < 30; i++)
		wan_tx_class(out(&p, i)->tx, i % 3 == 2 ? RESERVED + 9 : i % 3);
	wan_pair_run(&p, p.now + 20 * RWY_MS);
	had = sent(&p, RESERVED + 9);
	shares(&p, 2, 200 * RWY_MS, s);
	r = (double)(sent(&p, RESERVED + 9) - had) / ((double)RATE * 0.2);
	near(r, 0.2, 0.005);
	near(s[1], 0.3, 0.01);
	near(s[0], 0.5, 0.01);
	/* The outer class's guarantee pays for the inner one: class 0 keeps what is nobody's. */
	set(&p, 1, RATE / 2, 0, 1);
	set(&p, 0, 0, 0, 1000);
	wan_pair_run(&p, p.now + 20 * RWY_MS);
	had = sent(&p, RESERVED + 9);
	shares(&p, 2, 200 * RWY_MS, s);
	r = (double)(sent(&p, RESERVED + 9) - had) / ((double)RATE * 0.2);
	near(r, 0.2, 0.005);
	near(s[1], 0.3, 0.02);
	near(s[0], 0.5, 0.02);
	/* The outer limit stops the inner class, too. */
	set(&p, 1, 0, RATE / 10, 1);
	wan_pair_run(&p, p.now + 20 * RWY_MS);
	had = sent(&p, RESERVED + 9);
	shares(&p, 2, 200 * RWY_MS, s);
	r = (double)(sent(&p, RESERVED + 9) - had) / ((double)RATE * 0.2);
	near(r + s[1], 0.1, 0.01);
	near(s[0], 0.9, 0.01);
	/* One level only. */
	c.parent = RESERVED + 9;
	assert_int_equal(wan_class_set(p.end[0].t, 5, &c), RWY_EINVAL);
	c.parent = 5;
	assert_int_equal(wan_class_set(p.end[0].t, 5, &c), RWY_EINVAL);
	assert_true(wan_pair_finish(&p));
}

/*
 * A reservation above its tenant's guarantee uses that up while it sends, and owes nothing later:
 * the tenant's guarantee is there again at once, and is never more than it was.
 */
static void test_debt(void **state)
{
	struct wan_pair p;
	double s[2];

	start(&p, 60, 400);
	set(&p, 1, RATE / 10, 0, 1);
	set(&p, 0, 0, 0, 1000);
	set_part(&p, RESERVED + 9, RATE / 10 * 8, 1);
	for (unsigned round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 30; i++)
			wan_tx_class(out(&p, i)->tx, i % 3 == 2 ? RESERVED + 9 : i % 3);
		wan_pair_run(&p, p.now + 20 * RWY_MS);
		shares(&p, 2, 300 * RWY_MS, s);
		near(s[1], 0, 0.005);
		near(s[0], 0.2, 0.01);
		for (uint32_t i = 2; i < 30; i += 3)
			wan_tx_class(out(&p, i)->tx, 0);
		wan_pair_run(&p, p.now + 20 * RWY_MS);
		shares(&p, 2, 100 * RWY_MS, s);
		near(s[1], 0.1, 0.005);
	}
	assert_true(wan_pair_finish(&p));
}

/* A reservation does not take off what its tenant owes: a datagram of this slow tenant takes longer
 * than it may catch up with. */
static void test_slow_parent(void **state)
{
	const uint64_t slow = 20000, seconds = 3;
	struct wan_class_stats st;
	struct wan_pair p;

	start(&p, 4, 400);
	set(&p, 1, slow, 0, 1);
	set_part(&p, RESERVED, slow * 3 / 2, 1);
	wan_tx_class(out(&p, 0)->tx, 1);
	wan_tx_class(out(&p, 1)->tx, RESERVED);
	wan_pair_run(&p, p.now + seconds * RWY_SEC);
	wan_class_stats(p.end[0].t, 1, &st);
	assert_true(st.sent_guaranteed > 0);
	assert_true(st.sent_guaranteed <= slow * seconds + slow / 10 + 2 * LEN);
	assert_true(sent(&p, RESERVED) > slow * seconds * 4 / 3);
	assert_true(wan_pair_finish(&p));
}

/* What a datagram tells of its class: the parent's number, since that is the tenant's, and the DSCP
 * of the class itself. */
static void test_told(void **state)
{
	struct wan_class_cfg c = {
	    .guarantee_Bps = RATE / 5, .limit_Bps = RATE / 5, .weight = 1, .has_dscp = true, .dscp = 46};
	unsigned with = 0, without = 0;
	struct wan_tx tx[32];
	struct wan_pair p;
	unsigned n;

	start(&p, 4, 400);
	set(&p, 3, 0, 0, 1);
	c.parent = 3;
	assert_int_equal(wan_class_set(p.end[0].t, RESERVED, &c), 0);
	wan_tx_class(out(&p, 0)->tx, RESERVED);
	wan_tx_class(out(&p, 1)->tx, 3);
	for (rwy_time end = p.now + 20 * RWY_MS; p.now < end; wan_pair_run(&p, p.now + RWY_MS / 10)) {
		n = wan_poll(p.end[0].t, tx, 32, p.now + RWY_MS / 20);
		for (unsigned i = 0; i < n; i++) {
			if (!tx[i].buf)
				assert_false(tx[i].has_dscp);
			if (!tx[i].class_id)
				continue;
			assert_int_equal(tx[i].class_id, 3);
			with += tx[i].has_dscp;
			without += !tx[i].has_dscp;
			assert_true(!tx[i].has_dscp || tx[i].dscp == 46);
		}
	}
	assert_true(with && without);
	c.dscp = 64;
	assert_false(wan_class_ok(&c));
	assert_true(wan_pair_finish(&p));
}

/* A small flow with a guarantee beside many greedy ones: it does not wait for them. */
static void test_latency(void **state)
{
	struct wan_pair p;
	struct wan_class_stats st;
	uint64_t got;

	start(&p, 402, 100);
	set(&p, 1, RATE / 10, 0, 1);
	set(&p, 2, 0, 0, 1000);
	for (uint32_t i = 0; i < 201; i++)
		wan_tx_class(out(&p, i)->tx, i ? 2 : 1);
	out(&p, 0)->queue_max = 5;
	wan_pair_run(&p, p.now + 50 * RWY_MS);
	got = out(&p, 0)->got;
	wan_pair_run(&p, p.now + 200 * RWY_MS);
	/* Five at a time, a round trip of 2 ms and a little more: 100 rounds. Without its class it
	 * would get 1/201. */
	got = out(&p, 0)->got - got;
	assert_true(got >= 5 * 60);
	wan_class_stats(p.end[0].t, 1, &st);
	assert_true(st.sent_guaranteed > st.sent / 2);
	assert_true(wan_pair_finish(&p));
}

/* Fragments that one class lost, however many, do not wait in front of another's. */
static void test_lost(void **state)
{
	struct wan_againq q = {0};
	struct wan_tx_item i = {.flow = 2};
	unsigned at[4] = {0}, n = 0;

	for (i.seq = 0; i.seq < 1000; i.seq++)
		assert_true(wan_again_push(&q, 2, &i));
	for (i.seq = 0; i.seq < 3; i.seq++) {
		i.flow = 1;
		assert_true(wan_again_push(&q, 1, &i));
		i.flow = 3;
		assert_true(wan_again_push(&q, 2 + WAN_AGAIN_RINGS, &i));
	}
	for (uint32_t seq[4] = {0}; wan_again_pop(&q, &i); n++) {
		assert_int_equal(i.seq, seq[i.flow]++);
		at[i.flow] = n;
	}
	assert_int_equal(n, 1006);
	assert_int_equal(at[1], 4); /* every second one until it has no more */
	assert_int_equal(at[3], 1005);
	assert_true(wan_again_push(&q, 5, &i));
	wan_again_clear(&q);
	assert_int_equal(q.n, 0);
	assert_false(wan_again_pop(&q, &i));
	wan_again_fini(&q);
}

static void test_arguments(void **state)
{
	struct wan_pair p;
	struct wan_class_stats s;
	struct wan_tunnel *t;

	start(&p, 2, 10);
	t = p.end[0].t;
	assert_int_equal(wan_class_set(t, WAN_CLASSES_MAX, &(struct wan_class_cfg){.weight = 1}), RWY_EINVAL);
	assert_int_equal(wan_class_set(t, 1, &(struct wan_class_cfg){.weight = 0}), RWY_EINVAL);
	assert_int_equal(
	    wan_class_set(t, 1, &(struct wan_class_cfg){.weight = WAN_WEIGHT_MAX + 1}), RWY_EINVAL);
	assert_int_equal(
	    wan_class_set(t, 1, &(struct wan_class_cfg){.weight = 1, .guarantee_Bps = 2, .limit_Bps = 1}),
	    RWY_EINVAL);
	assert_int_equal(
	    wan_class_set(t, 1, &(struct wan_class_cfg){.weight = 1, .limit_Bps = 999}), RWY_EINVAL);
	wan_class_stats(t, 1, &s);
	assert_int_equal(s.cfg.weight, 0);
	set(&p, 4095, 1000, 0, 7);
	set(&p, 3, 1000, 0, 7);
	wan_class_stats(t, 4095, &s);
	assert_int_equal(s.cfg.weight, 7);
	wan_tx_class(out(&p, 0)->tx, 77); /* never set: class 0 */
	wan_pair_run(&p, p.now + 50 * RWY_MS);
	wan_class_stats(t, 0, &s);
	assert_true(s.sent > 0);
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_guarantees),
	    cmocka_unit_test(test_weights),
	    cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_lag),
	    cmocka_unit_test(test_priority),
	    cmocka_unit_test(test_parent),
	    cmocka_unit_test(test_debt),
	    cmocka_unit_test(test_slow_parent),
	    cmocka_unit_test(test_told),
	    cmocka_unit_test(test_latency),
	    cmocka_unit_test(test_lost),
	    cmocka_unit_test(test_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
