/* SPDX-License-Identifier: Apache-2.0 */
/* A responder, with the packets, verdicts and answers of a test. */
#ifndef TESTS_LIB_RC_RESP_H
#define TESTS_LIB_RC_RESP_H

#include <string.h>

#include "roce/resp.h"
#include "tests/lib/rc_pkt.h"

struct rx {
	struct roce_resp r;
	struct roce_resp_act act;
	struct roce_resp_out out;
	rwy_time now;
	bool no_ack_req; /* packets come without AckReq */
	uint8_t bytes[RC_PKT_MAX + 8];
};

static inline void rx_init(struct rx *x, roce_psn first, uint32_t pmtu)
{
	memset(x, 0, sizeof(*x));
	x->now = RWY_SEC;
	roce_resp_init(&x->r, first, pmtu);
	roce_resp_go(&x->r, 0);
}

static inline void rx_fini(struct rx *x)
{
	roce_resp_fini(&x->r);
}

/* Passes a request with AckReq. dma: RETH length. */
static inline enum roce_resp_verdict rx_in(
    struct rx *x, uint8_t opcode, roce_psn psn, uint32_t payload, uint32_t dma)
{
	struct roce_pkt pkt;

	rc_pkt_make(x->bytes,
	    &(struct rc_mk){
	        .opcode = opcode, .psn = psn, .ack_req = !x->no_ack_req, .len = dma, .payload_len = payload});
	if (!rc_pkt_read(x->bytes, sizeof(x->bytes), &pkt))
		__builtin_trap();
	roce_resp_recv(&x->r, &pkt, &x->act, x->now);
	return x->act.verdict;
}

static inline enum roce_resp_answer rx_answer(struct rx *x, roce_psn psn, uint8_t opcode)
{
	return roce_resp_response(&x->r, psn & ROCE_PSN_MASK, opcode);
}

static inline void rx_allow_all(struct rx *x)
{
	roce_resp_allow(&x->r, x->r.epsn, x->r.msn);
}

static inline bool rx_flush(struct rx *x)
{
	return roce_resp_flush(&x->r, &x->out, x->now);
}

#endif
