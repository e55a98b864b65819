/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs' demands that are bytes and a time (plan/shape.h): transfers with a deadline, and bursts. */
#ifndef CONTROLLER_JOB_SHAPE_H
#define CONTROLLER_JOB_SHAPE_H

#include "controller/server/req.h"
#include "controller/state/ctlr.h"

/* The demand of one pair of a job, or of each pair of its ranks. */
struct ctlr_shape {
	uint64_t bandwidth_bps; /* payload, whatever the shape */
	uint64_t bytes, us;     /* 0: a rate was asked for; else `bytes` within `us` */
	bool burst;             /* again and again */
};

/* Checks what the tables of model.h cannot. False: the reply says why. */
bool ctlr_shape_sensible(struct ctlr_req *r, const struct model_job *m);
/* When the time of the request's job begins: wall clock, ms, the same however often it runs. */
uint64_t ctlr_shape_since(struct ctlr_req *r);
/* since_ms: when the job's time began. i counts the pairs as posted. */
struct ctlr_shape ctlr_shape_of(const struct model_job *m, unsigned i, uint64_t since_ms);
/* Until when its transfers must be there: wall clock, ms; 0: it has none. */
uint64_t ctlr_shape_deadline(const struct model_job *m, uint64_t since_ms);
/* Adds since_ms and deadline_ms to a job's record; the job ends with its deadline. */
void ctlr_shape_put(json_t *record, const struct model_job *m, uint64_t since_ms);
/* Takes them over from the present record. */
void ctlr_shape_keep(json_t *record, const json_t *old);
/* The time, in the field of its shape, that would fit instead if `fits_bps` were there for all that
 * asks for asked_bps. Nothing for a rate. */
void ctlr_shape_fits(json_t *fits, const struct ctlr_shape *s, uint64_t asked_bps, uint64_t fits_bps);

#endif
