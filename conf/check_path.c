/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about the paths of a tunnel, of which path 0 is in the tunnel's own keys: addresses, ports,
 * rates. */
#include "conf/schema.h"

#include <arpa/inet.h>

#include "roce/parse.h"

#define ADDR_TEXT    INET6_ADDRSTRLEN
#define MIN_RATE_BPS 1000000 /* per worker: at a lower rate keep-alives would fill the path */

struct ctx {
	const struct conf *c;
	const struct conf_node *tunnel; /* its entry; NULL: not from a text */
	struct conf_error *err;
};

/* The node of a path's key, for its line; else that of the path. */
static const struct conf_node *where(const struct ctx *x, unsigned k, const char *key)
{
	const struct conf_node *entry =
	    k ? conf_node_at(conf_node_get(x->tunnel, "paths"), k - 1) : x->tunnel;
	const struct conf_node *n = entry && entry->kind == CONF_MAP ? conf_node_get(entry, key) : NULL;

	return n ? n : entry;
}

static int check_local(const struct ctx *x, unsigned k, const struct conf_path *p)
{
	const struct conf_port *port = NULL;
	char text[ADDR_TEXT];

	for (unsigned j = 0; j < x->c->ports && !port; j++)
		if (!strcmp(x->c->port[j].name, p->port))
			port = &x->c->port[j];
	if (!port || port->role != CONF_ROLE_WAN)
		return conf_fail_at(x->err, where(x, k, "port"),
		    "expected the name of a port of role `wan`, found `%s`, which %s", p->port,
		    port ? "has role `lan`" : "is no port's name");
	for (unsigned a = 0; a < port->addrs; a++)
		if (rwy_ip_eq(&port->addr[a].addr, &p->local))
			return 0;
	conf_print_ip(&p->local, text, sizeof(text));
	return conf_fail_at(x->err, where(x, k, "local"),
	    "expected an address of port `%s`, found `%s`, which it does not have", port->name, text);
}

static int check_remote(const struct ctx *x, unsigned k, const struct conf_path *p)
{
	char text[ADDR_TEXT];

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

/* Worker i uses this port + i. */
static int check_last(const struct ctx *x, unsigned k, const char *key, unsigned port)
{
	const unsigned most = UINT16_MAX - x->c->workers + 1;

	if (port <= most)
		return 0;
	return conf_fail_at(x->err, where(x, k, key),
	    "expected at most %u for `%s` with %u workers, found `%u`", most, key, x->c->workers, port);
}

/* Two paths between the same addresses whose ports overlap cannot be told apart. */
static bool paths_overlap(const struct conf *c, const struct conf_path *a, const struct conf_path *b)
{
	return rwy_ip_eq(&a->local, &b->local) && rwy_ip_eq(&a->remote, &b->remote) &&
	       a->udp_port < b->udp_port + c->workers && b->udp_port < a->udp_port + c->workers;
}

/* The paths of the tunnels before it, and its own before this one. */
static int check_apart(const struct ctx *x, unsigned i, unsigned k, const struct conf_path *p)
{
	char of[24] = "";

	for (unsigned j = 0; j <= i; j++)
		for (unsigned m = 0; *x->c->tunnel[j].name && m < (j == i ? k : 1 + x->c->tunnel[j].paths);
		     m++) {
			const struct conf_path q = conf_tunnel_path(&x->c->tunnel[j], m);

			if (!paths_overlap(x->c, p, &q))
				continue;
			if (x->c->tunnel[j].paths)
				snprintf(of, sizeof(of), "path %u of ", m);
			return conf_fail_at(x->err, where(x, k, "udp_port"),
			    "expected other UDP ports than %stunnel `%s` to the same peer (it uses %u to "
			    "%u), found `%u` to `%u`",
			    of, x->c->tunnel[j].name, q.udp_port, q.udp_port + x->c->workers - 1u,
			    p->udp_port, p->udp_port + x->c->workers - 1u);
		}
	return 0;
}

static int check_udp(const struct ctx *x, unsigned i, unsigned k, const struct conf_path *p)
{
	const unsigned last = p->udp_port + x->c->workers - 1u;
	int rc = check_last(x, k, "udp_port", p->udp_port);

	rc = rc ? rc : check_last(x, k, "source_port", p->source_port);
	if (rc)
		return rc;
	if (p->udp_port <= ROCE_UDP_PORT && ROCE_UDP_PORT <= last)
		return conf_fail_at(x->err, where(x, k, "udp_port"),
		    "expected UDP ports other than RoCE's %u, found `%u` to `%u`", ROCE_UDP_PORT, p->udp_port,
		    last);
	return check_apart(x, i, k, p);
}

/* The workers share a path's rate. */
static int check_rate(const struct ctx *x, unsigned k, const struct conf_path *p)
{
	const uint64_t least = (uint64_t)MIN_RATE_BPS * x->c->workers;
	char want[32], found[32];

	if (p->rate_Bps >= least / 8)
		return 0;
	conf_print_value(CONF_T_RATE, least, want, sizeof(want));
	conf_print_value(CONF_T_RATE, p->rate_Bps * 8, found, sizeof(found));
	return conf_fail_at(x->err, where(x, k, "rate"),
	    "expected at least %s for `rate` with %u workers, which share it, found `%s`", want,
	    x->c->workers, found);
}

int conf_check_paths(const struct conf *c, unsigned i, const struct conf_node *tunnel, struct conf_error *err)
{
	const struct ctx ctx = {c, tunnel, err}, *x = &ctx;
	int rc = 0;

	if (c->tunnel[i].own_path == CONF_USE_SPARE && !c->tunnel[i].paths)
		return conf_fail_at(
		    err, where(x, 0, "own_path"), "expected `paths` beside `own_path: spare`");
	for (unsigned k = 0; k <= c->tunnel[i].paths && !rc; k++) {
		const struct conf_path p = conf_tunnel_path(&c->tunnel[i], k);

		rc = check_local(x, k, &p);
		rc = rc ? rc : check_remote(x, k, &p);
		rc = rc ? rc : check_udp(x, i, k, &p);
		rc = rc ? rc : check_rate(x, k, &p);
	}
	return rc;
}
