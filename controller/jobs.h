/* SPDX-License-Identifier: Apache-2.0 */
/* Between job.c, which keeps jobs, and job_plan.c, which has them planned. */
#ifndef CONTROLLER_JOBS_H
#define CONTROLLER_JOBS_H

#include "controller/ctlr.h"

/* The record to store: {job, plan, takes, until_ms}. NULL: the reply says why not, and what would fit. old:
 * the plan that this one would replace, whose share counts as free. */
json_t *job_plan(struct ctlr *c, struct req *r, const char *name, const struct model_job *m, json_t *posted,
    const struct job *old);
/* A route of an address pair (routes.c): whichever of the two is at site s is the source. */
void route_pair(json_t *list, struct ctlr *c, const struct site *s, const struct gateway *g, uint32_t vni,
    char addr[2][MDL_ADDR]);

#endif
