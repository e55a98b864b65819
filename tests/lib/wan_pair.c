/* SPDX-License-Identifier: Apache-2.0 */
/* Two tunnels and their small engines; see wan_pair.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rwy/endian.h"
#include "tests/lib/wan_pair.h"

/* --- numbered buffers --------------------------------------------------------------------------- */
static uint32_t length_of(const struct wan_stream *s, uint64_t n)
{
	uint64_t x = n * 0x9e3779b9 + s->id;

	if (s->len_min == s->len_max)
		return s->len_min;
	return s->len_min + (uint32_t)(wan_rng_next(&x) % (s->len_max - s->len_min + 1));
}

static void fill(const struct wan_stream *s, uint64_t n, uint8_t *p, uint32_t len)
{
	uint8_t head[12];
	uint8_t x = (uint8_t)(s->id * 31 + n * 7 + 1);

	memset(p, x, len);
	rwy_put32(head, s->id);
	rwy_put64(head + 4, n);
	memcpy(p, head, len < 12 ? len : 12);
	p[len - 1] = len > 12 ? (uint8_t)~x : p[len - 1];
}

/* Compares the bytes with those of fill(), in place: the first of the equal ones, and each with the
 * next. */
static bool right(const struct wan_stream *s, uint64_t n, const uint8_t *p, uint32_t len)
{
	uint8_t want[16];

	if (len != length_of(s, n))
		return false;
	if (len <= sizeof(want)) {
		fill(s, n, want, len);
		return memcmp(want, p, len) == 0;
	}
	fill(s, n, want, sizeof(want));
	return !memcmp(want, p, sizeof(want) - 1) && !memcmp(p + 12, p + 13, len - 14) &&
	       p[len - 1] == want[sizeof(want) - 1];
}

static void error(struct wan_pair *p, const char *what, const struct wan_stream *s, uint64_t n)
{
	if (p->errors++ < 10)
		fprintf(stderr, "t=%.3f ms stream %u number %llu: %s\n", (double)p->now / 1e6, s ? s->id : 0,
		    (unsigned long long)n, what);
}

/* --- the engine at an end ----------------------------------------------------------------------- */
static void *on_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time now)
{
	struct wan_end *e = ctx;
	struct wan_pair *p = e->pair;

	if (e->refuse)
		return NULL;
	if (len != 12 || rwy_get32(info) >= p->streams) {
		error(p, "open information", NULL, len);
		return NULL;
	}
	struct wan_stream *s = &p->stream[rwy_get32(info)];

	if (s->to != e || s->rx)
		error(p, "opened at the wrong end or twice", s, 0);
	s->rx = f;
	s->life++;
	s->rx_first = rwy_get64(info + 4);
	s->rx_closed = false;
	return s;
}

static void report_later(struct wan_end *e, const struct wan_due *d)
{
	if (e->due_n == e->due_cap) {
		uint32_t cap = e->due_cap ? e->due_cap * 2 : 1024;
		struct wan_due *v = malloc(cap * sizeof(*v));

		for (uint32_t i = 0; i < e->due_n; i++)
			v[i] = e->due[(e->due_head + i) & (e->due_cap - 1)];
		free(e->due);
		e->due = v;
		e->due_cap = cap;
		e->due_head = 0;
	}
	e->due[(e->due_head + e->due_n++) & (e->due_cap - 1)] = *d;
}

static void on_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
	struct wan_end *e = ctx;
	struct wan_stream *s = user;
	struct wan_pair *p = e->pair;
	uint64_t n = s->rx_first + b->seq;

	if (!right(s, n, b->data, b->len))
		error(p, "wrong bytes", s, n);
	if (n > s->got)
		error(p, "out of order", s, n);
	if (n == s->got) {
		s->got++;
		s->bytes += b->len;
		if (s->got == s->total)
			s->done_at = now;
	} /* below: the host has it, and it is sent again because a gateway forgot it */
	if (e->stall || p->deliver_delay)
		report_later(e, &(struct wan_due){now + p->deliver_delay, s, s->life, b->seq});
	else
		wan_rx_delivered(s->rx, b->seq, now);
	rwy_buf_free(&p->pool.bufs, b);
}

static void on_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
	struct wan_end *e = ctx;
	struct wan_stream *s = user;

	s->rx = NULL;
	s->rx_closed = true;
	e->closes++;
	if (reason == WAN_CLOSE_BY_SENDER && s->close_after && s->got != s->total)
		error(e->pair, "closed before its end", s, s->got);
}

static void on_acked(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	struct wan_stream *s = user;

	s->acked = b->seq + 1;
}

