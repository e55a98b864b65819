/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of the RC responder. What an event does in each of them is one table, carried out by
 * resp.c. docs/states.md draws it, and a test compares the page with the table.
 */
#ifndef ROCE_RESP_STATES_H
#define ROCE_RESP_STATES_H

#include <stdint.h>

/* X(enumerator, name, sentence). From HELD on there is an error, from FAILED on nothing else. */
#define ROCE_RESP_STATES(X)                                                                                  \
	X(ROCE_RS_IN_ORDER, "in_order", "requests come in PSN order")                                        \
	X(ROCE_RS_UNCOUNTED, "uncounted",                                                                    \
	    "the same; the last one is a READ whose responses are not counted until the path MTU is known")  \
	X(ROCE_RS_GAP, "gap", "a request is missing, and the host is owed a PSN sequence NAK")               \
	X(ROCE_RS_GAP_NAK_SENT, "gap_nak_sent", "the same, and the host got the NAK")                        \
	X(ROCE_RS_NO_ROOM, "no_room",                                                                        \
	    "the expected request found no memory: the host is owed a PSN sequence NAK when there is room")  \
	X(ROCE_RS_HELD, "held", "the host made an error; its NAK waits for the ACK of all before it")        \
	X(ROCE_RS_FAILED, "failed", "the connection is over; the host's next request gets the error NAK")    \
	X(ROCE_RS_ERROR_OWED, "error_owed", "the same, and the host is owed the error NAK")                  \
	X(ROCE_RS_ERROR_SENT, "error_sent", "the same, and the host got the error NAK")                      \
	X(ROCE_RS_ERROR_AGAIN, "error_again", "the same, and the host is owed it once more")

/* X(enumerator, name, sentence) */
#define ROCE_RESP_EVENTS(X)                                                                                  \
	X(ROCE_RSE_REPEATED, "repeated", "a request with a PSN before the expected one")                     \
	X(ROCE_RSE_NEXT, "next", "a request with the expected PSN")                                          \
	X(ROCE_RSE_AHEAD, "ahead", "a request with a PSN after the expected one")                            \
	X(ROCE_RSE_RESPONSE, "response", "the far host's next response to the oldest READ or ATOMIC")        \
	X(ROCE_RSE_PMTU, "pmtu", "the path MTU is known")                                                    \
	X(ROCE_RSE_FAIL, "fail", "the far host refused a request, or the connection cannot go on")           \
	X(ROCE_RSE_LOST, "lost", "after fail: the PSN that the host repeats, and must get the error at")     \
	X(ROCE_RSE_REWIND, "rewind", "the far host expects an earlier PSN")                                  \
	X(ROCE_RSE_FLUSH, "flush", "an ACK or NAK may go")                                                   \
	X(ROCE_RSE_NO_ROOM, "no_room", "the caller dropped the expected request: it has no memory")          \
	X(ROCE_RSE_ROOM, "room", "the caller has memory again")

/*
 * ROW(state, one word an event): a word names the function roce_resp_do_WORD. IMPOSSIBLE: the event
 * does not happen in this state, asserted.
 */
