/* SPDX-License-Identifier: Apache-2.0 */
/* The pairs of a rank table: neighbouring stages of the pipeline, rank by rank. */
#include <stdlib.h>

#include "controller/plan/job.h"

static int cmp_rank(const void *va, const void *vb)
{
	const struct plan_rank *a = va, *b = vb;

	if (a->stage != b->stage)
		return a->stage < b->stage ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int cmp_number(const void *va, const void *vb)
{
	const uint32_t *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

/* Checks that no rank appears twice, in whatever stages. */
static int check_unique(const struct plan_rank *r, unsigned n, uint32_t *bad)
{
	uint32_t *all = malloc(n * sizeof(*all));
	unsigned i;
	int rc = 0;

	if (!all)
		return RWY_ENOMEM;
	for (i = 0; i < n; i++)
		all[i] = r[i].rank;
	qsort(all, n, sizeof(*all), cmp_number);
	for (i = 1; i < n && rc == 0; i++) {
		if (all[i] == all[i - 1]) {
			*bad = all[i];
			rc = RWY_EINVAL;
		}
	}
	free(all);
	return rc;
}

/* Checks that ranks sorted by stage have stages 0, 1, 2, ... of equal size. Returns that size; 0:
 * *bad is the rank at fault. */
static unsigned stage_width(const struct plan_rank *r, unsigned n, uint32_t *bad)
{
	unsigned width = 0, i;

	while (width < n && r[width].stage == r[0].stage)
		width++;
	for (i = 0; i < n; i++) {
		if (r[i].stage != i / width) {
			*bad = r[i].rank;
			return 0;
		}
	}
	if (n % width) {
		*bad = r[n - 1].rank;
		return 0;
	}
	return width;
}

static void put_pair(struct plan_job_pair *out, unsigned max, int at, const struct plan_rank *a,
    const struct plan_rank *b, const struct plan_triple *want)
{
	if ((unsigned)at < max)
		out[at] = (struct plan_job_pair){a->addr, b->addr, *want, 0, 0};
}

int plan_job_ranks(struct plan_rank *ranks, unsigned n, const struct plan_triple *want, bool ring,
    struct plan_job_pair *out, unsigned max, uint32_t *bad)
{
	unsigned width, i;
	int rc, pairs = 0;

	*bad = 0;
	if (n == 0 || n > PLAN_JOB_RANKS_MAX)
		return RWY_EINVAL;
	rc = check_unique(ranks, n, bad);
	if (rc)
		return rc;
	qsort(ranks, n, sizeof(*ranks), cmp_rank);
	width = stage_width(ranks, n, bad);
	if (width == 0)
		return RWY_EINVAL;
	for (i = width; i < n; i++)
		put_pair(out, max, pairs++, &ranks[i - width], &ranks[i], want);
	/* With two stages the ring would repeat the pair that exists. */
	for (i = 0; ring && n > 2 * width && i < width; i++)
		put_pair(out, max, pairs++, &ranks[n - width + i], &ranks[i], want);
	return pairs;
}
