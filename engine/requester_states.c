/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester side's state table: in which state, on which event, what is done. The states themselves
 * change in eng_far_enter. The table itself is in states.h.
 */
#include <assert.h>

#include "engine/requester.h"

typedef void on_message(struct eng_far *f, struct rwy_buf *b, rwy_time now);
typedef void on_response(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
typedef void on_timer(struct eng_far *f, rwy_time now);

static const struct {
	on_message *first, *message;
	on_response *response;
	on_timer *timer;
} table[ENG_Q_STATES] = {
#define eng_far_IMPOSSIBLE NULL
#define ROW(s, f, m, r, t) [ENG_Q_##s] = {eng_far_##f, eng_far_##m, eng_far_##r, eng_far_##t},
    ENG_REQUESTER_TABLE(ROW)
#undef ROW
};

static void seen(struct eng_far *f, enum eng_requester_event ev)
{
	f->h.e->seen.requester[f->h.state][ev]++;
}

void eng_far_data(struct eng_far *f, struct rwy_buf *b, rwy_time now)
{
	f->h.last = now;
	if (f->flow == ENG_FLOW_DISCARD) {
		eng_far_forget(f, b, now);
	} else if (f->flow == ENG_FLOW_FIRST) {
		seen(f, ENG_QE_FIRST);
		table[f->h.state].first(f, b, now);
	} else {
		seen(f, ENG_QE_MESSAGE);
		table[f->h.state].message(f, b, now);
	}
}

void eng_far_response(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	f->h.last = now;
	seen(f, ENG_QE_RESPONSE);
	table[f->h.state].response(f, pkt, b, now);
}

void eng_far_tick(struct eng_far *f, rwy_time now)
{
	if (!eng_far_active(f))
		return;
	if (roce_reqr_next(&f->reqr) <= now) {
		seen(f, ENG_QE_TIMER);
		assert(table[f->h.state].timer);
		table[f->h.state].timer(f, now);
	}
	if (eng_far_active(f))
		eng_wheel_arm(f, roce_reqr_next(&f->reqr));
}
