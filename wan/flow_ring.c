/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of flows: slabs of flows, and their rings. A ring begins in the flow, grows by malloc, and
 * is given back when nothing is in it for a while (wan_tx_rest, wan_rx_rest): most connections of
 * many are quiet, and hold no ring.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/tunnel.h"

struct wan_txflow *wan_tx_flow_new(struct wan_tunnel *t)
{
	struct wan_txflow *f = rwy_slab_get(&t->tx_slab);

	if (!f)
		return NULL;
	f->t = t;
	f->ring = f->small;
	f->mask = WAN_RING_SMALL - 1;
	return f;
}

struct wan_rxflow *wan_rx_flow_new(struct wan_tunnel *t)
{
	struct wan_rxflow *f = rwy_slab_get(&t->rx_slab);

	if (!f)
		return NULL;
	f->t = t;
	f->ring = f->small;
	f->mask = WAN_RING_SMALL - 1;
	return f;
}

static void tx_ring_free(struct wan_txflow *f)
{
	if (f->ring != f->small)
		free(f->ring);
}

static void rx_ring_free(struct wan_rxflow *f)
{
	if (f->ring != f->small)
		free(f->ring);
}

void wan_tx_flow_free(struct wan_txflow *f)
{
	tx_ring_free(f);
	rwy_slab_put(&f->t->tx_slab, f);
}

void wan_rx_flow_free(struct wan_rxflow *f)
{
	rx_ring_free(f);
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
	tx_ring_free(f);
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
	rx_ring_free(f);
	f->ring = v;
	f->mask = cap - 1;
	return true;
}

void wan_tx_rest(struct wan_txflow *f)
{
	if (f->base != f->end || f->ring == f->small)
		return;
	tx_ring_free(f);
	f->ring = f->small;
	f->mask = WAN_RING_SMALL - 1;
}

void wan_rx_rest(struct wan_rxflow *f)
{
	/* No bytes are held: no place has a size or a buffer. */
	if (f->bytes || f->ring == f->small)
		return;
	rx_ring_free(f);
	f->ring = f->small;
	f->mask = WAN_RING_SMALL - 1;
	memset(f->small, 0, sizeof(f->small));
}
