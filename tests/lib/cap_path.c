/* SPDX-License-Identifier: Apache-2.0 */
/* Links and gateways between the hosts of a capture. */
#include <stdio.h>
#include <string.h>

#include "cc/cc.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "tests/lib/cap_world_int.h"
#include "tests/lib/heap_buf.h"

#define HEADROOM  320
#define LAN_DELAY (5 * RWY_US)
#define FRAMING   38 /* Ethernet, preamble, FCS and gap */
#define WAN_FRAME (FRAMING + 28)
#define WAN_MTU   1472
#define ECN_MASK  3u

static void ecn_set(uint8_t *ip, uint8_t ecn)
{
	rwy_ip4_set16(ip, 0, (uint16_t)((rwy_get16(ip) & ~ECN_MASK) | ecn));
}

/* Puts b on a link. host: it is a host's packet, whose ECN bits the link sets in it. */
static void link_put(struct cap_world *w, struct link *l, uint32_t where, struct rwy_buf *b, bool host)
{
	struct link_fate f = {.ecn = host ? b->data[1] & ECN_MASK : 0};

	link_send(l, b->len, &w->rng, &f, w->now);
	for (unsigned i = 0; i < f.copies; i++) {
		struct rwy_buf *c = heap_buf_alloc(&w->bufs, HEADROOM, b->len);

		memcpy(c->data, b->data, b->len);
		if (host)
			ecn_set(c->data, f.ecn);
		link_flip(&f.flip[i], c->data);
		due_push(&w->due, &(struct due){f.at[i], w->order++, c, where});
	}
	heap_buf_free(&w->bufs, b);
}

/* What never arrives at host B, whatever the link is like. */
static bool vanishes(struct cap_world *w, const uint8_t *ip, uint32_t len)
{
	const struct cap_scene *s = w->s;
	uint8_t copy[RC_PKT_MAX];
	struct roce_pkt pkt;

	if (s->mtu_most && len > s->mtu_most)
		return true;
	if (!s->lose_ends)
		return false;
	memcpy(copy, ip, len);
	return rc_pkt_read(copy, len, &pkt) && pkt.info->transport == ROCE_RC &&
	       roce_op_is_request(pkt.info) && roce_op_ends(pkt.info) && ++w->ends % s->lose_ends == 0;
}

void cap_path_send(struct cap_world *w, unsigned site, const uint8_t *ip, uint32_t len)
{
	struct cap_site *from = &w->site[site];
	struct rwy_buf *b;

	if (!w->s->gateways && site == CAP_AT_A && vanishes(w, ip, len))
		return;
	b = heap_buf_alloc(&w->bufs, HEADROOM, len);
	memcpy(b->data, ip, len);
	if (w->s->gateways)
		link_put(w, &from->up_lan, CAP_TO_GATEWAY + site, b, true);
	else
		link_put(w, &from->out, CAP_TO_HOST + !site, b, true);
}

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct cap_site *s = ctx;
	struct cap_world *w = s->w;
	const uint8_t *ip = tx->buf ? tx->buf->data : tx->bytes;

	if (s->idx == CAP_AT_B)
		w->capture(w, CAP_AT_GATEWAY_B, ip, tx->len);
	if (s->idx == CAP_AT_A || !vanishes(w, ip, tx->len)) {
		struct rwy_buf *b = heap_buf_alloc(&w->bufs, HEADROOM, tx->len);

		memcpy(b->data, ip, tx->len);
		link_put(w, &s->down_lan, CAP_TO_HOST + s->idx, b, true);
	}
	if (tx->buf && tx->own)
		heap_buf_free(&w->bufs, tx->buf);
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct cap_site *s = ctx;
	struct cap_world *w = s->w;
	struct rwy_buf *b = heap_buf_alloc(&w->bufs, HEADROOM, wan_tx_size(tx));

	wan_tx_write(tx, b->data);
	if (tx->buf && tx->own)
		heap_buf_free(&w->bufs, tx->buf);
	link_put(w, &s->out, CAP_TO_PEER + !s->idx, b, false);
}

