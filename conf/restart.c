/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a file that is read while the gateway runs: keys that need a restart must be unchanged.
 * gateway/control/reload.c applies the others.
 */
#include "conf/schema.h"

struct ctx {
	const struct conf *running;
	struct conf_error *err;
};

static bool is_text(const struct conf_key *k)
{
	return k->type == CONF_T_NAME || k->type == CONF_T_STRING || k->type == CONF_T_PATH ||
	       k->type == CONF_T_CPUS || (k->type == CONF_T_ENUM && k->size == CONF_NAME);
}

static bool is_list(const struct conf_key *k)
{
	return k->type == CONF_T_ADDRS || k->type == CONF_T_PREFIXES || k->type == CONF_T_STRINGS ||
	       k->type == CONF_T_IPS || k->type == CONF_T_GROUPS; /* of one in a group */
}

static unsigned count_of(const void *base, const struct conf_key *k)
{
	return *(const unsigned *)(const void *)((const char *)base + k->count);
}

static bool same_list(const struct conf_key *k, const void *a, const void *b)
{
	const char *x = (const char *)a + k->offset, *y = (const char *)b + k->offset;
	const unsigned n = count_of(a, k);

	if (n != count_of(b, k))
		return false;
	if (k->type != CONF_T_STRINGS)
		return !memcmp(x, y, (size_t)n * k->size);
	for (unsigned i = 0; i < n; i++)
		if (strcmp(((char *const *)(const void *)x)[i], ((char *const *)(const void *)y)[i]) != 0)
			return false;
	return true;
}

static bool value_same(const struct conf_key *k, const void *a, const void *b)
{
	const char *x = (const char *)a + k->offset, *y = (const char *)b + k->offset;

	if (is_list(k))
		return same_list(k, a, b);
	return is_text(k) ? !strcmp(x, y) : !memcmp(x, y, k->size);
}

static int fail_restart(const struct ctx *x, const struct conf_key *k, const void *now, const void *was,
    const struct conf_node *n)
{
	char want[CONF_TEXT], found[CONF_TEXT];

	if (is_list(k))
		return conf_fail_at(x->err, n,
		    "expected `%s` of %.*s as it was: it changes only with a restart", conf_key_name(k),
		    (int)(strrchr(k->path, '.') - k->path), k->path);
	conf_value_text(x->running, k, (const char *)was + k->offset, want);
	conf_value_text(x->running, k, (const char *)now + k->offset, found);
	return conf_fail_at(x->err, n,
	    "expected %s%.200s%s for `%s`, which changes only with a restart, found %s%.200s%s",
	    *want ? "`" : "no value", want, *want ? "`" : "", conf_key_name(k), *found ? "`" : "none", found,
	    *found ? "`" : "");
}

/* Checks the keys of one group; map: its place in the file, NULL if the file does not have it. */
static int check_group(
    const struct ctx *x, const char *path, const void *now, const void *was, const struct conf_node *map)
{
	const struct conf_group g = conf_group_find(path);

	for (const struct conf_key *k = g.first; k < g.first + g.count; k++) {
		const struct conf_node *n = conf_node_get(map, conf_key_name(k));

		if (k->restart && !value_same(k, now, was))
			return fail_restart(x, k, now, was, n ? n : map);
	}
	return 0;
}

static int check_groups(
    const struct ctx *x, const struct conf_key *k, const struct conf *c, const struct conf_node *list)
{
	const unsigned n = count_of(c, k), had = count_of(x->running, k);
	char path[32];
	int rc = 0;

	if (n != had)
		return conf_fail_at(x->err, list,
		    "expected %u entries in `%s`, which change only with a restart, found %u", had, k->path,
		    n);
	snprintf(path, sizeof(path), "%s[]", k->path);
	for (unsigned i = 0; i < n && !rc; i++) {
		const size_t at = k->offset + (size_t)k->size * i;

		rc = check_group(
		    x, path, (const char *)c + at, (const char *)x->running + at, conf_node_at(list, i));
	}
	return rc;
}

/* --- the tunnel of a pair: other tunnels change while they run -------------------------------- */

/* Its entry in the file; NULL: there is none. */
static const struct conf_node *entry_of(const struct conf_tree *t, int tunnel)
{
	return tunnel < 0 ? NULL : conf_node_at(conf_node_get(t->root, "tunnels"), (unsigned)tunnel);
}

static int check_pair(const struct ctx *x, const struct conf *c, const struct conf_tree *t)
{
	static const char *const live[] = {"rate", "dscp", "dscp_congested"};
	const int now = conf_standby(c), was = conf_standby(x->running);
	const struct conf_group g = conf_group_find("tunnels[]");
	const struct conf_node *entry = entry_of(t, now);

	if (now < 0 && was < 0)
		return 0;
	if (was < 0)
		return conf_fail_at(x->err, entry,
		    "expected no tunnel with `standby: true`, which comes only with a restart, found `%s`",
		    c->tunnel[now].name);
	if (now < 0)
		return conf_fail_at(x->err, conf_node_get(t->root, "tunnels"),
		    "expected tunnel `%s` with `standby: true` as it was: it goes only with a restart, found "
		    "none",
		    x->running->tunnel[was].name);
	for (const struct conf_key *k = g.first; k < g.first + g.count; k++) {
		const struct conf_node *n = conf_node_get(entry, conf_key_name(k));
		bool may = !strncmp(conf_key_name(k), "congested_", 10);

		for (unsigned i = 0; i < sizeof(live) / sizeof(live[0]); i++)
			may |= !strcmp(conf_key_name(k), live[i]);
		if (!may && !value_same(k, &c->tunnel[now], &x->running->tunnel[was]))
			return fail_restart(x, k, &c->tunnel[now], &x->running->tunnel[was], n ? n : entry);
	}
	return 0;
}

int conf_check_restart(
    const struct conf *c, const struct conf *running, const struct conf_tree *t, struct conf_error *err)
{
	const struct ctx x = {running, err};
	int rc = 0;

	for (const struct conf_key *k = conf_keys; k < conf_keys + conf_keys_count && !rc; k++) {
		const struct conf_node *n = conf_node_get(t->root, k->path);

		if (strchr(k->path, '.'))
			continue;
		if (k->type == CONF_T_GROUP)
			rc = check_group(&x, k->path, c, running, n);
		else if (k->restart)
			rc = check_groups(&x, k, c, n);
	}
	return rc ? rc : check_pair(&x, c, t);
}
