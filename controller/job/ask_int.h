/* SPDX-License-Identifier: Apache-2.0 */
/* Between ask.c, which asks and waits, and ask_json.c, which has what was offered and made as records. */
#ifndef CONTROLLER_JOB_ASK_INT_H
#define CONTROLLER_JOB_ASK_INT_H

#include "controller/job/ask.h"

/* What is offered between two sites. */
struct offer {
	char first[MDL_NAME], second[MDL_NAME];
	bool asked, nobody; /* nobody: it is no network's business */
	unsigned n;
	struct plan_route *route;
	uint8_t *net; /* whose each is */
};

struct ask {
	struct req *r;
	char job[MDL_NAME];
	struct offer *offer;
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
struct offer *ask_offer(const struct ask *a, const char *first, const char *second);

#endif
