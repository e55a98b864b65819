/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart: connections of an earlier process are taken up from the journal. RESUME asks the
 * far gateway whether a request is lost that a local host has an ACK for (recover.c answers there).
 */
#include "engine/causal.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/place.h"
#include "engine/responder.h"
#include "engine/steer.h"
#include "engine/tenants.h"

/* So long after an entry found no memory it is tried again: at first, and at most. */
#define AGAIN_FIRST RWY_MS
#define AGAIN_MAX   (256 * RWY_MS)

static bool send_resume(struct eng_responder *rs, rwy_time now)
{
	struct eng *e = rs->side.e;
	struct eng_ctrl c = {.type = ENG_CTRL_RESUME,
	    .incarnation = rs->incarnation,
	    .qpn = rs->local_qpn,
	    .psn = rs->resp.epsn};
	struct rwy_buf *b = eng_ctrl_buf(e, &c);

	if (!b)
		return false;
	b->psn = rs->resp.epsn;
	b->psn_cnt = 0;
	b->msn = 0;
	rs->custody_kind = ENG_MEM_CUSTODY; /* an earlier process had it paired */
	eng_mem_charge_custody(rs, eng_buf_cost(e, b));
	wan_tx_send(rs->requests, b, now);
	eng_record_side(&rs->side,
	    &(struct eng_record){.kind = ENG_REC_SENT, .to = c.type, .psn = c.psn & ROCE_PSN_MASK}, now);
	/* The earlier process acknowledged what is delivered when this message is. */
	eng_causal_join(rs, now);
	return true;
}

/* The responder side as an earlier process had it; its host has ACKs for all before `acked`. */
static struct eng_responder *make_side(
    struct eng *e, const struct eng_key *k, const struct eng_open *was, roce_psn acked, rwy_time now)
{
	struct eng_responder *rs = eng_responder_get(e, k, false, now);

	if (!rs)
		return NULL;
	eng_responder_start(rs, acked, was->pmtu, now);
	roce_resp_resume(&rs->resp);
	rs->local_qpn = was->peer_qpn;
	rs->rnr_retry = was->rnr_retry;
	rs->retry = was->retry;
	rs->ack_timeout = was->ack_timeout;
	return rs;
}

/* False: no memory; rs is freed. */
static bool resume(struct eng_responder *rs, rwy_time now)
{
	eng_responder_enter(rs, ENG_R_RESUMING);
	if (eng_responder_open(rs, now) && send_resume(rs, now))
		return true;
	rs->journal = NULL; /* the entry waits until there is memory */
	eng_responder_free(rs, now);
	return false;
}

/* False: no memory. */
static bool resume_connection(
    struct eng *e, const struct eng_key *k, struct eng_journal_entry *j, rwy_time now)
{
	const struct eng_open was = {.pmtu = j->pmtu,
	    .peer_qpn = j->lqpn,
	    .rnr_retry = j->rnr_retry,
	    .retry = j->retry,
	    .ack_timeout = j->ack_timeout <= ENG_ACK_TIMEOUT_MAX ? j->ack_timeout : 0};
	struct eng_responder *rs = make_side(e, k, &was, j->acked & ROCE_PSN_MASK, now);

	if (!rs)
		return false;
	rs->journal = j;
	if (!j->failed)
		return resume(rs, now);
	eng_responder_fail(
	    rs, rs->resp.acked, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_CAUSE_BEFORE, now);
	return true;
}

bool eng_responder_restore_lost(
    struct eng *e, const struct eng_key *k, const struct eng_peer_msg *m, rwy_time now)
{
	struct eng_responder *rs = make_side(e, k, &m->open, roce_psn_add(m->psn, ROCE_OUTSTANDING_MAX), now);

	return rs && resume(rs, now);
}

/*
 * No, if the connection has begun anew, or no tunnel leads to its remote host. That its remote host
 * sends requests again says nothing.
 */
