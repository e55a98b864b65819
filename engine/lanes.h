/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel has a lane for each worker: worker k of one gateway talks to worker k of the other one.
 * Its lanes are one tunnel in three respects. A process has one epoch for all of them. Where the
 * peer is one of a pair (standby.h), worker 0 decides as the witness which of the two processes has
 * the tunnel; the lanes of the others go with it (wan_claim_led). And a lane that comes up for the
 * first time when the peer's first process has ended knows by the others that it did: CM may have
 * set up connections of that process here.
 *
 * The workers also settle together (settle_together.c).
 *
 * The workers share this table. Thread: eng_lanes_begin(): any, while no engine has that tunnel;
 * the rest belongs to the engines.
 */
#ifndef ENGINE_LANES_H
#define ENGINE_LANES_H

#include <stdatomic.h>

#include "engine/directory.h"
#include "engine/engine.h"
#include "wan/claim.h"

struct eng_lanes {
	_Atomic uint32_t changes; /* of `peer`; wraps */
	struct {
		_Atomic uint64_t epoch; /* of this process */
		_Atomic uint64_t peer;  /* that worker 0 believes; 0: none yet */
		_Atomic uint64_t first; /* that some worker believed first; 0: none yet */
	} tunnel[ENG_TUNNELS_MAX];
	struct {
		/* by worker 0: even: SETTLING; odd: CLOSING */
		_Atomic uint32_t turn;
		_Atomic uint32_t over; /* the odd turn in which nobody owed anything any more */
		/* by each worker: how its turn goes */
		_Atomic uint32_t said[ENG_WORKERS_MAX];
	} settle;
};

/* A tunnel is about to be made: the epoch of all its lanes, not 0. */
static inline void eng_lanes_begin(struct eng_lanes *l, unsigned tunnel, uint64_t epoch)
{
	atomic_store(&l->tunnel[tunnel].epoch, epoch);
	atomic_store(&l->tunnel[tunnel].peer, 0);
	atomic_store(&l->tunnel[tunnel].first, 0);
	atomic_fetch_add(&l->changes, 1);
}

#endif
