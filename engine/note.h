/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes between the engines of a gateway that steers by queue pair (directory.h). CM messages name
 * no queue pair in their headers, so they go to the home worker of their address pair; what they
 * mean goes to the connection's worker by notes.
 */
#ifndef ENGINE_NOTE_H
#define ENGINE_NOTE_H

#include "engine/engine.h"
#include "roce/cm.h"

enum eng_note_type {
	/*
	 * conn: CM set it up; it is to be at worker `target`. b: the message that told so, of type
	 * `attr`, which waits for that.
	 */
	ENG_NOTE_CM_OPEN,
	/*
	 * b: that message; the home worker sends it. Without this note, as without memory, the
	 * message is gone, and CM's repeat asks again.
	 */
	ENG_NOTE_CM_OPENED,
	ENG_NOTE_CM_CLOSE, /* conn: CM ended it */
	/* b: a DREQ; may it go, or must it wait for its connection (mgmt.h, peer.h)? */
	ENG_NOTE_DREQ,
	ENG_NOTE_DREQ_GOES, /* b: the same, to the home worker: it may go */
	ENG_NOTE_PACKET,    /* b: an RC packet of a local host that belongs to nobody here */
	/*
	 * key: the host's requests come to you from now on; qpn: its own, 0: not known. begun: the
	 * first of them has PSN `first`, whichever comes first: some were under way.
	 */
	ENG_NOTE_MOVED,
	/*
	 * Worker `from` has the requester side of `key`, which the QP of its host answers that has
	 * your responder side to QP `qpn`. If its host has no ACK it goes there; else STAYS comes
	 * back, and the requester side goes, or fails if its near host may have ACKs, too. target:
	 * the worker for this connection at both gateways; what waits there for its first answer
	 * does not go: the far gateway asks the requester side's flow to come.
	 */
	ENG_NOTE_LEAVE,
	ENG_NOTE_STAYS,
	/*
	 * key: another gateway, which does not steer, opens this flow at the home worker; or its QP
	 * has a new connection at another one, to QP `qpn`, and what an earlier one left may go
	 */
	ENG_NOTE_LEFT,
};

struct eng_note {
	uint8_t type;      /* enum eng_note_type */
	uint8_t target;    /* CM_OPEN, LEAVE */
	uint8_t tunnel;    /* of b, a CM message: it came by this one; ENG_NOTE_LAN: from the LAN */
	uint8_t from;      /* LEAVE, STAYS: the sender's number; CM_OPEN: the home worker's */
	bool begun;        /* MOVED */
	roce_psn first;    /* MOVED */
	uint32_t tenant;   /* index */
	uint32_t qpn;      /* MOVED, LEAVE, STAYS, LEFT */
	struct rwy_buf *b; /* it moves with the note; NULL: none */
	union {
		struct roce_cm_conn conn;
		struct eng_key key;
		uint64_t epoch; /* DREQ from the WAN: of the process that carried it */
	};
};
#define ENG_NOTE_LAN UINT8_MAX

/* The engine's own note comes. Call before packets, as eng_ops.note says; it may send others. */
void eng_note_take(struct eng *e, const struct eng_note *n, rwy_time now);
/* Frees what the note has: no engine gets it any more. */
void eng_note_free(const struct rwy_bufs *bufs, const struct eng_note *n);

#endif
