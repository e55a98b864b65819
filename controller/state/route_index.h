/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index from addresses, or queue pairs, to the pair of gateways that a job's plan names for them. The
 * records of jobs are the truth. Locked.
 */
#ifndef CONTROLLER_STATE_ROUTE_INDEX_H
#define CONTROLLER_STATE_ROUTE_INDEX_H

#include "controller/state/ctlr.h"

/* A row of a plan: by addresses, and by QPNs where the row names a queue pair. */
struct route_row {
	struct map_node node;
	char key[192];
	uint32_t vni, qpn[2]; /* at addr[0], at addr[1]; 0: of all */
	char addr[2][MDL_ADDR];
	char gateway[2][MDL_NAME]; /* "": of each queue pair its own */
	const struct job *job;
};

/* Adds a row of the job's plan; the index keeps it. NULL: another row is there, it is malformed, or out of
 * memory. */
const struct route_row *route_index_add(struct ctlr *c, const struct job *j, const json_t *row);
void route_index_del(struct ctlr *c, const struct job *j, const json_t *row);

/* The tunnel that a job's plan names for the flow; NULL: none does. */
struct tunnel *route_index_tunnel(struct ctlr *c, const struct flow *f);
/* The job that these belong to; NULL: none. */
const struct job *route_index_job(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);
/* The gateways that this job's plan names for these, by plan_id (0, 0: none). */
struct plan_pair route_index_pair(
    struct ctlr *c, const struct job *j, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);

#endif
