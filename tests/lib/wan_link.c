/* SPDX-License-Identifier: Apache-2.0 */
/* A link and the datagrams on it, by arrival time. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/wan_link.h"

#define ECT       2
#define DUP_LATER (5 * RWY_MS) /* a copy comes at most so much later */

void wan_link_init(struct wan_link *l, const struct wan_link_cfg *cfg, uint64_t seed)
{
	memset(l, 0, sizeof(*l));
	l->cfg = *cfg;
	l->rng = seed;
}

void wan_link_fini(struct wan_link *l)
{
	for (uint32_t i = 0; i < l->due.n; i++)
		free(l->due.v[i].what);
	free(l->due.v);
	l->due = (struct due_heap){0};
}

/* The share that bursts lose which begin in so many of a million datagrams. */
static double burst_loss(const struct wan_link_cfg *c)
{
	double begun = c->burst_ppm / 1e6 * c->burst_len;

	return begun / (1 + begun);
}

/* Tests change the configuration as they go: it is read anew for each datagram. */
static struct link_cfg cfg_of(const struct wan_link_cfg *c)
{
	return (struct link_cfg){.delay = c->delay,
	    .jitter = c->jitter,
	    .rate_Bps = c->rate_Bps,
	    .overhead = c->overhead,
	    .queue_bytes = c->queue_bytes,
	    .ecn_bytes = c->ecn_bytes,
	    .ecn_clear = c->ecn_clear,
	    .ecn_drop = c->ecn_drop,
	    .loss = c->burst_ppm ? burst_loss(c) : c->loss_ppm / 1e6,
	    .burst = c->burst_ppm ? c->burst_len : 1,
	    .burst_even = true,
	    .loss_behind = true,
	    .reorder = c->reorder_ppm / 1e6,
	    .reorder_extra = c->reorder_extra,
	    .dup = c->dup_ppm / 1e6,
	    .dup_extra = DUP_LATER,
	    .corrupt = c->corrupt_ppm / 1e6,
	    .keep_order = true,
	    .outage_from = c->outage_from,
	    .outage_to = c->outage_to};
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
	due_push(&l->due, &(struct due){.at = at, .order = q->order, .what = q});
}

void wan_link_send(struct wan_link *l, uint8_t path, const void *hdr, size_t hdr_len, const void *payload,
    size_t len, rwy_time now)
{
	struct link_fate f = {.ecn = l->ect ? ECT : 0};
	struct wan_link_pkt *p, *twice = NULL;

	l->link.cfg = cfg_of(&l->cfg);
	link_send(&l->link, (uint32_t)(hdr_len + len), &l->rng, &f, now);
	if (!f.copies)
		return;
	p = malloc(sizeof(*p) + hdr_len + len);
	p->len = (uint32_t)(hdr_len + len);
	p->path = path;
	p->ecn = f.ecn;
	memcpy(p->data, hdr, hdr_len);
	if (len)
		memcpy(p->data + hdr_len, payload, len);
	if (f.copies > 1)
		twice = copy(p); /* as it was sent, whatever becomes of the first one */
	link_flip(&f.flip[0], p->data);
	arrive(l, p, f.at[0]);
	if (twice) {
		link_flip(&f.flip[1], twice->data);
		arrive(l, twice, f.at[1]);
	}
}

struct wan_link_pkt *wan_link_recv(struct wan_link *l, rwy_time now)
{
	return due_next(&l->due) <= now ? due_pop(&l->due).what : NULL;
}

rwy_time wan_link_next(const struct wan_link *l)
{
	return due_next(&l->due);
}
