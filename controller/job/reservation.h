/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: the tunnels that networks make for jobs. A job's record is the truth: "network" has
 * the tunnels with their legs. Before a network is asked for a tunnel, the store gets a record
 * reservation/JOB that names the tunnel and the replica that asks. The transaction that stores the
 * job deletes it. If such a record is left over (the job was not stored or was withdrawn, or the
 * replica died) it is settled: each of its tunnels becomes what the job's record says, or is given
 * back, and then the record is deleted. Every step may run twice. All locked.
 */
#ifndef CONTROLLER_JOB_RESERVATION_H
#define CONTROLLER_JOB_RESERVATION_H

#include "controller/state/change.h"
#include "controller/state/ctlr.h"

struct ctlr_reservation {
	struct ctlr_map_node node;
	char job[MDL_NAME];
	/* Stored; mod_rev 0: not yet. */
	uint64_t mod_rev;
	char owner[MDL_NAME];
	json_t *tunnels; /* [{provider, name, first, second}] */
	/* The rest is not stored. */
	const void *by;    /* the request that works on it alone; NULL: none */
	unsigned settling; /* running calls */
	bool failed, changing;
	bool touched; /* calls were made for this record */
	rwy_time at;
	rwy_dur pause;
};

/* Applies a record reservation/JOB of the store. */
void ctlr_reservation_apply(struct ctlr *c, const struct store_kv *kv, const char *job);
void ctlr_reservations_free(struct ctlr *c); /* frees all */

/* True if a request other than `by`, or another replica, works on this job's tunnels. */
bool ctlr_reservation_locked(struct ctlr *c, const char *job, const void *by);
/* Reserves the job's tunnels to `by` until ctlr_reservation_unlock(). false: out of memory. */
RWY_MUST_CHECK bool ctlr_reservation_lock(struct ctlr *c, const char *job, const void *by);
void ctlr_reservation_unlock(struct ctlr *c, const char *job, const void *by);

/* The tunnels of a job's record (NULL: none) together with those of reservation/JOB. The caller
 * owns the result. */
json_t *ctlr_reservation_tunnels(struct ctlr *c, const char *job, const json_t *record);
/* Adds to ch: reservation/JOB gets these tunnels, whose reference it takes over; no tunnels: it is
 * deleted. The change compares the record's revision. */
void ctlr_reservation_put(struct ctlr *c, struct ctlr_change *ch, const char *job, json_t *tunnels);
/* The tunnels of the list that a record does not have. The caller owns the result. */
json_t *ctlr_reservation_without(const json_t *tunnels, const json_t *record);

/* Settles records that are left over, and tries again after failures. */
void ctlr_reservation_tick(struct ctlr *c, rwy_time now);

/* A network has lost a tunnel of the job: all of them are settled again. false: somebody works on
 * them, or there is no such job. */
bool ctlr_reservation_again(struct ctlr *c, const char *job);

/* A job's record changed; was or is NULL: it is new, or deleted. Every replica tells networks that
 * forget. */
void ctlr_reservation_mirror(struct ctlr *c, const char *job, const json_t *was, const json_t *is);

/* The call that makes the tunnel's legs at this network as the record says, or removes the tunnel.
 * NULL: out of memory. */
struct ctlr_network_call *ctlr_reservation_call(struct ctlr *c, unsigned net, const char *name,
    const char *first, const char *second, const json_t *record);

#endif
