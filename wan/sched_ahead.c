/* SPDX-License-Identifier: Apache-2.0 */
/* Flows that go ahead of bulk flows, where these have no credit left: a list in turn, beside the
 * heaps. Their classes' limits hold for them as well (sched.c). */
#include "wan/tunnel.h"

void wan_sched_ahead_add(struct wan_sched *s, struct wan_txflow *f)
{
	s->ahead_at = 0; /* a flow that was listed may not have been able to send */
	s->stuck_at = WAN_NOT_STUCK;
	if (f->ahead)
		return;
	f->ahead = true;
	f->ahead_next = NULL;
	f->ahead_prev = s->ahead_tail;
	if (s->ahead_tail)
		s->ahead_tail->ahead_next = f;
	else
		s->ahead_head = f;
	s->ahead_tail = f;
}

void wan_sched_ahead_remove(struct wan_sched *s, struct wan_txflow *f)
{
	if (!f->ahead)
		return;
	f->ahead = false;
	if (f->ahead_prev)
		f->ahead_prev->ahead_next = f->ahead_next;
	else
		s->ahead_head = f->ahead_next;
	if (f->ahead_next)
		f->ahead_next->ahead_prev = f->ahead_prev;
	else
		s->ahead_tail = f->ahead_prev;
}

struct wan_txflow *wan_sched_ahead_first(const struct wan_sched *s)
{
	struct wan_txflow *f = s->ahead_head;

	while (f && !wan_tx_sendable(f))
		f = f->ahead_next;
	return f;
}

struct wan_txflow *wan_sched_ahead(struct wan_sched *s, rwy_time now)
{
	struct wan_txflow *f = s->ahead_head;
	rwy_time at, first = RWY_NEVER;

	s->ahead_at = 0;
	for (; f; f = f->ahead_next) {
		if (!wan_tx_sendable(f))
			continue;
		at = wan_sched_limits_at(f->class, now);
		if (at <= now)
			return f;
		first = rwy_time_min(first, at);
	}
	s->ahead_at = first == RWY_NEVER ? 0 : first;
	return NULL;
}

void wan_sched_ahead_pick(struct wan_sched *s, struct wan_txflow *f)
{
	s->by_guarantee = false;
	wan_sched_ahead_remove(s, f); /* by turns */
	wan_sched_ahead_add(s, f);
}
