/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end-to-end loop with a fluid model of a flow: a sender as fast as the path while its window
 * allows, a round trip, a queue, a host with a given rate; RATE and DELIVERED arrive half a round
 * trip later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/drain.h"

#define STEP  (10 * RWY_US)
#define SLOTS 100000u
#define GBIT  ((uint64_t)125000000)

struct model {
	struct cc_drain d;
	rwy_dur rtt;
	uint64_t path_Bps, offered_Bps;
	uint64_t sent, arrived, drained, known; /* totals; known: the sender's view of drained */
	uint64_t window;
	uint64_t *wire, *told_drained, *told_window; /* by time slot */
	uint32_t slot;
	uint64_t peak; /* largest queue since the last read */
	rwy_time now;
	unsigned rates;      /* RATE frames */
	uint64_t rng, noise; /* noise: of the host's rate, percent */
};

static void set_up(struct model *m, rwy_dur rtt, uint64_t path_Bps)
{
	*m = (struct model){
	    .rtt = rtt, .path_Bps = path_Bps, .offered_Bps = path_Bps, .now = RWY_SEC, .rng = 1};
	m->wire = calloc(SLOTS, sizeof(uint64_t));
	m->told_drained = calloc(SLOTS, sizeof(uint64_t));
	m->told_window = calloc(SLOTS, sizeof(uint64_t));
	assert_non_null(m->wire);
	assert_non_null(m->told_drained);
	assert_non_null(m->told_window);
}

static void tear_down(struct model *m)
{
	free(m->wire);
	free(m->told_drained);
	free(m->told_window);
}

static uint64_t step_bytes(uint64_t Bps)
{
	return Bps / (RWY_SEC / STEP);
}

static void step(struct model *m, uint64_t host_Bps)
{
	uint32_t half = (uint32_t)(m->rtt / 2 / STEP), s = m->slot++ % SLOTS;
	uint64_t room, queue, take;

	/* sender */
	if (m->told_drained[s])
		m->known = m->told_drained[s];
	if (m->told_window[s])
		m->window = m->told_window[s] - 1;
	m->told_drained[s] = m->told_window[s] = 0;
	room = step_bytes(m->offered_Bps < m->path_Bps ? m->offered_Bps : m->path_Bps);
	if (m->window && m->sent - m->known + room > m->window)
		room = m->window > m->sent - m->known ? m->window - (m->sent - m->known) : 0;
	m->sent += room;
	m->wire[(s + half) % SLOTS] += room;
	/* receiver */
	m->arrived += m->wire[s];
	m->wire[s] = 0;
	m->rng = m->rng * 6364136223846793005u + 1442695040888963407u;
	take = step_bytes(host_Bps);
	if (m->noise)
		take = take * (100 - m->noise + (m->rng >> 33) % (2 * m->noise + 1)) / 100;
	queue = m->arrived - m->drained;
	m->drained += queue < take ? queue : take;
	queue = m->arrived - m->drained;
	if (queue > m->peak)
		m->peak = queue;
	m->now += STEP;
	if (m->slot % ((uint32_t)(m->rtt / 64 / STEP) + 1) == 0)
		m->told_drained[(s + half) % SLOTS] = m->drained;
	if (cc_drain_update(&m->d, queue, m->drained, m->rtt, m->now)) {
		m->told_window[(s + half) % SLOTS] = cc_drain_window(&m->d) + 1;
		m->rates++;
	}
}

/* Runs for t; returns the bytes that the host accepted. m->peak: the longest queue. */
static uint64_t run(struct model *m, rwy_dur t, uint64_t host_Bps)
{
	uint64_t before = m->drained;

	m->peak = 0;
	for (rwy_dur i = 0; i < t; i += STEP)
		step(m, host_Bps);
	return m->drained - before;
}

static uint64_t bytes_in(uint64_t Bps, rwy_dur t)
{
	return Bps / 1000000 * (t / RWY_US);
}

static const rwy_dur RTTS[] = {RWY_MS, 10 * RWY_MS, 25 * RWY_MS, 100 * RWY_MS};

/* Goal G6: the peak is the data in flight when the host became slow, and a little more; then the
 * queue is short and the host never idle. */
