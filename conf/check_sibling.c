/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over a file's siblings. Each message points at the value that should change. */
#include "conf/schema.h"

static bool on_lan(const struct conf *c, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < c->ports; i++)
		for (unsigned k = 0; c->port[i].role == CONF_ROLE_LAN && k < c->port[i].addrs; k++)
			if (conf_prefix_has(&c->port[i].addr[k], a))
				return true;
	return false;
}

static bool is_own(const struct conf *c, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < c->ports; i++)
		for (unsigned k = 0; k < c->port[i].addrs; k++)
			if (rwy_ip_eq(&c->port[i].addr[k].addr, a))
				return true;
	return false;
}

static int check_one(const struct conf *c, unsigned i, const struct conf_node *entry, struct conf_error *err)
{
	const struct conf_sibling *s = &c->sibling[i];
	const struct conf_node *name = conf_node_get(entry, "name"),
	                       *address = conf_node_get(entry, "address");
	char text[64];

	conf_print_ip(&s->address, text, sizeof(text));
	if (!strcmp(s->name, c->name))
		return conf_fail_at(
		    err, name, "expected another gateway's name, found `%s`, which is this one's", s->name);
	if (is_own(c, &s->address))
		return conf_fail_at(err, address, "expected another gateway's address, found `%s`", text);
	if (!on_lan(c, &s->address))
		return conf_fail_at(
		    err, address, "expected an address of a LAN port's subnet, found `%s`", text);
	for (unsigned k = 0; k < i; k++) {
		if (!strcmp(s->name, c->sibling[k].name))
			return conf_fail_at(
			    err, name, "expected a name of its own, found `%s` again", s->name);
		if (rwy_ip_eq(&s->address, &c->sibling[k].address))
			return conf_fail_at(
			    err, address, "expected an address of its own, found `%s` again", text);
	}
	return 0;
}

int conf_check_siblings(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	const struct conf_node *list = conf_node_get(root, "siblings");
	int rc = 0;

	if (c->siblings && c->controller.urls)
		return conf_fail_at(err, list,
		    "expected no `siblings` beside `controller`, which names them, found %u", c->siblings);
	for (unsigned i = 0; i < c->siblings && !rc; i++)
		rc = check_one(c, i, conf_node_at(list, i), err);
	for (unsigned i = 0; c->siblings && i < c->tunnels && !rc; i++)
		if (c->tunnel[i].prefixes && !*c->tunnel[i].peer)
			rc = conf_fail_at(err, conf_node_at(conf_node_get(root, "tunnels"), i),
			    "expected `peer` beside `siblings`: the name of the gateway at the other end of "
			    "`%s`, "
			    "found nothing",
			    c->tunnel[i].name);
	return rc;
}
