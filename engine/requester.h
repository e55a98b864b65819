/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester side: it asks a local host in the remote host's name. roce/reqr.h decides when to
 * send and what a response means; these functions act.
 *
 * "The host" is the local host, "the near gateway" the one beside the remote host. A syndrome is
 * that of an AETH (IBA 9.3.5.2). rq is in the table, with its tunnel, unless a function says
 * otherwise.
 */
#ifndef ENGINE_REQUESTER_H
#define ENGINE_REQUESTER_H

#include "engine/eng.h"
#include "engine/table.h"

#define ENG_REQUESTER_BURST 64 /* packets of one flow to the LAN at once, at most */

/* --- requester.c: creation, start, end --- */
/* Finds or creates; steering chooses the tunnel. NULL: refused; counted. */
struct eng_requester *eng_requester_get(struct eng *e, const struct eng_key *k, rwy_time now);
/* The same in this tunnel; -1: there is none. */
struct eng_requester *eng_requester_get_at(struct eng *e, const struct eng_key *k, int tunnel, rwy_time now);
/*
 * The same for a flow of requests that the near gateway opened. stays: false where another worker
 * has that key, and the near gateway is only told so. *no_memory: why it is NULL.
 */
struct eng_requester *eng_requester_get_opened(
    struct eng *e, const struct eng_key *k, unsigned tunnel, bool stays, bool *no_memory, rwy_time now);
/* Frees the side, its requests and its flows; undoes the pairing. */
void eng_requester_free(struct eng_requester *rq, rwy_time now);
/* The near gateway opened the flow of requests with o. */
void eng_requester_open(
    struct eng_requester *rq, struct wan_rxflow *rx, const struct eng_open *o, rwy_time now);
/* CM named the remote host's QPN, its first PSN and the path MTU: the connection runs. */
void eng_requester_start_cm(
    struct eng_requester *rq, uint32_t rqpn, roce_psn psn, uint32_t pmtu, rwy_time now);
/* --- timers.c: how long the host may be silent --- */
/* CM's values if they are known, else the tenant's. */
struct roce_reqr_cfg eng_requester_cfg(const struct eng_requester *rq);

/*
 * Begins with an empty queue at PSN `first`; frees the old queue. pmtu: bytes, 0: not known. probe:
 * state PROBING, one packet at a time until the host answers; otherwise state RUNNING.
 */
void eng_requester_begin(struct eng_requester *rq, roce_psn first, uint32_t pmtu, bool probe);
/*
 * The near gateway named its host's QPN, from CM or after a restart here: pairs rq with the
 * responder side of that QPN, made if there is none. Another worker that has it is asked for it.
 * False: that one has not let it go yet, or there is no memory for that side, or no place.
 */
bool eng_requester_named(struct eng_requester *rq, uint32_t qpn, rwy_time now);
/* The near gateway has opened the flow of its host's QP `qpn`, which may not be paired yet. */
bool eng_requester_opened_for(const struct eng_requester *rq, uint32_t qpn);
/* For that side there is room in the table, and a tunnel: only memory can be missing. */
bool eng_requester_has_place(const struct eng_requester *rq);
/* Tells the near gateway that the connection has failed: requests from psn on are not executed. */
void eng_requester_send_fail(
    struct eng_requester *rq, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now);
/* The connection ends, unless it has: frees the queue and sends FAIL to the near gateway. */
void eng_requester_fail(
    struct eng_requester *rq, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now);

/* The host is sent the request that ends its QP, or asked where. */
static inline bool eng_requester_tells(const struct eng_requester *rq)
{
	return eng_requester_ends(rq) || rq->side.state == ENG_Q_LOCATING_LOST;
}

/*
 * The hosts have connected anew, and the host's QPN is known: the QP that had to hear of
 * undelivered requests no longer exists. The QP that has its QPN now is not told. A flow that is
 * opened without naming the host's QPN, or with a request, shows it.
 */
void eng_requester_connected_anew(struct eng_requester *rq);
/* Its flow has ended and it is not paired: it gives up its turn, and what it was to ask. */
void eng_requester_rest(struct eng_requester *rq, rwy_time now);
/*
 * The connection is quiet: gives up its flow of responses, which opens again with the next one, and
 * memory, if nothing is in them.
 */
void eng_requester_quiet(struct eng_requester *rq, rwy_time now);
/* The tunnel is removed: frees the side, unless it still tells its host of a loss. */
void eng_requester_leave_tunnel(struct eng_requester *rq, rwy_time now);

/* Writes the open information of the flow of responses, at most WAN_OPEN_MAX; its length. */
size_t eng_requester_open_info(const struct eng_requester *rq, uint8_t *out);
/* Opens the flow of responses if it is closed. False: no memory. */
bool eng_requester_need_responses(struct eng_requester *rq, rwy_time now);
/* Tries again to send the control message that found no buffer, if one is owed. */
void eng_requester_send_owed(struct eng_requester *rq, rwy_time now);
/*
 * Where a flow goes: `qpn` is that of its requester, 0: not known; `psn` that of its first request,
 * or ENG_NO_PSN if the host has not acknowledged that.
 */
