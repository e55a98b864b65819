/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenario's own work on the simulated hosts: Poisson messages within each site, long-lived
 * flows and Poisson messages between the sites, and their measurements. A program with a workload
 * of its own uses dc.h without this.
 */
#ifndef SIM_DC_WORK_H
#define SIM_DC_WORK_H

#include "tests/sim/dc/dc.h"
#include "tests/sim/dc/hostile.h"
#include "tests/sim/dc/tenants.h"

struct work;

struct flow {
	struct work *w;
	struct qp *qp;
	struct ev ev; /* its start */
	unsigned src, dst, tenant, outstanding;
	uint64_t posted;               /* bytes */
	uint64_t skip_rx;              /* bytes delivered before measuring began */
	uint64_t sample_rx, sample_tx; /* at the trace's last row */
	rwy_time began, done;          /* with fsize */
};

/* Durations of one kind of messages. */
struct fct {
	float *us;
	uint32_t n, cap;
	double sum, small_sum, large_sum; /* us; small: below 100 kB, large: from 1 MB */
	uint32_t small_n, large_n;
};

struct poisson {
	struct work *w;
	struct ev ev;
	unsigned site;
	bool inter;
	double every; /* mean interval in ns */
	uint64_t rng;
};

struct work {
	struct dc *dc;
	struct flow *flow;
	unsigned flows;
	struct qp **xqp; /* for Poisson messages between the sites: [direction * xqps + i] */
	unsigned xqps;
	struct poisson intra[2], inter[2];
	struct fct fct[2];      /* [0] within a site, [1] between sites */
	struct fct flow_fct[2]; /* of long-lived flows: [0] to the receiver, [1] to the completion */
	struct ev sample_ev, slow_ev, skip_ev, set_ev;
	struct dc_tenant tenant[DC_TENANTS_MAX + 1];
	struct hostile hostile;
	uint64_t sample_wire[DC_TENANTS_MAX + 1]; /* at the trace's last row */
	bool slowed;
	unsigned warming;
	FILE *trace;
	rwy_time sampled;
	uint64_t skip_bytes[2], end_bytes[2];
};

void work_init(struct work *w, struct dc *dc, FILE *trace);
void work_run(struct work *w); /* runs everything until the network is empty */
void work_fini(struct work *w);

uint64_t size_draw(unsigned sizes, double fixed, uint64_t *rng);
double size_mean(unsigned sizes, double fixed);

void trace_head(struct work *w);
void trace_row(struct work *w, rwy_time now);

#endif
