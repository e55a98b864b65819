/* SPDX-License-Identifier: Apache-2.0 */
/* cc_dcqcn: its steps one by one, then fairness with marking queues, near and far. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/dcqcn.h"
#include "tests/lib/cc_bottleneck.h"

#define LINE ((uint64_t)5000000000) /* 40 Gb/s, the paper's */
#define GBIT ((uint64_t)125000000)
#define RTT  (20 * RWY_US)

struct one {
	alignas(16) uint8_t state[CC_STATE_SIZE];
	rwy_time now;
};

static struct cc_cfg line_of(uint64_t rate_Bps)
{
	return (struct cc_cfg){.rate_Bps = rate_Bps, .min_rate_Bps = 125000, .mtu = 1500, .initial_rtt = RTT};
}

static void start(struct one *o)
{
	const struct cc_cfg cfg = line_of(LINE);

	o->now = RWY_SEC;
	cc_dcqcn.init(o->state, &cfg, o->now);
}

static void limit(struct one *o, uint64_t rate_Bps)
{
	const struct cc_cfg cfg = line_of(rate_Bps);

	cc_dcqcn.on_limits(o->state, &cfg);
}

static uint64_t rate(const struct one *o)
{
	return cc_dcqcn.rate(o->state);
}

static void cnp(struct one *o)
{
	cc_dcqcn.on_cnp(o->state, o->now);
}

/* Lets its timer run for t. */
static void pass(struct one *o, rwy_dur t)
{
	rwy_time until = o->now + t;

	while (cc_dcqcn.next(o->state) <= until) {
		o->now = cc_dcqcn.next(o->state);
		cc_dcqcn.on_tick(o->state, o->now);
	}
	o->now = until;
}

static void send(struct one *o, uint64_t bytes)
{
	for (; bytes; bytes -= bytes < 10000 ? bytes : 10000)
		cc_dcqcn.on_sent(o->state, bytes < 10000 ? (uint32_t)bytes : 10000, 0, o->now);
}

static void test_params(void **state)
{
	struct cc_dcqcn_params p = cc_dcqcn_params_default(LINE);

	assert_in_range(p.ai_Bps, 5000000, 5000001); /* 40 Mb/s */
	assert_int_equal(p.byte_counter, 10000000);
	assert_int_equal(p.timer, 55 * RWY_US);
	assert_int_equal(p.alpha_timer, 55 * RWY_US);
	assert_int_equal(p.cut_interval, 50 * RWY_US);
	assert_int_equal(p.fast_steps, 5);
	assert_int_equal(p.g_shift, 8);
}

/* It begins at line rate and rests there; the first notification, with alpha = 1, halves. */
static void test_cut(void **state)
{
	struct one o;

	start(&o);
	assert_int_equal(rate(&o), LINE);
	assert_int_equal(cc_dcqcn.next(o.state), RWY_NEVER);
	cnp(&o);
	assert_int_equal(rate(&o), LINE / 2);
	assert_int_equal(cc_dcqcn.next(o.state), o.now + 55 * RWY_US);
	for (int i = 0; i < 49; i++) { /* within 50 us they count as one */
		o.now += RWY_US;
		cnp(&o);
	}
	assert_int_equal(rate(&o), LINE / 2);
	o.now += RWY_US;
	cnp(&o);
	assert_in_range(rate(&o), LINE / 4, LINE / 4 + LINE / 400);
}

/* A lease that shrinks and grows again leaves a flow at line rate there. A flow that was cut stays
 * where it is. */
static void test_limits(void **state)
{
	struct one o;

	start(&o);
	limit(&o, LINE / 32);
	assert_int_equal(rate(&o), LINE / 32);
	limit(&o, LINE);
	assert_int_equal(rate(&o), LINE);
	cnp(&o);
	assert_int_equal(rate(&o), LINE / 2);
	limit(&o, LINE - LINE / 8);
	assert_int_equal(rate(&o), LINE / 2);
	limit(&o, LINE);
	assert_int_equal(rate(&o), LINE / 2);
}

