/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel on a reliable carrier of several connections, and moves to and from it under load:
 * everything arrives once, in order, with the right bytes; no datagram counts as lost that is not;
 * the carrier never gets more than it has room for.
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

#define DELAY (10 * RWY_MS)

static const struct wan_pipe_cfg pipe_cfg = {.conns = 4,
    .run = 16,
    .delay = DELAY,
    .stall = 60 * RWY_MS,
    .stall_ppm = 2000,
    .rate_Bps = 10000000,
    .room = 262144,
    .room_n = 512};

static void start(
    struct wan_pair *p, const struct wan_link_cfg *l, const struct wan_pipe_cfg *c, uint64_t n, uint64_t seed)
{
	struct wan_cfg w;

	wan_cfg_default(&w);
	w.tx_pkts_max = 8192;
	wan_pair_init(p, &w, l, l, seed);
	for (int i = 0; i < 2; i++)
		wan_pipe_init(&p->pipe[i], c, seed * 2 + (uint64_t)i);
	if (n)
		wan_pair_streams(p, 6, n, 100, 3000, 200);
}

static void use(struct wan_pair *p, int end, bool on)
{
	assert_int_equal(wan_stream_use(p->end[end].t, on, p->now), 0);
}

static void run_for(struct wan_pair *p, rwy_dur d)
{
	rwy_time end = p->now + d;

	while (wan_pair_step(p, end))
		;
	p->now = end;
}

/* All UDP is dropped: the handshake uses the carrier, too. Stalls and overtaking are no losses. */
static void test_only_stream(void **state)
{
	struct wan_link_cfg none = {.delay = DELAY, .loss_ppm = 1000000};
	struct wan_pair p;

	start(&p, &none, &pipe_cfg, 3000, 1);
	use(&p, 0, true);
	use(&p, 1, true);
	assert_true(wan_pair_run(&p, 100 * RWY_SEC));
	for (int i = 0; i < 2; i++) {
		struct wan_stats s = wan_pair_stats(&p, i);

		assert_true(s.up && s.stream);
		assert_int_equal(s.c.lost, 0);
		assert_int_equal(s.c.tx_retransmit, 0);
		assert_int_equal(s.c.rx_duplicate, 0);
		assert_int_equal(s.c.pto, 0);
		assert_int_equal(s.c.stream_lost, 0);
		assert_int_equal(s.c.repair_sent, 0);
		assert_int_equal(s.c.went_down, 0);
		assert_true(s.c.stream_sent > 9000 && s.c.stream_sent + 50 > s.c.tx_datagrams);
		assert_true(s.min_rtt >= 2 * DELAY && s.srtt >= s.min_rtt);
		assert_true(s.rate_Bps > 1000000);
	}
	assert_true(wan_pair_finish(&p));
}

/* The window is the carrier's room: its rate is reached, whatever congestion control measured
 * before. */
static void test_rate_is_carriers(void **state)
{
	struct wan_link_cfg none = {.delay = DELAY, .loss_ppm = 1000000};
	struct wan_pipe_cfg c = pipe_cfg;
	struct wan_pair p;
	rwy_time began;

	c.stall_ppm = 0;
	start(&p, &none, &c, 4000, 2);
	use(&p, 0, true);
	use(&p, 1, true);
	while (!wan_hs_up(p.end[0].t) && wan_pair_step(&p, 10 * RWY_SEC))
		;
	began = p.now;
	assert_true(wan_pair_run(&p, 60 * RWY_SEC));
	/* 3 flows x 4000 x 1550 bytes each way over 4 x 10 MB/s: half a second with a full pipe. */
	assert_true(p.now - began < RWY_SEC);
	assert_true(wan_pair_finish(&p));
}

/* Hardly anything is in flight. */
static bool settled(const struct wan_pair *p)
{
	return wan_stream_inflight(p->end[0].t) < 200 && wan_stream_inflight(p->end[1].t) < 200;
}

