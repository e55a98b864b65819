/* SPDX-License-Identifier: Apache-2.0 */
/* The published next-hop table: build, publish, look up. netlink.c supplies its contents. */
#include "gateway/port/neigh.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/gw.h"
#include "rwy/endian.h"
#include "rwy/ether.h"
#include "rwy/prefix.h"

uint32_t gw_neigh_hash(uint16_t port, const struct rwy_ip *a)
{
	uint64_t x[2];

	memcpy(x, a->b, 16);
	x[0] = (x[0] + port) * 0x9fb21c651e98df25u + x[1];
	x[0] ^= x[0] >> 31;
	x[0] *= 0xc2b2ae3d27d4eb4fu;
	return (uint32_t)(x[0] >> 32);
}

static const struct gw_route *route_find(
    const struct gw_nt *t, const struct gw_app *app, const struct rwy_ip *dst, int wan_port)
{
	for (unsigned i = 0; i < t->routes; i++) {
		const struct gw_route *r = &t->route[i];

		if (wan_port >= 0 ? r->port != wan_port : app->conf->port[r->port].role != CONF_ROLE_LAN)
			continue;
		/* An IPv4 destination is mapped: an IPv6 route shorter than the mapping's 96 bits
		 * must not match it. */
		if (rwy_ip_is4(dst) && r->len < 96)
			continue;
		if (rwy_prefix_match(&r->dst, r->len, dst))
			return r;
	}
	return NULL;
}

static const struct gw_nh *nh_find(const struct gw_nt *t, uint16_t port, const struct rwy_ip *addr)
{
	for (uint32_t i = gw_neigh_hash(port, addr) & t->mask; t->slot[i]; i = (i + 1) & t->mask) {
		const struct gw_nh *nh = &t->nh[t->slot[i] - 1];

		if (nh->port == port && rwy_ip_eq(&nh->addr, addr))
			return nh;
	}
	return NULL;
}

const struct gw_nh *gw_nt_find(const struct gw_nt *t, const struct gw_app *app, const struct rwy_ip *dst,
    int wan_port, enum gw_nh_miss *miss, struct rwy_ip *ask_addr, uint16_t *ask_port)
{
	const struct gw_route *r = route_find(t, app, dst, wan_port);
	const struct gw_nh *nh;

	if (!r) {
		*miss = GW_NH_NO_ROUTE;
		return NULL;
	}
	*ask_addr = r->has_via ? r->via : *dst;
	*ask_port = r->port;
	nh = nh_find(t, r->port, ask_addr);
	if (!nh)
		*miss = GW_NH_UNRESOLVED;
	return nh;
}

int gw_nt_lan_route(const struct gw_nt *t, const struct gw_app *app, const struct rwy_ip *host)
{
	const struct gw_route *r = route_find(t, app, host, -1);

	return r ? r->len : -1;
}

/* --- control thread -------------------------------------------------------------------------- */

static struct gw_nt *nt_alloc(unsigned nhs, unsigned routes)
{
	struct gw_nt *t = calloc(1, sizeof(*t));
	uint32_t slots = 16;

	while (slots < nhs * 2)
		slots <<= 1;
	if (!t)
		return NULL;
	t->mask = slots - 1;
	t->nh = calloc(nhs + 1, sizeof(*t->nh));
	t->route = calloc(routes + 1, sizeof(*t->route));
	t->slot = calloc(slots, sizeof(*t->slot));
	if (t->nh && t->route && t->slot)
		return t;
	free(t->nh);
	free(t->route);
	free(t->slot);
	free(t);
	return NULL;
}

static void nt_free(void *table)
{
	struct gw_nt *t = table;

	free(t->nh);
	free(t->route);
	free(t->slot);
	free(t);
}

static int route_order(const void *a, const void *b)
{
	const struct gw_route *x = a, *y = b;

	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	return memcmp(x->dst.b, y->dst.b, 16);
}

static void nh_fill(struct gw_nh *nh, const struct gw_port *p, const struct gw_nb *b, uint16_t id)
{
	nh->addr = b->addr;
	nh->port = b->port;
	nh->id = id;
	nh->l2_len = p->l2_len;
	memcpy(nh->l2, b->mac, 6);
	memcpy(nh->l2 + 6, p->mac, 6);
	if (p->l2_len > GW_ETH) {
		rwy_put16(nh->l2 + 12, RWY_ETHER_VLAN);
		rwy_put16(nh->l2 + 14, p->vlan);
	}
}

