/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the native path has lost several times goes by a reliable carrier: only that, only by a
 * carrier that answers, and only while the path loses. All arrives once, in order, with the right
 * bytes, whatever becomes of the carrier.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/long_case.h"
#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define DELAY    (10 * RWY_MS)
#define LOSS     200000 /* ppm */
#define PATIENCE 4      /* native probe timeouts, as in wan/stream_rate.c */

static const struct wan_pipe_cfg pipe_cfg = {
    .conns = 4, .run = 16, .delay = DELAY, .rate_Bps = 10000000, .room = 262144, .room_n = 512};

static struct wan_link_cfg link_cfg(uint32_t loss_ppm)
{
	return (struct wan_link_cfg){.delay = DELAY, .rate_Bps = 20000000, .loss_ppm = loss_ppm};
}

static void start(struct wan_pair *p, const struct wan_link_cfg *l, const struct wan_pipe_cfg *c,
    unsigned paths, uint64_t seed)
{
	struct wan_cfg w;

	wan_cfg_default(&w);
	w.tx_pkts_max = 8192;
	w.paths = paths;
	for (unsigned i = 1; i < paths; i++)
		w.mtu[i] = w.mtu[0];
	wan_pair_init(p, &w, l, l, seed);
	for (int i = 0; i < 2; i++)
		wan_pipe_init(&p->pipe[i], c, seed * 2 + (uint64_t)i);
}

static void run_for(struct wan_pair *p, rwy_dur d)
{
	rwy_time end = p->now + d;

	while (wan_pair_step(p, end))
		;
	p->now = end;
}

static void detour(struct wan_pair *p, int end, unsigned after)
{
	assert_int_equal(wan_stream_detour(p->end[end].t, after, p->now), 0);
}

/* Both ends have the policy, and know that the carrier answers; then the path begins to lose. */
static void begin(struct wan_pair *p, unsigned after, uint64_t seed)
{
	struct wan_link_cfg l = link_cfg(0);

	start(p, &l, &pipe_cfg, 1, seed);
	for (int i = 0; i < 2; i++)
		detour(p, i, after);
	run_for(p, RWY_SEC);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wan_pair_stats(p, i).detour_proven, after > 0);
		p->link[i].cfg.loss_ppm = LOSS;
	}
}

static uint64_t detoured(const struct wan_pair *p)
{
	return wan_pair_stats(p, 0).c.retransmit_detour + wan_pair_stats(p, 1).c.retransmit_detour;
}

/* Nothing is left of detours: not in the tunnel, and not on the carrier. */
static void assert_over(struct wan_pair *p)
{
	run_for(p, 2 * RWY_SEC);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wan_pair_stats(p, i).detour_waiting, 0);
		assert_int_equal(wan_stream_inflight(p->end[i].t), 0);
		assert_int_equal(wan_pair_stats(p, i).c.went_down, 0);
	}
	assert_true(wan_pair_finish(p));
}

/* How long some streams take; *share: detours, of all packets. */
static rwy_dur streams(unsigned after, uint64_t seed, double *share)
{
	struct wan_pair p;
	rwy_time from;

	begin(&p, after, seed);
	wan_pair_streams(&p, 6, 2000, 1000, 1400, 200);
	from = p.now;
	assert_true(wan_pair_run(&p, 100 * RWY_SEC));
	from = p.now - from;
	*share = (double)detoured(&p) / 12000;
	assert_over(&p);
	return from;
}

/* The more losses it takes, the less goes by the carrier; and each detour saves time. */
static void test_gain(void **state)
{
	rwy_dur took[4] = {0};
	double all[4] = {0}, share;
	unsigned rounds = 20;

	long_case();
	for (unsigned after = 0; after < 4; after++)
		for (uint64_t seed = 1; seed <= rounds; seed++) {
			took[after] += streams(after, seed, &share);
			all[after] += share / rounds;
		}
	assert_true(all[0] == 0);
	assert_true(all[1] > .1 && all[1] < .3);
	assert_true(all[2] > .01 && all[2] < all[1] / 3);
	assert_true(all[3] > 0 && all[3] < all[2] / 3);
	assert_true(took[1] < took[0] * 8 / 10);
	assert_true(took[2] < took[0] * 95 / 100);
}

