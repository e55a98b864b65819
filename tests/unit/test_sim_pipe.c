/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's 1F1B schedule compared with arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Part of another program: included as a whole. */
#include "tests/sim/dc/pipe.c"

#define EVENTS 4096

struct event {
	rwy_time at;
	unsigned stage;
	enum { COMPUTED, FWD_THERE, BWD_THERE, SENT } what;
};

struct run {
	struct pipe p;
	struct event ev[EVENTS];
	unsigned n;
	rwy_dur slow, there, sent;                                /* messages that cross the boundary */
	unsigned at_once[PIPE_STAGES_MAX], most[PIPE_STAGES_MAX]; /* forward passes without their backward */
	rwy_dur spans;
};

static void add(struct run *r, rwy_time at, unsigned stage, unsigned what)
{
	assert_true(r->n < EVENTS);
	r->ev[r->n++] = (struct event){at, stage, what};
}

static void compute(void *ctx, unsigned stage, rwy_dur time, rwy_time now)
{
	add(ctx, now + time, stage, COMPUTED);
}

static void send(void *ctx, unsigned stage, enum pipe_kind kind, rwy_time now)
{
	struct run *r = ctx;
	unsigned to = kind == PIPE_FWD ? stage + 1 : stage - 1;
	bool far = (stage < r->p.cfg.boundary) != (to < r->p.cfg.boundary) ||
	           (stage < r->p.cfg.boundary2) != (to < r->p.cfg.boundary2);

	if (!far) {
		pipe_arrived(&r->p, to, kind, now);
		pipe_sent(&r->p, stage, now);
		return;
	}
	add(r, now + r->there, to, kind == PIPE_FWD ? FWD_THERE : BWD_THERE);
	add(r, now + r->sent, stage, SENT);
}

static void on_span(
    void *ctx, unsigned stage, enum pipe_span what, unsigned micro, rwy_time from, rwy_time to)
{
	struct run *r = ctx;

	assert_true(to > from);
	assert_true(micro < r->p.cfg.micro);
	r->spans += to - from;
	if (what == PIPE_SPAN_FWD && ++r->at_once[stage] > r->most[stage])
		r->most[stage] = r->at_once[stage];
	if (what == PIPE_SPAN_BWD)
		r->at_once[stage]--;
}

static rwy_dur run(struct run *r, const struct pipe_cfg *cfg, rwy_dur there, rwy_dur sent)
{
	static const struct pipe_ops ops = {compute, send, on_span};
	rwy_time now = 1000;

	memset(r, 0, sizeof(*r));
	r->there = there;
	r->sent = sent;
	r->p.cfg = *cfg;
	pipe_start(&r->p, cfg, &ops, r, now);
	while (r->n) {
		unsigned k = 0;
		struct event e;

		for (unsigned i = 1; i < r->n; i++)
			if (r->ev[i].at < r->ev[k].at)
				k = i;
		e = r->ev[k];
		memmove(r->ev + k, r->ev + k + 1, (--r->n - k) * sizeof(e));
		now = e.at;
		if (e.what == COMPUTED)
			pipe_computed(&r->p, e.stage, now);
		else if (e.what == SENT)
			pipe_sent(&r->p, e.stage, now);
		else
			pipe_arrived(&r->p, e.stage, e.what == FWD_THERE ? PIPE_FWD : PIPE_BWD, now);
	}
	assert_int_equal(r->p.running, 0);
	return r->p.done - 1000;
}

static void free_messages_cost_nothing(void **state)
{
	static struct run r;

	for (unsigned p = 1; p <= 8; p++)
		for (unsigned m = 1; m <= 20; m++)
			for (unsigned overlap = 0; overlap < 2; overlap++)
				for (unsigned early = 0; early < 3; early++) {
					struct pipe_cfg c = {
					    p, m, early, p / 2, overlap, 700, 1400, .fwd2 = 0};

					assert_int_equal(run(&r, &c, 0, 0), (m + p - 1) * 2100);
				}
}

/* Each stage computes each micro-batch once in each direction, and 1F1B keeps at most stages -
 * stage of them. */
