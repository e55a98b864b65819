/* SPDX-License-Identifier: Apache-2.0 */
/* Gives containers their ranks: checks the split, orders the clusters, fills them. See ranks.h. */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/ranks_int.h"

static const char *const fail_texts[] = {
#define X(e, s) s,
    PLAN_RANKS_FAILS(X)
#undef X
};

const char *plan_ranks_fail_text(enum plan_ranks_fail f)
{
	return (unsigned)f < sizeof(fail_texts) / sizeof(fail_texts[0]) ? fail_texts[f] : "?";
}

static bool refuse(struct plan_ranks *r, enum plan_ranks_fail why, unsigned bad)
{
	r->fail = why;
	r->bad = bad;
	return false;
}

/* --- the split -------------------------------------------------------------------------------- */

static bool is_sane(const struct plan_split *s)
{
	uint64_t width;

	if (!s->clusters || s->clusters > PLAN_CLUSTERS_MAX || s->containers > PLAN_CONTAINERS_MAX ||
	    !s->pipeline || !s->data || !s->tensor)
		return false;
	width = (uint64_t)s->data * s->tensor;
	if (width > PLAN_JOB_RANKS_MAX || width * s->pipeline > PLAN_JOB_RANKS_MAX)
		return false;
	for (unsigned i = 0; i < s->containers; i++)
		if (s->container[i].cluster >= s->clusters || s->container[i].ranks > PLAN_JOB_RANKS_MAX ||
		    s->container[i].levels > PLAN_LEVELS_MAX)
			return false;
	return true;
}

static bool clusters_fit(const struct plan_split *s, struct plan_ranks *r)
{
	const uint32_t width = s->data * s->tensor;
	uint64_t sum = 0;
	unsigned chosen = 0;

	for (unsigned i = 0; i < s->clusters; i++) {
		if (s->cluster[i].ranks == 0 || s->cluster[i].ranks % width)
			return refuse(r, PLAN_RANKS_STAGE, i);
		sum += s->cluster[i].ranks;
		chosen += s->cluster[i].first != PLAN_RANK_NONE;
	}
	if (sum != (uint64_t)width * s->pipeline)
		return refuse(r, PLAN_RANKS_WORLD, 0);
	if (chosen && chosen < s->clusters)
		return refuse(r, PLAN_RANKS_SOME, 0);
	for (unsigned i = 0; i < s->containers; i++)
		if (!s->container[i].ranks || s->container[i].ranks % s->tensor)
			return refuse(r, PLAN_RANKS_TENSOR, i);
	return true;
}

/* The first ranks as the scheduler gave them: the ranges must follow each other. */
static bool take_ranges(const struct plan_split *s, struct plan_ranks *r)
{
	uint32_t next = 0;

	for (unsigned done = 0; done < s->clusters; done++) {
		unsigned k = 0;

		while (k < s->clusters && s->cluster[k].first != next)
			k++;
		if (k == s->clusters)
			return refuse(r, PLAN_RANKS_RANGE, 0);
		r->cluster_first[k] = next;
		next += s->cluster[k].ranks;
	}
	return true;
}

static int choose_ranges(const struct plan_split *s, struct plan_ranks *r)
{
	uint32_t order[PLAN_CLUSTERS_MAX], next = 0;
	const int rc = ranks_order(s, order, &r->cost_us);

	if (rc == RWY_ENOENT)
		return (void)refuse(r, PLAN_RANKS_PATH, 0), 0;
	if (rc)
		return rc;
	for (unsigned i = 0; i < s->clusters; i++) {
		r->cluster_first[order[i]] = next;
		next += s->cluster[order[i]].ranks;
	}
	return 0;
}

/* --- the order to begin with ------------------------------------------------------------------ */

/* A container with its place in numbers that follow the order in which containers were posted: of
 * each level the first container that shares it. */
struct placed {
	const struct plan_container *c;
	uint32_t index;
	uint32_t key[PLAN_LEVELS_MAX];
};

static int cmp_levels(const void *va, const void *vb)
{
	const struct placed *a = va, *b = vb;

	for (unsigned i = 0; i < PLAN_LEVELS_MAX; i++) {
		const uint64_t x = i < a->c->levels ? a->c->level[i] : 0,
		               y = i < b->c->levels ? b->c->level[i] : 0;

		if (x != y)
			return x < y ? -1 : 1;
	}
	return a->index < b->index ? -1 : a->index > b->index;
}

