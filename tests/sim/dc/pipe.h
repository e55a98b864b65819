/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 1F1B schedule of pipeline-parallel training: which stage computes which micro-batch when. The
 * caller decides how long a message takes.
 *
 * Stage s of p begins with p - s - 1 forward passes, then alternates one forward and one backward
 * pass, then makes the remaining backward passes. Results of forward passes go to stage s + 1,
 * gradients to s - 1, in the order of micro-batches. Without overlap a stage does nothing from the
 * beginning of a send until its completion; with overlap sending costs no compute time. With
 * overlap and distance the stages before `boundary` make `early` more forward passes first, and
 * keep the activations of that many more micro-batches; those before `boundary2`, where there is a
 * second distance, again that many.
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
	rwy_dur fwd, bwd;   /* of one micro-batch on one stage */
	rwy_dur fwd2, bwd2; /* the same on stages from `boundary` on; 0: as the others */
	unsigned boundary2; /* 0: there is none */
};

struct pipe_ops {
	/* Starts a computation; the caller calls pipe_computed() after `time`. */
	void (*compute)(void *ctx, unsigned stage, rwy_dur time, rwy_time now);
	/* Starts a message; the caller calls pipe_arrived() when it is there and pipe_sent() when
	 * the sender has its completion. Both calls may come from inside. */
	void (*send)(void *ctx, unsigned stage, enum pipe_kind kind, rwy_time now);
	/* Reports a stage's activity; micro is the micro-batch that is computed, sent or waited
	 * for. May be NULL. */
	void (*span)(
	    void *ctx, unsigned stage, enum pipe_span span, unsigned micro, rwy_time from, rwy_time to);
};

struct pipe_stage {
	unsigned op;         /* passes done, of 2 x micro */
	unsigned arrived[2]; /* by enum pipe_kind */
	bool computing, sending;
	rwy_time since;   /* beginning of the present state */
	rwy_dur spent[4]; /* by enum pipe_span */
	rwy_time done;    /* 0: not yet */
};

struct pipe {
	struct pipe_cfg cfg;
	const struct pipe_ops *ops;
	void *ctx;
	struct pipe_stage stage[PIPE_STAGES_MAX];
	unsigned running; /* stages that are not done */
	rwy_time done;    /* of the last stage */
};

void pipe_start(
    struct pipe *p, const struct pipe_cfg *cfg, const struct pipe_ops *ops, void *ctx, rwy_time now);
void pipe_computed(struct pipe *p, unsigned stage, rwy_time now);
/* The next message of this kind is at the stage. Messages come in the order of micro-batches. */
void pipe_arrived(struct pipe *p, unsigned stage, enum pipe_kind kind, rwy_time now);
/* The stage's last send is complete. */
void pipe_sent(struct pipe *p, unsigned stage, rwy_time now);
/* The pass that a stage makes as its `op`-th, from 0. */
enum pipe_kind pipe_op(const struct pipe_cfg *cfg, unsigned stage, unsigned op, unsigned *micro);

#endif
