/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels and tenants without a whole file: a control center's, or one tunnel of the local API.
 * Rules about them are in check.c and check_tenant.c.
 */
#include <stdlib.h>

#include "conf/schema.h"

struct conf *conf_network_new(const struct conf *base)
{
	struct conf *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	*c = *base;
	memset(c->eal_args, 0, sizeof(c->eal_args));
	memset(c->controller.url, 0, sizeof(c->controller.url));
	c->eal_argc = c->controller.urls = 0;
	c->tenant = NULL;
	c->tenants = 0;
	memset(c->tunnel, 0, sizeof(c->tunnel));
	c->tunnels = 0;
	return c;
}

int conf_tenants_check(const struct conf *c, struct conf_error *err)
{
	memset(err, 0, sizeof(*err));
	return c->tenants ? conf_check_tenants(c, c->tenant, c->tenants, NULL, err) : 0;
}

static int only_network(const struct conf_node *root, struct conf_error *err)
{
	for (const struct conf_node *n = root->child; n; n = n->next)
		if (strcmp(n->key, "tunnels") != 0 && strcmp(n->key, "tenants") != 0)
			return conf_fail(err, n->key_line, n->key_column,
			    "expected `tunnels` or `tenants`, found `%.40s`", n->key);
	return 0;
}

/* The gateway's own tunnels come first, so that their indices stay. */
static int put_own(struct conf *c, const struct conf_tunnel *own, unsigned owns, struct conf_error *err)
{
	if (c->tunnels + owns > CONF_TUNNELS_MAX)
		return conf_fail(err, 0, 0,
		    "expected at most %u tunnels beside the gateway's own %u, found %u",
		    CONF_TUNNELS_MAX - owns, owns, c->tunnels);
	memmove(c->tunnel + owns, c->tunnel, c->tunnels * sizeof(*own));
	for (unsigned i = 0; i < c->tunnels; i++)
		c->tunnel[owns + i].shared = true;
	for (unsigned i = 0; i < owns; i++)
		c->tunnel[i] = own[i];
	c->tunnels += owns;
	return 0;
}

static int network_fill(struct conf *c, const struct conf_tunnel *own, unsigned owns,
    const struct conf_tree *t, struct conf_error *err)
{
	int rc = only_network(t->root, err);

	if (!rc)
		rc = conf_fill_top(c, "tunnels", conf_node_get(t->root, "tunnels"), err);
	if (!rc)
		rc = put_own(c, own, owns, err);
	if (!rc)
		rc = conf_fill_top(c, "tenants", conf_node_get(t->root, "tenants"), err);
	if (rc)
		return rc;
	conf_finish_tenants(c, t);
	rc = conf_check_network(c, t, owns, err);
	if (!rc)
		conf_resolve_ports(c);
	return rc;
}

int conf_network_parse(struct conf **out, const struct conf *base, const struct conf_tunnel *own,
    unsigned owns, const char *text, size_t len, struct conf_error *err)
{
	struct conf_tree tree;
	struct conf *c;
	int rc;

	memset(err, 0, sizeof(*err));
	if (len > CONF_FILE_MAX)
		return conf_fail(
		    err, 0, 0, "expected at most %uMiB, found %zu bytes", CONF_FILE_MAX >> 20, len);
	rc = conf_tree_parse(&tree, text, len, err);
	if (rc)
		return rc;
	c = conf_network_new(base);
	rc = c ? network_fill(c, own, owns, &tree, err) : conf_fail(err, 0, 0, "out of memory");
	conf_tree_free(&tree);
	if (rc)
		conf_free(c);
	else
		*out = c;
	return rc;
}

int conf_tunnel_parse(const char *text, size_t len, const char *name, const struct conf_tunnel *base,
    struct conf_tunnel *out, struct conf_error *err)
{
	struct conf_tree tree;
	const struct conf_node *n;
	int rc;

	memset(err, 0, sizeof(*err));
	memset(out, 0, sizeof(*out));
	if (base)
		*out = *base;
	if (!conf_scan_name(name, CONF_NAME - 1))
		return conf_fail(err, 0, 0,
		    "expected a tunnel's name of at most %u letters, digits, `.`, `_`, `-`", CONF_NAME - 1);
	if (len > CONF_TENANT_MAX)
		return conf_fail(
		    err, 0, 0, "expected a tunnel of at most %u bytes, found %zu", CONF_TENANT_MAX, len);
	rc = conf_tree_parse(&tree, text, len, err);
	if (rc)
		return rc;
	if (conf_node_get(tree.root, "prefixes")) /* both: all prefixes, or the listed ones */
		out->prefixes = 0;
	if (conf_node_get(tree.root, "paths")) /* what an entry omits is not the old one's */
		memset(out->path, 0, sizeof(out->path));
	rc = conf_fill_group(NULL, out, "tunnels[]", tree.root, base != NULL, "name", err);
	n = conf_node_get(tree.root, "name");
	if (!rc && n && strcmp(out->name, name) != 0)
		rc = conf_fail_at(err, n, "expected `%s` for `name`, found `%s`", name, out->name);
	if (!rc)
		memcpy(out->name, name, strlen(name) + 1);
	conf_tree_free(&tree);
	return rc;
}
