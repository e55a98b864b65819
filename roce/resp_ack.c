/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC responder, towards the host: which response of the far host is the next one (READ, ATOMIC),
 * and which ACK or NAK may go now (IBA 9.7.5.1).
 */
#include "roce/resp_int.h"

roce_psn roce_resp_point(const struct roce_resp *r, roce_msn *msn)
{
	if (r->rd_n) {
		const struct roce_resp_rd *d = roce_resp_rd_at(r, 0);

		if (!roce_psn_after(d->psn, r->allow_psn)) {
			*msn = d->msn_before;
			return d->psn;
		}
	}
	*msn = r->allow_msn;
	return r->allow_psn;
}

static bool kind_ok(const struct roce_resp_rd *d, uint8_t opcode)
{
	return roce_op(opcode)->op == (d->atomic ? ROCE_OP_ATOMIC_ACK : ROCE_OP_READ_RESP);
}

/* The response goes to the host, which acknowledges everything up to it (IBA 9.7.5.1.2). */
static void served(struct roce_resp *r, struct roce_resp_rd *d)
{
	roce_resp_allow(r, d->psn, d->msn_before); /* the far host has everything before it */
	d->served++;
	r->acked = r->resp_end = roce_psn_add(d->psn, d->served);
	if (r->want_ack && roce_psn_before(r->want_psn, r->acked))
		r->want_ack = false;
	if (d->served == d->cnt) {
		roce_resp_allow(r, r->acked, roce_psn_add(d->msn_before, 1));
		roce_resp_rd_pop(r);
	}
}

enum roce_resp_answer roce_resp_response(struct roce_resp *r, roce_psn psn, uint8_t opcode, rwy_time now)
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
	if (psn != next || !kind_ok(d, opcode) || roce_resp_over(r))
		return ROCE_RESP_UNEXPECTED;
	if (r->pmtu_wait && r->rd_n == 1) {
		/* The count stays unknown without the path MTU. */
		if (opcode != ROCE_RC_READ_RESP_ONLY)
			return ROCE_RESP_UNEXPECTED;
		roce_resp_pmtu_least(r, d->dma_len);
		roce_resp_read_counted(r, d); /* cnt is 1 */
	}
	if (d->atomic)
		r->serve_opcode = opcode;
	else if (d->served >= d->restart)
		r->serve_opcode = roce_resp_read_opcode(d->served - d->restart, d->cnt - d->restart);
	else
		r->serve_opcode = roce_resp_read_opcode(d->served, d->cnt);
	served(r, d);
	return ROCE_RESP_SERVE;
}

/* The error NAK: once when the connection ends, then once for each turn with a request. */
static bool flush_fail(struct roce_resp *r, struct roce_resp_out *out)
{
	roce_msn msn;

	if (!r->fail_owed)
		return false;
	if (r->error == ROCE_RESP_HELD && roce_psn_before(roce_resp_point(r, &msn), r->fail_psn))
		return false;
	if (r->error == ROCE_RESP_HELD)
		r->error = ROCE_RESP_REFUSED;
	r->fail_owed = false;
	r->fail_sent = true;
	r->want_ack = r->dup_ack = false;
	/* When psn is not the point, this MSN may be wrong; after the error it does not matter. */
	roce_resp_point(r, &msn);
	*out = (struct roce_resp_out){r->fail_psn, r->fail_psn == r->epsn ? r->msn : msn, r->fail_syndrome};
	if (roce_psn_after(r->fail_psn, r->acked))
		r->acked = r->fail_psn;
	return true;
}

/* PSN sequence NAK at epsn. It acknowledges everything before, so all of that must be allowed. */
static bool flush_nak(struct roce_resp *r, struct roce_resp_out *out, rwy_time now)
{
	roce_msn msn;

	if (r->gap != ROCE_RESP_NAK_OWED || roce_resp_point(r, &msn) != r->epsn)
		return false;
	r->gap = ROCE_RESP_NAK_SENT;
	r->nak_time = now;
	r->want_ack = r->dup_ack = false;
	r->acked = r->epsn;
	*out = (struct roce_resp_out){r->epsn, msn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ)};
	return true;
}

/*
 * A plain ACK. Its PSN must not belong to a READ or an ATOMIC: some requesters (Soft-RoCE) would
 * complete that request without its data. So when a response is right before the point, a duplicate
 * gets an ACK with its own PSN.
 */
static bool flush_ack(struct roce_resp *r, struct roce_resp_out *out)
{
	roce_msn msn;
	roce_psn point = roce_resp_point(r, &msn);
	bool forward = roce_psn_after(point, r->acked);

	if (!(r->want_ack && forward) && !r->dup_ack)
		return false;
	if (forward || (point == r->acked && point != r->resp_end))
		out->psn = roce_psn_add(point, ROCE_PSN_MASK); /* point - 1 */
	else
		out->psn = r->dup_psn;
	out->msn = msn;
	out->syndrome = roce_aeth_make(ROCE_AETH_ACK, ROCE_AETH_CREDIT_INVALID);
	if (forward)
		r->acked = point;
	r->dup_ack = false;
	if (r->want_ack && roce_psn_before(r->want_psn, r->acked))
		r->want_ack = false;
	return true;
}

bool roce_resp_flush(struct roce_resp *r, struct roce_resp_out *out, rwy_time now)
{
	if (!r->started)
		return false;
	if (flush_fail(r, out))
		return true;
	if (r->error != ROCE_RESP_NO_ERROR)
		return !r->fail_sent && flush_ack(r, out);
	return flush_nak(r, out, now) || flush_ack(r, out);
}
