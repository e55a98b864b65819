/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts: messages as trains of RDMA WRITE packets, passed to the near tunnel as `ahead` allows
 * and checked one by one when the far tunnel delivers them. Every packet has its number.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rwy/endian.h"
#include "tests/sim/wan/run.h"
#include "tests/sim/wan/wire.h"

#define ID_LEN      12 /* stream, number */
#define MARKS       16
#define HOST_WINDOW 131072u /* most bytes of a host that wait for the gateway */

enum { OP_FIRST = 6, OP_MIDDLE = 7, OP_LAST = 8, OP_ONLY = 10 }; /* RC RDMA WRITE */

void violation(struct world *w, const char *what, uint64_t a, uint64_t b)
{
	char words[1200];

	if (w->r->violations++ >= 5)
		return;
	scen_print(&w->s, words, sizeof(words));
	fprintf(stderr,
	    "rwywan: t=%.6f ms: %s (%" PRIu64 ", %" PRIu64 ")\n  seed %" PRIu64 ", again with: rwywan %s\n",
	    (double)w->now / 1e6, what, a, b, w->s.seed, words);
}

/* --- packets -------------------------------------------------------------------------------------- */
static uint32_t packet_len(const struct world *w, uint64_t n)
{
	uint64_t i = n % w->per_message;
	uint32_t len = (uint32_t)w->s.pmtu;

	if (i == w->per_message - 1)
		len = (uint32_t)((uint64_t)w->s.size - i * (uint64_t)w->s.pmtu);
	return len + INNER_HEAD + (i ? 0 : INNER_RETH);
}

static uint8_t opcode(const struct world *w, uint64_t i)
{
	if (w->per_message == 1)
		return OP_ONLY;
	return i == 0 ? OP_FIRST : i == w->per_message - 1 ? OP_LAST : OP_MIDDLE;
}

static void fill(const struct world *w, struct rwy_buf *b, uint32_t id, uint64_t n)
{
	if (w->bufs.full)
		memset(b->data, (int)(id * 31 + n * 7 + 1) & 255, b->len);
	rwy_put32(b->data, id);
	rwy_put64(b->data + 4, n);
}

static bool right(const struct world *w, const struct rwy_buf *b, uint32_t id, uint64_t n)
{
	uint8_t fillby = (uint8_t)(id * 31 + n * 7 + 1);

	if (b->len != packet_len(w, n) || rwy_get32(b->data) != id || rwy_get64(b->data + 4) != n)
		return false;
	for (uint32_t i = ID_LEN; w->bufs.full && i < b->len; i++)
		if (b->data[i] != fillby)
			return false;
	return true;
}

/* --- streams -------------------------------------------------------------------------------------- */
static void copies_reach(struct stream *s, uint64_t n)
{
	while (n - s->got > s->mask) {
		uint64_t cap = (s->mask + 1) * 2;
		struct copies *v = calloc(cap, sizeof(*v));

		if (!v)
			abort();
		for (uint64_t i = s->got; i < s->fed; i++)
			v[i & (cap - 1)] = s->copies[i & s->mask];
		free(s->copies);
		s->copies = v;
		s->mask = cap - 1;
	}
}

static void mark_push(struct stream *s, const struct mark *m)
{
	if (s->mark_tail - s->mark_head > s->mark_mask) {
		uint64_t cap = (s->mark_mask + 1) * 2;
		struct mark *v = calloc(cap, sizeof(*v));

		if (!v)
			abort();
		for (uint64_t i = s->mark_head; i != s->mark_tail; i++)
			v[i & (cap - 1)] = s->mark[i & s->mark_mask];
		free(s->mark);
		s->mark = v;
		s->mark_mask = cap - 1;
	}
	s->mark[s->mark_tail++ & s->mark_mask] = *m;
}

int work_init(struct world *w)
{
	w->per_message = scen_packets(&w->s);
	w->streams = (uint32_t)w->s.flows;
	w->ahead = (uint64_t)(w->s.ahead / w->s.pmtu) / w->streams + 2;
	w->feeding = true;
	w->gave_at = w->s.demand > 0 ? w->now : RWY_NEVER;
	w->stream = calloc(w->streams, sizeof(*w->stream));
	for (uint32_t i = 0; w->stream && i < w->streams; i++) {
		struct stream *s = &w->stream[i];
		uint8_t info[4];

		s->id = i;
		s->mask = s->mark_mask = MARKS - 1;
		s->copies = calloc(MARKS, sizeof(*s->copies));
		s->mark = calloc(MARKS, sizeof(*s->mark));
		rwy_put32(info, i);
		if (!s->copies || !s->mark ||
		    wan_tx_open(w->end[0].t, &s->tx, info, sizeof(info), s, w->now) < 0)
			return RWY_ENOMEM;
	}
	return w->stream ? 0 : RWY_ENOMEM;
}

