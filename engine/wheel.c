/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A coarse timer wheel for the response timers of requester sides. A slot is about a millisecond;
 * arming and disarming are O(1). Most timers never fire: a side whose deadline moves later stays in
 * its slot, which is examined when it expires, and one that waits for nothing any more leaves.
 */
#include "engine/table.h"

static void wheel_unlink(struct eng_requester *rq)
{
	struct eng *e = rq->side.e;
	uint32_t slot = (uint32_t)(rq->wheel_at >> ENG_WHEEL_SHIFT) & (ENG_WHEEL_SLOTS - 1);

	if (rq->wheel_prev)
		rq->wheel_prev->wheel_next = rq->wheel_next;
	else
		e->wheel[slot] = rq->wheel_next;
	if (rq->wheel_next)
		rq->wheel_next->wheel_prev = rq->wheel_prev;
	rq->wheel_next = rq->wheel_prev = NULL;
	rq->wheel_at = 0;
	e->wheel_n--;
}

void eng_wheel_disarm(struct eng_requester *rq)
{
	if (rq->wheel_at)
		wheel_unlink(rq);
}

void eng_wheel_arm(struct eng_requester *rq, rwy_time at)
{
	struct eng *e = rq->side.e;
	rwy_time first = (e->wheel_tick + 1) << ENG_WHEEL_SHIFT;
	rwy_time last = (e->wheel_tick + ENG_WHEEL_SLOTS - 1) << ENG_WHEEL_SHIFT;
	uint32_t slot;

	if (at == RWY_NEVER) {
		/*
		 * It leaves while its neighbours, armed as lately, are in the cache: else the side
		 * is fetched from memory when its slot is due, to find nothing to do. What found no
		 * memory is tried again at a tick.
		 */
		if (!eng_requester_tries(rq))
			eng_wheel_disarm(rq);
		return;
	}
	/* A deadline beyond the wheel is looked at once a revolution. */
	at = rwy_time_min(rwy_time_max(at, first), last);
	if (rq->wheel_at && rq->wheel_at <= at)
		return;
	if (rq->wheel_at)
		wheel_unlink(rq);
	slot = (uint32_t)(at >> ENG_WHEEL_SHIFT) & (ENG_WHEEL_SLOTS - 1);
	rq->wheel_at = at;
	rq->wheel_next = e->wheel[slot];
	if (rq->wheel_next)
		rq->wheel_next->wheel_prev = rq;
	e->wheel[slot] = rq;
	e->wheel_n++;
}

void eng_wheel_run(struct eng *e, void (*due)(struct eng_requester *rq, rwy_time now), rwy_time now)
{
	uint64_t tick = now >> ENG_WHEEL_SHIFT;

	if (tick > e->wheel_tick + ENG_WHEEL_SLOTS)
		/* More than a revolution is due: each slot once. */
		e->wheel_tick = tick - ENG_WHEEL_SLOTS;
	while (e->wheel_tick < tick) {
		uint32_t slot = (uint32_t)(++e->wheel_tick) & (ENG_WHEEL_SLOTS - 1);
		struct eng_requester *rq;

		while ((rq = e->wheel[slot])) {
			wheel_unlink(rq);
			due(rq, now);
		}
	}
}
