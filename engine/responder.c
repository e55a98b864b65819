/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder side of a connection, from birth to end: it answers a local host's requests in the far host's
 * name. What to accept and what to say is roce/resp's decision; requests are request.c, answers answer.c.
 */
#include "engine/responder.h"
#include "engine/emit.h"
#include "engine/pair.h"
#include "engine/session.h"
#include "engine/steer.h"

void eng_near_address(const struct eng_near *n, struct roce_addr *a)
{
	a->src = n->h.key.dst;
	a->dst = n->h.key.src;
	a->dqpn = n->lqpn;
	a->sport = n->sport;
	a->pkey = n->pkey;
	a->tos = n->tos;
	a->ttl = 64;
	a->migreq = n->migreq;
}

struct eng_near *eng_near_get(struct eng *e, const struct eng_key *k, bool stranger, rwy_time now)
{
	struct eng_near *n = (struct eng_near *)eng_find(e, k, false);
	int tunnel;

	if (n)
		return n;
	tunnel = eng_way(e, k->tenant, &k->src, &k->dst, k->qpn);
	if (tunnel < 0) {
		e->c.drop_no_route++;
		return NULL;
	}
	const struct eng_ten *t = eng_tenant(e, k->tenant);

	if (e->halves >= e->cfg.conns_max || (t->cfg.flows_max && t->halves >= t->cfg.flows_max)) {
		e->c.drop_flow_table_full++;
		return NULL;
	}
	if (stranger && (e->half_open >= e->cfg.half_open_max ||
	                    (t->cfg.half_open_max && t->half_open >= t->cfg.half_open_max))) {
		e->c.drop_half_open++;
		return NULL;
	}
	n = eng_slab_get(&e->near_slab);
	if (!n) {
		e->c.drop_flow_table_full++;
		return NULL;
	}
	n->h.key = *k;
	n->h.ten = eng_tenant(e, k->tenant);
	n->h.e = e;
	n->h.tunnel = (uint8_t)tunnel;
	n->h.close_at = RWY_NEVER;
	n->h.last = n->asked_at = now;
	n->h.error = "";
	n->rnr_retry = n->retry = 255;
	n->ttl = 64;
	n->pkey = 0xffff;
	eng_insert(e, &n->h);
	eng_half_open(n, 1);
	e->c.conns_opened++;
	return n;
}

static void drop_cache(struct eng_near *n)
{
	eng_near_forget_answers(n);
	rwy_bufq_drain(&n->h.e->bufs, &n->parked);
}

/* Gives up what is on its way to the far gateway. */
void eng_near_abort(struct eng_near *n, rwy_time now)
{
	if (!n->req)
		return;
	eng_release(n, n->custody);
	n->custody = 0;
	wan_tx_abort(n->req, now);
	n->req = NULL;
	n->held = false;
}

void eng_near_free(struct eng_near *n, rwy_time now)
{
	struct eng *e = n->h.e;

	eng_session_close(n);
	eng_journal_forget(n);
	eng_near_abort(n, now);
	if (n->rsp)
		wan_rx_reset(n->rsp, now);
	drop_cache(n);
	if (n->h.state != ENG_R_NEW)
		roce_resp_fini(&n->resp);
	if (n->far)
		eng_unpair(n->far);
	if (eng_unpaired(&n->h))
		eng_half_open(n, -1);
	eng_remove(e, &n->h);
	/* The dirty list may still name it: leave a tombstone until the list is run. */
	n->h.close_at = 0;
	n->h.e = NULL;
	if (!n->h.dirty)
		eng_slab_put(&e->near_slab, n);
}

size_t eng_near_open_info(const struct eng_near *n, uint8_t *out)
{
	struct eng_open o = {
	    .type = ENG_OPEN_REQ,
	    .rnr_retry = n->rnr_retry,
	    .retry = n->retry,
	    .pmtu = (uint16_t)n->resp.pmtu,
	    .life = n->life,
	    /* Only what is known of this life: an older pairing may be somebody else's by now. */
	    .peer_qpn = n->resp.started || n->h.state == ENG_R_RESUMING ? n->lqpn : 0,
	    .vni = n->h.ten->cfg.vni,
	    .key = n->h.key,
	};

	return eng_open_encode(out, &o);
}

