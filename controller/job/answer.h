/* SPDX-License-Identifier: Apache-2.0 */
/* A planner's result as JSON. All locked. */
#ifndef CONTROLLER_JOB_ANSWER_H
#define CONTROLLER_JOB_ANSWER_H

#include "controller/plan/job.h"
#include "controller/server/req.h"
#include "controller/state/ctlr.h"

/* Makes a job's record. network: its reference is taken over. was: the row of each pair in the
 * present record, which it keeps if it has no new one; NULL: a new job. */
json_t *ctlr_answer_record(const struct plan_job_result *res, const struct plan_job_pair *pairs,
    json_t *posted, json_t **was, json_t *network);
/* Refuses the job: one line for each pair of sites that does not fit, with its first pair of
 * addresses. later_ms: wall clock, when it would fit as it is; 0: nobody knows. */
void ctlr_answer_refuse(struct ctlr_req *r, const struct plan_job_result *res,
    const struct plan_job_pair *pairs, const struct model_job *m, uint64_t later_ms);
/* Why a job does not fit any more; the caller owns it. */
json_t *ctlr_answer_reason(const struct plan_job_result *res);

#endif