static int cmp_keys(const void *va, const void *vb)
{
	const struct placed *a = va, *b = vb;

	for (unsigned i = 0; i < PLAN_LEVELS_MAX; i++)
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i] ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static bool share_level(const struct placed *a, const struct placed *b, unsigned level)
{
	for (unsigned i = 0; i <= level; i++)
		if (i >= a->c->levels || i >= b->c->levels || a->c->level[i] != b->c->level[i])
			return false;
	return true;
}

static void set_keys(struct placed *p, unsigned n)
{
	for (unsigned level = 0; level < PLAN_LEVELS_MAX; level++)
		for (unsigned i = 0, k; i < n; i = k) {
			uint32_t least = p[i].index;

			for (k = i + 1; k < n && share_level(&p[i], &p[k], level); k++)
				least = p[k].index < least ? p[k].index : least;
			for (unsigned m = i; m < k; m++)
				p[m].key[level] = least;
		}
}

/* --- a cluster that has no ranks yet ---------------------------------------------------------- */

static int fill_cluster(const struct plan_split *s, struct plan_ranks *r, unsigned cluster, struct placed *p)
{
	uint32_t *order, at = r->cluster_first[cluster], left = s->cluster[cluster].ranks;
	unsigned n = 0;

	for (unsigned i = 0; i < s->containers; i++)
		if (s->container[i].cluster == cluster && !s->container[i].failed)
			p[n++] = (struct placed){.c = &s->container[i], .index = i};
	qsort(p, n, sizeof(*p), cmp_levels);
	set_keys(p, n);
	qsort(p, n, sizeof(*p), cmp_keys);
	order = calloc((size_t)n + 1, sizeof(*order));
	if (!order)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < n; i++)
		order[i] = p[i].index;
	r->hops += ranks_place(s, order, n, left / s->tensor);
	for (unsigned i = 0; i < n && left; i++) {
		const uint32_t has = s->container[order[i]].ranks, count = has < left ? has : left;

		r->share[order[i]] = (struct plan_share){at, count};
		at += count;
		left -= count;
	}
	r->missing[cluster] = left;
	free(order);
	return 0;
}

/* --- a cluster that has ranks ----------------------------------------------------------------- */

/* The container of each tensor group of the job; PLAN_RANK_NONE: none. */
struct taken {
	uint32_t *of;
	uint32_t groups;
};

static void take(const struct plan_split *s, struct plan_ranks *r, struct taken *t, uint32_t index,
    struct plan_share share)
{
	r->share[index] = share;
	for (uint32_t i = 0; i < share.count / s->tensor; i++)
		t->of[share.first / s->tensor + i] = index;
}

/* Keeps the ranks of a container, if they are still in its cluster's range and nobody else's. */
static bool keep(const struct plan_split *s, struct plan_ranks *r, struct taken *t, uint32_t index)
{
	const struct plan_container *c = &s->container[index];
	const uint32_t begin = r->cluster_first[c->cluster], size = s->cluster[c->cluster].ranks;

	if (c->failed || !c->count || c->count > c->ranks || c->count % s->tensor || c->first % s->tensor ||
	    c->first < begin || c->count > size || c->first - begin > size - c->count)
		return false;
	for (uint32_t i = 0; i < c->count / s->tensor; i++)
		if (t->of[c->first / s->tensor + i] != PLAN_RANK_NONE)
			return false;
	take(s, r, t, index, (struct plan_share){c->first, c->count});
	return true;
}

static unsigned hops_to(const struct plan_split *s, const struct taken *t, uint32_t index, int64_t group)
{
	const uint32_t other = group < 0 || group >= t->groups ? PLAN_RANK_NONE : t->of[group];

	if (other == PLAN_RANK_NONE || s->container[other].cluster != s->container[index].cluster)
		return 0;
	return plan_ranks_hops(&s->container[index], &s->container[other]);
}

/* The hops from the container, put at these groups, to all that these talk to. */
static uint64_t hops_at(
    const struct plan_split *s, const struct taken *t, uint32_t index, uint32_t group, uint32_t n)
{
	const int64_t d = s->data;
	uint64_t sum = 0;

	for (int64_t g = group; g < (int64_t)group + n; g++)
		sum += hops_to(s, t, index, g - d) + hops_to(s, t, index, g + d) +
		       (g % d ? hops_to(s, t, index, g - 1) : 0) +
		       ((g + 1) % d ? hops_to(s, t, index, g + 1) : 0);
	return sum;
}

