/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over `relay`. Each message points at the value that should change. */
#include "conf/schema.h"
#include "roce/parse.h"

static bool of_lan(const struct conf *c, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < c->ports; i++)
		for (unsigned k = 0; c->port[i].role == CONF_ROLE_LAN && k < c->port[i].addrs; k++)
			if (rwy_ip_eq(&c->port[i].addr[k].addr, a))
				return true;
	return false;
}

static bool is_relay(const struct conf_relay *r, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < r->addrs; i++)
		if (rwy_ip_eq(&r->addr[i], a))
			return true;
	return false;
}

static bool behind_tunnel(const struct conf *c, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < c->tunnels; i++)
		for (unsigned k = 0; *c->tunnel[i].name && k < c->tunnel[i].prefixes; k++)
			if (conf_prefix_has(&c->tunnel[i].prefix[k], a))
				return true;
	return false;
}

/* The rules about one entry alone. */
static int check_alone(
    const struct conf *c, const struct conf_map *m, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_relay *r = &c->relay;
	char text[64];

	conf_print_ip(&m->listen, text, sizeof(text));
	if (!is_relay(r, &m->listen))
		return conf_fail_at(
		    err, conf_node_get(n, "listen"), "expected one of `relay.addresses`, found `%s`", text);
	if (r->redirect_port && m->port == r->redirect_port)
		return conf_fail_at(err, conf_node_get(n, "port"),
		    "expected another port than `relay.redirect_port`, found %u", m->port);
	conf_print_ip(&m->target, text, sizeof(text));
	if (is_relay(r, &m->target) || of_lan(c, &m->target))
		return conf_fail_at(err, conf_node_get(n, "target"),
		    "expected a host, found `%s`, which is the relay itself", text);
	if (rwy_ip_is4(&m->target) != rwy_ip_is4(&m->listen))
		return conf_fail_at(err, conf_node_get(n, "target"),
		    "expected an address of the family of `listen`, found `%s`", text);
	if (!c->controller.urls && !behind_tunnel(c, &m->target))
		return conf_fail_at(err, conf_node_get(n, "target"),
		    "expected an address in a tunnel's `prefixes`, found `%s`", text);
	return 0;
}

static int check_entry(const struct conf *c, unsigned i, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_map *map = c->relay.map, *m = &map[i];
	int rc = check_alone(c, m, n, err);

	if (rc)
		return rc;
	for (unsigned k = 0; k < i; k++) {
		if (!strcmp(m->name, map[k].name))
			return conf_fail_at(err, conf_node_get(n, "name"),
			    "expected a name of its own, found `%s` again", m->name);
		if (m->port == map[k].port && rwy_ip_eq(&m->listen, &map[k].listen))
			return conf_fail_at(err, conf_node_get(n, "port"),
			    "expected an address and port of its own, found those of `%s`", map[k].name);
	}
	return 0;
}

int conf_map_parse(const struct conf *c, const char *text, size_t len, const char *name, struct conf_map *out,
    struct conf_error *err)
{
	struct conf_tree tree;
	const struct conf_node *n;
	int rc;

	memset(err, 0, sizeof(*err));
	memset(out, 0, sizeof(*out));
	if (!conf_scan_name(name, CONF_NAME - 1))
		return conf_fail(err, 0, 0,
		    "expected an entry's name of at most %u letters, digits, `.`, `_`, `-`", CONF_NAME - 1);
	if (len > CONF_TENANT_MAX)
		return conf_fail(
		    err, 0, 0, "expected an entry of at most %u bytes, found %zu", CONF_TENANT_MAX, len);
	rc = conf_tree_parse(&tree, text, len, err);
	if (rc)
		return rc;
	rc = conf_fill_group(NULL, out, "relay.map[]", tree.root, false, "name", err);
	n = conf_node_get(tree.root, "name");
	if (!rc && n && strcmp(out->name, name) != 0)
		rc = conf_fail_at(err, n, "expected `%s` for `name`, found `%s`", name, out->name);
	if (!rc)
		rc = check_alone(c, out, tree.root, err);
	if (!rc)
		memcpy(out->name, name, strlen(name) + 1);
	conf_tree_free(&tree);
	return rc;
}

int conf_check_relay(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	const struct conf_node *relay = conf_node_get(root, "relay");
	const struct conf_relay *r = &c->relay;
	int rc = 0;

	if (!relay)
		return 0;
	if (!r->addrs)
		return conf_fail_at(err, relay, "expected `addresses` in `relay`, found nothing");
	for (unsigned i = 0; i < r->addrs; i++) {
		char text[64];

		conf_print_ip(&r->addr[i], text, sizeof(text));
		if (!of_lan(c, &r->addr[i]))
			return conf_fail_at(err, conf_node_at(conf_node_get(relay, "addresses"), i),
			    "expected one of the addresses of a LAN port, found `%s`", text);
	}
	if (r->ask_port == ROCE_UDP_PORT)
		return conf_fail_at(err, conf_node_get(relay, "ask_port"),
		    "expected another port than %u, which is RoCE's", ROCE_UDP_PORT);
	if (c->workers != 1)
		return conf_fail_at(err, conf_node_get(conf_node_get(root, "gateway"), "workers"),
		    "expected 1 worker beside `relay`, found %u; run several relays instead", c->workers);
	if (c->tenants || c->siblings)
		return conf_fail_at(err, relay, "expected no `tenants` and no `siblings` beside `relay`");
	for (unsigned i = 0; i < r->maps && !rc; i++)
		rc = check_entry(c, i, conf_node_at(conf_node_get(relay, "map"), i), err);
	return rc;
}
