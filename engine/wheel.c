/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A coarse timer wheel for the far halves' response timeouts: a slot is about a millisecond, arming and
 * disarming are O(1), and a far half whose deadline only moves later is left where it is and looked at again
 * when its slot comes (most timeouts never fire).
 */
#include "engine/table.h"

static void unlink_far(struct eng_far *f)
{
	struct eng *e = f->h.e;
	uint32_t slot = (uint32_t)(f->wheel_at >> ENG_WHEEL_SHIFT) & (ENG_WHEEL_SLOTS - 1);

	if (f->wheel_prev)
		f->wheel_prev->wheel_next = f->wheel_next;
	else
		e->wheel[slot] = f->wheel_next;
	if (f->wheel_next)
		f->wheel_next->wheel_prev = f->wheel_prev;
	f->wheel_next = f->wheel_prev = NULL;
	f->wheel_at = 0;
	e->wheel_n--;
}

void eng_wheel_disarm(struct eng_far *f)
{
	if (f->wheel_at)
		unlink_far(f);
}

void eng_wheel_arm(struct eng_far *f, rwy_time at)
{
	struct eng *e = f->h.e;
	rwy_time first = (e->wheel_tick + 1) << ENG_WHEEL_SHIFT;
	rwy_time last = (e->wheel_tick + ENG_WHEEL_SLOTS - 1) << ENG_WHEEL_SHIFT;
	uint32_t slot;

	if (at == RWY_NEVER)
		return; /* lazily: if armed, the slot's turn finds nothing to do */
	/* A deadline beyond the wheel is looked at once a turn. */
	at = rwy_time_min(rwy_time_max(at, first), last);
	if (f->wheel_at && f->wheel_at <= at)
		return;
	if (f->wheel_at)
		unlink_far(f);
	slot = (uint32_t)(at >> ENG_WHEEL_SHIFT) & (ENG_WHEEL_SLOTS - 1);
	f->wheel_at = at;
	f->wheel_next = e->wheel[slot];
	if (f->wheel_next)
		f->wheel_next->wheel_prev = f;
	e->wheel[slot] = f;
	e->wheel_n++;
}

void eng_wheel_run(struct eng *e, void (*due)(struct eng_far *f, rwy_time now), rwy_time now)
{
	uint64_t tick = now >> ENG_WHEEL_SHIFT;

	if (tick > e->wheel_tick + ENG_WHEEL_SLOTS)
		e->wheel_tick = tick - ENG_WHEEL_SLOTS; /* slept longer than a turn: each slot once */
	while (e->wheel_tick < tick) {
		uint32_t slot = (uint32_t)(++e->wheel_tick) & (ENG_WHEEL_SLOTS - 1);
		struct eng_far *f;

		while ((f = e->wheel[slot])) {
			unlink_far(f);
			due(f, now);
		}
	}
}
