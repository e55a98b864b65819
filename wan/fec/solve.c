/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuilding: the missing symbols of one or several blocks are the unknowns, their repairs the
 * equations. The received symbols are subtracted from each repair; a small matrix over GF(256)
 * remains. A rebuilt datagram carries its sender's checksum and is read as if it had come from the
 * wire; with a wrong checksum it is dropped.
 */
#include <assert.h>
#include <isa-l.h>
#include <string.h>

#include "wan/fec/fec.h"

struct work {
	struct wan_fec *t;
	struct wan_fec_job *j;
	const struct wan_fec_code *code;
	uint32_t len;
	unsigned e; /* missing symbols: block, column, packet number */
	struct wan_fec_wait *of[WAN_FEC_M_MAX];
	uint8_t col[WAN_FEC_M_MAX];
	uint64_t pn[WAN_FEC_M_MAX];
	unsigned q; /* repairs: block (NULL: shared) and row */
	struct wan_fec_wait *from[WAN_FEC_M_MAX];
	uint8_t row[WAN_FEC_M_MAX];
	struct rwy_buf *rep[WAN_FEC_M_MAX];
};

/* Returns the next used place of a block's map, from `i` on. */
static unsigned next_place(const struct wan_f_repair *r, unsigned i)
{
	while (!(r->map[i / 8] >> i % 8 & 1))
		i++;
	return i;
}

bool wan_fec_look(const struct wan_fec_path *p, struct wan_fec_wait *w)
{
	unsigned wanted = 0;

	w->missing = 0;
	for (unsigned i = 0, col = 0; col < w->r.k; col++, i++) {
		uint32_t len;

		i = next_place(&w->r, i);
		uint64_t pn = w->first + (uint64_t)i * w->r.depth;

		if (wan_fec_kept(p, pn, &len))
			continue;
		w->missing++;
		wanted += !wan_ranges_has(p->seen, pn);
	}
	w->whole = !w->missing;
	return wanted;
}

unsigned wan_fec_turn(const struct wan_fec_share *s, const struct wan_fec_wait *w)
{
	return (unsigned)((w->first - s->first) % s->r.depth);
}

/* Returns the row of repair q for a block. */
static unsigned row_for(const struct work *k, unsigned q, const struct wan_fec_wait *w)
{
	return k->row[q] + (k->from[q] ? 0 : wan_fec_turn(k->j->s, w) % k->j->s->r.m);
}

/* Collects a block's missing symbols. False: more than allowed. */
static bool unknowns(struct work *k, struct wan_fec_wait *w)
{
	for (unsigned i = 0, col = 0; col < w->r.k; col++, i++) {
		uint32_t len;

		i = next_place(&w->r, i);
		uint64_t pn = w->first + (uint64_t)i * w->r.depth;

		if (wan_fec_kept(k->j->p, pn, &len))
			continue;
		if (k->e == WAN_FEC_M_MAX)
			return false;
		k->of[k->e] = w;
		k->col[k->e] = (uint8_t)col;
		k->pn[k->e++] = pn;
	}
	return true;
}

/* Subtracts a block's received symbols from the repairs that contain them. False: a symbol is
 * longer than its repairs. */
static bool reduce(struct work *k, const struct wan_fec_wait *w)
{
	for (unsigned i = 0, col = 0; col < w->r.k; col++, i++) {
		uint32_t len;

		i = next_place(&w->r, i);
		const uint8_t *s = wan_fec_kept(k->j->p, w->first + (uint64_t)i * w->r.depth, &len);

		if (s && len > k->len)
			return false;
		for (unsigned q = 0; s && q < k->q; q++) {
			uint8_t *out = k->rep[q]->data;
			const uint8_t *tbl;

			if (k->from[q] && k->from[q] != w)
				continue;
			tbl = k->code->tbl + (size_t)row_for(k, q, w) * WAN_FEC_K_MAX * 32;
			ec_encode_data_update((int)len, WAN_FEC_K_MAX, 1, (int)col, (uint8_t *)(uintptr_t)tbl,
			    (uint8_t *)(uintptr_t)s, &out);
		}
	}
	return true;
}

/* Computes the inverse into mat[1], which turns repairs into missing symbols. False: these repairs
 * are not independent. */
static bool invert(struct work *k)
{
	struct wan_fec_rx *x = k->t->rx;

	for (unsigned q = 0; q < k->e; q++)
		for (unsigned c = 0; c < k->e; c++)
			x->mat[0][q * k->e + c] = k->from[q] && k->from[q] != k->of[c]
			                              ? 0
			                              : k->code->coef[row_for(k, q, k->of[c])][k->col[c]];
	return gf_invert_matrix(x->mat[0], x->mat[1], (int)k->e) == 0;
}

static void solve(struct work *k, struct rwy_buf *const *out)
{
	struct wan_fec_rx *x = k->t->rx;
	uint8_t *from[WAN_FEC_M_MAX] = {0}, *to[WAN_FEC_M_MAX] = {0};

	for (unsigned q = 0; q < k->e; q++) {
		assert(out[q]); /* alloc_out allocated it */
		from[q] = k->rep[q]->data;
		to[q] = out[q]->data;
	}
	ec_init_tables((int)k->e, (int)k->e, x->mat[1], x->tbl);
	ec_encode_data((int)k->len, (int)k->e, (int)k->e, x->tbl, from, to);
}

