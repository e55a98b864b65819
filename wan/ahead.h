/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetches of what datagrams lead to: the buffers of those that were acknowledged, and with many
 * flows the flows, and what their users have. Private to wan/.
 */
#ifndef WAN_AHEAD_H
#define WAN_AHEAD_H

#include "wan/tunnel.h"

/*
 * With more flows than this a tunnel's flows, and what their users have, are in no near cache: they
 * are prefetched where that is known early. With fewer ones it would cost more than it gains.
 */
#define WAN_MANY_FLOWS 2048

/* Prefetches the buffer that a datagram carried, where its ACK writes it: of a fragment, or behind
 * a gap in its flow. */
RWY_PREFETCHER void wan_fetch_buffer(const struct wan_path *p, const struct wan_sent *e)
{
	const struct wan_txflow *f = e->flags & WAN_S_DATA ? wan_tx_find(p->t, e->flow) : NULL;

	if (f && (!(e->flags & WAN_S_WHOLE) || f->acked_end > f->acked))
		__builtin_prefetch(f->ring[e->seq & f->mask]);
}

/*
 * Prefetches what is freed first when a flow's buffers are reported delivered. With few flows the
 * flow itself is in a near cache.
 */
RWY_PREFETCHER void wan_fetch_delivered(const struct wan_tunnel *t, uint32_t flow)
{
	const struct wan_txflow *f = wan_tx_find(t, flow);

	if (f)
		rwy_buf_fetch(f->ring[f->base & f->mask]);
}

/*
 * Distances, in acknowledged datagrams, at which each step towards the buffer is prefetched: long
 * enough before the next step, which reads it. With few flows the flow and its user are in a near
 * cache.
 */
#define WAN_AHEAD_ENTRY_MANY 12
#define WAN_AHEAD_ENTRY      8
#define WAN_AHEAD_FLOW       8
#define WAN_AHEAD_USER       6
#define WAN_AHEAD_BUFFER     4
/* Distance, in entries of a DELIVERED frame, at which a flow's first buffer is prefetched. */
#define WAN_AHEAD_DELIVERED 3

/* With many flows: prefetches the flow of a datagram; later what leads on from it. */
RWY_PREFETCHER void wan_fetch_sent(const struct wan_tunnel *t, const struct wan_sent *e)
{
	if (e->flags & WAN_S_DATA && WAN_SLOT(e->flow) < t->tx_cap)
		rwy_prefetch(t->tx[WAN_SLOT(e->flow)].f, WAN_TX_LINES);
}

static inline void wan_fetch_user(const struct wan_tunnel *t, const struct wan_sent *e)
{
	const struct wan_txflow *f = e->flags & WAN_S_DATA ? wan_tx_find(t, e->flow) : NULL;

	if (!f)
		return;
	__builtin_prefetch(&f->ring[e->seq & f->mask]);
	if (t->cfg.ops->tx_ahead)
		t->cfg.ops->tx_ahead(t->cfg.ctx, f->user);
}

/*
 * With many flows: prefetches the flow of a datagram that begins with data, while the checksum is
 * read. Nothing is checked yet, so the place may be anybody's, or (sealed) none.
 */
static inline const struct wan_rxflow *wan_fetch_received(const struct wan_tunnel *t, const struct rwy_buf *b)
{
	const uint8_t *at = b->data + WAN_PKT_HDR;
	const struct wan_rxflow *f;
	uint32_t place;

	if (t->rx_flows <= WAN_MANY_FLOWS || b->len < WAN_PKT_HDR + WAN_DATA_LEN || at[0] < WAN_F_DATA ||
	    at[0] >= WAN_F_DGRAM)
		return NULL;
	place = WAN_SLOT(rwy_get32(at + 2));
	f = place < t->rx_cap ? t->rx[place].f : NULL;
	rwy_prefetch(f, WAN_RXFLOW_LINES);
	return f;
}

/* Prefetches what a flow that was fetched before leads to. */
static inline void wan_fetch_rx_user(const struct wan_tunnel *t, const struct wan_rxflow *f)
{
	__builtin_prefetch(&f->ring[f->next & f->mask]);
	if (t->cfg.ops->rx_ahead)
		t->cfg.ops->rx_ahead(t->cfg.ctx, f->user);
}

#endif
