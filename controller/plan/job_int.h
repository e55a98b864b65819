/* SPDX-License-Identifier: Apache-2.0 */
/* Between job.c, which plans, and job_claims.c, which lists its claims. */
#ifndef PLAN_JOB_INT_H
#define PLAN_JOB_INT_H

#include "controller/plan/job.h"

/* r->claims and r->n_claims of a plan that fits. RWY_ENOMEM. */
RWY_MUST_CHECK int plan_job_claims(struct plan_job_result *r);

#endif
