/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of a pair of gateways with several workers: how a follower gets to the state that its leader
 * has, by the same table (states.h), and what the leader does about its followers' reports.
 *
 * While the leader asks the witness whether it may take over (TAKING), its followers claim their
 * tunnels, too. The witness's worker 0 decides for all (lanes.h), so theirs are granted when the
 * leader's is. A follower serves when both are.
 */
#include "engine/board.h"
#include "engine/standby.h"

/* The event, plus 1, that brings a follower from one state nearer to another one; 0: it waits. */
#define BY(ev) (ENG_SBE_##ev + 1)
static const uint8_t nearer[ENG_SB_STATE_COUNT][ENG_SB_STATE_COUNT] = {
    [ENG_SB_ALONE] = {[ENG_SB_COPYING] = BY(STORES), [ENG_SB_REPLACED] = BY(OVER)},
    [ENG_SB_COPYING] =
        {[ENG_SB_ALONE] = BY(SILENT), [ENG_SB_PAIRING] = BY(WALKED), [ENG_SB_REPLACED] = BY(OVER)},
    [ENG_SB_PAIRING] = {[ENG_SB_ALONE] = BY(SILENT),
        [ENG_SB_PAIRED] = BY(GRANTED),
        [ENG_SB_LOSING] = BY(GRANTED),
        [ENG_SB_YIELDING] = BY(GRANTED),
        [ENG_SB_REPLACED] = BY(OVER)},
    [ENG_SB_PAIRED] = {[ENG_SB_ALONE] = BY(SILENT),
        [ENG_SB_LOSING] = BY(SILENT),
        [ENG_SB_YIELDING] = BY(ORDER),
        [ENG_SB_REPLACED] = BY(OVER)},
    [ENG_SB_LOSING] = {[ENG_SB_ALONE] = BY(GRANTED), [ENG_SB_REPLACED] = BY(OVER)},
    [ENG_SB_YIELDING] =
        {[ENG_SB_ALONE] = BY(SILENT), [ENG_SB_LOSING] = BY(SILENT), [ENG_SB_REPLACED] = BY(OVER)},
    [ENG_SB_ASKING] = {[ENG_SB_ALONE] = BY(GRANTED),
        [ENG_SB_STORING] = BY(SERVES),
        [ENG_SB_READY] = BY(SERVES),
        [ENG_SB_REPLACED] = BY(OVER)},
    [ENG_SB_STORING] = {[ENG_SB_ASKING] = BY(SILENT),
        [ENG_SB_READY] = BY(COPIED),
        [ENG_SB_TAKING] = BY(COPIED),
        [ENG_SB_REPLACED] = BY(SILENT)},
    [ENG_SB_READY] = {[ENG_SB_ASKING] = BY(SERVES),
        [ENG_SB_STORING] = BY(SERVES),
        [ENG_SB_TAKING] = BY(SILENT),
        [ENG_SB_REPLACED] = BY(SERVES)},
    [ENG_SB_TAKING] = {[ENG_SB_ASKING] = BY(REFUSED), [ENG_SB_REPLACED] = BY(REFUSED)},
};

static bool served_by(uint8_t state)
{
	return state <= ENG_SB_LOSING || state == ENG_SB_YIELDING;
}

static bool has_copies(const struct eng *e)
{
	return e->sb.state == ENG_SB_STORING || e->sb.state == ENG_SB_READY || e->sb.state == ENG_SB_TAKING;
}

/* The state that the leader's asks for now. */
static uint8_t wanted(const struct eng *e)
{
	const uint8_t lead = e->sb.lead.state;

	return has_copies(e) && served_by(lead) ? ENG_SB_TAKING : lead;
}

/* Its witness has agreed, and the leader serves. */
static bool has_taken(const struct eng *e)
{
	const unsigned w = eng_sb_witness(e);

	return e->sb.state == ENG_SB_TAKING && served_by(e->sb.lead.state) && w != ENG_SB_NO_WITNESS &&
	       wan_claim_granted(e->tunnel[w].wan);
}

