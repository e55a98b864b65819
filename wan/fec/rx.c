/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's half of forward error correction: received repairs, their blocks, and the moment
 * when a block has enough of them to rebuild what is missing (solve.c).
 *
 * The memory that a peer can make us hold is bounded: cfg.fec_rx_bytes of copies per path,
 * WAN_FEC_HELD_MAX repairs. Above a bound the oldest is dropped; the peer retransmits what we did
 * not acknowledge.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/fec/fec.h"

static struct wan_fec_rx *rx_of(struct wan_fec *t)
{
	if (!t->rx && t->on)
		t->rx = calloc(1, sizeof(*t->rx));
	return t->rx;
}

/* --- groups ----------------------------------------------------------------------------------- */
static bool is_of(const struct wan_fec_share *s, const struct wan_fec_wait *w)
{
	return s->used && w->used && w->r.path == s->r.path && w->r.depth == s->r.depth &&
	       w->first >= s->first && w->first - s->first < s->r.span;
}

/* Creates a block of which no repair came, from the group's data in a shared repair. */
static struct wan_fec_wait *infer(struct wan_fec *t, const struct wan_fec_share *s, unsigned turn)
{
	struct wan_f_repair r = {.path = s->r.path, .depth = s->r.depth};

	r.k = (uint8_t)(s->r.span / r.depth + (turn < s->r.span % r.depth));
	if (!r.k)
		return NULL;
	for (unsigned i = 0; i < r.k; i++)
		r.map[i / 8] |= (uint8_t)(1u << i % 8);
	struct wan_fec_wait *w = wan_fec_block_new(t, &r, s->first + turn, s->flags, s->len);

	wan_fec_look(t->path[r.path], w);
	return w;
}

/* Collects all blocks of the group. False: a block is unknown because none of its repairs came. */
static bool blocks_of(struct wan_fec *t, const struct wan_fec_share *s, struct wan_fec_job *j)
{
	struct wan_fec_rx *x = t->rx;
	struct wan_fec_wait *at[WAN_FEC_DEPTH_MAX] = {NULL};

	for (unsigned i = 0; i < WAN_FEC_BLOCKS; i++)
		if (is_of(s, &x->w[i]) && wan_fec_turn(s, &x->w[i]) < WAN_FEC_DEPTH_MAX)
			at[wan_fec_turn(s, &x->w[i])] = &x->w[i];
	for (unsigned i = 0; i < WAN_FEC_DEPTH_MAX; i++) {
		if (!(s->r.map[i / 8] >> i % 8 & 1))
			continue;
		if (!at[i] && !s->r.gaps)
			at[i] = infer(t, s, i);
		if (!at[i])
			return false;
		j->of[j->all++] = at[i];
	}
	return j->all == s->r.k;
}

/* Rebuilds, with the shared repairs, what blocks lost beyond their own repairs. False: a
 * contradiction. */
static bool try_group(struct wan_fec *t, struct wan_fec_share *s, rwy_time now)
{
	struct wan_fec_job j = {.p = t->path[s->r.path], .s = s};
	unsigned missing = 0, have = s->n;

	if (!blocks_of(t, s, &j))
		return true;
	for (unsigned i = 0; i < j.all; i++) {
		if (j.of[i]->whole)
			continue;
		j.w[j.blocks++] = j.of[i];
		missing += j.of[i]->missing;
		have += j.of[i]->n;
	}
	if (!j.blocks)
		wan_fec_share_give_up(t, s);
	if (!j.blocks || have < missing || missing > WAN_FEC_M_MAX)
		return true;
	/* Copies may have been dropped since the check: then more is missing. */
	for (unsigned i = 0; i < j.all; i++) {
		bool whole = j.of[i]->whole;

		wan_fec_look(j.p, j.of[i]);
		if (whole != j.of[i]->whole)
			return true;
	}
	wan_fec_unused(t, s->r.path, have - missing);
	return wan_fec_rebuild(t, &j, now);
}

/* --- enough repairs --------------------------------------------------------------------------- */
/* False: the block contradicts itself. */
static bool try_block(struct wan_fec *t, struct wan_fec_wait *w, rwy_time now)
{
	struct wan_fec_job j = {.p = t->path[w->r.path], .blocks = 1, .w = {w}};
	bool good = true;

	if (w->done)
		return true;
	if (!wan_fec_look(j.p, w)) {
		wan_fec_block_give_up(t, w);
	} else if (w->missing <= w->n) {
		wan_fec_unused(t, w->r.path, w->n - w->missing);
		good = wan_fec_rebuild(t, &j, now);
	}
	for (unsigned i = 0; i < WAN_FEC_SHARES; i++)
		if (is_of(&t->rx->s[i], w))
			good &= try_group(t, &t->rx->s[i], now);
	return good;
}

