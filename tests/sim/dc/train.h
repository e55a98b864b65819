/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step over two sites or three: `rwydc train`. The stages of a pipeline (pipe.h) are groups of
 * `tp` GPUs with one NIC each. Their messages go through the simulated hosts, fabrics, gateways and
 * WAN. Other hosts may send between the sites as fast as they can. docs/simulator.md has keys and
 * assumptions.
 */
#ifndef SIM_DC_TRAIN_H
#define SIM_DC_TRAIN_H

#include "tests/sim/dc/dc.h"
#include "tests/sim/dc/pipe.h"

#define TRAIN_TP_MAX 16

struct train_cfg {
	/* stages in all, in site 0, in a server; GPUs per stage */
	double stages, split, tp, server;
	double third; /* first stage in site 2; 0: there are two sites */
	/* ns: forward and backward pass of a micro-batch; after the last pass */
	double micro, slot, tail;
	double slot2;      /* a pass forward and back on the stages from `split` on; 0: as `slot` */
	double early, act; /* bytes of a micro-batch's activations, over all GPUs of a stage */
	double nvlink;     /* bit/s of a GPU within its server */
	/* greedy flows in each direction; the training's share of the WAN */
	double cross, guarantee;
	/* ns: greedy flows send from this time before a message between the sites until it has
	 * arrived; 0: always */
	double ahead;
	double limit; /* ns: limit of a step */
	unsigned overlap, net;
};

struct train;

/* From a stage to its neighbour. */
struct train_link {
	struct train *t;
	unsigned from, to;
	enum pipe_kind kind;
	bool wan;
	struct qp *qp[TRAIN_TP_MAX]; /* none within a server */
	struct ev ev;                /* within a server: arrival of the next message */
	struct ev near_ev;           /* the pass whose result it carries ends soon: train_cfg.ahead */
	rwy_time *due;
	unsigned sent, there, complete; /* messages, counted over all GPUs */
	unsigned there_of[TRAIN_TP_MAX], complete_of[TRAIN_TP_MAX];
	rwy_time *posted;
};

/* Durations of messages between sites, from the first GPU's post to the last one's end. */
struct train_times {
	double there_sum, there_max, complete_sum, complete_max; /* ns */
	unsigned n;
};

struct train_gpu {
	struct train *t;
	struct ev ev; /* end of the present pass */
};

struct train_cross {
	struct train *t;
	struct qp *qp;
	unsigned outstanding;
	uint64_t rx_before;
};

struct train {
	struct dc *dc;
	struct train_cfg cfg;
	struct pipe pipe;
	struct train_link link[2][PIPE_STAGES_MAX]; /* by kind and sending stage */
	struct train_gpu gpu[PIPE_STAGES_MAX];      /* by stage */
	struct train_cross *cross;
	struct train_times wan;
	/* near: messages between the sites that are on their way or due soon */
	unsigned crosses, warming, near;
	bool broken; /* a queue pair of the training is in error, and with it the job */
	rwy_time end;
	double cross_gbps;
	uint64_t fired; /* events of the step */
	FILE *spans;
};

void train_init(struct train *t, struct dc *dc, const struct train_cfg *cfg, FILE *spans);
void train_run(struct train *t);
void train_fini(struct train *t);
/* Makes the training's flows a class of their own in both gateways, with cfg.guarantee. Call it
 * after the gateways have learned them. */
void train_class(struct train *t);

/* `rwydc train ...`: accepts the words of both tables. */
int train_main(int argc, char **argv);
void train_show(FILE *f, const struct train *t, const char *words, double wall_s, bool json);

#endif
