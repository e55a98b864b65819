/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/states.h"

#include <stdint.h>

#define NO PROXY_STATE_COUNT /* the event is wrong here */

/*
 * A repeated message leaves the state as it is and goes on: the receiver's CM answers it again, as
 * it would without a relay.
 */
static const uint8_t next_of[PROXY_STATE_COUNT][PROXY_EVENT_COUNT] = {
    [PROXY_FREE] = {[PROXY_EV_REQ] = PROXY_REQ_SEEN,
        [PROXY_EV_MRA] = NO,
        [PROXY_EV_REJ] = NO,
        [PROXY_EV_REP] = NO,
        [PROXY_EV_RTU] = NO,
        [PROXY_EV_DREQ] = NO,
        [PROXY_EV_DREP] = NO,
        [PROXY_EV_TIMEOUT] = PROXY_FREE},
    [PROXY_REQ_SEEN] = {[PROXY_EV_REQ] = PROXY_REQ_SEEN,
        [PROXY_EV_MRA] = PROXY_REQ_SEEN,
        [PROXY_EV_REJ] = PROXY_CLOSED,
        [PROXY_EV_REP] = PROXY_REP_SEEN,
        [PROXY_EV_RTU] = NO,
        [PROXY_EV_DREQ] = NO,
        [PROXY_EV_DREP] = NO,
        [PROXY_EV_TIMEOUT] = PROXY_FREE},
    [PROXY_REP_SEEN] = {[PROXY_EV_REQ] = PROXY_REP_SEEN,
        [PROXY_EV_MRA] = PROXY_REP_SEEN,
        [PROXY_EV_REJ] = PROXY_CLOSED,
        [PROXY_EV_REP] = PROXY_REP_SEEN,
        [PROXY_EV_RTU] = PROXY_ESTABLISHED,
        [PROXY_EV_DREQ] = PROXY_DISCONNECTING,
        [PROXY_EV_DREP] = NO,
        [PROXY_EV_TIMEOUT] = PROXY_FREE},
    [PROXY_ESTABLISHED] = {[PROXY_EV_REQ] = PROXY_ESTABLISHED,
        [PROXY_EV_MRA] = PROXY_ESTABLISHED,
        [PROXY_EV_REJ] = PROXY_CLOSED,
        [PROXY_EV_REP] = PROXY_ESTABLISHED,
        [PROXY_EV_RTU] = PROXY_ESTABLISHED,
        [PROXY_EV_DREQ] = PROXY_DISCONNECTING,
        [PROXY_EV_DREP] = NO,
        [PROXY_EV_TIMEOUT] = PROXY_FREE},
    [PROXY_DISCONNECTING] = {[PROXY_EV_REQ] = PROXY_DISCONNECTING,
        [PROXY_EV_MRA] = PROXY_DISCONNECTING,
        [PROXY_EV_REJ] = PROXY_CLOSED,
        [PROXY_EV_REP] = PROXY_DISCONNECTING,
        [PROXY_EV_RTU] = PROXY_DISCONNECTING,
        [PROXY_EV_DREQ] = PROXY_DISCONNECTING,
        [PROXY_EV_DREP] = PROXY_CLOSED,
        [PROXY_EV_TIMEOUT] = PROXY_FREE},
    [PROXY_CLOSED] = {[PROXY_EV_REQ] = PROXY_REQ_SEEN, /* its REJ was lost: it is asked again */
        [PROXY_EV_MRA] = PROXY_CLOSED,
        [PROXY_EV_REJ] = PROXY_CLOSED,
        [PROXY_EV_REP] = PROXY_CLOSED,
        [PROXY_EV_RTU] = PROXY_CLOSED,
        [PROXY_EV_DREQ] = PROXY_CLOSED, /* crossed with the other, or its DREP was lost */
        [PROXY_EV_DREP] = PROXY_CLOSED,
        [PROXY_EV_TIMEOUT] = PROXY_FREE},
};

bool proxy_state_next(enum proxy_state s, enum proxy_event ev, enum proxy_state *next)
{
	if (next_of[s][ev] == NO)
		return false;
	*next = (enum proxy_state)next_of[s][ev];
	return true;
}

const char *proxy_state_name(enum proxy_state s)
{
	static const char *const names[] = {
#define X(e, n, t) n,
	    PROXY_STATES(X)
#undef X
	};

	return s < PROXY_STATE_COUNT ? names[s] : "?";
}

const char *proxy_event_name(enum proxy_event ev)
{
	static const char *const names[] = {
#define X(e, n) n,
	    PROXY_EVENTS(X)
#undef X
	};

	return ev < PROXY_EVENT_COUNT ? names[ev] : "?";
}
