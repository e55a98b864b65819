/* SPDX-License-Identifier: Apache-2.0 */
/* Every algorithm over the same bottleneck: limits of throughput, queue and answers, not traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/limits.h"
#include "tests/lib/cc_bottleneck.h"

#define GBIT ((uint64_t)125000000)

struct row {
	const struct cc_ops *ops;
	uint64_t max_Bps; /* configured: fixed and dcqcn get the path's rate, the others find it */
	double at_least;
	rwy_dur queue_mean, queue_most; /* at most */
};

static const struct row rows[] = {
    {&cc_fixed, GBIT, 0.97, RWY_MS, RWY_MS},
    {&cc_auto, 10 * GBIT, 0.95, RWY_MS / 4, 3 * RWY_MS / 2},
    {&cc_bbr, 10 * GBIT, 0.95, 3 * RWY_MS, 10 * RWY_MS},
    {&cc_swift, 10 * GBIT, 0.95, 3 * RWY_MS, 10 * RWY_MS},
    {&cc_cubic, 10 * GBIT, 0.95, 20 * RWY_MS, 20 * RWY_MS},
    {&cc_dcqcn, GBIT, 0.97, RWY_MS, RWY_MS},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void report(const struct cc_bn *b, const char *what)
{
	char line[96];

	cc_guard_print(b->flow[0].ops, b->flow[0].state, line, sizeof(line));
	print_message("%-12s %.3f of the path, queue %.2f ms, most %.2f ms, %llu drops; %s\n", what,
	    cc_bn_total(b), (double)cc_bn_queue_mean(b) / 1e6, (double)cc_bn_queue_most(b) / 1e6,
	    (unsigned long long)b->drops, line);
}

/* Invariants of all algorithms and paths. */
static void invariants(const struct cc_bn *b)
{
	for (unsigned i = 0; i < b->flows; i++) {
		const struct cc_bn_flow *f = &b->flow[i];

		assert_int_equal(f->nonsense, 0);
		assert_true(f->answer.rate_Bps <= f->cfg.rate_Bps);
		assert_true(f->inflight == (uint64_t)f->n * f->cfg.mtu);
	}
	assert_true(cc_bn_total(b) <= 1.01);
}

/* 1 Gb/s, 20 ms, a queue of one BDP, no loss of its own: 90 % in the first ten seconds, more after that. */
static void test_fill(void **state)
{
	for (size_t i = 0; i < ROWS; i++) {
		struct cc_bn_cfg c;
		struct cc_bn b;

		cc_bn_default(&c);
		cc_bn_init(&b, &c);
		cc_bn_add(&b, rows[i].ops, rows[i].max_Bps);
		cc_bn_run(&b, 10 * RWY_SEC);
		assert_true(cc_bn_total(&b) >= 0.9);
		cc_bn_measure(&b);
		cc_bn_run(&b, 10 * RWY_SEC);
		report(&b, "fill");
		assert_true(cc_bn_total(&b) >= rows[i].at_least);
		assert_true(cc_bn_queue_mean(&b) <= rows[i].queue_mean);
		assert_true(cc_bn_queue_most(&b) <= rows[i].queue_most);
		invariants(&b);
		cc_bn_fini(&b);
	}
}

/* The same with other paths: short and long, slow and fast. Once the rate is found the queue stays
 * short. */
static void test_paths(void **state)
{
	static const struct {
		uint64_t rate_Bps;
		rwy_dur rtt;
	} paths[] = {{GBIT / 10, 5 * RWY_MS}, {GBIT / 10, 100 * RWY_MS}, {2 * GBIT, 5 * RWY_MS},
	    {2 * GBIT, 100 * RWY_MS}, {8 * GBIT, RWY_MS}};

	for (size_t k = 0; k < sizeof(paths) / sizeof(paths[0]); k++) {
		for (size_t i = 0; i < ROWS; i++) {
			struct cc_bn_cfg c;
			struct cc_bn b;

			cc_bn_default(&c);
			c.rate_Bps = paths[k].rate_Bps;
			c.rtt = paths[k].rtt;
			c.queue_bytes = cc_bytes_in(c.rate_Bps, c.rtt + 5 * RWY_MS);
			c.ack_gap = c.rtt / 8;
			cc_bn_init(&b, &c);
			cc_bn_add(&b, rows[i].ops, rows[i].max_Bps == GBIT ? c.rate_Bps : 10 * GBIT);
			cc_bn_run(&b, 10 * RWY_SEC);
			cc_bn_measure(&b);
			cc_bn_run(&b, 5 * RWY_SEC);
			report(&b, "path");
			assert_true(cc_bn_total(&b) >= 0.85);
			invariants(&b);
			cc_bn_fini(&b);
		}
	}
}

/* 1 % of random loss: the path's own, for algorithms made for a WAN. cubic takes it for
 * congestion. */
static void test_random_loss(void **state)
{
	static const struct {
		const struct cc_ops *ops;
		double at_least;
	} all[] = {{&cc_auto, 0.95}, {&cc_bbr, 0.95}, {&cc_swift, 0.9}, {&cc_cubic, 0}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (unsigned seed = 1; seed <= 5; seed++) {
			struct cc_bn_cfg c;
			struct cc_bn b;

			cc_bn_default(&c);
			c.loss_ppm = 10000;
			c.seed = seed;
			cc_bn_init(&b, &c);
			cc_bn_add(&b, all[i].ops, 10 * GBIT);
			cc_bn_run(&b, 2 * RWY_SEC);
			cc_bn_measure(&b);
			cc_bn_run(&b, 5 * RWY_SEC);
			report(&b, "1 % loss");
			assert_true(cc_bn_total(&b) >= all[i].at_least);
			invariants(&b);
			cc_bn_fini(&b);
		}
	}
}

/* The path's rate falls to a quarter: the queue does not stay full. It returns: so does ours. bbr
 * remembers a rate for two cycles, so it takes longest. */
static void test_path_changes(void **state)
{
	static const struct {
		const struct cc_ops *ops;
		rwy_dur shrink, grow; /* time to do so */
	} all[] = {{&cc_auto, 2 * RWY_SEC, 3 * RWY_SEC}, {&cc_bbr, 8 * RWY_SEC, 5 * RWY_SEC},
	    {&cc_swift, 2 * RWY_SEC, 5 * RWY_SEC}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct cc_bn_cfg c;
		struct cc_bn b;

		cc_bn_default(&c);
		cc_bn_init(&b, &c);
		cc_bn_add(&b, all[i].ops, 10 * GBIT);
		cc_bn_run(&b, 3 * RWY_SEC);
		b.cfg.rate_Bps /= 4;
		cc_bn_run(&b, all[i].shrink);
		cc_bn_measure(&b);
		cc_bn_run(&b, 3 * RWY_SEC);
		report(&b, "a quarter");
		assert_true(cc_bn_total(&b) >= 0.85);
		assert_true(cc_bn_queue_mean(&b) <= 10 * RWY_MS);
		b.cfg.rate_Bps *= 4;
		cc_bn_run(&b, all[i].grow);
		cc_bn_measure(&b);
		cc_bn_run(&b, 3 * RWY_SEC);
		report(&b, "all again");
		assert_true(cc_bn_total(&b) >= 0.9);
		invariants(&b);
		cc_bn_fini(&b);
	}
}

/* A long time with little to send, then much: the model is still valid. */
static void test_app_limited(void **state)
{
	static const struct cc_ops *const all[] = {&cc_auto, &cc_bbr, &cc_swift};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct cc_bn_cfg c;
		struct cc_bn b;

		cc_bn_default(&c);
		cc_bn_init(&b, &c);
		cc_bn_add(&b, all[i], 10 * GBIT);
		cc_bn_run(&b, 3 * RWY_SEC);
		b.flow[0].demand_Bps = GBIT / 100;
		cc_bn_run(&b, 30 * RWY_SEC);
		b.flow[0].demand_Bps = 0;
		cc_bn_run(&b, 50 * RWY_MS);
		cc_bn_measure(&b);
		cc_bn_run(&b, 500 * RWY_MS);
		report(&b, "after idling");
		assert_true(cc_bn_total(&b) >= 0.85);
		invariants(&b);
		cc_bn_fini(&b);
	}
}