static void test_fall(void **state)
{
	for (unsigned i = 0; i < sizeof(RTTS) / sizeof(*RTTS); i++) {
		struct model m;
		uint64_t floor = bytes_in(75 * GBIT, RTTS[i]), bdp = bytes_in(100 * GBIT, RTTS[i]), took;

		set_up(&m, RTTS[i], 100 * GBIT);
		m.noise = 10;
		run(&m, 20 * RTTS[i], 200 * GBIT);
		assert_int_equal(m.window, 0);
		run(&m, 6 * RTTS[i], 25 * GBIT);
		assert_true(m.peak <= floor + floor / 20 + (5 << 20));
		took = run(&m, 40 * RTTS[i], 25 * GBIT);
		assert_true(took >= bytes_in(25 * GBIT, 40 * RTTS[i]) / 100 * 98);
		took = run(&m, 20 * RTTS[i], 25 * GBIT);
		assert_true(m.peak <= bdp / 20 + (4 << 20));
		assert_true(took >= bytes_in(25 * GBIT, 20 * RTTS[i]) / 100 * 99);
		tear_down(&m);
	}
}

/* A host of a few MB/s, with few packets: its rate is known to within a quarter. */
static void test_slow_host(void **state)
{
	unsigned known = 0;
	struct model m;

	set_up(&m, 40 * RWY_MS, GBIT);
	m.noise = 60;
	run(&m, 400 * RWY_MS, 2 * GBIT);
	run(&m, 6 * RWY_SEC, GBIT / 50);
	for (unsigned i = 0; i < 50; i++) {
		run(&m, 40 * RWY_MS, GBIT / 50);
		assert_int_not_equal(m.window, 0);
		if (m.d.rate_Bps) /* otherwise the window still grows */
			assert_in_range(m.d.rate_Bps, GBIT / 50 / 4 * 3, GBIT / 50 / 4 * 5);
		known += m.d.rate_Bps != 0;
	}
	assert_true(known >= 30);
	tear_down(&m);
}

/* --- hosts that pause ------------------------------------------------------------------------- */

/* A host without a CPU of its own: runs and pauses alternately for some milliseconds (mean `on`,
 * `off`, exponential up to eight times that). Returns the most that it can accept in t. */
static uint64_t run_stalling(
    struct model *m, rwy_dur t, uint64_t host_Bps, rwy_dur on, rwy_dur off, uint64_t *can)
{
	uint64_t before = m->drained;
	bool runs = true;
	rwy_dur left = on;

	m->peak = 0;
	*can = 0;
	for (rwy_dur i = 0; i < t; i += STEP) {
		if (left < STEP) {
			uint32_t u = (uint32_t)(m->rng >> 40) | 1;
			unsigned halvings =
			    (unsigned)__builtin_clz(u) - 8; /* geometric: a rough exponential */
			rwy_dur mean = runs ? off : on;

			runs = !runs;
			left = mean / 4 + mean / 2 * halvings + mean / 4 * (u & 1023) / 1024;
			if (left > 8 * mean)
				left = 8 * mean;
		}
		left -= left < STEP ? left : STEP;
		*can += runs ? step_bytes(host_Bps) : 0;
		step(m, runs ? host_Bps : 0);
	}
	return m->drained - before;
}

/* Emulated hosts, and busy ones, offered more than their rate or a little less. In both cases they
 * get nine tenths of their capacity, and the queue for them is limited. */
static void test_stalls(void **state)
{
	static const rwy_dur rtts[] = {RWY_MS, 5 * RWY_MS, 20 * RWY_MS, 100 * RWY_MS};
	static const unsigned offered[] = {50, 90, 150, 1000}; /* percent of the host's capacity */
	static const rwy_dur offs[] = {RWY_MS, 4 * RWY_MS, 12 * RWY_MS};

	for (unsigned i = 0; i < 4 * 4 * 3 * 2; i++) {
		/* 75 MB/s, 12.5 MB/s, half of the time paused */
		uint64_t host = i % 2 ? 12 * GBIT / 10 : GBIT / 5, can, took, want;
		rwy_dur rtt = rtts[i / 2 % 4], off = offs[i / 32];
		unsigned percent = offered[i / 8 % 4];
		struct model m;

		set_up(&m, rtt, 100 * GBIT);
		m.rng = 77 + i;
		m.noise = 30;
		m.offered_Bps = host / 2 * percent / 100;
		run_stalling(&m, 2 * RWY_SEC, host, off, off, &can);
		took = run_stalling(&m, 4 * RWY_SEC, host, off, off, &can);
		want = bytes_in(m.offered_Bps, 4 * RWY_SEC);
		if (can < want)
			want = can;
		assert_true(took >= want / 10 * 9);
		tear_down(&m);
	}
}

