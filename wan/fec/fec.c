/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender's half of forward error correction. Each protected datagram is added to its block's
 * repair symbols while it is sent: its bytes are read in place, not copied, and not needed later.
 * The coefficients do not depend on the length of a block, so a block can end at any time: when it
 * is full, when nothing more is to be sent, or when it is old.
 */
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>

#include "wan/fec/fec.h"

/* parts of a round trip: to wait after a message ended, as others may follow at once, */
#define LINGER_END 128
#define LINGER_MID 16 /* and within a message, as more must come; */
#define AGE_PARTS  3  /* of an open group; less than wan_fec_outcome waits */
/* Repairs wait to be sent for two round trips and this long. */
#define PENDING_MORE (100 * RWY_MS)

/* Datagrams of the largest group. */
#define LARGEST_GROUP (WAN_FEC_K_MAX * WAN_FEC_DEPTH_MAX)

/* --- a group ---------------------------------------------------------------------------------- */
static void parity_free(struct wan_fec_path *p)
{
	const struct rwy_bufs *bufs = p->fec->bufs;

	for (unsigned i = 0; i < WAN_FEC_DEPTH_MAX; i++)
		for (unsigned r = 0; r < WAN_FEC_M_MAX; r++)
			if (p->tx->b[i].par[r]) {
				rwy_buf_free(bufs, p->tx->b[i].par[r]);
				p->tx->b[i].par[r] = NULL;
				p->fec->parity--;
			}
	for (unsigned i = 0; i < WAN_FEC_SHARED_MAX; i++)
		if (p->tx->shared[i]) {
			rwy_buf_free(bufs, p->tx->shared[i]);
			p->tx->shared[i] = NULL;
			p->fec->parity--;
		}
}

static void group_done(struct wan_fec_path *p, rwy_time now)
{
	struct wan_fec_tx *f = p->tx;
	struct wan_fec_outcome *x = &f->outcome[f->group % WAN_FEC_GROUPS];

	f->pending = 0;
	parity_free(p);
	*x = (struct wan_fec_outcome){
	    .group = f->group, .done = true, .last_pn = *p->next_pn ? *p->next_pn - 1 : 0, .sent = now};
}

void wan_fec_tx_reset(struct wan_fec_path *p, rwy_time now)
{
	if (!p->tx)
		return;
	if (p->tx->open || p->tx->pending)
		group_done(p, now);
	p->tx->open = false;
	wan_fec_lose_credit(p);
}

void wan_fec_tx_free(struct wan_fec_path *p)
{
	wan_fec_tx_reset(p, 0);
	free(p->tx);
	p->tx = NULL;
}

static bool zeros(struct wan_fec_path *p, struct rwy_buf **b)
{
	uint32_t len = p->fec->mtu - WAN_PKT_HDR - WAN_REPAIR_MAX;

	*b = rwy_buf_alloc(p->fec->bufs, WAN_REASM_ROOM, len);
	if (!*b)
		return false;
	memset((*b)->data, 0, len);
	(*b)->kind = RWY_BUF_PARITY;
	p->fec->parity++;
	return true;
}

static bool parity_new(struct wan_fec_path *p, const struct wan_fec_plan *plan)
{
	bool good = true;

	for (unsigned i = 0; i < plan->depth; i++) {
		struct wan_fec_block *b = &p->tx->b[i];

		b->k = 0;
		memset(b->map, 0, sizeof(b->map));
		for (unsigned r = 0; good && r < plan->m; r++)
			good = zeros(p, &b->par[r]);
	}
	for (unsigned i = 0; good && i < plan->g; i++)
		good = zeros(p, &p->tx->shared[i]);
	if (!good)
		parity_free(p);
	return good;
}

