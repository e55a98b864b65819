/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway of the simulation: an engine, its buffers, and what it sends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rwy/hash.h"
#include "tools/replay/sim_int.h"

#define CONNS_MAX 65536
#define TUNNEL_ID 7

static struct rwy_buf *buf_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct rp_site *s = ctx;
	struct rwy_buf *b;

	s->bufs++;
	if (headroom <= RP_HEADROOM)
		return rp_buf_new(len);
	b = rp_buf_new(len + headroom);
	b->data += headroom;
	b->headroom = (uint16_t)(b->headroom + headroom);
	b->len = len;
	return b;
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	struct rp_site *s = ctx;

	s->bufs--;
	free(b);
}

static const struct rwy_buf_ops buf_ops = {buf_alloc, buf_free};

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct rp_site *s = ctx;
	struct rwy_buf *b = rp_buf_new(tx->len);

	memcpy(b->data, tx->buf ? tx->buf->data : tx->bytes, tx->len);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
	rp_sim_send(s->sim, &s->down_link, RP_TO_HOST + s->idx, WANEM_ETH_HLEN, b);
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct rp_site *s = ctx;
	struct rwy_buf *b = rp_buf_new(wan_tx_size(tx));

	wan_tx_write(tx, b->data);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
	rp_sim_send(s->sim, &s->wan, RP_TO_PEER + !s->idx, RP_WAN_HEAD, b);
}

static void tunnel_state(void *ctx, unsigned tunnel, bool up, rwy_time now)
{
	struct rp_site *s = ctx;

	s->up = up;
}

static const struct eng_ops eng_ops = {.lan_tx = lan_tx, .wan_tx = wan_tx, .tunnel_state = tunnel_state};

static void configure(struct eng_cfg *c, const struct rp_site *s, const struct rwy_ip *behind, uint32_t n)
{
	const struct rp_sim_cfg *k = &s->sim->cfg;
	struct wan_cfg *wan = &c->tunnel[0].wan;

	eng_cfg_default(c);
	c->tunnels = 1;
	c->prefixes = n;
	for (uint32_t i = 0; i < n; i++)
		c->prefix[i] = (struct eng_prefix){.addr = behind[i], .len = 128};
	c->ack_mode = k->ack_mode;
	c->conns_max = c->half_open_max = CONNS_MAX;
	c->seed = rwy_mix64(k->seed + s->idx + 1);
	snprintf(c->tunnel[0].name, ENG_NAME_MAX, "wan");
	wan_cfg_default(wan);
	wan->paths = 1;
	wan->mtu[0] = k->wan_mtu;
	wan->cc = cc_find(k->cc);
	wan->cc_cfg.rate_Bps = k->wan_Bps;
	wan->cc_cfg.mtu = k->wan_mtu;
	wan->tunnel_id = TUNNEL_ID;
}

void rp_site_start(struct rp_site *s, const struct rwy_ip *behind, uint32_t n)
{
	struct eng_cfg *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	configure(c, s, behind, n);
	s->sim->quiet_until = s->sim->now + c->probe_timeout;
	if (eng_new(&s->e, c, &eng_ops, s, (struct rwy_bufs){&buf_ops, s}, s->sim->now) != 0)
		abort();
	s->next = eng_next(s->e);
	free(c);
}

void rp_site_stop(struct rp_site *s)
{
	if (s->e)
		eng_free(s->e);
	s->e = NULL;
	wanem_link_free(&s->wan);
	wanem_link_free(&s->up_link);
	wanem_link_free(&s->down_link);
}

void rp_site_poll(struct rp_site *s)
{
	eng_poll(s->e, s->sim->now);
	s->next = eng_next(s->e);
}

void rp_site_recv(struct rp_site *s, bool lan, struct rwy_buf *b)
{
	s->bufs++;
	if (lan)
		eng_tenant_rx(s->e, &b, &(uint16_t){0}, 1, s->sim->now);
	else
		eng_wan_rx(s->e, 0, 0, b, 0, s->sim->now);
	rp_site_poll(s);
}