/* --- received repairs ------------------------------------------------------------------------- */
static bool same_block(
    const struct wan_fec_wait *w, const struct wan_f_repair *r, uint32_t len, uint8_t flags)
{
	return w->r.depth == r->depth && w->r.k == r->k && (w->r.m == r->m || !w->r.m) && w->flags == flags &&
	       w->len == len && memcmp(w->r.map, r->map, sizeof(r->map)) == 0;
}

/* All of the block was received: the common case, found at the first repair. */
static bool complete(const struct wan_fec_path *p, const struct wan_f_repair *r, uint64_t first)
{
	const struct wan_ranges *s = p->seen;

	return s->end > s->first && s->r[s->end - 1].lo <= first &&
	       first + (uint64_t)wan_fec_last_place(r) * r->depth <= s->r[s->end - 1].hi;
}

/* Remembers a complete block for its group only. */
static void note_complete(
    struct wan_fec *t, const struct wan_f_repair *r, uint64_t first, uint8_t flags, uint32_t len)
{
	if (r->depth == 1 || wan_fec_block_find(t->rx, r, first))
		return;
	struct wan_fec_wait *w = wan_fec_block_new(t, r, first, flags, len);

	w->whole = true;
	wan_fec_block_end(t, w);
}

enum verdict { TAKEN, UNUSED, BAD };

static enum verdict block_add(struct wan_fec *t, const struct wan_f_repair *r, uint64_t first, uint8_t flags,
    struct rwy_buf *b, rwy_time now)
{
	struct wan_fec_rx *x = t->rx;
	struct wan_fec_wait *w = wan_fec_block_find(x, r, first);

	if (w && w->done)
		return UNUSED;
	if (w && !same_block(w, r, b->len, flags))
		return BAD;
	for (unsigned i = 0; w && i < w->n; i++)
		if (w->rows[i] == r->index)
			return UNUSED;
	if (!w)
		w = wan_fec_block_new(t, r, first, flags, b->len);
	else if (w->n == WAN_FEC_M_MAX)
		return UNUSED;
	w->rows[w->n] = r->index;
	w->rep[w->n++] = b;
	if (++x->held > WAN_FEC_HELD_MAX)
		wan_fec_make_room(t);
	if (!try_block(t, w, now))
		t->c.bad++;
	return TAKEN;
}

static enum verdict add_shared(struct wan_fec *t, const struct wan_f_repair *r, uint64_t first, uint8_t flags,
    struct rwy_buf *b, rwy_time now)
{
	struct wan_fec_rx *x = t->rx;
	struct wan_fec_share *s = NULL, *old = &x->s[0];

	for (unsigned i = 0; i < WAN_FEC_SHARES; i++) {
		struct wan_fec_share *c = &x->s[i];

		if (c->used && c->first == first && c->r.path == r->path)
			s = c;
		if (!c->used || (old->used && c->age < old->age))
			old = c;
	}
	if (s && (s->r.depth != r->depth || s->r.k != r->k || s->r.m != r->m || s->r.span != r->span ||
	             s->r.gaps != r->gaps || s->len != b->len || s->flags != flags ||
	             memcmp(s->r.map, r->map, sizeof(r->map)) != 0))
		return BAD;
	for (unsigned i = 0; s && i < s->n; i++)
		if (s->rows[i] == r->index)
			return UNUSED;
	if (s && s->n == WAN_FEC_SHARED_MAX)
		return UNUSED;
	if (!s) {
		wan_fec_share_give_up(t, old);
		s = old;
		*s = (struct wan_fec_share){
		    .used = true, .flags = flags, .r = *r, .first = first, .len = b->len, .age = ++x->age};
	}
	s->rows[s->n] = r->index;
	s->rep[s->n++] = b;
	if (++x->held > WAN_FEC_HELD_MAX)
		wan_fec_make_room(t);
	if (!try_group(t, s, now))
		t->c.bad++;
	return TAKEN;
}

static enum verdict repair(
    struct wan_fec *t, const struct wan_f_repair *r, uint8_t flags, struct rwy_buf *b, rwy_time now)
{
	struct wan_fec_path *p = r->path < t->paths ? t->path[r->path] : NULL;

	if (!p || !rx_of(t) || t->rx->busy)
		return BAD;
	uint64_t near = wan_ranges_count(p->seen) ? p->seen->r[p->seen->end - 1].hi : 0;
	uint64_t first = wan_expand(near, r->first);

