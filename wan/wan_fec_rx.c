/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving half of forward error correction: copies of what is protected, blocks that miss something,
 * and the rebuilding. A rebuilt datagram has the checksum its sender gave it and is read as if it had come
 * from the wire; one that does not fit its checksum is dropped.
 *
 * What a peer can make us hold is bounded: cfg.fec_rx_bytes of copies a path, WAN_FEC_HELD_MAX repairs. When
 * it is too much the oldest goes; the peer sends again what we did not acknowledge.
 */
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>

#include "wan/wan_int.h"

/* --- copies ------------------------------------------------------------------------------------- */
static struct wan_fec_keep *keep_of(struct wan_path *p)
{
	const struct wan_cfg *cfg = &p->t->cfg;

	if (p->fec_keep || cfg->fec != WAN_FEC_AUTO || cfg->fec_rx_bytes < UINT16_MAX)
		return p->fec_keep;
	p->fec_keep = calloc(1, sizeof(*p->fec_keep));
	if (p->fec_keep) {
		p->fec_keep->cap = cfg->fec_rx_bytes;
		p->fec_keep->bytes = malloc(cfg->fec_rx_bytes);
	}
	if (p->fec_keep && !p->fec_keep->bytes) {
		free(p->fec_keep);
		p->fec_keep = NULL;
	}
	return p->fec_keep;
}

void wan_fec_keep(struct wan_path *p, uint64_t pn, uint32_t crc, const uint8_t *frames, uint32_t len)
{
	struct wan_fec_keep *k = keep_of(p);
	uint32_t size = WAN_FEC_PREFIX + len;

	if (!k || len > UINT16_MAX - WAN_FEC_PREFIX)
		return;
	uint64_t off = k->head % k->cap;

	if (off + size > k->cap) { /* in one piece */
		k->head += k->cap - off;
		off = 0;
	}
	struct wan_fec_kept *s = &k->slot[pn % WAN_FEC_KEEP];
	uint8_t *at = k->bytes + off;

	*s = (struct wan_fec_kept){.pn1 = pn + 1, .at = k->head, .len = size};
	rwy_put16(at, (uint16_t)len);
	rwy_put32(at + 2, crc);
	memcpy(at + WAN_FEC_PREFIX, frames, len);
	k->head += size;
}

static const uint8_t *kept(const struct wan_path *p, uint64_t pn, uint32_t *len)
{
	const struct wan_fec_keep *k = p->fec_keep;
	const struct wan_fec_kept *s = k ? &k->slot[pn % WAN_FEC_KEEP] : NULL;

	if (!s || s->pn1 != pn + 1 || k->head - s->at > k->cap)
		return NULL;
	*len = s->len;
	return k->bytes + s->at % k->cap;
}

/* --- blocks ------------------------------------------------------------------------------------- */
static struct wan_fec_rx *rx_of(struct wan_tunnel *t)
{
	if (!t->fec_rx && t->cfg.fec == WAN_FEC_AUTO)
		t->fec_rx = calloc(1, sizeof(*t->fec_rx));
	return t->fec_rx;
}

/* The block has its end: rebuilt, nothing missing, or given up. Its numbers stay for the repairs that follow.
 */
static void settle(struct wan_tunnel *t, struct wan_fec_wait *w)
{
	struct wan_fec_rx *x = t->fec_rx;

	for (unsigned i = 0; i < w->n; i++)
		if (w->rep[i]) {
			rwy_buf_free(&t->cfg.bufs, w->rep[i]);
			w->rep[i] = NULL;
			x->held--;
		}
	w->n = 0;
	if (w->used && !w->done)
		x->live--;
	w->done = true;
}

static void unused(struct wan_tunnel *t, uint8_t path, unsigned n)
{
	t->c.repair_unused += n;
	t->path[path].fec_stats.unused += n;
}

static void give_up(struct wan_tunnel *t, struct wan_fec_wait *w)
{
	unused(t, w->r.path, w->n);
	settle(t, w);
}

static struct wan_fec_wait *find(struct wan_fec_rx *x, const struct wan_f_repair *r, uint64_t first)
{
	for (unsigned i = 0; i < WAN_FEC_BLOCKS; i++)
		if (x->w[i].used && x->w[i].first == first && x->w[i].r.path == r->path)
			return &x->w[i];
	return NULL;
}

/* A place for a new block: a free one, one that has its end, or the oldest. */
static struct wan_fec_wait *place(struct wan_tunnel *t)
{
	struct wan_fec_rx *x = t->fec_rx;
	struct wan_fec_wait *best = &x->w[0];

	for (unsigned i = 0; i < WAN_FEC_BLOCKS; i++) {
		struct wan_fec_wait *w = &x->w[i];

		if (!w->used)
			return w;
		if (w->done != best->done ? w->done : w->age < best->age)
			best = w;
	}
	give_up(t, best);
	return best;
}