static bool open_group(struct wan_fec_path *p, const struct wan_fec_plan *plan, rwy_time now)
{
	if (!wan_fec_code(p->fec))
		return false;
	if (!p->tx)
		p->tx = calloc(1, sizeof(*p->tx));
	if (!p->tx || !parity_new(p, plan))
		return false;
	struct wan_fec_tx *f = p->tx;

	if (!++f->group)
		f->group = 1; /* 0 means none */
	f->outcome[f->group % WAN_FEC_GROUPS] = (struct wan_fec_outcome){.group = f->group};
	f->open = true;
	f->first = *p->next_pn;
	f->depth = plan->depth;
	f->m = plan->m;
	f->g = plan->g;
	f->turns = f->g ? WAN_FEC_M_MAX - f->m - f->g + 1 : 1;
	f->len = 0;
	f->n_max = plan->n;
	f->n = 0;
	f->eps = plan->eps;
	f->opened = now;
	f->close_at = RWY_NEVER;
	return true;
}

/* Decides how many of the planned repairs are sent: the group may have ended early, the loss may
 * have changed, and credit may be short. */
static void settle_on(struct wan_fec_path *p, unsigned k, unsigned blocks)
{
	struct wan_fec_tx *f = p->tx;
	struct wan_fec_law law = {.loss = wan_fec_expect(p), .burst = wan_fec_burst(p)};
	double most = p->fec->credit / (f->len ? f->len : 1);
	struct wan_fec_plan plan = {.depth = blocks, .eps = f->eps};

	f->send_m = f->send_g = 0;
	/* One repair per block or none at all: a small lack of credit is borrowed. */
	if (most < blocks && most + WAN_FEC_DEPTH_MAX >= blocks)
		most = blocks;
	if (most < blocks)
		return;
	if (law.burst < 1.5)
		law.burst = 1;
	wan_fec_choose(k, &law, most < WAN_FEC_PARITY_MAX ? (unsigned)most : WAN_FEC_PARITY_MAX, &plan);
	/* Keep the plan rather than send fewer repairs of one kind without more of the other. */
	bool as_planned = plan.g > f->g && f->m * blocks + f->g <= most;

	f->send_m = plan.m < f->m && !as_planned ? plan.m : f->m;
	f->send_g = plan.g < f->g ? plan.g : f->g;
	if (!f->send_m || !f->b[0].k)
		f->send_g = 0;
}

static void close_group(struct wan_fec_path *p, rwy_time now)
{
	struct wan_fec_tx *f = p->tx;
	unsigned k = 0, blocks = 0;

	f->open = false;
	f->n_before = f->n;
	f->close_at = RWY_NEVER;
	f->send_m = f->send_g = 0;
	for (unsigned i = 0; i < f->depth; i++) {
		k = f->b[i].k > k ? f->b[i].k : k;
		blocks += f->b[i].k > 0;
	}
	if (k && !wan_fec_congested(p, now))
		settle_on(p, k, blocks);
	f->at = 0;
	f->pending = f->send_m * blocks + f->send_g;
	if (!f->pending)
		group_done(p, now);
}

/* A group of the few last datagrams could not afford repairs against a burst: the group before
 * takes them in. */
static void stretch(struct wan_fec_tx *f, uint64_t waits, uint32_t bytes)
{
	uint64_t left;

	if (f->n + 1 < f->n_max)
		return;
	left = waits / bytes;
	if (left && left <= f->n_max / 8 && (f->n_max + left) <= (uint64_t)f->depth * WAN_FEC_K_MAX)
		f->n_max += (unsigned)left;
}

/* A group as vain as the one that was refused since the last ACK. */
static bool known_vain(const struct wan_fec_path *p, uint64_t total, uint64_t waiting, uint32_t bytes)
{
	const struct wan_fec_vain *v = &p->vain;

	return total <= v->total && waiting <= v->waiting && bytes >= v->bytes;
}

/*
 * A bound from credit and share tells that no plan is affordable. A plan has at least one repair,
 * and one for each WAN_FEC_K_MAX datagrams; the largest possible group earns most.
 */
