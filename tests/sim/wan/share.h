/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shares of a link: what each tunnel and each flow of the cross traffic got, over the measured
 * window and over its second half, and the queue meanwhile. Rates are bit/s on the wire without
 * losses. Senders are in run.c and cross.c.
 */
#ifndef SIM_WAN_SHARE_H
#define SIM_WAN_SHARE_H

#include <stdio.h>

#include "tests/sim/wan/scen.h"

#define SHARE_FLOWS (TUNNELS_MAX + 256)

struct share_flow {
	char class[12];
	double bps, half_bps;
};

struct share {
	unsigned n, ours; /* 0: the link was not shared; the first `ours` are tunnels */
	struct share_flow flow[SHARE_FLOWS];
	double queue_mean, queue_max; /* ns */
	double drops, marks;
};

struct share_figures {
	double fair;              /* bit/s: the link divided by the number of senders */
	double ours, ours_half;   /* mean of the tunnels / fair */
	double ours_least;        /* second half: the tunnel that got least / fair */
	double cross, cross_half; /* mean of the cross traffic / fair */
	double cross_least;       /* second half: the flow that got least / fair */
	/* second half: Jain's index of all, and of ours; used share of the link */
	double jain, ours_jain, total;
};

struct share_figures share_figures(const struct scen *s, const struct share *h);
void share_table(FILE *f, const struct scen *s, const struct share *h);
/* Prints `, "flows": [...]`. */
void share_json(FILE *f, const struct share *h);

#endif