static bool oldest_out(struct wan_tunnel *t)
{
	struct wan_fec_wait *best = NULL;

	for (unsigned i = 0; i < WAN_FEC_BLOCKS; i++) {
		struct wan_fec_wait *w = &t->fec_rx->w[i];

		if (w->used && !w->done && (!best || w->age < best->age))
			best = w;
	}
	if (best)
		give_up(t, best);
	return best;
}

/* --- rebuilding --------------------------------------------------------------------------------- */
/* One block being worked on: its packet numbers, and which of its symbols are not there. */
struct work {
	struct wan_tunnel *t;
	struct wan_path *p;
	struct wan_fec_wait *w;
	const struct wan_fec_code *code;
	unsigned e;      /* missing symbols */
	unsigned wanted; /* of them not received in any way */
	uint8_t col[WAN_FEC_M_MAX];
	uint64_t pn[WAN_FEC_M_MAX];
};

/* Which symbols are missing. More than M_MAX of them: as many as can be noted. */
static void look(struct work *k)
{
	const struct wan_f_repair *r = &k->w->r;
	unsigned col = 0;
	uint32_t len;

	k->e = k->wanted = 0;
	for (unsigned i = 0; col < r->k; i++) {
		uint64_t pn = k->w->first + (uint64_t)i * r->depth;

		if (!(r->map[i / 8] >> i % 8 & 1))
			continue;
		if (!kept(k->p, pn, &len)) {
			k->wanted += !wan_ranges_has(&k->p->seen, pn);
			if (k->e < WAN_FEC_M_MAX) {
				k->col[k->e] = (uint8_t)col;
				k->pn[k->e] = pn;
			}
			k->e++;
		}
		col++;
	}
}

/* Takes what is there out of the repairs: what is left of them depends on the missing symbols only. False: a
 * symbol is longer than its repairs. */
static bool reduce(struct work *k)
{
	const struct wan_f_repair *r = &k->w->r;
	unsigned col = 0;

	for (unsigned i = 0; col < r->k; i++) {
		uint32_t len;
		const uint8_t *s;

		if (!(r->map[i / 8] >> i % 8 & 1))
			continue;
		s = kept(k->p, k->w->first + (uint64_t)i * r->depth, &len);
		if (s && len > k->w->len)
			return false;
		for (unsigned q = 0; s && q < k->e; q++) {
			uint8_t *out = k->w->rep[q]->data;
			const uint8_t *tbl = k->code->tbl + (size_t)k->w->rows[q] * WAN_FEC_K_MAX * 32;

			ec_encode_data_update((int)len, WAN_FEC_K_MAX, 1, (int)col, (uint8_t *)(uintptr_t)tbl,
			    (uint8_t *)(uintptr_t)s, &out);
		}
		col++;
	}
	return true;
}

static bool solve(struct work *k, struct rwy_buf *const *out)
{
	struct wan_fec_rx *x = k->t->fec_rx;
	uint8_t *from[WAN_FEC_M_MAX], *to[WAN_FEC_M_MAX];

	for (unsigned q = 0; q < k->e; q++) {
		for (unsigned c = 0; c < k->e; c++)
			x->mat[0][q * k->e + c] = k->code->coef[k->w->rows[q]][k->col[c]];
		from[q] = k->w->rep[q]->data;
		to[q] = out[q]->data;
	}
	if (gf_invert_matrix(x->mat[0], x->mat[1], (int)k->e) != 0)
		return false;
	ec_init_tables((int)k->e, (int)k->e, x->mat[1], x->tbl);
	ec_encode_data((int)k->w->len, (int)k->e, (int)k->e, x->tbl, from, to);
	return true;
}

/* From symbol to datagram. False: it is not what was sent. */
static bool unwrap(struct work *k, struct rwy_buf *b, uint64_t pn)
{
	uint32_t len = rwy_get16(b->data), crc = rwy_get32(b->data + 2);
	uint32_t shift = WAN_PKT_HDR - WAN_FEC_PREFIX;
	struct wan_pkt h = {.version = WAN_VERSION,
	    .type = WAN_PKT_FRAMES,
	    .flags = k->w->flags | WAN_PKT_FEC,
	    .path = k->p->id,
	    .index = k->t->index,
	    .pn = pn};

	if (!len || len + WAN_FEC_PREFIX > k->w->len)
		return false;
	b->data -= shift;
	b->headroom = (uint16_t)(b->headroom - shift);
	b->len = WAN_PKT_HDR + len;
	wan_pkt_put(b->data, &h);
	rwy_put32(b->data + 16, crc);
	return wan_pkt_open(b->data, b->len);
}

