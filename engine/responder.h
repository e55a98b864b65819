/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder side: it answers a local host's requests in the remote host's name. roce/resp.h
 * decides which requests to accept and which ACKs may go; these functions act.
 *
 * "The host" is the local host, "the far host" and "the far gateway" are those of the other site. A
 * syndrome is that of an AETH (IBA 9.3.5.2). rs is in the table, unless a function says otherwise.
 */
#ifndef ENGINE_RESPONDER_H
#define ENGINE_RESPONDER_H

#include "engine/eng.h"
#include "engine/table.h"
#include "engine/why.h"

/* --- responder.c: creation, start, end --- */
/*
 * Returns the side of a key; creates it if there is none. stranger: nothing but the packet is known
 * of the connection, so it counts as an unpaired flow; the number of these is bounded. Else the
 * caller pairs it at once. NULL: refused; counted.
 */
struct eng_responder *eng_responder_get(struct eng *e, const struct eng_key *k, bool stranger, rwy_time now);
/* Frees the side, its custody, its kept responses and its flows; undoes the pairing. */
void eng_responder_free(struct eng_responder *rs, rwy_time now);
/*
 * The connection begins, or begins anew, at this PSN: another incarnation, state WAITING. Nothing
 * is acknowledged before the far host has confirmed it. pmtu: bytes, 0: not known.
 */
void eng_responder_start(struct eng_responder *rs, roce_psn first, uint32_t pmtu, rwy_time now);
/* CM named the host's QPN, its first PSN and the path MTU: the connection runs. */
void eng_responder_start_cm(
    struct eng_responder *rs, uint32_t lqpn, roce_psn psn, uint32_t pmtu, rwy_time now);
/*
 * The connection ends: custody is given up, and the host gets an error NAK (roce_resp_fail has the
 * PSN). why: as for eng_why_text. Nothing if it failed before.
 */
void eng_responder_fail(struct eng_responder *rs, roce_psn psn, uint8_t syndrome, unsigned why, rwy_time now);
/*
 * From now on worker `worker` takes the host's requests of that key. A side here ends; its host
 * must have no ACK. local_qpn: of the host, 0: not known. first: the PSN of its first request, if
 * the far host has acknowledged that: the host is asked for it again. Else ENG_NO_PSN: no NAK goes,
 * because it would acknowledge earlier requests that may be lost; the host repeats after its
 * timeout.
 */
void eng_responder_move(struct eng *e, const struct eng_key *k, uint32_t local_qpn, uint32_t first,
    unsigned worker, rwy_time now);
/*
 * It has failed. lost: requests that the host has ACKs for are lost, or may be; an idle host is
 * told, unless its next request brings the error.
 */
void eng_responder_note_loss(struct eng_responder *rs, bool lost);
/*
 * Opens the flow of requests, in a new tunnel if the old one is gone. False: no memory, no tunnel.
 */
bool eng_responder_open(struct eng_responder *rs, rwy_time now);
/* Closes the flow of requests and gives up its custody. */
void eng_responder_abort(struct eng_responder *rs, rwy_time now);
/* Frees what waits: requests behind a READ of unknown response count, responses ahead. */
void eng_responder_drop_parked(struct eng_responder *rs);
/* Addresses and header fields of packets to the host in the far host's name. */
void eng_responder_address(const struct eng_responder *rs, struct roce_addr *a);
/*
 * The host may have ACKs for all before this PSN. Until it speaks after a takeover these are ACKs
 * of the dead gateway, which may have acknowledged all that its standby had.
 */
