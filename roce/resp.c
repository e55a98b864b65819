/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC responder: creation, and its events. Each calls the function that the table in resp_states.h
 * names: on requests resp_recv.c, on responses and ACKs resp_ack.c, the others resp_state.c.
 */
#include "roce/resp.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "roce/resp_int.h"

void roce_resp_init(struct roce_resp *r, roce_psn first, uint32_t pmtu)
{
	memset(r, 0, sizeof(*r));
	r->start = r->epsn = r->allow_psn = r->acked = r->want_psn = first & ROCE_PSN_MASK;
	r->pmtu = roce_resp_pmtu_ok(pmtu) ? pmtu : 0;
	r->pmtu_min = 256;
	r->msg = ROCE_RESP_JOINED;
	r->left = UINT32_MAX;
	r->msn0 = ROCE_RESP_MSN_UNKNOWN;
}

void roce_resp_resume(struct roce_resp *r)
{
	r->start = roce_psn_add(r->epsn, ROCE_PSN_MASK + 1 - ROCE_OUTSTANDING_MAX);
}

void roce_resp_fini(struct roce_resp *r)
{
	free(r->rd);
	r->rd = NULL;
	r->rd_head = r->rd_n = r->rd_cap = 0;
}

void roce_resp_go(struct roce_resp *r, roce_msn msn_base)
{
	r->msn0 = roce_psn_add(roce_resp_first_msn(r), msn_base);
	r->msn = roce_psn_add(r->msn, msn_base);
	r->allow_msn = roce_psn_add(r->allow_msn, msn_base);
	for (uint16_t i = 0; i < r->rd_n; i++) {
		struct roce_resp_rd *d = roce_resp_rd_at(r, i);

		d->msn_before = roce_psn_add(d->msn_before, msn_base);
	}
}

/* --- events ----------------------------------------------------------------------------------- */

/* Apart from the others: their index is a shift. */
static roce_resp_on_request *const on_request[ROCE_RS_COUNT][4] = {
#define roce_resp_do_IMPOSSIBLE NULL
#define ROW(s, p, n, a, r, m, f, l, w, o, x, y)                                                              \
	[ROCE_RS_##s] = {[ROCE_RSE_REPEATED] = roce_resp_do_##p,                                             \
	    [ROCE_RSE_NEXT] = roce_resp_do_##n,                                                              \
	    [ROCE_RSE_AHEAD] = roce_resp_do_##a},
    ROCE_RESP_TABLE(ROW)
#undef ROW
};

static const struct {
	roce_resp_on_response *response;
	roce_resp_on_pmtu *pmtu;
	roce_resp_on_fail *fail;
	roce_resp_on_psn *lost, *rewind;
	roce_resp_on_flush *flush;
	roce_resp_on_room *no_room, *room;
} on_other[ROCE_RS_COUNT] = {
#define ROW(s, p, n, a, r, m, f, l, w, o, x, y)                                                              \
	[ROCE_RS_##s] = {roce_resp_do_##r, roce_resp_do_##m, roce_resp_do_##f, roce_resp_do_##l,             \
	    roce_resp_do_##w, roce_resp_do_##o, roce_resp_do_##x, roce_resp_do_##y},
    ROCE_RESP_TABLE(ROW)
#undef ROW
};

static inline void count_event(struct roce_resp *r, enum roce_resp_event ev)
{
	if (r->seen)
		r->seen->cell[r->state][ev]++;
}

void roce_resp_recv(struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now)
{
	int32_t ahead = roce_psn_diff(pkt->psn, r->epsn);
	enum roce_resp_event ev = ahead < 0 ? ROCE_RSE_REPEATED : ahead ? ROCE_RSE_AHEAD : ROCE_RSE_NEXT;

	*act = (struct roce_resp_act){.verdict = ROCE_RESP_STALE};
	if (pkt->info->transport != ROCE_RC ||
	    !roce_op_is_request(pkt->info)) /* IBA 9.6.1: not for this QP's type */
		return;
	if (ahead < 0 && ((pkt->psn - r->start) & ROCE_PSN_MASK) >= ((r->epsn - r->start) & ROCE_PSN_MASK))
		return; /* IBA 9.7.2: outside the valid duplicate region */
	count_event(r, ev);
	on_request[r->state][ev](r, pkt, act, now);
}

uint32_t roce_resp_set_pmtu(struct roce_resp *r, uint32_t pmtu)
{
	if (!roce_resp_pmtu_ok(pmtu))
		return 0;
	if (!r->pmtu)
		r->pmtu = pmtu;
	count_event(r, ROCE_RSE_PMTU);
	return on_other[r->state].pmtu(r);
}

bool roce_resp_set_single(struct roce_resp *r, roce_psn next)
{
	struct roce_resp_rd *d = r->rd_n ? roce_resp_rd_at(r, (uint16_t)(r->rd_n - 1)) : NULL;

	if (r->state != ROCE_RS_UNCOUNTED || !d || next != roce_psn_add(d->psn, 1))
		return false;
	count_event(r, ROCE_RSE_PMTU);
	roce_resp_pmtu_least(r, d->dma_len);
	roce_resp_read_counted(r, d); /* cnt is 1 */
	return true;
}

enum roce_resp_answer roce_resp_response(struct roce_resp *r, roce_psn psn, uint8_t opcode)
{
	struct roce_resp_rd *d;
	roce_psn next;

	if (!r->rd_n)
		return roce_psn_before(psn, r->epsn) && !roce_psn_before(psn, r->start)
		           ? ROCE_RESP_SERVED
		           : ROCE_RESP_UNEXPECTED;
	d = roce_resp_rd_at(r, 0);
	next = roce_psn_add(d->psn, d->served);
	if (roce_psn_before(psn, next))
		return ROCE_RESP_SERVED;
	if (psn != next || roce_op(opcode)->op != (d->atomic ? ROCE_OP_ATOMIC_ACK : ROCE_OP_READ_RESP))
		return ROCE_RESP_UNEXPECTED;
	count_event(r, ROCE_RSE_RESPONSE);
	assert(on_other[r->state].response);
	return on_other[r->state].response(r, d, opcode);
}

void roce_resp_fail(struct roce_resp *r, roce_psn psn, uint8_t syndrome)
{
	count_event(r, ROCE_RSE_FAIL);
	on_other[r->state].fail(r, psn, syndrome);
}

void roce_resp_lost(struct roce_resp *r, roce_psn psn)
{
	count_event(r, ROCE_RSE_LOST);
	assert(on_other[r->state].lost);
	on_other[r->state].lost(r, psn);
}

void roce_resp_rewind(struct roce_resp *r, roce_psn epsn)
{
	count_event(r, ROCE_RSE_REWIND);
	on_other[r->state].rewind(r, epsn);
}

bool roce_resp_flush(struct roce_resp *r, struct roce_resp_out *out, rwy_time now)
{
	if (!roce_resp_started(r))
		return false;
	count_event(r, ROCE_RSE_FLUSH);
	return on_other[r->state].flush(r, out, now);
}

void roce_resp_no_room(struct roce_resp *r)
{
	count_event(r, ROCE_RSE_NO_ROOM);
	assert(on_other[r->state].no_room);
	on_other[r->state].no_room(r);
}

void roce_resp_room(struct roce_resp *r)
{
	count_event(r, ROCE_RSE_ROOM);
	on_other[r->state].room(r);
}
