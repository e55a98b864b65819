/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the RC requester share and nobody else needs. */
#ifndef ROCE_REQR_INT_H
#define ROCE_REQR_INT_H

#include "roce/reqr.h"

static inline bool roce_reqr_is_read(const struct rwy_buf *b)
{
	return roce_op(b->opcode)->op == ROCE_OP_READ_REQ;
}

/* READ and ATOMIC are done when they were answered; no ACK does it (IBA 9.7.5.1.2). */
static inline bool roce_reqr_needs_response(const struct rwy_buf *b)
{
	return roce_reqr_is_read(b) || roce_op_is_atomic(roce_op(b->opcode));
}

/* PSN after the request; of a READ of unknown count the least it can be. */
static inline roce_psn roce_reqr_end(const struct rwy_buf *b)
{
	return roce_psn_add(b->psn, b->psn_cnt ? b->psn_cnt : 1);
}

/* Is psn sent and not acknowledged: in [una, high)? */
static inline bool roce_reqr_in_flight(const struct roce_reqr *r, roce_psn psn)
{
	return ((psn - r->una) & ROCE_PSN_MASK) < ((r->high - r->una) & ROCE_PSN_MASK);
}

/* The READ's DMA length in bytes. */
uint32_t roce_reqr_read_len(const struct rwy_buf *b);

/* The path MTU is known now: the count of a waiting READ follows. */
void roce_reqr_learn_pmtu(struct roce_reqr *r, uint32_t pmtu);

/* The READ at the queue's end, of unknown count, has `cnt` response packets. */
void roce_reqr_set_count(struct roce_reqr *r, struct rwy_buf *b, uint32_t cnt);

/* The request at the head is complete. */
void roce_reqr_pop(struct roce_reqr *r, struct roce_reqr_act *act);

/* Nothing is in flight any more: send again from una (go-back-N, IBA 9.7.6.1). */
void roce_reqr_go_back(struct roce_reqr *r);

/* una moved: timers, counters, window. */
void roce_reqr_progress(struct roce_reqr *r, struct roce_reqr_act *act, rwy_time now);

/* READ responses in flight that came, or that nobody waits for any more. */
void roce_reqr_settle(struct roce_reqr *r, uint64_t bytes);

/* Loss: halve the window, once a window. */
void roce_reqr_cut(struct roce_reqr *r);

/* Packets went out: the response timer runs. */
void roce_reqr_sent(struct roce_reqr *r, rwy_time now);

/* A READ response of no use: the host is executing a READ, and answers what follows after it. */
void roce_reqr_still_answers(struct roce_reqr *r, rwy_time now);

void roce_reqr_give_up(
    struct roce_reqr *r, struct roce_reqr_act *act, uint8_t syndrome, roce_psn psn, enum roce_reqr_end end);

#endif
