/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of state of a connection's two sides and of a pair of gateways, checked against states.h
 * (docs/states.md).
 */
#include <assert.h>

#include "engine/standby.h"

static const uint8_t requester_next[ENG_Q_STATES][ENG_Q_STATES] = {
#define X(from, to) [ENG_Q_##from][ENG_Q_##to] = 1,
    ENG_REQUESTER_CHANGES(X)
#undef X
};

static const uint8_t responder_next[ENG_R_STATES][ENG_R_STATES] = {
#define X(from, to) [ENG_R_##from][ENG_R_##to] = 1,
    ENG_RESPONDER_CHANGES(X)
#undef X
};

static const uint8_t standby_next[ENG_SB_STATE_COUNT][ENG_SB_STATE_COUNT] = {
#define X(from, to) [ENG_SB_##from][ENG_SB_##to] = 1,
    ENG_SB_CHANGES(X)
#undef X
};

void eng_requester_enter(struct eng_requester *rq, enum eng_requester_state to)
{
	const uint8_t from = rq->side.state;

	assert(requester_next[from][to]);
	rq->side.state = (uint8_t)to;
	eng_record_side(&rq->side,
	    &(struct eng_record){.kind = ENG_REC_REQUESTER,
	        .from = from,
	        .to = (uint8_t)to,
	        .psn = rq->reqr.una & ROCE_PSN_MASK},
	    rq->side.e->now);
}

void eng_responder_enter(struct eng_responder *rs, enum eng_responder_state to)
{
	const uint8_t from = rs->side.state;

	assert(responder_next[from][to]);
	rs->side.state = (uint8_t)to;
	eng_record_side(&rs->side,
	    &(struct eng_record){.kind = ENG_REC_RESPONDER,
	        .from = from,
	        .to = (uint8_t)to,
	        .psn = rs->resp.epsn & ROCE_PSN_MASK},
	    rs->side.e->now);
}

void eng_sb_enter(struct eng *e, enum eng_sb_state to)
{
	assert(standby_next[e->sb.state][to]);
	e->sb.state = (uint8_t)to;
}

const struct eng_states_seen *eng_states_seen(const struct eng *e)
{
	return &e->seen;
}
