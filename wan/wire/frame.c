/* SPDX-License-Identifier: Apache-2.0 */
/* ACK, DATA and DGRAM frames: from bytes to structs and back. The small fixed frames are read and
 * written where they are used. */
#include "wan/wire/pkt.h"

#define PN_LIMIT ((uint64_t)1 << 62) /* limit of a variable-length integer */

uint8_t *wan_f_ack_put(uint8_t *p, size_t room, const struct wan_f_ack *a)
{
	uint8_t *end = p + room - (a->has_ecn ? 12 : 0);
	uint8_t *count = p + WAN_ACK_COUNT;
	unsigned n = 1;

	p[0] = a->has_ecn ? WAN_F_ACK_ECN : WAN_F_ACK;
	p[1] = a->path;
	rwy_put64(p + 2, a->r[0].hi);
	rwy_put32(p + 10, a->delay_us);
	rwy_put32(p + 14, a->at_us);
	p = wan_varint_put(p + 19, a->r[0].hi - a->r[0].lo);
	for (; n < a->n; n++) {
		uint64_t gap = a->r[n - 1].lo - a->r[n].hi - 2;
		uint64_t len = a->r[n].hi - a->r[n].lo;

		if ((size_t)(end - p) < wan_varint_size(gap) + wan_varint_size(len))
			break;
		p = wan_varint_put(p, gap);
		p = wan_varint_put(p, len);
	}
	*count = (uint8_t)n;
	if (a->has_ecn) {
		rwy_put32(p, a->ect0);
		rwy_put32(p + 4, a->ect1);
		rwy_put32(p + 8, a->ce);
		p += 12;
	}
	return p;
}

static const uint8_t *ack_ranges_get(const uint8_t *p, const uint8_t *end, struct wan_f_ack *a)
{
	uint64_t gap, len;

	p = wan_varint_get(p, end, &len);
	if (!p || len > a->r[0].hi)
		return NULL;
	a->r[0].lo = a->r[0].hi - len;
	for (unsigned i = 1; i < a->n; i++) {
		p = wan_varint_get(p, end, &gap);
		p = p ? wan_varint_get(p, end, &len) : NULL;
		if (!p || gap > PN_LIMIT - 2 || gap + 2 > a->r[i - 1].lo)
			return NULL;
		a->r[i].hi = a->r[i - 1].lo - gap - 2;
		if (len > a->r[i].hi)
			return NULL;
		a->r[i].lo = a->r[i].hi - len;
	}
	return p;
}

const uint8_t *wan_f_ack_get(const uint8_t *p, const uint8_t *end, uint8_t type, struct wan_f_ack *a)
{
	if (end - p < WAN_ACK_MIN - 2)
		return NULL;
	a->path = p[0];
	a->r[0].hi = rwy_get64(p + 1);
	a->delay_us = rwy_get32(p + 9);
	a->at_us = rwy_get32(p + 13);
	a->n = p[17];
	if (a->n < 1 || a->n > WAN_ACK_RANGES_MAX || a->r[0].hi >= PN_LIMIT)
		return NULL;
	p = ack_ranges_get(p + 18, end, a);
	a->has_ecn = type == WAN_F_ACK_ECN;
	a->ect0 = a->ect1 = a->ce = 0;
	if (!p || !a->has_ecn)
		return p;
	if (end - p < 12)
		return NULL;
	a->ect0 = rwy_get32(p);
	a->ect1 = rwy_get32(p + 4);
	a->ce = rwy_get32(p + 8);
	return p + 12;
}

size_t wan_f_data_size(const struct wan_f_data *d)
{
	if (d->run)
		return d->bundle ? WAN_BUNDLE_LEN : WAN_RUN_LEN;
	if (d->dgram)
		return WAN_DGRAM_LEN + (d->frag ? WAN_DGRAM_ID_LEN + WAN_FRAG_LEN : 0);
	return WAN_DATA_LEN + (d->frag ? WAN_FRAG_LEN : 0) + (d->wait ? WAN_AFTER_LEN : 0) +
	       (d->open ? WAN_OPEN_LEN + d->info_len : 0);
}

