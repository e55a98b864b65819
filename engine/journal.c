/* SPDX-License-Identifier: Apache-2.0 */
/* Promises to local hosts that outlive the process, and those that an earlier process left. */
#include "engine/journal.h"

#include <stdlib.h>

#include "engine/responder.h"

struct eng_jold {
	uint32_t vni, at; /* of the entry, and its number */
};
#define NOT_OLD UINT32_MAX /* taken up, or given back */

static int by_vni(const void *a, const void *b)
{
	const struct eng_jold *x = a, *y = b;

	if (x->vni != y->vni)
		return x->vni < y->vni ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Sorted, so that a tenant that comes later looks only at its own. */
static int old_find(struct eng *e, uint32_t n)
{
	if (!n)
		return 0;
	e->jold = malloc(n * sizeof(*e->jold));
	if (!e->jold)
		return RWY_ENOMEM;
	for (uint32_t i = 0; i < e->cfg.journal_n; i++)
		if (atomic_load_explicit(&e->cfg.journal[i].used, memory_order_relaxed))
			e->jold[e->jold_n++] = (struct eng_jold){e->cfg.journal[i].vni, i};
	qsort(e->jold, e->jold_n, sizeof(*e->jold), by_vni);
	return 0;
}

static uint32_t old_first(const struct eng *e, uint32_t vni)
{
	uint32_t lo = 0, hi = e->jold_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (e->jold[mid].vni < vni)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int eng_journal_init(struct eng *e)
{
	if (!e->cfg.journal || !e->cfg.journal_n)
		return 0;
	e->jfree = calloc(e->cfg.journal_n, sizeof(*e->jfree));
	if (!e->jfree)
		return RWY_ENOMEM;
	for (uint32_t i = e->cfg.journal_n; i--;)
		if (!atomic_load_explicit(&e->cfg.journal[i].used, memory_order_relaxed))
			e->jfree[e->jfree_n++] = i;
	return old_find(e, e->cfg.journal_n - e->jfree_n);
}

static void take(struct eng_near *n)
{
	struct eng *e = n->h.e;
	struct eng_jent *j;

	if (!e->jfree_n)
		return; /* as if there were no journal: no worse than before */
	j = &e->cfg.journal[e->jfree[--e->jfree_n]];
	j->src = n->h.key.src;
	j->dst = n->h.key.dst;
	j->qpn = n->h.key.qpn;
	j->vni = n->h.ten->cfg.vni;
	j->rnr_retry = n->rnr_retry;
	j->retry = n->retry;
	n->jent = j;
}

void eng_journal_note(struct eng_near *n)
{
	if (!n->jent)
		take(n);
	if (!n->jent)
		return;
	n->jent->lqpn = n->lqpn;
	n->jent->vni = n->h.ten->cfg.vni; /* may have changed */
	n->jent->pmtu = (uint16_t)n->resp.pmtu;
	atomic_store_explicit(&n->jent->acked, n->resp.acked, memory_order_relaxed);
	atomic_store_explicit(&n->jent->used, 1, memory_order_release);
}

void eng_journal_give_back(struct eng *e, struct eng_jent *j)
{
	atomic_store_explicit(&j->used, 0, memory_order_release);
	e->jfree[e->jfree_n++] = (uint32_t)(j - e->cfg.journal);
}

void eng_journal_forget(struct eng_near *n)
{
	if (n->jent && !n->h.e->closing)
		eng_journal_give_back(n->h.e, n->jent);
	n->jent = NULL;
}

struct eng_jent *eng_journal_old(struct eng *e, uint32_t vni, uint32_t *cursor)
{
	for (uint32_t i = *cursor ? *cursor : old_first(e, vni); i < e->jold_n && e->jold[i].vni == vni;
	     i++) {
		struct eng_jent *j;

		if (e->jold[i].at == NOT_OLD)
			continue; /* its tenant was here before */
		j = &e->cfg.journal[e->jold[i].at];
		e->jold[i].at = NOT_OLD;
		*cursor = i + 1;
		return j;
	}
	return NULL;
}