/* Buffers carry their number, so the order of custody can be checked whatever the flow's sequence
 * numbers are. */
static void on_delivered(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	struct wan_end *e = ctx;
	struct wan_stream *s = user;

	if (b->seq + 1 > s->acked)
		error(e->pair, "delivered before received", s, b->seq);
	if (b->psn != (uint32_t)s->delivered)
		error(e->pair, "delivered out of order", s, b->psn);
	if (s->delivered >= s->got)
		error(e->pair, "delivered what the host does not have", s, b->psn);
	s->delivered++;
}

static size_t open_info(const struct wan_stream *s, uint64_t first, uint8_t *info)
{
	rwy_put32(info, s->id);
	rwy_put64(info + 4, first);
	return 12;
}

static size_t on_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time now)
{
	struct wan_stream *s = user;

	return open_info(s, s->tx_first, info);
}

static void on_reset(void *ctx, void *user, rwy_time now)
{
	struct wan_end *e = ctx;
	struct wan_stream *s = user;

	e->resets++;
	s->tx = NULL;
	s->tx_closed = true;
}

static void on_dgram(void *ctx, struct rwy_buf *b, rwy_time now)
{
	struct wan_end *e = ctx;

	e->dgrams_got++;
	for (uint32_t i = 0; i < b->len; i++)
		if (b->data[i] != (uint8_t)(b->len + i)) {
			error(e->pair, "datagram bytes", NULL, b->len);
			break;
		}
	rwy_buf_free(&e->pair->pool.bufs, b);
}

static void on_state(void *ctx, bool up, bool restarted, rwy_time now)
{
	struct wan_end *e = ctx;

	e->up = up;
	e->restarts_seen += restarted;
}

static void on_congested(void *ctx, uint8_t path, const struct wan_congest_state *s, rwy_time now)
{
	struct wan_end *e = ctx;

	e->congest = *s;
	e->congest_changes++;
}

#define DATAGRAM_MAX 10000

static const struct wan_ops ops = {
    .rx_open = on_open,
    .rx_data = on_data,
    .rx_close = on_close,
    .tx_acked = on_acked,
    .tx_delivered = on_delivered,
    .tx_reopen = on_reopen,
    .tx_reset = on_reset,
    .rx_dgram = on_dgram,
    .congested = on_congested,
    .state = on_state,
};

/* --- the pair ----------------------------------------------------------------------------------- */
static void end_start(struct wan_pair *p, int i)
{
	struct wan_end *e = &p->end[i];

	e->cfg.ctx = e;
	e->cfg.ops = &ops;
	e->cfg.bufs = p->pool.bufs;
	e->cfg.epoch = 1000 + ++p->epoch;
	e->cfg.index = (uint32_t)wan_rng_next(&p->rng);
	e->cfg.tunnel_id = 77;
	if (wan_new(&e->t, &e->cfg, p->now) < 0)
		abort();
}

void wan_pair_secrets(struct wan_pair *p, struct wan_secrets of[2])
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < AEAD_SECRET; k += 8) {
			uint64_t v = wan_rng_next(&p->rng);

			memcpy(of[i].tx.b + k, &v, 8);
			memcpy(of[!i].rx.b + k, &v, 8);
		}
}

void wan_pair_offer(struct wan_pair *p)
{
	struct wan_secrets s[2];

	do
		wan_pair_secrets(p, s);
	while (wan_keys_offer(p->end[0].t, &s[0], p->now) != 0 ||
	       wan_keys_offer(p->end[1].t, &s[1], p->now) != 0);
}

void wan_pair_keys(struct wan_pair *p)
{
	if (!p->end[0].cfg.aead || !p->end[1].cfg.aead)
		return;
	wan_pair_offer(p);
	for (unsigned i = 0; i < 2; i++)
		wan_keys_use(p->end[i].t, p->now);
}

void wan_pair_init(struct wan_pair *p, const struct wan_cfg *cfg, const struct wan_link_cfg *ab,
    const struct wan_link_cfg *ba, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	p->rng = seed;
	p->now = RWY_SEC; /* not 0, since nothing may depend on it */
	wan_pool_init(&p->pool);
	wan_link_init(&p->link[0], ab, wan_rng_next(&p->rng));
	wan_link_init(&p->link[1], ba, wan_rng_next(&p->rng));
	for (int i = 0; i < 2; i++) {
		p->end[i].pair = p;
		p->end[i].cfg = *cfg;
		p->end[i].out = &p->link[i];
		end_start(p, i);
	}
	wan_pair_keys(p);
}