static uint8_t *frag_put(uint8_t *p, const struct wan_f_data *d)
{
	rwy_put16(p, d->total);
	rwy_put16(p + 2, d->fsize);
	p[4] = d->index;
	return p + WAN_FRAG_LEN;
}

static uint8_t *run_put(uint8_t *p, const struct wan_f_data *d)
{
	p[0] = WAN_F_RUN;
	p[1] = (uint8_t)(d->pcp << 4 | d->kind);
	rwy_put32(p + 2, d->flow);
	rwy_put32(p + 6, d->seq);
	p[10] = d->run;
	rwy_put16(p + 11, d->first);
	return p + WAN_RUN_LEN;
}

uint8_t *wan_f_bundle_put(uint8_t *p, const struct wan_f_data *d, uint32_t len)
{
	p[0] = (uint8_t)(d->pcp << 4 | d->kind);
	rwy_put32(p + 1, d->flow);
	rwy_put32(p + 5, d->seq);
	rwy_put16(p + 9, (uint16_t)len);
	return p + WAN_BUNDLE_ENTRY;
}

static uint8_t *bundle_put(uint8_t *p, const struct wan_f_data *d)
{
	p[0] = WAN_F_BUNDLE;
	p[1] = d->run;
	return wan_f_bundle_put(p + WAN_BUNDLE_HEAD, d, d->first);
}

uint8_t *wan_f_data_put(uint8_t *p, const struct wan_f_data *d)
{
	if (d->run)
		return d->bundle ? bundle_put(p, d) : run_put(p, d);
	if (d->dgram) {
		p[0] = WAN_F_DGRAM | (d->frag ? WAN_DATA_FRAG : 0);
		p[1] = (uint8_t)(d->pcp << 4 | d->kind);
		if (!d->frag)
			return p + WAN_DGRAM_LEN;
		rwy_put32(p + 2, d->seq);
		return frag_put(p + 6, d);
	}
	p[0] = (uint8_t)(WAN_F_DATA | (d->open ? WAN_DATA_OPEN : 0) | (d->frag ? WAN_DATA_FRAG : 0) |
	                 (d->wait ? WAN_DATA_AFTER : 0));
	p[1] = (uint8_t)(d->pcp << 4 | d->kind);
	rwy_put32(p + 2, d->flow);
	rwy_put32(p + 6, d->seq);
	p += WAN_DATA_LEN;
	if (d->frag)
		p = frag_put(p, d);
	if (d->wait) {
		rwy_put32(p, d->after.flow);
		rwy_put32(p + 4, d->after.count);
		p += WAN_AFTER_LEN;
	}
	if (d->open) {
		rwy_put64(p, d->base);
		p[8] = d->info_len;
		if (d->info_len)
			memcpy(p + WAN_OPEN_LEN, d->info, d->info_len);
		p += WAN_OPEN_LEN + d->info_len;
	}
	return p;
}

/* The payload of a fragment must be exactly what total, size and index say, so that fragments
 * neither overlap nor leave holes. */
static bool frag_fits(const struct wan_f_data *d, size_t len)
{
	uint32_t off = (uint32_t)d->index * d->fsize;

	if (d->index >= WAN_FRAGS_MAX || d->fsize == 0 || off >= d->total)
		return false;
	if ((uint32_t)WAN_FRAGS_MAX * d->fsize < d->total)
		return false;
	return len == (d->total - off < d->fsize ? d->total - off : d->fsize);
}

static const uint8_t *frag_get(const uint8_t *p, const uint8_t *end, struct wan_f_data *d)
{
	if (end - p < WAN_FRAG_LEN)
		return NULL;
	d->total = rwy_get16(p);
	d->fsize = rwy_get16(p + 2);
	d->index = p[4];
	return p + WAN_FRAG_LEN;
}

