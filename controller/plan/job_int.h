/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by job.c, which plans, and job_claims.c, which lists the claims and frees plans. */
#ifndef PLAN_JOB_INT_H
#define PLAN_JOB_INT_H

#include "controller/plan/job.h"

/* Fills r->claims and r->n_claims of a plan that fits. RWY_ENOMEM. */
RWY_MUST_CHECK int plan_job_claims(struct plan_job_result *r);

#endif
