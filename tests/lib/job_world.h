/* SPDX-License-Identifier: Apache-2.0 */
/* Three sites for tests of jobs: their gateways, the paths and networks between them, and plans
 * over them. For cmocka. */
#ifndef TESTS_LIB_JOB_WORLD_H
#define TESTS_LIB_JOB_WORLD_H

#include "controller/plan/book.h"
#include "controller/plan/job.h"

#define T (1000 * RWY_SEC) /* the time of all plans */
#define G UINT64_C(1000000000)

/* A path of the network: edge, name, free bandwidth, delay. */
#define LEG(e, n, bps, us)                                                                                   \
	{                                                                                                    \
		.edge = e, .name = n, .free_bps = (bps), .delay_us = (us), .jitter_us = 50                   \
	}

/* Three sites 10.1/16, 10.2/16, 10.3/16; the gateways' bandwidth; the measured path; the network's
 * paths. */
struct job_world {
	uint64_t gw_bps[3][2];                /* 0: does not exist */
	uint64_t tcp_bps;                     /* besides native, of every gateway */
	uint32_t rtt_us, jitter_us, loss_ppm; /* rtt 0: not measured */
	uint64_t promised_bps;                /* of the path; 0: it is an internet path */
	enum plan_carrier held;               /* others hold the first two gateways' tunnel to it */
	bool network;
	struct plan_route route[4]; /* between any two sites */
	unsigned n_routes;
	struct plan_book *book;
	char name[3][2][PLAN_NAME_MAX];
};

extern const struct plan_world_ops job_world_ops; /* their ctx is a struct job_world */

/* Two gateways a site, but one at the second; measured paths; no network and no book. */
struct job_world job_world(void);
/* Plans the job. plan_job_free() the result. */
struct plan_job_result *job_plan(struct job_world *w, const struct plan_job *job);
/* n pairs between 10.A.0.x and 10.B.1.x. */
void job_pairs(struct plan_job_pair *p, unsigned n, unsigned a, unsigned b, struct plan_triple want);

#endif
