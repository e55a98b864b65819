/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 1F1B schedule of pipeline-parallel training, alone: which stage computes which micro-batch when. How
 * long a message takes is the caller's. Stage s begins with p - s - 1 forward passes (of p stages), then
 * takes one forward and one backward in turn, then the backward passes that remain; forward results go to
 * stage s + 1, gradients to s - 1, each in the order of micro-batches.
 *
 * Without overlap a stage does nothing from the moment it begins to send until the send is complete; with it
 * sending costs no compute time. With overlap and distance `early` further forward passes come first on the
 * stages before `boundary`: they have that many more micro-batches' activations to keep.
 */
#ifndef SIM_DC_PIPE_H
#define SIM_DC_PIPE_H

#include <stdbool.h>

#include "rwy/time.h"

#define PIPE_STAGES_MAX 16

enum pipe_kind { PIPE_FWD, PIPE_BWD };
enum pipe_span { PIPE_SPAN_FWD, PIPE_SPAN_BWD, PIPE_SPAN_SEND, PIPE_SPAN_WAIT };

struct pipe_cfg {
	unsigned stages, micro; /* 1 .. PIPE_STAGES_MAX, 1 .. */
	unsigned early, boundary;
	bool overlap;
	rwy_dur fwd, bwd; /* of one micro-batch on one stage */
};

struct pipe_ops {
	/* pipe_computed() after so long. */
	void (*compute)(void *ctx, unsigned stage, rwy_dur time, rwy_time now);
	/* pipe_arrived() when it is there, pipe_sent() when the sender has its completion; both may come from
	 * inside. */
	void (*send)(void *ctx, unsigned stage, enum pipe_kind kind, rwy_time now);
	/* What a stage did from..to; micro is the micro-batch computed, sent or waited for. May be NULL. */
	void (*span)(
	    void *ctx, unsigned stage, enum pipe_span span, unsigned micro, rwy_time from, rwy_time to);
};

struct pipe_stage {
	unsigned op;         /* how many of its 2 x micro passes are done */
	unsigned arrived[2]; /* by enum pipe_kind */
	bool computing, sending;
	rwy_time since;   /* of the present state */
	rwy_dur spent[4]; /* by enum pipe_span */
	rwy_time done;    /* 0: not yet */
};

struct pipe {
	struct pipe_cfg cfg;
	const struct pipe_ops *ops;
	void *ctx;
	struct pipe_stage stage[PIPE_STAGES_MAX];
	unsigned running; /* stages that are not done */
	rwy_time done;    /* the last one's */
};

void pipe_start(
    struct pipe *p, const struct pipe_cfg *cfg, const struct pipe_ops *ops, void *ctx, rwy_time now);
void pipe_computed(struct pipe *p, unsigned stage, rwy_time now);
/* The next message of the kind is at the stage: of the next micro-batch, they come in order. */
void pipe_arrived(struct pipe *p, unsigned stage, enum pipe_kind kind, rwy_time now);
/* What the stage sent last is complete. */
void pipe_sent(struct pipe *p, unsigned stage, rwy_time now);
/* The pass that a stage makes as its `op`th, from 0. */
enum pipe_kind pipe_op(const struct pipe_cfg *cfg, unsigned stage, unsigned op, unsigned *micro);

#endif
