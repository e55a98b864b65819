/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document names all pairs that jobs have at a site, of its gateway and of that one's siblings,
 * and gateways refuse one with more than CONF_DOCUMENT_PAIRS_MAX. So a job that would exceed that
 * is refused: no other job has to suffer for it.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "controller/job/jobs.h"

struct at_site {
	const struct ctlr_site *site;
	size_t mine, others;
};

static const json_t *plan_of(const json_t *record)
{
	return json_object_get(record, "plan");
}

/* The site of one end, 0 or 1, of a row of a plan; NULL: its gateway has none now. */
static const struct ctlr_site *site_of(struct ctlr *c, const json_t *row, unsigned end)
{
	const char *pair = json_string_value(json_object_get(row, "pair"));
	const char *slash = pair ? strchr(pair, '/') : NULL;
	const struct ctlr_gateway *g;
	char name[MDL_NAME];

	if (!slash || (size_t)(slash - pair) >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)(slash - pair), pair);
	g = ctlr_map_find(&c->gateways, end ? slash + 1 : name);
	return g ? g->site : NULL;
}

static struct at_site *find(struct at_site *v, unsigned n, const struct ctlr_site *site)
{
	for (unsigned i = 0; i < n; i++)
		if (v[i].site == site)
			return &v[i];
	return NULL;
}

/* Counts the pairs of a new plan by site. v has room for two sites of each. Returns how many. */
static unsigned count_own(struct ctlr *c, const json_t *plan, struct at_site *v)
{
	unsigned n = 0;
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)plan, i, row)
	{
		for (unsigned end = 0; end < 2; end++) {
			const struct ctlr_site *site = site_of(c, row, end);
			struct at_site *at = find(v, n, site);

			if (!at && site)
				*(at = &v[n++]) = (struct at_site){.site = site};
			if (at)
				at->mine++;
		}
	}
	return n;
}

static void count_others(struct ctlr *c, const struct ctlr_job *but, struct at_site *v, unsigned n)
{
	const struct ctlr_job *j;
	struct at_site *at;
	json_t *row;
	size_t i;

	CTLR_MAP_EACH(&c->jobs, j)
	{
		json_array_foreach((json_t *)(uintptr_t)plan_of(j != but ? j->json : NULL), i, row)
		{
			for (unsigned end = 0; end < 2; end++)
				if ((at = find(v, n, site_of(c, row, end))))
					at->others++;
		}
	}
}

/* More pairs than there are at any site. */
static size_t pairs_at_most(struct ctlr *c, const json_t *record, const struct ctlr_job *but)
{
	size_t all = json_array_size(plan_of(record));
	const struct ctlr_job *j;

	CTLR_MAP_EACH(&c->jobs, j)
	{
		all += j != but ? json_array_size(plan_of(j->json)) : 0;
	}
	return all;
}

bool ctlr_job_fits_documents(
    struct ctlr *c, struct ctlr_req *r, const json_t *record, const struct ctlr_job *old)
{
	struct at_site *v;
	unsigned n;

	if (pairs_at_most(c, record, old) <= CONF_DOCUMENT_PAIRS_MAX)
		return true;
	v = calloc(2 * json_array_size(plan_of(record)) + 1, sizeof(*v));
	if (!v) {
		ctlr_req_fail(r, 503, "", "out of memory");
		return false;
	}
	n = count_own(c, plan_of(record), v);
	count_others(c, old, v, n);
	for (unsigned i = 0; i < n; i++)
		if (v[i].mine + v[i].others > CONF_DOCUMENT_PAIRS_MAX) {
			ctlr_req_fail(r, 409, "pairs",
			    "pairs: the gateways of site %s take %u of all jobs: others have %zu there, and "
			    "this one %zu",
			    v[i].site->name, CONF_DOCUMENT_PAIRS_MAX, v[i].others, v[i].mine);
			break;
		}
	free(v);
	return !r->status;
}
