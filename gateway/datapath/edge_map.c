/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the listen map. The thread that asks allocates a policy; the worker fills it from its
 * own between two turns and takes it. Entries keep their places, by which links are counted.
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/datapath/edge.h"
#include "gateway/relay.h"

struct change {
	struct gw_edge *edge;
	struct proxy_policy *policy; /* the next one; afterwards the one to free */
	/* one of three: an entry to add, a name to remove, the whole map */
	const struct proxy_entry *add;
	const char *del;
	const struct proxy_entry *want;
	unsigned wants;
	int rc;
};

static int entry_add(const struct change *c, struct proxy_entry *e, const struct proxy_entry *add)
{
	unsigned at = CONF_MAP_MAX;

	for (unsigned i = CONF_MAP_MAX; i--;) {
		if (!e[i].port) {
			/* A removed entry's links are counted there until they end. */
			if (!proxy_map_of_entry(c->edge->core.map, i))
				at = i;
			continue;
		}
		if (!strcmp(e[i].name, add->name) ||
		    (e[i].port == add->port && rwy_ip_eq(&e[i].listen, &add->listen)))
			return RWY_EEXIST;
	}
	if (at == CONF_MAP_MAX)
		return RWY_ENOMEM;
	e[at] = *add;
	if (c->policy->entries <= at)
		c->policy->entries = at + 1;
	return 0;
}

static int entry_del(const struct change *c, struct proxy_entry *e)
{
	for (unsigned i = 0; i < c->policy->entries; i++)
		if (e[i].port && !strcmp(e[i].name, c->del)) {
			e[i] = (struct proxy_entry){0};
			return 0;
		}
	return RWY_ENOENT;
}

static bool same(const struct proxy_entry *a, const struct proxy_entry *b)
{
	return !strcmp(a->name, b->name) && rwy_ip_eq(&a->listen, &b->listen) && a->port == b->port &&
	       rwy_ip_eq(&a->target, &b->target) && a->target_port == b->target_port;
}

/* Entries that are the same stay where they are, with their links, and get the new limit of these.
 * The others go first: new ones may have their names and ports. */
static int entries_set(const struct change *c, struct proxy_entry *e)
{
	bool there[CONF_MAP_MAX] = {false};
	int rc = 0;

	for (unsigned i = 0; i < c->policy->entries; i++) {
		bool stays = false;

		for (unsigned k = 0; e[i].port && k < c->wants; k++) {
			if (!same(&e[i], &c->want[k]))
				continue;
			stays = there[k] = true;
			e[i].links_max = c->want[k].links_max;
		}
		if (!stays)
			e[i] = (struct proxy_entry){0};
	}
	for (unsigned k = 0; k < c->wants && !rc; k++)
		if (!there[k])
			rc = entry_add(c, e, &c->want[k]);
	return rc;
}

static void change_run(struct eng *eng, void *arg)
{
	struct change *c = arg;
	struct proxy_policy *was = c->edge->policy;
	struct proxy_entry *e = gw_edge_entries(c->policy);

	memcpy(e, gw_edge_entries(was), CONF_MAP_MAX * sizeof(*e));
	c->policy->entries = was->entries;
	c->rc = c->add ? entry_add(c, e, c->add) : c->del ? entry_del(c, e) : entries_set(c, e);
	if (c->rc)
		return;
	c->edge->policy = c->policy;
	c->edge->core.policy = c->policy;
	c->policy = was;
}

static int change(struct gw_app *app, struct change *c)
{
	struct gw_worker *w = app->worker[0];
	int rc;

	c->edge = w ? w->edge : NULL;
	if (!c->edge)
		return RWY_ENOENT;
	c->policy = gw_edge_policy(&app->conf->relay);
	if (!c->policy)
		return RWY_ENOMEM;
	rc = gw_call(app, 0, change_run, c);
	free(c->policy);
	return rc ? rc : c->rc;
}

int gw_map_add(struct gw_app *app, const struct conf_map *m)
{
	const struct proxy_entry e = gw_edge_entry(m);

	return change(app, &(struct change){.add = &e});
}

int gw_map_del(struct gw_app *app, const char *name)
{
	return change(app, &(struct change){.del = name});
}

int gw_map_set(struct gw_app *app, const struct conf_relay *c)
{
	struct proxy_entry *want = calloc(c->maps ? c->maps : 1, sizeof(*want));
	int rc;

	if (!want)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < c->maps; i++)
		want[i] = gw_edge_entry(&c->map[i]);
	rc = change(app, &(struct change){.want = want, .wants = c->maps});
	free(want);
	return rc;
}

struct map_ask {
	struct gw_edge *edge;
	struct gw_map_info *out;
	int n;
};

static void map_copy(struct eng *eng, void *arg)
{
	struct map_ask *a = arg;
	const struct proxy_policy *p = a->edge->policy;

	for (unsigned i = 0; i < p->entries; i++)
		if (p->entry[i].port)
			a->out[a->n++] =
			    (struct gw_map_info){p->entry[i], proxy_map_of_entry(a->edge->core.map, i)};
}

int gw_map_get(struct gw_app *app, struct gw_map_info out[CONF_MAP_MAX])
{
	struct gw_worker *w = app->worker[0];
	struct map_ask a = {.edge = w ? w->edge : NULL, .out = out};
	int rc;

	if (!a.edge)
		return RWY_ENOENT;
	rc = gw_call(app, 0, map_copy, &a);
	return rc ? rc : a.n;
}
