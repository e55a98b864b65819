/* SPDX-License-Identifier: Apache-2.0 */
/* The law of memory (engine/memory.h), checked while worlds run. */
#ifndef TESTS_SIM_ACCOUNTS_H
#define TESTS_SIM_ACCOUNTS_H

#include "engine/engine.h"

/* Of an engine after the check before: bytes above reservations, those with all reservations, and of
 * requests. */
struct sim_common {
	uint64_t used, taken, requests;
};

/*
 * NULL, or what is wrong: the engine has other buffers than it has charged or counts of its tunnels; somebody
 * holds more than may be; a tenant could not have what is reserved for it. `bufs`: buffers that the engine
 * has. A reservation that comes while others hold that memory is there when they have released it.
 */
const char *sim_accounts_check(const struct eng *e, uint64_t bufs, struct sim_common *before);
/* The same by a walk over all connections: each holds what it is charged for, and the sums are right. */
const char *sim_accounts_walk(const struct eng *e);

#endif
