/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the kernel's neighbor and route tables of the taps, and asks the kernel to resolve
 * addresses. The kernel does not see the packets that workers send and would leave an entry in use
 * stale for ever, so this file has entries in use confirmed.
 */
#include "gateway/port/netlink.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <netlink/cache.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/gw.h"
#include "gateway/port/neigh.h"

/* Each takes a socket full of events. */
#define DRAINS_MAX 64
/* seconds; the kernel answers at once. Its tables are read again a few seconds later (refresh). */
#define ANSWER_LIMIT 2

struct gw_netlink {
	struct gw_app *app;
	struct nl_cache_mngr *mngr;
	struct nl_cache *neighs, *routes; /* owned by the manager */
	struct nl_sock *ask;
	bool changed, full_said, routes_said;
	bool lost; /* events were lost, and the tables could not be read again yet */
	struct gw_route route[GW_ROUTES_MAX];
};

static int port_of(const struct gw_netlink *n, int ifindex)
{
	for (unsigned i = 0; i < n->app->ports; i++)
		if (n->app->port[i]->tap_ifindex == ifindex)
			return (int)i;
	return -1;
}

static bool ip_of(const struct nl_addr *a, struct rwy_ip *out)
{
	const uint8_t *b = a ? nl_addr_get_binary_addr(a) : NULL;
	unsigned len = a ? nl_addr_get_len(a) : 0;

	if (a && nl_addr_get_family(a) == AF_INET && len == 4)
		*out = rwy_ip_from4(b);
	else if (a && nl_addr_get_family(a) == AF_INET6 && len == 16)
		memcpy(out->b, b, 16);
	else
		return false;
	return true;
}

/* --- neighbours ------------------------------------------------------------------------------ */

static enum gw_nh_state state_of(int nud)
{
	if (nud & NUD_PERMANENT)
		return GW_NH_PERMANENT;
	if (nud & NUD_REACHABLE)
		return GW_NH_REACHABLE;
	if (nud & NUD_STALE)
		return GW_NH_STALE;
	if (nud & NUD_DELAY)
		return GW_NH_DELAY;
	if (nud & NUD_PROBE)
		return GW_NH_PROBE;
	if (nud & NUD_FAILED)
		return GW_NH_FAILED;
	if (nud & NUD_NOARP)
		return GW_NH_NOARP;
	return GW_NH_INCOMPLETE;
}

static void neigh_take(struct nl_object *o, void *arg)
{
	struct rtnl_neigh *k = (struct rtnl_neigh *)o;
	struct gw_netlink *n = arg;
	struct gw_neigh *g = n->app->neigh;
	struct nl_addr *mac = rtnl_neigh_get_lladdr(k);
	int port = port_of(n, rtnl_neigh_get_ifindex(k)), nud = rtnl_neigh_get_state(k);
	struct rwy_ip addr;
	struct gw_nb *b;

	if (port < 0 || nud < 0 || nud & NUD_NOARP || !ip_of(rtnl_neigh_get_dst(k), &addr))
		return;
	b = gw_neigh_entry(g, (uint16_t)port, &addr);
	if (!b) {
		if (!n->full_said)
			gw_log(GW_LOG_ERROR, "neigh", "more than %u neighbours: some stay unresolved",
			    GW_NEIGH_MAX);
		n->full_said = true;
		return;
	}
	b->seen = g->round;
	b->state = (uint8_t)state_of(nud);
	b->has_mac = mac && nl_addr_get_len(mac) == 6;
	if (b->has_mac)
		memcpy(b->mac, nl_addr_get_binary_addr(mac), 6);
}

static void neighs_read(struct gw_netlink *n)
{
	struct gw_neigh *g = n->app->neigh;

	pthread_mutex_lock(&g->lock);
	g->round++;
	nl_cache_foreach(n->neighs, neigh_take, n);
	for (unsigned i = 0; i < GW_NEIGH_MAX; i++)
		g->nb[i].live = g->nb[i].valid && g->nb[i].seen == g->round;
	pthread_mutex_unlock(&g->lock);
}

/* --- routes ---------------------------------------------------------------------------------- */

struct routes {
	struct gw_netlink *n;
	unsigned count;
	bool full;
};

