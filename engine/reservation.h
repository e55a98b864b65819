/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: the share of a tunnel that an assignment gives to what one host sends to another,
 * or to one QP. Each is a class of the tunnel's scheduler (wan/sched.h) within its tenant's class.
 * A class is made in a tunnel when the first flow needs it, and stays.
 */
#ifndef ENGINE_RESERVATION_H
#define ENGINE_RESERVATION_H

#include "engine/eng.h"

/* Puts the flow that the side sends in into its reservation, else into its tenant's class. Call it
 * when the flow was opened. */
void eng_reservation_enter(struct eng_side *side, struct wan_txflow *f);
/* Does so for the open flow of a side if the set of assignments changed since. */
void eng_reservation_look(struct eng_side *side);
/* The side learned the QPN that its assignment may name: it will be looked at. */
static inline void eng_reservation_outdated(struct eng_side *side)
{
	eng_side_cold(side)->steering_gen = side->e->steering_gen - 1;
}

#endif
