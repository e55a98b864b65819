/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 320 /* headroom of a buffer */

enum ev_kind { EV_TO_GATEWAY, EV_TO_HOST, EV_TO_WAN, EV_START };

struct event {
	rwy_time at;
	uint64_t order;
	enum ev_kind kind;
	unsigned site;
	uint32_t len;
	uint8_t *bytes;
};

#define JOURNAL 1024
#define RING    512

struct site {
	struct eng *e;
	struct world *w;
	unsigned idx;
	uint64_t bufs, bufs_peak;
	unsigned life;
	rwy_time paused_until;
	unsigned ring;                    /* packets that wait for the end of a pause */
	struct eng_jent journal[JOURNAL]; /* outlives a crash */
};

struct world {
	struct sim_cfg cfg;
	const struct sim_ops *ops;
	void *ctx;
	rwy_time now;
	struct sim_rng rng;
	struct site site[2];
	struct sim_link wan[2], lan_up[2], lan_down[2];
	struct event *heap;
	uint32_t n, cap;
	uint64_t order;
};

uint64_t sim_next(struct sim_rng *r)
{
	uint64_t z = (r->s += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t sim_below(struct sim_rng *r, uint32_t n)
{
	return n ? (uint32_t)(sim_next(r) % n) : 0;
}

bool sim_chance(struct sim_rng *r, double p)
{
	return p > 0 && (double)(sim_next(r) >> 11) < p * 9007199254740992.0;
}

/* --- event heap ------------------------------------------------------------------------------- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct world *w, struct event ev)
{
	uint32_t i;

	ev.order = w->order++;
	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 1024;
		w->heap = realloc(w->heap, w->cap * sizeof(*w->heap));
		if (!w->heap)
			abort();
	}
	for (i = w->n++; i && before(&ev, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = ev;
}

static struct event pop(struct world *w)
{
	struct event top = w->heap[0], last = w->heap[--w->n];
	uint32_t i = 0, c;

	while ((c = 2 * i + 1) < w->n) {
		if (c + 1 < w->n && before(&w->heap[c + 1], &w->heap[c]))
			c++;
		if (!before(&w->heap[c], &last))
			break;
		w->heap[i] = w->heap[c];
		i = c;
	}
	w->heap[i] = last;
	return top;
}

/* --- links ------------------------------------------------------------------------------------ */

static bool lost(struct world *w, struct sim_link *l)
{
	double p = l->cfg.loss, b = l->cfg.burst;

	if (b <= 1)
		return sim_chance(&w->rng, p);
	/* Gilbert: bad lasts b packets in the mean, entered so that the share lost is p. */
	/* A burst is also over in time: else a silent link would stay bad for many keep-alives. */
	if (l->bad) {
		l->bad = !sim_chance(&w->rng, 1 / b) && w->now - l->bad_since < (rwy_dur)b * RWY_MS;
	} else {
		l->bad = sim_chance(&w->rng, p / (b * (1 - p)));
		l->bad_since = w->now;
	}
	return l->bad;
}

static void schedule(struct world *w, struct sim_link *l, enum ev_kind kind, unsigned site,
    const uint8_t *bytes, uint32_t len, rwy_time at)
{
	struct event ev = {.at = at, .kind = kind, .site = site, .len = len, .bytes = malloc(len ? len : 1)};

	if (!ev.bytes)
		abort();
	memcpy(ev.bytes, bytes, len);
	if (len > 40 && sim_chance(&w->rng, l->cfg.corrupt)) {
		ev.bytes[sim_below(&w->rng, len)] ^= (uint8_t)(1u << sim_below(&w->rng, 8));
		l->corrupted++;
	}
	push(w, ev);
}

static void link_send(
    struct world *w, struct sim_link *l, enum ev_kind kind, unsigned site, const uint8_t *bytes, uint32_t len)
{
	rwy_time at = w->now;

	l->in++;
	if (l->down || lost(w, l)) {
		l->lost++;
		return;
	}
	if (l->cfg.rate_Bps) {
		if (l->cfg.queue && l->free_at > at + l->cfg.queue) {
			l->lost++;
			return;
		}
		at = rwy_time_max(at, l->free_at) + (uint64_t)(len + 46) * RWY_SEC / l->cfg.rate_Bps;
		l->free_at = at;
	}
	at += l->cfg.delay;
	if (l->cfg.jitter)
		at += sim_next(&w->rng) % l->cfg.jitter;
	if (sim_chance(&w->rng, l->cfg.reorder)) {
		at += l->cfg.delay / 10 + sim_next(&w->rng) % (l->cfg.delay / 5 + 1);
		l->reordered++;
	} else if (l->cfg.keep_order) {
		at = rwy_time_max(at, l->last_out);
		l->last_out = at;
	}
	schedule(w, l, kind, site, bytes, len, at);
	if (sim_chance(&w->rng, l->cfg.dup)) {
		l->duplicated++;
		schedule(w, l, kind, site, bytes, len, at + sim_next(&w->rng) % (l->cfg.delay + 1));
	}
}

/* --- buffers of an engine --------------------------------------------------------------------- */

struct sim_buf {
	struct rwy_buf b; /* first */
	uint8_t bytes[];
};

static struct rwy_buf *buf_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct site *s = ctx;
	struct sim_buf *m;
	uint32_t room = headroom > ROOM ? headroom : ROOM;

	m = malloc(sizeof(*m) + room + len);
	if (!m)
		abort();
	memset(&m->b, 0, sizeof(m->b));
	m->b.data = m->bytes + room;
	m->b.len = len;
	m->b.headroom = (uint16_t)room;
	s->bufs++;
	if (s->bufs > s->bufs_peak)
		s->bufs_peak = s->bufs;
	return &m->b;
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	struct site *s = ctx;

	s->bufs--;
	free((struct sim_buf *)(void *)b); /* b is its first member */
}

static const struct rwy_buf_ops buf_ops = {buf_alloc, buf_free};

/* --- engine callbacks --------------------------------------------------------------------------- */

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct site *s = ctx;

	link_send(
	    s->w, &s->w->lan_down[s->idx], EV_TO_HOST, s->idx, tx->buf ? tx->buf->data : tx->bytes, tx->len);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct site *s = ctx;
	uint8_t dgram[16384];

	(void)tunnel;
	memcpy(dgram, tx->hdr, tx->hdr_len);
	if (tx->buf)
		memcpy(dgram + tx->hdr_len, tx->buf->data + tx->off, tx->len);
	link_send(s->w, &s->w->wan[s->idx], EV_TO_WAN, !s->idx, dgram, tx->hdr_len + (tx->buf ? tx->len : 0));
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
}

