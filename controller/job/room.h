/* SPDX-License-Identifier: Apache-2.0 */
/* Room for a job that does not fit: what other jobs leave when they end, or give up for one with a
 * higher priority. Nothing is changed here. All locked. */
#ifndef CONTROLLER_JOB_ROOM_H
#define CONTROLLER_JOB_ROOM_H

#include "controller/state/ctlr.h"

#define ROOM_PREEMPT_MAX 24  /* jobs that one job preempts: they are one transaction with it */
#define ROOM_TRIALS_MAX  200 /* plans that are made to find them, with the lock held */

/* True if the job fits without the claims of n others. */
typedef bool ctlr_room_fits(void *ctx, struct ctlr_job *const *without, unsigned n);

/* The wall-clock time at which enough jobs other than `but` have ended; 0: not even all of those
 * that have an end are enough. */
uint64_t ctlr_room_later(struct ctlr *c, const struct ctlr_job *but, ctlr_room_fits *fits, void *ctx);
/*
 * The jobs of a lower priority that have to go, in out[ROOM_PREEMPT_MAX]: lowest priorities first,
 * of equal ones the youngest, and none that need not. Jobs with tunnels in networks stay. Returns
 * how many; 0: it does not fit without them either, too many would have to go, or it takes too many
 * trials to find them.
 */
unsigned ctlr_room_preempt(struct ctlr *c, const struct ctlr_job *but, uint64_t priority,
    ctlr_room_fits *fits, void *ctx, struct ctlr_job **out);

#endif
