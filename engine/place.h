/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker of a connection, where a gateway steers by queue pair (directory.h). Without a
 * directory every connection is here.
 */
#ifndef ENGINE_PLACE_H
#define ENGINE_PLACE_H

#include "engine/eng.h"
#include "engine/note.h"

/* Workers over which connections are steered by queue pair; 0: they are not. */
static inline uint8_t eng_place_workers(const struct eng *e)
{
	return e->cfg.directory ? e->cfg.workers : 0;
}
/* This engine is the home of the key's address pair, or there are no others. */
bool eng_place_is_home(const struct eng *e, const struct eng_key *k);
/* Number of the home worker of the key's address pair. */
unsigned eng_place_home(const struct eng *e, const struct eng_key *k);
/* Another worker has the side of that key: its number; -1: none has. */
int eng_place_elsewhere(const struct eng *e, const struct eng_key *k, bool requester);
/* The turn of the key's address pair in the directory. Each tenant has turns of its own. */
uint32_t eng_place_turn(const struct eng *e, const struct eng_key *k);
/* Another worker has the turn of the key's address pair: its number; -1: none has. */
int eng_place_turn_elsewhere(const struct eng *e, const struct eng_key *k);
/*
 * A side with that key begins here. False: another worker has it, or the directory has no room; the
 * side must not begin.
 */
bool eng_place_enter(struct eng *e, const struct eng_key *k, bool requester);
/* The directory has no side of that key here any longer. */
void eng_place_leave(struct eng *e, const struct eng_key *k, bool requester);
/* A side that was entered has begun, and is gone. */
void eng_place_began(struct eng_side *side);
void eng_place_gone(const struct eng_side *side);
/*
 * The worker for a connection that begins, by the QPN of the host with the lower address: the same
 * at both gateways. peer: eng_open.workers of the other one; if that is not ours, it is the home
 * worker.
 */
unsigned eng_place_choose(
    const struct eng *e, uint8_t peer, const struct eng_key *requests, uint32_t local_qpn);
/*
 * The connection may begin again at another worker, with the host's response pkt to the first
 * question of rq; rs: the same host's own requests, or NULL. False when a host has ACKs, after a
 * NAK, when the question was repeated (a late answer must find its flow here), when the far gateway
 * has sent rs here (it stays here then), and where only CM sets connections up (its home worker
 * alone knows these).
 */
bool eng_place_may_move(
    const struct eng_responder *rs, const struct eng_requester *rq, const struct roce_pkt *pkt);
/*
 * The host's QP that rq asks is connected to QP `qpn`: where another worker has its own requests to
 * that, they are asked to come here. to: what eng_place_choose names, where they may wait instead;
 * this worker: they have to come. True: another one has.
 */
bool eng_place_ask_leave(struct eng_requester *rq, uint32_t qpn, unsigned to);
/*
 * The host's QP that rs knows has a connection here. A requester side of it that another worker
 * has, and whose flow has ended, is of an earlier one, and goes.
 */
void eng_place_end_before(const struct eng_responder *rs);
/* Sends the note. False: there was no room; counted, and its buffer is freed. */
bool eng_place_send(struct eng *e, unsigned worker, const struct eng_note *n);
/* The side will be at that worker, and is not here any longer. */
void eng_place_announce(struct eng *e, const struct eng_key *k, bool requester, unsigned worker);
/* The other worker did not get the note about it: the directory has no side of that key there. */
void eng_place_recall(struct eng *e, const struct eng_key *k, bool requester, unsigned worker);

#endif