struct eng_moved {
	uint32_t incarnation, qpn, psn;
	unsigned worker;
};
/*
 * Another worker has the host's queue pair: the near gateway is told to open its flow rx there.
 * Whatever comes by rx is dropped, and the side goes with it. Its host must have no ACK yet.
 */
void eng_requester_redirect(
    struct eng_requester *rq, struct wan_rxflow *rx, const struct eng_moved *to, rwy_time now);
/* The same for a flow that the host has just answered, with pkt: its turn is over. */
void eng_requester_move(struct eng_requester *rq, const struct roce_pkt *pkt, unsigned worker, rwy_time now);
/* Sends SYNC or REWIND. */
void eng_requester_send_sync(
    struct eng_requester *rq, enum eng_ctrl_type type, roce_psn psn, roce_msn msn, rwy_time now);
/*
 * Sends SYNC: the near gateway may begin to acknowledge. The request first_seq (or ENG_NO_SEQ) is
 * reported delivered only after that gateway has the SYNC.
 */
void eng_requester_report_start(
    struct eng_requester *rq, roce_psn psn, roce_msn msn, uint64_t first_seq, rwy_time now);
/*
 * For the call above, if a new flow begins with request `seq`. A near gateway that has named the
 * QPN acknowledges without SYNC: its host gets the ACK with the report, a round trip sooner.
 */
static inline uint64_t eng_requester_unsynced(const struct eng_requester *rq, uint64_t seq)
{
	return rq->peer_named ? ENG_NO_SEQ : seq;
}
/* Reports delivered requests to the near gateway, up to the first that waits for responses. */
void eng_requester_report(struct eng_requester *rq, rwy_time now);
/* Request `seq` is delivered once the near gateway has all responses sent. */
void eng_requester_wait_responses(struct eng_requester *rq, uint64_t seq, roce_psn psn);
/*
 * The flow of requests has ended, or another one is open: requests that came by it have no sequence
 * number until the same request comes again.
 */
void eng_requester_forget_numbers(struct eng_requester *rq);
/*
 * Request `psn` came by a flow that was opened again: READs and ATOMICs before it do not come
 * again, for the near gateway's host has their responses.
 */
void eng_requester_passed(struct eng_requester *rq, roce_psn psn);
/*
 * A READ or ATOMIC that the host has executed comes again, as `seq` of another flow. True: its
 * responses are still on their way, and it counts as delivered with them.
 */
bool eng_requester_waits_for(struct eng_requester *rq, roce_psn psn, uint64_t seq);
/* The near gateway has one more message of the flow of responses. */
void eng_requester_response_delivered(struct eng_requester *rq, const struct rwy_buf *b, rwy_time now);
/* Sends b in the open flow of responses. Takes b. */
void eng_requester_send_response(struct eng_requester *rq, struct rwy_buf *b, rwy_time now);
/* The near gateway refused the flow of responses, which is gone. */
void eng_requester_responses_refused(struct eng_requester *rq);
/* Gives b, a request, to rq->reqr; what PUSHED means is done. */
RWY_MUST_CHECK enum roce_reqr_push eng_requester_push(struct eng_requester *rq, struct rwy_buf *b);

/* --- turns.c, send.c: packets to the host --- */
/* Sends what may go now, at once or in turns at the host's rate; sets the timer. */
void eng_requester_flush(struct eng_requester *rq, rwy_time now);
/* Puts up to max (<= ENG_REQUESTER_BURST) packets on the LAN; returns their bytes. */
uint32_t eng_requester_send(struct eng_requester *rq, unsigned max, rwy_time now);

/* --- recover.c: after a restart of the near gateway --- */
/* b, the first message of a flow, is RESUME: the near gateway restarted, the connection did not. */
bool eng_requester_is_resume(const struct rwy_buf *b);
/*
 * Handles RESUME, the first message of the flow: is a request lost that the remote host has an ACK
 * for? b stays the caller's. False: it is another message, or malformed.
 */
bool eng_requester_resume(struct eng_requester *rq, const struct rwy_buf *b, rwy_time now);
/*
 * The packet can be the response to the question that eng_requester_resume asked: an ACK or NAK. A
 * response to an earlier READ or ATOMIC cannot, nor an RNR NAK to an earlier SEND.
 */
bool eng_requester_names_psn(const struct roce_pkt *pkt);
/* The host's response named the PSN that it expects: the connection continues there, or ends. */
void eng_requester_resume_at(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now);
/*
 * Neither the question nor its repeat was answered. True: the host is asked another one. False: it
 * answers nothing, or nothing is known to be lost.
 */
bool eng_requester_not_heard(struct eng_requester *rq, rwy_time now);
/*
 * The host was silent: asks with a PSN far back. A host sends the PSN sequence NAK only once (IBA
 * 9.7.5.1.3) and may have sent it to a gateway that is gone; but it acknowledges each duplicate.
 */