/* The spare container for n vacant groups: the one that fills most of them, then the nearest to
 * those that it talks to, then the first. */
static uint32_t best_spare(const struct plan_split *s, const struct plan_ranks *r, const struct taken *t,
    unsigned cluster, uint32_t group, uint32_t n, uint32_t *fills)
{
	uint32_t best = PLAN_RANK_NONE;
	uint64_t best_hops = 0;

	*fills = 0;
	for (unsigned i = 0; i < s->containers; i++) {
		const struct plan_container *c = &s->container[i];
		const uint32_t has = c->ranks / s->tensor, k = has < n ? has : n;
		uint64_t hops;

		if (c->cluster != cluster || c->failed || r->share[i].count || k < *fills)
			continue;
		hops = hops_at(s, t, i, group, k);
		if (best != PLAN_RANK_NONE && k == *fills && hops >= best_hops)
			continue;
		best = i;
		best_hops = hops;
		*fills = k;
	}
	return best;
}

static void fill_vacant(const struct plan_split *s, struct plan_ranks *r, struct taken *t, unsigned cluster)
{
	const uint32_t begin = r->cluster_first[cluster] / s->tensor,
	               end = begin + s->cluster[cluster].ranks / s->tensor;
	uint32_t g = begin, n, k, spare;

	while (g < end) {
		if (t->of[g] != PLAN_RANK_NONE) {
			g++;
			continue;
		}
		for (n = 1; g + n < end && t->of[g + n] == PLAN_RANK_NONE; n++)
			;
		spare = best_spare(s, r, t, cluster, g, n, &k);
		if (spare == PLAN_RANK_NONE) {
			r->missing[cluster] += n * s->tensor;
			k = n;
		} else {
			take(s, r, t, spare, (struct plan_share){g * s->tensor, k * s->tensor});
		}
		g += k;
	}
}

/* --- all -------------------------------------------------------------------------------------- */

static int fill_all(const struct plan_split *s, struct plan_ranks *r)
{
	struct taken t = {.groups = s->pipeline * s->data};
	struct placed *p = calloc((size_t)s->containers + 1, sizeof(*p));
	bool has[PLAN_CLUSTERS_MAX] = {false};
	int rc = RWY_ENOMEM;

	t.of = malloc(t.groups * sizeof(*t.of));
	if (p && t.of) {
		memset(t.of, 0xff, t.groups * sizeof(*t.of));
		rc = 0;
		for (unsigned i = 0; i < s->containers; i++)
			has[s->container[i].cluster] |= keep(s, r, &t, i);
	}
	for (unsigned i = 0; rc == 0 && i < s->clusters; i++) {
		if (has[i])
			fill_vacant(s, r, &t, i);
		else
			rc = fill_cluster(s, r, i, p);
		r->missing_all += r->missing[i];
	}
	free(t.of);
	free(p);
	return rc;
}

int plan_ranks_new(struct plan_ranks **out, const struct plan_split *s)
{
	struct plan_ranks *r;
	int rc = 0;

	*out = NULL;
	if (!is_sane(s))
		return RWY_EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return RWY_ENOMEM;
	r->share = calloc((size_t)s->containers + 1, sizeof(*r->share));
	r->cluster_first = calloc(s->clusters, sizeof(*r->cluster_first));
	r->missing = calloc(s->clusters, sizeof(*r->missing));
	if (!r->share || !r->cluster_first || !r->missing)
		rc = RWY_ENOMEM;
	else if (clusters_fit(s, r) && s->cluster[0].first != PLAN_RANK_NONE)
		(void)take_ranges(s, r);
	else if (r->fail == PLAN_RANKS_FIT)
		rc = choose_ranges(s, r);
	if (rc == 0 && r->fail == PLAN_RANKS_FIT)
		rc = fill_all(s, r);
	if (rc) {
		plan_ranks_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void plan_ranks_free(struct plan_ranks *r)
{
	if (!r)
		return;
	free(r->share);
	free(r->cluster_first);
	free(r->missing);
	free(r);
}
