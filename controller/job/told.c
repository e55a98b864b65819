/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pair of gateways a job gave to which addresses, or queue pairs: an index to the plans of all jobs,
 * and what gateways and hosts are told of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/jobs.h"

/* A row of a plan: what it was given goes first. By addresses, and for a queue pair that is named by QPNs. */
struct routed {
	struct map_node node;
	char key[192];
	uint32_t vni, qpn[2]; /* at addr[0], at addr[1]; 0: of all */
	char addr[2][MDL_ADDR];
	struct {
		char a[MDL_NAME], b[MDL_NAME];
	} pair; /* "": of each queue pair its own */
	const struct job *job;
};

/* The same for both directions. */
static void routed_key(
    char key[192], uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const bool first = strcmp(a, b) < 0;

	snprintf(key, 192, "%" PRIx32 "/%s/%s/%" PRIx32 "/%" PRIx32, vni, first ? a : b, first ? b : a,
	    first ? a_qpn : b_qpn, first ? b_qpn : a_qpn);
}

static struct routed *routed_find(
    const struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	struct routed *x = NULL;
	char key[192];

	if (a_qpn && b_qpn) {
		routed_key(key, vni, a, b, a_qpn, b_qpn);
		x = map_find(&c->routed, key);
	}
	if (!x) {
		routed_key(key, vni, a, b, 0, 0);
		x = map_find(&c->routed, key);
	}
	return x;
}

static uint32_t qpn_of(const json_t *row, const char *key)
{
	return (uint32_t)json_integer_value(json_object_get(row, key));
}

static void row_take(struct ctlr *c, const struct job *j, const json_t *row)
{
	const char *pair = json_string_value(json_object_get(row, "pair"));
	struct routed *x = calloc(1, sizeof(*x));
	struct flow *f;

	if (!x)
		return;
	x->job = j;
	x->vni = j->vni;
	snprintf(x->addr[0], MDL_ADDR, "%s", json_string_value(json_object_get(row, "source")));
	snprintf(x->addr[1], MDL_ADDR, "%s", json_string_value(json_object_get(row, "destination")));
	x->qpn[0] = qpn_of(row, "source_qpn");
	x->qpn[1] = qpn_of(row, "destination_qpn");
	routed_key(x->key, x->vni, x->addr[0], x->addr[1], x->qpn[0], x->qpn[1]);
	if ((pair && sscanf(pair, "%31[^/]/%31s", x->pair.a, x->pair.b) != 2) ||
	    map_find(&c->routed, x->key) || map_add(&c->routed, &x->node, x->key)) {
		free(x);
		return;
	}
	for (unsigned k = 0; k < 2; k++) {
		struct gateway *g = map_find(&c->gateways, k ? x->pair.b : x->pair.a);

		if (g && g->job_rev < j->mod_rev)
			g->job_rev = j->mod_rev;
		if (g)
			gateway_dirty(c, g);
	}
	f = flow_find(c, x->vni, x->addr[0], x->addr[1], x->qpn[0], x->qpn[1]);
	if (f)
		flow_settle(c, f);
}

static void row_give(struct ctlr *c, const struct job *j, const json_t *row)
{
	struct routed *x;
	char key[192];

	routed_key(key, j->vni, json_string_value(json_object_get(row, "source")),
	    json_string_value(json_object_get(row, "destination")), qpn_of(row, "source_qpn"),
	    qpn_of(row, "destination_qpn"));
	x = map_find(&c->routed, key);
	if (!x || x->job != j)
		return;
	map_del(&c->routed, &x->node);
	free(x);
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
			row_take(c, j, row);
		else
			row_give(c, j, row);
	}
	routes_changed(c, NULL);
}

/* --- what gateways and hosts are told
 * ---------------------------------------------------------------------------------------------- */

struct tunnel *job_tunnel(struct ctlr *c, const struct flow *f)
{
	const struct routed *x = routed_find(c, f->vni, f->addr[0], f->addr[1], f->qpn[0], f->qpn[1]);

