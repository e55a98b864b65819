/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the engines of all worlds entered each cell of their state tables (engine/states.h,
 * roce/resp_states.h).
 */
#ifndef TESTS_SIM_STATES_H
#define TESTS_SIM_STATES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/states.h"

/* The counts, shared by the processes of a run. */
struct sim_states {
	_Atomic uint64_t requester[ENG_Q_STATES][ENG_QE_EVENTS];
	_Atomic uint64_t responder[ENG_R_STATES][ENG_RE_EVENTS];
	_Atomic uint64_t reuse[ENG_REUSE_CASE_COUNT];
	_Atomic uint64_t resp[ROCE_RS_COUNT][ROCE_RSE_COUNT];
	_Atomic uint64_t standby[ENG_SB_STATE_COUNT][ENG_SB_EVENT_COUNT];
};

/* Sets the target of sim_states_add(); before the first call there is none. */
void sim_states_into(struct sim_states *s);
/* Adds the counts of an engine that ends. */
void sim_states_add(const struct eng_states_seen *seen);

/* Prints how many of the possible cells were entered; `all`: and each cell with its count. */
void sim_states_print(const struct sim_states *s, bool all);

#endif
