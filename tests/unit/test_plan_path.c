/* SPDX-License-Identifier: Apache-2.0
 * Observations of a path brought together: a table of what is reported and what counts of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/plan/path.h"

#define T       (1000 * RWY_SEC)
#define OBS_MAX 4
#define ALL_HAS 31u

enum { BW, RTT, JITTER, LOSS, BURST };

struct expect {
	enum plan_carrier carrier;
	uint8_t field;
	uint64_t v;
	uint32_t source;
};

struct path_case {
	const char *name;
	struct plan_obs obs[OBS_MAX];
	unsigned used;
	enum plan_class cls;
	struct expect want[4]; /* ends with field v 0 and source 0 */
};

#define MEASURED(src, c, age_s, bw, rtt, loss)                                                               \
	{                                                                                                    \
		.source = src, .carrier = c, .has = PLAN_HAS_BANDWIDTH | PLAN_HAS_RTT | PLAN_HAS_LOSS,       \
		.at = T - (age_s)*RWY_SEC, .bandwidth_bps = bw, .rtt_us = rtt, .loss_ppm = loss              \
	}
#define PUSHED(src, class, age_s, bw, rtt, loss)                                                             \
	{                                                                                                    \
		.source = src, .pushed = true, .cls = class, .carrier = PLAN_ANY,                            \
		.has = PLAN_HAS_BANDWIDTH | PLAN_HAS_RTT | PLAN_HAS_LOSS, .at = T - (age_s)*RWY_SEC,         \
		.bandwidth_bps = bw, .rtt_us = rtt, .loss_ppm = loss                                         \
	}

static const struct path_case cases[] = {
    {"nothing said: assumed", {{0}}, 0, PLAN_INTERNET,
        {{PLAN_NATIVE, RTT, 50000, 0}, {PLAN_TCP, LOSS, 100, 0}}},
    {"one measurement counts for every carrier", {MEASURED(7, PLAN_NATIVE, 1, 1000000, 20000, 50)}, 1,
        PLAN_INTERNET,
        {{PLAN_NATIVE, RTT, 20000, 7}, {PLAN_TCP, RTT, 20000, 7}, {PLAN_QUIC, LOSS, 50, 7},
            {PLAN_TCP, BW, 1000000, 7}}},
    {"a carrier's own before another's",
        {MEASURED(7, PLAN_NATIVE, 1, 1000000, 20000, 30000), MEASURED(7, PLAN_TCP, 30, 9000000, 22000, 0)}, 2,
        PLAN_INTERNET,
        {{PLAN_NATIVE, LOSS, 30000, 7}, {PLAN_TCP, LOSS, 0, 7}, {PLAN_TCP, BW, 9000000, 7},
            {PLAN_NATIVE, BW, 1000000, 7}}},
    {"the path's before another carrier's",
        {MEASURED(7, PLAN_NATIVE, 1, 0, 20000, 30000), MEASURED(7, PLAN_ANY, 5, 0, 21000, 10)}, 2,
        PLAN_INTERNET, {{PLAN_TCP, LOSS, 10, 7}, {PLAN_NATIVE, LOSS, 30000, 7}}},
    {"of one source the youngest",
        {MEASURED(7, PLAN_NATIVE, 9, 5, 90000, 9), MEASURED(7, PLAN_NATIVE, 3, 6, 30000, 3),
            MEASURED(7, PLAN_NATIVE, 6, 7, 60000, 6)},
        3, PLAN_INTERNET, {{PLAN_NATIVE, RTT, 30000, 7}, {PLAN_NATIVE, LOSS, 3, 7}, {PLAN_NATIVE, BW, 6, 7}}},
    {"of two ends the worse",
        {MEASURED(7, PLAN_NATIVE, 3, 600, 30000, 3), MEASURED(8, PLAN_NATIVE, 6, 700, 20000, 6)}, 2,
        PLAN_INTERNET, {{PLAN_NATIVE, RTT, 30000, 7}, {PLAN_NATIVE, LOSS, 6, 8}, {PLAN_NATIVE, BW, 600, 7}}},
    {"too old", {MEASURED(7, PLAN_NATIVE, 61, 1, 1, 1)}, 0, PLAN_INTERNET, {{PLAN_NATIVE, RTT, 50000, 0}}},
    {"just young enough", {MEASURED(7, PLAN_NATIVE, 60, 1, 1, 1)}, 1, PLAN_INTERNET,
        {{PLAN_NATIVE, RTT, 1, 7}}},
    {"from the future", {MEASURED(7, PLAN_NATIVE, -1, 1, 1, 1)}, 0, PLAN_INTERNET,
        {{PLAN_NATIVE, RTT, 50000, 0}}},
    {"of nobody", {MEASURED(0, PLAN_NATIVE, 1, 1, 1, 1)}, 0, PLAN_INTERNET, {{PLAN_NATIVE, RTT, 50000, 0}}},
    {"of no carrier", {MEASURED(7, PLAN_CARRIER_COUNT + 1, 1, 1, 1, 1)}, 0, PLAN_INTERNET,
        {{PLAN_NATIVE, RTT, 50000, 0}}},
    {"a class that is none", {PUSHED(3, PLAN_CLASS_COUNT, 1, 1, 1, 1)}, 0, PLAN_INTERNET,
        {{PLAN_NATIVE, RTT, 50000, 0}}},
    {"a promise alone counts on any class", {PUSHED(3, PLAN_INTERNET, 1, 1000, 9000, 5)}, 1, PLAN_INTERNET,
        {{PLAN_NATIVE, RTT, 9000, 3}, {PLAN_TCP, LOSS, 5, 3}, {PLAN_TCP, BW, 1000, 3}}},
    {"Internet: what is measured before what is said",
        {PUSHED(3, PLAN_INTERNET, 1, 1000, 9000, 5), MEASURED(7, PLAN_NATIVE, 5, 2000, 8000, 1)}, 2,
        PLAN_INTERNET, {{PLAN_NATIVE, RTT, 8000, 7}, {PLAN_TCP, LOSS, 1, 7}, {PLAN_NATIVE, BW, 2000, 7}}},
    {"deterministic: the promise, where the measurement is not worse",
        {PUSHED(3, PLAN_DETERMINISTIC, 1, 1000, 9000, 5), MEASURED(7, PLAN_NATIVE, 5, 2000, 8000, 90)}, 2,
        PLAN_DETERMINISTIC,
        {{PLAN_NATIVE, RTT, 9000, 3}, {PLAN_NATIVE, LOSS, 90, 7}, {PLAN_NATIVE, BW, 1000, 3}}},
    {"reserved: only the bandwidth is promised",
        {PUSHED(3, PLAN_RESERVED, 1, 1000, 9000, 5), MEASURED(7, PLAN_NATIVE, 5, 2000, 8000, 1)}, 2,
        PLAN_RESERVED, {{PLAN_NATIVE, RTT, 8000, 7}, {PLAN_NATIVE, LOSS, 1, 7}, {PLAN_NATIVE, BW, 1000, 3}}},
    {"a promise that is over",
        {PUSHED(3, PLAN_DETERMINISTIC, 99, 1000, 9000, 5), MEASURED(7, PLAN_NATIVE, 5, 2000, 8000, 1)}, 1,
        PLAN_INTERNET, {{PLAN_NATIVE, RTT, 8000, 7}, {PLAN_NATIVE, BW, 2000, 7}}},
    {"values beyond reason are cut",
        {{.source = 1,
            .carrier = PLAN_ANY,
            .has = ALL_HAS,
            .at = T,
            .bandwidth_bps = UINT64_MAX,
            .rtt_us = UINT32_MAX,
            .jitter_us = UINT32_MAX,
            .loss_ppm = UINT32_MAX,
            .burst = 0}},
        1, PLAN_INTERNET,
        {{PLAN_NATIVE, BW, PLAN_RATE_MAX, 1}, {PLAN_NATIVE, LOSS, PLAN_PPM, 1},
            {PLAN_NATIVE, RTT, PLAN_US_MAX, 1}, {PLAN_NATIVE, BURST, 1, 1}}},
};

