/* SPDX-License-Identifier: Apache-2.0 */
/* Two sites with a pair of gateways each; see wan_sites.h. */
#include "tests/lib/wan_sites.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wan/stream.h"
#include "wan/wire/pkt.h"

#define KEPT_MAX 1000

/* --- engine ------------------------------------------------------------------------------------- */
static void *on_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time now)
{
	struct wan_gateway *g = ctx;

	g->rx = f;
	return g;
}

static void on_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
	struct wan_gateway *g = ctx;

	g->got++;
	if (g->delivers)
		wan_rx_delivered(g->rx, b->seq, now);
	rwy_buf_free(&g->s->pool.bufs, b);
}

static void on_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
	((struct wan_gateway *)ctx)->rx = NULL;
}

static void on_acked(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
}

static size_t on_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time now)
{
	info[0] = 1;
	return 1;
}

static void on_state(void *ctx, bool up, bool restarted, rwy_time now)
{
	struct wan_gateway *g = ctx;

	g->up = up;
	g->restarts += restarted;
}

static void on_claim(void *ctx, rwy_time now)
{
	struct wan_gateway *g = ctx;

	assert(wan_claim_granted(g->t));
	g->granted++;
}

static void on_replaced(void *ctx, rwy_time now)
{
	struct wan_gateway *g = ctx;

	assert(wan_claimed(g->t) == WAN_CLAIM_SILENT && !g->up);
	g->replaced++;
	if (g->claim_again)
		wan_claim(g->t, g->again, now);
}

static const struct wan_ops ops = {
    .rx_open = on_open,
    .rx_data = on_data,
    .rx_close = on_close,
    .tx_acked = on_acked,
    .tx_delivered = on_acked,
    .tx_reopen = on_reopen,
    .state = on_state,
    .claim = on_claim,
    .replaced = on_replaced,
};

/* --- gateways ----------------------------------------------------------------------------------- */
struct wan_sites *wan_sites_new(void)
{
	struct wan_sites *s = calloc(1, sizeof(*s));

	s->kept = calloc(KEPT_MAX, sizeof(*s->kept));
	s->fly = calloc(SITES_FLYING, sizeof(*s->fly));
	s->now = RWY_SEC;
	s->keep_of = -1;
	s->speaker[1] = 2;
	wan_pool_init(&s->pool);
	return s;
}

bool wan_sites_free(struct wan_sites *s)
{
	for (int i = 0; i < SITES_GATEWAYS; i++)
		wan_sites_kill(s, i);
	bool good = !s->pool.live;

	free(s->kept);
	free(s->fly);
	free(s);
	return good;
}

struct wan_sites *wan_sites_begin(enum wan_claim c)
{
	struct wan_sites *s = wan_sites_new();

	wan_sites_start(s, A, c);
	wan_sites_start(s, S, WAN_CLAIM_SILENT);
	wan_sites_start(s, W, WAN_CLAIM_NONE);
	if (!wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, A) && wan_sites_believes(s, W, A)))
		abort();
	return s;
}

bool wan_sites_granted(const struct wan_sites *s, int i)
{
	return s->g[i].t && wan_claim_granted(s->g[i].t);
}

bool wan_sites_believes(const struct wan_sites *s, int i, int peer)
{
	return s->g[i].up && wan_peer_epoch(s->g[i].t) == s->g[peer].cfg.epoch;
}

const struct wan_counters *wan_sites_counters(const struct wan_sites *s, int i)
{
	return wan_counters(s->g[i].t);
}

void wan_sites_start(struct wan_sites *s, int i, enum wan_claim c)
{
	struct wan_gateway *g = &s->g[i];

	wan_sites_kill(s, i);
	*g = (struct wan_gateway){.s = s, .delivers = true};
	wan_cfg_default(&g->cfg);
	g->cfg.ctx = g;
	g->cfg.ops = &ops;
	g->cfg.bufs = s->pool.bufs;
	g->cfg.tx_pkts_max = 256;
	g->cfg.keepalive = 300 * RWY_MS;
	g->cfg.epoch = 100 + ++s->epoch;
	g->cfg.index = 0x10000000u * (unsigned)(i + 1);
	g->cfg.tunnel_id = 77;
	g->cfg.aead = s->aead;
	if (wan_new(&g->t, &g->cfg, s->now) != 0)
		abort();
	wan_claim(g->t, c, s->now);
}

void wan_sites_kill(struct wan_sites *s, int i)
{
	wan_free(s->g[i].t);
	s->g[i].t = NULL;
	s->g[i].up = false;
}

static void draw_secrets(struct wan_sites *s, struct wan_secrets of[2])
{
	for (unsigned k = 0; k < AEAD_SECRET; k++) {
		of[0].tx.b[k] = of[1].rx.b[k] = (uint8_t)wan_rng_next(&s->rng);
		of[1].tx.b[k] = of[0].rx.b[k] = (uint8_t)wan_rng_next(&s->rng);
	}
}

void wan_sites_keys(struct wan_sites *s, int i, int j)
{
	struct wan_secrets of[2];

	do
		draw_secrets(s, of);
	while (
	    wan_keys_offer(s->g[i].t, &of[0], s->now) != 0 || wan_keys_offer(s->g[j].t, &of[1], s->now) != 0);
	wan_keys_use(s->g[i].t, s->now);
	wan_keys_use(s->g[j].t, s->now);
}