/* Several flows of a kind share without starving one, and keep the queue limited. */
static void test_share(void **state)
{
	static const struct {
		const struct cc_ops *ops;
		double jain;
	} all[] = {{&cc_auto, 0.9}, {&cc_bbr, 0.4}, {&cc_swift, 0.9}, {&cc_cubic, 0.8}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct cc_bn_cfg c;
		struct cc_bn b;

		cc_bn_default(&c);
		cc_bn_init(&b, &c);
		cc_bn_add(&b, all[i].ops, 10 * GBIT);
		cc_bn_run(&b, 2 * RWY_SEC);
		cc_bn_add(&b, all[i].ops, 10 * GBIT);
		cc_bn_add(&b, all[i].ops, 10 * GBIT);
		cc_bn_run(&b, 15 * RWY_SEC);
		cc_bn_measure(&b);
		cc_bn_run(&b, 20 * RWY_SEC);
		report(&b, "three flows");
		print_message("  Jain %.3f: %.3f %.3f %.3f\n", cc_bn_jain(&b), cc_bn_share(&b, 0),
		    cc_bn_share(&b, 1), cc_bn_share(&b, 2));
		assert_true(cc_bn_total(&b) >= 0.9);
		assert_true(cc_bn_jain(&b) >= all[i].jain);
		assert_true(cc_bn_queue_most(&b) <= 20 * RWY_MS + 100 * RWY_US);
		invariants(&b);
		cc_bn_fini(&b);
	}
}

/* Beside flows that fill the buffer until it drops: no flow starves, in shallow and in deep
 * buffers. */
