/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart: connections of an earlier process are taken up from the journal. RESUME asks the
 * far gateway whether a request is lost that a local host has an ACK for (recover.c answers there).
 */
#include "engine/causal.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/responder.h"
#include "engine/tenants.h"

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
	rs->journal = NULL; /* the caller releases the entry */
	eng_responder_free(rs, now);
	return false;
}

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

/* No, if the connection has begun anew. That its remote host sends requests again says nothing. */
static bool may_resume(const struct eng *e, const struct eng_key *k, const struct eng_journal_entry *j)
{
	const struct eng_responder *rs = (const struct eng_responder *)eng_find(e, k, false);

	return !rs || (rs->side.state == ENG_R_NEW && rs->local_qpn == j->lqpn);
}

void eng_journal_restore(struct eng *e, uint32_t tenant, rwy_time now)
{
	uint32_t vni = eng_tenant(e, tenant)->cfg.vni, cursor = 0;
	unsigned taken_up = 0, left = 0;
	struct eng_journal_entry *j;

	while ((j = eng_journal_next_orphan(e, vni, &cursor))) {
		struct eng_key k = {j->src, j->dst, j->qpn, tenant};

		e->cfg.journal_whole &= now < e->journal_until;
		/* Released: an old or invalid entry, or of a connection that exists no longer. */
		if (now >= e->journal_until || j->qpn > 0xffffff || !j->lqpn || j->lqpn > 0xffffff ||
		    !may_resume(e, &k, j) || !resume_connection(e, &k, j, now)) {
			eng_journal_release(e, j);
			left++;
			continue;
		}
		taken_up++;
	}
	if (taken_up || left)
		eng_log(e, left ? 1 : 2,
		    "event=\"connections of an earlier process restored\" flows=%u left=%u", taken_up, left);
}