	/* far ahead of everything, or before the first: no such block exists */
	if (first >> 62 || (first > near && first - near > WAN_FEC_KEEP))
		return BAD;
	t->c.received++;
	p->stats.received++;
	if (r->shared)
		return add_shared(t, r, first, flags, b, now);
	if (complete(p, r, first)) {
		note_complete(t, r, first, flags, b->len);
		return UNUSED;
	}
	return block_add(t, r, first, flags, b, now);
}

void wan_fec_on_repair(
    struct wan_fec *t, const struct wan_f_repair *r, uint8_t flags, struct rwy_buf *b, rwy_time now)
{
	enum verdict v = repair(t, r, flags, b, now);

	if (v == UNUSED)
		wan_fec_unused(t, r->path, 1);
	else if (v == BAD)
		t->c.bad++;
	if (v != TAKEN)
		rwy_buf_free(t->bufs, b);
}

void wan_fec_on_data(struct wan_fec_path *p, uint64_t pn, rwy_time now)
{
	struct wan_fec_rx *x = p->fec->rx;

	for (unsigned i = 0; pn <= x->last && i < WAN_FEC_BLOCKS; i++) {
		struct wan_fec_wait *w = &x->w[i];

		if (!w->used || w->done || w->r.path != p->id || pn < w->first)
			continue;
		uint64_t nth = pn - w->first, at = nth / w->r.depth;

		if (nth % w->r.depth || at >= (uint64_t)8 * WAN_FEC_MAP_MAX ||
		    !(w->r.map[at / 8] >> at % 8 & 1))
			continue;
		if (!try_block(p->fec, w, now))
			p->fec->c.bad++;
		return;
	}
}

/* --- REBUILT ---------------------------------------------------------------------------------- */
#define ACK_ROOM 120u /* bytes: an ACK with many ranges */

static uint8_t *put_range(uint8_t *at, const struct wan_fec_rebuilt *l)
{
	rwy_put64(at, l->pn);
	at[8] = l->more;
	return at + WAN_REBUILT_ENTRY;
}

/*
 * Each range is said twice. The ACK that follows a lost report names the same numbers; without the
 * report the peer would take them for late arrivals, and the path for one that reorders. The second
 * time takes only room that the ACK behind it does not need.
 */
uint8_t *wan_fec_put_rebuilt(struct wan_fec_path *p, uint8_t *at, const uint8_t *end, bool again)
{
	uint32_t room = (uint32_t)(end - at);
	unsigned most = room < WAN_REBUILT_HEAD ? 0 : (room - WAN_REBUILT_HEAD) / WAN_REBUILT_ENTRY;
	unsigned fresh = most < p->reports ? most : p->reports;
	unsigned spare =
	    room < WAN_REBUILT_HEAD + ACK_ROOM ? 0 : (room - WAN_REBUILT_HEAD - ACK_ROOM) / WAN_REBUILT_ENTRY;
	unsigned told = again && spare > fresh ? spare - fresh : 0;

	told = told < p->told_n ? told : p->told_n;
	if (!fresh && !told)
		return at;
	at[0] = WAN_F_REBUILT;
	at[1] = p->id;
	at[2] = (uint8_t)(fresh + told);
	at += WAN_REBUILT_HEAD;
	for (unsigned i = 0; i < told; i++)
		at = put_range(at, &p->told[i]);
	p->told_n = 0;
	for (; fresh; fresh--) {
		const struct wan_fec_rebuilt *l = &p->report[--p->reports];

		at = put_range(at, l);
		if (p->told_n < WAN_FEC_TOLD)
			p->told[p->told_n++] = *l;
	}
	return at;
}

/* --- reset ------------------------------------------------------------------------------------ */
void wan_fec_rx_reset(struct wan_fec *t)
{
	struct wan_fec_rx *x = t->rx;

	for (unsigned i = 0; x && i < WAN_FEC_BLOCKS; i++) {
		wan_fec_block_end(t, &x->w[i]);
		x->w[i].used = false;
	}
	for (unsigned i = 0; x && i < WAN_FEC_SHARES; i++)
		wan_fec_share_end(t, &x->s[i]);
	if (x) {
		x->live = 0;
		x->last = 0;
	}
	for (unsigned i = 0; i < t->paths; i++)
		wan_fec_keep_forget(t->path[i]);
}

void wan_fec_fini(struct wan_fec *t)
{
	wan_fec_rx_reset(t);
	free(t->rx);
	t->rx = NULL;
	for (unsigned i = 0; i < t->paths; i++)
		wan_fec_keep_free(t->path[i]);
	free(t->own);
	t->own = NULL;
}
