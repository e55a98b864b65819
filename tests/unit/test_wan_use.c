/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that are added, taken away, led elsewhere and spared while data is under way. All in
 * virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/aead_test.h"
#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define OVERHEAD 42
#define LEN      1024u
#define MBPS     125000u
#define MTU      1472u

static struct wan_link_cfg line(uint64_t rate_Bps, rwy_dur rtt)
{
	return (struct wan_link_cfg){
	    .delay = rtt / 2, .rate_Bps = rate_Bps, .overhead = OVERHEAD, .queue_bytes = rate_Bps / 20};
}

/* A tunnel of one path, with links for two more. */
static void begin(struct wan_pair *p, const struct cc_ops *cc, bool keys)
{
	const struct wan_link_cfg own = line(100 * MBPS, 10 * RWY_MS), other = line(100 * MBPS, 30 * RWY_MS);
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.cc = cc;
	c.cc_cfg.rate_Bps = cc == &cc_fixed ? 50 * MBPS : 0;
	c.cc_cfg.initial_rtt = 20 * RWY_MS;
	c.aead = keys ? &aead_test : NULL;
	wan_pair_init(p, &c, &own, &own, 7);
	for (unsigned i = 0; i < 2; i++)
		wan_pair_path(p, &other, &other);
	wan_pair_streams(p, 1, 1u << 24, LEN, LEN, 1u << 13);
	wan_pair_run(p, p->now + RWY_SEC);
}

static struct wan_path_stats path(const struct wan_pair *p, unsigned i)
{
	struct wan_path_stats s;

	wan_get_path_stats(p->end[0].t, i, &s);
	return s;
}

static const char *path_state(const struct wan_pair *p, unsigned i)
{
	return path(p, i).state;
}

static void use(struct wan_pair *p, int end, unsigned path, enum wan_path_use u, bool anew)
{
	assert_int_equal(wan_retune_use(p->end[end].t, path, u, MTU, anew, p->now), 0);
}

/* Bytes that each path carried in a span, and the longest time in which stream 0 got nothing. */
struct seen {
	uint64_t bytes[3];
	rwy_dur stall;
};

static struct seen watch(struct wan_pair *p, rwy_dur span)
{
	const unsigned n = wan_paths(p->end[0].t);
	rwy_time end = p->now + span, last = p->now;
	uint64_t got = p->stream[0].got;
	struct seen s = {0};

	for (unsigned i = 0; i < n; i++)
		s.bytes[i] = path(p, i).tx_bytes;
	while (wan_pair_step(p, end)) {
		if (p->stream[0].got == got)
			continue;
		got = p->stream[0].got;
		s.stall = rwy_time_max(s.stall, p->now - last);
		last = p->now;
	}
	for (unsigned i = 0; i < n; i++)
		s.bytes[i] = path(p, i).tx_bytes - s.bytes[i];
	return s;
}

static void set_loss(struct wan_pair *p, unsigned path, uint32_t ppm)
{
	for (int dir = 0; dir < 2; dir++)
		(path ? &p->path_link[dir][path] : &p->link[dir])->cfg.loss_ppm = ppm;
}

