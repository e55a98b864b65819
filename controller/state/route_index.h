/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index from addresses, or queue pairs, to the pair of gateways that a job's plan names for them.
 * The records of jobs are the truth. All locked.
 */
#ifndef CONTROLLER_STATE_ROUTE_INDEX_H
#define CONTROLLER_STATE_ROUTE_INDEX_H

#include "controller/state/ctlr.h"

/* A row of a plan: by addresses, and by QPNs where the row names a queue pair. Several jobs may
 * have one; the first of them by name says the route, and is the one in the table. */
struct ctlr_route {
	struct ctlr_map_node node;
	struct ctlr_route *next;
	char key[192];
	uint32_t vni, qpn[2]; /* at addr[0] and addr[1]; 0: all */
	char addr[2][MDL_ADDR];
	char gateway[2][MDL_NAME]; /* "": each queue pair has its own */
	const struct ctlr_job *job;
};

/* Adds a row of the job's plan; the index owns it. NULL: the row is malformed, or out of memory. */
const struct ctlr_route *ctlr_route_add(struct ctlr *c, const struct ctlr_job *j, const json_t *row);
/* Removes and frees the row, if it is this job's. */
void ctlr_route_del(struct ctlr *c, const struct ctlr_job *j, const json_t *row);

/* The tunnel that a job's plan names for the flow; NULL: none does. */
struct ctlr_tunnel *ctlr_route_tunnel(struct ctlr *c, const struct ctlr_flow *f);
/* The job to which these addresses and QPNs belong; NULL: none. */
const struct ctlr_job *ctlr_route_job(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);
/* The gateways that this job's plan names for them, by plan_id(); 0, 0: none. */
struct plan_pair ctlr_route_pair(
    struct ctlr *c, const struct ctlr_job *j, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);

#endif
