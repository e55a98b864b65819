/* SPDX-License-Identifier: Apache-2.0 */
/* Between query.c, which asks networks and waits, and query_json.c, which has candidates and reservations as
 * records. */
#ifndef CONTROLLER_JOB_QUERY_INT_H
#define CONTROLLER_JOB_QUERY_INT_H

#include "controller/job/query.h"

/* The paths that networks offer between two sites. */
struct ctlr_candidates {
	char first[MDL_NAME], second[MDL_NAME];
	bool asked, nobody; /* nobody: no network serves these sites */
	unsigned n;
	struct plan_route *route;
	uint8_t *net; /* the network of each */
};

struct ctlr_query {
	struct ctlr_req *r;
	char job[MDL_NAME];
	struct ctlr_candidates *offer;
	unsigned offers;
	bool missing, stale;
	json_t *network; /* as it is being made, or was */
	bool made;
	unsigned waiting, refused;
	int rc;
	char text[320];
	rwy_time until; /* waits for others; 0: does not */
};

/* NULL: not asked for. */
struct ctlr_candidates *ctlr_query_candidates(
    const struct ctlr_query *a, const char *first, const char *second);

#endif
