/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes against the WAN transport. An even first byte: frames and datagrams with a valid header
 * (index, packet number, checksum) for two live tunnels that talk to each other: nothing may crash,
 * the callbacks' order must hold, no buffer may be lost. Odd: a bad link only (drop, repeat, delay,
 * damage, restart): nothing may be lost either, and in the end everything arrives.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/tunnel.h"

#include "tests/lib/link.c"
#include "tests/lib/wan_link.c"
#include "tests/lib/wan_pool.c"
#include "tests/lib/wan_pair.c"
#include "tests/lib/wan_pipe.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void)0 : abort())

struct input {
	const uint8_t *p, *end;
};

static uint8_t u8(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

/* --- an engine that checks everything --------------------------------------------------------- */
struct fside;
struct frx {
	struct fside *side;
	struct wan_rxflow *f;
	struct frx *next;
	uint64_t seq;
	bool any;
};
struct ftx {
	struct fside *side;
	struct wan_txflow *f;
	uint64_t acked, delivered, sent;
	unsigned index;
};
struct fside {
	struct wan_tunnel *t;
	struct wan_pool *pool;
	struct frx *rx;
	struct ftx tx[8];
	struct fside *peer;
	struct wan_link_pkt *fly[64]; /* on the way to this side */
	unsigned flying;
	uint8_t mood; /* behaviour of the callbacks */
	uint64_t pn;
};

static void *f_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time now)
{
	struct fside *s = ctx;

	CHECK(len <= WAN_OPEN_MAX && (len == 0 || info));
	if ((s->mood & 7) == 7)
		return NULL;
	struct frx *r = calloc(1, sizeof(*r));

	r->side = s;
	r->f = f;
	r->next = s->rx;
	s->rx = r;
	return r;
}

static void forget(struct fside *s, struct frx *r)
{
	struct frx **at = &s->rx;

	while (*at != r) {
		CHECK(*at);
		at = &(*at)->next;
	}
	*at = r->next;
	free(r);
}

static void f_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
	struct fside *s = ctx;
	struct frx *r = user;
	uint64_t seq = b->seq;

	CHECK(!r->any || seq == r->seq + 1);
	CHECK(b->len > 0);
	volatile uint8_t sum = 0;

	for (uint32_t i = 0; i < b->len; i++)
		sum = (uint8_t)(sum + b->data[i]);
	r->any = true;
	r->seq = seq;
	rwy_buf_free(&s->pool->bufs, b);
	if (s->mood & 8)
		wan_rx_delivered(r->f, seq, now);
	if ((s->mood & 0x70) == 0x70) {
		wan_rx_reset(r->f, now);
		forget(s, r);
	}
}

static void f_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
	forget(ctx, user);
}

static void f_acked(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	struct ftx *x = user;

	CHECK(x->f && b->seq + 1 > x->acked && b->seq < x->sent);
	x->acked = b->seq + 1;
}

static void f_delivered(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	struct fside *s = ctx;
	struct ftx *x = user;

	CHECK(x->f && b->seq == x->delivered && b->seq < x->acked);
	x->delivered++;
	if (s->mood & 0x80 && x->delivered % 3 == 0) {
		wan_tx_abort(x->f, now);
		x->f = NULL;
	}
}

static size_t f_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time now)
{
	struct ftx *x = user;

	CHECK(x->f);
	x->acked = x->delivered;
	memset(info, 7, 5);
	return 5;
}

static void f_reset(void *ctx, void *user, rwy_time now)
{
	((struct ftx *)user)->f = NULL;
}

static void f_dgram(void *ctx, struct rwy_buf *b, rwy_time now)
{
	rwy_buf_free(&((struct fside *)ctx)->pool->bufs, b);
}

static const struct wan_ops fops = {
    .rx_open = f_open,
    .rx_data = f_data,
    .rx_close = f_close,
    .tx_acked = f_acked,
    .tx_delivered = f_delivered,
    .tx_reopen = f_reopen,
    .tx_reset = f_reset,
    .rx_dgram = f_dgram,
};

static void take(struct fside *s, const uint8_t *p, uint32_t len, uint8_t path, rwy_time now)
{
	struct rwy_buf *b = wan_pool_get(s->pool, len);

	if (len)
		memcpy(b->data, p, len);
	wan_recv(s->t, path, b, (uint8_t)(len & 3), now);
}

