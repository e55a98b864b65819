/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data packets of open links, with few steps. What the rewriting does to a packet's checksums
 * depends on the link and the packet's length only, so a link remembers it. Everything that is not
 * quite ordinary is left to the functions of proxy/edge.h, which call these first.
 *
 * It checks only those fields of the packet that it reads: the engine parses it, and checks its
 * ICRC.
 *
 * Thread: the worker that owns the edge.
 */
#ifndef PROXY_FAST_H
#define PROXY_FAST_H

#include "proxy/edge.h"
#include "rwy/prefetch.h"

/*
 * A packet of a local host, as of proxy_edge_in(), or to one, as of proxy_edge_out(), `len` bytes
 * from its IP header on. It is rewritten and counted, and goes on; returns its link, the edge's.
 * NULL: nothing is done. hint: of the packet's flow, as of proxy_map_out_hint(); may be NULL.
 */
const struct proxy_link *proxy_fast_in(struct proxy_edge *e, uint8_t *ip, uint32_t len, rwy_time now);
const struct proxy_link *proxy_fast_out(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, uint64_t *hint, rwy_time now);

/*
 * Prefetch for the calls above. Nothing is checked: a wrong guess costs time only.
 * proxy_fast_in_ahead(): of a packet from the LAN that comes soon, by its destination QPN.
 * proxy_fast_out_ahead(): of a flow whose packets go to the LAN soon, by its hint.
 */
RWY_PREFETCHER void proxy_fast_in_ahead(const struct proxy_edge *e, uint32_t dqpn)
{
	const uint32_t i = e->view.in[dqpn & e->view.in_mask];

	if (i < e->view.links_max)
		rwy_prefetch(&e->view.links[i], PROXY_IN_LINES);
}

RWY_PREFETCHER void proxy_fast_out_ahead(const struct proxy_edge *e, uint64_t hint)
{
	if (hint - 1 < e->view.links_max)
		rwy_prefetch(&e->view.links[hint - 1], PROXY_OUT_LINES);
}

#endif
