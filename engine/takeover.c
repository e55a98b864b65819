/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standby takes over: what is stored becomes connections, as the active gateway had them. Their
 * flows have the same incarnation, so the far gateway goes on where it was; requests that it has
 * are duplicates to it (deliver.c). Responses that the active gateway did not report come again.
 *
 * The requester sides are not stored. They come with the flows that the remote gateway opens again,
 * as after any restart of a far gateway.
 */
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/session.h"
#include "engine/store.h"
#include "engine/tenants.h"

/* The responder side as it was before the oldest request that is stored. */
static struct eng_responder *make_side(const struct eng_stored *s, rwy_time now)
{
	struct eng *e = s->e;
	struct eng_key k = s->open.key;
	int tenant = eng_tenant_by_vni(e, s->open.vni);
	struct eng_responder *rs;

	if (tenant < 0 || !s->based || !s->open.peer_qpn)
		return NULL;
	k.tenant = (uint32_t)tenant;
	if (eng_find(e, &k, false)) /* an earlier incarnation of it, whose end was not heard of */
		return NULL;
	rs = eng_responder_get(e, &k, false, now);
	if (!rs)
		return NULL;
	eng_count_half_open(rs, -1);
	eng_responder_start(rs, s->first, s->pmtu, now);
	rs->incarnation = s->open.incarnation;
	rs->taken_over = wan_peer_epoch(eng_wan(&rs->side));
	rs->silent = true;
	rs->rewound = s->rewound;
	rs->side.learned = ENG_BY_PEER;
	rs->local_qpn = s->open.peer_qpn;
	rs->rnr_retry = s->open.rnr_retry;
	rs->retry = s->open.retry;
	rs->ack_timeout = s->open.ack_timeout;
	eng_session_open(rs);
	eng_responder_enter(rs, ENG_R_RUNNING);
	roce_resp_resume(&rs->resp);
	roce_resp_go(&rs->resp, s->msn);
	return rs;
}

/* Takes b. False: it does not follow. */
static bool take_request(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	struct roce_resp_act act;
	struct roce_pkt pkt;

	if (roce_parse(b->data, b->len, &pkt) == ROCE_PARSE_OK) {
		/* The active gateway knew by the response of a READ. */
		(void)roce_resp_set_single(&rs->resp, pkt.psn);
		roce_resp_recv(&rs->resp, &pkt, &act, now);
		if (act.verdict == ROCE_RESP_ACCEPT) {
			eng_responder_learn_header(rs, &pkt, b);
			eng_responder_accept(rs, &pkt, b, &act, now);
			return true;
		}
	}
	eng_drop(rs->side.e, b, &rs->side.e->c.drop_tunnel_msg);
	return false;
}

static bool make_connection(struct eng_stored *s, rwy_time now)
{
	struct eng_responder *rs = make_side(s, now);
	struct rwy_buf *b;

	if (!rs)
		return false;
	while ((b = eng_store_pop(s)))
		if (!take_request(rs, b, now)) {
			eng_responder_fail(rs, rs->resp.epsn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
			    ENG_CAUSE_STORED, now);
			return false;
		}
	rs->taken_epsn = rs->resp.epsn;
	rs->taken_at = now;
	roce_resp_served(&rs->resp, s->released);
	/* If this gateway dies before it serves, the next one knows what hosts were promised. */
	if (rs->side.e->journal_free)
		eng_journal_note(rs);
	roce_resp_ack_again(&rs->resp);
	eng_dirty(&rs->side);
	return true;
}

void eng_takeover(struct eng *e, rwy_time now)
{
	uint32_t made = 0, left = 0;

	while (e->sb.stored) {
		if (make_connection(e->sb.stored, now))
			made++;
		else
			left++;
		eng_store_free(e->sb.stored, now);
	}
	e->c.taken_over += made;
	if (left)
		e->sb.complete = 0;
	eng_log(e, left ? 1 : 2, "event=\"connections of the active gateway taken over\" flows=%u left=%u",
	    made, left);
}

void eng_takeover_undo(struct eng *e, rwy_time now)
{
	for (uint32_t i = 0; i <= e->table_mask; i++)
		while (e->table[i]) {
			struct eng_side *side = e->table[i];

			if (side->is_requester)
				eng_requester_free((struct eng_requester *)side, now);
			else
				eng_responder_free((struct eng_responder *)side, now);
		}
}