static bool may_resume(const struct eng *e, const struct eng_key *k, const struct eng_journal_entry *j)
{
	const struct eng_responder *rs = (const struct eng_responder *)eng_find(e, k, false);

	if (rs)
		return rs->side.state == ENG_R_NEW && (!rs->local_qpn || rs->local_qpn == j->lqpn);
	return eng_place_elsewhere(e, k, false) < 0 && eng_steer(e, k->tenant, &k->src, &k->dst, k->qpn) >= 0;
}

enum outcome { TAKEN_UP, LEFT, WAITS, OUTCOMES };

/* LEFT: an old or invalid entry, or of a connection that exists no longer. WAITS: no memory. */
static enum outcome restore_entry(struct eng *e, uint32_t tenant, struct eng_journal_entry *j, rwy_time now)
{
	const struct eng_key k = {j->src, j->dst, j->qpn, tenant};

	if (now >= e->journal_until || j->qpn > 0xffffff || !j->lqpn || j->lqpn > 0xffffff ||
	    !may_resume(e, &k, j)) {
		eng_journal_release(e, j);
		return LEFT;
	}
	return resume_connection(e, &k, j, now) ? TAKEN_UP : WAITS;
}

static void log_outcomes(struct eng *e, const unsigned n[OUTCOMES])
{
	if (n[TAKEN_UP] || n[LEFT] || n[WAITS])
		eng_log(e, n[LEFT] || n[WAITS] ? 1 : 2,
		    "event=\"connections of an earlier process restored\" flows=%u left=%u waiting=%u",
		    n[TAKEN_UP], n[LEFT], n[WAITS]);
}

void eng_journal_restore(struct eng *e, uint32_t tenant, rwy_time now)
{
	uint32_t vni = eng_tenant(e, tenant)->cfg.vni, cursor = 0;
	unsigned n[OUTCOMES] = {0};
	struct eng_journal_entry *j;

	while ((j = eng_journal_next_orphan(e, vni, &cursor))) {
		const enum outcome o = restore_entry(e, tenant, j, now);

		e->cfg.journal_whole &= now < e->journal_until;
		n[o]++;
		if (o != WAITS)
			eng_journal_take_orphan(e, cursor - 1);
	}
	if (n[WAITS])
		e->restore_at = now + AGAIN_FIRST;
	log_outcomes(e, n);
}

/* The next entry that waits; false: none of a tenant that is here does. */
static bool next_waiting(struct eng *e, uint32_t *tenant)
{
	for (uint32_t n = 0; n < e->orphans_n; n++) {
		const uint32_t i = (e->restore_cursor + n) % e->orphans_n;
		const struct eng_journal_entry *j = eng_journal_orphan(e, i);
		const int t = j ? eng_tenant_by_vni(e, j->vni) : -1;

		if (t < 0)
			continue;
		*tenant = (uint32_t)t;
		e->restore_cursor = i;
		return true;
	}
	return false;
}

void eng_journal_restore_again(struct eng *e, rwy_time now)
{
	unsigned n[OUTCOMES] = {0};
	uint32_t tenant;

	e->restore_at = RWY_NEVER;
	while (next_waiting(e, &tenant)) {
		const uint32_t i = e->restore_cursor++;
		const enum outcome o = restore_entry(e, tenant, eng_journal_orphan(e, i), now);

		n[o]++;
		if (o != WAITS) {
			eng_journal_take_orphan(e, i);
			continue;
		}
		e->restore_wait =
		    n[TAKEN_UP] ? AGAIN_FIRST
		                : rwy_time_min(rwy_time_max(2 * e->restore_wait, AGAIN_FIRST), AGAIN_MAX);
		e->restore_at = now + e->restore_wait;
		break;
	}
	n[WAITS] = 0; /* it was told the first time */
	log_outcomes(e, n);
}

bool eng_journal_waits(struct eng *e, const struct eng_key *k, rwy_time now)
{
	uint32_t i;

	if (e->restore_at == RWY_NEVER || !eng_journal_find_orphan(e, k, &i))
		return false;
	e->restore_cursor = i;
	e->restore_at = now;
	return true;
}
