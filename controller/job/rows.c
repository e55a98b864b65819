/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a job's plan enter the route index and leave it; the gateways and flows that they concern
 * follow. */
#include "controller/job/jobs.h"
#include "controller/state/flow.h"
#include "controller/state/route_index.h"
#include "controller/state/work.h"

static void add_row(struct ctlr *c, const struct job *j, const json_t *row)
{
	const struct route_row *x = route_index_add(c, j, row);
	struct gateway *g;
	struct flow *f;

	if (!x)
		return;
	for (unsigned k = 0; k < 2; k++) {
		g = map_find(&c->gateways, x->gateway[k]);
		if (g && g->job_rev < j->mod_rev)
			g->job_rev = j->mod_rev;
		if (g)
			gateway_dirty(c, g);
	}
	f = flow_find(c, x->vni, x->addr[0], x->addr[1], x->qpn[0], x->qpn[1]);
	if (f)
		flow_settle(c, f);
}

void job_rows(struct ctlr *c, const struct job *j, bool add)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(j->json, "plan"), i, row)
	{
		if (!json_string_value(json_object_get(row, "source")) ||
		    !json_string_value(json_object_get(row, "destination")))
			continue;
		if (add)
			add_row(c, j, row);
		else
			route_index_del(c, j, row);
	}
	routes_changed(c, NULL);
}