static void route_take(struct nl_object *o, void *arg)
{
	struct rtnl_route *k = (struct rtnl_route *)o;
	struct routes *r = arg;
	struct rtnl_nexthop *nh = rtnl_route_get_nnexthops(k) > 0 ? rtnl_route_nexthop_n(k, 0) : NULL;
	struct nl_addr *dst = rtnl_route_get_dst(k), *via;
	struct gw_route out = {0};
	int port, family = rtnl_route_get_family(k);

	if (!nh || !dst || rtnl_route_get_type(k) != RTN_UNICAST)
		return;
	if (rtnl_route_get_table(k) != RT_TABLE_MAIN || (family != AF_INET && family != AF_INET6))
		return;
	port = port_of(r->n, rtnl_route_nh_get_ifindex(nh));
	if (port < 0)
		return;
	if (r->count == GW_ROUTES_MAX) {
		r->full = true;
		return;
	}
	if (!ip_of(dst, &out.dst) && family == AF_INET) /* the default route has an empty address */
		out.dst = rwy_ip_from4((const uint8_t[4]){0});
	out.len = (uint8_t)(nl_addr_get_prefixlen(dst) + (family == AF_INET ? 96 : 0));
	out.port = (uint16_t)port;
	out.metric = rtnl_route_get_priority(k);
	via = rtnl_route_nh_get_gateway(nh);
	if (!via)
		via = rtnl_route_nh_get_via(nh);
	out.has_via = ip_of(via, &out.via);
	r->n->route[r->count++] = out;
}

/* False: no memory for the new table. */
static bool tables_read(struct gw_netlink *n)
{
	struct routes r = {.n = n};

	neighs_read(n);
	nl_cache_foreach(n->routes, route_take, &r);
	if (r.full && !n->routes_said)
		gw_log(GW_LOG_ERROR, "neigh",
		    "more than %u routes by its interfaces: the others are not used", GW_ROUTES_MAX);
	n->routes_said = r.full;
	if (gw_neigh_publish(n->app, n->route, r.count) == 0)
		return true;
	gw_log(GW_LOG_ERROR, "neigh", "no memory for a new next-hop table: the old one stays for now");
	return false;
}

/* --- events ---------------------------------------------------------------------------------- */

static void on_change(struct nl_cache *c, struct nl_object *o, int action, void *arg)
{
	((struct gw_netlink *)arg)->changed = true;
}

/* Errors arrive although no acknowledgement is requested; none needs a reaction. */
static void answers_discard(struct gw_netlink *n)
{
	uint8_t junk[4096];

	while (recv(nl_socket_get_fd(n->ask), junk, sizeof(junk), MSG_DONTWAIT) > 0)
		;
}

/*
 * Events were lost: reads both tables again. The kernel reports the loss once, and drops further
 * events in silence until the socket is empty; so what is left in it is taken first.
 */
static void tables_refill(struct gw_netlink *n)
{
	int rc;

	for (unsigned i = 0; nl_cache_mngr_data_ready(n->mngr) < 0 && i < DRAINS_MAX; i++)
		;
	answers_discard(n);
	rc = nl_cache_refill(n->ask, n->neighs);
	if (rc >= 0)
		rc = nl_cache_refill(n->ask, n->routes);
	n->lost = rc < 0;
	n->changed = true;
	if (n->lost)
		gw_log(GW_LOG_WARNING, "neigh",
		    "netlink: %s: the tables cannot be read, they stay as they were", nl_geterror(rc));
}

static void changes_publish(struct gw_netlink *n)
{
	if (n->changed && !n->lost)
		n->changed = !tables_read(n);
}

void gw_netlink_ready(struct gw_netlink *n)
{
	int rc = nl_cache_mngr_data_ready(n->mngr);

	if (rc < 0) {
		gw_log(GW_LOG_NOTICE, "neigh", "netlink: %s: reading the tables again", nl_geterror(rc));
		tables_refill(n);
	}
	changes_publish(n);
}

/* --- requests -------------------------------------------------------------------------------- */

/* state 0: as if the kernel had a packet for the address. mac: of the entry, or NULL. */
static void neigh_ask(
    struct gw_netlink *n, uint16_t port, const struct rwy_ip *addr, int state, const uint8_t *mac)
{
	bool v4 = rwy_ip_is4(addr);
	struct rtnl_neigh *k = rtnl_neigh_alloc();
	struct nl_addr *a = nl_addr_build(v4 ? AF_INET : AF_INET6, addr->b + (v4 ? 12 : 0), v4 ? 4 : 16);
	struct nl_addr *l2 = mac ? nl_addr_build(AF_LLC, mac, 6) : NULL;
	int flags = (state ? NLM_F_REPLACE : 0) | (state && !mac ? 0 : NLM_F_CREATE);
	struct nl_msg *msg = NULL;

	if (k && a && (l2 || !mac)) {
		rtnl_neigh_set_ifindex(k, n->app->port[port]->tap_ifindex);
		rtnl_neigh_set_dst(k, a);
		if (state)
			rtnl_neigh_set_state(k, state);
		else
			rtnl_neigh_set_flags(k, NTF_USE);
		if (l2)
			rtnl_neigh_set_lladdr(k, l2);
		if (rtnl_neigh_build_add_request(k, flags, &msg) == 0)
			nl_send_auto(n->ask, msg);
	}
	nlmsg_free(msg);
	nl_addr_put(l2);
	nl_addr_put(a);
	rtnl_neigh_put(k);
	answers_discard(n);
}

