/* SPDX-License-Identifier: Apache-2.0 */
/* A FIFO of fragments to retransmit. It grows by doubling and never shrinks. */
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
