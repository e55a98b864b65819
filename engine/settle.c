/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settling (settle.h): passes over all connections find out what is still owed. Each step looks at
 * a bounded number of them, so that no turn is long.
 *
 * SETTLING first marks, for each connection, up to where its host may have ACKs, and lasts until
 * the far hosts have all before the marks. Meanwhile a host that must wait long gets a single ACK a
 * timeout (eng_ack_single), which is a new promise. CLOSING makes none, accepts nothing and lasts
 * until those are kept, too, and READs and ATOMICs answered. When that takes too long, as in an
 * outage, hosts are served for some time again.
 */
#include "engine/settle.h"

#include <assert.h>

#include "engine/copy.h"
#include "engine/peer.h"
#include "engine/responder.h"
#include "engine/table.h"

#define STEP_INTERVAL RWY_MS
#define STEP_SIDES    512 /* looked at in one step */
/* Answered READs and ATOMICs in front of a flow that are looked through: as many as a host has. */
#define ANSWERED_MAX ROCE_RESP_RD_MAX
/*
 * CLOSING lasts for this time and two round trips at most, so that no host gives up; and as long as
 * it takes to tell the far gateways.
 */
#define CLOSING_MAX (20 * RWY_MS)
#define AGAIN       4 /* times as long hosts are served after that */
/* Times as long far gateways have to hear that nothing is owed: the message may be lost twice. */
#define TELLING 3

#define NONE UINT8_MAX /* the event does not happen in this state */

static const uint8_t settle_next[][ENG_SETTLE_EVENTS] = {
    /* clang-format off */
    /*                BEGIN         CANCEL       OWED          LATE          KEPT */
    [ENG_SERVING]  = {ENG_SETTLING, ENG_SERVING, NONE,         NONE,         NONE},
    [ENG_SETTLING] = {NONE,         ENG_SERVING, ENG_SETTLING, NONE,         ENG_CLOSING},
    [ENG_CLOSING]  = {NONE,         ENG_SERVING, ENG_CLOSING,  ENG_SETTLING, ENG_SETTLED},
    [ENG_SETTLED]  = {NONE,         ENG_SERVING, NONE,         NONE,         NONE},
    /* clang-format on */
};

/*
 * Nothing has measured it where nothing was sent since the tunnel came up: right after a start, or
 * at a worker without hosts. Other workers and the far gateway wait for it all the same.
 */
static rwy_dur round_trip(const struct eng_tunnel *t)
{
	if (!t->wan)
		return 0;
	return t->min_rtt || !t->up ? t->min_rtt : t->e->cfg.tunnel[t->idx].wan.cc_cfg.initial_rtt;
}

static rwy_dur longest_closing(const struct eng *e)
{
	rwy_dur rtt = 0;

	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		rtt = rwy_time_max(rtt, round_trip(&e->tunnel[i]));
	return CLOSING_MAX + 2 * rtt;
}

static void pass_begin(struct eng_settle *s, rwy_time at)
{
	s->cursor = 0;
	s->flows = 0;
	s->bytes = 0;
	s->kept = 0;
	s->own = 0;
	s->at = at;
}

static void settle_enter(struct eng *e, enum eng_settle_event ev, rwy_time now)
{
	struct eng_settle *s = &e->settle;
	enum eng_settle_state from = s->state, to = settle_next[from][ev];

	assert(to != NONE);
	s->state = to;
	pass_begin(s, to == ENG_SERVING || to == ENG_SETTLED ? RWY_NEVER : now + STEP_INTERVAL);
	if (to == from)
		return;
	eng_record_engine(e,
	    &(struct eng_record){.kind = ENG_REC_DRAIN, .from = (uint8_t)from, .to = (uint8_t)to}, NULL, now);
	s->marking = to == ENG_SETTLING;
	if (to == ENG_SETTLED && s->told)
		eng_peer_log_untold(e);
	if (s->told && (to == ENG_SERVING || to == ENG_SETTLING)) {
		s->told = false;
		eng_peer_tell(e, false, now);
	}
	if (to == ENG_CLOSING)
		s->turn_at = now + longest_closing(e);
	else if (to == ENG_SETTLING)
		s->turn_at = from == ENG_CLOSING ? now + AGAIN * longest_closing(e) : now;
}

/* --- what a connection owes ------------------------------------------------------------------- */

static bool has_response(const struct rwy_buf *b)
{
	return b->kind == RWY_BUF_PACKET &&
	       (b->opcode == ROCE_RC_READ_REQ || roce_op_is_atomic(roce_op(b->opcode)));
}

/*
 * The oldest request that the far host has not acknowledged. READs and ATOMICs are left out: one
 * that the host has an ACK for was answered.
 */
static const struct rwy_buf *oldest_undelivered(const struct eng_responder *rs, bool *more)
{
	const struct rwy_buf *b = NULL;
	uint32_t i = 0;

	while (i < ANSWERED_MAX && (b = wan_tx_peek(rs->requests, i)) && has_response(b))
		i++;
	*more = i == ANSWERED_MAX;
	return b;
}

/* Bytes that the connection owes, an estimate; 0: nothing. bar: PSN up to where promises count. */
static uint64_t owed_before(const struct eng_responder *rs, roce_psn bar)
{
	const struct rwy_buf *b;
	uint64_t bytes;
	bool more;

	if (!rs->requests || !(b = oldest_undelivered(rs, &more)))
		return 0;
	if (!more && !roce_psn_before(b->psn, bar))
		return 0;
	bytes = (uint64_t)((bar - b->psn) & ROCE_PSN_MASK) * (rs->resp.pmtu ? rs->resp.pmtu : b->len);
	return bytes && bytes < rs->custody ? bytes : rs->custody;
}

