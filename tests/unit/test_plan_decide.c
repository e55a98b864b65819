/* SPDX-License-Identifier: Apache-2.0
 * The decision: a table of first choices, tables of what happens over time, the rates, and that nonsense is
 * survived. How well the predictions fit measurements is test_plan_grid.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/plan/decide.h"

#define T    (1000 * RWY_SEC)
#define MBIT UINT64_C(1000000)
#define GBIT (1000 * MBIT)

static struct plan_caps caps(uint64_t native, uint64_t tcp, uint64_t quic)
{
	struct plan_caps c = {
	    .bandwidth_bps = {native, tcp, quic}, .tcp_algorithms = PLAN_TCP_CUBIC | PLAN_TCP_BBR};

	return c;
}

static void set_loss(struct plan_question *q, enum plan_carrier c, uint64_t ppm)
{
	q->path.by[c].loss_ppm = (struct plan_value){ppm, T, 1};
}

/* Both ends equal, a path with this bandwidth for native and TCP. */
static struct plan_question question(struct plan_caps c, uint64_t native, uint64_t tcp)
{
	struct plan_question q = {.source = c, .destination = c, .pinned = PLAN_ANY};

	plan_path_default(&q.path);
	q.path.by[PLAN_NATIVE].bandwidth_bps = (struct plan_value){native, T, 1};
	q.path.by[PLAN_TCP].bandwidth_bps = (struct plan_value){tcp, T, 1};
	return q;
}

struct first_case {
	const char *name;
	struct plan_caps source, destination;
	uint64_t native_bps, tcp_bps, demand;
	uint32_t loss_ppm;
	enum plan_carrier pinned, carrier;
	enum plan_rule rule;
	bool enough;
};

#define CAPS(n, t, q)                                                                                        \
	{                                                                                                    \
		.bandwidth_bps = {n, t, q}, .tcp_algorithms = PLAN_TCP_CUBIC                                 \
	}
#define BOTH(n, t, q) CAPS(n, t, q), CAPS(n, t, q)

static const struct first_case firsts[] = {
    {"nothing in common", CAPS(GBIT, 0, 0), CAPS(0, GBIT, 0), 0, 0, 0, 0, PLAN_ANY, PLAN_ANY, PLAN_RULE_NONE,
        false},
    {"nothing at all", CAPS(0, 0, 0), CAPS(0, 0, 0), 0, 0, 0, 0, PLAN_ANY, PLAN_ANY, PLAN_RULE_NONE, false},
    {"one in common", CAPS(GBIT, GBIT, 0), CAPS(0, GBIT, GBIT), 0, 0, 0, 0, PLAN_ANY, PLAN_TCP,
        PLAN_RULE_ONLY, true},
    {"equals: the order", BOTH(GBIT, GBIT, GBIT), 0, 0, 0, 0, PLAN_ANY, PLAN_NATIVE, PLAN_RULE_FIRST, true},
    {"loss: native", BOTH(GBIT, 2 * GBIT, 0), 0, 0, 0, 10000, PLAN_ANY, PLAN_NATIVE, PLAN_RULE_FIRST, true},
    {"clean, and TCP has more", BOTH(GBIT, 2 * GBIT, 0), 0, 0, 0, 0, PLAN_ANY, PLAN_TCP, PLAN_RULE_FIRST,
        true},
    {"the weaker end counts", CAPS(GBIT, 2 * GBIT, 0), CAPS(GBIT, GBIT / 2, 0), 0, 0, 0, 0, PLAN_ANY,
        PLAN_NATIVE, PLAN_RULE_FIRST, true},
    {"UDP is policed", BOTH(GBIT, GBIT, 0), 100 * MBIT, 900 * MBIT, 0, 0, PLAN_ANY, PLAN_TCP, PLAN_RULE_FIRST,
        true},
    {"policed, but enough for the demand", BOTH(GBIT, GBIT, 0), 100 * MBIT, 900 * MBIT, 80 * MBIT, 0,
        PLAN_ANY, PLAN_NATIVE, PLAN_RULE_ENOUGH, true},
    {"neither is enough", BOTH(GBIT, GBIT, 0), 100 * MBIT, 200 * MBIT, 800 * MBIT, 0, PLAN_ANY, PLAN_TCP,
        PLAN_RULE_FIRST, false},
    {"pinned", BOTH(GBIT, 2 * GBIT, 0), 0, 0, 0, 0, PLAN_NATIVE, PLAN_NATIVE, PLAN_RULE_PINNED, true},
    {"pinned, not possible", BOTH(GBIT, 2 * GBIT, 0), 0, 0, 0, 0, PLAN_QUIC, PLAN_ANY, PLAN_RULE_NONE, false},
    {"pinned to what is no carrier", BOTH(GBIT, 0, 0), 0, 0, 0, 0, (enum plan_carrier)77, PLAN_NATIVE,
        PLAN_RULE_ONLY, true},
    {"everything lost", BOTH(GBIT, GBIT, 0), 0, 0, 0, 1000000, PLAN_ANY, PLAN_NATIVE, PLAN_RULE_FIRST, true},
};

