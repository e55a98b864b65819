/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile tenant (`hostile`, `htenant`, `hrate`), whose hosts do what harms others:
 *   deaf   its flows' hosts ignore all acknowledgements and CNPs, send all that they have again
 *          every `rto`, and never give up; they hear again at `time`, so that all can end
 *   bogus  its first host sends WRITEs at `hrate` to queue pairs that nobody has
 *   cm     its first host sends CM REQs at `hrate`, each for another queue pair
 */
#ifndef SIM_DC_HOSTILE_H
#define SIM_DC_HOSTILE_H

#include "tests/sim/dc/dc.h"

/* QPNs from this on, and QP 1, are only in packets of `bogus` and `cm`. No queue pair takes them. */
#define DC_BOGUS_QPN (1u << 23)

struct hostile {
	struct dc *dc;
	struct ev ev;
	uint64_t rng;
	uint32_t n; /* packets sent */
};

static inline bool dc_is_hostile(uint32_t dqpn)
{
	return dqpn == 1 || dqpn >= DC_BOGUS_QPN;
}

/* Sends from now until `time`, if the way is bogus or cm. */
void dc_hostile_begin(struct hostile *h, struct dc *dc);

#endif
