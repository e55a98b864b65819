/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of a scheduler: pairs of addresses, or a rank table, with <bandwidth, delay, jitter>; what comes back
 * is a plan (gateway pair, carrier and rates of each pair; tunnels in the network), or why not and what would
 * fit. Nothing is reserved here: the plan lists its claims (struct plan_claim), the caller books it
 * (plan/book.h) when it has been stored, and gives it back when the job is withdrawn or over.
 */
#ifndef PLAN_JOB_H
#define PLAN_JOB_H

#include "controller/plan/decide.h"
#include "controller/plan/place.h"
#include "controller/plan/spread.h"

#define PLAN_JOB_PAIRS_MAX  65536
#define PLAN_JOB_RANKS_MAX  65536
#define PLAN_JOB_GROUPS_MAX 256 /* pairs of sites */

/* The demand of one pair: the white paper's triple. */
struct plan_triple {
	uint64_t bandwidth_bps; /* of payload, in each direction */
	uint32_t delay_us;      /* one way; 0: any */
	uint32_t jitter_us;     /* 0: any */
};

struct plan_job_pair {
	struct rwy_ip a, b;
	struct plan_triple want;
	uint32_t a_qpn,
	    b_qpn; /* PLAN_GRAIN_QP: of this connection; 0: of all between a and b, not known yet */
};

/* A row of a rank table. */
struct plan_rank {
	uint32_t rank;
	uint32_t stage; /* of the pipeline */
	struct rwy_ip addr;
};

/*
 * Pairs of a rank table: the i-th rank of a stage talks to the i-th rank of the next (white paper 4.2.8: one
 * to one in the order of ranks); each such pair wants `want`. The ring closes (last stage to first) if
 * `ring`. Ranks in any order. Returns how many pairs (at most max are written), or RWY_EINVAL with the rank
 * at fault in *bad: a rank twice, a stage with another number of ranks than the one before, stages not 0, 1,
 * 2, ... Sorts `ranks` in place.
 */
RWY_MUST_CHECK int plan_job_ranks(struct plan_rank *ranks, unsigned n, const struct plan_triple *want,
    bool ring, struct plan_job_pair *out, unsigned max, uint32_t *bad);

/* A gateway as the planner sees it. */
struct plan_gateway {
	uint64_t id; /* plan_id of its name */
	const char *name;
	struct plan_caps caps;
	uint32_t weight;      /* of the site's weight algorithm */
	uint64_t claimed_bps; /* of its bandwidth, by other jobs */
};

/* The world a job is planned in: the caller's, asked for what is needed and nothing else. */
struct plan_world_ops {
	/* The site of an address, NULL: none. Names of sites live as long as the call of plan_job_new. */
	const char *(*site_of)(void *ctx, const struct rwy_ip *a);
	/* The gateways of a site that are up; at most max. Returns how many. */
	unsigned (*gateways)(void *ctx, const char *site, struct plan_gateway *out, unsigned max);
	/* The path between two sites. */
	void (*path)(void *ctx, const char *first, const char *second, struct plan_path *out);
	/* The network's paths between two sites, less what other jobs took; at most max. Returns how many, or
	 * RWY_ENOENT: this network is not asked (Internet path: nothing to reserve). */
	int (*routes)(void *ctx, const char *first, const char *second, struct plan_route *out, unsigned max);
	/* Is there a way between these two gateways? NULL: between all. */
	bool (*pair_up)(void *ctx, const char *first, const char *second);
};

#define PLAN_SITE_GATEWAYS_MAX 64

struct plan_job {
	const char *name;
	enum plan_grain grain;
	uint32_t vni;
	const struct plan_job_pair *pairs;
	unsigned n;
	/* A job that is planned again: of each pair the gateways that it is on (weight is not looked at; 0:
	 * none). Those that can stay do, with `stay` also above their share. NULL: a new job. */
	const struct plan_pair *now;
	bool stay;
};

#define PLAN_JOB_FAILS(X)                                                                                    \
	X(PLAN_JOB_FITS, "fits", "the job fits")                                                             \
	X(PLAN_JOB_NO_SITE, "no-site", "an address belongs to no site")                                      \
	X(PLAN_JOB_NO_GATEWAY, "no-gateway", "a site has no gateway that is up")                             \
	X(PLAN_JOB_NO_CARRIER, "no-carrier", "no carrier is common to the sites' gateways")                  \
	X(PLAN_JOB_GATEWAY, "gateway", "a gateway has not the bandwidth left")                               \
	X(PLAN_JOB_GOODPUT, "goodput", "no carrier reaches the bandwidth over this path")                    \
	X(PLAN_JOB_DELAY, "delay", "the path is longer than wanted, or nobody measured it")                  \
	X(PLAN_JOB_JITTER, "jitter", "the path is less steady than wanted, or nobody measured it")           \
	X(PLAN_JOB_NETWORK, "network", "the network's paths do not fit the demand")

enum plan_job_fail {
#define X(e, w, s) e,
	PLAN_JOB_FAILS(X)
#undef X
	    PLAN_JOB_FAIL_COUNT
};
const char *plan_job_fail_text(enum plan_job_fail f);

#define PLAN_JOB_ANY_GATEWAY UINT16_MAX

/* One pair of the plan. group -1: both ends in one site, nothing to plan. */
struct plan_job_row {
	int32_t group;
	uint16_t first, second; /* gateways: indices into the group's; PLAN_JOB_ANY_GATEWAY: of each queue
	                           pair (that is not known) its own, or not placed */
	bool swapped;           /* the pair's b is at the first site */
};

/* Everything between two sites. */
struct plan_job_group {
	const char *first, *second; /* sites */
	unsigned pairs;
	struct plan_want want; /* the sum, the tightest bounds; bandwidth of payload */
	struct plan_decision decision;
	struct plan_gateway gw[2][PLAN_SITE_GATEWAYS_MAX];
	uint64_t gw_bps[2][PLAN_SITE_GATEWAYS_MAX]; /* payload that each is to carry */
	unsigned n_gw[2];
	uint64_t *pair_bps; /* the same of each pair of them: [i * n_gw[1] + j]; NULL: not placed */
	bool has_network;   /* routes and placement are valid */
	unsigned n_routes;
	struct plan_route *routes;
	struct plan_placement placement;
	enum plan_job_fail fail; /* of this group */
	unsigned fail_gw[2];     /* PLAN_JOB_GATEWAY: side, index */
	struct plan_want fits;   /* if it failed: what would fit between these sites (payload); 0: nothing */
};

/* The claims of a plan, for the book. */
struct plan_claim {
	char name[5 * PLAN_NAME_MAX]; /* "gw/NAME" or "net/FIRST/SECOND/EDGE/PATH" */
	uint64_t bps;
};

struct plan_job_result {
	enum plan_job_fail fail;
	unsigned fail_pair; /* index of the pair, of PLAN_JOB_NO_SITE */
	unsigned n_groups, n_rows, n_claims;
	struct plan_job_group *groups;
	struct plan_job_row *rows; /* one for each pair of the job, in its order */
	struct plan_claim *claims; /* if it fits */
};

/* Plans; *out is the caller's to free. RWY_EINVAL: no pairs, too many of them or of sites, a bandwidth of 0.
 * RWY_ENOMEM. Else 0, and (*out)->fail says how it went: all groups are looked at, so all that is wrong is
 * told at once. */
RWY_MUST_CHECK int plan_job_new(struct plan_job_result **out, const struct plan_job *job,
    const struct plan_policy *policy, const struct plan_world_ops *world, void *ctx, rwy_time now);
void plan_job_free(struct plan_job_result *r); /* NULL: fine */

#endif
