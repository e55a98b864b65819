/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/bounds.h"

#include "roce/opcode.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void bound_tunnel(struct wan_cfg *w, uint32_t buffers, uint32_t cost)
{
	w->rx_cost = cost;
	if (cost > w->mtu[0])
		w->rx_bytes = w->rx_bytes / w->mtu[0] * cost;
	w->rx_window = (uint32_t)least(w->rx_window, buffers / 4);
	w->rx_bytes = least(w->rx_bytes, (uint64_t)buffers / 4 * cost);
}

uint64_t sim_custody_bound(uint32_t buffers, uint32_t cost)
{
	uint64_t most = (uint64_t)buffers / 2 * cost;

	return most - most / 5;
}

void sim_bound_memory(struct eng_cfg *c, uint32_t buffers, uint32_t cost)
{
	c->buf_cost = cost;
	c->custody_total = least(c->custody_total, sim_custody_bound(buffers, cost));
	c->custody_conn = least(c->custody_conn, c->custody_total);
	c->memory_total = c->custody_total + c->custody_total / 4;
	c->memory_conn = c->custody_conn + c->custody_conn / 4;
	c->read_cache_total = least(c->read_cache_total, (uint64_t)buffers / 8 * cost);
	c->read_cache_conn = least(c->read_cache_conn, c->read_cache_total);
	bound_tunnel(&c->tunnel[0].wan, buffers, cost);
}

bool sim_finds_buffer(const struct rwy_buf *b, bool lan, uint64_t held, uint32_t all)
{
	uint32_t bth = (b->data[0] & 15u) * 4 + 8;
	uint8_t op = lan && b->len > bth ? b->data[bth] : 0;
	bool frees = op == ROCE_OPCODE_CNP || op == ROCE_RC_ACK || op == ROCE_RC_ATOMIC_ACK;

	return held + (lan && !frees ? all / 16 : 0) < all;
}
