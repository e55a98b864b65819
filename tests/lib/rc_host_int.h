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

/* The operation takes a receive at the other host. */
static inline bool rc_op_takes_recv(enum rc_wr_op op)
{
	return op == RC_SEND || op == RC_SEND_IMM || op == RC_SEND_INV || op == RC_WRITE_IMM;
}

/* The credits that an AETH's value stands for (IBA table 48), values 0..30. */
static inline uint32_t rc_credits(uint8_t value)
{
	return value < 2 ? value : value & 1 ? 3u << (value / 2 - 1) : 2u << (value / 2 - 1);
}

/* The requester's end: everything posted completes with an error. */
void rc_reqr_end(struct rc_host *h, enum rc_status status);
void rc_resp_flush_held(struct rc_host *h);
void rc_reqr_input(struct rc_host *h, const struct roce_pkt *pkt, rwy_time now);
uint32_t rc_reqr_output(struct rc_host *h, uint8_t *out, rwy_time now);
void rc_resp_input(struct rc_host *h, const struct roce_pkt *pkt);
uint32_t rc_resp_output(struct rc_host *h, uint8_t *out);

#endif