/* It ends with the losses, although the carrier is there. */
static void test_calm(void **state)
{
	uint64_t before, sent;
	struct wan_pair p;

	begin(&p, 2, 3);
	wan_pair_streams(&p, 6, 2000, 1000, 1400, 100);
	run_for(&p, 300 * RWY_MS);
	assert_true(detoured(&p) > 10);
	assert_int_equal(wan_pair_stats(&p, 0).c.detours, 1);
	for (int i = 0; i < 2; i++)
		p.link[i].cfg.loss_ppm = 0;
	run_for(&p, 300 * RWY_MS); /* what was lost until then */
	before = detoured(&p);
	sent = wan_pair_stats(&p, 0).c.stream_sent;
	assert_false(wan_pair_done(&p));
	assert_true(wan_pair_run(&p, 100 * RWY_SEC));
	assert_int_equal(detoured(&p), before);
	assert_true(wan_pair_stats(&p, 0).c.stream_sent <= sent + 2);
	assert_over(&p);
}

/* Nothing under way by the carrier is older than its patience, and a turn. */
static void assert_none_late(const struct wan_pair *p, int end)
{
	const struct wan_tunnel *t = p->end[end].t;
	const struct wan_path *s = wan_stream_path(t);

	if (s->inflight_n)
		assert_true(
		    s->sent[s->tail & s->mask].sent + PATIENCE * wan_pto_first(t->path) + RWY_MS >= p->now);
	assert_true(t->detour.q.n == 0);
}

/*
 * The carrier dies with data on it, and nobody says so. That data goes natively after the carrier's
 * patience, nothing follows it, and the carrier is asked once a second; when it lives again, it
 * carries again.
 */
static void dead_seed(uint64_t seed)
{
	uint64_t late, by, sent;
	rwy_time died;
	struct wan_pair p;

	begin(&p, 2, seed);
	wan_pair_streams(&p, 6, 4000, 1000, 1400, 100);
	run_for(&p, 300 * RWY_MS);
	assert_true(detoured(&p) > 10);
	for (int i = 0; i < 2; i++)
		p.pipe[i].dead = true;
	died = p.now;
	while (wan_pair_step(&p, died + RWY_SEC))
		for (int i = 0; i < 2; i++)
			assert_none_late(&p, i);
	p.now = died + RWY_SEC;
	late = wan_pair_stats(&p, 0).c.detour_late;
	assert_true(late > 0);
	assert_false(wan_pair_stats(&p, 0).detour_proven);
	by = detoured(&p);
	sent = wan_pair_stats(&p, 0).c.stream_sent;
	run_for(&p, 3 * RWY_SEC);
	assert_int_equal(detoured(&p), by);
	assert_in_range(wan_pair_stats(&p, 0).c.stream_sent, sent + 2, sent + 4);
	for (int i = 0; i < 2; i++)
		p.pipe[i].dead = false;
	run_for(&p, 1500 * RWY_MS);
	assert_true(wan_pair_stats(&p, 0).detour_proven);
	assert_true(wan_pair_done(&p) || detoured(&p) > by);
	assert_true(wan_pair_run(&p, 200 * RWY_SEC));
	assert_over(&p);
}

static void test_dead(void **state)
{
	for (uint64_t seed = 0; seed < long_rounds(10); seed++)
		dead_seed(seed);
}

/* A carrier that is slower than the native path's repeats is worth nothing, and gets nothing. */
static void test_slow(void **state)
{
	struct wan_link_cfg l = link_cfg(LOSS);
	struct wan_pipe_cfg c = pipe_cfg;
	struct wan_pair p;

	c.delay = RWY_SEC;
	start(&p, &l, &c, 1, 5);
	for (int i = 0; i < 2; i++)
		detour(&p, i, 1);
	wan_pair_streams(&p, 6, 300, 1000, 1400, 100);
	assert_true(wan_pair_run(&p, 100 * RWY_SEC));
	assert_int_equal(detoured(&p), 0);
	assert_true(wan_pair_stats(&p, 0).c.stream_sent > 0);
	for (int i = 0; i < 2; i++)
		detour(&p, i, 0);
	run_for(&p, 20 * RWY_SEC);
	assert_over(&p);
}

