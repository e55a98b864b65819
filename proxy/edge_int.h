/* SPDX-License-Identifier: Apache-2.0 */
/* Private to proxy/edge.c and proxy/fast.c: data packets of links. */
#ifndef PROXY_EDGE_INT_H
#define PROXY_EDGE_INT_H

#include "proxy/edge.h"

/* Data may pass: both QPNs are known. A closed link still passes late packets. */
static inline bool proxy_is_open(const struct proxy_link *l)
{
	return l->rqpn && l->lqpn && l->state != PROXY_REQ_SEEN;
}

/* Closed links are forgotten in the order of their ends: late packets keep none (map.c). */
static inline void proxy_link_touch(struct proxy_link *l, rwy_time now)
{
	if (l->state != PROXY_CLOSED)
		l->touched = now;
}

static inline void proxy_count_in(struct proxy_edge *e, struct proxy_link *l, uint32_t len, rwy_time now)
{
	proxy_link_touch(l, now);
	l->in_packets++;
	l->in_bytes += len;
	e->c.relay_in_packets++;
	e->c.relay_in_bytes += len;
}

static inline void proxy_count_out(struct proxy_edge *e, struct proxy_link *l, uint32_t len, rwy_time now)
{
	proxy_link_touch(l, now);
	l->out_packets++;
	l->out_bytes += len;
	e->c.relay_out_packets++;
	e->c.relay_out_bytes += len;
}

#endif
