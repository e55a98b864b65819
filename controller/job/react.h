/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that follow what is measured, and networks that are asked for the tunnels they made. All
 * locked. */
#ifndef CONTROLLER_JOB_REACT_H
#define CONTROLLER_JOB_REACT_H

#include "controller/provider/provider.h"
#include "controller/state/ctlr.h"

/*
 * Looks at one job: would it be planned otherwise now, since the path was measured to be another
 * one? If that is so for policy.confirm, it is marked `stale`, and move.c stores the new plan.
 */
void ctlr_job_react_tick(struct ctlr *c, rwy_time now);
/* True if the new record says something else than the old one: whether the job fits or why not,
 * gateways, a carrier, or a rate by more than a tenth. */
bool ctlr_job_differs(const json_t *was, const json_t *is);
/* True if a job that the path's measurements broke is not to be tried again yet, or by another
 * replica, which does not know them. */
bool ctlr_job_react_holds(struct ctlr *c, const struct ctlr_job *j);
/* Asks networks, each policy.ask_networks, whether they have the tunnels of jobs; one that is gone
 * is made again. */
void ctlr_ask_tick(struct ctlr *c, rwy_time now);
/* True if this replica looks after the job: it hears what the job's first gateway measures. */
bool ctlr_job_is_ours(struct ctlr *c, const struct ctlr_job *j);

/* legs.c: a network said which legs of a job's tunnel are there, as provider_ops.has. Stores what
 * is news. Returns true if one of the network's legs is not there. */
bool ctlr_legs_found(struct ctlr *c, const struct ctlr_job *j, const char *provider, const char *tunnel,
    const struct plan_route *there, int n);

#endif
