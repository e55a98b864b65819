/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a connection's two sides. Each side is in one state; one table for each side says
 * what an event does (requester_states.c, responder_states.c). docs/states.md draws both tables,
 * and a test compares the page with them.
 */
#ifndef ENGINE_STATES_H
#define ENGINE_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "roce/resp_states.h"

/* X(enumerator, name, sentence): states of the requester side, which asks a local host. */
#define ENG_REQUESTER_STATES(X)                                                                              \
	X(ENG_Q_IDLE, "idle", "no request is here")                                                          \
	X(ENG_Q_PROBING, "probing", "the first request waits for the host's response")                       \
	X(ENG_Q_RUNNING, "running", "the host answers")                                                      \
	X(ENG_Q_LOCATING, "locating", "after a restart: the host is asked which PSN it expects")             \
	X(ENG_Q_LOCATING_LOST, "locating_lost", "the same, and requests are known to be lost")               \
	X(ENG_Q_END_OWED, "end_owed", "requests are lost: there is no memory yet for one that ends the QP")  \
	X(ENG_Q_ENDING, "ending", "requests are lost: the host is sent one that ends its QP")                \
	X(ENG_Q_FAILED, "failed", "the connection ended with an error")

/* X(enumerator, name, sentence): its events. */
#define ENG_REQUESTER_EVENTS(X)                                                                              \
	X(ENG_QE_FIRST, "first", "the first message of an opened flow")                                      \
	X(ENG_QE_MESSAGE, "message", "another message of the flow")                                          \
	X(ENG_QE_RESPONSE, "response", "a packet of the host")                                               \
	X(ENG_QE_TIMER, "timer", "the response timer is due, or what found no memory is tried again")

/* X(enumerator, name, sentence): states of the responder side, which answers a local host. */
#define ENG_RESPONDER_STATES(X)                                                                              \
	X(ENG_R_NEW, "new", "the host has sent no request")                                                  \
	X(ENG_R_WAITING, "waiting", "requests are carried; the far host has not answered")                   \
	X(ENG_R_RESUMING, "resuming", "restored from the journal; the far gateway has not answered")         \
	X(ENG_R_RUNNING, "running", "requests are acknowledged")                                             \
	X(ENG_R_FAILED, "failed", "the connection ended with an error")

/* X(enumerator, name, sentence): its events. */
#define ENG_RESPONDER_EVENTS(X)                                                                              \
	X(ENG_RE_REQUEST, "request", "a request of the host")                                                \
	X(ENG_RE_UNCARRIED, "uncarried", "a request of an operation that gateways do not carry")             \
	X(ENG_RE_RESPONSE, "response", "a READ response or ATOMIC ACK of the far host")                      \
	X(ENG_RE_SYNC, "sync", "the far host has answered, or nothing is lost")                              \
	X(ENG_RE_REWIND, "rewind", "the far host expects an earlier PSN")                                    \
	X(ENG_RE_FAIL, "fail", "the far gateway gave the connection up")                                     \
	X(ENG_RE_MOVED, "moved", "the far gateway has the queue pair at another worker (directory.h)")       \
	X(ENG_RE_RESET, "reset", "the far gateway refused the flow")

/*
 * ROW(state, a word for each event). A word names the function that is called, eng_requester_WORD.
 * IMPOSSIBLE: the event does not happen in this state; an assertion says so.
 */
#define ENG_REQUESTER_TABLE(ROW)                                                                             \
	ROW(IDLE, first_message, discard, ghost, IMPOSSIBLE)                                                 \
	ROW(PROBING, first_message, take_message, first_response, not_answered)                              \
	ROW(RUNNING, first_message, take_message, take_response, timeout)                                    \
	ROW(LOCATING, first_message, take_message, located, not_located)                                     \
	ROW(LOCATING_LOST, first_message, discard, located, not_located)                                     \
	ROW(END_OWED, discard, discard, take_response, end_owed)                                             \
	ROW(ENDING, discard, discard, end_response, timeout)                                                 \
	ROW(FAILED, first_message, discard, ghost, IMPOSSIBLE)

