/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in virtual time. An event is a member of the object it belongs to (a port, a queue pair, a
 * gateway), so setting, moving and cancelling it allocates nothing. Events of the same ns happen in
 * the order in which they were set.
 */
#ifndef SIM_DC_EV_H
#define SIM_DC_EV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/time.h"

struct ev {
	void (*fn)(struct ev *ev, rwy_time now);
	uint32_t pos; /* position in the heap, from 1; 0: not set */
};

struct ev_slot {
	rwy_time at;
	uint64_t order;
	struct ev *ev;
};

struct evq {
	struct ev_slot *heap; /* four children per node; [0] is unused */
	uint32_t n, cap;
	uint64_t order, fired;
	rwy_time now;
};

void ev_set(struct evq *q, struct ev *ev, rwy_time at);   /* sets it, or moves it if it is set */
void ev_cancel(struct evq *q, struct ev *ev);             /* no effect if it is not set */
rwy_time ev_at(const struct evq *q, const struct ev *ev); /* RWY_NEVER: it is not set */
/* Executes the next event. False: there is none before `until`; now is `until`. */
bool ev_step(struct evq *q, rwy_time until);
void evq_fini(struct evq *q);

/* The object that has this event as a member. */
#define EV_OWNER(ev, type, member) ((type *)(void *)((char *)(ev)-offsetof(type, member)))

#endif
