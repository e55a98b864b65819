/* SPDX-License-Identifier: Apache-2.0 */
/* One of a pair of gateways: who serves, who stores, who takes over. The table is in standby.h. */
#include "engine/standby.h"

#include <assert.h>

#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/responder.h"
#include "engine/store.h"
#include "engine/table.h"
#include "rwy/endian.h"

/*
 * A message of the pair: epoch of the receiver, which drops what was meant for the process before
 * it; state; whether an earlier process of the sender left a journal.
 */
#define MESSAGE_LEN 10

#define WALK_SIDES 256             /* looked at in one turn */
#define TAKE_AGAIN (100 * RWY_MS)  /* other tunnels than the witness's, while they refuse */
#define COPY_AGAIN RWY_SEC         /* after a copy could not be made */
#define NO_WITNESS ENG_TUNNELS_MAX /* there is no tunnel but the pair's */

/*
 * The first NAKs of a gateway that took over may be lost: its switch and its neighbour table do not
 * know the hosts yet. Hosts that did not go on are asked again a few times.
 */
static const uint8_t ask_after[] = {5, 15, 40}; /* milliseconds, from one time to the next */

static const char *const names[ENG_SB_STATE_COUNT] = {
#define X(e, n, s) [e] = n,
    ENG_SB_STATES(X)
#undef X
};

static unsigned witness(const struct eng *e)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tunnel[i].wan && !eng_sb_is_pair(e, i))
			return i;
	return NO_WITNESS;
}

/* --- claims ----------------------------------------------------------------------------------- */

/* What a gateway in this state claims of its tunnels; TAKING only of the witness's. */
static enum wan_claim claim_of(const struct eng *e)
{
	switch ((enum eng_sb_state)e->sb.state) {
	case ENG_SB_NONE:
		return WAN_CLAIM_NONE;
	case ENG_SB_ALONE:
	case ENG_SB_COPYING:
	case ENG_SB_LOSING:
		return WAN_CLAIM_KEEP;
	case ENG_SB_PAIRING:
		return e->sb.whole ? WAN_CLAIM_HOLD : WAN_CLAIM_KEEP;
	case ENG_SB_PAIRED:
		return WAN_CLAIM_HOLD;
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

static void claim(struct eng *e, unsigned tunnel, enum wan_claim c, rwy_time now)
{
	if (wan_claimed(e->tunnel[tunnel].wan) != c)
		wan_claim(e->tunnel[tunnel].wan, c, now);
}

static void claim_all(struct eng *e, rwy_time now)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tunnel[i].wan && !eng_sb_is_pair(e, i))
			claim(e, i, e->sb.taking >> i & 1 ? WAN_CLAIM_TAKE : claim_of(e), now);
}

void eng_sb_tunnel_made(struct eng *e, unsigned tunnel, rwy_time now)
{
	if (e->cfg.standby.on && !eng_sb_is_pair(e, tunnel))
		claim(e, tunnel, claim_of(e), now);
}

/* --- changes of state ------------------------------------------------------------------------- */

static void tell(struct eng *e, rwy_time now)
{
	struct eng_tunnel *t = &e->tunnel[e->cfg.standby.tunnel];
	uint8_t info[WAN_OPEN_MAX];
	struct eng_open o = {
	    .type = ENG_OPEN_MGMT, .rnr_retry = ENG_RETRY_UNKNOWN, .retry = ENG_RETRY_UNKNOWN};
	struct rwy_buf *b;

	if (e->sb.said == e->sb.state + 1u || !t->wan || !t->up)
		return;
	if (!t->mgmt && wan_tx_open(t->wan, &t->mgmt, info, eng_open_encode(info, &o), t, now) != 0) {
		t->mgmt = NULL;
		return;
	}
	b = rwy_buf_alloc(&e->bufs, WAN_HDR_MAX, MESSAGE_LEN);
	if (!b)
		return; /* again with the next turn */
	b->len = MESSAGE_LEN;
	rwy_put64(b->data, wan_peer_epoch(t->wan));
	b->data[8] = e->sb.state;
	b->data[9] = e->orphans_n != 0;
	b->kind = RWY_BUF_CTRL;
	wan_tx_send(t->mgmt, b, now);
	e->sb.said = (uint8_t)(e->sb.state + 1);
}