static bool affordable(const struct wan_fec_path *p, uint64_t left, uint32_t bytes, bool small)
{
	double share = p->share[small], credit = p->fec->credit, largest = (double)LARGEST_GROUP * bytes;
	double surplus = share > 1.0 / WAN_FEC_K_MAX ? share - 1.0 / WAN_FEC_K_MAX : 0;

	if (largest > WAN_FEC_WINDOW)
		largest = WAN_FEC_WINDOW;
	if (largest > (double)left)
		largest = (double)left;
	largest += bytes;
	return share * largest + credit >= bytes && surplus * largest + credit >= 0;
}

/* The part of a flow that goes by this path. */
static struct wan_fec_flow own_part(const struct wan_fec_flow *f)
{
	struct wan_fec_flow own = *f;

	if (f->part >= WAN_FEC_ALL)
		return own;
	own.waiting = (f->waiting * f->part + WAN_FEC_ALL - 1) / WAN_FEC_ALL;
	own.sent = f->sent * f->part / WAN_FEC_ALL;
	own.peak = (uint32_t)(((uint64_t)f->peak * f->part + WAN_FEC_ALL - 1) / WAN_FEC_ALL);
	return own;
}

/* --- a datagram ------------------------------------------------------------------------------- */
bool wan_fec_wants(struct wan_fec_path *p, const struct wan_fec_flow *f, uint32_t len, rwy_time now)
{
	const struct wan_fec *x = p->fec;

	if (wan_fec_idle(p) || wan_fec_pending(p))
		return false;
	const struct wan_fec_flow own = own_part(f);

	if (wan_fec_congested(p, now) || !wan_fec_near_end(p, &own))
		return false;
	struct wan_fec_plan plan;
	uint64_t n = own.waiting, left = n ? n * f->size : len;
	uint32_t bytes = len < x->mtu ? len : x->mtu;

	if (p->tx && p->tx->open) {
		stretch(p->tx, left, bytes);
		return true;
	}
	uint64_t total = f->sent + (n ? f->waiting * f->size : len), mine = own.sent + left;
	bool small = total <= (uint64_t)1 << 20;

	/* More of the message must come, however few of its buffers are here. */
	uint64_t more = p->flight < WAN_FEC_WINDOW ? p->flight : WAN_FEC_WINDOW;
	bool streams = left < more && !f->ends;

	if (streams)
		left = more;
	if (total < left)
		total = left;
	if (mine < left)
		mine = left;
	if (wan_fec_needless(p, total, bytes) || (streams && known_vain(p, total, n, bytes)))
		return false;
	if (!affordable(p, left, bytes, small))
		return false;
	const struct wan_fec_message y = {.total = total / bytes,
	    .own = mine / bytes,
	    .left = (left + bytes - 1) / bytes,
	    .bytes = bytes,
	    .small = small};

	if (!wan_fec_plan(p, &y, &plan))
		return false;
	/* So many datagrams of a run's size wait. */
	uint64_t waits = f->size < len ? n * f->size / bytes : n;

	if (streams && wan_fec_in_vain(p, waits, bytes, &plan)) {
		p->vain = (struct wan_fec_vain){.total = total, .waiting = n, .bytes = bytes};
		return false;
	}
	return open_group(p, &plan, now);
}

bool wan_fec_takes(struct wan_fec_path *p, uint32_t bytes, rwy_time now)
{
	struct wan_fec_tx *f = p->tx;

	if (!f || !f->open || bytes + WAN_FEC_ROOM > p->fec->mtu)
		return false;
	uint64_t place = (*p->next_pn - f->first) / f->depth;

	if (place >= (uint64_t)8 * WAN_FEC_MAP_MAX) {
		close_group(p, now);
		return false;
	}
	/* Packet numbers used by other datagrams make blocks unequally full. */
	return f->b[(*p->next_pn - f->first) % f->depth].k < WAN_FEC_K_MAX;
}

/* ISA-L's vector code needs this length; shorter input goes byte by byte, which for a header costs
 * as much as 4 KiB. Padding with zeros changes no sum, and repairs are longer than that. */
#define MIX_LEAST 64u
static_assert(
    576 - WAN_PKT_HDR - WAN_REPAIR_MAX >= WAN_FEC_PREFIX + WAN_HDR_MAX + MIX_LEAST, "of the least MTU");

