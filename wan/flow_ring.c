/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of flows: slabs of flows, and their rings. A ring begins in the flow, grows by malloc, and
 * is given back when nothing is in it for a while (wan_tx_rest, wan_rx_rest): most connections of
 * many are quiet, and hold no ring.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/tunnel.h"

static void ring_free(void *ring, const void *small)
{
	if (ring != small)
		free(ring);
}

/* The flow has its own small ring, which is empty. */
static void tx_ring_small(struct wan_txflow *f)
{
	f->ring = f->small;
	f->mask = WAN_RING_SMALL - 1;
}

static void rx_ring_small(struct wan_rxflow *f)
{
	f->ring = f->small;
	f->mask = WAN_RING_SMALL - 1;
}

struct wan_txflow *wan_tx_flow_new(struct wan_tunnel *t)
{
	struct wan_txflow *f = rwy_slab_get(&t->tx_slab);

	if (f) {
		f->t = t;
		tx_ring_small(f);
	}
	return f;
}

struct wan_rxflow *wan_rx_flow_new(struct wan_tunnel *t)
{
	struct wan_rxflow *f = rwy_slab_get(&t->rx_slab);

	if (f) {
		f->t = t;
		rx_ring_small(f);
	}
	return f;
}

void wan_tx_flow_free(struct wan_txflow *f)
{
	ring_free(f->ring, f->small);
	rwy_slab_put(&f->t->tx_slab, f);
}

void wan_rx_flow_free(struct wan_rxflow *f)
{
	ring_free(f->ring, f->small);
	rwy_slab_put(&f->t->rx_slab, f);
}

bool wan_tx_ring_grow(struct wan_txflow *f)
{
	uint32_t cap = (f->mask + 1) * 2;
	struct rwy_buf **v = calloc(cap, sizeof(*v));

	if (!v)
		return false;
	for (uint64_t s = f->base; s < f->end; s++)
		v[s & (cap - 1)] = f->ring[s & f->mask];
	ring_free(f->ring, f->small);
	f->ring = v;
	f->mask = cap - 1;
	return true;
}

bool wan_rx_ring_reach(struct wan_rxflow *f, uint64_t seq)
{
	uint32_t cap = f->mask + 1;
	uintptr_t *v;

	if (seq - f->delivered < cap)
		return true;
	while (seq - f->delivered >= cap)
		cap *= 2;
	v = calloc(cap, sizeof(*v));
	if (!v)
		return false;
	for (uint64_t i = 0; i <= f->mask; i++)
		v[(f->delivered + i) & (cap - 1)] = f->ring[(f->delivered + i) & f->mask];
	ring_free(f->ring, f->small);
	f->ring = v;
	f->mask = cap - 1;
	return true;
}

void wan_tx_rest(struct wan_txflow *f)
{
	if (f->base != f->end || f->ring == f->small)
		return;
	ring_free(f->ring, f->small);
	tx_ring_small(f);
}

void wan_rx_rest(struct wan_rxflow *f)
{
	/* No bytes are held: no place has a size or a buffer. */
	if (f->bytes || f->ring == f->small)
		return;
	ring_free(f->ring, f->small);
	rx_ring_small(f);
	memset(f->small, 0, sizeof(f->small));
}
