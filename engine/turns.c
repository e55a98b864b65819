/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests go to a local host at once, or in turns at the rate that it asked for (hostrate.c).
 */
#include "cc/guard.h"
#include "engine/emit.h"
#include "engine/hostrate.h"

#define TURN 4 /* packets of one flow in a row */

/* --- sending ------------------------------------------------------------------------------------ */
static void run(struct eng_rp *p, rwy_time now)
{
	struct eng_far *f;

	if (p->at + p->late < now)
		p->at = now - p->late;
	while (p->head && p->at <= now) {
		uint32_t bytes;
		uint64_t ns;

		f = eng_rp_pop(p);
		bytes = eng_far_send(f, TURN, now);
		if (!bytes)
			continue;
		eng_rp_push(p, f);
		ns = bytes * p->ns_fp + p->frac;
		p->at += ns >> ENG_RP_PACE_BITS;
		p->frac = ns & (((uint32_t)1 << ENG_RP_PACE_BITS) - 1);
		p->ops->on_sent(p->state, bytes, 0, now);
		eng_rp_apply(p);
	}
}

static bool send_in_turn(struct eng_far *f, rwy_time now)
{
	struct eng_rp *p = eng_rp_find(f->h.e, f->h.key.tenant, &f->h.key.dst);

	if (!p)
		return false;
	if (!f->rp)
		eng_rp_push(p, f);
	run(p, now);
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
		if (p->head && p->at <= now)
			run(p, now);
		at = &p->next;
	}
}

void eng_far_flush(struct eng_far *f, rwy_time now)
{
	if (!eng_far_active(f))
		return;
	/* An unpaired flow's first packet waits for its turn: the answer must name its owner with certainty.
	 */
	if (!eng_far_answered(f) && !f->near && f->turn != ENG_TURN_OUT)
		return;
	if (!f->h.e->rps || !send_in_turn(f, now))
		while (eng_far_send(f, ENG_FAR_BURST, now))
			;
	eng_drain(f, now);
	eng_wheel_arm(f, roce_reqr_next(&f->reqr));
}
