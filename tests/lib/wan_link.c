/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual link: datagrams in a heap by arrival time. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/wan_link.h"

uint64_t wan_rng_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

void wan_link_init(struct wan_link *l, const struct wan_link_cfg *cfg, uint64_t seed)
{
	memset(l, 0, sizeof(*l));
	l->cfg = *cfg;
	l->rng = seed;
}

void wan_link_fini(struct wan_link *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		free(l->heap[i].p);
	free(l->heap);
	l->heap = NULL;
	l->n = l->cap = 0;
}

static bool before(const struct wan_link_due *a, const struct wan_link_due *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct wan_link *l, struct wan_link_pkt *p)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 256;
		l->heap = realloc(l->heap, l->cap * sizeof(*l->heap));
	}
	struct wan_link_due x = {p->at, p->order, p};
	uint32_t i = l->n++;

	for (; i && before(&x, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
		l->heap[i] = l->heap[(i - 1) / 2];
	l->heap[i] = x;
}

static struct wan_link_pkt *pop(struct wan_link *l)
{
	struct wan_link_pkt *top = l->heap[0].p;
	struct wan_link_due last = l->heap[--l->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= l->n)
			break;
		if (c + 1 < l->n && before(&l->heap[c + 1], &l->heap[c]))
			c++;
		if (!before(&l->heap[c], &last))
			break;
		l->heap[i] = l->heap[c];
		i = c;
	}
	l->heap[i] = last;
	return top;
}

static bool is_lost(struct wan_link *l, rwy_time now)
{
	if (now >= l->cfg.outage_from && now < l->cfg.outage_to)
		return true;
	if (l->burst_left) {
		l->burst_left--;
		return true;
	}
	if (wan_rng_ppm(&l->rng, l->cfg.burst_ppm)) {
		l->burst_left = wan_rng_below(&l->rng, 2 * l->cfg.burst_len);
		return true;
	}
	return wan_rng_ppm(&l->rng, l->cfg.loss_ppm);
}

/* The time when the last byte leaves the sender's queue; RWY_NEVER: the queue is full. */
static rwy_time departs(struct wan_link *l, uint32_t bytes, uint8_t *ecn, rwy_time now)
{
	const struct wan_link_cfg *c = &l->cfg;

	if (!c->rate_Bps)
		return now;
	rwy_time start = l->busy_until > now ? l->busy_until : now;
	uint64_t queued = (start - now) * c->rate_Bps / RWY_SEC;

	if (c->queue_bytes && queued + bytes > c->queue_bytes)
		return RWY_NEVER;
	if (*ecn && c->ecn_bytes && queued > c->ecn_bytes)
		*ecn = 3;
	l->busy_until = start + (uint64_t)bytes * RWY_SEC / c->rate_Bps;
	return l->busy_until;
}

static struct wan_link_pkt *copy(const struct wan_link_pkt *p)
{
	struct wan_link_pkt *q = malloc(sizeof(*q) + p->len);

	memcpy(q, p, sizeof(*q) + p->len);
	return q;
}

/* Takes over q. */
static void arrive(struct wan_link *l, struct wan_link_pkt *q, rwy_time at)
{
	q->at = at;
	q->order = l->order++;
	if (wan_rng_ppm(&l->rng, l->cfg.corrupt_ppm)) {
		q->data[wan_rng_below(&l->rng, q->len)] ^= (uint8_t)(1 + wan_rng_below(&l->rng, 255));
		l->stats.corrupted++;
	}
	push(l, q);
}

void wan_link_send(struct wan_link *l, uint8_t path, const void *hdr, size_t hdr_len, const void *payload,
    size_t len, rwy_time now)
{
	struct wan_link_pkt *p, *twice = NULL;
	uint8_t ecn = l->ect ? 2 : 0;
	rwy_time at = departs(l, (uint32_t)(hdr_len + len) + l->cfg.overhead, &ecn, now);

	l->stats.sent++;
	l->stats.bytes += hdr_len + len;
	if (at == RWY_NEVER) {
		l->stats.dropped++;
		return;
	}
	if (is_lost(l, now) || (ecn && l->cfg.ecn_drop)) {
		l->stats.lost++;
		return;
	}
	p = malloc(sizeof(*p) + hdr_len + len);
	p->len = (uint32_t)(hdr_len + len);
	p->path = path;
	p->ecn = l->cfg.ecn_clear ? 0 : ecn;
	memcpy(p->data, hdr, hdr_len);
	if (len)
		memcpy(p->data + hdr_len, payload, len);
	at += l->cfg.delay;
	if (l->cfg.jitter)
		at += wan_rng_next(&l->rng) % l->cfg.jitter;
	if (wan_rng_ppm(&l->rng, l->cfg.reorder_ppm)) {
		at += l->cfg.reorder_extra;
	} else {
		at = rwy_time_max(at, l->last_at);
		l->last_at = at;
	}
	if (l->cfg.dup_ppm)
		twice = copy(p); /* as it was sent, whatever happens to the first one */
	arrive(l, p, at);
	if (wan_rng_ppm(&l->rng, l->cfg.dup_ppm)) {
		l->stats.duplicated++;
		arrive(l, twice, at + wan_rng_next(&l->rng) % (5 * RWY_MS));
	} else {
		free(twice);
	}
}

struct wan_link_pkt *wan_link_recv(struct wan_link *l, rwy_time now)
{
	if (!l->n || l->heap[0].at > now)
		return NULL;
	l->stats.delivered++;
	return pop(l);
}

rwy_time wan_link_next(const struct wan_link *l)
{
	return l->n ? l->heap[0].at : RWY_NEVER;
}
