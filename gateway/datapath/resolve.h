/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's lookups in the next-hop table (port/neigh.h), and its requests to resolve missing
 * entries. Worker's thread only. */
#ifndef GATEWAY_DATAPATH_RESOLVE_H
#define GATEWAY_DATAPATH_RESOLVE_H

#include "gateway/gw.h"
#include "gateway/port/neigh.h"

#define GW_NH_LAN (-1) /* instead of a WAN port: any port of role LAN */

/* Asks the control thread to resolve an address; each address at most once in a while. */
void gw_resolve_ask(struct gw_worker *w, const struct rwy_ip *addr, uint16_t port);
/*
 * A local host sent something: resolves its address before the first response to it arrives. False:
 * the source address is not one of the LANs: no LAN port leads there, or a tunnel's prefix is the
 * longer match.
 */
bool gw_resolve_source(struct gw_worker *w, const struct rwy_ip *host);
/* Returns the next hop for dst and enters it in *cache (may be NULL). NULL: asked for, or there is
 * none; counted. */
const struct gw_nh *gw_resolve_next_hop(
    struct gw_worker *w, const struct rwy_ip *dst, struct eng_nexthop *cache, int wan_port);

/* The same for a packet: with a flow's cache it costs one compare. cache[0]: generation of the
 * table, 0 = empty; cache[1]: index in it. */
static inline const struct gw_nh *gw_next_hop(
    struct gw_worker *w, const struct rwy_ip *dst, struct eng_nexthop *cache, int wan_port)
{
	const struct gw_nt *t = w->nt;
	const struct gw_nh *nh = cache && cache->cache[0] == t->gen
	                             ? &t->nh[cache->cache[1]]
	                             : gw_resolve_next_hop(w, dst, cache, wan_port);

	if (nh && !w->nh_used[nh->id])
		w->nh_used[nh->id] = 1;
	return nh;
}

#endif
