/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's request on its way through networks' controllers. It is suspended while they are asked, and its
 * handler runs again with what they said:
 *
 *   planned -> paths are missing: asked for -> planned again -> it does not fit: refused
 *     -> fits: reservation/JOB stored -> tunnels made -> planned a last time, with what was made ->
 *     job stored
 *
 * The last plan sees the changes made meanwhile (gateways, other jobs). reservation.c settles every failure
 * after reservation/JOB. The caller of each function holds the lock.
 */
#ifndef CONTROLLER_JOB_QUERY_H
#define CONTROLLER_JOB_QUERY_H

#include "controller/job/reservation.h"
#include "controller/plan/job.h"

struct ctlr_query;

/* The candidates of the networks, as plan_world_ops wants them; unknown ones are noted and asked for later.
 * old: a job whose share is free. */
int ctlr_query_routes(struct ctlr *c, struct ctlr_req *r, const struct ctlr_job *old, const char *first,
    const char *second, struct plan_route *out, unsigned max);
/* The plan wanted paths that no network was asked for yet. */
bool ctlr_query_missing(const struct ctlr_req *r);
/* "network" as it was made for this request; NULL: nothing was yet. */
json_t *ctlr_query_made(const struct ctlr_req *r);
/* The entry of "network" for two sites; NULL: none. Borrowed. */
json_t *ctlr_query_entry(json_t *network, const char *first, const char *second);
/* The legs of an entry as paths with room for any demand: a tunnel that is made is not made again. */
int ctlr_query_made_routes(json_t *entry, struct plan_route *out, unsigned max);
/* "network" of a record, from a plan; given: as it was made (NULL: as it is to be made). The caller's. */
json_t *ctlr_query_network(struct ctlr *c, const struct ctlr_req *r, const char *job,
    const struct plan_job_result *res, json_t *given);

/* Asks for what is missing. */
enum ctlr_outcome ctlr_query_paths(struct ctlr *c, struct ctlr_req *r, const char *job);
/* Has the tunnels of the record made. Takes the reference. */
enum ctlr_outcome ctlr_query_make(struct ctlr *c, struct ctlr_req *r, const char *job, json_t *record);
/* Another request works on this job: this one runs again when that one is done. */
enum ctlr_outcome ctlr_query_wait(struct ctlr *c, struct ctlr_req *r, const char *job);

#endif