/* The two ends change 50 ms apart, in either order. A path comes, leads elsewhere, and goes. */
static void live(bool keys, int first)
{
	struct wan_pair p;
	struct seen s;

	begin(&p, &cc_auto, keys);
	assert_int_equal(wan_paths(p.end[0].t), 1);
	for (unsigned round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++) {
			use(&p, i ? !first : first, 1, WAN_USE_ALWAYS, false);
			s = watch(&p, 50 * RWY_MS);
			assert_true(s.stall < 60 * RWY_MS);
		}
		wan_pair_run(&p, p.now + RWY_SEC);
		s = watch(&p, RWY_SEC);
		print_message("round %u: %.1f and %.1f MB, stall %.1f ms\n", round, (double)s.bytes[0] / 1e6,
		    (double)s.bytes[1] / 1e6, (double)s.stall / 1e6);
		assert_true(s.bytes[1] > s.bytes[0] / 2);
		for (int i = 0; i < 2; i++) { /* to another place */
			use(&p, i ? !first : first, 1, WAN_USE_ALWAYS, true);
			s = watch(&p, 50 * RWY_MS);
			assert_true(s.stall < 60 * RWY_MS);
		}
		wan_pair_run(&p, p.now + RWY_SEC);
		assert_string_equal(path(&p, 1).state, "usable");
		for (int i = 0; i < 2; i++) {
			use(&p, i ? !first : first, 1, WAN_USE_NEVER, false);
			s = watch(&p, 50 * RWY_MS);
			assert_true(s.stall < 60 * RWY_MS);
		}
		s = watch(&p, RWY_SEC);
		assert_string_equal(path(&p, 1).state, "off");
		assert_int_equal(path(&p, 1).inflight, 0);
		assert_int_equal(s.bytes[1], 0);
		assert_true(s.bytes[0] > 10000000);
	}
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

static void test_live(void **state)
{
	live(false, 0);
	live(false, 1);
	live(true, 0);
	live(true, 1);
}

static double part_of_1(const struct seen *s)
{
	return (double)s->bytes[1] / (double)(s->bytes[1] + s->bytes[2]);
}

/* Paths 1 and 2 are granted with 30 and 20 Mbit/s at both ends; the tunnel's own path is a spare. */
static void grant_two(struct wan_pair *p)
{
	for (int i = 0; i < 2; i++) {
		for (unsigned k = 1; k < 3; k++) {
			use(p, i, k, WAN_USE_GRANTED, false);
			wan_retune_path(p->end[i].t, k, (k == 1 ? 30 : 20) * MBPS);
		}
		use(p, i, 0, WAN_USE_SPARE, false);
	}
}