static void told(struct wan_path *p, uint64_t pn)
{
	struct wan_fec_told *l = p->fec_told_n ? &p->fec_told[p->fec_told_n - 1] : NULL;

	if (l && l->pn + l->more + 1 == pn && l->more < UINT8_MAX)
		l->more++;
	else if (p->fec_told_n < WAN_FEC_REBUILT)
		p->fec_told[p->fec_told_n++] = (struct wan_fec_told){.pn = pn};
	/* else: the peer takes it for one that came */
}

static void hand_on(struct work *k, struct rwy_buf *b, uint64_t pn, rwy_time now)
{
	struct wan_tunnel *t = k->t;
	uint32_t crc = rwy_get32(b->data + WAN_PKT_HDR - 4);

	if (wan_ranges_has(&k->p->seen, pn)) {
		rwy_buf_free(&t->cfg.bufs, b);
		return;
	}
	wan_fec_keep(k->p, pn, crc, b->data + WAN_PKT_HDR, b->len - WAN_PKT_HDR);
	t->c.rebuilt++;
	k->p->fec_stats.rebuilt++;
	t->fec_rx->busy = true;
	wan_recv_rebuilt(t, k->p, pn, b, now);
	t->fec_rx->busy = false;
	if (wan_ranges_has(&k->p->seen, pn)) {
		told(k->p, pn);
		k->p->ack_at = now; /* the peer waits for just this */
	}
}

static bool rebuild(struct work *k, rwy_time now)
{
	struct rwy_buf *out[WAN_FEC_M_MAX];
	const struct rwy_bufs *bufs = &k->t->cfg.bufs;
	bool good, right[WAN_FEC_M_MAX] = {false};
	unsigned n = 0;

	for (; n < k->e; n++) {
		out[n] = rwy_buf_alloc(bufs, WAN_REASM_ROOM + WAN_PKT_HDR, k->w->len);
		if (!out[n])
			break;
	}
	if (n < k->e) {
		k->t->c.drop_no_buffer++;
		while (n)
			rwy_buf_free(bufs, out[--n]);
		return true;
	}
	good = reduce(k) && solve(k, out);
	for (unsigned i = 0; i < k->e; i++) {
		right[i] = good && unwrap(k, out[i], k->pn[i]);
		good = right[i];
	}
	settle(k->t, k->w); /* before callbacks: they may lead anywhere */
	for (unsigned i = 0; i < k->e; i++)
		if (good)
			hand_on(k, out[i], k->pn[i], now);
		else
			rwy_buf_free(bufs, out[i]);
	return good;
}

/* False: the block contradicts itself. */
static bool try(struct wan_tunnel *t, struct wan_fec_wait *w, rwy_time now)
{
	struct work k = {.t = t, .p = &t->path[w->r.path], .w = w, .code = wan_fec_code(t)};

	if (!k.code || w->done)
		return true;
	look(&k);
	if (!k.wanted) {
		give_up(t, w);
		return true;
	}
	if (k.e > w->n)
		return true; /* not yet */
	unused(t, w->r.path, w->n - k.e);
	return rebuild(&k, now);
}

/* --- repairs in --------------------------------------------------------------------------------- */
static bool same_block(
    const struct wan_fec_wait *w, const struct wan_f_repair *r, uint32_t len, uint8_t flags)
{
	return w->r.depth == r->depth && w->r.k == r->k && w->r.m == r->m && w->flags == flags &&
	       (w->done || w->len == len) && memcmp(w->r.map, r->map, sizeof(r->map)) == 0;
}

/* All of the block came: the common case, seen at the first repair. */
static bool complete(const struct wan_path *p, const struct wan_f_repair *r, uint64_t first)
{
	const struct wan_ranges *s = &p->seen;
	unsigned last = 8 * WAN_FEC_MAP_MAX - 1;

	while (!(r->map[last / 8] >> last % 8 & 1))
		last--;
	return s->end > s->first && s->r[s->end - 1].lo <= first &&
	       first + (uint64_t)last * r->depth <= s->r[s->end - 1].hi;
}

static void add(struct wan_tunnel *t, const struct wan_f_repair *r, uint64_t first, uint8_t flags,
    struct rwy_buf *b, rwy_time now)
{
	struct wan_fec_rx *x = t->fec_rx;
	struct wan_fec_wait *w = find(x, r, first);

	if (w && !same_block(w, r, b->len, flags))
		goto bad;
	if (w && w->done)
		goto unused;
	for (unsigned i = 0; w && i < w->n; i++)
		if (w->rows[i] == r->index)
			goto unused;
	if (!w) {
		w = place(t);
		memset(w, 0, sizeof(*w));
		w->used = true;
		w->flags = flags;
		w->r = *r;
		w->first = first;
		w->len = b->len;
		w->age = ++x->age;
		x->live++;
	}
	w->rows[w->n] = r->index;
	w->rep[w->n++] = b;
	if (++x->held > WAN_FEC_HELD_MAX)
		oldest_out(t);
	if (!try(t, w, now))
		t->c.drop_bad_repair++;
	return;
bad:
	t->c.drop_bad_repair++;
	rwy_buf_free(&t->cfg.bufs, b);
	return;
unused:
	unused(t, r->path, 1);
	rwy_buf_free(&t->cfg.bufs, b);
}

