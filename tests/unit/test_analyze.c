/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The analysis names what limited a queue pair in each prepared capture (tests/lib/cap_scenes.c), and
 * counts what the hosts of the capture count.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lib/cap_world.h"
#include "tools/analyze/analyze.h"

#define ETH_LEN 14
#define POINTS  2000
#define SEEDS   4
#define WAY     (10 * RWY_MS)

/* A scene seen at each place. */
struct view {
	struct an *at[CAP_PLACES];
	struct cap_result r;
};

static void take(
    void *ctx, rwy_time at, const uint8_t *frame, uint32_t captured, uint32_t len, enum cap_place place)
{
	struct view *v = ctx;

	assert_int_equal(an_frame(v->at[place], at, frame, captured, len, false), 0);
}

static struct view play(const struct cap_scene *s)
{
	struct view v = {0};

	for (unsigned i = 0; i < CAP_PLACES; i++) {
		v.at[i] = an_new(POINTS);
		assert_non_null(v.at[i]);
	}
	v.r = cap_play(s, take, &v);
	assert_true(v.r.up);
	for (unsigned i = 0; i < CAP_PLACES; i++)
		an_end(v.at[i]);
	return v;
}

static void view_free(const struct view *v)
{
	for (unsigned i = 0; i < CAP_PLACES; i++)
		an_free(v->at[i]);
}

static const struct an_flow *flow_of(const struct an *an, const struct cap_scene *s)
{
	for (const struct an_flow *f = an_flows(an); f; f = f->next)
		if (f->key.dqpn == CAP_QPN_B + s->asked)
			return f;
	return NULL;
}

static const char *first_word(const struct an_flow *f)
{
	return f && f->findings ? f->finding[0].word : "nothing";
}

static void print_flow(const struct cap_scene *s, const struct an_flow *f)
{
	fprintf(stderr, "%s (%s): expected %s\n", s->name, s->about, s->expect);
	for (unsigned i = 0; f && i < f->findings; i++)
		fprintf(stderr, "  %-12s %s\n", f->finding[i].word, f->finding[i].text);
#define X(field, text)                                                                                       \
	if (f && f->c.field)                                                                                 \
		fprintf(stderr, "  %-20s %llu\n", #field, (unsigned long long)f->c.field);
	AN_COUNTERS(X)
#undef X
}

static unsigned is_wrong(const struct cap_scene *s)
{
	struct view v = play(s);
	const struct an_flow *f = flow_of(v.at[s->place], s);
	bool wrong = strcmp(first_word(f), s->expect) != 0;

	if (wrong || getenv("VERBOSE"))
		print_flow(s, f);
	view_free(&v);
	return wrong;
}

/* Each scene with some seeds: those without chance are the same each time. */
static unsigned wrong_of(const struct cap_scene *s, unsigned n)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < n; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct cap_scene with = s[i];

			with.seed = seed;
			wrong += is_wrong(&with);
		}
	return wrong;
}

static void test_scenes(void **state)
{
	assert_int_equal(wrong_of(cap_scenes, cap_scenes_n), 0);
}

/* Written after the analysis. */
static void test_held(void **state)
{
	assert_int_equal(wrong_of(cap_held, cap_held_n), 0);
}

static const struct cap_scene lossy = {
    .program = {{RC_WRITE, 65536, 60, 16}}, .to_b = {.delay = WAY, .loss = 0.01}, .to_a.delay = WAY};

/* Counters are exact where the hosts count the same. */
static void test_counts(void **state)
{
	struct view v = play(&lossy);
	const struct an_flow *f = flow_of(v.at[CAP_AT_A], &lossy);
	uint64_t messages = lossy.program[0].messages;

	assert_int_equal(v.r.done, messages);
	assert_int_equal(f->c.messages, messages);
	assert_int_equal(f->c.writes, messages);
	assert_int_equal(f->c.bytes, messages * lossy.program[0].size);
	assert_true(v.r.resent > 0 && v.r.naks > 0);
	assert_int_equal(f->c.resent_packets, v.r.resent);
	assert_int_equal(f->c.naks_sequence, v.r.naks);
	assert_int_equal(f->c.not_captured, 0);
	assert_int_equal(f->pmtu, 1024);
	assert_true(f->rtt.min >= 2 * WAY);
	assert_true(f->points > 100 && f->points <= POINTS);
	view_free(&v);
}

/*
 * Behind the loss the capture sees each packet once or twice, and knows that some were lost before
 * it.
 */
