/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests go to a local host at once, or in turns at the rate of its reaction point (hostrate.c).
 */
#include "cc/guard.h"
#include "engine/emit.h"
#include "engine/hostrate.h"
#include "engine/memory.h"

#define TURN 4 /* packets of one flow in a row */

/* --- sending --- */
/* Sends until the rate is used up: TURN packets of each flow in turn. */
static void send_turns(struct eng_rp *p, rwy_time now)
{
	struct eng_requester *rq;

	rwy_pace_limit(&p->pace, p->late, now);
	while (p->head && p->pace.at <= now) {
		uint32_t bytes;

		rq = eng_rp_pop(p);
		bytes = eng_requester_send(rq, TURN, now);
		if (!bytes)
			continue;
		eng_rp_push(p, rq);
		rwy_pace_sent(&p->pace, bytes);
		p->ops->on_sent(p->state, bytes, 0, now);
		eng_rp_apply(p);
	}
}

/* False: the host has no reaction point; nothing was sent. */
static bool send_in_turn(struct eng_requester *rq, rwy_time now)
{
	struct eng_rp *p = eng_rp_find(rq->side.e, rq->side.key.tenant, &rq->side.key.dst);

	if (!p)
		return false;
	if (!rq->rp)
		eng_rp_push(p, rq);
	send_turns(p, now);
	return true;
}

void eng_rp_poll(struct eng *e, rwy_time now)
{
	struct eng_rp **at = &e->rp_list, *p;

	while ((p = *at)) {
		if (cc_guard_next(p->ops, p->state, p->ticked) <= now) {
			p->ticked = now;
			p->ops->on_tick(p->state, now);
			eng_rp_apply(p);
		}
		if (eng_rp_over(p, now)) {
			eng_rp_end(e, at);
			continue;
		}
		if (p->head && p->pace.at <= now)
			send_turns(p, now);
		at = &p->next;
	}
}

void eng_requester_flush(struct eng_requester *rq, rwy_time now)
{
	if (!eng_requester_active(rq))
		return;
	if (rq->reqr.held_back) {
		if (!eng_mem_has_room(&rq->side)) {
			eng_mem_wait(&rq->side);
			return;
		}
		eng_mem_wait_end(&rq->side);
		roce_reqr_ask_again(&rq->reqr);
	}
	if (eng_requester_waits_turn(rq))
		return;
	if (!rq->side.e->rps || !send_in_turn(rq, now))
		while (rq->reqr.next && eng_requester_send(rq, ENG_REQUESTER_BURST, now))
			;
	eng_drain(rq, now);
	eng_wheel_arm(rq, roce_reqr_next(&rq->reqr));
}
