/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/route_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same key for both directions. */
static void row_key(char key[192], uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const bool first = strcmp(a, b) < 0;

	snprintf(key, 192, "%" PRIx32 "/%s/%s/%" PRIx32 "/%" PRIx32, vni, first ? a : b, first ? b : a,
	    first ? a_qpn : b_qpn, first ? b_qpn : a_qpn);
}

static const struct route_row *row_find(
    const struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const struct route_row *x = NULL;
	char key[192];

	if (a_qpn && b_qpn) {
		row_key(key, vni, a, b, a_qpn, b_qpn);
		x = map_find(&c->routed, key);
	}
	if (!x) {
		row_key(key, vni, a, b, 0, 0);
		x = map_find(&c->routed, key);
	}
	return x;
}

const struct route_row *route_index_add(struct ctlr *c, const struct job *j, const json_t *row)
{
	const char *pair = json_string_value(json_object_get(row, "pair"));
	struct route_row *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->job = j;
	x->vni = j->vni;
	snprintf(x->addr[0], MDL_ADDR, "%s", mdl_text_of(row, "source"));
	snprintf(x->addr[1], MDL_ADDR, "%s", mdl_text_of(row, "destination"));
	x->qpn[0] = (uint32_t)mdl_number_of(row, "source_qpn");
	x->qpn[1] = (uint32_t)mdl_number_of(row, "destination_qpn");
	row_key(x->key, x->vni, x->addr[0], x->addr[1], x->qpn[0], x->qpn[1]);
	if ((pair && sscanf(pair, "%31[^/]/%31s", x->gateway[0], x->gateway[1]) != 2) ||
	    map_find(&c->routed, x->key) || map_add(&c->routed, &x->node, x->key)) {
		free(x);
		return NULL;
	}
	return x;
}

void route_index_del(struct ctlr *c, const struct job *j, const json_t *row)
{
	struct route_row *x;
	char key[192];

	row_key(key, j->vni, mdl_text_of(row, "source"), mdl_text_of(row, "destination"),
	    (uint32_t)mdl_number_of(row, "source_qpn"), (uint32_t)mdl_number_of(row, "destination_qpn"));
	x = map_find(&c->routed, key);
	if (!x || x->job != j)
		return;
	map_del(&c->routed, &x->node);
	free(x);
}

struct tunnel *route_index_tunnel(struct ctlr *c, const struct flow *f)
{
	const struct route_row *x = row_find(c, f->vni, f->addr[0], f->addr[1], f->qpn[0], f->qpn[1]);

	return x && *x->gateway[0] ? tunnel_find(c, x->gateway[0], x->gateway[1]) : NULL;
}

const struct job *route_index_job(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const struct route_row *x = row_find(c, vni, a, b, a_qpn, b_qpn);

	return x ? x->job : NULL;
}

struct plan_pair route_index_pair(
    struct ctlr *c, const struct job *j, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const struct route_row *x;
	char key[192];

	row_key(key, j->vni, a, b, a_qpn, b_qpn);
	x = map_find(&c->routed, key);
	if (!x || x->job != j || !*x->gateway[0])
		return (struct plan_pair){0, 0, 0};
	return (struct plan_pair){plan_id(x->gateway[0]), plan_id(x->gateway[1]), 0};
}
