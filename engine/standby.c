/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of a pair of gateways: who serves, who stores, who takes over. The table is in states.h, each
 * word of it is a function here; standby_events.c finds the events.
 */
#include "engine/standby.h"

#include <assert.h>

#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/responder.h"
#include "engine/store.h"
#include "engine/table.h"

#define ASK_FIRST  (RWY_MS / 10) /* after a takeover: hosts get their ACKs first */
#define YIELD_WAIT RWY_SEC       /* for the standby to serve; it asks the witness first */

const char *const eng_sb_names[ENG_SB_STATE_COUNT] = {
#define X(e, n, s) [e] = n,
    ENG_SB_STATES(X)
#undef X
};

/* --- claims ----------------------------------------------------------------------------------- */

/*
 * The claim on a tunnel in this state. In TAKING only the witness's tunnel is claimed. In LOSING
 * only the witness is asked, by the leader; a standby that it lets take over may have the others.
 */
static enum wan_claim claim_of(const struct eng *e, unsigned tunnel)
{
	switch ((enum eng_sb_state)e->sb.state) {
	case ENG_SB_NONE:
		return WAN_CLAIM_NONE;
	case ENG_SB_ALONE:
	case ENG_SB_COPYING:
		return WAN_CLAIM_KEEP;
	case ENG_SB_LOSING:
		return !eng_sb_follows(e) && tunnel == eng_sb_witness(e) ? WAN_CLAIM_KEEP : WAN_CLAIM_HOLD;
	case ENG_SB_PAIRING:
		return e->sb.whole ? WAN_CLAIM_HOLD : WAN_CLAIM_KEEP;
	case ENG_SB_PAIRED:
		return WAN_CLAIM_HOLD;
	case ENG_SB_YIELDING:
		return WAN_CLAIM_YIELD;
	case ENG_SB_ASKING:
	case ENG_SB_STORING:
	case ENG_SB_READY:
	case ENG_SB_TAKING:
	case ENG_SB_REPLACED:
	case ENG_SB_STATE_COUNT:
		break;
	}
	return WAN_CLAIM_SILENT;
}

void eng_sb_claim(struct eng *e, unsigned tunnel, enum wan_claim c, rwy_time now)
{
	if (wan_claimed(e->tunnel[tunnel].wan) != c)
		wan_claim(e->tunnel[tunnel].wan, c, now);
}

void eng_sb_claim_own(struct eng *e, unsigned tunnel, rwy_time now)
{
	eng_sb_claim(e, tunnel, claim_of(e, tunnel), now);
}

void eng_sb_claim_all(struct eng *e, rwy_time now)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tunnel[i].wan && !eng_sb_is_pair(e, i)) {
			wan_claim_question(e->tunnel[i].wan, e->sb.state == ENG_SB_LOSING);
			eng_sb_claim(e, i, e->sb.taking >> i & 1 ? WAN_CLAIM_TAKE : claim_of(e, i), now);
		}
}

/* --- changes of state ------------------------------------------------------------------------- */

static void set_term(struct eng *e, uint64_t term)
{
	e->sb.term = term;
	if (e->cfg.term && !eng_sb_follows(e)) /* all workers of a gateway have one */
		atomic_store(e->cfg.term, term);
	if (eng_sb_leads(e))
		atomic_store(&e->cfg.standby.board->term, term);
}

/* The next term; a follower's is that of its leader. */
static uint64_t next_term(const struct eng *e)
{
	if (eng_sb_follows(e))
		return atomic_load(&e->cfg.standby.board->term);
	return (e->sb.term > e->sb.other_term ? e->sb.term : e->sb.other_term) + 1;
}

void eng_sb_pass_answers(struct eng *e, rwy_time now)
{
	struct eng_responder *rs = e->sb.copies, *next;

	for (; rs; rs = next) {
		next = rs->copy->all_next;
		eng_sb_copied(rs, now);
	}
}

/* For reports: why this gateway serves, and why it has no standby any more. */
static void note_why(struct eng *e, enum eng_sb_state to, rwy_time now)
{
	const uint8_t by = (uint8_t)(e->sb.event + 1);

	if (to == ENG_SB_TAKING)
		e->sb.taken = by;
	if (to <= ENG_SB_LOSING && !eng_sb_serves(e)) {
		e->sb.took_by = e->sb.state == ENG_SB_TAKING ? e->sb.taken : by;
		e->sb.took_at = now;
		e->sb.lost_by = 0;
	}
	if ((to == ENG_SB_ALONE && eng_sb_copies(e)) || to == ENG_SB_LOSING) {
		e->sb.lost_by = by;
		e->sb.lost_at = now;
	}
}

