/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC responder: changes of its state that are no answer to a packet (path MTU, watermark, failure,
 * rewind), and the one place where the state changes.
 */
#include <assert.h>

#include "roce/resp_int.h"

void roce_resp_enter(struct roce_resp *r, enum roce_resp_state to)
{
	static const bool may[ROCE_RS_COUNT][ROCE_RS_COUNT] = {
#define X(from, to) [ROCE_RS_##from][ROCE_RS_##to] = true,
	    ROCE_RESP_CHANGES(X)
#undef X
	};

	assert(to == r->state || may[r->state][to]);
	r->state = (uint8_t)to;
}

void roce_resp_served(struct roce_resp *r, roce_psn psn)
{
	while (r->rd_n && roce_psn_after(psn, roce_resp_rd_at(r, 0)->psn)) {
		struct roce_resp_rd *d = roce_resp_rd_at(r, 0);
		uint32_t n = (psn - d->psn) & ROCE_PSN_MASK;
		bool all = n >= d->cnt && (r->state != ROCE_RS_UNCOUNTED || r->rd_n > 1);

		d->served = all ? d->cnt : n;
		r->resp_end = roce_psn_add(d->psn, d->served);
		roce_resp_allow(r, d->psn, d->msn_before);
		roce_resp_acked(r, r->resp_end);
		if (!all)
			return;
		roce_resp_allow(r, r->acked, roce_psn_add(d->msn_before, 1));
		roce_resp_rd_pop(r);
	}
}

void roce_resp_ack_again(struct roce_resp *r)
{
	r->want_psn = r->epsn;
}

void roce_resp_ask_again(struct roce_resp *r)
{
	r->want_psn = r->epsn;
	if (r->state == ROCE_RS_IN_ORDER || r->state == ROCE_RS_GAP_NAK_SENT)
		roce_resp_enter(r, ROCE_RS_GAP);
}

void roce_resp_allow(struct roce_resp *r, roce_psn psn, roce_msn msn)
{
	if (!roce_psn_after(psn, r->allow_psn) || roce_psn_after(psn, r->epsn))
		return;
	r->allow_psn = psn;
	r->allow_msn = msn & ROCE_PSN_MASK;
}

/* --- path MTU --------------------------------------------------------------------------------- */

void roce_resp_pmtu_least(struct roce_resp *r, uint32_t n)
{
	if (n > 4096)
		return;
	while (r->pmtu_min < n)
		r->pmtu_min *= 2;
	if (r->pmtu_min == 4096)
		r->pmtu = 4096;
}

void roce_resp_read_counted(struct roce_resp *r, struct roce_resp_rd *d)
{
	if (d->cnt - 1 > ROCE_RESP_SPAN - roce_resp_outstanding(r)) {
		d->cnt = 1; /* nobody can number these responses: epsn stays behind the request */
		r->rd_n--;
		roce_resp_host_error(r, d->psn);
		return;
	}
	roce_resp_advance(r, d->cnt - 1);
	roce_resp_enter(r, ROCE_RS_IN_ORDER);
}

uint32_t roce_resp_do_none(struct roce_resp *r)
{
	return 0;
}

uint32_t roce_resp_do_count(struct roce_resp *r)
{
	struct roce_resp_rd *d = roce_resp_rd_at(r, (uint16_t)(r->rd_n - 1));

	d->cnt = roce_read_packets(d->dma_len, r->pmtu);
	roce_resp_read_counted(r, d);
	return d->cnt;
}

/* --- memory ----------------------------------------------------------------------------------- */

void roce_resp_do_no_room(struct roce_resp *r)
{
	roce_resp_enter(r, ROCE_RS_NO_ROOM);
}

void roce_resp_do_room(struct roce_resp *r)
{
	roce_resp_enter(r, ROCE_RS_GAP);
}

void roce_resp_do_same(struct roce_resp *r)
{
}

/* --- failure ---------------------------------------------------------------------------------- */

void roce_resp_host_error(struct roce_resp *r, roce_psn psn)
{
	r->fail_psn = psn;
	r->fail_syndrome = roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_INV_REQ);
	roce_resp_enter(r, ROCE_RS_HELD);
}

void roce_resp_do_fail(struct roce_resp *r, roce_psn psn, uint8_t syndrome)
{
	const bool held = r->state == ROCE_RS_HELD;

	if (r->rd_n) {
		const struct roce_resp_rd *d = roce_resp_rd_at(r, 0);
		roce_psn unserved = roce_psn_add(d->psn, d->served);

		if (roce_psn_after(psn, unserved))
			psn = unserved;
	}
	if (roce_psn_before(psn, r->acked)) { /* it has its ACK: the next request gets an error */
		psn = r->acked;
		syndrome = roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP);
	}
	if (roce_psn_after(psn, r->epsn))
		psn = r->epsn;
	if (held && roce_psn_before(r->fail_psn, psn)) { /* an error of the host is before it */
		psn = r->fail_psn;
		syndrome = r->fail_syndrome;
	}
	r->fail_psn = psn;
	r->fail_syndrome = syndrome;
	/* A NAK of a PSN not sent yet would be a ghost (IBA 9.7.6.1): it waits for a request. */
	roce_resp_enter(r, held || psn != r->epsn ? ROCE_RS_ERROR_OWED : ROCE_RS_FAILED);
}

void roce_resp_do_ignore(struct roce_resp *r, roce_psn psn, uint8_t syndrome)
{
}

void roce_resp_do_lose(struct roce_resp *r, roce_psn psn)
{
	r->fail_psn = psn;
	r->fail_syndrome = roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP);
	roce_resp_enter(r, roce_resp_error_sent(r) ? ROCE_RS_ERROR_AGAIN : ROCE_RS_ERROR_OWED);
}

/* --- rewind ----------------------------------------------------------------------------------- */

static void forget_accepted(struct roce_resp *r, roce_psn epsn)
{
	r->start = r->epsn = r->allow_psn = r->acked = r->want_psn = epsn & ROCE_PSN_MASK;
	r->msn = r->allow_msn = roce_resp_first_msn(r);
	r->msg = ROCE_RESP_JOINED;
	r->left = UINT32_MAX;
	r->repeats = 0;
	r->rd_head = r->rd_n = 0;
}

/* An error of the host was in what is forgotten now; the host sends it again. */
void roce_resp_do_rewind(struct roce_resp *r, roce_psn epsn)
{
	forget_accepted(r, epsn);
	roce_resp_enter(r, ROCE_RS_GAP);
}

void roce_resp_do_rewind_failed(struct roce_resp *r, roce_psn epsn)
{
	forget_accepted(r, epsn);
	r->fail_psn = r->epsn;
	roce_resp_enter(r, ROCE_RS_FAILED);
}