static void pump(struct fside *s, rwy_time now)
{
	struct wan_tx tx[16];

	wan_tick(s->t, now);
	unsigned n = wan_poll(s->t, tx, 16, now);

	for (unsigned i = 0; i < n; i++) {
		struct wan_tx *x = &tx[i];
		struct wan_link_pkt *k = malloc(sizeof(*k) + x->hdr_len + x->len);

		CHECK(x->hdr_len <= WAN_HDR_MAX && x->hdr_len + x->len <= 1472);
		k->len = x->hdr_len + x->len;
		k->path = x->path;
		memcpy(k->data, x->hdr, x->hdr_len);
		if (x->len)
			memcpy(k->data + x->hdr_len, x->buf->data + x->off, x->len);
		if (x->own)
			rwy_buf_free(&s->pool->bufs, x->buf);
		if (s->peer->flying < 64)
			s->peer->fly[s->peer->flying++] = k;
		else
			free(k);
	}
}

static void arrive_all(struct fside *s, rwy_time now)
{
	unsigned n = s->flying;

	s->flying = 0;
	for (unsigned i = 0; i < n; i++) {
		take(s, s->fly[i]->data, s->fly[i]->len, s->fly[i]->path, now);
		free(s->fly[i]);
	}
}

/* Sends frames from the input with a header as the peer would write it. */
static void wrapped(struct fside *s, struct input *in, uint8_t how, rwy_time now)
{
	uint8_t d[WAN_PKT_HDR + 255];
	uint32_t len = u8(in);
	struct wan_pkt h = {.version = WAN_VERSION,
	    .type = how & 8 ? WAN_PKT_HELLO : WAN_PKT_FRAMES,
	    .path = how & 1,
	    .index = s->t->index,
	    .pn = how & 2 ? s->peer->t->path[how & 1].next_pn++ : ++s->pn + ((uint64_t)how << 20)};

	wan_pkt_put(d, &h);
	for (uint32_t i = 0; i < len; i++)
		d[WAN_PKT_HDR + i] = u8(in);
	if (how & 8 && how & 4 &&
	    len >= WAN_HELLO_LEN) { /* a proof of freshness that the fuzzer could not guess */
		rwy_put64(d + WAN_PKT_HDR + 8, s->t->cfg.tunnel_id);
		rwy_put64(d + WAN_PKT_HDR + 32, s->t->hs.nonce);
		rwy_put64(d + WAN_PKT_HDR + 40, s->t->cfg.epoch);
	}
	wan_pkt_seal(d, WAN_PKT_HDR + len, NULL, 0);
	take(s, d, WAN_PKT_HDR + len, how & 1, now);
}

static void engine_acts(struct fside *s, struct input *in, rwy_time now)
{
	uint8_t what = u8(in), arg = u8(in);
	struct ftx *x = &s->tx[what & 7];
	struct rwy_buf *b;

	switch (what >> 3 & 7) {
	case 0:
		if (!x->f) {
			*x = (struct ftx){.side = s};
			CHECK(
			    wan_tx_open(s->t, &x->f, (const uint8_t *)"information", arg % 12, x, now) == 0);
		}
		break;
	case 1:
	case 2:
		if (x->f) {
			b = wan_pool_get(s->pool, 1 + arg * (what & 64 ? 40u : 1u));
			memset(b->data, arg, b->len);
			wan_tx_send(x->f, b, now);
			x->sent++;
		}
		break;
	case 3:
		if (x->f)
			wan_tx_rest(x->f);
		break;
	case 4:
		if (x->f)
			wan_tx_abort(x->f, now);
		x->f = NULL;
		break;
	case 5:
		for (struct frx *r = s->rx; r; r = r->next)
			if (r->any)
				wan_rx_delivered(r->f, r->seq, now);
		break;
	case 6:
		b = wan_pool_get(s->pool, 1 + arg * 20u);
		memset(b->data, arg, b->len);
		wan_dgram_send(s->t, b, now);
		break;
	default:
		if (what & 64)
			wan_claim(s->t, (enum wan_claim)(arg % (WAN_CLAIM_INHERIT + 1)), now);
		else
			s->mood = arg;
		break;
	}
}

static void damage(struct fside *s, struct input *in)
{
	uint8_t which = u8(in), at = u8(in), v = u8(in);

	if (!s->flying)
		return;
	struct wan_link_pkt *k = s->fly[which % s->flying];

	k->data[at % k->len] ^= v;
	if (v & 1) { /* with a valid header */
		memset(k->data + 16, 0, 4);
		wan_pkt_seal(k->data, k->len, NULL, 0);
	}
}

#define RX_BYTES 200000

static void both_turn(struct fside s[2], rwy_time now)
{
	pump(&s[0], now);
	pump(&s[1], now);
	arrive_all(&s[0], now);
	arrive_all(&s[1], now);
}

