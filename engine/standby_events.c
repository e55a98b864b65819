/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of a pair of gateways: what happens to it becomes events of the table (standby.c). Messages
 * of the other gateway, answers of the witness, timers, walks over all connections.
 */
#include "engine/standby.h"

#include <string.h>

#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/responder.h"
#include "engine/table.h"

#define WALK_SIDES 256            /* looked at in one turn */
#define TAKE_AGAIN (100 * RWY_MS) /* other tunnels than the witness's, while they refuse */
#define PATHS_EACH (100 * RWY_MS)
#define SOON       (RWY_MS / 10) /* while connections are walked over, or other workers act */
#define COPY_AGAIN RWY_SEC       /* after a copy could not be made */

/*
 * After a takeover a host may wait for ACKs that died, or for its timer after packets that died. So
 * it gets an ACK, and then a NAK for what it may have sent after that. Either may be lost: the
 * switch and the neighbour table may not know the host yet. While it is silent the NAK is repeated.
 */
#define ASK_LAST (50 * RWY_MS)

/* --- messages --------------------------------------------------------------------------------- */

static enum eng_sb_event event_of(enum eng_sb_state other)
{
	switch (other) {
	case ENG_SB_PAIRED:
		return ENG_SBE_COPIED;
	case ENG_SB_STORING:
		return ENG_SBE_STORES;
	case ENG_SB_LOSING:
		return ENG_SBE_LOSES;
	case ENG_SB_TAKING:
		return ENG_SBE_TAKES;
	case ENG_SB_ASKING:
	case ENG_SB_REPLACED:
		return ENG_SBE_ASKS;
	case ENG_SB_YIELDING:
		return ENG_SBE_YIELDS;
	case ENG_SB_NONE:
	case ENG_SB_ALONE:
	case ENG_SB_COPYING:
	case ENG_SB_PAIRING:
	case ENG_SB_READY:
	case ENG_SB_STATE_COUNT:
		break;
	}
	return ENG_SBE_SERVES;
}

/* READY changes nothing until this gateway tells another state. */
static void hear(struct eng *e, rwy_time now)
{
	if (e->sb.other != ENG_SB_READY)
		eng_sb_event(e, event_of((enum eng_sb_state)e->sb.other), now);
}

void eng_sb_message(struct eng *e, struct rwy_buf *b, rwy_time now)
{
	struct eng_sb_msg m;
	bool good = eng_sb_msg_read(b, &m);
	bool ours = good && m.to == e->cfg.tunnel[e->cfg.standby.tunnel].wan.epoch;

	e->c.drop_tunnel_msg += !good;
	if (ours && m.note && e->ops->standby_note)
		e->ops->standby_note(e->ctx, m.note_kind, m.note, m.note_len, now);
	if (ours && m.paths && !eng_sb_serves(e))
		eng_sb_hear_paths(e, &m);
	rwy_buf_free(&e->bufs, b);
	if (!ours || m.note || m.paths || (e->sb.state == ENG_SB_ASKING && now < e->sb.deaf_until))
		return;
	/* It asks again: it may have forgotten what it was told, or have not believed it. */
	if (m.state == ENG_SB_ASKING && e->sb.state != ENG_SB_ASKING)
		e->sb.said = 0;
	if (!eng_sb_follows(e))
		e->sb.other = m.state;
	e->sb.other_term = m.term;
	/* A gateway that yields claims nothing and sends no proof: the last one stays good. */
	if (!eng_sb_serves(e) && m.state != ENG_SB_YIELDING)
		e->sb.proof = m.proof;
	if (!eng_sb_follows(e)) /* the leader hears it from the other leader */
		hear(e, now);
}

void eng_sb_link(struct eng *e, bool up, rwy_time now)
{
	e->sb.said = 0;
	e->sb.deaf_until = 0;
	if (up) {
		eng_sb_tell(e, now);
		return;
	}
	e->sb.other = ENG_SB_NONE;
	eng_sb_event(e, ENG_SBE_SILENT, now);
}

void eng_sb_tunnel_up(struct eng *e, unsigned tunnel, rwy_time now)
{
	/*
	 * The witness opens flows again as soon as it has granted TAKE: connections must be there.
	 */
	if (e->sb.state == ENG_SB_TAKING && e->sb.stored && tunnel == eng_sb_witness(e))
		eng_takeover(e, now);
}

