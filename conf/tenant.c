/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tenant: parsed alone, copied, freed. Derived values are in derive.c, rules over more than one
 * key in check_tenant.c.
 */
#include "conf/schema.h"

#include <stdlib.h>

void conf_tenant_fini(struct conf_tenant *t)
{
	/* const for readers of the tenant; this struct owns it */
	free((void *)(uintptr_t)t->cfg.prefix);
	free((void *)(uintptr_t)t->cfg.vtep);
	free((void *)(uintptr_t)t->cfg.host);
	free((void *)(uintptr_t)t->cfg.rule);
	t->cfg.prefix = NULL;
	t->cfg.vtep = NULL;
	t->cfg.host = NULL;
	t->cfg.rule = NULL;
	t->cfg.prefixes = t->cfg.vteps = t->cfg.hosts = t->cfg.rules = 0;
}

static void *array_copy(const void *from, unsigned n, size_t size, bool *ok)
{
	void *to = n ? malloc(n * size) : NULL;

	if (to)
		memcpy(to, from, n * size);
	*ok = *ok && (to || !n);
	return to;
}

int conf_tenant_copy(struct conf_tenant *out, const struct conf_tenant *t)
{
	bool ok = true;

	*out = *t;
	out->cfg.prefix = array_copy(t->cfg.prefix, t->cfg.prefixes, sizeof(*t->cfg.prefix), &ok);
	out->cfg.vtep = array_copy(t->cfg.vtep, t->cfg.vteps, sizeof(*t->cfg.vtep), &ok);
	out->cfg.host = array_copy(t->cfg.host, t->cfg.hosts, sizeof(*t->cfg.host), &ok);
	out->cfg.rule = array_copy(t->cfg.rule, t->cfg.rules, sizeof(*t->cfg.rule), &ok);
	if (ok)
		return 0;
	conf_tenant_fini(out);
	return RWY_ENOMEM;
}

/* The caller gives the name; the text may repeat it. */
static int name_given(
    struct conf_tenant *t, const char *name, const struct conf_node *map, struct conf_error *err)
{
	const struct conf_node *n = conf_node_get(map, "name");

	if (n && strcmp(t->cfg.name, name) != 0)
		return conf_fail_at(err, n, "expected `%s` for `name`, found `%s`", name, t->cfg.name);
	/* conf_scan_name() accepted its length before */
	memcpy(t->cfg.name, name, strlen(name) + 1);
	return 0;
}

static int tenant_fill(const struct conf *c, const struct conf_node *map, const char *name,
    const struct conf_tenant *base, struct conf_tenant *out, struct conf_error *err)
{
	static const char group[] = "tenants[]";
	int rc = base ? conf_tenant_copy(out, base) : 0;

	if (rc)
		return conf_fail(err, 0, 0, "out of memory");
	rc = conf_fill_group(c, out, group, map, base != NULL, name ? "name" : NULL, err);
	if (!rc && name)
		rc = name_given(out, name, map, err);
	if (rc)
		return rc;
	conf_tenant_finish(c, out, map, base);
	return conf_check_tenants(c, out, 1, map, err);
}

int conf_tenant_parse(const struct conf *c, const char *text, size_t len, const char *name,
    const struct conf_tenant *base, struct conf_tenant *out, struct conf_error *err)
{
	struct conf_tree tree;
	int rc;

	memset(out, 0, sizeof(*out));
	memset(err, 0, sizeof(*err));
	if (name && !conf_scan_name(name, TENANT_NAME_MAX - 1))
		return conf_fail(err, 0, 0,
		    "expected a tenant's name of at most %u letters, digits, `.`, `_`, `-`",
		    TENANT_NAME_MAX - 1);
	if (len > CONF_TENANT_MAX)
		return conf_fail(
		    err, 0, 0, "expected a tenant of at most %u bytes, found %zu", CONF_TENANT_MAX, len);
	rc = conf_tree_parse(&tree, text, len, err);
	if (rc)
		return rc;
	rc = tenant_fill(c, tree.root, name, base, out, err);
	conf_tree_free(&tree);
	if (rc)
		conf_tenant_fini(out);
	return rc;
}