/* The path that is always used comes back: a spare goes on until its trial is over. */
static void test_spare_goes_on(void **state)
{
	const struct wan_tunnel *t;
	struct wan_pair p;
	unsigned tried = 0;

	begin(&p, &cc_auto, false);
	for (int i = 0; i < 2; i++)
		use(&p, i, 1, WAN_USE_SPARE, false);
	wan_pair_run(&p, p.now + RWY_SEC);
	t = p.end[0].t;
	assert_true(t->path[1].spared);
	set_loss(&p, 0, 1000000);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_string_equal(path(&p, 0).state, "silent");
	assert_false(t->path[1].spared);
	set_loss(&p, 0, 0);
	for (unsigned ms = 0; ms < 2000 && t->path[0].state != WAN_PATH_USABLE; ms++) {
		wan_pair_run(&p, p.now + RWY_MS);
		if (t->path[0].state != WAN_PATH_TRIED)
			continue;
		assert_false(t->path[1].spared);
		tried++;
	}
	assert_true(tried > 0);
	assert_string_equal(path(&p, 0).state, "usable");
	assert_true(t->path[1].spared);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* A path rests for another one, as after couple.c's finding. */
static void rest(struct wan_pair *p, unsigned path, unsigned carrier)
{
	struct wan_tunnel *t = p->end[0].t;

	t->couple.path[path].state = WAN_COUPLE_RESTS;
	t->couple.path[path].carrier = (uint8_t)carrier;
	t->couple.path[path].until = p->now + 600 * RWY_SEC;
	t->path[path].rests = WAN_COUPLE_RESTS;
	wan_stir(t);
	wan_rest_spare(t, p->now);
	assert_string_equal(path_state(p, path), "resting");
}

static void begin_three(struct wan_pair *p)
{
	begin(p, &cc_auto, false);
	for (int i = 0; i < 2; i++)
		for (unsigned k = 1; k < 3; k++)
			use(p, i, k, WAN_USE_ALWAYS, false);
	wan_pair_run(p, p->now + RWY_SEC);
}

/* The path for which another one rests becomes a spare, or granted: that one carries at once. */
static void test_carrier_becomes(void **state)
{
	static const enum wan_path_use to[] = {WAN_USE_SPARE, WAN_USE_GRANTED};
	struct wan_pair p;
	struct seen s;

	for (unsigned i = 0; i < 2; i++) {
		begin_three(&p);
		rest(&p, 1, 0);
		use(&p, 0, 0, to[i], false);
		s = watch(&p, 2 * RWY_SEC);
		assert_true(s.bytes[1] > 2000000);
		assert_int_equal(p.errors, 0);
		wan_pair_fini(&p);
	}
}

/* A spare carries while the others are silent, and one that is back rests for it; then another one
 * is back. A path that is always used rests for no spare. */
static void test_carrier_was_spare(void **state)
{
	struct wan_pair p;
	struct seen s;

	begin_three(&p);
	use(&p, 0, 2, WAN_USE_SPARE, false);
	set_loss(&p, 0, 1000000);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_string_equal(path_state(&p, 0), "silent");
	rest(&p, 1, 2);
	assert_false(p.end[0].t->path[2].spared);
	s = watch(&p, 2 * RWY_SEC);
	assert_true(s.bytes[1] > 10000000);
	assert_string_equal(path_state(&p, 2), "spare");
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* A test holds a path meanwhile. It ends when the path that it watches becomes a spare, which has
 * no answers to tell of. */
static void test_watched_becomes_spare(void **state)
{
	struct wan_couple *c;
	struct wan_pair p;
	struct seen s;
	unsigned held = 0, watched;

	begin_three(&p);
	c = &p.end[0].t->couple;
	for (unsigned ms = 0; ms < 20000 && !(c->testing && c->turn % 2 == 0); ms++) {
		c->alike[0][1] = 6; /* as if both queues had moved together */
		wan_pair_run(&p, p.now + RWY_MS);
	}
	assert_true(c->testing);
	wan_pair_run(&p, p.now + RWY_MS);
	watched = c->watched;
	for (unsigned i = 0; i < 3; i++)
		held += !strcmp(path_state(&p, i), "held");
	assert_int_equal(held, 1);
	assert_string_equal(path_state(&p, !watched), "held");
	use(&p, 0, watched, WAN_USE_SPARE, false);
	assert_false(c->testing);
	s = watch(&p, 2 * RWY_SEC);
	assert_true(s.bytes[!watched] > 2000000);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* The same when it carries no longer, as a path that is always used is back. */
static void test_watched_is_spared(void **state)
{
	struct wan_couple *c;
	struct wan_pair p;

	begin_three(&p);
	use(&p, 0, 2, WAN_USE_SPARE, false);
	for (unsigned i = 0; i < 2; i++)
		set_loss(&p, i, 1000000);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_false(p.end[0].t->path[2].spared);
	c = &p.end[0].t->couple;
	set_loss(&p, 1, 0);
	for (unsigned ms = 0; ms < 5000 && p.end[0].t->path[1].state != WAN_PATH_TRIED; ms++)
		wan_pair_run(&p, p.now + RWY_MS);
	c->testing = true;
	c->watched = 2;
	wan_path_enter(&p.end[0].t->path[1], WAN_PATH_USABLE, p.now);
	assert_true(p.end[0].t->path[2].spared);
	assert_false(c->testing);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* Hosts send less than was granted, a little at a time: it divides all the same. */
static void test_little(void **state)
{
	struct wan_pair p;
	struct seen s;

	begin(&p, &cc_auto, false);
	p.stream[0].queue_max = 0;
	wan_pair_run(&p, p.now + 500 * RWY_MS);
	grant_two(&p);
	wan_pair_run(&p, p.now + RWY_SEC);
	for (uint32_t most = 16; most <= 64; most *= 2) { /* in custody: a round trip's worth */
		p.stream[0].queue_max = most;
		wan_pair_run(&p, p.now + RWY_SEC);
		s = watch(&p, 8 * RWY_SEC);
		print_message("at most %u buffers: %.3f of %.3f MB by path 1\n", most, part_of_1(&s),
		    (double)(s.bytes[1] + s.bytes[2]) / 1e6);
		assert_true(part_of_1(&s) > .58 && part_of_1(&s) < .62);
		assert_true(s.bytes[1] + s.bytes[2] < 40000000); /* less than both may */
	}
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* Two granted paths of 30 and 20 Mbit/s: data divides 60 to 40, and the tunnel's own path has none
 * of it. One goes, and the other goes on; both go, and the own path carries. */
static void test_shares(void **state)
{
	struct wan_stats all;
	struct wan_pair p;
	struct seen s;

	begin(&p, &cc_fixed, false);
	grant_two(&p);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_string_equal(path(&p, 0).state, "spare");
	s = watch(&p, 2 * RWY_SEC);
	print_message("%.3f of it by path 1; own path %.3f MB of %.3f\n", part_of_1(&s),
	    (double)s.bytes[0] / 1e6, (double)(s.bytes[1] + s.bytes[2]) / 1e6);
	assert_true(part_of_1(&s) > .59 && part_of_1(&s) < .61);
	assert_true(s.bytes[0] * 50 < s.bytes[1] + s.bytes[2]); /* its probes */
	wan_get_stats(p.end[0].t, &all); /* the tunnel has what both have together, not what the spare has */
	assert_int_equal(all.rate_Bps, 50 * MBPS);
	assert_true(all.path_Bps > 45 * MBPS && all.path_Bps < 55 * MBPS);
	set_loss(&p, 2, 1000000);
	s = watch(&p, 100 * RWY_MS);
	assert_true(s.stall < 100 * RWY_MS);
	s = watch(&p, RWY_SEC);
	assert_true(s.bytes[0] * 50 < s.bytes[1]);
	assert_true(s.bytes[1] > 3500000);
	set_loss(&p, 1, 1000000);
	watch(&p, 200 * RWY_MS);
	assert_string_equal(path(&p, 0).state, "usable");
	s = watch(&p, RWY_SEC);
	assert_true(s.bytes[0] > 5500000);
	set_loss(&p, 1, 0);
	wan_pair_run(&p, p.now + 2 * RWY_SEC);
	assert_string_equal(path(&p, 0).state, "spare");
	s = watch(&p, RWY_SEC);
	assert_true(s.bytes[0] * 50 < s.bytes[1]);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

/* A refused change changes nothing; a path above the others leaves what is between unused. */
static void test_bad(void **state)
{
	struct wan_pair p;
	struct wan_tunnel *t;

	begin(&p, &cc_auto, false);
	t = p.end[0].t;
	assert_int_equal(wan_retune_use(t, 0, WAN_USE_NEVER, MTU, false, p.now), RWY_EINVAL);
	assert_int_equal(wan_retune_use(t, WAN_PATHS_MAX, WAN_USE_ALWAYS, MTU, false, p.now), RWY_EINVAL);
	assert_int_equal(wan_retune_use(t, 1, WAN_USE_ALWAYS, MTU - 1, false, p.now), RWY_EINVAL);
	assert_int_equal(wan_retune_use(t, 1, WAN_USE_ALWAYS, 9001, false, p.now), RWY_EINVAL);
	assert_int_equal(wan_retune_use(t, 5, WAN_USE_NEVER, MTU, false, p.now), 0);
	assert_int_equal(wan_paths(t), 1);
	use(&p, 0, 2, WAN_USE_ALWAYS, false);
	use(&p, 1, 2, WAN_USE_ALWAYS, false);
	assert_int_equal(wan_paths(t), 3);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_string_equal(path(&p, 1).state, "off");
	assert_string_equal(path(&p, 2).state, "usable");
	assert_int_equal(path(&p, 1).tx_datagrams, 0);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_live),
	    cmocka_unit_test(test_spare_goes_on),
	    cmocka_unit_test(test_carrier_becomes),
	    cmocka_unit_test(test_carrier_was_spare),
	    cmocka_unit_test(test_watched_becomes_spare),
	    cmocka_unit_test(test_watched_is_spared),
	    cmocka_unit_test(test_little),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