static void test_firsts(void **state)
{
	struct plan_policy p;
	unsigned i;

	plan_policy_default(&p);
	assert_int_equal(plan_policy_check(&p), 0);
	for (i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		const struct first_case *c = &firsts[i];
		struct plan_question q = question(c->source, c->native_bps, c->tcp_bps);
		struct plan_hyst h = {0};
		struct plan_decision d;
		unsigned k;

		q.destination = c->destination;
		q.demand_bps = c->demand;
		q.pinned = c->pinned;
		for (k = 0; k < PLAN_CARRIER_COUNT; k++)
			set_loss(&q, (enum plan_carrier)k, c->loss_ppm);
		plan_decide(&d, &q, &p, &h, T);
		if (d.carrier != c->carrier || d.rule != c->rule || d.enough != c->enough)
			fail_msg("%s: %s by %s, enough %d", c->name, plan_carrier_name(d.carrier),
			    plan_rule_name(d.rule), d.enough);
		assert_int_equal(d.before, PLAN_ANY);
		assert_int_equal(d.changed, d.carrier != PLAN_ANY);
		assert_int_equal(h.has, d.carrier != PLAN_ANY);
		if (d.carrier == PLAN_ANY)
			assert_int_equal(d.n_bps + d.gateway_bps + d.edge_bps, 0);
		else
			assert_true(d.n_bps <= d.gateway_bps && d.gateway_bps <= d.edge_bps);
	}
}

/* A tunnel over time: at each step the native carrier's bandwidth (TCP has 400 Mbit/s of path), and
 * the expected result. */
struct step {
	unsigned at_ms;
	uint64_t native_mbit;
	enum plan_carrier carrier;
	enum plan_rule rule;
};

struct life_case {
	const char *name;
	struct step step[12]; /* native_mbit 0 ends */
};

/* Policy: gain 10 %, confirm 2 s, hold 10 s, home 60 s. */
static void policy(struct plan_policy *p)
{
	plan_policy_default(p);
	p->confirm = 2 * RWY_SEC;
}

