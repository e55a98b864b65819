/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the RC requester. */
#ifndef ROCE_REQR_INT_H
#define ROCE_REQR_INT_H

#include "roce/reqr.h"

static inline bool roce_reqr_is_read(const struct rwy_buf *b)
{
	return roce_op(b->opcode)->op == ROCE_OP_READ_REQ;
}

/* READ and ATOMIC are complete with their response; no ACK completes them (IBA 9.7.5.1.2). */
static inline bool roce_reqr_needs_response(const struct rwy_buf *b)
{
	return roce_reqr_is_read(b) || roce_op_is_atomic(roce_op(b->opcode));
}

/* PSN after the request; for a READ of unknown count the smallest possible one. */
static inline roce_psn roce_reqr_end(const struct rwy_buf *b)
{
	return roce_psn_add(b->psn, b->psn_cnt ? b->psn_cnt : 1);
}

/* psn is sent and not acknowledged: in [una, high). */
static inline bool roce_reqr_in_flight(const struct roce_reqr *r, roce_psn psn)
{
	return ((psn - r->una) & ROCE_PSN_MASK) < ((r->high - r->una) & ROCE_PSN_MASK);
}

/* The READ's DMA length in bytes. */
uint32_t roce_reqr_read_len(const struct rwy_buf *b);

/* The path MTU is known: a READ of unknown count gets its count. */
void roce_reqr_learn_pmtu(struct roce_reqr *r, uint32_t pmtu);

/* The READ at the queue's end, of unknown count, has `cnt` response packets. */
void roce_reqr_set_count(struct roce_reqr *r, struct rwy_buf *b, uint32_t cnt);

/* The oldest request is complete: it moves to act->done. */
void roce_reqr_pop(struct roce_reqr *r, struct roce_reqr_act *act);

/* Goes back to una (go-back-N, IBA 9.7.6.1): nothing is in flight any more. */
void roce_reqr_go_back(struct roce_reqr *r);

/* una moved: updates timers, retry counts and window. */
void roce_reqr_progress(struct roce_reqr *r, struct roce_reqr_act *act, rwy_time now);

/* So many bytes of READ responses came, or are no longer expected. */
void roce_reqr_settle(struct roce_reqr *r, uint64_t bytes);

/* A loss: halves the window, once for each window. */
void roce_reqr_cut(struct roce_reqr *r);

/* Packets were sent: the response timer runs. */
void roce_reqr_sent(struct roce_reqr *r, rwy_time now);

/* A READ response is dropped: the host is busy with a READ, so the timer begins anew. */
void roce_reqr_still_answers(struct roce_reqr *r, rwy_time now);

/* The connection ends. */
void roce_reqr_give_up(
    struct roce_reqr *r, struct roce_reqr_act *act, uint8_t syndrome, roce_psn psn, enum roce_reqr_end end);

#endif
