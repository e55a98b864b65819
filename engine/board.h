/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of a pair of gateways with several workers (docs/standby.md, "Several workers"). Hosts and
 * switches know one gateway, so all workers must serve, or none. Worker 0 *leads*: it alone runs
 * the table of standby.c, with its own connection to the other gateway and to the witness. Each
 * other worker *follows*: it does with its own connections and tunnels what the state of the leader
 * asks for, and reports what happens to it.
 *
 * The board is how they talk: words that one worker writes and others read, once a turn.
 *
 * Thread: eng_board_new() and eng_board_free(): any; all others: those of the engines.
 */
#ifndef ENGINE_BOARD_H
#define ENGINE_BOARD_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"

#define ENG_BOARD_WORKERS 64
#define ENG_BOARD_LINE    64 /* bytes of a cache line: no two writers share one */

/* The leader's state, as it says it. */
struct eng_board_lead {
	uint32_t serial; /* of its state: another one with each change */
	/*
	 * Counts the times that the standby threw its copies away; wraps. A follower that missed
	 * some states knows by it whether its copies are still good.
	 */
	uint16_t cleared;
	uint8_t state; /* enum eng_sb_state */
	bool whole;    /* eng_sb.whole */
};

/* A follower, as it says of itself. */
struct eng_board_follow {
	uint32_t serial; /* of the leader's state that it follows */
	bool walked;     /* it has looked at all its connections in that state */
	bool linked;     /* its tunnel to the other gateway of the pair is up */
	bool serves;
};

struct eng_board {
	/* by the leader */
	alignas(ENG_BOARD_LINE) _Atomic uint64_t lead;
	_Atomic uint64_t term;
	/* by a follower, but for `confirmed` */
	struct {
		alignas(ENG_BOARD_LINE) _Atomic uint64_t follow;
		/* bits by enum eng_sb_event; the leader clears them */
		_Atomic uint32_t events;
		_Atomic uint32_t stood_still; /* times that it stood still (eng_sb_stood_still) */
		_Atomic uint32_t confirmed;   /* by the leader: it may speak */
	} of[ENG_BOARD_WORKERS];
};

/* RWY_ENOMEM: *out is not set. A process has one; its first leader begins with ASKING. */
RWY_MUST_CHECK int eng_board_new(struct eng_board **out);
/* No engine has it any longer. NULL allowed. */
void eng_board_free(struct eng_board *b);

/* Worker 0 says its state; any worker reads it. */
void eng_board_say(struct eng_board *b, const struct eng_board_lead *l);
struct eng_board_lead eng_board_hear(const struct eng_board *b);

/*
 * Worker `worker` (1 .. ENG_BOARD_WORKERS - 1) reports; worker 0 reads that. The first one returns
 * whether it is another report than the one before.
 */
bool eng_board_report(struct eng_board *b, unsigned worker, const struct eng_board_follow *f);
struct eng_board_follow eng_board_reported(const struct eng_board *b, unsigned worker);

#endif