/* Marks in an ACK and losses are notifications too. */
static void test_other_notifications(void **state)
{
	struct cc_ack marked = {.acked_bytes = 1500, .ce_count = 1, .min_rtt = RTT, .rtt = RTT};
	struct cc_ack lost = {.acked_bytes = 1500, .lost_bytes = 1500, .min_rtt = RTT, .rtt = RTT};
	struct cc_ack clean = {.acked_bytes = 1500, .min_rtt = RTT, .rtt = RTT};
	struct one o;

	start(&o);
	cc_dcqcn.on_ack(o.state, &clean, o.now);
	assert_int_equal(rate(&o), LINE);
	cc_dcqcn.on_ack(o.state, &marked, o.now);
	assert_int_equal(rate(&o), LINE / 2);
	start(&o);
	cc_dcqcn.on_ack(o.state, &lost, o.now);
	assert_int_equal(rate(&o), LINE / 2);
	start(&o);
	cc_dcqcn.on_lost(o.state, 1500, o.now, 0, o.now);
	assert_int_equal(rate(&o), LINE / 2);
}

/* If the receiver's rate is known, a cut ends at seven eighths of it, also if that seems a little
 * above the rate: it is measured over the bytes of some acknowledgements. A rate below seven
 * eighths is cut as usual. */
static void test_taken(void **state)
{
	const uint64_t took = LINE / 4;
	uint64_t before;
	struct one o;

	for (uint64_t more = 0; more <= took / 16; more += took / 32) {
		start(&o);
		cc_dcqcn_taken(o.state, took);
		while (rate(&o) > took) { /* the first cuts halve */
			cnp(&o);
			o.now += 50 * RWY_US;
			assert_true(rate(&o) >= took - took / 8);
		}
		before = rate(&o);
		cc_dcqcn_taken(o.state, before + more);
		cnp(&o);
		assert_true(rate(&o) < before);
		assert_true(rate(&o) >= before - before / 8);
		o.now += 50 * RWY_US;
		before = rate(&o);
		cc_dcqcn_taken(o.state, 2 * before);
		cnp(&o);
		assert_true(rate(&o) < before);
	}
}

/* Five timer events halve the way back to the target; the sixth moves the target by R_AI. */
static void test_increase(void **state)
{
	struct one o;

	start(&o);
	cnp(&o);
	o.now += 50 * RWY_US;
	cnp(&o); /* target LINE / 2, rate a quarter */
	uint64_t gap = LINE / 2 - rate(&o), target = LINE / 2;

	for (int i = 1; i <= 5; i++) {
		pass(&o, 55 * RWY_US);
		assert_in_range(target - rate(&o), (gap >> i) - 5, (gap >> i) + 5);
	}
	gap = target - rate(&o);
	pass(&o, 55 * RWY_US);
	target += cc_dcqcn_params_default(LINE).ai_Bps;
	assert_in_range(rate(&o), target - gap - 10, target);
}

/* Hyper increase needs both counters past F. */
static void test_hyper(void **state)
{
	struct one timer, both;

	for (int i = 0; i < 2; i++) {
		struct one *o = i ? &both : &timer;

		start(o);
		cnp(o);
		o->now += 50 * RWY_US;
		cnp(o);
		for (int k = 0; k < 20; k++) {
			if (i)
				send(o, 10000000);
			pass(o, 55 * RWY_US);
		}
	}
	assert_true(rate(&timer) < LINE / 2 + 20 * (LINE / 1000));
	assert_true(rate(&both) > LINE / 2 + 10 * (LINE / 100));
	pass(&both, RWY_SEC);
	send(&both, 1000000000);
	pass(&both, RWY_SEC);
	assert_int_equal(rate(&both), LINE);
	assert_int_equal(cc_dcqcn.next(both.state), RWY_NEVER);
}

/* Alpha decays: after a quiet second a notification costs almost nothing, after 55 us half. */
static void test_alpha(void **state)
{
	struct one o;

	start(&o);
	cnp(&o);
	pass(&o, 10 * RWY_SEC);
	uint64_t before = rate(&o);

	cnp(&o);
	assert_true(rate(&o) > before - before / 100);
}