static void enter(struct eng *e, enum eng_sb_state to, rwy_time now)
{
	bool served = eng_sb_serves(e), spoke = eng_sb_speaks(e);

	note_why(e, to, now);

	if (!eng_sb_follows(e))
		eng_log(e, to == ENG_SB_PAIRED || to == ENG_SB_READY ? 2 : 1, "standby=%s before=%s",
		    eng_sb_names[to], eng_sb_names[e->sb.state]);
	eng_sb_enter(e, to);
	e->sb.round += to == ENG_SB_COPYING;
	eng_sb_pin_witness(e);
	if (eng_sb_serves(e) && !served)
		set_term(e, next_term(e));
	e->sb.since = now;
	e->sb.at = RWY_NEVER;
	e->sb.cursor = 0;
	/* Only the leader knows when a follower may speak. */
	e->sb.still = e->sb.still && eng_sb_follows(e);
	e->sb.whole = false;
	if (to == ENG_SB_READY || to == ENG_SB_STORING || to == ENG_SB_ASKING)
		e->sb.complete = to == ENG_SB_READY ? e->modes_set : 0;
	/* A copy that failed is missing in the next state, too. */
	e->sb.stuck = e->sb.stuck && eng_sb_copies(e);
	e->sb.broken = e->sb.broken && to != ENG_SB_ALONE && eng_sb_serves(e);
	eng_sb_lead(e);
	eng_sb_claim_all(e, now);
	eng_sb_tell(e, now);
	if (e->ops->serves && (eng_sb_serves(e) != served || to == ENG_SB_REPLACED))
		e->ops->serves(e->ctx, eng_sb_serves(e), to == ENG_SB_REPLACED, now);
	if (eng_sb_speaks(e) && !spoke)
		eng_sb_pass_answers(e, now);
}

void eng_sb_copied(struct eng_responder *rs, rwy_time now)
{
	struct rwy_buf *b;

	while ((b = eng_copy_next_answer(rs)))
		eng_responder_handle(rs, b, now);
	eng_ack_copied(rs);
}

/* There is no standby any longer: requests and ACKs that waited for copies go on. */
static void end_copies(struct eng *e, rwy_time now)
{
	struct eng_responder *rs;

	while ((rs = e->sb.copies)) {
		eng_sb_copied(rs, now);
		if (rs->copy) /* a message may have ended the connection */
			eng_copy_end(rs, now);
	}
}

/* Connections of an earlier process: taken up, or forgotten. */
static void restore_journal(struct eng *e, rwy_time now)
{
	for (uint32_t i = 0; e->journal_free && i < e->tenant_slots; i++)
		if (e->tenant[i])
			eng_journal_restore(e, i, now);
}

static void forget_journal(struct eng *e)
{
	struct eng_journal_entry *j;

	for (uint32_t i = 0; e->journal_free && i < e->tenant_slots; i++)
		for (uint32_t cursor = 0; e->tenant[i];) {
			j = eng_journal_next_orphan(e, e->tenant[i]->cfg.vni, &cursor);
			if (!j)
				break;
			eng_journal_drop(e, i, j);
			eng_journal_take_orphan(e, cursor - 1);
		}
}

/* --- the words of the table ------------------------------------------------------------------- */

static void sb_same(struct eng *e, rwy_time now)
{
}

/* Not at once after a copy could not be made: that took memory and time, and may fail again. */
static void sb_copy(struct eng *e, rwy_time now)
{
	if (eng_sb_follows(e) ? e->sb.lead.state == ENG_SB_COPYING
	                      : e->sb.other == ENG_SB_STORING && now >= e->sb.copy_at && eng_sb_linked(e))
		enter(e, ENG_SB_COPYING, now);
}

static void sb_alone(struct eng *e, rwy_time now)
{
	bool taken = e->sb.state == ENG_SB_TAKING, asked = e->sb.state == ENG_SB_ASKING;
	unsigned w = eng_sb_witness(e);

	if (taken) /* the witness's tunnel is ours; the others are still the active gateway's */
		for (unsigned i = 0; i < e->cfg.tunnels; i++)
			e->sb.taking |= (uint64_t)(e->tunnel[i].wan && !eng_sb_is_pair(e, i) && i != w) << i;
	enter(e, ENG_SB_ALONE, now);
	end_copies(e, now);
	if (asked)
		restore_journal(e, now);
	if (taken) {
		forget_journal(e);
		e->sb.asked = false;
		e->sb.ask_wait = ASK_FIRST;
		e->sb.ask_at = now + ASK_FIRST;
	}
	sb_copy(e, now);
}

static void sb_pair(struct eng *e, rwy_time now)
{
	enter(e, ENG_SB_PAIRING, now);
}

/* The standby has everything. It hears of it when the witness would let it take over. */
static void sb_hold(struct eng *e, rwy_time now)
{
	e->sb.whole = true;
	eng_sb_lead(e);
	eng_sb_claim_all(e, now);
	if (eng_sb_witness(e) == ENG_SB_NO_WITNESS)
		enter(e, ENG_SB_PAIRED, now);
}

static void sb_paired(struct eng *e, rwy_time now)
{
	if (e->sb.whole)
		enter(e, ENG_SB_PAIRED, now);
}

static void sb_lose(struct eng *e, rwy_time now)
{
	enter(e, ENG_SB_LOSING, now);
}

/*
 * The standby has every request that hosts have ACKs for. It asks the witness, and serves when the
 * witness agrees. Packets that hosts send meanwhile are lost; the standby asks for them by NAK.
 */
