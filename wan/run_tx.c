/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: small packets of one flow that wait, together in one datagram (RUN, docs/wire-format.md). A
 * datagram costs the same work at both ends whatever it carries, so they share it. They are copied:
 * a datagram refers to one buffer, and to describe a chain of small ones costs more than to copy
 * them. data_new.c says which packets go together, flow_tx.c what becomes of them.
 */
#include <string.h>

#include "wan/order.h"

bool wan_run_may(const struct wan_txflow *f, const struct rwy_buf *b)
{
	return b->len <= WAN_RUN_PACKET && f->t->peer.run && f->open_acked &&
	       !wan_after_pending(f->t, &b->after);
}

static bool goes_with(const struct rwy_buf *a, const struct rwy_buf *b)
{
	return a->kind == b->kind && a->pcp == b->pcp;
}

struct rwy_buf *wan_run_shared(struct wan_tunnel *t, const struct rwy_buf *first, uint32_t room)
{
	struct rwy_buf *b = rwy_buf_alloc(&t->cfg.bufs, WAN_REASM_ROOM, room);

	if (!b)
		return NULL;
	memcpy(b->data, first->data, first->len);
	b->len = first->len;
	b->kind = first->kind;
	b->pcp = first->pcp;
	b->opcode = first->opcode;
	return b;
}

bool wan_run_begin(
    struct wan_run *r, const struct wan_txflow *f, const struct rwy_buf *first, const struct rwy_buf *second)
{
	struct wan_tunnel *t = f->t;
	/* Any datagram with a run can be protected by repairs. */
	uint32_t room = t->mtu_min - WAN_PKT_HDR - WAN_RUN_LEN - WAN_FEC_ROOM;

	if (!goes_with(first, second) || first->len + WAN_RUN_NEXT + second->len > room)
		return false;
	r->b = wan_run_shared(t, first, room);
	if (!r->b)
		return false;
	r->left = room - first->len;
	r->first = (uint16_t)first->len;
	r->n = 1;
	return true;
}

bool wan_run_fits(const struct wan_run *r, const struct rwy_buf *b)
{
	return WAN_RUN_NEXT + b->len <= r->left && goes_with(r->b, b) && r->n < WAN_RUN_MAX;
}

void wan_run_add(struct wan_run *r, const struct rwy_buf *b)
{
	uint8_t *at = r->b->data + r->b->len;

	rwy_put16(at, (uint16_t)b->len);
	memcpy(at + WAN_RUN_NEXT, b->data, b->len);
	r->b->len += WAN_RUN_NEXT + b->len;
	r->b->opcode = b->opcode; /* FEC asks whether the last packet ends a message */
	r->left -= WAN_RUN_NEXT + b->len;
	r->n++;
}

bool wan_run_again(const struct wan_txflow *f, struct wan_run *r, uint64_t seq, uint32_t n)
{
	if (!wan_run_begin(r, f, f->ring[seq & f->mask], f->ring[(seq + 1) & f->mask]))
		return false;
	for (uint64_t s = seq + 1; s < seq + n; s++)
		wan_run_add(r, f->ring[s & f->mask]);
	return true;
}
