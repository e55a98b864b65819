/* SPDX-License-Identifier: Apache-2.0 */
/* RC responder: creation, path MTU, watermark, failure. See also resp_recv.c, resp_ack.c. */
#include "roce/resp.h"

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
	r->started = true;
	r->msn0 = roce_psn_add(r->msn0, msn_base);
	r->msn = roce_psn_add(r->msn, msn_base);
	r->allow_msn = roce_psn_add(r->allow_msn, msn_base);
	for (uint16_t i = 0; i < r->rd_n; i++) {
		struct roce_resp_rd *d = roce_resp_rd_at(r, i);

		d->msn_before = roce_psn_add(d->msn_before, msn_base);
	}
}

void roce_resp_rewind(struct roce_resp *r, roce_psn epsn)
{
	r->start = r->epsn = r->allow_psn = r->acked = r->want_psn = epsn & ROCE_PSN_MASK;
	r->msn = r->allow_msn = r->msn0;
	r->msg = ROCE_RESP_JOINED;
	r->left = UINT32_MAX;
	r->pmtu_wait = r->want_ack = r->dup_ack = false;
	r->rd_head = r->rd_n = 0;
	/* An error of the host was in what is forgotten now; the host sends it again. */
	r->error = roce_resp_over(r) ? ROCE_RESP_REFUSED : ROCE_RESP_NO_ERROR;
	r->fail_owed = r->fail_sent = false;
	r->fail_psn = r->epsn;
	r->gap = ROCE_RESP_NAK_OWED;
}

void roce_resp_pmtu_least(struct roce_resp *r, uint32_t n)
{
	if (n > 4096)
		return;
	while (r->pmtu_min < n)
		r->pmtu_min *= 2;
	if (r->pmtu_min == 4096)
		r->pmtu = 4096;
}

void roce_resp_host_error(struct roce_resp *r, roce_psn psn)
{
	if (r->error != ROCE_RESP_NO_ERROR)
		return;
	r->error = ROCE_RESP_HELD;
	r->fail_owed = true;
	r->fail_psn = psn;
	r->fail_syndrome = roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_INV_REQ);
}

void roce_resp_read_counted(struct roce_resp *r, struct roce_resp_rd *d)
{
	r->pmtu_wait = false;
	if (d->cnt - 1 > ROCE_RESP_SPAN - roce_resp_outstanding(r)) {
		d->cnt = 1; /* nobody can number these responses: epsn stays behind the request */
		r->rd_n--;
		roce_resp_host_error(r, d->psn);
		return;
	}
	roce_resp_advance(r, d->cnt - 1);
}

uint32_t roce_resp_set_pmtu(struct roce_resp *r, uint32_t pmtu)
{
	struct roce_resp_rd *d;

	if (!roce_resp_pmtu_ok(pmtu))
		return 0;
	if (!r->pmtu)
		r->pmtu = pmtu;
	if (!r->pmtu_wait)
		return 0;
	d = roce_resp_rd_at(r, (uint16_t)(r->rd_n - 1));
	d->cnt = roce_read_packets(d->dma_len, r->pmtu);
	roce_resp_read_counted(r, d);
	return d->cnt;
}

void roce_resp_allow(struct roce_resp *r, roce_psn psn, roce_msn msn)
{
	if (!roce_psn_after(psn, r->allow_psn) || roce_psn_after(psn, r->epsn))
		return;
	r->allow_psn = psn;
	r->allow_msn = msn & ROCE_PSN_MASK;
}

void roce_resp_fail(struct roce_resp *r, roce_psn psn, uint8_t syndrome)
{
	if (roce_resp_over(r))
		return;
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
	if (r->error == ROCE_RESP_HELD &&
	    roce_psn_before(r->fail_psn, psn)) { /* an error of the host is before it */
		psn = r->fail_psn;
		syndrome = r->fail_syndrome;
	}
	r->error = ROCE_RESP_REFUSED;
	r->fail_psn = psn;
	r->fail_syndrome = syndrome;
	/* A NAK of a PSN not sent yet would be a ghost (IBA 9.7.6.1): it waits for a request. */
	r->fail_owed = r->fail_owed || psn != r->epsn;
}

void roce_resp_lost(struct roce_resp *r, roce_psn psn)
{
	r->error = ROCE_RESP_GONE;
	r->fail_owed = true;
	r->fail_psn = psn;
	r->fail_syndrome = roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP);
}