static const struct life_case lives[] = {
    {"a path gets bad and good again",
        {{0, 800, PLAN_NATIVE, PLAN_RULE_FIRST}, {5000, 800, PLAN_NATIVE, PLAN_RULE_STAYS},
            {20000, 100, PLAN_NATIVE, PLAN_RULE_CONFIRM}, {21999, 100, PLAN_NATIVE, PLAN_RULE_CONFIRM},
            {22000, 100, PLAN_TCP, PLAN_RULE_MOVED}, {23000, 100, PLAN_TCP, PLAN_RULE_STAYS},
            {25000, 800, PLAN_TCP, PLAN_RULE_CONFIRM}, {27500, 800, PLAN_TCP, PLAN_RULE_HELD},
            {31999, 800, PLAN_TCP, PLAN_RULE_HELD}, {32000, 800, PLAN_NATIVE, PLAN_RULE_MOVED}}},
    {"not better by enough",
        {{0, 400, PLAN_NATIVE, PLAN_RULE_FIRST}, {20000, 370, PLAN_NATIVE, PLAN_RULE_STAYS},
            {90000, 370, PLAN_NATIVE, PLAN_RULE_STAYS}, {99000, 365, PLAN_NATIVE, PLAN_RULE_STAYS}}},
    {"a break in between begins anew",
        {{0, 800, PLAN_NATIVE, PLAN_RULE_FIRST}, {20000, 100, PLAN_NATIVE, PLAN_RULE_CONFIRM},
            {21500, 800, PLAN_NATIVE, PLAN_RULE_STAYS}, {21600, 100, PLAN_NATIVE, PLAN_RULE_CONFIRM},
            {23500, 100, PLAN_NATIVE, PLAN_RULE_CONFIRM}, {23600, 100, PLAN_TCP, PLAN_RULE_MOVED}}},
    {"home again after long, without a gain",
        {{0, 100, PLAN_TCP, PLAN_RULE_FIRST}, {10000, 400, PLAN_TCP, PLAN_RULE_STAYS},
            {69999, 400, PLAN_TCP, PLAN_RULE_STAYS}, {70000, 400, PLAN_NATIVE, PLAN_RULE_HOME}}},
    {"no home while it is worse",
        {{0, 100, PLAN_TCP, PLAN_RULE_FIRST}, {10000, 380, PLAN_TCP, PLAN_RULE_STAYS},
            {90000, 380, PLAN_TCP, PLAN_RULE_STAYS}}},
    {"home is interrupted",
        {{0, 100, PLAN_TCP, PLAN_RULE_FIRST}, {10000, 400, PLAN_TCP, PLAN_RULE_STAYS},
            {60000, 300, PLAN_TCP, PLAN_RULE_STAYS}, {61000, 400, PLAN_TCP, PLAN_RULE_STAYS},
            {120999, 400, PLAN_TCP, PLAN_RULE_STAYS}, {121000, 400, PLAN_NATIVE, PLAN_RULE_HOME}}},
};

static void test_lives(void **state)
{
	struct plan_policy p;
	unsigned i, k;

	policy(&p);
	for (i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
		struct plan_hyst h = {0};

		for (k = 0; k < 12 && lives[i].step[k].native_mbit; k++) {
			const struct step *s = &lives[i].step[k];
			struct plan_question q =
			    question(caps(GBIT, GBIT, 0), s->native_mbit * MBIT, 400 * MBIT);
			rwy_time now = T + s->at_ms * RWY_MS;
			struct plan_decision d;

			set_loss(&q, PLAN_NATIVE, 0);
			set_loss(&q, PLAN_TCP, 0);
			plan_decide(&d, &q, &p, &h, now);
			if (d.carrier != s->carrier || d.rule != s->rule)
				fail_msg("%s, at %u ms: %s by %s", lives[i].name, s->at_ms,
				    plan_carrier_name(d.carrier), plan_rule_name(d.rule));
			if (d.rule == PLAN_RULE_CONFIRM || d.rule == PLAN_RULE_HELD)
				assert_true(d.again_at > now && d.again_at < RWY_NEVER);
			else if (d.rule != PLAN_RULE_STAYS)
				assert_int_equal(d.again_at, RWY_NEVER);
		}
	}
}