static inline roce_psn eng_responder_acked(const struct eng_responder *rs)
{
	return rs->silent && roce_psn_after(rs->taken_epsn, rs->resp.acked) ? rs->taken_epsn : rs->resp.acked;
}
/* Requests that the host has ACKs for are in custody: the far host does not have them yet. */
static inline bool eng_responder_owes(const struct eng_responder *rs)
{
	const struct rwy_buf *b = rs->requests ? wan_tx_peek(rs->requests, 0) : NULL;

	return b && rs->side.state != ENG_R_RESUMING && roce_psn_before(b->psn, eng_responder_acked(rs));
}
/* The connection is over, and a host that waits for nothing has not heard of it. */
static inline bool eng_responder_unaware(const struct eng_responder *rs)
{
	return roce_resp_error_unsaid(&rs->resp) || eng_responder_acked(rs) != rs->resp.acked;
}
/* A DREQ of the host waits. While RESUME is not answered it is not known what is delivered. */
static inline bool eng_responder_holds_dreq(const struct eng_responder *rs)
{
	return rs->side.state == ENG_R_RESUMING || eng_responder_owes(rs);
}
/* Takes header fields of packets to the host from its own packet pkt, which is b's. */
void eng_responder_learn_header(
    struct eng_responder *rs, const struct roce_pkt *pkt, const struct rwy_buf *b);
/* After this many NAKs of one PSN without effect, the host is known to be unable to go back to
 * it. */
#define ENG_NAKS_MAX 5

/* --- rare.c: what a connection seldom needs --- */
/* Its rare part, made if there is none; NULL: no memory. */
struct eng_rare *eng_rare_take(struct eng_responder *rs);
/* Frees it; the queues and rings in it are empty. */
void eng_rare_free(struct eng_responder *rs);
/* The connection is quiet: frees it if nothing is in it that may be needed yet. */
void eng_rare_rest(struct eng_responder *rs);

/* --- open_info.c --- */
/*
 * Writes the open information of the flow of requests, or of that of copies, WAN_OPEN_MAX bytes at
 * most; returns its length.
 */
size_t eng_responder_open_info(const struct eng_responder *rs, enum eng_open_type type, uint8_t *out);

