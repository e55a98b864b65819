/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by query.c, which asks networks and waits, and query_json.c, which turns candidates and
 * reservations into records. */
#ifndef CONTROLLER_JOB_QUERY_INT_H
#define CONTROLLER_JOB_QUERY_INT_H

#include "controller/job/query.h"

/* The paths that networks offer between two sites. */
struct ctlr_candidates {
	char first[MDL_NAME], second[MDL_NAME];
	bool asked, unserved; /* unserved: no network is responsible for these sites */
	unsigned n;
	struct plan_route *route;
	uint8_t *net; /* index of each route's network */
};

struct ctlr_query {
	struct ctlr_req *r;
	char job[MDL_NAME];
	struct ctlr_candidates *offer;
	unsigned offers;
	bool missing, stale;
	json_t *network; /* the tunnels, being made or made */
	bool made;
	unsigned waiting, refused;
	int rc;
	char text[320];
	rwy_time until; /* end of the wait for another request; 0: it does not wait */
};

/* The candidates between two sites; NULL: not asked for yet. */
struct ctlr_candidates *ctlr_query_candidates(
    const struct ctlr_query *a, const char *first, const char *second);

#endif