static void sb_hand_over(struct eng *e, rwy_time now)
{
	enter(e, ENG_SB_YIELDING, now);
	e->sb.at = now + YIELD_WAIT;
}

static void sb_yield(struct eng *e, rwy_time now)
{
	end_copies(e, now);
	enter(e, ENG_SB_REPLACED, now);
}

/*
 * Both serve. The witness cannot have allowed that: somebody gave both the same tunnel's name at
 * two witnesses, or the other one believes a state of long ago. Exactly one goes on.
 */
static void sb_two_serve(struct eng *e, rwy_time now)
{
	const struct eng_tunnel *t = &e->tunnel[e->cfg.standby.tunnel];

	if (e->cfg.tunnel[t->idx].wan.epoch < wan_peer_epoch(t->wan))
		return;
	eng_log(e, 0, "event=\"both gateways of the pair serve: this one stops\"");
	sb_yield(e, now);
}

/*
 * Both have just started: the one that served last serves, for it has the newest journal; of two
 * that have none, the smaller epoch. The witness may still believe in an earlier process. Until it
 * believes in this one, hosts get no ACK.
 */
static void sb_first(struct eng *e, rwy_time now)
{
	const struct eng_tunnel *t = &e->tunnel[e->cfg.standby.tunnel];
	uint64_t term = e->sb.term, other = e->sb.other_term;
	unsigned w = eng_sb_witness(e);

	if (term != other ? term < other : e->cfg.tunnel[t->idx].wan.epoch > wan_peer_epoch(t->wan)) {
		eng_sb_claim_all(e, now); /* it asked before it heard the other one */
		return;
	}
	if (w == ENG_SB_NO_WITNESS)
		sb_alone(e, now);
	else
		eng_sb_claim(e, w, WAN_CLAIM_START, now);
}

static void sb_store(struct eng *e, rwy_time now)
{
	forget_journal(e);
	set_term(e, 0);
	eng_sb_cleared(e);
	enter(e, ENG_SB_STORING, now);
}

static void sb_ready(struct eng *e, rwy_time now)
{
	enter(e, ENG_SB_READY, now);
}

/* The active gateway begins again with its copies. */
static void sb_store_again(struct eng *e, rwy_time now)
{
	eng_store_clear(e, now);
	eng_sb_cleared(e);
	enter(e, ENG_SB_STORING, now);
}

static void sb_ask_again(struct eng *e, rwy_time now)
{
	eng_store_clear(e, now);
	eng_sb_cleared(e);
	enter(e, ENG_SB_ASKING, now);
	/* If the other gateway is there, its last word still holds. */
	e->sb.at = e->sb.other != ENG_SB_NONE ? now : now + e->cfg.standby.wait;
}

/* The other gateway cannot be asked: the witness knows whether it is active. */
static void sb_ask_witness(struct eng *e, rwy_time now)
{
	unsigned w = eng_sb_witness(e);

	if (w == ENG_SB_NO_WITNESS)
		e->sb.at = now + e->cfg.standby.wait;
	else /* it gives the tunnel to a newcomer only if the other gateway is silent there, too */
		eng_sb_claim(e, w, WAN_CLAIM_NONE, now);
}

static void sb_wait_again(struct eng *e, rwy_time now)
{
	eng_sb_claim_all(e, now);
	e->sb.at = now + e->cfg.standby.wait;
}

static void sb_take(struct eng *e, rwy_time now)
{
	unsigned w = eng_sb_witness(e);

	enter(e, ENG_SB_TAKING, now);
	if (w == ENG_SB_NO_WITNESS)
		return;
	if (e->sb.proof.nonce)
		wan_proof_use(e->tunnel[w].wan, &e->sb.proof);
	eng_sb_claim(e, w, WAN_CLAIM_TAKE, now);
}

/*
 * The witness refused, or the active gateway says that it was confirmed: the copies here are old.
 */
static void sb_retreat(struct eng *e, rwy_time now)
{
	eng_takeover_undo(e, now);
	sb_ask_again(e, now);
}

#define sb_IMPOSSIBLE NULL

typedef void word(struct eng *e, rwy_time now);
static word *const table[ENG_SB_STATE_COUNT][ENG_SB_EVENT_COUNT] = {
#define ROW(s, a, b, c, d, f, g, h, i, j, k, l, m, n, o, p)                                                  \
	[ENG_SB_##s] = {sb_##a, sb_##b, sb_##c, sb_##d, sb_##f, sb_##g, sb_##h, sb_##i, sb_##j, sb_##k,      \
	    sb_##l, sb_##m, sb_##n, sb_##o, sb_##p},
    ENG_SB_TABLE(ROW)
#undef ROW
};

void eng_sb_change(struct eng *e, enum eng_sb_event ev, rwy_time now)
{
	assert(table[e->sb.state][ev]);
	e->seen.standby[e->sb.state][ev]++;
	e->sb.event = (uint8_t)ev;
	table[e->sb.state][ev](e, now);
}

void eng_sb_event(struct eng *e, enum eng_sb_event ev, rwy_time now)
{
	if (!eng_sb_follows(e))
		eng_sb_change(e, ev, now);
	else
		eng_sb_report(e, ev);
}
