/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the requester side: each calls the function that the table in states.h names. */
#include <assert.h>

#include "engine/pair.h"
#include "engine/requester.h"

typedef void on_message(struct eng_requester *rq, struct rwy_buf *b, rwy_time now);
typedef void on_response(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
typedef void on_timer(struct eng_requester *rq, rwy_time now);

static const struct {
	on_message *first, *message;
	on_response *response;
	on_timer *timer;
} table[ENG_Q_STATES] = {
#define eng_requester_IMPOSSIBLE NULL
#define ROW(s, f, m, r, t)                                                                                   \
	[ENG_Q_##s] = {eng_requester_##f, eng_requester_##m, eng_requester_##r, eng_requester_##t},
    ENG_REQUESTER_TABLE(ROW)
#undef ROW
};

/*
 * A first request shows that the hosts have connected anew; RESUME does not. While the host is told
 * that its own requests are lost, RESUME is answered: the connection has failed. True: b is freed.
 */
static bool looked_at(struct eng_requester *rq, struct rwy_buf *b, rwy_time now)
{
	if (rq->continued || !eng_requester_tells(rq) || rq->end != ENG_END_UNDELIVERED)
		return false;
	if (!eng_requester_is_resume(b)) {
		eng_requester_connected_anew(rq);
		return false;
	}
	rq->flow = ENG_FLOW_OPEN;
	eng_requester_send_fail(
	    rq, rq->reqr.una, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_UNDELIVERED, now);
	rwy_buf_free(&rq->side.e->bufs, b);
	return true;
}

static void count_event(struct eng_requester *rq, enum eng_requester_event ev)
{
	rq->side.e->seen.requester[rq->side.state][ev]++;
}

void eng_requester_message(struct eng_requester *rq, struct rwy_buf *b, rwy_time now)
{
	rq->side.last = now;
	if (rq->flow == ENG_FLOW_DISCARD || rq->flow == ENG_FLOW_MOVED) {
		eng_requester_discard(rq, b, now);
	} else if (rq->flow == ENG_FLOW_FIRST) {
		if (looked_at(rq, b, now))
			return;
		count_event(rq, ENG_QE_FIRST);
		table[rq->side.state].first(rq, b, now);
	} else {
		count_event(rq, ENG_QE_MESSAGE);
		table[rq->side.state].message(rq, b, now);
	}
}

void eng_requester_response(struct eng_requester *rq, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	rq->side.last = now;
	count_event(rq, ENG_QE_RESPONSE);
	table[rq->side.state].response(rq, pkt, b, now);
}

void eng_requester_tick(struct eng_requester *rq, rwy_time now)
{
	eng_requester_send_owed(rq, now);
	if (rq->turn == ENG_TURN_UNQUEUED)
		eng_pair_queue(rq, now);
	if (!eng_requester_active(rq))
		return;
	if (roce_reqr_next(&rq->reqr) <= now || eng_requester_owes_request(rq)) {
		count_event(rq, ENG_QE_TIMER);
		assert(table[rq->side.state].timer);
		table[rq->side.state].timer(rq, now);
	}
	if (eng_requester_active(rq))
		eng_wheel_arm(rq, roce_reqr_next(&rq->reqr));
}
