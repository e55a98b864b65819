/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: requests, plans, records of the store, time. Locked. */
#ifndef CONTROLLER_JOB_JOBS_H
#define CONTROLLER_JOB_JOBS_H

#include "controller/server/req.h"
#include "controller/state/ctlr.h"

handler job_list, job_get, job_post, job_put, job_delete;

void job_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
void job_tenant(struct ctlr *c, const struct net_tenant *nt); /* its jobs have its VNI */
void job_tick(struct ctlr *c);
void jobs_free(struct ctlr *c); /* at the end */

/* The record to store: {job, plan, takes, until_ms, network}. NULL: the reply says why not, and what would
 * fit; without a reply: networks are to be asked first (ask.h). old: the plan that this one would replace,
 * whose share counts as free. */
json_t *job_plan(struct ctlr *c, struct req *r, const char *name, const struct model_job *m, json_t *posted,
    const struct job *old);
/* The record of a job some of whose pairs have no way any more, or that is broken: what can stay does. With
 * `reason` if it does not fit; its pairs are placed all the same where there is a way. NULL: out of memory.
 */
json_t *job_plan_again(struct ctlr *c, const struct job *j);
/* Jobs that lost a gateway or a tunnel, and with `broken` those that are broken, as they are to be: into ch,
 * with the comparisons. Returns how many. */
unsigned job_moves(struct ctlr *c, struct change *ch, bool broken);
void job_move_tick(struct ctlr *c);
/* Its plan comes into the index, or leaves it. */
void job_rows(struct ctlr *c, const struct job *j, bool add);
/* A record as job_plan makes them: others are left alone (record.c). */
bool job_record_ok(const json_t *record);
/* What a record takes; *out is the caller's to free. */
unsigned job_takes(const json_t *record, struct plan_take **out);

#endif
