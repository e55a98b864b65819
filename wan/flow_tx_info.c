/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the engine about a flow that we send. Nothing here changes the flow. */
#include "wan/order.h"

uint32_t wan_tx_queued(const struct wan_txflow *f)
{
	return (uint32_t)(f->end - f->base);
}

const struct rwy_buf *wan_tx_peek(const struct wan_txflow *f, uint32_t i)
{
	return i < wan_tx_queued(f) ? f->ring[(f->base + i) & f->mask] : NULL;
}

uint64_t wan_tx_base(const struct wan_txflow *f)
{
	return f->base;
}

const struct rwy_buf *wan_tx_at(const struct wan_txflow *f, uint64_t seq)
{
	return seq >= f->base && seq < f->end ? f->ring[seq & f->mask] : NULL;
}

uint32_t wan_tx_unsent(const struct wan_txflow *f)
{
	return (uint32_t)(f->end - f->next_send);
}

bool wan_tx_blocked(const struct wan_txflow *f)
{
	return wan_tx_unsent(f) && (!wan_tx_sendable(f) || !wan_tx_has_credit(f));
}

bool wan_tx_limited(const struct wan_txflow *f)
{
	return f->class->place[WAN_HEAP_PARKED];
}

uint64_t wan_tx_window(const struct wan_txflow *f, uint64_t *drain_Bps)
{
	*drain_Bps = f->drain_Bps;
	return f->window;
}

uint64_t wan_tx_bytes(const struct wan_txflow *f)
{
	return f->bytes;
}
