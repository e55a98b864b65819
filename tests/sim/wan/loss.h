/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The losses of a path: independent, or in bursts (Gilbert-Elliott: nothing is lost in the good
 * state, everything in the bad one). The line clocks the bursts: they also pass while nothing is
 * sent. Links and reference models share this, so that both lose the same packets for a seed.
 */
#ifndef SIM_WAN_LOSS_H
#define SIM_WAN_LOSS_H

#include <stdbool.h>

#include "tests/lib/rng.h"

struct loss {
	uint64_t rng;
	double enter;       /* probability that a packet after a delivered one is lost */
	double stay;        /* probability that a packet after a lost one is lost */
	uint64_t good, bad; /* packets left in the present stay in each state */
};

static inline void loss_init(struct loss *l, double p, double burst, uint64_t seed)
{
	bool bursts = burst > 1;

	l->rng = seed;
	l->stay = bursts ? 1 - 1 / burst : 0;
	/* In the long run the share p is lost: p = enter / (enter + 1 - stay). */
	l->enter = bursts ? p / (1 - p) / burst : p;
	l->good = rng_geometric(&l->rng, l->enter);
	l->bad = 0;
}

/* The line was idle for so many packet times. */
static inline void loss_idle(struct loss *l, double packets)
{
	l->bad = packets >= (double)l->bad ? 0 : l->bad - (uint64_t)packets;
}

static inline bool loss_next(struct loss *l)
{
	if (l->bad) {
		l->bad--;
		return true;
	}
	if (l->good) {
		l->good--;
		return false;
	}
	if (l->stay > 0) {
		l->bad = rng_geometric(&l->rng, 1 - l->stay);
		l->good = rng_geometric(&l->rng, l->enter);
		/* The packet that ends a burst was not drawn; it is delivered. */
		l->good = l->good == UINT64_MAX ? l->good : l->good + 1;
	} else {
		l->good = rng_geometric(&l->rng, l->enter);
	}
	return true;
}

#endif