/* X(from, to): every change of state. */
/* clang-format off */
#define ENG_REQUESTER_CHANGES(X)                        \
	X(IDLE, PROBING)                                \
	X(IDLE, RUNNING)                                \
	X(IDLE, FAILED)                                 \
	X(PROBING, IDLE)                                \
	X(PROBING, RUNNING)                             \
	X(PROBING, LOCATING)                            \
	X(RUNNING, IDLE)                                \
	X(RUNNING, END_OWED)                            \
	X(LOCATING, IDLE)                               \
	X(LOCATING, LOCATING_LOST)                      \
	X(LOCATING_LOST, IDLE)                          \
	X(END_OWED, IDLE)                               \
	X(END_OWED, ENDING)                             \
	X(ENDING, IDLE)                                 \
	X(FAILED, PROBING)                              \
	X(FAILED, RUNNING)                              \
	X(FAILED, IDLE)
/* clang-format on */

/* The same for the responder side; a word names eng_responder_WORD. */
#define ENG_RESPONDER_TABLE(ROW)                                                                             \
	ROW(NEW, first_request, early_uncarried, early_response, early_control, early_control,               \
	    early_control, early_control, IMPOSSIBLE)                                                        \
	ROW(WAITING, take_request, take_uncarried, take_response, sync, rewind, given_up, moved, refused)    \
	ROW(RESUMING, early_request, early_request, take_response, sync, rewind, not_resumed, moved_late,    \
	    not_taken_up)                                                                                    \
	ROW(RUNNING, take_request, take_uncarried, take_response, sync, rewind, given_up, moved_late,        \
	    refused)                                                                                         \
	ROW(FAILED, take_request, take_uncarried, take_response, sync, rewind, given_up, early_control,      \
	    IMPOSSIBLE)

/* X(from, to): every change of state. */
/* clang-format off */
#define ENG_RESPONDER_CHANGES(X)                        \
	X(NEW, WAITING)                                 \
	X(WAITING, WAITING)                             \
	X(WAITING, RESUMING)                            \
	X(WAITING, RUNNING)                             \
	X(WAITING, FAILED)                              \
	X(RESUMING, NEW)                                \
	X(RESUMING, WAITING)                            \
	X(RESUMING, RUNNING)                            \
	X(RESUMING, FAILED)                             \
	X(RUNNING, WAITING)                             \
	X(RUNNING, FAILED)                              \
	X(FAILED, WAITING)
/* clang-format on */

/*
 * A request that does not fit its connection's PSNs belongs to that connection, or it is the first
 * of a new one because the host created the QP again. X(case, answer, sentence): the first case
 * that applies decides. MAY_BE_NEW: the connection begins anew at this PSN, unacknowledged, and the
 * far host is asked; its response shows which it was. No case applies: not new.
 */
#define ENG_REUSE_CASES(X)                                                                                   \
	X(relay_asks, NOT_NEW,                                                                               \
	    "a gateway between asks for the expected PSN, in the host's name (recover.c)")                   \
	X(before_start, MAY_BE_NEW,                                                                          \
	    "nothing was acknowledged yet, and the host goes back to before the start")                      \
	X(end_unsaid, MAY_BE_NEW,                                                                            \
	    "a failed connection whose host cannot get the error NAK, for its QPN is not known: a packet "   \
	    "more than a round trip after the last one")                                                     \
	X(other_request, MAY_BE_NEW,                                                                         \
	    "another request than came with this PSN before: an early one, one in custody, or a late READ")  \
	X(in_custody, NOT_NEW, "requests of this connection are in custody or not answered yet")             \
	X(ack_waits, NOT_NEW,                                                                                \
	    "the host has no ACK for it, because that waits for the standby gateway: it repeats")            \
	X(middle_late, MAY_BE_NEW,                                                                           \
	    "a duplicate, or a PSN from before the start, in mid-message, more than a round trip after the " \
	    "last packet")                                                                                   \
	X(middle, NOT_NEW, "another packet in mid-message")                                                  \
	X(stale, MAY_BE_NEW, "a PSN that this connection never had")                                         \
	X(repeated_read, NOT_NEW, "a repeated READ, or the rest of one, whose responses are kept")           \
	X(error_not_sent, NOT_NEW, "a failed connection whose host did not get the error NAK yet")           \
	X(gap_asked, NOT_NEW, "the far host itself named the PSN that is missing")                           \
	X(gap_wide, MAY_BE_NEW, "a gap of 2^14 PSNs or more")                                                \
	X(gap_refused, NOT_NEW,                                                                              \
	    "the request that is missing found no memory, less than 10 s ago: its host repeats it")          \
	X(gap_of_takeover, NOT_NEW,                                                                          \
	    "a gap soon after this standby took over: the gateway before had the missing packets")           \
	X(late, MAY_BE_NEW,                                                                                  \
	    "a gap, duplicate or failed connection, more than a round trip after the last packet")

