/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of the model host. */
#ifndef TESTS_LIB_RC_HOST_INT_H
#define TESTS_LIB_RC_HOST_INT_H

#include "tests/lib/rc_host.h"
#include "tests/lib/rc_pkt.h"

struct rc_wqe {
	struct rc_wr wr;
	roce_psn first;
	uint32_t npkts;
	roce_psn restart; /* READ: PSN of the latest request */
	bool counted;     /* in rd_out */
};

/* One answer that the responder owes: an ACK or NAK, an ATOMIC's answer, or a series of READ
 * responses. */
struct rc_out {
	uint8_t opcode, syndrome;
	bool continued; /* a READ that is answered from its middle */
	roce_psn psn;
	roce_msn msn;
	uint64_t original, off;
	uint32_t cnt, i, len;
};

static inline bool rc_op_is_rd(enum rc_wr_op op)
{
	return op == RC_READ || op == RC_CAS || op == RC_FAA;
}

void rc_reqr_input(struct rc_host *h, const struct roce_pkt *pkt, rwy_time now);
uint32_t rc_reqr_output(struct rc_host *h, uint8_t *out, rwy_time now);
void rc_resp_input(struct rc_host *h, const struct roce_pkt *pkt);
uint32_t rc_resp_output(struct rc_host *h, uint8_t *out);

#endif
