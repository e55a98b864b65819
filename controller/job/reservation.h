/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: tunnels that networks make for jobs. A job's record is the truth ("network": the tunnels with
 * their legs). Before a network is asked for a tunnel, the store gets a record reservation/JOB that names the
 * tunnel and the asking replica; the transaction that stores the job removes it. A record that is left (the
 * job was not stored, was withdrawn, the replica died) is settled: each of its tunnels becomes what the job's
 * record says of it, or is given back, and then the record goes. Each step may be done twice. Locked.
 */
#ifndef CONTROLLER_JOB_RESERVATION_H
#define CONTROLLER_JOB_RESERVATION_H

#include "controller/state/change.h"
#include "controller/state/ctlr.h"

struct ctlr_reservation {
	struct ctlr_map_node node;
	char job[MDL_NAME];
	/* stored; mod_rev 0: not (yet) */
	uint64_t mod_rev;
	char owner[MDL_NAME];
	json_t *tunnels; /* [{provider, name, first, second}] */
	/* not stored */
	const void *by;    /* who works on it: nobody else does */
	unsigned settling; /* calls under way */
	bool failed, changing;
	bool touched; /* calls were made for what the record said then */
	rwy_time at;
	rwy_dur pause;
};

/* Applies a record reservation/JOB of the store. */
void ctlr_reservation_apply(struct ctlr *c, const struct store_kv *kv, const char *job);
void ctlr_reservations_free(struct ctlr *c); /* at the end */

/* Somebody else than `by` works on this job's tunnels, here or at another replica. */
bool ctlr_reservation_locked(struct ctlr *c, const char *job, const void *by);
/* Nobody but `by` works on them until ctlr_reservation_unlock(). false: out of memory. */
RWY_MUST_CHECK bool ctlr_reservation_lock(struct ctlr *c, const char *job, const void *by);
void ctlr_reservation_unlock(struct ctlr *c, const char *job, const void *by);

/* The tunnels of a job's record (NULL: none) and of what is stored at reservation/JOB already, together. The
 * caller's. */
json_t *ctlr_reservation_tunnels(struct ctlr *c, const char *job, const json_t *record);
/* Into ch: reservation/JOB names these (their reference is taken; none: it goes), if it is as we know it. */
void ctlr_reservation_put(struct ctlr *c, struct ctlr_change *ch, const char *job, json_t *tunnels);
/* Those of `tunnels` that a record has not. The caller's. */
json_t *ctlr_reservation_without(const json_t *tunnels, const json_t *record);

/* Settles what is left, and tries again after failures. */
void ctlr_reservation_tick(struct ctlr *c, rwy_time now);

/* A job's record changed (NULL: there was, is none): networks that forget are told, by every replica. */
void ctlr_reservation_mirror(struct ctlr *c, const char *job, const json_t *was, const json_t *is);

/* A call that makes what the record says of the tunnel at this network, or gives it back. NULL: out of
 * memory. */
struct ctlr_network_call *ctlr_reservation_call(struct ctlr *c, unsigned net, const char *name,
    const char *first, const char *second, const json_t *record);

#endif
