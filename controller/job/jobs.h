/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: requests, plans, records of the store, time. Locked. */
#ifndef CONTROLLER_JOB_JOBS_H
#define CONTROLLER_JOB_JOBS_H

#include "controller/server/req.h"
#include "controller/state/ctlr.h"

ctlr_handler ctlr_api_job_list, ctlr_api_job_get, ctlr_api_job_post, ctlr_api_job_put, ctlr_api_job_delete;

void ctlr_job_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
void ctlr_job_set_tenant(struct ctlr *c, const struct ctlr_tenant *nt); /* its jobs have its VNI */
void ctlr_job_tick(struct ctlr *c);
void ctlr_jobs_free(struct ctlr *c); /* at the end */

/* The record to store: {job, plan, claims, until_ms, network}. NULL: the reply says why not, and what would
 * fit; without a reply: networks are to be asked first (query.h). old: the plan that this one would replace,
 * whose share counts as free. */
json_t *ctlr_job_plan(struct ctlr *c, struct ctlr_req *r, const char *name, const struct model_job *m,
    json_t *posted, const struct ctlr_job *old);
/* A new record for a job that lost tunnels or is broken; pairs whose tunnel is up stay. With `reason` if it
 * does not fit; its pairs are placed all the same where a tunnel is up. NULL: out of memory.
 */
json_t *ctlr_job_plan_again(struct ctlr *c, const struct ctlr_job *j);
/* Plans again jobs that lost a gateway or a tunnel, and with `broken` those that are broken, and adds the new
 * records to ch with their comparisons. Returns how many. */
unsigned ctlr_job_moves(struct ctlr *c, struct ctlr_change *ch, bool broken);
void ctlr_job_move_tick(struct ctlr *c);
/* Its plan comes into the index, or leaves it. */
void ctlr_job_set_routes(struct ctlr *c, const struct ctlr_job *j, bool add);
/* A record as ctlr_job_plan makes them: others are left alone (record.c). */
bool ctlr_job_record_ok(const json_t *record);
/* The claims of a record; returns how many. *out is the caller's to free. */
unsigned ctlr_job_claims(const json_t *record, struct plan_claim **out);

#endif
