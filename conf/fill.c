/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills struct conf from the tree by the schema: groups of keys, lists of groups, unknown keys,
 * required keys. It stops with one message at the first fault. Single values are in value.c and
 * list.c, rules over more than one key in check.c.
 */
#include "conf/value.h"

static int fail_unknown(struct conf_error *err, const char *group, const struct conf_node *n)
{
	const char *words[CONF_GROUP_KEYS_MAX + 1];
	struct conf_node key = {.plain = true,
	    .text = n->key,
	    .len = strlen(n->key),
	    .line = n->key_line,
	    .column = n->key_column};
	unsigned count = 0;
	const char *near;
	char found[64];

	for (unsigned i = 0; i < conf_keys_count; i++)
		if (conf_key_in_group(&conf_keys[i], group))
			words[count++] = conf_key_name(&conf_keys[i]);
	words[count] = NULL;
	near = conf_nearest(n->key, words);
	conf_node_found(&key, found, sizeof(found));
	if (near)
		return conf_fail_at(err, &key, "expected `%s` or another known key%s%s, found %s", near,
		    *group ? " of " : "", group, found);
	return conf_fail_at(
	    err, &key, "expected a known key%s%s, found %s", *group ? " of " : "", group, found);
}

/* group: NULL if the file does not have it: then the path of the key tells where it belongs. */
static int fail_missing(struct conf_error *err, const struct conf_key *k, const struct conf_node *group)
{
	char want[160];

	conf_key_describe(k, want, sizeof(want));
	return conf_fail_at(
	    err, group, "expected `%s`: %s, found nothing", group ? conf_key_name(k) : k->path, want);
}

struct fill {
	const struct conf *c;
	struct conf_error *err;
};

static int fill_groups(
    const struct fill *x, void *base, const struct conf_key *k, const struct conf_node *list);

static int fill_value(const struct fill *x, void *base, const struct conf_key *k, const struct conf_node *n)
{
	if (k->type == CONF_T_GROUPS)
		return fill_groups(x, base, k, n);
	return conf_key_is_list(k) ? conf_fill_list(base, k, n, x->err)
	                           : conf_fill_scalar(x->c, base, k, n, x->err);
}

/* Fills the keys that the map has; seen[] notes which. */
static int fill_given(const struct fill *x, void *base, const char *path, const struct conf_group *g,
    const struct conf_node *map, bool seen[CONF_GROUP_KEYS_MAX])
{
	for (const struct conf_node *n = map ? map->child : NULL; n; n = n->next) {
		unsigned i = 0;
		int rc;

		while (i < g->count && strcmp(conf_key_name(&g->first[i]), n->key) != 0)
			i++;
		if (i == g->count)
			return fail_unknown(x->err, path, n);
		rc = conf_node_once(map, n, x->err);
		seen[i] = true;
		rc = rc ? rc : fill_value(x, base, &g->first[i], n);
		if (rc)
			return rc;
	}
	return 0;
}

/* path: "ports[]"; map: NULL if the file has no such group; base: the struct with the group's
 * fields. */
static int fill_group(const struct fill *x, void *base, const char *path, const struct conf_group *g,
    const struct conf_node *map, bool keep, const char *given)
{
	bool seen[CONF_GROUP_KEYS_MAX] = {false};
	int rc;

	if (map && conf_node_is_null(map))
		map = NULL; /* "connections:" with all its keys commented out */
	rc = fill_given(x, base, path, g, map, seen);
	for (unsigned i = 0; i < g->count && !rc && !keep; i++)
		if (!seen[i] && (!given || strcmp(conf_key_name(&g->first[i]), given) != 0))
			rc = g->first[i].dflt ? conf_fill_default(base, &g->first[i], x->err)
			                      : fail_missing(x->err, &g->first[i], map);
	return rc;
}

int conf_fill_group(const struct conf *c, void *base, const char *path, const struct conf_node *map,
    bool keep, const char *given, struct conf_error *err)
{
	const struct conf_group g = conf_group_find(path);

	return fill_group(&(struct fill){c, err}, base, path, &g, map, keep, given);
}

/* Groups inside an entry are emptied before the entry is filled: after a fault it can be freed. */
static int fill_groups(
    const struct fill *x, void *base, const struct conf_key *k, const struct conf_node *list)
{
	unsigned *count = (unsigned *)(void *)((char *)base + k->count);
	char *at = (char *)base + k->offset;
	char path[64];
	struct conf_group g;

	if (list->kind != CONF_SEQ)
		return conf_fail_type(x->err, k, list);
	*count = 0;
	if (k->malloced) {
		int rc = conf_list_alloc(base, k, list, x->err);

		if (rc)
			return rc;
		memcpy(&at, (char *)base + k->offset, sizeof(at));
	}
	snprintf(path, sizeof(path), "%s[]", k->path);
	g = conf_group_find(path);
	for (const struct conf_node *n = list->child; n; n = n->next, at += k->size) {
		int rc;

		if (n->kind != CONF_MAP)
			return conf_fail_type(x->err, k, n);
		if (*count == k->max)
			return conf_fail_at(x->err, n, "expected at most %u entries in `%s`, found more",
			    (unsigned)k->max, conf_key_name(k));
		++*count;
		rc = fill_group(x, at, path, &g, n, false, NULL);
		if (rc)
			return rc;
	}
	return *count >= k->min ? 0 : conf_fail_few(x->err, k, list, *count);
}

static int fill_top(const struct fill *x, struct conf *c, const struct conf_key *k, const struct conf_node *n)
{
	if (k->type == CONF_T_GROUPS) {
		if (n && !(conf_node_is_null(n) && !k->min))
			return fill_groups(x, c, k, n);
		return k->dflt ? 0 : fail_missing(x->err, k, NULL);
	}
	if (n && n->kind != CONF_MAP && !conf_node_is_null(n))
		return conf_fail_type(x->err, k, n);
	return conf_fill_group(c, c, k->path, n, false, NULL, x->err);
}

int conf_fill_top(struct conf *c, const char *key, const struct conf_node *n, struct conf_error *err)
{
	for (unsigned i = 0; i < conf_keys_count; i++)
		if (!strcmp(conf_keys[i].path, key))
			return fill_top(&(struct fill){c, err}, c, &conf_keys[i], n);
	rwy_unreachable();
}

int conf_fill(struct conf *c, const struct conf_tree *t, struct conf_error *err)
{
	const struct fill x = {c, err};

	for (const struct conf_node *n = t->root->child; n; n = n->next) {
		bool known = false;

		for (unsigned i = 0; i < conf_keys_count && !known; i++)
			known = conf_key_in_group(&conf_keys[i], "") && !strcmp(conf_keys[i].path, n->key);
		if (!known)
			return fail_unknown(err, "", n);
		if (conf_node_once(t->root, n, err))
			return RWY_EINVAL;
	}
	for (unsigned i = 0; i < conf_keys_count; i++) {
		int rc = 0;

		if (conf_key_in_group(&conf_keys[i], ""))
			rc = fill_top(&x, c, &conf_keys[i], conf_node_get(t->root, conf_keys[i].path));
		if (rc)
			return rc;
	}
	return 0;
}
