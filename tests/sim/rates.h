/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations (engine/reservation.h), checked while worlds run: nobody sends more than is
 * reserved for it, what is reserved comes before what is not, and a pair's flows are in its
 * reservation.
 */
#ifndef TESTS_SIM_RATES_H
#define TESTS_SIM_RATES_H

#include "engine/engine.h"

#define SIM_RATES 40 /* numbers of reservations are below */

/* Of one engine, by number. */
struct sim_rates {
	/* For how long, in s, it may send at its rate: what the time gave, up to what a class may
	 * catch up with, less what it sent. */
	double credit[SIM_RATES];
	uint64_t sent[SIM_RATES];
	bool known[SIM_RATES];
	bool due[SIM_RATES]; /* before the turn it waited, and had had less than is reserved */
	uint64_t shared;     /* bytes that all classes had sent without a guarantee */
	rwy_time at;         /* of the last turn; 0: there was none */
	/* The engine's set of assignments, and since when it has it. */
	uint32_t gen;
	rwy_time gen_at;
};

/* Before and after a turn of the engine. NULL, or what is wrong. */
void sim_rates_before(const struct eng *e, struct sim_rates *k, rwy_time now);
const char *sim_rates_after(const struct eng *e, struct sim_rates *k, rwy_time now);
/* The flows of all connections are in the class that the assignments say. NULL, or what is wrong. */
const char *sim_rates_walk(const struct eng *e, const struct sim_rates *k, rwy_time now);

#endif
