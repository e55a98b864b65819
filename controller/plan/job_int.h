/* SPDX-License-Identifier: Apache-2.0 */
/* Between job.c, which plans, and job_takes.c, which lists what a plan takes. */
#ifndef PLAN_JOB_INT_H
#define PLAN_JOB_INT_H

#include "controller/plan/job.h"

/* r->takes and r->n_takes of a plan that fits. RWY_ENOMEM. */
RWY_MUST_CHECK int plan_job_takes(struct plan_job_result *r);

#endif
