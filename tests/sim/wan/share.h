/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who got how much of a shared link: each tunnel and each flow of the cross traffic, over the measured window
 * and over its second half, and what stood in the queue meanwhile. Rates are bits a second on the wire, of
 * what was not lost. Not here: who sends (run.c, cross.c).
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
	unsigned n, ours; /* 0: the link was not shared. The first `ours` are tunnels */
	struct share_flow flow[SHARE_FLOWS];
	double queue_mean, queue_max; /* ns */
	double drops, marks;
};

struct share_figures {
	double fair;                   /* bits a second: the link over everybody */
	double ours, ours_half;        /* mean of the tunnels over fair */
	double ours_least;             /* second half: the tunnel that got least, over fair */
	double cross, cross_half;      /* mean of the others over fair */
	double cross_least;            /* second half: the flow that got least, over fair */
	double jain, ours_jain, total; /* second half: of all flows, of ours; share of the link in use */
};

struct share_figures share_figures(const struct scen *s, const struct share *h);
void share_table(FILE *f, const struct scen *s, const struct share *h);
/* ", "flows": [...]" */
void share_json(FILE *f, const struct share *h);

#endif