static void log_line(void *ctx, int level, const char *msg)
{
	struct site *s = ctx;

	if (s->w->cfg.verbose)
		fprintf(stderr, "%12.6f %c %d %s\n", (double)s->w->now / 1e9, 'A' + s->idx, level, msg);
}

static const struct eng_ops eng_ops = {lan_tx, wan_tx, log_line};

struct rwy_ip sim_host_ip(unsigned site, unsigned host)
{
	uint8_t v4[4] = {10, (uint8_t)(site + 1), 0, (uint8_t)(host + 2)};

	return rwy_ip_from4(v4);
}

static void start(struct site *s)
{
	struct world *w = s->w;
	struct eng_cfg *c = malloc(sizeof(*c));
	struct rwy_bufs bufs = {&buf_ops, s};
	struct wan_cfg *wan;

	if (!c)
		abort();
	eng_cfg_default(c);
	c->tunnels = 1;
	c->prefixes = 1;
	c->prefix[0].addr = sim_host_ip(!s->idx, 0);
	c->prefix[0].addr.b[15] = 0;
	c->prefix[0].len = 120;
	c->prefix[0].tunnel = 0;
	c->ack_mode = w->cfg.ack_mode;
	c->conns_max = 4096;
	c->custody_conn = w->cfg.custody_conn;
	c->custody_total = w->cfg.custody_total;
	c->read_cache_conn = w->cfg.read_cache_conn;
	c->seed = sim_next(&w->rng);
	if (!w->cfg.no_journal) {
		c->journal = s->journal;
		c->journal_n = JOURNAL;
	}
	snprintf(c->tunnel[0].name, ENG_NAME_MAX, "peer");
	wan = &c->tunnel[0].wan;
	wan_cfg_default(wan);
	wan->paths = 1;
	wan->mtu[0] = w->cfg.wan_mtu;
	wan->cc = cc_find(w->cfg.cc);
	wan->cc_cfg.rate_Bps = w->cfg.rate_Bps;
	wan->cc_cfg.mtu = w->cfg.wan_mtu;
	wan->tunnel_id = 7;
	if (w->cfg.rx_window)
		wan->rx_window = w->cfg.rx_window;
	s->life++;
	if (eng_new(&s->e, c, &eng_ops, s, bufs, w->now) != 0)
		abort();
	free(c);
}

void sim_cfg_default(struct sim_cfg *c)
{
	memset(c, 0, sizeof(*c));
	c->wan[0] = c->wan[1] = (struct sim_link_cfg){
	    .delay = 10 * RWY_MS, .rate_Bps = 125000000, .queue = 50 * RWY_MS, .keep_order = true};
	c->lan = (struct sim_link_cfg){
	    .delay = 20 * RWY_US, .jitter = 10 * RWY_US, .keep_order = true, .rate_Bps = 1250000000};
	c->wan_mtu = 1472;
	c->custody_conn = 32u << 20;
	c->custody_total = 256u << 20;
	c->read_cache_conn = 4u << 20;
	c->cc = "auto";
	c->rate_Bps = 1250000000;
}