void wan_fec_on_repair(
    struct wan_tunnel *t, const struct wan_f_repair *r, uint8_t flags, struct rwy_buf *b, rwy_time now)
{
	struct wan_path *p = r->path < t->paths ? &t->path[r->path] : NULL;

	if (!p || !rx_of(t) || t->fec_rx->busy) {
		t->c.drop_bad_repair++;
		rwy_buf_free(&t->cfg.bufs, b);
		return;
	}
	uint64_t near = p->has_seen ? p->seen.r[p->seen.end - 1].hi : 0;
	uint64_t first = wan_expand(near, r->first);

	/* Far ahead of everything, or before the first: no such block. */
	if (first >> 62 || (first > near && first - near > WAN_FEC_KEEP)) {
		t->c.drop_bad_repair++;
		rwy_buf_free(&t->cfg.bufs, b);
		return;
	}
	t->c.repair_received++;
	p->fec_stats.received++;
	if (complete(p, r, first)) {
		unused(t, r->path, 1);
		rwy_buf_free(&t->cfg.bufs, b);
		return;
	}
	add(t, r, first, flags, b, now);
}

void wan_fec_on_data(struct wan_path *p, uint64_t pn, rwy_time now)
{
	struct wan_fec_rx *x = p->t->fec_rx;

	for (unsigned i = 0; i < WAN_FEC_BLOCKS; i++) {
		struct wan_fec_wait *w = &x->w[i];

		if (!w->used || w->done || w->r.path != p->id || pn < w->first)
			continue;
		uint64_t nth = pn - w->first, at = nth / w->r.depth;

		if (nth % w->r.depth || at >= (uint64_t)8 * WAN_FEC_MAP_MAX ||
		    !(w->r.map[at / 8] >> at % 8 & 1))
			continue;
		if (!try(p->t, w, now))
			p->t->c.drop_bad_repair++;
		return;
	}
}

/* --- REBUILT ------------------------------------------------------------------------------------ */
void wan_fec_put_rebuilt(struct wan_path *p, struct wan_out *o)
{
	uint32_t room = o->limit - (uint32_t)(o->at - o->tx->hdr);

	if (room < WAN_REBUILT_HEAD + p->fec_told_n * WAN_REBUILT_ENTRY)
		return;
	o->at[0] = WAN_F_REBUILT;
	o->at[1] = p->id;
	o->at[2] = (uint8_t)p->fec_told_n;
	o->at += WAN_REBUILT_HEAD;
	for (unsigned i = 0; i < p->fec_told_n; i++, o->at += WAN_REBUILT_ENTRY) {
		rwy_put64(o->at, p->fec_told[i].pn);
		o->at[8] = p->fec_told[i].more;
	}
	p->fec_told_n = 0;
}

void wan_fec_on_rebuilt(struct wan_path *p, uint64_t first, unsigned n, rwy_time now)
{
	for (uint64_t pn = first; pn < first + n && pn < p->next_pn; pn++) {
		struct wan_sent *e = &p->sent[pn & p->mask];

		if (p->next_pn - pn > p->mask || !e->group || (e->flags & WAN_S_REBUILT))
			continue;
		e->flags |= WAN_S_REBUILT;
		p->fec_stats.told++;
		if (e->state != WAN_SENT_LOST) /* else it is counted */
			wan_loss_on_rebuilt(p, pn, now);
	}
}

/* --- the end ------------------------------------------------------------------------------------ */
void wan_fec_rx_reset(struct wan_tunnel *t)
{
	for (unsigned i = 0; t->fec_rx && i < WAN_FEC_BLOCKS; i++) {
		settle(t, &t->fec_rx->w[i]);
		t->fec_rx->w[i].used = false;
	}
	if (t->fec_rx)
		t->fec_rx->live = 0;
	for (unsigned i = 0; i < t->paths; i++)
		if (t->path[i].fec_keep)
			memset(t->path[i].fec_keep->slot, 0, sizeof(t->path[i].fec_keep->slot));
}

void wan_fec_rx_free(struct wan_tunnel *t)
{
	wan_fec_rx_reset(t);
	free(t->fec_rx);
	t->fec_rx = NULL;
	for (unsigned i = 0; t->path && i < t->paths; i++)
		if (t->path[i].fec_keep) {
			free(t->path[i].fec_keep->bytes);
			free(t->path[i].fec_keep);
			t->path[i].fec_keep = NULL;
		}
}
