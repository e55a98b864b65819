/* SPDX-License-Identifier: Apache-2.0 */
/* Carriers that jobs want; see pinned.h. This is an index to the plans of jobs. */
#include "controller/state/pinned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/work.h"

/* A job's pairs of hosts on one tunnel. */
struct part {
	const struct ctlr_job *job;
	enum plan_carrier carrier;
	unsigned rows;
	struct part *next;
};

struct pinned {
	struct ctlr_map_node node;
	char tunnel[2 * MDL_NAME];
	struct part *part; /* list */
};

enum plan_carrier ctlr_pinned_wanted(const json_t *job)
{
	const char *word = json_string_value(json_object_get(job, "carrier"));

	if (word)
		return plan_carrier_find(word);
	return json_object_get(job, "dscp") ? PLAN_NATIVE : PLAN_ANY;
}

static void add_row(struct ctlr *c, const struct ctlr_job *j, const char *tunnel, enum plan_carrier k)
{
	struct pinned *x = CTLR_MAP_NEED(&c->pinned, struct pinned, tunnel, tunnel);
	struct part *p = x ? x->part : NULL;

	while (p && p->job != j)
		p = p->next;
	if (!p && x && (p = calloc(1, sizeof(*p)))) {
		p->job = j;
		p->carrier = k;
		p->next = x->part;
		x->part = p;
	}
	if (p)
		p->rows++;
}

static void del_row(struct ctlr *c, const struct ctlr_job *j, const char *tunnel)
{
	struct pinned *x = ctlr_map_find(&c->pinned, tunnel);
	struct part **p = x ? &x->part : NULL, *q;

	while (p && *p && (*p)->job != j)
		p = &(*p)->next;
	if (!p || !*p || --(*p)->rows)
		return;
	q = *p;
	*p = q->next;
	free(q);
	if (x->part)
		return;
	ctlr_map_del(&c->pinned, &x->node);
	free(x);
}

void ctlr_pinned_set_job(struct ctlr *c, const struct ctlr_job *j, bool add)
{
	const enum plan_carrier k = ctlr_pinned_wanted(json_object_get(j->json, "job"));
	char name[2][MDL_NAME], key[2 * MDL_NAME];
	const char *pair;
	struct ctlr_tunnel *t;
	json_t *row;
	size_t i;

	if (k == PLAN_ANY)
		return;
	json_array_foreach(json_object_get(j->json, "plan"), i, row)
	{
		pair = json_string_value(json_object_get(row, "pair"));
		if (!pair || sscanf(pair, "%31[^/]/%31s", name[0], name[1]) != 2)
			continue;
		ctlr_tunnel_key(key, name[0], name[1]);
		if (add)
			add_row(c, j, key, k);
		else
			del_row(c, j, key);
		t = ctlr_map_find(&c->tunnels, key);
		if (t)
			ctlr_work_add_tunnel(c, t);
	}
}

enum plan_carrier ctlr_pinned_get(
    const struct ctlr *c, const char *a, const char *b, const struct ctlr_job *but)
{
	char key[2 * MDL_NAME];
	const struct pinned *x;

	ctlr_tunnel_key(key, a, b);
	x = ctlr_map_find(&c->pinned, key);
	for (const struct part *p = x ? x->part : NULL; p; p = p->next)
		if (p->job != but)
			return p->carrier;
	return PLAN_ANY;
}
