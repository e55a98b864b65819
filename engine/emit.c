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

	if (!eng_sb_speaks(e)) {
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

	if (!eng_sb_speaks(e)) {
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

void eng_record_forget(struct eng_side *side, rwy_time now)
{
	const rwy_dur idle = rwy_since(side->last, now) / RWY_SEC;

	eng_record_side(side,
	    &(struct eng_record){
	        .kind = ENG_REC_FORGET, .value = idle < UINT32_MAX ? (uint32_t)idle : UINT32_MAX},
	    now);
}

static int put_ip(char *out, size_t size, const struct rwy_ip *a)
{
	int n = 0;

	if (rwy_ip_is4(a))
		return snprintf(out, size, " %u.%u.%u.%u", a->b[12], a->b[13], a->b[14], a->b[15]);
	for (unsigned i = 0; i < 16; i += 2)
		n += snprintf(out + n, size - (size_t)n, "%s%x", i ? ":" : " ", a->b[i] << 8 | a->b[i + 1]);
	return n;
}

void eng_log_failure(struct eng_side *side)
{
	const struct rwy_ip *local = side->is_requester ? &side->key.dst : &side->key.src;
	const struct rwy_ip *remote = side->is_requester ? &side->key.src : &side->key.dst;
	char more[224];
	int n;

	snprintf(more, sizeof(more), "%s\" more=\"roceway why", eng_side_cold_of(side)->error);
	n = (int)strlen(more);
	n += put_ip(more + n, sizeof(more) - (size_t)n, local);
	n += put_ip(more + n, sizeof(more) - (size_t)n, remote);
	snprintf(more + n, sizeof(more) - (size_t)n, " %u", side->key.qpn);
	eng_log_side(side->e, 1, side, more);
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
