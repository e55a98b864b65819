/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the rows of a job's plan to the route index and removes them. The gateways and flows that
 * they concern follow. */
#include "controller/job/jobs.h"
#include "controller/state/flow.h"
#include "controller/state/route_index.h"
#include "controller/state/work.h"

static void add_row(struct ctlr *c, const struct ctlr_job *j, const json_t *row)
{
	const struct ctlr_route *x = ctlr_route_add(c, j, row);
	struct ctlr_gateway *g;
	struct ctlr_flow *f;

	if (!x)
		return;
	for (unsigned k = 0; k < 2; k++) {
		g = ctlr_map_find(&c->gateways, x->gateway[k]);
		if (g && g->job_rev < j->mod_rev)
			g->job_rev = j->mod_rev;
		if (g)
			ctlr_work_add_documents(c, g);
	}
	f = ctlr_flow_find(c, x->vni, x->addr[0], x->addr[1], x->qpn[0], x->qpn[1]);
	if (f)
		ctlr_flow_settle(c, f);
}

void ctlr_job_set_routes(struct ctlr *c, const struct ctlr_job *j, bool add)
{
	/* Without its tenant they would be the underlay's. */
	const bool none = add && ctlr_job_lacks_tenant(c, j);
	json_t *plan = none ? NULL : json_object_get(j->json, "plan"), *row;
	size_t i;

	json_array_foreach(plan, i, row)
	{
		if (!json_string_value(json_object_get(row, "source")) ||
		    !json_string_value(json_object_get(row, "destination")))
			continue;
		if (add)
			add_row(c, j, row);
		else
			ctlr_route_del(c, j, row);
	}
	ctlr_work_routes_changed(c, NULL);
}