/* --- responder_states.c: the events. Those with b take it. --- */
/* A request of the host; pkt is b's. */
void eng_responder_request(struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/*
 * An RC request of an operation that gateways do not carry (roce_op_uncarried); pkt is b's. The
 * host gets a NAK when all before it is acknowledged.
 */
void eng_responder_uncarried(struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* A message of the flow of responses: a response of the far host, or a control message. */
void eng_responder_message(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);
/* The same for a message that need not wait for its request (ahead.c). */
void eng_responder_pass_message(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);
/* Passes on the responses that waited for requests which the host has repeated by now (ahead.c). */
void eng_responder_pass_ahead(struct eng_responder *rs, rwy_time now);
/* The same for a message that need not wait for the standby gateway either (copy.h). */
void eng_responder_handle(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);
/* The far gateway refused the flow of requests. */
void eng_responder_reset(struct eng_responder *rs, rwy_time now);

/* --- request.c: cells of the state table for requests. Each takes b, which is pkt. --- */
/* The first request: the connection begins at its PSN. */
void eng_responder_first_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* A request: into custody, or why not. */
void eng_responder_take_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* A request before the far gateway has answered RESUME: dropped. */
void eng_responder_early_request(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/*
 * An operation that is not carried: an error of the host, held until all before it is acknowledged.
 */
void eng_responder_take_uncarried(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* The same before any other request: the host's QPN is unknown, so it gets no answer. */
void eng_responder_early_uncarried(
    struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* The verdict on pkt, which is b's, is ACCEPT: custody begins. Takes b. */
void eng_responder_accept(struct eng_responder *rs, const struct roce_pkt *pkt, struct rwy_buf *b,
    const struct roce_resp_act *act, rwy_time now);
/* The path MTU is known: takes the parked requests again. */
void eng_responder_unpark(struct eng_responder *rs, rwy_time now);

/* --- answer.c: cells of the state table for responses. Each takes b. --- */
void eng_responder_take_response(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);
/* No request was sent yet: dropped. */
void eng_responder_early_response(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);

/* --- answer.c: cells of the state table for control messages --- */
/* SYNC: the far host has answered, or nothing is lost. ACKs may begin. */
void eng_responder_sync(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
/* REWIND: the far host expects c->psn, before the first PSN here. The host is sent back to it. */
void eng_responder_rewind(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
/* FAIL: the connection ends. */
void eng_responder_given_up(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
/* FAIL after RESUME: the same, and the local QP ends, too. */
void eng_responder_not_resumed(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
/*
 * MOVED: the host has no ACK, so the connection begins at that worker when it sends again. This
 * side is freed.
 */
void eng_responder_moved(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
/* The same of a connection whose host has ACKs: it ends. */
void eng_responder_moved_late(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
/* No request was sent yet, or the connection has failed: ignored. */
void eng_responder_early_control(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);

/* --- responder.c: cells of the state table for a refused flow --- */
void eng_responder_refused(struct eng_responder *rs, rwy_time now);
/* While RESUME was not answered. */
void eng_responder_not_taken_up(struct eng_responder *rs, rwy_time now);

/* --- answer.c --- */
/* The far host acknowledged the request in b, which the caller frees afterwards. */
void eng_responder_delivered(struct eng_responder *rs, const struct rwy_buf *b, rwy_time now);
/* Sends the ACK or NAK that roce_resp_flush() allows. At the end of a turn. */
void eng_responder_flush(struct eng_responder *rs, rwy_time now);
/*
 * After a takeover the host has sent nothing: it may wait for its timer after requests that died
 * with the other gateway. If it has its ACKs and responses it is asked for the next one (NAK).
 */
void eng_responder_ask_silent(struct eng_responder *rs);

/* --- ahead.c: of a connection that was taken over --- */
/* The far gateway that sent what the active gateway had is still there. */
static inline bool eng_taken_over(const struct eng_responder *rs)
{
	return rs->taken_over && eng_wan(&rs->side) && rs->taken_over == wan_peer_epoch(eng_wan(&rs->side));
}
/* Takes b, a message that waits for a request that the host repeats, or behind one. False: no. */
bool eng_ahead_holds(struct eng_responder *rs, struct rwy_buf *b);
/* The next one that need not wait any longer; NULL: none. */
struct rwy_buf *eng_ahead_next(struct eng_responder *rs);
/* The flow of responses has ended, or the connection: what waits is not wanted any more. */
void eng_ahead_drop(struct eng_responder *rs);

/* --- journal.c (journal.h) --- */
/* Finds free entries and those of an earlier process. RWY_ENOMEM. */
int eng_journal_init(struct eng *e);
/* Notes up to where the host has ACKs, before one leaves. Nothing without a free entry. */
void eng_journal_note(struct eng_responder *rs);
/*
 * Notes for a connection that is over whether its host is to be told that requests are lost for
 * which it has ACKs. The next process tells it if this one does not live long enough.
 */
void eng_journal_lost(struct eng_responder *rs, bool lost);
/* Releases the entry of rs, if it has one. */
void eng_journal_forget(struct eng_responder *rs);
/* Entry i of e->orphans; NULL: it is taken up or released. */
struct eng_journal_entry *eng_journal_orphan(const struct eng *e, uint32_t i);
/*
 * The next entry of an earlier process with this VNI; NULL: no more. *cursor starts with 0; it is
 * one more than the entry's place in e->orphans.
 */
struct eng_journal_entry *eng_journal_next_orphan(const struct eng *e, uint32_t vni, uint32_t *cursor);
/* Entry i of e->orphans is taken up or released: nobody finds it any more. */
void eng_journal_take_orphan(struct eng *e, uint32_t i);
/* The place in e->orphans of the entry with that key, whose tenant is there; false: none. */
bool eng_journal_find_orphan(const struct eng *e, const struct eng_key *k, uint32_t *i);
/* The journal lacks a promise: for the next process it is not whole. */
void eng_journal_leave_gap(struct eng *e);
/* The entry is free again. */
void eng_journal_release(struct eng *e, struct eng_journal_entry *j);

/* --- restore.c --- */
/* The entry, of an earlier process, is of no use: it and its place in the directory are free. */
void eng_journal_drop(struct eng *e, uint32_t tenant, struct eng_journal_entry *j);
/*
 * Takes up the tenant's connections of an earlier process and asks the far gateway about each. An
 * entry for which there is no memory or no place waits until there is, or e->journal_until.
 */
void eng_journal_restore(struct eng *e, uint32_t tenant, rwy_time now);
/*
 * At e->restore_at, or when an entry is wanted: those that wait are tried again, up to the first
 * that finds no memory.
 */
void eng_journal_restore_again(struct eng *e, rwy_time now);
/*
 * An entry with that key waits: what its host sends now is not of a new connection, and the far
 * gateway's question has no answer yet. It is tried at once, besides those whose turn it is.
 */
bool eng_journal_waits(struct eng *e, const struct eng_key *k);
/*
 * LOST (peer.h): nobody knows what the host has ACKs for. RESUME promises more requests than the
 * far gateway or its host can have, so that the connection ends at both hosts. False: no memory.
 */
bool eng_responder_restore_lost(
    struct eng *e, const struct eng_key *k, const struct eng_peer_msg *m, rwy_time now);

/* --- replay.c: responses that the host lost on the LAN --- */
/* Sends cnt READ responses from psn on, as far as they are kept; an error if psn's is not. */
void eng_responder_replay(struct eng_responder *rs, roce_psn psn, uint32_t cnt, rwy_time now);
/* Sends the ATOMIC ACK of psn again, or an error when it is not kept (C9-110). */
void eng_responder_replay_atomic(struct eng_responder *rs, roce_psn psn, rwy_time now);
/*
 * Sends a copy of the READ response in b with another opcode. False: b is damaged (its ICRC is
 * wrong; counted), and nothing was sent. Without memory the host asks again.
 */
bool eng_responder_resend(struct eng_responder *rs, const struct rwy_buf *b, uint8_t opcode);
/* A READ response to this PSN is kept, or has not come from the far host yet. */
bool eng_responder_has_answer(const struct eng_responder *rs, roce_psn psn);

/* --- read_wait.c: READs behind other requests --- */
/* A new incarnation; CM's values are set. */
void eng_read_wait_start(struct eng_responder *rs);
/* The host repeats a READ or ATOMIC. */
void eng_read_wait_repeated(struct eng_responder *rs);
/* Requests of so many bytes left custody; rs->custody is without them. */
void eng_read_wait_delivered(struct eng_responder *rs, uint64_t bytes, rwy_time now);
/* Custody takes longer to deliver than the host would wait for a READ behind it. */
static inline bool eng_read_would_wait(const struct eng_responder *rs)
{
	return rs->custody >= rs->leaving.limit;
}

/* --- kept.c: responses kept for replays. Each is kept after it was sent to the host. --- */
/* Takes b; without memory it is freed. */
void eng_responder_keep_read(struct eng_responder *rs, roce_psn psn, struct rwy_buf *b);
/* original: the value before the operation, from the ATOMIC ACK. */
void eng_responder_keep_atomic(struct eng_responder *rs, roce_psn psn, uint64_t original);
/* The kept response of this PSN in rs->rare, its reads or atomics; NULL: not kept. */
const struct eng_kept *eng_responder_kept(
    const struct eng_responder *rs, const struct eng_keptq *q, roce_psn psn);
/* The response kept after k; NULL: no more. */
const struct eng_kept *eng_responder_kept_next(const struct eng_keptq *q, const struct eng_kept *k);
/* Frees the kept READ responses: after this silence the host repeats no READ. */
void eng_responder_forget_reads(struct eng_responder *rs);
/* Frees all kept responses: a new incarnation, or the end. */
void eng_responder_forget_answers(struct eng_responder *rs);

/* --- ack_policy.c: when a request is acknowledged (docs/rc-semantics.md, ack modes) --- */
/* The far host has answered: acknowledging may begin. */
void eng_ack_started(struct eng_responder *rs);
/*
 * A request is in custody. Mode `near` allows its ACK, mode `end` when it completes no message; it
 * is withheld when memory is short.
 */
void eng_ack_in_custody(struct eng_responder *rs, rwy_time now);
/* The far gateway has the request in b. Mode `far` allows its ACK. */
void eng_ack_at_far_gateway(struct eng_responder *rs, const struct rwy_buf *b);
/* The far host acknowledged the request in b. Mode `end` allows its ACK. */
void eng_ack_at_far_host(struct eng_responder *rs, const struct rwy_buf *b);
/*
 * The standby gateway has more copies, or there is none any longer. Mode `site` allows their ACK.
 */
void eng_ack_copied(struct eng_responder *rs);
/* The host got responses. Mode `end` allows what follows the READ or ATOMIC. */
void eng_ack_served(struct eng_responder *rs);
/* Withheld ACKs may go if there is memory again. */
void eng_ack_unblock(struct eng_responder *rs, rwy_time now);
/*
 * A duplicate of a host whose ACKs are withheld: its timer ran out, and it sends again from its
 * oldest unacknowledged packet. That one packet gets its ACK, for progress restores the host's
 * retry count (IBA 9.7.6.1.3). So an outage of the WAN ends no connection and costs memory for one
 * packet a timeout.
 */
void eng_ack_single(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now);

/* --- patience.c --- */
/*
 * How long the host tries until its queue pair fails, without an ACK, as CM said; RWY_NEVER: not
 * known, or for ever.
 */
rwy_dur eng_patience(const struct eng_responder *rs);
/* Sets rs->ack_too_late: the mode waits for the far site, and that takes longer. Logs a change. */
void eng_patience_check(struct eng_responder *rs);

/* --- reuse.c: duplicate, or a new connection on the same QPN? --- */
/* True: pkt may be the first of a new connection. v: roce_resp_recv's verdict, not ACCEPT. */
bool eng_reuse_may_be_new(
    const struct eng_responder *rs, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now);
/*
 * True: the host repeats a request while the ACK for it is on the LAN. The caller drops the packet,
 * and those that follow as long as eng_reuse_suppressed() says so. The ACK ends the repeats; the
 * host of a new connection sends once more. So the duplicate gets no second ACK, and the far host
 * is not asked, whose answer an outage may delay.
 */
bool eng_reuse_ack_in_flight(
    struct eng_responder *rs, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now);
/*
 * True: the host repeats its first READ, and the answer may still be on the LAN or in the host's
 * queue: no longer after it than this host's timer lasts, as its repeats before the answer showed,
 * and a quarter more; at most a second. The caller drops the packet.
 */
bool eng_reuse_answer_in_flight(
    const struct eng_responder *rs, const struct roce_pkt *pkt, enum roce_resp_verdict v, rwy_time now);
/*
 * The caller drops pkt, whose verdict is STALE. If its PSN is from before the connection's start,
 * it belongs to a new connection, unless it is a relay's question. What follows it is then dropped,
 * too, until the host goes back: an ACK for that, as if it were a duplicate, would acknowledge pkt
 * as well.
 */
void eng_reuse_stale(struct eng_responder *rs, const struct roce_pkt *pkt);
/*
 * Whether pkt, which came at `now`, is dropped: after a stale request until the host goes back, and
 * while an ACK is in flight until the host is silent for 2 ms. Call only if rs->suppress_until is
 * set.
 */
bool eng_reuse_suppressed(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now);

/* --- cnp.c: near source (docs/congestion-control.md) --- */
/* The packet in b must be answered with a CNP. Clears an ECN mark. The flow of requests is open. */
bool eng_np_congested(struct eng_responder *rs, const struct roce_pkt *pkt, struct rwy_buf *b);
/* The READ response in b: a mark is answered with a CNP to the host that sent it, and cleared. */
void eng_np_response(struct eng_requester *rq, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/* Sends a CNP to the host, at most one in 50 us. */
void eng_cnp_send(struct eng_responder *rs, rwy_time now);

#endif
