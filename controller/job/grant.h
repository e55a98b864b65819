/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What networks are to have made for jobs, and that they come to have it. The truth is a job's record
 * ("network": grants with their legs). Before a network is asked for a tunnel, the store has a record
 * grant/JOB that names it and the replica that asks; it goes in the transaction that stores the job. One that
 * is left (the job was not stored, was withdrawn, the replica died) is settled: each of its tunnels becomes
 * what the job's record says of it, or is given back, and then the record goes. All of that may be done
 * twice. Locked, all of it.
 */
#ifndef CONTROLLER_JOB_GRANT_H
#define CONTROLLER_JOB_GRANT_H

#include "controller/state/change.h"
#include "controller/state/ctlr.h"

struct grant {
	struct map_node node;
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

void grant_apply(struct ctlr *c, const struct store_kv *kv, const char *job);
void grants_free(struct ctlr *c); /* at the end */

/* Is somebody else than `by` at this job's tunnels, here or at another replica? */
bool grant_taken(struct ctlr *c, const char *job, const void *by);
/* Nobody else is, until grant_leave. false: out of memory. */
RWY_MUST_CHECK bool grant_claim(struct ctlr *c, const char *job, const void *by);
void grant_leave(struct ctlr *c, const char *job, const void *by);

/* The tunnels of a job's record (NULL: none) and of what is stored at grant/JOB already, together. The
 * caller's. */
json_t *grant_tunnels(struct ctlr *c, const char *job, const json_t *record);
/* Into ch: grant/JOB names these (their reference is taken; none: it goes), if it is as we know it. */
void grant_put(struct ctlr *c, struct change *ch, const char *job, json_t *tunnels);
/* Those of `tunnels` that a record has not. The caller's. */
json_t *grant_without(const json_t *tunnels, const json_t *record);

void grant_tick(struct ctlr *c, rwy_time now);

/* A job's record changed (NULL: there was, is none): what forgets is told, at every replica. */
void grant_mirror(struct ctlr *c, const char *job, const json_t *was, const json_t *is);

/* A call that makes what the record says of the tunnel at this network, or gives it back. NULL: out of
 * memory. */
struct network_call *grant_call(struct ctlr *c, unsigned net, const char *name, const char *first,
    const char *second, const json_t *record);

#endif
