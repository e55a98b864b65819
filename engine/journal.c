/* SPDX-License-Identifier: Apache-2.0 */
/* Journal entries: those of this process, and those that an earlier process left. */
#include "engine/journal.h"

#include <stdlib.h>

#include "engine/responder.h"
#include "engine/table.h"

struct eng_orphan {
	uint32_t vni, hash, at; /* tenant, hash of the key, number of the entry */
};
#define ORPHAN_TAKEN UINT32_MAX /* eng_orphan.at: taken up or released */

static int orphan_order(const void *a, const void *b)
{
	const struct eng_orphan *x = a, *y = b;

	if (x->vni != y->vni)
		return x->vni < y->vni ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* The hash leaves the key's tenant out: the numbers of tenants are this process's own. */
static uint32_t orphan_hash(
    const struct eng *e, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t qpn)
{
	return eng_key_hash(e->hash_seed, &(struct eng_key){*src, *dst, qpn, 0}, false);
}

/* Sorted by VNI: a tenant that is added later looks only at its own entries. */
static int orphans_find(struct eng *e, uint32_t n)
{
	if (!n)
		return 0;
	e->orphans = malloc(n * sizeof(*e->orphans));
	if (!e->orphans)
		return RWY_ENOMEM;
	for (uint32_t i = 0; i < e->cfg.journal_n; i++) {
		const struct eng_journal_entry *j = &e->cfg.journal[i];

		if (atomic_load_explicit(&j->used, memory_order_relaxed))
			e->orphans[e->orphans_n++] =
			    (struct eng_orphan){j->vni, orphan_hash(e, &j->src, &j->dst, j->qpn), i};
	}
	qsort(e->orphans, e->orphans_n, sizeof(*e->orphans), orphan_order);
	return 0;
}

/* The first one of that VNI with that hash or a later one. */
static uint32_t orphans_from(const struct eng *e, uint32_t vni, uint32_t hash)
{
	uint32_t lo = 0, hi = e->orphans_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct eng_orphan *o = &e->orphans[mid];

		if (o->vni < vni || (o->vni == vni && o->hash < hash))
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
	e->journal_free = calloc(e->cfg.journal_n, sizeof(*e->journal_free));
	if (!e->journal_free)
		return RWY_ENOMEM;
	for (uint32_t i = e->cfg.journal_n; i--;)
		if (!atomic_load_explicit(&e->cfg.journal[i].used, memory_order_relaxed))
			e->journal_free[e->journal_free_n++] = i;
	return orphans_find(e, e->cfg.journal_n - e->journal_free_n);
}

void eng_journal_leave_gap(struct eng *e)
{
	if (e->cfg.journal_gap)
		atomic_store_explicit(e->cfg.journal_gap, 1, memory_order_relaxed);
}

static void take_entry(struct eng_responder *rs)
{
	struct eng *e = rs->side.e;
	struct eng_journal_entry *j;

	if (!e->journal_free_n) { /* the connection goes on without a journal entry */
		eng_journal_leave_gap(e);
		return;
	}
	j = &e->cfg.journal[e->journal_free[--e->journal_free_n]];
	j->src = rs->side.key.src;
	j->dst = rs->side.key.dst;
	j->qpn = rs->side.key.qpn;
	j->vni = rs->side.tenant->cfg.vni;
	j->failed = ENG_JOURNAL_GOES_ON;
	j->rnr_retry = rs->rnr_retry;
	j->retry = rs->retry;
	j->ack_timeout = rs->ack_timeout;
	rs->journal = j;
}

void eng_journal_note(struct eng_responder *rs)
{
	const roce_psn acked = eng_responder_acked(rs);

	if (!rs->journal)
		take_entry(rs);
	if (!rs->journal)
		return;
	rs->journal->lqpn = rs->local_qpn;
	rs->journal->vni = rs->side.tenant->cfg.vni; /* may have changed */
	rs->journal->pmtu = (uint16_t)rs->resp.pmtu;
	rs->journal->rewound = rs->rewound;
	if (!roce_resp_error_unsaid(&rs->resp))
		rs->journal->failed = ENG_JOURNAL_GOES_ON;
	else if (rs->journal->failed == ENG_JOURNAL_GOES_ON)
		rs->journal->failed = ENG_JOURNAL_OVER;
	atomic_store_explicit(&rs->journal->acked, acked, memory_order_relaxed);
	atomic_store_explicit(&rs->journal->used, 1, memory_order_release);
}

void eng_journal_lost(struct eng_responder *rs, bool lost)
{
	if (rs->journal && rs->journal->failed)
		rs->journal->failed = lost ? ENG_JOURNAL_LOST : ENG_JOURNAL_OVER;
}

void eng_journal_release(struct eng *e, struct eng_journal_entry *j)
{
	atomic_store_explicit(&j->used, 0, memory_order_release);
	e->journal_free[e->journal_free_n++] = (uint32_t)(j - e->cfg.journal);
}

/*
 * The next process asks about each entry. After settling there is nothing to ask, but for what only
 * the standby has: if that takes over, the whole journal goes (gw_jfile_close).
 */
static bool next_process_needs_it(const struct eng_responder *rs)
{
	const struct eng *e = rs->side.e;

	return e->closing && (e->settle.state != ENG_SETTLED || e->settle.kept_left || rs->journal->failed);
}

void eng_journal_forget(struct eng_responder *rs)
{
	if (rs->journal && !next_process_needs_it(rs))
		eng_journal_release(rs->side.e, rs->journal);
	rs->journal = NULL;
}

struct eng_journal_entry *eng_journal_orphan(const struct eng *e, uint32_t i)
{
	return e->orphans[i].at == ORPHAN_TAKEN ? NULL : &e->cfg.journal[e->orphans[i].at];
}

struct eng_journal_entry *eng_journal_next_orphan(const struct eng *e, uint32_t vni, uint32_t *cursor)
{
	for (uint32_t i = *cursor ? *cursor : orphans_from(e, vni, 0);
	     i < e->orphans_n && e->orphans[i].vni == vni; i++) {
		struct eng_journal_entry *j = eng_journal_orphan(e, i);

		if (!j)
			continue; /* the tenant was removed and added again */
		*cursor = i + 1;
		return j;
	}
	return NULL;
}

void eng_journal_take_orphan(struct eng *e, uint32_t i)
{
	e->orphans[i].at = ORPHAN_TAKEN;
}

bool eng_journal_find_orphan(const struct eng *e, const struct eng_key *k, uint32_t *i)
{
	const uint32_t vni = e->tenant[k->tenant]->cfg.vni, hash = orphan_hash(e, &k->src, &k->dst, k->qpn);

	for (*i = orphans_from(e, vni, hash);
	     *i < e->orphans_n && e->orphans[*i].vni == vni && e->orphans[*i].hash == hash; ++*i) {
		const struct eng_journal_entry *j = eng_journal_orphan(e, *i);

		if (j && j->qpn == k->qpn && rwy_ip_eq(&j->src, &k->src) && rwy_ip_eq(&j->dst, &k->dst))
			return true;
	}
	return false;
}
