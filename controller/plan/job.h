/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans a scheduler's job: pairs of addresses or a rank table, with bandwidth, delay and jitter.
 * The result is a plan: gateways, carrier and rates of each pair, and tunnels in the network. If
 * the job does not fit, the result says why and what would fit. Planning reserves nothing. The plan
 * lists its claims (struct plan_claim); the caller books them (plan/book.h) when the plan is
 * stored, and releases them when the job ends.
 *
 * Thread: any; one at a time per job and world.
 */
#ifndef PLAN_JOB_H
#define PLAN_JOB_H

#include "controller/plan/decide.h"
#include "controller/plan/place.h"
#include "controller/plan/spread.h"

#define PLAN_JOB_PAIRS_MAX  65536
#define PLAN_JOB_RANKS_MAX  65536
#define PLAN_JOB_GROUPS_MAX 256 /* pairs of sites */

/* The demand of one pair, as the white paper has it. */
struct plan_triple {
	uint64_t bandwidth_bps; /* payload, in each direction */
	uint32_t delay_us;      /* one way; 0: any */
	uint32_t jitter_us;     /* 0: any */
};

struct plan_job_pair {
	struct rwy_ip a, b;
	struct plan_triple want;
	/* PLAN_GRAIN_QP: this connection; 0: all connections between a and b, not known yet */
	uint32_t a_qpn, b_qpn;
};

/* A row of a rank table. */
struct plan_rank {
	uint32_t rank;
	uint32_t stage; /* of the pipeline */
	struct rwy_ip addr;
};

/*
 * Makes the pairs of a rank table: the i-th rank of a stage talks to the i-th rank of the next
 * stage (white paper 4.2.8), and each such pair wants `want`. With `ring` the last stage also talks
 * to the first. Ranks may come in any order; the function sorts them in place.
 *
 * Returns the number of pairs, of which it writes at most max. RWY_EINVAL, with the rank at fault
 * in *bad: a rank appears twice, a stage has another number of ranks than the stage before, or the
 * stages are not 0, 1, 2, ...
 */
RWY_MUST_CHECK int plan_job_ranks(struct plan_rank *ranks, unsigned n, const struct plan_triple *want,
    bool ring, struct plan_job_pair *out, unsigned max, uint32_t *bad);

/* A gateway as the planner sees it. */
struct plan_gateway {
	uint64_t id; /* plan_id() of its name */
	const char *name;
	struct plan_caps caps;
	uint32_t weight;      /* from the site's weight algorithm */
	uint64_t claimed_bps; /* the part of its bandwidth that other jobs claim */
};

/* The world in which a job is planned. The caller implements it; the planner asks only for what it
 * needs. */
struct plan_world_ops {
	/* The site of an address; NULL: none. The text must live as long as the call of
	 * plan_job_new(). */
	const char *(*site_of)(void *ctx, const struct rwy_ip *a);
	/* The gateways of a site that are up. Writes at most max, returns how many. */
	unsigned (*gateways)(void *ctx, const char *site, struct plan_gateway *out, unsigned max);
	/* The path between two sites. */
	void (*path)(void *ctx, const char *first, const char *second, struct plan_path *out);
	/* Other jobs' claims of the path between two sites. A promise is for all of them together.
	 * A NULL pointer: none. */
	uint64_t (*path_claimed)(void *ctx, const char *first, const char *second);
	/* The network's paths between two sites, less what other jobs claim. Writes at most max,
	 * returns how many; RWY_ENOENT: no network reserves between these sites (an Internet
	 * path). */
	int (*routes)(void *ctx, const char *first, const char *second, struct plan_route *out, unsigned max);
	/* True if a tunnel can connect these two gateways. A NULL pointer: all pairs can. */
	bool (*pair_up)(void *ctx, const char *first, const char *second);
	/* True unless other jobs hold these gateways' tunnel to another carrier. Asked for a job
	 * that names a carrier. A NULL pointer: no job does. */
	bool (*pair_takes)(void *ctx, const char *first, const char *second, enum plan_carrier carrier);
};

#define PLAN_SITE_GATEWAYS_MAX 64