/* Turns a symbol into its datagram. False: the checksum is wrong. */
static bool unwrap(const struct work *k, const struct wan_fec_wait *w, struct rwy_buf *b, uint64_t pn)
{
	uint32_t len = rwy_get16(b->data), crc = rwy_get32(b->data + 2);
	uint32_t shift = WAN_PKT_HDR - WAN_FEC_PREFIX;
	struct wan_pkt h = {.version = WAN_VERSION,
	    .type = WAN_PKT_FRAMES,
	    .flags = w->flags | WAN_PKT_FEC,
	    .path = k->j->p->id,
	    .index = k->t->index,
	    .pn = pn};

	if (!len || len + WAN_FEC_PREFIX > b->len)
		return false;
	b->data -= shift;
	b->headroom = (uint16_t)(b->headroom - shift);
	b->len = WAN_PKT_HDR + len;
	wan_pkt_put(b->data, &h);
	rwy_put32(b->data + 16, crc);
	if (!wan_pkt_open(b->data, b->len))
		return false;
	rwy_put32(b->data + 16, crc); /* wan_pkt_open cleared it; it is part of the symbol */
	return true;
}

/* Queues a report to the peer. A burst is rebuilt block by block, so the numbers are out of
 * order. */
static void report(struct wan_fec_path *p, uint64_t pn)
{
	for (unsigned i = 0; i < p->reports; i++) {
		struct wan_fec_rebuilt *l = &p->report[i];

		if (l->more == UINT8_MAX || (l->pn + l->more + 1 != pn && pn + 1 != l->pn))
			continue;
		l->pn = l->pn < pn ? l->pn : pn;
		l->more++;
		return;
	}
	if (p->reports < WAN_FEC_REBUILT)
		p->report[p->reports++] = (struct wan_fec_rebuilt){.pn = pn};
	/* without a report the peer takes the datagram for a received one */
}

static void hand_on(const struct work *k, struct rwy_buf *b, uint64_t pn, rwy_time now)
{
	struct wan_fec *t = k->t;
	uint32_t crc = rwy_get32(b->data + WAN_PKT_HDR - 4);

	if (wan_ranges_has(k->j->p->seen, pn)) {
		rwy_buf_free(t->bufs, b);
		return;
	}
	wan_fec_keep(k->j->p, pn, crc, b->data + WAN_PKT_HDR, b->len - WAN_PKT_HDR);
	t->c.rebuilt++;
	k->j->p->stats.rebuilt++;
	t->rx->busy = true;
	t->ops->rebuilt(t->ctx, k->j->p->id, pn, b, now);
	t->rx->busy = false;
	if (wan_ranges_has(k->j->p->seen, pn))
		report(k->j->p, pn);
}

static bool gather(struct work *k)
{
	const struct wan_fec_job *j = k->j;

	k->len = j->s ? j->s->len : j->w[0]->len;
	for (unsigned i = 0; i < j->blocks; i++) {
		struct wan_fec_wait *w = j->w[i];
		unsigned before = k->e;

		if (!unknowns(k, w))
			return false;
		for (unsigned r = 0; r < w->n && r < k->e - before && w->len == k->len; r++) {
			k->from[k->q] = w;
			k->row[k->q] = w->rows[r];
			k->rep[k->q++] = w->rep[r];
		}
	}
	return k->e;
}

/* Selects as many repairs as unknowns. Repairs of one block are always independent; with shared
 * ones they are in 255 of 256 cases. Otherwise other shared repairs may do. */
static bool prepare(struct work *k)
{
	const struct wan_fec_share *s = k->j->s;

	if (!gather(k))
		return false;
	unsigned own = k->q, need = k->e - own;

	if (!need)
		return invert(k);
	for (unsigned skip = 0; s && skip + need <= s->n; skip++) {
		for (unsigned i = 0; i < need; i++) {
			k->from[own + i] = NULL;
			k->row[own + i] = s->rows[skip + i];
			k->rep[own + i] = s->rep[skip + i];
		}
		k->q = k->e;
		if (invert(k))
			return true;
	}
	return false;
}

static bool alloc_out(struct work *k, struct rwy_buf **out)
{
	const struct rwy_bufs *bufs = k->t->bufs;

	for (unsigned n = 0; n < k->e; n++) {
		out[n] = rwy_buf_alloc(bufs, WAN_REASM_ROOM + WAN_PKT_HDR, k->len);
		if (out[n])
			continue;
		k->t->c.no_buffer++;
		while (n)
			rwy_buf_free(bufs, out[--n]);
		return false;
	}
	return true;
}

static void free_repairs(struct work *k)
{
	for (unsigned i = 0; i < k->j->blocks; i++)
		wan_fec_block_end(k->t, k->j->w[i]);
	if (k->j->s)
		wan_fec_share_end(k->t, k->j->s);
}

bool wan_fec_rebuild(struct wan_fec *t, struct wan_fec_job *j, rwy_time now)
{
	struct work k = {.t = t, .j = j, .code = wan_fec_code(t)};
	struct rwy_buf *out[WAN_FEC_M_MAX] = {0};
	bool good;

	if (!k.code || !prepare(&k))
		return true; /* more repairs may come */
	if (!alloc_out(&k, out)) {
		free_repairs(&k);
		return true;
	}
	good = true;
	for (unsigned i = 0; good && i < (j->s ? j->all : j->blocks); i++)
		good = reduce(&k, j->s ? j->of[i] : j->w[i]);
	if (good)
		solve(&k, out);
	for (unsigned i = 0; i < k.e; i++)
		good = good && out[i] && unwrap(&k, k.of[i], out[i], k.pn[i]);
	for (unsigned i = 0; good && i < j->blocks; i++)
		j->w[i]->whole = true;
	free_repairs(&k); /* before the callbacks, which may end anything */
	for (unsigned i = 0; i < k.e; i++)
		if (good && out[i])
			hand_on(&k, out[i], k.pn[i], now);
		else if (out[i])
			rwy_buf_free(t->bufs, out[i]);
	return good;
}