static const uint8_t *open_get(const uint8_t *p, const uint8_t *end, struct wan_f_data *d)
{
	if (end - p < WAN_OPEN_LEN)
		return NULL;
	d->base = rwy_get64(p);
	d->info_len = p[8];
	d->info = p + WAN_OPEN_LEN;
	if (d->info_len > WAN_OPEN_MAX || end - d->info < d->info_len)
		return NULL;
	return d->info + d->info_len;
}

static const uint8_t *after_get(const uint8_t *p, const uint8_t *end, struct wan_f_data *d)
{
	if (end - p < WAN_AFTER_LEN)
		return NULL;
	d->after = (struct rwy_after){rwy_get32(p), rwy_get32(p + 4)};
	return p + WAN_AFTER_LEN;
}

/* The packets of a run must fill the rest of the datagram, and none may be empty. */
static bool run_fits(const uint8_t *p, const uint8_t *end, const struct wan_f_data *d)
{
	uint32_t len = d->first;

	for (unsigned i = 1; i < d->run; i++) {
		if (!len || (size_t)(end - p) < (size_t)len + WAN_RUN_NEXT)
			return false;
		p = wan_f_run_next(p, &len);
	}
	return d->run && len && (size_t)(end - p) == len;
}

static const uint8_t *run_get(const uint8_t *p, const uint8_t *end, struct wan_f_data *d)
{
	if (end - p < WAN_RUN_LEN)
		return NULL;
	*d = (struct wan_f_data){.kind = p[1] & 15,
	    .pcp = p[1] >> 4,
	    .flow = rwy_get32(p + 2),
	    .seq = rwy_get32(p + 6),
	    .run = p[10],
	    .first = rwy_get16(p + 11)};
	p += WAN_RUN_LEN;
	return run_fits(p, end, d) ? p : NULL;
}

const uint8_t *wan_f_bundle_next(const uint8_t *p, struct wan_f_data *d, uint32_t *len)
{
	d->kind = p[0] & 15;
	d->pcp = p[0] >> 4;
	d->flow = rwy_get32(p + 1);
	d->seq = rwy_get32(p + 5);
	*len = rwy_get16(p + 9);
	return p + WAN_BUNDLE_ENTRY;
}

/* The same for a bundle: p is in front of the first packet. */
static bool bundle_fits(const uint8_t *p, const uint8_t *end, unsigned n)
{
	struct wan_f_data d;
	uint32_t len;

	for (; n; n--) {
		if (end - p < WAN_BUNDLE_ENTRY)
			return false;
		p = wan_f_bundle_next(p, &d, &len);
		if (!len || (size_t)(end - p) < len)
			return false;
		p += len;
	}
	return p == end;
}

static const uint8_t *bundle_get(const uint8_t *p, const uint8_t *end, struct wan_f_data *d)
{
	uint32_t len;

	*d = (struct wan_f_data){.run = p[1], .bundle = true};
	p += WAN_BUNDLE_HEAD;
	if (!d->run || d->run > WAN_BUNDLE_MAX || !bundle_fits(p, end, d->run))
		return NULL;
	p = wan_f_bundle_next(p, d, &len);
	d->first = (uint16_t)len;
	return p;
}

