/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that are posted as a split of a model with its containers (white paper 4.2.8). The ranks
 * that plan/ranks.h gives to the containers are in the job's record, as its table:
 *
 *   "ranks": {"generation", "missing", "first": [of each cluster],
 *             "containers": [{"name", "cluster", "first", "count", "failed"}, as posted],
 *             "demand": {"bandwidth_bps", "delay_us", "jitter_us", ...}}
 *
 * A job that lacks containers waits, with no ranks given, until its time (split.hold_ms) is over. A
 * job whose containers failed keeps all other ranks. All locked.
 */
#ifndef CONTROLLER_JOB_SPLIT_H
#define CONTROLLER_JOB_SPLIT_H

#include "controller/plan/ranks.h"
#include "controller/server/req.h"
#include "controller/state/ctlr.h"

/* Checks what the tables of model.h cannot. False: the reply says why. */
bool ctlr_split_sensible(struct ctlr_req *r, const struct model_job *m);
/*
 * Gives the containers their ranks; the caller owns the table. old: the job as it is; its ranks
 * stay where the split is the same. failed: {NAME: true} of containers that died; NULL: none, and a
 * job with too few containers waits. NULL: the reply says why not.
 */
json_t *ctlr_split_table(struct ctlr *c, struct ctlr_req *r, const struct model_job *m,
    const struct ctlr_job *old, const json_t *failed);
/* The pairs that a table makes; the caller frees them. r may be NULL. Returns how many, or a
 * negative RWY_E*, and r has the reply. */
int ctlr_split_pairs(
    struct ctlr_req *r, const struct model_job *m, const json_t *table, struct plan_job_pair **out);
/* True if a record's table has the form above and belongs to its job. */
bool ctlr_split_table_ok(const json_t *job, const json_t *table);
/* The ranks that nobody has. */
unsigned ctlr_split_missing(const json_t *record);
/* True if a container of the job failed. */
bool ctlr_split_failed(const json_t *record);
/* Why a job with a table that lacks ranks is broken; the caller owns it. */
json_t *ctlr_split_reason(const json_t *record);
/* The NICs of a container in the order of their names, eth2 before eth10; the j-th of its ranks has
 * the NIC at ctlr_split_nic(). */
void ctlr_split_sort_nics(struct model_container *k);
static inline unsigned ctlr_split_nic(const struct model_container *k, unsigned j)
{
	return (unsigned)((uint64_t)j * k->nics.n / k->ranks);
}

/* containers.c: an index from the addresses of containers to the job that has them. */
/* Adds a job's containers to the index, or removes them. */
void ctlr_containers_set_job(struct ctlr *c, const struct ctlr_job *j, bool add);
/* The job whose container has this address within the tenant (NULL or "": none); NULL: nobody. */
const struct ctlr_job *ctlr_containers_find(struct ctlr *c, const char *tenant, const char *address);

/* ranks.c */
ctlr_handler ctlr_api_job_ranks_get, ctlr_api_job_failures_post;
/* ranks_log.c: logs how a job's ranks changed; every replica does. was NULL: a new job. */
void ctlr_ranks_log(struct ctlr *c, const char *name, const json_t *was, const json_t *is);

#endif