#define ROCE_RESP_TABLE(ROW)                                                                                 \
	ROW(IN_ORDER, repeat, accept, gap, serve, none, fail, IMPOSSIBLE, rewind, ack, no_room, same)        \
	ROW(UNCOUNTED, repeat, park, park, serve_uncounted, count, fail, IMPOSSIBLE, rewind, ack,            \
	    IMPOSSIBLE, same)                                                                                \
	ROW(GAP, repeat, accept, gap, serve, none, fail, IMPOSSIBLE, rewind, nak, no_room, same)             \
	ROW(GAP_NAK_SENT, repeat, accept, gap_again, IMPOSSIBLE, none, fail, IMPOSSIBLE, rewind, ack,        \
	    no_room, same)                                                                                   \
	ROW(NO_ROOM, repeat, accept, gap_no_room, serve, none, fail, IMPOSSIBLE, rewind, ack, no_room, room) \
	ROW(HELD, repeat_failed, refuse, refuse, serve, none, fail, IMPOSSIBLE, rewind, held, IMPOSSIBLE,    \
	    same)                                                                                            \
	ROW(FAILED, repeat, refuse, refuse, IMPOSSIBLE, none, ignore, lose, rewind_failed, ack, IMPOSSIBLE,  \
	    same)                                                                                            \
	ROW(ERROR_OWED, repeat_failed, refuse_from, refuse_from, unserved, none, ignore, lose,               \
	    rewind_failed, error, IMPOSSIBLE, same)                                                          \
	ROW(ERROR_SENT, repeat_error, refuse_error, refuse_error, unserved, none, ignore, lose,              \
	    rewind_failed, silence, IMPOSSIBLE, same)                                                        \
	ROW(ERROR_AGAIN, repeat_failed, refuse_from, refuse_from, unserved, none, ignore, lose,              \
	    rewind_failed, error, IMPOSSIBLE, same)

/* X(from, to): every change of state. */
/* clang-format off */
#define ROCE_RESP_CHANGES(X)            \
	X(IN_ORDER, UNCOUNTED)          \
	X(IN_ORDER, GAP)                \
	X(IN_ORDER, NO_ROOM)            \
	X(IN_ORDER, HELD)               \
	X(IN_ORDER, FAILED)             \
	X(IN_ORDER, ERROR_OWED)         \
	X(UNCOUNTED, IN_ORDER)          \
	X(UNCOUNTED, GAP)               \
	X(UNCOUNTED, HELD)              \
	X(UNCOUNTED, ERROR_OWED)        \
	X(GAP, IN_ORDER)                \
	X(GAP, UNCOUNTED)               \
	X(GAP, GAP_NAK_SENT)            \
	X(GAP, NO_ROOM)                 \
	X(GAP, HELD)                    \
	X(GAP, FAILED)                  \
	X(GAP, ERROR_OWED)              \
	X(GAP_NAK_SENT, IN_ORDER)       \
	X(GAP_NAK_SENT, UNCOUNTED)      \
	X(GAP_NAK_SENT, GAP)            \
	X(GAP_NAK_SENT, NO_ROOM)        \
	X(GAP_NAK_SENT, HELD)           \
	X(GAP_NAK_SENT, FAILED)         \
	X(GAP_NAK_SENT, ERROR_OWED)     \
	X(NO_ROOM, IN_ORDER)            \
	X(NO_ROOM, UNCOUNTED)           \
	X(NO_ROOM, GAP)                 \
	X(NO_ROOM, HELD)                \
	X(NO_ROOM, FAILED)              \
	X(NO_ROOM, ERROR_OWED)          \
	X(HELD, GAP)                    \
	X(HELD, ERROR_OWED)             \
	X(HELD, ERROR_SENT)             \
	X(FAILED, ERROR_OWED)           \
	X(ERROR_OWED, FAILED)           \
	X(ERROR_OWED, ERROR_SENT)       \
	X(ERROR_SENT, FAILED)           \
	X(ERROR_SENT, ERROR_AGAIN)      \
	X(ERROR_AGAIN, FAILED)          \
	X(ERROR_AGAIN, ERROR_SENT)
/* clang-format on */

enum roce_resp_state {
#define X(e, n, s) e,
	ROCE_RESP_STATES(X)
#undef X
	    ROCE_RS_COUNT
};

enum roce_resp_event {
#define X(e, n, s) e,
	ROCE_RESP_EVENTS(X)
#undef X
	    ROCE_RSE_COUNT
};

/* How often each cell of the table was entered; wraps. For tests. */
struct roce_resp_seen {
	uint32_t cell[ROCE_RS_COUNT][ROCE_RSE_COUNT];
};

#endif