static void test_place_b(void **state)
{
	struct view v = play(&lossy);
	const struct an_flow *f = flow_of(v.at[CAP_AT_B], &lossy);

	assert_true(f->c.lost_before > 0);
	assert_int_equal(f->c.reordered, 0);
	assert_in_range(f->c.resends_nak, 1, v.r.naks);
	assert_int_equal(f->c.messages, lossy.program[0].messages);
	assert_int_equal(f->c.bytes, (uint64_t)lossy.program[0].messages * lossy.program[0].size);
	view_free(&v);
}

/* Late packets are no repeats, and a NAK's answer takes a round trip to where host B is. */
static void test_reordered(void **state)
{
	static const struct cap_scene s = {.program = {{RC_WRITE, 65536, 60, 60}},
	    .window = 4096,
	    .to_b = {.delay = WAY, .reorder = 0.01, .reorder_extra = 2 * RWY_US},
	    .to_a.delay = WAY};
	struct view v = play(&s);
	const struct an_flow *at_a = flow_of(v.at[CAP_AT_A], &s), *at_b = flow_of(v.at[CAP_AT_B], &s);

	assert_int_equal(at_a->c.reordered, 0);
	assert_int_equal(at_a->c.resends_nak, v.r.naks);
	assert_true(at_b->c.reordered > v.r.naks);
	assert_in_range(at_b->c.resends_nak, v.r.naks * 9 / 10, v.r.naks * 11 / 10);
	assert_int_equal(at_b->c.resends_timeout, 0);
	view_free(&v);
}

/* A bad ICRC is counted, and the packet changes nothing. */
static void test_icrc(void **state)
{
	static const struct cap_scene s = {
	    .program = {{RC_WRITE, 4096, 100, 4}}, .to_b = {.corrupt = 0.02, .corrupt_from = 60}};
	struct view v = play(&s);
	const struct an_flow *f = flow_of(v.at[CAP_AT_B], &s);

	assert_true(f->c.icrc_bad > 0);
	assert_int_equal(f->c.messages, s.program[0].messages);
	assert_int_equal(f->c.bytes, (uint64_t)s.program[0].messages * s.program[0].size);
	view_free(&v);
}

/* Cut packets say all but their ICRC; times that go back do no harm; rubbish neither. */
static void test_bad_input(void **state)
{
	uint8_t frame[ETH_LEN + RC_PKT_MAX] = {0};
	struct rc_mk m = {
	    .opcode = ROCE_RC_WRITE_ONLY, .psn = 5, .dqpn = 9, .payload_len = 1000, .len = 1000};
	struct an *an = an_new(10);
	uint32_t len = ETH_LEN + rc_pkt_make(frame + ETH_LEN, &m);
	uint64_t rng = 1;

	frame[12] = 8;
	assert_int_equal(an_frame(an, 1000, frame, 100, len, false), 0);
	assert_int_equal(an_totals(an)->cut, 1);
	assert_int_equal(an_flows(an)->c.bytes, 1000);
	assert_int_equal(an_frame(an, 10, frame, len, len, false), 0);
	assert_int_equal(an_totals(an)->backwards, 1);
	for (unsigned i = 0; i < 200000; i++) {
		uint8_t junk[200];

		memcpy(junk, frame, sizeof(junk));
		for (unsigned k = 0; k < 4; k++) {
			rng = rng * 6364136223846793005u + 1442695040888963407u;
			junk[(rng >> 33) % sizeof(junk)] = (uint8_t)(rng >> 50);
		}
		assert_int_equal(
		    an_frame(an, i, junk, (uint32_t)(rng >> 40) % sizeof(junk), sizeof(junk), i & 1), 0);
	}
	an_end(an);
	an_free(an);
}

static void test_hist(void **state)
{
	struct an_hist h = {0};

	assert_int_equal(an_hist_quantile(&h, 0.5), 0);
	for (rwy_dur d = 1; d <= 1000; d++)
		an_hist_add(&h, d * RWY_US);
	assert_int_equal(h.min, RWY_US);
	assert_int_equal(h.max, 1000 * RWY_US);
	assert_in_range(an_hist_quantile(&h, 0.5), 478 * RWY_US, 523 * RWY_US);
	assert_in_range(an_hist_quantile(&h, 0.99), 946 * RWY_US, 1000 * RWY_US);
	assert_int_equal(an_hist_quantile(&h, 1), h.max);
	assert_in_range(an_hist_mean(&h), 500 * RWY_US, 501 * RWY_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_scenes),
	    cmocka_unit_test(test_held),
	    cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_place_b),
	    cmocka_unit_test(test_reordered),
	    cmocka_unit_test(test_icrc),
	    cmocka_unit_test(test_bad_input),
	    cmocka_unit_test(test_hist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