/* On a long path a cut takes a round trip to have an effect: no second one before that. */
static void test_stretched(void **state)
{
	struct cc_ack a = {.acked_bytes = 1500, .ce_count = 1, .min_rtt = 20 * RWY_MS, .rtt = 20 * RWY_MS};
	struct one o;

	start(&o);
	for (int i = 0; i < 40; i++, o.now += RWY_MS) {
		cc_dcqcn.on_ack(o.state, &a, o.now);
		if (i < 20)
			assert_true(rate(&o) >= LINE / 2);
	}
	assert_true(rate(&o) < LINE / 2);
	assert_true(rate(&o) >= LINE / 4);
}

static void share(const struct cc_bn_cfg *c, unsigned flows, rwy_dur apart, rwy_dur settle, rwy_dur t)
{
	struct cc_bn b;

	cc_bn_init(&b, c);
	for (unsigned i = 0; i < flows; i++) {
		cc_bn_add(&b, &cc_dcqcn, c->rate_Bps);
		cc_bn_run(&b, apart);
	}
	cc_bn_run(&b, settle);
	cc_bn_measure(&b);
	cc_bn_run(&b, t);
	print_message("%u flows: %.3f of the path, Jain %.4f, queue %.3f ms, most %.3f ms, %llu drops\n",
	    flows, cc_bn_total(&b), cc_bn_jain(&b), (double)cc_bn_queue_mean(&b) / 1e6,
	    (double)cc_bn_queue_most(&b) / 1e6, (unsigned long long)b.drops);
	assert_true(cc_bn_total(&b) >= 0.9);
	assert_true(cc_bn_jain(&b) >= 0.95);
	assert_int_equal(b.drops, 0);
	for (unsigned i = 0; i < flows; i++)
		assert_int_equal(b.flow[i].nonsense, 0);
	cc_bn_fini(&b);
}

/* The paper's own setting: 40 Gb/s, its RED, CNPs. */
static void test_fair_near(void **state)
{
	for (unsigned flows = 2; flows <= 4; flows += 2) {
		struct cc_bn_cfg c = {.rate_Bps = LINE,
		    .rtt = 50 * RWY_US,
		    .queue_bytes = 1000000,
		    .mark_min = 5000,
		    .mark_max = 200000,
		    .mark_ppm = 10000,
		    .cnp = true,
		    .step = RWY_US,
		    .ack_gap = 5 * RWY_US,
		    .ack_pkts = 4,
		    .seed = flows};

		share(&c, flows, 20 * RWY_MS, 100 * RWY_MS, 200 * RWY_MS);
	}
}

/* A marking queue in the WAN. */
static void test_fair_far(void **state)
{
	struct cc_bn_cfg c;

	cc_bn_default(&c);
	c.mark_min = 100000;
	c.mark_max = 1000000;
	c.mark_ppm = 100000;
	share(&c, 2, 2 * RWY_SEC, 10 * RWY_SEC, 20 * RWY_SEC);
}

/* With a configured rate of ten times the path's, one flow finds the path's rate by marks. */
static void test_finds_the_rate(void **state)
{
	struct cc_bn_cfg c;
	struct cc_bn b;

	cc_bn_default(&c);
	c.mark_min = 100000;
	c.mark_max = 1000000;
	c.mark_ppm = 100000;
	cc_bn_init(&b, &c);
	cc_bn_add(&b, &cc_dcqcn, 10 * GBIT);
	cc_bn_run(&b, 3 * RWY_SEC);
	cc_bn_measure(&b);
	cc_bn_run(&b, 10 * RWY_SEC);
	print_message("10 times too much: %.3f of the path, queue %.2f ms\n", cc_bn_total(&b),
	    (double)cc_bn_queue_mean(&b) / 1e6);
	assert_true(cc_bn_total(&b) >= 0.9);
	assert_true(cc_bn_queue_most(&b) < 20 * RWY_MS);
	cc_bn_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_params),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_other_notifications),
	    cmocka_unit_test(test_taken),
	    cmocka_unit_test(test_increase),
	    cmocka_unit_test(test_hyper),
	    cmocka_unit_test(test_alpha),
	    cmocka_unit_test(test_stretched),
	    cmocka_unit_test(test_fair_near),
	    cmocka_unit_test(test_fair_far),
	    cmocka_unit_test(test_finds_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