/*
 * The host has ACKs up to this PSN, or may: a host that is silent since a takeover has those of the
 * gateway before, whatever the mode allows now.
 */
static roce_psn promised(const struct eng_responder *rs)
{
	const roce_psn acked = eng_responder_acked(rs);

	return roce_psn_before(rs->resp.allow_psn, acked) ? acked : rs->resp.allow_psn;
}

/*
 * Where the ack mode was another one when the last requests came, copies begin now, and what the
 * host has ACKs for is owed until they are there.
 */
static bool the_standby_has(struct eng_responder *rs)
{
	struct eng *e = rs->side.e;

	if (e->sb.state != ENG_SB_PAIRED || !eng_copy_gates(rs))
		return false;
	eng_copy_begin(rs, e->now);
	return rs->copy && !roce_psn_before(rs->copy->psn, promised(rs));
}

static void look_at(struct eng *e, struct eng_responder *rs)
{
	struct eng_settle *s = &e->settle;
	roce_psn bar = promised(rs);
	uint64_t bytes;

	if (s->marking)
		rs->settle_psn = bar;
	else if (s->state == ENG_SETTLING && roce_psn_before(rs->settle_psn, bar))
		bar = rs->settle_psn;
	bytes = owed_before(rs, bar);
	if (!bytes && (rs->side.state == ENG_R_RESUMING || (s->state == ENG_CLOSING && rs->resp.rd_n)))
		bytes = rs->custody;
	if (the_standby_has(rs)) {
		s->kept += bytes != 0;
		return;
	}
	s->own++;
	s->flows += bytes != 0;
	s->bytes += bytes;
}

/* --- passes ----------------------------------------------------------------------------------- */

/* Looks at all sides of a bucket; returns how many. */
static unsigned look_at_slot(struct eng *e, uint32_t slot)
{
	unsigned n = 0;

	for (struct eng_side *side = e->table[slot]; side; side = side->chain, n++)
		if (!side->is_requester && side->state != ENG_R_NEW)
			look_at(e, (struct eng_responder *)side);
	return n;
}

/*
 * Nothing is owed. Far gateways must know before the process ends, but for those of a pair whose
 * standby has all connections. True: they do, or have not heard of it for too long.
 */
static bool far_gateways_know(struct eng *e, rwy_time now)
{
	struct eng_settle *s = &e->settle;

	if (!s->own && e->sb.state == ENG_SB_PAIRED)
		return true;
	if (!s->told) {
		s->told = true;
		s->turn_at = now + TELLING * longest_closing(e);
		eng_peer_tell(e, true, now);
	}
	return eng_peer_told(e) || now >= s->turn_at;
}

/* The result of the pass. */
static enum eng_settle_event result(struct eng *e, rwy_time now)
{
	struct eng_settle *s = &e->settle;

	if (s->state == ENG_SETTLING)
		return s->flows || now < s->turn_at ? ENG_SETTLE_OWED : ENG_SETTLE_KEPT;
	if (!s->flows)
		return far_gateways_know(e, now) ? ENG_SETTLE_KEPT : ENG_SETTLE_OWED;
	return now < s->turn_at ? ENG_SETTLE_OWED : ENG_SETTLE_LATE;
}

static void pass_end(struct eng *e, rwy_time now)
{
	struct eng_settle *s = &e->settle;
	enum eng_settle_event ev;

	/* Nobody has asked yet about what an earlier process promised. */
	s->flows += e->restore_at != RWY_NEVER;
	s->flows_left = s->flows;
	s->bytes_left = s->bytes;
	s->kept_left = s->kept;
	s->marking = false;
	ev = result(e, now);
	/* Another worker closes, settles and tells later, but not by more than this. */
	if (e->cfg.lanes)
		ev = eng_settle_together(e, ev, now >= s->turn_at + 2 * longest_closing(e));
	settle_enter(e, ev, now);
}

void eng_settle_step(struct eng *e, rwy_time now)
{
	struct eng_settle *s = &e->settle;
	unsigned looked = 0;

	while (looked < STEP_SIDES && (s->cursor = eng_table_next(e, s->cursor)) <= e->table_mask)
		looked += look_at_slot(e, s->cursor++);
	s->at = now + STEP_INTERVAL;
	if (s->cursor > e->table_mask)
		pass_end(e, now);
}

/* --- calls of the gateway --------------------------------------------------------------------- */

void eng_settle_begin(struct eng *e, rwy_time now)
{
	if (e->settle.state != ENG_SERVING)
		return;
	e->settle.flows_left = e->sides - e->paired;
	e->settle.bytes_left = e->mem.kind[ENG_MEM_CUSTODY] + e->mem.kind[ENG_MEM_UNPAIRED];
	eng_settle_alone(e);
	settle_enter(e, ENG_SETTLE_BEGIN, now);
}

void eng_settle_cancel(struct eng *e, rwy_time now)
{
	eng_settle_alone(e);
	settle_enter(e, ENG_SETTLE_CANCEL, now);
	e->settle.flows_left = 0;
	e->settle.bytes_left = 0;
	e->settle.kept_left = 0;
}

void eng_settle_get(const struct eng *e, struct eng_settle_info *out)
{
	*out = (struct eng_settle_info){.state = e->settle.state,
	    .flows = e->settle.flows_left,
	    .bytes = e->settle.bytes_left,
	    .kept = e->settle.kept_left};
}