/* Both ends, with the handshake done. mode: bit 0 cc fixed, bits 1 and 2 paths known to lose. */
static void begin(struct fside s[2], struct wan_pool *pool, uint8_t mode, rwy_time *now)
{
	struct wan_cfg c;

	wan_pool_init(pool);
	wan_cfg_default(&c);
	c.ops = &fops;
	c.bufs = pool->bufs;
	c.tx_pkts_max = 256;
	c.rx_window = 64;
	c.rx_bytes = RX_BYTES;
	c.paths = 2;
	c.tunnel_id = 1;
	if (mode & 1)
		c.cc = &cc_fixed;
	for (unsigned i = 0; i < 2; i++) {
		s[i].pool = pool;
		s[i].peer = &s[!i];
		s[i].mood = 8;
		c.ctx = &s[i];
		c.epoch = i + 1;
		c.index = i + 100;
		CHECK(wan_new(&s[i].t, &c, *now) == 0);
	}
	for (unsigned i = 0; i < 4; i++, *now += RWY_MS)
		both_turn(s, *now);
	/* a path that is known to lose, so that there are repairs */
	for (unsigned i = 0; mode & 2 && i < 4; i++)
		s[i & 1].t->path[i >> 1].fec.est =
		    (struct wan_fec_est){.n = 1000, .lost = 50, .runs = mode & 4 ? 10 : 50};
}

static void end(struct fside s[2], struct wan_pool *pool)
{
	for (unsigned i = 0; i < 2; i++) {
		struct wan_stats st;

		wan_get_stats(s[i].t, &st);
		CHECK(st.rx_held_bytes <= RX_BYTES && s[i].t->tx_out <= st.tx_queued_bytes);
		for (unsigned k = 0; k < s[i].flying; k++)
			free(s[i].fly[k]);
		wan_free(s[i].t);
		CHECK(!s[i].rx);
	}
	CHECK(pool->live == 0);
}

static void attack(struct input *in)
{
	struct wan_pool pool;
	struct fside s[2];
	rwy_time now = RWY_SEC;

	memset(s, 0, sizeof(s));
	begin(s, &pool, u8(in), &now);
	while (in->p < in->end) {
		uint8_t op = u8(in);
		struct fside *side = &s[op >> 7];

		switch (op & 7) {
		case 0:
			now += (rwy_dur)u8(in) * 200 * RWY_US;
			break;
		case 1:
			wrapped(side, in, op >> 3 & 15, now);
			break;
		case 2:
		case 3:
			engine_acts(side, in, now);
			break;
		case 4:
			damage(side, in);
			break;
		case 5:
			arrive_all(side, now);
			break;
		case 6:
			pump(side, now);
			break;
		default:
			now += RWY_MS;
			both_turn(s, now);
			break;
		}
	}
	end(s, &pool);
}

/* --- a bad link ------------------------------------------------------------------------------- */
static void storm(struct input *in)
{
	struct wan_link_cfg l = {.delay = u8(in) % 30 * RWY_MS};
	struct wan_cfg c;
	struct wan_pair p;
	uint8_t shape = u8(in);

	wan_cfg_default(&c);
	c.tx_pkts_max = 1024;
	c.rx_window = 1u + (shape & 15);
	c.keepalive = 200 * RWY_MS;
	wan_pair_init(&p, &c, &l, &l, u8(in));
	wan_pair_streams(&p, 1 + (shape >> 6), 20, 12, shape & 16 ? 4000 : 200, 10);
	p.deliver_delay = shape & 32 ? 2 * RWY_MS : 0;
	while (in->p < in->end) {
		uint8_t op = u8(in), arg = u8(in);
		struct wan_link *link = &p.link[op >> 7];
		struct wan_link_pkt *k = link->due.n ? link->due.v[arg % link->due.n].what : NULL;

		switch (op & 7) {
		case 0: /* lost: its checksum is wrong */
		case 1:
			if (k)
				k->data[(op >> 3) % k->len] ^= (uint8_t)(arg | 1);
			break;
		case 2:
			if (k)
				arrive(link, copy(k), p.now + arg * RWY_MS); /* twice */
			break;
		case 3:
			link->cfg.loss_ppm = arg * 2000u;
			break;
		case 4:
			if (arg < 16)
				wan_pair_restart(&p, op >> 7);
			break;
		case 5:
			link->cfg.reorder_ppm = arg * 1000u;
			link->cfg.reorder_extra = op * RWY_MS;
			break;
		default:
			for (unsigned i = 0; i <= arg; i++)
				wan_pair_step(&p, RWY_NEVER - 1);
			break;
		}
	}
	for (int i = 0; i < 2; i++)
		p.link[i].cfg.loss_ppm = 0;
	CHECK(wan_pair_run(&p, p.now + 100 * RWY_SEC));
	CHECK(!p.errors);
	wan_pair_fini(&p);
	CHECK(p.pool.live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};

	if (!size || size > 4096)
		return 0;
	if (u8(&in) & 1)
		storm(&in);
	else
		attack(&in);
	return 0;
}
