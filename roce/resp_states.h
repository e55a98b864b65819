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
	X(ROCE_RSE_FLUSH, "flush", "an ACK or NAK may go")

/*
 * ROW(state, one word an event): a word names the function roce_resp_do_WORD. IMPOSSIBLE: the event
 * does not happen in this state, asserted.
 */
#define ROCE_RESP_TABLE(ROW)                                                                                 \
	ROW(IN_ORDER, repeat, accept, gap, serve, none, fail, IMPOSSIBLE, rewind, ack)                       \
	ROW(UNCOUNTED, repeat, park, park, serve_uncounted, count, fail, IMPOSSIBLE, rewind, ack)            \
	ROW(GAP, repeat, accept, gap, serve, none, fail, IMPOSSIBLE, rewind, nak)                            \
	ROW(GAP_NAK_SENT, repeat, accept, gap_again, IMPOSSIBLE, none, fail, IMPOSSIBLE, rewind, ack)        \
	ROW(HELD, repeat_failed, refuse, refuse, serve, none, fail, IMPOSSIBLE, rewind, held)                \
	ROW(FAILED, repeat, refuse, refuse, IMPOSSIBLE, none, ignore, lose, rewind_failed, ack)              \
	ROW(ERROR_OWED, repeat_failed, refuse_from, refuse_from, unserved, none, ignore, lose,               \
	    rewind_failed, error)                                                                            \
	ROW(ERROR_SENT, repeat_error, refuse_error, refuse_error, unserved, none, ignore, lose,              \
	    rewind_failed, silence)                                                                          \
	ROW(ERROR_AGAIN, repeat_failed, refuse_from, refuse_from, unserved, none, ignore, lose,              \
	    rewind_failed, error)

/* X(from, to): every change of state. */
/* clang-format off */
#define ROCE_RESP_CHANGES(X)            \
	X(IN_ORDER, UNCOUNTED)          \
	X(IN_ORDER, GAP)                \
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
	X(GAP, HELD)                    \
	X(GAP, FAILED)                  \
	X(GAP, ERROR_OWED)              \
	X(GAP_NAK_SENT, IN_ORDER)       \
	X(GAP_NAK_SENT, UNCOUNTED)      \
	X(GAP_NAK_SENT, GAP)            \
	X(GAP_NAK_SENT, HELD)           \
	X(GAP_NAK_SENT, FAILED)         \
	X(GAP_NAK_SENT, ERROR_OWED)     \
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