/* Adds bytes at an offset of a symbol to all repairs of its block and to the shared ones. The
 * shared rows of coefficients follow the block's own. They differ between blocks: otherwise two
 * blocks that miss the same symbol could not be told apart. */
static void mix(
    struct wan_fec_path *p, struct wan_fec_block *b, uint32_t at, const uint8_t *bytes, uint32_t len)
{
	struct wan_fec_tx *f = p->tx;
	uint8_t *out[WAN_FEC_M_MAX], padded[MIX_LEAST];
	size_t row = (size_t)(b - f->b) % f->turns;

	if (len < MIX_LEAST) {
		memcpy(padded, bytes, len);
		memset(padded + len, 0, MIX_LEAST - len);
		bytes = padded;
		len = MIX_LEAST;
	}
	for (unsigned r = 0; r < f->m; r++)
		out[r] = b->par[r]->data + at;
	for (unsigned r = 0; r < f->g; r++)
		out[f->m + r] = f->shared[r]->data + at;
	ec_encode_data_update((int)len, WAN_FEC_K_MAX, (int)(f->m + f->g), (int)b->k,
	    (*p->fec->code)->tbl + row * WAN_FEC_K_MAX * 32, (uint8_t *)(uintptr_t)bytes, out);
}

uint32_t wan_fec_add(struct wan_fec_path *p, const struct wan_fec_symbol *s, rwy_time now)
{
	struct wan_fec_tx *f = p->tx;
	uint64_t nth = *p->next_pn - f->first, place = nth / f->depth;
	struct wan_fec_block *b = &f->b[nth % f->depth];
	uint32_t head = s->hdr_len - WAN_PKT_HDR, len = WAN_FEC_PREFIX + head + s->len, group = f->group;
	uint8_t front[WAN_FEC_PREFIX + WAN_HDR_MAX];

	rwy_put16(front, (uint16_t)(head + s->len));
	memcpy(front + 2, s->hdr + 16, 4);
	memcpy(front + WAN_FEC_PREFIX, s->hdr + WAN_PKT_HDR, head);
	mix(p, b, 0, front, WAN_FEC_PREFIX + head);
	if (s->len)
		mix(p, b, WAN_FEC_PREFIX + head, s->payload, s->len);
	f->span = (unsigned)nth + 1;
	b->map[place / 8] |= (uint8_t)(1u << place % 8);
	b->k++;
	if (len > f->len)
		f->len = len;
	f->ended = s->ends;
	f->close_at = RWY_NEVER;
	if (++f->n >= f->n_max)
		close_group(p, now);
	return group;
}

/* --- repairs ---------------------------------------------------------------------------------- */
/* Trims the map so that the block's first symbol has its first place. */
static void map_trim(struct wan_f_repair *r, const struct wan_fec_block *b, uint64_t first, unsigned depth)
{
	unsigned skip = 0, n = 0;

	while (!(b->map[skip / 8] >> skip % 8 & 1))
		skip++;
	r->first = (uint32_t)(first + (uint64_t)skip * depth);
	for (unsigned i = skip; i < 8 * WAN_FEC_MAP_MAX; i++)
		if (b->map[i / 8] >> i % 8 & 1) {
			r->map[(i - skip) / 8] |= (uint8_t)(1u << (i - skip) % 8);
			n = i - skip + 1;
		}
	r->map_len = n == b->k ? 0 : (uint8_t)((n + 7) / 8);
}

/* Returns one repair of each block in turn, so that a burst does not take all of one block. The
 * shared ones come last. */
static struct rwy_buf **next_repair(struct wan_fec_path *p, struct wan_f_repair *r)
{
	struct wan_fec_tx *f = p->tx;
	struct wan_fec_block *b;
	unsigned row;

