/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies for the standby gateway, at the active one. Each connection of ack mode `site` has a flow
 * in the pair's tunnel. Its first message names the first request that is not delivered; then come
 * copies of the requests in custody and of those that are accepted later. RELEASE says up to which
 * PSN nothing is needed any more: the far host has the requests, and the local host has had the
 * responses of its READs and ATOMICs for a while.
 *
 * Responses stay undelivered to the far gateway until the standby has that RELEASE. So one that
 * dies with the active gateway comes again to the standby, and no READ or ATOMIC is asked for
 * twice.
 *
 * Thread: the engine's. All functions allow a connection without copies.
 */
#ifndef ENGINE_COPY_H
#define ENGINE_COPY_H

#include "engine/standby.h"

/* PSN before which nothing is needed, and how many messages of the flow of responses that frees. */
struct eng_copy_mark {
	roce_psn psn;
	uint64_t responses;
};

/* The copies of a connection. */
struct eng_copy {
	struct wan_txflow *flow;
	roce_psn psn, sent_psn; /* the standby has the requests before this one; copies went out */
	roce_msn msn, sent_msn; /* MSN after the requests before these */
	uint16_t pmtu;          /* path MTU that the standby knows; 0: none */
	/* Known here; to be said with the next beat; said, and confirmed unless `saying`. */
	struct eng_copy_mark done, due, said;
	roce_psn released; /* the standby has released what is before this PSN, */
	roce_psn answered; /* and before the copies began, responses had been sent up to here */
	bool saying;
	uint64_t said_seq;                    /* flow sequence of that RELEASE */
	bool listed;                          /* `done` is not said yet */
	struct eng_responder *next;           /* in that list */
	struct eng_responder *all_next, **at; /* in the list of all with copies */
	struct rwy_bufq answers;              /* messages of the far gateway that wait for a copy */
	uint64_t bytes;                       /* of buffers in `flow`, and how many */
	uint32_t bufs;
};

/* Nothing of rs is acknowledged that the standby does not have. */
static inline bool eng_copy_gates(const struct eng_responder *rs)
{
	return eng_sb_gates(rs->side.e) && eng_ack_mode(rs) == ENG_ACK_SITE;
}

/*
 * The connection runs: begins with what is in custody, if the mode is `site` and there is a
 * standby. Nothing if it has begun. Without memory the standby is given up.
 */
void eng_copy_begin(struct eng_responder *rs, rwy_time now);
/* The connection ends or begins anew, or there is no standby any more: all copies are forgotten. */
void eng_copy_end(struct eng_responder *rs, rwy_time now);
/* b is in custody now. */
void eng_copy_request(struct eng_responder *rs, const struct rwy_buf *b, rwy_time now);
/* Allows ACKs for what the standby has. */
void eng_copy_allow(struct eng_responder *rs);
/* The standby has the request of this PSN. */
bool eng_copy_covers(const struct eng_responder *rs, roce_psn psn);
/*
 * A message of the far gateway must wait, because the standby does not have the READ that it
 * answers, or because this gateway may not speak. True: b was taken.
 */
bool eng_copy_holds(struct eng_responder *rs, struct rwy_buf *b);
/* The next message that waited and need not wait any longer; NULL: none. */
struct rwy_buf *eng_copy_next_answer(struct eng_responder *rs);
/* Response `psn` went to the host. */
void eng_copy_answered(struct eng_responder *rs, roce_psn psn);
/* The message with this sequence of the flow of responses was handled: reported now or later. */
void eng_copy_taken(struct eng_responder *rs, uint64_t seq, rwy_time now);
/* Another flow of responses, or none: sequences begin again. */
void eng_copy_other_responses(struct eng_responder *rs);
/* The far host acknowledged the request in b. */
void eng_copy_delivered(struct eng_responder *rs, const struct rwy_buf *b);
/* The standby has copy or message b, and all before it; its buffer is about to be freed. */
void eng_copy_received(struct eng_responder *rs, const struct rwy_buf *b, rwy_time now);
void eng_copy_freed(struct eng_responder *rs, const struct rwy_buf *b);
/* The standby refused the flow, which is gone. */
void eng_copy_refused(struct eng_responder *rs, rwy_time now);
/* Opening information of the flow, after a restart of the standby. */
size_t eng_copy_open_info(const struct eng_responder *rs, uint8_t *out);
/* The standby lacks nothing that rs was acknowledged before ACKs waited for copies. */
bool eng_copy_complete(const struct eng_responder *rs);
/* Says what became due since the last beat. When it must be called; RWY_NEVER: nothing is due. */
void eng_copy_tick(struct eng *e, rwy_time now);

/*
 * Returns how many of the oldest requests in custody the far host has executed: up to the last READ
 * or ATOMIC whose responses have passed. These do not come again, and the host may not remember
 * the results of its ATOMICs any more. So after a restart of the far gateway these requests must
 * not be sent again.
 */
uint32_t eng_custody_executed(const struct eng_responder *rs);

#endif
