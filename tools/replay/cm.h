/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CM messages of each connection of a schedule, as steps that its hosts can take again: each
 * once, in the order of the capture. A connection whose set-up is not in the capture as a whole, or
 * does not fit what follows, has none.
 */
#ifndef TOOLS_REPLAY_CM_H
#define TOOLS_REPLAY_CM_H

#include "tools/replay/schedule.h"

struct rp_cm_step {
	const struct rp_cm *cm;
	uint8_t side;  /* of the connection, that sends it */
	uint16_t attr; /* enum roce_cm_attr */
	uint32_t comm; /* the sender's communication ID */
};

struct rp_setup {
	struct rp_cm_step *step;
	uint32_t steps; /* 0: its hosts begin without */
	uint32_t ready; /* the step with which the connection is set up: its RTU */
};

/* One for each connection of s, into out[s->conns], which is all zero. RWY_ENOMEM. */
RWY_MUST_CHECK int rp_setups_make(const struct rp_schedule *s, struct rp_setup *out);
void rp_setups_free(const struct rp_schedule *s, struct rp_setup *v);

#endif
