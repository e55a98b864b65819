/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a job's request through networks' controllers. The request is suspended while they are
 * asked, and its handler runs again with their answers:
 *
 *   planned -> paths are unknown: networks are asked -> planned again -> it does not fit: refused
 *     -> fits: reservation/JOB stored -> tunnels made -> planned a last time with these tunnels
 *     -> job stored
 *
 * The last plan sees changes made meanwhile, by gateways and other jobs. reservation.c settles
 * every failure after reservation/JOB is stored. All locked.
 */
#ifndef CONTROLLER_JOB_QUERY_H
#define CONTROLLER_JOB_QUERY_H

#include "controller/job/reservation.h"
#include "controller/plan/job.h"
#include "controller/plan/steer.h"

struct ctlr_query;

/* The networks' paths for a pair of sites, as plan_world_ops needs them. Unknown ones are noted, to
 * be asked for later. old: a job whose share counts as free. Returns how many, RWY_ENOENT: none is
 * known, RWY_ENOMEM. */
int ctlr_query_routes(struct ctlr *c, struct ctlr_req *r, const struct ctlr_job *old, const char *first,
    const char *second, struct plan_route *out, unsigned max);
/* True if the plan needed paths that no network was asked for yet. */
bool ctlr_query_missing(const struct ctlr_req *r);
/* "network" as it was made for this request; borrowed. NULL: nothing is made yet. */
json_t *ctlr_query_made(const struct ctlr_req *r);
/* The entry of "network" for two sites; borrowed. NULL: there is none. */
json_t *ctlr_query_entry(json_t *network, const char *first, const char *second);
/* The legs of an entry as paths with room for any demand: a tunnel that exists is not made again.
 * Returns how many, at most max. */
int ctlr_query_made_routes(json_t *entry, struct plan_route *out, unsigned max);
/* The legs of an entry, without those that the network lost, of which `bps` are asked for. Returns
 * how many, at most max. */
unsigned ctlr_query_granted(const json_t *entry, uint64_t bps, struct plan_granted *out, unsigned max);
/* The "network" of a record, from a plan; the caller owns it. given: the tunnels that were made;
 * NULL: they are still to be made. */
json_t *ctlr_query_network(struct ctlr *c, const struct ctlr_req *r, const char *job,
    const struct plan_job_result *res, json_t *given);

/* Asks the networks for the paths that are missing. */
enum ctlr_outcome ctlr_query_paths(struct ctlr *c, struct ctlr_req *r, const char *job);
/* Makes the tunnels of the record, whose reference it takes over. */
enum ctlr_outcome ctlr_query_make(struct ctlr *c, struct ctlr_req *r, const char *job, json_t *record);
/* Another request works on this job: this one waits for it and runs again. */
enum ctlr_outcome ctlr_query_wait(struct ctlr *c, struct ctlr_req *r, const char *job);

#endif