	if (f->pending <= f->send_g) {
		row = f->send_g - f->pending;
		*r = (struct wan_f_repair){.shared = true, .first = (uint32_t)f->first};
		for (unsigned i = 0; i < f->depth; i++)
			if (f->b[i].k) {
				r->map[i / 8] |= (uint8_t)(1u << i % 8);
				r->map_len = (uint8_t)(i / 8 + 1);
				r->k++;
			}
		r->m = (uint8_t)f->turns;
		r->span = (uint16_t)f->span;
		r->gaps = f->span != f->n;
		r->index = (uint8_t)(f->m + row);
		return &f->shared[row];
	}
	do {
		b = &f->b[f->at % f->depth];
		row = f->at / f->depth;
		f->at++;
	} while (!b->k);
	*r = (struct wan_f_repair){.k = (uint8_t)b->k, .m = (uint8_t)f->send_m};
	r->index = (uint8_t)((unsigned)(b - f->b) % f->turns + row);
	map_trim(r, b, f->first + (uint64_t)(b - f->b), f->depth);
	return &b->par[row];
}

struct rwy_buf *wan_fec_next_repair(struct wan_fec_path *p, struct wan_f_repair *r)
{
	struct rwy_buf **par = next_repair(p, r), *b = *par;

	r->path = p->id;
	r->depth = (uint8_t)p->tx->depth;
	b->len = p->tx->len;
	*par = NULL;
	p->fec->parity--;
	return b;
}

void wan_fec_repair_sent(struct wan_fec_path *p, uint32_t bytes, rwy_time now)
{
	struct wan_fec_tx *f = p->tx;

	wan_fec_spend(p, bytes);
	p->stats.sent++;
	p->stats.sent_bytes += bytes;
	p->fec->c.sent++;
	p->fec->c.sent_bytes += bytes;
	if (--f->pending == 0) {
		group_done(p, now);
		/* packet number of this repair */
		f->outcome[f->group % WAN_FEC_GROUPS].last_pn = *p->next_pn;
	}
}

void wan_fec_ended(struct wan_fec_path *p)
{
	if (!p->tx || !p->tx->open || p->tx->ended)
		return;
	p->tx->ended = true;
	p->tx->close_at = RWY_NEVER;
}

bool wan_fec_dry(struct wan_fec_path *p, rwy_time now)
{
	struct wan_fec_tx *f = p->tx;

	if (!f || !f->open)
		return false;
	if (f->close_at == RWY_NEVER)
		f->close_at = now + *p->srtt / (f->ended ? LINGER_END : LINGER_MID);
	if (now < f->close_at)
		return false;
	close_group(p, now);
	return f->pending;
}

/* Repairs that could not be sent until then come after the data that was sent again. */
static rwy_time too_late(const struct wan_fec_path *p)
{
	return p->tx->opened + 2 * *p->srtt + PENDING_MORE;
}

void wan_fec_age(struct wan_fec_path *p, rwy_time now)
{
	struct wan_fec_tx *f = p->tx;

	if (f && f->open && now >= f->opened + *p->srtt / AGE_PARTS)
		close_group(p, now);
	else if (f && f->pending && now >= too_late(p))
		group_done(p, now);
}

rwy_time wan_fec_next(const struct wan_fec_path *p)
{
	const struct wan_fec_tx *f = p->tx;

	if (f && f->open)
		return f->opened + *p->srtt / AGE_PARTS;
	return f && f->pending ? too_late(p) : RWY_NEVER;
}

rwy_time wan_fec_dry_next(const struct wan_fec_path *p)
{
	return p->tx && p->tx->open ? p->tx->close_at : RWY_NEVER;
}

void wan_fec_outcome(const struct wan_fec_path *p, uint32_t group, uint64_t *pn, rwy_time *sent)
{
	const struct wan_fec_outcome *x = p->tx ? &p->tx->outcome[group % WAN_FEC_GROUPS] : NULL;
	rwy_time latest = *sent + *p->srtt / 2; /* limit, whatever delays the repairs */

	if (!x || x->group != group)
		return;
	*pn = x->done ? x->last_pn : UINT64_MAX;
	*sent = x->done ? rwy_time_min(x->sent, latest) : latest;
}