/* Back and forth under load, on a native path that loses and reorders, at both ends at different times. */
static void move_seed(uint64_t seed)
{
	struct wan_link_cfg l = {.delay = DELAY,
	    .jitter = RWY_MS,
	    .rate_Bps = 20000000,
	    .loss_ppm = 20000,
	    .reorder_ppm = 5000,
	    .reorder_extra = 3 * RWY_MS,
	    .dup_ppm = 2000};
	uint64_t rng = seed + 1, moves = 0;
	struct wan_pair p;

	start(&p, &l, &pipe_cfg, 2500, seed);
	while (!wan_pair_done(&p)) {
		int end = (int)wan_rng_below(&rng, 2);

		run_for(&p, 5 * RWY_MS + wan_rng_below(&rng, 80) * RWY_MS);
		assert_true(p.now < 120 * RWY_SEC);
		use(&p, end, !wan_stream_on(p.end[end].t));
		moves++;
	}
	assert_true(moves > 4);
	assert_true(wan_pair_stats(&p, 0).c.stream_sent && wan_pair_stats(&p, 1).c.stream_sent);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wan_pair_stats(&p, i).c.stream_lost, 0);
		assert_int_equal(wan_pair_stats(&p, i).c.stream_breaks, 0);
		assert_int_equal(wan_pair_stats(&p, i).c.went_down, 0);
	}
	/*
	 * All datagrams in flight are accounted for once they have arrived, or, if their only ACK
	 * was lost natively, when the tunnel gives them up after 10 s. Keep-alives go on.
	 */
	run_for(&p, RWY_SEC);
	for (int i = 0; i < 240 && !settled(&p); i++)
		run_for(&p, RWY_SEC / 20);
	for (int i = 0; i < 2; i++) {
		assert_true(wan_stream_inflight(p.end[i].t) < 200); /* a keep-alive */
		assert_true(p.end[i].t->path[0].inflight < 10000);
	}
	assert_true(wan_pair_finish(&p));
}

static void test_move(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < long_rounds(40); seed++)
		move_seed(seed);
}

/* The carrier breaks with datagrams in flight: they are sent again natively, once the tunnel
 * knows. */
static void break_seed(uint64_t seed)
{
	struct wan_link_cfg l = {.delay = DELAY, .rate_Bps = 20000000, .loss_ppm = 10000};
	uint64_t rng = seed + 7, breaks = 0;
	struct wan_pair p;

	start(&p, &l, &pipe_cfg, 2000, seed);
	while (!wan_pair_done(&p)) {
		run_for(&p, 50 * RWY_MS + wan_rng_below(&rng, 100) * RWY_MS);
		assert_true(p.now < 120 * RWY_SEC);
		for (int i = 0; i < 2; i++)
			use(&p, i, true);
		run_for(&p, wan_rng_below(&rng, 100) * RWY_MS);
		/* Each end learns of it at a time of its own. */
		wan_pipe_break(&p.pipe[0]);
		wan_pipe_break(&p.pipe[1]);
		wan_stream_lost(p.end[seed & 1].t, p.now);
		wan_pipe_break(&p.pipe[!(seed & 1)]);
		wan_stream_lost(p.end[!(seed & 1)].t, p.now);
		assert_int_equal(wan_stream_inflight(p.end[0].t), 0);
		breaks++;
	}
	assert_true(breaks > 2);
	assert_true(wan_pair_stats(&p, 0).c.stream_breaks && wan_pair_stats(&p, 0).c.stream_lost);
	assert_true(wan_pair_finish(&p));
}

static void test_break(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < long_rounds(40); seed++)
		break_seed(seed);
}

/* Each end moves to the carrier and back faster than silence shows a lost datagram: data lost
 * natively is still sent again, and a native path in doubt is probed at once. */
static void often_seed(uint64_t seed)
{
	struct wan_link_cfg l = {.delay = 60 * RWY_MS, .rate_Bps = 20000000, .loss_ppm = 200000};
	struct wan_pipe_cfg c = pipe_cfg;
	struct wan_pair p;
	rwy_time from;

	c.delay = l.delay;
	start(&p, &l, &c, 0, seed);
	run_for(&p, RWY_SEC);
	wan_pair_streams(&p, 6, 8, 100, 3000, 200);
	from = p.now;
	for (unsigned turn = 0; !wan_pair_done(&p); turn++) {
		int end = (int)(turn % 2);

		use(&p, end, !wan_stream_on(p.end[end].t));
		run_for(&p, 25 * RWY_MS);
		assert_true(p.now < from + 1500 * RWY_MS);
	}
	assert_true(wan_pair_finish(&p));
}

