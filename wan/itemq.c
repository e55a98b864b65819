/* SPDX-License-Identifier: Apache-2.0 */
/* FIFOs of fragments to retransmit. They grow by doubling and never shrink. */
#include <stdlib.h>

#include "wan/tunnel.h"

static bool grow(struct wan_itemq *q)
{
	uint32_t cap = q->cap ? q->cap * 2 : 256;
	struct wan_tx_item *v = malloc(cap * sizeof(*v));

	if (!v)
		return false;
	for (uint32_t i = 0; i < q->n; i++)
		v[i] = q->v[(q->head + i) & (q->cap - 1)];
	free(q->v);
	q->v = v;
	q->cap = cap;
	q->head = 0;
	return true;
}

bool wan_itemq_push(struct wan_itemq *q, const struct wan_tx_item *i)
{
	if (q->n == q->cap && !grow(q))
		return false;
	q->v[(q->head + q->n) & (q->cap - 1)] = *i;
	q->n++;
	return true;
}

bool wan_itemq_pop(struct wan_itemq *q, struct wan_tx_item *i)
{
	if (!q->n)
		return false;
	*i = q->v[q->head];
	q->head = (q->head + 1) & (q->cap - 1);
	q->n--;
	return true;
}

void wan_itemq_back(struct wan_itemq *q, struct wan_tx_item i)
{
	assert(q->n < q->cap);
	q->head = (q->head - 1) & (q->cap - 1);
	q->v[q->head] = i;
	q->n++;
}

bool wan_again_push(struct wan_againq *q, uint32_t class_id, const struct wan_tx_item *i)
{
	unsigned at = class_id % WAN_AGAIN_RINGS;

	if (!wan_itemq_push(&q->ring[at], i))
		return false;
	q->busy |= 1u << at;
	q->n++;
	return true;
}

bool wan_again_pop(struct wan_againq *q, struct wan_tx_item *i)
{
	uint32_t later = q->busy & ~0u << q->first, from = later ? later : q->busy;
	unsigned at;

	if (!from)
		return false;
	at = (unsigned)__builtin_ctz(from);
	wan_itemq_pop(&q->ring[at], i);
	if (!q->ring[at].n)
		q->busy &= ~(1u << at);
	q->first = (at + 1) % WAN_AGAIN_RINGS;
	q->n--;
	return true;
}

void wan_again_back(struct wan_againq *q, struct wan_tx_item i)
{
	unsigned at = (q->first - 1) % WAN_AGAIN_RINGS;

	wan_itemq_back(&q->ring[at], i);
	q->busy |= 1u << at;
	q->first = at;
	q->n++;
}

void wan_again_clear(struct wan_againq *q)
{
	for (unsigned k = 0; k < WAN_AGAIN_RINGS; k++)
		q->ring[k].n = 0;
	q->n = q->busy = 0;
}

void wan_again_fini(struct wan_againq *q)
{
	for (unsigned k = 0; k < WAN_AGAIN_RINGS; k++)
		free(q->ring[k].v);
	*q = (struct wan_againq){0};
}
