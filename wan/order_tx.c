/* SPDX-License-Identifier: Apache-2.0 */
/* Order between flows, at the sender: what a buffer waits for, and lists for order flows. */
#include "wan/order.h"

bool wan_tx_orders(const struct wan_tunnel *t)
{
	return t->peer.order || !wan_hs_session(t);
}

bool wan_tx_pending(const struct wan_tunnel *t, const struct rwy_after *a)
{
	return wan_after_pending(t, a);
}

struct rwy_after wan_tx_mark(struct wan_txflow *f, uint64_t count)
{
	wan_stir(f->t);
	f->named = true;
	return (struct rwy_after){f->id, (uint32_t)count};
}

/* --- lists ------------------------------------------------------------------------------------ */
static struct wan_txflow *order_flow(struct wan_tunnel *t, uint32_t id, unsigned class_id, rwy_time now)
{
	struct wan_txflow *f = id == RWY_NO_FLOW ? NULL : wan_tx_find(t, id);

	if (f && !f->aborted)
		return f->broken ? NULL : f;
	if (wan_tx_open(t, &f, NULL, 0, NULL, now) != 0)
		return NULL;
	f->order = f->named = true;
	wan_tx_class(f, class_id);
	return f;
}

bool wan_order_put(struct wan_tunnel *t, struct rwy_after *order, unsigned class_id,
    const struct rwy_after *v, unsigned n, rwy_time now)
{
	struct wan_txflow *f;
	struct rwy_buf *b;

	assert(n && n <= WAN_ORDER_MAX);
	if (t->order_bufs >= WAN_ORDER_BUFS_MAX)
		return false;
	b = rwy_buf_alloc(&t->cfg.bufs, WAN_HDR_MAX, n * WAN_ORDER_ENTRY);
	f = b ? order_flow(t, order->flow, class_id, now) : NULL;
	if (!f) {
		if (b)
			rwy_buf_free(&t->cfg.bufs, b);
		return false;
	}
	for (unsigned i = 0; i < n; i++) {
		rwy_put32(b->data + i * WAN_ORDER_ENTRY, v[i].flow);
		rwy_put32(b->data + i * WAN_ORDER_ENTRY + 4, v[i].count);
	}
	b->len = n * WAN_ORDER_ENTRY;
	b->kind = RWY_BUF_ORDER;
	b->opcode = 0;
	wan_tx_send(f, b, now);
	if (f->broken)
		return false;
	t->order_bufs++;
	*order = (struct rwy_after){f->id, (uint32_t)f->end};
	return true;
}

uint32_t wan_order_bufs(const struct wan_tunnel *t)
{
	return t->order_bufs;
}

void wan_order_end(struct wan_tunnel *t, uint32_t id, rwy_time now)
{
	struct wan_txflow *f = id == RWY_NO_FLOW ? NULL : wan_tx_find(t, id);

	wan_stir(t);
	if (f && !f->aborted)
		wan_tx_abort(f, now);
}