static void enter(struct eng *e, enum eng_sb_state to, rwy_time now)
{
	bool served = eng_sb_serves(e);

	eng_log(e, to == ENG_SB_PAIRED || to == ENG_SB_READY ? 2 : 1, "standby=%s before=%s", names[to],
	    names[e->sb.state]);
	eng_sb_enter(e, to);
	e->sb.since = now;
	e->sb.at = RWY_NEVER;
	e->sb.cursor = 0;
	e->sb.stuck = e->sb.still = e->sb.whole = false;
	claim_all(e, now);
	tell(e, now);
	if (e->ops->serves && (eng_sb_serves(e) != served || to == ENG_SB_REPLACED))
		e->ops->serves(e->ctx, eng_sb_serves(e), to == ENG_SB_REPLACED, now);
}

void eng_sb_copied(struct eng_responder *rs, rwy_time now)
{
	struct rwy_buf *b;

	while ((b = eng_copy_next_answer(rs)))
		eng_responder_handle(rs, b, now);
	eng_ack_copied(rs);
}

/* Nobody has copies any longer: what waited for them goes on. */
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
			eng_journal_release(e, j);
		}
}

/* --- the words of the table ------------------------------------------------------------------- */

static void sb_same(struct eng *e, rwy_time now)
{
}

/* Not at once after a copy could not be made: that took memory and time, and may fail again. */
static void sb_copy(struct eng *e, rwy_time now)
{
	if (e->sb.other != ENG_SB_STORING)
		return;
	if (now < e->sb.copy_at)
		e->sb.at = e->sb.copy_at;
	else
		enter(e, ENG_SB_COPYING, now);
}