static void tunnel_state(void *ctx, unsigned tunnel, bool up, rwy_time now)
{
	((struct cap_site *)ctx)->up = up;
}

static const struct eng_ops ops = {.lan_tx = lan_tx, .wan_tx = wan_tx, .tunnel_state = tunnel_state};

static void gateway_start(struct cap_site *s)
{
	struct eng_cfg *c = calloc(1, sizeof(*c));
	const struct cap_scene *k = s->w->s;
	struct wan_cfg *wan;

	if (!c)
		abort();
	eng_cfg_default(c);
	wan = &c->tunnel[0].wan;
	c->tunnels = c->prefixes = 1;
	c->prefix[0] =
	    (struct eng_prefix){.addr = rwy_ip_from4(s->w->conn[0].host[!s->idx].cfg.ip), .len = 128};
	c->ack_mode = k->ack_mode;
	c->seed = s->idx + 1;
	c->conns_max = c->half_open_max = 64;
	if (k->custody)
		c->custody_conn = k->custody;
	snprintf(c->tunnel[0].name, ENG_NAME_MAX, "wan");
	wan_cfg_default(wan);
	wan->paths = 1;
	wan->mtu[0] = wan->cc_cfg.mtu = WAN_MTU;
	wan->cc = cc_find("auto");
	wan->cc_cfg.rate_Bps = s->out.cfg.rate_Bps ? s->out.cfg.rate_Bps : 1250000000;
	wan->tunnel_id = 7;
	s->w->begin = s->w->now + c->probe_timeout;
	if (eng_new(&s->e, c, &ops, s, (struct rwy_bufs){&heap_buf_ops, &s->w->bufs}, s->w->now) != 0)
		abort();
	free(c);
}

static void link_init(struct link *l, const struct link_cfg *cfg, uint32_t overhead)
{
	*l = (struct link){.cfg = *cfg};
	l->cfg.overhead = overhead;
	if (!l->cfg.delay)
		l->cfg.delay = LAN_DELAY;
}

void cap_path_init(struct cap_world *w)
{
	const struct cap_scene *s = w->s;

	for (unsigned i = 0; i < 2; i++) {
		struct cap_site *t = &w->site[i];

		t->w = w;
		t->idx = i;
		link_init(&t->out, i == CAP_AT_A ? &s->to_b : &s->to_a, s->gateways ? WAN_FRAME : FRAMING);
		link_init(&t->up_lan, i == CAP_AT_A ? &s->lan_a : &s->lan_b, FRAMING);
		t->down_lan = t->up_lan;
		if (s->gateways)
			gateway_start(t);
	}
}

void cap_path_free(struct cap_world *w)
{
	for (unsigned i = 0; i < 2; i++)
		eng_free(w->site[i].e);
}

void cap_path_gateway(struct cap_world *w, unsigned site, bool lan, struct rwy_buf *b)
{
	struct eng *e = w->site[site].e;

	if (lan && site == CAP_AT_B)
		w->capture(w, CAP_AT_GATEWAY_B, b->data, b->len);
	if (lan)
		eng_tenant_rx(e, &b, &(uint16_t){0}, 1, w->now);
	else
		eng_wan_rx(e, 0, 0, b, 0, w->now);
	eng_poll(e, w->now);
}

void cap_path_poll(struct cap_world *w)
{
	for (unsigned i = 0; i < 2; i++)
		if (w->site[i].e && eng_next(w->site[i].e) <= w->now)
			eng_poll(w->site[i].e, w->now);
}

rwy_time cap_path_next(const struct cap_world *w)
{
	rwy_time t = due_next(&w->due);

	/* A gateway looks at its clock once in a microsecond at best. */
	for (unsigned i = 0; i < 2; i++)
		if (w->site[i].e)
			t = rwy_time_min(t, rwy_time_max(eng_next(w->site[i].e), w->now + RWY_US));
	return t;
}
