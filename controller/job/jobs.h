/* SPDX-License-Identifier: Apache-2.0 */
/* Between job.c, which keeps jobs, and plan.c, which has them planned. */
#ifndef CONTROLLER_JOB_JOBS_H
#define CONTROLLER_JOB_JOBS_H

#include "controller/state/ctlr.h"

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
/* Of "GATEWAY/GATEWAY", in any order; NULL: none. */
struct tunnel *tunnel_of(struct ctlr *c, const char *pair);
/* The job that these belong to; NULL: none. */
const struct job *job_of(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);
bool job_by_qp(const struct job *j);
/* The gateways that the job gave to these, by plan_id (0, 0: none). */
struct plan_pair job_pair(
    struct ctlr *c, const struct job *j, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);
/* Its plan comes into the index, or leaves it. */
void job_rows(struct ctlr *c, const struct job *j, bool add);
/* All of them: the same order at every replica. NULL at the end; to free; NULL: out of memory. */
struct job **jobs_by_name(struct ctlr *c);
/* A record as job_plan makes them: others are left alone (record.c). */
bool job_record_ok(const json_t *record);
/* What a record takes; *out is the caller's to free. */
unsigned job_takes(const json_t *record, struct plan_take **out);
/* A route of an address pair (routes.c): whichever of the two is at site s is the source. */
void route_pair(json_t *list, struct ctlr *c, const struct site *s, const struct gateway *g, uint32_t vni,
    const char (*addr)[MDL_ADDR], const uint32_t qpn[2]);

#endif