void eng_sb_stood_still(struct eng *e, rwy_time now)
{
	if (eng_sb_follows(e)) {
		if (eng_sb_serves(e))
			eng_sb_report_still(e);
		return;
	}
	if (e->sb.state == ENG_SB_PAIRED || e->sb.state == ENG_SB_YIELDING)
		eng_sb_event(e, ENG_SBE_SILENT, now);
	if (e->sb.state == ENG_SB_ASKING) {
		e->sb.other = ENG_SB_NONE;
		e->sb.deaf_until = now + e->sb.silence;
		e->sb.said = 0;
	} else {
		e->sb.still = true;
	}
}

void eng_sb_granted(struct eng *e, unsigned tunnel, rwy_time now)
{
	if (!e->cfg.standby.on)
		return;
	if (e->sb.taking >> tunnel & 1) {
		e->sb.taking &= ~((uint64_t)1 << tunnel);
		eng_sb_claim_all(e, now);
	} else if (tunnel == eng_sb_witness(e)) {
		/*
		 * A newcomer may still lose it to one that takes over: it serves when it may keep
		 * it.
		 */
		if (wan_claimed(e->tunnel[tunnel].wan) == WAN_CLAIM_NONE)
			eng_sb_claim(e, tunnel, WAN_CLAIM_KEEP, now);
		else
			eng_sb_event(e, ENG_SBE_GRANTED, now);
	}
}

/* The leader has the witness's consent, but not that of this follower's witness. */
static bool follower_takes(const struct eng *e)
{
	return eng_sb_follows(e) && e->sb.state == ENG_SB_TAKING;
}

static bool takes(const struct eng *e, unsigned tunnel)
{
	return e->sb.taking >> tunnel & 1 || (follower_takes(e) && tunnel == eng_sb_witness(e));
}

/*
 * The witness that refuses has not noticed yet that another process is gone. A follower's witness
 * was not asked when its leader's was: it may believe in an earlier process of this gateway, too.
 */
static bool claims_again(const struct eng *e, unsigned tunnel)
{
	return takes(e, tunnel) || (eng_sb_follows(e) && !wan_claim_over(e->tunnel[tunnel].wan));
}

void eng_sb_refused(struct eng *e, unsigned tunnel, rwy_time now)
{
	if (!e->cfg.standby.on)
		return;
	if (!claims_again(e, tunnel))
		eng_sb_event(e, wan_claim_over(e->tunnel[tunnel].wan) ? ENG_SBE_OVER : ENG_SBE_REFUSED, now);
	else if (e->sb.at == RWY_NEVER)
		e->sb.at = now + TAKE_AGAIN;
}

/* --- tunnels that come and go ----------------------------------------------------------------- */

/* Another tunnel leads to the witness now. asked: the earlier witness had our claim. */
static void changed(struct eng *e, bool asked, rwy_time now)
{
	unsigned w;

	eng_sb_pin_witness(e);
	w = eng_sb_witness(e);
	if (e->sb.state == ENG_SB_ASKING && asked)
		e->sb.at = now; /* it asks the next one, or looks again for one */
	if (w == ENG_SB_NO_WITNESS) {
		if (e->sb.state == ENG_SB_PAIRING && e->sb.whole)
			eng_sb_event(e, ENG_SBE_GRANTED, now);
		return;
	}
	if (e->sb.state == ENG_SB_TAKING)
		eng_sb_claim(e, w, WAN_CLAIM_TAKE, now);
	else if (e->sb.state != ENG_SB_ASKING || !asked)
		eng_sb_claim_all(e, now);
	if (wan_claim_granted(e->tunnel[w].wan)) /* as one of the others */
		eng_sb_granted(e, w, now);
}

void eng_sb_tunnel_made(struct eng *e, unsigned tunnel, rwy_time now)
{
	if (!e->cfg.standby.on || eng_sb_is_pair(e, tunnel))
		return;
	wan_claim_question(e->tunnel[tunnel].wan, e->sb.state == ENG_SB_LOSING);
	eng_sb_claim_own(e, tunnel, now);
	if (!e->sb.pinned && eng_sb_asks_who(e)) /* there was nobody to ask */
		changed(e, false, now);
}

bool eng_sb_tunnel_leaves(struct eng *e, unsigned tunnel, rwy_time now)
{
	struct eng_tunnel *t = &e->tunnel[tunnel];
	bool witness, asked;

	if (!e->cfg.standby.on || t->leaves)
		return true;
	if (eng_sb_witness_stays(e, tunnel, now))
		return false;
	witness = tunnel == eng_sb_witness(e);
	asked = wan_claimed(t->wan) != WAN_CLAIM_SILENT;
	t->leaves = true;
	if (!witness)
		return true;
	e->sb.pinned = 0;
	if (e->sb.state == ENG_SB_TAKING) /* its consent does not count any more */
		eng_sb_claim(e, tunnel, WAN_CLAIM_SILENT, now);
	changed(e, asked, now);
	return true;
}

