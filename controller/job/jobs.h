/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: requests, plans, records of the store, ends, moves. All locked. */
#ifndef CONTROLLER_JOB_JOBS_H
#define CONTROLLER_JOB_JOBS_H

#include "controller/plan/job.h"
#include "controller/server/req.h"
#include "controller/state/ctlr.h"

ctlr_handler ctlr_api_job_list, ctlr_api_job_get, ctlr_api_job_post, ctlr_api_job_put, ctlr_api_job_delete;

/* Applies a record jobs/NAME of the store. */
void ctlr_job_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
void ctlr_job_set_tenant(struct ctlr *c); /* a tenant came, changed or went: jobs follow */
/* tenant.c: the VNI of the tenant that a job's record names; 0: it names none, or one that is not
 * there. */
uint32_t ctlr_job_vni(const struct ctlr *c, const json_t *record);
/* True if the job names a tenant that is not there: no VNI is its own. */
bool ctlr_job_lacks_tenant(const struct ctlr *c, const struct ctlr_job *j);
/* A job that names the tenant; NULL: none does. */
const struct ctlr_job *ctlr_job_of_tenant(const struct ctlr *c, const char *name);
/* Adds to ch what each change of jobs compares and touches, once. */
void ctlr_job_guard(struct ctlr *c, struct ctlr_change *ch);
/* Adds to ch, at most two operations, that the job goes; after it networks get its tunnels back.
 * ch has the guard. Returns the bytes of what it adds. */
size_t ctlr_job_withdraw(struct ctlr *c, struct ctlr_change *ch, const struct ctlr_job *j);
/* Withdraws jobs whose time is over. end.c */
void ctlr_job_end_tick(struct ctlr *c);
void ctlr_jobs_free(struct ctlr *c); /* frees all jobs */

/* Plans a job and returns the record to store: {job, plan, claims, until_ms, network}. NULL: the
 * reply says why it does not fit and what would fit; NULL without a reply: networks must be asked
 * first (query.h). old: the plan that this one would replace, whose share counts as free. */
json_t *ctlr_job_plan(struct ctlr *c, struct ctlr_req *r, const char *name, const struct model_job *m,
    json_t *posted, const struct ctlr_job *old);
/* Stores a job's record, whose reference it takes over, and replies with it; networks get back the
 * tunnels that it no longer has. r->arg[1]: its name; r->arg[2]: not empty for a job that was
 * there. old: the present job, or NULL. decided: the jobs in `preempts` go with this change; else
 * the record keeps the list of an earlier decision. The job's reservation is not locked by
 * others. */
enum ctlr_outcome ctlr_job_store(
    struct ctlr *c, struct ctlr_req *r, const struct ctlr_job *old, json_t *record, bool decided);
/*
 * False: with this record, in place of old's if there is one, a site would have more pairs than a
 * gateway's document may name, and r has the reply. site_pairs.c
 */
bool ctlr_job_fits_documents(
    struct ctlr *c, struct ctlr_req *r, const json_t *record, const struct ctlr_job *old);
/* "planned", "waiting", "preempted" or "broken". */
const char *ctlr_job_state(const json_t *record);
/* The pairs that a job asks for; the caller frees them. table: of its ranks, for a split. since_ms:
 * when its time began (shape.h). r NULL: no request waits. Returns how many, or a negative RWY_E*,
 * and r has the reply. pairs.c */
int ctlr_job_pairs(struct ctlr_req *r, const struct model_job *m, const json_t *table, uint64_t since_ms,
    struct plan_job_pair **out);
/* A new record for a job that lost tunnels or is broken. Pairs whose tunnel is up stay. If the job
 * does not fit any more, the record has a `reason`, and its pairs are placed where a tunnel is up.
 * table: other ranks than it has (split.h); its reference stays the caller's; NULL: none. NULL: out
 * of memory. */
json_t *ctlr_job_plan_again(struct ctlr *c, const struct ctlr_job *j, json_t *table);
/* Plans jobs again that lost a gateway or a tunnel. Adds the new records with their comparisons to
 * ch: as many as a change can have, the next tick has the others. Returns how many. */
unsigned ctlr_job_moves(struct ctlr *c, struct ctlr_change *ch);
/* Stores new plans of jobs that c->jobs_look asks for, and once a second tries broken ones. */
void ctlr_job_move_tick(struct ctlr *c);
/* Adds its plan to the route index, or removes it. */
void ctlr_job_set_routes(struct ctlr *c, const struct ctlr_job *j, bool add);
/* True if a record has the form that ctlr_job_plan() makes; other records are left alone.
 * record.c */
bool ctlr_job_record_ok(const json_t *record);
/* The claims of a record. Returns how many; the caller frees *out. */
unsigned ctlr_job_claims(const json_t *record, struct plan_claim **out);

#endif
