/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of the engine: packets to the LAN, freed buffers, work for the end of the turn, log lines.
 */
#include <stdarg.h>
#include <stdio.h>

#include "engine/emit.h"
#include "engine/standby.h"

void eng_drop(struct eng *e, struct rwy_buf *b, uint64_t *counter)
{
	(*counter)++;
	rwy_buf_free(&e->bufs, b);
}

struct rwy_buf *eng_ctrl_buf(struct eng *e, const struct eng_ctrl *c)
{
	struct rwy_buf *b = rwy_buf_alloc(&e->bufs, WAN_HDR_MAX, ENG_CTRL_LEN);

	if (!b) {
		e->c.drop_no_buffer++;
		return NULL;
	}
	b->kind = RWY_BUF_CTRL;
	b->len = (uint32_t)eng_ctrl_encode(b->data, c);
	return b;
}

void eng_dirty(struct eng_side *side)
{
	struct eng *e = side->e;

	if (side->dirty)
		return;
	side->dirty = true;
	side->dirty_next = NULL;
	if (e->dirty_tail)
		e->dirty_tail->dirty_next = side;
	else
		e->dirty_head = side;
	e->dirty_tail = side;
}

void eng_lan_send(struct eng *e, uint32_t tenant, struct rwy_buf *b, bool own, const struct rwy_ip *dst,
    struct eng_nexthop *nh)
{
	struct eng_lan_tx tx = {
	    .tenant = tenant, .buf = b, .len = b->len, .own = own, .pcp = b->pcp, .dst = dst, .nh = nh};

	if (!eng_sb_serves(e)) {
		e->c.drop_standby++;
		if (own)
			rwy_buf_free(&e->bufs, b);
		return;
	}
	e->c.lan_tx_packets++;
	e->c.lan_tx_bytes += b->len;
	e->ops->lan_tx(e->ctx, &tx);
}

void eng_lan_made(struct eng *e, uint32_t tenant, const uint8_t *bytes, uint32_t len,
    const struct rwy_ip *dst, struct eng_nexthop *nh)
{
	struct eng_lan_tx tx = {
	    .tenant = tenant, .bytes = bytes, .len = len, .pcp = nh ? nh->pcp : 0, .dst = dst, .nh = nh};

	if (!eng_sb_serves(e)) {
		e->c.drop_standby++;
		return;
	}
	e->c.lan_tx_packets++;
	e->c.lan_tx_bytes += len;
	e->ops->lan_tx(e->ctx, &tx);
}

void eng_log(struct eng *e, int level, const char *fmt, ...)
{
	char msg[256];
	va_list ap;

	if (!e->ops->log)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	e->ops->log(e->ctx, level, msg);
}

void eng_log_side(struct eng *e, int level, const struct eng_side *side, const char *what)
{
	const uint8_t *s = side->key.src.b, *d = side->key.dst.b;

	if (rwy_ip_is4(&side->key.src))
		eng_log(e, level, "flow=%u.%u.%u.%u->%u.%u.%u.%u qpn=%u side=%s event=\"%s\"", s[12], s[13],
		    s[14], s[15], d[12], d[13], d[14], d[15], side->key.qpn,
		    side->is_requester ? "requester" : "responder", what);
	else
		eng_log(e, level, "flow=..%02x%02x->..%02x%02x qpn=%u side=%s event=\"%s\"", s[14], s[15],
		    d[14], d[15], side->key.qpn, side->is_requester ? "requester" : "responder", what);
}