/* --- timers and walks ------------------------------------------------------------------------- */

/* False: the connection has something that the standby lacks. */
static bool look_at(struct eng *e, struct eng_responder *rs, rwy_time now)
{
	eng_copy_begin(rs, now);
	if (rs->side.state == ENG_R_RESUMING) /* it has no copy yet, and a journal entry here */
		return e->sb.state == ENG_SB_COPYING;
	return e->sb.state == ENG_SB_COPYING || !eng_copy_gates(rs) || rs->side.state != ENG_R_RUNNING ||
	       !rs->local_qpn || !roce_resp_started(&rs->resp) || eng_copy_complete(rs);
}

/* In PAIRING it stays at a connection that is not complete, and looks again with the next turn. */
static void walk(struct eng *e, rwy_time now)
{
	unsigned looked = 0;

	while (looked < WALK_SIDES && (e->sb.cursor = eng_table_next(e, e->sb.cursor)) <= e->table_mask) {
		for (struct eng_side *s = e->table[e->sb.cursor]; s; s = s->chain, looked++)
			if (!s->is_requester && !look_at(e, (struct eng_responder *)s, now))
				return;
		e->sb.cursor++;
	}
}

static bool walks(const struct eng *e)
{
	return e->sb.state == ENG_SB_COPYING || (e->sb.state == ENG_SB_PAIRING && !e->sb.whole);
}

static void walk_on(struct eng *e, rwy_time now)
{
	if (!eng_sb_walked(e) && !e->sb.broken)
		walk(e, now);
	if (eng_sb_walked(e) && !eng_sb_follows(e) && eng_sb_all_walked(e) &&
	    (!e->ops->standby_whole || e->ops->standby_whole(e->ctx, e->sb.round)))
		eng_sb_event(e, ENG_SBE_WALKED, now);
}

static void ask_hosts(struct eng *e, rwy_time now)
{
	for (uint32_t i = 0; i <= e->table_mask; i++)
		for (struct eng_side *s = e->table[i]; s; s = s->chain) {
			struct eng_responder *rs = (struct eng_responder *)s;

			if (!s->is_requester && rs->silent)
				eng_responder_ask_silent(rs);
		}
	e->sb.asked = true;
	e->sb.ask_wait *= 5;
	e->sb.ask_at = e->sb.ask_wait < ASK_LAST ? now + e->sb.ask_wait : RWY_NEVER;
}

static void claim_again(struct eng *e, rwy_time now)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		if (!e->tunnel[i].wan || eng_sb_is_pair(e, i))
			continue;
		if (takes(e, i))
			eng_sb_claim(e, i, WAN_CLAIM_TAKE, now);
		else if (eng_sb_follows(e))
			eng_sb_claim_own(e, i, now);
	}
}

/* A standby is there that could get copies. */
static bool may_copy(const struct eng *e)
{
	return e->sb.state == ENG_SB_ALONE && e->sb.other == ENG_SB_STORING;
}

void eng_sb_tick(struct eng *e, rwy_time now)
{
	if (eng_sb_leads(e))
		eng_sb_collect(e, now);
	else if (eng_sb_follows(e))
		eng_sb_follow(e, now);
	if (e->sb.stuck) {
		e->sb.stuck = false;
		e->sb.copy_at = now + COPY_AGAIN;
		eng_sb_event(e, ENG_SBE_STUCK, now);
	}
	if (now >= eng_sb_witness_until(e))
		(void)eng_sb_tunnel_leaves(e, e->sb.pinned - 1u, now);
	if (now >= e->sb.at) {
		e->sb.at = RWY_NEVER;
		if (e->sb.taking || eng_sb_follows(e))
			claim_again(e, now);
		else if (e->sb.state == ENG_SB_ASKING && e->sb.other != ENG_SB_NONE &&
		         e->sb.other != ENG_SB_READY)
			hear(e, now);
		else
			eng_sb_event(e, ENG_SBE_TIMER, now);
	}
	if (may_copy(e) && now >= e->sb.copy_at && eng_sb_linked(e))
		eng_sb_event(e, ENG_SBE_TIMER, now);
	if (walks(e))
		walk_on(e, now);
	if (now >= e->sb.ask_at)
		ask_hosts(e, now);
	eng_copy_tick(e, now);
	if (eng_sb_follows(e))
		eng_sb_report_follow(e);
	eng_sb_tell(e, now);
	if (e->sb.state == ENG_SB_PAIRED && now >= e->sb.paths_at) {
		e->sb.paths_at = now + PATHS_EACH;
		eng_sb_tell_paths(e, now);
	}
}

