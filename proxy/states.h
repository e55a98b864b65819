/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of a link: what CM messages of both hosts a relay has seen (IBA 12.9). The relay answers
 * none of them itself, so the states follow the hosts'. The table is in states.c.
 */
#ifndef PROXY_STATES_H
#define PROXY_STATES_H

#include <stdbool.h>

/* X(enumerator, name, sentence) */
#define PROXY_STATES(X)                                                                                      \
	X(PROXY_FREE, "free", "no link")                                                                     \
	X(PROXY_REQ_SEEN, "req-seen", "the REQ went on; half-open")                                          \
	X(PROXY_REP_SEEN, "rep-seen", "the REP came back: both QPNs are known")                              \
	X(PROXY_ESTABLISHED, "established", "the RTU went on")                                               \
	X(PROXY_DISCONNECTING, "disconnecting", "a DREQ went on")                                            \
	X(PROXY_CLOSED, "closed", "a DREP or REJ ended it; kept for late packets, so that its QPN waits")

/* X(enumerator, name) */
#define PROXY_EVENTS(X)                                                                                      \
	X(PROXY_EV_REQ, "REQ")                                                                               \
	X(PROXY_EV_MRA, "MRA")                                                                               \
	X(PROXY_EV_REJ, "REJ")                                                                               \
	X(PROXY_EV_REP, "REP")                                                                               \
	X(PROXY_EV_RTU, "RTU")                                                                               \
	X(PROXY_EV_DREQ, "DREQ")                                                                             \
	X(PROXY_EV_DREP, "DREP")                                                                             \
	X(PROXY_EV_TIMEOUT, "timeout")

enum proxy_state {
#define X(e, n, s) e,
	PROXY_STATES(X)
#undef X
	    PROXY_STATE_COUNT
};

enum proxy_event {
#define X(e, n) e,
	PROXY_EVENTS(X)
#undef X
	    PROXY_EVENT_COUNT
};

/* The state after an event. False: the event is wrong in this state; *next is not set. */
bool proxy_state_next(enum proxy_state s, enum proxy_event ev, enum proxy_state *next);

/* Static texts. */
const char *proxy_state_name(enum proxy_state s);
const char *proxy_event_name(enum proxy_event ev);

#endif