bool eng_near_open(struct eng_near *n, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];
	size_t len = eng_near_open_info(n, info);

	if (!eng_wan(&n->h)) { /* it failed with its tunnel, and begins again */
		int to = eng_way(n->h.e, n->h.key.tenant, &n->h.key.src, &n->h.key.dst, n->h.key.qpn);

		if (to < 0)
			return false;
		eng_move(&n->h, (unsigned)to);
	}
	if (wan_tx_open(eng_wan(&n->h), &n->req, info, len, n, now) != 0)
		return false;
	wan_tx_class(n->req, n->h.key.tenant);
	return true;
}

/* The connection begins (again) at this PSN. Until the far host has confirmed it nothing is acknowledged. */
void eng_near_start(struct eng_near *n, roce_psn first, uint32_t pmtu, rwy_time now)
{
	if (n->h.state != ENG_R_NEW) {
		eng_near_abort(n, now);
		drop_cache(n);
		roce_resp_fini(&n->resp);
	}
	eng_journal_forget(n);
	roce_resp_init(&n->resp, first, pmtu);
	eng_near_enter(n, ENG_R_WAITING);
	n->held = false;
	n->acked_at = n->deaf_until = 0;
	n->reads_asked = 0;
	n->life = (uint32_t)eng_random(n->h.e) | 1;
	eng_log(n->h.e, 4, "near remote_qpn=%u starts at psn=%u", n->h.key.qpn, first);
}

void eng_near_start_cm(struct eng_near *n, uint32_t lqpn, roce_psn psn, uint32_t pmtu, rwy_time now)
{
	/* A retransmitted REP must not disturb a connection that runs. */
	if (n->h.state != ENG_R_NEW && n->h.learned == ENG_BY_CM && n->lqpn == lqpn && n->resp.start == psn &&
	    n->h.close_at == RWY_NEVER)
		return;
	if (n->far && n->far->h.key.qpn != lqpn)
		eng_unpair(n->far);
	if (eng_unpaired(&n->h))
		eng_half_open(n, -1);
	eng_near_start(n, psn, pmtu, now);
	n->h.learned = ENG_BY_CM;
	n->h.close_at = RWY_NEVER;
	n->h.last = n->asked_at = now;
	n->h.error = "";
	n->lqpn = lqpn;
	eng_session_open(n);
	eng_near_enter(n, ENG_R_RUNNING);
	roce_resp_go(&n->resp, 0);
}

void eng_near_fail(struct eng_near *n, roce_psn psn, uint8_t syndrome, const char *why, rwy_time now)
{
	struct eng *e = n->h.e;

	if (n->h.state == ENG_R_FAILED)
		return;
	if (eng_unpaired(&n->h))
		eng_half_open(n, -1);
	eng_session_close(n);
	eng_near_enter(n, ENG_R_FAILED);
	n->h.error = why;
	e->c.conns_failed++;
	eng_log_half(e, 1, &n->h, why);
	eng_near_abort(n, now);
	rwy_bufq_drain(&e->bufs, &n->parked);
	/* The far gateway's word to begin will not come any more, and the error must go out. */
	if (n->lqpn && !n->resp.started)
		roce_resp_go(&n->resp, 0);
	roce_resp_fail(&n->resp, psn, syndrome);
	eng_dirty(&n->h);
}

void eng_near_refused(struct eng_near *n, rwy_time now)
{
	bool nothing_lost = !wan_tx_queued(n->req);

	eng_release(n, n->custody);
	n->custody = 0;
	n->req = NULL;
	n->held = false;
	/* Forgotten there for idleness or after a disconnect: the next request, if there is one, opens the
	 * flow again. */
	if (nothing_lost || n->h.close_at != RWY_NEVER)
		return;
	/* Nothing was acknowledged, and nobody could be told: its host sends all of it again, and it begins
	 * anew. The other gateway may hear of the tenant only now. */
	if (n->h.state == ENG_R_WAITING && !n->lqpn) {
		eng_near_free(n, now);
		return;
	}
	eng_near_fail(n, n->resp.acked, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
	    "the far gateway refused the flow", now);
}

void eng_near_not_taken_up(struct eng_near *n, rwy_time now)
{
	eng_near_enter(n, ENG_R_WAITING);
	eng_near_refused(n, now);
}
