/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairing: finding out which two flows are one connection (pair.c), passively or from CM messages
 * (cm.c). docs/architecture.md, "Pairing", has the method.
 */
#ifndef ENGINE_PAIR_H
#define ENGINE_PAIR_H

#include "engine/eng.h"

/* A host that was silent answers within this time all that it was asked meanwhile. */
#define ENG_AT_ONCE (2 * RWY_MS)

/* An unpaired flow from `remote` to `local` waits for the local host's first response. */
bool eng_pair_is_waiting(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local);
/* Joins two sides and fills in each other's QPN. Earlier pairings of both are undone. */
void eng_pair_join(struct eng_responder *rs, struct eng_requester *rq, enum eng_learned how);
/* Separates rq from its responder side, which must exist. */
void eng_pair_undo(struct eng_requester *rq);
/* An unpaired flow has its first packet: queues it for its turn. */
void eng_pair_queue(struct eng_requester *rq, rwy_time now);
/* The flow is paired, failed or freed: it gives up its turn, if it had one. */
void eng_pair_leave(struct eng_requester *rq, rwy_time now);
/*
 * The requester side that a local host's response pkt belongs to; NULL: none. rs is the responder
 * side with the key of the packet, or NULL.
 */
struct eng_requester *eng_pair_owner(
    struct eng *e, uint32_t tenant, const struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now);
/*
 * The local host's response pkt may be to what rq, its requester side, sent: now, or a late one. If
 * not, it may be the first response of a flow that another worker has.
 */
bool eng_pair_may_answer(const struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now);
/* Begins and ends turns that are due. Call with each tick of the wheel. */
void eng_pair_tick(struct eng *e, rwy_time now);
/* When eng_pair_tick() has something to do; RWY_NEVER: no turn waits. */
rwy_time eng_pair_next(const struct eng *e);
/*
 * Reads a CM message, pkt, which is b's. tunnel: it came by; ENG_NOTE_LAN: from the LAN. False: not
 * to be carried now, and b is taken. It is malformed, or there is no memory for the connection that
 * it sets up, or to read it; its host sends it again. Or another worker is to have the connection:
 * the message goes when that worker has it (note.h).
 */
bool eng_cm_learn(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, uint8_t tunnel,
    struct rwy_buf *b, rwy_time now);
/* The key of the requests of the connection that pkt, a DREQ, ends. False: it is no DREQ. */
bool eng_cm_dreq_key(uint32_t tenant, const struct roce_pkt *pkt, struct eng_key *k);
/*
 * pkt, which is b's, is a DREQ of a connection that another worker has: that one is asked whether
 * it may go, and gets b (note.h). tunnel: it came by; ENG_NOTE_LAN: from the LAN. False: b stays.
 */
bool eng_cm_asks_elsewhere(
    struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, uint8_t tunnel, struct rwy_buf *b);
/* Notes CM_OPEN and CM_CLOSE of another worker (note.h). */
void eng_cm_open_note(struct eng *e, const struct eng_note *n, rwy_time now);
void eng_cm_close_note(struct eng *e, const struct eng_note *n, rwy_time now);
/* A CM message, n->b, that the worker of its connection lets go: CM_OPENED, DREQ_GOES. */
void eng_cm_goes(struct eng *e, const struct eng_note *n, rwy_time now);
/*
 * pkt is a DREQ of a local host that must wait for its requests: their responder side. NULL: it
 * may go now, or is another message.
 */
struct eng_responder *eng_cm_dreq_waits(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt);

#endif
