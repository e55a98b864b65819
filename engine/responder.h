/* SPDX-License-Identifier: Apache-2.0 */
/* The responder side: requests of a local host, and what it is answered in the far host's name. */
#ifndef ENGINE_RESPONDER_H
#define ENGINE_RESPONDER_H

#include "engine/eng.h"
#include "engine/table.h"

/* Find or create; NULL: refused, counted. `stranger`: nothing but the packet speaks for it, so that the bound
 * of unpaired flows holds; else the caller pairs it at once. */
struct eng_responder *eng_responder_get(struct eng *e, const struct eng_key *k, bool stranger, rwy_time now);
void eng_responder_start_cm(
    struct eng_responder *rs, uint32_t lqpn, roce_psn psn, uint32_t pmtu, rwy_time now);
void eng_responder_flush(struct eng_responder *rs, rwy_time now);
void eng_responder_delivered(struct eng_responder *rs, const struct rwy_buf *b, rwy_time now);
void eng_responder_fail(
    struct eng_responder *rs, roce_psn psn, uint8_t syndrome, const char *why, rwy_time now);
void eng_responder_free(struct eng_responder *rs, rwy_time now);
size_t eng_responder_open_info(const struct eng_responder *rs, uint8_t *out);
/* Gives up what is on its way to the far gateway. */
void eng_responder_abort(struct eng_responder *rs, rwy_time now);
bool eng_responder_open(
    struct eng_responder *rs, rwy_time now); /* the flow of its requests; false: no memory */
/* The connection begins (again) at this PSN. Until the far host has confirmed it nothing is acknowledged. */
void eng_responder_start(struct eng_responder *rs, roce_psn first, uint32_t pmtu, rwy_time now);
/* What waited for the path MTU, again. */
void eng_responder_unpark(struct eng_responder *rs, rwy_time now);
void eng_responder_address(
    const struct eng_responder *rs, struct roce_addr *a); /* of what we say in the far host's name */
#define ENG_NAKS_MAX 5 /* a host that does not go back after so many NAKs of one PSN cannot */

/* --- responder_states.c: the events --- */
void eng_responder_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now); /* takes b */
void eng_responder_message(
    struct eng_responder *rs, struct rwy_buf *b, rwy_time now);   /* of the flow rsp; takes b */
void eng_responder_reset(struct eng_responder *rs, rwy_time now); /* the far gateway refused the flow req */

/* --- request.c: requests of the host, by state. Each takes b. --- */
void eng_responder_first_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_responder_take_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_responder_early_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);

/* --- answer.c: responses of the far host (each takes b) and words of the far gateway, by state --- */
void eng_responder_take_response(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);
void eng_responder_early_response(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);
void eng_responder_sync(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
void eng_responder_rewind(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
void eng_responder_given_up(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
void eng_responder_not_resumed(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
void eng_responder_early_control(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);

/* --- responder.c: the flow was refused, by state --- */
void eng_responder_refused(struct eng_responder *rs, rwy_time now);
void eng_responder_not_taken_up(struct eng_responder *rs, rwy_time now);

/* --- journal.c --- */
int eng_journal_init(struct eng *e);
void eng_journal_note(struct eng_responder *rs); /* before an acknowledge leaves */
void eng_journal_forget(struct eng_responder *rs);
/* The next entry of an earlier process with this VNI, each once; NULL: no more. *cursor starts with 0. */
struct eng_journal_entry *eng_journal_next_orphan(struct eng *e, uint32_t vni, uint32_t *cursor);
void eng_journal_release(struct eng *e, struct eng_journal_entry *j);

/* --- replay.c: a host that lost answers gets them again --- */
void eng_responder_replay(struct eng_responder *rs, roce_psn psn, uint32_t cnt, rwy_time now);
void eng_responder_replay_atomic(struct eng_responder *rs, roce_psn psn, rwy_time now);
void eng_responder_resend(struct eng_responder *rs, const struct rwy_buf *b, uint8_t opcode);

/* --- kept.c: the answers kept for that. Each is kept after it was served. --- */
void eng_responder_keep_read(struct eng_responder *rs, roce_psn psn, struct rwy_buf *b); /* takes b */
void eng_responder_keep_atomic(struct eng_responder *rs, roce_psn psn, uint64_t original);
/* The kept answer of this PSN, and the READ response after another; NULL: not kept. */
const struct eng_kept *eng_responder_kept(
    const struct eng_responder *rs, const struct eng_keptq *q, roce_psn psn);
/* A READ response to this PSN is kept, or comes from the far host yet. */
bool eng_responder_has_answer(const struct eng_responder *rs, roce_psn psn);
const struct eng_kept *eng_responder_kept_next(const struct eng_keptq *q, const struct eng_kept *k);
void eng_responder_forget_reads(struct eng_responder *rs); /* the host gave up long ago, if it lost one */
void eng_responder_forget_answers(struct eng_responder *rs);

/* --- restore.c --- */
void eng_journal_restore(struct eng *e, uint32_t tenant, rwy_time now); /* what the journal has of it */

/* --- ack_policy.c: when a request is acknowledged --- */
void eng_ack_started(struct eng_responder *rs);                                 /* the far host is there */
void eng_ack_in_custody(struct eng_responder *rs, rwy_time now);                /* a request is */
void eng_ack_at_far_gateway(struct eng_responder *rs, const struct rwy_buf *b); /* it has this request */
void eng_ack_at_far_host(struct eng_responder *rs, const struct rwy_buf *b);    /* delivered */
void eng_ack_unblock(struct eng_responder *rs); /* there may be memory again */
/*
 * The host waits so long that its timer has run out: it sends again from its oldest unacknowledged packet. It
 * gets an acknowledgement for that one, because progress gives it all its retries back (IBA 9.7.6.1.3); an
 * outage of the WAN then costs no connection, and no more memory than one packet a timeout.
 */
void eng_ack_single(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now);

/* --- reuse.c: duplicate, or a new connection on the same QPN? --- */
/* `v` is roce_resp_recv's verdict, not ACCEPT. */
bool eng_reuse_may_be_new(
    const struct eng_responder *rs, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now);
/*
 * The host repeats a request whose ACK has just left: its timer was faster. True: the packet is dropped, and
 * so is what follows until the host is quiet (eng_reuse_suppressed). It has the ACK by then; a new
 * connection's host sends once more. So neither is the duplicate acknowledged again, nor is the far host
 * asked, whose answer an outage may delay.
 */
bool eng_reuse_ack_in_flight(struct eng_responder *rs, enum roce_resp_verdict v, rwy_time now);
bool eng_reuse_suppressed(struct eng_responder *rs, rwy_time now);

/* --- cnp.c: near source --- */
/* Whether this packet must be answered with a CNP; consumes an ECN mark. n->req is open. */
bool eng_np_congested(struct eng_responder *rs, const struct roce_pkt *pkt, struct rwy_buf *b);
/* Asks the host to send less, if the last time is long enough ago. */
void eng_cnp_send(struct eng_responder *rs, rwy_time now);

#endif
