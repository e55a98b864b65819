/* SPDX-License-Identifier: Apache-2.0 */
/* Order between flows, at the sender: whether a buffer waits, and where it may go meanwhile. */
#include "wan/order.h"

/*
 * Buffers that wait leave an eighth of the credit, and at least ROOM_MIN, so that any buffer fits.
 * They leave it of the part that bulk flows may use: what they wait for may be of a bulk flow.
 */
#define ROOM_SHIFT 3
#define ROOM_MIN   (64u << 10)

bool wan_after_pending(const struct wan_tunnel *t, const struct rwy_after *a)
{
	const struct wan_txflow *f = a->flow == RWY_NO_FLOW ? NULL : wan_tx_find(t, a->flow);

	return f && !f->aborted && (int32_t)(a->count - (uint32_t)f->base) > 0;
}

void wan_after_restart(struct wan_txflow *f)
{
	for (uint64_t s = f->base; s < f->end; s++) {
		struct rwy_buf *b = f->ring[s & f->mask];

		for (uint32_t i = 0; i < b->len; i += WAN_ORDER_ENTRY)
			if (!wan_after_pending(f->t,
			        &(struct rwy_after){rwy_get32(b->data + i), rwy_get32(b->data + i + 4)}))
				rwy_put32(b->data + i, RWY_NO_FLOW);
	}
}

/* b, a list of an order flow, names something that is not delivered. */
static bool list_pending(const struct wan_tunnel *t, const struct rwy_buf *b)
{
	for (uint32_t i = 0; i < b->len; i += WAN_ORDER_ENTRY)
		if (wan_after_pending(
		        t, &(struct rwy_after){rwy_get32(b->data + i), rwy_get32(b->data + i + 4)}))
			return true;
	return false;
}

/* The flow's next buffer waits at the peer, or one before it does. */
static bool waits(const struct wan_txflow *f)
{
	const struct rwy_buf *b = f->ring[f->next_send & f->mask];

	if (f->order)
		return f->next_send > f->base || list_pending(f->t, b);
	return wan_after_pending(f->t, b->after.flow != RWY_NO_FLOW ? &b->after : &f->sent_after);
}

bool wan_after_leaves_room(const struct wan_txflow *f)
{
	struct wan_tunnel *t = f->t;
	uint64_t room = t->peer.rx_bytes >> ROOM_SHIFT;

	if (room < ROOM_MIN)
		room = ROOM_MIN;
	room += t->peer.rx_bytes >> WAN_CREDIT_LEFT;
	if (!t->tx_out || t->tx_out + room <= t->peer.rx_bytes || !waits(f))
		return false;
	t->room_left = true;
	return true;
}