const uint8_t *wan_f_data_get(const uint8_t *p, const uint8_t *end, struct wan_f_data *d)
{
	if (end - p < WAN_DGRAM_LEN)
		return NULL;
	if (p[0] == WAN_F_RUN)
		return run_get(p, end, d);
	if (p[0] == WAN_F_BUNDLE)
		return bundle_get(p, end, d);
	d->run = 0;
	d->bundle = false;
	d->dgram = (p[0] & ~WAN_DATA_FRAG) == WAN_F_DGRAM;
	d->open = !d->dgram && (p[0] & WAN_DATA_OPEN);
	d->frag = p[0] & WAN_DATA_FRAG;
	d->wait = !d->dgram && (p[0] & WAN_DATA_AFTER);
	d->kind = p[1] & 15;
	d->pcp = p[1] >> 4;
	d->info_len = 0;
	if (d->dgram) {
		p += WAN_DGRAM_LEN;
		if (d->frag) {
			if (end - p < WAN_DGRAM_ID_LEN)
				return NULL;
			d->seq = rwy_get32(p);
			p += WAN_DGRAM_ID_LEN;
		}
	} else {
		if (end - p < WAN_DATA_LEN)
			return NULL;
		d->flow = rwy_get32(p + 2);
		d->seq = rwy_get32(p + 6);
		p += WAN_DATA_LEN;
	}
	if (d->frag)
		p = frag_get(p, end, d);
	if (p && d->wait)
		p = after_get(p, end, d);
	if (p && d->open)
		p = open_get(p, end, d);
	if (!p || (d->frag ? !frag_fits(d, (size_t)(end - p)) : p == end))
		return NULL;
	return p;
}

uint8_t *wan_f_repair_put(uint8_t *p, const struct wan_f_repair *r)
{
	p[0] = r->shared ? WAN_F_SHARED : WAN_F_REPAIR;
	p[1] = r->path;
	p[2] = r->depth;
	p[3] = r->k;
	p[4] = r->m;
	p[5] = r->index;
	p[6] = r->map_len;
	rwy_put32(p + 7, r->first);
	p += WAN_REPAIR_LEN;
	if (r->shared) {
		rwy_put16(p, (uint16_t)(r->span | (r->gaps ? WAN_SHARED_GAPS : 0)));
		p += 2;
	}
	memcpy(p, r->map, r->map_len);
	return p + r->map_len;
}

static unsigned ones(const uint8_t *map, unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += (unsigned)__builtin_popcount(map[i]);
	return sum;
}

/* A repair's rows must exist, and all blocks of a group must lie within its depth. */
static bool repair_fits(const struct wan_f_repair *r)
{
	unsigned rows = r->shared ? r->index + r->m - 1u : r->index;

	if (!r->depth || !r->k || r->k > WAN_FEC_K_MAX || !r->m || r->m > WAN_FEC_M_MAX ||
	    rows >= WAN_FEC_M_MAX)
		return false;
	if (r->shared && (!r->span || (!r->gaps && r->span > r->depth * (unsigned)WAN_FEC_K_MAX)))
		return false;
	for (unsigned i = r->depth; r->shared && i < 8 * WAN_FEC_MAP_MAX; i++)
		if (r->map[i / 8] >> i % 8 & 1)
			return false;
	return true;
}

const uint8_t *wan_f_repair_get(const uint8_t *p, const uint8_t *end, struct wan_f_repair *r)
{
	if (end - p < WAN_REPAIR_LEN)
		return NULL;
	*r = (struct wan_f_repair){.shared = p[0] == WAN_F_SHARED,
	    .path = p[1],
	    .depth = p[2],
	    .k = p[3],
	    .m = p[4],
	    .index = p[5],
	    .map_len = p[6],
	    .first = rwy_get32(p + 7)};
	p += WAN_REPAIR_LEN;
	if (r->shared) {
		if (end - p < 2)
			return NULL;
		r->gaps = rwy_get16(p) & WAN_SHARED_GAPS;
		r->span = rwy_get16(p) & (WAN_SHARED_GAPS - 1);
		p += 2;
	}
	if (r->map_len > WAN_FEC_MAP_MAX || end - p < r->map_len)
		return NULL;
	memcpy(r->map, p, r->map_len);
	for (unsigned i = 0; !r->map_len && i < r->k; i++)
		r->map[i / 8] |= (uint8_t)(1u << i % 8);
	p += r->map_len;
	/* The first bit names the first datagram; a symbol is longer than its length and checksum
	 * fields. */
	if (!repair_fits(r) || !(r->map[0] & 1) || ones(r->map, WAN_FEC_MAP_MAX) != r->k ||
	    end - p <= WAN_FEC_PREFIX)
		return NULL;
	return p;
}