enum eng_requester_state {
#define X(e, n, s) e,
	ENG_REQUESTER_STATES(X)
#undef X
	    ENG_Q_STATES
};

enum eng_requester_event {
#define X(e, n, s) e,
	ENG_REQUESTER_EVENTS(X)
#undef X
	    ENG_QE_EVENTS
};

enum eng_responder_state {
#define X(e, n, s) e,
	ENG_RESPONDER_STATES(X)
#undef X
	    ENG_R_STATES
};

enum eng_responder_event {
#define X(e, n, s) e,
	ENG_RESPONDER_EVENTS(X)
#undef X
	    ENG_RE_EVENTS
};

enum eng_reuse_case {
#define X(c, answer, s) ENG_REUSE_##c,
	ENG_REUSE_CASES(X)
#undef X
	    ENG_REUSE_CASE_COUNT
};

/*
 * X(enumerator, name, sentence): one of a pair of gateways (standby.h). Those up to LOSING serve.
 */
#define ENG_SB_STATES(X)                                                                                     \
	X(ENG_SB_NONE, "none", "no pair: the gateway serves its hosts alone")                                \
	X(ENG_SB_ALONE, "alone", "it serves; nobody has copies: mode `site` acknowledges as mode `near`")    \
	X(ENG_SB_COPYING, "copying", "the same; the standby gets copies of what there is")                   \
	X(ENG_SB_PAIRING, "pairing",                                                                         \
	    "it serves; ACKs wait for copies; the standby lacks some earlier ones, or the witness's "        \
	    "consent")                                                                                       \
	X(ENG_SB_PAIRED, "paired", "it serves; the standby has all that hosts have ACKs for")                \
	X(ENG_SB_LOSING, "losing",                                                                           \
	    "the standby is silent: mode `site` acknowledges nothing until the witness says who goes on")    \
	X(ENG_SB_YIELDING, "yielding",                                                                       \
	    "an operator asked for it: it serves no more, until its standby serves or does not answer")      \
	X(ENG_SB_ASKING, "asking", "it has just started: is the other gateway there, is it active?")         \
	X(ENG_SB_STORING, "storing", "standby: it stores copies and does not have all of them yet")          \
	X(ENG_SB_READY, "ready", "standby: it has everything, and takes over when it must")                  \
	X(ENG_SB_TAKING, "taking", "the active gateway is silent: the witness is asked for the tunnels")     \
	X(ENG_SB_REPLACED, "replaced", "the other gateway has the tunnels: this process must start again")

enum eng_sb_state {
#define X(e, n, s) e,
	ENG_SB_STATES(X)
#undef X
	    ENG_SB_STATE_COUNT
};

/* X(enumerator, name, sentence) */
#define ENG_SB_EVENTS(X)                                                                                     \
	X(ENG_SBE_SERVES, "serves", "the other gateway says that it serves, and that this one lacks copies") \
	X(ENG_SBE_COPIED, "copied", "the other gateway serves and says that this one has everything")        \
	X(ENG_SBE_LOSES, "loses", "the other gateway says that it serves, and was told nothing by this one") \
	X(ENG_SBE_STORES, "stores", "the other gateway says that it stores copies")                          \
	X(ENG_SBE_TAKES, "takes", "the other gateway says that it takes over")                               \
	X(ENG_SBE_ASKS, "asks", "the other gateway says that it has just started")                           \
	X(ENG_SBE_YIELDS, "yields", "the other gateway asks this one to take over")                          \
	X(ENG_SBE_SILENT, "silent", "the other gateway is silent")                                           \
	X(ENG_SBE_WALKED, "walked", "all connections were looked at")                                        \
	X(ENG_SBE_GRANTED, "granted", "the witness gave us the tunnel")                                      \
	X(ENG_SBE_REFUSED, "refused", "the witness gave it to the other gateway")                            \
	X(ENG_SBE_OVER, "over", "the same, and will never give it to this process")                          \
	X(ENG_SBE_STUCK, "stuck", "a copy could not be made, or the standby refused it")                     \
	X(ENG_SBE_TIMER, "timer", "the other gateway was waited for long enough")                            \
	X(ENG_SBE_ORDER, "order", "an operator orders this gateway to hand over")

