/* SPDX-License-Identifier: Apache-2.0 */
/* The requester side: a local host is asked in the far host's name. */
#ifndef ENGINE_REQUESTER_H
#define ENGINE_REQUESTER_H

#include "engine/eng.h"
#include "engine/table.h"

#define ENG_FAR_BURST 64 /* packets of one flow to the LAN at once, at most */

void eng_requester_begin(struct eng_requester *rq, roce_psn first, uint32_t pmtu, bool probe);
void eng_requester_report_start(
    struct eng_requester *rq, roce_psn psn, roce_msn msn, uint64_t first_seq, rwy_time now);
/* A RESUME, the first message of a flow: the near gateway restarted; is anything lost that its host was
 * acknowledged? The caller keeps b. False: malformed. */
bool eng_requester_resume(struct eng_requester *rq, const struct rwy_buf *b, rwy_time now);
void eng_requester_report(struct eng_requester *rq, rwy_time now);
/* Requests that `n`'s host was acknowledged are lost, and the other host knows: this one gets its error, too.
 */
void eng_requester_end_lost(struct eng_responder *rs, rwy_time now);
/* A doomed host acknowledges what was to end it: it is further than we knew, and it was a duplicate. Then it
 * comes again, after what the host has. */
bool eng_requester_end_again(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now);
/* Whether a packet can be the answer to the question that eng_requester_resume asked: not one to a READ, an
 * ATOMIC or a SEND of before. */
bool eng_requester_names_psn(const struct roce_pkt *pkt);
/*
 * It did not answer. It says only once that it expects an earlier packet (roce/resp.h), and may have said so
 * to a gateway that is no more; but a duplicate is acknowledged each time.
 */
void eng_requester_ask_duplicate(struct eng_requester *rq, rwy_time now);
/* The host's answer to the question that eng_requester_resume asked: eng_requester_names_psn. */
void eng_requester_resume_at(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now);
struct eng_requester *eng_requester_get_at(struct eng *e, const struct eng_key *k, int tunnel, rwy_time now);
struct eng_requester *eng_requester_get(struct eng *e, const struct eng_key *k, rwy_time now);
void eng_requester_open(
    struct eng_requester *rq, struct wan_rxflow *rx, const struct eng_open *o, rwy_time now);
void eng_requester_flush(struct eng_requester *rq, rwy_time now);
/* Puts up to max (<= 64) packets on the LAN; returns their bytes. */
uint32_t eng_requester_send(struct eng_requester *rq, unsigned max, rwy_time now);
void eng_requester_response_delivered(struct eng_requester *rq, rwy_time now);
void eng_requester_start_cm(
    struct eng_requester *rq, uint32_t rqpn, roce_psn psn, uint32_t pmtu, rwy_time now);
void eng_requester_send_control(struct eng_requester *rq, const struct eng_ctrl *c, rwy_time now);
void eng_requester_fail(
    struct eng_requester *rq, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now);
void eng_requester_free(struct eng_requester *rq, rwy_time now);
size_t eng_requester_open_info(const struct eng_requester *rq, uint8_t *out);

/* --- requester_states.c: the events --- */
void eng_requester_data(
    struct eng_requester *rq, struct rwy_buf *b, rwy_time now); /* of the flow req; takes b */
void eng_requester_response(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b,
    rwy_time now);                                               /* takes b, which is pkt */
void eng_requester_tick(struct eng_requester *rq, rwy_time now); /* its timer may be due */

/* --- deliver.c: messages of the near gateway, by state. Each takes b. --- */
void eng_requester_first_message(
    struct eng_requester *rq, struct rwy_buf *b, rwy_time now); /* opens the flow */
void eng_requester_take_message(struct eng_requester *rq, struct rwy_buf *b, rwy_time now); /* a request */
/* Nothing of this flow goes to the host any more. Also while it is asked where to be told the worst. */
void eng_requester_discard(struct eng_requester *rq, struct rwy_buf *b, rwy_time now);

/* --- response.c: the host's packets and its silence, by state. Each takes b. --- */
void eng_requester_first_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_requester_take_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_requester_located(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_requester_end_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_requester_ghost(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_requester_timeout(struct eng_requester *rq, rwy_time now);
void eng_requester_not_located(struct eng_requester *rq, rwy_time now);

/* The flow of the host's answers; false: no memory. */
bool eng_requester_need_responses(struct eng_requester *rq, rwy_time now);
/* The request `seq` counts as delivered only with the answers that were sent so far. False: no memory. */
bool eng_requester_wait_responses(struct eng_requester *rq, uint64_t seq);
void eng_requester_send_sync(
    struct eng_requester *rq, enum eng_ctrl_type type, roce_psn psn, roce_msn msn, rwy_time now);

/* --- hostrate.c and turns.c: near destination --- */
void eng_rp_taken(struct eng_requester *rq, uint64_t bytes); /* the host acknowledged so much */
void eng_rp_cnp(struct eng_requester *rq, rwy_time now);     /* the local host asks for less */
void eng_rp_poll(struct eng *e, rwy_time now);
rwy_time eng_rp_next(const struct eng *e);
void eng_rp_leave(struct eng_requester *rq);          /* it has nothing to send any more */
uint64_t eng_rp_rate(const struct eng_requester *rq); /* bytes per second, 0: not bounded */
void eng_rp_fini(struct eng *e);

/* --- expire.c: connections that are over, a few table slots a time --- */
void eng_sweep(struct eng *e, rwy_time now);

/* --- drain.c: end to end --- */
void eng_drain(struct eng_requester *rq, rwy_time now); /* after what goes to the host went */

#endif