static void test_beside_cubic(void **state)
{
	static const struct {
		uint64_t queue;
		unsigned others;
	} all[] = {{625000, 1}, {625000, 4}, {2500000, 1}, {2500000, 4}, {10000000, 1}, {10000000, 4}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		double fair = 1. / (all[i].others + 1);
		struct cc_bn_cfg c;
		struct cc_bn b;

		cc_bn_default(&c);
		c.queue_bytes = all[i].queue;
		cc_bn_init(&b, &c);
		cc_bn_add(&b, &cc_auto, 10 * GBIT);
		for (unsigned k = 0; k < all[i].others; k++)
			cc_bn_add(&b, &cc_cubic, 10 * GBIT);
		cc_bn_run(&b, 20 * RWY_SEC);
		cc_bn_measure(&b);
		cc_bn_run(&b, 40 * RWY_SEC);
		report(&b, "beside cubic");
		print_message("  fair %.3f: ours %.3f, first of theirs %.3f\n", fair, cc_bn_share(&b, 0),
		    cc_bn_share(&b, 1));
		assert_true(cc_bn_share(&b, 0) >= 0.3 * fair && cc_bn_share(&b, 0) <= 2.2 * fair);
		for (unsigned k = 1; k <= all[i].others; k++)
			assert_true(cc_bn_share(&b, k) >= 0.1 * fair);
		assert_true(cc_bn_total(&b) >= 0.85);
		invariants(&b);
		cc_bn_fini(&b);
	}
}

/* The other flows end: their queue drains, and we get the whole path. */
static void test_others_leave(void **state)
{
	struct cc_bn_cfg c;
	struct cc_bn b;

	cc_bn_default(&c);
	c.queue_bytes = 10000000;
	cc_bn_init(&b, &c);
	cc_bn_add(&b, &cc_auto, 10 * GBIT);
	cc_bn_add(&b, &cc_cubic, 10 * GBIT);
	cc_bn_run(&b, 20 * RWY_SEC);
	b.flow[1].demand_Bps = 125000;
	cc_bn_run(&b, 40 * RWY_SEC);
	cc_bn_measure(&b);
	cc_bn_run(&b, 10 * RWY_SEC);
	report(&b, "others left");
	assert_true(cc_bn_total(&b) >= 0.95);
	assert_true(cc_bn_queue_mean(&b) <= 5 * RWY_MS);
	invariants(&b);
	cc_bn_fini(&b);
}

/* Whatever the input, each answer is within the limits. */
static void nonsense(const struct cc_ops *ops)
{
	alignas(16) uint8_t state[CC_STATE_SIZE];
	struct cc_cfg cfg = {.rate_Bps = GBIT, .min_rate_Bps = 125000, .mtu = 1472, .initial_rtt = RWY_MS};
	struct cc_answer answer;
	rwy_time now = RWY_SEC;
	uint64_t x = 1;
	char line[96];

	ops->init(state, &cfg, now);
	for (unsigned i = 0; i < 100000; i++) {
		uint8_t bytes[sizeof(struct cc_ack)];
		struct cc_ack a;

		for (size_t k = 0; k < sizeof(bytes); k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			bytes[k] = (x >> 60) < 9 ? 0 : (uint8_t)(x >> 33);
		}
		bytes[offsetof(struct cc_ack, app_limited)] = x >> 63;
		memcpy(&a, bytes, sizeof(a));
		if (i % 3) {
			a.rate_Bps &= 0xffffffffff;
			a.rtt &= 0xffffffff;
		}
		if (i % 2)
			a.acked_bytes &= 0xffffff, a.lost_bytes &= 0xffffff;
		now += (x >> 40) & 0xffffff;
		ops->on_sent(state, (uint32_t)x & 0xffff, x >> 20, now);
		ops->on_ack(state, &a, now);
		if (i % 7 == 0)
			ops->on_lost(state, a.lost_bytes, a.lost_sent, a.inflight, now);
		if (i % 100 == 0)
			ops->on_persistent(state, now);
		if (i % 5 == 0 && ops->on_cnp)
			ops->on_cnp(state, now);
		if (cc_guard_next(ops, state, 0) <= now)
			ops->on_tick(state, now);
		assert_int_equal(cc_guard_ask(ops, state, &cfg, &answer), 0);
	}
	cc_guard_print(ops, state, line, sizeof(line));
	assert_true(line[0] != '\0');
}

static void test_nonsense(void **state)
{
	for (size_t i = 0; i < ROWS; i++)
		nonsense(rows[i].ops);
}

static void test_names(void **state)
{
	for (size_t i = 0; i < ROWS; i++)
		assert_ptr_equal(cc_find(rows[i].ops->name), rows[i].ops);
	assert_null(cc_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_fill),
	    cmocka_unit_test(test_paths),
	    cmocka_unit_test(test_random_loss),
	    cmocka_unit_test(test_path_changes),
	    cmocka_unit_test(test_app_limited),
	    cmocka_unit_test(test_share),
	    cmocka_unit_test(test_beside_cubic),
	    cmocka_unit_test(test_others_leave),
	    cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
