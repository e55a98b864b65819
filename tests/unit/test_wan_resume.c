/* SPDX-License-Identifier: Apache-2.0 */
/* A path that begins with the rate of the gateway before (wan/resume.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define RTT   (30 * RWY_MS)
#define RATE  50000000u /* bytes a second */
#define BYTES 1000000u  /* two thirds of what a round trip carries */

static const char *const algorithms[] = {"auto", "bbr", "cubic", "swift", "dcqcn"};

static void begin(struct wan_pair *p, const char *cc, uint64_t link_Bps)
{
	struct wan_link_cfg link = {.delay = RTT / 2, .rate_Bps = link_Bps, .queue_bytes = link_Bps / 50};
	struct wan_cfg cfg;

	wan_cfg_default(&cfg);
	cfg.cc = cc_find(cc);
	wan_pair_init(p, &cfg, &link, &link, 1);
}

static void transfer(struct wan_pair *p)
{
	wan_pair_streams(p, 1, BYTES / 1000, 1000, 1000, UINT32_MAX);
}

/* Runs the transfer. Returns the time from the tunnel's coming up to its end. */
static rwy_dur run(struct wan_pair *p)
{
	rwy_time up;

	while (!p->end[0].up)
		assert_true(wan_pair_step(p, p->now + RWY_SEC));
	up = p->now;
	assert_true(wan_pair_run(p, p->now + 60 * RWY_SEC));
	return p->stream[0].done_at - up;
}

/* All that waits at the beginning is sent at twice the rate, and arrives within a round trip. */
static void test_resumes(void **state)
{
	for (unsigned i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
		struct wan_pair p;
		rwy_dur took[2];

		for (unsigned known = 0; known < 2; known++) {
			begin(&p, algorithms[i], 2 * RATE);
			if (known)
				wan_resume_set(p.end[0].t, 0, &(struct wan_resume){RATE, RTT});
			transfer(&p);
			took[known] = run(&p);
			if (known)
				assert_int_equal(wan_counters(p.end[0].t)->lost, 0);
			assert_true(wan_pair_finish(&p));
		}
		assert_in_range(took[1], RTT / 2, RTT);
		assert_true(took[1] <= took[0]);
	}
}

/* The round trip is another path's. */
static void test_other_path(void **state)
{
	static const rwy_dur rtt[] = {RTT / 8, RTT / 200};

	for (unsigned i = 0; i < 2; i++) {
		struct wan_pair p;
		rwy_dur took[2];

		for (unsigned known = 0; known < 2; known++) {
			begin(&p, "bbr", 2 * RATE);
			if (known)
				wan_resume_set(p.end[0].t, 0, &(struct wan_resume){RATE, rtt[i]});
			transfer(&p);
			took[known] = run(&p);
			assert_false(p.end[0].t->path[0].resume.active);
			assert_true(wan_pair_finish(&p));
		}
		assert_int_equal(took[0], took[1]);
	}
}

/* The path carries a tenth of it by now: that ends with the first losses. */
static void test_too_fast(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct wan_pair p;
		uint64_t lost;

		begin(&p, algorithms[i], RATE / 10);
		wan_resume_set(p.end[0].t, 0, &(struct wan_resume){RATE, RTT});
		transfer(&p);
		run(&p);
		assert_false(p.end[0].t->path[0].resume.active);
		lost = wan_counters(p.end[0].t)->lost;
		assert_in_range(lost, 1, BYTES / 1000);
		assert_true(wan_pair_finish(&p));
	}
}

/* What is measured while data goes is what another process may begin with. */
static void test_measured(void **state)
{
	struct wan_resume r;
	struct wan_pair p;

	begin(&p, "auto", RATE);
	assert_false(wan_resume_of(p.end[0].t, 0, &r, p.now));
	transfer(&p);
	run(&p);
	assert_true(wan_resume_of(p.end[0].t, 0, &r, p.now));
	assert_in_range(r.rate_Bps, BYTES, RATE + RATE / 10);
	assert_in_range(r.rtt, RTT, RTT + RTT / 8);
	wan_resume_set(p.end[0].t, 0, &(struct wan_resume){2 * RATE, RTT}); /* too late */
	wan_resume_set(p.end[1].t, 0, &(struct wan_resume){RATE, RWY_NEVER});
	wan_resume_set(p.end[0].t, 99, &(struct wan_resume){RATE, RTT}); /* no such path */
	assert_int_equal(p.end[0].t->path[0].resume.from.rate_Bps, 0);
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_resumes),
	    cmocka_unit_test(test_other_path),
	    cmocka_unit_test(test_too_fast),
	    cmocka_unit_test(test_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