static void test_moves_often(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < long_rounds(100); seed++)
		often_seed(seed);
}

/* The native path dies with much data in flight after the tunnel has moved: this is detected, and
 * the data goes by the carrier. */
static void test_native_dies(void **state)
{
	struct wan_link_cfg l = {.delay = DELAY, .rate_Bps = 20000000};
	struct wan_pair p;

	start(&p, &l, &pipe_cfg, 3000, 5);
	run_for(&p, 300 * RWY_MS);
	assert_true(p.end[0].t->path[0].inflight > 50000);
	p.dead_path = 1;
	use(&p, 0, true);
	use(&p, 1, true);
	rwy_time moved = p.now;

	assert_true(wan_pair_run(&p, 60 * RWY_SEC));
	assert_true(p.now - moved < 5 * RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 0).c.went_down, 0);
	assert_true(wan_pair_finish(&p));
}

/* A restart of one end while on the carrier: its connections die with it. */
static void test_restart(void **state)
{
	struct wan_link_cfg l = {.delay = DELAY, .rate_Bps = 20000000};
	struct wan_pair p;

	start(&p, &l, &pipe_cfg, 2000, 6);
	for (int round = 0; round < 3; round++) {
		run_for(&p, 200 * RWY_MS);
		use(&p, 0, true);
		use(&p, 1, true);
		run_for(&p, 50 * RWY_MS);
		wan_pipe_break(&p.pipe[0]);
		wan_pipe_break(&p.pipe[1]);
		wan_pair_restart(&p, 1);
		wan_stream_lost(p.end[0].t, p.now);
	}
	assert_true(wan_pair_run(&p, 60 * RWY_SEC));
	assert_true(wan_pair_stats(&p, 0).c.peer_restarts >= 3);
	assert_true(wan_pair_finish(&p));
}

/* No room: not even an acknowledgement is sent, and there is no busy timer; with room everything
 * continues. */
static void test_no_room(void **state)
{
	struct wan_link_cfg none = {.delay = DELAY, .loss_ppm = 1000000};
	struct wan_tx tx[64];
	struct wan_pair p;

	start(&p, &none, &pipe_cfg, 500, 8);
	use(&p, 0, true);
	use(&p, 1, true);
	run_for(&p, 200 * RWY_MS);
	wan_stream_room(p.end[0].t, 0, 0);
	assert_int_equal(wan_poll(p.end[0].t, tx, 64, p.now), 0);
	assert_true(wan_next(p.end[0].t) > p.now);
	/* With room for control only, no data goes. */
	wan_stream_room(p.end[0].t, WAN_STREAM_RESERVE, 1000000);
	unsigned n = wan_poll(p.end[0].t, tx, 64, p.now);

	for (unsigned i = 0; i < n; i++)
		assert_true(tx[i].stream && !tx[i].buf);
	assert_true(wan_pair_finish(&p));
}

/* Connections far behind: more gaps than are stored. Data is still accepted. */
static void test_far_behind(void **state)
{
	struct wan_link_cfg none = {.delay = DELAY, .loss_ppm = 1000000};
	struct wan_pipe_cfg c = pipe_cfg;
	struct wan_pair p;

	long_case();
	c.run = 1; /* the worst there is */
	c.conns = 2;
	c.stall = 400 * RWY_MS;
	c.stall_ppm = 500;
	c.room = 8000000;
	c.room_n = 8192;
	c.rate_Bps = 20000000;
	start(&p, &none, &c, 4000, 9);
	for (uint32_t i = 0; i < p.streams; i++)
		p.stream[i].queue_max = 2000;
	use(&p, 0, true);
	use(&p, 1, true);
	assert_true(wan_pair_run(&p, 200 * RWY_SEC));
	assert_true(wan_stream_path(p.end[0].t)->seen.floor || wan_stream_path(p.end[1].t)->seen.floor);
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_duplicate_pn, 0);
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_only_stream),
	    cmocka_unit_test(test_rate_is_carriers),
	    cmocka_unit_test(test_move),
	    cmocka_unit_test(test_break),
	    cmocka_unit_test(test_moves_often),
	    cmocka_unit_test(test_native_dies),
	    cmocka_unit_test(test_restart),
	    cmocka_unit_test(test_no_room),
	    cmocka_unit_test(test_far_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
