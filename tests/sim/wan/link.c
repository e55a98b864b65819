/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual link; see link.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/wan/bufs.h"
#include "tests/sim/wan/link.h"
#include "tests/sim/wan/wire.h"

#define RING_FIRST 1024
#define DUP_LATER  (RWY_MS) /* longest delay of a copy */

bool link_init(struct link *l, const struct scen *s, bool back, uint64_t seed)
{
	double rate = back && s->rrate > 0 ? s->rrate : s->rate;
	double loss = back && s->rloss >= 0 ? s->rloss : s->loss;

	*l = (struct link){.own = {.ns_byte = 8e9 / rate, .queue = s->queue, .mark = s->mark, .rng = ~seed},
	    .delay = (rwy_dur)(s->rtt / 2),
	    .free_order = s->order == ORDER_FREE,
	    .reorder_delay = (rwy_dur)s->reorder_delay,
	    .reorder = s->reorder,
	    .dup = s->dup,
	    .corrupt = s->corrupt,
	    .overhead = s->overhead,
	    .packet = s->pmtu + INNER_HEAD + WAN_DATA_HEAD + s->overhead,
	    .outage_from = (rwy_time)s->outage_from,
	    .outage_to = (rwy_time)(s->outage_from + s->outage_len),
	    .full = !scen_thin(s),
	    .rng = seed};
	loss_init(&l->loss, loss, s->burst, rng_next(&l->rng));
	if (!jitter_init(&l->jitter, s, &l->rng))
		return false;
	l->line = &l->own;
	l->mask = RING_FIRST - 1;
	l->ring = aligned_alloc(64, RING_FIRST * sizeof(*l->ring));
	l->full_ring = calloc(l->full ? RING_FIRST : 1, sizeof(*l->full_ring));
	return l->ring && l->full_ring;
}

void link_change(struct link *l, const struct scen *s, bool back)
{
	double rate = back && s->rrate > 0 ? s->rrate : s->rate;
	double loss = back && s->rloss >= 0 ? s->rloss : s->loss;

	l->line->ns_byte = 8e9 / rate;
	l->delay = (rwy_dur)(s->rtt / 2);
	l->jitter.size = s->jitter;
	loss_init(&l->loss, loss, s->burst, rng_next(&l->rng));
}