/* What finds no room goes natively at once. */
static void test_no_room(void **state)
{
	struct wan_pipe_cfg c = pipe_cfg;
	struct wan_pair p;

	begin(&p, 1, 6);
	c.rate_Bps = 100000;
	c.room_n = WAN_STREAM_RESERVE + 4;
	for (int i = 0; i < 2; i++) {
		wan_pipe_fini(&p.pipe[i]);
		wan_pipe_init(&p.pipe[i], &c, 6);
	}
	wan_pair_streams(&p, 6, 2000, 1000, 1400, 100);
	assert_true(wan_pair_run(&p, 100 * RWY_SEC));
	assert_true(detoured(&p) > 0);
	assert_true(wan_pair_stats(&p, 0).c.detour_no_room > 100);
	assert_over(&p);
}

/* On, off, everything by the carrier, breaks, restarts: at each end alone, under load. */
static uint64_t moves_seed(uint64_t seed)
{
	struct wan_link_cfg l = link_cfg(LOSS / 2);
	uint64_t rng = seed + 3, by = 0;
	struct wan_pair p;

	l.reorder_ppm = 5000;
	l.reorder_extra = 3 * RWY_MS;
	l.dup_ppm = 2000;
	start(&p, &l, &pipe_cfg, 1 + seed % 2, seed);
	wan_pair_streams(&p, 6, 2000, 100, 3000, 200);
	while (!wan_pair_done(&p)) {
		int end = (int)wan_rng_below(&rng, 2);

		run_for(&p, wan_rng_below(&rng, 120) * RWY_MS);
		assert_true(p.now < 200 * RWY_SEC);
		by = detoured(&p) > by ? detoured(&p) : by;
		switch (wan_rng_below(&rng, 6)) {
		case 0:
			assert_int_equal(
			    wan_stream_use(p.end[end].t, !wan_stream_on(p.end[end].t), p.now), 0);
			break;
		case 1:
			wan_pipe_break(&p.pipe[0]);
			wan_pipe_break(&p.pipe[1]);
			for (int i = 0; i < 2; i++)
				wan_stream_lost(p.end[i].t, p.now);
			break;
		case 2:
			detour(&p, end, 0);
			break;
		default:
			detour(&p, end, 1 + wan_rng_below(&rng, 3));
		}
	}
	run_for(&p, 30 * RWY_SEC);
	assert_true(wan_pair_finish(&p));
	return by;
}

static void test_moves(void **state)
{
	uint64_t by = 0, rounds = long_rounds(40);

	for (uint64_t seed = 0; seed < rounds; seed++)
		by += moves_seed(seed);
	assert_true(by > 10 * rounds);
}

/* The peer restarts: what waits for it is forgotten with its session, and goes again in the next. */
static void test_restart(void **state)
{
	struct wan_pair p;

	begin(&p, 1, 8);
	wan_pair_streams(&p, 6, 2000, 100, 3000, 200);
	for (int round = 0; round < 5; round++) {
		run_for(&p, 100 * RWY_MS);
		wan_pipe_break(&p.pipe[0]);
		wan_pipe_break(&p.pipe[1]);
		wan_pair_restart(&p, 1);
		if (round & 1) /* it learns of the break before the restart, or later */
			run_for(&p, 50 * RWY_MS);
		wan_stream_lost(p.end[0].t, p.now);
		for (int i = 0; i < 2; i++)
			detour(&p, i, 1);
	}
	assert_true(wan_pair_run(&p, 100 * RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

static void test_range(void **state)
{
	struct wan_link_cfg l = link_cfg(0);
	struct wan_pair p;

	start(&p, &l, &pipe_cfg, 1, 9);
	assert_int_equal(wan_stream_detour(p.end[0].t, WAN_DETOUR_AFTER_MAX + 1, p.now), RWY_EINVAL);
	assert_int_equal(wan_stream_detours(p.end[0].t), 0);
	detour(&p, 0, WAN_DETOUR_AFTER_MAX);
	assert_int_equal(wan_stream_detours(p.end[0].t), WAN_DETOUR_AFTER_MAX);
	wan_stream_lost(p.end[0].t, p.now);
	assert_int_equal(wan_stream_detours(p.end[0].t), 0);
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_gain),
	    cmocka_unit_test(test_calm),
	    cmocka_unit_test(test_dead),
	    cmocka_unit_test(test_slow),
	    cmocka_unit_test(test_no_room),
	    cmocka_unit_test(test_moves),
	    cmocka_unit_test(test_restart),
	    cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
