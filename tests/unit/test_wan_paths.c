/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels of several unlike paths: what they carry together, and what a dead, lossy or longer one
 * costs. All in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/long_case.h"
#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define OVERHEAD 42
#define HEADS    30 /* WAN headers of a datagram with data */
#define LEN      1024u
#define MBPS     125000u

static struct wan_link_cfg line(uint64_t rate_Bps, rwy_dur rtt, uint32_t loss_ppm)
{
	return (struct wan_link_cfg){.delay = rtt / 2,
	    .rate_Bps = rate_Bps,
	    .overhead = OVERHEAD,
	    .queue_bytes = rate_Bps / 20, /* 50 ms */
	    .loss_ppm = loss_ppm};
}

/* Two paths, `cc` with each path's rate as its limit. */
static void begin(struct wan_pair *p, const struct cc_ops *cc, const struct wan_link_cfg l[2], uint64_t seed)
{
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.paths = 2;
	c.cc = cc;
	for (unsigned i = 0; i < 2 && cc == &cc_fixed; i++)
		c.path_rate_Bps[i] = l[i].rate_Bps;
	c.cc_cfg.rate_Bps = cc == &cc_fixed ? l[0].rate_Bps : 0;
	c.cc_cfg.initial_rtt = 20 * RWY_MS;
	c.rx_window = 1u << 17;
	wan_pair_init(p, &c, &l[0], &l[0], seed);
	wan_pair_path(p, &l[1], &l[1]);
}

static struct wan_path_stats path(const struct wan_pair *p, unsigned i)
{
	struct wan_path_stats s;

	wan_get_path_stats(p->end[0].t, i, &s);
	return s;
}

/* Goodput of stream 0 over a time, as a share of what both links carry. */
static double share(struct wan_pair *p, const struct wan_link_cfg l[2], rwy_dur span)
{
	uint64_t bytes = p->stream[0].bytes;
	rwy_time from = p->now;
	double could = 0;

	wan_pair_run(p, p->now + span);
	for (unsigned i = 0; i < 2; i++)
		could += (double)l[i].rate_Bps * (1 - l[i].loss_ppm / 1e6) * LEN / (LEN + HEADS + OVERHEAD);
	return (double)(p->stream[0].bytes - bytes) * 1e9 / (double)(p->now - from) / could;
}

