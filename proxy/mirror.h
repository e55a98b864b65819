/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair of relays: the one that serves tells the other one, its standby, of each link, in messages
 * over the pair's own tunnel, in order (docs/wire-format.md). The standby keeps them in its own
 * table. What tells a host of a link waits until the standby has that link.
 *
 * Messages are numbered, and the standby says up to which number it has them. A *round* begins with
 * BEGIN when the standby has nothing, or may lack something: then all links are told, some each
 * turn, and with DONE the standby forgets those that were not. Until then it keeps what it had, as
 * long as its table has room. If a message is lost, the standby takes no more until another round.
 *
 * It sends in proxy_mirror_turn() alone, so links may change inside an engine's callbacks. Memory
 * is bounded: links that wait to be told are in a ring, and when that is full, all are looked at.
 * Thread: the one that owns the edge.
 */
#ifndef PROXY_MIRROR_H
#define PROXY_MIRROR_H

#include "proxy/edge.h"

#define PROXY_MIRROR_LEN  112  /* bytes of a message at most */
#define PROXY_MIRROR_RING 256  /* changes that are told first; a power of two */
#define PROXY_MIRROR_GONE 1024 /* removed links that are not told yet; above, all is told again */

struct proxy_mirror {
	struct proxy_edge *edge;
	/* Sends a message to the other relay; false: try again with the next turn. */
	bool (*send)(void *ctx, const uint8_t *bytes, uint32_t len);
	void *ctx;

	/* serves, and has a standby */
	uint32_t round;      /* the caller's; 0: there is no standby */
	bool begun;          /* BEGIN was sent, and nothing was lost since */
	uint64_t sent, had;  /* the last message; the last one that the standby has */
	uint64_t base, done; /* BEGIN and DONE of this round; done 0: not all is told yet */
	rwy_time moved;      /* when `had` grew, or nothing was missing */
	uint32_t cursor;     /* of the table */
	uint32_t head, tail; /* of the ring */
	uint32_t ring[PROXY_MIRROR_RING];
	unsigned gone;
	uint8_t gone_msg[PROXY_MIRROR_GONE][PROXY_MIRROR_LEN];

	/* is the standby */
	uint64_t heard, answered; /* the last message; the last one that was confirmed */
	uint64_t serial, first;   /* of messages, counted here; that of BEGIN */
	bool listens;             /* no message was lost since BEGIN */
	bool sweeps;              /* links that were not told since BEGIN go */
	uint32_t sweep;           /* cursor of that */
	uint32_t closed;          /* likewise, of closed ones: they go first for want of room */
};

/* edge and what send and ctx need outlive it. cfg, for the edge's table, tells of changes. */
void proxy_mirror_init(struct proxy_mirror *m, struct proxy_edge *edge, struct proxy_map_cfg *cfg);

/*
 * Once a turn. round: 0 if there is no standby; it changes when the standby has nothing. Returns
 * how many messages were sent.
 */
unsigned proxy_mirror_turn(struct proxy_mirror *m, uint32_t round, rwy_time now);
/* Whether the standby has all links that there were when this round began, and later ones. */
bool proxy_mirror_whole(const struct proxy_mirror *m, uint32_t round);
/* Whether the standby has the link as it is. */
bool proxy_mirror_has(const struct proxy_mirror *m, const struct proxy_link *l);

/* A message of the other relay. serves: this one does, and takes no links of it. */
void proxy_mirror_hear(struct proxy_mirror *m, const uint8_t *bytes, uint32_t len, bool serves, rwy_time now);

#endif