rwy_time eng_sb_next(const struct eng *e)
{
	rwy_time next;

	if (!e->cfg.standby.on)
		return RWY_NEVER;
	if (e->sb.stuck)
		return e->now;
	if (walks(e))
		return rwy_time_min(e->now + SOON, e->sb.at);
	next = rwy_time_min(rwy_time_min(e->sb.at, e->sb.ask_at), e->sb.beat_at);
	next = rwy_time_min(next, eng_sb_witness_until(e));
	if (e->sb.state == ENG_SB_PAIRED)
		next = rwy_time_min(next, e->sb.paths_at);
	if (may_copy(e) && eng_sb_linked(e)) /* else a report, or a message, makes a turn */
		next = rwy_time_min(next, rwy_time_max(e->sb.copy_at, e->now + SOON));
	/* The leader says nothing before its workers follow; their reports make turns. */
	if (e->sb.state == ENG_SB_ASKING && e->tunnel[e->cfg.standby.tunnel].up && eng_sb_followed(e))
		next = rwy_time_min(next, e->sb.said_at + e->sb.silence);
	return next;
}

void eng_sb_init(struct eng *e, rwy_time now)
{
	e->sb.since = now;
	e->sb.at = e->sb.beat_at = e->sb.ask_at = RWY_NEVER;
	/* A follower may not know yet that the pair is complete. */
	e->sb.still_from = eng_sb_follows(e) ? ENG_SB_PAIRING : ENG_SB_PAIRED;
	if (!e->cfg.standby.on)
		return;
	e->sb.silence = 4 * e->cfg.tunnel[e->cfg.standby.tunnel].wan.keepalive;
	e->sb.state = e->sb.lead.state = ENG_SB_ASKING;
	if (!eng_sb_follows(e))
		e->sb.at = now + e->cfg.standby.wait;
	if (e->cfg.term)
		e->sb.term = *e->cfg.term;
}

uint32_t eng_standby_round(const struct eng *e)
{
	return eng_sb_copies(e) ? e->sb.round : 0;
}

bool eng_standby_gates(const struct eng *e)
{
	return eng_sb_gates(e);
}

bool eng_standby_hand_over(struct eng *e, rwy_time now)
{
	if (e->sb.state != ENG_SB_PAIRED || eng_sb_follows(e))
		return false;
	eng_sb_event(e, ENG_SBE_ORDER, now);
	return true;
}

/* --- report ----------------------------------------------------------------------------------- */

static bool asks(enum wan_claim c)
{
	return c != WAN_CLAIM_SILENT && c != WAN_CLAIM_YIELD;
}

static const char *const event_names[] = {
#define X(e, n, s) [e] = n,
    ENG_SB_EVENTS(X)
#undef X
};

bool eng_standby_info(const struct eng *e, struct eng_standby_info *out)
{
	bool stores = !eng_sb_serves(e);
	unsigned w = eng_sb_witness(e);

	*out = (struct eng_standby_info){.state = eng_sb_names[e->sb.state],
	    .other = e->sb.other == ENG_SB_NONE ? "" : eng_sb_names[e->sb.other],
	    .since = e->sb.since,
	    .serves = !stores,
	    .site = e->sb.state == ENG_SB_PAIRED,
	    .term = stores && e->sb.other_term > e->sb.term ? e->sb.other_term : e->sb.term,
	    .took_by = e->sb.took_by ? event_names[e->sb.took_by - 1] : "",
	    .lost_by = e->sb.lost_by ? event_names[e->sb.lost_by - 1] : "",
	    .took_at = e->sb.took_at,
	    .lost_at = e->sb.lost_at,
	    .flows = stores ? e->sb.stored_n : 0,
	    .bytes = e->mem.kind[stores ? ENG_MEM_STORED : ENG_MEM_COPIES]};
	if (w != ENG_SB_NO_WITNESS)
		memcpy(out->witness, e->cfg.tunnel[w].name, sizeof(out->witness));
	for (const struct eng_responder *rs = e->sb.copies; rs; rs = rs->copy->all_next)
		out->flows++;
	for (unsigned i = 0; i < e->cfg.tunnels && stores; i++)
		if (e->tunnel[i].wan && !eng_sb_is_pair(e, i))
			out->asks |= asks(wan_claimed(e->tunnel[i].wan));
	return e->cfg.standby.on;
}
