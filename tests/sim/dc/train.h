/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step over two sites: `rwydc train`. The stages of a pipeline (pipe.h) are groups of `tp` GPUs
 * with a NIC each; what they send to each other are messages through the simulated hosts, fabrics, gateways
 * and WAN. Beside them other hosts may send between the sites all they can. docs/simulator.md has keys and
 * assumptions.
 */
#ifndef SIM_DC_TRAIN_H
#define SIM_DC_TRAIN_H

#include "tests/sim/dc/dc.h"
#include "tests/sim/dc/pipe.h"

#define TRAIN_TP_MAX 16

struct train_cfg {
	double stages, split, tp, server; /* stages: all, in site 0, in a server; GPUs a stage */
	double micro, slot, tail;         /* ns: forward and backward of a micro-batch; after the last pass */
	double early, act;                /* bytes of a micro-batch's activations, all GPUs of a stage */
	double nvlink;                    /* bits a second of a GPU within its server */
	double cross, guarantee; /* flows each way that send all they can; the training's share of the WAN */
	double ahead; /* ns: they send from so long before a message between the sites until it is there; 0:
	                 always */
	double limit; /* ns: a step that is not done by then */
	unsigned overlap, net;
};

struct train;

/* From one stage to its neighbour. */
struct train_link {
	struct train *t;
	unsigned from, to;
	enum pipe_kind kind;
	bool wan;
	struct qp *qp[TRAIN_TP_MAX]; /* none: within a server */
	struct ev ev;                /* within a server: the next is there */
	struct ev near_ev;           /* the pass whose result it carries ends soon: train_cfg.ahead */
	rwy_time *due;
	unsigned sent, there, complete; /* messages, of all GPUs */
	unsigned there_of[TRAIN_TP_MAX], complete_of[TRAIN_TP_MAX];
	rwy_time *posted;
};

/* Between sites: how long a micro-batch's message took, from the first GPU's posting to the last one's end.
 */
struct train_times {
	double there_sum, there_max, complete_sum, complete_max; /* ns */
	unsigned n;
};

struct train_gpu {
	struct train *t;
	struct ev ev; /* the end of the present pass */
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
	unsigned crosses, warming, near; /* near: messages between the sites that are under way, or soon */
	bool broken;                     /* a queue pair of the training is in error: so is the job */
	rwy_time end;
	double cross_gbps;
	uint64_t fired; /* events of the step */
	FILE *spans;
};

void train_init(struct train *t, struct dc *dc, const struct train_cfg *cfg, FILE *spans);
void train_run(struct train *t);
void train_fini(struct train *t);
/* The flows of the training are a class of their own in both gateways, with cfg.guarantee. After they were
 * learned. */
void train_class(struct train *t);

/* `rwydc train ...`: words of both tables. */
int train_main(int argc, char **argv);
void train_show(FILE *f, const struct train *t, const char *words, double wall_s, bool json);

#endif