/*
 * ROW(state, one word an event): a word names the function sb_WORD in standby.c. IMPOSSIBLE as
 * above: without a pair there is no event; connections are walked over only while copies begin, and
 * copies fail only where there are some; claims and timers end with the states that made them.
 */
#define ENG_SB_TABLE(ROW)                                                                                    \
	ROW(NONE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE,        \
	    IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE)  \
	ROW(ALONE, two_serve, two_serve, same, copy, same, same, same, same, IMPOSSIBLE, same, yield, yield, \
	    IMPOSSIBLE, copy, IMPOSSIBLE)                                                                    \
	ROW(COPYING, two_serve, two_serve, two_serve, same, alone, alone, same, alone, pair, same, yield,    \
	    yield, alone, same, IMPOSSIBLE)                                                                  \
	ROW(PAIRING, two_serve, two_serve, two_serve, same, alone, alone, same, alone, hold, paired, yield,  \
	    yield, alone, same, IMPOSSIBLE)                                                                  \
	ROW(PAIRED, yield, yield, same, same, lose, lose, same, lose, IMPOSSIBLE, same, yield, yield, lose,  \
	    same, hand_over)                                                                                 \
	ROW(LOSING, yield, yield, same, same, same, same, same, same, IMPOSSIBLE, alone, yield, yield, same, \
	    same, IMPOSSIBLE)                                                                                \
	ROW(YIELDING, yield, yield, yield, lose, same, lose, same, lose, IMPOSSIBLE, IMPOSSIBLE, yield,      \
	    yield, same, lose, IMPOSSIBLE)                                                                   \
	ROW(ASKING, store, store, store, same, same, first, same, wait_again, IMPOSSIBLE, alone, wait_again, \
	    yield, IMPOSSIBLE, ask_witness, IMPOSSIBLE)                                                      \
	ROW(STORING, same, ready, same, same, same, ask_again, same, ask_again, IMPOSSIBLE, IMPOSSIBLE,      \
	    same, same, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE)                                                  \
	ROW(READY, store_again, same, store_again, same, same, take, take, take, IMPOSSIBLE, IMPOSSIBLE,     \
	    same, same, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE)                                                  \
	ROW(TAKING, retreat, same, same, same, same, same, same, same, IMPOSSIBLE, alone, retreat, retreat,  \
	    IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE)                                                              \
	ROW(REPLACED, same, same, same, same, same, same, same, same, IMPOSSIBLE, same, same, same,          \
	    IMPOSSIBLE, same, IMPOSSIBLE)

/* X(from, to): every change of state. */
/* clang-format off */
#define ENG_SB_CHANGES(X)                               \
	X(ALONE, COPYING)                               \
	X(ALONE, REPLACED)                              \
	X(COPYING, ALONE)                               \
	X(COPYING, PAIRING)                             \
	X(COPYING, REPLACED)                            \
	X(PAIRING, ALONE)                               \
	X(PAIRING, PAIRED)                              \
	X(PAIRING, REPLACED)                            \
	X(PAIRED, LOSING)                               \
	X(PAIRED, YIELDING)                             \
	X(PAIRED, REPLACED)                             \
	X(LOSING, ALONE)                                \
	X(LOSING, REPLACED)                             \
	X(YIELDING, LOSING)                             \
	X(YIELDING, REPLACED)                           \
	X(ASKING, ALONE)                                \
	X(ASKING, STORING)                              \
	X(ASKING, REPLACED)                             \
	X(STORING, ASKING)                              \
	X(STORING, READY)                               \
	X(READY, STORING)                               \
	X(READY, TAKING)                                \
	X(TAKING, ALONE)                                \
	X(TAKING, ASKING)
/* clang-format on */

enum eng_sb_event {
#define X(e, n, s) e,
	ENG_SB_EVENTS(X)
#undef X
	    ENG_SB_EVENT_COUNT
};

/* How often each cell of the tables was entered and each case decided; wraps. For tests. */
struct eng_states_seen {
	uint32_t requester[ENG_Q_STATES][ENG_QE_EVENTS];
	uint32_t responder[ENG_R_STATES][ENG_RE_EVENTS];
	uint32_t reuse[ENG_REUSE_CASE_COUNT];
	struct roce_resp_seen resp;
	uint32_t standby[ENG_SB_STATE_COUNT][ENG_SB_EVENT_COUNT];
};

#endif
