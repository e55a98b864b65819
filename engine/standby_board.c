/* SPDX-License-Identifier: Apache-2.0 */
/* One of a pair of gateways with several workers: what they say on the board, and read there. */
#include "engine/board.h"
#include "engine/standby.h"

static void changed(struct eng *e)
{
	e->ops->board_changed(e->ctx);
}

void eng_sb_lead(struct eng *e)
{
	if (!eng_sb_leads(e))
		return;
	e->sb.lead.serial += e->sb.lead.state != e->sb.state;
	e->sb.lead.state = e->sb.state;
	e->sb.lead.whole = e->sb.whole;
	eng_board_say(e->cfg.standby.board, &e->sb.lead);
	changed(e);
}

/* The state changes next. */
void eng_sb_cleared(struct eng *e)
{
	e->sb.lead.cleared += eng_sb_leads(e);
}

/* Each follower has this state, and nothing has happened to it that its leader has not heard of. */
static bool each(const struct eng *e, bool (*is)(const struct eng_board_follow *f))
{
	struct eng_board *b = e->cfg.standby.board;

	for (unsigned k = 1; b && k < e->cfg.workers; k++) {
		const struct eng_board_follow f = eng_board_reported(b, k);

		if (f.serial != e->sb.lead.serial || !is(&f) || atomic_load(&b->of[k].events))
			return false;
	}
	return true;
}

static bool follows(const struct eng_board_follow *f)
{
	return true;
}

static bool is_linked(const struct eng_board_follow *f)
{
	return f->linked && f->serves;
}

static bool has_walked(const struct eng_board_follow *f)
{
	return f->walked && f->linked;
}

bool eng_sb_followed(const struct eng *e)
{
	return eng_sb_follows(e) || each(e, follows);
}

bool eng_sb_linked(const struct eng *e)
{
	return e->tunnel[e->cfg.standby.tunnel].peer_workers == eng_sb_workers(e) && each(e, is_linked);
}

bool eng_sb_all_walked(const struct eng *e)
{
	return each(e, has_walked);
}

void eng_sb_report_follow(struct eng *e)
{
	const struct eng_board_follow f = {.serial = e->sb.lead.serial,
	    .walked = eng_sb_walked(e) && !e->sb.broken,
	    .linked = e->tunnel[e->cfg.standby.tunnel].up,
	    .serves = eng_sb_serves(e)};

	if (eng_board_report(e->cfg.standby.board, e->cfg.worker, &f))
		changed(e);
}

void eng_sb_report(struct eng *e, enum eng_sb_event ev)
{
	/* The others are for the leader alone, and it has them, too. */
	const uint32_t told = 1u << ENG_SBE_SILENT | 1u << ENG_SBE_STUCK | 1u << ENG_SBE_OVER;

	if (!(told >> ev & 1))
		return;
	if (ev == ENG_SBE_SILENT || ev == ENG_SBE_STUCK)
		e->sb.broken = eng_sb_serves(e) && e->sb.state != ENG_SB_ALONE;
	atomic_fetch_or(&e->cfg.standby.board->of[e->cfg.worker].events, 1u << ev);
	if (ev == ENG_SBE_OVER) /* it is silent to hosts: its leader ends the process */
		eng_sb_report_still(e);
	changed(e);
}

void eng_sb_report_still(struct eng *e)
{
	e->sb.still = true;
	atomic_fetch_add(&e->cfg.standby.board->of[e->cfg.worker].stood_still, 1);
	changed(e);
}
