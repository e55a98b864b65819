/* SPDX-License-Identifier: Apache-2.0 */
/* Promises to local hosts that outlive the process, and taking up the connections of a process that died. */
#include "engine/journal.h"

#include <stdlib.h>

#include "engine/eng.h"

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

static void give_back(struct eng *e, struct eng_jent *j)
{
	atomic_store_explicit(&j->used, 0, memory_order_release);
	e->jfree[e->jfree_n++] = (uint32_t)(j - e->cfg.journal);
}

void eng_journal_forget(struct eng_near *n)
{
	if (n->jent && !n->h.e->closing)
		give_back(n->h.e, n->jent);
	n->jent = NULL;
}

void eng_journal_restore(struct eng *e, uint32_t tenant, rwy_time now)
{
	uint32_t vni = eng_tenant(e, tenant)->cfg.vni;
	unsigned taken_up = 0, left = 0;

	for (uint32_t i = old_first(e, vni); i < e->jold_n && e->jold[i].vni == vni; i++) {
		struct eng_jent *j;
		struct eng_key k;

		if (e->jold[i].at == NOT_OLD)
			continue; /* its tenant was here before */
		j = &e->cfg.journal[e->jold[i].at];
		k = (struct eng_key){j->src, j->dst, j->qpn, tenant};
		e->jold[i].at = NOT_OLD;
		/* Nonsense in the file, or a connection that is not ours any more, is as good as nothing. */
		if (j->qpn > 0xffffff || !j->lqpn || j->lqpn > 0xffffff || eng_find(e, &k, false) ||
		    !eng_near_resume(e, &k, j, now)) {
			give_back(e, j);
			left++;
			continue;
		}
		taken_up++;
	}
	if (taken_up || left)
		eng_log(e, left ? 1 : 2,
		    "event=\"connections of an earlier process taken up\" flows=%u left=%u", taken_up, left);
}
