/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of cc_dcqcn, named as in Zhu et al., "Congestion Control for Large-Scale RDMA Deployments"
 * (SIGCOMM 2015). Rates are bytes per second, times ns.
 */
#ifndef CC_DCQCN_H
#define CC_DCQCN_H

#include "cc/cc.h"

struct cc_dcqcn_params {
	uint64_t line_Bps;     /* where a flow starts, and its upper bound */
	uint64_t ai_Bps;       /* R_AI: a step of additive increase */
	uint64_t hai_Bps;      /* R_HAI: a step of hyper increase */
	uint64_t byte_counter; /* B: so many bytes sent make an increase event */
	rwy_dur timer;         /* T: so does so much time */
	rwy_dur alpha_timer;   /* K: alpha decays once in this time without a notification */
	rwy_dur cut_interval;  /* N: notifications closer than this are one */
	uint32_t fast_steps;   /* F: increase events that only go back to the target */
	uint32_t g_shift;      /* g = 1 / 2^g_shift: how fast alpha learns */
};

/* The paper's, for a line of this rate. R_AI is a thousandth of the line, as the paper's 40 Mb/s are of its
 * 40 Gb/s; R_HAI, which it leaves open, is ten times that, the relation in QCN (IEEE 802.1Qau). */
struct cc_dcqcn_params cc_dcqcn_params_default(uint64_t line_Bps);
/* One line for people. Returns as snprintf. */

/*
 * The rate that the receiver was seen to take, bytes per second, while notifications came; 0: not known.
 * DCQCN's sender cannot know it and begins with half; one that does goes down to seven eighths of it at most,
 * and recovers to it and not to the rate that was too high. `state`: of cc_dcqcn, after init.
 */
void cc_dcqcn_taken(void *state, uint64_t taken_Bps);

#endif