void work_fini(struct world *w)
{
	for (uint32_t i = 0; w->stream && i < w->streams; i++) {
		free(w->stream[i].copies);
		free(w->stream[i].mark);
	}
	free(w->stream);
}

/* --- out ------------------------------------------------------------------------------------------ */
static void measure_from(struct world *w, rwy_time now)
{
	struct result *r = w->r;

	w->measuring = true;
	w->measure_at = now;
	r->first_bytes = r->extra_bytes = r->parity_bytes = 0;
	r->packets = r->again = r->needless = r->payload = 0;
}

static void begin(struct world *w, struct stream *s, rwy_time now)
{
	bool counted = w->s.rtts > 0 ? w->measuring : w->begun >= (uint64_t)w->s.warm;

	if (counted && !w->measuring)
		measure_from(w, now);
	mark_push(s, &(struct mark){s->fed + w->per_message, now, counted});
	w->begun++;
	s->messages++;
	s->at = 0;
}

static bool feed_one(struct world *w, struct stream *s, rwy_time now)
{
	uint64_t n = s->fed;
	struct rwy_buf *b = bufs_tx(&w->bufs, packet_len(w, n));

	if (!b)
		return false;
	fill(w, b, s->id, n);
	b->opcode = opcode(w, s->at);
	b->psn = (uint32_t)n & 0xffffff;
	b->psn_cnt = 1;
	b->msn = (uint32_t)s->messages & 0xffffff;
	copies_reach(s, n);
	s->copies[n & s->mask] = (struct copies){0};
	s->fed++;
	w->fed++;
	s->at++;
	wan_tx_send(s->tx, b, now);
	return true;
}

/* Gives the hosts data in chunks, `demand` bit/s, with pauses between transfers. A host whose
 * window is full does not catch up later. */
static void give(struct world *w, rwy_time now)
{
	uint64_t chunk = w->s.chunk > w->s.pmtu ? (uint64_t)(w->s.chunk / w->s.pmtu) : 1;
	rwy_dur every = (rwy_dur)((double)chunk * w->s.pmtu * 8e9 / w->s.demand);

	for (; w->gave_at <= now; w->gave_at += every) {
		bool pause =
		    w->s.on > 0 && fmod((double)(w->gave_at - w->began), w->s.on + w->s.off) >= w->s.on;

		if (pause)
			continue;
		changes_wanted(&w->changes, chunk * (uint64_t)w->s.pmtu, w->gave_at - w->began);
		if (w->gave - w->fed < HOST_WINDOW / (uint64_t)w->s.pmtu)
			w->gave += chunk;
	}
}

static bool may_begin(const struct world *w, const struct stream *s)
{
	if (!w->feeding)
		return false;
	if (w->s.rtts <= 0 && w->begun >= (uint64_t)(w->s.messages + w->s.warm))
		return false;
	if (w->s.arrival == ARRIVE_BACK)
		return true; /* `ahead` is the limit */
	return w->begun == w->done && w->begun % w->streams == s->id && !wan_tx_queued(s->tx);
}

void work_feed(struct world *w, rwy_time now)
{
	if (w->s.rtts > 0 && !w->measuring && now >= w->measure_at)
		measure_from(w, now);
	if (w->s.rtts > 0 && now >= w->stop_at)
		w->feeding = false;
	if (w->gave_at != RWY_NEVER)
		give(w, now);
	for (uint32_t k = 0; k < w->streams; k++) {
		struct stream *s = &w->stream[(w->turn + k) % w->streams];

		while (s->fed - s->hi < w->ahead && (w->gave_at == RWY_NEVER || w->fed < w->gave)) {
			bool between = s->fed % w->per_message == 0;

			if (between && !may_begin(w, s))
				break;
			if (between)
				begin(w, s, now);
			if (!feed_one(w, s, now))
				break;
		}
	}
	w->turn = (w->turn + 1) % w->streams;
}

