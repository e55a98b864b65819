/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ranks: the planner's call, and the check of what it returns. For cmocka. */
#ifndef TESTS_LIB_PLAN_RANKS_H
#define TESTS_LIB_PLAN_RANKS_H

#include <string.h>

#include "controller/plan/ranks.h"

#define NONE PLAN_RANK_NONE

static inline struct plan_ranks *assign(const struct plan_split *s)
{
	struct plan_ranks *r;

	assert_int_equal(plan_ranks_new(&r, s), 0);
	return r;
}

/* Each rank once, each cluster's in one range, each tensor group in one container. Fills of[] with the
 * container of each group. */
static inline void check_table(const struct plan_split *s, const struct plan_ranks *r, uint32_t *of)
{
	const uint32_t groups = s->pipeline * s->data;
	uint32_t seen = 0;

	memset(of, 0xff, groups * sizeof(*of));
	for (uint32_t i = 0; i < s->containers; i++) {
		const struct plan_share *x = &r->share[i];
		const uint32_t c = s->container[i].cluster;

		assert_true(x->count <= s->container[i].ranks);
		if (x->count) {
			assert_true(x->first >= r->cluster_first[c]);
			assert_true(x->first + x->count <= r->cluster_first[c] + s->cluster[c].ranks);
		}
		assert_int_equal(x->first % s->tensor, 0);
		assert_int_equal(x->count % s->tensor, 0);
		for (uint32_t g = x->first / s->tensor; g < (x->first + x->count) / s->tensor; g++, seen++) {
			assert_int_equal(of[g], NONE);
			of[g] = i;
		}
	}
	assert_int_equal(seen, groups - r->missing_all / s->tensor);
}

#endif