static void goodput(const struct cc_ops *cc, uint32_t loss_ppm, double least)
{
	const struct wan_link_cfg l[2] = {
	    line(600 * MBPS, 10 * RWY_MS, 0), line(400 * MBPS, 30 * RWY_MS, loss_ppm)};
	struct wan_pair p;
	struct wan_stats s;

	begin(&p, cc, l, 3);
	wan_pair_streams(&p, 1, 1u << 24, LEN, LEN, 1u << 15);
	wan_pair_run(&p, p.now + 2 * RWY_SEC);
	double got = share(&p, l, 3 * RWY_SEC);

	wan_get_stats(p.end[0].t, &s);
	print_message(
	    "%s, loss %u ppm: %.3f of both; path 0 %.1f MB, path 1 %.1f MB, lost %llu, spurious %llu, "
	    "silences %u %u\n",
	    cc->name, loss_ppm, got, (double)path(&p, 0).tx_bytes / 1e6, (double)path(&p, 1).tx_bytes / 1e6,
	    (unsigned long long)s.c.lost, (unsigned long long)s.c.spurious_retransmit, path(&p, 0).silences,
	    path(&p, 1).silences);
	assert_true(got >= least);
	/* Datagrams of one path overtake those of the other, and none of them is taken for lost. */
	assert_int_equal(s.c.spurious_retransmit, 0);
	assert_int_equal(path(&p, 0).lost, 0);
	if (!loss_ppm)
		assert_int_equal(s.c.lost, 0);
	assert_int_equal(path(&p, 0).silences + path(&p, 1).silences, 0);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

static void test_goodput(void **state)
{
	long_case();
	goodput(&cc_fixed, 0, .95);
	goodput(&cc_auto, 0, .95);
	goodput(&cc_fixed, 10000, .94);
	goodput(&cc_auto, 10000, .94);
}

/* --- a path that dies, loses, is longer, comes back --------------------------------------------- */
/* Changes both directions of a path. */
static struct wan_link_cfg *cfg_of(struct wan_pair *p, unsigned path, int dir)
{
	return path ? &p->path_link[dir][path].cfg : &p->link[dir].cfg;
}

static void set_loss(struct wan_pair *p, unsigned path, uint32_t loss_ppm)
{
	for (int dir = 0; dir < 2; dir++)
		cfg_of(p, path, dir)->loss_ppm = loss_ppm;
}

/* What was seen in a span of time. */
struct seen {
	rwy_dur stall;   /* longest time in which stream 0 got nothing */
	rwy_dur noticed; /* until the path was silent; RWY_NEVER: it was not */
	uint64_t bytes;  /* that stream 0 got */
};

static struct seen watch(struct wan_pair *p, unsigned dead, rwy_dur span)
{
	rwy_time begin = p->now, last = p->now;
	uint64_t got = p->stream[0].got, bytes = p->stream[0].bytes;
	struct seen s = {.noticed = RWY_NEVER};

	while (wan_pair_step(p, begin + span)) {
		if (s.noticed == RWY_NEVER && !wan_path_usable(&p->end[0].t->path[dead]))
			s.noticed = p->now - begin;
		if (p->stream[0].got == got)
			continue;
		got = p->stream[0].got;
		s.stall = rwy_time_max(s.stall, p->now - last);
		last = p->now;
	}
	s.stall = rwy_time_max(s.stall, begin + span - last);
	s.bytes = p->stream[0].bytes - bytes;
	return s;
}

static void loaded(struct wan_pair *p, const struct wan_link_cfg l[2], uint64_t seed)
{
	begin(p, &cc_auto, l, seed);
	wan_pair_streams(p, 1, 1u << 24, LEN, LEN, 1u << 13);
	wan_pair_run(p, p->now + RWY_SEC);
}

/* Either path dies under load: it is noticed a round trip and somewhat more than three probes after
 * that, and the flow goes on when what was under way there has come by the other one. */
static void test_dead(void **state)
{
	static const rwy_dur rtt[][2] = {{2, 2}, {10, 10}, {10, 30}, {30, 30}, {100, 30}};

	for (unsigned i = 0; i < long_rounds(sizeof(rtt) / sizeof(rtt[0]) * 2); i++) {
		unsigned dead = i % 2;
		struct wan_link_cfg l[2] = {
		    line(100 * MBPS, rtt[i / 2][0] * RWY_MS, 0), line(100 * MBPS, rtt[i / 2][1] * RWY_MS, 0)};
		struct wan_pair p;

		loaded(&p, l, i + 1);
		uint64_t lost = path(&p, !dead).lost; /* while it learned its rate */
		rwy_dur here = path(&p, dead).srtt, there = path(&p, !dead).srtt;

		set_loss(&p, dead, 1000000);
		struct seen s = watch(&p, dead, 2 * RWY_SEC);

		print_message("RTT %.0f and %.0f ms, path %u dies: noticed after %.1f ms, stall %.1f ms\n",
		    (double)here / 1e6, (double)there / 1e6, dead, (double)s.noticed / 1e6,
		    (double)s.stall / 1e6);
		assert_true(s.noticed <= here + here / 4 + 25 * RWY_MS);
		assert_true(s.stall <= here + here / 4 + there + 40 * RWY_MS);
		assert_int_equal(path(&p, !dead).silences, 0);
		assert_int_equal(path(&p, !dead).lost, lost);
		assert_true(s.bytes > 12500000); /* one path had half of two seconds at least */

		set_loss(&p, dead, 0); /* it is back, and both carry again */
		wan_pair_run(&p, p.now + rwy_time_max(RWY_SEC, 20 * here));
		assert_int_equal(p.end[0].t->path[dead].state, WAN_PATH_USABLE);
		double back = share(&p, l, RWY_SEC);

		print_message("  back: %.3f of both\n", back);
		assert_true(back > .9);
		assert_int_equal(p.errors, 0);
		wan_pair_fini(&p);
	}
}

/*
 * A path dies and comes back two seconds later. The ACK that ends the silence names datagrams of
 * before it, and must not be a measure of the path's rate: it carries its share again. Whether such
 * datagrams had arrived depends on the moment.
 */
static void test_rate_after_silence(void **state)
{
	static const struct {
		rwy_dur rtt[2], later;
		unsigned dead;
	} at[] = {{{10, 30}, 49, 1}, {{10, 30}, 7, 0}, {{10, 10}, 147, 1}, {{30, 30}, 196, 0}};

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct wan_link_cfg l[2] = {
		    line(100 * MBPS, at[i].rtt[0] * RWY_MS, 0), line(100 * MBPS, at[i].rtt[1] * RWY_MS, 0)};
		struct wan_pair p;

		loaded(&p, l, i + 1);
		wan_pair_run(&p, p.now + at[i].later * RWY_MS);
		set_loss(&p, at[i].dead, 1000000);
		watch(&p, at[i].dead, 2 * RWY_SEC);
		set_loss(&p, at[i].dead, 0);
		wan_pair_run(&p, p.now + RWY_SEC);
		double back = share(&p, l, RWY_SEC);

		print_message("path %u dies %.0f ms later; back: %.3f of both\n", at[i].dead,
		    (double)at[i].later, back);
		assert_true(back > .9);
		assert_int_equal(p.errors, 0);
		wan_pair_fini(&p);
	}
}

