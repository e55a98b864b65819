/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of a plan on gateways and paths, and the end of its memory. */
#include <stdlib.h>

#include "controller/plan/book.h"
#include "controller/plan/job_int.h"

static void claim_path(struct plan_job_result *r, const struct plan_job_group *g)
{
	struct plan_claim *t = &r->claims[r->n_claims++];

	plan_book_path(t->name, sizeof(t->name), g->first, g->second);
	t->bps = plan_edge_bps(g->want.bandwidth_bps, g->decision.a_ppm, g->decision.b_ppm);
}

/* A gateway is claimed by payload, a path by what it carries, a network's by what is reserved on
 * it. */
int plan_job_claims(struct plan_job_result *r)
{
	const struct plan_job_group *g;
	const struct plan_route *p;
	struct plan_claim *t;
	unsigned i, k, side;
	size_t max = 0;

	for (i = 0; i < r->n_groups; i++)
		max += r->groups[i].n_gw[0] + r->groups[i].n_gw[1] + r->groups[i].placement.n + 1;
	r->claims = calloc(max ? max : 1, sizeof(*r->claims));
	if (!r->claims)
		return RWY_ENOMEM;
	for (i = 0; i < r->n_groups; i++) {
		g = &r->groups[i];
		for (side = 0; side < 2; side++) {
			for (k = 0; k < g->n_gw[side]; k++) {
				if (g->gw_bps[side][k] == 0)
					continue;
				t = &r->claims[r->n_claims++];
				plan_book_gateway(t->name, sizeof(t->name), g->gw[side][k].name);
				t->bps = g->gw_bps[side][k];
			}
		}
		if (!g->has_network)
			claim_path(r, g);
		for (k = 0; g->has_network && k < g->placement.n; k++) {
			t = &r->claims[r->n_claims++];
			p = &g->routes[g->placement.leg[k].route];
			plan_book_route(t->name, sizeof(t->name), g->first, g->second, p->edge, p->name);
			t->bps = g->placement.leg[k].bps;
		}
	}
	return 0;
}

void plan_job_free(struct plan_job_result *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->n_groups; i++) {
		free(r->groups[i].routes);
		free(r->groups[i].pair_bps);
	}
	free(r->groups);
	free(r->rows);
	free(r->claims);
	free(r);
}
