/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Best-effort packets: a bounded queue for sending; received ones are handed over at once. Large
 * packets are cut into fragments like data; an incomplete packet is dropped when its entry is
 * needed.
 */
#include "wan/tunnel.h"

static void drop_head(struct wan_tunnel *t)
{
	t->dgram_off = t->dgram_frag = 0;
	t->c.drop_dgram_queue++;
	rwy_buf_free(&t->cfg.bufs, rwy_bufq_pop(&t->dgrams));
}

void wan_dgram_send(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now)
{
	wan_stir(t);
	if (!b->len || b->len > UINT16_MAX) {
		t->c.drop_dgram_queue++;
		rwy_buf_free(&t->cfg.bufs, b);
		return;
	}
	if (t->dgrams.n >= WAN_DGRAMS_MAX)
		drop_head(t);
	rwy_bufq_push(&t->dgrams, b);
}

static bool put_fragment(struct wan_tunnel *t, struct wan_out *o, struct rwy_buf *b, rwy_time now)
{
	uint32_t fsize = t->mtu_min - WAN_PKT_HDR - WAN_DGRAM_LEN - WAN_DGRAM_ID_LEN - WAN_FRAG_LEN;
	uint32_t left = b->len - t->dgram_off;
	uint32_t len = left < fsize ? left : fsize;
	struct wan_f_data d = {.dgram = true,
	    .frag = true,
	    .kind = b->kind,
	    .pcp = wan_pcp_for(t, b),
	    .total = (uint16_t)b->len,
	    .fsize = (uint16_t)fsize};

	if (!t->dgram_off)
		t->dgram_id++;
	d.seq = t->dgram_id;
	d.index = t->dgram_frag;
	wan_data_attach(t, o, &d, b, t->dgram_off, len, now);
	t->dgram_off += len;
	t->dgram_frag++;
	return t->dgram_off == b->len;
}

bool wan_dgram_put(struct wan_tunnel *t, struct wan_out *o, rwy_time now)
{
	uint32_t room = t->mtu_min - WAN_PKT_HDR - WAN_DGRAM_LEN;
	uint32_t most = WAN_FRAGS_MAX * (room - WAN_DGRAM_ID_LEN - WAN_FRAG_LEN);
	struct rwy_buf *b;

	while ((b = t->dgrams.head) && b->len > most)
		drop_head(t);
	if (!b)
		return false;
	if (b->len <= room) {
		struct wan_f_data d = {.dgram = true, .kind = b->kind, .pcp = wan_pcp_for(t, b)};

		wan_data_attach(t, o, &d, b, 0, b->len, now);
	} else if (!put_fragment(t, o, b, now)) {
		return true;
	}
	rwy_bufq_pop(&t->dgrams);
	t->dgram_off = t->dgram_frag = 0;
	o->tx->own = true;
	t->c.dgram_sent++;
	return true;
}

static void deliver(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now)
{
	t->c.dgram_received++;
	b->next = NULL;
	if (t->cfg.ops->rx_dgram)
		t->cfg.ops->rx_dgram(t->cfg.ctx, b, now);
	else
		rwy_buf_free(&t->cfg.bufs, b);
}

static void add_fragment(struct wan_tunnel *t, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now)
{
	struct wan_part *at = &t->part[d->seq & (WAN_DGRAM_PARTS - 1)];

	if (at->b && at->id != d->seq) {
		rwy_buf_free(&t->cfg.bufs, at->b);
		at->b = NULL;
	}
	if (!at->b) {
		at->b = wan_reasm_new(t, d);
		at->id = d->seq;
	}
	if (!at->b) {
		t->c.drop_no_buffer++;
		return;
	}
	if (!wan_reasm_add(at->b, d, b->data, b->len)) {
		t->c.rx_duplicate++;
	} else if (wan_reasm_done(at->b)) {
		struct rwy_buf *whole = at->b;

		at->b = NULL;
		deliver(t, whole, now);
	}
}

void wan_dgram_rx(struct wan_tunnel *t, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now)
{
	if (!d->frag) {
		b->kind = d->kind & 15;
		b->pcp = d->pcp & 15;
		deliver(t, b, now);
		return;
	}
	add_fragment(t, d, b, now);
	rwy_buf_free(&t->cfg.bufs, b);
}

uint32_t wan_dgram_bufs(const struct wan_tunnel *t)
{
	uint32_t n = t->dgrams.n;

	for (unsigned i = 0; i < WAN_DGRAM_PARTS; i++)
		n += t->part[i].b != NULL;
	return n;
}

void wan_dgram_restart(struct wan_tunnel *t)
{
	t->dgram_off = t->dgram_frag = 0;
	for (unsigned i = 0; i < WAN_DGRAM_PARTS; i++) {
		if (t->part[i].b)
			rwy_buf_free(&t->cfg.bufs, t->part[i].b);
		t->part[i].b = NULL;
	}
}

void wan_dgram_fini(struct wan_tunnel *t)
{
	rwy_bufq_drain(&t->cfg.bufs, &t->dgrams);
	wan_dgram_restart(t);
}