/* Asking again at the time that the decision names gives the change, if nothing else changed. */
static void test_again_at_is_enough(void **state)
{
	struct plan_question good = question(caps(GBIT, GBIT, 0), 800 * MBIT, 400 * MBIT);
	struct plan_question bad = question(caps(GBIT, GBIT, 0), 100 * MBIT, 400 * MBIT);
	struct plan_hyst h = {0};
	struct plan_policy p;
	struct plan_decision d;

	policy(&p);
	plan_decide(&d, &good, &p, &h, T);
	plan_decide(&d, &bad, &p, &h, T + RWY_SEC);
	assert_int_equal(d.rule, PLAN_RULE_CONFIRM);
	plan_decide(&d, &bad, &p, &h, d.again_at);
	assert_int_equal(d.rule, PLAN_RULE_MOVED);
	plan_decide(&d, &good, &p, &h, T + 12 * RWY_SEC);
	assert_int_equal(d.rule, PLAN_RULE_CONFIRM);
	plan_decide(&d, &good, &p, &h, d.again_at);
	assert_int_equal(d.rule, PLAN_RULE_MOVED);
}

/* A path that varies at random, asked ten times a second for an hour: at most one change in `hold`;
 * one that varies faster than `confirm` causes none. */
static void test_no_flapping(void **state)
{
	static const struct {
		unsigned period_ms, most;
	} cases[] = {{400, 0}, {1000, 0}, {3600, 0}, {5000, 360}, {30000, 240}, {600000, 12}};
	struct plan_policy p;
	unsigned i, t, changes;

	policy(&p);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct plan_hyst h = {0};
		rwy_time last = 0;

		changes = 0;
		for (t = 0; t < 3600 * 1000; t += 100) {
			bool bad = t / (cases[i].period_ms / 2) & 1;
			struct plan_question q =
			    question(caps(GBIT, GBIT, 0), (bad ? 100 : 800) * MBIT, 400 * MBIT);
			struct plan_decision d;

			plan_decide(&d, &q, &p, &h, T + t * RWY_MS);
			if (d.changed && d.before != PLAN_ANY) {
				changes++;
				assert_true(last == 0 || d.at - last >= p.hold);
				last = d.at;
			}
		}
		if (changes > cases[i].most)
			fail_msg("period %u ms: %u changes", cases[i].period_ms, changes);
		if (cases[i].period_ms == 600000)
			assert_int_equal(changes, 11);
	}
}

static void test_failed_moves_at_once(void **state)
{
	struct plan_question q = question(caps(GBIT, GBIT, 0), 0, 0);
	struct plan_hyst h = {0};
	struct plan_policy p;
	struct plan_decision d;

	plan_policy_default(&p);
	plan_decide(&d, &q, &p, &h, T);
	assert_int_equal(d.carrier, PLAN_NATIVE);
	q.destination.bandwidth_bps[PLAN_NATIVE] = 0;
	plan_decide(&d, &q, &p, &h, T + 1);
	assert_int_equal(d.carrier, PLAN_TCP);
	assert_int_equal(d.before, PLAN_NATIVE);
	assert_int_equal(d.rule, PLAN_RULE_FAILED);
	q.destination.bandwidth_bps[PLAN_TCP] = 0;
	plan_decide(&d, &q, &p, &h, T + 2);
	assert_int_equal(d.carrier, PLAN_ANY);
	assert_true(d.changed && !h.has);
}

static void test_rates(void **state)
{
	static const struct {
		uint64_t n;
		uint32_t a, b;
		uint64_t gateway, edge;
	} cases[] = {
	    {800, 800000, 500000, 1000, 2000},
	    {1000000000, 1000000, 1000000, 1000000000, 1000000000},
	    {1, 999999, 999999, 2, 3}, /* up, never down */
	    {0, 1, 1, 0, 0},
	    {100, 0, 2000000, 100000000, 100000000},
	    {UINT64_MAX, 1, 1, PLAN_RATE_MAX, PLAN_RATE_MAX},
	    {PLAN_RATE_MAX, 500000, 500000, PLAN_RATE_MAX, PLAN_RATE_MAX},
	};
	struct plan_question q = question(caps(10 * GBIT, 0, 0), 0, 0);
	struct plan_hyst h = {0};
	struct plan_policy p;
	struct plan_decision d;
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(plan_gateway_bps(cases[i].n, cases[i].a), cases[i].gateway);
		assert_int_equal(plan_edge_bps(cases[i].n, cases[i].a, cases[i].b), cases[i].edge);
	}
	plan_policy_default(&p);
	p.gateway_ppm[PLAN_NATIVE] = 800000;
	p.wan_ppm = 1000000;
	q.demand_bps = 8 * GBIT;
	set_loss(&q, PLAN_NATIVE, 20000);
	plan_decide(&d, &q, &p, &h, T);
	assert_int_equal(d.n_bps, 8 * GBIT);
	assert_int_equal(d.gateway_bps, 10 * GBIT);
	assert_int_equal(d.b_ppm, 980000);
	assert_int_equal(d.edge_bps, (10 * GBIT * 100 + 97) / 98);
}

