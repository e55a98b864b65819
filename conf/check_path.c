/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about the paths of a tunnel besides its own: addresses, ports, rates. */
#include "conf/schema.h"

#include "roce/parse.h"

#define ADDR_TEXT    64
#define MIN_RATE_BPS 1000000

struct ctx {
	const struct conf *c;
	const struct conf_node *tunnel; /* its entry; NULL: not from a text */
	struct conf_error *err;
};

/* The node of a path's key, for its line; else that of the path. */
static const struct conf_node *where(const struct ctx *x, unsigned k, const char *key)
{
	const struct conf_node *path = conf_node_at(conf_node_get(x->tunnel, "paths"), k - 1);
	const struct conf_node *n = path && path->kind == CONF_MAP ? conf_node_get(path, key) : NULL;

	return n ? n : path;
}

static int check_ends(const struct ctx *x, unsigned k, const struct conf_path *p)
{
	const struct conf_port *port = NULL;
	char text[ADDR_TEXT];
	bool ours = false;

	for (unsigned j = 0; j < x->c->ports && !port; j++)
		if (!strcmp(x->c->port[j].name, p->port))
			port = &x->c->port[j];
	if (!port || port->role != CONF_ROLE_WAN)
		return conf_fail_at(x->err, where(x, k, "port"),
		    "expected the name of a port of role `wan`, found `%s`, which %s", p->port,
		    port ? "has role `lan`" : "is no port's name");
	for (unsigned a = 0; a < port->addrs; a++)
		ours |= rwy_ip_eq(&port->addr[a].addr, &p->local);
	conf_print_ip(&p->local, text, sizeof(text));
	if (!ours)
		return conf_fail_at(x->err, where(x, k, "local"),
		    "expected an address of port `%s`, found `%s`, which it does not have", p->port, text);
	conf_print_ip(&p->remote, text, sizeof(text));
	if (rwy_ip_is4(&p->local) != rwy_ip_is4(&p->remote))
		return conf_fail_at(x->err, where(x, k, "remote"),
		    "expected an %s address as in `local`, found `%s`",
		    rwy_ip_is4(&p->local) ? "IPv4" : "IPv6", text);
	for (unsigned j = 0; j < x->c->ports; j++)
		for (unsigned a = 0; a < x->c->port[j].addrs; a++)
			if (rwy_ip_eq(&x->c->port[j].addr[a].addr, &p->remote))
				return conf_fail_at(x->err, where(x, k, "remote"),
				    "expected the peer's address, found `%s`, which is our own", text);
	return 0;
}

/* Two paths between the same addresses whose ports overlap cannot be told apart. */
static bool paths_overlap(const struct conf *c, const struct conf_path *a, const struct conf_path *b)
{
	return rwy_ip_eq(&a->local, &b->local) && rwy_ip_eq(&a->remote, &b->remote) &&
	       a->udp_port < b->udp_port + c->workers && b->udp_port < a->udp_port + c->workers;
}

static int check_udp(const struct ctx *x, unsigned i, unsigned k, const struct conf_path *p)
{
	const unsigned last = p->udp_port + x->c->workers - 1u;
	const struct conf_node *n = where(x, k, "udp_port");

	if (last > UINT16_MAX || p->source_port + x->c->workers - 1u > UINT16_MAX)
		return conf_fail_at(x->err, n,
		    "expected at most %u for ports of a path with %u workers, found `%u` and `%u`",
		    UINT16_MAX - x->c->workers + 1, x->c->workers, p->udp_port, p->source_port);
	if (p->udp_port <= ROCE_UDP_PORT && ROCE_UDP_PORT <= last)
		return conf_fail_at(x->err, n, "expected UDP ports other than RoCE's %u, found `%u` to `%u`",
		    ROCE_UDP_PORT, p->udp_port, last);
	for (unsigned j = 0; j < x->c->tunnels; j++)
		for (unsigned m = 0; *x->c->tunnel[j].name && m <= x->c->tunnel[j].paths; m++) {
			const struct conf_path q = conf_tunnel_path(&x->c->tunnel[j], m);

			if ((j != i || m < k) && paths_overlap(x->c, p, &q))
				return conf_fail_at(x->err, n,
				    "expected other UDP ports than path %u of tunnel `%s` between the same "
				    "addresses, found `%u` to `%u`",
				    m, x->c->tunnel[j].name, p->udp_port, last);
		}
	return 0;
}

int conf_check_paths(const struct conf *c, unsigned i, const struct conf_node *tunnel, struct conf_error *err)
{
	const struct ctx ctx = {c, tunnel, err}, *x = &ctx;
	const struct conf_tunnel *t = &c->tunnel[i];

	for (unsigned k = 1; k <= t->paths; k++) {
		const struct conf_path p = conf_tunnel_path(t, k);
		int rc = check_ends(x, k, &p);

		rc = rc ? rc : check_udp(x, i, k, &p);
		if (rc)
			return rc;
		if (p.rate_Bps < (uint64_t)MIN_RATE_BPS * x->c->workers / 8)
			return conf_fail_at(x->err, where(x, k, "rate"),
			    "expected at least 1Mbps for each of %u workers for `rate` of a path",
			    x->c->workers);
	}
	return 0;
}
