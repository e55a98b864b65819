/* SPDX-License-Identifier: Apache-2.0 */
/* The requester side: a local host is asked in the far host's name. */
#ifndef ENGINE_REQUESTER_H
#define ENGINE_REQUESTER_H

#include "engine/eng.h"
#include "engine/table.h"

#define ENG_FAR_BURST 64 /* packets of one flow to the LAN at once, at most */

void eng_far_begin(struct eng_far *f, roce_psn first, uint32_t pmtu, bool probe);
void eng_far_tell_start(struct eng_far *f, roce_psn psn, roce_msn msn, uint64_t first_seq, rwy_time now);
/* A RESUME, the first message of a flow: the near gateway restarted; is anything lost that its host was
 * acknowledged? The caller keeps b. False: malformed. */
bool eng_far_resume(struct eng_far *f, const struct rwy_buf *b, rwy_time now);
void eng_far_report(struct eng_far *f, rwy_time now);
/* Requests that `n`'s host was acknowledged are lost, and the other host knows: this one gets its error, too.
 */
void eng_far_lost_reverse(struct eng_near *n, rwy_time now);
/* A doomed host acknowledges what was to end it: it is further than we knew, and it was a duplicate. Then it
 * comes again, after what the host has. */
bool eng_far_doom_again(struct eng_far *f, const struct roce_pkt *pkt, rwy_time now);
/* Whether a packet can be the answer to the question that eng_far_resume asked: not one to a READ, an ATOMIC
 * or a SEND of before. */
bool eng_far_answers(const struct roce_pkt *pkt);
/*
 * It did not answer. It says only once that it expects an earlier packet (roce/resp.h), and may have said so
 * to a gateway that is no more; but a duplicate is acknowledged each time.
 */
void eng_far_ask_back(struct eng_far *f, rwy_time now);
/* The host's answer to the question that eng_far_resume asked: eng_far_answers. */
void eng_far_resumed(struct eng_far *f, const struct roce_pkt *pkt, rwy_time now);
struct eng_far *eng_far_get_at(struct eng *e, const struct eng_key *k, int tunnel, rwy_time now);
struct eng_far *eng_far_get(struct eng *e, const struct eng_key *k, rwy_time now);
void eng_far_open(struct eng_far *f, struct wan_rxflow *rx, const struct eng_open *o, rwy_time now);
void eng_far_flush(struct eng_far *f, rwy_time now);
/* Puts up to max (<= 64) packets on the LAN; returns their bytes. */
uint32_t eng_far_send(struct eng_far *f, unsigned max, rwy_time now);
void eng_far_rsp_delivered(struct eng_far *f, rwy_time now);
void eng_far_start_cm(struct eng_far *f, uint32_t rqpn, roce_psn psn, uint32_t pmtu, rwy_time now);
void eng_far_tell(struct eng_far *f, const struct eng_ctrl *c, rwy_time now);
void eng_far_fail(struct eng_far *f, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now);
void eng_far_free(struct eng_far *f, rwy_time now);
size_t eng_far_open_info(const struct eng_far *f, uint8_t *out);

/* --- requester_states.c: the events --- */
void eng_far_data(struct eng_far *f, struct rwy_buf *b, rwy_time now); /* of the flow req; takes b */
void eng_far_response(
    struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now); /* takes b, which is pkt */
void eng_far_tick(struct eng_far *f, rwy_time now);                            /* its timer may be due */

/* --- deliver.c: messages of the near gateway, by state. Each takes b. --- */
void eng_far_first(struct eng_far *f, struct rwy_buf *b, rwy_time now);   /* opens the flow */
void eng_far_message(struct eng_far *f, struct rwy_buf *b, rwy_time now); /* a request */
/* Nothing of this flow goes to the host any more. Also while it is asked where to be told the worst. */
void eng_far_forget(struct eng_far *f, struct rwy_buf *b, rwy_time now);

/* --- response.c: the host's packets and its silence, by state. Each takes b. --- */
void eng_far_answered_first(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_far_answered_again(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_far_located(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_far_answered_end(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_far_ghost(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_far_silent(struct eng_far *f, rwy_time now);
void eng_far_not_located(struct eng_far *f, rwy_time now);

/* The flow of the host's answers; false: no memory. */
bool eng_far_need_responses(struct eng_far *f, rwy_time now);
/* The request `seq` counts as delivered only with the answers that were sent so far. False: no memory. */
bool eng_far_wait_responses(struct eng_far *f, uint64_t seq);
void eng_far_tell_sync(struct eng_far *f, enum eng_ctrl_type type, roce_psn psn, roce_msn msn, rwy_time now);

/* --- hostrate.c and turns.c: near destination --- */
void eng_rp_taken(struct eng_far *f, uint64_t bytes); /* the host acknowledged so much */
void eng_rp_cnp(struct eng_far *f, rwy_time now);     /* the local host asks for less */
void eng_rp_poll(struct eng *e, rwy_time now);
rwy_time eng_rp_next(const struct eng *e);
void eng_rp_leave(struct eng_far *f);          /* it has nothing to send any more */
uint64_t eng_rp_rate(const struct eng_far *f); /* bytes per second, 0: not bounded */
void eng_rp_fini(struct eng *e);

/* --- expire.c: connections that are over, a few table slots a time --- */
void eng_sweep(struct eng *e, rwy_time now);

/* --- drain.c: end to end --- */
void eng_drain(struct eng_far *f, rwy_time now); /* after what goes to the host went */

#endif