struct wan_link_cfg wan_pair_bad_link(void)
{
	return (struct wan_link_cfg){.delay = 5 * RWY_MS,
	    .rate_Bps = 12500000,
	    .loss_ppm = 30000,
	    .reorder_ppm = 10000,
	    .reorder_extra = 2 * RWY_MS,
	    .dup_ppm = 5000};
}

void wan_pair_begin(struct wan_pair *p, unsigned paths, const struct wan_link_cfg *l)
{
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.paths = paths;
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = 12500000;
	c.rx_window = 4096;
	wan_pair_init(p, &c, l, l, 5);
}

void wan_pair_fini(struct wan_pair *p)
{
	for (int i = 0; i < 2; i++) {
		wan_free(p->end[i].t);
		free(p->end[i].due);
		wan_link_fini(&p->link[i]);
		for (unsigned k = 1; k <= p->more; k++)
			wan_link_fini(&p->path_link[i][k]);
		wan_pipe_fini(&p->pipe[i]);
	}
	free(p->stream);
}

/* The link of a path from end i. */
static struct wan_link *link_of(struct wan_pair *p, int i, unsigned path)
{
	return path && path <= p->more ? &p->path_link[i][path] : &p->link[i];
}

static void stream_open(struct wan_pair *p, struct wan_stream *s)
{
	uint8_t info[WAN_OPEN_MAX];

	s->tx_first = s->sent = s->delivered = s->got;
	s->acked = 0;
	s->tx_closed = false;
	if (wan_tx_open(s->from->t, &s->tx, info, open_info(s, s->got, info), s, p->now) < 0)
		abort();
}

/* Half of the streams go each way. */
void wan_pair_streams(
    struct wan_pair *p, uint32_t n, uint64_t total, uint32_t len_min, uint32_t len_max, uint32_t queue_max)
{
	assert(!p->stream);
	p->stream = calloc(n, sizeof(*p->stream));
	p->streams = n;
	for (uint32_t i = 0; i < n; i++) {
		struct wan_stream *s = &p->stream[i];

		s->id = i;
		s->from = &p->end[i & 1];
		s->to = &p->end[~i & 1];
		s->total = total;
		s->len_min = len_min;
		s->len_max = len_max;
		s->queue_max = queue_max;
		stream_open(p, s);
	}
}

static void stream_feed(struct wan_pair *p, struct wan_stream *s)
{
	while (s->tx && s->sent < s->total && wan_tx_queued(s->tx) < s->queue_max) {
		uint32_t len = length_of(s, s->sent);
		struct rwy_buf *b = wan_pool_get(&p->pool, len);

		fill(s, s->sent, b->data, len);
		b->psn = (uint32_t)s->sent++;
		b->opcode = s->sent == s->total ? 2 : 1; /* SEND last, SEND middle */
		wan_tx_send(s->tx, b, p->now);
	}
	if (s->tx && s->sent == s->total && s->close_after && s->delivered == s->total) {
		wan_tx_abort(s->tx, p->now);
		s->tx = NULL;
		s->tx_closed = true;
	}
}

static void end_deliver(struct wan_end *e)
{
	while (e->due_n && !e->stall && e->due[e->due_head].at <= e->pair->now) {
		struct wan_due *d = &e->due[e->due_head];

		if (d->s->rx && d->s->life == d->life)
			wan_rx_delivered(d->s->rx, d->seq, e->pair->now);
		e->due_head = (e->due_head + 1) & (e->due_cap - 1);
		e->due_n--;
	}
}

static void end_recv(struct wan_pair *p, int i)
{
	struct wan_link_pkt *k;

	for (unsigned path = 0; path <= p->more; path++)
		while ((k = wan_link_recv(link_of(p, !i, path), p->now))) {
			struct rwy_buf *b = wan_pool_get(&p->pool, k->len);

			memcpy(b->data, k->data, k->len);
			wan_recv(p->end[i].t, k->path, b, k->ecn, p->now);
			free(k);
		}
	while ((k = wan_pipe_recv(&p->pipe[!i], p->now))) {
		struct rwy_buf *b = wan_pool_get(&p->pool, k->len);

		memcpy(b->data, k->data, k->len);
		wan_recv_stream(p->end[i].t, b, p->now);
		free(k);
	}
}

static void datagram_send(struct wan_pair *p, int i, const struct wan_tx *x)
{
	uint8_t bytes[DATAGRAM_MAX];

	assert(wan_tx_size(x) <= sizeof(bytes));
	if (x->key && x->buf && !x->off && x->buf->headroom >= x->hdr_len)
		wan_tx_write_joined(x, bytes);
	else
		wan_tx_write(x, bytes);
	wan_link_send(link_of(p, i, x->path), x->path, bytes, wan_tx_size(x), NULL, 0, p->now);
}