static void test_policy_check(void **state)
{
	struct plan_question q = question(caps(GBIT, 0, 0), 0, 0);
	struct plan_hyst h = {0};
	struct plan_policy p, def;
	struct plan_decision d;

	plan_policy_default(&def);
	p = def;
	p.gateway_ppm[PLAN_TCP] = 0;
	assert_int_equal(plan_policy_check(&p), RWY_EINVAL);
	plan_decide(&d, &q, &p, &h, T);
	assert_memory_equal(d.policy.gateway_ppm, def.gateway_ppm, sizeof(def.gateway_ppm));
	assert_int_equal(d.policy.wan_ppm, def.wan_ppm);
	assert_int_equal(d.policy.tie_ppm, def.tie_ppm);
	assert_int_equal(d.policy.gain_ppm, def.gain_ppm);
	assert_int_equal(d.policy.confirm, def.confirm);
	assert_int_equal(d.policy.hold, def.hold);
	assert_int_equal(d.policy.home, def.home);
	p = def;
	p.wan_ppm = 1000001;
	assert_int_equal(plan_policy_check(&p), RWY_EINVAL);
	p = def;
	p.gain_ppm = 10000001;
	assert_int_equal(plan_policy_check(&p), RWY_EINVAL);
}

/* For any input the result is defined, within limits, and reproducible. */
static void test_anything_goes(void **state)
{
	uint64_t x = 88172645463325252;
	unsigned i, k, b;
	struct plan_hyst h = {0}, h2;
	struct plan_question q;
	struct plan_policy p;
	struct plan_decision d, d2;
	uint8_t *raw = (uint8_t *)&q;

	plan_policy_default(&p);
	for (i = 0; i < 20000; i++) {
		for (b = 0; b < sizeof(q); b++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* Full ranges, with many bytes of all zeros and all ones. */
			raw[b] = x & 0x300 ? (x & 0x100 ? 0 : 0xff) : (uint8_t)(x >> 32);
		}
		q.source.cnp = q.destination.cnp = false;
		q.source.quic_cubic = i & 2;
		q.destination.quic_cubic = i & 4;
		q.path.cls = PLAN_INTERNET;
		q.pinned = i & 1 ? PLAN_ANY : (enum plan_carrier)(x % 5);
		h2 = h;
		plan_decide(&d, &q, &p, &h, x >> (i % 64));
		plan_decide(&d2, &q, &p, &h2, x >> (i % 64));
		assert_memory_equal(&d, &d2, sizeof(d));
		assert_true((unsigned)d.carrier <= PLAN_ANY && (unsigned)d.rule < PLAN_RULE_COUNT);
		assert_true(d.gateway_bps <= PLAN_RATE_MAX && d.edge_bps <= PLAN_RATE_MAX);
		for (k = 0; k < PLAN_CARRIER_COUNT; k++)
			assert_true(d.alt[k].goodput_bps <= PLAN_RATE_MAX &&
			            (unsigned)d.alt[k].limit < PLAN_LIMIT_COUNT);
	}
}

static const char *source_name(void *ctx, uint32_t source)
{
	return source == 1 ? ctx : NULL;
}

