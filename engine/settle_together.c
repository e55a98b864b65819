/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of a gateway settle together. In CLOSING and SETTLED a worker accepts no request, and
 * hosts wait for few round trips before they give up; so none closes while another one still owes
 * something. Worker 0 alone decides. It counts turns, even ones for SETTLING and odd ones for
 * CLOSING, and begins the next one when each worker says that it owes nothing in this one; or when
 * one says that CLOSING takes it too long. The others follow with their next pass.
 */
#include "engine/settle.h"

static bool closing(uint32_t turn)
{
	return turn & 1;
}

static bool any_says(const struct eng *e, uint32_t what)
{
	for (unsigned i = 0; i < e->cfg.workers; i++)
		if (atomic_load(&e->cfg.lanes->settle.said[i]) == what)
			return true;
	return false;
}

static bool all_say(const struct eng *e, uint32_t what)
{
	for (unsigned i = 0; i < e->cfg.workers; i++)
		if (atomic_load(&e->cfg.lanes->settle.said[i]) != what)
			return false;
	return true;
}

static enum eng_settle_event lead(struct eng *e, uint32_t turn, bool too_long)
{
	struct eng_lanes *l = e->cfg.lanes;
	const bool late = any_says(e, eng_settle_word(turn, ENG_SETTLE_TOO_LONG)) || too_long;

	if (all_say(e, eng_settle_word(turn, ENG_SETTLE_NOTHING))) {
		if (closing(turn))
			atomic_store(&l->settle.over, turn);
		else
			atomic_store(&l->settle.turn, turn + 1);
		return ENG_SETTLE_KEPT;
	}
	if (!closing(turn) || !late)
		return ENG_SETTLE_OWED;
	atomic_store(&l->settle.turn, turn + 1);
	return ENG_SETTLE_LATE;
}

/* This worker itself has said that it owes nothing in that turn. */
static bool has_said(const struct eng *e, uint32_t turn)
{
	return atomic_load(&e->cfg.lanes->settle.said[e->cfg.worker]) ==
	       eng_settle_word(turn, ENG_SETTLE_NOTHING);
}

static enum eng_settle_event follow(const struct eng *e, uint32_t turn)
{
	const bool over = closing(turn) && atomic_load(&e->cfg.lanes->settle.over) == turn;

	if (e->settle.state == ENG_SETTLING)
		return closing(turn) && has_said(e, turn - 1) ? ENG_SETTLE_KEPT : ENG_SETTLE_OWED;
	if (!closing(turn))
		return ENG_SETTLE_LATE;
	return over && has_said(e, turn) ? ENG_SETTLE_KEPT : ENG_SETTLE_OWED;
}

enum eng_settle_event eng_settle_together(struct eng *e, enum eng_settle_event own, bool too_long)
{
	struct eng_lanes *l = e->cfg.lanes;
	const uint32_t turn = atomic_load(&l->settle.turn);
	const unsigned how = own == ENG_SETTLE_KEPT   ? ENG_SETTLE_NOTHING
	                     : own == ENG_SETTLE_LATE ? ENG_SETTLE_TOO_LONG
	                                              : ENG_SETTLE_OWES;

	/* Worker 0 is a turn ahead: the word is about the one that this worker is in. */
	if (closing(turn) == (e->settle.state == ENG_CLOSING))
		atomic_store(&l->settle.said[e->cfg.worker], eng_settle_word(turn, how));
	return e->cfg.worker ? follow(e, turn) : lead(e, turn, too_long);
}

void eng_settle_alone(struct eng *e)
{
	struct eng_lanes *l = e->cfg.lanes;

	if (!l)
		return;
	atomic_store(&l->settle.said[e->cfg.worker], ENG_SETTLE_OWES);
	if (!e->cfg.worker) /* words about earlier turns count no longer */
		atomic_store(&l->settle.turn, (atomic_load(&l->settle.turn) | 1) + 1);
}