static const struct plan_value *field(const struct plan_leg *l, unsigned f)
{
	const struct plan_value *const v[] = {
	    &l->bandwidth_bps, &l->rtt_us, &l->jitter_us, &l->loss_ppm, &l->burst};

	return v[f];
}

static void check_case(const struct path_case *c, const struct plan_obs *obs, unsigned n)
{
	const struct plan_value *v;
	struct plan_path p;
	unsigned used, i;

	used = plan_path_merge(&p, obs, n, T);
	if (used != c->used || p.cls != c->cls)
		fail_msg("%s: %u counted, class %s", c->name, used, plan_class_name(p.cls));
	for (i = 0; i < 4 && (c->want[i].v || c->want[i].source); i++) {
		v = field(&p.by[c->want[i].carrier], c->want[i].field);
		if (v->v != c->want[i].v || v->source != c->want[i].source)
			fail_msg("%s: carrier %s field %u: %llu of source %u", c->name,
			    plan_carrier_name(c->want[i].carrier), c->want[i].field, (unsigned long long)v->v,
			    v->source);
	}
}

static void test_table(void **state)
{
	unsigned i, j, n;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct plan_obs turned[OBS_MAX];

		for (n = 0; n < OBS_MAX && (cases[i].obs[n].at || cases[i].obs[n].source); n++)
			;
		check_case(&cases[i], cases[i].obs, n);
		/* The order of reports of different times does not matter. */
		for (j = 0; j < n; j++)
			turned[j] = cases[i].obs[n - 1 - j];
		check_case(&cases[i], turned, n);
	}
}

static void test_ages_are_kept(void **state)
{
	const struct plan_obs o = MEASURED(7, PLAN_NATIVE, 5, 2000, 8000, 1);
	struct plan_path p;

	plan_path_merge(&p, &o, 1, T);
	assert_int_equal(rwy_since(p.by[PLAN_TCP].rtt_us.at, T), 5 * RWY_SEC);
}

static void test_own_ttl(void **state)
{
	struct plan_obs o = MEASURED(7, PLAN_NATIVE, 5, 2000, 8000, 1);
	struct plan_path p;

	o.ttl = 4 * RWY_SEC;
	assert_int_equal(plan_path_merge(&p, &o, 1, T), 0);
	o.ttl = 5 * RWY_SEC;
	assert_int_equal(plan_path_merge(&p, &o, 1, T), 1);
}

static void test_words(void **state)
{
	unsigned i;

	for (i = 0; i < PLAN_CARRIER_COUNT; i++)
		assert_int_equal(plan_carrier_find(plan_carrier_name((enum plan_carrier)i)), i);
	assert_int_equal(plan_carrier_find("sctp"), PLAN_ANY);
	assert_string_equal(plan_carrier_name(PLAN_ANY), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_ages_are_kept),
	    cmocka_unit_test(test_own_ttl),
	    cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