struct world *sim_new(const struct sim_cfg *cfg, const struct sim_ops *ops, void *ctx)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->cfg = *cfg;
	w->ops = ops;
	w->ctx = ctx;
	w->rng.s = cfg->seed;
	w->now = RWY_SEC; /* not zero: 0 means "not set" in places */
	for (unsigned i = 0; i < 2; i++) {
		w->wan[i].cfg = cfg->wan[i];
		w->lan_up[i].cfg = w->lan_down[i].cfg = cfg->lan;
		w->site[i].w = w;
		w->site[i].idx = i;
		start(&w->site[i]);
	}
	return w;
}

uint64_t sim_end(struct world *w)
{
	uint64_t left = 0;

	for (unsigned i = 0; i < 2; i++) {
		eng_free(w->site[i].e);
		left += w->site[i].bufs;
	}
	while (w->n)
		free(pop(w).bytes);
	free(w->heap);
	free(w);
	return left;
}

void sim_host_tx(struct world *w, unsigned site, const uint8_t *ip, uint32_t len)
{
	link_send(w, &w->lan_up[site], EV_TO_GATEWAY, site, ip, len);
}

static void deliver(struct world *w, struct event *ev)
{
	struct site *s = &w->site[ev->site];
	struct rwy_buf *b;

	switch (ev->kind) {
	case EV_TO_HOST:
		w->ops->host_rx(w->ctx, ev->site, ev->bytes, ev->len, w->now);
		return;
	case EV_START:
		start(s);
		return;
	case EV_TO_GATEWAY:
	case EV_TO_WAN:
		if (!s->e)
			return;
		if (w->now < s->paused_until) {
			if (s->ring++ < RING) {
				struct event again = *ev;

				again.at = s->paused_until;
				ev->bytes = NULL; /* moved */
				push(w, again);
			}
			return;
		}
		s->ring = 0;
		b = buf_alloc(s, ROOM, ev->len);
		/* An event is in the heap once: what pop() gave is not there any more.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		memcpy(b->data, ev->bytes, ev->len);
		if (ev->kind == EV_TO_WAN)
			eng_wan_rx(s->e, 0, 0, b, 0, w->now);
		else
			eng_lan_rx(s->e, &b, 1, w->now);
		eng_poll(s->e, w->now);
		return;
	}
}

void sim_run(struct world *w, rwy_time until, bool (*stop)(void *ctx), void *ctx)
{
	while (w->now < until) {
		rwy_time at = w->n ? w->heap[0].at : RWY_NEVER, t;

		for (unsigned i = 0; i < 2; i++)
			if (w->site[i].e) {
				t = rwy_time_max(eng_next(w->site[i].e), w->site[i].paused_until);
				/* A gateway looks at its clock every few us at best. */
				at = rwy_time_min(at, rwy_time_max(t, w->now + RWY_US));
			}
		t = w->ops->next(w->ctx);
		at = rwy_time_min(at, rwy_time_max(t, w->now));
		if (at >= until) {
			w->now = until;
			return;
		}
		w->now = rwy_time_max(w->now, at);
		while (w->n && w->heap[0].at <= w->now) {
			struct event ev = pop(w);

			deliver(w, &ev);
			free(ev.bytes); /* NOLINT(clang-analyzer-unix.Malloc) */
		}
		for (unsigned i = 0; i < 2; i++)
			if (w->site[i].e && w->now >= w->site[i].paused_until &&
			    eng_next(w->site[i].e) <= w->now)
				eng_poll(w->site[i].e, w->now);
		if (w->ops->next(w->ctx) <= w->now)
			w->ops->tick(w->ctx, w->now);
		if (stop && stop(ctx))
			return;
	}
}

rwy_time sim_now(const struct world *w)
{
	return w->now;
}

struct eng *sim_engine(struct world *w, unsigned site)
{
	return w->site[site].e;
}

void sim_wan_down(struct world *w, bool down)
{
	w->wan[0].down = w->wan[1].down = down;
}

void sim_wan_set(struct world *w, const struct sim_link_cfg *cfg)
{
	w->wan[0].cfg = w->wan[1].cfg = *cfg;
}

void sim_crash(struct world *w, unsigned site, rwy_dur after)
{
	struct event ev = {.at = w->now + after, .kind = EV_START, .site = site};

	eng_free(w->site[site].e);
	w->site[site].e = NULL;
	push(w, ev);
}

void sim_pause(struct world *w, unsigned site, rwy_dur d)
{
	w->site[site].paused_until = w->now + d;
}

uint64_t sim_bufs(const struct world *w, unsigned site)
{
	return w->site[site].bufs;
}

uint64_t sim_bufs_peak(const struct world *w, unsigned site)
{
	return w->site[site].bufs_peak;
}
