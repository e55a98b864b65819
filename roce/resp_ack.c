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

uint32_t roce_resp_unacked(const struct roce_resp *r)
{
	uint32_t n = (r->epsn - r->acked) & ROCE_PSN_MASK;

	/* The READs without all their responses are behind `acked`, the oldest in part. */
	for (uint16_t i = 0; i < r->rd_n; i++)
		n -= roce_resp_rd_at(r, i)->cnt - roce_resp_rd_at(r, i)->served - 1;
	return n;
}

/* The response goes to the host, which acknowledges everything up to it (IBA 9.7.5.1.2). */
enum roce_resp_answer roce_resp_do_serve(struct roce_resp *r, struct roce_resp_rd *d, uint8_t opcode)
{
	if (d->atomic)
		r->serve_opcode = opcode;
	else if (d->served >= d->restart)
		r->serve_opcode = roce_resp_read_opcode(d->served - d->restart, d->cnt - d->restart);
	else
		r->serve_opcode = roce_resp_read_opcode(d->served, d->cnt);
	roce_resp_allow(r, d->psn, d->msn_before); /* the far host has everything before it */
	d->served++;
	r->resp_end = roce_psn_add(d->psn, d->served);
	roce_resp_acked(r, r->resp_end);
	if (d->served == d->cnt) {
		roce_resp_allow(r, r->acked, roce_psn_add(d->msn_before, 1));
		roce_resp_rd_pop(r);
	}
	return ROCE_RESP_SERVE;
}

enum roce_resp_answer roce_resp_do_serve_uncounted(
    struct roce_resp *r, struct roce_resp_rd *d, uint8_t opcode)
{
	if (r->rd_n == 1) {
		/* Without its path MTU the count stays unknown. */
		if (opcode != ROCE_RC_READ_RESP_ONLY)
			return ROCE_RESP_UNEXPECTED;
		roce_resp_pmtu_least(r, d->dma_len);
		roce_resp_read_counted(r, d); /* cnt is 1 */
	}
	return roce_resp_do_serve(r, d, opcode);
}

enum roce_resp_answer roce_resp_do_unserved(struct roce_resp *r, struct roce_resp_rd *d, uint8_t opcode)
{
	return ROCE_RESP_UNEXPECTED;
}

/* --- flush ------------------------------------------------------------------------------------ */

/*
 * A plain ACK. Its PSN must not belong to a READ or an ATOMIC: some requesters (Soft-RoCE) would
 * complete that request without its data. So when a response is right before the point, a duplicate
 * gets an ACK with its own PSN.
 */
bool roce_resp_do_ack(struct roce_resp *r, struct roce_resp_out *out, rwy_time now)
{
	roce_msn msn;
	roce_psn point = roce_resp_point(r, &msn);
	bool forward = roce_psn_after(point, r->acked);

	if (!(forward && roce_psn_after(r->want_psn, r->acked)) && !r->repeats)
		return false;
	if (forward || (point == r->acked && point != r->resp_end))
		out->psn = roce_psn_add(point, ROCE_PSN_MASK); /* point - 1 */
	else
		out->psn = r->dup_psn;
	out->msn = msn;
	out->syndrome = roce_aeth_make(ROCE_AETH_ACK, ROCE_AETH_CREDIT_INVALID);
	if (forward)
		roce_resp_acked(r, point);
	r->repeats = 0;
	return true;
}

/* PSN sequence NAK at epsn. It acknowledges everything before, so all that must be allowed. */
bool roce_resp_do_nak(struct roce_resp *r, struct roce_resp_out *out, rwy_time now)
{
	roce_msn msn;

	if (roce_resp_point(r, &msn) != r->epsn)
		return roce_resp_do_ack(r, out, now);
	*out = (struct roce_resp_out){r->epsn, msn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ)};
	r->nak_time = now;
	r->repeats = 0;
	roce_resp_acked(r, r->epsn);
	roce_resp_enter(r, ROCE_RS_GAP_NAK_SENT);
	return true;
}

/* The error NAK: once when the connection ends, then once for each turn with a request. */
bool roce_resp_do_error(struct roce_resp *r, struct roce_resp_out *out, rwy_time now)
{
	roce_msn msn;

	/* If psn is not the point, this MSN may be wrong; after the error it does not matter. */
	roce_resp_point(r, &msn);
	*out = (struct roce_resp_out){r->fail_psn, r->fail_psn == r->epsn ? r->msn : msn, r->fail_syndrome};
	r->repeats = 0;
	if (roce_psn_after(r->fail_psn, r->acked))
		roce_resp_acked(r, r->fail_psn);
	roce_resp_enter(r, ROCE_RS_ERROR_SENT);
	return true;
}

bool roce_resp_do_held(struct roce_resp *r, struct roce_resp_out *out, rwy_time now)
{
	roce_msn msn;

	return roce_psn_before(roce_resp_point(r, &msn), r->fail_psn) ? roce_resp_do_ack(r, out, now)
	                                                              : roce_resp_do_error(r, out, now);
}

bool roce_resp_do_silence(struct roce_resp *r, struct roce_resp_out *out, rwy_time now)
{
	return false;
}