bool work_over(const struct world *w)
{
	if (w->s.rtts > 0 ? w->feeding : w->begun < (uint64_t)(w->s.messages + w->s.warm))
		return false;
	if (w->done < w->begun)
		return false;
	for (uint32_t i = 0; i < w->streams; i++)
		if (!w->stream[i].closed && wan_tx_queued(w->stream[i].tx))
			return false;
	return true;
}

void work_close(struct world *w)
{
	for (uint32_t i = 0; i < w->streams; i++)
		if (!w->stream[i].closed) {
			w->stream[i].closed = true;
			wan_tx_abort(w->stream[i].tx, w->now);
		}
}

/* The bit of a fragment: offsets differ by more than a 32nd of the packet. */
static uint32_t copy_bit(const struct wan_tx *x)
{
	return 1u << ((uint64_t)x->off * 31 / x->buf->len);
}

void work_sent(struct world *w, const struct wan_tx *x, bool arrives)
{
	struct result *r = w->r;
	uint32_t wire = x->hdr_len + x->len + (uint32_t)w->s.overhead;

	if (!x->buf || !x->len)
		return;
	if (!bufs_is_tx(&w->bufs, x->buf)) {
		r->extra_bytes += wire;
		r->parity_bytes += wire;
		return;
	}
	struct stream *s = &w->stream[rwy_get32(x->buf->data)];
	uint64_t n = rwy_get64(x->buf->data + 4);
	uint32_t bit = copy_bit(x);

	if (n >= s->hi) {
		s->hi = n + 1;
		r->packets++;
	}
	struct copies *c = &s->copies[n & s->mask];

	if (n >= s->got && !(c->sent & bit)) {
		c->sent |= bit;
		r->first_bytes += wire;
	} else {
		r->again++;
		r->extra_bytes += wire;
		r->needless += n < s->got || (c->arrives & bit);
	}
	if (arrives && n >= s->got)
		c->arrives |= bit;
}

/* --- in ------------------------------------------------------------------------------------------- */
static void *on_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time now)
{
	struct world *w = ((struct end *)ctx)->w;

	if (len != 4 || rwy_get32(info) >= w->streams || w->stream[rwy_get32(info)].rx) {
		violation(w, "a flow opened that nobody opened, or twice", len, 0);
		return NULL;
	}
	struct stream *s = &w->stream[rwy_get32(info)];

	s->rx = f;
	return s;
}

static void message_done(struct world *w, struct stream *s, rwy_time now)
{
	const struct mark *m = &s->mark[s->mark_head & s->mark_mask];

	if (s->mark_head == s->mark_tail || s->got != m->end)
		return;
	if (m->counted)
		result_ct(w->r, now - m->given);
	s->mark_head++;
	w->done++;
	if (w->s.rtts <= 0 && w->measuring)
		w->r->span = now - w->measure_at;
	hash_add(w->r, now, s->id);
}

static void on_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
	struct world *w = ((struct end *)ctx)->w;
	struct stream *s = user;

	uint32_t payload = b->len - INNER_HEAD - (s->got % w->per_message ? 0 : INNER_RETH);

	w->now = now;
	if (b->seq != s->got || !right(w, b, s->id, s->got)) {
		uint64_t n = rwy_get64(b->data + 4);

		if (n < s->got)
			w->r->duplicates++;
		violation(w, "not the packet that was due", n, s->got);
	}
	s->got++;
	if (w->measuring && w->got_at && now < w->stop_at && now - w->got_at > w->r->stall)
		w->r->stall = now - w->got_at;
	w->got_at = now;
	w->payload_all += payload;
	changes_count(&w->changes, payload, now - w->began);
	if (w->measuring && (w->s.rtts <= 0 || now < w->stop_at))
		w->r->payload += payload;
	wan_rx_delivered(s->rx, b->seq, now);
	rwy_buf_free(&w->bufs.ops, b);
	message_done(w, s, now);
}

static void on_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
	struct world *w = ((struct end *)ctx)->w;
	struct stream *s = user;

	if (s->got != s->fed || reason != WAN_CLOSE_BY_SENDER)
		violation(w, "a flow ended before its time", s->got, s->fed);
	s->rx = NULL;
}

static void on_reset(void *ctx, void *user, rwy_time now)
{
	violation(((struct end *)ctx)->w, "a flow was reset", 0, 0);
}

const struct wan_ops work_ops = {
    .rx_open = on_open, .rx_data = on_data, .rx_close = on_close, .tx_reset = on_reset};
