/* SPDX-License-Identifier: Apache-2.0
 * Jobs given as rank tables: the pairs that follow from ranks and stages, and the white paper's
 * sample, from its file to the plan.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "tests/lib/job_world.h"

static const struct plan_triple some = {G, 1, 2};

static void test_ranks(void **state)
{
	struct plan_rank r[8], x;
	struct plan_job_pair p[16];
	uint32_t bad;
	unsigned i;

	for (i = 0; i < 8; i++)
		r[i] = (struct plan_rank){i, i / 2, rwy_ip_from4((uint8_t[4]){10, 1, 0, (uint8_t)i})};
	x = r[0];
	r[0] = r[7];
	r[7] = x; /* in any order */
	assert_int_equal(plan_job_ranks(r, 8, &some, false, p, 16, &bad), 6);
	for (i = 0; i < 6; i++)
		assert_true(p[i].a.b[15] == i && p[i].b.b[15] == i + 2 && p[i].want.bandwidth_bps == G);
	assert_int_equal(plan_job_ranks(r, 8, &some, true, p, 16, &bad), 8);
	assert_true(p[7].a.b[15] == 7 && p[7].b.b[15] == 1);
	/* counted, not written */
	assert_int_equal(plan_job_ranks(r, 8, &some, true, p, 3, &bad), 8);
	/* two stages are neighbours once */
	assert_int_equal(plan_job_ranks(r, 4, &some, true, p, 16, &bad), 2);
	/* one stage: no pairs */
	assert_int_equal(plan_job_ranks(r, 2, &some, true, p, 16, &bad), 0);
	assert_int_equal(plan_job_ranks(r, 0, &some, true, p, 16, &bad), RWY_EINVAL);
	/* a stage of one */
	assert_int_equal(plan_job_ranks(r, 7, &some, false, p, 16, &bad), RWY_EINVAL);
	assert_int_equal(bad, 6);
	r[5].rank = 2;
	assert_int_equal(plan_job_ranks(r, 8, &some, false, p, 16, &bad), RWY_EINVAL);
	assert_int_equal(bad, 2);
	for (i = 0; i < 8; i++)
		r[i] = (struct plan_rank){i, i / 2 + (i >= 4), r[i].addr}; /* stage 2 is missing */
	assert_int_equal(plan_job_ranks(r, 8, &some, false, p, 16, &bad), RWY_EINVAL);
	assert_int_equal(bad, 4);
}

static struct rwy_ip ip(const char *text)
{
	uint8_t b[4];

	assert_int_equal(inet_pton(AF_INET, text, b), 1);
	return rwy_ip_from4(b);
}

static uint64_t number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* conf/samples/jobs/: the white paper's training job (table 3: TP 4, PP 6, 24 GPUs) over its three
 * sites (figure 31). */
static void test_white_paper(void **state)
{
	json_t *doc = json_load_file("conf/samples/jobs/mixtral-pp6.json", JSON_REJECT_DUPLICATES, NULL),
	       *row;
	json_t *net = json_load_file("conf/samples/jobs/three-sites.json", JSON_REJECT_DUPLICATES, NULL);
	const json_t *want = json_object_get(doc, "demand");
	const struct plan_triple t = {number(want, "bandwidth_bps"), (uint32_t)number(want, "delay_us"),
	    (uint32_t)number(want, "jitter_us")};
	struct plan_rank r[64];
	struct plan_job_pair p[64];
	struct plan_job job = {.name = "mixtral-pp6", .grain = PLAN_GRAIN_ADDRESS, .pairs = p};
	struct job_world w = job_world();
	struct plan_job_result *res;
	unsigned i, across = 0;
	uint32_t bad;
	size_t at;
	int n;

	json_array_foreach(json_object_get(doc, "ranks"), at, row) r[at] =
	    (struct plan_rank){(uint32_t)number(row, "rank"), (uint32_t)number(row, "stage"),
	        ip(json_string_value(json_object_get(row, "address")))};
	assert_int_equal(at, 24);
	n = plan_job_ranks(r, (unsigned)at, &t, false, p, 64, &bad);
	assert_int_equal(n, 20); /* five borders of stages, four ranks each */
	job.n = (unsigned)n;
	w.network = true;
	json_array_foreach(json_object_get(net, "paths"), at, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "first")), "hangzhou") != 0 ||
		    strcmp(json_string_value(json_object_get(row, "second")), "qingyang") != 0)
			continue;
		w.route[0] = (struct plan_route){"pe-1", "p", number(row, "bandwidth_bps"),
		    (uint32_t)number(row, "delay_us"), (uint32_t)number(row, "jitter_us"), 0,
		    {{"", ""}, 0, 0}};
		w.n_routes = 1;
	}
	assert_int_equal(w.n_routes, 1);
	res = job_plan(&w, &job);
	assert_int_equal(res->fail, PLAN_JOB_FITS);
	assert_int_equal(res->n_groups, 1);
	for (i = 0; i < job.n; i++)
		across += res->rows[i].group == 0;
	assert_int_equal(across, 4); /* stage 3 to 4 leaves the site */
	assert_int_equal(res->groups[0].want.bandwidth_bps, 4 * t.bandwidth_bps);
	assert_int_equal(res->groups[0].placement.shape, PLAN_SAME_PATH);
	plan_job_free(res);
	/* The white paper's narrow link (test 6: 400 Mbit/s): refused, and what would fit. */
	w.route[0].free_bps = 400000000;
	res = job_plan(&w, &job);
	assert_int_equal(res->fail, PLAN_JOB_NETWORK);
	assert_in_range(res->groups[0].fits.bandwidth_bps, 360000000, 370000000);
	plan_job_free(res);
	json_decref(doc);
	json_decref(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ranks),
	    cmocka_unit_test(test_white_paper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
