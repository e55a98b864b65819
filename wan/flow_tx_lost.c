/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the data of a lost datagram that must be sent again. */
#include "wan/tunnel.h"

/* The fragment s->frag of a buffer was lost with a datagram: it must be sent again, unless a second
 * copy is in flight. */
static bool misses(const struct wan_txflow *f, const struct wan_sent *s, uint64_t seq)
{
	return !wan_tx_has_acked(f, seq, s->frag) &&
	       (!(s->flags & WAN_S_COPIED) || f->ring[seq & f->mask]->w1 & 1u << s->frag);
}

/* Queues what was lost. False: no memory. */
static bool push(struct wan_txflow *f, const struct wan_tx_item *i)
{
	struct wan_tunnel *t = f->t;

	if (!i->moved && wan_detour_takes(t, i->losses))
		return wan_itemq_push(&t->detour.q, i);
	return wan_again_push(&t->again, f->class->id, i);
}

/* A datagram with a fragment or with several buffers was lost. What is missing of it is queued,
 * from the first such buffer to the last. */
bool wan_tx_on_lost(struct wan_tunnel *t, const struct wan_sent *s, bool moved)
{
	struct wan_txflow *f = wan_tx_find(t, s->flow);
	uint32_t bit = 1u << s->frag;
	uint64_t seq, end, first, last;

	if (!f || !wan_tx_in_custody(f, s, &seq, &end))
		return true;
	for (first = seq; first < end && !misses(f, s, first);)
		first++;
	for (last = end; last > first && !misses(f, s, last - 1);)
		last--;
	if (first < last && !push(f, &(struct wan_tx_item){.flow = s->flow,
	                                 .seq = (uint32_t)first,
	                                 .frag = s->frag,
	                                 .more = (uint8_t)(last - first - 1),
	                                 .losses = (uint8_t)(s->losses + (!moved && s->losses < UINT8_MAX)),
	                                 .moved = moved}))
		return false;
	for (; seq < end; seq++) {
		struct rwy_buf *b = f->ring[seq & f->mask];

		if (misses(f, s, seq))
			b->w1 &= ~bit;
		else if (!wan_tx_has_acked(f, seq, s->frag))
			b->w1 |= bit;
	}
	return true;
}
