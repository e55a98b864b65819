/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram of durations: exact min, mean and max, percentiles to 1/16 of their value. Not a time
 * series.
 */
#ifndef WANEM_HIST_H
#define WANEM_HIST_H

#include <stdint.h>

#define WANEM_HIST_SUB     16
#define WANEM_HIST_BUCKETS (61 * WANEM_HIST_SUB)

struct wanem_hist {
	uint64_t count, sum, min, max;
	uint64_t bucket[WANEM_HIST_BUCKETS];
};

void wanem_hist_add(struct wanem_hist *h, uint64_t value);
uint64_t wanem_hist_mean(const struct wanem_hist *h);

/* The value that `share` (0..1) of the samples do not exceed, at most 1/16 too high; 0: no
 * samples. */
uint64_t wanem_hist_quantile(const struct wanem_hist *h, double share);

#endif
