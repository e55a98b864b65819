/* SPDX-License-Identifier: Apache-2.0 */
/* The demands of pairs of addresses that a rank table makes: see ranks.h. */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/ranks.h"

static int cmp_pair(const void *va, const void *vb)
{
	const struct plan_job_pair *a = va, *b = vb;
	const int first = memcmp(&a->a, &b->a, sizeof(a->a));

	return first ? first : memcmp(&a->b, &b->b, sizeof(a->b));
}

/* Adds the pair of two ranks that are at two clusters. */
static void put_pair(struct plan_job_pair *out, unsigned *n, const struct plan_rank_address *a,
    const struct plan_rank_address *b, const struct plan_triple *want)
{
	if (a->cluster == PLAN_RANK_NONE || b->cluster == PLAN_RANK_NONE || a->cluster == b->cluster)
		return;
	if (memcmp(&a->addr, &b->addr, sizeof(a->addr)) > 0) { /* a demand holds both ways */
		const struct plan_rank_address *other = a;

		a = b;
		b = other;
	}
	out[(*n)++] = (struct plan_job_pair){.a = a->addr, .b = b->addr, .want = *want};
}

/* Makes one of equal neighbours. Returns how many are left, or PLAN_ERANGE. */
static int sum_equal(struct plan_job_pair *p, unsigned n, uint64_t max_bps)
{
	unsigned k = 0;

	for (unsigned i = 1; i < n; i++) {
		if (cmp_pair(&p[k], &p[i]) != 0) {
			p[++k] = p[i];
			continue;
		}
		if (__builtin_add_overflow(
		        p[k].want.bandwidth_bps, p[i].want.bandwidth_bps, &p[k].want.bandwidth_bps) ||
		    p[k].want.bandwidth_bps > max_bps)
			return PLAN_ERANGE;
	}
	return n ? (int)k + 1 : 0;
}

int plan_ranks_pairs(struct plan_job_pair **out, const struct plan_split *s,
    const struct plan_rank_address *at, const struct plan_triple *want, uint64_t max_bps)
{
	const uint32_t width = s->data * s->tensor, world = s->pipeline * width;
	struct plan_job_pair *p = calloc((size_t)world + 1, sizeof(*p));
	unsigned n = 0;
	int rc;

	*out = NULL;
	if (!p)
		return RWY_ENOMEM;
	for (uint32_t i = width; i < world; i++)
		put_pair(p, &n, &at[i - width], &at[i], want);
	/* With two stages the ring would repeat the pair that exists. */
	for (uint32_t i = 0; s->ring && s->pipeline > 2 && i < width; i++)
		put_pair(p, &n, &at[world - width + i], &at[i], want);
	qsort(p, n, sizeof(*p), cmp_pair);
	rc = sum_equal(p, n, max_bps);
	if (rc < 0)
		free(p);
	else
		*out = p;
	return rc;
}