static void go(struct eng *e, uint8_t to, rwy_time now)
{
	uint8_t by;

	while (e->sb.state != to && (by = nearer[e->sb.state][to])) {
		/* The leader had the witness's consent. */
		e->sb.whole |= e->sb.state == ENG_SB_PAIRING && by == BY(GRANTED);
		eng_sb_change(e, (enum eng_sb_event)(by - 1), now);
	}
}

static void follow(struct eng *e, const struct eng_board_lead *lead, rwy_time now)
{
	const bool cleared = lead->cleared != e->sb.lead.cleared;

	e->sb.lead = *lead;
	if (cleared && has_copies(e))
		go(e, ENG_SB_ASKING, now);
	go(e, wanted(e), now);
	if (lead->whole && e->sb.state == ENG_SB_PAIRING) {
		e->sb.whole = true;
		eng_sb_claim_all(e, now);
	}
}

void eng_sb_follow(struct eng *e, rwy_time now)
{
	struct eng_board *b = e->cfg.standby.board;
	const struct eng_board_lead lead = eng_board_hear(b);

	if (lead.serial != e->sb.lead.serial || lead.whole != e->sb.lead.whole)
		follow(e, &lead, now);
	/* It fell silent before the copies began. */
	if (eng_sb_copies(e) && !e->tunnel[e->cfg.standby.tunnel].up)
		eng_sb_report(e, ENG_SBE_SILENT);
	if (has_taken(e))
		eng_sb_change(e, ENG_SBE_GRANTED, now);
	if (e->sb.still &&
	    atomic_load(&b->of[e->cfg.worker].confirmed) == atomic_load(&b->of[e->cfg.worker].stood_still)) {
		e->sb.still = false;
		if (eng_sb_speaks(e))
			eng_sb_pass_answers(e, now);
	}
}

/* --- the leader ------------------------------------------------------------------------------- */

/*
 * A follower that stood still may speak when nobody can have taken over meanwhile: the witness lets
 * this gateway keep the tunnel. Where a standby may take it, the witness is asked who serves.
 */
static void confirm(struct eng *e, unsigned worker, rwy_time now)
{
	struct eng_board *b = e->cfg.standby.board;
	const uint32_t n = atomic_load(&b->of[worker].stood_still);

	if (n == atomic_load_explicit(&b->of[worker].confirmed, memory_order_relaxed))
		return;
	if (e->sb.state == ENG_SB_PAIRED || e->sb.state == ENG_SB_YIELDING)
		eng_sb_change(e, ENG_SBE_SILENT, now);
	if (!eng_sb_serves(e) || e->sb.state == ENG_SB_LOSING)
		return;
	atomic_store(&b->of[worker].confirmed, n);
	e->ops->board_changed(e->ctx);
}

static void events_of(struct eng *e, unsigned worker, rwy_time now)
{
	_Atomic uint32_t *at = &e->cfg.standby.board->of[worker].events;
	uint32_t bits = atomic_load_explicit(at, memory_order_relaxed) ? atomic_exchange(at, 0) : 0;

	if (bits >> ENG_SBE_STUCK & 1 && eng_sb_copies(e)) {
		e->sb.stuck = true;
		bits &= ~(1u << ENG_SBE_SILENT); /* both end the copies */
	}
	if (bits >> ENG_SBE_SILENT & 1)
		eng_sb_change(e, ENG_SBE_SILENT, now);
	/* A gateway that does not serve lost a claim of an earlier state. */
	if (bits >> ENG_SBE_OVER & 1 && eng_sb_serves(e))
		eng_sb_change(e, ENG_SBE_OVER, now);
}

void eng_sb_collect(struct eng *e, rwy_time now)
{
	for (unsigned k = 1; k < e->cfg.workers; k++) {
		events_of(e, k, now);
		confirm(e, k, now);
	}
}