static void sb_alone(struct eng *e, rwy_time now)
{
	bool taken = e->sb.state == ENG_SB_TAKING, asked = e->sb.state == ENG_SB_ASKING;

	if (taken) /* the witness's tunnel is ours; the others are still the active gateway's */
		for (unsigned i = witness(e) + 1; i < e->cfg.tunnels; i++)
			e->sb.taking |= (uint64_t)(e->tunnel[i].wan && !eng_sb_is_pair(e, i)) << i;
	enter(e, ENG_SB_ALONE, now);
	end_copies(e, now);
	if (asked)
		restore_journal(e, now);
	if (taken) {
		forget_journal(e);
		e->sb.asks = 0;
		e->sb.ask_at = now + ask_after[0] * RWY_MS;
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
	claim_all(e, now);
	if (witness(e) == NO_WITNESS)
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
 * Both have just started: the one with a journal serves, else the smaller epoch. The witness may
 * still believe in an earlier process. Until it believes in this one, hosts get no ACK.
 */
static void sb_first(struct eng *e, rwy_time now)
{
	const struct eng_tunnel *t = &e->tunnel[e->cfg.standby.tunnel];
	bool past = e->orphans_n != 0;
	unsigned w = witness(e);

	if (past != e->sb.other_past ? !past : e->cfg.tunnel[t->idx].wan.epoch > wan_peer_epoch(t->wan))
		return;
	if (w == NO_WITNESS)
		sb_alone(e, now);
	else
		claim(e, w, WAN_CLAIM_START, now);
}

static void sb_store(struct eng *e, rwy_time now)
{
	forget_journal(e);
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
	enter(e, ENG_SB_STORING, now);
}

static void sb_ask_again(struct eng *e, rwy_time now)
{
	eng_store_clear(e, now);
	enter(e, ENG_SB_ASKING, now);
	/* What the other gateway said last still holds, if it is there. */
	e->sb.at = e->sb.other != ENG_SB_NONE ? now : now + e->cfg.standby.wait;
}

/* The other gateway cannot be asked: the witness knows whether it is active. */
static void sb_ask_witness(struct eng *e, rwy_time now)
{
	unsigned w = witness(e);

	if (w == NO_WITNESS)
		e->sb.at = now + e->cfg.standby.wait;
	else /* it gives the tunnel to a newcomer only if the other gateway is silent there, too */
		claim(e, w, WAN_CLAIM_NONE, now);
}

static void sb_wait_again(struct eng *e, rwy_time now)
{
	claim_all(e, now);
	e->sb.at = now + e->cfg.standby.wait;
}

static void sb_take(struct eng *e, rwy_time now)
{
	unsigned w = witness(e);

	enter(e, ENG_SB_TAKING, now);
	if (w != NO_WITNESS)
		claim(e, w, WAN_CLAIM_TAKE, now);
}

static void sb_retreat(struct eng *e, rwy_time now)
{
	eng_takeover_undo(e, now);
	sb_ask_again(e, now);
}

#define sb_IMPOSSIBLE NULL

typedef void word(struct eng *e, rwy_time now);
static word *const table[ENG_SB_STATE_COUNT][ENG_SB_EVENT_COUNT] = {
#define ROW(s, a, b, c, d, f, g, h, i, j, k, l, m)                                                           \
	[ENG_SB_##s] = {                                                                                     \
	    sb_##a, sb_##b, sb_##c, sb_##d, sb_##f, sb_##g, sb_##h, sb_##i, sb_##j, sb_##k, sb_##l, sb_##m},
    ENG_SB_TABLE(ROW)
#undef ROW
};

void eng_sb_event(struct eng *e, enum eng_sb_event ev, rwy_time now)
{
	assert(table[e->sb.state][ev]);
	e->seen.standby[e->sb.state][ev]++;
	table[e->sb.state][ev](e, now);
}

/* --- events ----------------------------------------------------------------------------------- */

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
	bool good = b->len == MESSAGE_LEN;
	uint8_t other = good ? b->data[8] : ENG_SB_NONE;
	bool past = good && b->data[9];
	bool ours = good && rwy_get64(b->data) == e->cfg.tunnel[e->cfg.standby.tunnel].wan.epoch;

	rwy_buf_free(&e->bufs, b);
	if (other == ENG_SB_NONE || other >= ENG_SB_STATE_COUNT) {
		e->c.drop_tunnel_msg++;
		return;
	}
	if (!ours || (e->sb.state == ENG_SB_ASKING && e->sb.still))
		return;
	e->sb.other = other;
	e->sb.other_past = past;
	hear(e, now);
}

void eng_sb_link(struct eng *e, bool up, rwy_time now)
{
	e->sb.said = 0;
	if (e->sb.state == ENG_SB_ASKING)
		e->sb.still = false;
	if (up) {
		tell(e, now);
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
	if (e->sb.state == ENG_SB_TAKING && e->sb.stored && tunnel == witness(e))
		eng_takeover(e, now);
}

void eng_sb_stood_still(struct eng *e, rwy_time now)
{
	if (e->sb.state == ENG_SB_PAIRED)
		eng_sb_event(e, ENG_SBE_SILENT, now);
	if (e->sb.state == ENG_SB_ASKING)
		e->sb.other = ENG_SB_NONE;
	e->sb.still = true;
}

void eng_sb_granted(struct eng *e, unsigned tunnel, rwy_time now)
{
	if (!e->cfg.standby.on)
		return;
	if (e->sb.taking >> tunnel & 1) {
		e->sb.taking &= ~((uint64_t)1 << tunnel);
		claim_all(e, now);
	} else if (tunnel == witness(e)) {
		/*
		 * A newcomer may still lose it to one that takes over: it serves when it may keep
		 * it.
		 */
		if (wan_claimed(e->tunnel[tunnel].wan) == WAN_CLAIM_NONE)
			claim(e, tunnel, WAN_CLAIM_KEEP, now);
		else
			eng_sb_event(e, ENG_SBE_GRANTED, now);
	}
}

void eng_sb_refused(struct eng *e, unsigned tunnel, rwy_time now)
{
	if (!e->cfg.standby.on)
		return;
	if (!(e->sb.taking >> tunnel & 1))
		eng_sb_event(e, ENG_SBE_REFUSED, now);
	else if (e->sb.at == RWY_NEVER)
		e->sb.at = now + TAKE_AGAIN;
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

	while (looked < WALK_SIDES && e->sb.cursor <= e->table_mask) {
		uint64_t bits = e->occupied[e->sb.cursor / 64] >> e->sb.cursor % 64;

		if (!bits) {
			e->sb.cursor = (e->sb.cursor | 63) + 1;
			continue;
		}
		e->sb.cursor += (uint32_t)__builtin_ctzll(bits);
		for (struct eng_side *s = e->table[e->sb.cursor]; s; s = s->chain, looked++)
			if (!s->is_requester && !look_at(e, (struct eng_responder *)s, now))
				return;
		e->sb.cursor++;
	}
	if (e->sb.cursor > e->table_mask)
		eng_sb_event(e, ENG_SBE_WALKED, now);
}

static void ask_hosts(struct eng *e, rwy_time now)
{
	for (uint32_t i = 0; i <= e->table_mask; i++)
		for (struct eng_side *s = e->table[i]; s; s = s->chain) {
			struct eng_responder *rs = (struct eng_responder *)s;

			if (s->is_requester || !rs->taken_over || s->state != ENG_R_RUNNING ||
			    rs->asked_at >= e->sb.since)
				continue;
			roce_resp_ask_again(&rs->resp);
			eng_dirty(s);
		}
	e->sb.asks++;
	e->sb.ask_at = e->sb.asks < sizeof(ask_after) ? now + ask_after[e->sb.asks] * RWY_MS : RWY_NEVER;
}

static void take_again(struct eng *e, rwy_time now)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->sb.taking >> i & 1 && e->tunnel[i].wan)
			wan_claim(e->tunnel[i].wan, WAN_CLAIM_TAKE, now);
}

void eng_sb_tick(struct eng *e, rwy_time now)
{
	if (e->sb.stuck) {
		e->sb.stuck = false;
		e->sb.copy_at = now + COPY_AGAIN;
		eng_sb_event(e, ENG_SBE_STUCK, now);
	}
	if (now >= e->sb.at) {
		e->sb.at = RWY_NEVER;
		if (e->sb.taking)
			take_again(e, now);
		else if (e->sb.state == ENG_SB_ASKING && e->sb.other != ENG_SB_NONE &&
		         e->sb.other != ENG_SB_READY)
			hear(e, now);
		else
			eng_sb_event(e, ENG_SBE_TIMER, now);
	}
	if (e->sb.state == ENG_SB_COPYING || (e->sb.state == ENG_SB_PAIRING && !e->sb.whole))
		walk(e, now);
	if (now >= e->sb.ask_at)
		ask_hosts(e, now);
	eng_copy_tick(e, now);
	tell(e, now);
}

rwy_time eng_sb_next(const struct eng *e)
{
	if (!e->cfg.standby.on)
		return RWY_NEVER;
	if (e->sb.stuck)
		return e->now;
	if (e->sb.state == ENG_SB_COPYING || (e->sb.state == ENG_SB_PAIRING && !e->sb.whole))
		return rwy_time_min(e->now + RWY_MS / 10, e->sb.at);
	return rwy_time_min(rwy_time_min(e->sb.at, e->sb.ask_at), e->sb.beat_at);
}

void eng_sb_init(struct eng *e, rwy_time now)
{
	e->sb.since = now;
	e->sb.at = e->sb.beat_at = e->sb.ask_at = RWY_NEVER;
	if (!e->cfg.standby.on)
		return;
	e->sb.silence = 4 * e->cfg.tunnel[e->cfg.standby.tunnel].wan.keepalive;
	e->sb.state = ENG_SB_ASKING;
	e->sb.at = now + e->cfg.standby.wait;
}

/* --- report ----------------------------------------------------------------------------------- */

bool eng_standby_info(const struct eng *e, struct eng_standby_info *out)
{
	bool stores = !eng_sb_serves(e);

	*out = (struct eng_standby_info){.state = names[e->sb.state],
	    .other = e->sb.other == ENG_SB_NONE ? "" : names[e->sb.other],
	    .since = e->sb.since,
	    .serves = !stores,
	    .site = e->sb.state == ENG_SB_PAIRED,
	    .flows = stores ? e->sb.stored_n : 0,
	    .bytes = e->mem.kind[stores ? ENG_MEM_STORED : ENG_MEM_COPIES]};
	for (const struct eng_responder *rs = e->sb.copies; rs; rs = rs->copy->all_next)
		out->flows++;
	return e->cfg.standby.on;
}
