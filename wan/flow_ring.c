/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of flows: slabs of flows and of small rings; larger rings and open information are
 * malloced. A flow takes a ring with its first buffer, and gives it back, with what it once opened
 * with, when it has been quiet for a while (wan_tx_rest, wan_rx_rest): most connections of many are
 * quiet.
 */
#include <stdlib.h>

#include "wan/tunnel.h"

/* The ring of a flow without one: its only place is empty, and nothing is put there. */
static void *const nothing[1];

static void *no_ring(void)
{
	return (void *)(uintptr_t)nothing;
}

static void ring_free(struct wan_tunnel *t, void *ring, uint32_t mask)
{
	if (mask == WAN_RING_SMALL - 1)
		rwy_slab_put(&t->ring_slab, ring);
	else if (mask)
		free(ring);
}

/* A zeroed one of `cap` places; NULL: no memory. */
static void *ring_new(struct wan_tunnel *t, uint32_t cap)
{
	return cap == WAN_RING_SMALL ? rwy_slab_get(&t->ring_slab) : calloc(cap, sizeof(void *));
}

struct wan_txflow *wan_tx_flow_new(struct wan_tunnel *t)
{
	struct wan_txflow *f = rwy_slab_get(&t->tx_slab);

	if (f) {
		f->t = t;
		f->ring = no_ring();
	}
	return f;
}

struct wan_rxflow *wan_rx_flow_new(struct wan_tunnel *t)
{
	struct wan_rxflow *f = rwy_slab_get(&t->rx_slab);

	if (f) {
		f->t = t;
		f->ring = no_ring();
	}
	return f;
}

void wan_tx_flow_free(struct wan_txflow *f)
{
	ring_free(f->t, f->ring, f->mask);
	free(f->info);
	rwy_slab_put(&f->t->tx_slab, f);
}

void wan_rx_flow_free(struct wan_rxflow *f)
{
	ring_free(f->t, f->ring, f->mask);
	rwy_slab_put(&f->t->rx_slab, f);
}

bool wan_tx_ring_grow(struct wan_txflow *f)
{
	uint32_t cap = f->mask ? (f->mask + 1) * 2 : WAN_RING_SMALL;
	struct rwy_buf **v = ring_new(f->t, cap);

	if (!v)
		return false;
	for (uint64_t s = f->base; s < f->end; s++)
		v[s & (cap - 1)] = f->ring[s & f->mask];
	ring_free(f->t, f->ring, f->mask);
	f->ring = v;
	f->mask = cap - 1;
	return true;
}

bool wan_rx_ring_reach(struct wan_rxflow *f, uint64_t seq)
{
	uint32_t cap = f->mask ? f->mask + 1 : WAN_RING_SMALL;
	uintptr_t *v;

	if (f->mask && seq - f->delivered < cap)
		return true;
	while (seq - f->delivered >= cap)
		cap *= 2;
	v = ring_new(f->t, cap);
	if (!v)
		return false;
	for (uint64_t i = 0; i <= f->mask; i++)
		v[(f->delivered + i) & (cap - 1)] = f->ring[(f->delivered + i) & f->mask];
	ring_free(f->t, f->ring, f->mask);
	f->ring = v;
	f->mask = cap - 1;
	return true;
}

bool wan_tx_info_room(struct wan_txflow *f)
{
	if (!f->info)
		f->info = calloc(1, WAN_OPEN_MAX);
	return f->info;
}

void wan_tx_rest(struct wan_txflow *f)
{
	if (f->base != f->end)
		return;
	ring_free(f->t, f->ring, f->mask);
	f->ring = no_ring();
	f->mask = 0;
	if (!f->open_acked)
		return;
	free(f->info);
	f->info = NULL;
	f->info_len = 0;
}

void wan_rx_rest(struct wan_rxflow *f)
{
	/* No bytes are held: no place has a size or a buffer. */
	if (f->bytes)
		return;
	ring_free(f->t, f->ring, f->mask);
	f->ring = no_ring();
	f->mask = 0;
}
