/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/route_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The key of a row; it is the same for both directions. */
static void row_key(char key[192], uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const bool first = strcmp(a, b) < 0;

	snprintf(key, 192, "%" PRIx32 "/%s/%s/%" PRIx32 "/%" PRIx32, vni, first ? a : b, first ? b : a,
	    first ? a_qpn : b_qpn, first ? b_qpn : a_qpn);
}

static const struct ctlr_route *row_find(
    const struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const struct ctlr_route *x = NULL;
	char key[192];

	if (a_qpn && b_qpn) {
		row_key(key, vni, a, b, a_qpn, b_qpn);
		x = ctlr_map_find(&c->routes, key);
	}
	if (!x) {
		row_key(key, vni, a, b, 0, 0);
		x = ctlr_map_find(&c->routes, key);
	}
	return x;
}

/* Puts the row into its key's list, in the order of the jobs' names: the same at all replicas. */
static int row_link(struct ctlr *c, struct ctlr_route *x)
{
	struct ctlr_route *first = ctlr_map_find(&c->routes, x->key), *at = first;

	if (first && strcmp(first->job->name, x->job->name) <= 0) {
		while (at->next && strcmp(at->next->job->name, x->job->name) <= 0)
			at = at->next;
		x->next = at->next;
		at->next = x;
		return 0;
	}
	if (first)
		ctlr_map_del(&c->routes, &first->node);
	x->next = first;
	return ctlr_map_add(&c->routes, &x->node, x->key); /* fails only in an empty table */
}

static void row_unlink(struct ctlr *c, struct ctlr_route *x)
{
	struct ctlr_route *at = ctlr_map_find(&c->routes, x->key);

	if (at == x) {
		ctlr_map_del(&c->routes, &x->node);
		if (x->next && ctlr_map_add(&c->routes, &x->next->node, x->next->key))
			x->next = NULL; /* never: the table has slots */
		return;
	}
	while (at && at->next != x)
		at = at->next;
	if (at)
		at->next = x->next;
}

static struct ctlr_route *row_of_job(const struct ctlr *c, const struct ctlr_job *j, const char *key)
{
	struct ctlr_route *x = ctlr_map_find(&c->routes, key);

	while (x && x->job != j)
		x = x->next;
	return x;
}

const struct ctlr_route *ctlr_route_add(struct ctlr *c, const struct ctlr_job *j, const json_t *row)
{
	const char *pair = json_string_value(json_object_get(row, "pair"));
	struct ctlr_route *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->job = j;
	x->vni = j->vni;
	snprintf(x->addr[0], MDL_ADDR, "%s", mdl_text_of(row, "source"));
	snprintf(x->addr[1], MDL_ADDR, "%s", mdl_text_of(row, "destination"));
	x->qpn[0] = (uint32_t)mdl_number_of(row, "source_qpn");
	x->qpn[1] = (uint32_t)mdl_number_of(row, "destination_qpn");
	row_key(x->key, x->vni, x->addr[0], x->addr[1], x->qpn[0], x->qpn[1]);
	if ((pair && sscanf(pair, "%31[^/]/%31s", x->gateway[0], x->gateway[1]) != 2) || row_link(c, x)) {
		free(x);
		return NULL;
	}
	return x;
}

void ctlr_route_del(struct ctlr *c, const struct ctlr_job *j, const json_t *row)
{
	struct ctlr_route *x;
	char key[192];

	row_key(key, j->vni, mdl_text_of(row, "source"), mdl_text_of(row, "destination"),
	    (uint32_t)mdl_number_of(row, "source_qpn"), (uint32_t)mdl_number_of(row, "destination_qpn"));
	x = row_of_job(c, j, key);
	if (!x)
		return;
	row_unlink(c, x);
	free(x);
}

struct ctlr_tunnel *ctlr_route_tunnel(struct ctlr *c, const struct ctlr_flow *f)
{
	const struct ctlr_route *x = row_find(c, f->vni, f->addr[0], f->addr[1], f->qpn[0], f->qpn[1]);

	return x && *x->gateway[0] ? ctlr_tunnel_find(c, x->gateway[0], x->gateway[1]) : NULL;
}

const struct ctlr_job *ctlr_route_job(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const struct ctlr_route *x = row_find(c, vni, a, b, a_qpn, b_qpn);

	return x ? x->job : NULL;
}

struct plan_pair ctlr_route_pair(
    struct ctlr *c, const struct ctlr_job *j, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const struct ctlr_route *x;
	char key[192];

	row_key(key, j->vni, a, b, a_qpn, b_qpn);
	x = row_of_job(c, j, key);
	if (!x || !*x->gateway[0])
		return (struct plan_pair){0, 0, 0};
	return (struct plan_pair){plan_id(x->gateway[0]), plan_id(x->gateway[1]), 0};
}
