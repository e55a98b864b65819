/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files of the RC requester. */
#ifndef ROCE_REQR_INT_H
#define ROCE_REQR_INT_H

#include "roce/reqr.h"

static inline bool roce_reqr_is_read(const struct rwy_buf *b)
{
	return roce_op(b->opcode)->op == ROCE_OP_READ_REQ;
}

/* READ and ATOMIC are completed by their response; an ACK does not complete them (IBA
 * 9.7.5.1.2). */
static inline bool roce_reqr_needs_response(const struct rwy_buf *b)
{
	return roce_reqr_is_read(b) || roce_op_is_atomic(roce_op(b->opcode));
}

/* Returns the PSN after the request; for a READ of unknown count the smallest possible one. */
static inline roce_psn roce_reqr_end(const struct rwy_buf *b)
{
	return roce_psn_add(b->psn, b->psn_cnt ? b->psn_cnt : 1);
}

/* The rest of a message has so long to come before what is here of it asks for an ACK. */
#define ROCE_REQR_REST_WAIT (2 * RWY_MS)

/* Returns the READ's DMA length in bytes. */
uint32_t roce_reqr_read_len(const struct rwy_buf *b);

/* Sets the path MTU; a READ of unknown count gets its count. */
void roce_reqr_learn_pmtu(struct roce_reqr *r, uint32_t pmtu);

/* Sets the count of response packets of the READ at the queue's end. */
void roce_reqr_set_count(struct roce_reqr *r, struct rwy_buf *b, uint32_t cnt);

/* Moves the oldest request, which is complete, to act->done. */
void roce_reqr_pop(struct roce_reqr *r, struct roce_reqr_act *act);

/* Goes back to una (go-back-N, IBA 9.7.6.1): nothing is in flight any more. */
void roce_reqr_go_back(struct roce_reqr *r);

/* una moved: updates timers, retry counts and window. */
void roce_reqr_progress(struct roce_reqr *r, struct roce_reqr_act *act, rwy_time now);

/* These bytes of READ responses came, or are no longer expected. */
void roce_reqr_settle(struct roce_reqr *r, uint64_t bytes);

/* Halves the window after a loss, once per window. */
void roce_reqr_cut(struct roce_reqr *r);

/* Starts the response timer after packets were sent. */
void roce_reqr_sent(struct roce_reqr *r, rwy_time now);

/* Restarts the timer after a dropped READ response: the host is busy with a READ. */
void roce_reqr_still_answers(struct roce_reqr *r, rwy_time now);

/* Ends the connection. */
void roce_reqr_give_up(
    struct roce_reqr *r, struct roce_reqr_act *act, uint8_t syndrome, roce_psn psn, enum roce_reqr_end end);

#endif
