/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/datapath/resolve.h"

#define ASK_EVERY (100 * RWY_MS)

void gw_resolve_ask(struct gw_worker *w, const struct rwy_ip *addr, uint16_t port)
{
	rwy_time *t = &w->ask_time[gw_neigh_hash(port, addr) % GW_ASKS];
	uint32_t head = atomic_load_explicit(&w->ask_head, memory_order_relaxed);

	if (w->now < *t || head - atomic_load_explicit(&w->ask_tail, memory_order_acquire) >= GW_ASKS)
		return;
	*t = w->now + ASK_EVERY;
	w->ask[head % GW_ASKS] = (struct gw_ask){.addr = *addr, .port = port};
	atomic_store_explicit(&w->ask_head, head + 1, memory_order_release);
	w->kernel_fed = true;
}

const struct gw_nh *gw_resolve_next_hop(
    struct gw_worker *w, const struct rwy_ip *dst, struct eng_nexthop *cache, int wan_port)
{
	const struct gw_nt *t = w->nt;
	const struct gw_nh *nh;
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;

	w->c.neigh_misses++;
	nh = gw_nt_find(t, w->app, dst, wan_port, &miss, &addr, &port);
	if (!nh) {
		if (miss == GW_NH_UNRESOLVED)
			gw_resolve_ask(w, &addr, port);
		(*(miss == GW_NH_NO_ROUTE ? &w->c.drop_lan_unreachable
		    : wan_port >= 0       ? &w->c.drop_wan_unresolved
		                          : &w->c.drop_lan_unresolved))++;
	} else if (cache) {
		cache->cache[0] = t->gen;
		cache->cache[1] = (uint64_t)(nh - t->nh);
	}
	return nh;
}

/* Reverse path (RFC 3704, feasible paths): what goes to this address leaves by a LAN port. */
static bool is_foreign(const struct gw_worker *w, const struct rwy_ip *host)
{
	int lan = gw_nt_lan_route(w->nt, w->app, host);

	return lan < 0 || eng_route_plain_len(w->eng, host) > lan;
}

bool gw_resolve_source(struct gw_worker *w, const struct rwy_ip *host)
{
	struct gw_seen *s = &w->seen[gw_neigh_hash(0, host) & (GW_SEEN - 1)];
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;

	if (s->gen == w->nt->gen && rwy_ip_eq(&s->addr, host))
		return !s->foreign;
	if (s->again > w->now && rwy_ip_eq(&s->addr, host))
		return !s->foreign;
	s->addr = *host;
	s->gen = w->nt->gen;
	s->again = w->now + ASK_EVERY;
	s->foreign = is_foreign(w, host);
	if (!gw_nt_find(w->nt, w->app, host, GW_NH_LAN, &miss, &addr, &port)) {
		s->gen = 0;
		if (miss == GW_NH_UNRESOLVED)
			gw_resolve_ask(w, &addr, port);
	}
	return !s->foreign;
}
