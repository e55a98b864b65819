/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules over a pair of gateways (docs/standby.md): its own tunnel, that tunnel's port, and the MAC
 * addresses of the others. Each message points at the value that should change.
 */
#include "conf/schema.h"

#include <assert.h>

struct ctx {
	const struct conf *c;
	const struct conf_node *root; /* NULL: not from a text */
	struct conf_error *err;
	unsigned own; /* the number of c's tunnels that are not in the text */
};

/* The node of a tunnel's key, for its line; else its entry. */
static const struct conf_node *at(const struct ctx *x, unsigned i, const char *key)
{
	const struct conf_node *entry, *n;

	if (!x->root || i < x->own)
		return NULL;
	entry = conf_node_at(conf_node_get(x->root, "tunnels"), i - x->own);
	n = conf_node_get(entry, key);
	return n ? n : entry;
}

/* The same of a key of a group at the top. */
static const struct conf_node *at_top(const struct ctx *x, const char *group, const char *key)
{
	const struct conf_node *g = x->root ? conf_node_get(x->root, group) : NULL, *n;

	n = g ? conf_node_get(g, key) : NULL;
	return n ? n : g;
}

static int check_tunnel(const struct ctx *x, unsigned i)
{
	static const char *const words[] = {"native", "tcp", "quic", "rdma"};
	const struct conf_tunnel *t = &x->c->tunnel[i];

	static_assert(sizeof(words) / sizeof(words[0]) == CONF_CARRIER_RDMA + 1, "a word for each carrier");

	if (t->prefixes)
		return conf_fail_at(x->err, at(x, i, "prefixes"),
		    "expected no `prefixes` of tunnel `%s`: no host is behind the pair's own tunnel, found "
		    "%u",
		    t->name, t->prefixes);
	if (t->paths)
		return conf_fail_at(x->err, at(x, i, "paths"),
		    "expected no `paths` of tunnel `%s`, the pair's own, found %u", t->name, t->paths);
	if (t->carrier != CONF_CARRIER_NATIVE)
		return conf_fail_at(x->err, at(x, i, "carrier"),
		    "expected `native` for `carrier` of tunnel `%s`, the pair's own, found `%s`", t->name,
		    words[t->carrier]);
	if (t->detour != CONF_CARRIER_NATIVE)
		return conf_fail_at(x->err, at(x, i, "detour"),
		    "expected `off` for `detour` of tunnel `%s`, the pair's own, found `%s`", t->name,
		    words[t->detour]);
	if (t->shared)
		return conf_fail_at(x->err, at(x, i, "standby"),
		    "expected no `standby` of a control center's tunnel, found it for `%s`", t->name);
	return 0;
}

/* The keys mean nothing for another tunnel. */
static int check_alone(const struct ctx *x, unsigned i)
{
	static const char *const keys[] = {"standby_beat", "standby_wait"};
	const struct conf_node *entry = at(x, i, "");

	for (unsigned k = 0; entry && k < sizeof(keys) / sizeof(keys[0]); k++) {
		const struct conf_node *n = conf_node_get(entry, keys[k]);

		if (n && !x->c->tunnel[i].standby)
			return conf_fail_at(
			    x->err, n, "expected `standby: true` beside `%s`, found none", keys[k]);
	}
	return 0;
}

/* The pair needs its cable for itself: no other tunnel uses the port. */
static int check_port_own(const struct ctx *x, unsigned s, unsigned i)
{
	const char *port = x->c->tunnel[s].port;
	const struct conf_tunnel *t = &x->c->tunnel[i];

	for (unsigned k = 0; k <= t->paths; k++) {
		const struct conf_path p = conf_tunnel_path(t, k);

		if (!strcmp(p.port, port))
			return conf_fail_at(x->err, at(x, i, k ? "paths" : "port"),
			    "expected another port for tunnel `%s` than `%s`, which tunnel `%s` of the pair "
			    "has "
			    "for itself",
			    t->name, port, x->c->tunnel[s].name);
	}
	return 0;
}

/* Hosts and routers must find the same address behind either gateway. */
static int check_macs(const struct ctx *x, unsigned s)
{
	static const uint8_t none[6];
	const struct conf_node *ports = x->root ? conf_node_get(x->root, "ports") : NULL;

	for (unsigned i = 0; i < x->c->ports; i++) {
		const struct conf_port *p = &x->c->port[i];
		const struct conf_node *entry = ports ? conf_node_at(ports, i) : NULL;
		const struct conf_node *n = entry ? conf_node_get(entry, "mac") : NULL;
		const bool has = memcmp(p->mac, none, 6) != 0, own = !strcmp(p->name, x->c->tunnel[s].port);

		if (!has && !own)
			return conf_fail_at(x->err, entry,
			    "expected `mac` of port `%s`, the same at both gateways of the pair: hosts and "
			    "routers must not see another one after a takeover, found nothing",
			    p->name);
		if (has && own)
			return conf_fail_at(x->err, n,
			    "expected no `mac` of port `%s`: the pair's two ends need different ones",
			    p->name);
		for (unsigned k = 0; has && k < i; k++)
			if (!memcmp(p->mac, x->c->port[k].mac, 6))
				return conf_fail_at(x->err, n,
				    "expected a MAC address of its own, found that of port `%s`",
				    x->c->port[k].name);
	}
	return 0;
}

static int check_gateway(const struct ctx *x, unsigned s)
{
	const struct conf *c = x->c;
	unsigned others = 0;

	for (unsigned i = 0; i < c->tunnels; i++)
		others += i != s && *c->tunnel[i].name;
	if (!others && !conf_has_controller(c)) /* else it names others, maybe later */
		return conf_fail_at(x->err, at(x, s, "standby"),
		    "expected another tunnel beside `%s`: the gateway at its other end is the pair's "
		    "witness, "
		    "found none",
		    c->tunnel[s].name);
	return 0;
}

int conf_check_standby(
    const struct conf *c, const struct conf_node *root, unsigned own, struct conf_error *err)
{
	const struct ctx ctx = {c, root, err, own}, *x = &ctx;
	const int first = conf_standby(c);
	int rc = 0;

	for (unsigned i = 0; i < c->tunnels && !rc; i++)
		rc = check_alone(x, i);
	if (!rc && first < 0 && *c->controller.member)
		return conf_fail_at(err, at_top(x, "controller", "member"),
		    "expected a tunnel with `standby: true` beside `member`, the name of one of a pair, "
		    "found "
		    "none");
	if (rc || first < 0)
		return rc;
	const unsigned s = (unsigned)first;

	rc = check_tunnel(x, s);
	for (unsigned i = 0; i < c->tunnels && !rc; i++) {
		if (i == s || !*c->tunnel[i].name)
			continue;
		if (c->tunnel[i].standby)
			return conf_fail_at(err, at(x, i, "standby"),
			    "expected one tunnel with `standby: true`, found `%s` beside `%s`",
			    c->tunnel[i].name, c->tunnel[s].name);
		rc = check_port_own(x, s, i);
	}
	rc = rc ? rc : check_gateway(x, s);
	return rc ? rc : check_macs(x, s);
}
