/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles: small packets of several flows that wait, together in one datagram (BUNDLE,
 * docs/wire-format.md), for the reason and in the way of runs (run_tx.c). They are of one class and
 * of one IP traffic class, for a datagram has one DSCP. A packet that was lost in a bundle goes
 * again in a datagram of its own.
 */
#include <string.h>

#include "wan/data.h"

/* Bytes of a packet that tell its IP version and its DSCP, and where they are. */
static uint32_t dscp_at(const struct rwy_buf *b)
{
	return b->kind == RWY_BUF_TENANT ? RWY_BUF_VNI : 0;
}

static bool goes_with(const struct rwy_buf *a, const struct rwy_buf *b)
{
	const uint32_t at = dscp_at(a);

	return a->kind == b->kind && a->pcp == b->pcp && a->len >= at + 2 && b->len >= at + 2 &&
	       !memcmp(a->data + at, b->data + at, 2);
}

bool wan_bundle_may(const struct wan_txflow *f, const struct rwy_buf *b)
{
	return f->t->peer.bundle && wan_run_may(f, b);
}

static struct wan_f_data frame(const struct wan_txflow *f, const struct rwy_buf *b)
{
	return (struct wan_f_data){
	    .kind = b->kind, .pcp = wan_pcp_for(f->t, b), .flow = f->id, .seq = (uint32_t)f->next_send};
}

bool wan_bundle_begin(struct wan_bundle *u, const struct wan_path *p, const struct wan_txflow *f,
    const struct rwy_buf *b, const struct rwy_buf *second)
{
	struct wan_tunnel *t = f->t;
	/* Any datagram with a bundle can be protected by repairs. */
	const uint32_t room = t->mtu_min - WAN_PKT_HDR - WAN_BUNDLE_LEN - WAN_FEC_ROOM;

	if (b->len + WAN_BUNDLE_ENTRY + second->len > room || !goes_with(b, second) ||
	    p->next_pn - p->tail > p->mask)
		return false;
	*u = (struct wan_bundle){.class = f->class, .left = room - b->len, .first = frame(f, b)};
	u->b = wan_run_shared(t, b, room);
	if (!u->b)
		return false;
	u->first.bundle = true;
	u->first.run = 1;
	u->first.first = (uint16_t)b->len;
	return true;
}

bool wan_bundle_fits(const struct wan_bundle *u, const struct wan_txflow *f, const struct rwy_buf *b)
{
	return WAN_BUNDLE_ENTRY + b->len <= u->left && f->class == u->class && goes_with(u->b, b);
}

void wan_bundle_add(
    struct wan_bundle *u, const struct wan_path *p, const struct wan_txflow *f, const struct rwy_buf *b)
{
	const struct wan_f_data d = frame(f, b);
	struct wan_bundled *x = &p->bundled[p->next_pn & p->mask];

	memcpy(wan_f_bundle_put(u->b->data + u->b->len, &d, b->len), b->data, b->len);
	u->b->len += WAN_BUNDLE_ENTRY + b->len;
	u->b->opcode = b->opcode; /* FEC asks whether the last packet ends a message */
	u->left -= WAN_BUNDLE_ENTRY + b->len;
	x->v[u->first.run - 1].flow = d.flow;
	x->v[u->first.run - 1].seq = d.seq;
	u->first.run++;
}

void wan_bundle_put(const struct wan_bundle *u, struct wan_out *o, struct wan_tunnel *t, rwy_time now)
{
	wan_sched_tell(u->class, o->tx);
	o->s.flags |= WAN_S_DATA | WAN_S_WHOLE;
	o->s.flow = u->first.flow;
	o->s.seq = u->first.seq;
	o->s.bundled = (uint8_t)(u->first.run - 1);
	wan_data_attach(t, o, &u->first, u->b, 0, u->b->len, now);
	o->tx->own = true;
	t->c.tx_bundles++;
}