static void end_send(struct wan_pair *p, int i)
{
	bool quiet = wan_quiet(p->end[i].t, p->now);
	struct wan_tx tx[32];
	unsigned n;

	do {
		if (wan_stream_on(p->end[i].t) || wan_stream_detours(p->end[i].t)) {
			uint32_t room;
			uint64_t bytes = wan_pipe_room(&p->pipe[i], &room, p->now);

			wan_stream_room(p->end[i].t, room, bytes);
		}
		n = wan_poll(p->end[i].t, tx, 32, p->now);
		if (quiet && n && !wan_stream_on(p->end[i].t))
			error(p, "a quiet tunnel had something to send", NULL, 0);
		if (!n)
			wan_note_quiet(p->end[i].t);
		for (unsigned k = 0; k < n; k++) {
			struct wan_tx *x = &tx[k];

			link_of(p, i, x->path)->ect = x->ect;
			p->end[i].congested_sent += x->congested;
			if (x->stream)
				wan_pipe_send(&p->pipe[i], x->hdr, x->hdr_len,
				    x->buf ? x->buf->data + x->off : NULL, x->len, p->now);
			else if (!(p->dead_path >> x->path & 1))
				datagram_send(p, i, x);
			if (x->own)
				rwy_buf_free(&p->pool.bufs, x->buf);
		}
	} while (n == 32);
}

static rwy_time end_next(const struct wan_end *e)
{
	rwy_time next = wan_next(e->t);

	if (e->due_n && !e->stall)
		next = rwy_time_min(next, e->due[e->due_head].at);
	return next;
}

static bool awake(const struct wan_pair *p, int i)
{
	return p->now >= p->end[i].asleep_until;
}

/* The time when end i has something to do: by itself, or because something arrives. */
static rwy_time turn_at(struct wan_pair *p, int i)
{
	rwy_time next = end_next(&p->end[i]);

	for (unsigned path = 0; path <= p->more; path++)
		next = rwy_time_min(next, wan_link_next(link_of(p, !i, path)));
	next = rwy_time_min(next, wan_pipe_next(&p->pipe[!i], p->now));
	return rwy_time_max(next, p->end[i].asleep_until);
}

bool wan_pair_step(struct wan_pair *p, rwy_time until)
{
	rwy_time next = RWY_NEVER;

	for (int i = 0; i < 2; i++) {
		if (!awake(p, i))
			continue;
		end_recv(p, i);
		end_deliver(&p->end[i]);
		wan_tick(p->end[i].t, p->now);
	}
	for (uint32_t i = 0; i < p->streams; i++)
		stream_feed(p, &p->stream[i]);
	for (int i = 0; i < 2; i++)
		if (awake(p, i))
			end_send(p, i);
	for (int i = 0; i < 2; i++)
		next = rwy_time_min(next, turn_at(p, i));
	p->steps++;
	if (next <= p->now)
		next = p->now + 100; /* "now" means: call again at once */
	if (p->wake && next != RWY_NEVER)
		next = (next + p->wake - 1) / p->wake * p->wake;
	if (next > until)
		return false;
	p->now = next;
	return true;
}

bool wan_pair_done(const struct wan_pair *p)
{
	for (uint32_t i = 0; i < p->streams; i++) {
		const struct wan_stream *s = &p->stream[i];

		if (s->got != s->total || s->delivered != s->total)
			return false;
		if (s->close_after && !(s->tx_closed && s->rx_closed))
			return false;
	}
	return true;
}

bool wan_pair_run(struct wan_pair *p, rwy_time until)
{
	while (!wan_pair_done(p))
		if (!wan_pair_step(p, until))
			return wan_pair_done(p);
	return true;
}

void wan_pair_restart(struct wan_pair *p, int end)
{
	struct wan_end *e = &p->end[end];

	for (uint32_t i = 0; i < p->streams; i++) {
		if (p->stream[i].to == e)
			p->stream[i].rx = NULL;
		if (p->stream[i].from == e)
			p->stream[i].tx = NULL;
	}
	wan_free(e->t);
	e->due_n = e->due_head = 0;
	end_start(p, end);
	wan_pair_keys(p);
	for (uint32_t i = 0; i < p->streams; i++)
		if (p->stream[i].from == e && !p->stream[i].tx_closed)
			stream_open(p, &p->stream[i]);
}