	return x && *x->pair.a ? tunnel_find(c, x->pair.a, x->pair.b) : NULL;
}

const struct job *job_of(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const struct routed *x = routed_find(c, vni, a, b, a_qpn, b_qpn);

	return x ? x->job : NULL;
}

struct plan_pair job_pair(
    struct ctlr *c, const struct job *j, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	const struct routed *x;
	char key[192];

	routed_key(key, j->vni, a, b, a_qpn, b_qpn);
	x = map_find(&c->routed, key);
	if (!x || x->job != j || !*x->pair.a)
		return (struct plan_pair){0, 0, 0};
	return (struct plan_pair){plan_id(x->pair.a), plan_id(x->pair.b), 0};
}

bool job_by_qp(const struct job *j)
{
	const char *grain =
	    json_string_value(json_object_get(json_object_get(j->json, "job"), "granularity"));

	return grain && !strcmp(grain, "qp");
}

struct tunnel *tunnel_of(struct ctlr *c, const char *pair)
{
	char a[MDL_NAME], b[MDL_NAME];

	return pair && sscanf(pair, "%31[^/]/%31s", a, b) == 2 ? tunnel_find(c, a, b) : NULL;
}

struct job **jobs_by_name(struct ctlr *c)
{
	struct job **all = calloc(c->jobs.n + 1, sizeof(*all));

	if (all)
		(void)map_page(&c->jobs, NULL, (void **)all, c->jobs.n);
	return all;
}

static json_t *assignment(
    const struct job *j, const json_t *row, bool first, const char *pair, const char *slash)
{
	json_t *a = json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "job", j->name, "vni", (json_int_t)j->vni,
	    "source", json_copy(json_object_get(row, first ? "source" : "destination")), "destination",
	    json_copy(json_object_get(row, first ? "destination" : "source")), "tunnel",
	    first ? json_string(slash + 1) : json_stringn(pair, (size_t)(slash - pair)), "rate_bps",
	    json_copy(json_object_get(row, "gateway_bps")));

	if (qpn_of(row, "source_qpn")) {
		json_object_set_new(
		    a, "source_qpn", json_integer(qpn_of(row, first ? "source_qpn" : "destination_qpn")));
		json_object_set_new(a, "destination_qpn",
		    json_integer(qpn_of(row, first ? "destination_qpn" : "source_qpn")));
	}
	return a;
}

/* Each way as this gateway has it: from its site to the other. */
void job_assignments(struct ctlr *c, struct gateway *g, json_t *list)
{
	const struct tunnel *t;
	struct job **all = jobs_by_name(c);
	json_t *row;
	size_t i;

	for (struct job **p = all; p && *p; p++) {
		const struct job *j = *p;

		json_array_foreach(json_object_get(j->json, "plan"), i, row)
		{
			const char *pair = json_string_value(json_object_get(row, "pair"));
			const char *slash = pair ? strchr(pair, '/') : NULL;
			const size_t n = strlen(g->name);
			const bool first = slash && (size_t)(slash - pair) == n && !strncmp(pair, g->name, n);
			const bool second = slash && !strcmp(slash + 1, g->name);

			if (!first && !second)
				continue;
			t = tunnel_of(c, pair);
			if (!t || !tunnel_up(t)) /* a broken job's pair that has no way */
				continue;
			json_array_append_new(list, assignment(j, row, first, pair, slash));
		}
	}
	free(all);
}

void job_routes(struct ctlr *c, struct site *s, json_t *list)
{
	struct routed *x;

	MAP_EACH(&c->routed, x)
	{
		const struct gateway *a = map_find(&c->gateways, x->pair.a),
		                     *b = map_find(&c->gateways, x->pair.b);
		const struct flow *f;

		if (!a || !b || !a->up || !b->up || (a->site != s && b->site != s))
			continue;
		f = flow_find(c, x->vni, x->addr[0], x->addr[1], x->qpn[0], x->qpn[1]);
		if (!f || !f->tunnel) /* else: the flow's */
			route_pair(list, c, s, a->site == s ? a : b, x->vni, x->addr, x->qpn);
	}
}