void eng_requester_ask_duplicate(struct eng_requester *rq, rwy_time now);
/*
 * There was no memory for a question, or for the side that the near gateway named: tries again, now
 * and then at each tick.
 */
void eng_requester_ask_owed(struct eng_requester *rq, rwy_time now);
/* Sends the host a duplicate beside the first request, which it does not answer. */
void eng_requester_ask_beside(struct eng_requester *rq);
/* Whether another QP has a QPN by now, which must not hear of requests that were lost before. */
enum eng_used_again {
	ENG_AGAIN_NO,
	ENG_AGAIN_YES,    /* it is paired with another responder side */
	ENG_AGAIN_UNKNOWN /* its first response will name the QP to which it is connected */
};

/* rq: the requester side with the QPN of a responder side that has lost its pair. */
enum eng_used_again eng_requester_used_again(const struct eng_requester *rq);
/*
 * Requests of the local host are lost that it has ACKs for, and the remote host has its error. Ends
 * the local host's QP, too, by a request that no responder accepts. why: LOST or UNDELIVERED.
 * A QP that is connected to another one by now is not told. False: there is no memory, or the QP is
 * about to say to which one it is connected; to be tried again.
 */
bool eng_requester_end_lost(struct eng_responder *rs, enum eng_end why, rwy_time now);
/*
 * Requests are lost: the host's QP ends at the PSN that it expects after those in the queue. States
 * RUNNING and END_OWED.
 */
void eng_requester_end_qp(struct eng_requester *rq, rwy_time now);
/*
 * The host acknowledged the request that should end its QP: that was a duplicate, for the host is
 * further than was known. True: the request goes out again with the PSN that the host expects, or
 * far ahead of it where the ACK does not say it.
 */
bool eng_requester_end_again(struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now);

/* --- requester_states.c: the events. Those with b take it. --- */
/* A message of the flow of requests. */
void eng_requester_message(struct eng_requester *rq, struct rwy_buf *b, rwy_time now);
/* A packet of the host; pkt is b's. */
void eng_requester_response(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* The wheel's tick: the response timer may be due. */
void eng_requester_tick(struct eng_requester *rq, rwy_time now);

/* --- deliver.c: cells of the state table for messages of the near gateway. Each takes b. --- */
/* The first message of an opened flow: RESUME, or a request. */
void eng_requester_first_message(struct eng_requester *rq, struct rwy_buf *b, rwy_time now);
/* A request: it is queued for the host. */
void eng_requester_take_message(struct eng_requester *rq, struct rwy_buf *b, rwy_time now);
/* Dropped: the flow was rewound, or the connection ends. */
void eng_requester_discard(struct eng_requester *rq, struct rwy_buf *b, rwy_time now);

/* --- response.c: cells for packets of the host. Each takes b, which is pkt. --- */
/* The first response of an incarnation: the near gateway hears where the host stands. */
void eng_requester_first_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* A response of a running connection. */
void eng_requester_take_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* A response while the host is asked which PSN it expects. */
void eng_requester_located(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* A response to the request that ends the host's QP. */
void eng_requester_end_response(
    struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* A response to nothing that is outstanding (ghost, IBA 9.7.6.1): dropped. */
void eng_requester_ghost(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* Cells for the timer: the host did not answer; it did not name its PSN. */
void eng_requester_timeout(struct eng_requester *rq, rwy_time now);
void eng_requester_not_answered(struct eng_requester *rq, rwy_time now);
void eng_requester_not_located(struct eng_requester *rq, rwy_time now);
/* Each tick: the request that ends the host's QP finds memory, or is tried again. */
void eng_requester_end_owed(struct eng_requester *rq, rwy_time now);
/* Memory was short: a message of the flow of responses is lost, and the flow is gone. */
void eng_requester_responses_broken(struct eng_requester *rq, rwy_time now);

/* --- hostrate.c and turns.c: near destination (docs/congestion-control.md) --- */
/* The host has acknowledged this many bytes of requests. */
void eng_rp_taken(struct eng_requester *rq, uint64_t bytes);
/* A CNP of the host. */
void eng_rp_cnp(struct eng_requester *rq, rwy_time now);
/* Runs timers and turns of all reaction points. */
void eng_rp_poll(struct eng *e, rwy_time now);
/* When eng_rp_poll() has something to do; RWY_NEVER: there is no reaction point. */
rwy_time eng_rp_next(const struct eng *e);
/* Takes rq out of the queue of turns. Nothing if it is in none. */
void eng_rp_leave(struct eng_requester *rq);
/* Bytes a second to the host; 0: not bounded. */
uint64_t eng_rp_rate(const struct eng_requester *rq);
/* Frees all reaction points. */
void eng_rp_fini(struct eng *e);

/* --- expire.c --- */
/*
 * Looks at a few table slots and forgets connections that are over. Call when e->sweep_at has come.
 */
void eng_sweep(struct eng *e, rwy_time now);

/* --- drain.c: end to end --- */
/* Limits the near gateway's data in flight by the host's rate. Call after each flush. */
void eng_drain(struct eng_requester *rq, rwy_time now);

#endif
