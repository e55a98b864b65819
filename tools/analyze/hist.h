/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of durations: 16 buckets an octave, so a quantile is right within 4.5 %. Min, max,
 * sum exact.
 */
#ifndef TOOLS_ANALYZE_HIST_H
#define TOOLS_ANALYZE_HIST_H

#include <stdint.h>

#include "rwy/time.h"

#define AN_HIST_OCTAVES 44 /* 1 ns to 4.8 hours */
#define AN_HIST_STEPS   16

struct an_hist {
	uint64_t n;
	rwy_dur min, max;
	double sum;
	uint32_t bucket[AN_HIST_OCTAVES * AN_HIST_STEPS];
};

void an_hist_add(struct an_hist *h, rwy_dur d);
/* q: 0..1. 0 when nothing was added. */
rwy_dur an_hist_quantile(const struct an_hist *h, double q);
rwy_dur an_hist_mean(const struct an_hist *h);

#endif