/*
 * A path dies before the first data, but after the tunnel is up. Both were asked by then, so what is
 * sent by the dead one goes by the other one at once, not after the first probe timeout.
 */
static void test_dead_before_data(void **state)
{
	struct wan_link_cfg l[2] = {line(100 * MBPS, 30 * RWY_MS, 0), line(100 * MBPS, 60 * RWY_MS, 0)};
	struct wan_pair p;

	begin(&p, &cc_auto, l, 14);
	wan_pair_settle(&p, 300 * RWY_MS);
	for (unsigned i = 0; i < 2; i++)
		assert_string_equal(path(&p, i).state, "usable");
	set_loss(&p, 0, 1000000);
	wan_pair_streams(&p, 1, 1u << 24, LEN, LEN, 64);
	struct seen s = watch(&p, 0, RWY_SEC);

	print_message("dead before data: noticed after %.1f ms, stall %.1f ms\n", (double)s.noticed / 1e6,
	    (double)s.stall / 1e6);
	assert_true(s.noticed <= 100 * RWY_MS);
	assert_true(s.stall <= 160 * RWY_MS);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* A path that loses 30 % of what goes each way, and one that becomes 50 ms longer. */
static void test_worse(void **state)
{
	struct wan_link_cfg l[2] = {line(100 * MBPS, 30 * RWY_MS, 0), line(100 * MBPS, 30 * RWY_MS, 0)};

	for (unsigned longer = 0; longer < 2; longer++) {
		struct wan_pair p;

		loaded(&p, l, 7);
		if (longer)
			for (int dir = 0; dir < 2; dir++)
				cfg_of(&p, 1, dir)->delay += 25 * RWY_MS;
		else
			set_loss(&p, 1, 300000);
		struct seen s = watch(&p, 1, 3 * RWY_SEC);

		print_message("path 1 %s: stall %.1f ms, %.1f MB in 3 s, silences %u, spurious %llu\n",
		    longer ? "50 ms longer" : "loses 30 %", (double)s.stall / 1e6, (double)s.bytes / 1e6,
		    path(&p, 1).silences, (unsigned long long)wan_pair_stats(&p, 0).c.spurious_retransmit);
		assert_true(s.bytes > 36000000); /* what path 0 carries alone, nearly */
		assert_true(s.stall <= 200 * RWY_MS);
		assert_int_equal(path(&p, 0).silences, 0);
		assert_int_equal(p.errors, 0);
		wan_pair_fini(&p);
	}
}

/* Both die and come back: nothing is given up, and both carry again. */
static void test_outage(void **state)
{
	struct wan_link_cfg l[2] = {line(100 * MBPS, 10 * RWY_MS, 0), line(100 * MBPS, 30 * RWY_MS, 0)};
	struct wan_pair p;

	loaded(&p, l, 9);
	for (unsigned i = 0; i < 2; i++)
		set_loss(&p, i, 1000000);
	wan_pair_run(&p, p.now + 2 * RWY_SEC);
	for (unsigned i = 0; i < 2; i++)
		set_loss(&p, i, 0);
	struct seen s = watch(&p, 0, 500 * RWY_MS);

	assert_true(s.bytes > 0);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_true(share(&p, l, RWY_SEC) > .9);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* Few packets take the short path; a path without traffic is asked while there is some, and not
 * when nothing is under way. */
static void test_idle(void **state)
{
	struct wan_link_cfg l[2] = {line(100 * MBPS, 30 * RWY_MS, 0), line(100 * MBPS, 10 * RWY_MS, 0)};
	struct wan_pair p;
	uint64_t n[2];

	begin(&p, &cc_auto, l, 11);
	wan_pair_run(&p, p.now + 2 * RWY_SEC); /* both have been asked once */
	wan_pair_streams(&p, 1, 2000, LEN, LEN, 1);
	for (unsigned i = 0; i < 2; i++)
		n[i] = path(&p, i).tx_datagrams;
	rwy_time from = p.now;

	assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
	double asked = (double)(path(&p, 0).tx_datagrams - n[0]) * 5e6 / (double)(p.now - from);

	print_message("idle path: %.2f datagrams a probe interval; the other one %llu\n", asked,
	    (unsigned long long)(path(&p, 1).tx_datagrams - n[1]));
	assert_true(path(&p, 1).tx_datagrams - n[1] >= 1990);
	assert_true(asked > 1.8 && asked < 2.5); /* its own, and an answer to each of the peer's */
	wan_pair_settle(&p, RWY_SEC);
	for (unsigned i = 0; i < 2; i++)
		n[i] = path(&p, i).tx_datagrams;
	wan_pair_settle(&p, 10 * RWY_SEC);
	for (unsigned i = 0; i < 2; i++)
		assert_true(path(&p, i).tx_datagrams - n[i] < 50); /* keep-alives */
	assert_int_equal(path(&p, 0).silences + path(&p, 1).silences, 0);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* Eight long paths: the answers to probes ask for answers now and then, and these kept the paths
 * being asked for ever. */
static void test_quiet(void **state)
{
	struct wan_link_cfg l = line(100 * MBPS, 100 * RWY_MS, 0);
	uint64_t n[WAN_PATHS_MAX];
	struct wan_pair p;
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.paths = WAN_PATHS_MAX;
	c.cc = &cc_auto;
	c.cc_cfg.initial_rtt = 20 * RWY_MS;
	wan_pair_init(&p, &c, &l, &l, 13);
	for (unsigned i = 1; i < WAN_PATHS_MAX; i++)
		wan_pair_path(&p, &l, &l);
	wan_pair_streams(&p, 1, 3000, LEN, LEN, 1);
	wan_pair_run(&p, p.now + 5 * RWY_SEC);
	p.stream[0].total = p.stream[0].sent;
	assert_true(wan_pair_run(&p, p.now + 10 * RWY_SEC));
	wan_pair_settle(&p, RWY_SEC);
	for (unsigned i = 0; i < WAN_PATHS_MAX; i++)
		n[i] = path(&p, i).tx_datagrams;
	wan_pair_settle(&p, 10 * RWY_SEC);
	for (unsigned i = 0; i < WAN_PATHS_MAX; i++)
		assert_true(path(&p, i).tx_datagrams - n[i] < 60); /* keep-alives */
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* Datagrams in a path's map that carry what was lost before. */
static unsigned repeats(const struct wan_pair *p, unsigned path)
{
	const struct wan_path *w = &p->end[0].t->path[path];
	unsigned n = 0;

	for (uint64_t i = 0; i <= w->mask; i++)
		n += w->sent[i].state != WAN_SENT_NONE && w->sent[i].losses;
	return n;
}

/* What the long path loses is repeated on the short one, where it arrives first, though both carry
 * new data. */
static void test_repeats(void **state)
{
	struct wan_link_cfg l[2] = {line(100 * MBPS, 10 * RWY_MS, 0), line(100 * MBPS, 60 * RWY_MS, 10000)};
	struct wan_pair p;

	begin(&p, &cc_fixed, l, 15);
	wan_pair_streams(&p, 1, 1u << 24, LEN, LEN, 1u << 13);
	wan_pair_run(&p, p.now + 3 * RWY_SEC);
	print_message("repeats: %u and %u\n", repeats(&p, 0), repeats(&p, 1));
	assert_true(path(&p, 1).lost > 50);
	assert_true(repeats(&p, 0) > 20);
	assert_int_equal(repeats(&p, 1), 0);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* A short message stays on one of two equal paths; a long one takes both. */
static void test_message(void **state)
{
	struct wan_link_cfg l[2] = {line(1000 * MBPS, 30 * RWY_MS, 0), line(1000 * MBPS, 30 * RWY_MS, 0)};

	for (unsigned large = 0; large < 2; large++) {
		struct wan_pair p;
		uint64_t n[2];

		begin(&p, &cc_fixed, l, 14);
		wan_pair_settle(&p, 2 * RWY_SEC);
		for (unsigned i = 0; i < 2; i++)
			n[i] = path(&p, i).tx_bytes;
		wan_pair_streams(&p, 1, large ? 1000 : 16, LEN, LEN, 1000);
		assert_true(wan_pair_run(&p, p.now + 5 * RWY_SEC));
		for (unsigned i = 0; i < 2; i++)
			n[i] = path(&p, i).tx_bytes - n[i];
		print_message("%u buffers: %llu and %llu bytes\n", large ? 1000 : 16,
		    (unsigned long long)n[0], (unsigned long long)n[1]);
		assert_true((n[0] > 8 * LEN && n[1] > 8 * LEN) == large);
		assert_int_equal(p.errors, 0);
		wan_pair_fini(&p);
	}
}

/* A path that falls silent and comes back while it carries nothing, because the other one is
 * shorter, is as good as before: answers to probes suffice. */
static void test_back_without_traffic(void **state)
{
	struct wan_link_cfg l[2] = {line(100 * MBPS, 30 * RWY_MS, 0), line(100 * MBPS, 10 * RWY_MS, 0)};
	struct wan_pair p;

	begin(&p, &cc_auto, l, 12);
	wan_pair_run(&p, p.now + 2 * RWY_SEC);
	wan_pair_streams(&p, 1, 1u << 24, LEN, LEN, 1);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_string_equal(path(&p, 0).state, "usable");
	set_loss(&p, 0, 1000000);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_string_equal(path(&p, 0).state, "silent");
	set_loss(&p, 0, 0);
	wan_pair_run(&p, p.now + 2 * RWY_SEC);
	assert_string_equal(path(&p, 0).state, "usable");
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* The path that carries falls silent while the other one, back a moment ago, is tried: that one is
 * all there is, and is used at once. */
static void test_last_is_used(void **state)
{
	struct wan_link_cfg l[2] = {line(100 * MBPS, 30 * RWY_MS, 0), line(100 * MBPS, 30 * RWY_MS, 0)};
	struct wan_pair p;

	loaded(&p, l, 15);
	set_loss(&p, 1, 1000000);
	wan_pair_run(&p, p.now + RWY_SEC);
	set_loss(&p, 1, 0);
	for (unsigned i = 0; i < 1000 && path(&p, 1).state[0] != 't'; i++)
		wan_pair_run(&p, p.now + RWY_MS);
	assert_string_equal(path(&p, 1).state, "tried");
	set_loss(&p, 0, 1000000);
	for (unsigned i = 0; i < 1000 && path(&p, 0).state[0] != 's'; i++) {
		assert_string_equal(path(&p, 1).state, "tried");
		set_loss(&p, 1, i % 2 ? 300000 : 0); /* losses keep it tried */
		wan_pair_run(&p, p.now + RWY_MS);
	}
	assert_string_equal(path(&p, 0).state, "silent");
	assert_string_equal(path(&p, 1).state, "usable");
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* A path rests before it has carried anything, as if it shared a bottleneck with the one that carries,
 * which then falls silent. The questions that were all it carried say nothing of its rate. */
static void test_rested(void **state)
{
	struct wan_link_cfg l[2] = {line(100 * MBPS, 30 * RWY_MS, 0), line(100 * MBPS, 30 * RWY_MS, 0)};
	struct wan_pair p;
	struct wan_tunnel *t;

	begin(&p, &cc_auto, l, 16);
	wan_pair_settle(&p, 300 * RWY_MS);
	t = p.end[0].t;
	t->couple.path[1].state = t->path[1].rests = WAN_COUPLE_RESTS;
	t->couple.path[1].carrier = 0;
	t->couple.path[1].until = p.now + 20 * RWY_SEC;
	wan_pair_streams(&p, 2, 1u << 24, LEN, LEN, 64);
	wan_pair_run(&p, p.now + 6 * RWY_SEC);
	assert_int_equal(t->path[1].rests, WAN_COUPLE_RESTS);
	set_loss(&p, 0, 1000000);
	struct seen s = watch(&p, 0, RWY_SEC);

	print_message("rested: noticed after %.1f ms, stall %.1f ms, %.1f MB in a second\n",
	    (double)s.noticed / 1e6, (double)s.stall / 1e6, (double)s.bytes / 1e6);
	assert_int_equal(t->path[1].rests, WAN_COUPLE_CARRIES);
	assert_true(s.bytes > 1000000); /* half of what it carries */
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* Questions every 5 ms are more than 5000 bytes a second: data gets its turn all the same. */
static void test_control_leaves_data_its_turn(void **state)
{
	struct wan_pace c = {0};
	rwy_time now = RWY_SEC;
	unsigned turns = 0;

	wan_pace_set(&c, 5000);
	(void)wan_pace_catch_up(&c, now);
	for (unsigned i = 0; i < 4000; i++, now += 5 * RWY_MS) {
		if (wan_pace_ok(&c, now)) {
			wan_pace_sent(&c, 1000, false);
			turns++;
		}
		wan_pace_sent(&c, 45, true);
	}
	/* of the 100 datagrams that the rate allows in 20 s, a third: control takes 2048 bytes for
	 * each, and no more */
	assert_in_range(turns, 30, 40);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_goodput),
	    cmocka_unit_test(test_dead),
	    cmocka_unit_test(test_rate_after_silence),
	    cmocka_unit_test(test_dead_before_data),
	    cmocka_unit_test(test_worse),
	    cmocka_unit_test(test_outage),
	    cmocka_unit_test(test_idle),
	    cmocka_unit_test(test_quiet),
	    cmocka_unit_test(test_message),
	    cmocka_unit_test(test_repeats),
	    cmocka_unit_test(test_back_without_traffic),
	    cmocka_unit_test(test_last_is_used),
	    cmocka_unit_test(test_rested),
	    cmocka_unit_test(test_control_leaves_data_its_turn),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
