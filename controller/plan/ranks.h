/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives a training job's containers their ranks (white paper 4.2.8). The job is cut into clusters,
 * one a site, of whole pipeline stages each; a stage is `data` tensor groups of `tensor` ranks.
 * Rank (stage * data + i) * tensor + j is the j-th of the i-th group of its stage. The planner
 * decides
 *
 *   - the order of the clusters along the pipeline, by what the paths between them cost, unless the
 *     scheduler gave each its range of ranks;
 *   - in each cluster the order of the containers, so that groups that talk to each other are near
 *     each other, and which containers are spare.
 *
 * A job that has ranks already keeps them, and only what is vacant is filled. Nothing is reserved
 * here; plan/job.h plans the demands that come out (ranks_pairs.c).
 *
 * Thread: no state.
 */
#ifndef PLAN_RANKS_H
#define PLAN_RANKS_H

#include "controller/plan/job.h"

#define PLAN_CLUSTERS_MAX   64
#define PLAN_CONTAINERS_MAX 16384
#define PLAN_LEVELS_MAX     8          /* of the place of a container in its site */
#define PLAN_RANK_NONE      UINT32_MAX /* no rank */
#define PLAN_COST_NONE      UINT32_MAX /* no path between two clusters */
/* a demand above what is allowed, or that 64 bits do not hold */
#define PLAN_ERANGE (-34)

struct plan_cluster {
	uint32_t ranks;
	uint32_t first; /* the scheduler's choice; PLAN_RANK_NONE: the planner's. All or none */
};

struct plan_container {
	uint32_t cluster; /* index */
	uint32_t ranks;   /* that it can have: its GPUs */
	/* Its place, from the largest to the smallest (row, rack, server), as plan_id() of names */
	uint64_t level[PLAN_LEVELS_MAX];
	unsigned levels;
	uint32_t first, count; /* the ranks that it has already; count 0: none */
	bool failed;           /* it gets no ranks */
};

struct plan_split {
	uint32_t pipeline, data, tensor;
	bool ring; /* the last stage talks to the first, too */
	const struct plan_cluster *cluster;
	unsigned clusters;
	const struct plan_container *container;
	unsigned containers;
	/* [a * clusters + b]: the cost of two stages that talk between these clusters, in us; the
	 * same for both directions; PLAN_COST_NONE: they cannot */
	const uint32_t *cost;
};

#define PLAN_RANKS_FAILS(X)                                                                                  \
	X(PLAN_RANKS_FIT, "the ranks are assigned")                                                          \
	X(PLAN_RANKS_WORLD, "the clusters' ranks are not pipeline x data x tensor together")                 \
	X(PLAN_RANKS_STAGE, "a cluster's ranks are no whole stages of data x tensor")                        \
	X(PLAN_RANKS_SOME, "some clusters have a first rank and others none")                                \
	X(PLAN_RANKS_RANGE, "the clusters' ranges of ranks overlap or leave a gap")                          \
	X(PLAN_RANKS_TENSOR, "a container has no whole tensor groups: a group stays in one server")          \
	X(PLAN_RANKS_PATH, "no order of the clusters has a path between all neighbours")

enum plan_ranks_fail {
#define X(e, s) e,
	PLAN_RANKS_FAILS(X)
#undef X
};
/* The failure as a sentence; static text. */
const char *plan_ranks_fail_text(enum plan_ranks_fail f);

/* The ranks of one container. */
struct plan_share {
	uint32_t first, count; /* count 0: it is spare, or failed */
};

struct plan_ranks {
	enum plan_ranks_fail fail;
	unsigned bad;             /* index of the cluster, or of the container, at fault */
	struct plan_share *share; /* of each container */
	uint32_t *cluster_first;  /* of each cluster */
	uint32_t *missing;        /* of each cluster: ranks for which there is no container */
	uint32_t missing_all;     /* the sum of `missing` */
	/* of the clusters' order, and of the containers' in all clusters */
	uint64_t cost_us, hops;
};

/* Assigns; the caller owns *out. Returns 0 with the outcome in (*out)->fail. RWY_EINVAL: no cluster
 * or too many, too many containers or ranks, a pipeline, data or tensor of 0, or a container of no
 * cluster. RWY_ENOMEM. */
RWY_MUST_CHECK int plan_ranks_new(struct plan_ranks **out, const struct plan_split *s);
void plan_ranks_free(struct plan_ranks *r); /* NULL is allowed */

/* The cost of two containers that talk: 0 within one container, 1 within the smallest level, one
 * more for each level in which they differ. */
unsigned plan_ranks_hops(const struct plan_container *a, const struct plan_container *b);

/* A rank's place in the network. */
struct plan_rank_address {
	struct rwy_ip addr;
	uint32_t cluster; /* PLAN_RANK_NONE: nobody has this rank */
};

/*
 * Turns the demand of each two ranks that talk across clusters into demands of pairs of addresses:
 * the i-th rank of a stage and the i-th of the next want `want`, and what several ranks want
 * between the same addresses is added. `at` has pipeline * data * tensor entries. Stages within one
 * cluster make no pairs.
 *
 * Returns the number of pairs, sorted by addresses, in *out, which the caller frees.
 * PLAN_ERANGE: a sum is above max_bps. RWY_ENOMEM.
 */
RWY_MUST_CHECK int plan_ranks_pairs(struct plan_job_pair **out, const struct plan_split *s,
    const struct plan_rank_address *at, const struct plan_triple *want, uint64_t max_bps);

/* --- demand.c --------------------------------------------------------------------------------- */

/* A model as far as it decides what crosses between two stages (white paper 4.2.3). */
struct plan_model {
	uint64_t sequence_length, hidden_size, micro_batch_size, global_batch_size;
	uint64_t element_bytes; /* of an activation: 2 for fp16 */
	uint64_t step_us;       /* the time of one training step that is wanted */
	/* The time that one micro-batch may be on its way; 0: as long as a stage computes on it, so
	 * that transfers which overlap computation never hold it up */
	uint64_t transfer_us;
	/* the ranks of a tensor group share an activation; else each sends all */
	bool sequence_parallel;
};

struct plan_model_demand {
	/* of one micro-batch, from one rank to the next stage's, each way */
	uint64_t bytes;
	uint64_t micro_batches; /* in a step */
	uint64_t transfer_us;
	uint64_t bandwidth_bps; /* payload */
};

/* Returns 0. RWY_EINVAL: the global batch is no multiple of micro batch x data, an activation
 * cannot be shared by the tensor group, or a value is 0. PLAN_ERANGE: the demand is above max_bps
 * or cannot be computed in 64 bits. */
RWY_MUST_CHECK int plan_model_demand(struct plan_model_demand *out, const struct plan_model *m,
    uint32_t pipeline, uint32_t data, uint32_t tensor, uint64_t max_bps);

#endif