struct plan_job {
	const char *name;
	enum plan_grain grain;
	uint32_t vni;
	const struct plan_job_pair *pairs;
	unsigned n;
	bool has_carrier; /* it goes by `carrier` or not at all */
	enum plan_carrier carrier;
	/* For a job that is planned again: the gateways that each pair has now (the weight is
	 * ignored; 0: none). Pairs keep their gateways if the shares allow it; with `stay` even if
	 * they do not. NULL: a new job. */
	const struct plan_pair *now;
	bool stay;
};

#define PLAN_JOB_FAILS(X)                                                                                    \
	X(PLAN_JOB_FITS, "fits", "the job fits")                                                             \
	X(PLAN_JOB_NO_SITE, "no-site", "an address belongs to no site")                                      \
	X(PLAN_JOB_NO_GATEWAY, "no-gateway", "a site has no gateway that is up")                             \
	X(PLAN_JOB_NO_CARRIER, "no-carrier", "no carrier is common to the sites' gateways")                  \
	X(PLAN_JOB_CARRIER, "carrier",                                                                       \
	    "the job's carrier is not possible here, or other jobs hold the tunnels to another one")         \
	X(PLAN_JOB_GATEWAY, "gateway", "a gateway lacks the bandwidth")                                      \
	X(PLAN_JOB_GOODPUT, "goodput", "no carrier reaches the bandwidth over this path")                    \
	X(PLAN_JOB_DELAY, "delay", "the path is longer than requested, or not measured")                     \
	X(PLAN_JOB_JITTER, "jitter", "the path's jitter is above the request, or not measured")              \
	X(PLAN_JOB_NETWORK, "network", "the network's paths do not fit the demand")

enum plan_job_fail {
#define X(e, w, s) e,
	PLAN_JOB_FAILS(X)
#undef X
	    PLAN_JOB_FAIL_COUNT
};
/* The failure as a sentence; static text. */
const char *plan_job_fail_text(enum plan_job_fail f);

#define PLAN_JOB_ANY_GATEWAY UINT16_MAX

/* One pair of the plan. group -1: both ends are at one site, and there is nothing to plan. */
struct plan_job_row {
	int32_t group;
	/* gateways, indices into the group's; PLAN_JOB_ANY_GATEWAY: not placed, or each queue pair
	 * gets its own */
	uint16_t first, second;
	bool swapped; /* the pair's b is at the first site */
};

/* All of the job that is between two sites. */
struct plan_job_group {
	const char *first, *second; /* sites */
	unsigned pairs;
	struct plan_want want; /* sum of the bandwidths (payload), tightest of the bounds */
	struct plan_decision decision;
	struct plan_gateway gw[2][PLAN_SITE_GATEWAYS_MAX];
	uint64_t gw_bps[2][PLAN_SITE_GATEWAYS_MAX]; /* payload that each gateway carries */
	unsigned n_gw[2];
	/* payload of each pair of gateways, at [i * n_gw[1] + j]; NULL: not placed */
	uint64_t *pair_bps;
	bool has_network; /* routes and placement are valid */
	unsigned n_routes;
	struct plan_route *routes;
	struct plan_placement placement;
	enum plan_job_fail fail; /* why this group failed */
	unsigned fail_gw[2];     /* for PLAN_JOB_GATEWAY: side (0, 1) and index */
	/* after a failure: the payload that would fit between these sites; 0: none */
	struct plan_want fits;
};

/* The claims of a plan, for the book. */
struct plan_claim {
	/* "gw/NAME", "path/FIRST/SECOND" or "net/FIRST/SECOND/EDGE/PATH" */
	char name[5 * PLAN_NAME_MAX];
	uint64_t bps;
};

struct plan_job_result {
	enum plan_job_fail fail;
	unsigned fail_pair; /* for PLAN_JOB_NO_SITE: index of the pair */
	unsigned n_groups, n_rows, n_claims;
	struct plan_job_group *groups;
	struct plan_job_row *rows; /* one for each pair of the job, in its order */
	struct plan_claim *claims; /* valid if the job fits */
};

/* Plans; the caller owns *out. Returns 0 with the outcome in (*out)->fail; all groups are planned,
 * so one call reports all that is wrong. RWY_EINVAL: no pairs, too many pairs or sites, or a
 * bandwidth of 0. RWY_ENOMEM. */
RWY_MUST_CHECK int plan_job_new(struct plan_job_result **out, const struct plan_job *job,
    const struct plan_policy *policy, const struct plan_world_ops *world, void *ctx, rwy_time now);
void plan_job_free(struct plan_job_result *r); /* NULL is allowed */

#endif
