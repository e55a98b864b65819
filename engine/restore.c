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
#define TURN_MAX    64 /* entries that are tried between two looks at packets */

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

/*
 * The side is again as before make_side(). A pair stays one: without it the local host's responses
 * would count for nobody.
 */
static void unmake_side(struct eng_responder *rs, rwy_time now)
{
	rs->journal = NULL; /* the entry waits until there is memory */
	if (!rs->requester) {
		eng_responder_free(rs, now);
		return;
	}
	eng_responder_abort(rs, now);
	roce_resp_fini(&rs->resp);
	rs->resp = (struct roce_resp){0};
	eng_responder_enter(rs, ENG_R_NEW);
}

/* False: no memory; rs is no more, or in state NEW. */
static bool resume(struct eng_responder *rs, rwy_time now)
{
	eng_responder_enter(rs, ENG_R_RESUMING);
	if (eng_responder_open(rs, now) && send_resume(rs, now))
		return true;
	unmake_side(rs, now);
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
	bool lost;

	if (!rs)
		return false;
	rs->journal = j;
	rs->rewound = j->rewound;
	if (j->failed == ENG_JOURNAL_GOES_ON)
		return resume(rs, now);
	lost = j->failed == ENG_JOURNAL_LOST;
	eng_responder_fail(
	    rs, rs->resp.acked, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_CAUSE_BEFORE, now);
	eng_responder_note_loss(rs, lost);
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

enum outcome { TAKEN_UP, LEFT, FULL, WAITS, OUTCOMES };

void eng_journal_drop(struct eng *e, uint32_t tenant, struct eng_journal_entry *j)
{
	const struct eng_key k = {j->src, j->dst, j->qpn, tenant};

	if (!eng_find(e, &k, false))
		eng_place_leave(e, &k, false);
	eng_journal_release(e, j);
}

/*
 * LEFT: an old or invalid entry, or of a connection that exists no longer. FULL: its tenant has as
 * many flows as it may have, or the gateway has. WAITS: no memory. While the entry waits, its
 * host's packets come here and not to the home worker.
 */
static enum outcome restore_entry(struct eng *e, uint32_t tenant, struct eng_journal_entry *j, rwy_time now)
{
	const struct eng_key k = {j->src, j->dst, j->qpn, tenant};
	const bool old = now >= e->journal_until;

	if (old || j->qpn > 0xffffff || !j->lqpn || j->lqpn > 0xffffff || !may_resume(e, &k, j)) {
		if (old) {
			e->cfg.journal_whole = false;
			eng_journal_leave_gap(e);
		}
		eng_journal_drop(e, tenant, j);
		return LEFT;
	}
	if (!eng_place_enter(e, &k, false) ||
	    (!eng_find(e, &k, false) && eng_is_full(e, eng_tenant(e, tenant))))
		return FULL;
	if (resume_connection(e, &k, j, now))
		return TAKEN_UP;
	(void)eng_place_enter(e, &k, false);
	return WAITS;
}

/* Entry i of e->orphans. LEFT also when it does not wait, or its tenant is not here. */
static enum outcome restore_orphan(struct eng *e, uint32_t i, unsigned n[OUTCOMES], rwy_time now)
{
	struct eng_journal_entry *j = eng_journal_orphan(e, i);
	const int tenant = j ? eng_tenant_by_vni(e, j->vni) : -1;
	enum outcome o;

	if (tenant < 0)
		return LEFT;
	o = restore_entry(e, (uint32_t)tenant, j, now);
	n[o]++;
	if (o == TAKEN_UP || o == LEFT)
		eng_journal_take_orphan(e, i);
	return o;
}

static void log_outcomes(struct eng *e, const unsigned n[OUTCOMES])
{
	const unsigned waiting = n[FULL] + n[WAITS];

	if (n[TAKEN_UP] || n[LEFT] || waiting)
		eng_log(e, n[LEFT] || waiting ? 1 : 2,
		    "event=\"connections of an earlier process restored\" flows=%u left=%u waiting=%u",
		    n[TAKEN_UP], n[LEFT], waiting);
}

void eng_journal_restore(struct eng *e, uint32_t tenant, rwy_time now)
{
	uint32_t vni = eng_tenant(e, tenant)->cfg.vni, cursor = 0;
	unsigned n[OUTCOMES] = {0};

	while (eng_journal_next_orphan(e, vni, &cursor))
		(void)restore_orphan(e, cursor - 1, n, now);
	if (n[FULL] || n[WAITS]) {
		e->restore_at = now + AGAIN_FIRST;
		e->restore.left = 0;
	}
	log_outcomes(e, n);
}

/* Some entries of the pass; each is in one pass once. */
static void go_on(struct eng *e, unsigned n[OUTCOMES], rwy_time now)
{
	struct eng_restore *r = &e->restore;

	if (!r->left) {
		r->left = e->orphans_n;
		r->waits = r->took = false;
	}
	while (r->left && n[TAKEN_UP] + n[LEFT] + n[FULL] < TURN_MAX) {
		const enum outcome o = restore_orphan(e, r->cursor, n, now);

		r->cursor = (r->cursor + 1) % e->orphans_n;
		r->left--;
		r->took |= o == TAKEN_UP;
		r->waits |= o == FULL || o == WAITS;
		if (o == WAITS) /* nor is there memory for another one */
			r->left = 0;
	}
}

void eng_journal_restore_again(struct eng *e, rwy_time now)
{
	struct eng_restore *r = &e->restore;
	unsigned n[OUTCOMES] = {0};

	if (r->wanted) {
		(void)restore_orphan(e, r->wanted - 1, n, now);
		r->wanted = 0;
	}
	if (now >= e->restore_at) {
		go_on(e, n, now);
		if (!r->left)
			r->wait = r->took ? AGAIN_FIRST
			                  : rwy_time_min(rwy_time_max(2 * r->wait, AGAIN_FIRST), AGAIN_MAX);
		e->restore_at = r->left ? now : r->waits ? now + r->wait : RWY_NEVER;
	}
	n[FULL] = n[WAITS] = 0; /* it was told the first time */
	log_outcomes(e, n);
}

bool eng_journal_waits(struct eng *e, const struct eng_key *k)
{
	uint32_t i;

	if (e->restore_at == RWY_NEVER || !eng_journal_find_orphan(e, k, &i))
		return false;
	e->restore.wanted = i + 1;
	return true;
}
