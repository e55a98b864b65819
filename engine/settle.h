/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settling, which operators call draining (`roceway drain`): before a gateway stops, all that it
 * acknowledged to its hosts reaches the far hosts, so that the end of the process loses nothing.
 * engine.h has the calls of the gateway. Not engine/drain.c, which bounds what is under way to a
 * host.
 *
 * SETTLING: a request is acknowledged when the far host has it, in every ack mode. Hosts go on at
 * the speed of the whole path, and nothing new is promised to them. From CLOSING on no new request
 * is accepted: hosts wait, as after a loss. A connection owes a request that its host has an ACK
 * for and the far host has not, and the answers of its READs and ATOMICs: a far host executes an
 * ATOMIC once, so the answer must not be lost with the process.
 *
 * When nothing is owed any more, the far gateways are told (peer.h), and then it is SETTLED. The
 * workers of a gateway go from state to state together.
 */
#ifndef ENGINE_SETTLE_H
#define ENGINE_SETTLE_H

#include "engine/eng.h"

/*
 * The gateway promises its hosts something. After settling this is true only once the far gateway
 * knows that it serves again (SERVING, peer.h).
 */
static inline bool eng_serving(const struct eng_responder *rs)
{
	const struct eng *e = rs->side.e;

	return e->settle.state == ENG_SERVING &&
	       !(e->settle.unheard && e->tunnel[rs->side.tunnel].peer.unheard);
}

/*
 * Acknowledging goes by the tenant's ack mode. After REWIND it does so only once the far host has
 * executed a request. Else two hosts with ACKs for everything could reset their QPs, and the far
 * host's new QP would execute a request of the old connection.
 */
static inline bool eng_acks_by_mode(const struct eng_responder *rs)
{
	return !rs->rewound && eng_serving(rs);
}

/* A host whose timer ran out gets a single ACK: others still wait for what was promised before. */
static inline bool eng_settle_singles(const struct eng *e)
{
	return e->settle.state == ENG_SETTLING;
}

/* The request is a new one, and comes too late: dropped; the host sends it again. */
static inline bool eng_settle_refuses(const struct eng_responder *rs, const struct roce_pkt *pkt)
{
	return rs->side.e->settle.state >= ENG_CLOSING && rs->side.state != ENG_R_FAILED &&
	       !roce_psn_before(pkt->psn, rs->resp.epsn);
}

/* Looks at some connections, and changes the state after the last one. At e->settle.at. */
void eng_settle_step(struct eng *e, rwy_time now);

/* OWED, KEPT: the result of a pass. LATE: still owed after the longest time of CLOSING. */
enum eng_settle_event {
	ENG_SETTLE_BEGIN,
	ENG_SETTLE_CANCEL,
	ENG_SETTLE_OWED,
	ENG_SETTLE_LATE,
	ENG_SETTLE_KEPT,
	ENG_SETTLE_EVENTS
};

/* --- settle_together.c: several workers (lanes.h) --- */
/* A worker's word: the turn that it is about, and how that goes. */
enum eng_settle_how { ENG_SETTLE_OWES, ENG_SETTLE_NOTHING, ENG_SETTLE_TOO_LONG, ENG_SETTLE_HOWS };
static inline uint32_t eng_settle_word(uint32_t turn, enum eng_settle_how how)
{
	return turn * ENG_SETTLE_HOWS + how;
}
/*
 * `own` is the result of this worker's pass. too_long: of worker 0 in CLOSING: it waits no longer
 * for others that say nothing. Returns the result of all workers.
 */
enum eng_settle_event eng_settle_together(struct eng *e, enum eng_settle_event own, bool too_long);
/* This worker begins or stops to settle. */
void eng_settle_alone(struct eng *e);

#endif