void wan_sites_reserve(struct wan_sites *s, int i, int j, bool kept)
{
	struct wan_secrets of[2];

	do
		draw_secrets(s, of);
	while (wan_keys_reserve(s->g[j].t, &of[1], s->now) != 0 ||
	       (kept && wan_keys_keep(s->g[i].t, &of[0], s->now) != 0));
	if (kept)
		wan_keys_kept(s->g[j].t);
}

void wan_sites_claim(struct wan_sites *s, int i, enum wan_claim c)
{
	wan_claim(s->g[i].t, c, s->now);
}

/* --- network ------------------------------------------------------------------------------------ */
static bool is_hello(const uint8_t *d)
{
	return (d[0] & 15) == WAN_PKT_HELLO;
}

static void arrive(struct wan_gateway *g, const struct wan_flying *f)
{
	if (!g->t)
		return;
	struct rwy_buf *b = wan_pool_get(&g->s->pool, f->len);

	memcpy(b->data, f->d, f->len);
	if (f->stream)
		wan_recv_stream(g->t, b, g->s->now);
	else
		wan_recv(g->t, 0, b, 0, g->s->now);
}

static void deliver(struct wan_sites *s, const struct wan_flying *f)
{
	int first = f->from < 2 ? 2 : 0, site = first / 2;

	if (f->stream) {
		arrive(&s->g[first], f);
		return;
	}
	for (int i = first; i < first + 2; i++)
		if (s->flood || s->speaker[site] == i)
			arrive(&s->g[i], f);
}

/* An older gateway writes none of the new bits, and reads none: so both are as if it did not. */
static void make_old(struct wan_flying *f)
{
	uint8_t *hello = f->d + WAN_PKT_HDR;

	hello[0] &= 15;
	hello[1] = 0;
	memset(f->d + 16, 0, 4);
	wan_pkt_seal(f->d, f->len, NULL, 0);
}

static void under_way(struct wan_sites *s, struct wan_flying *f)
{
	f->at = s->now + SITES_DELAY + (s->jitter && !f->stream ? wan_rng_next(&s->rng) % s->jitter : 0);
	assert(s->n < SITES_FLYING);
	if (!s->cut && !wan_rng_ppm(&s->rng, s->loss_ppm))
		s->fly[s->n++] = *f;
}

static void send_one(struct wan_sites *s, int i, const struct wan_tx *x)
{
	struct wan_flying of = {.from = i}, *f = &of;
	struct wan_gateway *g = &s->g[i];

	f->stream = x->stream;
	f->len = wan_tx_size(x);
	assert(f->len <= sizeof(f->d));
	wan_tx_write(x, f->d);
	s->speaker[i / 2] = x->stream ? s->speaker[i / 2] : i;
	if (is_hello(f->d)) {
		g->hellos++;
		g->asked += f->d[WAN_PKT_HDR] & WAN_HELLO_WANT;
		if (s->keep_of == i && s->kept_n < KEPT_MAX)
			s->kept[s->kept_n++] = *f;
		if (s->old)
			make_old(f);
		if (++s->hellos == s->lose)
			return;
	} else {
		g->frames++;
	}
	under_way(s, f);
	if (wan_rng_ppm(&s->rng, s->dup_ppm))
		under_way(s, f);
}

static void poll(struct wan_sites *s, int i)
{
	struct wan_gateway *g = &s->g[i];
	struct wan_tx tx[32];
	unsigned n;

	if (wan_stream_on(g->t))
		wan_stream_room(g->t, 1000, 1 << 20);
	do {
		n = wan_poll(g->t, tx, 32, s->now);
		for (unsigned k = 0; k < n; k++) {
			send_one(s, i, &tx[k]);
			if (tx[k].own)
				rwy_buf_free(&s->pool.bufs, tx[k].buf);
		}
	} while (n == 32);
}

/* The first of those that arrive next; -1: nothing is under way. */
static int earliest(const struct wan_sites *s)
{
	int first = -1;

	for (unsigned i = 0; i < s->n; i++)
		if (first < 0 || s->fly[i].at < s->fly[first].at)
			first = (int)i;
	return first;
}

bool wan_sites_step(struct wan_sites *s, rwy_time until)
{
	rwy_time next = RWY_NEVER;

	int first = earliest(s);

	if (first >= 0 && s->fly[first].at <= s->now) {
		struct wan_flying f = s->fly[first];

		s->n--;
		memmove(&s->fly[first], &s->fly[first + 1], (s->n - (unsigned)first) * sizeof(f));
		deliver(s, &f);
	}
	for (int i = 0; i < SITES_GATEWAYS; i++) {
		if (!s->g[i].t)
			continue;
		wan_tick(s->g[i].t, s->now);
		poll(s, i);
		next = rwy_time_min(next, wan_next(s->g[i].t));
	}
	if (s->n)
		next = rwy_time_min(next, s->fly[earliest(s)].at);
	next = rwy_time_max(next, s->now + RWY_US);
	if (next > until) {
		s->now = until;
		return false;
	}
	s->now = next;
	return true;
}

void wan_sites_run(struct wan_sites *s, rwy_dur t)
{
	rwy_time until = s->now + t;

	while (wan_sites_step(s, until))
		;
}

void wan_sites_replay(struct wan_sites *s, int to)
{
	for (unsigned i = 0; i < s->kept_n; i++) {
		arrive(&s->g[to], &s->kept[i]);
		wan_sites_run(s, RWY_MS);
	}
}