/* The host is fast again: the flow is, too, within a few round trips. */
static void test_rise(void **state)
{
	struct model m;
	uint64_t took;

	set_up(&m, 25 * RWY_MS, 100 * GBIT);
	m.noise = 10;
	run(&m, 200 * RWY_MS, 200 * GBIT);
	run(&m, 600 * RWY_MS, 25 * GBIT);
	run(&m, 8 * 25 * RWY_MS, 200 * GBIT);
	took = run(&m, 100 * RWY_MS, 200 * GBIT);
	assert_true(took >= bytes_in(99 * GBIT, 100 * RWY_MS));
	run(&m, 200 * RWY_MS, 200 * GBIT);
	assert_int_equal(m.window, 0);
	tear_down(&m);
}

/* A short pause of a host costs little more than its duration. */
static void test_pause(void **state)
{
	struct model m;
	uint64_t took;

	set_up(&m, 25 * RWY_MS, 100 * GBIT);
	run(&m, 200 * RWY_MS, 110 * GBIT);
	took = run(&m, 2 * RWY_MS, 0);
	took += run(&m, 198 * RWY_MS, 110 * GBIT);
	assert_true(took >= bytes_in(100 * GBIT, 190 * RWY_MS));
	tear_down(&m);
}

/* A host that accepts all that the sender offers is never limited, however little that is. */
static void test_application(void **state)
{
	struct model m;

	set_up(&m, 25 * RWY_MS, 100 * GBIT);
	m.offered_Bps = 3 * GBIT;
	run(&m, 500 * RWY_MS, 100 * GBIT);
	assert_int_equal(m.rates, 0);
	m.offered_Bps = 100 * GBIT;
	run(&m, 500 * RWY_MS, 25 * GBIT);
	assert_int_not_equal(m.window, 0);
	/* It offers less than the host's rate: no limit, no queue. */
	m.offered_Bps = 3 * GBIT;
	run(&m, 500 * RWY_MS, 25 * GBIT);
	assert_int_equal(m.window, 0);
	tear_down(&m);
}

/* Small messages for seconds, and then much at once, as when a gap in the WAN's order is filled:
 * the low rate before says nothing about the host's. */
static void test_flood(void **state)
{
	struct model m;
	uint64_t took;

	set_up(&m, 25 * RWY_MS, 40 * GBIT);
	for (unsigned i = 0; i < 3; i++) {
		m.offered_Bps = 100000;
		run(&m, 3 * RWY_SEC, 100 * GBIT);
		m.sent += 3000000;
		m.wire[m.slot % SLOTS] += 3000000;
		m.offered_Bps = 40 * GBIT;
		took = run(&m, 300 * RWY_MS, 100 * GBIT);
		assert_true(took >= bytes_in(40 * GBIT, 300 * RWY_MS) * 9 / 10);
	}
	tear_down(&m);
}

/* It stops, and returns: at least one buffer may always be in flight, which shows the return. */
static void test_stop(void **state)
{
	struct model m;
	uint64_t took;

	set_up(&m, 25 * RWY_MS, 100 * GBIT);
	run(&m, 200 * RWY_MS, 110 * GBIT);
	run(&m, 500 * RWY_MS, 0);
	assert_true(m.peak <= bytes_in(105 * GBIT, 25 * RWY_MS));
	run(&m, 300 * RWY_MS, 110 * GBIT);
	took = run(&m, 200 * RWY_MS, 110 * GBIT);
	assert_true(took >= bytes_in(98 * GBIT, 200 * RWY_MS));
	tear_down(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fall),
	    cmocka_unit_test(test_slow_host),
	    cmocka_unit_test(test_stalls),
	    cmocka_unit_test(test_rise),
	    cmocka_unit_test(test_pause),
	    cmocka_unit_test(test_application),
	    cmocka_unit_test(test_flood),
	    cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