static void passes_and_memory(void **state)
{
	static struct run r;
	struct pipe_cfg c = {6, 15, 0, 4, true, 100, 200, .fwd2 = 0};

	run(&r, &c, 50, 50);
	for (unsigned s = 0; s < 6; s++) {
		assert_int_equal(r.p.stage[s].spent[PIPE_SPAN_FWD], 15 * 100);
		assert_int_equal(r.p.stage[s].spent[PIPE_SPAN_BWD], 15 * 200);
		assert_int_equal(r.most[s], 6 - s);
	}
	c.early = 1;
	run(&r, &c, 50, 50);
	for (unsigned s = 0; s < 6; s++)
		assert_int_equal(r.most[s], 6 - s + (s < 4));
}

/* Two stages, one micro-batch: forward, message, forward, backward, message, backward. */
static void a_message_is_waited_for(void **state)
{
	static struct run r;
	struct pipe_cfg c = {2, 1, 0, 1, true, 100, 200, .fwd2 = 0};

	assert_int_equal(run(&r, &c, 40, 90), 600 + 2 * 40);
	assert_int_equal(r.p.stage[0].spent[PIPE_SPAN_WAIT], 40 + 300 + 40);
	c.overlap = false;
	assert_int_equal(run(&r, &c, 40, 90), 600 + 2 * 40);
	assert_int_equal(r.p.stage[0].spent[PIPE_SPAN_SEND], 90);
	assert_int_equal(r.p.stage[0].spent[PIPE_SPAN_WAIT], 40 + 300 + 40 - 90);
}

/*
 * Many micro-batches. The stage after the boundary makes w forward passes ahead (1 here), so
 * between its backward of micro-batch k and that of k + w + 1 lie a gradient to the stage before,
 * that stage's two passes and a result back: each slot grows by 2 messages / (w + 1). One forward
 * pass early makes room for a complete slot: then only filling and draining the pipeline takes
 * longer, by a message each.
 */
static void what_distance_costs(void **state)
{
	static struct run r;
	struct pipe_cfg c = {6, 60, 0, 4, true, 1000, 2000, .fwd2 = 0};
	rwy_dur zero = 65 * 3000, d = 600, t = run(&r, &c, d, d), early;

	assert_in_range(t - zero, 60 * d, 60 * d + 4 * d);
	c.early = 1;
	early = run(&r, &c, d, d);
	assert_int_equal(early - zero, 2 * d);
	c.early = 0;
	c.overlap = false;
	assert_true(run(&r, &c, d, 2 * d) > t); /* a sender that waits for its completion costs more */
}

/* Over two distances: one forward pass early for each makes room, and filling and draining cross
 * each of them. */
static void what_two_distances_cost(void **state)
{
	static struct run r;
	struct pipe_cfg c = {6, 60, 1, 2, true, 1000, 2000, .boundary2 = 4};
	rwy_dur zero = 65 * 3000, d = 600;

	assert_int_equal(run(&r, &c, d, d) - zero, 4 * d);
	for (unsigned s = 0; s < 6; s++)
		assert_int_equal(r.most[s], 6 - s + (s < 2) + (s < 4));
	c.boundary2 = 0;
	assert_int_equal(run(&r, &c, d, d) - zero, 2 * d);
}

/* A slower stage at the end, behind the distance: everybody waits for it, for each micro-batch. */
static void what_a_slow_stage_costs(void **state)
{
	static struct run r;
	struct pipe_cfg c = {4, 15, 1, 3, true, 1000, 2000, .fwd2 = 1250, .bwd2 = 2500};
	rwy_dur zero = 3 * 3000 + 15 * 3750, d = 600;

	assert_int_equal(run(&r, &c, 0, 0), zero);
	assert_int_equal(run(&r, &c, d, d) - zero, 2 * d);
	assert_int_equal(r.p.stage[3].spent[PIPE_SPAN_BWD], 15 * 2500);
	assert_int_equal(r.p.stage[2].spent[PIPE_SPAN_BWD], 15 * 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(free_messages_cost_nothing),
	    cmocka_unit_test(passes_and_memory),
	    cmocka_unit_test(a_message_is_waited_for),
	    cmocka_unit_test(what_distance_costs),
	    cmocka_unit_test(what_two_distances_cost),
	    cmocka_unit_test(what_a_slow_stage_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
