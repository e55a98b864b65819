/* SPDX-License-Identifier: Apache-2.0 */
/* rwystall: how long queue pairs stand still when something happens to a pair of gateways. */
#ifndef TESTS_SIM_STALL_STALL_H
#define TESTS_SIM_STALL_STALL_H

#include "tests/lib/rc_host.h"
#include "tests/sim/world_int.h"

#define STALL_OPS 5 /* WRITE, SEND, READ, ATOMIC, all of them in turn */

enum stall_event { STALL_NOTHING, STALL_KILL, STALL_HAND_OVER, STALL_STILL, STALL_CABLE, STALL_STANDBY };

/* What the command line says: numbers as tests/sim/dc/words.h stores them; times in ns. */
struct stall_scen {
	double seed, rounds, rtt, loss, qps, size, depth, gap, beat, timeout, keys, workers, nic, both, trace;
	unsigned event; /* enum stall_event */
};

/* What one event did. Times are since the event; RWY_NEVER: it did not happen. */
struct stall_round {
	rwy_dur noticed, served, whole;
	unsigned failed; /* operations with an error */
	/* of each operation and each site of the requester: the longest time without a completion of
	 * each queue pair */
	rwy_dur *stall[STALL_OPS][2];
	unsigned n[STALL_OPS][2];
};

/* A world, an event, and what came of it. Room for s->qps stalls is in *out. */
void stall_run(const struct stall_scen *s, uint64_t seed, struct stall_round *out);

#endif