void link_fini(struct link *l)
{
	for (uint64_t i = 0; l->full && i <= l->mask; i++)
		free(l->full_ring[i]);
	for (uint32_t i = 0; i < l->heap.n; i++) {
		struct overtaken *x = l->heap.v[i].what;

		free(x->full);
		free(x);
	}
	free(l->heap.v);
	jitter_fini(&l->jitter);
	free(l->ring);
	free(l->full_ring);
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void ring_grow(struct link *l)
{
	uint64_t cap = (l->mask + 1) * 2;
	struct pkt *r = must(aligned_alloc(64, cap * sizeof(*r)));

	for (uint64_t i = l->head; i != l->tail; i++)
		r[i & (cap - 1)] = l->ring[i & l->mask];
	if (l->full) {
		uint8_t **f = must(calloc(cap, sizeof(*f)));

		for (uint64_t i = l->tail - l->mask - 1; i != l->tail; i++)
			f[i & (cap - 1)] = l->full_ring[i & l->mask];
		free(l->full_ring);
		l->full_ring = f;
	}
	free(l->ring);
	l->ring = r;
	l->mask = cap - 1;
}

/* --- in ------------------------------------------------------------------------------------------- */
static void write_pkt(
    struct link *l, struct pkt *p, uint8_t **full, const struct link_dgram *d, bool ce, rwy_time at)
{
	uint32_t keep = l->full ? d->len : d->len < THIN_BYTES ? d->len : THIN_BYTES;
	uint8_t *to = p->data;

	p->at = at;
	p->len = (uint16_t)(d->hdr_len + d->len);
	p->hdr_len = d->hdr_len;
	p->path = d->path;
	p->bad = false;
	p->real = d->real;
	p->ce = ce;
	if (!l->full && d->hdr_len + keep > PKT_KEEP)
		keep = PKT_KEEP - d->hdr_len;
	p->stored = (uint16_t)(d->hdr_len + keep);
	if (l->full) {
		if (!*full)
			*full = must(malloc(BUF_BIG));
		to = *full;
	}
	memcpy(to, d->hdr, d->hdr_len);
	if (keep)
		memcpy(to + d->hdr_len, d->payload, keep);
	if (l->corrupt > 0 && rng_unit(&l->rng) < l->corrupt) {
		to[rng_next(&l->rng) % d->hdr_len] ^= (uint8_t)(1 + rng_next(&l->rng) % 255);
		p->bad = true;
		l->st.corrupted++;
	}
}

static void overtaken(struct link *l, const struct link_dgram *d, bool ce, rwy_time at)
{
	struct overtaken *x = must(calloc(1, sizeof(*x)));

	write_pkt(l, &x->p, &x->full, d, ce, at);
	due_push(&l->heap, &(struct due){.at = at, .order = l->order++, .what = x});
}

bool link_send(struct link *l, const struct link_dgram *d, rwy_time now)
{
	uint32_t wire = d->hdr_len + d->len + (uint32_t)l->overhead;
	double idle = l->line->busy < (double)now ? (double)now - l->line->busy : 0;
	bool ce = false;
	rwy_time at = line_send(l->line, wire, &ce, now);

	l->st.sent++;
	l->st.bytes += wire;
	if (at == RWY_NEVER) {
		l->st.dropped++;
		return false;
	}
	if (l->loss.bad)
		loss_idle(&l->loss, idle / (l->packet * l->line->ns_byte));
	if (loss_next(&l->loss) || (now >= l->outage_from && now < l->outage_to)) {
		l->st.lost++;
		return false;
	}
	l->st.passed += wire;
	at += jitter_next(&l->jitter, l->delay, &l->rng);
	if (l->dup > 0 && rng_unit(&l->rng) < l->dup) {
		l->st.duplicated++;
		overtaken(l, d, ce, at + rng_next(&l->rng) % DUP_LATER);
	}
	if (l->reorder > 0 && rng_unit(&l->rng) < l->reorder) {
		l->st.reordered++;
		overtaken(l, d, ce, at + l->reorder_delay);
		return true;
	}
	if (at < l->last_at && l->free_order) {
		l->st.reordered++;
		overtaken(l, d, ce, at);
		return true;
	}
	at = rwy_time_max(at, l->last_at);
	l->last_at = at;
	if (l->tail - l->head > l->mask)
		ring_grow(l);
	write_pkt(
	    l, &l->ring[l->tail & l->mask], l->full ? &l->full_ring[l->tail & l->mask] : NULL, d, ce, at);
	l->tail++;
	return true;
}

/* --- output ----------------------------------------------------------------------------------- */
const struct pkt *link_recv(struct link *l, const uint8_t **bytes, rwy_time now)
{
	static struct pkt out; /* for the packet taken from the heap; the program has one thread */
	static uint8_t out_full[BUF_BIG];
	rwy_time ring = l->head != l->tail ? l->ring[l->head & l->mask].at : RWY_NEVER;
	rwy_time heap = due_next(&l->heap);

	if (rwy_time_min(ring, heap) > now)
		return NULL;
	l->st.delivered++;
	if (ring <= heap) {
		struct pkt *p = &l->ring[l->head & l->mask];

		*bytes = l->full ? l->full_ring[l->head & l->mask] : p->data;
		l->head++;
		__builtin_prefetch(&l->ring[(l->head + 2) & l->mask]);
		__builtin_prefetch(l->ring[(l->head + 2) & l->mask].data + 48);
		return p;
	}
	struct overtaken *x = due_pop(&l->heap).what;

	out = x->p;
	*bytes = out.data;
	if (x->full) {
		memcpy(out_full, x->full, out.stored);
		*bytes = out_full;
	}
	free(x->full);
	free(x);
	return &out;
}
