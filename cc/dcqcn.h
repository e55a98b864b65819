/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of cc_dcqcn, named as in Zhu et al., "Congestion Control for Large-Scale RDMA
 * Deployments" (SIGCOMM 2015). Rates are bytes per second, times ns.
 */
#ifndef CC_DCQCN_H
#define CC_DCQCN_H

#include "cc/cc.h"

struct cc_dcqcn_params {
	uint64_t line_Bps;     /* initial rate of a flow, and its upper bound */
	uint64_t ai_Bps;       /* R_AI: step of additive increase */
	uint64_t hai_Bps;      /* R_HAI: step of hyper increase */
	uint64_t byte_counter; /* B: bytes sent per increase event */
	rwy_dur timer;         /* T: time per increase event */
	rwy_dur alpha_timer;   /* K: alpha decays once per this time without a notification */
	rwy_dur cut_interval;  /* N: notifications closer together count as one */
	uint32_t fast_steps;   /* F: increase events of fast recovery, which return to the target */
	uint32_t g_shift;      /* g = 1 / 2^g_shift: weight of a new observation in alpha */
};

/* The paper's values for a line of this rate. R_AI is a thousandth of the line, as 40 Mb/s of 40
 * Gb/s in the paper; R_HAI, which the paper leaves open, is ten times R_AI as in QCN (IEEE
 * 802.1Qau). */
struct cc_dcqcn_params cc_dcqcn_params_default(uint64_t line_Bps);

/*
 * Tells the rate that the receiver took while notifications came, bytes per second; 0: unknown.
 * DCQCN's sender cannot know it and begins with half its rate. With a known rate it goes down to
 * seven eighths of it at most, and recovers to it and not to the rate that was too high. `state`:
 * of cc_dcqcn, after init.
 */
void cc_dcqcn_taken(void *state, uint64_t taken_Bps);

#endif
