/* SPDX-License-Identifier: Apache-2.0
 * Log-linear histogram, 16 steps for each power of two; see hist.h.
 */
#include "tools/wanem/hist.h"

static unsigned bucket_of(uint64_t v)
{
	unsigned shift;

	if (v < WANEM_HIST_SUB)
		return (unsigned)v;
	shift = 63 - (unsigned)__builtin_clzll(v) - 4;
	return (shift + 1) * WANEM_HIST_SUB + (unsigned)(v >> shift) - WANEM_HIST_SUB;
}

static uint64_t bucket_top(unsigned b)
{
	unsigned shift;

	if (b < WANEM_HIST_SUB)
		return b;
	shift = b / WANEM_HIST_SUB - 1;
	return (((uint64_t)(b % WANEM_HIST_SUB) + WANEM_HIST_SUB + 1) << shift) - 1;
}

void wanem_hist_add(struct wanem_hist *h, uint64_t value)
{
	if (!h->count || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->sum += value;
	h->bucket[bucket_of(value)]++;
}

uint64_t wanem_hist_mean(const struct wanem_hist *h)
{
	return h->count ? h->sum / h->count : 0;
}

uint64_t wanem_hist_quantile(const struct wanem_hist *h, double share)
{
	double want = share * (double)h->count;
	uint64_t seen = 0;

	if (!h->count)
		return 0;
	for (unsigned b = 0; b < WANEM_HIST_BUCKETS; b++) {
		seen += h->bucket[b];
		if (seen && (double)seen >= want)
			return bucket_top(b) < h->max ? bucket_top(b) : h->max;
	}
	return h->max;
}