static bool usable(const struct gw_nb *b)
{
	return b->valid && b->live && b->has_mac && b->state != GW_NH_INCOMPLETE && b->state != GW_NH_FAILED;
}

static bool tables_equal(const struct gw_nt *a, const struct gw_nt *b)
{
	return a && a->nhs == b->nhs && a->routes == b->routes &&
	       memcmp(a->nh, b->nh, a->nhs * sizeof(*a->nh)) == 0 &&
	       memcmp(a->route, b->route, a->routes * sizeof(*a->route)) == 0;
}

int gw_neigh_publish(struct gw_app *app, const struct gw_route *routes, unsigned n)
{
	struct gw_neigh *g = app->neigh;
	struct gw_nt *t;
	unsigned count = 0;

	for (unsigned i = 0; i < GW_NEIGH_MAX; i++)
		count += usable(&g->nb[i]);
	t = nt_alloc(count, n);
	if (!t)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < GW_NEIGH_MAX; i++) {
		struct gw_nh *nh = &t->nh[t->nhs];
		uint32_t s;

		if (!usable(&g->nb[i]))
			continue;
		nh_fill(nh, app->port[g->nb[i].port], &g->nb[i], (uint16_t)i);
		for (s = gw_neigh_hash(nh->port, &nh->addr) & t->mask; t->slot[s]; s = (s + 1) & t->mask)
			;
		t->slot[s] = (uint16_t)++t->nhs;
	}
	if (n)
		memcpy(t->route, routes, n * sizeof(*routes));
	t->routes = n;
	qsort(t->route, n, sizeof(*t->route), route_order);
	if (tables_equal(gw_nt_of(app), t)) {
		nt_free(t);
		return 0;
	}
	t->gen = ++g->gen;
	if (!gw_publish(app->publisher, GW_NEXT_HOPS, t, nt_free)) {
		nt_free(t);
		return RWY_ENOMEM;
	}
	gw_log(GW_LOG_DEBUG, "neigh", "next-hop table gen=%lu hops=%u routes=%u", (unsigned long)t->gen,
	    t->nhs, n);
	return 0;
}

struct gw_nb *gw_neigh_entry(struct gw_neigh *g, uint16_t port, const struct rwy_ip *addr)
{
	struct gw_nb *forgotten = NULL, *b;
	uint32_t i = gw_neigh_hash(port, addr);

	for (unsigned n = 0; n < GW_NEIGH_MAX; n++, i++) {
		b = &g->nb[i & (GW_NEIGH_MAX - 1)];
		if (!b->valid)
			break;
		if (b->port == port && rwy_ip_eq(&b->addr, addr))
			return b;
		/* neither in this reading nor in the one before */
		if (b->seen + 1 < g->round && !forgotten)
			forgotten = b;
		b = NULL;
	}
	if (forgotten)
		b = forgotten;
	if (b)
		*b = (struct gw_nb){.addr = *addr, .port = port, .valid = true};
	return b;
}

int gw_neigh_new(struct gw_app *app)
{
	struct gw_neigh *g = calloc(1, sizeof(*g));

	if (!g)
		return RWY_ENOMEM;
	pthread_mutex_init(&g->lock, NULL);
	app->neigh = g;
	return gw_neigh_publish(app, NULL, 0);
}

void gw_neigh_free(struct gw_app *app)
{
	struct gw_neigh *g = app->neigh;

	if (!g)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g);
	app->neigh = NULL;
}

size_t gw_neighs_get(const struct gw_app *app, struct gw_neigh_info *out, size_t max)
{
	static const char *const word[] = {
	    "incomplete", "reachable", "stale", "delay", "probe", "failed", "noarp", "permanent"};
	struct gw_neigh *g = app->neigh;
	size_t n = 0;

	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < GW_NEIGH_MAX; i++) {
		const struct gw_nb *b = &g->nb[i];

		if (!b->valid || !b->live)
			continue;
		if (n < max) {
			struct gw_neigh_info *o = &out[n];

			*o = (struct gw_neigh_info){
			    .addr = b->addr, .port = b->port, .state = word[b->state], .used = b->used};
			memcpy(o->mac, b->mac, 6);
		}
		n++;
	}
	pthread_mutex_unlock(&g->lock);
	return n;
}