static void test_explain(void **state)
{
	struct plan_question q = question(caps(GBIT, 2 * GBIT, 0), 100 * MBIT, 900 * MBIT);
	struct plan_hyst h = {0};
	struct plan_policy p;
	struct plan_decision d;
	char text[4096], small[40];
	size_t len;

	plan_policy_default(&p);
	q.demand_bps = 500 * MBIT;
	q.path.by[PLAN_TCP].rtt_us = (struct plan_value){25000, T - 1500 * RWY_MS, 2};
	plan_decide(&d, &q, &p, &h, T);
	len = plan_explain(text, sizeof(text), &d, source_name, (void *)(uintptr_t) "gw-a1");
	assert_int_equal(len, strlen(text));
	assert_non_null(strstr(text, "carrier: tcp\nrule: enough: "));
	assert_non_null(strstr(text, "demand: 500.000 Mbit/s\n"));
	assert_non_null(strstr(text, "n = 500.000 Mbit/s, at the gateway n/a = 543.478 Mbit/s"));
	assert_non_null(
	    strstr(text, "native: 91.990 Mbit/s, not enough; bound by loss over this round trip"));
	assert_non_null(strstr(text, "quic: not possible: the source's gateway does not have this carrier"));
	assert_non_null(strstr(text, "bandwidth 100.000 Mbit/s (gw-a1, 0.000 s old)"));
	assert_non_null(strstr(text, "round trip 25000 us (source 2, 1.500 s old)"));
	assert_non_null(strstr(text, "loss 100 ppm (assumed)"));
	/* Truncated, terminated, and the full length returned. */
	assert_int_equal(
	    plan_explain(small, sizeof(small), &d, source_name, (void *)(uintptr_t) "gw-a1"), len);
	assert_int_equal(strlen(small), sizeof(small) - 1);
	assert_memory_equal(small, text, sizeof(small) - 1);
	assert_int_equal(plan_explain(NULL, 0, &d, source_name, (void *)(uintptr_t) "gw-a1"), len);
}

/* By BBR QUIC fills the path in spite of loss; by CUBIC, at either end, it gets what one connection
 * does. */
static void test_quic_cubic(void **state)
{
	struct plan_question q = question(caps(100 * MBIT, 0, 900 * MBIT), GBIT, GBIT);
	struct plan_policy p;
	struct plan_hyst h = {0};
	struct plan_decision d;

	(void)state;
	plan_policy_default(&p);
	q.path.by[PLAN_QUIC].rtt_us = (struct plan_value){20000, T, 1};
	set_loss(&q, PLAN_QUIC, 10000);
	plan_decide(&d, &q, &p, &h, T);
	assert_int_equal(d.carrier, PLAN_QUIC);
	assert_in_range(d.alt[PLAN_QUIC].goodput_bps, 880 * MBIT, 900 * MBIT);
	q.destination.quic_cubic = true;
	h = (struct plan_hyst){0};
	plan_decide(&d, &q, &p, &h, T);
	assert_int_equal(d.carrier, PLAN_NATIVE);
	assert_in_range(d.alt[PLAN_QUIC].goodput_bps, MBIT, 10 * MBIT);
	set_loss(&q, PLAN_QUIC, 0); /* without loss both fill it */
	h = (struct plan_hyst){0};
	plan_decide(&d, &q, &p, &h, T);
	assert_int_equal(d.carrier, PLAN_QUIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_firsts),
	    cmocka_unit_test(test_lives),
	    cmocka_unit_test(test_again_at_is_enough),
	    cmocka_unit_test(test_no_flapping),
	    cmocka_unit_test(test_failed_moves_at_once),
	    cmocka_unit_test(test_rates),
	    cmocka_unit_test(test_policy_check),
	    cmocka_unit_test(test_anything_goes),
	    cmocka_unit_test(test_explain),
	    cmocka_unit_test(test_quic_cubic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