void gw_netlink_resolve(struct gw_netlink *n, uint16_t port, const struct rwy_ip *addr)
{
	neigh_ask(n, port, addr, 0, NULL);
}

void gw_netlink_probe(struct gw_netlink *n, uint16_t port, const struct rwy_ip *addr)
{
	neigh_ask(n, port, addr, NUD_PROBE, NULL);
}

/* The port, of role LAN or this WAN port, where the kernel would look for the address; -1: none. */
static int lacks(const struct gw_app *app, const struct rwy_ip *addr, int wan_port, const uint8_t mac[6])
{
	enum gw_nh_miss miss;
	struct rwy_ip ask;
	uint16_t port;
	const struct gw_nh *nh = gw_nt_find(gw_nt_of(app), app, addr, wan_port, &miss, &ask, &port);

	if (nh)
		return rwy_ip_eq(&nh->addr, addr) && memcmp(nh->l2, mac, 6) != 0 ? nh->port : -1;
	return miss == GW_NH_UNRESOLVED && rwy_ip_eq(&ask, addr) ? port : -1;
}

void gw_netlink_learn(struct gw_netlink *n, const struct rwy_ip *addr, const uint8_t mac[6])
{
	static const uint8_t none[6];
	int port = lacks(n->app, addr, -1, mac);

	for (unsigned i = 0; i < n->app->ports && port < 0; i++)
		if (n->app->port[i]->conf->role == CONF_ROLE_WAN && !n->app->port[i]->pair)
			port = lacks(n->app, addr, (int)i, mac);
	if (port >= 0 && !(mac[0] & 1) && memcmp(mac, none, 6) != 0)
		neigh_ask(n, (uint16_t)port, addr, NUD_STALE, mac);
}

static bool used_lately(struct gw_app *app, unsigned id)
{
	bool used = false;

	for (unsigned i = 0; i < app->workers; i++)
		if (app->worker[i] && app->worker[i]->nh_used[id]) {
			app->worker[i]->nh_used[id] = 0;
			used = true;
		}
	return used;
}

void gw_netlink_refresh(struct gw_netlink *n)
{
	struct gw_neigh *g = n->app->neigh;

	if (n->lost)
		tables_refill(n);
	changes_publish(n); /* what had no memory before, too */
	for (unsigned i = 0; i < GW_NEIGH_MAX; i++) {
		struct gw_nb *b = &g->nb[i];

		if (!b->valid || !b->live)
			continue;
		pthread_mutex_lock(&g->lock);
		b->used = used_lately(n->app, i);
		pthread_mutex_unlock(&g->lock);
		if (b->used && b->state == GW_NH_STALE)
			gw_netlink_resolve(n, b->port, &b->addr);
	}
}

/* --- creation -------------------------------------------------------------------------------- */

int gw_netlink_fd(const struct gw_netlink *n)
{
	return nl_cache_mngr_get_fd(n->mngr);
}

int gw_netlink_new(struct gw_netlink **out, struct gw_app *app)
{
	const struct timeval limit = {.tv_sec = ANSWER_LIMIT};
	struct gw_netlink *n = calloc(1, sizeof(*n));
	int rc = -NLE_NOMEM;

	if (!n)
		return RWY_ENOMEM;
	n->app = app;
	n->ask = nl_socket_alloc();
	if (n->ask)
		rc = nl_connect(n->ask, NETLINK_ROUTE);
	/* The control thread, which also reads signals, waits no longer for a part of a table. */
	if (!rc && setsockopt(nl_socket_get_fd(n->ask), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0)
		rc = -NLE_FAILURE;
	if (!rc) {
		nl_socket_disable_auto_ack(n->ask);
		rc = nl_cache_mngr_alloc(NULL, NETLINK_ROUTE, NL_AUTO_PROVIDE, &n->mngr);
	}
	if (!rc)
		rc = nl_cache_mngr_add(n->mngr, "route/neigh", on_change, n, &n->neighs);
	if (!rc)
		rc = nl_cache_mngr_add(n->mngr, "route/route", on_change, n, &n->routes);
	if (rc < 0) {
		gw_log(GW_LOG_ERROR, "neigh", "netlink: %s", nl_geterror(rc));
		gw_netlink_free(n);
		return RWY_EINVAL;
	}
	n->changed = !tables_read(n);
	*out = n;
	return 0;
}

void gw_netlink_free(struct gw_netlink *n)
{
	if (!n)
		return;
	nl_cache_mngr_free(n->mngr);
	nl_socket_free(n->ask);
	free(n);
}
