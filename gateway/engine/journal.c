/* SPDX-License-Identifier: Apache-2.0 */
/* Promises to local hosts that outlive the process, and taking up the connections of a process that died. */
#include "gateway/engine/journal.h"

#include <stdlib.h>

#include "gateway/engine/eng.h"

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
	return 0;
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

	for (uint32_t i = 0; e->jfree && i < e->cfg.journal_n; i++) {
		struct eng_jent *j = &e->cfg.journal[i];
		struct eng_key k = {j->src, j->dst, j->qpn, tenant};
		struct eng_near *n;

		if (!atomic_load_explicit(&j->used, memory_order_acquire) || j->vni != vni)
			continue;
		n = j->qpn <= 0xffffff ? (struct eng_near *)eng_find(e, &k, false) : NULL;
		if (n && n->jent == j)
			continue; /* ours: the tenant was set again */
		/* Nonsense in the file, or a connection that is not ours any more, is as good as nothing. */
		if (j->qpn > 0xffffff || !j->lqpn || j->lqpn > 0xffffff || n ||
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
